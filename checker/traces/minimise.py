"""The run that is told of a finding: of all that make it the one with the fewest actions, then faults, then switches.

A breadth-first search stops at some shortest run, whichever it came to first: with a crash where a slow message would
do, and with the steps of independent servers mixed. Here runs are searched once more, step by step by the model itself.
A *switch* is a step that touches no lane which the step before it touched.

Rules of this module:

- Nothing is edited: every run that is considered is executed, and what it ends in is looked at there. The finding
  stays what it was, the clause and the values included.
- Runs are layers of states, each met at its least depth. A run with the fewest actions meets each of its states there,
  so that nothing is missed. In a layer a state is kept once for each set of lanes that was touched last, with the least
  of faults and switches.
- All moves are tried where that takes no more than `MOVES`. Where it would, only those are that the found run has, in
  any order and number; and where that is too much as well, the run stays as it is.
- A run that is as good as the best stays as it is, and one that never comes to a goal does: its stem is shortest, and
  its loop was built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from checker.engine.model import Finding, Kind, Move, Row
from checker.engine.result import Found, Step
from checker.engine.semantics import answer, successors
from checker.job import Job
from checker.traces.trace import lanes_of
from checker.traces.values import canonical

MOVES = 10_000  # that are executed in search of a better run, each time; about a second
PER_STATE = 2  # moves of a state, at the least: a search that has seen more states would execute more than `MOVES`

Touched = frozenset[str]
Moves = frozenset[tuple[str, str]] | None  # by action and arguments; None: all


class Cost(NamedTuple):
    """What a run costs a reader; less is better, the first thing first."""

    actions: int
    faults: int
    switches: int


@dataclass(frozen=True)
class _Run:
    """A run to a state: its cost, the lanes that its last step touched, and the run before that step."""

    cost: Cost
    touched: Touched
    step: Step
    before: _Run | None = None

    @property
    def path(self) -> tuple[Step, ...]:
        """All its steps, the first of which has no move."""
        run: _Run | None = self
        steps = []
        while run is not None:
            steps.append(run.step)
            run = run.before
        return tuple(reversed(steps))


def minimised(job: Job, found: Found, levels: Sequence[int] = ()) -> Found:
    """The same finding at the end of the run that is easiest to read, as far as one was looked for.

    `levels` are those of the exploration: how many states are known at each depth.
    """
    if found.prop.kind.is_liveness:
        return found
    search = _Search(job, found)
    its_own = frozenset(_named(step.move) for step in found.path if step.move is not None)
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


def cost(job: Job, found: Found) -> Cost:
    """The cost of a run as it was found."""
    return _Search(job, found).given.cost


def _named(move: Move) -> tuple[str, str]:
    return move.action, repr(move.arguments)


class _TooManyError(Exception):
    """More moves would have to be executed than `MOVES`."""


class _Search:
    """Looks for runs to one finding."""

    def __init__(self, job: Job, found: Found) -> None:
        self._job, self._found = job, found
        self._lanes: dict[Row, dict[str, str]] = {}
        self._successors: dict[Row, list[tuple[Move, Row]]] = {}
        self._executed = 0
        run = self._start = _Run(Cost(0, 0, 0), frozenset(), found.path[0])
        for step in found.path[1:]:
            run = self._further(run, step)
        self.given = run

    def best(self, moves: Moves) -> _Run | None:
        """The best run that consists of these moves and is no longer than the one given; None if none was met."""
        self._executed = 0
        self._successors.clear()
        layer = {(self._start.step.row, self._start.touched): self._start}
        met = {self._start.step.row}
        for _ in self._found.path[1:]:
            following: dict[tuple[Row, Touched], _Run] = {}
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

    def _steps(self, run: _Run, moves: Moves, met: set[Row]) -> Iterator[_Run]:
        for move, row in self._moves_of(run.step.row, moves):
            if row not in met:
                yield self._further(run, Step(move, row))

    def _moves_of(self, row: Row, moves: Moves) -> list[tuple[Move, Row]]:
        """The moves of a state that may be taken; they are executed once, however many runs come to it."""
        if row not in self._successors:
            executed = list(successors(self._job.model, row))
            self._executed += len(executed)
            if self._executed > MOVES:
                raise _TooManyError
            self._successors[row] = [each for each in executed if moves is None or _named(each[0]) in moves]
        return self._successors[row]

    def _further(self, run: _Run, step: Step) -> _Run:
        before, after = self._shown(run.step.row), self._shown(step.row)
        changed = {lane for lane in {*before, *after} if before.get(lane) != after.get(lane)}
        touched = frozenset(changed) or run.touched
        switches = bool(run.touched) and not touched & run.touched
        fault = step.move is not None and step.move.action in self._job.faults
        actions, faults, switched = run.cost
        return _Run(Cost(actions + 1, faults + fault, switched + switches), touched, step, run)

    def _shown(self, row: Row) -> dict[str, str]:
        """What a reader is shown of each lane, as text that can be compared."""
        if row not in self._lanes:
            self._lanes[row] = {lane: canonical(fields) for lane, fields in lanes_of(self._job, row).items()}
        return self._lanes[row]

    def _is_there(self, row: Row) -> bool:
        """Whether a state is what was found."""
        model, prop = self._job.model, self._found.prop
        if prop.kind is Kind.FINAL and any(True for _ in successors(model, row)):
            return False
        said = answer(model, prop, row)
        return isinstance(said, Finding) and said == self._found.finding
