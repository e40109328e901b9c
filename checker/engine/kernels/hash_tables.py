"""Hash tables with open addressing: the memo of the results of model functions, and the visited set of fingerprints.

    memo[cell << 32 | operation] = effect << 32 | new cell, change of the fingerprint, affected bundles

If the new cell is IMPOSSIBLE, the move cannot happen.

The columns that an actor, a rule or a property reads together are a *group*. They are *folded* through the same memo:
from the group's root, each column's class leads to a further node, and the last node represents all of them. Missing
keys are recorded, for Python to fill in.

The visited set is divided into shards, one for each worker. Other bits of a fingerprint select the shard than its slot
there: a shard is addressed by the leading bits. An empty slot is 0. With the graph, a second array has the number of
each state in the same slot; without it, `numbers` is empty. Pass two of the search selects the states whose
fingerprints are new.

The rules of `search_kernels` apply: nothing is allocated here, all integers are unsigned.
"""

from typing import Any, NamedTuple

import numpy as np

from checker.engine.kernels.jit import inlined, kernel, prefetch

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
ZERO, ONE, TWO, BITS32 = U64(0), U64(1), U64(2), U64(32)
WORDS = 4  # of an entry of the memo: key, value, change, affected bundles
GOLDEN = U64(0x9E3779B97F4A7C15)
LOW = U64(0xFFFFFFFF)
IMPOSSIBLE = U64(0xFFFFFFFF)
MISSING = U64(0xFFFFFFFFFFFFFFFF)
NEVER = U32(0xFFFFFFFF)
AHEAD = U64(16)  # the distance, in probes, at which the visited set is prefetched


class Answers(NamedTuple):
    """The known answers of a model's functions, and room for the keys of those that are missing.

    groups[g] = (first read, number of reads, root); reads[i] = (column, index among the column's classes). `masks` has
    for each cell the joint rules that it allows, `masked` the columns with such masks, and `joint` the group of each
    joint rule. `move_kernels` describes `cells` and `entries`. counters[0] is the number of missing keys; the others
    belong to each kernel. `failed` is a memo of the keys that have no answer, since a function of the model fails, each
    plus one: a model without groups has the key 0.
    """

    columns: int
    groups: Array
    reads: Array
    classes: Array
    bases: Array
    memo: Array
    shift: Any
    cells: Array
    entries: Array
    masks: Array
    masked: Array
    joint: Array
    failed: Array
    failed_shift: Any
    missing: Array
    counters: Array


@inlined
def find_slot(table: Array, stride: Any, mask: Any, begin: Any, key: Any) -> Any:
    """The slot of a key in a table with open addressing, or the empty slot for it: (slot, whether it holds the key).

    `table` has its keys at multiples of `stride`, and 0 for an empty slot; `mask` is the number of slots less one. The
    search begins at the slot `begin`. The key 0 finds the first empty slot.
    """
    slot = begin
    while True:
        there = table[slot * stride]
        if there == key:
            return slot, True
        if there == ZERO:
            return slot, False
        slot = (slot + ONE) & mask


@inlined
def mix(word: Any) -> Any:
    """A pseudo-random number from a word: the finalizer of splitmix64."""
    word = (word ^ (word >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U64(27))) * U64(0x94D049BB133111EB)
    return word ^ (word >> U64(31))


@inlined
def home(shift: Any, key: Any) -> Any:
    """The slot of the memo at which the search for a key begins."""
    return (key * GOLDEN) >> shift


@inlined
def find_entry(memo: Array, shift: Any, key: Any) -> Any:
    """The place of a key's entry in the memo, or MISSING. Keys are never 0."""
    slot, is_there = find_slot(memo, U64(WORDS), U64(memo.size // WORDS - 1), home(shift, key), key)
    return slot * U64(WORDS) if is_there else MISSING


@inlined
def lookup(memo: Array, shift: Any, key: Any) -> Any:
    """The memo's value for a key, or MISSING."""
    place = find_entry(memo, shift, key)
    return MISSING if place == MISSING else memo[place + ONE]


@inlined
def note(answers: Answers, key: Any) -> None:
    """Record a key that the memo lacks. If the buffer is full, the key is dropped and recorded in a later attempt.

    A key that failed is not recorded again. So a row that stays incomplete without a new key fails.
    """
    if find_entry(answers.failed, answers.failed_shift, key + ONE) != MISSING:
        return
    if answers.counters[0] < answers.missing.size:
        answers.missing[answers.counters[0]] = key
        answers.counters[0] += 1


@inlined
def fold(row: Array, group: Any, answers: Answers) -> Any:
    """The node for the values that a group reads of a row; IMPOSSIBLE for "never", MISSING if not yet known."""
    groups, reads = answers.groups, answers.reads
    node = U64(groups[group, 2])
    first = U64(groups[group, 0])
    for i in range(first, first + U64(groups[group, 1])):
        seen = answers.classes[U64(answers.bases[row[reads[i, 0]]]) + U64(reads[i, 1])]
        if seen == NEVER:
            return IMPOSSIBLE
        key = (node << BITS32) | U64(seen)
        node = lookup(answers.memo, answers.shift, key)
        if node == MISSING:
            note(answers, key)
            return MISSING
    return node


@kernel
def find_memo(memo: Array, shift: Any, key: Any) -> Any:
    """`lookup` for Python."""
    return lookup(memo, shift, key)


@kernel
def insert_memo(memo: Array, shift: Any, rows: Array) -> None:
    """Add entries to the memo, which must have room for them; an existing key gets the new value."""
    mask = U64(memo.size // WORDS - 1)
    for i in range(rows.shape[0]):
        slot, _ = find_slot(memo, U64(WORDS), mask, home(shift, rows[i, 0]), rows[i, 0])
        for word in range(WORDS):
            memo[slot * U64(WORDS) + U64(word)] = rows[i, word]


# The visited set.


@inlined
def owner(fingerprint: Any, shards: Any) -> Any:
    """The shard of a fingerprint; its slot there depends on other bits."""
    return ((fingerprint & LOW) * shards) >> BITS32


@inlined
def pick(found: Array, size: Any, shard: Any, shards: Any, picks: Array, is_new: Array) -> Any:
    """Write the positions of a shard's fingerprints to `picks`, and return their number; all flags become 0."""
    count = ZERO
    for i in range(size):
        is_new[i] = 0
        picks[count] = i
        count += U64(owner(found[i], shards) == shard)
    return count


@kernel
def probe(visited: Array, shift: Any, shard: Any, shards: Any, found: Array, size: Any, picks: Array,
          is_new: Array, slots: Any) -> Any:  # fmt: skip
    """Pass two: add the fingerprints of a shard to its visited set; is_new[i] becomes 1 for the first of each new one.

    With `slots`, for the graph, slots[i] becomes the slot of found[i]. Returns the number of new fingerprints.
    """
    picked = pick(found, U64(size), U64(shard), U64(shards), picks, is_new)
    mask = U64(visited.size - 1)
    count = ZERO
    for k in range(picked):
        if k + AHEAD < picked:
            prefetch(visited, found[picks[k + AHEAD]] >> shift)
        i = picks[k]
        fingerprint = found[i]
        slot, is_there = find_slot(visited, ONE, mask, fingerprint >> shift, fingerprint)
        if not is_there:
            visited[slot] = fingerprint
            is_new[i] = 1
            count += ONE
        if slots is not None:
            slots[i] = slot
    return count


@kernel
def spread(slots: Array, numbers: Array, size: Any, shift: Any, taken: Array, taken_numbers: Array,
           spill: Array, spill_numbers: Array) -> Any:  # fmt: skip
    """Double a visited set in place: the fingerprints of slots[:size] move to their positions in all of `slots`.

    With indices of leading bits, a fingerprint with home slot s moves to 2s or 2s + 1. The fingerprints are moved from
    the last one down, in portions of the size of `taken`; their new positions are beyond all that remain to be moved,
    except for the first few. These, and any that a long cluster kept far from home, wait in `spill`. Returns the number
    that did not fit there, which is an error. The `numbers`, if any, move with their fingerprints.
    """
    waiting, lost = ZERO, ZERO
    begin = U64(size)
    while begin > ZERO:
        end = begin
        begin = end - min(end, U64(taken.size))
        count = ZERO
        for at in range(begin, end):
            fingerprint = slots[at]
            taken[count] = fingerprint
            if numbers.size:
                taken_numbers[count] = numbers[at]
            count += U64(fingerprint != ZERO)
            slots[at] = ZERO
        for n in range(count):
            if taken[n] >> shift >= begin:
                put(slots, numbers, shift, taken[n], taken_numbers[n])
            elif waiting < U64(spill.size):
                spill[waiting] = taken[n]
                spill_numbers[waiting] = taken_numbers[n]
                waiting += ONE
            else:
                lost += ONE
    for n in range(waiting):
        put(slots, numbers, shift, spill[n], spill_numbers[n])
    return lost


@kernel
def refill(slots: Array, numbers: Array, shift: Any, fingerprints: Array, states: Array) -> None:
    """Add new fingerprints to the visited set, with the numbers of their states."""
    for i in range(U64(fingerprints.size)):
        if i + AHEAD < U64(fingerprints.size):
            prefetch(slots, fingerprints[i + AHEAD] >> shift)
        put(slots, numbers, shift, fingerprints[i], states[i])


@inlined
def put(slots: Array, numbers: Array, shift: Any, fingerprint: Any, number: Any) -> None:
    """Add a new fingerprint to the visited set, with its number if the set has numbers."""
    slot, _ = find_slot(slots, ONE, U64(slots.size - 1), fingerprint >> shift, ZERO)
    slots[slot] = fingerprint
    if numbers.size:
        numbers[slot] = number
