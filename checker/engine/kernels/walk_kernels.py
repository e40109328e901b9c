"""Random walks through the tables, as loops over integers.

A walk begins in the initial state and takes one of the possible moves in each step, by pseudo-random numbers. Each
number is a function of the walk's key, of the step and of the attempt, so a step that is tried again makes the same
choice. If the memo lacks an entry, its key is recorded and the walk waits in its present state; Python fills the table
and the walk continues. The numbers are those of `move_kernels`, and nothing is allocated here.

A walk has two *legs*: until the step `branches[walk]` it has the key, the mode and the change points of another walk,
and afterwards those that belong to it alone. So it leaves a known run at some point. The modes:

    UNIFORM   all moves have the same weight
    ACTIONS   each action has a random weight for the whole leg, possibly zero (swarm verification)
    PLACES    each action has a random weight at each place
    PRIORITY  each place has a random priority, and the moves at the place with the highest one are taken; at a few
              random steps, the place that moves gets a low priority (probabilistic concurrency testing)

The *place* of a move is the target of its first operation: usually a server, or a channel. A move with the weight zero
is taken only where no other move is possible. No choice depends on the order in which the tables were filled.

Sources: Holzmann, Joshi and Groce, "Swarm verification" (2008); Burckhardt and others, "A randomized scheduler with
probabilistic guarantees of finding bugs" (2010); Steele and others, "Fast splittable pseudorandom number generators"
(2014).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checker.engine.kernels.build_kernels import count, evaluate, judge
from checker.engine.kernels.hash_tables import BITS32, GOLDEN, LOW, MISSING, ONE, ZERO, mix
from checker.engine.kernels.jit import inlined, kernel, ones_below
from checker.engine.kernels.move_kernels import (
    BITS16,
    DONE,
    INCOMPLETE,
    MANY,
    NOT_POSSIBLE,
    SET,
    TOO_DEEP,
    restore,
    run,
)
from checker.engine.kernels.search_kernels import gather

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
UNIFORM, ACTIONS, PLACES, PRIORITY = U64(0), U64(1), U64(2), U64(3)
RUNNING, ENDED, DEAD, ALARMED = 0, 1, 2, 3
REGISTER_BITS = 14  # of the sketch that estimates the number of distinct states
HIGH = U64(1) << U64(62)  # a priority that was not lowered is at least this
NOISE = U64(15)  # one step of 16 by priority is uniform


@inlined
def place_of(move: Any, entries: Array) -> Any:
    """The target of a move's first operation; 0 for a move without operations."""
    return (entries[move + ONE] >> BITS32) & ~SET if entries[move] & LOW else ZERO


@inlined
def weight_of(seen: Any) -> Any:
    """A weight from a pseudo-random number: 0, 1, 4 or 16."""
    return (U64(0x10040100) >> ((seen & U64(3)) << U64(3))) & U64(0xFF)


@inlined
def priority(key: Any, place: Any, lowered: Array, changes: Any) -> Any:
    """The priority of a place: lowered[i] is the place that the i-th change point lowered."""
    found = (mix(key ^ ((place + ONE) * GOLDEN)) >> U64(2)) | HIGH
    for i in range(changes):
        if lowered[i] == place:
            found = U64(changes - i)
    return found


@inlined
def weigh(mode: Any, key: Any, lowered: Array, moves: Array, number: Any, entries: Array, hashes: Array,
          weights: Array) -> Any:  # fmt: skip
    """Write a weight for each of the moves that were not tried yet, and return the sum of them.

    A move that was tried is MISSING in `moves`. The sum is 0 only if every move was tried.
    """
    total, best, left = ZERO, ZERO, ZERO
    for n in range(number):
        move, weight = moves[n], ZERO
        if move != MISSING:
            left += ONE
            weight = ONE
            if mode == PRIORITY:
                weight = priority(key, place_of(move, entries), lowered, lowered.size)
                best = max(best, weight)
            elif mode != UNIFORM:
                place = place_of(move, entries) * GOLDEN if mode == PLACES else ZERO
                weight = weight_of(mix(key ^ hashes[entries[move] >> BITS32] ^ place))
        weights[n] = weight
        total += weight
    if mode == PRIORITY:
        total = ZERO
        for n in range(number):
            weights[n] = U64(weights[n] == best) & U64(moves[n] != MISSING)
            total += weights[n]
    elif total == ZERO:
        for n in range(number):
            weights[n] = U64(moves[n] != MISSING)
        total = left
    return total


@inlined
def pick(weights: Array, number: Any, total: Any, random: Any) -> Any:
    """The position of a move, with a probability in proportion to its weight; the sum of the weights is not 0."""
    left = ((random >> BITS32) * total) >> BITS32
    for n in range(number):
        if left < weights[n]:
            return n
        left -= weights[n]
    return number - ONE


@inlined
def list_moves(lists_of: Array, number: Any, entries: Array, moves: Array) -> Any:
    """Write the moves of a row's lists to `moves`; return their number, or MISSING if there are too many."""
    listed = ZERO
    for n in range(number):
        following = lists_of[n] >> BITS32
        for _ in range(lists_of[n] & LOW):
            if listed == U64(moves.size):
                return MISSING
            moves[listed] = following
            listed += ONE
            following += ONE + (entries[following] & LOW)
    return listed


@inlined
def observe(registers: Array, fingerprint: Any) -> None:
    """Add a state to a sketch (HyperLogLog): each register has the longest run of zeros plus one."""
    spread = mix(fingerprint)
    register = spread >> U64(64 - REGISTER_BITS)
    rank = ones_below(spread | (ONE << U64(64 - REGISTER_BITS))) + ONE
    registers[register] = max(U64(registers[register]), rank)


@inlined
def mark(row: Array, columns: Any, changed: Any, visited: Array) -> None:
    """Note that the changed cells were visited."""
    while changed:
        column = ones_below(changed)
        changed &= changed - ONE
        for c in range(column, U64(columns) if column == MANY else column + ONE):
            visited[row[c]] = 1


@inlined
def end_of_run(row: Array, here: Any, final: Array, verdicts: Array, alarms: Array, tally: Array, first: Array,
               cells: Array, groups: Array, reads: Array, classes: Array, bases: Array,
               memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Evaluate the FINAL properties in a row without a successor; return the status of its walk.

    It is RUNNING if an answer is missing. `verdicts` is room for those of the row, and `here` is its place.
    """
    complete = True
    for b in range(U64(final.shape[0])):
        verdict = evaluate(row, b, final, cells, groups, reads, classes, bases, memo, shift, missing, counters)
        verdicts[b] = verdict
        complete &= verdict != MISSING
    if not complete:
        return RUNNING
    status = DEAD
    for b in range(U64(final.shape[0])):
        count(tally, first, verdicts[b], here)
        if alarms[verdicts[b]]:
            status = ALARMED
    return status


@inlined
def choose(row: Array, rows: Array, w: Any, fingerprint: Any, step: Any, mode: Any, key: Any, lowered: Array,
           moves: Array, number: Any, weights: Array, hashes: Array, stack: Array, entries: Array,
           groups: Array, reads: Array, classes: Array, bases: Array,
           memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """Take a possible move: (outcome, its position, the move, fingerprint, changed columns, affected bundles).

    The outcome is NOT_POSSIBLE if none of the moves is. The row is changed if the outcome is DONE.
    """
    outcome, attempt = NOT_POSSIBLE, ZERO
    chosen, move, after, changed, affected = ZERO, ZERO, ZERO, ZERO, ZERO
    while outcome == NOT_POSSIBLE:
        attempt += ONE
        random = mix(key + ((step << BITS16) + attempt) * GOLDEN)
        is_noise = mode == PRIORITY and random & NOISE == ZERO
        total = weigh(UNIFORM if is_noise else mode, key, lowered, moves, number, entries, hashes, weights)
        if total == ZERO:
            break
        chosen = pick(weights, number, total, random)
        move = moves[chosen]
        outcome, after, changed, affected = run(
            move, row, fingerprint, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        if outcome != DONE:
            restore(row, rows, w, changed)
            moves[chosen] = MISSING
    return outcome, chosen, move, after, changed, affected


@inlined
def ordinal_of(chosen: Any, move: Any, row: Array, rows: Array, w: Any, lists_of: Array, lists: Any,
               moves: Array, stack: Array, entries: Array,
               groups: Array, reads: Array, classes: Array, bases: Array,
               memo: Array, shift: Any, missing: Array, counters: Array) -> Any:  # fmt: skip
    """The number of possible moves before the chosen one, which is its ordinal; or MISSING. `row` is kept."""
    list_moves(lists_of, lists, entries, moves)
    ordinal = ZERO
    for c in range(U64(row.size)):
        row[c] = rows[w, c]
    for n in range(chosen):
        outcome, _, changed, _ = run(
            moves[n], row, ZERO, stack, entries,
            groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
        restore(row, rows, w, changed)
        ordinal += U64(outcome == DONE)
        if outcome == INCOMPLETE:
            return MISSING
    run(move, row, ZERO, stack, entries, groups, reads, classes, bases, memo, shift, missing, counters)
    return ordinal


@kernel
def walk(rows: Array, columns: Any, fingerprints: Array, row_judgements: Array, at: Array, status: Array,
         numbers: Array, limits: Array, branches: Array, keys: Array, modes: Array, changes: Array, lowered: Array,
         ordinals: Array, budget: Any,
         cells: Array, masks: Array, masked: Array, joint: Array, lists_of: Array,
         joint_key: Array, cached_keys: Array, cached_lists: Array,
         row: Array, stack: Array, moves: Array, weights: Array, entries: Array, hashes: Array,
         bundles: Array, judgements: Array, alarms: Array, final: Array, verdicts: Array, final_alarms: Array,
         groups: Array, reads: Array, classes: Array, bases: Array, memo: Array, shift: Any,
         fired: Array, tally: Array, first: Array, final_tally: Array, final_first: Array,
         registers: Array, visited: Array, missing: Array, counters: Array) -> None:  # fmt: skip
    """Continue some walks, each until it ends or waits; the call ends after `budget` attempted steps.

    rows[w], fingerprints[w], row_judgements[w], at[w] and status[w] are the state of walk w, and numbers[w] is its
    number. alarms[judgement] and final_alarms[verdict] are 1 for those that end a walk. `first` has the least place of
    each judgement, as step << 32 | number. If `ordinals` has any room, it gets the ordinal of each move of the only
    walk.

    counters: missing keys, steps, states without a successor, unused, error.
    """
    left = U64(budget)
    for w in range(U64(rows.shape[0])):
        while status[w] == RUNNING and left:
            left -= ONE
            for c in range(U64(row.size)):
                row[c] = rows[w, c]
            step = U64(at[w])
            leg = U64(step >= branches[w])
            lists, complete = gather(
                row, columns, cells, masks, masked, joint, lists_of, joint_key, cached_keys, cached_lists,
                groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
            if not complete:
                break
            number = list_moves(lists_of, lists, entries, moves)
            if number == MISSING:
                counters[4] = 1
                return
            outcome, chosen, move, fingerprint, changed, affected = choose(
                row, rows, w, fingerprints[w], step, modes[w, leg], keys[w, leg], lowered[w, leg], moves, number,
                weights, hashes, stack, entries,
                groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
            if outcome == TOO_DEEP:
                counters[4] = 1
                return
            here = (step << BITS32) | U64(numbers[w])
            if outcome == NOT_POSSIBLE:
                status[w] = end_of_run(
                    row, here, final, verdicts, final_alarms, final_tally, final_first, cells,
                    groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
                counters[2] += status[w] != RUNNING
            if outcome != DONE:
                break
            if step >= U64(limits[w]):
                status[w] = ENDED
                break
            judgement = judge(
                row, U64(row_judgements[w]), affected, bundles, judgements, cells,
                groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
            if judgement == MISSING:
                break
            if ordinals.size:
                ordinal = ordinal_of(
                    chosen, move, row, rows, w, lists_of, lists, moves, stack, entries,
                    groups, reads, classes, bases, memo, shift, missing, counters)  # fmt: skip
                if ordinal == MISSING:
                    break
                ordinals[step] = ordinal
            for c in range(U64(row.size)):
                rows[w, c] = row[c]
            fingerprints[w] = fingerprint
            row_judgements[w] = U32(judgement)
            lower(lowered[w, leg], changes[w, leg], step, place_of(move, entries))
            at[w] = U32(step + ONE)
            counters[1] += 1
            fired[entries[move] >> BITS32] += ONE
            count(tally, first, judgement, here + (ONE << BITS32))
            observe(registers, fingerprint)
            mark(row, columns, changed, visited)
            if alarms[judgement]:
                status[w] = ALARMED
            elif step + ONE >= U64(limits[w]) and final.shape[0] == 0:
                status[w] = ENDED


@inlined
def lower(lowered: Array, changes: Array, step: Any, place: Any) -> None:
    """Lower the priority of a place if the step is a change point."""
    for i in range(U64(changes.size)):
        if changes[i] == step:
            lowered[i] = place


@kernel
def observe_all(registers: Array, fingerprints: Array) -> None:
    """Add states to a sketch."""
    for fingerprint in fingerprints:
        observe(registers, fingerprint)
