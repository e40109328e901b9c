"""Exploration as loops over integers: pass one finds successors, pass three builds the rows of the new ones.

Pass two, which selects the new ones, is `hash_tables.probe`. The kernels do not depend on the meaning of the
numbers. A *cell* is the id of a value in its column, and a row is a cell for each column. An *operation* has an id too,
and the memo has the result of an operation on a cell (`hash_tables`).

An effect is a position in `entries`. The word there is the effect's number << 32 | length, followed by `length` words
target << 32 | operation. A move is an effect too. A target is a column, or SET | column (the operation is the new cell
itself), or GROUP | g for an actor that reads several columns. Joint rules and properties read rows in the same way.

If the memo lacks an entry, its key is recorded and the row is put aside; Python fills the table and the row is tried
again. All arrays are allocated by the caller, all integers unsigned: a signed index costs a branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, MISSING, ONE, TWO, ZERO, fold, lookup, note
from checker.engine.kernels.jit import inlined, kernel, ones_below

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
LOW = U64(0xFFFFFFFF)
UNLISTED = U64(0xFFFFFFFFFFFFFFFF)
SET, GROUP, COLUMN_BITS = U64(0x80000000), U64(0x40000000), U64(0x3FFFFFFF)
BITS16, SOURCE_BITS = U64(16), U64(0xFFFF)
STACK = 16  # the greatest depth at which operations may send further operations
ENDLESS = 1 << 12  # operations of one move that send further ones; a greater number is taken for a cycle
DONE, NOT_POSSIBLE, INCOMPLETE, TOO_DEEP = 0, 1, 2, 3


@inlined
def find_joint_key(
    row: Array, columns: Any, projection_class: Array, zobrist: Array, joint_key: Array, cached_keys: Array
) -> Any:
    """The slot of `cached_keys` for rows with the same view for the joint rules: (slot, whether it holds this view).

    projection_class[cell] is the first cell of the same column with the same view for the joint rules, and represents
    all of them. The joint rules list the same moves for a row and for the row of these cells. That row, its joint key,
    is written to `joint_key` and compared with cached_keys[slot]. Each view has only this slot, and a new key replaces
    the previous one. No cell is 0, which is the root of a group.
    """
    mixed = ZERO
    for c in range(columns):
        joint_key[c] = projection_class[row[c]]
        mixed ^= zobrist[joint_key[c]]
    slot = mixed & U64(cached_keys.shape[0] - 1)
    different = U32(0)
    for c in range(columns):
        different |= cached_keys[slot, c] ^ joint_key[c]
    return slot, different == U32(0)


@inlined
def run(effect: Any, row: Array, fingerprint: Any, stack: Array, entries: Array,
        zobrist: Array, groups: Array, reads: Array, classes: Array, bases: Array,
        memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Carry out a move on `row`, which is left changed for any status: (status, fingerprint afterwards)."""
    depth, done = ZERO, ZERO
    at = effect + ONE
    end = at + (entries[effect] & LOW)
    while True:
        while at == end:
            if depth == ZERO:
                return DONE, fingerprint
            depth -= ONE
            at = stack[depth * TWO]
            end = stack[depth * TWO + ONE]
        entry = entries[at]
        target, operation = entry >> BITS32, entry & LOW
        at += ONE
        column = target & COLUMN_BITS
        follows = ZERO
        if target & SET:
            after = operation
        else:
            before = U64(row[column])
            if target & GROUP:
                before = fold(row, column, groups, reads, classes, bases, memo, shift, missing, counters)
                if before == MISSING:
                    return INCOMPLETE, fingerprint
            key = (before << BITS32) | operation
            value = lookup(memo, shift, key)
            if value == MISSING:
                note(missing, counters, key)
                return INCOMPLETE, fingerprint
            after = value & LOW
            if after == IMPOSSIBLE:
                return NOT_POSSIBLE, fingerprint
            follows = value >> BITS32
        if not target & GROUP:
            fingerprint ^= zobrist[row[column]] ^ zobrist[after]
            row[column] = U32(after)
        if follows:
            done += ONE
            if depth == U64(STACK) or done == U64(ENDLESS):
                return TOO_DEEP, fingerprint
            if at != end:
                stack[depth * TWO] = at
                stack[depth * TWO + ONE] = end
                depth += ONE
            at = follows + ONE
            end = at + (entries[follows] & LOW)


@inlined
def gather(row: Array, columns: Any, listed: Array, masks: Array, masked: Array, joint: Array, lists_of: Array,
           projection_class: Array, joint_key: Array, cached_keys: Array, cached_lists: Array, zobrist: Array,
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
        moves = listed[node]
        lists_of[count] = moves
        count += U64(moves != ZERO)
        if moves == UNLISTED:
            note(missing, counters, node << BITS32)
            complete = False
    if joint.size:
        slot, is_cached = find_joint_key(row, columns, projection_class, zobrist, joint_key, cached_keys)
        if not is_cached:
            is_cached = evaluate_joint_rules(row, masks, masked, joint, listed, cached_lists[slot],
                                           groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
            complete &= is_cached
            for c in range(columns):
                cached_keys[slot, c] = joint_key[c] if is_cached else U32(0)
        for n in range(cached_lists[slot, 0]):
            lists_of[count] = cached_lists[slot, ONE + n]
            count += ONE
    return count, complete


@inlined
def evaluate_joint_rules(row: Array, masks: Array, masked: Array, joint: Array, listed: Array, lists_of: Array,
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
                moves = listed[node]
                lists_of[count] = moves
                count += U64(moves != ZERO)
    lists_of[0] = count - ONE
    return complete


@kernel
def expand(rows: Array, columns: Any, fingerprints: Array, todo: Array, position: Any, listed: Array,
           masks: Array, masked: Array, joint: Array, lists_of: Array,
           projection_class: Array, joint_key: Array, cached_keys: Array, cached_lists: Array,
           row: Array, stack: Array, entries: Array, zobrist: Array,
           groups: Array, reads: Array, classes: Array, bases: Array, memo: Array, shift: Any,
           found: Array, origins: Array, fired: Array,
           dead: Array, aside: Array, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Pass one: the successors of rows todo[position:], as fingerprint and origin (move, ordinal, source row).

    counters: missing keys, successors, rows put aside, dead rows, error. Returns the position reached; it stops when a
    buffer is full. listed[cell] = position << 32 | count: the moves of a column's own rules, or of a joint rule's last
    node, are contiguous in `entries` (UNLISTED: not yet known; ask with operation 0). masks[cell] has the joint rules
    that a cell allows, `masked` the columns with such masks, and fired[number of a move] is a counter. The width of
    rows is a multiple of eight.
    """
    width = rows.shape[1]
    kept = ZERO
    while position < todo.size and counters[2] < aside.size and counters[0] < missing.size:
        index = todo[position]
        base = fingerprints[index]
        count, complete = gather(
            rows[index], columns, listed, masks, masked, joint, lists_of,
            projection_class, joint_key, cached_keys, cached_lists, zobrist,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        ordinal = ZERO
        for n in range(count if complete else ZERO):
            following = lists_of[n] >> BITS32
            for _ in range(lists_of[n] & LOW):
                move = following
                following += ONE + (entries[move] & LOW)
                for c in range(width):
                    row[c] = rows[index, c]
                status, fingerprint = run(
                    move, row, base, stack, entries, zobrist,
                    groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
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


@kernel
def build(rows: Array, fresh: Array, begin: Any, end: Any, found: Array, origins: Array,
          base: Any, into: Array, into_fingerprints: Array, at: Any, parents: Array, steps: Array,
          stack: Array, entries: Array, zobrist: Array,
          groups: Array, reads: Array, classes: Array, bases: Array, memo: Array, shift: Any,
          missing: Array, counters: Array) -> None:  # fmt: skip
    """Pass three: write the rows of new states fresh[begin:end] to `into`, by carrying out their moves again."""
    width = rows.shape[1]
    for k in range(begin, end):
        i = fresh[k]
        source = origins[i] & SOURCE_BITS
        for c in range(width):
            into[at, c] = rows[source, c]
        run(origins[i] >> BITS32, into[at], ZERO, stack, entries, zobrist,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        into_fingerprints[at] = found[i]
        parents[k] = U32(U64(base) + source)
        steps[k] = (origins[i] >> BITS16) & SOURCE_BITS
        at += 1


@inlined
def evaluate_bundles(row: Array, bundles: Array, verdict_of: Array, verdicts: Array,
           groups: Array, reads: Array, classes: Array, bases: Array,
           memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Write the verdict of each bundle on a row into `verdicts`; return whether all values that they read are known."""
    complete = True
    for b in range(bundles.shape[0]):
        node = fold(row, U64(bundles[b, 0]), groups, reads, classes, bases, memo, shift, missing, counters)
        if node == MISSING:
            complete = False
        else:
            verdicts[b] = bundles[b, 1] if node == IMPOSSIBLE else verdict_of[node]
    return complete


@kernel
def examine(rows: Array, todo: Array, bundles: Array, verdict_of: Array, verdicts: Array, tally: Array, first: Array,
            groups: Array, reads: Array, classes: Array, bases: Array,
            memo: Array, shift: Any, aside: Array, missing: Array, counters: Array) -> None:  # fmt: skip
    """Evaluate properties in the rows `todo`: tally[verdict number] is a counter, first[number] the first such row.

    bundles[b] = (group, number of the verdict if a projection says "never"). A row is counted only after all values
    that its properties read are known; until then it is put aside.
    """
    for index in todo:
        if not evaluate_bundles(rows[index], bundles, verdict_of, verdicts, groups, reads, classes, bases,
                      memo, shift, missing, counters):  # fmt: skip
            aside[counters[2]] = index
            counters[2] += 1
            continue
        for b in range(bundles.shape[0]):
            if tally[verdicts[b]] == ZERO:
                first[verdicts[b]] = index
            tally[verdicts[b]] += ONE
