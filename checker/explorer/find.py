"""Look-ahead for the page: to the nearest state of a kind, and through the whole space.

Rules of this module:

- The search is breadth-first, so the result is nearest. The result is at least one move ahead.
- The table engine searches for states, on the same model with the end of the walk as its initial state; it is by far
  the faster engine. Plain steps search for a move, and for a state of a kind that the end of the walk has too.
- A search without a result reports whether it saw everything, or which limit ended it.
- The progress callback is called every `REPORT_EVERY` seconds, and may cancel the search.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

from checker.engine.model import Finding, Kind, Model, ModelError, Move, Property, Read, Row
from checker.engine.process import free_memory
from checker.engine.result import Exploration, Limits, Stop
from checker.engine.semantics import answer, ordinals, successors
from checker.execution import compile_kernels, run_job
from checker.explorer.requests import ActionGoal, BadRequestError, CaptionGoal, EndGoal, Goal, PropertyGoal
from checker.explorer.walk import Walks
from checker.job import Job

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
    if next(successors(job.model, row), None) is None:
        return SearchResult(None, 1, 0, whole=True)
    ends = goal_property is not None and goal_property.kind is Kind.FINAL
    if goal_property is None or (not ends and isinstance(answer(job.model, goal_property, row), Finding)):
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
    known = {prop.name: prop for prop in job.model.properties}
    if goal.name not in known:
        raise BadRequestError(f"there is no property {goal.name!r}; there are {', '.join(known) or 'none'}")
    prop = known[goal.name]
    return prop if prop.kind is Kind.FINAL else replace(prop, kind=Kind.SOMETIMES)


# -- by tables -----------------------------------------------------------------------------------------------


def by_tables(job: Job, row: Row, goal_property: Property, progress: ProgressCallback) -> SearchResult:
    """Find the nearest state in which a property has a finding, other than the row itself."""
    columns = tuple(replace(column, initial=value) for column, value in zip(job.model.columns, row, strict=True))
    begun = Model(job.model.name, columns, job.model.actors, job.model.rules, (goal_property,))
    ahead = replace(job, model=begun, until_witnessed=True)
    limits = Limits(memory=free_memory(SHARE_OF_MEMORY), seconds=SECONDS)
    explored = _explored(ahead, limits, progress)
    found = explored.found.get(goal_property.name)
    if found is not None:
        return SearchResult(Walks(begun).ordinals(found.path), explored.states, found.depth)
    whole = explored.stop is Stop.EXHAUSTED
    return SearchResult(None, explored.states, explored.depth, whole, "" if whole else LIMITS[explored.stop])


def search_whole(job: Job, progress: ProgressCallback) -> Exploration:
    """Explore the whole space, within the limits of the job and of the page. Raises BadRequestError."""
    own, memory = job.limits, free_memory(SHARE_OF_MEMORY)
    seconds = min(own.seconds or WHOLE_SECONDS, WHOLE_SECONDS)
    limits = Limits(own.depth, own.states, min(own.memory or memory, memory), seconds)
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
        for number, here in enumerate(level):
            if number % LOOK_EVERY == 0 and (now := time.monotonic()) - reported > REPORT_EVERY:
                reported = now
                stop = Stop.TIME if now - began > SECONDS else None
                stop = stop if progress(len(parents), depth) else Stop.INTERRUPTED
                if stop is not None:
                    return SearchResult(None, len(parents), depth, why=LIMITS[stop])
            for ordinal, (move, after) in enumerate(successors(job.model, here)):
                if _is_found(job, goal, move, after):
                    return SearchResult((*ordinals(parents, here), ordinal), len(parents), depth + 1)
                if after not in parents:
                    parents[after] = (here, ordinal)
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
    return goal_property is not None and isinstance(answer(job.model, goal_property, after), Finding)
