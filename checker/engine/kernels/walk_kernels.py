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

from typing import Any, NamedTuple

import numpy as np

from checker.engine.kernels.build_kernels import Judging, count, evaluate_end, judge
from checker.engine.kernels.hash_tables import BITS32, GOLDEN, LOW, MISSING, ONE, ZERO, Answers, mix
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
from checker.engine.kernels.search_kernels import RowRoom, gather

Array = Any  # a NumPy array; the docstring of the function that creates it has its shape and type

U64, U32 = np.uint64, np.uint32
UNIFORM, ACTIONS, PLACES, PRIORITY = U64(0), U64(1), U64(2), U64(3)
RUNNING, ENDED, DEAD, ALARMED = 0, 1, 2, 3
REGISTER_BITS = 14  # of the sketch that estimates the number of distinct states
HIGH = U64(1) << U64(62)  # a priority that was not lowered is at least this
NOISE = U64(15)  # one step of 16 by priority is uniform


class RunningWalks(NamedTuple):
    """Some walks, an entry for each: its state, its number of steps, its status, and the places of lowered priority.

    If `ordinals` has any room, it gets the ordinal of each move of the only walk.
    """

    rows: Array
    fingerprints: Array
    judgements: Array
    at: Array
    status: Array
    lowered: Array
    ordinals: Array


class Plans(NamedTuple):
    """The plans of walks, an entry for each.

    `numbers` (u64), `limits` (u64, steps), `branches` (u64, the step at which the second leg begins); with an entry for
    each of the two legs: `keys` (u64), `modes` (u64) and `changes` (u64, steps).
    """

    numbers: Array
    limits: Array
    branches: Array
    keys: Array
    modes: Array
    changes: Array


class Choices(NamedTuple):
    """Room for the moves of one row and their weights, and a hash (u64) for each label."""

    moves: Array
    weights: Array
    hashes: Array


class Visits(NamedTuple):
    """What the walks visit: fired[label] counts moves, `registers` are a sketch of the states, `visited` marks cells.

    alarms[judgement] and final_alarms[verdict] are 1 for those that end a walk.
    """

    fired: Array
    registers: Array
    visited: Array
    alarms: Array
    final_alarms: Array


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
def weigh(mode: Any, key: Any, lowered: Array, number: Any, entries: Array, choices: Choices) -> Any:
    """Write a weight for each of the moves that were not tried yet, and return the sum of them.

    A move that was tried is MISSING in `moves`. The sum is 0 only if every move was tried.
    """
    moves, weights, hashes = choices
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
def end_of_run(row: Array, here: Any, final: Judging, alarms: Array, answers: Answers) -> Any:
    """Evaluate the FINAL properties in a row without a successor; return the status of its walk.

    It is RUNNING if an answer is missing. `here` is the place of the row.
    """
    if not evaluate_end(row, final, answers):
        return RUNNING
    status = DEAD
    for b in range(U64(final.bundles.shape[0])):
        count(final, final.verdicts[b], here)
        if alarms[final.verdicts[b]]:
            status = ALARMED
    return status


@inlined
def choose(rows: Array, w: Any, fingerprint: Any, step: Any, mode: Any, key: Any, lowered: Array, number: Any,
           choices: Choices, room: RowRoom, answers: Answers) -> Any:  # fmt: skip
    """Take a possible move: (outcome, its position, the move, fingerprint, changed columns, affected bundles).

    The outcome is NOT_POSSIBLE if none of the moves is. The row is changed if the outcome is DONE.
    """
    row, moves = room.row, choices.moves
    outcome, attempt = NOT_POSSIBLE, ZERO
    chosen, move, after, changed, affected = ZERO, ZERO, ZERO, ZERO, ZERO
    while outcome == NOT_POSSIBLE:
        attempt += ONE
        random = mix(key + ((step << BITS16) + attempt) * GOLDEN)
        is_noise = mode == PRIORITY and random & NOISE == ZERO
        total = weigh(UNIFORM if is_noise else mode, key, lowered, number, answers.entries, choices)
        if total == ZERO:
            break
        chosen = pick(choices.weights, number, total, random)
        move = moves[chosen]
        outcome, after, changed, affected = run(move, row, fingerprint, room.stack, answers)
        if outcome != DONE:
            restore(row, rows, w, changed)
            moves[chosen] = MISSING
    return outcome, chosen, move, after, changed, affected


@inlined
def ordinal_of(chosen: Any, move: Any, rows: Array, w: Any, lists: Any, moves: Array, room: RowRoom,
               answers: Answers) -> Any:  # fmt: skip
    """The number of possible moves before the chosen one, which is its ordinal; or MISSING. The row is kept."""
    row, stack = room.row, room.stack
    list_moves(room.lists, lists, answers.entries, moves)
    ordinal = ZERO
    for c in range(U64(row.size)):
        row[c] = rows[w, c]
    for n in range(chosen):
        outcome, _, changed, _ = run(moves[n], row, ZERO, stack, answers)
        restore(row, rows, w, changed)
        ordinal += U64(outcome == DONE)
        if outcome == INCOMPLETE:
            return MISSING
    run(move, row, ZERO, stack, answers)
    return ordinal


@kernel
def walk(walks: RunningWalks, plans: Plans, budget: Any, choices: Choices, judging: Judging, final: Judging,
         visits: Visits, room: RowRoom, answers: Answers) -> None:  # fmt: skip
    """Continue some walks, each until it ends or waits; the call ends after `budget` attempted steps.

    judging.first has the least place of each judgement, as step << 32 | number.

    counters: missing keys, steps, states without a successor, unused, error.
    """
    rows, fingerprints, row_judgements, at, status, lowered, ordinals = walks
    row, counters, entries = room.row, answers.counters, answers.entries
    left = U64(budget)
    for w in range(U64(rows.shape[0])):
        while status[w] == RUNNING and left:
            left -= ONE
            for c in range(U64(row.size)):
                row[c] = rows[w, c]
            step = U64(at[w])
            leg = U64(step >= plans.branches[w])
            lists, complete = gather(row, room, answers)
            if not complete:
                break
            number = list_moves(room.lists, lists, entries, choices.moves)
            if number == MISSING:
                counters[4] = 1
                return
            outcome, chosen, move, fingerprint, changed, affected = choose(
                rows, w, fingerprints[w], step, plans.modes[w, leg], plans.keys[w, leg], lowered[w, leg], number,
                choices, room, answers)  # fmt: skip
            if outcome == TOO_DEEP:
                counters[4] = 1
                return
            here = (step << BITS32) | U64(plans.numbers[w])
            if outcome == NOT_POSSIBLE:
                status[w] = end_of_run(row, here, final, visits.final_alarms, answers)
                counters[2] += status[w] != RUNNING
            if outcome != DONE:
                break
            if step >= U64(plans.limits[w]):
                status[w] = ENDED
                break
            judgement = judge(row, U64(row_judgements[w]), affected, judging, answers)
            if judgement == MISSING:
                break
            if ordinals.size:
                ordinal = ordinal_of(chosen, move, rows, w, lists, choices.moves, room, answers)
                if ordinal == MISSING:
                    break
                ordinals[step] = ordinal
            for c in range(U64(row.size)):
                rows[w, c] = row[c]
            fingerprints[w] = fingerprint
            row_judgements[w] = U32(judgement)
            lower(lowered[w, leg], plans.changes[w, leg], step, place_of(move, entries))
            at[w] = U32(step + ONE)
            counters[1] += 1
            visits.fired[entries[move] >> BITS32] += ONE
            count(judging, judgement, here + (ONE << BITS32))
            observe(visits.registers, fingerprint)
            mark(row, answers.columns, changed, visits.visited)
            if visits.alarms[judgement]:
                status[w] = ALARMED
            elif step + ONE >= U64(plans.limits[w]) and final.bundles.shape[0] == 0:
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
