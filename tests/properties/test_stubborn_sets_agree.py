"""Stubborn sets keep the states of each process, joint readings, and deadlocks; each of their conditions is needed.

The full space is enumerated by the functions of `checker.engine.semantics` alone. The reduced space is enumerated by
them too, with the moves that `StubbornSets.chosen` names in each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks import models
from checker.engine import Model, ModelError, Outcome, Stop
from checker.engine.model import Actor, Column, Move, Read, Row, Rule, Send
from checker.engine.reduction import events, idle_rules, local_graph, plan, reduced_search, stubborn
from checker.engine.reduction.eligible import eligible_channels, reason_against_stubborn_sets
from checker.engine.result import disagreements
from checker.engine.search import explore
from checker.engine.semantics import by_rule, read
from checker.engine.tables import Tables
from checker.models import rounds
from checker.scenario import bundled, load
from tests.support.pure_kernels import use_pure
from tests.support.random_processes import (
    answers_for_ever,
    answers_in_any_order,
    asks_for_more,
    becomes_important,
    bounded_system,
    cleared_by_another,
    cleared_by_its_receiver,
    cleared_by_its_sender,
    jumps_before_a_delivery,
    jumps_in_between,
    merges_with_the_newest,
    ordered_system,
    random_system,
    replaces_the_oldest,
    sends_two,
    toggles_for_ever,
    turns_back,
)
from tests.support.reduced_searches import deliveries, searched

SYSTEMS = 2000
CHUNK = 100
CHUNKS = [pytest.param(n, marks=pytest.mark.slow if n >= SYSTEMS // 4 else ()) for n in range(0, SYSTEMS, CHUNK)]
MOST = 3000  # states of a system that a test enumerates


class Kept(NamedTuple):
    """The answers of a space: the values of each column, joint readings, and deadlocks, all without channels."""

    values: frozenset[tuple[str, Any]]
    readings: frozenset[tuple[str, Any]]
    deadlocks: frozenset[Row]


def enumerated(
    model: Model,
    chosen: Callable[[Row], set[str] | None] = lambda _: None,
    drained: Callable[[Row, Row], Row] = lambda _, row: row,
    most: int = MOST,
) -> tuple[int, Kept] | None:
    """The number of states, and their answers, if only chosen columns move; None if there are more than `most`.

    `drained` changes each successor of a row.
    """
    held = {channel.column for channel in model.channels}
    kept = [(place, column.name) for place, column in enumerate(model.columns) if column.name not in held]
    columns_of = {rule.name: {each.column for each in rule.reads} for rule in model.rules}
    seen, waiting, deadlocks = {model.initial()}, [model.initial()], set[Row]()
    while waiting:
        row = waiting.pop()
        columns = chosen(row)
        found = [after for rule, _, after in by_rule(model, row) if columns is None or columns_of[rule] <= columns]
        if not found:
            deadlocks.add(tuple(row[place] for place, _ in kept))
        new = {drained(row, after) for after in found} - seen
        waiting += new
        seen |= new
        if len(seen) > most:
            return None
    values = frozenset((name, row[place]) for row in seen for place, name in kept)
    readings = frozenset((prop.name, read(model, prop.reads, row)) for row in seen for prop in model.properties)
    return len(seen), Kept(values, readings, frozenset(deadlocks))


def reduced(model: Model) -> tuple[int, tuple[int, Kept] | None]:
    """The number of states of the reduced search, and the space of its stubborn sets."""
    tables = Tables(model)
    decided = stubborn.StubbornSets(tables, eligible_channels(model).channels)
    found = searched(model, tables)

    def chosen(row: Row) -> set[str] | None:
        columns = decided.chosen(tables.row(row))
        return None if columns is None else {model.columns[column].name for column in columns}

    return found.states, enumerated(model, chosen, deliveries(model, tables))


WRITTEN_BY_HAND = [
    turns_back(),
    answers_for_ever(),
    becomes_important(),
    sends_two(),
    cleared_by_its_receiver(),
    cleared_by_its_sender(),
    jumps_before_a_delivery(),
    jumps_in_between(),
    toggles_for_ever(),
    merges_with_the_newest(),
    answers_in_any_order(),
    asks_for_more(),
]


def differences(systems: Iterable[Model], *, counts: bool = True) -> Iterator[str]:
    """The names of systems whose reduced search differs from their full space.

    With `counts`, the search also has as many states as the space of its stubborn sets.
    """
    for model in systems:
        full = enumerated(model)
        if full is None:
            continue
        states, space = reduced(model)
        if space is None or space[1] != full[1] or (counts and states != space[0]):
            yield model.name


@pytest.mark.parametrize("first", CHUNKS)
def test_stubborn_sets_keep_values_readings_and_deadlocks(first: int) -> None:
    assert list(differences(map(ordered_system, range(first, first + CHUNK)))) == []


@pytest.mark.parametrize("first", CHUNKS)
def test_bounded_channels_and_idle_rules_keep_them_too(first: int) -> None:
    assert list(differences(map(bounded_system, range(first, first + CHUNK)))) == []


@pytest.mark.parametrize("system", WRITTEN_BY_HAND, ids=lambda model: model.name)
def test_a_system_written_by_hand_keeps_them_too(system: Model) -> None:
    assert reason_against_stubborn_sets(system, eligible_channels(system)) is None
    assert list(differences([system])) == []


def test_a_row_drains_the_same_channel_however_much_the_tables_know() -> None:
    """The answer for the first channel of a row was unknown when that for a later one was yes."""
    assert list(differences([bounded_system(1234)])) == []


def test_a_process_without_channels_that_clears_one_is_refused() -> None:
    system = cleared_by_another()
    reason = reason_against_stubborn_sets(system, eligible_channels(system))
    assert reason == "the rule 'clear' belongs to neither a process nor a channel"


def test_the_election_keeps_its_answers_in_fewer_states() -> None:
    model = models.small_election(3)
    full, (states, space) = enumerated(model, most=10_000), reduced(model)
    assert full is not None and space is not None
    assert full[0] == 6544
    assert space == (states, full[1])
    assert 6 * states < full[0]


def test_closures_that_are_forgotten_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for 32 of them in the election."""
    model = models.small_election(3)
    states = reduced_search.explore(model, mode="stubborn").states
    monkeypatch.setattr(plan, "RECORDS", 1 << 12)
    assert reduced_search.explore(model, mode="stubborn").states == states
    assert (
        list(differences(chain(WRITTEN_BY_HAND, map(ordered_system, range(20)), map(bounded_system, range(20))))) == []
    )


def test_an_operation_that_is_observed_late_needs_no_other_search_if_it_shows_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lost leader is noticed only by servers that have one, and the search begins again for the rules that start."""
    held = []
    hold = idle_rules.IdleRules.hold
    monkeypatch.setattr(idle_rules.IdleRules, "hold", lambda *each: held.append(hold(*each)) or held[-1])
    model = models.fast_leader_election(3)
    found = reduced_search.explore(model, mode="stubborn")
    assert held.count(False) == 1
    full = enumerated(model, most=20_000)
    assert full is not None
    assert reduced(model) == (found.states, (found.states, full[1]))


@pytest.mark.parametrize(("possible", "holds"), [({0, 1}, True), ({1}, False)])
def test_a_late_operation_that_only_one_cell_of_a_pair_allows_begins_the_search_again(
    possible: set[int], *, holds: bool
) -> None:
    """A rule reads nothing of the cells 0 and 1, and lists an operation that was not yet observed."""

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        return Outcome(values) if values[0] in possible else None

    reads = (Read("process", lambda _: "alike"), Read("other"))
    late = Rule("late", reads, lambda *_: [Move("late", ("process",), (Send("process", "late"),))])
    columns, actor = (Column("process", 0), Column("other", 0)), Actor("process", ("process",), step)
    tables = Tables(Model("late", columns, (actor,), (late,)))
    idle, cells = idle_rules.IdleRules(tables), [tables.cell(0, value, "a test") for value in (0, 1)]
    assert idle.show_alike(*cells)
    operation = tables.operation_number(Send("process", "late"))
    idle.listed(0, [tables.effect([operation])])
    assert idle.hold(np.zeros(1, np.uint64)) is holds


def test_a_violation_has_a_shortest_path() -> None:
    model = rounds.election(3)
    found = reduced_search.explore(model, mode="stubborn")
    assert found.stop is Stop.FOUND
    assert found.found["OneLeader"].depth == explore(model).found["OneLeader"].depth


def test_channels_that_do_not_say_what_appends_are_refused() -> None:
    model = random_system(0)
    assert all(channel.appends is None for channel in model.channels)
    found = reduced_search.explore(model, mode="stubborn")
    assert found.reduction == "none is possible: 0>1: the model does not say which operations append"
    assert found.states == explore(model).states


def test_an_operation_that_is_declared_to_append_and_does_not_is_an_error() -> None:
    """The channel puts a message before all others."""
    model = rounds.election(3)

    def step(values: tuple[Any, ...], operation: Any) -> Outcome | None:
        (waiting,) = values
        if operation == "pop":
            return Outcome((waiting[1:],)) if waiting else None
        return Outcome(((*operation, *waiting),))

    actors = tuple(each if "->" not in each.name else replace(each, step=step) for each in model.actors)
    with pytest.raises(ModelError, match="does not put the same messages behind all others"):
        reduced_search.explore(replace(model, actors=actors), mode="stubborn")


def test_a_channel_that_replaces_its_oldest_message_is_an_error() -> None:
    """The engine asks what the sending does before the search carries it out."""
    with pytest.raises(ModelError, match="another message is the oldest one then"):
        reduced_search.explore(replaces_the_oldest(), mode="stubborn")


def ignoring_others(self: events.LocalEvents, process: int, cell: int, words: list[int]) -> events.Event | None:
    """An event without what it sends to columns that are no outputs, and without operations that do not append."""
    known = {self.processes[process].column, *self._positions[process]}
    kept, left = list[int](), list(words)
    while left:
        count = events.SET_WORDS if left[0] >> 32 & events.SET else 1
        appends = self._channels[0].appends
        assert appends is not None
        own = count > 1 or left[0] >> 32 == self.processes[process].column
        if own or (left[0] >> 32 in known and appends(self._tables.operation(left[0] & 0xFFFFFFFF))):
            kept += left[:count]
        left = left[count:]
    try:
        return EVENT(self, process, cell, kept)
    except events.IrregularError:
        return events.Event(cell, ())


EVENT = events.LocalEvents._event


class KernelMutant(NamedTuple):
    """A line of a kernel, and what it is instead."""

    module: str
    right: str
    wrong: str


KERNEL_MUTANTS = {
    "what others may still send": KernelMutant(
        "stubborn_kernels", "answer = needs_sender(p, U64(c), g, r, missing, counters)", "pass"
    ),
    "a message that can arrive beside one that cannot": KernelMutant(
        "message_kernels",
        "possible |= may_come & ~record[refused + w]",
        "possible |= ZERO if may_come & record[refused + w] else may_come",
    ),
    "a message with an effect": KernelMutant(
        "message_kernels", "elif not is_redundant(local, step, g):", "elif False:"
    ),
    "a message that has an effect later": KernelMutant(
        "message_kernels",
        "known, size = spread(cell, messages, bits, stamp, size, g, r, missing, counters)\n        if known",
        "known, _ = spread(cell, messages, bits, stamp, size, g, r, missing, counters)\n        if known",
    ),
    "later cells": KernelMutant(
        "closure_kernels", "        size = reach(after, stamp, size, r)\n    return", "    return"
    ),
    "a process that turns back": KernelMutant(
        "closure_kernels", "r.returns[local] = stamp\n", "r.returns[local] = U32(0)\n"
    ),
    "answers that are answered": KernelMutant(
        "stubborn_kernels", "if sent[first + q * words + w] & ~r.records[r.views[q], silent + w]:", "if False:"
    ),
    "a crash that may come": KernelMutant("stubborn_kernels", "if allowed:\n            return False", "pass"),
    "an arrival that changes the receiver later": KernelMutant(
        "message_kernels",
        "known, size = spread(cell, messages, bits, stamp, size, g, r, missing, counters)\n        later",
        "known, _ = spread(cell, messages, bits, stamp, size, g, r, missing, counters)\n        later",
    ),
    "other messages behind an answer": KernelMutant(
        "message_kernels",
        "elif sends and answer == YES and sends_alike(cell, sends, messages, bits, g):",
        "elif False:",
    ),
    "an inert answer that is answered": KernelMutant(
        "drain_kernels", "if sends and not is_silent(g.sends[sends], ZERO, r):", "if False:"
    ),
    "a sending that a full channel loses": KernelMutant(
        "stubborn_kernels", "if answer != NO:\n        return answer", "return I64(YES)"
    ),
    "a message that changes the receiver after the last one": KernelMutant(
        "stubborn_kernels",
        "return I64(are_redundant(after, r.sent, U64(channel), g, r, missing, counters))",
        "return I64(YES)",
    ),
    "a message that arrives beside the set": KernelMutant(
        "stubborn_kernels", "r.masks_apart[q, w] = r.held[q, w]", "r.masks_apart[q, w] = ZERO"
    ),
    "what a process beside the set may do before": KernelMutant(
        "stubborn_kernels", "settle(chosen, r.masks_apart", "settle(chosen | r.needs[p], r.masks_apart"
    ),
    "a message that is sent after the first move of the set": KernelMutant(
        "stubborn_kernels", "    may_send(channel, r.views, plan, g, r)\n", ""
    ),
    "a sending into a full channel": KernelMutant(
        "stubborn_kernels",
        "if answer == NO:\n                    needed |= ONE",
        "if False:\n                    needed |= ONE",
    ),
}
"""Conditions of stubborn sets in kernels, each with a line that ignores it."""

MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "a joint reading that changes": (local_graph.LocalGraphBuilder, "_is_unseen", lambda *_: True),
    "a rule that is not idle": (idle_rules.IdleRules, "hold", lambda *_: True),
    "a joint reading of an idle rule": (idle_rules.IdleRules, "show_alike", lambda *_: True),
    "an event that clears a channel": (events.LocalEvents, "_event", ignoring_others),
}
"""Conditions of stubborn sets, each with the function that ignores it."""


def is_noticed(most: int = SYSTEMS) -> bool:
    """Whether the answers of some system differ from those of its full space, or a system contradicts itself."""
    generated = (each for n in range(most) for each in (ordered_system(n), bounded_system(n)))
    try:
        return next(differences(chain(WRITTEN_BY_HAND, generated), counts=False), None) is not None
    except (ModelError, StopIteration):
        return True


@pytest.mark.parametrize("name", MUTANTS)
def test_each_condition_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, the reduced search of some system misses a value, a reading or a deadlock."""
    owner, attribute, without = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, without)
    assert is_noticed()


@pytest.mark.parametrize("name", KERNEL_MUTANTS)
def test_each_condition_of_a_kernel_is_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right kernel searches first, so that the tables know what the wrong one asks."""
    use_pure(monkeypatch, *KERNEL_MUTANTS[name])
    assert is_noticed()


@pytest.mark.parametrize("systems", [15, pytest.param(SYSTEMS, marks=pytest.mark.slow)])
def test_no_kernel_uses_an_index_out_of_range(systems: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search itself is in Python, where NumPy checks each index; compiled kernels check none."""
    use_pure(monkeypatch, searches=True)
    assert list(differences(each(n) for n in range(systems) for each in (ordered_system, bounded_system))) == []


@pytest.mark.parametrize("name", [pytest.param("highest-id-wins", marks=pytest.mark.slow), "leader-stays"])
def test_no_kernel_uses_an_index_out_of_range_in_an_ensemble(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded channels, rules over several columns and, in the first scenario, a server that stops."""
    job = load(next(path for path in bundled() if path.stem == name))
    found = reduced_search.explore(job.model, job.limits, until_witnessed=job.until_witnessed, mode="stubborn")
    use_pure(monkeypatch, searches=True)
    again = reduced_search.explore(job.model, job.limits, until_witnessed=job.until_witnessed, mode="stubborn")
    assert found.reduction.startswith("stubborn sets")
    assert disagreements(found, again) == []
