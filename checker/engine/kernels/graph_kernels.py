"""The graph of all states as integers: kernels that record it, and kernels that judge liveness on it.

A state is its number in the order of discovery. The moves out of state s are at offsets[s] to offsets[s + 1] of
`targets` (states) and `labels` (the caller maps labels to units of fairness), in the order of ordinals.

For a property, `part` marks each state: 0 for a goal, OPEN for a state that demands one, and PASSED for one that does
not and may lie between. Afterwards `place` has for each state OUTSIDE if it is a goal, FINISHED | the number of its
component if it was examined, and 0 if no open state reaches it.

The rules of `move_kernels` apply: nothing is allocated here, all integers are unsigned.
"""

from typing import Any

import numpy as np

from checker.engine.kernels.hash_tables import BITS32, ONE, ZERO, owner
from checker.engine.kernels.jit import kernel
from checker.engine.kernels.move_kernels import SOURCE_BITS

Array = Any

U64, U32 = np.uint64, np.uint32
GOAL, PASSED, OPEN = 0, 1, 2
NONE, FINISHED, OUTSIDE = U32(0xFFFFFFFF), U32(0x80000000), U32(0xFFFFFFFF)
NUMBER = U32(0x7FFFFFFF)
MOST_STATES = 0x7FFFFFF0
WEAK, STRONG = 1, 2

# -- recording -----------------------------------------------------------------------------------------------


@kernel
def number(numbers: Array, shard: Any, shards: Any, found: Array, slots: Array, fresh: Array, count: Any,
           first: Any) -> None:  # fmt: skip
    """Number the new states found[fresh[:count]] of a shard, which have consecutive numbers from `first`."""
    for k in range(count):
        i = fresh[k]
        if owner(found[i], U64(shards)) == U64(shard):
            numbers[slots[i]] = U32(U64(first) + U64(k))


@kernel
def resolve(numbers: Array, shard: Any, shards: Any, found: Array, slots: Array, targets: Array) -> None:
    """Write the numbers of the states of a shard to `targets`."""
    for i in range(targets.size):
        if owner(found[i], U64(shards)) == U64(shard):
            targets[i] = numbers[slots[i]]


@kernel
def describe(origins: Array, size: Any, entries: Array, first: Any, sources: Array, labels: Array) -> None:
    """Write the source rows of moves, as distances from the row `first`, and their labels."""
    for i in range(size):
        sources[i] = (origins[i] & SOURCE_BITS) - U64(first)
        if labels.size:
            labels[i] = entries[origins[i] >> BITS32] >> BITS32


# -- judging -------------------------------------------------------------------------------------------------


@kernel
def components(offsets: Array, targets: Array, part: Array, place: Array, order: Array, starts: Array,
               calls: Array, indices: Array, cursors: Array) -> Any:  # fmt: skip
    """The components of the part that open states reach (Tarjan 1972, with its stack in arrays); return their number.

    Initially `place` is OUTSIDE for goals and 0 for all others. During the search it is the least index that a state is
    known to reach; states that are outside or finished have greater values, and so need no branch. order[starts[c] :
    starts[c + 1]] gets the states of component c. A component leads only to components with lower numbers. The stack of
    waiting states grows from the other end of `order`.
    """
    index, count, done, top = U32(0), ZERO, ZERO, U64(order.size)
    for root in range(part.size):
        if part[root] != OPEN or place[root] != U32(0):
            continue
        index += U32(1)
        place[root] = index
        top -= ONE
        order[top] = root
        calls[0], indices[0], cursors[0] = root, index, offsets[root]
        depth = ONE
        while depth > ZERO:
            level = depth - ONE
            state, at = U64(calls[level]), cursors[level]
            end, least, other = offsets[state + ONE], place[state], ZERO
            there = ONE
            while at < end:
                other = U64(targets[at])
                at += ONE
                there = U64(place[other])
                if there == ZERO:
                    break
                least = min(least, U32(there))
            place[state] = least
            if there == ZERO:
                cursors[level] = at
                index += U32(1)
                place[other] = index
                top -= ONE
                order[top] = other
                calls[depth], indices[depth], cursors[depth] = other, index, offsets[other]
                depth += ONE
                continue
            depth = level
            if least == indices[level]:
                starts[count] = done
                while True:
                    member = order[top]
                    top += ONE
                    order[done] = member
                    done += ONE
                    place[member] = FINISHED | U32(count)
                    if U64(member) == state:
                        break
                count += ONE
            elif depth > ZERO:
                above = U64(calls[depth - ONE])
                place[above] = min(place[above], least)
    starts[count] = done
    return count


@kernel
def find_closed(offsets: Array, targets: Array, part: Array, place: Array, order: Array, starts: Array, count: Any,
                lost: Array, traps: Array) -> Any:  # fmt: skip
    """The components that no move leaves (`traps`), and those from which no goal is reachable (`lost`).

    Every trap here is also lost. Returns the first open state, by number, that is lost; NONE without one.
    """
    first = NONE
    for c in range(count):
        own = FINISHED | U32(c)
        stays, is_lost = True, True
        next_one, end = U64(starts[c]), U64(starts[c + 1])
        while next_one < end and is_lost:
            state = U64(order[next_one])
            next_one += ONE
            for at in range(offsets[state], offsets[state + ONE]):
                there = place[targets[at]]
                if there != own:
                    stays = False
                    if there == OUTSIDE or lost[there & NUMBER] == 0:
                        is_lost = False
                        break
        lost[c] = is_lost
        traps[c] = stays and is_lost
        if is_lost:
            for i in range(U64(starts[c]), end):
                if part[order[i]] == OPEN:
                    first = min(first, order[i])
    return first


@kernel
def find_fair(offsets: Array, targets: Array, labels: Array, unit_of: Array, strong: Array, place: Array, order: Array,
              starts: Array, count: Any, able: Array, able_in: Array, seen: Array, taken: Array, traps: Array,
              rest: Array) -> Any:  # fmt: skip
    """The components with a fair run: each unit that can happen in all of their states, and each `strong` unit that can
    happen in some of them, is the unit of a move inside. Returns the number of states to be judged again.

    These are marked OPEN in `rest`, and all others GOAL: the states of a component that misses only strong units, and
    in which none of these can happen.

    unit_of[label] is 0 for a move that need not happen. For each unit: `able` counts the states of component able_in -
    1 in which it can happen, `seen` is the last state in which it was seen, and `taken` the last component in which it
    was taken (both plus one).
    """
    again = ZERO
    for k in range(rest.size):
        rest[k] = GOAL
    for c in range(count):
        own, stamp = FINISHED | U32(c), U32(c + 1)
        begin, end = U64(starts[c]), U64(starts[c + 1])
        for i in range(begin, end):
            state = U64(order[i])
            for at in range(offsets[state], offsets[state + ONE]):
                unit = unit_of[labels[at]]
                if able_in[unit] != stamp:
                    able_in[unit] = stamp
                    able[unit] = 0
                if seen[unit] != U32(state + ONE):
                    seen[unit] = U32(state + ONE)
                    able[unit] += U32(1)
                if place[targets[at]] == own:
                    taken[unit] = stamp
        fair, first = True, U64(order[begin])
        for at in range(offsets[first], offsets[first + ONE]):
            unit = unit_of[labels[at]]
            if unit != 0 and strong[unit] == 0 and U64(able[unit]) == end - begin and taken[unit] != stamp:
                fair = False
        misses = False
        for i in range(begin, end if fair and rest.size else begin):
            state = U64(order[i])
            rest[state] = OPEN
            for at in range(offsets[state], offsets[state + ONE]):
                unit = unit_of[labels[at]]
                if strong[unit] != 0 and taken[unit] != stamp:
                    rest[state] = GOAL
                    misses = True
        for i in range(begin, end if fair and rest.size else begin):
            state = U64(order[i])
            if not misses:
                rest[state] = GOAL
            again += ONE if rest[state] == OPEN else ZERO
        traps[c] = fair and not misses
    return again


@kernel
def flood(offsets: Array, targets: Array, part: Array, levels: Array, place: Array, traps: Array,
          parents: Array, ways: Array, queue: Array) -> Any:  # fmt: skip
    """The trap state that a run reaches soonest through an open state, with no goal after that state; NONE without one.

    Level d is the states levels[d] to levels[d + 1], which a run reaches in d moves; the search is breadth-first from
    the open states. parents[state] is NONE initially, and becomes the previous state, or the state itself at a start of
    the search; ways[state] becomes the ordinal of the move.
    """
    head, tail, level = ZERO, ZERO, ZERO
    while level + ONE < U64(levels.size) or head < tail:
        if level + ONE < U64(levels.size):
            for fresh in range(levels[level], levels[level + ONE]):
                if part[fresh] == OPEN and parents[fresh] == NONE:
                    parents[fresh] = fresh
                    queue[tail] = fresh
                    tail += ONE
            level += ONE
        end = tail
        while head < end:
            state = U64(queue[head])
            head += ONE
            if traps[place[state] & NUMBER]:
                return U32(state)
            for at in range(offsets[state], offsets[state + ONE]):
                other = U64(targets[at])
                if place[other] != OUTSIDE and parents[other] == NONE:
                    parents[other] = state
                    ways[other] = at - offsets[state]
                    queue[tail] = other
                    tail += ONE
    return NONE


@kernel
def seek(offsets: Array, targets: Array, labels: Array, unit_of: Array, place: Array, start: Any, owed: Array,
         owing: Any, seen: Array, wanted: Any, parents: Array, ways: Array, queue: Array) -> Any:  # fmt: skip
    """The next step of a walk in a component, breadth-first: (state, ordinal of a move out of it or NONE, states seen).

    The target is a move to the state `wanted`, a move of an `owed` unit, or a state in which a weak one of these units
    cannot happen (owed[unit] is WEAK; `owing` is their number). parents[state] is NONE initially; the states seen are
    at the start of the queue.
    """
    own = place[start]
    head, tail = ZERO, ONE
    queue[0] = start
    parents[start] = start
    while head < tail:
        state = U64(queue[head])
        head += ONE
        able = ZERO
        if owing:
            for at in range(offsets[state], offsets[state + ONE]):
                unit = unit_of[labels[at]]
                if owed[unit] == WEAK and seen[unit] != head:
                    seen[unit] = head
                    able += ONE
            if able < U64(owing):
                return U32(state), NONE, tail
        for at in range(offsets[state], offsets[state + ONE]):
            other = U64(targets[at])
            if place[other] != own:
                continue
            if other == U64(wanted) or (labels.size and owed[unit_of[labels[at]]]):
                return U32(state), U32(at - offsets[state]), tail
            if parents[other] == NONE:
                parents[other] = state
                ways[other] = at - offsets[state]
                queue[tail] = other
                tail += ONE
    return NONE, NONE, tail
