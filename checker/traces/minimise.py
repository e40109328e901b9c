"""Minimises the run to a finding: the fewest actions first, then the fewest faults, then the fewest switches.

A breadth-first search returns the first of the shortest runs that it meets: possibly one with a crash where a slow
message would do, or with the steps of independent servers mixed. This module searches again, step by step, with the
model itself. A *switch* is a step that touches no lane that the previous step touched.

Rules of this module:

- Nothing is edited: every run that is considered is executed, and its finding is evaluated at its end. The finding
  stays the same, including the clause and the values.
- Runs are layers of states, and each state is met at its least depth. A run with the fewest actions meets each of its
  states at that depth, so nothing is missed. Within a layer, a state is kept once for each set of lanes touched last,
  with the least faults and switches.
- All moves are tried if that takes at most `MOVES`. Otherwise only the moves of the found run are tried, in any order
  and number. If that takes too many as well, the run stays unchanged.
- A run that is as good as the best stays unchanged. So does a run that never reaches a goal: its stem is shortest
  already, and its loop was constructed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from checker.engine.model import Finding, Kind, Move, Row, Send
from checker.engine.result import Discovery, Step
from checker.engine.semantics import answer, successors
from checker.job import Job
from checker.traces.trace import lanes_of
from checker.traces.values import canonical

MOVES = 10_000  # the most moves executed in one search for a better run; about a second
PER_STATE = 2  # the fewest moves of a state, to estimate the moves of a search from the states it has seen

Touched = frozenset[str]
Moves = frozenset[tuple[str, tuple[Send, ...]]] | None  # by action and operations; None: all moves


class Cost(NamedTuple):
    """The cost of a run for a reader: less is better, and an earlier field outweighs the later ones."""

    actions: int
    faults: int
    switches: int


@dataclass(frozen=True)
class _Candidate:
    """A run to a state: its cost, the lanes that its last step touched, and the run before that step."""

    cost: Cost
    touched: Touched
    step: Step
    before: _Candidate | None = None

    @property
    def path(self) -> tuple[Step, ...]:
        """All steps of the run; the first has no move."""
        run: _Candidate | None = self
        steps = []
        while run is not None:
            steps.append(run.step)
            run = run.before
        return tuple(reversed(steps))


def minimised(job: Job, found: Discovery, levels: Sequence[int] = ()) -> Discovery:
    """Return the same finding at the end of the best run found.

    `levels` are those of the exploration: the number of states at each depth.
    """
    if found.prop.kind.is_liveness:
        return found
    search = _RunSearch(job, found)
    its_own = frozenset(_move_key(step.move) for step in found.path if step.move is not None)
    too_many = PER_STATE * sum(levels[: found.depth]) > MOVES
    for moves in (its_own,) if too_many else (None, its_own):
        try:
            best = search.best(moves)
        except _TooManyError:
            continue
        if best is not None and best.cost < search.given.cost:
            return replace(found, depth=best.cost.actions, path=best.path)
        return found
    return found


def cost(job: Job, found: Discovery) -> Cost:
    """The cost of a run as it was found."""
    return _RunSearch(job, found).given.cost


def _move_key(move: Move) -> tuple[str, tuple[Send, ...]]:
    return move.action, move.sends


class _TooManyError(Exception):
    """A search would execute more than `MOVES` moves."""


class _RunSearch:
    """A search for runs to one finding."""

    def __init__(self, job: Job, found: Discovery) -> None:
        self._job, self._found = job, found
        self._lanes: dict[Row, dict[str, str]] = {}
        self._successors: dict[Row, list[tuple[Move, Row]]] = {}
        self._executed = 0
        run = self._start = _Candidate(Cost(0, 0, 0), frozenset(), found.path[0])
        for step in found.path[1:]:
            run = self._further(run, step)
        self.given = run

    def best(self, moves: Moves) -> _Candidate | None:
        """The best run of these moves that is not longer than the given one; None if none was found."""
        self._executed = 0
        self._successors.clear()
        layer = {(self._start.step.row, self._start.touched): self._start}
        met = {self._start.step.row}
        for _ in self._found.path[1:]:
            following: dict[tuple[Row, Touched], _Candidate] = {}
            for run in layer.values():
                for further in self._steps(run, moves, met):
                    key = (further.step.row, further.touched)
                    if key not in following or further.cost < following[key].cost:
                        following[key] = further
            layer = following
            met.update(row for row, _ in layer)
            ends = [run for run in layer.values() if self._is_there(run.step.row)]
            if ends:
                return min(ends, key=lambda run: run.cost)
        return None

    def _steps(self, run: _Candidate, moves: Moves, met: set[Row]) -> Iterator[_Candidate]:
        for move, row in self._moves_of(run.step.row, moves):
            if row not in met:
                yield self._further(run, Step(move, row))

    def _moves_of(self, row: Row, moves: Moves) -> list[tuple[Move, Row]]:
        """The allowed moves of a state; they are executed once, for all runs to it."""
        if row not in self._successors:
            executed = list(successors(self._job.model, row))
            self._executed += len(executed)
            if self._executed > MOVES:
                raise _TooManyError
            self._successors[row] = [each for each in executed if moves is None or _move_key(each[0]) in moves]
        return self._successors[row]

    def _further(self, run: _Candidate, step: Step) -> _Candidate:
        before, after = self._shown(run.step.row), self._shown(step.row)
        changed = {lane for lane in {*before, *after} if before.get(lane) != after.get(lane)}
        touched = frozenset(changed) or run.touched
        switches = bool(run.touched) and not touched & run.touched
        fault = step.move is not None and step.move.action in self._job.faults
        actions, faults, switched = run.cost
        return _Candidate(Cost(actions + 1, faults + fault, switched + switches), touched, step, run)

    def _shown(self, row: Row) -> dict[str, str]:
        """The displayed lanes of a row, as text that can be compared."""
        if row not in self._lanes:
            self._lanes[row] = {lane: canonical(fields) for lane, fields in lanes_of(self._job, row).items()}
        return self._lanes[row]

    def _is_there(self, row: Row) -> bool:
        """Whether a state has the finding."""
        model, prop = self._job.model, self._found.prop
        if prop.kind is Kind.FINAL and any(True for _ in successors(model, row)):
            return False
        result = answer(model, prop, row)
        return isinstance(result, Finding) and result == self._found.finding
