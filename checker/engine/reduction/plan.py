"""The processes and channels of a model in numbers, as the kernels that select stubborn sets take them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from checker.engine.arrays import aligned_zeros
from checker.engine.kernels import closure_kernels

Array = np.ndarray[Any, Any]

MOST_LOCALS = 1 << 10  # of a closure; a view with more is irregular
EDGES, PAIRS = 1 << 14, 1 << 12  # room for searches
RECORDS, ANSWERS = 1 << 25, 1 << 21  # bytes for the records and the other answers of a thread, at most
FIRST_SLOTS = 1 << 10  # of the table of records
RECENT = 16  # records of a process


class StubbornPlan(NamedTuple):
    """The arrays of `kernels.stubborn_kernels`, which has their meaning; all u32, except
    for `owners` (u8), `affects`, `idle` and `broken` (u64).
    """

    owners: Array
    affects: Array
    processes: Array
    inputs: Array
    outputs: Array
    sides: Array
    idle: Array
    broken: Array


class LocalGraph(NamedTuple):
    """The steps of processes on single messages, and the contents of channels; it grows, and 0 means "not yet known".

    A *message* of a process is a bit: an operation that may arrive by one of its channels. W words have room for them.
    A *local state* has a number among those of all processes, and so has a content among those of all channels. A
    *sending* is what an event puts into channels; number 0 is nothing.

        cells[local], owner[local] = its cell, its process
        own[local] = (first of its own moves in own_steps, their number, UNLISTED or LISTED_OWN or IRREGULAR_OWN)
        steps[local, bit] = an event, and UNSEEN; or REFUSED, IRREGULAR_STEP
        events[event] = (local state afterwards, sending)
        sends[sending, process * W + word] = messages (u64); outlets[sending] = the channels concerned, as bits (u64)
        targets[channel] = the process that it leads to
        channel_bits[channel, word] = the messages that come by a channel (u64)
        questions[process, bit] = the question for steps; append_questions[channel, bit] = that for `appended`
        held[content, word] = the messages in a content (u64); heads[content] = the bit of the oldest, plus 1
        popped[content] = the content after a delivery
        appended[content, bit] = the content of a bounded channel after a message was sent, or IRREGULAR_CONTENT
        content_cells[content] = its cell
        own_question[0] = the question for own moves
    """

    cells: Array
    owner: Array
    own: Array
    own_steps: Array
    steps: Array
    events: Array
    sends: Array
    outlets: Array
    targets: Array
    channel_bits: Array
    questions: Array
    append_questions: Array
    held: Array
    heads: Array
    popped: Array
    appended: Array
    content_cells: Array
    own_question: Array


class ViewRoom(NamedTuple):
    """The room of one thread: the views of a row, the closures and answers that it keeps, and room for searches.

    In the present row, `locals` and `masks` (u64) have the local state and the messages of each process, `views` (u64)
    the number of its record, and `needs` and `weights` (u64) a word for each. `held` (u64) are the messages in channels
    alone; `masks_apart` and `views_apart` are those without what a set of processes does.
    `contents` (u32) has the content of each channel, and `bits` (u64) the channels that are not empty, those where the
    oldest message was tried, and those among them where it was inert. `settled[0]` says whether there are views of the
    present row. `records`, `table`, `sizes`
    and `cache` (u64) are described in `closure_kernels`, and `recent` (u32) has some numbers of records that were found
    last. `sent` are the messages of one channel. `marks`, `returns` (u32, for each local state) and `slots` (u64) have
    the number of the search that wrote them, from `clock` (u32).
    """

    locals: Array
    sent: Array
    masks: Array
    views: Array
    held: Array
    masks_apart: Array
    views_apart: Array
    needs: Array
    weights: Array
    contents: Array
    bits: Array
    records: Array
    table: Array
    sizes: Array
    recent: Array
    cache: Array
    marks: Array
    returns: Array
    queue: Array
    edges: Array
    pairs: Array
    slots: Array
    clock: Array
    settled: Array

    @classmethod
    def of(cls, plan: StubbornPlan, graph: LocalGraph) -> ViewRoom:
        """Room for the views of the processes of a plan."""
        words, number, processes = graph.channel_bits.shape[1], len(graph.cells), len(plan.processes)
        record = closure_kernels.words_of_record(processes, words)
        answer = closure_kernels.words_of_answer(words)
        records = 1 << (RECORDS // (8 * record)).bit_length() - 1
        return cls(
            np.zeros(processes, np.uint32),
            np.zeros(words, np.uint64),
            np.zeros((processes, words), np.uint64),
            np.zeros(processes, np.uint64),
            np.zeros((processes, words), np.uint64),
            np.zeros((processes, words), np.uint64),
            np.zeros(processes, np.uint64),
            np.zeros(processes, np.uint64),
            np.zeros(processes, np.uint64),
            np.zeros(len(plan.inputs), np.uint32),
            np.zeros(3, np.uint64),
            aligned_zeros((max(records, 4 * processes), record), np.uint64),
            np.zeros(max(2 * records, FIRST_SLOTS), np.uint64),
            np.array([2 * processes, FIRST_SLOTS - 1], np.uint64),
            np.zeros((processes, RECENT), np.uint32),
            aligned_zeros((1 << (ANSWERS // (8 * answer)).bit_length() - 1, answer), np.uint64),
            np.zeros(number, np.uint32),
            np.zeros(number, np.uint32),
            np.zeros(MOST_LOCALS, np.uint32),
            np.zeros((EDGES, 2), np.uint32),
            np.zeros(PAIRS, np.uint64),
            np.zeros((4 * PAIRS, 2), np.uint64),
            np.zeros(2, np.uint32),
            np.zeros(1, np.uint32),
        )

    def with_space(self, plan: StubbornPlan, graph: LocalGraph) -> ViewRoom:
        """This room, or empty room if there is none for another record."""
        is_full = int(self.sizes[closure_kernels.USED]) == len(self.records)
        return ViewRoom.of(plan, graph) if is_full else self.fitting(plan, graph)

    def fitting(self, plan: StubbornPlan, graph: LocalGraph) -> ViewRoom:
        """This room, or larger room without records if the graph has grown beyond it."""
        if self.masks.shape[1] != graph.channel_bits.shape[1]:
            return ViewRoom.of(plan, graph)
        if len(self.marks) < len(graph.cells):
            marks = (np.zeros(len(graph.cells), np.uint32) for _ in range(2))
            return self._replace(**dict(zip(("marks", "returns"), marks, strict=True)))
        return self
