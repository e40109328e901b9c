"""Pass one of the exploration: the successors of rows, as loops over integers.

Pass two, which selects the new ones, is `hash_tables.probe`, and pass three is in `build_kernels`. The kernels do not
depend on the meaning of the numbers. A *cell* is the id of a value in its column, and a row is a cell for each column.
An *operation* has an id too, and the memo has the result of an operation on a cell (`hash_tables`).

A cell has a record of four words in `cells`, so that a row needs one cache line for each of its cells:

    LISTED     the moves of the column's own rules: position << 32 | number of them (UNLISTED: not yet known)
    ZOBRIST    its number in fingerprints
    JOINT      the number of the cell ALIKE
    ALIKE      the first cell of the same column with the same view for the joint rules

A node has the moves of its joint rule, or the number of its verdict, in LISTED. An effect is a position in `entries`.
The word there is label << 32 | length, followed by `length` words. A word is target << 32 | operation. A move is an
effect too. A target is a column, or GROUP | g for an actor that reads several columns. Joint rules and properties read
rows in the same way. SET | column << 32 | cell replaces the cell of a column; two words follow, with the change of the
fingerprint and the affected bundles.

If the memo lacks an entry, its key is recorded and the row is put aside; Python fills the table and the row is tried
again. All arrays are allocated by the caller, all integers unsigned: a signed index costs a branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, MISSING, ONE, TWO, ZERO, find_entry, fold, note
from checker.engine.kernels.jit import inlined, kernel, ones_below

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
LOW = U64(0xFFFFFFFF)
UNLISTED = U64(0xFFFFFFFFFFFFFFFF)
SET, GROUP, COLUMN_BITS = U64(0x80000000), U64(0x40000000), U64(0x3FFFFFFF)
JUDGEMENT = U64(0x80000000)  # in the subject of a key: a judgement and not a cell or node
FIELDS = 4
LISTED, ZOBRIST, JOINT, ALIKE = U64(0), U64(1), U64(2), U64(3)
MANY = U64(63)  # the bit for all columns from this one
BITS16, SOURCE_BITS = U64(16), U64(0xFFFF)
STACK = 16  # the greatest depth at which operations may send further operations
ENDLESS = 1 << 12  # operations of one move that send further ones; a greater number is taken for a cycle
DONE, NOT_POSSIBLE, INCOMPLETE, TOO_DEEP = 0, 1, 2, 3


@inlined
def find_joint_key(row: Array, columns: Any, cells: Array, joint_key: Array, cached_keys: Array) -> Any:
    """The slot of `cached_keys` for rows with the same view for the joint rules: (slot, whether it holds this view).

    The joint rules list the same moves for a row and for the row of its ALIKE cells. That row, its joint key, is
    written to `joint_key` and compared with cached_keys[slot]. Each view has only this slot, and a new key replaces the
    previous one. No cell is 0, which is the root of a group.
    """
    mixed = ZERO
    for c in range(columns):
        cell = row[c]
        joint_key[c] = U32(cells[cell, ALIKE])
        mixed ^= cells[cell, JOINT]
    slot = mixed & U64(cached_keys.shape[0] - 1)
    different = U32(0)
    for c in range(columns):
        different |= cached_keys[slot, c] ^ joint_key[c]
    return slot, different == U32(0)


@inlined
def run(effect: Any, row: Array, fingerprint: Any, stack: Array, entries: Array,
        groups: Array, reads: Array, classes: Array, bases: Array,
        memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Carry out a move on `row`: (status, fingerprint afterwards, changed columns, affected bundles).

    The row is left changed for any status. The changed columns are bits, the last of which stands for all columns from
    MANY; the bundles are bits as well, and those that are not affected read nothing that changed.
    """
    depth, done, changed, affected = ZERO, ZERO, ZERO, ZERO
    at = effect + ONE
    end = at + (entries[effect] & LOW)
    while True:
        while at == end:
            if depth == ZERO:
                return DONE, fingerprint, changed, affected
            depth -= ONE
            at = stack[depth * TWO]
            end = stack[depth * TWO + ONE]
        entry = entries[at]
        target, operation = entry >> BITS32, entry & LOW
        at += ONE
        column = target & COLUMN_BITS
        if target & SET:
            row[column] = U32(operation)
            fingerprint ^= entries[at]
            affected |= entries[at + ONE]
            changed |= ONE << min(column, MANY)
            at += TWO
            continue
        before = U64(row[column])
        if target & GROUP:
            before = fold(row, column, groups, reads, classes, bases, memo, shift, missing, counters)
            if before == MISSING:
                return INCOMPLETE, fingerprint, changed, affected
        key = (before << BITS32) | operation
        place = find_entry(memo, shift, key)
        if place == MISSING:
            note(missing, counters, key)
            return INCOMPLETE, fingerprint, changed, affected
        value = memo[place + ONE]
        after = value & LOW
        if after == IMPOSSIBLE:
            return NOT_POSSIBLE, fingerprint, changed, affected
        if not target & GROUP:
            row[column] = U32(after)
            fingerprint ^= memo[place + TWO]
            affected |= memo[place + TWO + ONE]
            changed |= ONE << min(column, MANY)
        follows = value >> BITS32
        if follows:
            done += ONE
            if depth == U64(STACK) or done == U64(ENDLESS):
                return TOO_DEEP, fingerprint, changed, affected
            if at != end:
                stack[depth * TWO] = at
                stack[depth * TWO + ONE] = end
                depth += ONE
            at = follows + ONE
            end = at + (entries[follows] & LOW)


@inlined
def restore(row: Array, rows: Array, index: Any, changed: Any) -> None:
    """Undo a move: copy the changed columns of rows[index] to `row`."""
    while changed:
        column = ones_below(changed)
        changed &= changed - ONE
        if column == MANY:
            for c in range(MANY, U64(row.size)):
                row[c] = rows[index, c]
        else:
            row[column] = rows[index, column]


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
        moves = cells[node, LISTED]
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
                moves = cells[node, LISTED]
                lists_of[count] = moves
                count += U64(moves != ZERO)
    lists_of[0] = count - ONE
    return complete


@kernel
def expand(rows: Array, columns: Any, fingerprints: Array, todo: Array, position: Any, cells: Array,
           masks: Array, masked: Array, joint: Array, lists_of: Array,
           joint_key: Array, cached_keys: Array, cached_lists: Array,
           row: Array, stack: Array, entries: Array,
           groups: Array, reads: Array, classes: Array, bases: Array, memo: Array, shift: Any,
           found: Array, origins: Array, fired: Array,
           dead: Array, aside: Array, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Pass one: the successors of rows todo[position:], as fingerprint and origin (move, ordinal, source row).

    counters: missing keys, successors, rows put aside, dead rows, error. Returns the position reached; it stops when a
    buffer is full. masks[cell] has the joint rules that a cell allows, `masked` the columns with such masks, and
    fired[label] is a counter. The width of rows is a multiple of eight.
    """
    width = rows.shape[1]
    kept = ZERO
    while position < todo.size and counters[2] < aside.size and counters[0] < missing.size:
        index = todo[position]
        base = fingerprints[index]
        for c in range(width):
            row[c] = rows[index, c]
        count, complete = gather(
            row, columns, cells, masks, masked, joint, lists_of, joint_key, cached_keys, cached_lists,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        ordinal = ZERO
        for n in range(count if complete else ZERO):
            following = lists_of[n] >> BITS32
            for _ in range(lists_of[n] & LOW):
                move = following
                following += ONE + (entries[move] & LOW)
                status, fingerprint, changed, _ = run(
                    move, row, base, stack, entries,
                    groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
                restore(row, rows, index, changed)
                if status == DONE:
                    if kept + ordinal == U64(found.size):
                        # The buffer is full: this row waits for an empty one, and its successors so far are dropped.
                        retract(origins, kept, ordinal, entries, fired)
                        counters[1] = kept
                        return position
                    fired[entries[move] >> BITS32] += ONE
                    found[kept + ordinal] = fingerprint
                    origins[kept + ordinal] = (move << BITS32) | (ordinal << BITS16) | U64(index)
                    ordinal += ONE
                elif status == INCOMPLETE:
                    complete = False
                elif status == TOO_DEEP:
                    counters[4] = 1
                    return position
        if complete:
            kept += ordinal
            if ordinal == ZERO:
                dead[counters[3]] = index
                counters[3] += 1
        else:
            retract(origins, kept, ordinal, entries, fired)
            aside[counters[2]] = index
            counters[2] += 1
        position += 1
    counters[1] = kept
    return position


@inlined
def retract(origins: Array, first: Any, count: Any, entries: Array, fired: Array) -> None:
    """Take back the counts of moves of a row that will be tried again."""
    for i in range(first, first + count):
        fired[entries[origins[i] >> BITS32] >> BITS32] -= ONE
