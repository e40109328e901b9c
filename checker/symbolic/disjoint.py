"""Finds two disjoint quorums, one of each of two views, or proves that there are none.

This question decides the safety of a configuration change. Servers that still use the old file and servers that use the
new one are safe together iff every quorum of the one meets every quorum of the other.

Rules this module keeps:

- Each voter is a 0/1 integer for each view, and the sum over both views is at most 1. The solver's linear arithmetic
  refutes such sums of integers immediately; with plain booleans they would be a pigeonhole problem.
- z3's plain arithmetic core is used. Its default tactics turn such sums into clauses, and its optimiser searches them.
  Both fail to finish on ensembles of fifty servers, which this core refutes in a moment.
- The first query only asks whether there is an answer; the smallest answer is searched for only if there is one.
- The witnesses are checked with `View.contains_quorum` before they are returned.

Source: the definitions in `spec.quorum`, translated clause by clause.

The theorems about roll-outs speak of any stages. Their premise on quorums and roles is decided here, exactly, for the
views and the running servers of one roll-out (`disjoint_stages`). What is not decided: that the operator keeps the rule
(conditions a and b of `checker.symbolic.zab.rollout`), and that disks keep what was written to them. So an answer of
None is not yet a proof that the roll-out is safe.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import msgspec
import z3

from spec.quorum import Hierarchical, Majority, QuorumSystem, Sid, View
from spec.quorum.systems import java_half

Chosen: TypeAlias = Mapping[Sid, z3.ArithRef]
"""The variable of each voter of a view: 1 if the voter belongs to the quorum, 0 if not."""


class DisjointQuorums(msgspec.Struct, frozen=True):
    """A quorum of view a and a quorum of view b that share no server."""

    a: frozenset[Sid]
    b: frozenset[Sid]

    @property
    def size(self) -> int:
        """The number of servers in both quorums together."""
        return len(self.a) + len(self.b)


class UndecidedError(RuntimeError):
    """The solver gave up without an answer, or its answer failed the check."""


@lru_cache(maxsize=4096)
def disjoint_quorums(a: View, b: View, running: frozenset[Sid] | None = None) -> DisjointQuorums | None:
    """The smallest pair of disjoint quorums; None is a proof that every two quorums meet.

    With `running`, only quorums all of whose servers run are considered.
    Smallest means fewest servers together. Of several smallest pairs, the one whose quorum of `a` has the lowest ids is
    taken, so the answer is the same in every run. Raises UndecidedError if the solver gives up.
    """
    in_a, in_b = _choice(a, "a"), _choice(b, "b")
    constraints = [
        *_zero_or_one(in_a),
        *_zero_or_one(in_b),
        *(in_a[sid] + in_b[sid] <= 1 for sid in in_a.keys() & in_b.keys()),
        _is_quorum(a.quorums, in_a),
        _is_quorum(b.quorums, in_b),
    ]
    if running is not None:
        constraints += [v == 0 for chosen in (in_a, in_b) for sid, v in chosen.items() if sid not in running]
    solver = z3.SimpleSolver()
    solver.add(*constraints)
    if not _satisfiable(solver):
        return None
    return _confirmed(a, b, _smallest(solver, in_a, in_b))


def _satisfiable(solver: z3.Solver, *assumed: z3.BoolRef) -> bool:
    answer = solver.check(*assumed)
    if answer == z3.unknown:
        raise UndecidedError(f"z3 could not decide whether the quorums meet: {solver.reason_unknown()}")
    return bool(answer == z3.sat)


def _choice(view: View, name: str) -> dict[Sid, z3.ArithRef]:
    return {sid: z3.Int(f"{name}{sid}") for sid in sorted(view.voters)}


def _zero_or_one(chosen: Chosen) -> list[z3.BoolRef]:
    return [z3.And(variable >= 0, variable <= 1) for variable in chosen.values()]


def _is_quorum(quorums: QuorumSystem, chosen: Chosen) -> z3.BoolRef:
    if isinstance(quorums, Majority):
        return _total(chosen) >= quorums.quorum_size
    won = [z3.If(_wins(quorums, group, total, chosen), 1, 0) for group, total in quorums.totals()]
    return z3.Sum(won) > quorums.groups_to_exceed()


def _wins(quorums: Hierarchical, group: tuple[Sid, ...], total: int, chosen: Chosen) -> z3.BoolRef:
    """The condition that the chosen voters of a group have more than half of its weight, and that there is at least
    one.
    """
    present = {sid: chosen[sid] for sid in group if sid in chosen}
    weight = z3.Sum([quorums.weight(sid) * variable for sid, variable in present.items()])
    return z3.And(_total(present) >= 1, weight > java_half(total))


def _total(chosen: Chosen) -> z3.ArithRef:
    return z3.Sum(list(chosen.values()))


def _smallest(solver: z3.Solver, in_a: Chosen, in_b: Chosen) -> DisjointQuorums:
    """The smallest pair, for constraints that are known to have a solution."""
    total = _total(in_a) + _total(in_b)
    pair = _read(solver, in_a, in_b)
    while _satisfiable(solver, total < pair.size):
        pair = _read(solver, in_a, in_b)
    solver.add(total == pair.size)
    # Then each server in ascending order belongs to the quorum if it can.
    for variable in (*in_a.values(), *in_b.values()):
        solver.add(variable == int(_satisfiable(solver, variable == 1)))
    _satisfiable(solver)
    return _read(solver, in_a, in_b)


def _read(solver: z3.Solver, in_a: Chosen, in_b: Chosen) -> DisjointQuorums:
    model = solver.model()

    def members(chosen: Chosen) -> frozenset[Sid]:
        sids = (sid for sid, v in chosen.items() if model.eval(v, model_completion=True).as_long() == 1)
        return frozenset(sids)

    return DisjointQuorums(members(in_a), members(in_b))


def _confirmed(a: View, b: View, pair: DisjointQuorums) -> DisjointQuorums:
    """The pair, after the specification has confirmed it. Raises UndecidedError otherwise."""
    if pair.a & pair.b or not a.contains_quorum(pair.a) or not b.contains_quorum(pair.b):
        raise UndecidedError(f"z3's answer {pair} is not a pair of disjoint quorums: the translation is wrong")
    return pair


@dataclass(frozen=True)
class RunningView:
    """One stage of the theorem: the view that its files give, and the servers started in this stage or before."""

    view: View
    running: frozenset[Sid]


@dataclass(frozen=True)
class FailedPremise:
    """The first premise that fails, for the stages at two positions (from 0, the earlier one first).

    Either `disjoint` are two quorums that do not meet, or `observer` is a running server that is an observer in one of
    the views and a voter in the other; the other field is None.
    """

    earlier: int
    later: int
    disjoint: DisjointQuorums | None = None
    observer: Sid | None = None


def failed_premise(stages: Sequence[RunningView]) -> FailedPremise | None:
    """The first pair of equal or neighbouring stages that breaks the premise `ONE_GO`; None if it holds.

    If all servers run from the first stage on, this is the premise `STAGED`. That no role changes is sufficient for
    counting voters only, and not necessary: an observer that restarts before all others is not counted either.
    Raises ValueError if a server stops running, since the theorem's servers are started once, and
    checker.symbolic.disjoint.UndecidedError if z3 gives up.
    """
    changed = _changed_role(stages)
    disjoint = disjoint_stages(stages)
    failed = [premise for premise in (disjoint, changed) if premise is not None]
    return min(failed, key=lambda each: (each.earlier, each.later), default=None)


def disjoint_stages(stages: Sequence[RunningView]) -> FailedPremise | None:
    """The first pair of equal or neighbouring stages with disjoint quorums of running servers; None if all meet.

    Raises ValueError and UndecidedError like `failed_premise`.
    """
    for i, j, running in _pairs(stages):
        disjoint = disjoint_quorums(stages[i].view, stages[j].view, running)
        if disjoint is not None:
            return FailedPremise(i, j, disjoint=disjoint)
    return None


def _changed_role(stages: Sequence[RunningView]) -> FailedPremise | None:
    for i, j, running in _pairs(stages):
        a, b = stages[i].view, stages[j].view
        changed = (a.observers & b.voters | a.voters & b.observers) & running
        if changed:
            return FailedPremise(i, j, observer=min(changed))
    return None


def _pairs(stages: Sequence[RunningView]) -> Iterator[tuple[int, int, frozenset[Sid]]]:
    """Every two equal or neighbouring stages, with the servers that run in the stage after the earlier one."""
    for i, stage in enumerate(stages):
        following = stages[min(i + 1, len(stages) - 1)]
        stopped = stage.running - following.running
        if stopped:
            raise ValueError(f"servers {sorted(stopped)} run in stage {i} and not in stage {i + 1}")
        for j in range(i, min(i + 2, len(stages))):
            yield i, j, following.running
