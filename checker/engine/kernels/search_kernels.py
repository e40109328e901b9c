"""Pass one of the exploration: the successors of rows, as loops over integers.

Pass two, which selects the new ones, is `hash_tables.probe`, and pass three is in `build_kernels`. The numbers are
those of `move_kernels`. If the memo lacks an entry, its key is recorded and the row is put aside; Python fills the
table and the row is tried again. Nothing is allocated here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, LOW, MISSING, ONE, ZERO, fold, note
from checker.engine.kernels.jit import inlined, kernel, ones_below
from checker.engine.kernels.move_kernels import (
    ALIKE,
    BITS16,
    DONE,
    FIELDS,
    INCOMPLETE,
    JOINT,
    LARGE,
    LISTED,
    TOO_DEEP,
    UNLISTED,
    look_ahead,
    restore,
    run,
)
from checker.engine.kernels.row_kernels import fingerprint_of_class

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
MOST_MOVES = 0xFFFF  # of a state


@inlined
def find_joint_key(row: Array, columns: Any, cells: Array, joint_key: Array, cached_keys: Array) -> Any:
    """The slot of `cached_keys` for rows with the same view for the joint rules: (slot, whether it holds this view).

    The joint rules list the same moves for a row and for the row of its ALIKE cells. That row, its joint key, is
    written to `joint_key` and compared with cached_keys[slot]. Each view has only this slot, and a new key replaces the
    previous one. No cell is 0, which is the root of a group.
    """
    mixed = ZERO
    for c in range(columns):
        record = U64(row[c]) * FIELDS
        joint_key[c] = U32(cells[record + ALIKE])
        mixed ^= cells[record + JOINT]
    slot = mixed & U64(cached_keys.shape[0] - 1)
    different = U32(0)
    for c in range(columns):
        different |= cached_keys[slot, c] ^ joint_key[c]
    return slot, different == U32(0)


@inlined
def gather(row: Array, columns: Any, cells: Array, masks: Array, masked: Array, joint: Array, lists_of: Array,
           joint_key: Array, cached_keys: Array, cached_lists: Array,
           groups: Array, reads: Array, classes: Array, bases: Array,
           memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Write the lists of moves that apply to a row into `lists_of`: (their number, whether all are known).

    The columns' own moves come first, then those of the joint rules: the order of Model.rules. Whether a channel is
    empty cannot be predicted, so empty lists are left out without a branch. Joint rules are evaluated only if no
    key in `cached_keys` has the same view: cached_lists[slot] = (number of lists, the lists).
    """
    count, complete = ZERO, True
    for c in range(columns):
        node = U64(row[c])
        moves = cells[node * FIELDS + LISTED]
        lists_of[count] = moves
        count += U64(moves != ZERO)
        if moves == UNLISTED:
            note(missing, counters, node << BITS32)
            complete = False
    if joint.size:
        slot, is_cached = find_joint_key(row, columns, cells, joint_key, cached_keys)
        if not is_cached:
            is_cached = evaluate_joint_rules(row, masks, masked, joint, cells, cached_lists[slot],
                                           groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
            complete &= is_cached
            for c in range(columns):
                cached_keys[slot, c] = joint_key[c] if is_cached else U32(0)
        for n in range(cached_lists[slot, 0]):
            lists_of[count] = cached_lists[slot, ONE + n]
            count += ONE
    return count, complete


@inlined
def evaluate_joint_rules(row: Array, masks: Array, masked: Array, joint: Array, cells: Array, lists_of: Array,
                        groups: Array, reads: Array, classes: Array, bases: Array,
                        memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Write the lists of moves of joint rules into `lists_of`, after their number; return whether all are known."""
    count, complete = ONE, True
    for word in range(masks.shape[1]):
        allowed = ~ZERO
        for m in masked:
            allowed &= masks[row[m], word]
        while allowed:
            lowest = allowed & (~allowed + ONE)
            allowed ^= lowest
            node = fold(row, U64(joint[U64(64 * word) + ones_below(lowest)]), groups, reads, classes, bases,
                        memo, shift, missing, counters)  # fmt: skip
            if node == MISSING:
                complete = False
            elif node != IMPOSSIBLE:
                moves = cells[node * FIELDS + LISTED]
                lists_of[count] = moves
                count += U64(moves != ZERO)
    lists_of[0] = count - ONE
    return complete


@inlined
def remember(recent: Array, fingerprint: Any) -> Any:
    """Put a fingerprint into the table of recent ones; 1 if it was not there."""
    near = fingerprint & U64(recent.size - 1)
    is_other = U64(recent[near] != fingerprint)
    recent[near] = fingerprint
    return is_other


@kernel
def expand(rows: Array, columns: Any, fingerprints: Array, todo: Array, position: Any, cells: Array,
           masks: Array, masked: Array, joint: Array, lists_of: Array,
           joint_key: Array, cached_keys: Array, cached_lists: Array,
           images: Any, row: Array, stack: Array, labels: Array, entries: Array,
           groups: Array, reads: Array, classes: Array, bases: Array, memo: Array, shift: Any,
           found: Array, origins: Array, fired: Array, recent: Array, keeps_all: Any,
           dead: Array, aside: Array, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Pass one: the successors of rows todo[position:], as fingerprint and origin (move, ordinal, source row).

    Most successors were generated by another state shortly before. A small table of `recent` fingerprints, which stays
    in the cache, removes these without a branch, unless the caller `keeps_all`.

    counters: missing keys, successors, rows put aside, dead rows, error, transitions. Returns the position reached; it
    stops if the buffer has no room for all successors of a row. masks[cell] has the joint rules that a cell allows,
    `masked` the columns with such masks, and fired[label] is a counter. The width of rows is a multiple of eight.
    With `images`, fingerprints are those of `row_kernels.fingerprint_of_class`.
    """
    width = rows.shape[1]
    kept = U64(counters[1])
    always = U64(keeps_all)
    while position < todo.size:
        index = todo[position]
        base = fingerprints[index]
        for c in range(width):
            row[c] = rows[index, c]
        count, complete = gather(
            row, columns, cells, masks, masked, joint, lists_of, joint_key, cached_keys, cached_lists,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        most = ZERO
        for n in range(count if complete else ZERO):
            most += lists_of[n] & LOW
        if kept + most > U64(found.size):
            counters[1], counters[4] = kept, most > U64(MOST_MOVES)
            return position
        ordinal, first = ZERO, kept
        if memo.size > LARGE and complete:
            look_ahead(row, lists_of, count, entries, memo, shift)
        for n in range(count if complete else ZERO):
            following = lists_of[n] >> BITS32
            for _ in range(lists_of[n] & LOW):
                move = following
                following += ONE + (entries[move] & LOW)
                status, fingerprint, changed, _ = run(
                    move, row, base, stack, entries,
                    groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
                fingerprint = fingerprint_of_class(row, columns, fingerprint, images)
                restore(row, rows, index, changed)
                if status == DONE:
                    label = entries[move] >> BITS32
                    fired[label] += ONE
                    labels[ordinal] = label
                    found[kept], origins[kept] = fingerprint, (move << BITS32) | (ordinal << BITS16) | U64(index)
                    kept += remember(recent, fingerprint) | always
                    ordinal += ONE
                elif status == INCOMPLETE:
                    complete = False
                elif status == TOO_DEEP:
                    counters[4] = 1
                    return position
        if complete:
            counters[5] += ordinal
            if ordinal == ZERO:
                dead[counters[3]] = index
                counters[3] += 1
        else:
            # The row will be tried again: its moves are not counted yet, and its successors are dropped.
            for n in range(ordinal):
                fired[labels[n]] -= ONE
            kept = first
            aside[counters[2]] = index
            counters[2] += 1
        position += 1
    counters[1] = kept
    return position
