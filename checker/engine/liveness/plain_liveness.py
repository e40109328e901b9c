"""Liveness for the plain engine: rows in dicts, sets and lists. It is the oracle of `graph_liveness`.

The examined part of the graph is the part that open states reach without passing a goal. It is divided into strongly
connected components. A run that never reaches a goal eventually stays in one of them forever, so it suffices to decide
for each component whether a run may stay: whether no move leaves it (RECOVERABLE), or whether a run in it is fair
(EVENTUALLY). A run in a component can visit all its states and make all its moves again and again. It is fair iff the
moves inside include each weak unit that can happen in every state, and each strong unit that can happen in some state.
If the moves lack only strong units, a fair run leaves the states of these units at last. These states are removed, and
the components of the rest are judged in the same way.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from checker.engine.discovery import Discovery
from checker.engine.liveness.lasso import forcing, lasso
from checker.engine.model import Finding, Kind, Model, Move, Property, Row, Unit
from checker.engine.result import Exploration, Liveness
from checker.engine.semantics import answer, start_of

Graph = dict[Row, list[tuple[str, Move, Row]]]
Region = frozenset[Row]
Node = TypeVar("Node")


def judge(result: Exploration, graph: Graph) -> None:
    """Judge every property of liveness. `graph` has all rows in the order of discovery, with their successors."""
    for prop in result.model.liveness:
        began = time.monotonic()
        part = _ExaminedRows(result.model, prop, graph)
        if part.violated:
            result.found[prop.name] = part.found()
        result.liveness[prop.name] = Liveness(
            goals=len(part.goals),
            open=len(part.open),
            states=len(part.examined),
            edges=sum(len(graph[row]) for row in part.examined),
            components=part.components,
            traps=len(part.traps),
            forced=part.forced,
            seconds=time.monotonic() - began,
        )


class _ExaminedRows:
    def __init__(self, model: Model, prop: Property, graph: Graph) -> None:
        self.model, self.prop, self.graph = model, prop, graph
        units = {(rule, move.action) for edges in graph.values() for rule, move, _ in edges}
        self._strong = {unit for unit in units if model.is_strong(unit)}
        answers = {row: answer(model, prop, row) for row in graph}
        self.goals = {row for row, value in answers.items() if isinstance(value, Finding)}
        self.open = dict.fromkeys(row for row, value in answers.items() if value is None)
        regions = list(components(self.open, self._inside))
        self.examined = [row for region in regions for row in region]
        self.components = len(regions)
        self._fair_too = frozenset[str]()
        is_recoverable = prop.kind is Kind.RECOVERABLE
        self.traps = [*filter(self._is_closed, regions)] if is_recoverable else self._fair_within(regions)
        self.forced = self._forced() if self.traps and prop.kind is Kind.EVENTUALLY else ()

    @property
    def violated(self) -> bool:
        """Whether a run from an open state never reaches a goal, or (RECOVERABLE) no run from it can."""
        return self._lost() is not None if self.prop.kind is Kind.RECOVERABLE else bool(self.traps)

    def _inside(self, row: Row) -> list[Row]:
        return [after for _, _, after in self.graph[row] if after not in self.goals]

    def _inside_of(self, rest: set[Row], row: Row) -> list[Row]:
        return [after for after in self._inside(row) if after in rest]

    def _is_closed(self, region: Region) -> bool:
        return all(after in region for row in region for _, _, after in self.graph[row])

    def _fair_within(self, regions: Iterable[Region]) -> list[Region]:
        """The largest parts of these components with a fair run."""
        fair, todo = list[Region](), list(regions)
        while todo:
            region = todo.pop(0)
            able = {row: self._enabled(row) for row in region}
            inside = {self._unit(rule, move) for row in region for rule, move, to in self.graph[row] if to in region}
            if set.intersection(*able.values()) - self._strong <= inside:
                missed = set.union(*able.values()) & self._strong - inside
                rest = {row for row, units in able.items() if not units & missed}
                if missed:
                    todo += components(rest, partial(self._inside_of, rest))
                else:
                    fair.append(region)
        return fair

    def _forced(self) -> tuple[str, ...]:
        def holds(actions: frozenset[str]) -> bool:
            self._fair_too = actions
            return not self._fair_within(self.traps)

        free = {
            move.action for edges in self.graph.values() for rule, move, _ in edges if self._unit(rule, move) is None
        }
        forced = forcing(free, holds)
        self._fair_too = frozenset()
        return forced

    def _unit(self, rule: str, move: Move) -> Unit | None:
        unit = self.model.unit(self.prop, rule, move.action)
        return (rule, move.action) if move.action in self._fair_too else unit

    def _enabled(self, row: Row) -> set[Unit]:
        return {unit for rule, move, _ in self.graph[row] if (unit := self._unit(rule, move)) is not None}

    # -- the run of a finding -------------------------------------------------------------------------------

    def found(self) -> Discovery:
        """The finding: the shortest path into a trap, and a closed walk around it."""
        within = {row: region for region in self.traps for row in region}
        first = self.model.first_rows
        if self.prop.kind is Kind.RECOVERABLE:
            lost = self._lost()
            assert lost is not None, "there is one if this is asked"
            before, (start, *_) = shortest(first, self._edges, lambda row: row == lost)
            after, (*_, entry) = shortest([lost], self._edges, lambda row: row in within)
            loop = self._cycle(entry) if self.graph[entry] else None
            return lasso(self.model, self.prop, [*start_of(self.model, start), *before, *after], loop, len(before))
        starts = [(row, now) for row in first for now in ((False, True) if row in self.open else (False,))]
        stem, nodes = shortest(starts, self._opening, lambda node: node[1] and node[0] in within)
        since = next(number for number, (_, is_open) in enumerate(nodes) if is_open)
        entry = nodes[-1][0]
        stem = [*start_of(self.model, nodes[0][0]), *stem]
        return lasso(self.model, self.prop, stem, self._around(within[entry], entry), since)

    def _lost(self) -> Row | None:
        """The first open row from which no goal is reachable."""
        before: dict[Row, list[Row]] = {row: [] for row in self.graph}
        for row, edges in self.graph.items():
            for _, _, after in edges:
                before[after].append(row)
        saved, todo = set(self.goals), list(self.goals)
        while todo:
            for row in before[todo.pop()]:
                if row not in saved:
                    saved.add(row)
                    todo.append(row)
        return next((row for row in self.graph if row in self.open and row not in saved), None)

    def _edges(self, row: Row) -> Iterator[tuple[int, Row]]:
        return ((ordinal, after) for ordinal, (_, _, after) in enumerate(self.graph[row]))

    def _opening(self, node: tuple[Row, bool]) -> Iterator[tuple[int, tuple[Row, bool]]]:
        """The edges for the search for a stem. Each row occurs twice: before the unmet demand (False) and after it
        (True).
        """
        row, is_open = node
        for ordinal, after in self._edges(row):
            if not is_open:
                yield ordinal, (after, False)
            if after in self.open or (is_open and after not in self.goals):
                yield ordinal, (after, True)

    def _cycle(self, entry: Row) -> list[int]:
        """The shortest cycle through a row of a trap."""
        ways = [
            [ordinal, *shortest([after], self._edges, lambda row: row == entry)[0]]
            for ordinal, after in self._edges(entry)
        ]
        return min(ways, key=len)

    def _around(self, region: Region, entry: Row) -> list[int]:
        """A closed walk that is fair: it repeatedly goes to the nearest place that settles an owed unit, and then
        returns. It owes the strong units of all rows of the region, whose moves alone settle them.
        """
        strong = set.union(*(self._enabled(row) for row in region)) & self._strong
        at, walk, owed = entry, list[int](), self._enabled(entry) | strong
        while owed:
            way, (*_, (at, unit)) = self._next_owed(region, at, owed)
            walk += way
            owed = (owed & (self._enabled(at) | self._strong)) - {unit}
        inside = {row: [(n, after) for n, after in self._edges(row) if after in region] for row in region}
        return walk + shortest([at], inside.__getitem__, lambda row: row == entry)[0]

    def _next_owed(self, region: Region, at: Row, owed: set[Unit]) -> tuple[list[int], list[tuple[Row, Unit | None]]]:
        """The shortest path inside the region that settles a unit: to a row where it cannot happen, or by one of its
        moves.
        """

        def edges(node: tuple[Row, Unit | None]) -> Iterator[tuple[int, tuple[Row, Unit | None]]]:
            for ordinal, (rule, move, after) in enumerate(self.graph[node[0]]):
                if after in region:
                    unit = self._unit(rule, move)
                    yield ordinal, (after, unit if unit in owed else None)

        def pays(node: tuple[Row, Unit | None]) -> bool:
            return node[1] is not None or not owed - self._strong <= self._enabled(node[0])

        return shortest([(at, None)], edges, pays)


def shortest(
    starts: Iterable[Node], edges: Callable[[Node], Iterable[tuple[int, Node]]], wanted: Callable[[Node], bool]
) -> tuple[list[int], list[Node]]:
    """A shortest path from one of `starts` to a wanted node, which must exist: its ordinals and nodes."""
    came: dict[Node, tuple[Node, int] | None] = dict.fromkeys(starts)
    queue = list(came)
    for node in queue:
        if wanted(node):
            break
        for ordinal, after in edges(node):
            if after not in came:
                came[after] = node, ordinal
                queue.append(after)
    ordinals, nodes = list[int](), [node]
    while (step := came[nodes[-1]]) is not None:
        nodes.append(step[0])
        ordinals.append(step[1])
    return ordinals[::-1], nodes[::-1]


def components(roots: Iterable[Row], inside: Callable[[Row], list[Row]]) -> Iterator[Region]:
    """The strongly connected components of the part reachable from `roots` (Tarjan 1972, without recursion)."""
    number: dict[Row, int] = {}
    low: dict[Row, int] = {}
    stack: list[Row] = []
    waiting: set[Row] = set()  # the rows of `stack`
    for root in roots:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        waiting.add(root)
        calls = [(root, iter(inside(root)))]
        while calls:
            row, successors = calls[-1]
            for after in successors:
                if after not in number:
                    number[after] = low[after] = len(number)
                    stack.append(after)
                    waiting.add(after)
                    calls.append((after, iter(inside(after))))
                    break
                if after in waiting:
                    low[row] = min(low[row], number[after])
            else:
                calls.pop()
                if calls:
                    low[calls[-1][0]] = min(low[calls[-1][0]], low[row])
                if low[row] == number[row]:
                    place = len(stack) - 1
                    while stack[place] != row:
                        place -= 1
                    region = frozenset(stack[place:])
                    del stack[place:]
                    waiting -= region
                    yield region
