"""The sets of servers that are quorums, from the view of one server.

Every server decides by its **own** configuration file, so a quorum belongs to a `View`, never to the ensemble. The rest
of the specification calls one function only: `view.contains_quorum(servers)`.

Rules of this package:

- Only voting members count: the argument may contain observers and servers outside the view, and they do not change the
  answer.
- Values are frozen, hashable and canonical: two views of the same ensemble are equal, regardless of the order in the
  files.
- Nothing here reads text or files; `spec.config` builds views from `zoo.cfg`.

Sources: ZooKeeper's `QuorumVerifier`, `QuorumMaj` and `QuorumHierarchical`.
"""

from spec.quorum.addresses import Addresses, Port, addresses_of, opens, reaches
from spec.quorum.systems import Hierarchical, Majority, QuorumSystem, Sid, hierarchical
from spec.quorum.view import (
    MembershipChange,
    Reconfiguration,
    View,
    change_of,
    changed,
    have_quorums,
    hierarchical_view,
    majority_view,
    same_members,
    seen_after_activation,
    seen_beside,
    standalone_view,
    views_in_use,
    votes_in,
)

__all__ = [
    "Addresses",
    "Hierarchical",
    "Majority",
    "MembershipChange",
    "Port",
    "QuorumSystem",
    "Reconfiguration",
    "Sid",
    "View",
    "addresses_of",
    "change_of",
    "changed",
    "have_quorums",
    "hierarchical",
    "hierarchical_view",
    "majority_view",
    "opens",
    "reaches",
    "same_members",
    "seen_after_activation",
    "seen_beside",
    "standalone_view",
    "views_in_use",
    "votes_in",
]
