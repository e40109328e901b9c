"""Selects a stubborn set of a row: processes whose moves are enough (`checker.engine.reduction.stubborn`).

The messages that may arrive at processes are a least fixpoint, since they depend on what all senders may still send.
The views of a row are found first, then the needs of processes, and with them the set with the least weight. The names
`g` and `r`, and the layout of views, are those of `closure_kernels`.

    processes[p] = (column, first input, end of inputs, first output, end of outputs)
    inputs[c] = (column of the channel, its sender, its receiver, whether it is bounded)
    outputs[k] = the position of a channel in `inputs`
    owners[column] = the process that owns the moves of a column's rules; NOBODY for other columns
    affects[column] = the channels that it is the content of, or that lead to its process, as bits (u64)
    sides = the columns of neither processes nor channels
    idle = the joint rules that are taken never to have a possible move, as bits (u64)
    broken = those of them that had one in some row
    numbers[cell] = the number of a local state plus 1, or of a content; 0: not yet known; IRREGULAR_CONTENT: not in
        order
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.closure_kernels import (
    AFTER,
    EVENT,
    KEY,
    KEY_IF_SILENT,
    KEY_MOVE,
    NO,
    OWN_KEY,
    REFUSED,
    SENDINGS,
    SENDS,
    SILENT,
    UNKNOWN,
    YES,
    answers_at,
    find_closure,
    kinds_at,
    sent_at,
)
from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, LOW, MISSING, ONE, ZERO, ask, fold, note
from checker.engine.kernels.jit import inlined, kernel, ones_below, shared
from checker.engine.kernels.message_kernels import are_redundant, needs_sender
from checker.engine.kernels.move_kernels import FIELDS, GROUP, LISTED, SET
from checker.engine.kernels.queue_kernels import IRREGULAR_CONTENT, delivery_commutes, sending_commutes

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32, I64 = np.uint64, np.uint32, np.int64
NOBODY = 0xFF
ALL, UNSETTLED = U64(0xFFFFFFFFFFFFFFFF), U64(0)  # instead of a set of processes
MOST_PROCESSES = 63
MOST_CHANNELS = 64  # `outlets` has a bit for each
FILLED, TRIED, INERT_NOW = 0, 1, 2  # sets of channels of a row: not empty; the oldest message tried, and inert
MOST_WEIGHED = U64(64)  # numbers of messages from here on have the same weight


@inlined
def is_quiet(row: Array, plan: Any, masks: Array, joint: Array) -> Any:
    """Whether no joint rule can list a move as long as only processes move, if the idle ones never do."""
    if joint.size == 0:
        return True
    for word in range(masks.shape[1]):
        allowed = ~plan.idle[word]
        for side in plan.sides:
            allowed &= masks[row[side], word]
        if allowed:
            return False
    return True


@shared
def watch_idle_rules(row: Array, plan: Any, cells: Array, masks: Array, masked: Array, joint: Array, entries: Array,
                     groups: Array, reads: Array, classes: Array, bases: Array,
                     memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Mark in `plan.broken` the idle joint rules that have a possible move in a row; return whether all is known.

    A move is impossible if its first operation is.
    """
    known = True
    for word in range(masks.shape[1]):
        allowed = plan.idle[word]
        for m in masked:
            allowed &= masks[row[m], word]
        while allowed:
            bit = ones_below(allowed)
            allowed &= allowed - ONE
            node = fold(row, U64(joint[U64(64 * word) + bit]), groups, reads, classes, bases,
                        memo, shift, missing, counters)  # fmt: skip
            if node == MISSING:
                known = False
            elif node != IMPOSSIBLE:
                listed = cells[node * FIELDS + LISTED]
                following = listed >> BITS32
                for _ in range(listed & LOW):
                    target, operation = entries[following + ONE] >> BITS32, entries[following + ONE] & LOW
                    possible = True
                    if entries[following] & LOW and not target & (SET | GROUP):
                        value = ask(U64(row[target]), operation, memo, shift, missing, counters)
                        known &= value != MISSING
                        possible = value & LOW != IMPOSSIBLE
                    if possible:
                        plan.broken[word] |= ONE << bit
                    following += ONE + (entries[following] & LOW)
    return known


@inlined
def place(row: Array, plan: Any, numbers: Array, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Write the local states and contents of a row, and the messages that its channels hold: YES, NO or UNKNOWN.

    NO means that a content is not regular, UNKNOWN that something is not yet known.
    """
    status, words = YES, U64(r.masks.shape[1])
    for p in range(plan.processes.shape[0]):
        for w in range(words):
            r.masks[p, w] = ZERO
    filled = ZERO
    for c in range(U64(plan.inputs.shape[0])):
        cell = U64(row[plan.inputs[c, 0]])
        content = numbers[cell]
        if content == IRREGULAR_CONTENT:
            return NO
        if content == U32(0):
            note(missing, counters, cell << BITS32)
            status = UNKNOWN
        r.contents[c] = content
        filled |= U64(g.heads[content] != U32(0)) << c
        for w in range(words):
            r.masks[plan.inputs[c, 2], w] |= g.held[content, w]
    r.bits[FILLED], r.bits[TRIED], r.bits[INERT_NOW] = filled, ZERO, ZERO
    for p in range(plan.processes.shape[0]):
        cell = U64(row[plan.processes[p, 0]])
        if numbers[cell] == U32(0):
            note(missing, counters, (cell << BITS32) | U64(g.own_question[0]))
            status = UNKNOWN
        r.locals[p] = numbers[cell] - U32(1)
    return status


@shared
def settle(without: Any, masks: Array, views: Array, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Find the views of processes: YES, UNKNOWN, or NO if a process may do what no view describes.

    `masks` has the messages in channels, and gets those that may arrive. The processes in `without` do nothing.
    """
    status, number, words = YES, masks.shape[0], U64(masks.shape[1])
    others = ((ONE << U64(number)) - ONE) & ~without
    waiting, room = others, U64(number) if without else ZERO
    unknown = ZERO
    while waiting:
        p = ones_below(waiting)
        waiting &= waiting - ONE
        unknown &= ~(ONE << p)
        found, known = find_closure(p, masks[p], room + p, g, r, missing, counters)
        views[p] = found
        if known == NO:
            return NO
        if known == UNKNOWN:
            unknown |= ONE << p
        first = sent_at(words)
        for q in range(number):
            for w in range(masks.shape[1]):
                more = r.records[found, first] & ~masks[q, w]
                first += ONE
                if more:
                    masks[q, w] |= more
                    waiting |= (ONE << U64(q)) & others
    if unknown:
        status = UNKNOWN
    return status


@inlined
def may_send(channel: Any, views: Array, plan: Any, g: Any, r: Any) -> Any:
    """Whether the sender of a channel, with one of these views, may still send into it; `r.sent` gets the messages."""
    words = U64(r.masks.shape[1])
    sender = views[plan.inputs[channel, 1]]
    first, some = sent_at(words) + U64(plan.inputs[channel, 2]) * words, ZERO
    for w in range(words):
        r.sent[w] = r.records[sender, first + w] & g.channel_bits[channel, w]
        some |= r.sent[w]
    return some != ZERO


@inlined
def is_silent(sent: Array, first: Any, r: Any) -> Any:
    """Whether all of the messages sent[first:], for each process, are silent where they arrive."""
    processes, words = U64(r.masks.shape[0]), U64(r.masks.shape[1])
    silent = kinds_at(processes, words, SILENT)
    for q in range(processes):
        for w in range(words):
            if sent[first + q * words + w] & ~r.records[r.views[q], silent + w]:
                return False
    return True


@inlined
def delivery_is_free(local: Any, content: Any, channel: Any, views: Array, masks: Array, plan: Any, g: Any, r: Any,
                     missing: Array, counters: Array) -> Any:  # fmt: skip
    """Whether the delivery from a channel commutes with all that its sender may do before: YES, NO or UNKNOWN.

    The views are those until the delivery. If it does not commute, it is enough that all later messages of the channel
    are redundant after it. A message that is refused may be lost, so that the same holds for it; then it counts among
    the later ones.
    """
    if not plan.inputs[channel, 3] or not may_send(channel, views, plan, g, r):
        return I64(YES)
    sender, p = plan.inputs[channel, 1], plan.inputs[channel, 2]
    answer = I64(delivery_commutes(
        U64(content), U64(channel), U64(r.locals[sender]), masks[sender], r.sent, g, r,
        missing, counters))  # fmt: skip
    if answer != NO:
        return answer
    may_send(channel, r.views, plan, g, r)
    step, after, rest = g.steps[local, g.heads[content] - U32(1)], U64(local), U64(content)
    if step != REFUSED:
        after, rest = U64(g.events[step & EVENT, AFTER]), U64(g.popped[content])
    for w in range(r.sent.size):
        r.sent[w] |= g.held[rest, w] | (r.masks[p, w] & ~g.channel_bits[channel, w])
    return I64(are_redundant(after, r.sent, U64(channel), g, r, missing, counters))


@inlined
def receivers_needed(p: Any, sends: Any, row: Array, plan: Any, numbers: Array, g: Any, missing: Array,
                     counters: Array) -> Any:  # fmt: skip
    """The processes whose deliveries do not commute with a sending of a process: (YES or UNKNOWN, bits)."""
    status, needed = YES, ZERO
    if sends:
        for k in range(plan.processes[p, 3], plan.processes[p, 4]):
            c = plan.outputs[k]
            if plan.inputs[c, 3] and (g.outlets[sends] >> U64(c)) & ONE:
                answer = sending_commutes(U64(numbers[row[plan.inputs[c, 0]]]), c, sends, g, missing, counters)
                if answer == NO:
                    needed |= ONE << U64(plan.inputs[c, 2])
                elif answer == UNKNOWN:
                    status = UNKNOWN
    return status, needed


@inlined
def has_key_move(p: Any, plan: Any, g: Any, r: Any) -> Any:
    """Whether a move of a process is possible that changes no joint reading and belongs to no cycle."""
    processes, words = U64(r.masks.shape[0]), U64(r.masks.shape[1])
    view = r.records[r.views[p]]
    is_key, is_key_if_silent = (view[KEY] & OWN_KEY) != ZERO, False
    at_once, if_silent = kinds_at(processes, words, KEY_MOVE), kinds_at(processes, words, KEY_IF_SILENT)
    for c in range(plan.processes[p, 1], plan.processes[p, 2]):
        head = g.heads[r.contents[c]]
        if head:
            bit = U64(head - U32(1))
            word, one = bit >> U64(6), ONE << (bit & U64(63))
            is_key |= (view[at_once + word] & one) != ZERO
            is_key_if_silent |= (view[if_silent + word] & one) != ZERO
    if is_key_if_silent and not is_key:
        is_key = is_silent(view, answers_at(processes, words), r)
    return is_key


@inlined
def weigh(p: Any, r: Any) -> Any:
    """The weight of a process in a set: the more it may send, the less; among equals the last one has the least."""
    sendings = (r.records[r.views[p], KEY] & LOW) >> SENDINGS
    return MOST_WEIGHED * (MOST_WEIGHED - min(sendings, MOST_WEIGHED - ONE)) + U64(r.masks.shape[0]) - U64(p)


@shared
def find_needs(p: Any, views: Array, masks: Array, row: Array, plan: Any, numbers: Array, g: Any, r: Any,
               missing: Array, counters: Array) -> Any:  # fmt: skip
    """The processes that a set with a process must contain: (YES or UNKNOWN, bits).

    The views are those of others until the first move of the set.
    """
    local, needed = U64(r.locals[p]), ZERO
    status: Any = YES
    for n in range(g.own[local, 0], g.own[local, 0] + g.own[local, 1]):
        sends = g.events[g.own_steps[n] & EVENT, SENDS]
        known, more = receivers_needed(p, sends, row, plan, numbers, g, missing, counters)
        needed |= more
        status = max(status, known)
    for c in range(plan.processes[p, 1], plan.processes[p, 2]):
        content = r.contents[c]
        answer = I64(NO)
        if g.heads[content]:
            step = g.steps[local, g.heads[content] - U32(1)]
            free = delivery_is_free(local, content, U64(c), views, masks, plan, g, r, missing, counters)
            answer = I64(UNKNOWN) if free == UNKNOWN else I64(YES) - free
            if step != REFUSED:
                known, more = receivers_needed(
                    p, g.events[step & EVENT, SENDS], row, plan, numbers, g, missing, counters)  # fmt: skip
                needed |= more
                status = max(status, known)
        elif may_send(c, views, plan, g, r):
            answer = needs_sender(p, U64(c), g, r, missing, counters)
        if answer == YES:
            needed |= ONE << U64(plan.inputs[c, 1])
        status = max(status, answer)
    return status, needed


@shared
def stubborn_set(row: Array, plan: Any, numbers: Array, masks: Array, joint: Array,
                 g: Any, r: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The processes whose moves are enough, as bits; ALL for all moves, UNSETTLED if an answer is missing."""
    r.settled[0] = U32(0)
    if not is_quiet(row, plan, masks, joint):
        return ALL
    status = place(row, plan, numbers, g, r, missing, counters)
    if status == YES:
        for p in range(r.masks.shape[0]):
            for w in range(r.masks.shape[1]):
                r.held[p, w] = r.masks[p, w]
        status = settle(ZERO, r.masks, r.views, g, r, missing, counters)
    if status != YES:
        return ALL if status == NO else UNSETTLED
    r.settled[0] = U32(1)
    return least_set(row, plan, numbers, g, r, missing, counters)


@inlined
def needs_of(p: Any, chosen: Any, known: Any, apart: Any, row: Array, plan: Any, numbers: Array, g: Any, r: Any,
             missing: Array, counters: Array) -> Any:  # fmt: skip
    """The processes that a set needs beside those chosen, because of one of them: (YES or UNKNOWN, bits, apart).

    `known` has the processes whose needs are known for every set. If it needs others, the views without what the chosen
    ones do are found; `apart` are the processes for which this was done last. The needs differ only if views of those
    others do.
    """
    status: Any = YES
    if not (known >> p) & ONE:
        status, r.needs[p] = find_needs(p, r.views, r.masks, row, plan, numbers, g, r, missing, counters)
    needed = r.needs[p] & ~chosen
    if status == YES and needed:
        if apart != chosen:
            for q in range(r.held.shape[0]):
                for w in range(r.held.shape[1]):
                    r.masks_apart[q, w] = r.held[q, w]
            status = settle(chosen, r.masks_apart, r.views_apart, g, r, missing, counters)
        differs, left = False, needed
        while left:
            differs |= r.views_apart[ones_below(left)] != r.views[ones_below(left)]
            left &= left - ONE
        if status == YES and differs:
            status, needed = find_needs(
                p, r.views_apart, r.masks_apart, row, plan, numbers, g, r, missing, counters)  # fmt: skip
        apart = chosen
    return status, needed & ~chosen, apart


@inlined
def least_set(row: Array, plan: Any, numbers: Array, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """The set with the least weight among those that grow from one process by what is needed, and have a key move.

    The process with the least weight is the first one, and a set grows only as long as it may be the best one.
    """
    number, keys, known = U64(plan.processes.shape[0]), ZERO, ZERO
    for p in range(number):
        r.weights[p] = weigh(p, r)
        keys |= U64(has_key_move(p, plan, g, r)) << p
    best, least, started = ALL, ALL, ZERO
    for _ in range(number):
        first: Any = number
        for p in range(number):
            if not (started >> p) & ONE and (first == number or r.weights[p] < r.weights[first]):
                first = p
        started |= ONE << first
        chosen, waiting, weight, apart = ONE << first, ONE << first, r.weights[first], ZERO
        if weight >= least:
            break
        while waiting and weight < least:
            p = ones_below(waiting)
            waiting &= waiting - ONE
            status, new, apart = needs_of(p, chosen, known, apart, row, plan, numbers, g, r, missing, counters)
            if status != YES:
                return UNSETTLED
            known |= ONE << p
            chosen |= new
            waiting |= new
            while new:
                weight += r.weights[ones_below(new)]
                new &= new - ONE
        if chosen & keys and weight < least:
            best, least = chosen, weight
    return best


@kernel
def find_stubborn_set(row: Array, plan: Any, numbers: Array, masks: Array, joint: Array,
                      g: Any, r: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """`stubborn_set` for Python."""
    return stubborn_set(row, plan, numbers, masks, joint, g, r, missing, counters)
