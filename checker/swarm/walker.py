"""Executes random walks in one process, in lock step and by plans, and rebuilds the run of any walk.

A walk is a function of the seed and of its number. Rules:

- The plan of a walk has its depth limit, its modes and its change points. The numbers of walks are grouped. The first
  walk of a group of eight has only one leg. Every second walk of the others repeats a random part of the run of the
  first one, and then continues in another way.
- The kernel runs for some thousand steps; then Python fills the tables with the entries that it lacked. The tables do
  not change while the kernel runs.
- An interrupt takes effect between two such rounds. The walks that had begun count as far as they came.
- A run is repeated by the kernel, which then records the ordinals of its moves, and rebuilt by the plain engine. Both
  must reach the same state.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

import numpy as np

from checker.engine.arrays import grown
from checker.engine.discovery import Discovery, Step
from checker.engine.evaluator import Evaluator, Tally
from checker.engine.kernels import build_kernels, move_kernels, search_kernels, walk_kernels
from checker.engine.kernels.walk_kernels import Plans
from checker.engine.model import NO_EXCEPTION, Kind, Model, ModelError, Property, Row
from checker.engine.process import Interrupts
from checker.engine.result import SEED, Coverage, Exploration, Limits, Stop
from checker.engine.semantics import finding_at, rebuild, rediscover
from checker.engine.states.frontier import Pool
from checker.engine.states.waiting import NextLevel, WaitingBlocks
from checker.engine.steps import step_properties
from checker.engine.tables import Tables
from checker.engine.worker import row_room
from checker.swarm.outcome import REGISTERS, Sighting, WalkCounts

Array = np.ndarray[Any, Any]

GROUP = 8  # walks that may begin with a part of one run
CHANGES = 4  # change points of a leg by priority
HALVINGS = 6  # of the depth limit at most
SHORTEST = 16  # steps of a depth limit, unless the greatest depth is less
MOST_WALKS = 1 << 31
_MODES = (0, 1, 1, 1, 2, 2, 3, 3)  # of eight walks: one uniform, three by action, two by place, two by priority
_LIMIT, _MODE, _BRANCH, _CHANGE, _FIRST = (np.uint64(n) for n in (1, 2, 3, 4, 1 << 32))


def plans(seed: int, first: int, count: int, depth: int) -> Plans:
    """The plans of the walks `first` to first + count, with at most `depth` steps each."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    leaders = numbers - numbers % np.uint64(GROUP)
    keys = np.stack([key_of(seed, leaders), key_of(seed, numbers)], axis=1)
    limits = np.stack([_limit(keys[:, leg], depth) for leg in (0, 1)], axis=1)
    draws = mixed(keys[:, 1] ^ _BRANCH)
    branches = (draws >> np.uint64(8)) % limits[:, 0]
    branches[(numbers == leaders) | (draws & np.uint64(1) == 0)] = 0
    return Plans(
        numbers,
        np.minimum(limits[:, 1] + branches, np.uint64(depth)),
        branches,
        keys,
        np.array(_MODES, np.uint64)[mixed(keys ^ _MODE) % np.uint64(len(_MODES))],
        np.stack([mixed(keys ^ (_CHANGE + np.uint64(n))) % limits for n in range(CHANGES)], axis=2),
    )


def key_of(seed: int, numbers: Array) -> Array:
    """The key of each walk: a pseudo-random number (u64) from the seed and the number."""
    start = mixed(np.array([seed], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    with np.errstate(over="ignore"):
        return mixed(start + (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


def mixed(words: Array) -> Array:
    """The pseudo-random number of each word, as `walk_kernels.mix`."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    numbers: Array = words ^ (words >> np.uint64(31))
    return numbers


def _limit(keys: Array, depth: int) -> Array:
    """The depth limit of a leg: the greatest depth, or with half the probability half of it, and so on."""
    lowest = mixed(keys ^ _LIMIT) & np.uint64((1 << HALVINGS) - 1) | np.uint64(1 << HALVINGS)
    halved = np.uint64(depth) // (lowest & (~lowest + np.uint64(1)))
    limits: Array = np.maximum(halved, np.uint64(min(depth, SHORTEST)))
    return limits


MISSING = 8192  # keys noted before the tables are filled


class SharedTables:
    """The tables of a process, and the arrays that belong to them.

    `hashes` (u64) has a number for each label that depends only on the name of its action. `alarms` and `final_alarms`
    (u8) mark the judgements and verdicts that end a walk. The first states have `cells` (u32, padded), `fingerprints`,
    `judgements`, and `places` among `Model.first_rows`.
    """

    def __init__(self, model: Model, seed: int = SEED) -> None:
        self.tables = tables = Tables(model, seed)
        self.hashes = np.zeros(0, np.uint64)
        self.alarms, self.final_alarms = np.zeros(0, np.uint8), np.zeros(0, np.uint8)
        pool = Pool(len(model.columns))
        block, self.places = NextLevel(tables, pool, WaitingBlocks(tables, pool)).begin()
        evaluator = Evaluator(tables, Exploration(model, "swarm", Limits()))
        evaluator.judge_first(block)
        evaluator.judge_waiting()
        count = block.size
        self.cells, self.fingerprints, self.judgements = (
            values[:count] for values in (block.rows, block.fingerprints, block.judgements)
        )
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
        numbers = range(len(self.alarms), verdicts.judgements.size)
        self.alarms = np.append(self.alarms, np.array([self._alarms(verdicts.found(n)) for n in numbers], np.uint8))
        ends = verdicts.verdicts[len(self.final_alarms) :]
        self.final_alarms = np.append(self.final_alarms, np.array([self._alarms(v.found) for v in ends], np.uint8))

    def _alarms(self, found: Iterable[int]) -> bool:
        return any(self.tables.model.property_at(position).kind is not Kind.SOMETIMES for position in found)


def _hash(action: str) -> int:
    return int.from_bytes(blake2b(action.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


class Walker:
    """The buffers of one thread, and the walks of its present part."""

    def __init__(self, shared: SharedTables) -> None:
        self._shared = shared
        self._room = row_room(shared.tables)
        self._moves = np.zeros(search_kernels.MOST_MOVES, np.uint64)
        self._weights = np.zeros(search_kernels.MOST_MOVES, np.uint64)
        self._verdicts = np.zeros(len(shared.tables.verdicts.final), np.uint64)
        self._missing, self._counters = np.zeros(MISSING, np.uint64), np.zeros(5, np.int64)
        self._visited = np.zeros(0, np.uint8)  # for each cell, whether a walk of the part visited it
        self._count = 0

    def begin(self, plans: walk_kernels.Plans, steps: int | None = None) -> None:
        """Begin a part of the walks. With `steps`, the only walk ends there and its ordinals are recorded."""
        count, start = len(plans.numbers), self._shared
        self._plans = plans if steps is None else plans._replace(limits=np.full(1, steps, np.uint64))
        # All walks of a group begin alike, since they repeat parts of one run.
        self._firsts = firsts = mixed(plans.keys[:, 0] ^ _FIRST) % np.uint64(len(start.cells))
        self._walks = walks = walk_kernels.RunningWalks(
            start.cells[firsts],
            start.fingerprints[firsts],
            start.judgements[firsts],
            np.zeros(count, np.uint32),
            np.zeros(count, np.uint8),
            np.full(plans.changes.shape, ~np.uint64(0), np.uint64),
            np.zeros(steps or 0, np.uint16),
        )
        self._count, self._steps, self._dead = count, 0, 0
        self._failing = np.zeros(count, np.bool_)
        self._fired, self._registers = np.zeros(64, np.uint64), np.zeros(REGISTERS, np.uint8)
        self._judged, self._final = Tally(), Tally()
        self._make_room()
        np.add.at(self._judged.times, walks.judgements, 1)
        np.minimum.at(self._judged.first, walks.judgements, plans.numbers)
        walk_kernels.observe_all(self._registers, np.unique(walks.fingerprints))
        self._visited[:] = 0
        self._visited[walks.rows[:, : len(start.tables.model.columns)]] = 1
        is_alarmed = start.alarms[walks.judgements] != 0
        walks.status[:] = np.where(is_alarmed, walk_kernels.ALARMED, walk_kernels.ENDED if steps == 0 else walks.status)

    def advance(self, budget: int) -> None:
        """Continue the walks of the part for at most this number of steps. Raises ModelError."""
        shared, walks = self._shared, self._walks
        tables, verdicts = shared.tables, shared.tables.verdicts
        self._make_room()
        running = walks.status == walk_kernels.RUNNING
        walk_kernels.walk(
            walks,
            self._plans,
            budget,
            walk_kernels.Choices(self._moves, self._weights, shared.hashes),
            verdicts.judging(self._judged.times, self._judged.first),
            build_kernels.Judging(verdicts.final, self._verdicts, self._final.times, self._final.first),
            walk_kernels.Visits(self._fired, self._registers, self._visited, shared.alarms, shared.final_alarms),
            self._room,
            tables.answers(self._missing, self._counters),
        )
        noted, steps, dead, _, error = (int(counter) for counter in self._counters)
        if error:
            raise ModelError("a move leads to operations without end, or a state has too many moves")
        self.noted = self._missing[:noted]
        if not noted and not steps and running.sum() <= budget:
            # These walks have tried, and there is nothing left to ask: a function fails in their states.
            self._failing = walks.status == walk_kernels.RUNNING
            walks.status[self._failing] = walk_kernels.ALARMED
        self._steps += steps
        self._dead += dead

    @property
    def is_running(self) -> bool:
        """Whether walks of the part have not ended."""
        return bool((self._walks.status == walk_kernels.RUNNING).any())

    def taken(self) -> WalkCounts:
        """The counts of the part, which ends where it is, with names in place of the numbers of the tables."""
        tables, walks = self._shared.tables, self._walks
        verdicts, properties = tables.verdicts, tables.model.properties
        depths, times = np.unique(walks.at, return_counts=True)
        times_judged = self._judged.times[: verdicts.judgements.size]
        evaluations = verdicts.evaluations(times_judged, self._final.times)
        for prop in step_properties(properties):
            del evaluations[prop.name]
        counts = WalkCounts(
            walks=self._count, cut=int((walks.status == walk_kernels.RUNNING).sum()),
            transitions=self._steps, deadlocks=self._dead,
            registers=self._registers, depths=dict(zip(depths.tolist(), times.tolist(), strict=True)),
            evaluations=evaluations, local=_local(self._visited, tables),
        )  # fmt: skip
        for label, fired in zip(tables.labels, self._fired.tolist(), strict=False):
            if label.action:
                counts.coverage.setdefault(label.action, Coverage()).fired += fired
        for tally, positions_of in (
            (self._judged, verdicts.found),
            (self._final, lambda n: verdicts.verdicts[n].found),
        ):
            for number in tally.unnoted():
                step, walk = divmod(int(tally.first[number]), 1 << 32)
                for position in positions_of(number):
                    counts.see(tables.model.property_at(position).name, Sighting(step, walk))
        for walk in np.flatnonzero(self._failing).tolist():
            counts.see(NO_EXCEPTION.name, Sighting(int(walks.at[walk]), int(self._plans.numbers[walk])))
        walks.status[walks.status == walk_kernels.RUNNING] = walk_kernels.ENDED
        return counts

    def present(self) -> WalkCounts:
        """The present counts of the running part, as far as a line of progress shows them."""
        deepest = int(self._walks.at.max())
        return WalkCounts(walks=self._count, transitions=self._steps, registers=self._registers, depths={deepest: 1})

    @property
    def is_alarmed(self) -> bool:
        """Whether a walk of the part ended at a violation or a deadlock."""
        return bool((self._walks.status == walk_kernels.ALARMED).any())

    @property
    def ordinals(self) -> list[int]:
        """The path of the only walk, for `rebuild`."""
        ordinals: list[int] = self._walks.ordinals[: int(self._walks.at[0])].tolist()
        has_places = len(self._shared.tables.model.first_rows) > 1
        return [int(self._shared.places[int(self._firsts[0])]), *ordinals] if has_places else ordinals

    @property
    def values(self) -> Row:
        """The state of the only walk."""
        tables = self._shared.tables
        return tables.values(self._walks.rows[0, : len(tables.model.columns)].tolist())

    def _make_room(self) -> None:
        tables = self._shared.tables
        self.noted = self._missing[:0]
        self._visited = grown(self._visited, tables.cells.size)
        self._fired = grown(self._fired, len(tables.labels))
        self._judged.make_room(tables.verdicts.judgements.size)
        self._final.make_room(len(tables.verdicts.verdicts))


def _local(visited: Array, tables: Tables) -> dict[str, Array]:
    """For each column, the numbers of its visited values, in ascending order."""
    cells = np.flatnonzero(visited)
    columns = np.array([tables.column_of(cell) for cell in cells.tolist()], np.int64)
    numbers = tables.cells.view[cells, move_kernels.ZOBRIST]
    return {column.name: np.sort(numbers[columns == position]) for position, column in enumerate(tables.model.columns)}


def safety(model: Model) -> Model:
    """The model without its properties of liveness, which no walk can judge."""
    return model.with_properties(prop for prop in model.properties if not prop.kind.is_liveness)


BUDGET = 1 << 14  # steps of a round


class WalkRunner:
    """The walks of a seed over a model without liveness. The tables stay from one call to the next.

    With `keep_going`, a violation ends only its walk. Raises ModelError, as all methods do.
    """

    def __init__(self, model: Model, seed: int, depth: int, *, keep_going: bool = False) -> None:
        self._model, self._seed, self._depth, self._keep_going = model, seed, depth, keep_going
        self._shared = SharedTables(model)
        self._walker = Walker(self._shared)

    def compile(self) -> None:
        """Compile the kernels, or load them from their cache, by one step of a walk."""
        walker = Walker(self._shared)
        walker.begin(plans(self._seed, 0, 1, 1), 1)
        walker.advance(1)

    def run(self, first: int, count: int, ended: Callable[[], Stop | None] = lambda: None) -> WalkCounts:
        """Execute the walks `first` to first + count; they end early when `ended`, called in each round, says why."""
        walker, tables = self._walker, self._shared.tables
        python_before = tables.seconds
        walker.begin(plans(self._seed, first, count, self._depth))
        try:
            reason = None
            while walker.is_running and reason is None:
                with Interrupts():
                    walker.advance(BUDGET)
                    self._shared.fill(walker.noted)
                reason = ended()
            reason = reason or (Stop.FOUND if walker.is_alarmed and not self._keep_going else Stop.WORK)
        except KeyboardInterrupt:
            reason = Stop.INTERRUPTED
        counts = walker.taken()
        counts.stop, counts.python_seconds = reason, tables.seconds - python_before
        return counts

    @property
    def running(self) -> WalkCounts:
        """The present counts of the walks that are running."""
        return self._walker.present()

    def path(self, walk: int, steps: int) -> tuple[Step, ...]:
        """The first steps of a walk, fewer if it ends earlier; executed again by both engines."""
        walker = Walker(self._shared)
        walker.begin(plans(self._seed, walk, 1, self._depth), steps)
        while walker.is_running:
            walker.advance(steps + 1)
            self._shared.fill(walker.noted)
        return rebuild(self._model, walker.ordinals, lambda row: row == walker.values)

    def discovery(self, prop: Property, sighting: Sighting) -> Discovery:
        """The run to a finding, as its walk executed it; or to an exception on the way."""
        path = self.path(sighting.walk, sighting.step)
        if len(path) - 1 < sighting.step:
            prop = NO_EXCEPTION  # on the way, in a move that the walk did not take
        discovery = rediscover(self._model, prop, path, self._shared.tables.error)
        if discovery.depth != sighting.step and prop is not NO_EXCEPTION:
            raise ModelError(f"the walk {sighting.walk} ends elsewhere than before; a step is not a function")
        return discovery

    def repeat(self, walk: int) -> tuple[tuple[Step, ...], list[Discovery]]:
        """The whole run of a walk, and the findings at its end."""
        plan = plans(self._seed, walk, 1, self._depth)
        path = self.path(walk, int(plan.limits[0]))
        last = path[-1].row
        discoveries = []
        for prop in (*self._model.properties, NO_EXCEPTION):
            if prop.kind in (Kind.ALWAYS, Kind.FINAL):
                finding = finding_at(self._model, prop, last)
                if finding is not None:
                    discoveries.append(Discovery(prop, finding, len(path) - 1, path))
        return path, discoveries
