"""The conditions that make the invariant inductive, and the answers of solvers to them.

- The first state satisfies each clause.
- Each action, in a state of the invariant, leads to a state that satisfies each clause.
- The invariant implies each theorem.
- **Elections**: whatever server is chosen, it may begin a reign with any epoch that is new to it. So the theorems hold
  for any choice of leaders. A leader whose quorum is not ahead of it may be established, which is all that progress
  needs of the election.

The state after an action is a function of the state before, so no condition has a frame.

A **hint** names the clauses that a condition needs, where a solver searches too long with all of them. The clauses
lead from a server to its reign, from this to the reign that it began from, and so on; it may follow that chain without
end. A hint is a proof outline: the hypotheses that a person would use. A wrong hint makes a condition fail; it cannot
make one succeed, since a subset of the hypotheses proves less.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import z3

from checker.symbolic.premise import Premise
from checker.symbolic.solvers import Opinion, Solver, ask, smt_lib
from checker.symbolic.zab import premises
from checker.symbolic.zab.actions import ACTIONS, ZabAction, ZabStep
from checker.symbolic.zab.invariant import THEOREMS, NamedClause, clauses
from checker.symbolic.zab.system import AbstractZab, Formula, Term, Universe, ZabState

FIRST_STATE, IMPLICATION, ELECTION = "first state", "theorems", "election"


class VerificationCondition(NamedTuple):
    """A condition: the place is an action, "first state" or "theorems"; the goal follows from the hypotheses."""

    place: str
    goal: str
    sentence: str
    hypotheses: tuple[Formula, ...]
    formula: Formula

    @property
    def script(self) -> str:
        """The question to a solver."""
        # Where the action changes nothing that a clause reads, the clause itself is all that its proof needs.
        unchanged = [hypothesis for hypothesis in self.hypotheses if hypothesis.eq(self.formula)]
        return smt_lib(unchanged or self.hypotheses, self.formula)


class CheckedCondition(NamedTuple):
    """The opinion of a solver on a condition."""

    place: str
    goal: str
    sentence: str
    solver: Solver
    opinion: Opinion


def conditions(premise: Premise, places: Collection[str] = ()) -> Iterator[VerificationCondition]:
    """The conditions under a premise, at these places or at all."""

    def wanted(place: str) -> bool:
        return not places or place in places

    z = AbstractZab(Universe())
    s = z.state()
    axioms = (*z.axioms().values(), *premises.axioms(premise, z).values())
    invariant = clauses(premise)
    formulas = {clause.name: clause.formula(z, s) for clause in invariant}
    for clause in invariant if wanted(FIRST_STATE) else ():
        yield _condition(FIRST_STATE, clause, (*axioms, z.initial(s)), clause.formula(z, s))
    for action in filter(lambda action: wanted(action.name), premises.actions(premise).values()):
        step = taken(z, s, action)
        for clause in invariant:
            hypotheses = (*axioms, *_hypotheses(action.name, clause.name, formulas), *step.conditions.values())
            yield _condition(action.name, clause, hypotheses, clause.formula(z, step.after))
    if wanted(ELECTION):
        yield from (_any_leader(z, s), _may_promise(z, s), _may_establish(z, s))
    for theorem in THEOREMS if wanted(IMPLICATION) else ():
        formula = theorem.formula(z, s)
        hypotheses = (*axioms, *_hypotheses(IMPLICATION, theorem.name, formulas))
        yield _condition(IMPLICATION, theorem, hypotheses, formula)
        formulas[theorem.name] = formula


def _any_leader(z: AbstractZab, s: ZabState) -> VerificationCondition:
    """The condition on elections, in any state at all: no invariant is assumed."""
    r = z.universe.constant("chosen", "reign")
    chosen = z3.And(r != z.zero, z3.Not(s.begun(r)), z.epoch(r) > s.accepted(z.server(r)))
    goal = z3.And(list(ACTIONS["begin"].step(z, s, r=r).conditions.values()))
    sentence = "Any server may begin a reign, with any epoch that is new to it."
    return VerificationCondition(ELECTION, "any_leader", sentence, (chosen,), goal)


def _may_promise(z: AbstractZab, s: ZabState) -> VerificationCondition:
    """The condition on elections for progress, in any state: before and after one other server has promised.

    The actions are those without a roll-out, which adds conditions to them.
    """
    r, n, peer = (z.universe.constant(*pair) for pair in (("led", "reign"), ("n", "node"), ("other", "node")))
    result = ACTIONS["begin"].step(z, s, r=r)
    epoch, leaders = z.epoch(s.current(n)), z.epoch(s.current(z.server(r)))
    not_ahead = z3.And(
        n != z.server(r),
        s.accepted(n) < z.epoch(r),
        z3.Or(epoch < leaders, z3.And(epoch == leaders, s.last(n) <= s.last(z.server(r)))),
    )
    first = ACTIONS["promise"].step(z, result.after, n=n, r=r)
    earlier = ACTIONS["promise"].step(z, result.after, n=peer, r=r)
    second = ACTIONS["promise"].step(z, earlier.after, n=n, r=r)
    goal = z3.And(
        *first.conditions.values(),
        z3.Implies(z3.And(peer != n, *earlier.conditions.values()), z3.And(list(second.conditions.values()))),
    )
    sentence = "A server that is not ahead of a new leader, and has accepted no such epoch, may promise."
    return VerificationCondition(ELECTION, "may_promise", sentence, (*result.conditions.values(), not_ahead), goal)


def _may_establish(z: AbstractZab, s: ZabState) -> VerificationCondition:
    """A reign that has the promises of a quorum may be established."""
    r, q = z.universe.constant("led", "reign"), z.universe.constant("q", "quorum")
    promised = z3.And(
        r != z.zero,
        s.begun(r),
        z3.Not(s.established(r)),
        z.establishes(r, q),
        z.every_member(q, lambda n: s.promised(n, r)),
    )
    goal = z3.And(list(ACTIONS["establish"].step(z, s, r=r, q=q).conditions.values()))
    sentence = "A leader with the promises of a quorum may be established."
    return VerificationCondition(ELECTION, "may_establish", sentence, (promised,), goal)


def taken(z: AbstractZab, s: ZabState, action: ZabAction, label: str = "") -> ZabStep:
    """The step of an action whose parameters may be any."""
    return action.step(z, s, **parameters(z, action, label))


def parameters(z: AbstractZab, action: ZabAction, label: str = "") -> dict[str, Term]:
    """Constants for the parameters of an action."""
    return {name: z.universe.constant(f"{action.name}.{name}{label}", sort) for name, sort in action.parameters.items()}


def _hypotheses(place: str, goal: str, known: dict[str, Formula]) -> list[Formula]:
    names = needed(place, goal)
    return [formula for name, formula in known.items() if names is None or name in names]


def _condition(
    place: str, clause: NamedClause, hypotheses: tuple[Formula, ...], formula: Formula
) -> VerificationCondition:
    return VerificationCondition(place, clause.name, clause.sentence, hypotheses, formula)


def checked(
    condition: VerificationCondition, solver: Solver = Solver.Z3, *, seed: int = 0, seconds: float = 60
) -> CheckedCondition:
    """Ask a solver whether the goal follows from the hypotheses, for at most the given time."""
    opinion = ask(solver, condition.script, seed=seed, seconds=seconds)
    return CheckedCondition(condition.place, condition.goal, condition.sentence, solver, opinion)


_ROLLOUT = "stages barrier older_below_barrier newest_above_barrier none_beyond served_by_quorum zero_reign"
_GROWTH = "promised_runs acked_runs served_runs grown_above_barrier barrier_runs"

HINTS: dict[tuple[str, str], str] = {
    # The reign is not behind the server, so it began with the transactions of the server, by the source of its log.
    ("promise", "promised_is_known"): (
        "acked_known acked_stays candidate_has_initial dead_if_missing initial_is_prefix epochs_ordered log_is_prefix "
        "one_leader history_initial_or_own promised_is_known dead_below history_established promise_accepts "
        "candidate_epochs"
    ),
    # The server of the reign knows its own log.
    ("begin", "promised_is_known"): "acked_known acked_stays promised_is_known promise_accepts epochs_ordered",
    # A quorum that lacks t meets the quorum that establishes: the common server has promised without t.
    ("establish", "dead_is_blocked"): (
        "established_begun dead_is_blocked promised_is_known promise_accepts dead_if_missing served_committed "
        f"committed_acked established_by_quorum one_leader old_are_over late_is_too_late {_ROLLOUT} {_GROWTH}"
    ),
    # Two quorums of one epoch meet: the common server has promised twice.
    ("establish", "one_leader"): (
        "established_begun established_by_quorum established_by_promises promise_once one_leader promise_accepts "
        f"old_are_over late_is_too_late {_ROLLOUT} {_GROWTH}"
    ),
    # The new history lacks only what is dead, so the server keeps what a reign that may still commit has given it.
    ("synchronise", "acked_stays"): (
        "acked_known acked_stays dead_if_missing epochs_ordered history_established history_initial_or_own one_leader"
    ),
    ("synchronise", "entered_has_initial"): (
        "dead_if_missing entered_has_initial epochs_ordered history_established history_initial_or_own one_leader"
    ),
    # A server of the quorum followed the barrier, so the new reign is of a later epoch.
    ("establish", "newest_above_barrier"): (
        "barrier barrier_runs grown_above_barrier late_is_too_late newest_above_barrier promised_runs served_by_quorum "
        "served_runs"
    ),
    # No later reign than the leader that all follow is established, so nothing is dead for it.
    ("raise_high", "dead_is_blocked"): (
        "dead_is_blocked newest_reign dead_by_newest established_by_promises established_by_quorum promise_accepts "
        f"one_leader {_ROLLOUT} {_GROWTH}"
    ),
    ("raise_high", "older_below_barrier"): (
        f"newest_reign established_by_promises established_by_quorum promise_accepts one_leader {_ROLLOUT} {_GROWTH}"
    ),
    # The leader is of the newest stage, and so has not grown: its quorum runs since before the next stage.
    ("raise_high", "barrier_runs"): "served_runs grown_above_barrier stages",
    # The transaction is new, and of the only reign of its epoch.
    ("propose", "one_txn_a_zxid"): "one_txn_a_zxid history_origin history_bound history_established one_leader",
    # A committed transaction is not dead, so no later reign lacks it.
    ("theorems", "leader_completeness"): (
        "dead_if_missing dead_is_blocked committed_acked committed_by_quorum history_established acked_runs"
    ),
    ("theorems", "agreement"): "one_txn_a_zxid committed_by_quorum",
    ("theorems", "total_order"): (
        "leader_completeness committed_by_quorum log_is_prefix log_matching history_initial_or_own one_leader "
        "history_established"
    ),
    ("theorems", "prefixes_agree"): "total_order agreement",
    ("theorems", "durability"): (
        "committed_acked committed_by_quorum acked_stays dead_is_blocked history_established acked_runs"
    ),
    ("theorems", "durability_in_later_epochs"): (
        "leader_completeness epochs_ordered entered_has_initial dead_below dead_is_blocked committed_acked "
        "committed_by_quorum history_established acked_runs"
    ),
}
"""The names of the hypotheses, by the action (or "theorems") and the clause that is to be proved."""


def needed(place: str, goal: str) -> frozenset[str] | None:
    """The clauses that a condition needs; None for all of them."""
    names = HINTS.get((place, goal))
    return None if names is None else frozenset(names.split())
