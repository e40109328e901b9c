"""Selects a stubborn set of a row: processes whose moves are enough (`checker.engine.reduction.stubborn`).

A *view* is a process, its cell, and for each of its channels the messages that may still arrive. Its number is found
by folding: from the cell, each set of messages leads to a further number, by questions in the memo. The sets are a
least fixpoint, since the messages that may arrive depend on what all senders may still send. The answers are written by
`reduction.stubborn`. The rules of `move_kernels` apply.

    processes[p] = (column, first input, end of inputs, first output, end of outputs)
    inputs[c] = (column of the channel, its sender, question whether the sender is needed, its receiver)
    outputs[k] = the position of a channel in `inputs`
    owners[column] = the process that owns the moves of a column's rules; NOBODY for other columns
    sides = the columns of neither processes nor channels
    questions = (what a view sends, its own moves)
    contents[cell] = of a channel: the question that adds its messages to a view, 0: none, IRREGULAR: not in order
    sends[c] = the same for the messages that the sender may still send
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.drain_kernels import NO, UNKNOWN, YES
from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, LOW, MISSING, ONE, ZERO, ask
from checker.engine.kernels.jit import inlined, kernel, ones_below

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
NOBODY = 0xFF
IRREGULAR = U32(0xFFFFFFFF)
ALL, UNSETTLED = U64(0xFFFFFFFFFFFFFFFF), U64(0)  # instead of a set of processes
MOST_PROCESSES = 63
# Answers about the delivery of the oldest message: it is impossible, possible, a key move, or a key move if all answers
# of the process are silent.
REFUSED, POSSIBLE, KEY, KEY_IF_SILENT = 1, 2, 3, 4
COUNT, FLAGS, ANSWERS = ONE, U64(2), U64(3)  # the words of an answer about own moves
OWN_KEY, OWN_KEY_IF_SILENT = ONE, U64(2)


@inlined
def view_of(row: Array, process: Any, processes: Array, inputs: Array, contents: Array, sends: Array,
            memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The view of a process: its cell, with the messages in its channels and those that may still be sent."""
    view = U64(row[processes[process, 0]])
    for c in range(processes[process, 1], processes[process, 2]):
        held = U64(contents[row[inputs[c, 0]]])
        if held:
            view = ask(view, held, memo, shift, missing, counters)
            if view == MISSING:
                return MISSING
            view &= LOW
        if sends[c]:
            view = ask(view, U64(sends[c]), memo, shift, missing, counters)
            if view == MISSING:
                return MISSING
            view &= LOW
    return view


@inlined
def settle(row: Array, processes: Array, inputs: Array, outputs: Array, questions: Array,
           contents: Array, sends: Array, views: Array,
           entries: Array, memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Find the views of all processes: YES, UNKNOWN, or NO if a process may do what no view describes."""
    for c in range(inputs.shape[0]):
        sends[c] = U32(0)
        if contents[row[inputs[c, 0]]] == IRREGULAR:
            return NO
    status = YES
    waiting = (ONE << U64(processes.shape[0])) - ONE
    while waiting:
        process = ones_below(waiting)
        waiting &= waiting - ONE
        view = view_of(row, process, processes, inputs, contents, sends, memo, shift, missing, counters)
        answer = MISSING
        if view != MISSING:
            answer = ask(view, U64(questions[0]), memo, shift, missing, counters)
        if answer == MISSING:
            status = UNKNOWN
            continue
        if answer & LOW == IMPOSSIBLE:
            return NO
        views[process] = view
        at = (answer >> BITS32) + ONE
        for k in range(processes[process, 3], processes[process, 4]):
            c = outputs[k]
            word = U32(entries[at])
            at += ONE
            if sends[c] != word:
                sends[c] = word
                waiting |= ONE << U64(inputs[c, 3])
    return status


@inlined
def is_quiet(row: Array, sides: Array, masks: Array, joint: Array) -> Any:
    """Whether no joint rule can list a move as long as only processes move."""
    if joint.size == 0:
        return True
    for word in range(masks.shape[1]):
        allowed = ~ZERO
        for side in sides:
            allowed &= masks[row[side], word]
        if allowed:
            return False
    return True


@inlined
def are_silent(process: Any, at: Any, processes: Array, inputs: Array, outputs: Array, views: Array, entries: Array,
               memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Whether all answers of a process, which are asked by the words from `at`, are silent: YES, NO or UNKNOWN."""
    for k in range(processes[process, 3], processes[process, 4]):
        asked = entries[at]
        at += ONE
        if asked:
            answer = ask(U64(views[inputs[outputs[k], 3]]), asked, memo, shift, missing, counters)
            if answer == MISSING:
                return UNKNOWN
            if answer & LOW == IMPOSSIBLE:
                return NO
    return YES


@inlined
def moves_of(row: Array, process: Any, processes: Array, inputs: Array, outputs: Array, questions: Array,
             contents: Array, asks: Array, sends: Array, views: Array,
             entries: Array, memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The moves of a process: (YES or UNKNOWN, their weight, whether one is a key move, the needed processes).

    Fewer moves weigh less, and among equal numbers fewer own moves.
    """
    needed, is_key, is_key_if_silent, complete = ZERO, False, False, True
    own = ask(U64(views[process]), U64(questions[1]), memo, shift, missing, counters)
    if own == MISSING:
        return UNKNOWN, ZERO, False, ZERO
    at = own >> BITS32
    weight = entries[at + COUNT] * U64(17)
    is_key = (entries[at + FLAGS] & OWN_KEY) != ZERO
    is_key_if_silent = (entries[at + FLAGS] & OWN_KEY_IF_SILENT) != ZERO
    for c in range(processes[process, 1], processes[process, 2]):
        cell = row[inputs[c, 0]]
        if contents[cell]:
            answer = ask(U64(views[process]), U64(asks[cell]), memo, shift, missing, counters)
            if answer == MISSING:
                complete = False
                continue
            answer &= LOW
            weight += U64(16) * U64(answer != U64(REFUSED))
            is_key |= answer == U64(KEY)
            is_key_if_silent |= answer == U64(KEY_IF_SILENT)
        elif sends[c]:
            answer = ask(U64(views[process]), U64(inputs[c, 2]), memo, shift, missing, counters)
            if answer == MISSING:
                complete = False
            elif answer & LOW != IMPOSSIBLE:
                needed |= ONE << U64(inputs[c, 1])
    if is_key_if_silent and not is_key:
        silent = are_silent(
            process, at + ANSWERS, processes, inputs, outputs, views, entries, memo, shift, missing, counters
        )
        complete &= silent != UNKNOWN
        is_key = silent == YES
    return YES if complete else UNKNOWN, weight, is_key, needed


@inlined
def stubborn_set(row: Array, processes: Array, inputs: Array, outputs: Array, questions: Array, sides: Array,
                 masks: Array, joint: Array, contents: Array, asks: Array,
                 sends: Array, views: Array, needs: Array, weights: Array,
                 entries: Array, memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The processes whose moves are enough, as bits; ALL for all moves, UNSETTLED if an answer is missing.

    sends (u32) has room for each channel, views (u32), needs and weights (u64) for each process.
    """
    if not is_quiet(row, sides, masks, joint):
        return ALL
    status = settle(
        row, processes, inputs, outputs, questions, contents, sends, views, entries, memo, shift, missing, counters
    )
    if status != YES:
        return ALL if status == NO else UNSETTLED
    number, keys = U64(processes.shape[0]), ZERO
    for process in range(number):
        known, weight, is_key, needed = moves_of(
            row, process, processes, inputs, outputs, questions, contents, asks, sends, views,
            entries, memo, shift, missing, counters)  # fmt: skip
        if known != YES:
            status = UNKNOWN
        needs[process], weights[process] = needed, weight
        keys |= U64(is_key) << process
    if status != YES:
        return UNSETTLED
    best, least = ALL, ALL
    for first in range(number):
        chosen, waiting, weight = ONE << first, ONE << first, ZERO
        while waiting:
            process = ones_below(waiting)
            waiting &= waiting - ONE
            weight += weights[process]
            new = needs[process] & ~chosen
            chosen |= new
            waiting |= new
        if chosen & keys and weight < least:
            best, least = chosen, weight
    return best


@kernel
def find_stubborn_set(row: Array, processes: Array, inputs: Array, outputs: Array, questions: Array, sides: Array,
                      masks: Array, joint: Array, contents: Array, asks: Array,
                      sends: Array, views: Array, needs: Array, weights: Array,
                      entries: Array, memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """`stubborn_set` for Python."""
    return stubborn_set(
        row, processes, inputs, outputs, questions, sides, masks, joint, contents, asks, sends, views, needs, weights,
        entries, memo, shift, missing, counters)  # fmt: skip
