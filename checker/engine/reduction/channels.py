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


class OldestMessage(NamedTuple):
    """The only move of a channel's content: the content after it, its label, and its operation on the target."""

    after: int
    label: int
    word: int  # target << 32 | operation


class ChannelComparison:
    """Compares operations on the contents (cells) of the channel in `column`, whose messages go to `target`.

    `appends` is that of `checker.engine.model.Channel`.
    """

    def __init__(self, tables: Tables, column: int, target: int, appends: Callable[[Any], bool] | None) -> None:
        self._tables, self._column, self._target, self._appends = tables, column, target, appends

    def delivery(self, cell: int) -> OldestMessage | None:
        """The delivery from a content, if that is its only move. Raises ModelError."""
        place, count = self._tables.listing(cell)
        if count != 1:
            return None
        words = self._tables.effect_words(place)
        set_words = int(move_kernels.SET_WORDS)
        if len(words) != set_words + 1 or words[0] >> 32 != SET | self._column or words[-1] >> 32 != self._target:
            return None
        return OldestMessage(words[0] & LOW, int(self._tables.entries.view[place]) >> 32, words[-1])

    def removal_commutes(self, cell: int, operations: Iterable[int], inert: frozenset[int]) -> bool:
        """Whether the delivery from this content stays possible, and its order makes no difference.

        `inert` are the words of deliveries that make no difference themselves. Two contents are alike if they are
        equal after such deliveries.
        """
        others = list(operations)
        if self.all_append(others):
            return self.delivery(cell) is not None
        return self._holds(cell, lambda content: self._after_removal(content, others, inert))

    def insertion_commutes(self, cell: int, insertion: int, operations: Iterable[int]) -> bool:
        """Whether the order of this insertion and any other operation makes no difference, from this content on."""
        others = [each for each in operations if each != insertion]
        if self.all_append([insertion]):
            return not others
        return self._holds(cell, lambda content: self._after_insertion(content, insertion, others, frozenset()))

    def insertion_repeats(
        self, cell: int, insertion: int, operations: Iterable[int], sent: Iterable[int]
    ) -> int | None:
        """The word of the delivery that an insertion brings, if it commutes and can be repeated without effect.

        A repetition has no effect if the channel merges it into the older message, or else if its delivery makes no
        difference: then this delivery must commute with all that is `sent` to the channel.
        """
        try:
            word = self._last_word(self._tables.result(cell, insertion) & LOW)
        except ModelError:
            return None
        if word is None:
            return None
        others, inert, after = [each for each in operations if each != insertion], frozenset({word}), [*sent]
        copies = set[int]()

        def following(content: int) -> list[int] | None:
            reached = self._after_insertion(content, insertion, others, inert)
            inserted = self._tables.result(content, insertion) & LOW
            if reached is None or self._tables.result(inserted, insertion) != inserted:
                return None
            delivery = self.delivery(content)
            if delivery is not None and delivery.word == word:
                copies.add(content)
            return reached

        holds = self._holds(cell, following)
        return word if holds and all(self.removal_commutes(each, after, inert) for each in sorted(copies)) else None

    def _last_word(self, cell: int) -> int | None:
        """The word of the last delivery from a content."""
        word = None
        for _ in range(MOST):
            delivery = self.delivery(cell)
            if delivery is None:
                return word
            cell, word = delivery.after, delivery.word
        return None

    def all_append(self, operations: Iterable[int]) -> bool:
        """Whether the model declares that each of these operations appends."""
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

    def _after_removal(self, cell: int, others: list[int], inert: frozenset[int]) -> list[int] | None:
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
            passed = self._until_alike(then.after, pair[1], inert)
            if passed is None:
                return None
            reached += [pair[0], *passed]
        return reached

    def _after_insertion(self, cell: int, insertion: int, others: list[int], inert: frozenset[int]) -> list[int] | None:
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
            if self._until_alike(then.after, later, inert) is None:
                return None
            reached.append(first.after)
        return reached

    def _until_alike(self, one: int, other: int, inert: frozenset[int]) -> list[int] | None:
        """The contents that inert deliveries pass until both are equal; None if they never are."""
        if one == other:
            return []
        paths = []
        for cell in (one, other):
            path = [cell]
            while (delivery := self.delivery(path[-1])) is not None and delivery.word in inert and len(path) < MOST:
                path.append(delivery.after)
            paths.append(path)
        common = next((cell for cell in paths[0] if cell in paths[1]), None)
        if common is None:
            return None
        return [cell for path in paths for cell in path[: path.index(common)]]

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
