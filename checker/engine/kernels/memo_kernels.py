"""The memo, one hash table with the results of operations on values, and the reading of several values through it.

    memo[cell << 32 | operation] = effect << 32 | new cell         (new cell IMPOSSIBLE: the move cannot happen)

The columns that an actor, a rule or a property reads together are a *group*. They are *folded* through the same memo:
from the group's root, each column's class leads to a further node, and the last node represents all of them. Missing
keys are recorded, for Python to fill in.

The rules of `search_kernels` apply: nothing is allocated here, all integers are unsigned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.jit import inlined, kernel

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
ZERO, ONE, TWO, BITS32 = U64(0), U64(1), U64(2), U64(32)
GOLDEN = U64(0x9E3779B97F4A7C15)
IMPOSSIBLE = U64(0xFFFFFFFF)
MISSING = U64(0xFFFFFFFFFFFFFFFF)
NEVER = U32(0xFFFFFFFF)


@inlined
def find_slot(table: Array, stride: Any, mask: Any, home: Any, key: Any) -> Any:
    """The slot of a key in a table with open addressing, or the empty slot for it: (slot, whether it holds the key).

    `table` has its keys at multiples of `stride`, and 0 for an empty slot; `mask` is the number of slots less one. The
    search begins at the slot `home`. The key 0 finds the first empty slot.
    """
    slot = home
    while True:
        there = table[slot * stride]
        if there == key:
            return slot, True
        if there == ZERO:
            return slot, False
        slot = (slot + ONE) & mask


@inlined
def lookup(memo: Array, shift: Any, key: Any) -> Any:
    """The memo's value for a key, or MISSING. `memo` is flat: key, value, key, value; keys are never 0."""
    slot, is_there = find_slot(memo, TWO, U64(memo.size // 2 - 1), (key * GOLDEN) >> shift, key)
    return memo[slot * TWO + ONE] if is_there else MISSING


@inlined
def note(missing: Array, counters: Array, key: Any) -> None:
    """Record a key that the memo lacks. If the buffer is full, the key is dropped and recorded in a later attempt."""
    if counters[0] < missing.size:
        missing[counters[0]] = key
        counters[0] += 1


@inlined
def fold(row: Array, group: Any, groups: Array, reads: Array, classes: Array, bases: Array,
         memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The node for the values that a group reads of a row; IMPOSSIBLE for "never", MISSING if not yet known.

    groups[g] = (first read, number of reads, root); reads[i] = (column, index among the column's classes).
    """
    node = U64(groups[group, 2])
    first = U64(groups[group, 0])
    for i in range(first, first + U64(groups[group, 1])):
        seen = classes[U64(bases[row[reads[i, 0]]]) + U64(reads[i, 1])]
        if seen == NEVER:
            return IMPOSSIBLE
        key = (node << BITS32) | U64(seen)
        node = lookup(memo, shift, key)
        if node == MISSING:
            note(missing, counters, key)
            return MISSING
    return node


@kernel
def find_memo(memo: Array, shift: Any, key: Any) -> Any:
    """`lookup` for Python."""
    return lookup(memo, shift, key)


@kernel
def insert_memo(memo: Array, shift: Any, keys: Array, values: Array) -> None:
    """Add pairs to the memo, which must have room for them; an existing key gets the new value."""
    mask = U64(memo.size // 2 - 1)
    for i in range(keys.size):
        slot, _ = find_slot(memo, TWO, mask, (keys[i] * GOLDEN) >> shift, keys[i])
        memo[slot * TWO] = keys[i]
        memo[slot * TWO + ONE] = values[i]
