"""Whether deliveries from a bounded channel commute with the sendings into it (`checker.engine.reduction.stubborn`).

A bounded channel may merge a message with the newest one, or replace it. Its contents and what deliveries and messages
make of them are in a `reduction.plan.LocalGraph` (here `g`). The other names are those of `closure_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.closure_kernels import (
    AFTER,
    COMMUTES,
    COMMUTES_WITH_SENDER,
    EVENT,
    FIRST_EVENT,
    NO,
    SENDS,
    UNKNOWN,
    UNLISTED,
    YES,
    keep,
    note_own,
    recall,
    step_on,
)
from checker.engine.kernels.hash_tables import BITS32, GOLDEN, ONE, ZERO, note
from checker.engine.kernels.jit import inlined, ones_below, shared

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32, I64 = np.uint64, np.uint32, np.int64
IRREGULAR_CONTENT = U32(0xFFFFFFFF)
NO_BIT = U64(0xFFFFFFFFFFFFFFFF)


@inlined
def after_sending(content: Any, channel: Any, bit: Any, g: Any, missing: Array, counters: Array) -> Any:
    """The content after a message was sent; 0 if it is not yet known."""
    after = g.appended[content, bit]
    if after == U32(0):
        note(missing, counters, (U64(g.content_cells[content]) << BITS32) | U64(g.append_questions[channel, bit]))
    return after


@inlined
def square(content: Any, channel: Any, bit: Any, g: Any, missing: Array, counters: Array) -> Any:
    """Whether the delivery from a content commutes with a message that is sent: YES, NO or UNKNOWN.

    A content without a message has no delivery.
    """
    if g.heads[content] == 0:
        return YES
    sent, popped = after_sending(content, channel, bit, g, missing, counters), g.popped[content]
    later = after_sending(popped, channel, bit, g, missing, counters)
    if sent == U32(0) or later == U32(0):
        return UNKNOWN
    if IRREGULAR_CONTENT in (sent, later):
        return NO
    return YES if g.heads[sent] == g.heads[content] and g.popped[sent] == later else NO


@inlined
def sending_commutes(content: Any, channel: Any, sends: Any, g: Any, missing: Array, counters: Array) -> Any:
    """Whether a sending commutes with all deliveries from a channel, now and later: YES, NO or UNKNOWN."""
    bit = bit_of(sends, channel, g)
    if bit == NO_BIT:
        return YES
    while g.heads[content] != 0:
        answer = square(content, channel, bit, g, missing, counters)
        if answer != YES:
            return answer
        content = U64(g.popped[content])
    return YES


@inlined
def bit_of(sends: Any, channel: Any, g: Any) -> Any:
    """The message that a sending puts into a bounded channel; NO_BIT for none."""
    words, target = U64(g.channel_bits.shape[1]), U64(g.targets[channel])
    for w in range(words):
        bits = g.sends[sends, target * words + w] & g.channel_bits[channel, w]
        if bits:
            return U64(64) * w + ones_below(bits)
    return NO_BIT


@inlined
def delivery_commutes(content: Any, channel: Any, local: Any, messages: Array, sent: Array, g: Any, r: Any,
                      missing: Array, counters: Array) -> Any:  # fmt: skip
    """Whether the delivery of the oldest message commutes with all that the sender may still send.

    The sender has a local state and messages that may arrive; `sent` has those that it may send. The contents that its
    messages lead to are searched first, and then, if one of them does not commute, those that its closure leads to.
    """
    key, further = U64(content), (COMMUTES << BITS32) | U64(channel)
    slot, answer = recall(r.cache, key, further, sent)
    if answer == UNKNOWN:
        answer = I64(commutes_with_all(content, channel, sent, g, r, missing, counters))
        keep(r.cache, slot, key, further, sent, answer)
    if answer != NO:
        return answer
    key = U64(local) + ONE
    further = (COMMUTES_WITH_SENDER << BITS32) | U64(channel) | (U64(content) << U64(40))
    slot, answer = recall(r.cache, key, further, messages)
    if answer == UNKNOWN:
        answer = I64(commutes_with_sender(content, channel, local, messages, g, r, missing, counters))
        keep(r.cache, slot, key, further, messages, answer)
    return answer


@shared
def commutes_with_all(content: Any, channel: Any, sent: Array, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Whether the delivery from a content, and from all that these messages may make of it, commutes with each."""
    status, size, at = YES, ONE, ZERO
    stamp = add_pair(ZERO, content, ZERO, ZERO, r)
    while at < size:
        one = U64(r.pairs[at] & U64(0xFFFFFFFF))
        at += ONE
        for w in range(sent.size):
            bits = sent[w] & g.channel_bits[channel, w]
            while bits:
                bit = U64(64 * w) + ones_below(bits)
                bits &= bits - ONE
                answer = square(one, channel, bit, g, missing, counters)
                if answer == NO:
                    return NO
                if answer == UNKNOWN:
                    status = UNKNOWN
                else:
                    size = add_pair(ZERO, g.appended[one, bit], size, stamp, r)
        if size >= U64(r.pairs.size):
            return NO
    return status


@shared
def commutes_with_sender(content: Any, channel: Any, local: Any, messages: Array, g: Any, r: Any,
                         missing: Array, counters: Array) -> Any:  # fmt: skip
    """The same for what the sender may send in the order of its closure."""
    status, size, at = YES, ONE, ZERO
    stamp = add_pair(local, content, ZERO, ZERO, r)
    while at < size:
        pair = r.pairs[at]
        at += ONE
        cell, one = pair >> BITS32, pair & U64(0xFFFFFFFF)
        if g.own[cell, 2] == UNLISTED:
            note_own(cell, g, missing, counters)
            status = UNKNOWN
        for n in range(g.own[cell, 0], g.own[cell, 0] + g.own[cell, 1]):
            answer, size = send_one(one, g.own_steps[n], channel, stamp, size, g, r, missing, counters)
            if answer == NO:
                return NO
            if answer == UNKNOWN:
                status = UNKNOWN
        for w in range(messages.size):
            bits = messages[w]
            while bits:
                bit = U64(64 * w) + ones_below(bits)
                bits &= bits - ONE
                step = step_on(cell, bit, g, missing, counters)
                if step == U32(0):
                    status = UNKNOWN
                elif step >= FIRST_EVENT:
                    answer, size = send_one(one, step, channel, stamp, size, g, r, missing, counters)
                    if answer == NO:
                        return NO
                    if answer == UNKNOWN:
                        status = UNKNOWN
        if size >= U64(r.pairs.size):
            return NO
    return status


@inlined
def send_one(content: Any, step: Any, channel: Any, stamp: Any, size: Any, g: Any, r: Any,
             missing: Array, counters: Array) -> Any:  # fmt: skip
    """Follow an event of the sender: (whether what it sends commutes, number of pairs)."""
    event, answer = step & EVENT, YES
    after, bit = g.events[event, AFTER], bit_of(g.events[event, SENDS], channel, g)
    if bit != NO_BIT:
        answer = square(content, channel, bit, g, missing, counters)
        if answer == YES:
            content = U64(g.appended[content, bit])
    if answer == YES:
        size = add_pair(after, content, size, stamp, r)
    return answer, size


@inlined
def add_pair(local: Any, content: Any, size: Any, stamp: Any, r: Any) -> Any:
    """Add a pair of the sender's local state and a content to those that are searched; return their number.

    With `size` 0, the pair is the first one of a search, whose stamp is returned.
    """
    if size == ZERO:
        r.clock[1] += U32(1)
        stamp = U64(r.clock[1])
    pair = (U64(local) << BITS32) | U64(content)
    most = U64(r.slots.shape[0] - 1)
    slot = ((pair * GOLDEN) >> BITS32) & most
    while r.slots[slot, 0] == stamp:
        if r.slots[slot, 1] == pair:
            return size
        slot = (slot + ONE) & most
    if size < U64(r.pairs.size):
        r.slots[slot, 0], r.slots[slot, 1] = stamp, pair
        r.pairs[size] = pair
    return stamp if size == ZERO else size + ONE
