"""Comparison of operations on one channel: whether the order of two of them makes no difference.

Two comparisons exist, and both look at every content that the channel may get in the meantime:

- the removal of the oldest message, against all operations that may come before it;
- an insertion, against all other operations of the channel.

Rules: a comparison is true only for contents that were all compared. More than MOST contents, or an error of the model
for a content that may not be reachable, make it false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from checker.engine.kernels import move_kernels
from checker.engine.model import ModelError
from checker.engine.tables.tables import IMPOSSIBLE, Tables

MOST = 64  # contents of a channel that one comparison looks at
LOW = 0xFFFFFFFF
SET = int(move_kernels.SET)


class Delivery(NamedTuple):
    """The only move of a channel's content: the content after it, its label, and its operation on the target."""

    after: int
    label: int
    word: int  # target << 32 | operation


class Commuting(NamedTuple):
    """The result of a comparison that holds.

    `merged` are the contents with a copy of a message that merged into an older one in the other order, and `word` is
    the operation on the target that this copy brings. The orders differ only until the copy is delivered.
    """

    merged: frozenset[int] = frozenset()
    word: int = 0


class ChannelComparison:
    """Compares operations on the contents (cells) of the channel in `column`, whose messages go to `target`.

    `appends` is that of `checker.engine.model.Channel`.
    """

    def __init__(self, tables: Tables, column: int, target: int, appends: Callable[[Any], bool] | None) -> None:
        self._tables, self._column, self._target, self._appends = tables, column, target, appends

    def delivery(self, cell: int) -> Delivery | None:
        """The delivery from a content, if that is its only move. Raises ModelError."""
        place, count = self._tables.listing(cell)
        if count != 1:
            return None
        words = self._tables.words(place)
        set_words = int(move_kernels.SET_WORDS)
        if len(words) != set_words + 1 or words[0] >> 32 != SET | self._column or words[-1] >> 32 != self._target:
            return None
        return Delivery(words[0] & LOW, int(self._tables.entries.view[place]) >> 32, words[-1])

    def removal_commutes(self, cell: int, operations: Iterable[int], *, quiet: bool) -> bool:
        """Whether the delivery from this content stays possible, and its order makes no difference.

        With `quiet`, delivering the message once more makes no difference either, so that a copy of it may remain.
        """
        others = list(operations)
        if self._all_append(others):
            return self.delivery(cell) is not None
        return self._holds(cell, lambda content: self._after_removal(content, others, quiet=quiet))

    def insertion_commutes(self, cell: int, insertion: int, operations: Iterable[int]) -> Commuting | None:
        """Whether the order of this insertion and any other operation makes no difference, from this content on."""
        others = [each for each in operations if each != insertion]
        if self._all_append([insertion]):
            return None if others else Commuting()
        merged, words = set[int](), set[int]()
        holds = self._holds(cell, lambda content: self._after_insertion(content, insertion, others, merged, words))
        if not holds or len(words) > 1:
            return None
        return Commuting(frozenset(merged), min(words, default=0))

    def _all_append(self, operations: list[int]) -> bool:
        appends = self._appends
        return appends is not None and all(appends(self._tables.operation(each)) for each in operations)

    def _holds(self, cell: int, following: Callable[[int], list[int] | None]) -> bool:
        """Whether every content that is reached has following ones; None is a difference."""
        seen, waiting = {cell}, [cell]
        try:
            while waiting:
                more = following(waiting.pop())
                if more is None:
                    return False
                new = {*more} - seen
                seen |= new
                waiting += sorted(new)
                if len(seen) > MOST:
                    return False
        except ModelError:
            return False
        return True

    def _after_removal(self, cell: int, others: list[int], *, quiet: bool) -> list[int] | None:
        first = self.delivery(cell)
        if first is None:
            return None
        reached = []
        for operation in others:
            pair = self._both(cell, first.after, operation)
            if pair is None:
                return None
            if not pair:
                continue
            then = self.delivery(pair[0])
            if then is None or then[1:] != first[1:]:
                return None
            reached.append(pair[0])
            if then.after != pair[1]:
                if not quiet or not self._is_copy(pair[1], then.after, first.word):
                    return None
                reached.append(pair[1])
        return reached

    def _after_insertion(
        self, cell: int, insertion: int, others: list[int], merged: set[int], words: set[int]
    ) -> list[int] | None:
        inserted = self._tables.result(cell, insertion)
        if inserted & LOW == IMPOSSIBLE or inserted >> 32:
            return None  # an insertion that fails, or that sends something itself
        reached = [inserted & LOW]
        for operation in others:
            pair = self._both(cell, inserted & LOW, operation)
            if pair is None:
                return None
            if pair:
                if self._tables.result(pair[0], insertion) != pair[1]:
                    return None
                reached.append(pair[0])
        _, count = self._tables.listing(cell)
        if count:
            first, then = self.delivery(cell), self.delivery(inserted & LOW)
            if first is None or then is None or then[1:] != first[1:]:
                return None
            later = self._tables.result(first.after, insertion)
            if later & LOW == IMPOSSIBLE or later >> 32:
                return None
            if later != then.after:
                if not self._is_copy(later, then.after, first.word):
                    return None
                merged.add(later)
                words.add(first.word)
            reached.append(first.after)
        return reached

    def _is_copy(self, cell: int, without: int, word: int) -> bool:
        """Whether a content delivers this operation on the target, and is another content afterwards."""
        delivery = self.delivery(cell)
        return delivery is not None and delivery.word == word and delivery.after == without

    def _both(self, one: int, other: int, operation: int) -> tuple[int, ...] | None:
        """The contents after an operation on two contents; () if it is impossible on the first.

        None if it is possible only on the first, or sends something else on the second.
        """
        first = self._tables.result(one, operation)
        if first & LOW == IMPOSSIBLE:
            return ()
        second = self._tables.result(other, operation)
        if second & LOW == IMPOSSIBLE or first >> 32 != second >> 32:
            return None
        return first & LOW, second & LOW
