"""Selects a stubborn set of a row: processes whose moves are enough (`checker.engine.reduction.stubborn`).

The messages that may arrive at processes are a least fixpoint, since they depend on what all senders may still send.
The views of a row are found first, then the needs of processes, and with them the set with the fewest moves. The names
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
    REFUSED_NOW,
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
OWN_MOVE, DELIVERY = U64(17), U64(16)  # weights: among equal numbers of moves, fewer own ones


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


@inlined
def settle(g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """Find the views of all processes: YES, UNKNOWN, or NO if a process may do what no view describes."""
    status, number, words = YES, r.masks.shape[0], U64(r.masks.shape[1])
    waiting = (ONE << U64(number)) - ONE
    unknown = ZERO
    while waiting:
        p = ones_below(waiting)
        waiting &= waiting - ONE
        unknown &= ~(ONE << p)
        found, known = find_closure(p, g, r, missing, counters)
        r.views[p] = found
        if known == NO:
            return NO
        if known == UNKNOWN:
            unknown |= ONE << p
        first = sent_at(words)
        for q in range(number):
            for w in range(r.masks.shape[1]):
                more = r.records[found, first] & ~r.masks[q, w]
                first += ONE
                if more:
                    r.masks[q, w] |= more
                    waiting |= ONE << U64(q)
    if unknown:
        status = UNKNOWN
    return status


@inlined
def may_send(channel: Any, plan: Any, g: Any, r: Any) -> Any:
    """Whether the sender of a channel may still send into it; `r.sent` gets the messages."""
    words = U64(r.masks.shape[1])
    sender = r.views[plan.inputs[channel, 1]]
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
def delivery_is_free(local: Any, content: Any, channel: Any, plan: Any, g: Any, r: Any,
                     missing: Array, counters: Array) -> Any:  # fmt: skip
    """Whether the delivery from a channel commutes with all that its sender may do: YES, NO or UNKNOWN.

    If it does not, it is enough that all later messages of the channel are redundant after it.
    """
    if not plan.inputs[channel, 3] or not may_send(channel, plan, g, r):
        return I64(YES)
    sender, p = plan.inputs[channel, 1], plan.inputs[channel, 2]
    answer = I64(delivery_commutes(
        U64(content), U64(channel), U64(r.locals[sender]), r.masks[sender], r.sent, g, r,
        missing, counters))  # fmt: skip
    if answer != NO:
        return answer
    for w in range(r.sent.size):
        r.sent[w] |= g.held[g.popped[content], w] | (r.masks[p, w] & ~g.channel_bits[channel, w])
    after = g.events[g.steps[local, g.heads[content] - U32(1)] & EVENT, AFTER]
    return I64(are_redundant(U64(after), r.sent, U64(channel), g, r, missing, counters))


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
def weigh(p: Any, plan: Any, g: Any, r: Any) -> Any:
    """The moves of a process: (their weight, whether one is a key move)."""
    processes, words = U64(r.masks.shape[0]), U64(r.masks.shape[1])
    view = r.records[r.views[p]]
    weight = OWN_MOVE * U64(g.own[r.locals[p], 1])
    is_key, is_key_if_silent = (view[KEY] & OWN_KEY) != ZERO, False
    refused = kinds_at(processes, words, REFUSED_NOW)
    at_once, if_silent = kinds_at(processes, words, KEY_MOVE), kinds_at(processes, words, KEY_IF_SILENT)
    for c in range(plan.processes[p, 1], plan.processes[p, 2]):
        head = g.heads[r.contents[c]]
        if head:
            bit = U64(head - U32(1))
            word, one = bit >> U64(6), ONE << (bit & U64(63))
            weight += DELIVERY * U64(view[refused + word] & one == ZERO)
            is_key |= (view[at_once + word] & one) != ZERO
            is_key_if_silent |= (view[if_silent + word] & one) != ZERO
    if is_key_if_silent and not is_key:
        is_key = is_silent(view, answers_at(processes, words), r)
    return weight, is_key


@inlined
def find_needs(p: Any, row: Array, plan: Any, numbers: Array, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """The processes that a set with a process must contain: (YES or UNKNOWN, bits)."""
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
            if step == REFUSED:
                continue
            free = delivery_is_free(local, content, U64(c), plan, g, r, missing, counters)
            answer = I64(UNKNOWN) if free == UNKNOWN else I64(YES) - free
            known, more = receivers_needed(
                p, g.events[step & EVENT, SENDS], row, plan, numbers, g, missing, counters)  # fmt: skip
            needed |= more
            status = max(status, known)
        elif may_send(c, plan, g, r):
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
        status = settle(g, r, missing, counters)
    if status != YES:
        return ALL if status == NO else UNSETTLED
    r.settled[0] = U32(1)
    return least_set(row, plan, numbers, g, r, missing, counters)


@inlined
def least_set(row: Array, plan: Any, numbers: Array, g: Any, r: Any, missing: Array, counters: Array) -> Any:
    """The set with the fewest moves among those that contain all that they need, and that have a key move.

    Sets are searched from each process, the one with the fewest moves first, and their needs only as far as a better
    set than the best one is possible.
    """
    number, keys, known = U64(plan.processes.shape[0]), ZERO, ZERO
    for p in range(number):
        weight, is_key = weigh(p, plan, g, r)
        r.weights[p] = weight
        keys |= U64(is_key) << p
    best, least, started = ALL, ALL, ZERO
    for _ in range(number):
        first: Any = number
        for p in range(number):
            if not (started >> p) & ONE and (first == number or r.weights[p] < r.weights[first]):
                first = p
        started |= ONE << first
        if r.weights[first] >= least:
            break
        chosen, waiting, weight = ONE << first, ONE << first, ZERO
        while waiting:
            p = ones_below(waiting)
            waiting &= waiting - ONE
            weight += r.weights[p]
            if weight >= least:
                break
            if not (known >> p) & ONE:
                status, needed = find_needs(p, row, plan, numbers, g, r, missing, counters)
                if status == UNKNOWN:
                    return UNSETTLED
                known |= ONE << p
                r.needs[p] = needed
            new = r.needs[p] & ~chosen
            chosen |= new
            waiting |= new
        if chosen & keys and weight < least:
            best, least = chosen, weight
    return best


@kernel
def find_stubborn_set(row: Array, plan: Any, numbers: Array, masks: Array, joint: Array,
                      g: Any, r: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """`stubborn_set` for Python."""
    return stubborn_set(row, plan, numbers, masks, joint, g, r, missing, counters)
