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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

from checker.engine import contract
from checker.engine.discovery import Discovery, Step
from checker.engine.model import NO_EXCEPTION, Model, Move, Row, Send
from checker.engine.semantics import finding_at, possible
from checker.engine.steps import step_properties
from checker.engine.values import canonical
from checker.job import Job
from checker.kit.actions import is_fault
from checker.traces.trace import lanes_of

MOVES = 10_000  # the most moves executed in one search for a better run; about a second

Touched = frozenset[str]
Moves = frozenset[tuple[str, tuple[Send, ...]]] | None  # by action and operations; None: all moves


class Cost(NamedTuple):
    """The cost of a run for a reader: less is better, and an earlier field outweighs the later ones."""

    actions: int
    faults: int
    switches: int


class _State:
    """A state of a search; one stands for all equal rows, whose comparison is costly."""

    def __init__(self, row: Row) -> None:
        self.row, self.is_met = row, False
        self.lanes: dict[str, str] | None = None
        self.following: list[tuple[Move, _State]] | None = None


@dataclass(frozen=True)
class _Candidate:
    """A run to a state: its cost, the lanes that its last step touched, its last move, and the run before that."""

    cost: Cost
    touched: Touched
    state: _State
    move: Move | None = None
    before: _Candidate | None = None

    @property
    def path(self) -> tuple[Step, ...]:
        """All steps of the run; the first has no move."""
        run: _Candidate | None = self
        steps = []
        while run is not None:
            steps.append(Step(run.move, run.state.row))
            run = run.before
        return tuple(reversed(steps))


def minimised(job: Job, found: Discovery, least_moves: int = 0) -> Discovery:
    """Return the same finding at the end of the best run found.

    `least_moves` are those that a search of all runs of that length executes (`Exploration.least_moves`), if known.
    """
    if found.prop.kind.is_liveness:
        return found
    search = _RunSearch(job, found)
    its_own = frozenset(_move_key(step.move) for step in found.path if step.move is not None)
    for moves in (its_own,) if least_moves > MOVES else (None, its_own):
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
    def __init__(self, job: Job, found: Discovery) -> None:
        self._job, self._found = job, found
        # Runs repeat their moves and steps, so that each answer is calculated once.
        actors = tuple(replace(actor, step=cache(actor.step)) for actor in job.model.actors)
        rules = tuple(replace(rule, moves=cache(partial(contract.moves, job.model, rule))) for rule in job.model.rules)
        # An exception may be that of a property; a property of steps is already in the actors.
        of_steps = step_properties(job.model.properties)
        properties = tuple(prop for prop in job.model.properties if prop not in of_steps)
        self._model = Model(
            job.model.name, job.model.columns, actors, rules, properties if found.prop is NO_EXCEPTION else ()
        )
        self._states: dict[Row, _State] = {}
        self._executed = 0
        run = self._start = _Candidate(Cost(0, 0, 0), frozenset(), self._state(found.path[0].row))
        for step in found.path[1:]:
            run = self._further(run, step.move, self._state(step.row))
        self.given = run

    def _state(self, row: Row) -> _State:
        return self._states.setdefault(row, _State(row))

    def best(self, moves: Moves) -> _Candidate | None:
        self._executed = 0
        for state in self._states.values():
            state.is_met, state.following = False, None
        layer = {(self._start.state, self._start.touched): self._start}
        self._start.state.is_met = True
        for _ in self._found.path[1:]:
            following: dict[tuple[_State, Touched], _Candidate] = {}
            for run in layer.values():
                for further in self._steps(run, moves):
                    key = (further.state, further.touched)
                    if key not in following or further.cost < following[key].cost:
                        following[key] = further
            layer = following
            for state, _ in layer:
                state.is_met = True
            ends = [run for run in layer.values() if self._is_there(run.state.row)]
            if ends:
                return min(ends, key=lambda run: run.cost)
        return None

    def _steps(self, run: _Candidate, moves: Moves) -> Iterator[_Candidate]:
        for move, state in self._moves_of(run.state, moves):
            if not state.is_met:
                yield self._further(run, move, state)

    def _moves_of(self, state: _State, moves: Moves) -> list[tuple[Move, _State]]:
        """The allowed moves of a state; they are executed once, for all runs to it."""
        if state.following is None:
            executed = possible(self._model, state.row)
            self._executed += len(executed)
            if self._executed > MOVES:
                raise _TooManyError
            allowed = (pair for pair in executed if moves is None or _move_key(pair[0]) in moves)
            state.following = [(move, self._state(row)) for move, row in allowed]
        return state.following

    def _further(self, run: _Candidate, move: Move | None, state: _State) -> _Candidate:
        before, after = self._shown(run.state), self._shown(state)
        changed = {lane for lane in {*before, *after} if before.get(lane) != after.get(lane)}
        touched = frozenset(changed) or run.touched
        switches = bool(run.touched) and not touched & run.touched
        fault = move is not None and is_fault(move.action)
        actions, faults, switched = run.cost
        return _Candidate(Cost(actions + 1, faults + fault, switched + switches), touched, state, move, run)

    def _shown(self, state: _State) -> dict[str, str]:
        """The displayed lanes of a state, as text that can be compared."""
        if state.lanes is None:
            state.lanes = {lane: canonical(fields) for lane, fields in lanes_of(self._job, state.row).items()}
        return state.lanes

    def _is_there(self, row: Row) -> bool:
        return finding_at(self._model, self._found.prop, row) == self._found.finding
