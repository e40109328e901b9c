"""Servers of Zab for unit tests of steps: a follower and a leader of three, their packets, and what they send."""

from spec.durable import Durable
from spec.effects import Observe, Send, ServerStep
from spec.election import Elected, Vote
from spec.quorum import View, majority_view
from spec.server import Event, Server, start, step
from spec.txn import Txn, make_zxid
from spec.variants import Variant
from spec.zab.events import Receive
from spec.zab.packets import (
    Ack,
    AckEpoch,
    Commit,
    Diff,
    FollowerInfo,
    LeaderInfo,
    NewLeader,
    Proposal,
    QuorumPacket,
    UpToDate,
)
from spec.zab.state import Leader, Learner, ZabRules

THREE = majority_view({1, 2, 3}, observers={7})
FIVE = majority_view({1, 2, 3, 4, 5}, observers={7})
FOUR = majority_view({1, 2, 3, 4}, observers={7})
OLD, A = (Txn(make_zxid(1, counter)) for counter in (1, 2))
X, Y = Txn(make_zxid(2, 1), "x"), Txn(make_zxid(2, 2), "y")
DISK = Durable(accepted_epoch=1, current_epoch=1, log=(OLD,))
ACK_OF_NEWLEADER = Ack(make_zxid(2))
DIFF_OF_A = (LeaderInfo(2), Diff(A.zxid), Proposal(A), Commit(A.zxid), NewLeader(2))
JOINED = (LeaderInfo(2), Diff(OLD.zxid), NewLeader(2), UpToDate())


def rules(*variants: Variant, disk: bool = True, commits: bool = False) -> ZabRules:
    return ZabRules(asynchronous_disk=disk, asynchronous_commits=commits, variants=frozenset(variants))


def run(sid: int, zab: ZabRules, *events: Event, view: View = THREE, durable: Durable = DISK) -> ServerStep[Server]:
    """Return the last step of server `sid`, after 3 was elected and these events."""
    done = start(Server(sid, view, durable), zab=zab)
    for event in (Elected(Vote(3, OLD.zxid, 1), 1), *events):
        assert done is not None
        done = step(done.state, event, zab=zab)
        assert done is not None, f"impossible: {event}"
    assert done is not None
    return done


def follow(zab: ZabRules, *happens: QuorumPacket | Event) -> ServerStep[Server]:
    """Return the last step of follower 1; packets arrive from its leader."""
    return run(1, zab, *(Receive(3, each) if isinstance(each, QuorumPacket) else each for each in happens))


def lead(zab: ZabRules, *events: Event) -> ServerStep[Server]:
    """Return the last step of leader 3 in epoch 2, after follower 1 has joined."""
    opening = (FollowerInfo(1), AckEpoch(OLD.zxid, 1), ACK_OF_NEWLEADER)
    return run(3, zab, *(Receive(1, packet) for packet in opening), *events)


def sent(done: ServerStep[Server]) -> list[object]:
    return [each.message for each in done.effects if isinstance(each, Send)]


def facts(done: ServerStep[Server]) -> list[object]:
    return [each.fact for each in done.effects if isinstance(each, Observe)]


def learner(done: ServerStep[Server]) -> Learner:
    assert isinstance(done.state.zab, Learner)
    return done.state.zab


def leader(done: ServerStep[Server]) -> Leader:
    assert isinstance(done.state.zab, Leader)
    return done.state.zab
