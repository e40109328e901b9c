"""The end of an epoch without an election, as the pull request 2208 has it, and a correction.

Expected values: `ParticipantRequestSyncer`, `SyncRequestProcessor.handover`, `Leader.processAck` and `ZxidRolloverTest`
of that pull request (commit 9264f2d340), and arithmetic.
"""

import pytest
from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Observe, Send
from spec.election import Peer
from spec.quorum import majority_view
from spec.txn import Txn, make_zxid
from spec.zab import leader, learner
from spec.zab.events import ClientWrite, Committed, EpochEstablished, Receive, ZabEvent
from spec.zab.packets import Ack, AckEpoch, Commit, FollowerInfo, Proposal
from spec.zab.state import Leader, Learner, LearnerPhase, Rollover, ZabResult, ZabRules

THREE = majority_view({1, 2, 3})
LAST = Txn(0x1_FFFFFFFF, "last")


def rules(rollover: Rollover) -> ZabRules:
    return ZabRules(asynchronous_disk=False, zxids=1, rollover=rollover)


def led(rollover: Rollover, *events: ZabEvent) -> ZabResult:
    """The leader 3 of epoch 1 with the follower 1, after these events; each epoch has two zxids."""
    joining = (Receive(1, packet) for packet in (FollowerInfo(0), AckEpoch(0, 0), Ack(make_zxid(1))))
    part = leader.begin(Peer(3, THREE, Durable()), rules(rollover))
    for event in (*joining, *events):
        assert isinstance(part.state, Leader)
        after = leader.step(Peer(3, THREE, part.durable), part.state, event, rules(rollover))
        assert after is not None
        part = after
    return part


WRITES = (ClientWrite("first"), ClientWrite("last"), ClientWrite("next"))
ACKS = (Receive(1, Ack(0x1_FFFFFFFE)), Receive(1, Ack(0x1_FFFFFFFF)))


def test_the_last_transaction_makes_a_server_accept_the_next_epoch_and_holds_back_what_follows() -> None:
    part = led(Rollover.IN_PLACE, *WRITES)

    assert (part.durable.accepted_epoch, part.durable.current_epoch) == (2, 2)
    assert part.durable.last_zxid == 0x1_FFFFFFFF
    assert isinstance(part.state, Leader)
    assert part.state.blocked == (Txn(0x2_00000000, "next"),)


def test_its_commit_begins_the_next_epoch_of_the_same_leader() -> None:
    part = led(Rollover.IN_PLACE, *WRITES, *ACKS)

    assert isinstance(part.state, Leader)
    assert part.state.epoch == 2
    assert part.durable.last_zxid == 0x2_00000000
    assert any(isinstance(effect, Observe) and isinstance(effect.fact, EpochEstablished) for effect in part.effects)


@pytest.mark.parametrize(("rollover", "commits"), [(Rollover.IN_PLACE, True), (Rollover.IN_PLACE_FROM_1, False)])
def test_the_ack_of_uptodate_counts_for_a_transaction_only_if_that_has_the_counter_0(
    rollover: Rollover, commits: bool
) -> None:
    """processAck without the check of the counter: the learner has sent `ACK 2:0` for UPTODATE."""
    part = led(rollover, *WRITES, *ACKS, Receive(1, Ack(make_zxid(2))))
    facts = [effect.fact for effect in part.effects if isinstance(effect, Observe)]

    assert any(isinstance(fact, Committed) for fact in facts) is commits


def test_a_follower_logs_the_next_epoch_behind_the_commit_of_the_last_transaction() -> None:
    after_last = Txn(0x2_00000000, "next")
    serving = Learner(3, LearnerPhase.BROADCAST, epoch=1)
    part = ZabResult(Durable(1, 1), serving)
    acked = []
    for packet in (Proposal(LAST), Proposal(after_last), Commit(LAST.zxid)):
        assert isinstance(part.state, Learner)
        peer = Peer(1, THREE, part.durable)
        after = learner.step(peer, part.state, Receive(3, packet), rules(Rollover.IN_PLACE))
        assert after is not None
        part = after
        acked.append([effect.message for effect in part.effects if isinstance(effect, Send)])

    assert acked == [[Ack(LAST.zxid)], [], [Ack(after_last.zxid)]]
    assert part.state == replace(serving, epoch=2, delivered=LAST.zxid, pending=(after_last.zxid,))
