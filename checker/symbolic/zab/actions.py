"""The actions of abstract Zab, each with its counterpart in `spec/zab` and in ZooKeeper.

An action has named conditions, so that a mutant can drop one. It leaves the rest of the state as it was. Some events
change nothing on a disk and add no statement, and need no action: elections, crashes, restarts, lost connections, PING,
REQUEST, COMMIT at a learner, UPTODATE, and answers to clients.

Guards of ZooKeeper that safety does not need are left out: a quorum of FOLLOWERINFO before an epoch is chosen,
proposals by a serving leader alone, commits in the order of zxids, connections. So the abstract system does more than
ZooKeeper.

The logical connectives are for terms of z3 and for Python's truth values. One definition of the actions then serves the
proof, where their conditions are formulas over symbols, and the check of the refinement, where the same conditions are
evaluated in one finite state.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from checker.symbolic.zab.system import AbstractZab, Formula, Symbol, Term, ZabState

with suppress(ModuleNotFoundError):  # the refinement needs it not, and each proof imports it itself
    import z3


def _operands(given: tuple[Formula, ...]) -> list[Formula]:
    return list(given[0]) if len(given) == 1 and isinstance(given[0], list) else list(given)


def And(*given: Formula) -> Formula:  # noqa: N802 - the names of z3
    """All operands hold; a single list contains the operands."""
    operands = _operands(given)
    return all(operands) if all(isinstance(operand, bool) for operand in operands) else z3.And(*given)


def Or(*given: Formula) -> Formula:  # noqa: N802
    """Some operand holds; a single list contains the operands."""
    operands = _operands(given)
    return any(operands) if all(isinstance(operand, bool) for operand in operands) else z3.Or(*given)


def Not(operand: Formula) -> Formula:  # noqa: N802
    """The operand does not hold."""
    return not operand if isinstance(operand, bool) else z3.Not(operand)


def Implies(premise: Formula, conclusion: Formula) -> Formula:  # noqa: N802
    """If the premise holds, so does the conclusion."""
    if isinstance(premise, bool) and isinstance(conclusion, bool):
        return not premise or conclusion
    return z3.Implies(premise, conclusion)


def If(condition: Formula, then: Term, otherwise: Term) -> Term:  # noqa: N802
    """One of two values."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    return z3.If(condition, then, otherwise)


class ZabStep(NamedTuple):
    """The conditions of an action, by name, and the state after it."""

    conditions: dict[str, Formula]
    after: ZabState


StepFunction: TypeAlias = Callable[..., ZabStep]
"""A function of the system, the state and the parameters of an action."""


@dataclass(frozen=True)
class ZabAction:
    """An action: its parameters with their sorts, its counterparts, and its step."""

    name: str
    parameters: Mapping[str, str]
    specification: str
    zookeeper: str
    step: StepFunction

    @property
    def sentence(self) -> str:
        """The effect of the action, in a sentence."""
        return (self.step.__doc__ or "").partition("\n")[0]


def at(symbol: Symbol, where: Term, value: Term) -> Symbol:
    """The function with another value at one argument."""
    return lambda x: If(x == where, value, symbol(x))


def also(relation: Symbol, *elements: Term) -> Symbol:
    """The relation with one more tuple."""
    return lambda *xs: Or(relation(*xs), And([x == e for x, e in zip(xs, elements, strict=True)]))


def _begin(z: AbstractZab, s: ZabState, r: Term) -> ZabStep:
    """A server begins a reign: it accepts the new epoch, and promises it to itself."""
    n = z.server(r)
    return ZabStep(
        {
            "the reign is a new one": And(r != z.zero, Not(s.begun(r))),
            "the epoch is higher than any that the server accepted": s.accepted(n) < z.epoch(r),
        },
        s._replace(
            begun=at(s.begun, r, True),
            accepted=at(s.accepted, n, z.epoch(r)),
            promised=also(s.promised, n, r),
            initial=lambda x, t: If(x == r, s.log(n, t), s.initial(x, t)),
            initial_last=at(s.initial_last, r, s.last(n)),
            began_in=at(s.began_in, r, s.current(n)),
            began_from=at(s.began_from, r, s.source(n)),
        ),
    )


def _promise(z: AbstractZab, s: ZabState, n: Term, r: Term) -> ZabStep:
    """A server accepts the epoch of a reign, and its ACKEPOCH counts, since it is not ahead of the leader."""
    epoch, leaders = z.epoch(s.current(n)), z.epoch(s.began_in(r))
    return ZabStep(
        {
            "the reign has begun": And(s.begun(r), r != z.zero),
            "the epoch is higher than any that the server accepted": s.accepted(n) < z.epoch(r),
            "currentEpoch is not ahead": epoch <= leaders,
            "the log is not ahead": Or(epoch < leaders, s.last(n) <= s.initial_last(r)),
        },
        s._replace(accepted=at(s.accepted, n, z.epoch(r)), promised=also(s.promised, n, r)),
    )


def _accept(z: AbstractZab, s: ZabState, n: Term, epoch: Term) -> ZabStep:
    """A server accepts an epoch, and no reign counts it: the ACKEPOCH is lost, or the server is ahead."""
    del z
    return ZabStep({"the epoch is higher": epoch > s.accepted(n)}, s._replace(accepted=at(s.accepted, n, epoch)))


def _establish(z: AbstractZab, s: ZabState, r: Term, q: Term) -> ZabStep:
    """A quorum has promised: the epoch of the reign is established."""
    lacks: Symbol = lambda x, t: And(z.epoch(x) < z.epoch(r), Not(s.initial(r, t)))  # noqa: E731
    return ZabStep(
        {
            "the reign has begun": And(s.begun(r), r != z.zero, Not(s.established(r))),
            "the set is a quorum": z.establishes(r, q),
            "all its servers have promised": z.every_member(q, lambda n: s.promised(n, r)),
        },
        s._replace(
            established=at(s.established, r, True),
            via=at(s.via, r, q),
            history=lambda x, t: If(x == r, s.initial(r, t), s.history(x, t)),
            history_last=at(s.history_last, r, s.initial_last(r)),
            dead=lambda x, t: Or(s.dead(x, t), lacks(x, t)),
            newest=lambda: If(z.epoch(r) > z.epoch(s.newest()), r, s.newest()),
        ),
    )


def _synchronise(z: AbstractZab, s: ZabState, n: Term, r: Term, to: Term) -> ZabStep:
    """The log of a server becomes a prefix of the history of a reign: by TRUNC, SNAP, DIFF or a PROPOSAL."""
    common = z.all("txn", lambda t: Implies(And(s.log(n, t), s.initial(r, t)), z.zxid(t) <= to))
    acknowledged = z.all("txn", lambda t: Implies(s.acked(n, r, t), z.zxid(t) <= to))
    return ZabStep(
        {
            "the reign is established": s.established(r),
            "its history reaches the zxid": to <= s.history_last(r),
            "the server has accepted no later epoch": s.accepted(n) == z.epoch(r),
            "the common part with the initial transactions stays": common,
            "acknowledged transactions of the reign stay": acknowledged,
        },
        s._replace(
            source=at(s.source, n, r),
            last=at(s.last, n, to),
            log=lambda m, t: If(m == n, And(s.history(r, t), z.zxid(t) <= to), s.log(m, t)),
        ),
    )


def _enter(z: AbstractZab, s: ZabState, n: Term, r: Term) -> ZabStep:
    """A server has all initial transactions of a reign on disk: it writes currentEpoch, and acknowledges NEWLEADER."""
    return ZabStep(
        {
            "the reign is established": s.established(r),
            "the server has accepted no later epoch": s.accepted(n) == z.epoch(r),
            "all initial transactions are on disk": And(s.source(n) == r, s.last(n) >= s.initial_last(r)),
        },
        s._replace(
            current=at(s.current, n, r),
            entered=also(s.entered, n, r),
            acked=lambda m, x, t: Or(s.acked(m, x, t), And(m == n, x == r, s.initial(r, t))),
        ),
    )


def _propose(z: AbstractZab, s: ZabState, r: Term, t: Term) -> ZabStep:
    """A reign proposes a transaction of its epoch, after all that it has."""
    return ZabStep(
        {
            "the reign is established": And(s.established(r), r != z.zero),
            "the zxid has its epoch": z.origin(t) == r,
            "the zxid is higher than all before": z.zxid(t) > s.history_last(r),
        },
        s._replace(history=also(s.history, r, t), history_last=at(s.history_last, r, z.zxid(t))),
    )


def _begin_broadcast(z: AbstractZab, s: ZabState, r: Term, to: Term) -> ZabStep:
    """The last zxid of a leader becomes "epoch:0", which no transaction has; a SNAP copies it to a learner."""
    return ZabStep(
        {
            "the reign is established": And(s.established(r), r != z.zero),
            "the zxid is not lower": to >= s.history_last(r),
        },
        s._replace(history_last=at(s.history_last, r, to)),
    )


def _ack(z: AbstractZab, s: ZabState, n: Term, r: Term, t: Term) -> ZabStep:
    """A server acknowledges a transaction that is in its log."""
    return ZabStep(
        {
            "the reign has the transaction": s.history(r, t),
            "the server has entered the epoch": s.current(n) == r,
            "the server has accepted no later epoch": s.accepted(n) == z.epoch(r),
            "the transaction is on disk": s.log(n, t),
        },
        s._replace(acked=also(s.acked, n, r, t)),
    )


def _void_acks(z: AbstractZab, s: ZabState, n: Term, r: Term, beyond: Term) -> ZabStep:
    """A server synchronises with a reign again: its acknowledgements beyond a zxid no longer count."""
    uncommitted = z.all(
        "txn quorum", lambda t, q: Implies(And(s.committed(r, t, q), z.member(n, q)), z.zxid(t) <= beyond)
    )
    return ZabStep(
        {
            "the initial transactions stay": s.initial_last(r) <= beyond,
            "transactions committed with the server stay": uncommitted,
        },
        s._replace(
            acked=lambda m, x, t: And(s.acked(m, x, t), Or(m != n, x != r, z.zxid(t) <= beyond)),
        ),
    )


def _serve(z: AbstractZab, s: ZabState, r: Term, q: Term) -> ZabStep:
    """A quorum has acknowledged NEWLEADER: the reign serves, and all its initial transactions are committed."""
    return ZabStep(
        {
            "the reign is established": And(s.established(r), r != z.zero),
            "the set is a quorum": z.commits(r, q),
            "all its servers have acknowledged NEWLEADER": z.every_member(q, lambda n: s.entered(n, r)),
        },
        s._replace(
            served=also(s.served, r, q),
            committed=lambda x, t, p: Or(s.committed(x, t, p), And(x == r, p == q, s.initial(r, t))),
        ),
    )


def _commit(z: AbstractZab, s: ZabState, r: Term, t: Term, q: Term) -> ZabStep:
    """A quorum has acknowledged a transaction: it is committed, and a client may get an answer."""
    return ZabStep(
        {
            "the reign is established": And(s.established(r), r != z.zero),
            "the set is a quorum": z.commits(r, q),
            "the reign has the transaction": s.history(r, t),
            "all its servers have acknowledged it": z.every_member(q, lambda n: s.acked(n, r, t)),
        },
        s._replace(committed=also(s.committed, r, t, q)),
    )


ACTIONS: dict[str, ZabAction] = {
    action.name: action
    for action in (
        ZabAction("begin", {"r": "reign"}, "leader._choose_epoch", "Leader.getEpochToPropose", _begin),
        ZabAction(
            "promise",
            {"n": "node", "r": "reign"},
            "learner._leader_info and leader._ack_epoch",
            "Learner.registerWithLeader, Leader.waitForEpochAck",
            _promise,
        ),
        ZabAction(
            "accept", {"n": "node", "epoch": "int"}, "learner._leader_info", "Learner.registerWithLeader", _accept
        ),
        ZabAction(
            "establish", {"r": "reign", "q": "quorum"}, "leader._establish", "Leader.waitForEpochAck", _establish
        ),
        ZabAction(
            "synchronise",
            {"n": "node", "r": "reign", "to": "int"},
            "disk.done and disk.truncated",
            "Learner.syncWithLeader, SyncRequestProcessor",
            _synchronise,
        ),
        ZabAction(
            "enter",
            {"n": "node", "r": "reign"},
            "learner_sync.acknowledge_newleader",
            "Learner.syncWithLeader (NEWLEADER), QuorumPeer.setCurrentEpoch",
            _enter,
        ),
        ZabAction("propose", {"r": "reign", "t": "txn"}, "ServingLeader.propose", "Leader.propose", _propose),
        ZabAction(
            "begin_broadcast",
            {"r": "reign", "to": "int"},
            "leader._start_if_acknowledged",
            "Leader.startZkServer",
            _begin_broadcast,
        ),
        ZabAction(
            "ack",
            {"n": "node", "r": "reign", "t": "txn"},
            "ServingLearner and ServingLeader.ack",
            "SendAckRequestProcessor, Leader.processAck",
            _ack,
        ),
        ZabAction(
            "void_acks",
            {"n": "node", "r": "reign", "beyond": "int"},
            "leader._without_acks",
            "none: the specification leaves out acknowledgements of an earlier connection",
            _void_acks,
        ),
        ZabAction(
            "serve",
            {"r": "reign", "q": "quorum"},
            "leader._start_if_acknowledged",
            "Leader.waitForNewLeaderAck",
            _serve,
        ),
        ZabAction(
            "commit",
            {"r": "reign", "t": "txn", "q": "quorum"},
            "ServingLeader._commit",
            "Leader.tryToCommit",
            _commit,
        ),
    )
}
"""The actions under every premise, by name."""
