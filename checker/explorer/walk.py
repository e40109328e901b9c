"""The rows along a walk, by the ordinals of its moves, and the findings at the end of the run.

Rules of this module:

- The successors of a row are computed once, as long as they are cached. They have the order of both engines.
- A run ends in a safety finding if its last state has one. It ends in a liveness finding if it closes a loop, stays in
  its last state or has no successor, and satisfies the conditions of `checker.engine.liveness.lasso`. So a run that
  the checker found, walked move by move, ends in the same finding. A goal counts as out of reach only if all states
  that remain were searched; if these are more than `lasso.REMAINS`, nothing is claimed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from checker.engine.liveness import lasso
from checker.engine.model import Finding, Kind, Model, Move, Property, Row
from checker.engine.result import Discovery, Step
from checker.engine.semantics import answer, successors
from checker.explorer.requests import BadRequestError

REMEMBERED = 4096  # rows whose successors are cached

Path = tuple[Step, ...]
GRAVEST = (Kind.ALWAYS, Kind.FINAL, Kind.RECOVERABLE, Kind.EVENTUALLY, Kind.SOMETIMES)


class Walks:
    """The walks of one model. Threads may share it."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._known: OrderedDict[Row, tuple[tuple[Move, Row], ...]] = OrderedDict()
        self._lost: dict[tuple[str, Row], bool] = {}
        self._lock = threading.Lock()

    def next(self, row: Row) -> tuple[tuple[Move, Row], ...]:
        """The moves of a row, each with the row it leads to."""
        with self._lock:
            if row in self._known:
                self._known.move_to_end(row)
                return self._known[row]
        found = tuple(successors(self.model, row))
        with self._lock:
            self._known[row] = found
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    def path(self, ordinals: Sequence[int]) -> Path:
        """The steps of a walk; the first has no move. Raises BadRequestError for an ordinal without a move."""
        path = [Step(None, self.model.initial())]
        for number, ordinal in enumerate(ordinals, 1):
            moves = self.next(path[-1].row)
            if ordinal >= len(moves):
                there = f"only {len(moves)} can happen" if moves else "nothing can happen"
                raise BadRequestError(f"step {number} is move number {ordinal}, and {there} there; begin anew")
            path.append(Step(*moves[ordinal]))
        return tuple(path)

    def ordinals(self, path: Path) -> tuple[int, ...]:
        """The ordinals of the moves of a path. Raises BadRequestError if it is not a path of this model."""
        return tuple(self._ordinal(before.row, step) for before, step in pairwise(path))

    def _ordinal(self, row: Row, step: Step) -> int:
        places = [n for n, (_, after) in enumerate(self.next(row)) if after == step.row]
        matching = [n for n in places if step.move is not None and self.next(row)[n][0][:2] == step.move[:2]]
        if not matching:
            raise BadRequestError(f"{step.move.action if step.move else 'a step'} is no move of this run's state")
        return matching[0]

    def findings(self, path: Path) -> list[Discovery]:
        """The findings at the end of a run, the gravest first."""
        found = [each for prop in self.model.properties for each in self._finding(prop, path)]
        return sorted(found, key=lambda each: GRAVEST.index(each.prop.kind))

    def _finding(self, prop: Property, path: Path) -> Iterator[Discovery]:
        if prop.kind.is_liveness:
            yield from self._never(prop, path)
            return
        if prop.kind is Kind.FINAL and self.next(path[-1].row):
            return
        result = answer(self.model, prop, path[-1].row)
        if isinstance(result, Finding):
            yield Discovery(prop, result, len(path) - 1, path)

    def _never(self, prop: Property, path: Path) -> Iterator[Discovery]:
        """The finding of a run that never reaches its goal, if it is one: with the shortest loop that proves it."""
        results = [answer(self.model, prop, step.row) for step in path]
        met = max((number for number, each in enumerate(results) if isinstance(each, Finding)), default=-1)
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
                left = lasso.remains(self.model, prop, path[number].row)
                is_lost = left.whole and not left.goal
                if len(self._lost) >= REMEMBERED:
                    self._lost.clear()  # clears entries of other threads too; this call reads none of them again
                self._lost[key] = is_lost
            if not is_lost:
                break
            lost.append(number)
        return lost[::-1]
