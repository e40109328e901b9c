"""Executes a part of the random walks, in lock step.

A walker has the buffers of the kernel and the walks of its present part. The tables do not change while the kernel
runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from checker.engine.contract import first_row
from checker.engine.evaluator import Tally
from checker.engine.kernels import build_kernels, move_kernels, search_kernels, walk_kernels
from checker.engine.model import Kind, Model, ModelError
from checker.engine.result import SEED
from checker.engine.states.frontier import padded
from checker.engine.tables import Tables
from checker.engine.worker import JOINT_CACHE
from checker.swarm.outcome import WalkCounts
from checker.swarm.plans import WalkPlans

MISSING = 8192  # keys noted before the tables are filled

Array = np.ndarray[Any, Any]


@dataclass
class PartResult:
    """The counts of a part of the walks, by the numbers of the tables.

    `fired` (u64) has a counter for each label, `judged` and `final` one for each judgement or verdict with its first
    place (step << 32 | walk). `registers` are the sketch of the states. `depths` are the steps of each walk, and `cut`
    is the number of walks that a limit of time ended.
    """

    walks: int
    cut: int = 0
    steps: int = 0
    dead: int = 0
    fired: Array = field(default_factory=lambda: np.zeros(64, np.uint64))
    judged: Tally = field(default_factory=Tally)
    final: Tally = field(default_factory=Tally)
    registers: Array = field(default_factory=lambda: np.zeros(1 << walk_kernels.REGISTER_BITS, np.uint8))
    depths: Array = field(default_factory=lambda: np.zeros(0, np.uint32))


class SharedTables:
    """The tables of a process, and the arrays that belong to them.

    `hashes` (u64) has a number for each label that depends only on the name of its action. `alarms` and `final_alarms`
    (u8) mark the judgements and verdicts that end a walk. The initial state has `cells` (u32, padded), a `fingerprint`
    and a `judgement`.
    """

    def __init__(self, model: Model, seed: int = SEED) -> None:
        self.tables = tables = Tables(model, seed)
        self.hashes = np.zeros(0, np.uint64)
        self.alarms, self.final_alarms = np.zeros(0, np.uint8), np.zeros(0, np.uint8)
        cells = tables.row(first_row(model))
        self.cells = np.zeros(padded(len(cells)), np.uint32)
        self.cells[: len(cells)] = cells
        self.fingerprint = tables.fingerprints(np.array([cells]))[0]
        self.judgement = np.uint32(self._judge())
        self.grow()

    def fill(self, keys: Array) -> None:
        """Answer the questions of kernels, while none runs. Raises ModelError."""
        self.tables.fill(keys)
        self.grow()

    def grow(self) -> None:
        """Follow the tables, which have new labels, judgements and verdicts."""
        tables, verdicts = self.tables, self.tables.verdicts
        new = [_hash(label.action) for label in tables.labels[len(self.hashes) :]]
        self.hashes = np.append(self.hashes, np.array(new, np.uint64))
        judged = range(len(self.alarms), verdicts.judgements.size)
        self.alarms = np.append(self.alarms, np.array([self._alarms(verdicts.found(n)) for n in judged], np.uint8))
        ends = verdicts.verdicts[len(self.final_alarms) :]
        self.final_alarms = np.append(self.final_alarms, np.array([self._alarms(v.found) for v in ends], np.uint8))

    def _alarms(self, found: Iterable[int]) -> bool:
        return any(self.tables.model.properties[position].kind is not Kind.SOMETIMES for position in found)

    def _judge(self) -> int:
        tables, verdicts = self.tables, self.tables.verdicts
        missing, counters = np.zeros(MISSING, np.uint64), np.zeros(5, np.int64)
        room, tally = np.zeros(1, np.uint32), Tally()
        every = np.full(1, (1 << 64) - 1, np.uint64)
        while True:
            judgement = np.zeros(1, np.uint32)
            counters[:] = 0
            tally.make_room(verdicts.judgements.size)
            build_kernels.judge_rows(
                self.cells.reshape(1, -1), np.zeros(1, np.uint32), every, judgement, 0,
                verdicts.judged, verdicts.judgements.view, tally.times, tally.first, tables.flat_cells,
                *tables.readers(), room, every.copy(), missing, counters,
            )  # fmt: skip
            if not counters[2]:
                return int(judgement[0])
            tables.fill(missing[: counters[0]])


def _hash(action: str) -> int:
    return int.from_bytes(blake2b(action.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


class Walker:
    """The buffers of one thread, and the walks of its present part."""

    def __init__(self, shared: SharedTables) -> None:
        self._shared = shared
        columns, joint = len(shared.tables.model.columns), len(shared.tables.joint)
        width = padded(columns)
        self._row, self._joint_key = np.zeros(width, np.uint32), np.zeros(width, np.uint32)
        self._cached_keys = np.zeros((JOINT_CACHE, width), np.uint32)
        self._cached_lists = np.zeros((JOINT_CACHE, joint + 2), np.uint64)
        self._lists_of = np.zeros(columns + joint + 1, np.uint64)
        self._stack = np.zeros(2 * move_kernels.STACK, np.uint64)
        self._moves = np.zeros(search_kernels.MOST_MOVES, np.uint64)
        self._weights = np.zeros(search_kernels.MOST_MOVES, np.uint64)
        self._verdicts = np.zeros(len(shared.tables.verdicts.final), np.uint64)
        self._missing, self._counters = np.zeros(MISSING, np.uint64), np.zeros(5, np.int64)
        self.visited = np.zeros(0, np.uint8)  # for each cell, whether a walk of the part visited it
        self.part = PartResult(0)

    def begin(self, plans: WalkPlans, steps: int | None = None) -> None:
        """Begin a part of the walks. With `steps`, the only walk ends there and its ordinals are recorded."""
        count, start = len(plans.numbers), self._shared
        self._plans = plans if steps is None else plans._replace(limits=np.full(1, steps, np.uint64))
        self._rows = np.repeat(start.cells.reshape(1, -1), count, axis=0)
        self._fingerprints = np.full(count, start.fingerprint, np.uint64)
        self._judgements = np.full(count, start.judgement, np.uint32)
        self._at, self._status = np.zeros(count, np.uint32), np.zeros(count, np.uint8)
        self._lowered = np.full(plans.changes.shape, ~np.uint64(0), np.uint64)
        self.ordinals = np.zeros(steps or 0, np.uint16)
        self.part = part = PartResult(count)
        self._make_room()
        at_first = int(start.judgement)
        part.judged.times[at_first], part.judged.first[at_first] = count, plans.numbers[0]
        walk_kernels.observe_all(part.registers, self._fingerprints[:1])
        self.visited[:] = 0
        self.visited[start.cells[: len(start.tables.model.columns)]] = 1
        if steps == 0 or start.alarms[at_first]:
            self._status[:] = walk_kernels.ALARMED if start.alarms[at_first] else walk_kernels.ENDED

    def advance(self, budget: int) -> None:
        """Continue the walks of the part for at most this number of steps. Raises ModelError."""
        part, shared, plans = self.part, self._shared, self._plans
        tables, verdicts = shared.tables, shared.tables.verdicts
        self._make_room()
        self._counters[:] = 0
        walk_kernels.walk(
            self._rows, len(tables.model.columns), self._fingerprints, self._judgements, self._at, self._status,
            plans.numbers, plans.limits, plans.branches, plans.keys, plans.modes, plans.changes, self._lowered,
            self.ordinals, budget,
            tables.flat_cells, tables.masks.view, tables.masked, tables.joint, self._lists_of,
            self._joint_key, self._cached_keys, self._cached_lists,
            self._row, self._stack, self._moves, self._weights, tables.entries.view, shared.hashes,
            verdicts.judged, verdicts.judgements.view, shared.alarms, verdicts.final, self._verdicts,
            shared.final_alarms, *tables.readers(),
            part.fired, part.judged.times, part.judged.first, part.final.times, part.final.first,
            part.registers, self.visited, self._missing, self._counters,
        )  # fmt: skip
        noted, steps, dead, _, error = (int(counter) for counter in self._counters)
        if error:
            raise ModelError("a move leads to operations without end, or a state has too many moves")
        self.noted = self._missing[:noted]
        part.steps += steps
        part.dead += dead

    @property
    def is_running(self) -> bool:
        """Whether walks of the part have not ended."""
        return bool((self._status == walk_kernels.RUNNING).any())

    def taken(self) -> PartResult:
        """The result of the part, which ends where it is."""
        part = self.part
        part.cut = int((self._status == walk_kernels.RUNNING).sum())
        part.depths = self._at.copy()
        self._status[self._status == walk_kernels.RUNNING] = walk_kernels.ENDED
        return part

    def present(self) -> WalkCounts:
        """The present counts of the running part, as far as a line of progress shows them."""
        deepest = int(self._at.max())
        return WalkCounts(
            walks=self.part.walks, steps=self.part.steps, registers=self.part.registers, depths={deepest: 1}
        )

    @property
    def is_alarmed(self) -> bool:
        """Whether a walk of the part ended at a violation or a deadlock."""
        return bool((self._status == walk_kernels.ALARMED).any())

    @property
    def steps(self) -> int:
        """The number of steps of the only walk."""
        return int(self._at[0])

    @property
    def cells(self) -> Array:
        """The cells of the only walk."""
        return self._rows[0, : len(self._shared.tables.model.columns)]

    def _make_room(self) -> None:
        tables, part = self._shared.tables, self.part
        self.noted = self._missing[:0]
        more = tables.cells.size - len(self.visited)
        if more > 0:
            self.visited = np.append(self.visited, np.zeros(more + len(self.visited), np.uint8))
        more = len(tables.labels) - len(part.fired)
        if more > 0:
            part.fired = np.append(part.fired, np.zeros(more + len(part.fired), np.uint64))
        part.judged.make_room(tables.verdicts.judgements.size)
        part.final.make_room(len(tables.verdicts.verdicts))
