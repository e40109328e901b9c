"""Looks ahead for the page: for the nearest state of a kind, and through the whole space.

Rules of this module:

- Breadth first: what is found is nearest. What is looked for lies at least one move ahead.
- States are looked for by the table engine, on the same model begun where the walk ends; it is the faster by far.
  A move, and a state like the one that is walked from, is looked for by plain steps.
- Where nothing is found it is told whether everything was seen, or which limit ended the search.
- Whoever asked is told how far it is every `REPORT_EVERY` seconds, and may say that it is enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

from checker.engine.memory import free_memory
from checker.engine.model import Finding, Kind, Model, ModelError, Move, Read, Row
from checker.engine.model import Property as ModelProperty
from checker.engine.result import Exploration, Limits, Stop
from checker.engine.semantics import answer, ordinals, successors
from checker.explorer.requests import Action, AskedWrongError, End, Goal, Property, Words
from checker.explorer.walk import Walks
from checker.job import Job

STATES = 200_000  # that plain steps may see
SECONDS = 60.0  # of a look ahead
WHOLE_SECONDS = 300.0
SHARE_OF_MEMORY = 0.5  # of what is free when a search begins
REPORT_EVERY = 0.2  # seconds
LOOK_EVERY = 64  # rows between two looks at the clock
LIMITS = {
    Stop.TIME: "the time for a search is over",
    Stop.MEMORY: "the memory for a search is used up",
    Stop.WORK: "the work for a search is done",
    Stop.STATES: "it has seen as many states as were asked for",
    Stop.DEPTH: "it has come as deep as was asked for",
    Stop.INTERRUPTED: "it was cancelled",
}

Progress = Callable[[int, int], bool]
"""Gets the states seen and the depth; False: enough."""


@dataclass(frozen=True)
class Looked:
    """What looking ahead came to: the ordinals of the moves to what was found, or None, and what was seen.

    `whole`: everything that can be reached was seen. `why` is what ended the search otherwise.
    """

    path: tuple[int, ...] | None
    states: int
    depth: int
    whole: bool = False
    why: str = ""


def look_ahead(job: Job, row: Row, goal: Goal, progress: Progress) -> Looked:
    """The nearest state of a kind, from a row on. Raises AskedWrongError for a goal that the job does not have."""
    wanted = _state(job, goal)
    if next(successors(job.model, row), None) is None:
        return Looked(None, 1, 0, whole=True)
    ends = wanted is not None and wanted.kind is Kind.FINAL
    if wanted is None or (not ends and isinstance(answer(job.model, wanted, row), Finding)):
        return by_plain_steps(job, row, goal, progress)
    return by_tables(job, row, wanted, progress)


def _state(job: Job, goal: Goal) -> ModelProperty | None:
    """What is looked for as a property that finds it; None for a move. Raises AskedWrongError."""
    if isinstance(goal, End):
        return ModelProperty(
            "an end", (Read(job.model.columns[0].name),), lambda _: Finding("nothing can happen"), Kind.FINAL
        )
    if not isinstance(goal, Property):
        return None
    known = {prop.name: prop for prop in job.model.properties}
    if goal.name not in known:
        raise AskedWrongError(f"there is no property {goal.name!r}; there are {', '.join(known) or 'none'}")
    prop = known[goal.name]
    return prop if prop.kind is Kind.FINAL else replace(prop, kind=Kind.SOMETIMES)


# -- by tables -----------------------------------------------------------------------------------------------


def by_tables(job: Job, row: Row, wanted: ModelProperty, progress: Progress) -> Looked:
    """The nearest state that a property finds, which is not that of the row itself."""
    columns = tuple(replace(column, initial=value) for column, value in zip(job.model.columns, row, strict=True))
    begun = Model(job.model.name, columns, job.model.actors, job.model.rules, (wanted,))
    limits = Limits(memory=free_memory(SHARE_OF_MEMORY), seconds=SECONDS)
    explored = _explored(begun, limits, progress, until_witnessed=True)
    found = explored.found.get(wanted.name)
    if found is not None:
        return Looked(Walks(begun).ordinals(found.path), explored.states, found.depth)
    whole = explored.stop is Stop.EXHAUSTED
    return Looked(None, explored.states, explored.depth, whole, "" if whole else LIMITS[explored.stop])


def search_whole(job: Job, progress: Progress) -> Exploration:
    """Explore the whole space, within the job's limits and those of a page. Raises AskedWrongError."""
    own, memory = job.limits, free_memory(SHARE_OF_MEMORY)
    seconds = min(own.seconds or WHOLE_SECONDS, WHOLE_SECONDS)
    limits = Limits(own.depth, own.states, min(own.memory or memory, memory), seconds)
    return _explored(job.model, limits, progress, until_witnessed=job.until_witnessed)


def _explored(model: Model, limits: Limits, progress: Progress, *, until_witnessed: bool) -> Exploration:
    from checker.engine import jit, search  # noqa: PLC0415 (kernels load when they are needed)

    ended: list[Exploration] = []

    def told(exploration: Exploration) -> None:
        """Interrupt the engine once, when the page says that it is enough."""
        if not ended and not progress(exploration.states, exploration.depth):
            ended.append(exploration)
            raise KeyboardInterrupt

    try:
        if not jit.is_compiled():
            search.explore(model, Limits(depth=1))  # so that no search's time goes to compiling
        return search.explore(model, limits, until_witnessed=until_witnessed, progress=told)
    except KeyboardInterrupt:
        if not ended:
            raise
        return ended[0]  # the page said so of the last report, when the search had come to its end
    except ModelError as error:
        raise AskedWrongError(f"the model is wrong: {error}", HTTPStatus.UNPROCESSABLE_ENTITY) from None


# -- by plain steps ------------------------------------------------------------------------------------------


def by_plain_steps(job: Job, row: Row, goal: Goal, progress: Progress, states: int = STATES) -> Looked:
    """The nearest move or state of a kind, at least one move ahead of the row."""
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
                    return Looked(None, len(parents), depth, why=LIMITS[stop])
            for ordinal, (move, after) in enumerate(successors(job.model, here)):
                if _is_found(job, goal, move, after):
                    return Looked((*ordinals(parents, here), ordinal), len(parents), depth + 1)
                if after not in parents:
                    parents[after] = (here, ordinal)
                    following.append(after)
            if len(parents) > states:
                why = f"by plain steps no more than {states:,} states are looked at"
                return Looked(None, len(parents), depth, why=why)
        level, depth = following, depth + 1
    return Looked(None, len(parents), max(0, depth - 1), whole=True)


def _is_found(job: Job, goal: Goal, move: Move, after: Row) -> bool:
    if isinstance(goal, Action):
        return move.action == goal.name
    if isinstance(goal, Words):
        return goal.text.casefold() in job.lens.caption(move).casefold()
    wanted = _state(job, goal)
    return wanted is not None and isinstance(answer(job.model, wanted, after), Finding)
