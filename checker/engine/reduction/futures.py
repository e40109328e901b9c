"""The operations that a process may still send to channels, for each of its states.

The states of a process, its cells, and the operations on them are a graph, which the tables know. The *future* of a
cell is the set of all operations that are sent to channels on any path from it. Futures only grow while the tables
learn.
"""

from __future__ import annotations

from collections import defaultdict


class Futures:
    """The future of each cell, as words of effects: target << 32 | operation."""

    def __init__(self) -> None:
        self._sent: defaultdict[int, set[int]] = defaultdict(set)
        self._before: defaultdict[int, set[int]] = defaultdict(set)  # of each cell, the cells that lead to it
        self.grown: set[int] = set()  # the cells whose future has grown since this set was last cleared

    def of(self, cell: int) -> frozenset[int]:
        """The words that may still be sent."""
        return frozenset(self._sent.get(cell, ()))

    def before(self, cell: int) -> frozenset[int]:
        """The cells that lead to a cell by one operation."""
        return frozenset(self._before.get(cell, ()))

    def add(self, cell: int, after: int, words: frozenset[int]) -> None:
        """Add an operation on a cell, which leads to another and sends these words."""
        if after != cell:
            self._before[after].add(cell)
        self._send(cell, words | self._sent[after])

    def _send(self, cell: int, words: set[int] | frozenset[int]) -> None:
        """Add words to the future of a cell, and of all that lead to it."""
        waiting = [cell]
        while waiting:
            each = waiting.pop()
            if words <= self._sent[each]:
                continue
            self._sent[each] |= words
            self.grown.add(each)
            waiting += self._before[each]
