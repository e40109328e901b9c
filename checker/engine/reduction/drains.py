"""The deliveries that are *drained*: carried out as soon as they are possible, because nothing depends on their order.

A delivery from a channel is drained if

1. it leaves its receiver as it is, and sends the same operations, in the present state of the receiver and in every
   later one that other events may bring about first (`Arrival`);
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
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from checker.engine.kernels import drain_kernels, move_kernels
from checker.engine.model import ModelError
from checker.engine.reduction.channels import LOW, SET, ChannelComparison, Delivery
from checker.engine.reduction.eligible import EligibleChannel
from checker.engine.reduction.futures import Futures
from checker.engine.tables.tables import IMPOSSIBLE, Tables

YES = 1


@dataclass(frozen=True)
class Arrival:
    """Of a cell of a process: whether an operation from a channel leaves it as it is, now and later."""

    channel: int
    operation: int


@dataclass(frozen=True)
class Future:
    """Of a cell of a process: what it may still send to a channel. The answer is the number of a `Sent`."""

    channel: int


@dataclass(frozen=True)
class Removal:
    """Of a content of a channel: whether the delivery commutes with these operations of the sender, and all others.

    `silent` are the words of other deliveries to the receiver that make no difference either.
    """

    channel: int
    operations: frozenset[int]
    silent: frozenset[int]


@dataclass(frozen=True)
class Insertion:
    """Of a content of a channel: whether this operation commutes with all others, and with deliveries.

    `operations` are all that the sender may still send there. With `repeats`, the operation may come any number of
    times.
    """

    channel: int
    operation: int
    operations: frozenset[int]
    repeats: bool


@dataclass(frozen=True)
class Repetition:
    """Of a cell of a process: whether an operation from a channel, now or later, may be repeated without effect."""

    channel: int
    operation: int


@dataclass(frozen=True)
class Silence:
    """The words of the deliveries of a channel that make no difference to a receiver; a subject of questions."""

    channel: int
    words: frozenset[int]


@dataclass(frozen=True)
class Sent:
    """Of a `Silence`: the number of the `Removal` for a sender that may still send these operations."""

    operations: frozenset[int]


class Known(NamedTuple):
    """A known operation on a cell of a process: the cell after it, and the words that it sends to channels."""

    operation: int
    after: int
    sent: frozenset[int]


class Drains:
    """The questions about a model's channels, and their answers, which it revises as the tables learn.

    `rows` (u32) has for each channel its column, those of its sender and its receiver, and the number of its `Future`.
    """

    def __init__(self, tables: Tables, channels: list[EligibleChannel]) -> None:
        self._tables, self._channels = tables, channels
        self._by_column = {channel.column: number for number, channel in enumerate(channels)}
        self._comparisons = [ChannelComparison(tables, c.column, c.target, c.appends) for c in channels]
        self.rows = np.array(
            [(c.column, c.source, c.target, tables.question(Future(n))) for n, c in enumerate(channels)], np.uint32
        ).reshape(-1, 4)
        self._processes = {c.source for c in channels} | {c.target for c in channels}
        self._steps: defaultdict[int, list[Known]] = defaultdict(list)
        self._futures = Futures()
        self._touched: set[int] = set()  # cells that something was learnt about
        self._unchanged: dict[tuple[int, Arrival], tuple[int, ...]] = {}  # with the answer yes: the words that are sent
        self._arrivals_at: defaultdict[int, set[Arrival]] = defaultdict(set)  # the same, by cell
        self._repetitions: defaultdict[Repetition, set[int]] = defaultdict(set)  # with the answer yes
        self._asked: dict[Any, set[int]] = defaultdict(set)  # by kernels, with the answer yes: the cells of a question
        self._of_actor: dict[int, list[int]] = {actor: [] for c in channels for actor in c.actors | c.receivers}
        self._scanned = 0  # operations
        self._others = [self._from_others(number) for number in range(len(channels))]
        self._refuted = self._were_refuted = False
        self._reduced: set[int] = set()  # cells that have lost an arrival
        tables.observer = self

    # -- what the tables learn -------------------------------------------------------------------------------

    def learnt(self, cell: int, operation: int, value: int) -> None:
        """An operation on a cell was carried out."""
        if self._tables.column_of(cell) in self._processes and value & LOW != IMPOSSIBLE:
            self._add(cell, operation, value & LOW, self._tables.words(value >> 32))

    def listed(self, cell: int) -> None:
        """The moves of a cell were listed: the delivery of a channel, or what a process sends by a move."""
        column = self._tables.column_of(cell)
        if (number := self._by_column.get(column)) is not None:
            delivery = self._comparisons[number].delivery(cell)
            if delivery is not None:
                self._tables.asks.view[cell] = self._tables.question(Arrival(number, delivery.word & LOW))
        elif column in self._processes:
            place, count = self._tables.listing(cell)
            for _ in range(count):
                words = self._tables.words(place)
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
            self._asked[question].add(cell)
        return value

    def _answer(self, cell: int, question: Any) -> int:
        match question:
            case Future(channel=channel):
                return self._tables.question(Sent(self._still_sent(cell, channel)))
            case Sent(operations=operations):
                silence: Silence = self._tables.subject_of(cell)
                return self._tables.question(Removal(silence.channel, operations, silence.words))
            case Arrival():
                words = self._arrival(cell, question)
                return IMPOSSIBLE if words is None else self._arrival_answer(cell, question, words)
            case Removal(channel=channel, operations=operations, silent=silent):
                others = sorted(operations | self._from_others(channel))
                holds = self._comparisons[channel].removal_commutes(cell, others, silent)
                return YES if holds else IMPOSSIBLE
            case Insertion():
                return self._insertion_answer(cell, question)
            case _:
                return YES if self._repeats(cell, question) else IMPOSSIBLE

    def _still_sent(self, cell: int, channel: int) -> frozenset[int]:
        """The operations that a process may still send to a channel."""
        column = self._channels[channel].column
        return frozenset(word & LOW for word in self._futures.of(cell) if word >> 32 == column)

    def _arrival_answer(self, cell: int, question: Arrival, words: tuple[int, ...]) -> int:
        """Yes: the number of the silence, and the effect with the questions about what the delivery sends."""
        channels = [self._by_column[word >> 32] for word in words]
        repeats = bool(words) and all(self._channels[channel].appends is None for channel in channels)
        silent = set()
        for operation in self._deliveries(question.channel):
            known = self._arrival(cell, Arrival(question.channel, operation))
            if known == () or (repeats and known == words):
                silent.add(self._channels[question.channel].target << 32 | operation)
        silence = self._tables.subject(Silence(question.channel, frozenset(silent)))
        asked = [
            word >> 32 << 32
            | self._tables.question(Insertion(channel, word & LOW, self._still_sent(cell, channel), repeats))
            for word, channel in zip(words, channels, strict=True)
        ]
        return (self._tables.effect(asked) if asked else 0) << 32 | silence

    def _deliveries(self, channel: int) -> list[int]:
        """The known operations that only the rules of a channel send to its receiver."""
        self._scan()
        known = (number for actor in self._channels[channel].receivers for number in self._of_actor[actor])
        return [number for number in known if self._is_behind(number, channel)]

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
        again = Arrival(question.channel, question.operation)
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

    def _arrival(self, cell: int, question: Arrival) -> tuple[int, ...] | None:
        """The words that an operation sends while it changes nothing, now and later; None if it may do something else.

        An answer other than None is noted for every later cell.
        """
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
                if known is not None and known != sent:
                    return None
                if known is None and after not in seen:
                    seen.add(after)
                    waiting.append(after)
        for at in seen:
            self._unchanged[at, question] = sent
            self._arrivals_at[at].add(question)
        return sent

    def _sent_unchanged(self, cell: int, question: Arrival) -> tuple[int, ...] | None:
        """The words that an operation sends, if it leaves a cell as it is and they go to different channels of its
        own.
        """
        try:
            value = self._tables.result(cell, question.operation)
        except ModelError:
            return None
        if value & LOW != cell:
            return None
        words, receiver = self._tables.words(value >> 32), self._channels[question.channel].target
        targets = {word >> 32 for word in words}
        if len(targets) < len(words) or not targets <= self._by_column.keys():
            return None
        if any(self._channels[self._by_column[target]].source != receiver for target in targets):
            return None
        return tuple(words)

    def _is_behind(self, operation: int, channel: int) -> bool:
        """Whether an operation comes only from later messages of the channel, behind the delivery that waits."""
        senders = self._tables.senders.get(operation)
        return senders is not None and senders <= self._channels[channel].rules

    def _from_others(self, channel: int) -> frozenset[int]:
        """The operations on a channel that neither its rules nor the steps of its sender send."""
        self._scan()
        declared = self._channels[channel]
        own = declared.rules | declared.steps
        known = (number for actor in declared.actors for number in self._of_actor[actor])
        return frozenset(number for number in known if not self._tables.senders.get(number, set()) <= own)

    def _scan(self) -> None:
        """Note the operations that are new in the tables."""
        operations = self._tables.operations_from(self._scanned)
        for number, (actor, _) in enumerate(operations, self._scanned):
            if actor in self._of_actor:
                self._of_actor[actor].append(number)
        self._scanned += len(operations)

    # -- paths -----------------------------------------------------------------------------------------------

    def drained(self, cells: list[int]) -> list[int]:
        """The columns of the channels that deliver at once in a row of cells, in the order of the kernel `drain`.

        The kernel has drained this row, so that all answers are known.
        """
        row, columns, again = list(cells), list[int](), True
        while again and len(columns) < int(drain_kernels.MOST_DRAINED):
            again = False
            for number, channel in enumerate(self._channels):
                delivery = self._comparisons[number].delivery(row[channel.column])
                if delivery is None or not self._is_drained(row, number, delivery):
                    continue
                for word in self._tables.words(self._tables.result(row[channel.target], delivery.word & LOW) >> 32):
                    row[word >> 32] = self._tables.result(row[word >> 32], word & LOW) & LOW
                row[channel.column] = delivery.after
                columns.append(channel.column)
                again = True
        return columns

    def _is_drained(self, row: list[int], number: int, delivery: Delivery) -> bool:
        channel = self._channels[number]
        arrival = self._asked_before(row[channel.target], Arrival(number, delivery.word & LOW))
        future = self._asked_before(row[channel.source], Future(number))
        if arrival & LOW == IMPOSSIBLE:
            return False
        removal = self._tables.result(arrival & LOW, future & LOW)
        if self._tables.result(row[channel.column], removal & LOW) == IMPOSSIBLE:
            return False
        for word in self._tables.words(arrival >> 32):
            insertion = self._tables.result(row[word >> 32], word & LOW)
            further = [insertion] if insertion == IMPOSSIBLE else self._tables.words(insertion >> 32)
            if insertion == IMPOSSIBLE or any(self._tables.result(row[w >> 32], w & LOW) == IMPOSSIBLE for w in further):
                return False
        return True

    def _asked_before(self, cell: int, question: Any) -> int:
        return self._tables.result(cell, self._tables.question(question))

    # -- revision --------------------------------------------------------------------------------------------

    def holds(self) -> bool:
        """Revise all answers; False if one on which a kernel may have relied is refuted. No kernel runs."""
        while self._touched or self._futures.grown:
            touched, self._touched = self._touched, set()
            grown, self._futures.grown = self._futures.grown, set()
            self._were_refuted = False
            self._revise_arrivals(touched)
            self._revise_repetitions(touched)
            self._revise_futures(grown)
            self._revise_answers(grown | self._reduced)
            self._reduced = set()
            self._revise_channels()
        self._revise_channels()
        self._tables.flush()
        held, self._refuted = not self._refuted, False
        return held

    def _revise_arrivals(self, cells: Iterable[int]) -> None:
        waiting = [(cell, question) for cell in cells for question in self._arrivals_at[cell]]
        while waiting:
            cell, question = waiting.pop()
            sent = self._unchanged.pop((cell, question), None)
            if sent is None:
                continue
            self._arrivals_at[cell].discard(question)
            if self._arrival(cell, question) == sent:
                continue
            self._were_refuted = True
            self._reduced.add(cell)
            self._refute(cell, question)
            waiting += [(before, question) for before in self._futures.before(cell)]

    def _revise_futures(self, cells: Iterable[int]) -> None:
        for cell, number in [(cell, number) for cell in cells for number in range(len(self._channels))]:
            if cell in self._asked.get(Future(number), ()):
                self._revise_future(cell, Future(number))

    def _revise_future(self, cell: int, question: Future) -> None:
        """Answer a `Future` again; what was removed under the old answer must commute under the new one."""
        old, new = self._asked_before(cell, question), self._answer(cell, question)
        if old == new:
            return
        self._tables.revise(cell, self._tables.question(question), new)
        sent: tuple[Sent, Sent] = self._tables.operation(old), self._tables.operation(new)
        for asked, contents in list(self._asked.items()):
            if isinstance(asked, Removal) and asked.channel == question.channel and asked.operations == sent[0].operations:
                again = Removal(asked.channel, sent[1].operations, asked.silent)
                if any(self._answer(each, again) == IMPOSSIBLE for each in list(contents)):
                    self._refuted = True

    def _revise_answers(self, cells: Iterable[int]) -> None:
        """Answer the arrivals at cells again, since their silence or their questions may have changed."""
        for cell in cells:
            for question in [each for each in self._arrivals_at[cell] if cell in self._asked.get(each, ())]:
                old, new = self._asked_before(cell, question), self._answer(cell, question)
                if new == IMPOSSIBLE:
                    self._refute(cell, question)
                elif old != new:
                    self._tables.revise(cell, self._tables.question(question), new)
                    self._compare_answers(question, old, new)

    def _compare_answers(self, question: Arrival, old: int, new: int) -> None:
        """Refute the search if a drained delivery would not be drained under the new answer."""
        before, after = self._tables.subject_of(old & LOW), self._tables.subject_of(new & LOW)
        for asked, contents in list(self._asked.items()):
            if isinstance(asked, Removal) and asked.channel == question.channel and asked.silent == before.words:
                again = Removal(asked.channel, asked.operations, after.words)
                if any(self._answer(each, again) == IMPOSSIBLE for each in list(contents)):
                    self._refuted = True
        for one, other in zip(self._tables.words(old >> 32), self._tables.words(new >> 32), strict=True):
            was, asked = self._tables.operation(one & LOW), self._tables.operation(other & LOW)
            if was != asked and any(self._answer(each, asked) == IMPOSSIBLE for each in list(self._asked.get(was, ()))):
                self._refuted = True

    def _revise_repetitions(self, cells: Iterable[int]) -> None:
        """Answer each `Repetition` again whose cells something was learnt about, or whose arrivals were refuted."""
        changed = {*cells}
        for question, yes in list(self._repetitions.items()):
            if changed & yes or self._were_refuted:
                self._repetitions[question] = set()
                for cell in list(self._asked.get(question, ())):
                    if not self._repeats(cell, question):
                        self._refute(cell, question)

    def _revise_channels(self) -> None:
        for number in range(len(self._channels)):
            others = self._from_others(number)
            if others == self._others[number]:
                continue
            self._others[number] = others
            for question, cells in list(self._asked.items()):
                if isinstance(question, Removal | Insertion) and question.channel == number:
                    for cell in list(cells):
                        if self._answer(cell, question) != self._asked_before(cell, question):
                            self._refute(cell, question)

    def _refute(self, cell: int, question: Any) -> None:
        if cell in self._asked.get(question, ()):
            self._asked[question].discard(cell)
            self._tables.revise(cell, self._tables.question(question), IMPOSSIBLE)
            self._refuted = True
