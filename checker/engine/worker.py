"""A worker of a search: the buffers of one thread, and its tasks in a round (`rounds`).

A worker expands slices of rows, adds the fingerprints of its shard to the visited set, and builds the rows of new
states. Its buffers belong to it alone. All tasks call kernels, which release the lock of the interpreter, and read
tables that nobody changes at that time.
"""

from typing import Any

import numpy as np

from checker.engine.arrays import grown
from checker.engine.evaluator import PendingRows, Tally
from checker.engine.kernels import build_kernels, move_kernels, search_kernels
from checker.engine.model import ModelError
from checker.engine.states.frontier import RowBlock, padded
from checker.engine.states.visited import Visited
from checker.engine.states.waiting import Target
from checker.engine.tables import Tables

JOINT_CACHE = 1 << 12  # slots in the cache of the moves of joint rules (`search_kernels.find_joint_key`)
MISSING = 8192  # keys noted before the tables are filled
RECENT = 1 << 15  # fingerprints remembered in the processor's cache
CANDIDATES = 1 << 12  # the first room of a slice for successors

Array = np.ndarray[Any, Any]


class Slice:
    """Some rows of a block in a round, and their successors in the order of rows and ordinals.

    `found` and `origins` have the first `size` successors, without those that the same worker generated shortly before.
    `is_new` has a row of flags for each shard. The arrays are reused by later rounds.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self.found, self.origins = np.zeros(CANDIDATES, np.uint64), np.zeros(CANDIDATES, np.uint64)
        self.is_new = np.zeros((shards, CANDIDATES), np.uint8)
        self.slots = np.zeros(0, np.uint64)  # in the visited set, with the graph only
        self.fresh = np.zeros(CANDIDATES, np.uint32)

    def begin(self, block: RowBlock, rows: Array, base: int) -> None:
        """Start with these rows of a block, whose first row is state `base`."""
        self.block, self.rows, self.base = block, rows, base
        self.restart()
        self.aside = rows[:0]
        self.added = np.zeros(self._shards, np.int64)  # new states of each shard

    def restart(self) -> None:
        """Forget all successors."""
        self.size, self.transitions = 0, 0
        self.first_late = 0  # of the successors; the later ones are those of rows that were put aside
        self.dead: list[Array] = []

    def grow(self) -> None:
        """Double the room for successors."""
        self.found, self.origins = (np.concatenate([array, array]) for array in (self.found, self.origins))

    def merge(self) -> None:
        """Put the successors of rows that were put aside, which are the last, at their places."""
        late = slice(self.first_late, self.size)
        order = np.argsort(self.origins[late] & move_kernels.SOURCE_BITS, kind="stable")
        rows = [
            origins & move_kernels.SOURCE_BITS
            for origins in (self.origins[: self.first_late], self.origins[late][order])
        ]
        places = np.searchsorted(rows[0], rows[1])
        for array in (self.found, self.origins):
            array[: self.size] = np.insert(array[: self.first_late], places, array[late][order])
        self.first_late = self.size

    def mark(self, is_new: Array) -> None:
        """Take the flags of the new states from the owners of the successors, in place of pass two."""
        self.make_room(slots=False)
        self.is_new[0, : self.size] = is_new
        self.added[0] = np.count_nonzero(is_new)

    def make_room(self, *, slots: bool) -> None:
        """Make room for the results of the second pass."""
        size = len(self.found)
        if self.is_new.shape[1] < size:
            self.is_new, self.fresh = np.zeros((self._shards, size), np.uint8), np.zeros(size, np.uint32)
        if slots and len(self.slots) < size:
            self.slots = np.zeros(size, np.uint64)


def row_room(tables: Tables) -> search_kernels.RowRoom:
    """The room of a thread for the moves of one row."""
    columns, joint = len(tables.model.columns), len(tables.joint)
    width = padded(columns)
    return search_kernels.RowRoom(
        np.zeros(width, np.uint32),
        np.zeros(2 * move_kernels.STACK, np.uint64),
        np.zeros(columns + joint + 1, np.uint64),
        np.zeros(width, np.uint32),
        np.zeros((JOINT_CACHE, width), np.uint32),
        np.zeros((JOINT_CACHE, joint + 2), np.uint64),
    )


class Worker:
    """The buffers and tasks of one thread; `number` is also that of its shard."""

    def __init__(self, tables: Tables, number: int, visited: Visited, *, filters: bool) -> None:
        self._tables, self.number, self.visited, self._filters = tables, number, visited, filters
        self._room = row_room(tables)
        self._labels = np.zeros(search_kernels.MOST_MOVES, np.uint32)
        self._recent = np.zeros(RECENT, np.uint64)
        self._picks = np.zeros(CANDIDATES, np.uint32)
        self.missing, self._counters = np.zeros(MISSING, np.uint64), np.zeros(6, np.int64)
        self.noted = 0  # missing keys
        self.fired, self.reached = np.zeros(64, np.uint64), np.zeros(64, np.uint64)
        self.tally = Tally()

    def make_room(self) -> None:
        """Make room for the numbers that the tables have now; no kernel runs."""
        self.fired, self.reached = (grown(counts, len(self._tables.labels)) for counts in (self.fired, self.reached))
        self.tally.make_room(self._tables.verdicts.judgements.size)

    def clear(self) -> None:
        """Forget the counts of a round."""
        self.fired[:], self.reached[:] = 0, 0
        self.tally.clear()
        self.noted = 0

    def forget(self) -> None:
        """Forget the counts of a round, and the successors that it generated: some of them were dropped since."""
        self.clear()
        self._recent[:] = 0

    # -- pass one --------------------------------------------------------------------------------------------

    def expand(self, part: Slice) -> None:
        """Expand the rows of a slice."""
        part.aside = self._expand(part, part.rows, keeps_all=not self._filters)
        part.first_late = part.size

    def expand_again(self, part: Slice) -> None:
        """Expand the rows that were put aside.

        The successors of later rows may be in the table of recent ones, so that this table must not be used.
        """
        part.aside = self._expand(part, part.aside, keeps_all=True)

    def expand_without(self, part: Slice, failing: Array) -> None:
        """Expand the rows of a slice anew, except those that fail, after `forget`."""
        part.restart()
        part.aside = self._expand(part, np.setdiff1d(part.rows, failing), keeps_all=True)
        part.first_late = part.size

    def _expand(self, part: Slice, rows: Array, *, keeps_all: bool) -> Array:
        tables, block, counters = self._tables, part.block, self._counters
        position, aside, dead = 0, np.empty(len(rows), np.uint32), np.empty(len(rows), np.uint32)
        answers = tables.answers(self.missing, counters)
        counters[:2] = self.noted, part.size
        while position < len(rows):
            successors = search_kernels.Successors(
                part.found, part.origins, self._labels, self.fired, self._recent, dead, aside
            )
            position = search_kernels.expand(
                block.rows,
                block.fingerprints,
                rows,
                position,
                keeps_all,
                tables.images,
                self._room,
                successors,
                answers,
            )
            if counters[4]:
                raise ModelError("a move leads to operations without end, or a state has too many moves")
            if position < len(rows):
                part.grow()
        self.noted, part.size, put_aside, deadlocked, _, transitions = (int(counter) for counter in counters)
        part.transitions += transitions
        part.dead.append(dead[:deadlocked])
        return aside[:put_aside].copy()

    # -- pass two --------------------------------------------------------------------------------------------

    def probe(self, parts: list[Slice], shards: int) -> None:
        """Add the fingerprints of the own shard to the visited set, slice by slice."""
        visited = self.visited
        if not self._filters:
            # The graph needs the slots after this pass, and growing moves them.
            visited.reserve(sum(part.size for part in parts))
        for part in parts:
            if len(self._picks) < part.size:
                self._picks = np.zeros(len(part.found), np.uint32)
            if self._filters:
                visited.reserve(part.size)
            room = (self.number, shards, part.found, part.size, self._picks, part.is_new[self.number])
            part.added[self.number] = visited.probe(*room, part.slots if part.slots.size else None)

    # -- pass three ------------------------------------------------------------------------------------------

    def build(self, part: Slice, targets: list[Target], parents: Array, ordinals: Array) -> list[PendingRows]:
        """Build the rows of the new states of a slice, and return those that could not be judged.

        `parents` and `ordinals` are room for the origins of all of them.
        """
        pending = []
        block, verdicts = part.block, self._tables.verdicts
        source = build_kernels.Parents(block.rows, block.judgements, part.base, part.found, part.origins, part.fresh)
        judging = verdicts.judging(self.tally.times, self.tally.first)
        first = 0
        for into, begin, end, state in targets:
            aside, affecting = np.empty(end - begin, np.uint32), np.empty(end - begin, np.uint64)
            children = build_kernels.Children(
                into.rows, into.fingerprints, into.judgements, parents, ordinals, aside, affecting, self.reached
            )
            answers = self._tables.answers(self.missing, self._counters)
            build_kernels.build(
                source, first, first + end - begin, children, begin, state, self._room.stack, judging, answers
            )
            put_aside = int(self._counters[2])
            if put_aside:
                pending.append(PendingRows(into, aside[:put_aside], state - begin, affecting[:put_aside]))
            first += end - begin
        return pending
