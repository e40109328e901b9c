"""Pass one of the exploration: the successors of rows, as loops over integers.

Pass two, which selects the new ones, is `hash_tables.probe`, and pass three is in `build_kernels`. The numbers are
those of `move_kernels`. If the memo lacks an entry, its key is recorded and the row is put aside; Python fills the
table and the row is tried again. Nothing is allocated here.
"""

from typing import Any, NamedTuple

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, LOW, MISSING, ONE, ZERO, Answers, fold, note
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
    fingerprint_of_class,
    look_ahead,
    restore,
    run,
)

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
MOST_MOVES = 0xFFFF  # of a state


class RowRoom(NamedTuple):
    """The room of one thread for the moves of one row: the row while moves are tried, and the lists of its moves.

    cached_lists[slot] = (number of lists, the lists) of the joint rules, for the view cached_keys[slot].
    """

    row: Array
    stack: Array
    lists: Array
    joint_key: Array
    cached_keys: Array
    cached_lists: Array


class Successors(NamedTuple):
    """Room for the successors of some rows, and counters.

    `found` has fingerprints, `origins` (move, ordinal, source row), `labels` those of the moves of one row.
    fired[label] is a counter. `recent` has fingerprints that were generated shortly before. `dead` are the rows without
    a successor, and `aside` those that lack an answer.
    """

    found: Array
    origins: Array
    labels: Array
    fired: Array
    recent: Array
    dead: Array
    aside: Array


@inlined
def find_joint_key(row: Array, room: RowRoom, answers: Answers) -> Any:
    """The slot of the cache for rows with the same view for the joint rules: (slot, whether it holds this view).

    The joint rules list the same moves for a row and for the row of its ALIKE cells. That row, its joint key, is
    written to `joint_key` and compared with cached_keys[slot]. Each view has only this slot, and a new key replaces the
    previous one. No cell is 0, which is the root of a group.
    """
    cells, cached_keys = answers.cells, room.cached_keys
    mixed = ZERO
    for c in range(answers.columns):
        record = U64(row[c]) * FIELDS
        room.joint_key[c] = U32(cells[record + ALIKE])
        mixed ^= cells[record + JOINT]
    slot = mixed & U64(cached_keys.shape[0] - 1)
    different = U32(0)
    for c in range(answers.columns):
        different |= cached_keys[slot, c] ^ room.joint_key[c]
    return slot, different == U32(0)


@inlined
def gather(row: Array, room: RowRoom, answers: Answers) -> Any:
    """Write the lists of moves that apply to a row into the room: (their number, whether all are known).

    The columns' own moves come first, then those of the joint rules: the order of Model.rules. Whether a channel is
    empty cannot be predicted, so empty lists are left out without a branch. Joint rules are evaluated only if the cache
    does not have the view.
    """
    count, complete, lists = ZERO, True, room.lists
    for c in range(answers.columns):
        node = U64(row[c])
        moves = answers.cells[node * FIELDS + LISTED]
        lists[count] = moves
        count += U64(moves != ZERO)
        if moves == UNLISTED:
            note(answers, node << BITS32)
            complete = False
    if answers.joint.size:
        slot, is_cached = find_joint_key(row, room, answers)
        if not is_cached:
            is_cached = evaluate_joint_rules(row, room.cached_lists[slot], answers)
            complete &= is_cached
            for c in range(answers.columns):
                room.cached_keys[slot, c] = room.joint_key[c] if is_cached else U32(0)
        for n in range(room.cached_lists[slot, 0]):
            lists[count] = room.cached_lists[slot, ONE + n]
            count += ONE
    return count, complete


@inlined
def evaluate_joint_rules(row: Array, lists: Array, answers: Answers) -> Any:
    """Write the lists of moves of joint rules into `lists`, after their number; return whether all are known."""
    masks, count, complete = answers.masks, ONE, True
    for word in range(masks.shape[1]):
        allowed = ~ZERO
        for m in answers.masked:
            allowed &= masks[row[m], word]
        while allowed:
            lowest = allowed & (~allowed + ONE)
            allowed ^= lowest
            node = fold(row, U64(answers.joint[U64(64 * word) + ones_below(lowest)]), answers)
            if node == MISSING:
                complete = False
            elif node != IMPOSSIBLE:
                moves = answers.cells[node * FIELDS + LISTED]
                lists[count] = moves
                count += U64(moves != ZERO)
    lists[0] = count - ONE
    return complete


@inlined
def remember(recent: Array, fingerprint: Any) -> Any:
    """Put a fingerprint into the table of recent ones; 1 if it was not there."""
    near = fingerprint & U64(recent.size - 1)
    is_other = U64(recent[near] != fingerprint)
    recent[near] = fingerprint
    return is_other


@kernel
def expand(rows: Array, fingerprints: Array, todo: Array, position: Any, keeps_all: Any, images: Any, room: RowRoom,
           successors: Successors, answers: Answers) -> Any:  # fmt: skip
    """Pass one: the successors of rows todo[position:].

    Most successors were generated by another state shortly before. A small table of `recent` fingerprints, which stays
    in the cache, removes these without a branch, unless the caller `keeps_all`.

    counters: missing keys, successors, rows put aside, dead rows, error, transitions. Returns the position reached; it
    stops if the buffer has no room for all successors of a row. The width of rows is a multiple of eight. With
    `images`, fingerprints are those of `move_kernels.fingerprint_of_class`.
    """
    found, origins, labels, fired, recent, dead, aside = successors
    row, lists, entries, counters = room.row, room.lists, answers.entries, answers.counters
    width = rows.shape[1]
    kept = U64(counters[1])
    always = U64(keeps_all)
    while position < todo.size:
        index = todo[position]
        base = fingerprints[index]
        for c in range(width):
            row[c] = rows[index, c]
        count, complete = gather(row, room, answers)
        most = ZERO
        for n in range(count if complete else ZERO):
            most += lists[n] & LOW
        if kept + most > U64(found.size):
            counters[1], counters[4] = kept, most > U64(MOST_MOVES)
            return position
        ordinal, first = ZERO, kept
        if answers.memo.size > LARGE and complete:
            look_ahead(row, lists, count, answers)
        for n in range(count if complete else ZERO):
            following = lists[n] >> BITS32
            for _ in range(lists[n] & LOW):
                move = following
                following += ONE + (entries[move] & LOW)
                status, fingerprint, changed, _ = run(move, row, base, room.stack, answers)
                fingerprint = fingerprint_of_class(row, answers.columns, fingerprint, images)
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
