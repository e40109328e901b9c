"""Pass three of the exploration: the rows of new states, and the judgement of each.

A state has the judgement of its parent, except for the bundles that read something that its move changed
(`move_kernels.run`). The memo has the changes of judgements as well:

    memo[JUDGEMENT | judgement << 32 | verdict + 1] = the judgement in which this verdict replaces that of its bundle

The rules of `move_kernels` apply: nothing is allocated here, all integers are unsigned.
"""

from typing import Any, NamedTuple

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, IMPOSSIBLE, MISSING, ONE, ZERO, Answers, fold, lookup, note
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


class Judging(NamedTuple):
    """The judgement of states, or of those without a successor.

    bundles[b] = (group, verdict if a projection says "never"). verdicts[judgement, bundle] is a verdict; of states
    without a successor, `verdicts` is room for those of one row. `times` counts each judgement or verdict, and `first`
    has its first state.
    """

    bundles: Array
    verdicts: Array
    times: Array
    first: Array


class Parents(NamedTuple):
    """The rows of a block with their judgements, the number of the first, and their successors, as pass one wrote them.

    `fresh` are the positions of those that are new.
    """

    rows: Array
    judgements: Array
    base: int
    found: Array
    origins: Array
    fresh: Array


class Children(NamedTuple):
    """Room for new states: rows of a block, and for each its parent and ordinal.

    A row with an unknown judgement is put `aside`, with the bundles that are `affecting` it. reached[label] is a
    counter.
    """

    rows: Array
    fingerprints: Array
    judgements: Array
    parents: Array
    ordinals: Array
    aside: Array
    affecting: Array
    reached: Array


@inlined
def evaluate(row: Array, bundle: Any, bundles: Array, answers: Answers) -> Any:
    """The verdict of a bundle on a row, or MISSING."""
    node = fold(row, U64(bundles[bundle, 0]), answers)
    if node == MISSING:
        return MISSING
    return U64(bundles[bundle, 1]) if node == IMPOSSIBLE else answers.cells[node * FIELDS + LISTED]


@inlined
def judge(row: Array, judgement: Any, affected: Any, judging: Judging, answers: Answers) -> Any:
    """The judgement of a row, from one that differs at most in the `affected` bundles; or MISSING.

    The last bit of `affected` stands for all bundles from MANY.
    """
    bundles = judging.bundles
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
        verdict = evaluate(row, bundle, bundles, answers)
        if verdict == MISSING:
            complete = False
        elif complete and verdict != U64(judging.verdicts[judgement, bundle]):
            key = ((JUDGEMENT | judgement) << BITS32) | (verdict + ONE)
            judgement = lookup(answers.memo, answers.shift, key)
            if judgement == MISSING:
                note(answers, key)
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
def count(judging: Judging, number: Any, state: Any) -> None:
    """Count a judgement or verdict, and note its first state."""
    judging.first[number] = min(judging.first[number], state)
    judging.times[number] += ONE


@kernel
def build(parents: Parents, begin: Any, end: Any, into: Children, at: Any, state: Any, stack: Array, judging: Judging,
          answers: Answers) -> None:  # fmt: skip
    """Pass three: write the rows of new states fresh[begin:end] at into.rows[at], by carrying out their moves again.

    The first of them is the state with the number `state`. A row that is put aside has the judgement of its parent
    until then.
    """
    entries, counters, origins, rows = answers.entries, answers.counters, parents.origins, into.rows
    width = rows.shape[1]
    for k in range(begin, end):
        i = parents.fresh[k]
        source = origins[i] & SOURCE_BITS
        for c in range(width):
            rows[at, c] = parents.rows[source, c]
        _, _, _, affected = run(origins[i] >> BITS32, rows[at], ZERO, stack, answers)
        judgement = judge(rows[at], U64(parents.judgements[source]), affected, judging, answers)
        if judgement == MISSING:
            into.judgements[at] = parents.judgements[source]
            into.aside[counters[2]], into.affecting[counters[2]] = at, affected
            counters[2] += 1
        else:
            into.judgements[at] = U32(judgement)
            count(judging, judgement, U64(state))
        into.reached[entries[origins[i] >> BITS32] >> BITS32] += ONE
        into.fingerprints[at] = parents.found[i]
        into.parents[k] = U32(U64(parents.base) + source)
        into.ordinals[k] = (origins[i] >> BITS16) & SOURCE_BITS
        at += 1
        state += 1


@kernel
def judge_rows(rows: Array, todo: Array, affected: Array, row_judgements: Array, base: Any, judging: Judging,
               aside: Array, affecting: Array, answers: Answers) -> None:  # fmt: skip
    """Judge the rows `todo`, which have the judgements of their parents; put those aside again that stay unknown."""
    counters = answers.counters
    for n in range(todo.size):
        index = todo[n]
        judgement = judge(rows[index], U64(row_judgements[index]), affected[n], judging, answers)
        if judgement == MISSING:
            aside[counters[2]], affecting[counters[2]] = index, affected[n]
            counters[2] += 1
        else:
            row_judgements[index] = U32(judgement)
            count(judging, judgement, U64(base) + U64(index))


@inlined
def evaluate_end(row: Array, judging: Judging, answers: Answers) -> Any:
    """Write the verdicts of a row without a successor into their room; return whether all are known."""
    complete = True
    for b in range(U64(judging.bundles.shape[0])):
        verdict = evaluate(row, b, judging.bundles, answers)
        judging.verdicts[b] = verdict
        complete &= verdict != MISSING
    return complete


@kernel
def evaluate_rows(rows: Array, todo: Array, base: Any, judging: Judging, aside: Array, answers: Answers) -> None:
    """Evaluate bundles of final states in the rows `todo`.

    A row is counted only after all of its verdicts are known; until then it is put aside.
    """
    counters = answers.counters
    for index in todo:
        if not evaluate_end(rows[index], judging, answers):
            aside[counters[2]] = index
            counters[2] += 1
            continue
        for b in range(judging.bundles.shape[0]):
            count(judging, judging.verdicts[b], U64(base) + U64(index))
