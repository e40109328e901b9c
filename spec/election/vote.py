"""Votes, and the order among them.

A vote proposes a leader and says how much that leader knows. Servers agree because all of them rank votes in
one way: newer data wins, and the higher server id breaks a tie.

Rules this module keeps:

- `is_better` is the only place that ranks two votes, and so the only place where the variant of the order
  (ZOOKEEPER-1419) is written.
- A vote has no round: the round belongs to the notification that carries it, or to the server that casts it.

Sources: `FastLeaderElection.totalOrderPredicate`, `getInitId`, `getInitLastLoggedZxid`, `getPeerEpoch`.
"""

import enum

import msgspec

from spec.quorum import Hierarchical, Sid, View
from spec.variants import Variant

LONG_MIN = -(2**63)
"""Java's `Long.MIN_VALUE`: what a server without a voice puts where a voter puts its own data."""

NO_DATABASE = -1
"""The zxid of a server whose database is missing; it neither gives nor takes LOOKING votes."""


class ServerState(enum.IntEnum):
    """What a running server does at the moment; the numbers are those of the wire format."""

    LOOKING = 0
    FOLLOWING = 1
    LEADING = 2
    OBSERVING = 3


class Vote(msgspec.Struct, frozen=True):
    """A proposal: this server should lead, since its last transaction and its epoch are these.

    `zxid` is the last logged transaction of the proposed leader (epoch in the high 32 bits, counter in the
    low 32), `peer_epoch` its currentEpoch.
    """

    leader: Sid
    zxid: int
    peer_epoch: int


def is_better(view: View, new: Vote, current: Vote, variants: frozenset[Variant] = frozenset()) -> bool:
    """Whether `new` takes the place of `current`, in the eyes of a server with this view.

    A leader of weight zero never wins. Otherwise the epoch decides, then the zxid, then the server id.
    Source: `FastLeaderElection.totalOrderPredicate`.
    """
    if is_weightless(view, new.leader):
        return False
    if Variant.VOTE_ORDER_CYCLES in variants:
        return (
            new.peer_epoch > current.peer_epoch
            or (new.peer_epoch == current.peer_epoch and new.zxid > current.zxid)
            or (new.zxid == current.zxid and new.leader > current.leader)
        )
    return (new.peer_epoch, new.zxid, new.leader) > (current.peer_epoch, current.zxid, current.leader)


def is_weightless(view: View, leader: Sid) -> bool:
    """Whether a vote for this leader can never win.

    `QuorumMaj.getWeight` answers 1 for any server, members or not, and so a vote for a stranger can end the
    wait before a decision. `QuorumHierarchical.getWeight` fails on a stranger with a NullPointerException,
    which makes the real server begin its election again; here a stranger weighs nothing there.
    """
    return isinstance(view.quorums, Hierarchical) and view.weight(leader) == 0


def initial_vote(sid: Sid, view: View, last_zxid: int, current_epoch: int) -> Vote:
    """The vote a server enters an election with: itself, or the lowest one if it has no voice in its view.

    An observer gives LONG_MIN three times. A server that its view does not name at all counts as a
    participant and keeps its zxid and epoch, and only the leader is LONG_MIN; it becomes one when it adopts
    a configuration that leaves it out (`QuorumPeer.updateLearnerType`).
    """
    leader = sid if view.is_voter(sid) else LONG_MIN
    if is_observer(sid, view):
        return Vote(leader, LONG_MIN, LONG_MIN)
    return Vote(leader, last_zxid, current_epoch)


def is_observer(sid: Sid, view: View) -> bool:
    """Whether a server is an observer by its own view (`QuorumPeerConfig.setupPeerType`)."""
    return sid in view.observers
