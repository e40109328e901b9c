"""The reduced search keeps the states of processes, all deadlocks and all violations; each of its conditions is needed.

The full space is enumerated by the functions of `checker.engine.semantics` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple

import pytest

from benchmarks import models
from checker.engine import Finding, Limits, Model, ModelError, Property, Read, Stop
from checker.engine import search as full_search
from checker.engine.model import Row
from checker.engine.reduction import answers, channels, drains, futures, reduced_search
from checker.engine.reduction.drains import Drains
from checker.engine.reduction.eligible import eligible_channels
from checker.engine.search import explore
from checker.engine.semantics import successors
from checker.engine.tables import Tables
from checker.models import rounds
from tests.support.random_processes import (
    cleared_by_another,
    cleared_by_its_receiver,
    cleared_by_its_sender,
    random_system,
)
from tests.support.reduced_searches import deliveries, searched

SYSTEMS = 2000
CHUNK = 100
CHUNKS = [pytest.param(n, marks=pytest.mark.slow if n >= SYSTEMS // 2 else ()) for n in range(0, SYSTEMS, CHUNK)]
MOST = 3000  # states of a system that a test enumerates


class Space(NamedTuple):
    """Reachable rows: their number, their values except those of channels, and the rows without a successor."""

    states: int
    of_processes: frozenset[Row]
    deadlocks: frozenset[Row]


def enumerated(model: Model, after: Callable[[Row, Row], Row] = lambda _, row: row) -> Space | None:
    """The space of a model, in which `after` changes each successor; None if it has more than MOST states."""
    held = {channel.column for channel in model.channels}
    kept = [place for place, column in enumerate(model.columns) if column.name not in held]
    seen, waiting, deadlocks = {model.initial()}, [model.initial()], set()
    while waiting:
        row = waiting.pop()
        found = [after(row, each) for _, each in successors(model, row)]
        if not found:
            deadlocks.add(row)
        waiting += (new := {*found} - seen)
        seen |= new
        if len(seen) > MOST:
            return None
    return Space(len(seen), frozenset(tuple(row[place] for place in kept) for row in seen), frozenset(deadlocks))


def reduced(model: Model) -> tuple[Space | None, int]:
    """The space that the reduced search reaches, enumerated by its last answers, and its number of states."""
    tables = Tables(model)
    Drains(tables, eligible_channels(model).channels)
    found = searched(model, tables)
    return enumerated(model, deliveries(model, tables)), found.states


WRITTEN_BY_HAND = [cleared_by_its_receiver(), cleared_by_its_sender(), cleared_by_another()]


def differences(systems: Iterable[Model]) -> Iterator[str]:
    """The names of systems whose reduced search differs from their full space."""
    for model in systems:
        full = enumerated(model)
        if full is None:
            continue
        space, states = reduced(model)
        kept = space is not None and (space.of_processes, space.deadlocks) == (full.of_processes, full.deadlocks)
        if not kept or space is None or states != space.states:
            yield model.name


@pytest.mark.parametrize("first", CHUNKS)
def test_a_reduced_search_keeps_states_of_processes_and_deadlocks(first: int) -> None:
    assert list(differences(map(random_system, range(first, first + CHUNK)))) == []


@pytest.mark.parametrize("system", WRITTEN_BY_HAND, ids=lambda model: model.name)
def test_a_system_with_a_cleared_channel_keeps_them_too(system: Model) -> None:
    assert list(differences([system])) == []


@pytest.mark.parametrize("servers", [3])
def test_the_election_has_the_known_number_of_deadlocks_in_fewer_states(servers: int) -> None:
    model = models.small_election(servers)
    full, (space, _) = explore(model), reduced(model)
    assert space is not None
    assert full.states == 6544
    assert len(space.deadlocks) == full.deadlocks
    assert 4 * space.states < full.states


def test_a_violation_has_a_shortest_path() -> None:
    model = rounds.election(3)
    found = reduced_search.explore(model)
    assert found.stop is Stop.FOUND
    assert found.found["OneLeader"].depth == explore(model).found["OneLeader"].depth


def test_a_violation_that_is_not_found_again_is_said_to_be_perhaps_not_shortest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = rounds.election(3)
    unfinished = explore(model, Limits(depth=1))
    monkeypatch.setattr(full_search, "explore", lambda *_, **__: unfinished)
    found = reduced_search.explore(model)
    assert found.stop is Stop.FOUND
    assert "not shown to be shortest" in found.reduction
    steps = found.found["OneLeader"].path
    for before, step in pairwise(steps):
        assert (step.move, step.row) in [*successors(model, before.row)]


def test_a_channel_that_a_property_reads_is_not_drained() -> None:
    model = rounds.election(3)
    read = Property("Short", (Read("1->2"),), lambda content: Finding("long") if len(content) > 9 else None)
    assert "1->2" in eligible_channels(model.with_properties([read])).reasons


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "an arrival that changes the receiver": (
        answers.Answers, "_sent_unchanged",
        lambda self, cell, q: () if self._tables.result(cell, q.operation) & 0xFFFFFFFF < 0xFFFFFFFF else None,
    ),
    "an arrival that changes the receiver later": (
        answers.Answers, "_arrival", lambda self, cell, q: self._sent_unchanged(cell, q),
    ),
    "other events of the receiver from the channel": (answers.Answers, "_is_behind", lambda *_: True),
    "a removal that does not commute": (channels.ChannelComparison, "removal_commutes", lambda *_: True),
    "a removal that others may prevent": (answers.Answers, "_from_others", lambda *_: frozenset()),
    "an insertion that does not commute": (channels.ChannelComparison, "insertion_commutes", lambda *_: True),
    "what a sender may still send": (futures.Futures, "of", lambda *_: frozenset()),
    "a repetition that has an effect": (answers.Answers, "_repeats", lambda *_: True),
    "contents that never become alike": (
        channels.ChannelComparison, "_until_alike", lambda self, one, other, inert: [],
    ),
    "a refuted answer": (drains.Drains, "holds", lambda self: True),
}  # fmt: skip
"""Conditions of the reduction, each with the function that ignores it."""
NOTICED_BY = {
    "an arrival that changes the receiver later": 130,
    "other events of the receiver from the channel": 130,
    "a repetition that has an effect": 1321,
    "contents that never become alike": 298,
}
"""The first random system that notices a mutant, where no system written by hand does: a search takes a minute."""


def is_noticed(numbers: Iterable[int]) -> bool:
    """Whether some system differs from its full space, or has a drained row that its model does not have."""
    try:
        systems = chain(WRITTEN_BY_HAND, map(random_system, numbers))
        return next(differences(systems), None) is not None
    except (ModelError, StopIteration):
        return True


@pytest.mark.parametrize("name", MUTANTS)
def test_each_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, the reduced search of some system misses a state or a deadlock, or contradicts itself."""
    owner, attribute, without = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, without)
    assert is_noticed([NOTICED_BY[name]] if name in NOTICED_BY else [])
