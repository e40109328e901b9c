"""The rule for roll-outs in stages, as actions of an operator, and the clauses that keep it.

The operator brings out files of stage 0, 1, 2 and so on. Servers restart in any order. Quorums of stage i and i + 1
meet, and quorums of one stage; quorums of stage i and i + 2 need not. **The rule**, before stage i + 1 begins:

(a) every server that runs, or may start again, has a file of stage i;
(b) all servers that run follow one leader, which leads by a file of stage i and serves, with a quorum of its view.

A roll-out may also start servers for the first time, so that too few servers run for the quorums that do not meet. A
server is first started in stage `first_run`. A stage may then differ from the one before in the servers that run, and
not in the file: three servers grow to five in the order 4, 1, 3, 2, 5 as stage 0 (old file), stage 1 (new file, without
5) and stage 2 (new file, with 5). A leader of stage 1 that is followed when stage 2 begins leads on, and the server 5
may follow it: its quorums have grown.

Source: the answers of `python -m checker rollout`, whose rule this is.
"""

from collections.abc import Mapping
from dataclasses import replace

import z3
from z3 import And, Implies, Not, Or

from checker.symbolic.zab.actions import StepFunction, ZabAction, ZabStep
from checker.symbolic.zab.system import AbstractZab, Formula, Symbol, Term, ZabState


def neighbours_meet(z: AbstractZab) -> dict[str, Formula]:
    """The premise on quorums, if all servers run from the start."""
    return {
        "the zero reign precedes the first stage": z.stage(z.zero) == -1,
        "quorums of neighbouring stages meet": z.all(
            "reign reign quorum quorum",
            lambda r1, r2, q1, q2: Implies(
                And(z.commits(r1, q1), z.commits(r2, q2), z.stage(r1) <= z.stage(r2), z.stage(r2) <= z.stage(r1) + 1),
                z.meet(q1, q2),
            ),
        ),
    }


def running_neighbours_meet(z: AbstractZab) -> dict[str, Formula]:
    """The premise on quorums, if servers are first started in a later stage.

    Quorums of stage i and i + 1, or of one stage i, meet if all their servers run in stage i + 1.
    """

    def runs(q: Term, stage: Term) -> Formula:
        return z.every_member(q, lambda n: z.first_run(n) <= stage)

    return {
        "the zero reign precedes the first stage": z.stage(z.zero) == -1,
        "running quorums of neighbouring stages meet": z.all(
            "reign reign quorum quorum",
            lambda r1, r2, q1, q2: Implies(
                And(
                    z.commits(r1, q1),
                    z.commits(r2, q2),
                    z.stage(r1) <= z.stage(r2),
                    z.stage(r2) <= z.stage(r1) + 1,
                    runs(q1, z.stage(r1) + 1),
                    runs(q2, z.stage(r1) + 1),
                ),
                z.meet(q1, q2),
            ),
        ),
    }


def may_follow(z: AbstractZab, s: ZabState, n: Term, r: Term) -> Formula:
    """The server has been started before the leader of the reign has stopped."""
    first, stage = z.first_run(n), z.stage(r)
    return Or(first <= stage, And(s.grown(r), first <= stage + 1))


def may_be_established(z: AbstractZab, s: ZabState, r: Term) -> Formula:
    """The reign has been established, or may yet be."""
    in_use = And(s.low() <= z.stage(r), z.stage(r) <= s.high())
    return Or(s.established(r), And(Not(s.over(r)), in_use, z.epoch(r) > z.epoch(s.barrier())))


def actions(common: Mapping[str, ZabAction], *, grows: bool) -> dict[str, ZabAction]:
    """The actions of abstract Zab during a roll-out, and those of the operator.

    If it `grows`, servers that do not run yet do nothing.
    """
    changed = dict(common)

    def add(action: str, condition: str, formula: Symbol) -> None:
        changed[action] = replace(changed[action], step=_with_condition(changed[action].step, condition, formula))

    add("begin", "the file of the reign is in use", _in_use)
    add("establish", "its leader has not stopped", _has_not_stopped)
    if grows:
        add("begin", "the server runs", lambda z, s, r: z.first_run(z.server(r)) <= s.high())
        add("promise", "the server runs", lambda z, s, n, **_: z.first_run(n) <= s.high())
        for name in ("enter", "ack"):
            add(name, "the server runs while the leader leads", lambda z, s, n, r, **_: may_follow(z, s, n, r))
    for action in (RAISE_LOW, RAISE_HIGH):
        changed[action.name] = action
    return changed


def _in_use(z: AbstractZab, s: ZabState, r: Term) -> Formula:
    return And(s.low() <= z.stage(r), z.stage(r) <= s.high())


def _has_not_stopped(z: AbstractZab, s: ZabState, r: Term, q: Term) -> Formula:
    del z, q
    return Not(s.over(r))


def _with_condition(step: StepFunction, name: str, condition: Symbol) -> StepFunction:
    def stricter(z: AbstractZab, s: ZabState, **parameters: Term) -> ZabStep:
        conditions, after = step(z, s, **parameters)
        return ZabStep({**conditions, name: condition(z, s, **parameters)}, after)

    stricter.__doc__ = step.__doc__
    return stricter


def _raise_low(z: AbstractZab, s: ZabState) -> ZabStep:
    """The last server with a file of the lowest stage restarts with a later one: no leader has that file then."""
    ended = s.low()
    return ZabStep(
        {"a later stage has begun": s.low() < s.high()},
        s._replace(low=lambda: ended + 1, over=lambda r: Or(s.over(r), And(s.begun(r), z.stage(r) <= ended))),
    )


def _raise_high(z: AbstractZab, s: ZabState, r: Term, q: Term) -> ZabStep:
    """The next stage begins: the first server is about to get a file of it, or is first started."""
    newest = s.high()
    return ZabStep(
        {
            "a leader by the newest file serves": And(z.stage(r) == newest, s.served(r, q)),
            "all servers have the newest file": s.low() == newest,
            "a quorum follows the leader now": z.every_member(q, lambda n: s.accepted(n) == z.epoch(r)),
        },
        s._replace(
            high=lambda: newest + 1,
            barrier=lambda: r,
            barrier_quorum=lambda: q,
            over=lambda x: Or(s.over(x), And(s.begun(x), x != r)),
            grown=lambda x: Or(s.grown(x), And(z.stage(x) == newest, z.epoch(x) >= z.epoch(r))),
        ),
    )


_OPERATOR = "checker/rollout: the operator"
RAISE_LOW = ZabAction("raise_low", {}, _OPERATOR, "the restart of the last server with an old zoo.cfg", _raise_low)
RAISE_HIGH = ZabAction(
    "raise_high",
    {"r": "reign", "q": "quorum"},
    _OPERATOR,
    "the first restart with a new zoo.cfg, or the first start of a server",
    _raise_high,
)


def stages(z: AbstractZab, s: ZabState) -> Formula:
    """At most two neighbouring stages are in use."""
    del z
    return And(s.low() >= 0, s.low() <= s.high(), s.high() <= s.low() + 1)


def barrier(z: AbstractZab, s: ZabState) -> Formula:
    """The barrier is a reign of the stage before the newest, and has served with its quorum."""
    served = And(z.stage(s.barrier()) == s.high() - 1, s.served(s.barrier(), s.barrier_quorum()))
    return Or(And(s.barrier() == z.zero, s.high() == 0), And(s.barrier() != z.zero, served))


def barrier_holds(z: AbstractZab, s: ZabState) -> Formula:
    """The quorum of the barrier accepts no epoch below it."""
    no_lower = z.every_member(s.barrier_quorum(), lambda n: s.accepted(n) >= z.epoch(s.barrier()))
    return Implies(s.barrier() != z.zero, no_lower)


def older_below_barrier(z: AbstractZab, s: ZabState) -> Formula:
    """Established reigns of older stages have epochs below the barrier."""
    return z.all(
        "reign",
        lambda r: Implies(
            And(s.established(r), r != z.zero, z.stage(r) < s.high() - 1), z.epoch(r) < z.epoch(s.barrier())
        ),
    )


def newest_above_barrier(z: AbstractZab, s: ZabState) -> Formula:
    """Established reigns of the newest stage have epochs above the barrier."""
    return z.all(
        "reign",
        lambda r: Implies(
            And(s.established(r), r != z.zero, z.stage(r) == s.high()), z.epoch(r) > z.epoch(s.barrier())
        ),
    )


def none_beyond(z: AbstractZab, s: ZabState) -> Formula:
    """No reign has a file of a stage that has not begun."""
    return z.all(
        "reign",
        lambda r: Implies(And(s.begun(r), r != z.zero), And(z.stage(r) >= 0, z.stage(r) <= s.high())),
    )


def old_are_over(z: AbstractZab, s: ZabState) -> Formula:
    """No leader has a file of a stage below the lowest in use."""
    return z.all("reign", lambda r: Implies(And(s.begun(r), r != z.zero, z.stage(r) < s.low()), s.over(r)))


def late_is_too_late(z: AbstractZab, s: ZabState) -> Formula:
    """A reign below the barrier that has not stopped has no promise of the quorum of the barrier."""

    def is_late(r: Term) -> Formula:
        return And(Not(s.over(r)), z.epoch(r) <= z.epoch(s.barrier()), r != s.barrier(), s.barrier() != z.zero)

    return z.all(
        "reign node",
        lambda r, n: Implies(And(is_late(r), z.member(n, s.barrier_quorum())), Not(s.promised(n, r))),
    )


def newest_reign(z: AbstractZab, s: ZabState) -> Formula:
    """The newest reign is established, and no established reign has a higher epoch."""
    highest = z.all("reign", lambda r: Implies(s.established(r), z.epoch(r) <= z.epoch(s.newest())))
    return And(s.established(s.newest()), highest)


def dead_by_newest(z: AbstractZab, s: ZabState) -> Formula:
    """A transaction is dead by an established reign of a higher epoch."""
    return z.all("reign txn", lambda r, t: Implies(s.dead(r, t), z.epoch(r) < z.epoch(s.newest())))


def promised_runs(z: AbstractZab, s: ZabState) -> Formula:
    """Only servers that run promise."""
    return z.all("node reign", lambda n, r: Implies(s.promised(n, r), z.first_run(n) <= s.high()))


def acked_runs(z: AbstractZab, s: ZabState) -> Formula:
    """Only servers that run while its leader leads acknowledge anything to a reign."""
    entered = z.all("node reign", lambda n, r: Implies(s.entered(n, r), may_follow(z, s, n, r)))
    acked = z.all("node reign txn", lambda n, r, t: Implies(s.acked(n, r, t), may_follow(z, s, n, r)))
    return And(entered, acked)


def served_runs(z: AbstractZab, s: ZabState) -> Formula:
    """A reign serves with servers that run."""
    return z.all(
        "reign quorum node",
        lambda r, q, n: Implies(And(s.served(r, q), z.member(n, q)), z3.And(s.entered(n, r), may_follow(z, s, n, r))),
    )


def grown_above_barrier(z: AbstractZab, s: ZabState) -> Formula:
    """The reigns of the stage before the newest from the barrier on have grown; grown ones are of earlier stages."""

    def is_since_barrier(r: Term) -> Formula:
        return And(s.barrier() != z.zero, z.stage(r) == s.high() - 1, z.epoch(r) >= z.epoch(s.barrier()))

    return z.all(
        "reign",
        lambda r: And(Implies(is_since_barrier(r), s.grown(r)), Implies(s.grown(r), z.stage(r) < s.high())),
    )


def barrier_runs(z: AbstractZab, s: ZabState) -> Formula:
    """The quorum of the barrier ran before the newest stage began."""
    return Implies(s.barrier() != z.zero, z.every_member(s.barrier_quorum(), lambda n: z.first_run(n) <= s.high() - 1))


STAGED_CLAUSES = (
    stages,
    barrier,
    barrier_holds,
    older_below_barrier,
    newest_above_barrier,
    none_beyond,
    old_are_over,
    late_is_too_late,
    newest_reign,
    dead_by_newest,
)
"""The clauses of a roll-out in stages."""

GROWTH_CLAUSES = (promised_runs, acked_runs, served_runs, grown_above_barrier, barrier_runs)
"""The further clauses if servers are first started in a later stage."""
