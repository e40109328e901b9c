"""The table engine: breadth-first search, level by level, and each level in rounds of some blocks (`rounds`).

Rules:

- A level is finished before a finding in it ends the search, so that a reported path is shortest.
- A path is rebuilt by the plain engine from ordinals, and its last row must be the one that the tables reached.
- The graph is kept only for properties of liveness, and liveness is judged only after all states were seen.
- A search is saved only between two rounds. A search with a checkpoint that reaches a limit ends only there.
- Work is counted between two rounds, so that it does not depend on the number of workers.
"""

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import psutil

from checker.engine.checkpoint import Checkpoint
from checker.engine.checkpoint.search_checkpoint import FINISHED, SearchCheckpoint
from checker.engine.kernels import jit
from checker.engine.liveness import graph_liveness
from checker.engine.liveness.graph_liveness import Graph
from checker.engine.model import Model, ModelError
from checker.engine.result import COMPILING, CUT_SHORT, SEED, Exploration, Limits, Stop
from checker.engine.rounds import Rounds, SearchState
from checker.engine.steps import stop_counting
from checker.engine.tables import Tables

REPORT_EVERY = 0.25  # seconds between calls of `progress`


def _on_terminal(exploration: Exploration) -> None:
    """The default progress callback: a line about the compilation, on a terminal."""
    if exploration.compiling and not exploration.levels and sys.stderr.isatty():
        print(COMPILING, file=sys.stderr, flush=True)


class LimitReachedError(Exception):
    """A limit was reached inside a level, or a search with a checkpoint must end; `stop` is None for an interrupt."""

    def __init__(self, stop: Stop | None) -> None:
        super().__init__()
        self.stop = stop


class LevelSearch(ABC):
    """A breadth-first search, level by level; a subclass expands the levels and saves the search."""

    def __init__(self, result: Exploration, *, until_witnessed: bool, progress: Callable[[Exploration], None]) -> None:
        self.result = result
        self._until_witnessed, self._progress = until_witnessed, progress
        self._began = self._reported = time.monotonic()

    def _explore(self) -> None:
        """Explore level by level until there is a reason to stop, and store that reason in the result.

        Raises LimitReachedError inside a level.
        """
        result = self.result
        while self._begin_level():
            if self._is_at_a_level:
                stop = result.wanted(self._until_witnessed) or result.limits.reached(result)
                if stop is not None:
                    result.stop = stop
                    if stop not in FINISHED:
                        self._keep()
                    if stop is Stop.DEPTH and result.model.finals:
                        self._examine_ends()
                    return
            self._expand_level()
        result.stop = result.wanted(self._until_witnessed) or Stop.EXHAUSTED

    @abstractmethod
    def _begin_level(self) -> bool:
        """Begin the next level, unless the search is inside one; return whether there is one."""

    @property
    def _is_at_a_level(self) -> bool:
        """Whether nothing of the present level was expanded."""
        return True

    @abstractmethod
    def _keep(self) -> None:
        """Save the search at the beginning of a level at which a limit ends it, if it is kept in a folder."""

    @abstractmethod
    def _expand_level(self) -> None:
        """Expand the rest of the level."""

    @abstractmethod
    def _examine_ends(self) -> None:
        """Examine the level at the depth given for states without a successor, after the search was saved."""


class Search(LevelSearch):
    """One exploration by tables; `run` may be called once."""

    def __init__(
        self,
        model: Model,
        limits: Limits = Limits(),
        *,
        until_witnessed: bool = False,
        progress: Callable[[Exploration], None] | None = None,
        workers: int = 1,
        checkpoint: Checkpoint | None = None,
        seed: int = SEED,
        symmetric: bool = False,
        premise_runs: int = 0,
    ) -> None:
        self._process = psutil.Process()
        self._resident = self._process.memory_info().rss
        result = Exploration(model, "tables", limits, seed=seed)
        super().__init__(result, until_witnessed=until_witnessed, progress=progress or _on_terminal)
        self._checkpoint = None if checkpoint is None else SearchCheckpoint(checkpoint, model, seed)
        self.tables = Tables(model, seed, symmetric=symmetric) if self._checkpoint is None else self._checkpoint.tables
        self._work_before = self.tables.functions.work  # before this sitting
        self._judged = 0  # states and edges that liveness examined
        self._premise_runs = premise_runs
        self.premises: dict[str, list[list[int]]] = {}
        """Runs to states with the premise of a property, at most `premise_runs` each; see `Evaluator.premises`."""
        self._state = state = SearchState.of(
            self.result, self.tables, max(1, workers), fingerprints=self._checkpoint is not None
        )
        self._history, self._graph = state.history, state.graph
        self._rounds = Rounds(state)

    def run(self) -> Exploration:
        """Explore until all states were seen or there is a reason to stop. Raises ModelError."""
        try:
            if not jit.is_compiled(with_graph=self._graph is not None):
                self.result.compiling = True
                self._progress(self.result)
            if self._checkpoint is not None:
                self._resume(self._checkpoint)
            self._run()
            if self._premise_runs and self.result.stop not in CUT_SHORT:
                self.premises = self._state.evaluator.premises(self._history, self._premise_runs)
            if self._checkpoint is not None:
                self._checkpoint.finish()
        except OSError as error:
            why = f"the temporary folder cannot take more ({error.strerror}); TMPDIR names another"
            raise ModelError(why) from None
        finally:
            self._rounds.close()
            try:
                self._report()
            finally:
                self._state.close()
                if self._checkpoint is not None:
                    self._checkpoint.close()
        return self.result

    def _run(self) -> None:
        result = self.result
        try:
            with nullcontext() if self._checkpoint is None else self._checkpoint.interrupts:
                self._explore()
                if self._graph is not None and result.stop is Stop.EXHAUSTED:
                    self._keep()
            if self._graph is not None and result.stop is Stop.EXHAUSTED:
                self._judge_liveness(self._graph)
        except MemoryError:
            # The system refused memory before the limit was reached, and no more is asked for.
            self._end_inside(Stop.MEMORY)
        except LimitReachedError as reached:
            self._rounds.settle()
            self._end_inside(reached.stop or Stop.INTERRUPTED)
        except KeyboardInterrupt:
            self._rounds.settle()
            self._end_inside(self._reached_limit() or Stop.INTERRUPTED)

    def _end_inside(self, stop: Stop) -> None:
        """End the search inside a level, whose new states count as seen; there is no claim about the rest of it."""
        result = self.result
        result.levels += [rest] if (rest := self._history.size - result.states) else []
        result.stop = stop

    def _begin_level(self) -> bool:
        if not self._history.size:
            self._rounds.begin()
        if not self._rounds.left:
            if not self._rounds.following.blocks:
                return False
            self.result.levels.append(self._rounds.begin_level())
            self._report()
        return True

    @property
    def _is_at_a_level(self) -> bool:
        return not self._rounds.following.rows and self._rounds.left == self.result.levels[-1]

    def _expand_level(self) -> None:
        while self._rounds.left:
            self._rounds.expand(self._check_inside)
            self._check_limits()
            self._save_if_due()
        self.result.compiling = False

    def _examine_ends(self) -> None:
        stop_counting(self.result.model)
        while self._rounds.left:
            self._rounds.find_ends(self._check_inside)
            self._check_limits()
            stop = self._reached_limit()
            if stop is not None or (self._checkpoint is not None and self._checkpoint.interrupts.requested):
                raise LimitReachedError(stop)
        self.result.stop = self.result.wanted(until_witnessed=False) or self.result.stop

    def _judge_liveness(self, graph: Graph) -> None:
        """Judge the properties of liveness, one after the other, while time and memory are left."""
        result, moves = self.result, graph.finish()
        memory = result.limits.memory
        bytes_left = None if memory is None else max(0, memory - result.states * graph_liveness.NEEDED)
        room = replace(result.limits.inside_a_level, memory=bytes_left)
        for prop in result.model.liveness:
            self._report()
            stop = room.reached(result)
            if stop is not None:
                result.stop = stop
                return
            graph_liveness.judge(result, prop, graph, moves, self._history)
            self._judged += result.liveness[prop.name].states + result.liveness[prop.name].edges
            self._count_work()

    # -- checkpoints -----------------------------------------------------------------------------------------

    def _resume(self, checkpoint: SearchCheckpoint) -> None:
        waiting = checkpoint.resume(self._state)
        if waiting is not None:
            self._rounds.resume(*waiting)
            # This time counts, but not against the time limit; otherwise a search might be resumed again and again
            # without progress.
            began, self._began = self._began, time.monotonic()
            self.result.seconds_before += self._began - began
            self._work_before = self.tables.functions.work

    def _save_if_due(self) -> None:
        """Save the search between two blocks if a save is due or the search must end; in the latter case, end it."""
        if self._checkpoint is None:
            return
        growth = self._state.visited.growth(2 * self._rounds.candidates)  # the next round may have more
        stop = self._reached_limit() or self._limit_of_memory(growth)
        is_ending = stop is not None or self._checkpoint.interrupts.requested
        if is_ending or self._checkpoint.due:
            self._keep()
        if is_ending:
            raise LimitReachedError(stop)

    def _keep(self) -> None:
        if self._checkpoint is not None:
            self._report()
            self._checkpoint.save(self._rounds.level, self._rounds.following.blocks)

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _reached_limit(self) -> Stop | None:
        return self.result.limits.inside_a_level.reached(self.result)

    def _check_limits(self) -> None:
        """Check the limits between two rounds. A search with a checkpoint is saved before it ends."""
        self._count_work()
        if time.monotonic() - self._reported >= REPORT_EVERY:
            self._report()
        if self._checkpoint is None:
            self._end_at(self._reached_limit())

    def _check_inside(self, growth: int) -> None:
        """Check the limits of time and memory inside a round: every REPORT_EVERY seconds, and before the visited set
        grows by this number of bytes.

        A search with a checkpoint continues to the end of its round.
        """
        if self._checkpoint is None:
            self._end_at(self._limit_of_memory(growth))
        if time.monotonic() - self._reported >= REPORT_EVERY:
            self._report()
            limits = replace(self.result.limits.inside_a_level, work=None)
            if self._checkpoint is None:
                self._end_at(limits.reached(self.result))

    def _end_at(self, stop: Stop | None) -> None:
        if stop is not None:
            raise LimitReachedError(stop)

    def _limit_of_memory(self, growth: int) -> Stop | None:
        """Stop.MEMORY if this number of further bytes would exceed the limit of memory."""
        limit = self.result.limits.memory
        if not growth or limit is None:
            return None
        return Stop.MEMORY if self._resident_growth() + growth > limit else None

    def _resident_growth(self) -> int:
        """The growth of the resident size since the start, in bytes."""
        return self._process.memory_info().rss - self._resident

    def _count_work(self) -> None:
        self.result.work = self._rounds.expanded + self.tables.functions.work - self._work_before + self._judged

    def _report(self) -> None:
        result, self._reported = self.result, time.monotonic()
        result.seconds = result.seconds_before + self._reported - self._began
        result.peak_bytes = max(result.peak_bytes, self._resident_growth())
        result.python_steps, result.python_calls = self.tables.functions.steps, self.tables.functions.calls
        result.python_seconds = self.tables.seconds
        result.spilled_bytes = self._state.waiting.spilled
        result.coverage = self._state.counts.coverage()
        self._state.evaluator.report()
        self._progress(result)


def explore(
    model: Model,
    limits: Limits = Limits(),
    *,
    until_witnessed: bool = False,
    progress: Callable[[Exploration], None] | None = None,
    workers: int = 1,
    checkpoint: Checkpoint | None = None,
    seed: int = SEED,
) -> Exploration:
    """Explore a model by tables, with any number of threads. Raises ModelError, and its subclass CheckpointError.

    The arguments `limits` and `until_witnessed` are those of `plain.explore`. `progress` gets the exploration several
    times a second; if kernels must be compiled, its first call has `compiling` set. Without `progress`, standard error
    has a line about the compilation if it is a terminal. With a `checkpoint`, the search is saved in a folder and can
    be resumed. `seed` is the key of the fingerprints: a search with another seed is an independent check against
    collisions.

        exploration = explore(model, Limits(states=1_000_000, seconds=60.0), workers=2)
        if exploration.exhausted and not exploration.violations:
            print(f"{exploration.states} states, no violation")
    """
    return Search(
        model,
        limits,
        until_witnessed=until_witnessed,
        progress=progress,
        workers=workers,
        checkpoint=checkpoint,
        seed=seed,
    ).run()
