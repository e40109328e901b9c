"""The premises under which abstract Zab is safe: assumptions on the quorums of different views.

Each premise adds axioms on quorums, conditions to actions, or both. The premises differ in generality:

- `VIEWS` implies `USED`. `USED` looks at the quorums that a run uses.
- `SERVED` is weaker still: quorums must meet only from a reign on that has served, since a later reign has its log.
- `STAGED` and `ONE_GO` are about roll-outs, whose rule `rollout` states. `STAGED` is `ONE_GO` with all servers running
  from the start.
"""

from dataclasses import replace

import z3
from z3 import And, Implies, Or

from checker.symbolic.premise import Premise
from checker.symbolic.zab import rollout
from checker.symbolic.zab.actions import ACTIONS, StepFunction, ZabAction, ZabStep
from checker.symbolic.zab.system import AbstractZab, Formula, Term, ZabState


def axioms(premise: Premise, z: AbstractZab) -> dict[str, Formula]:
    """The axioms of the premise, by name."""
    one_kind = {
        "a view has one kind of quorum": z.all("reign quorum", lambda r, q: z.commits(r, q) == z.establishes(r, q))
    }
    if premise is Premise.VIEWS:
        return one_kind | {
            "quorums of all views meet": z.all(
                "reign reign quorum quorum",
                lambda r1, r2, q1, q2: Implies(And(z.commits(r1, q1), z.commits(r2, q2)), z.meet(q1, q2)),
            )
        }
    if premise is Premise.STAGED:
        return one_kind | rollout.neighbours_meet(z)
    if premise is Premise.ONE_GO:
        return one_kind | rollout.running_neighbours_meet(z)
    one_epoch = {
        "quorums that establish one epoch meet": z.all(
            "reign reign quorum quorum",
            lambda r1, r2, q1, q2: Implies(
                And(z.establishes(r1, q1), z.establishes(r2, q2), z.epoch(r1) == z.epoch(r2), r1 != r2),
                z.meet(q1, q2),
            ),
        )
    }
    if premise is Premise.SERVED:
        return one_epoch
    return one_epoch | {
        "quorums that commit meet quorums that establish later": z.all(
            "reign reign quorum quorum",
            lambda r1, r2, q1, q2: Implies(
                And(z.commits(r1, q1), z.establishes(r2, q2), z.epoch(r1) < z.epoch(r2), r1 != z.zero),
                z.meet(q1, q2),
            ),
        )
    }


def actions(premise: Premise) -> dict[str, ZabAction]:
    """The actions under a premise, by name."""
    if premise is Premise.SERVED:
        establish = ACTIONS["establish"]
        parameters = {**establish.parameters, "base": "reign", "served_by": "quorum"}
        return {**ACTIONS, "establish": replace(establish, parameters=parameters, step=_since_served(establish.step))}
    if premise.is_rollout:
        return rollout.actions(ACTIONS, grows=premise is Premise.ONE_GO)
    return dict(ACTIONS)


def _since_served(step: StepFunction) -> StepFunction:
    """`establish`, with the premise on the reigns since `base`: the zero reign, or one that has served."""

    def establish(z: AbstractZab, s: ZabState, r: Term, q: Term, base: Term, served_by: Term) -> ZabStep:
        conditions, after = step(z, s, r, q)
        meets = z.all(
            "reign quorum",
            lambda x, p: Implies(
                And(z.epoch(base) <= z.epoch(x), z.epoch(x) < z.epoch(r), x != z.zero, z.commits(x, p)),
                z.meet(p, q),
            ),
        )
        premise = {
            "the base is earlier": z.epoch(base) < z.epoch(r),
            "the base has served": Or(base == z.zero, s.served(base, served_by)),
            "the quorum meets the quorums that may commit since the base": meets,
        }
        return ZabStep({**conditions, **premise}, after)

    establish.__doc__ = step.__doc__
    return establish


def may_be_established(premise: Premise, z: AbstractZab, s: ZabState, r: Term) -> Formula:
    """The reign has been established, or may yet be."""
    return rollout.may_be_established(z, s, r) if premise.is_rollout else z3.BoolVal(True)


def is_usable(premise: Premise, z: AbstractZab, s: ZabState, r: Term, q: Term) -> Formula:
    """All servers of the quorum may run while the reign lasts."""
    if premise is not Premise.ONE_GO:
        return z3.BoolVal(True)
    return z.every_member(q, lambda n: rollout.may_follow(z, s, n, r))
