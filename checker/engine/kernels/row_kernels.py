"""Rows at rest, and the fingerprints of rows whose names may change.

The cells of a block have two bytes each while they wait to be expanded.

A cell is a number among all values, and needs four bytes. Its *place* among the values of its column mostly needs two.
The rows of a block are stored by column: the low halves of all places, and the high halves of the columns that have
greater places in this block.

In a symmetric search, the fingerprint of a row is the same for all rows that differ in names:

    images[cell, renaming] = the number that the renamed cell has in fingerprints; renaming 0 is the identity

The rules of `hash_tables` apply: nothing is allocated here, all integers are unsigned.
"""

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import ZERO, mix
from checker.engine.kernels.jit import inlined, kernel

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32, U16 = np.uint64, np.uint32, np.uint16
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
