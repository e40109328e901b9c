"""The visited set with five bytes for each slot, for large searches: kernels over a flat array of bytes.

The index of a slot has the leading bits of a fingerprint already (quotienting; Cleary 1984), so the slot stores the
rest of it. A fingerprint that found its *home* taken is in a later slot, so the slot also stores the distance:

    word = remainder << distance bits | distance + 1        (0: empty)

With 2**k slots the remainder has 64 - k bits, and 40 bits are left for both. Fingerprints are therefore as exact as in
the set with eight bytes. A fingerprint whose distance would need more bits goes to the *stash*, an ordinary set of
fingerprints, which is consulted only after the longest distance.

The last home is followed by `SPARE` slots, so that a search never begins again at slot 0. `shift` is 64 - k: the number
of bits of the remainder. The rules of `hash_tables` apply.
"""

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import AHEAD, BITS32, ONE, ZERO, find_slot, pick
from checker.engine.kernels.jit import inlined, kernel, load_packed, prefetch, store_packed

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64 = np.uint64
BYTES = 5  # of a slot
WORD_BITS = U64(8 * BYTES)
SPARE = 1 << 8  # more than the longest distance
EMPTY, THERE, TOO_FAR = 0, 1, 2


@inlined
def find_packed(packed: Array, shift: Any, fingerprint: Any) -> Any:
    """(EMPTY, THERE or TOO_FAR; the slot; the word of the fingerprint in this slot)."""
    bits = WORD_BITS - shift
    rest = (fingerprint & ((ONE << shift) - ONE)) << bits
    slot = fingerprint >> shift
    distance, most = ONE, ONE << bits
    while distance < most:
        word = load_packed(packed, slot)
        if word == ZERO:
            return EMPTY, slot, rest | distance
        if word == rest | distance:
            return THERE, slot, word
        slot += ONE
        distance += ONE
    return TOO_FAR, slot, ZERO


@inlined
def unpack(word: Any, slot: Any, shift: Any) -> Any:
    """The fingerprint of a word in a slot."""
    bits = WORD_BITS - shift
    home = slot - (word & ((ONE << bits) - ONE)) + ONE
    return (home << shift) | (word >> bits)


@kernel
def probe_packed(packed: Array, shift: Any, stash: Array, stash_shift: Any, shard: Any, shards: Any, found: Array,
                 size: Any, picks: Array, is_new: Array) -> Any:  # fmt: skip
    """`hash_tables.probe` for this set: new fingerprints of the stash << 32 | all new fingerprints."""
    picked = pick(found, U64(size), U64(shard), U64(shards), picks, is_new)
    mask = U64(stash.size - 1)
    count, stashed = ZERO, ZERO
    for k in range(picked):
        if k + AHEAD < picked:
            prefetch(packed, (found[picks[k + AHEAD]] >> shift) * U64(BYTES))
        i = picks[k]
        fingerprint = found[i]
        status, slot, word = find_packed(packed, shift, fingerprint)
        if status == EMPTY:
            store_packed(packed, slot, word)
            is_new[i] = 1
            count += ONE
        elif status == TOO_FAR:
            slot, is_there = find_slot(stash, ONE, mask, fingerprint >> stash_shift, fingerprint)
            if not is_there:
                stash[slot] = fingerprint
                is_new[i] = 1
                count += ONE
                stashed += ONE
    return stashed << BITS32 | count


@kernel
def put_packed(packed: Array, shift: Any, fingerprints: Array, stashed: Array) -> Any:
    """Add new fingerprints; those for the stash are written to `stashed`. Returns their number."""
    count = ZERO
    for i in range(U64(fingerprints.size)):
        if i + AHEAD < U64(fingerprints.size):
            prefetch(packed, (fingerprints[i + AHEAD] >> shift) * U64(BYTES))
        status, slot, word = find_packed(packed, shift, fingerprints[i])
        if status == EMPTY:
            store_packed(packed, slot, word)
        else:
            stashed[count] = fingerprints[i]
            count += ONE
    return count


@kernel
def take_packed(packed: Array, shift: Any, begin: Any, end: Any, taken: Array) -> Any:
    """Remove the fingerprints of slots begin to end, and write them to `taken`. Returns their number."""
    count = ZERO
    for slot in range(U64(begin), U64(end)):
        word = load_packed(packed, slot)
        if word != ZERO:
            taken[count] = unpack(word, slot, shift)
            count += ONE
            store_packed(packed, slot, ZERO)
    return count
