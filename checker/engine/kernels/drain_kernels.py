"""Carries out the deliveries of a row that the reduction drains (`checker.engine.reduction`).

A question about a cell has a number, like an operation, and the memo has its answer under `cell << 32 | question`. The
answers are written by `reduction.drains`; IMPOSSIBLE is no. The rules of `move_kernels` apply.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, LOW, MISSING, ONE, ZERO, ask, note
from checker.engine.kernels.jit import inlined
from checker.engine.kernels.move_kernels import DONE, FIELDS, INCOMPLETE, LISTED, UNLISTED, run

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64 = np.uint64
NO, YES, UNKNOWN = 0, 1, 2
MOST_DRAINED = U64(1 << 10)  # deliveries of one row; the rest is left to later steps


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
