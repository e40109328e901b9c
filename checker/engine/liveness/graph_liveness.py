"""Liveness for the table engine: the algorithm of `plain_liveness`, on numbers in place of rows.

The graph of all states exists only for a model with properties of liveness. For each move it has the number of the
target state (u32) and, for fairness, the move's label (u16). For each state it has the number of moves (u32) and its
judgement (u32). Rules:

- States are numbered in the order of discovery, and the moves of a state are in the order of ordinals, so that a path
  is a list of ordinals, as in all other modules.
- Data that grows with the number of moves is in unnamed files in the temporary folder, which are mapped into memory for
  reading. Judgements are in memory.

Each property is judged separately: its value in each state, the components of the examined part, and the components in
which a run may stay (`graph_kernels`). If there is one, a shortest path into it and a walk around it are searched for,
and passed as ordinals to `checker.engine.liveness.lasso`, which checks them with the plain steps of the model.

The additional memory is known in advance: NEEDED bytes per state.
"""

import time
from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import ReservedArray
from checker.engine.discovery import Discovery
from checker.engine.kernels import graph_kernels as kernels
from checker.engine.liveness.lasso import forcing, lasso
from checker.engine.model import Kind, ModelError, Property
from checker.engine.result import Exploration, Liveness
from checker.engine.semantics import length
from checker.engine.states.frontier import OriginLog, RecordFile
from checker.engine.tables import Tables

MOST_LABELS = 1 << 16

Array = np.ndarray[Any, Any]


class Moves(NamedTuple):
    """The moves of state s are offsets[s] to offsets[s + 1] (u64) of `targets` (u32) and `labels` (u16, or none)."""

    offsets: Array
    targets: Array
    labels: Array


class Graph:
    """Records the moves of a search; `finish` gives them as arrays."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._marks = ReservedArray(np.uint32, kernels.MOST_STATES).array
        self.has_labels = tables.has_rules_in_labels
        self._targets, self._labels, self._degrees = (RecordFile(kind) for kind in (np.uint32, np.uint16, np.uint32))

    @property
    def bytes(self) -> int:
        """The size of the moves and judgements in bytes."""
        return sum(file.bytes for file in self.files.values()) + self._degrees.size * self._marks.itemsize

    def marks(self, states: int = 0) -> Array:
        """The judgement of each state (u32), with room for this number of states. Raises ModelError."""
        if states > len(self._marks):
            raise ModelError("the state space is too large for liveness to be judged in this process")
        return self._marks

    def add(self, first: int, rows: int, origins: Array, targets: Array) -> None:
        """Add all moves of the next rows, in order; `first` is the number of the first row in its block."""
        labels = np.empty(len(targets) if self.has_labels else 0, np.uint16)
        sources, tables = np.empty(len(targets), np.uint16), self.tables
        if len(tables.labels) > MOST_LABELS:
            raise ModelError(f"the moves of this model have more than {MOST_LABELS:,} units of fairness")
        kernels.describe(origins, len(targets), tables.entries.view, first, sources, labels)
        self._degrees.extend(np.bincount(sources, minlength=rows))
        self._targets.extend(targets)
        self._labels.extend(labels)

    def finish(self) -> Moves:
        """All moves, in the form for `graph_kernels`."""
        degrees = self._degrees.read()
        offsets = np.zeros(len(degrees) + 1, np.uint64)
        np.cumsum(degrees, out=offsets[1:])
        return Moves(offsets, self._targets.read(), self._labels.read())

    @property
    def files(self) -> dict[str, RecordFile]:
        """The files of the moves, by name."""
        return {"targets": self._targets, "labels": self._labels, "degrees": self._degrees}

    def close(self) -> None:
        """Close and delete the files."""
        for file in self.files.values():
            file.close()


NONE = int(kernels.NONE)
NEEDED = 64  # bytes a state: offsets, its component, the order of components, the stack of the search, edges


def judge(result: Exploration, prop: Property, graph: Graph, moves: Moves, history: OriginLog) -> None:
    """Judge one property of liveness on the whole graph. Raises ModelError where tables and model disagree."""
    began = time.monotonic()
    part = _ExaminedGraph(prop, graph, moves)
    if part.violated:
        levels = np.concatenate(([0], np.cumsum(result.levels))).astype(np.uint64)
        result.found[prop.name] = _LassoSearch(part, result, history).found(levels)
    result.liveness[prop.name] = Liveness(
        goals=int(np.count_nonzero(part.part == kernels.GOAL)),
        open=int(np.count_nonzero(part.part == kernels.OPEN)),
        states=int(np.count_nonzero(part.examined)),
        edges=int(np.diff(moves.offsets)[part.examined].sum()),
        components=part.components,
        traps=int(np.count_nonzero(part.traps)),
        forced=part.forced(),
        seconds=time.monotonic() - began,
        size=graph.bytes,
    )


class _ExaminedGraph:
    def __init__(self, prop: Property, graph: Graph, moves: Moves) -> None:
        self.prop = prop
        self.offsets, self.targets, self.labels = moves
        offsets, targets, _ = moves
        states = len(offsets) - 1
        self.part = _answers_of(graph, prop, states)
        self._order, self._starts = np.empty(states, np.uint32), np.empty(states + 1, np.uint32)
        self.place, self.components = self._components_of(self.part)
        self.first_lost = NONE
        self._tables = graph.tables
        self.unit_of, self.strong = _units(graph.tables, prop)
        if prop.kind is Kind.RECOVERABLE:
            lost, self.traps = np.zeros(self.components, np.uint8), np.zeros(self.components, np.uint8)
            self.first_lost = int(
                kernels.find_closed(
                    offsets,
                    targets,
                    self.part,
                    self.place,
                    self._order,
                    self._starts,
                    self.components,
                    lost,
                    self.traps,
                )
            )
        else:
            self.traps = self._fair_components(self.place, self.components, self.unit_of, self.strong)
        self.examined = (self.place & kernels.FINISHED != 0) & (self.place != kernels.OUTSIDE)

    def _components_of(self, part: Array) -> tuple[Array, int]:
        """The component of each state of a part, as `place`, and their number; their states are in `_order`."""
        place = np.where(part == kernels.GOAL, kernels.OUTSIDE, np.uint32(0))
        calls = [np.empty(len(part), kind) for kind in (np.uint32, np.uint32, np.uint64)]
        return place, int(
            kernels.components(self.offsets, self.targets, part, place, self._order, self._starts, *calls)
        )

    def _fair_components(self, place: Array, count: int, unit_of: Array, strong: Array) -> Array:
        """For each component whether a run in it is fair, with these units; `place` gets those of smaller parts."""
        rest = np.empty(len(place) if strong.any() else 0, np.uint8)
        inner, traps = place, np.zeros(0, np.uint8)
        while True:
            fair = np.zeros(count, np.uint8)
            rooms = [np.zeros(len(strong), np.uint32) for _ in range(4)]
            again = kernels.find_fair(
                self.offsets, self.targets, self.labels, unit_of, strong, inner, self._order, self._starts, count,
                *rooms, fair, rest,
            )  # fmt: skip
            traps = np.concatenate((traps, fair))
            if not again:
                return traps
            inner, count = self._components_of(rest)
            is_judged = rest == kernels.OPEN
            place[is_judged] = inner[is_judged] + np.uint32(len(traps))

    def forced(self) -> tuple[str, ...]:
        """The actions that need never happen, by which alone the violated property would hold."""
        if self.prop.kind is not Kind.EVENTUALLY or not self.traps.any():
            return ()
        free = {label.action for label, unit in zip(self._tables.labels, self.unit_of, strict=True) if not unit} - {""}

        def holds(actions: frozenset[str]) -> bool:
            in_trap = self.traps[np.where(self.examined, self.place & kernels.NUMBER, 0)].astype(bool) & self.examined
            place, count = self._components_of(np.where(in_trap, kernels.OPEN, kernels.GOAL).astype(np.uint8))
            return not self._fair_components(place, count, *_units(self._tables, self.prop, actions)).any()

        return forcing(free, holds)

    @property
    def violated(self) -> bool:
        """Whether a run from an open state never reaches a goal, or (RECOVERABLE) no run from it can."""
        return self.first_lost != NONE if self.prop.kind is Kind.RECOVERABLE else bool(self.traps.any())

    def units(self, state: int) -> set[int]:
        labels = self.labels[int(self.offsets[state]) : int(self.offsets[state + 1])]
        return {int(unit) for unit in self.unit_of[labels]} - {0}

    def strong_units(self, state: int) -> set[int]:
        """The strong units that can happen in some state of its component."""
        if not self.strong.any():
            return set()
        states = map(int, np.flatnonzero(self.place == self.place[state]))
        return {unit for other in states for unit in self.units(other) if self.strong[unit]}

    def target(self, state: int, ordinal: int) -> int:
        return int(self.targets[int(self.offsets[state]) + ordinal])

    def unit(self, state: int, ordinal: int) -> int:
        return int(self.unit_of[self.labels[int(self.offsets[state]) + ordinal]])


def _answers_of(graph: Graph, prop: Property, states: int) -> Array:
    """The value of a property in each state: GOAL, OPEN or PASSED."""
    verdicts = graph.tables.verdicts
    position = graph.tables.model.properties.index(prop)
    place = next(
        verdicts.place(number)
        for number, verdict in enumerate(verdicts.verdicts)
        if position in verdict.bundle.properties
    )
    answers_by_verdict = [
        kernels.GOAL if position in verdict.found else kernels.OPEN if position in verdict.premises else kernels.PASSED
        for verdict in verdicts.verdicts
    ]
    by_judgement = np.array(answers_by_verdict, np.uint8)[verdicts.judgements.view[:, place]]
    answers: Array = by_judgement[graph.marks(states)[:states]]
    return answers


def _units(tables: Tables, prop: Property, fair_too: frozenset[str] = frozenset()) -> tuple[Array, Array]:
    """For each label the number of its unit of fairness, 0 for none; these actions are fair as well. For each unit
    whether it is strong.
    """
    units, strong = np.zeros(len(tables.labels), np.uint32), np.zeros(len(tables.labels), np.uint8)
    if prop.kind is Kind.EVENTUALLY:
        # The first label does not belong to a move.
        for number, label in enumerate(tables.labels[1:], 1):
            if label.action in fair_too or tables.model.unit(prop, label.rule, label.action) is not None:
                units[number] = number
                strong[number] = tables.model.is_strong((label.rule, label.action))
    return units, strong


class _LassoSearch:
    def __init__(self, part: _ExaminedGraph, result: Exploration, history: OriginLog) -> None:
        self._part, self._model, self._history = part, result.model, history
        states = len(part.part)
        self._parents, self._ways = np.full(states, NONE, np.uint32), np.empty(states, np.uint16)
        self._queue = np.empty(states, np.uint32)

    def found(self, levels: Array) -> Discovery:
        """The finding: the shortest way into a trap, and a way around it. `levels` are the starts of the levels."""
        part, opening = self._part, self._part.part
        if part.prop.kind is Kind.RECOVERABLE:
            opening = np.zeros_like(part.part)
            opening[part.first_lost] = kernels.OPEN
        entry = int(
            kernels.flood(
                part.offsets, part.targets, opening, levels, part.place, part.traps,
                self._parents, self._ways, self._queue,
            )
        )  # fmt: skip
        start, way = self._way(entry)
        self._parents[:] = NONE
        before = self._history.ordinals(start)
        if part.prop.kind is Kind.EVENTUALLY:
            loop: list[int] | None = self._around(entry)
        else:
            loop = self._next(entry, set(), entry)[0] if part.offsets[entry] < part.offsets[entry + 1] else None
        return lasso(self._model, part.prop, before + way, loop, length(self._model, before))

    def _way(self, state: int) -> tuple[int, list[int]]:
        """The start of the search that reached this state, and the ordinals from there."""
        ordinals: list[int] = []
        while int(self._parents[state]) != state:
            ordinals.append(int(self._ways[state]))
            state = int(self._parents[state])
        return state, ordinals[::-1]

    def _around(self, entry: int) -> list[int]:
        """A closed walk that is fair: it visits each unit that is still owed in turn, and then returns."""
        part = self._part
        strong = part.strong_units(entry)
        state, walk, owed = entry, list[int](), part.units(entry) | strong
        while owed:
            way, state, unit = self._next(state, owed, NONE)
            walk += way
            owed = (owed & (part.units(state) | strong)) - {unit}
        return walk if state == entry else walk + self._next(state, set(), entry)[0]

    def _next(self, start: int, owed: set[int], wanted: int) -> tuple[list[int], int, int]:
        """The way to the target of `graph_kernels.seek`, the state that it leads to, and the unit of its last move."""
        part, is_owed = self._part, np.zeros(len(self._part.strong), np.uint8)
        is_owed[list(owed)] = kernels.WEAK
        is_owed[(is_owed != 0) & (part.strong != 0)] = kernels.STRONG
        state, ordinal, count = kernels.seek(
            part.offsets, part.targets, part.labels, part.unit_of, part.place, start, is_owed,
            np.count_nonzero(is_owed == kernels.WEAK),
            np.zeros(len(is_owed), np.uint32), wanted, self._parents, self._ways, self._queue,
        )  # fmt: skip
        _, way = self._way(int(state))
        self._parents[self._queue[: int(count)]] = NONE
        if int(ordinal) == NONE:
            return way, int(state), 0
        unit = part.unit(state, ordinal) if owed else 0
        return [*way, int(ordinal)], part.target(state, ordinal), unit
