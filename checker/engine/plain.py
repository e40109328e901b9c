"""The plain engine: rows in a set, without tables or fingerprints. It is the oracle of the table engine.

For liveness, it keeps all rows with their successors.

    exploration = explore(model, Limits(depth=10))
    for found in exploration.violations:
        print(found.prop.name, found.depth, [step.row for step in found.path])
"""

import time
from collections.abc import Callable, Iterator

import psutil

from checker.engine.contract import first_rows
from checker.engine.discovery import Discovery
from checker.engine.growth import BOUNDED, Growth
from checker.engine.liveness import plain_liveness
from checker.engine.model import (
    NO_EXCEPTION,
    TRIVIAL,
    AnswerError,
    Finding,
    Kind,
    Model,
    Move,
    Property,
    RaisedError,
    Row,
    Trivial,
)
from checker.engine.result import VALUE, Coverage, Evaluations, Exploration, Limits, Stop
from checker.engine.semantics import answer, by_rule, in_state, raised, rebuild, route
from checker.engine.steps import count_steps, forget_steps, stop_counting

_Parents = dict[Row, tuple[Row, int] | None]
MEASURE_EVERY = 4096  # rows between two measurements of time and memory


def explore(
    model: Model,
    limits: Limits = Limits(),
    *,
    until_witnessed: bool = False,
    progress: Callable[[Exploration], None] = lambda _: None,
) -> Exploration:
    """Explore a model breadth-first. Raises ModelError.

    A finding ends the search only after its level is finished, so that its path is as short as possible. With
    `until_witnessed`, the search also ends when every `sometimes` property has its witness and no property is one of
    liveness. `progress` is called once for each level. A KeyboardInterrupt ends the search, with `Stop.INTERRUPTED`.
    """
    began = time.monotonic(), psutil.Process().memory_info().rss
    result = Exploration(model, "plain", limits)
    result.evaluations = {prop.name: Evaluations() for prop in model.properties}
    parents: _Parents = dict.fromkeys(first_rows(model))
    forget_steps(model)
    try:
        _explore(result, parents, began, progress, until_witnessed=until_witnessed)
    except KeyboardInterrupt:
        result.stop = Stop.INTERRUPTED
        _measure(result, began)
    count_steps(result)
    if result.stop in BOUNDED:
        result.growth = _growth(result, list(parents))
    return result


def _growth(result: Exploration, rows: list[Row]) -> str:
    """The content that grows with the depth, in words."""
    growth, begin = Growth(result.model), 0
    for count in result.levels:
        level = rows[begin : begin + count]
        pairs = ((column.name, row[place]) for place, column in enumerate(result.model.columns) for row in level)
        growth.add_depth(list(dict.fromkeys(pairs)))
        begin += count
    return growth.in_words(result.depth)


def _explore(
    result: Exploration,
    parents: _Parents,
    began: tuple[float, int],
    progress: Callable[[Exploration], None],
    *,
    until_witnessed: bool,
) -> None:
    """Explore level by level until there is a reason to stop, and store that reason in the result."""
    model, level = result.model, list(parents)
    graph: plain_liveness.Graph = {}
    while level:
        _hold(result, parents, level)
        _measure(result, began)
        progress(result)
        stop = result.wanted(until_witnessed) or result.limits.reached(result)
        if stop is not None:
            result.stop = stop
            if stop is Stop.DEPTH and model.finals:
                _examine_ends(result, parents, level, began)
            return
        level = _expand(result, parents, level, began, graph)
        if result.stop is not Stop.EXHAUSTED:
            return
    result.stop = result.wanted(until_witnessed) or Stop.EXHAUSTED
    if result.stop is Stop.EXHAUSTED and model.liveness:
        plain_liveness.judge(result, {row: graph[row] for row in parents})
        _measure(result, began)


def _hold(result: Exploration, parents: _Parents, level: list[Row]) -> None:
    """Evaluate the properties in a level. Only states that were evaluated count as seen, even after an interrupt."""
    count = 0
    try:
        for row in level:
            _evaluate(result, parents, row, final=False)
            count += 1
    finally:
        result.levels += [count] if count else []


def _measure(result: Exploration, began: tuple[float, int]) -> None:
    result.seconds = time.monotonic() - began[0]
    result.work = VALUE * result.transitions
    result.peak_bytes = max(result.peak_bytes, psutil.Process().memory_info().rss - began[1])


def _expand(
    result: Exploration,
    parents: _Parents,
    level: list[Row],
    began: tuple[float, int],
    graph: plain_liveness.Graph,
) -> list[Row]:
    following: list[Row] = []
    keeps_graph = bool(result.model.liveness)
    for row in _within_limits(result, level, began):
        edges = _edges(result, parents, row)
        if edges is None:
            continue
        if keeps_graph:
            graph[row] = edges
        for ordinal, (_, move, after) in enumerate(edges):
            coverage = result.coverage.setdefault(move.action, Coverage())
            coverage.fired += 1
            if after not in parents:
                parents[after] = (row, ordinal)
                coverage.new += 1
                following.append(after)
        result.transitions += len(edges)
        if not edges:
            result.deadlocks += 1
            _evaluate(result, parents, row, final=True)
    return following


def _examine_ends(result: Exploration, parents: _Parents, level: list[Row], began: tuple[float, int]) -> None:
    """Examine the level at the depth given for states without a successor; no other figure counts its moves."""
    stop_counting(result.model)
    for row in _within_limits(result, level, began):
        if _edges(result, parents, row) == []:
            result.deadlocks += 1
            _evaluate(result, parents, row, final=True)
    if result.stop is Stop.DEPTH:
        result.stop = result.wanted(until_witnessed=False) or result.stop


def _within_limits(result: Exploration, level: list[Row], began: tuple[float, int]) -> Iterator[Row]:
    """The rows of a level, until a limit inside a level is reached, which is stored in the result."""
    for number, row in enumerate(level):
        if number % MEASURE_EVERY == MEASURE_EVERY - 1:
            _measure(result, began)
            stop = result.limits.inside_a_level.reached(result)
            if stop is not None:
                result.stop = stop
                return
        yield row


def _edges(result: Exploration, parents: _Parents, row: Row) -> list[tuple[str, Move, Row]] | None:
    """The moves of a row with the rows after them; None if a function raises, which is a finding."""
    try:
        return list(by_rule(result.model, row))
    except AnswerError as error:
        _note_error(result, parents, row, error)
        return None


def _note_error(result: Exploration, parents: _Parents, row: Row, error: AnswerError) -> None:
    """Make a finding of an exception. Raises ModelError for any other error, with the path to the row."""
    if isinstance(error, RaisedError) and NO_EXCEPTION.name in result.found:
        return
    path = rebuild(result.model, route(result.model, parents, row))
    if not isinstance(error, RaisedError):
        raise in_state(error, path) from error
    result.found[NO_EXCEPTION.name] = Discovery(NO_EXCEPTION, raised(error), len(path) - 1, path)


def _evaluate(result: Exploration, parents: _Parents, row: Row, *, final: bool) -> None:
    for prop in result.model.properties:
        if (prop.kind is Kind.FINAL) is not final:
            continue
        verdict = _answer(result, parents, prop, row)
        count = result.evaluations[prop.name]
        count.states += 1
        if verdict is TRIVIAL:
            continue
        count.premise += 1
        if isinstance(verdict, Finding) and prop.name not in result.found and not prop.kind.is_liveness:
            path = rebuild(result.model, route(result.model, parents, row))
            result.found[prop.name] = Discovery(prop, verdict, len(path) - 1, path)


def _answer(result: Exploration, parents: _Parents, prop: Property, row: Row) -> Finding | Trivial | None:
    """The answer of a property; TRIVIAL if it raises, which is a finding of another one."""
    try:
        return answer(result.model, prop, row)
    except AnswerError as error:
        _note_error(result, parents, row, error)
        return TRIVIAL
