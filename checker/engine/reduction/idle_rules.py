"""Joint rules that are taken for *idle*: none of their moves is possible in any state of the reduced search.

Such a rule is like a property over the columns that it reads, and over whether its operations are possible. Stubborn
sets keep these joint readings. So if some run of the model led to a possible move, the reduced search would have found
one, and would have begun again without the assumption.
"""

from __future__ import annotations

import numpy as np

from checker.engine.kernels import move_kernels
from checker.engine.reduction.channels import LOW
from checker.engine.tables.tables import IMPOSSIBLE, Tables


class IdleRules:
    """The joint rules that are still taken for idle, and the first operations of their moves, by column."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._joint = tables.joint_rules()
        self._rules = {*self._joint}
        self._operations: dict[int, set[int]] = {}
        self._has_grown = False

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
                known = self._operations.setdefault(words[0] >> 32, set())
                self._has_grown |= words[0] & LOW not in known
                known.add(words[0] & LOW)

    def hold(self, broken: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> bool:
        """Whether no rule was broken and no operation is new. Otherwise the search must begin again."""
        found = {position for bit, position in enumerate(self._joint) if int(broken[bit // 64]) >> bit % 64 & 1}
        self._rules -= found
        broken[:] = 0
        held, self._has_grown = not found and not self._has_grown, False
        return held

    def show_alike(self, before: int, after: int) -> bool:
        """Whether no idle rule and none of their operations shows a difference between two cells of a column."""
        if not all(self._tables.shows_alike(position, before, after) for position in self._rules):
            return False
        for operation in self._operations.get(self._tables.column_of(before), ()):
            possible = [self._tables.result(cell, operation) & LOW != IMPOSSIBLE for cell in (before, after)]
            if possible[0] != possible[1]:
                return False
        return True
