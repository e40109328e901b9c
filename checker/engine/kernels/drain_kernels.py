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
from checker.engine.kernels.jit import inlined, kernel, ones_below, shared
from checker.engine.kernels.message_kernels import is_inert
from checker.engine.kernels.move_kernels import DONE, FIELDS, INCOMPLETE, LISTED, MANY, UNLISTED, run
from checker.engine.kernels.queue_kernels import IRREGULAR_CONTENT
from checker.engine.kernels.stubborn_kernels import (
    FILLED,
    INERT_NOW,
    NOBODY,
    TRIED,
    delivery_is_free,
    is_silent,
    receivers_needed,
)

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
def is_regular(column: Any, row: Array, plan: Any, numbers: Array, g: Any, missing: Array, counters: Array) -> Any:
    """Whether the local state or content in a column is known, and a content is regular: YES, NO or UNKNOWN."""
    owner, cell = plan.owners[column], U64(row[column])
    if owner == NOBODY or (numbers[cell] != U32(0) and numbers[cell] != IRREGULAR_CONTENT):
        return YES
    if numbers[cell] == IRREGULAR_CONTENT:
        return NO
    is_process = plan.processes[owner, 0] == column
    note(missing, counters, (cell << BITS32) | (U64(g.own_question[0]) if is_process else ZERO))
    return UNKNOWN


@inlined
def are_regular(columns: Any, row: Array, plan: Any, numbers: Array, g: Any, missing: Array, counters: Array) -> Any:
    """`is_regular` for the columns that were changed, as bits."""
    status, last = YES, U64(plan.owners.size)
    while columns:
        first = ones_below(columns)
        columns &= columns - ONE
        for column in range(first, last if first == MANY else first + ONE):
            known = is_regular(column, row, plan, numbers, g, missing, counters)
            if known == NO:
                return NO
            status = max(status, known)
    return status


@inlined
def affected_by(columns: Any, plan: Any) -> Any:
    """The channels whose content or receiver is among the columns that were changed, as bits."""
    if columns >> MANY:
        return ~ZERO >> (U64(64) - U64(plan.inputs.shape[0]))
    affected = ZERO
    while columns:
        affected |= plan.affects[ones_below(columns)]
        columns &= columns - ONE
    return affected


@inlined
def find_inert(row: Array, changed: Any, plan: Any, numbers: Array, cells: Array, g: Any, r: Any,
               missing: Array, counters: Array) -> Any:  # fmt: skip
    """The channel, plus 1, whose oldest message is enough to follow: (YES or UNKNOWN, channel); 0 for none.

    `changed` are the columns in which the row differs from that whose views `r` has; what was tried elsewhere holds
    here. It is UNKNOWN as long as the answer for an earlier channel is: the same row always has the same channel.
    """
    status, affected = YES, affected_by(changed, plan)
    waiting = affected | (r.bits[FILLED] & (~r.bits[TRIED] | r.bits[INERT_NOW]))
    while waiting:
        c = ones_below(waiting)
        one = ONE << c
        waiting ^= one
        cell = U64(row[plan.inputs[c, 0]])
        content = numbers[cell]
        if not g.heads[content] or cells[cell * FIELDS + LISTED] & LOW != ONE:
            continue
        p, bit = plan.inputs[c, 2], U64(g.heads[content] - U32(1))
        local = U64(numbers[row[plan.processes[p, 0]]] - U32(1))
        if r.bits[INERT_NOW] & one & ~affected:
            answer = I64(YES)
        else:
            answer = I64(is_inert(local, r.masks[p], c, bit, g, r, missing, counters))
            if answer != UNKNOWN and not affected & one:
                r.bits[TRIED] |= one
                r.bits[INERT_NOW] |= one if answer == YES else ZERO
        if answer == YES:
            sends = g.events[g.steps[local, bit] & EVENT, SENDS]
            if sends and not is_silent(g.sends[sends], ZERO, r):
                continue
            known, needed = receivers_needed(p, sends, row, plan, numbers, g, missing, counters)
            if known == YES and needed:
                continue
            answer = I64(delivery_is_free(local, content, c, r.views, r.masks, plan, g, r, missing, counters))
            if answer == YES and known != YES:
                answer = I64(UNKNOWN)
        if answer == YES:
            return status, c + ONE
        if answer == UNKNOWN:
            status = UNKNOWN
    return status, ZERO


@shared
def drain_inert(row: Array, fingerprint: Any, changed: Any, plan: Any, numbers: Array, g: Any, r: Any,
                cells: Array, stack: Array, entries: Array, groups: Array, reads: Array, classes: Array,
                bases: Array, memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Drain a successor of the row whose views `r` has: (status, fingerprint afterwards, changed columns, channels).

    It differs from that row in the columns `changed`. The views of a row are upper bounds for those of its successors.
    Eight bits stand for each channel, plus 1, the first one lowest.
    """
    drained, count, new = ZERO, ZERO, changed
    while count < MOST_INERT:
        status, channel = are_regular(new, row, plan, numbers, g, missing, counters), ZERO
        if status == YES:
            status, channel = find_inert(row, changed, plan, numbers, cells, g, r, missing, counters)
        if status == UNKNOWN:
            return INCOMPLETE, fingerprint, changed, drained
        if channel == ZERO:
            break
        move = cells[U64(row[plan.inputs[channel - ONE, 0]]) * FIELDS + LISTED] >> BITS32
        done, fingerprint, new, _ = run(
            move, row, fingerprint, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        changed |= new
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
        status, fingerprint, changed, drained = drain_inert(
            row, fingerprint, changed, plan, numbers, g, r, cells, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
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
    columns = (ONE << min(U64(plan.owners.size), MANY)) - ONE + (ONE << MANY if U64(plan.owners.size) > MANY else ZERO)
    if not r.settled[0] or are_regular(columns, row, plan, numbers, g, missing, counters) != YES:
        return ZERO
    return find_inert(row, ONE << MANY, plan, numbers, cells, g, r, missing, counters)[1]
