"""Closures of views: everything that a process may do while certain messages may arrive, in any order and number.

A *view* is a process with its local state and the messages that may arrive, as bits. Its closure are the local states
that it may reach. It is an upper bound: what holds in a closure holds in every run in which no other messages arrive.
The graph of local states is in a `reduction.plan.LocalGraph` (here `g`), whose docstring has its arrays. A step that it
lacks is noted for Python, and the answer is then UNKNOWN. Closures are computed here, and kept by the thread
(`reduction.plan.ViewRoom`, here `r`). The rules of `move_kernels` apply.

A record of a closure has these words, where P is the number of processes and W that of words of bits:

    key, messages (W), sent (P * W), known, redundant,
    refused (W), key moves (W), key moves if silent (W), silent (W), answers (P * W)

The key is the local state plus 1 in the upper half; the lower one has flags, and above them the number of messages that
the view may send. `sent` are the messages that the view may send to each process, and `answers` those that its
reversible deliveries send now. `redundant` are the channels whose messages are redundant (`message_kernels`), among
those where this is `known`. The four sets of bits are messages whose delivery is refused now, or is a key move now, at
once or if all answers are silent; and messages that no local state of the closure answers.

Records follow one another in `records`, the first 2 P of which are room for one view each that is not kept: those of
all processes, and those without what a set of processes does. `table` finds them: a part of a hash << 32 | number, 0
for none. It begins small, so that the processor's cache can hold it, and doubles. When it is full, new records are not
kept, and the next pass begins with empty room. Other answers are in `cache`, where a new one may replace an old one:
key, further key, messages (W), answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, GOLDEN, LOW, ONE, TWO, ZERO, note
from checker.engine.kernels.jit import inlined, ones_below, shared

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32, I64 = np.uint64, np.uint32, np.int64
NO, YES, UNKNOWN = 0, 1, 2
# Steps: 0 is not known; other words have an event, and whether no joint reading of a property changes.
REFUSED, IRREGULAR_STEP, FIRST_EVENT = U32(1), U32(2), U32(3)
UNSEEN, EVENT = U32(1 << 31), U32((1 << 31) - 1)
UNLISTED, LISTED_OWN, IRREGULAR_OWN = U32(0), U32(1), U32(2)  # what is known about own moves
AFTER, SENDS = 0, 1  # of an event
WAYS = 8  # slots of the cache that may hold an answer
KEY, MESSAGES = U64(0), U64(1)  # words of a record; the messages sent follow those that may arrive
FURTHER, ANSWERED = U64(1), U64(2)  # words of an answer of the cache; its messages follow the further key
OWN_KEY = ONE  # a flag of a record
SENDINGS = U64(8)  # the first bit of a key with the number of messages that may be sent
REFUSED_NOW, KEY_MOVE, KEY_IF_SILENT, SILENT = 0, 1, 2, 3  # the sets of bits of a record
NEEDS, INERT, COMMUTES, COMMUTES_WITH_SENDER = U64(1), U64(2), U64(3), U64(4)  # kinds of keys
TAG = U64(0xFFFFFFFF00000000)  # the part of a hash in an entry of the table
USED, MOST = 0, 1  # of `sizes`: the number of records, and the greatest place in the table


@inlined
def sent_at(words: Any) -> Any:
    """The first word of a record about the messages that are sent."""
    return MESSAGES + words


@inlined
def known_at(processes: Any, words: Any) -> Any:
    """The word of a record with the channels of which it is known whether their messages are redundant."""
    return MESSAGES + words + processes * words


@inlined
def kinds_at(processes: Any, words: Any, kind: Any) -> Any:
    """The first word of a set of bits of a record: refused, key moves, key moves if silent, silent."""
    return known_at(processes, words) + U64(2) + U64(kind) * words


@inlined
def answers_at(processes: Any, words: Any) -> Any:
    """The first word of a record about answers."""
    return known_at(processes, words) + U64(2) + U64(4) * words


@inlined
def mixed_with(mixed: Any, messages: Array, first: Any, words: Any) -> Any:
    """A hash of a number and of the messages from a word on."""
    for w in range(words):
        mixed = ((mixed ^ (mixed >> BITS32)) * GOLDEN) ^ messages[first + w]
    return (mixed ^ (mixed >> BITS32)) * GOLDEN


@inlined
def recall(cache: Array, key: Any, further: Any, messages: Array) -> Any:
    """An answer of the cache: (its slot, or the slot for it, and YES or NO; UNKNOWN if it is not there)."""
    words = U64(messages.size)
    mixed = mixed_with((key * GOLDEN) ^ further, messages, ZERO, words)
    most = U64(cache.shape[0] - 1)
    begin = mixed >> BITS32
    for n in range(WAYS):
        slot = (begin + U64(n)) & most
        there = cache[slot, KEY]
        if there == ZERO:
            return slot, I64(UNKNOWN)
        if there == key and cache[slot, FURTHER] == further:
            differs = ZERO
            for w in range(words):
                differs |= cache[slot, ANSWERED + w] ^ messages[w]
            if differs == ZERO:
                return slot, I64(cache[slot, ANSWERED + words])
    return (begin + (mixed & U64(WAYS - 1))) & most, I64(UNKNOWN)


@inlined
def keep(cache: Array, slot: Any, key: Any, further: Any, messages: Array, answer: Any) -> None:
    """Store an answer, unless it is UNKNOWN."""
    if answer != UNKNOWN:
        words = U64(messages.size)
        cache[slot, KEY], cache[slot, FURTHER] = key, further
        for w in range(words):
            cache[slot, ANSWERED + w] = messages[w]
        cache[slot, ANSWERED + words] = U64(answer)


@inlined
def step_on(local: Any, bit: Any, g: Any, missing: Array, counters: Array) -> Any:
    """The step of a local state on a message; 0 if it is not yet known."""
    step = g.steps[local, bit]
    if step == U32(0):
        note(missing, counters, (U64(g.cells[local]) << BITS32) | U64(g.questions[g.owner[local], bit]))
    return step


@inlined
def note_own(local: Any, g: Any, missing: Array, counters: Array) -> None:
    """Ask for the own moves of a local state."""
    note(missing, counters, (U64(g.cells[local]) << BITS32) | U64(g.own_question[0]))


@inlined
def begin_closure(local: Any, r: Any) -> Any:
    """Start a search of a closure; return its stamp."""
    r.clock[0] += U32(1)
    r.marks[local] = r.clock[0]
    r.queue[0] = local
    return r.clock[0]


@inlined
def reach(after: Any, stamp: Any, size: Any, r: Any) -> Any:
    """Add a local state to a closure of some size; return the size."""
    if r.marks[after] != stamp and size < U64(r.queue.size):
        r.marks[after] = stamp
        r.queue[size] = after
        return size + ONE
    return size


@inlined
def spread(local: Any, messages: Array, without: Array, stamp: Any, size: Any, g: Any, r: Any,
           missing: Array, counters: Array) -> Any:  # fmt: skip
    """Add what a local state of a closure leads to, except by messages in `without`: (status, size)."""
    status = YES
    if g.own[local, 2] == UNLISTED:
        note_own(local, g, missing, counters)
        status = UNKNOWN
    for n in range(g.own[local, 0], g.own[local, 0] + g.own[local, 1]):
        size = reach(g.events[g.own_steps[n] & EVENT, AFTER], stamp, size, r)
    for w in range(messages.size):
        bits = messages[w] & ~without[w]
        while bits:
            bit = U64(64 * w) + ones_below(bits)
            bits &= bits - ONE
            step = step_on(local, bit, g, missing, counters)
            if step == U32(0):
                status = UNKNOWN
            elif step >= FIRST_EVENT:
                size = reach(g.events[step & EVENT, AFTER], stamp, size, r)
    return status, size


@inlined
def follow(local: Any, step: Any, stamp: Any, size: Any, edges: Any, record: Array, g: Any, r: Any) -> Any:
    """Add an event of a closure to its record: (size, edges, whether it sends something)."""
    after, sends = g.events[step & EVENT, AFTER], g.events[step & EVENT, SENDS]
    if sends:
        first = sent_at(U64(g.channel_bits.shape[1]))
        for w in range(g.sends.shape[1]):
            record[first + U64(w)] |= g.sends[sends, w]
    if after != local:
        if edges < U64(r.edges.shape[0]):
            r.edges[edges, 0], r.edges[edges, 1] = local, after
        edges += ONE
        size = reach(after, stamp, size, r)
    return size, edges, sends != 0


@inlined
def is_record_of(number: Any, key: Any, messages: Array, r: Any) -> Any:
    """Whether a record is that of a local state, with this key without flags, and of these messages."""
    differs = (r.records[number, KEY] >> BITS32) ^ key
    for w in range(U64(messages.size)):
        differs |= r.records[number, MESSAGES + w] ^ messages[w]
    return differs == ZERO


@inlined
def find_closure(p: Any, messages: Array, room: Any, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Find the record of the view of a process with these messages: (its number; YES, UNKNOWN or NO).

    If the answer is UNKNOWN, the record has the messages that are known so far; with NO, the view is irregular. `room`
    is the number of a record for a view that is not kept.
    """
    key = U64(r.locals[p]) + ONE
    mixed = mixed_with(key * GOLDEN, messages, ZERO, U64(messages.size))
    near = mixed & U64(r.recent.shape[1] - 1)
    number = U64(r.recent[p, near])
    if is_record_of(number, key, messages, r):
        return number, I64(YES)
    slot = (mixed >> BITS32) & r.sizes[MOST]
    tag = mixed & TAG
    entry = r.table[slot]
    while entry != ZERO:
        number = entry & LOW
        if entry & TAG == tag and is_record_of(number, key, messages, r):
            r.recent[p, near] = number
            return number, I64(YES)
        slot = (slot + ONE) & r.sizes[MOST]
        entry = r.table[slot]
    record = r.records[room]
    status = search_closure(U64(r.locals[p]), messages, record, g, r, missing, counters)
    if status != YES or r.sizes[USED] == U64(r.records.shape[0]):
        record[KEY] &= LOW  # nothing finds this record again
        return U64(room), I64(status)
    number = store(record, slot, tag, r)
    record[KEY] &= LOW
    r.recent[p, near] = number
    return number, I64(YES)


@shared
def store(record: Array, slot: Any, tag: Any, r: Any) -> Any:
    """Keep a new record, whose place in the table is `slot`; return its number."""
    number = r.sizes[USED]
    for w in range(record.size):
        r.records[number, w] = record[w]
    r.table[slot] = tag | number
    r.sizes[USED] += ONE
    size = r.sizes[MOST] + ONE
    if TWO * r.sizes[USED] > size and TWO * size <= U64(r.table.size):
        r.sizes[MOST] = TWO * size - ONE
        for place in range(TWO * size):
            r.table[place] = ZERO
        words = U64(r.masks.shape[1])
        for each in range(TWO * U64(r.masks.shape[0]), r.sizes[USED]):
            other = r.records[each]
            mixed = mixed_with((other[KEY] >> BITS32) * GOLDEN, other, MESSAGES, words)
            place = (mixed >> BITS32) & r.sizes[MOST]
            while r.table[place] != ZERO:
                place = (place + ONE) & r.sizes[MOST]
            r.table[place] = (mixed & TAG) | each
    return number


@shared
def search_closure(local: Any, messages: Array, record: Array, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Write the record of a view that is not in the cache: YES, UNKNOWN or NO."""
    words, processes = U64(messages.size), U64(r.locals.size)
    for w in range(record.size):
        record[w] = ZERO
    record[KEY] = (U64(local) + ONE) << BITS32
    status, size, at, edges = YES, ONE, ZERO, ZERO
    stamp = begin_closure(local, r)
    silent = kinds_at(processes, words, SILENT)
    for w in range(messages.size):
        record[MESSAGES + U64(w)] = messages[w]
        record[silent + U64(w)] = messages[w]
    while at < size:
        cell = r.queue[at]
        at += ONE
        if g.own[cell, 2] == UNLISTED:
            note_own(cell, g, missing, counters)
            status = UNKNOWN
        elif g.own[cell, 2] == IRREGULAR_OWN:
            return NO
        for n in range(g.own[cell, 0], g.own[cell, 0] + g.own[cell, 1]):
            size, edges, _ = follow(cell, g.own_steps[n], stamp, size, edges, record, g, r)
        for w in range(messages.size):
            bits = messages[w]
            while bits:
                bit = ones_below(bits)
                bits &= bits - ONE
                step = step_on(cell, U64(64 * w) + bit, g, missing, counters)
                if step == U32(0):
                    status = UNKNOWN
                elif step == IRREGULAR_STEP:
                    return NO
                elif step != REFUSED:
                    size, edges, answers = follow(cell, step, stamp, size, edges, record, g, r)
                    if answers:
                        record[silent + U64(w)] &= ~(ONE << bit)
        if size >= U64(r.queue.size) or edges > U64(r.edges.shape[0]):
            return NO
    if status == YES:
        find_returns(local, edges, r)
        classify(local, messages, record, g, r)
        for word in range(sent_at(words), known_at(processes, words)):
            bits = record[word]
            while bits:
                bits &= bits - ONE
                record[KEY] += ONE << SENDINGS
    return status


@inlined
def find_returns(local: Any, edges: Any, r: Any) -> None:
    """Mark the local states of the closure from which the process can come back, in `r.returns`."""
    stamp = r.clock[0]
    r.returns[local] = stamp
    again = True
    while again:
        again = False
        for n in range(edges):
            e = edges - ONE - U64(n)
            if r.returns[r.edges[e, 1]] == stamp and r.returns[r.edges[e, 0]] != stamp:
                r.returns[r.edges[e, 0]] = stamp
                again = True


@inlined
def classify(local: Any, messages: Array, record: Array, g: Any, r: Any) -> None:
    """Write the kinds of the moves of a view to its record, after `find_returns`."""
    words, processes, stamp = U64(messages.size), U64(r.locals.size), r.clock[0]
    answers = answers_at(processes, words)
    for n in range(g.own[local, 0], g.own[local, 0] + g.own[local, 1]):
        step = g.own_steps[n]
        if step & UNSEEN and r.returns[g.events[step & EVENT, AFTER]] != stamp:
            record[KEY] |= OWN_KEY
    for w in range(messages.size):
        bits = messages[w]
        while bits:
            bit = ONE << ones_below(bits)
            step = g.steps[local, U64(64 * w) + ones_below(bits)]
            bits &= bits - ONE
            if step == REFUSED:
                record[kinds_at(processes, words, REFUSED_NOW) + U64(w)] |= bit
                continue
            event = step & EVENT
            sends, returns = g.events[event, SENDS], r.returns[g.events[event, AFTER]] == stamp
            if sends and returns:
                for k in range(g.sends.shape[1]):
                    record[answers + U64(k)] |= g.sends[sends, k]
            if step & UNSEEN:
                kind = KEY_IF_SILENT if sends and returns else KEY_MOVE
                record[kinds_at(processes, words, kind) + U64(w)] |= bit


def words_of_record(processes: int, words: int) -> int:
    """The number of words of a record, and of those that fill its last line of the processor's cache."""
    return -(-(3 + 5 * words + 2 * processes * words) // 8) * 8


def words_of_answer(words: int) -> int:
    """The number of words of an answer of the cache."""
    return 3 + words
