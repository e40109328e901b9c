"""What single messages do in closures: whether they are redundant, and whether they leave their receiver as it is.

A message is *redundant* if, from now on, it cannot arrive, has no effect, or has that of an own move of the process.
The oldest message of a channel is *inert* if it leaves the process as it is, now and whenever it arrives. The names are
those of `closure_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.closure_kernels import (
    AFTER,
    EVENT,
    FIRST_EVENT,
    INERT,
    NEEDS,
    NO,
    REFUSED,
    REFUSED_NOW,
    SENDS,
    UNKNOWN,
    YES,
    begin_closure,
    keep,
    kinds_at,
    known_at,
    recall,
    spread,
    step_on,
)
from checker.engine.kernels.hash_tables import BITS32, ONE, ZERO
from checker.engine.kernels.jit import inlined, ones_below, shared

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32, I64 = np.uint64, np.uint32, np.int64


@inlined
def is_redundant(local: Any, step: Any, g: Any) -> Any:
    """Whether a step of a local state is impossible, has no effect, or that of an own move."""
    event = step & EVENT
    if step == REFUSED or (g.events[event, AFTER] == local and g.events[event, SENDS] == 0):
        return True
    same = False
    for n in range(g.own[local, 0], g.own[local, 0] + g.own[local, 1]):
        same |= g.own_steps[n] & EVENT == event
    return same


@inlined
def redundant_in(local: Any, messages: Array, bits: Array, g: Any, missing: Array, counters: Array) -> Any:
    """Whether the messages among `bits` are redundant in a local state, whose own moves are known: YES, NO, UNKNOWN."""
    status = YES
    for w in range(messages.size):
        left = messages[w] & bits[w]
        while left:
            bit = U64(64 * w) + ones_below(left)
            left &= left - ONE
            step = step_on(local, bit, g, missing, counters)
            if step == U32(0):
                status = UNKNOWN
            elif not is_redundant(local, step, g):
                return NO
    return status


@inlined
def needs_sender(p: Any, channel: Any, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Whether a stubborn set with a process needs the sender of an empty channel to it: YES, NO or UNKNOWN.

    `r.sent` are the messages that may come. The sender is not needed if none of them can arrive now, or if all messages
    of the channel are redundant from now on.
    """
    record, processes, words = r.records[r.views[p]], U64(r.masks.shape[0]), U64(r.masks.shape[1])
    bits, possible, refused = g.channel_bits[channel], ZERO, kinds_at(processes, words, REFUSED_NOW)
    for w in range(words):
        may_come = r.sent[w] & bits[w]
        possible |= may_come & ~record[refused + w]
    if not possible:
        return I64(NO)
    known, one = known_at(processes, words), ONE << channel
    if not record[known] & one:
        answer = search_for_effect(U64(r.locals[p]), r.masks[p], bits, g, r, missing, counters)
        if answer == UNKNOWN:
            return I64(UNKNOWN)
        record[known] |= one
        record[known + ONE] |= one if answer == YES else ZERO
    return I64(NO) if record[known + ONE] & one else I64(YES)


@inlined
def are_redundant(local: Any, messages: Array, channel: Any, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Whether the messages of a channel are redundant from now on: YES, NO or UNKNOWN."""
    key, further, bits = U64(local) + ONE, (NEEDS << BITS32) | U64(channel), g.channel_bits[channel]
    slot, answer = recall(r.cache, key, further, messages)
    if answer == UNKNOWN:
        answer = I64(search_for_effect(local, messages, bits, g, r, missing, counters))
        keep(r.cache, slot, key, further, messages, answer)
    return answer


@shared
def search_for_effect(local: Any, messages: Array, bits: Array, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Whether the messages among `bits` are redundant in a closure without them: YES, NO or UNKNOWN."""
    status, answer, size, at = YES, YES, ONE, ZERO
    stamp = begin_closure(local, r)
    while at < size and answer == YES:
        cell = r.queue[at]
        at += ONE
        known, size = spread(cell, messages, bits, stamp, size, g, r, missing, counters)
        if known != YES:
            status = UNKNOWN
            continue
        known = redundant_in(cell, messages, bits, g, missing, counters)
        answer = NO if known == NO else answer
        status = UNKNOWN if known == UNKNOWN else status
    return UNKNOWN if status == UNKNOWN and answer == YES else answer


@inlined
def is_inert(local: Any, messages: Array, channel: Any, bit: Any, g: Any, r: Any,
             missing: Array, counters: Array) -> Any:  # fmt: skip
    """Whether the oldest message of a channel leaves the process as it is, now and until it arrives: YES, NO, UNKNOWN.

    It sends the same messages whenever it arrives, and nothing else is sent to the same channels until then.
    """
    step = step_on(local, bit, g, missing, counters)
    if step == U32(0):
        return UNKNOWN
    if step == REFUSED or g.events[step & EVENT, AFTER] != local:
        return NO
    key, further = U64(local) + ONE, (INERT << BITS32) | U64(channel) | (U64(bit) << U64(40))
    slot, answer = recall(r.cache, key, further, messages)
    if answer == UNKNOWN:
        answer = I64(search_for_change(local, messages, g.channel_bits[channel], bit, g, r, missing, counters))
        keep(r.cache, slot, key, further, messages, answer)
    return answer


@shared
def search_for_change(local: Any, messages: Array, bits: Array, bit: Any, g: Any, r: Any,
                      missing: Array, counters: Array) -> Any:  # fmt: skip
    """Whether a message is inert in a closure without those among `bits`: YES, NO or UNKNOWN."""
    sends = g.events[g.steps[local, bit] & EVENT, SENDS]
    status, answer, size, at = YES, YES, ONE, ZERO
    stamp = begin_closure(local, r)
    while at < size and answer == YES:
        cell = r.queue[at]
        at += ONE
        known, size = spread(cell, messages, bits, stamp, size, g, r, missing, counters)
        later = step_on(cell, bit, g, missing, counters)
        if later == U32(0):
            known = UNKNOWN
        elif later == REFUSED or g.events[later & EVENT, AFTER] != cell or g.events[later & EVENT, SENDS] != sends:
            answer = NO
        if known != YES:
            status = UNKNOWN
        elif sends and answer == YES and sends_alike(cell, sends, messages, bits, g):
            answer = NO
    return UNKNOWN if status == UNKNOWN and answer == YES else answer


@inlined
def overlap(one: Any, other: Any, g: Any) -> Any:
    """Whether two sendings put messages into the same channel."""
    return (g.outlets[one] & g.outlets[other]) != ZERO


@inlined
def sends_alike(local: Any, sends: Any, messages: Array, without: Array, g: Any) -> Any:
    """Whether an own move or another message sends something into the channels of a sending."""
    for n in range(g.own[local, 0], g.own[local, 0] + g.own[local, 1]):
        if overlap(g.events[g.own_steps[n] & EVENT, SENDS], sends, g):
            return True
    for w in range(messages.size):
        bits = messages[w] & ~without[w]
        while bits:
            step = g.steps[local, U64(64 * w) + ones_below(bits)]
            bits &= bits - ONE
            if step >= FIRST_EVENT and overlap(g.events[step & EVENT, SENDS], sends, g):
                return True
    return False
