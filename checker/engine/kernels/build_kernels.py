"""Pass three of the exploration: the rows of new states, and the judgement of each.

A state has the judgement of its parent, except for the bundles that read something that its move changed
(`move_kernels.run`). The memo has the changes of judgements as well:

    memo[JUDGEMENT | judgement << 32 | verdict + 1] = the judgement in which this verdict replaces that of its bundle

The rules of `move_kernels` apply: nothing is allocated here, all integers are unsigned.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, MISSING, ONE, ZERO, fold, lookup, note
from checker.engine.kernels.jit import inlined, kernel, ones_below
from checker.engine.kernels.move_kernels import (
    BITS16,
    FIELDS,
    JUDGEMENT,
    LISTED,
    MANY,
    SOURCE_BITS,
    run,
)

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32


@inlined
def evaluate(row: Array, bundle: Any, bundles: Array, cells: Array,
             groups: Array, reads: Array, classes: Array, bases: Array,
             memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The verdict of a bundle on a row, or MISSING. bundles[b] = (group, verdict if a projection says "never")."""
    node = fold(row, U64(bundles[bundle, 0]), groups, reads, classes, bases, memo, shift, missing, counters)
    if node == MISSING:
        return MISSING
    return U64(bundles[bundle, 1]) if node == IMPOSSIBLE else cells[node * FIELDS + LISTED]


@inlined
def judge(row: Array, judgement: Any, affected: Any, bundles: Array, judgements: Array, cells: Array,
          groups: Array, reads: Array, classes: Array, bases: Array,
          memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The judgement of a row, from one that differs at most in the `affected` bundles; or MISSING.

    judgements[judgement, bundle] is a verdict. The last bit of `affected` stands for all bundles from MANY.
    """
    complete = True
    number = U64(bundles.shape[0])
    bundle = ZERO
    while bundle < number:
        if bundle < MANY:
            left = affected >> bundle
            if left == ZERO:
                break
            bundle += ones_below(left)
        elif not affected >> MANY:
            break
        if bundle >= number:
            break
        verdict = evaluate(row, bundle, bundles, cells, groups, reads, classes, bases, memo, shift, missing, counters)
        if verdict == MISSING:
            complete = False
        elif complete and verdict != U64(judgements[judgement, bundle]):
            key = ((JUDGEMENT | judgement) << BITS32) | (verdict + ONE)
            judgement = lookup(memo, shift, key)
            if judgement == MISSING:
                note(missing, counters, key)
                return MISSING
        bundle += ONE
    return judgement if complete else MISSING


@kernel
def collect(is_new: Array, size: Any, fresh: Array) -> Any:
    """Write the positions of the new states of a slice to `fresh`, and return their number."""
    count = ZERO
    for i in range(size):
        flag = is_new[0, i]
        for shard in range(1, is_new.shape[0]):
            flag |= is_new[shard, i]
        fresh[count] = i
        count += U64(flag)
    return count


@inlined
def count(tally: Array, first: Array, number: Any, state: Any) -> None:
    """Count a judgement or verdict, and note its first state."""
    first[number] = min(first[number], state)
    tally[number] += ONE


@kernel
def build(rows: Array, fresh: Array, begin: Any, end: Any, found: Array, origins: Array, base: Any,
          parent_judgements: Array, into: Array, into_fingerprints: Array, into_judgements: Array, at: Any, state: Any,
          parents: Array, steps: Array, reached: Array, stack: Array, entries: Array,
          bundles: Array, judgements: Array, tally: Array, first: Array, cells: Array,
          groups: Array, reads: Array, classes: Array, bases: Array, memo: Array, shift: Any,
          aside: Array, affecting: Array, missing: Array, counters: Array) -> None:  # fmt: skip
    """Pass three: write the rows of new states fresh[begin:end] to `into`, by carrying out their moves again.

    The first of them is the state with the number `state`. A row with an unknown judgement is put aside with its
    affected bundles, and has the judgement of its parent until then.
    """
    width = rows.shape[1]
    for k in range(begin, end):
        i = fresh[k]
        source = origins[i] & SOURCE_BITS
        for c in range(width):
            into[at, c] = rows[source, c]
        _, _, _, affected = run(
            origins[i] >> BITS32, into[at], ZERO, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        judgement = judge(
            into[at], U64(parent_judgements[source]), affected, bundles, judgements, cells,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        if judgement == MISSING:
            into_judgements[at] = parent_judgements[source]
            aside[counters[2]], affecting[counters[2]] = at, affected
            counters[2] += 1
        else:
            into_judgements[at] = U32(judgement)
            count(tally, first, judgement, U64(state))
        reached[entries[origins[i] >> BITS32] >> BITS32] += ONE
        into_fingerprints[at] = found[i]
        parents[k] = U32(U64(base) + source)
        steps[k] = (origins[i] >> BITS16) & SOURCE_BITS
        at += 1
        state += 1


@kernel
def judge_rows(rows: Array, todo: Array, affected: Array, row_judgements: Array, base: Any,
               bundles: Array, judgements: Array, tally: Array, first: Array, cells: Array,
               groups: Array, reads: Array, classes: Array, bases: Array, memo: Array, shift: Any,
               aside: Array, affecting: Array, missing: Array, counters: Array) -> None:  # fmt: skip
    """Judge the rows `todo`, which have the judgements of their parents; put those aside again that stay unknown."""
    for n in range(todo.size):
        index = todo[n]
        judgement = judge(
            rows[index], U64(row_judgements[index]), affected[n], bundles, judgements, cells,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        if judgement == MISSING:
            aside[counters[2]], affecting[counters[2]] = index, affected[n]
            counters[2] += 1
        else:
            row_judgements[index] = U32(judgement)
            count(tally, first, judgement, U64(base) + U64(index))


@kernel
def evaluate_rows(rows: Array, todo: Array, base: Any, bundles: Array, verdicts: Array, tally: Array, first: Array,
                  cells: Array, groups: Array, reads: Array, classes: Array, bases: Array, memo: Array, shift: Any,
                  aside: Array, missing: Array, counters: Array) -> None:  # fmt: skip
    """Evaluate bundles of final states in the rows `todo`; `verdicts` is room for those of one row.

    A row is counted only after all of its verdicts are known; until then it is put aside.
    """
    for index in todo:
        complete = True
        for b in range(bundles.shape[0]):
            verdict = evaluate(
                rows[index], U64(b), bundles, cells,
                groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
            verdicts[b] = verdict
            complete &= verdict != MISSING
        if not complete:
            aside[counters[2]] = index
            counters[2] += 1
            continue
        for b in range(bundles.shape[0]):
            count(tally, first, verdicts[b], U64(base) + U64(index))
