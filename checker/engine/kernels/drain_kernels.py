"""Carries out the deliveries of a row that the reduction drains (`checker.engine.reduction`).

The first part is for the mode "safe", whose answers come from Python. The second part (`find_inert` and later) is for
stubborn sets: such a set may be the delivery of a single inert message, which is drained as a part of the move before.

A question about a cell has a number, like an operation, and the memo has its answer under `cell << 32 | question`. The
answers are written by `reduction.drains`; IMPOSSIBLE is no. The rules of `move_kernels` apply.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.closure_kernels import EVENT, NO, SENDS, UNKNOWN, YES
from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, LOW, MISSING, ONE, ZERO, ask, note
from checker.engine.kernels.jit import inlined, kernel, shared
from checker.engine.kernels.message_kernels import is_inert
from checker.engine.kernels.move_kernels import DONE, FIELDS, INCOMPLETE, LISTED, UNLISTED, run
from checker.engine.kernels.stubborn_kernels import delivery_is_free, is_regular, is_silent, receivers_needed

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32, I64 = np.uint64, np.uint32, np.int64
MOST_DRAINED = U64(1 << 10)  # deliveries of one row; the rest is left to later steps
MOST_INERT, EIGHT = U64(8), U64(8)  # the same for stubborn sets, and bits for each


@inlined
def is_drained(row: Array, channel: Array, question: Any, entries: Array, memo: Array, shift: Any,
               missing: Array, counters: Array) -> Any:  # fmt: skip
    """Whether the delivery from a channel is drained: YES, NO or UNKNOWN. channel = (column, source, target, future).

    `question` is that about its arrival. The answer has the number of an `InertDeliveries`, and an effect that asks
    about what the delivery sends. The number and the future together give the question about the removal.
    """
    arrival = ask(row[channel[2]], question, memo, shift, missing, counters)
    if arrival == MISSING:
        return UNKNOWN
    if arrival & LOW == IMPOSSIBLE:
        return NO
    future = ask(row[channel[1]], channel[3], memo, shift, missing, counters)
    if future == MISSING:
        return UNKNOWN
    asked = ask(arrival, future & LOW, memo, shift, missing, counters)
    if asked == MISSING:
        return UNKNOWN
    removal = ask(row[channel[0]], asked & LOW, memo, shift, missing, counters)
    if removal == MISSING:
        return UNKNOWN
    if removal & LOW == IMPOSSIBLE:
        return NO
    at = arrival >> BITS32
    for n in range(entries[at] & LOW):
        word = entries[at + ONE + U64(n)]
        insertion = ask(row[word >> BITS32], word & LOW, memo, shift, missing, counters)
        if insertion == MISSING:
            return UNKNOWN
        if insertion & LOW == IMPOSSIBLE:
            return NO
        if insertion >> BITS32:
            word = entries[(insertion >> BITS32) + ONE]
            repetition = ask(row[word >> BITS32], word & LOW, memo, shift, missing, counters)
            if repetition == MISSING:
                return UNKNOWN
            if repetition & LOW == IMPOSSIBLE:
                return NO
    return YES


@inlined
def drain(row: Array, fingerprint: Any, channels: Array, asks: Array, fired: Array, cells: Array,
          stack: Array, entries: Array, groups: Array, reads: Array, classes: Array, bases: Array,
          memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Drain a row: (status, fingerprint afterwards, changed columns, affected bundles). `fired` may be empty.

    channels[k] = (column, source, target, question about the future); asks[cell] = question about the arrival, 0: none.
    """
    changed, affected, drained, again = ZERO, ZERO, ZERO, True
    while again and drained < MOST_DRAINED:
        again = False
        for k in range(channels.shape[0]):
            cell = U64(row[channels[k, 0]])
            listed = cells[cell * FIELDS + LISTED]
            if listed == UNLISTED:
                note(missing, counters, cell << BITS32)
                return INCOMPLETE, fingerprint, changed, affected
            question = asks[cell]
            if question == 0:
                continue
            answer = is_drained(row, channels[k], question, entries, memo, shift, missing, counters)
            if answer == UNKNOWN:
                return INCOMPLETE, fingerprint, changed, affected
            if answer == YES:
                move = listed >> BITS32
                status, fingerprint, more, further = run(
                    move, row, fingerprint, stack, entries,
                    groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
                changed |= more
                affected |= further
                if status != DONE:
                    return INCOMPLETE, fingerprint, changed, affected
                if fired.size:
                    fired[entries[move] >> BITS32] += ONE
                drained += ONE
                again = True
    return DONE, fingerprint, changed, affected


@inlined
def run_and_drain(move: Any, row: Array, fingerprint: Any, channels: Array, asks: Array, fired: Array, cells: Array,
                  stack: Array, entries: Array, groups: Array, reads: Array, classes: Array, bases: Array,
                  memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Carry out a move on a row, as `run` does, and drain the row if there are channels."""
    status, fingerprint, changed, affected = run(
        move, row, fingerprint, stack, entries,
        groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
    if channels.size and status == DONE:
        status, fingerprint, more, further = drain(
            row, fingerprint, channels, asks, fired, cells, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        changed |= more
        affected |= further
    return status, fingerprint, changed, affected


@inlined
def find_inert(row: Array, plan: Any, numbers: Array, cells: Array, g: Any, r: Any,
               missing: Array, counters: Array) -> Any:  # fmt: skip
    """The channel, plus 1, whose oldest message is enough to follow: (YES or UNKNOWN, channel); 0 for none.

    It is UNKNOWN as long as the answer for an earlier channel is: the same row always has the same channel.
    """
    status = YES
    for c in range(plan.inputs.shape[0]):
        cell = U64(row[plan.inputs[c, 0]])
        content = numbers[cell]
        if not g.heads[content] or cells[cell * FIELDS + LISTED] & LOW != ONE:
            continue
        p, bit = plan.inputs[c, 2], U64(g.heads[content] - U32(1))
        local = U64(numbers[row[plan.processes[p, 0]]] - U32(1))
        if r.tried[c, 0] == local + ONE and r.tried[c, 1] == bit:
            answer = I64(r.tried[c, 2])
        else:
            answer = I64(is_inert(local, r.masks[p], U64(c), bit, g, r, missing, counters))
            if answer != UNKNOWN:
                r.tried[c, 0], r.tried[c, 1], r.tried[c, 2] = local + ONE, bit, U64(answer)
        if answer == YES:
            sends = g.events[g.steps[local, bit] & EVENT, SENDS]
            if sends and not is_silent(g.sends[sends], ZERO, r):
                continue
            known, needed = receivers_needed(p, sends, row, plan, numbers, g, missing, counters)
            if known == YES and needed:
                continue
            answer = I64(delivery_is_free(local, content, U64(c), plan, g, r, missing, counters))
            if answer == YES and known != YES:
                answer = I64(UNKNOWN)
        if answer == YES:
            return status, U64(c) + ONE
        if answer == UNKNOWN:
            status = UNKNOWN
    return status, ZERO


@shared
def drain_inert(row: Array, fingerprint: Any, plan: Any, numbers: Array, g: Any, r: Any,
                cells: Array, stack: Array, entries: Array, groups: Array, reads: Array, classes: Array,
                bases: Array, memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Drain a successor of the row whose views `r` has: (status, fingerprint afterwards, changed columns, channels).

    The views of a row are upper bounds for those of its successors. Eight bits stand for each channel, plus 1, the
    first one lowest.
    """
    changed, drained, count = ZERO, ZERO, ZERO
    while r.settled[0] and count < MOST_INERT:
        status, channel = is_regular(row, plan, numbers, cells, g, missing, counters), ZERO
        if status == YES:
            status, channel = find_inert(row, plan, numbers, cells, g, r, missing, counters)
        if status == UNKNOWN:
            return INCOMPLETE, fingerprint, changed, drained
        if channel == ZERO:
            break
        move = cells[U64(row[plan.inputs[channel - ONE, 0]]) * FIELDS + LISTED] >> BITS32
        done, fingerprint, more, _ = run(
            move, row, fingerprint, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        changed |= more
        if done != DONE:
            return INCOMPLETE, fingerprint, changed, drained
        drained |= channel << (EIGHT * count)
        count += ONE
    return DONE, fingerprint, changed, drained


@inlined
def run_and_reduce(move: Any, row: Array, fingerprint: Any, channels: Array, asks: Array, fired: Array,
                   plan: Any, numbers: Array, g: Any, r: Any, cells: Array, stack: Array, entries: Array,
                   groups: Array, reads: Array, classes: Array, bases: Array,
                   memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Carry out a move on a row, and drain the row: (status, fingerprint afterwards, changed columns, channels).

    The channels are those of `drain_inert`, with a `plan` only.
    """
    drained = ZERO
    status, fingerprint, changed, _ = run_and_drain(
        move, row, fingerprint, channels, asks, fired, cells, stack, entries,
        groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
    if plan is not None and status == DONE and r.settled[0]:
        status, fingerprint, more, drained = drain_inert(
            row, fingerprint, plan, numbers, g, r, cells, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        changed |= more
    return status, fingerprint, changed, drained


@inlined
def drain_again(row: Array, drained: Any, plan: Any, fired: Array, cells: Array, stack: Array, entries: Array,
                groups: Array, reads: Array, classes: Array, bases: Array,
                memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Carry out the deliveries that `drain_inert` found, and count them: the affected bundles."""
    affected = ZERO
    while drained:
        move = cells[U64(row[plan.inputs[(drained & U64(0xFF)) - ONE, 0]]) * FIELDS + LISTED] >> BITS32
        drained >>= EIGHT
        _, _, _, further = run(
            move, row, ZERO, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        affected |= further
        fired[entries[move] >> BITS32] += ONE
    return affected


@kernel
def find_drained(row: Array, plan: Any, numbers: Array, cells: Array,
                 g: Any, r: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The channel, plus 1, that drains a successor `row` of the row whose views `r` has; 0 for none."""
    if not r.settled[0] or is_regular(row, plan, numbers, cells, g, missing, counters) != YES:
        return ZERO
    return find_inert(row, plan, numbers, cells, g, r, missing, counters)[1]
