"""The proof that the order of votes is a strict total order, or a cycle that refutes it (ZOOKEEPER-1419).

An election ends because there is a best vote and all servers find the same one. `is_better` must therefore be
irreflexive, asymmetric, transitive, and total on distinct votes. Epoch, zxid and server id are unbounded integers here,
so the proofs apply to any number of servers with any data.

Rules this module keeps:

- `CLAUSES` and `CLAUSES_BEFORE_1419` translate `is_better` clause by clause, for a leader that has weight; a leader
  without weight never wins with any vote. They accept numbers as well as the solver's variables, and a test compares
  them with `is_better` on random votes.
- The solver's "unsatisfiable" is trusted, its "satisfiable" is checked: every cycle is evaluated by `is_better` again.
- Counterexamples are the smallest: the least sum of all numbers, then number by number. They are the same in every run.

Source: `FastLeaderElection.totalOrderPredicate`, now and before ZOOKEEPER-1419.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import msgspec
import z3

from checker.symbolic.disjoint import UndecidedError
from checker.symbolic.proofs import OpenStatement, Proof, Refutation, Sizes, Theorem
from checker.symbolic.solvers import smt_lib
from spec.election.vote import Vote, is_better
from spec.quorum import majority_view
from spec.txn import format_zxid
from spec.variants import Variant

Variants = frozenset[Variant]
BEFORE_1419: Variants = frozenset({Variant.VOTE_ORDER_CYCLES})


class Ranked(NamedTuple):
    """The compared fields of a vote: integers, or variables of the solver."""

    epoch: Any
    zxid: Any
    server: Any

    @classmethod
    def of(cls, vote: Vote) -> Ranked:
        """The compared fields of a vote."""
        return cls(vote.peer_epoch, vote.zxid, vote.leader)

    def vote(self) -> Vote:
        """The vote with these fields."""
        return Vote(self.server, self.zxid, self.epoch)


class Clause(NamedTuple):
    """A condition under which a vote is better, in words and as a formula."""

    words: str
    holds: Callable[[Ranked, Ranked], Any]


_EPOCH = Clause("its epoch is higher", lambda new, old: new.epoch > old.epoch)
_ZXID = Clause(
    "its epoch is the same and its zxid is higher", lambda new, old: (new.epoch == old.epoch) & (new.zxid > old.zxid)
)
CLAUSES = (
    _EPOCH,
    _ZXID,
    Clause(
        "its epoch and its zxid are the same and its id is higher",
        lambda new, old: (new.epoch == old.epoch) & (new.zxid == old.zxid) & (new.server > old.server),
    ),
)
CLAUSES_BEFORE_1419 = (
    _EPOCH,
    _ZXID,
    Clause(
        "its zxid is the same and its id is higher, whatever the epochs are",
        lambda new, old: (new.zxid == old.zxid) & (new.server > old.server),
    ),
)


class Cycle(msgspec.Struct, frozen=True):
    """Votes of different servers, each of them better than the next, and the last better than the first."""

    votes: tuple[Vote, ...]
    variants: Variants = BEFORE_1419

    @property
    def steps(self) -> tuple[tuple[Vote, Vote], ...]:
        """Each vote with the next one, which it beats."""
        return tuple(zip(self.votes, (*self.votes[1:], self.votes[0]), strict=True))

    def lines(self) -> tuple[str, ...]:
        """A line for each step: the two votes, and the clause that decides."""
        return tuple(
            f"{_named(vote)} beats {_named(loser)}: {_why(vote, loser, self.variants)}" for vote, loser in self.steps
        )


def clauses(variants: Variants = frozenset()) -> tuple[Clause, ...]:
    """The clauses of the order, with or without ZOOKEEPER-1419."""
    return CLAUSES_BEFORE_1419 if Variant.VOTE_ORDER_CYCLES in variants else CLAUSES


def better(new: Ranked, old: Ranked, variants: Variants = frozenset()) -> z3.BoolRef:
    """The condition that one vote is better than another, as a formula."""
    return z3.Or(*(clause.holds(new, old) for clause in clauses(variants)))


def order_of_votes(variants: Variants = frozenset()) -> tuple[Proof, ...]:
    """The four statements that make the order of votes a strict total order, each proved or refuted."""
    whose = "the order of votes before ZOOKEEPER-1419" if variants & BEFORE_1419 else "the order of votes"
    a, b, c = _variables(3)
    ab, ba, bc, ac = (better(*pair, variants) for pair in ((a, b), (b, a), (b, c), (a, c)))
    distinct = z3.Or(a.epoch != b.epoch, a.zxid != b.zxid, a.server != b.server)
    twice, one_wins = z3.And(ab, ba), z3.Implies(distinct, z3.Or(ab, ba))
    return (
        _proof(f"{whose} is irreflexive", "no vote beats itself", z3.Not(better(a, a, variants)), (a,)),
        _proof(f"{whose} is asymmetric", "no two votes beat each other", z3.Not(twice), (a, b)),
        _proof(
            f"{whose} is transitive", "who beats a winner beats whom it beat", z3.Implies(z3.And(ab, bc), ac), (a, b, c)
        ),
        _proof(f"{whose} is total", "of two distinct votes one beats the other", one_wins, (a, b)),
    )


def every_cycle_has_a_pair() -> Proof:
    """Before ZOOKEEPER-1419, every cycle contains two votes that beat each other, for any length of the cycle.

    A step of that order that is not a step of the present order also goes back. Steps of the present order alone form
    no cycle, since that order is irreflexive and transitive.
    """
    a, b, _ = _variables(3)
    goes_back = z3.Implies(better(a, b, BEFORE_1419), z3.Or(better(a, b), better(b, a, BEFORE_1419)))
    statement = "every cycle of votes before ZOOKEEPER-1419 holds two that beat each other"
    back = _proof(statement, "a step is one of the right order, or goes back too", goes_back, (a, b))
    if not isinstance(back, Theorem):
        return back
    irreflexive, _, transitive, _ = order_of_votes()
    failing = [proof.statement for proof in (irreflexive, transitive) if not isinstance(proof, Theorem)]
    if failing:
        return OpenStatement(statement, failing[0])
    theorems = [back, *(proof for proof in (irreflexive, transitive) if isinstance(proof, Theorem))]
    scripts = tuple(script for theorem in theorems for script in theorem.scripts)
    return Theorem(statement, (*back.obligations, irreflexive.statement, transitive.statement), scripts)


def smallest_cycle(length: int, variants: Variants = frozenset()) -> Cycle | None:
    """The smallest cycle of this many votes, all of different servers; None is a proof that there is none.

    At most one pair of its votes may beat each other, so that a longer cycle is not a shorter one with superfluous
    votes. Raises UndecidedError if the solver gives up, and ValueError for a length below 2.
    """
    if length < 2:
        raise ValueError(f"a cycle has two votes or more, not {length}")
    votes = _variables(length)
    ring = zip(votes, (*votes[1:], votes[0]), strict=True)
    mutual = [
        z3.If(z3.And(better(first, second, variants), better(second, first, variants)), 1, 0)
        for first, second in combinations(votes, 2)
    ]
    votes_found = _smallest(
        [
            *(better(winner, loser, variants) for winner, loser in ring),
            z3.Distinct(*(vote.server for vote in votes)),
            z3.Sum(mutual) <= 1,
        ],
        votes,
    )
    return None if votes_found is None else _confirmed(Cycle(tuple(vote.vote() for vote in votes_found), variants))


def all_proofs() -> tuple[Proof, ...]:
    """Every statement about the present order of votes of ZooKeeper, and the one about cycles before ZOOKEEPER-1419."""
    return (*order_of_votes(), every_cycle_has_a_pair())


def lines() -> tuple[str, ...]:
    """The complete result as lines of text: the proofs, and the smallest cycles before ZOOKEEPER-1419."""
    return (*(f"{proof.RESULT}: {proof.statement}" for proof in all_proofs()), *cycle_lines())


def cycle_lines() -> tuple[str, ...]:
    """The smallest cycles of votes before ZOOKEEPER-1419, as lines of text."""
    lines: list[str] = []
    for length in (2, 3):
        cycle = smallest_cycle(length, BEFORE_1419)
        steps = ("  there is none",) if cycle is None else tuple(f"  {line}" for line in cycle.lines())
        lines += [f"the smallest cycle of {length} votes before ZOOKEEPER-1419:", *steps]
    return tuple(lines)


def _variables(count: int) -> tuple[Ranked, ...]:
    return tuple(Ranked(*z3.Ints(f"epoch{n} zxid{n} server{n}")) for n in range(1, count + 1))


def _proof(statement: str, obligation: str, claim: z3.BoolRef, votes: Sequence[Ranked]) -> Proof:
    """A proof for all integers, or a refutation by the smallest votes that real servers can have."""
    solver = z3.Solver()
    solver.add(z3.Not(claim))
    if solver.check() == z3.unsat:
        return Theorem(statement, (obligation,), (smt_lib((), claim),))
    example = _smallest([z3.Not(claim)], votes)
    if example is None:
        return OpenStatement(statement, obligation)
    names = (str(variable) for vote in votes for variable in vote)
    return Refutation(statement, Sizes(tuple(zip(names, (n for vote in example for n in vote), strict=True))))


def _smallest(constraints: Sequence[z3.BoolRef], votes: Sequence[Ranked]) -> tuple[Ranked, ...] | None:
    """The smallest votes of real servers (ids from 1, other numbers from 0) that satisfy the constraints, or None."""
    solver = z3.Optimize()
    solver.add(*constraints)
    for vote in votes:
        solver.add(vote.epoch >= 0, vote.zxid >= 0, vote.server >= 1)
    numbers = [number for vote in votes for number in vote]
    for goal in (z3.Sum(numbers), *numbers):
        solver.minimize(goal)
    answer = solver.check()
    if answer == z3.unknown:
        raise UndecidedError(f"z3 could not decide whether votes are in a cycle: {solver.reason_unknown()}")
    if answer == z3.unsat:
        return None
    model = solver.model()
    return tuple(Ranked(*(model.eval(n, model_completion=True).as_long() for n in vote)) for vote in votes)


def _confirmed(cycle: Cycle) -> Cycle:
    """The cycle, after the specification has confirmed that each vote beats the next. Raises UndecidedError."""
    view = majority_view(vote.leader for vote in cycle.votes)
    if not all(is_better(view, winner, loser, cycle.variants) for winner, loser in cycle.steps):
        raise UndecidedError(f"z3's answer {cycle} is not a cycle: the translation is wrong")
    return cycle


def _why(one: Vote, other: Vote, variants: Variants) -> str:
    new, old = Ranked.of(one), Ranked.of(other)
    return next(clause.words for clause in clauses(variants) if clause.holds(new, old))


def _named(vote: Vote) -> str:
    return f"server {vote.leader} (epoch {vote.peer_epoch}, zxid {format_zxid(vote.zxid)})"
