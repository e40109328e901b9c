"""The answers of the reduction: which deliveries are *drained*.

A drained delivery is carried out as soon as it is possible, because nothing depends on its order.

A delivery from a channel is drained if

1. it leaves its receiver as it is, and sends the same operations, in the present state of the receiver and in every
   later one that other events may bring about first (`ArrivalEffect`);
2. nothing that may happen to the channel first makes a difference to it, or depends on it (`Removal`);
3. the operations that it sends go to other channels, and their order among all operations on these makes no difference
   (`Insertion`). While the delivery waits, its receiver sends nothing else to these channels.

Kernels ask these questions about cells, and find the answers in the memo of the tables. An answer looks at everything
that the tables know. They may learn something later that refutes a "yes"; `holds` then says so, and the search begins
again with the same tables. A search that ends without a refutation is sound: docs/explanation-reduction.md has the
proof.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from checker.engine.kernels import move_kernels
from checker.engine.model import ModelError
from checker.engine.reduction.channels import LOW, SET, ChannelComparison
from checker.engine.reduction.eligible import EligibleChannel
from checker.engine.reduction.futures import Futures
from checker.engine.reduction.origins import OperationOrigins
from checker.engine.reduction.questions import (
    YES,
    ArrivalEffect,
    Future,
    InertDeliveries,
    Insertion,
    Removal,
    Repetition,
    Sent,
)
from checker.engine.tables.tables import IMPOSSIBLE, Tables


class Known(NamedTuple):
    """A known operation on a cell of a process: the cell after it, and the words that it sends to channels."""

    operation: int
    after: int
    sent: frozenset[int]


class Answers:
    """The questions about a model's channels, and their answers, which `drains` revises as the tables learn.

    `rows` (u32) has for each channel its column, those of its sender and its receiver, and the number of its `Future`.
    """

    def __init__(self, tables: Tables, channels: list[EligibleChannel]) -> None:
        self._tables, self._channels = tables, channels
        self._by_column = {channel.column: number for number, channel in enumerate(channels)}
        self._comparisons = [ChannelComparison(tables, c.column, c.target, c.appends) for c in channels]
        self.rows = np.array(
            [(c.column, c.source, c.target, tables.question(Future(n))) for n, c in enumerate(channels)], np.uint32
        ).reshape(-1, 4)
        self._merges = [channel.appends is None for channel in channels]
        self._processes = {c.source for c in channels} | {c.target for c in channels}
        self._steps: defaultdict[int, list[Known]] = defaultdict(list)
        self._futures = Futures()
        self._touched: set[int] = set()  # cells that something was learnt about
        self._unchanged: dict[tuple[int, ArrivalEffect], tuple[int, ...]] = {}  # for each yes: the words that are sent
        self._arrivals_at: defaultdict[int, set[ArrivalEffect]] = defaultdict(set)  # the same, by cell
        self._repetitions: defaultdict[Repetition, set[int]] = defaultdict(set)  # with the answer yes
        self._asked: dict[Any, set[int]] = defaultdict(set)  # by kernels, with the answer yes: the cells of a question
        self._of_channel: defaultdict[int, set[Removal | Insertion]] = defaultdict(set)  # of the questions asked
        self._removals: defaultdict[Any, set[Removal]] = defaultdict(set)  # the same by channel, and a part of them
        self._refused: set[tuple[int, ArrivalEffect]] = set()  # without an answer of `_arrival`, for good
        self._origins = OperationOrigins(channels)
        self._inert: dict[tuple[int, ArrivalEffect], frozenset[int]] = {}  # the last words for each arrival
        self._refuted = False
        self._reduced: set[int] = set()  # cells that have lost an arrival

    # -- what the tables learn -------------------------------------------------------------------------------

    def sent(self, actor: int, operation: int, source: str) -> None:
        """A rule or a step sends an operation to an actor."""
        self._origins.add(actor, operation, source)

    def learnt(self, cell: int, operation: int, value: int) -> None:
        """An operation on a cell was carried out."""
        if self._tables.column_of(cell) in self._processes and value & LOW != IMPOSSIBLE:
            self._add(cell, operation, value & LOW, self._tables.effect_words(value >> 32))

    def listed(self, cell: int) -> None:
        """The moves of a cell were listed: the delivery of a channel, or the spontaneous moves of a process."""
        column = self._tables.column_of(cell)
        if (number := self._by_column.get(column)) is not None:
            delivery = self._comparisons[number].delivery(cell)
            if delivery is not None:
                self._tables.asks.view[cell] = self._tables.question(ArrivalEffect(number, delivery.word & LOW))
        elif column in self._processes:
            place, count = self._tables.listing(cell)
            for _ in range(count):
                words = self._tables.effect_words(place)
                resolved = int(move_kernels.SET_WORDS) if words and words[0] >> 32 & SET else 0
                self._add(cell, 0, cell, words[resolved:])
                place += 1 + len(words)

    def _add(self, cell: int, operation: int, after: int, words: list[int]) -> None:
        sent = frozenset(word for word in words if word >> 32 in self._by_column)
        self._steps[cell].append(Known(operation, after, sent))
        self._touched.add(cell)
        self._futures.add(cell, after, sent)

    # -- answers ---------------------------------------------------------------------------------------------

    def answer(self, cell: int, question: Any) -> int:
        """The answer to a kernel's question, as a value of the memo."""
        value = self._answer(cell, question)
        if value != IMPOSSIBLE:
            self._note(cell, question)
        return value

    def _note(self, cell: int, question: Any) -> None:
        """Note that kernels may rely on a yes."""
        self._asked[question].add(cell)
        if isinstance(question, Removal):
            self._removals[question.channel, question.operations].add(question)
            self._removals[question.channel, question.inert, "inert"].add(question)
        if isinstance(question, Removal | Insertion):
            self._of_channel[question.channel].add(question)

    def _answer(self, cell: int, question: Any) -> int:
        match question:
            case Future(channel=channel):
                return self._tables.question(Sent(self._removal_operations(cell, channel)))
            case Sent(operations=operations):
                given: InertDeliveries = self._tables.subject_of(cell)
                return self._tables.question(Removal(given.channel, operations, given.words))
            case ArrivalEffect():
                words = self._arrival(cell, question)
                return IMPOSSIBLE if words is None else self._arrival_answer(cell, question, words)
            case Removal():
                return YES if self._removal_commutes(cell, question) else IMPOSSIBLE
            case Insertion():
                return self._insertion_answer(cell, question)
            case _:
                return YES if self._repeats(cell, question) else IMPOSSIBLE

    def _removal_operations(self, cell: int, channel: int) -> frozenset[int] | None:
        """The operations of a `Removal`: those that a process may still send; None if all append."""
        sent, comparison = self._still_sent(cell, channel), self._comparisons[channel]
        return None if comparison.all_append(sent | self._from_others(channel)) else sent

    def _removal_commutes(self, cell: int, question: Removal) -> bool:
        comparison, others = self._comparisons[question.channel], self._from_others(question.channel)
        if question.operations is None:
            return comparison.all_append(others) and comparison.delivery(cell) is not None
        return comparison.removal_commutes(cell, sorted(question.operations | others), question.inert)

    def _still_sent(self, cell: int, channel: int) -> frozenset[int]:
        """The operations that a process may still send to a channel."""
        column = self._channels[channel].column
        return frozenset(word & LOW for word in self._futures.of(cell) if word >> 32 == column)

    def _arrival_answer(self, cell: int, question: ArrivalEffect, words: tuple[int, ...]) -> int:
        """Yes: the number of the inert deliveries, and the effect with the questions about its messages."""
        channels = [self._by_column[word >> 32] for word in words]
        repeats = bool(words) and all(self._merges[channel] for channel in channels)
        inert = set()
        for operation in sorted(self._origins.behind[question.channel]) if self._merges[question.channel] else ():
            known = self._arrival(cell, ArrivalEffect(question.channel, operation))
            if known == () or (repeats and known == words):
                inert.add(self._channels[question.channel].target << 32 | operation)
        # A later answer never drains more than an earlier one, so that a path can be rebuilt with the last answers.
        words_kept = frozenset(inert) & self._inert.get((cell, question), inert)
        self._inert[cell, question] = words_kept
        number = self._tables.subject(InertDeliveries(question.channel, words_kept))
        asked = []
        for word, channel in zip(words, channels, strict=True):
            sent = self._still_sent(cell, channel) if repeats else frozenset()
            asked.append(word >> 32 << 32 | self._tables.question(Insertion(channel, word & LOW, sent, repeats)))
        return (self._tables.effect(asked) if asked else 0) << 32 | number

    def _insertion_answer(self, cell: int, question: Insertion) -> int:
        """Yes may depend on a further question, about the receiver of a repetition."""
        comparison, others = self._comparisons[question.channel], self._from_others(question.channel)
        if not question.repeats:
            return YES if comparison.insertion_commutes(cell, question.operation, sorted(others)) else IMPOSSIBLE
        sent = sorted(question.operations | others)
        word = comparison.insertion_repeats(cell, question.operation, sorted(others), sent)
        if word is None:
            return IMPOSSIBLE
        repeated = self._tables.question(Repetition(question.channel, word & LOW))
        return self._tables.effect([word >> 32 << 32 | repeated]) << 32 | YES

    def _repeats(self, cell: int, question: Repetition) -> bool:
        """Whether an operation changes and sends nothing when it comes again, after it came now or later."""
        again = ArrivalEffect(question.channel, question.operation)
        seen, waiting = {cell}, [cell]
        while waiting:
            at = waiting.pop()
            try:
                value = self._tables.result(at, question.operation)
            except ModelError:
                return False
            if value & LOW == IMPOSSIBLE or self._arrival(value & LOW, again) != ():
                return False
            new = {step.after for step in self._steps[at]} - seen
            seen |= new
            waiting += sorted(new)
        self._repetitions[question].update(seen)
        return True

    def _arrival(self, cell: int, question: ArrivalEffect) -> tuple[int, ...] | None:
        """The words that an operation sends while it changes nothing, now and later; None if it may do something else.

        An answer other than None is noted for every later cell.
        """
        known = self._unchanged.get((cell, question))
        if known is None and (cell, question) not in self._refused:
            known = self._searched_arrival(cell, question)
            if known is None:
                self._refused.add((cell, question))
        return known

    def _searched_arrival(self, cell: int, question: ArrivalEffect) -> tuple[int, ...] | None:
        sent = self._sent_unchanged(cell, question)
        if sent is None:
            return None
        allowed = {word >> 32: word for word in sent}
        seen, waiting = {cell}, [cell]
        while waiting:
            at = waiting.pop()
            if self._sent_unchanged(at, question) != sent:
                return None
            for operation, after, words in list(self._steps[at]):
                if self._is_behind(operation, question.channel):
                    continue
                if any(allowed.get(word >> 32, word) != word for word in words):
                    return None
                known = self._unchanged.get((after, question))
                if (known is not None and known != sent) or (after, question) in self._refused:
                    return None
                if known is None and after not in seen:
                    seen.add(after)
                    waiting.append(after)
        for at in seen:
            self._unchanged[at, question] = sent
            self._arrivals_at[at].add(question)
        return sent

    def _sent_unchanged(self, cell: int, question: ArrivalEffect) -> tuple[int, ...] | None:
        """The words that an operation sends, if it leaves a cell as it is and they go to different channels from
        it.
        """
        try:
            value = self._tables.result(cell, question.operation)
        except ModelError:
            return None
        if value & LOW != cell:
            return None
        words, receiver = self._tables.effect_words(value >> 32), self._channels[question.channel].target
        targets = {word >> 32 for word in words}
        if len(targets) < len(words) or not targets <= self._by_column.keys():
            return None
        if any(self._channels[self._by_column[target]].source != receiver for target in targets):
            return None
        return tuple(words)

    def _is_behind(self, operation: int, channel: int) -> bool:
        """Whether an operation comes only from later messages of the channel, behind the delivery that waits."""
        return operation in self._origins.behind[channel]

    def _from_others(self, channel: int) -> frozenset[int]:
        """The operations on a channel that neither its rules nor the steps of its sender send."""
        return self._origins.others[channel]
