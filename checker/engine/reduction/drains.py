"""The revision of answers as the tables learn, and the drained deliveries of a single row.

An answer looks at everything that the tables know. If something that they learn later makes a "yes" wrong, `holds`
says so, and the search begins again. Answers only become stricter, so that a path is rebuilt as it was found.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from checker.engine.kernels import drain_kernels
from checker.engine.reduction.answers import Answers
from checker.engine.reduction.channels import LOW, OldestMessage
from checker.engine.reduction.eligible import EligibleChannel
from checker.engine.reduction.plan import LocalGraph, StubbornPlan
from checker.engine.reduction.questions import ArrivalEffect, Future, Removal
from checker.engine.tables.tables import IMPOSSIBLE, Tables


class Drains(Answers):
    """The answers of the reduction, kept right while the tables learn, which it observes."""

    def __init__(self, tables: Tables, channels: list[EligibleChannel]) -> None:
        super().__init__(tables, channels)
        self.plan: StubbornPlan | None = None
        self.graph: LocalGraph | None = None
        tables.observer = self

    # -- paths -----------------------------------------------------------------------------------------------

    def drained(self, before: list[int], cells: list[int]) -> list[int]:  # noqa: ARG002 (for stubborn sets)
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
                effect = self._tables.result(row[channel.target], delivery.word & LOW) >> 32
                for word in self._tables.effect_words(effect):
                    row[word >> 32] = self._tables.result(row[word >> 32], word & LOW) & LOW
                row[channel.column] = delivery.after
                columns.append(channel.column)
                again = True
        return columns

    def enabled(self, position: int, moves: list[int]) -> None:
        """No answer depends on the rules over several columns, which read no channel."""

    def chosen(self, cells: list[int]) -> None:
        """All moves of a row are followed."""

    def _is_drained(self, row: list[int], number: int, delivery: OldestMessage) -> bool:
        channel = self._channels[number]
        arrival = self._asked_before(row[channel.target], ArrivalEffect(number, delivery.word & LOW))
        future = self._asked_before(row[channel.source], Future(number))
        if arrival & LOW == IMPOSSIBLE:
            return False
        removal = self._tables.result(arrival & LOW, future & LOW)
        if self._tables.result(row[channel.column], removal & LOW) == IMPOSSIBLE:
            return False
        for word in self._tables.effect_words(arrival >> 32):
            insertion = self._tables.result(row[word >> 32], word & LOW)
            if insertion == IMPOSSIBLE:
                return False
            further = self._tables.effect_words(insertion >> 32)
            if any(self._tables.result(row[each >> 32], each & LOW) == IMPOSSIBLE for each in further):
                return False
        return True

    def _asked_before(self, cell: int, question: Any) -> int:
        return self._tables.result(cell, self._tables.question(question))

    # -- revision --------------------------------------------------------------------------------------------

    def holds(self) -> bool:
        """Revise all answers; False if one on which a kernel may have relied is refuted. No kernel runs."""
        self._revise_origins()
        while self._touched or self._futures.grown or self._reduced:
            touched, self._touched = self._touched, set()
            grown, self._futures.grown = self._futures.grown, set()
            self._revise_arrivals(touched)
            self._revise_repetitions(touched)
            self._revise_futures(grown)
            self._revise_answers(grown | self._reduced)
            self._reduced = set()
            self._revise_channels()
            self._revise_origins()
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
            self._reduced.add(cell)
            self._refute(cell, question)
            waiting += [(before, question) for before in self._futures.before(cell)]

    def _revise_futures(self, cells: Iterable[int]) -> None:
        for cell, number in [(cell, number) for cell in cells for number in range(len(self._channels))]:
            if cell in self._asked.get(Future(number), ()):
                self._revise_future(cell, Future(number))

    def _revise_future(self, cell: int, question: Future) -> None:
        """Answer a `Future` again; a removal under the old answer must commute under the new one."""
        old, new = self._asked_before(cell, question), self._answer(cell, question)
        if old == new:
            return
        self._tables.revise(cell, self._tables.question(question), new)
        before, after = (self._tables.operation(each).operations for each in (old, new))
        for asked in list(self._removals[question.channel, before]):
            self._carry_over(self._asked[asked], Removal(asked.channel, after, asked.inert))

    def _revise_answers(self, cells: Iterable[int]) -> None:
        """Answer the arrivals at cells again, since their inert deliveries or questions may have changed."""
        for cell in cells:
            for question in [each for each in self._arrivals_at[cell] if cell in self._asked.get(each, ())]:
                old, new = self._asked_before(cell, question), self._answer(cell, question)
                if new == IMPOSSIBLE:
                    self._refute(cell, question)
                elif old != new:
                    self._tables.revise(cell, self._tables.question(question), new)
                    self._compare_answers(question, old, new)

    def _compare_answers(self, question: ArrivalEffect, old: int, new: int) -> None:
        """Refute the search if a drained delivery would not be drained under the new answer."""
        before, after = self._tables.subject_of(old & LOW), self._tables.subject_of(new & LOW)
        for asked in list(self._removals[question.channel, before.words, "inert"]):
            self._carry_over(self._asked[asked], Removal(asked.channel, asked.operations, after.words))
        for one, other in zip(self._tables.effect_words(old >> 32), self._tables.effect_words(new >> 32), strict=True):
            was, asked = self._tables.operation(one & LOW), self._tables.operation(other & LOW)
            if was != asked:
                self._carry_over(self._asked.get(was, ()), asked)

    def _carry_over(self, cells: Iterable[int], question: Any) -> None:
        """Ask another question about the cells of an earlier one; a "no" refutes the search."""
        for cell in list(cells):
            if self._answer(cell, question) == IMPOSSIBLE:
                self._refuted = True
            else:
                self._note(cell, question)

    def _revise_repetitions(self, cells: Iterable[int]) -> None:
        """Answer each `Repetition` again whose cells something was learnt about, or whose arrivals were refuted."""
        changed = {*cells}
        for question, yes in list(self._repetitions.items()):
            if changed & yes or self._reduced:
                self._repetitions[question] = set()
                for cell in list(self._asked.get(question, ())):
                    if not self._repeats(cell, question):
                        self._refute(cell, question)

    def _revise_channels(self) -> None:
        changed, self._origins.changed = self._origins.changed, set()
        for question in [each for number in sorted(changed) for each in self._of_channel[number]]:
            for cell in list(self._asked[question]):
                if self._answer(cell, question) != self._asked_before(cell, question):
                    self._refute(cell, question)

    def _revise_origins(self) -> None:
        """Revise all that relied on an operation that is no longer behind a channel."""
        moved, self._origins.moved = self._origins.moved, set()
        if moved:
            self._touched |= {
                cell for cell, steps in self._steps.items() if any(each.operation in moved for each in steps)
            }
            self._reduced |= {*self._arrivals_at}

    def _refute(self, cell: int, question: Any) -> None:
        if cell in self._asked.get(question, ()):
            self._asked[question].discard(cell)
            self._tables.revise(cell, self._tables.question(question), IMPOSSIBLE)
            self._refuted = True
