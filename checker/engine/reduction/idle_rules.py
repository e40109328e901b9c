"""Joint rules that are taken for *idle*: none of their moves is possible in any state of the reduced search.

Such a rule is like a property over the columns that it reads, and over whether its operations are possible. Stubborn
sets keep these joint readings. So if some run of the model led to a possible move, the reduced search would have found
one, and would have begun again without the assumption.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from checker.engine.kernels import move_kernels
from checker.engine.model import ModelError
from checker.engine.reduction.channels import LOW
from checker.engine.tables.tables import IMPOSSIBLE, Tables


class IdleRules:
    """The joint rules that are still taken for idle, and the first operations of their moves, by column.

    An operation that is observed late does no harm if it shows no difference in the pairs that were alike before.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._joint = tables.joint_rules()
        self._rules = {*self._joint}
        self._operations: dict[int, dict[int, dict[int, bool]]] = {}  # column, operation, cell: possible or not
        self._late: list[tuple[int, int]] = []  # columns and operations since the last look at all pairs
        self._alike: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)  # pairs of cells of a column
        self._slots: dict[int, list[int]] = {}  # of each column: what idle rules read of it
        self._readings: dict[int, tuple[int, ...]] = {}

    def mark(self, idle: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> None:
        """Write the bits of the rules; those that belong to no rule are set."""
        idle[:] = ~np.uint64(0)
        for bit, position in enumerate(self._joint):
            if position not in self._rules:
                idle[bit // 64] &= ~np.uint64(1 << bit % 64)

    def listed(self, position: int, moves: list[int]) -> None:
        """A joint rule lists moves, whose first operations are observed from now on."""
        for move in moves if position in self._rules else ():
            words = self._tables.effect_words(move)
            if words and not words[0] >> 32 & int(move_kernels.SET | move_kernels.GROUP):
                column, operation = words[0] >> 32, words[0] & LOW
                known = self._operations.setdefault(column, {})
                if operation not in known:
                    known[operation] = {}
                    self._late.append((column, operation))

    def hold(self, broken: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> bool:
        """Whether no rule was broken and no late operation shows a difference. If not, the search must begin again."""
        found = {position for bit, position in enumerate(self._joint) if int(broken[bit // 64]) >> bit % 64 & 1}
        broken[:] = 0
        late, self._late = self._late, []
        if not found and not any(self._shows_a_difference(*each) for each in late):
            return True
        self._rules -= found
        self._alike, self._slots, self._readings = defaultdict(set), {}, {}
        return False

    def show_alike(self, before: int, after: int) -> bool:
        """Whether no idle rule and none of their operations shows a difference between two cells of a column."""
        if before == after:
            return True
        column = self._tables.column_of(before)
        if self._reading(column, before) != self._reading(column, after):
            return False
        for operation in self._operations.get(column, ()):
            if self._is_possible(column, operation, before) != self._is_possible(column, operation, after):
                return False
        self._alike[column].add((before, after))
        return True

    def _reading(self, column: int, cell: int) -> tuple[int, ...]:
        """All that idle rules read of a cell."""
        known = self._readings.get(cell)
        if known is None:
            slots = self._slots.get(column)
            if slots is None:
                found = {slot for position in self._rules for slot in self._tables.slots_of(position, column)}
                slots = self._slots[column] = sorted(found)
            shown = self._tables.shown(cell)
            known = self._readings[cell] = tuple(shown[slot] for slot in slots)
        return known

    def _is_possible(self, column: int, operation: int, cell: int) -> bool:
        known = self._operations[column][operation]
        if cell not in known:
            known[cell] = self._tables.result(cell, operation) & LOW != IMPOSSIBLE
        return known[cell]

    def _shows_a_difference(self, column: int, operation: int) -> bool:
        """Whether an operation is possible in only one cell of a pair that was alike without it."""
        try:
            return any(
                self._is_possible(column, operation, before) != self._is_possible(column, operation, after)
                for before, after in self._alike[column]
            )
        except ModelError:  # to begin again is always right, and the next search may not need this cell
            return True
