"""Which sets of servers are quorums, in the eyes of one server.

Every server decides by its **own** configuration file, so a quorum belongs to a `View`, never to the
ensemble. The rest of the specification asks one question only: `view.contains_quorum(servers)`.

Rules this package keeps:

- Voting members count, and nobody else: observers and servers outside the view may stand in the set that
  is asked about, and change nothing.
- Values are frozen, hashable and canonical: two views of the same ensemble are equal, whatever order they
  were written in.
- Nothing here reads text or files; `spec.config` makes views out of `zoo.cfg`.

Sources: ZooKeeper's `QuorumVerifier`, `QuorumMaj` and `QuorumHierarchical`.
"""

from spec.quorum.addresses import Addresses, Port, addresses_of, opens, reaches
from spec.quorum.systems import Hierarchical, Majority, QuorumSystem, Sid, hierarchical
from spec.quorum.view import View, hierarchical_view, majority_view

__all__ = [
    "Addresses",
    "Hierarchical",
    "Majority",
    "Port",
    "QuorumSystem",
    "Sid",
    "View",
    "addresses_of",
    "hierarchical",
    "hierarchical_view",
    "majority_view",
    "opens",
    "reaches",
]
