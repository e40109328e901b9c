"""Cells, effects and moves as integers, and the kernel that carries out a move on a row.

The kernels do not depend on the meaning of the numbers. A *cell* is the id of a value in its column, and a row is a
cell for each column. An *operation* has an id too, and the memo has the result of an operation on a cell
(`hash_tables`).

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

All arrays are allocated by the caller, all integers unsigned: a signed index costs a branch.

The cells of a block have two bytes each while they wait to be expanded. A cell is a number among all values, and needs
four bytes. Its *place* among the values of its column mostly needs two. The rows of a block are then stored by column:
the low halves of all places, and the high halves of the columns that have greater places in this block.

In a symmetric search, the fingerprint of a row is the same for all rows that differ in names:

    images[cell, renaming] = the number that the renamed cell has in fingerprints; renaming 0 is the identity
"""

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import (
    BITS32,
    IMPOSSIBLE,
    LOW,
    MISSING,
    ONE,
    TWO,
    WORDS,
    ZERO,
    Answers,
    find_entry,
    fold,
    home,
    mix,
    note,
)
from checker.engine.kernels.jit import inlined, kernel, ones_below, prefetch

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32, U16 = np.uint64, np.uint32, np.uint16
UNLISTED = U64(0xFFFFFFFFFFFFFFFF)
SET, GROUP, COLUMN_BITS = U64(0x80000000), U64(0x40000000), U64(0x3FFFFFFF)
JUDGEMENT = U64(0x80000000)  # in the subject of a key: a judgement and not a cell or node
FIELDS = U64(4)
LISTED, ZOBRIST, JOINT, ALIKE = U64(0), U64(1), U64(2), U64(3)
SET_WORDS = U64(3)
LARGE = 1 << 17  # words of a memo that the processor's second cache cannot hold
MANY = U64(63)  # the bit for all columns from this one
BITS16, SOURCE_BITS = U64(16), U64(0xFFFF)
STACK = 16  # the greatest depth at which operations may send further operations
ENDLESS = 1 << 12  # operations of one move that send further ones; a greater number is taken for a cycle
DONE, NOT_POSSIBLE, INCOMPLETE, TOO_DEEP = 0, 1, 2, 3


@inlined
def run(effect: Any, row: Array, fingerprint: Any, stack: Array, answers: Answers) -> Any:
    """Carry out a move on `row`: (status, fingerprint afterwards, changed columns, affected bundles).

    The row is left changed for any status. The changed columns are bits, the last of which stands for all columns from
    MANY; the bundles are bits as well, and those that are not affected read nothing that changed.
    """
    entries, memo = answers.entries, answers.memo
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
            at += SET_WORDS - ONE
            continue
        before = U64(row[column])
        if target & GROUP:
            before = fold(row, column, answers)
            if before == MISSING:
                return INCOMPLETE, fingerprint, changed, affected
        key = (before << BITS32) | operation
        place = find_entry(memo, answers.shift, key)
        if place == MISSING:
            note(answers, key)
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
def look_ahead(row: Array, lists_of: Array, count: Any, answers: Answers) -> None:
    """Ask for the entries of the memo that a row's moves need, so that they arrive together.

    An operation that another one sends is not foreseen.
    """
    entries = answers.entries
    for n in range(count):
        at = lists_of[n] >> BITS32
        for _ in range(lists_of[n] & LOW):
            end = at + ONE + (entries[at] & LOW)
            at += ONE
            while at < end:
                target = entries[at] >> BITS32
                if target & SET:
                    at += SET_WORDS
                    continue
                if not target & GROUP:
                    key = (U64(row[target]) << BITS32) | (entries[at] & LOW)
                    prefetch(answers.memo, home(answers.shift, key) * U64(WORDS))
                at += ONE


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


HALF = U32(16)  # bits


@inlined
def fingerprint_of_class(row: Array, columns: Any, fingerprint: Any, images: Any) -> Any:
    """The fingerprint of all rows that differ from a row in names: the sum of those of all renamed ones, mixed.

    Without images it is that of the row, `fingerprint`.
    """
    if images is None:
        return fingerprint
    total = ZERO
    for renaming in range(images.shape[1]):
        one = ZERO
        for c in range(columns):
            one ^= images[row[c], renaming]
        total += mix(one)
    return total


@kernel
def find_fingerprint_of_class(row: Array, columns: Any, fingerprint: Any, images: Any) -> Any:
    """`fingerprint_of_class` for Python."""
    return fingerprint_of_class(row, columns, fingerprint, images)


@kernel
def narrow(rows: Array, size: Any, places: Array, low: Array, is_wide: Array) -> None:
    """Write the low halves of the places of the first rows to low[column, row], and whether a column needs high ones to
    `is_wide`.
    """
    for c in range(U64(low.shape[0])):
        union = U32(0)
        for i in range(U64(size)):
            place = places[rows[i, c]]
            low[c, i] = U16(place)
            union |= place
        is_wide[c] = union >> HALF != U32(0)


@kernel
def narrow_high(rows: Array, size: Any, column: Any, places: Array, high: Array) -> None:
    """Write the high halves of the places in one column to high[row]."""
    for i in range(U64(size)):
        high[i] = U16(places[rows[i, column]] >> HALF)


@kernel
def widen(low: Array, high: Array, high_of: Array, cells: Array, firsts: Array, rows: Array, size: Any) -> None:
    """Write the cells of stored rows to `rows`.

    cells[firsts[column] + place] is a cell; high[high_of[column], row] is the high half of a place, or 0 if the column
    is beyond the last of high_of's rows.
    """
    for c in range(U64(low.shape[0])):
        first, wide = firsts[c], U64(high_of[c])
        for i in range(U64(size)):
            place = U32(low[c, i])
            if wide < U64(high.shape[0]):
                place |= U32(high[wide, i]) << HALF
            rows[i, c] = cells[first + U64(place)]
