"""Walks by the ordinals of their moves, with the findings at their ends; and searches ahead of a walk.

Rules of this module:

- The successors of a row are computed once, as long as they are cached. They have the order of both engines.
- A run ends in a safety finding if its last state has one. It ends in a liveness finding if it closes a loop, stays in
  its last state or has no successor, and satisfies the conditions of `checker.engine.liveness.lasso`. So a run that
  the checker found, walked move by move, ends in the same finding. A goal counts as out of reach only if all states
  that remain were searched; if these are more than `lasso.REMAINS`, nothing is claimed.
- A search is breadth-first, so its result is nearest. The result is at least one move ahead.
- The table engine searches for states, on the same model with the end of the walk as its initial state; it is by far
  the faster engine. Plain steps search for a move, and for a state of a kind that the end of the walk has too.
- A search without a result reports whether it saw everything, or which limit ended it.
- The progress callback is called every `REPORT_EVERY` seconds, and may cancel the search.

The page may send the requests below. Any other one is refused, with a message that says how to correct it. A request
names a walk by the fingerprint of its job and the ordinals of its moves: `{"job": "6f0c…", "path": [0, 2]}`.
The same walk in a link is `6f0c…/0.2/91ab…`; the last part is a check, so a link that now leads elsewhere is refused.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import pairwise
from typing import Annotated

import msgspec

from checker.engine.bounds import bounds_among
from checker.engine.discovery import Discovery, Step
from checker.engine.liveness import lasso
from checker.engine.model import NO_EXCEPTION, Finding, Kind, Model, ModelError, Move, Property, Read, Row
from checker.engine.process import free_memory
from checker.engine.result import Exploration, Limits, Stop
from checker.engine.semantics import answer_if_any, finding_at, ordinals, possible
from checker.execution import compile_kernels, run_job
from checker.job import Job
from checker.local_page import BadRequestError
from spec.text import integers

LONGEST = 2000  # moves of a walk
LONGEST_FILE_NAME = 255  # limit of common file systems
MOST_TEXT = 200  # characters of a search text or a name
ORDINALS = 1 << 16  # moves of one state, the same limit as in the table engine

Ordinal = Annotated[int, msgspec.Meta(ge=0, lt=ORDINALS)]
Name = Annotated[str, msgspec.Meta(max_length=MOST_TEXT)]


class _OfWalk(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    job: Name
    path: Annotated[tuple[Ordinal, ...], msgspec.Meta(max_length=LONGEST)]


class WalkRequest(_OfWalk, forbid_unknown_fields=True, frozen=True):
    """Show a walk. `check` is the check of the end in its link."""

    check: Name | None = None


class PropertyGoal(msgspec.Struct, tag="property", tag_field="type", frozen=True):
    """A state in which a property fails, is witnessed, or has its goal, depending on its kind."""

    name: Name


class ActionGoal(msgspec.Struct, tag="action", tag_field="type", frozen=True):
    """A move with that action."""

    name: Name


class CaptionGoal(msgspec.Struct, tag="words", tag_field="type", frozen=True):
    """A move whose caption contains this text, in any case."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_TEXT)]


class EndGoal(msgspec.Struct, tag="end", tag_field="type", frozen=True):
    """A state in which nothing can happen."""


Goal = PropertyGoal | ActionGoal | CaptionGoal | EndGoal


class FindRequest(_OfWalk, forbid_unknown_fields=True, frozen=True):
    """Search ahead from the end of a walk for the nearest state or move of that kind."""

    goal: Goal


class ExploreRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Explore the whole space of a job."""

    job: Name


class RefineRequest(_OfWalk, forbid_unknown_fields=True, frozen=True):
    """Refine a walk that ends in a finding to the finer grain."""

    finding: Name


class LoadRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A saved trace, with the name of its file."""

    name: Annotated[str, msgspec.Meta(max_length=LONGEST_FILE_NAME)]
    text: str


def read_path(text: str) -> tuple[int, ...]:
    """The ordinals in a link or an address, such as `0.2.1`. Raises BadRequestError."""
    parts = text.split(".") if text else []
    if len(parts) > LONGEST:
        raise BadRequestError(f"the path has {len(parts):,} moves; a walk has {LONGEST:,} at most")
    ordinals = integers(parts, 0, ORDINALS)
    if ordinals is None:
        raise BadRequestError("the path is not a list of ordinals; write it like 0.2.1")
    return ordinals


def write_path(path: Sequence[int]) -> str:
    """The ordinals as written in a link."""
    return ".".join(map(str, path))


REMEMBERED = 4096  # rows whose successors are cached

Path = tuple[Step, ...]
GRAVEST = (Kind.ALWAYS, Kind.FINAL, Kind.RECOVERABLE, Kind.EVENTUALLY, Kind.SOMETIMES)


class Walks:
    """The walks of one model. Threads may share it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._first = Step(None, model.initial())
        self._known: OrderedDict[Row, tuple[tuple[Move, Row], ...]] = OrderedDict()
        self._lost: dict[tuple[str, Row], bool] = {}
        self._lock = threading.Lock()

    def next(self, row: Row) -> tuple[tuple[Move, Row], ...]:
        """The moves of a row, each with the row it leads to."""
        with self._lock:
            if row in self._known:
                self._known.move_to_end(row)
                return self._known[row]
        moves = tuple(possible(self.model, row))
        with self._lock:
            self._known[row] = moves
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return moves

    def path(self, ordinals: Sequence[int]) -> Path:
        """The steps of a walk; the first has no move. Raises BadRequestError for an ordinal without a move."""
        path = [self._first]
        for number, ordinal in enumerate(ordinals, 1):
            moves = self.next(path[-1].row)
            if ordinal >= len(moves):
                choice = f"only {len(moves)} can happen" if moves else "nothing can happen"
                raise BadRequestError(f"step {number} is move number {ordinal}, and {choice} there; begin anew")
            path.append(Step(*moves[ordinal]))
        return tuple(path)

    def ordinals(self, path: Path) -> tuple[int, ...]:
        """The ordinals of the moves of a path. Raises BadRequestError if it is not a path of this model."""
        return tuple(self._ordinal(before.row, step) for before, step in pairwise(path))

    def _ordinal(self, row: Row, step: Step) -> int:
        places = [n for n, (_, after) in enumerate(self.next(row)) if after == step.row]
        matching = [n for n in places if step.move is not None and self.next(row)[n][0][:2] == step.move[:2]]
        if not matching:
            raise BadRequestError(f"{step.move.action if step.move else 'a step'} is not a move of this run's state")
        return matching[0]

    def findings(self, path: Path) -> list[Discovery]:
        """The findings at the end of a run, the gravest first."""
        runs = [run for prop in (*self.model.properties, NO_EXCEPTION) for run in self._finding(prop, path)]
        return sorted(runs, key=lambda run: GRAVEST.index(run.prop.kind))

    def _finding(self, prop: Property, path: Path) -> Iterator[Discovery]:
        if prop.kind.is_liveness:
            yield from self._never(prop, path)
            return
        result = finding_at(self.model, prop, path[-1].row)
        if result is not None:
            yield Discovery(prop, result, len(path) - 1, path)

    def _never(self, prop: Property, path: Path) -> Iterator[Discovery]:
        """The finding of a run that never reaches its goal, if it is one: with the shortest loop that proves it."""
        results = [answer_if_any(self.model, prop, step.row) for step in path]
        met = max((number for number, result in enumerate(results) if isinstance(result, Finding)), default=-1)
        for loop in self._loops(prop, path):
            last = len(path) - 1 if loop is None else loop
            open_ = [number for number in range(met + 1, last + 1) if results[number] is None]
            if prop.kind is Kind.RECOVERABLE:
                open_ = self._out_of_reach(prop, path, open_)
            if open_ and lasso.flaw(self.model, prop, path, loop, open_[0]) is None:
                finding = lasso.describe_lasso(self.model, prop, path, loop, open_[0])
                depth = open_[0] if prop.kind is Kind.RECOVERABLE else last
                yield Discovery(prop, finding, depth, path, loop, open_[0])
                return

    def _loops(self, prop: Property, path: Path) -> Iterator[int | None]:
        """The starts of a loop that the last step may close; the last step: the run stays; None: the run ends."""
        last = len(path) - 1
        if prop.kind is Kind.EVENTUALLY:
            yield last
        elif not self.next(path[-1].row):
            yield None
        yield from (number for number in range(last - 1, -1, -1) if path[number].row == path[last].row)

    def _out_of_reach(self, prop: Property, path: Path, numbers: list[int]) -> list[int]:
        """The steps that the goal was found to be out of reach from; it is out of reach from every later step too."""
        lost: list[int] = []
        for number in reversed(numbers):
            key = prop.name, path[number].row
            is_lost = self._lost.get(key)
            if is_lost is None:
                rest = lasso.remains(self.model, prop, path[number].row)
                is_lost = rest.whole and not rest.goal
                if len(self._lost) >= REMEMBERED:
                    self._lost.clear()  # clears entries of other threads too; this call reads none of them again
                self._lost[key] = is_lost
            if not is_lost:
                break
            lost.append(number)
        return lost[::-1]


STATES = 200_000  # limit of a search by plain steps
SECONDS = 60.0  # limit of a look-ahead
WHOLE_SECONDS = 300.0
SHARE_OF_MEMORY = 0.5  # of the memory that is free when a search begins
REPORT_EVERY = 0.2  # seconds
LOOK_EVERY = 64  # rows between two readings of the clock
LIMITS = {
    Stop.TIME: "the time for a search is over",
    Stop.MEMORY: "the memory for a search is used up",
    Stop.WORK: "the work for a search is done",
    Stop.STATES: "it has seen as many states as were asked for",
    Stop.DEPTH: "it has come as deep as was asked for",
    Stop.INTERRUPTED: "it was cancelled",
}

ProgressCallback = Callable[[int, int], bool]
"""Takes the number of states seen and the depth; returns False to cancel."""


@dataclass(frozen=True)
class SearchResult:
    """The result of a look-ahead: the ordinals of the moves to the result, or None, and the size of the search.

    `whole`: every reachable state was seen. Otherwise `why` names the limit that ended the search.
    """

    path: tuple[int, ...] | None
    states: int
    depth: int
    whole: bool = False
    why: str = ""


def look_ahead(job: Job, row: Row, goal: Goal, progress: ProgressCallback) -> SearchResult:
    """Find the nearest state of a kind after a row. Raises BadRequestError for a goal that the job does not have."""
    goal_property = _state(job, goal)
    if not possible(job.model, row):
        return SearchResult(None, 1, 0, whole=True)
    ends = goal_property is not None and goal_property.kind is Kind.FINAL
    if goal_property is None or (not ends and isinstance(answer_if_any(job.model, goal_property, row), Finding)):
        return by_plain_steps(job, row, goal, progress)
    return by_tables(job, row, goal_property, progress)


def _state(job: Job, goal: Goal) -> Property | None:
    """The goal as a property that finds it; None for a move. Raises BadRequestError."""
    if isinstance(goal, EndGoal):
        return Property(
            "an end", (Read(job.model.columns[0].name),), lambda _: Finding("nothing can happen"), Kind.FINAL
        )
    if not isinstance(goal, PropertyGoal):
        return None
    properties = {prop.name: prop for prop in job.model.properties}
    if goal.name not in properties:
        raise BadRequestError(f"unknown property {goal.name!r}; the known ones are {', '.join(properties) or 'none'}")
    prop = properties[goal.name]
    return prop if prop.kind is Kind.FINAL else replace(prop, kind=Kind.SOMETIMES)


# -- by tables -----------------------------------------------------------------------------------------------


def by_tables(job: Job, row: Row, goal_property: Property, progress: ProgressCallback) -> SearchResult:
    """Find the nearest state in which a property has a finding, other than the row itself."""
    columns = tuple(replace(column, initial=value) for column, value in zip(job.model.columns, row, strict=True))
    bounds = bounds_among(prop for prop in job.model.properties if prop.name != goal_property.name)
    model = Model(job.model.name, columns, job.model.actors, job.model.rules, (*bounds, goal_property))
    ahead = replace(job, model=model, until_witnessed=True)
    limits = Limits(memory=free_memory(SHARE_OF_MEMORY), seconds=SECONDS)
    explored = _explored(ahead, limits, progress)
    run = explored.found.get(goal_property.name)
    if run is not None:
        return SearchResult(Walks(model).ordinals(run.path), explored.states, run.depth)
    whole = explored.stop is Stop.EXHAUSTED
    return SearchResult(None, explored.states, explored.depth, whole, "" if whole else LIMITS[explored.stop])


def search_whole(job: Job, progress: ProgressCallback) -> Exploration:
    """Explore the whole space, within the limits of the job and of the page. Raises BadRequestError."""
    asked_limits, memory = job.limits, free_memory(SHARE_OF_MEMORY)
    seconds = min(asked_limits.seconds or WHOLE_SECONDS, WHOLE_SECONDS)
    limits = Limits(asked_limits.depth, asked_limits.states, min(asked_limits.memory or memory, memory), seconds)
    return _explored(job, limits, progress)


def _explored(job: Job, limits: Limits, progress: ProgressCallback) -> Exploration:
    """Explore a job, and report to the page. Raises BadRequestError if the model is wrong."""
    from checker.engine.kernels import jit  # noqa: PLC0415

    ended: list[Exploration] = []

    def report(exploration: Exploration) -> None:
        """Interrupt the engine once, when the page cancels."""
        if not ended and not progress(exploration.states, exploration.depth):
            ended.append(exploration)
            raise KeyboardInterrupt

    try:
        if not jit.is_compiled():
            compile_kernels(job, shown=False)  # compiling does not count as time of a search
        return run_job(job, limits, workers=1, report=report)
    except KeyboardInterrupt:
        if not ended:
            raise
        return ended[0]  # the page cancelled at the last report, after the search had finished
    except ModelError as error:
        raise BadRequestError(f"the model is wrong: {error}", HTTPStatus.UNPROCESSABLE_ENTITY) from None


# -- by plain steps ------------------------------------------------------------------------------------------


def by_plain_steps(job: Job, row: Row, goal: Goal, progress: ProgressCallback, states: int = STATES) -> SearchResult:
    """Find the nearest move or state of a kind, at least one move ahead of the row."""
    parents: dict[Row, tuple[Row, int] | None] = {row: None}
    level, depth, began, reported = [row], 0, time.monotonic(), 0.0
    while level:
        following: list[Row] = []
        for number, state in enumerate(level):
            if number % LOOK_EVERY == 0 and (now := time.monotonic()) - reported > REPORT_EVERY:
                reported = now
                stop = Stop.TIME if now - began > SECONDS else None
                stop = stop if progress(len(parents), depth) else Stop.INTERRUPTED
                if stop is not None:
                    return SearchResult(None, len(parents), depth, why=LIMITS[stop])
            for ordinal, (move, after) in enumerate(possible(job.model, state)):
                if _is_found(job, goal, move, after):
                    return SearchResult((*ordinals(parents, state), ordinal), len(parents), depth + 1)
                if after not in parents:
                    parents[after] = (state, ordinal)
                    following.append(after)
            if len(parents) > states:
                why = f"by plain steps no more than {states:,} states are looked at"
                return SearchResult(None, len(parents), depth, why=why)
        level, depth = following, depth + 1
    return SearchResult(None, len(parents), max(0, depth - 1), whole=True)


def _is_found(job: Job, goal: Goal, move: Move, after: Row) -> bool:
    if isinstance(goal, ActionGoal):
        return move.action == goal.name
    if isinstance(goal, CaptionGoal):
        return goal.text.casefold() in job.presenter.caption(move).casefold()
    goal_property = _state(job, goal)
    return goal_property is not None and isinstance(answer_if_any(job.model, goal_property, after), Finding)
