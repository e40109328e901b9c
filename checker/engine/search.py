"""The table engine: breadth-first search, level by level, and each level in rounds of some blocks (`rounds`).

One driver (`Search`) decides about levels, limits, saves, findings and the end. An *exchange* has the parts of the
search and how they expand a level together: one part with threads (`Exchange`), or many on a cluster
(`checker.cluster`). Rules:

- A level is finished before a finding in it ends the search, so that a reported path is shortest.
- A path is rebuilt by the plain engine from ordinals, and its last row must be the one that the tables reached.
- The graph is kept only for properties of liveness, and liveness is judged only after all states were seen.
- A search is saved only between two rounds. A search with a checkpoint that reaches a limit ends only there.
- Work is counted between two rounds, so that it does not depend on the number of threads.
- If a part is lost, all parts go back to the last save, or to the start, so that a loss changes no result.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint.checkpoint_store import SavedDivision, SavedFinding, SavedPart, SavedSearch
from checker.engine.checkpoint.search_checkpoint import SearchFolder
from checker.engine.growth import BOUNDED
from checker.engine.kernels import jit
from checker.engine.liveness import graph_liveness
from checker.engine.model import Model, ModelError, Row
from checker.engine.part import Part, PartReport
from checker.engine.process import Interrupts
from checker.engine.result import COMPILING, CUT_SHORT, SEED, Exploration, Limits, SearchCounts, Stop
from checker.engine.semantics import rebuild, rediscover

REPORT_EVERY = 0.25  # seconds between calls of `progress`
MOST_LOSSES = 10  # without a new level
LOST = "a process of the workers was ended from outside; is there enough memory?"
"""The error where the work of a lost process is not begun again."""
FINISHED = (Stop.EXHAUSTED, Stop.FOUND, Stop.WITNESSED)  # the search ended without a limit

Progress = Callable[[Exploration], None]


def on_terminal(exploration: Exploration) -> None:
    """The default progress callback: a line about the compilation, on a terminal."""
    if exploration.compiling and not exploration.levels and sys.stderr.isatty():
        print(COMPILING, file=sys.stderr, flush=True)


class Machines(Protocol):
    """Workers in other processes (`checker.cluster.Ray`)."""

    def explore(self, request: Request) -> Exploration:
        """Explore breadth-first."""


@dataclass(frozen=True)
class Request:
    """The arguments of `explore`."""

    model: Model
    limits: Limits = Limits()
    workers: int | Machines = 1
    until_witnessed: bool = False
    progress: Progress | None = None
    checkpoint: Checkpoint | None = None
    seed: int = SEED


class LimitReachedError(Exception):
    """A limit was reached inside a level, or a search with a checkpoint must end; `stop` is None for an interrupt."""

    def __init__(self, stop: Stop | None) -> None:
        super().__init__()
        self.stop = stop


class PartLostError(Exception):
    """The process or the machine of a part is gone."""


class PartFinding(NamedTuple):
    """A finding of a part: the position of its property, the ordinals of its path, and a check of the last row.

    `error` is the first error of a function of the model there, if any.
    """

    position: int
    ordinals: list[int]
    is_reached: Callable[[Row], bool]
    error: ModelError | None = None


class Exchange:
    """The parts of a search, with their last reports; here, one part in this process.

    `is_here`: the part ends inside a round, and is saved between any two. Other parts are saved at the beginning of a
    level. `machines` has the name of the machine of each part. Each method raises ModelError, and PartLostError if a
    part is gone.
    """

    is_here = True
    part: Part

    def __init__(self, part: Part | None, parts: int = 1, machines: Sequence[str] = ("",)) -> None:
        if part is not None:
            self.part = part
        self.parts, self.machines = parts, machines
        self.reports: list[PartReport] = []

    def all(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all parts, and wait for the results."""
        return [getattr(self.part, method)(*arguments)]

    # -- a level, which the parts expand alone and with equal results ----------------------------------------

    def advance(self) -> None:
        """Make the next level the present one."""
        self.reports = self.all("advance")

    @property
    def states(self) -> int:
        """The states seen."""
        return self.reports[0].states

    @property
    def left(self) -> int:
        """The rows of the level that were not expanded."""
        return self.reports[0].left

    def expand(self, search: Search) -> bool:
        """Expand a round, or a divided level; return whether the end was reached."""
        self.reports = self.all("expand_round", search.check_inside)
        return True

    def find_ends(self, search: Search) -> bool:
        """Examine a round, or a divided level, for states without a successor; return as `expand`."""
        self.reports = self.all("find_ends", None, search.check_inside)
        return True

    def findings(self, known: Callable[[int], bool]) -> Iterator[PartFinding]:
        """The first finding of each property that is not known by its position."""
        for position, state in self.reports[0].hits:
            if not known(position):
                ordinals, values = self.part.route(state)
                yield PartFinding(position, ordinals, values.__eq__, self.part.tables.error)

    # -- saves and losses ------------------------------------------------------------------------------------

    def save(self, number: int) -> tuple[list[SavedPart], SavedDivision | None]:
        """Save all parts. Raises OSError."""
        return self.all("save", number), None

    def restore(self, saved: SavedSearch) -> None:
        """Go back to a save. Raises CheckpointError."""
        self.reports = [self.part.restore(saved.parts[0], saved.number, is_at_level=saved.is_at_level)]

    def go_back(self) -> list[str]:
        """Replace all lost parts, and forget the division; return the names of those that were lost."""
        return []

    def in_words(self, _states: int | None = None, /) -> str:
        """The parts and the bytes sent, for the progress or, with the number of states, for the end; else empty."""
        return ""

    def remove(self) -> None:
        """Remove the files of all parts. Raises OSError."""
        self.part.remove()

    def close(self) -> None:
        """End all parts."""
        self.part.close()


class Search:
    """One exploration by tables; `run` may be called once."""

    def __init__(
        self,
        request: Request,
        exchange: Exchange,
        *,
        save_every: float | None = None,
        folder: SearchFolder | None = None,
        premise_runs: int = 0,
    ) -> None:
        self.result = Exploration(request.model, "tables", request.limits, seed=request.seed)
        self.exchange, self._folder, self._save_every = exchange, folder, save_every
        self._until_witnessed, self._progress = request.until_witnessed, request.progress or on_terminal
        self._interrupts = Interrupts()
        self._began = self._reported = self._saved_at = time.monotonic()
        self._judged = 0  # states and edges that liveness examined
        self._premise_runs = premise_runs
        self.premises: dict[str, list[list[int]]] = {}
        """Runs to states with the premise of a property, at most `premise_runs` each; see `Evaluator.premises`."""
        self._found: list[SavedFinding] = []
        self._saved: SavedSearch | None = None
        self._failed = ""
        self._ending: Stop | None = None  # the limit that `must_end` saw last
        self._depth = 0  # of the level
        self._losses: list[str] = []
        self._losses_here, self._deepest = 0, -1

    def run(self) -> Exploration:
        """Explore until all states were seen or there is a reason to stop. Raises ModelError and CheckpointError."""
        exchange, result = self.exchange, self.result
        try:
            if exchange.is_here and not jit.is_compiled(with_graph=bool(result.model.liveness)):
                result.compiling = True
                self._progress(result)
            self._resume()
            self._run()
            if exchange.is_here and result.stop in BOUNDED:
                with suppress(MemoryError):
                    result.growth = exchange.part.growing_content(self._depth)
            if self._premise_runs and result.stop not in CUT_SHORT:
                state = exchange.part.state
                self.premises = state.evaluator.premises(state.history, self._premise_runs)
            self._finish()
        except OSError as error:
            why = f"the temporary folder cannot take more ({error.strerror}); TMPDIR names another"
            raise ModelError(why) from None
        finally:
            try:
                self._report()
            finally:
                self._close()
        return result

    def _run(self) -> None:
        exchange, result = self.exchange, self.result
        defers = self._folder is not None or not exchange.is_here
        try:
            with self._interrupts if defers else nullcontext():
                while not self._explored():
                    self._go_back()
                if result.model.liveness and result.stop is Stop.EXHAUSTED:
                    self._save()
            if result.model.liveness and result.stop is Stop.EXHAUSTED:
                self._judge_liveness()
        except MemoryError:
            # The system refused memory before the limit was reached, and no more is asked for.
            self._end_inside(Stop.MEMORY)
        except LimitReachedError as reached:
            self._end_inside(reached.stop or Stop.INTERRUPTED)
        except KeyboardInterrupt:
            self._end_inside(self._reached_limit() or Stop.INTERRUPTED)

    def _end_inside(self, stop: Stop) -> None:
        """End the search inside a level, whose new states count as seen; there is no claim about the rest of it."""
        if self.exchange.is_here:
            if stop is not Stop.MEMORY:
                self.exchange.part.rounds.settle()
            self.exchange.reports = self.exchange.all("report")
        self._note_findings()
        self.result.levels += [rest] if (rest := self._waiting) else []
        self.result.stop = stop

    # -- levels ----------------------------------------------------------------------------------------------

    def _explored(self) -> bool:
        """Explore level by level until there is a reason to stop; return False if a part was lost."""
        try:
            if not self.exchange.reports:
                self.exchange.reports = self.exchange.all("begin")
                self._note_findings()
            self._explore()
        except PartLostError:
            return False
        return True

    def _explore(self) -> None:
        result = self.result
        while self._begin_level():
            if self.exchange.left == result.levels[-1]:
                stop = result.wanted(self._until_witnessed) or result.limits.reached(result)
                is_ending = stop is not None or self._interrupts.requested
                if stop not in FINISHED and (self._is_due if self._folder is None else is_ending or self._is_due):
                    self._save()
                if stop is not None:
                    result.stop = stop
                    if stop is Stop.DEPTH and result.model.finals:
                        self._examine_ends()
                    return
                self._end_if_reached(None)
            while self.exchange.left:
                self._step(self.exchange.expand)
                if self.exchange.is_here:
                    self._save_and_end()
            result.compiling = False
        result.stop = result.wanted(self._until_witnessed) or Stop.EXHAUSTED

    def _begin_level(self) -> bool:
        """Begin the next level, unless the search is inside one; return whether there is one."""
        if not self.exchange.left:
            if not (waiting := self._waiting):
                return False
            self.result.levels.append(waiting)
            self.exchange.advance()
            self._depth = self.result.depth
            self._report()
        return True

    @property
    def _waiting(self) -> int:
        """The rows of the next level so far."""
        return self.exchange.states - self.result.states if self.exchange.reports else 0

    def _step(self, step: Callable[[Search], bool]) -> None:
        """Take a step inside a level, and show it."""
        is_whole = step(self)
        self._note_findings()
        self.note_round()
        if not is_whole:
            raise LimitReachedError(self._ending)

    def _examine_ends(self) -> None:
        """Examine the level at the depth given for states without a successor, after the search was saved."""
        while self.exchange.left:
            self._step(self.exchange.find_ends)
            self._end_if_reached(self._reached_limit())
        self.result.stop = self.result.wanted(until_witnessed=False) or self.result.stop

    def _note_findings(self) -> None:
        """Rebuild the paths of new findings. Raises ModelError if both engines do not reach the same row.

        The error of a wrong function of the model is raised here, with the state.
        """
        known = {finding.position for finding in self._found}
        for finding in self.exchange.findings(known.__contains__):
            saved = SavedFinding(finding.position, finding.ordinals)
            self._add_finding(saved, finding.is_reached, finding.error)

    def _add_finding(
        self,
        finding: SavedFinding,
        is_reached: Callable[[Row], bool] = lambda _: True,
        error: ModelError | None = None,
    ) -> None:
        model, prop = self.result.model, self.result.model.property_at(finding.position)
        discovery = rediscover(model, prop, rebuild(model, finding.ordinals, is_reached), error)
        before = self.result.found.get(prop.name)
        if before is None or discovery.depth < before.depth:  # a state that raises when expanded, after one when judged
            self.result.found[prop.name] = discovery
        self._found.append(finding)

    def _judge_liveness(self) -> None:
        """Judge the properties of liveness, one after the other, while time and memory are left."""
        result, state = self.result, self.exchange.part.state
        assert state.graph is not None
        moves, memory = state.graph.finish(), result.limits.memory
        bytes_left = None if memory is None else max(0, memory - result.states * graph_liveness.NEEDED)
        room = replace(result.limits.inside_a_level, memory=bytes_left)
        for prop in result.model.liveness:
            self._report()
            stop = room.reached(result)
            if stop is not None:
                result.stop = stop
                return
            graph_liveness.judge(result, prop, state.graph, moves, state.history)
            self._judged += result.liveness[prop.name].states + result.liveness[prop.name].edges
            self._update()

    # -- saves and losses ------------------------------------------------------------------------------------

    def _resume(self) -> None:
        """Continue the search in the folder, if there is one. Raises CheckpointError."""
        exchange, folder, began = self.exchange, self._folder, self._began
        self._saved = None if folder is None else folder.load(self.result, exchange.parts, is_here=exchange.is_here)
        if folder is None or self._saved is None:
            return
        try:
            self._restore(self._saved)
        except PartLostError:
            self._go_back()
        except CheckpointError:
            raise
        except ModelError as error:
            raise CheckpointError(f"{folder.folder}: a finding is not that of the model ({error})") from None
        # This time counts, but not against the time limit; otherwise a search might be resumed again and again without
        # progress.
        self._began = time.monotonic()
        self.result.seconds_before = self._saved.seconds + self._began - began

    def _restore(self, saved: SavedSearch) -> None:
        self.exchange.restore(saved)
        self.result.levels = list(saved.levels[:-1] if saved.is_at_level else saved.levels)
        self.result.found, self._found = {}, []
        for finding in saved.found:
            self._add_finding(finding)

    def _go_back(self) -> None:
        """Replace lost parts, and go back to the last save or to the start. Raises ModelError after too many losses."""
        depth = self.result.depth
        if depth > self._deepest:
            self._deepest, self._losses_here = depth, 0
        while True:
            self._losses_here += 1
            if self._losses_here > MOST_LOSSES:
                raise ModelError(f"workers were lost {MOST_LOSSES} times at depth {depth}; is there enough memory?")
            try:
                lost = self.exchange.go_back()
                if self._saved is None:
                    self.result.levels, self.result.found, self._found = [], {}, []
                else:
                    self._restore(self._saved)
            except PartLostError:
                continue
            place = "the start" if self._saved is None else f"depth {len(self._saved.levels) - 1}"
            names = ", ".join(lost) or "none"
            self._losses.append(f"worker lost at depth {max(depth, 0)} and replaced: {names}; continued from {place}")
            return

    def _save(self) -> None:
        """Save the search between two rounds, if it is kept anywhere. A failure is noted."""
        if self._save_every is None:
            return
        self._report()
        number = 1 if self._saved is None else self._saved.number + 1
        try:
            parts, division = self.exchange.save(number)
            if parts:
                seconds, levels = self.result.seconds, list(self.result.levels)
                saved = SavedSearch(number, seconds, levels, list(self._found), parts, division)
                if self._folder is not None:
                    self._folder.write(saved)
                self._saved, self._failed = saved, ""
                self.exchange.all("forget", number)
        except OSError as error:
            before = None if self._saved is None else f"the last checkpoint there has {self._saved.states:,} states"
            where = "" if self._folder is None else f"{self._folder.folder}: "
            why = f"the search could not be kept ({error.strerror or error})"
            self._failed = f"{where}{why}; {before or 'nothing is kept there'}"
        self._saved_at = time.monotonic()
        self._update_notes()

    @property
    def _is_due(self) -> bool:
        return self._save_every is not None and time.monotonic() - self._saved_at >= self._save_every

    def _save_and_end(self) -> None:
        """End the search between two rounds if it must; save it before, or if a save is due."""
        stop = self._reached_limit()
        if stop is not None or self._interrupts.requested or self._is_due:
            self._save()
        self._end_if_reached(stop)

    def _finish(self) -> None:
        """Remove the save of a search that ended without a limit; otherwise describe the save in the notes."""
        folder, saved = self._folder, self._saved
        if folder is None:
            self._update_notes()
            return
        if self.result.stop in FINISHED:
            try:
                folder.remove()
                self.exchange.remove()
                self._failed = ""
            except OSError as error:
                self._failed = f"{folder.folder}: what was kept cannot be removed ({error.strerror})"
        elif saved is not None and not self._failed:
            states = f"{saved.states:,}"
            kept = f"kept in {folder.folder}: a search that resumes there goes on from {states} states"
            folder.note = "; ".join(note for note in (folder.note, kept) if note)
        self._update_notes()

    def _update_notes(self) -> None:
        note = "" if self._folder is None else self._folder.note
        self.result.notes = [text for text in (note, self._failed) if text]

    def _close(self) -> None:
        if summary := self.exchange.in_words(self.result.states):
            self.result.workers = [summary, *self._losses]
        if self._folder is None or not self._folder.is_needed:
            with suppress(OSError):  # they are temporary
                self.exchange.remove()
        self.exchange.close()
        if self._folder is not None:
            self._folder.store.close()

    # -- limits ----------------------------------------------------------------------------------------------

    def check_inside(self, growth: int) -> None:
        """Check the limits of time and memory inside a round: every REPORT_EVERY seconds, and before the visited set
        grows by this number of bytes.

        A search with a checkpoint continues to the end of its round.
        """
        limits = self.result.limits
        is_free = self._folder is None
        if is_free and growth and limits.memory is not None and self.exchange.part.growth + growth > limits.memory:
            raise LimitReachedError(Stop.MEMORY)
        if time.monotonic() - self._reported >= REPORT_EVERY:
            self._report()
            stop = replace(limits.inside_a_level, work=None).reached(self.result)
            if is_free and stop is not None:
                raise LimitReachedError(stop)

    def must_end(self) -> bool:
        """Whether a limit inside a level was reached (the reason for the end), or an interrupt requested."""
        self._ending = self._reached_limit()
        return self._interrupts.requested or self._ending is not None

    def note_round(self) -> None:
        """Show the counts after a round."""
        self._update()
        if time.monotonic() - self._reported >= REPORT_EVERY:
            self._report()

    def _end_if_reached(self, stop: Stop | None) -> None:
        if stop is not None or self._interrupts.requested:
            raise LimitReachedError(stop)

    def _reached_limit(self) -> Stop | None:
        limits, reports = self.result.limits, self.exchange.reports
        if (stop := limits.inside_a_level.reached(self.result)) is not None or limits.memory is None:
            return stop
        planned = self._largest([report.growth + report.planned for report in reports])
        return Stop.MEMORY if planned > limits.memory and any(report.planned for report in reports) else None

    def _largest(self, sizes: Sequence[int]) -> int:
        """The bytes of the largest machine, from those of its parts."""
        total: dict[str, int] = {}
        for machine, size in zip(self.exchange.machines, sizes, strict=False):
            total[machine] = total.get(machine, 0) + size
        return max(total.values(), default=0)

    def _update(self) -> None:
        """Set the counts of the result."""
        result, reports, counts = self.result, self.exchange.reports, SearchCounts()
        for report in reports:
            counts.add(report)
        for count in fields(SearchCounts):
            setattr(result, count.name, getattr(counts, count.name))
        result.python_seconds = max((report.python_seconds for report in reports), default=0.0)
        result.work += self._judged
        result.peak_bytes = max(result.peak_bytes, self._largest([report.growth for report in reports]))

    def _report(self) -> None:
        result, self._reported = self.result, time.monotonic()
        result.seconds = result.seconds_before + self._reported - self._began
        if self.exchange.is_here:
            self.exchange.reports = self.exchange.all("report")
        self._update()
        if line := self.exchange.in_words():
            result.workers = [f"{line}, {len(self._losses)} losses"]
        self._progress(result)


# -- the entry -----------------------------------------------------------------------------------------------


def by_threads(request: Request, *, symmetric: bool = False, premise_runs: int = 0) -> Search:
    """The breadth-first search by threads of this process; `symmetric` counts renamed states once."""
    assert isinstance(request.workers, int)
    checkpoint, model, seed = request.checkpoint, request.model, request.seed
    folder = None if checkpoint is None else SearchFolder(checkpoint, model, seed, symmetric=symmetric)
    part = Part(
        model, seed, workers=max(1, request.workers), memory=request.limits.memory, symmetric=symmetric,
        files=None if folder is None else folder.store.files,
    )  # fmt: skip
    every = None if checkpoint is None else checkpoint.every
    return Search(request, Exchange(part), folder=folder, save_every=every, premise_runs=premise_runs)


class Frontier(Protocol):
    """The order of an exploration: `BREADTH_FIRST`, `SYMMETRIC` (`symmetric_search`) or `RandomWalks` (a swarm)."""

    def explore(self, request: Request) -> Exploration:
        """Explore as requested. Raises ModelError, also for a request that cannot be met."""


class _BreadthFirst:
    def explore(self, request: Request) -> Exploration:
        if isinstance(request.workers, int):
            return by_threads(request).run()
        request.model.initial()  # raises an error if there are several first states, which no cluster divides
        return request.workers.explore(request)


BREADTH_FIRST: Frontier = _BreadthFirst()


def explore(
    model: Model,
    limits: Limits = Limits(),
    *,
    frontier: Frontier = BREADTH_FIRST,
    workers: int | Machines = 1,
    until_witnessed: bool = False,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    seed: int = SEED,
) -> Exploration:
    """Explore a model by tables. Raises ModelError, and its subclass CheckpointError.

    `workers` is a number of threads, or a cluster (`checker.cluster.Ray`). The arguments `limits` and `until_witnessed`
    are those of `plain.explore`. `progress` gets the exploration several times a second; if kernels must be compiled,
    its first call has `compiling` set. Without `progress`, standard error has a line about the compilation if it is a
    terminal. With a `checkpoint`, the search is saved in a folder and can be resumed. `seed` is the key of the
    fingerprints: a search with another seed is an independent check against collisions.

        exploration = explore(model, Limits(states=1_000_000, seconds=60.0), workers=2)
        if exploration.exhausted and not exploration.violations:
            print(f"{exploration.states} states, no violation")
    """
    return frontier.explore(Request(model, limits, workers, until_witnessed, progress, checkpoint, seed))
