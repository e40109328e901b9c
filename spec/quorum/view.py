"""One server's view of the ensemble, as its configuration file defines it; and a change of its members by `reconfig`.

Rules of this module:

- A view is a value. A server with a new file gets a new view; the old view does not change.
- The quorum system defines the voters; observers are members that do not vote. A server is never both.
- `version` is compared and gossiped only when reconfiguration is enabled; it is 0 otherwise.
- A standalone server has a view, too: the server itself is the only voter.
- A change is incremental: servers that join or change their role, and servers that leave. Only a majority system can be
  changed in this way.
- The leaving servers are removed first, so a server that is in both sets stays, with its new role.
- A view with a change has another version, which the leader chooses: the zxid of its proposal.

Sources: `QuorumPeer.getView`, `QuorumPeer.getQuorumVerifier`, `QuorumVerifier.getVersion`,
`QuorumPeerConfig.isDistributed`; `PrepRequestProcessor.pRequest2Txn`, case reconfig; `ReconfigRequest`.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from spec.quorum.addresses import Addresses
from spec.quorum.systems import Majority, QuorumSystem, Sid, hierarchical


class View(msgspec.Struct, frozen=True):
    """The members that one server knows, the voters among them, and the definition of a quorum.

    `version` is the configuration's version, 0 when reconfiguration is off. `addresses` are given only where the files
    of two servers differ in them, so that one of the servers may not reach the other. With `standalone` the server has
    no peer ports, and serves alone. `text` are the lines of the configuration in a node, for its sockets and files; no
    step reads them, and the checker leaves them out. Raises ValueError when a server is both voter and observer, and
    for a standalone view with other members than one voter.
    """

    quorums: QuorumSystem
    observers: frozenset[Sid] = frozenset()
    version: int = 0
    addresses: Addresses | None = None
    standalone: bool = False
    text: str = ""

    def __post_init__(self) -> None:
        if self.standalone and (len(self.quorums.members) != 1 or self.observers):
            raise ValueError("a standalone server has no other members in its view")
        shared = self.quorums.members & self.observers
        if shared:
            raise ValueError(f"servers {sorted(shared)} are both voters and observers")

    @property
    def voters(self) -> frozenset[Sid]:
        """The voting members (`QuorumVerifier.getVotingMembers`)."""
        return self.quorums.members

    @property
    def members(self) -> frozenset[Sid]:
        """Voters and observers together (`QuorumVerifier.getAllMembers`)."""
        return self.voters | self.observers

    def is_voter(self, sid: Sid) -> bool:
        """Whether this server's acks and votes count in this view."""
        return sid in self.voters

    def weight(self, sid: Sid) -> int:
        """The weight of a server's vote: 1 for a voter of a majority system, 0 for observers and outsiders."""
        return self.quorums.weight(sid)

    def contains_quorum(self, servers: AbstractSet[Sid]) -> bool:
        """Whether the voters among `servers` are a quorum of this view (`QuorumVerifier.containsQuorum`)."""
        return self.quorums.contains_quorum(servers)


def views_in_use(view: View, last_seen: View | None) -> tuple[View, ...]:
    """The views whose quorums a server needs: its own, and a later one that it has seen last, if any."""
    return (view,) if last_seen is None or last_seen.version <= view.version else (view, last_seen)


def seen_beside(active: View, seen: View) -> View | None:
    """The view seen last, as a server keeps it beside its active one: None if it is the active one."""
    return None if seen.version == active.version else seen


def seen_after_activation(active: View, last_seen: View | None) -> View | None:
    """The view seen last, once a view has become active: only a later one is kept (`setQuorumVerifier`)."""
    return last_seen if last_seen is not None and last_seen.version > active.version else None


def votes_in(views: Iterable[View], sid: Sid) -> bool:
    """Whether a server is a voter in one of these views (`QuorumPeer.getCurrentAndNextConfigVoters`)."""
    return any(view.is_voter(sid) for view in views)


def have_quorums(views: Iterable[View], servers: AbstractSet[Sid]) -> bool:
    """Whether servers contain a quorum of each of these views (`SyncedLearnerTracker.hasAllQuorums`)."""
    return all(view.contains_quorum(servers) for view in views)


def majority_view(voters: Iterable[Sid], observers: Iterable[Sid] = (), version: int = 0) -> View:
    """A view that counts plain majorities of `voters`."""
    return View(Majority(frozenset(voters)), frozenset(observers), version)


def standalone_view(sid: Sid) -> View:
    """The view of a server that runs standalone (`ZooKeeperServerMain`)."""
    return View(Majority(frozenset({sid})), standalone=True)


def hierarchical_view(
    groups: Mapping[int, Iterable[Sid]],
    weights: Mapping[Sid, int] | None = None,
    observers: Iterable[Sid] = (),
    version: int = 0,
) -> View:
    """A view that counts weights within groups; servers without a weight have weight 1.

    A group may contain an observer: it counts in the group's total and does not vote.
    """
    members = {gid: tuple(servers) for gid, servers in groups.items()}
    watching = frozenset(observers)
    grouped = {sid for servers in members.values() for sid in servers}
    return View(hierarchical(members, weights, watching & grouped), watching, version)


class MembershipChange(msgspec.Struct, frozen=True):
    """The servers that become voters, those that become observers, and those that leave."""

    voters: frozenset[Sid] = frozenset()
    observers: frozenset[Sid] = frozenset()
    leaving: frozenset[Sid] = frozenset()


class Reconfiguration(msgspec.Struct, frozen=True):
    """The value of a transaction that changes the configuration: the new view, and what the tree of a node applies.

    In the checker there is no tree, and `change` is None.
    """

    view: View
    change: Any = None


def change_of(value: Any) -> Any:
    """What the tree applies of the value of a transaction: all of it, except for the view of a reconfiguration."""
    return value.change if type(value) is Reconfiguration else value


def changed(view: View, change: MembershipChange, version: int) -> View | None:
    """The view after a change, with this version; None if the view does not count plain majorities.

    Addresses are kept, because a change of an address is not modelled.
    """
    if not isinstance(view.quorums, Majority):
        return None
    joining = change.voters | change.observers
    voters = (view.voters - change.leaving - joining) | change.voters
    observers = (view.observers - change.leaving - joining) | (change.observers - change.voters)
    return View(Majority(voters), observers, version, view.addresses)


def same_members(one: View, other: View) -> bool:
    """Whether two configurations differ in their version only (`QuorumVerifier.equals`)."""
    return (one.quorums, one.observers) == (other.quorums, other.observers)
