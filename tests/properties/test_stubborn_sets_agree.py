"""Stubborn sets keep the states of each process, joint readings, and deadlocks; each of their conditions is needed.

The full space is enumerated by the functions of `checker.engine.semantics` alone. The reduced space is enumerated by
them too, with the moves that `StubbornSets.chosen` names in each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import pytest

from benchmarks import models
from checker.engine import Model, ModelError, Read, Stop
from checker.engine.kernels import stubborn_kernels
from checker.engine.model import Row
from checker.engine.reduction import events, reduced_search, stubborn, views
from checker.engine.reduction.eligible import eligible_channels, reason_against_stubborn_sets
from checker.engine.search import Search, explore
from checker.engine.semantics import by_rule, read
from checker.engine.tables import Tables
from checker.models import rounds
from tests.support.random_processes import (
    answers_for_ever,
    becomes_important,
    cleared_by_another,
    cleared_by_its_receiver,
    cleared_by_its_sender,
    ordered_system,
    turns_back,
)

SYSTEMS = 2000
CHUNK = 100
MOST = 3000  # states of a system that a test enumerates


class Kept(NamedTuple):
    """The answers of a space: the values of each column, joint readings, and deadlocks, all without channels."""

    values: frozenset[tuple[str, Any]]
    readings: frozenset[tuple[str, Any]]
    deadlocks: frozenset[Row]


def enumerated(model: Model, chosen: Callable[[Row], set[str] | None] = lambda _: None) -> tuple[int, Kept] | None:
    """The number of states, and their answers, if only chosen columns move; None if it has more than MOST states."""
    held = {channel.column for channel in model.channels}
    kept = [(place, column.name) for place, column in enumerate(model.columns) if column.name not in held]
    columns_of = {rule.name: {each.column for each in rule.reads} for rule in model.rules}
    seen, waiting, deadlocks = {model.initial()}, [model.initial()], set[Row]()
    while waiting:
        row = waiting.pop()
        columns = chosen(row)
        found = [
            after for rule, _, after in by_rule(model, row) if columns is None or columns_of[rule] <= columns
        ]
        if not found:
            deadlocks.add(tuple(row[place] for place, _ in kept))
        new = {*found} - seen
        waiting += new
        seen |= new
        if len(seen) > MOST:
            return None
    values = frozenset((name, row[place]) for row in seen for place, name in kept)
    readings = frozenset((prop.name, read(model, prop.reads, row)) for row in seen for prop in model.properties)
    return len(seen), Kept(values, readings, frozenset(deadlocks))


def reduced(model: Model) -> tuple[int, tuple[int, Kept] | None]:
    """The number of states of the reduced search, and the space of its stubborn sets."""
    tables = Tables(model)
    decided = stubborn.StubbornSets(tables, eligible_channels(model).channels)
    found = Search(model, reduced=tables).run()

    def chosen(row: Row) -> set[str] | None:
        columns = decided.chosen(tables.row(row))
        return None if columns is None else {model.columns[column].name for column in columns}

    return found.states, enumerated(model, chosen)


WRITTEN_BY_HAND = [
    turns_back(),
    answers_for_ever(),
    becomes_important(),
    cleared_by_its_receiver(),
    cleared_by_its_sender(),
    cleared_by_another(),
]


def differences(systems: Iterable[Model]) -> Iterator[str]:
    """The names of systems whose reduced search differs from their full space."""
    for model in systems:
        full = enumerated(model)
        if full is None:
            continue
        states, space = reduced(model)
        if space is None or space[1] != full[1] or states != space[0]:
            yield model.name


@pytest.mark.parametrize("first", range(0, SYSTEMS, CHUNK))
def test_stubborn_sets_keep_values_readings_and_deadlocks(first: int) -> None:
    assert list(differences(map(ordered_system, range(first, first + CHUNK)))) == []


@pytest.mark.parametrize("system", WRITTEN_BY_HAND, ids=lambda model: model.name)
def test_a_system_written_by_hand_keeps_them_too(system: Model) -> None:
    assert reason_against_stubborn_sets(system, eligible_channels(system)) is None
    assert list(differences([system])) == []
