"""The plain engine: rows in a set, no tables, no fingerprints. It is the oracle of the table engine.

Both list the successors of a row in the same order, so the n-th successor means the same to both: that is how
a path kept as ordinals by the table engine is rebuilt here, which checks the tables at every step of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from checker.engine.model import TRIVIAL, Finding, Kind, Model, ModelError, Move, Read, Row, Send
from checker.engine.result import Coverage, Evaluations, Exploration, Found, Limits, Step, Stop, wanted
from checker.engine.values import unhashable


def successors(model: Model, row: Row) -> Iterator[tuple[Move, Row]]:
    """The possible moves of a row, each with the row it leads to, in the order that both engines keep."""
    for rule in model.rules:
        arguments = read(model, rule.reads, row)
        for move in (rule.moves(*arguments) or ()) if arguments is not None else ():
            after = fire(model, row, move)
            if after is not None:
                yield move, after


def read(model: Model, reads: Iterable[Read], row: Row) -> tuple[object, ...] | None:
    """What `reads` show of a row, or None where a projection says "never"."""
    arguments = []
    for column, projection in reads:
        value = row[model.index[column]]
        shown = value if projection is None else projection(value)
        if shown is None and projection is not None:
            return None
        arguments.append(shown)
    return tuple(arguments)


def fire(model: Model, row: Row, move: Move) -> Row | None:
    """The row after a move, or None if one of its operations is impossible."""
    after = list(row)
    return tuple(after) if _carry_out(model, after, move.sends) else None


def _carry_out(model: Model, row: list[object], sends: Iterable[Send]) -> bool:
    for name, operation in sends:
        if name not in model.actor_index:
            raise ModelError(f"an operation {operation!r} is sent to {name!r}, and no actor has that name")
        actor = model.actors[model.actor_index[name]]
        places = [model.index[column] for column in actor.columns]
        outcome = actor.step(tuple(row[place] for place in places), operation)
        if outcome is None:
            return False
        for place, value in zip(places, outcome.values, strict=True):
            row[place] = value
        if not _carry_out(model, row, outcome.sends):
            return False
    return True


def rebuild(model: Model, ordinals: Iterable[int]) -> tuple[Step, ...]:
    """The path from the initial row that takes these successors. Raises ModelError where one is missing."""
    path = [Step(None, model.initial())]
    for ordinal in ordinals:
        step = next((s for n, s in enumerate(successors(model, path[-1].row)) if n == ordinal), None)
        if step is None:
            raise ModelError(
                f"step {len(path)} of a path has no successor number {ordinal}: a function of the model "
                f"{model.name!r} gives different results for equal arguments"
            )
        path.append(Step(*step))
    return tuple(path)


def explore(
    model: Model,
    limits: Limits = Limits(),
    *,
    until_witnessed: bool = False,
    progress: Callable[[Exploration], None] = lambda _: None,
) -> Exploration:
    """Breadth-first exploration; a level is finished before what was found in it ends the search."""
    began, result = time.monotonic(), Exploration(model, "plain", limits)
    result.evaluations = {prop.name: Evaluations() for prop in model.properties}
    parents: dict[Row, tuple[Row, int] | None] = {_hashable(model, model.initial()): None}
    level = list(parents)
    while level:
        result.levels.append(len(level))
        for row in level:
            _evaluate(result, parents, row, final=False)
        result.seconds = time.monotonic() - began
        progress(result)
        stop = wanted(model, result, until_witnessed) or limits.reached(result)
        if stop is not None:
            result.stop = stop
            return result
        level = _expand(result, parents, level)
    result.stop = wanted(model, result, until_witnessed) or Stop.EXHAUSTED
    return result


def _expand(result: Exploration, parents: dict[Row, tuple[Row, int] | None], level: list[Row]) -> list[Row]:
    following = []
    for row in level:
        ordinal = -1
        for ordinal, (move, after) in enumerate(successors(result.model, row)):
            coverage = result.coverage.setdefault(move.action, Coverage())
            coverage.fired += 1
            if after not in parents:
                parents[after] = (row, ordinal)
                coverage.new += 1
                following.append(after)
        result.transitions += ordinal + 1
        if ordinal < 0:
            result.deadlocks += 1
            _evaluate(result, parents, row, final=True)
    return following


def _hashable(model: Model, row: Row) -> Row:
    try:
        hash(row)
    except TypeError:
        raise unhashable(f"a row of the model {model.name!r} is", row) from None
    return row


def _evaluate(result: Exploration, parents: dict[Row, tuple[Row, int] | None], row: Row, *, final: bool) -> None:
    for prop in result.model.properties:
        if (prop.kind is Kind.FINAL) is not final:
            continue
        arguments = read(result.model, prop.reads, row)
        answer = TRIVIAL if arguments is None else prop.check(*arguments)
        count = result.evaluations[prop.name]
        count.states += 1
        if answer is TRIVIAL:
            continue
        count.premise += 1
        if isinstance(answer, Finding) and prop.name not in result.found:
            path = rebuild(result.model, _ordinals(parents, row))
            result.found[prop.name] = Found(prop, answer, len(path) - 1, path)


def _ordinals(parents: dict[Row, tuple[Row, int] | None], row: Row) -> list[int]:
    ordinals: list[int] = []
    while (parent := parents[row]) is not None:
        row, ordinal = parent
        ordinals.append(ordinal)
    return ordinals[::-1]
