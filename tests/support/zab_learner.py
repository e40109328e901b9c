"""A learner of Zab for unit tests of its steps, from synchronisation on: server 1 of three, with 3 as its leader."""

from msgspec.structs import replace

from spec.durable import Durable
from spec.effects import Effect, Observe, Send
from spec.election import Peer
from spec.quorum import majority_view
from spec.txn import Txn, make_zxid
from spec.zab import learner
from spec.zab.events import MessageKind, Receive, Unexpected, ZabEvent
from spec.zab.packets import Commit, Diff, NewLeader, Proposal, QuorumPacket, UpToDate
from spec.zab.state import Learner, LearnerPhase, ZabResult, ZabRules

AT_ONCE = ZabRules(asynchronous_disk=False)
LATER = ZabRules(asynchronous_disk=True)
VIEW = majority_view({1, 2, 3}, observers={4})
OLD = Txn(make_zxid(1, 1), "old")
A, B = Txn(make_zxid(1, 2), "a"), Txn(make_zxid(1, 3), "b")
EPOCH = make_zxid(2)
BEGUN = Learner(3, LearnerPhase.SYNCHRONIZATION, epoch=2)
DISK = Durable(accepted_epoch=2, current_epoch=1, log=(OLD,))
DIFF = Diff(OLD.zxid)
NEWLEADER, UPTODATE = NewLeader(2), UpToDate()
IN_EPOCH = Durable(2, 2, log=(OLD,))
SERVED = (DIFF, NEWLEADER, UPTODATE)


def committed(txn: Txn) -> tuple[QuorumPacket, QuorumPacket]:
    return Proposal(txn), Commit(txn.zxid)


def run(
    *happens: QuorumPacket | ZabEvent, sid: int = 1, durable: Durable = DISK, rules: ZabRules = AT_ONCE
) -> ZabResult:
    """Return the result of the last of these events; packets arrive from the leader."""
    me = Peer(sid, VIEW, durable)
    done = ZabResult(durable, BEGUN)
    for each in happens:
        assert isinstance(done.state, Learner), f"it has given up before {each}"
        event = Receive(3, each) if isinstance(each, QuorumPacket) else each
        after = learner.step(replace(me, durable=done.durable), done.state, event, rules)
        assert after is not None, f"impossible: {each}"
        done = after
    return done


def sent(effects: tuple[Effect, ...]) -> list[object]:
    return [each.message for each in effects if isinstance(each, Send)]


def facts(done: ZabResult) -> list[object]:
    return [each.fact for each in done.effects if isinstance(each, Observe)]


def unexpected(done: ZabResult) -> list[MessageKind]:
    return [fact.family for fact in facts(done) if isinstance(fact, Unexpected)]


def state(done: ZabResult) -> Learner:
    assert isinstance(done.state, Learner)
    return done.state
