"""Dynamic reconfiguration: the configuration as a replicated value, with the active and the last seen one of a server.

    active       `Peer.view`: its voters elect, its quorums commit (`QuorumPeer.getQuorumVerifier`)
    last seen    `Peer.last_seen`: proposed, perhaps committed (`getLastSeenQuorumVerifier`, the file `.dynamic.next`)

Rules of this module:

- A reconfiguration is a transaction whose value is a `Reconfiguration`. The version of its view is the zxid of the
  transaction.
- A view that is seen is written before its transaction is logged. While it is later than the active one, votes,
  proposals and NEWLEADER need a quorum of both.
- A view becomes active with the commit of its transaction, with UPTODATE, or by a notification in an election. It is
  written before the transaction is applied. It never replaces a later one.
- A leader whose view has no version refuses reconfigurations. A server with such a view takes any later one: it is new
  to the ensemble. Left out: `reconfigEnabled=false`, where a server keeps its file.
- An address is not changed, so a leader stays if it is a voter in the new view.

Source: `QuorumPeer.processReconfig`, `setQuorumVerifier`, `setLastSeenQuorumVerifier`, `updateLearnerType`;
`PrepRequestProcessor.pRequest2Txn` (reconfig); `Leader.propose`, `isQuorumSynced`, `getDesignatedLeader`.
Shraer, Reed, Malkhi, Junqueira: Dynamic Reconfiguration of Primary/Backup Clusters, USENIX ATC 2012.
"""

import enum
from collections.abc import Iterable

from msgspec.structs import replace

from spec.effects import Configure, ConfigureNext, Effects
from spec.election.state import Peer
from spec.election.vote import is_observer
from spec.quorum import (
    MembershipChange,
    Reconfiguration,
    Sid,
    View,
    changed,
    same_members,
    seen_after_activation,
    seen_beside,
)
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.state import Leader, Outstanding, ZabRules, forwarding_followers


class Refused(enum.Enum):
    """The reasons for which a leader refuses a reconfiguration, with the exceptions that a client gets."""

    DISABLED = "ReconfigDisabledException"
    IN_PROGRESS = "ReconfigInProgress"
    NOT_A_MAJORITY_SYSTEM = "BadArgumentsException: the quorums are not majorities"
    TOO_FEW_VOTERS = "BadArgumentsException: fewer than two voters are left"
    NO_SYNCED_QUORUM = "NewConfigNoQuorum"


def view_of(txn: Txn) -> View | None:
    """The view that a transaction proposes; None for a transaction that is not a reconfiguration."""
    return txn.value.view if isinstance(txn.value, Reconfiguration) else None


# The views of a server.


def see(peer: Peer, view: View | None) -> tuple[Peer, Effects]:
    """The server with this view as the one seen last, and the effect that writes it (`setLastSeenQuorumVerifier`).

    A view that is older than the last seen one is only logged as stale, and replaces it.
    """
    if view is None or view.version == peer.latest.version:
        return peer, ()
    return replace(peer, last_seen=seen_beside(peer.view, view)), (ConfigureNext(view),)


def activate(peer: Peer, view: View | None, rules: ZabRules) -> tuple[Peer, Effects]:
    """The server with this view as its active one, and the effect that writes it (`setQuorumVerifier`)."""
    stale = view is not None and view.version <= peer.view.version
    if view is None or (stale and (Variant.STALE_VIEW_ACTIVATED not in rules.variants or view == peer.view)):
        return peer, ()
    return replace(peer, view=view, last_seen=seen_after_activation(view, peer.last_seen)), (Configure(view),)


def is_major_change(before: Peer, after: Peer, leader: Sid, designated: Sid | None = None) -> bool:
    """Whether a new active view changes the role or the leader of a learner, so that its part ends (`processReconfig`).

    A server that the view leaves out is a follower without a vote. Without a designated leader the present one stays
    if it is a voter in both views.
    """
    if before.view.version == after.view.version or same_members(before.view, after.view):
        return False
    changes_role = is_observer(before.sid, before.view) is not is_observer(after.sid, after.view)
    stays = before.view.is_voter(leader) and after.view.is_voter(leader) if designated is None else designated == leader
    return changes_role or not stays


# The leader.


def proposed(
    peer: Peer, leader: Leader, asked: MembershipChange | Reconfiguration, zxid: int, rules: ZabRules
) -> Reconfiguration | Refused:
    """The value that a leader proposes with this zxid, or the reason why it refuses.

    A node has computed the new view already, with this zxid as its version.
    """
    if (refused := refusal_of_all(peer)) is not None:
        return refused
    if isinstance(asked, MembershipChange):
        counts = Variant.VERSION_IS_A_COUNT in rules.variants
        view = changed(peer.view, asked, peer.view.version + 1 if counts else zxid)
        if view is None:
            return Refused.NOT_A_MAJORITY_SYSTEM
        asked = Reconfiguration(view)
    return refusal_of(peer, leader, asked.view) or asked


def refusal_of_all(peer: Peer) -> Refused | None:
    """The reason why a leader refuses any reconfiguration now; None if it does not."""
    if not peer.view.version:
        return Refused.DISABLED
    return Refused.IN_PROGRESS if peer.last_seen is not None else None


def refusal_of(peer: Peer, leader: Leader, view: View) -> Refused | None:
    """The reason why a leader refuses this new view; None if it does not.

    A quorum of the new view must be connected and get proposals (`forwardingFollowers`). Observers get none.
    """
    if len(view.voters) < 2:
        return Refused.TOO_FEW_VOTERS
    forwarding = {*forwarding_followers(leader.handlers), peer.sid}
    return None if view.contains_quorum(forwarding) else Refused.NO_SYNCED_QUORUM


def first_version(peer: Peer, epoch: int, rules: ZabRules) -> View | None:
    """The view of a new leader with its first version, if it has none yet (`Leader.lead`, ZOOKEEPER-1783).

    It is later than the file of a server that joins, which may name only a part of the ensemble.
    """
    if not rules.first_version or peer.view.version or peer.last_seen is not None:
        return None
    return replace(peer.view, version=make_zxid(epoch))


def views_of_proposal(peer: Peer, rules: ZabRules) -> tuple[View, ...]:
    """The views whose quorums a new proposal needs; empty where that is the active one alone (`Leader.propose`)."""
    alone = peer.proposed is None or Variant.COMMIT_BY_OLD_QUORUM in rules.variants
    return () if alone else peer.views


def views_of_leader(peer: Peer, rules: ZabRules) -> tuple[View, ...]:
    """The views whose quorums a new leader needs for NEWLEADER (`Leader.lead`)."""
    return (peer.view,) if Variant.LAST_SEEN_IGNORED in rules.variants else peer.views


def views_of_epoch(peer: Peer, rules: ZabRules) -> tuple[View, ...]:
    """The views whose quorums an epoch needs (`getEpochToPropose`, `waitForEpochAck`)."""
    active_alone = rules.variants & {Variant.EPOCH_OF_ACTIVE_VIEW, Variant.LAST_SEEN_IGNORED}
    return (peer.view,) if active_alone else peer.views


def designated_leader(
    peer: Peer, view: View, acks: Iterable[Sid], later: Iterable[Outstanding], rules: ZabRules
) -> Sid:
    """The leader of a view that becomes active, chosen by the present one (`getDesignatedLeader`).

    It is the present leader if it is a voter in the view, else a server that acknowledged the view. Among these it is
    one that acknowledged as many of the later proposals as possible, so that few of them are lost. The smallest id
    decides among equals, as in a small `HashSet` of longs. A quorum of the view has acknowledged it, except in
    variants, where the voter with the smallest id may be chosen.
    """
    if view.is_voter(peer.sid):
        return peer.sid
    if Variant.ANY_SUCCESSOR in rules.variants:
        return max(view.voters)
    candidates = view.voters.intersection(acks) - {peer.sid}
    for voters in (needed.voters.intersection(proposal.acks) for proposal in later for needed in proposal.views):
        if not candidates & voters:
            break
        candidates &= voters
    return min(candidates or view.voters)
