"""Runs a swarm in any number of processes, of this machine or of a Ray cluster, and adds the counts.

The walks are cut into *parts*, and any process takes any part. A process has its own tables: in a model that no
exhaustive search finishes, most of the time is that of Python functions, which threads would not share. Rules:

- The walks of a part are a function of its number: few at first, and more later.
- Counts are added in the order of the parts. A swarm that ends at a finding has the part of the finding and all parts
  before it. So its outcome is the same for any number of processes.
- Walks that end at a limit of time or at an interrupt count as far as they came.
"""

import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

import numpy as np
import psutil

from checker.cluster import Ray, Workers
from checker.engine.kernels import jit
from checker.engine.model import NO_EXCEPTION, Kind, Model, ModelError
from checker.engine.process import Interrupts
from checker.engine.result import Limits, Stop
from checker.engine.search import LOST, REPORT_EVERY, Request, on_terminal
from checker.swarm.outcome import DEFAULT_DEPTH, Sighting, SwarmOutcome, WalkCounts
from checker.swarm.walker import MOST_WALKS, WalkRunner, safety

SMALLEST_PART, DOUBLINGS = 64, 6  # walks, and how often a part doubles
SAME_SIZE = 16  # parts of one size

Answer = TypeVar("Answer")


class WalkRange(NamedTuple):
    """The walks that one process executes together: their number, from `first` on."""

    first: int
    size: int


def part(number: int) -> WalkRange:
    """The part with this number: SAME_SIZE of the smallest ones, as many of twice the size, and so on."""
    doublings = min(number // SAME_SIZE, DOUBLINGS)
    size = SMALLEST_PART << doublings
    before = SAME_SIZE * SMALLEST_PART * ((1 << doublings) - 1)
    return WalkRange(before + (number - doublings * SAME_SIZE) * size, size)


@dataclass(frozen=True)
class PartTask:
    """The execution of parts in any process.

    `make` makes the model there; two tasks are equal if their models have one `identity`. `until` is a time of the
    clock, in seconds since 1970, and infinite for none. Processes of this machine end their parts when the folder
    `alive` is gone.
    """

    make: Callable[[], Model] = field(compare=False)
    identity: str
    seed: int
    limits: Limits
    until: float
    keep_going: bool = False
    alive: Path | None = None

    def __call__(self, number: int) -> WalkCounts:
        """The counts of the part with this number. Raises ModelError."""
        process = psutil.Process()
        return run_part(runner_of(self), self.limits, number, lambda: _reached(self, process))


def _reached(task: PartTask, process: psutil.Process) -> Stop | None:
    if time.time() >= task.until:
        return Stop.TIME
    if task.alive is not None and not task.alive.exists():
        return Stop.INTERRUPTED
    if task.limits.memory is not None and process.memory_info().rss >= task.limits.memory:
        return Stop.MEMORY
    return None


class _Kept:
    """The runner of the latest task of this process, so that its tables stay from one part to the next."""

    task: PartTask | None = None
    runner: WalkRunner | None = None


def runner_of(task: PartTask) -> WalkRunner:
    """The runner of a task in this process. Raises ModelError."""
    if _Kept.task != task or _Kept.runner is None:
        model, depth = safety(task.make()), task.limits.depth or DEFAULT_DEPTH
        _Kept.task, _Kept.runner = task, WalkRunner(model, task.seed, depth, keep_going=task.keep_going)
    return _Kept.runner


def run_part(runner: WalkRunner, limits: Limits, number: int, ended: Callable[[], Stop | None]) -> WalkCounts:
    """The counts of a part. Raises ModelError."""
    first, size = part(number)
    return runner.run(first, min(size, (limits.work or MOST_WALKS) - first), ended)


@dataclass(frozen=True)
class RandomWalks:
    """The frontier of random walks: a limit of work is one of walks, and one of depth that of each walk.

    More than one process needs `make`, which makes the model in each of them and can be pickled, and an `identity` that
    differs for different models. With `keep_going`, a violation ends its walk and not the swarm.
    """

    keep_going: bool = False
    make: Callable[[], Model] | None = None
    identity: str = ""

    def explore(self, request: Request) -> SwarmOutcome:
        """Walk until a limit or a finding, and rebuild the runs that were found. Raises ModelError."""
        if request.checkpoint is not None:
            raise ModelError("random walks save no checkpoint; a seed and a number repeat each walk (--seed, --walk)")
        if request.limits.states is not None or request.until_witnessed:
            raise ModelError("random walks end at no number of states and at no witnesses; limit their number (work)")
        return Swarm(request, self).run()


class Swarm:
    """One swarm over one model; `run` may be called once."""

    def __init__(self, request: Request, frontier: RandomWalks) -> None:
        model, limits, seed = request.model, request.limits, request.seed
        workers = request.workers if frontier.make is not None else 1
        assert isinstance(workers, int | Ray)
        self.outcome = SwarmOutcome(model, "swarm", limits, seed=seed, workers=[str(workers)])
        self._workers: Workers = workers
        self._progress, self._process = request.progress or on_terminal, psutil.Process()
        if not jit.is_compiled(with_walks=True):
            self.outcome.compiling = True
            self._progress(self.outcome)
        keep_going, make = frontier.keep_going, frontier.make or (lambda: model)
        self._runner = WalkRunner(safety(model), seed, limits.depth or DEFAULT_DEPTH, keep_going=keep_going)
        self._runner.compile()
        self._began = self._reported = time.monotonic()
        self._until = math.inf if limits.seconds is None else time.time() + limits.seconds
        self._alive = TemporaryDirectory(prefix="quorate-swarm-")
        memory = None if limits.memory is None else limits.memory // (workers if isinstance(workers, int) else 1)
        alive = None if isinstance(workers, Ray) else Path(self._alive.name)
        limits = replace(limits, memory=memory)
        self._task = PartTask(make, frontier.identity, seed, limits, self._until, keep_going, alive)
        self._last = math.inf  # the number of the last part that counts
        self._is_full = False  # a process reached the limit of memory

    def run(self) -> SwarmOutcome:
        """Walk until a limit or a finding, and rebuild the runs that were found."""
        outcome, added = self.outcome, 0
        waiting: dict[int, WalkCounts] = {}
        calls = for_each_seed(self._function(), self._numbers(), self._workers, self._alive.cleanup)
        try:
            for number, counts in calls:
                waiting[number] = counts
                self._is_full = self._is_full or counts.stop is Stop.MEMORY
                if counts.stop is Stop.FOUND:
                    self._last = min(self._last, number)
                while added in waiting and added <= self._last:
                    self._add(waiting.pop(added))
                    added += 1
                if added > self._last or outcome.stop is Stop.INTERRUPTED:
                    break
                self._report()
        except KeyboardInterrupt:
            outcome.stop = Stop.INTERRUPTED
        with Interrupts():
            self._close(calls)
            for number in sorted(waiting):
                if number < self._last:
                    ending = outcome.stop
                    self._add(waiting[number])
                    outcome.stop = ending if ending is Stop.INTERRUPTED else outcome.stop
            self._end()
        return outcome

    def _function(self) -> Callable[[int], WalkCounts]:
        return self._here if self._workers == 1 else self._task

    def _numbers(self) -> Iterator[int]:
        walks = self.outcome.limits.work or MOST_WALKS
        number = 0
        while part(number).first < walks and number <= self._last and time.time() < self._until and not self._is_full:
            yield number
            number += 1

    def _here(self, number: int) -> WalkCounts:
        """Execute a part in this process, which shows the progress of it."""

        def ended() -> Stop | None:
            self._report(self._runner.running)
            return _reached(self._task, self._process)

        return run_part(self._runner, self.outcome.limits, number, ended)

    def _add(self, counts: WalkCounts) -> None:
        self.outcome.compiling = False
        self.outcome.add(counts)
        self.outcome.sample(time.monotonic() - self._began)

    def _report(self, *running: WalkCounts) -> None:
        """Report the progress, with the walks that are running, unless the last report is too recent."""
        if time.monotonic() - self._reported >= REPORT_EVERY:
            self._reported = time.monotonic()
            outcome = replace(self.outcome, depths=dict(self.outcome.depths), seconds=self._reported - self._began)
            outcome.compiling = False
            for counts in running:
                outcome.walks += counts.walks
                outcome.transitions += counts.transitions
                outcome.registers = np.maximum(outcome.registers, counts.registers)
                outcome.depths.update(counts.depths)
            self._progress(outcome)

    def _close(self, calls: Iterator[tuple[int, WalkCounts]]) -> None:
        """Cancel the calls that wait, and end those that run on this machine."""
        self._alive.cleanup()
        if isinstance(calls, Generator):
            calls.close()

    def _end(self) -> None:
        outcome = self.outcome
        if outcome.stop is Stop.WORK and outcome.walks < (outcome.limits.work or MOST_WALKS):
            outcome.stop = Stop.MEMORY if self._is_full else Stop.TIME
        outcome.compiling, outcome.seconds = False, time.monotonic() - self._began
        for prop in (*outcome.model.properties, NO_EXCEPTION):
            if prop.name in outcome.sightings and prop.kind is not Kind.SOMETIMES:
                sighting = outcome.sightings[prop.name]
                discovery = self._runner.discovery(prop, sighting)
                if discovery.prop is not prop:  # an exception on the way
                    del outcome.sightings[prop.name]
                    outcome.see(discovery.prop.name, Sighting(discovery.depth, sighting.walk))
                else:
                    outcome.found[prop.name] = discovery


def for_each_seed(
    function: Callable[[int], Answer],
    seeds: Iterable[int],
    workers: Workers,
    stop: Callable[[], None] | None = None,
) -> Iterator[tuple[int, Answer]]:
    """Call a picklable function for each seed; yield each seed with its answer, as the calls end.

    `workers` is a number of processes of this machine, or a Ray cluster. At most two calls for each process wait at a
    time, so the seeds may be endless; closing the iterator cancels the calls that wait. An exception of the function is
    raised here and ends the calls. `stop` ends the calls that run in processes of this machine, which are then waited
    for: a program that ends while its pool ends may print a stack trace of Python. Raises ModelError if there is no
    such cluster, or if a process is lost.

        for seed, found in for_each_seed(partial(explore_at_random, model), range(1000), workers=Ray()):
            print(seed, found)
    """
    if isinstance(workers, Ray):
        from checker.cluster.ray_transport import ray_calls  # noqa: PLC0415 (imports Ray)

        yield from ray_calls(function, seeds, workers)
        return
    if workers == 1:
        yield from ((seed, function(seed)) for seed in seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting: dict[Any, int] = {}
        queue = iter(seeds)
        try:
            while True:
                with _children_without_interrupts():
                    for seed in islice(queue, 2 * workers - len(waiting)):
                        waiting[pool.submit(function, seed)] = seed
                if not waiting:
                    return
                for call in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(call), call.result()
        except BrokenProcessPool:
            raise ModelError(LOST) from None
        finally:
            if stop is not None:
                stop()
            pool.shutdown(wait=stop is not None, cancel_futures=True)


@contextmanager
def _children_without_interrupts() -> Iterator[None]:
    """A context whose new processes never get a Ctrl-C, which reaches all processes of a terminal; the first one ends
    the others. Here it takes effect at the end.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
