"""The driver of a search on a cluster: it divides the levels, numbers the pieces, and replaces lost parts.

The driver holds counts only; rows and fingerprints stay at the parts and go from part to part. Rules:

- A level is finished before a finding in it ends the search. A limit inside a level ends it between two rounds.
- A search is saved only at the beginning of a level. After a loss all parts go back to the last save, or to the start,
  so that a loss changes no result.
- The calls of one part are carried out in the order in which they are started here. The rows of the next two rounds of
  a divided level are expanded before the new states of a round are built: while a part expands them, the candidates and
  the flags of the others arrive.
- The first finding of a property is the one with the least number in the order of the whole search, so that it does not
  depend on the number of parts.
- The path of a finding is rebuilt here by the plain engine, and its last row must be the one that the part reached.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from checker.cluster.messages import PartLostError, PartReport, Pieces, Ref, Transport, dealt, joined
from checker.cluster.saved_search import SavedFinding, SavedFolder, SavedSearchPosition
from checker.cluster.search_part import row_digest
from checker.engine.checkpoint.search_checkpoint import FINISHED, kept_note
from checker.engine.model import Model, ModelError, Row
from checker.engine.process import Interrupts
from checker.engine.result import SEED, Coverage, Evaluations, Exploration, Limits, Stop
from checker.engine.search import LevelSearch, LimitReachedError
from checker.engine.semantics import rebuild, rediscover


def add_reports(
    result: Exploration, reports: Sequence[PartReport], machines: Sequence[str], *, is_divided: bool = True
) -> None:
    """Set the counts of a result. Before the search is divided, all parts have the same counts."""
    part_reports = reports if is_divided else reports[:1]
    result.transitions = sum(each.transitions for each in part_reports)
    result.deadlocks = sum(each.deadlocks for each in part_reports)
    result.coverage = _coverage(part_reports)
    for place, prop in enumerate(result.model.properties):
        pairs = [each.evaluations[place] for each in part_reports if each.evaluations]
        result.evaluations[prop.name] = Evaluations(*(sum(pair[n] for pair in pairs) for n in (0, 1)))
    result.work = sum(report.work for report in reports)
    result.python_steps, result.python_calls = (
        sum(report.steps for report in reports),
        sum(report.calls for report in reports),
    )
    result.python_seconds = max([report.seconds for report in reports], default=0.0)
    result.spilled_bytes = sum(report.spilled for report in reports)
    result.peak_bytes = max(result.peak_bytes, _largest(machines, [report.growth for report in reports]))


def planned_bytes(reports: Sequence[PartReport], machines: Sequence[str]) -> int:
    """The memory of the largest machine after the next round: the growth of its workers, with that of visited sets.

    It is 0 if no visited set will grow.
    """
    growing = any(report.planned for report in reports)
    return _largest(machines, [report.growth + report.planned for report in reports]) if growing else 0


def _largest(machines: Sequence[str], sizes: Sequence[int]) -> int:
    total: defaultdict[str, int] = defaultdict(int)
    for machine, size in zip(machines, sizes, strict=False):
        total[machine] += size
    return max(total.values(), default=0)


def _coverage(reports: Sequence[PartReport]) -> dict[str, Coverage]:
    total: defaultdict[str, Coverage] = defaultdict(Coverage)
    for report in reports:
        for action, (fired, new) in report.coverage.items():
            total[action].fired += fired
            total[action].new += new
    return dict(total)


def expand_rounds(
    transport: Transport,
    rounds: Iterable[Pieces],
    must_end: Callable[[], bool],
    note: Callable[[int, PartReport], None],
) -> tuple[Pieces, bool]:
    """Expand the rounds of a level; return the pieces of the next level, and whether all rounds were expanded.

    `note` gets the report of each part after each round. No round begins after `must_end` is true; those under way are
    finished. Raises PartLostError and ModelError.
    """
    parts = range(transport.parts)
    queue = deque(rounds)
    expansions: deque[tuple[Pieces, list[list[Ref]]]] = deque()
    built: deque[tuple[Pieces, list[Ref]]] = deque()
    levels: list[Pieces] = []

    def expand_next() -> None:
        if queue and not must_end():
            pieces = queue.popleft()
            expansions.append((pieces, [transport.call(part, "expand", pieces, returns=len(parts)) for part in parts]))

    expand_next()
    while expansions:
        expand_next()
        pieces, messages = expansions.popleft()
        flags = [
            transport.call(owner, "probe", pieces, *(candidates[owner] for candidates in messages), returns=len(parts))
            for owner in parts
        ]
        expand_next()
        built.append((pieces, [transport.call(part, "build", *(flag[part] for flag in flags))[0] for part in parts]))
        while len(built) > (1 if expansions else 0):
            levels.append(_counted(transport, *built.popleft(), note))
    return joined(levels), not queue


def _counted(transport: Transport, pieces: Pieces, built: list[Ref], note: Callable[[int, PartReport], None]) -> Pieces:
    sizes = np.zeros(len(pieces.parts), np.int64)
    for part, (counts, report) in enumerate(transport.get(built)):
        sizes[pieces.parts == part] = counts
        note(part, report)
    return Pieces(pieces.parts, sizes).without_empty()


class Divided(NamedTuple):
    """An expanded level: its pieces, those of the next level, and the number of its first state in each part."""

    pieces: Pieces
    following: Pieces
    firsts: Sequence[int]

    def place(self, part: int, state: int) -> tuple[bool, int]:
        """The place of a state of a part in the order: whether it is in the next level, and the place there."""
        rows, row = int(self.pieces.of(part).sum()), state - self.firsts[part]
        return (True, self.following.place(part, row - rows)) if row >= rows else (False, self.pieces.place(part, row))


class SearchFindings:
    """The findings in a result, and how each is saved."""

    def __init__(self, result: Exploration, transport: Transport) -> None:
        self._result, self._transport = result, transport
        self.saved: list[SavedFinding] = []

    def go_back(self, saved: Sequence[SavedFinding]) -> None:
        """Replace the findings by earlier ones. Raises ModelError."""
        self._result.found, self.saved = {}, []
        for finding in saved:
            self._add(finding)

    def note(self, reports: Sequence[PartReport], level: Divided | None = None) -> None:
        """Record the first finding of each property in an expanded level. Raises ModelError.

        Without a `level`, the search is not divided, and the numbers of a part are those of the search.
        """
        first: dict[int, tuple[tuple[bool, int], int, int]] = {}
        for part, report in enumerate(reports):
            for position, state in report.hits:
                if self._result.model.properties[position].name not in self._result.found:
                    place = (False, state) if level is None else level.place(part, state)
                    first[position] = min(first.get(position, (place, part, state)), (place, part, state))
        for position, (_, part, state) in sorted(first.items()):
            self._record(position, part, state)

    def _record(self, position: int, part: int, state: int) -> None:
        (route,) = self._transport.get(self._transport.call(part, "route", state))
        self._add(SavedFinding(position, route.ordinals), lambda row: row_digest(row) == route.digest)

    def _add(self, finding: SavedFinding, is_reached: Callable[[Row], bool] = lambda _: True) -> None:
        model = self._result.model
        prop = model.properties[finding.position]
        self._result.found[prop.name] = rediscover(model, prop, rebuild(model, finding.ordinals, is_reached))
        self.saved.append(finding)


DIVIDED = 1 << 12  # rows for each part in the first level that is divided
DEALT = 8  # rows in a piece of that level
PIECE = 1 << 12  # rows in the largest piece of a later level
ROUND = 1 << 17  # rows of a round, for each part
SAVE_EVERY = 60.0  # seconds
MOST_LOSSES = 10  # without a new level
REPORT_EVERY = 0.25  # seconds


class DistributedSearch(LevelSearch):
    """One exploration by several parts; `run` may be called once."""

    def __init__(
        self,
        model: Model,
        limits: Limits,
        transport: Transport,
        *,
        until_witnessed: bool = False,
        progress: Callable[[Exploration], None] | None = None,
        seed: int = SEED,
        save_every: float | None = SAVE_EVERY,
        saved: SavedFolder | None = None,
    ) -> None:
        result = Exploration(model, "tables", limits, seed=seed)
        super().__init__(result, until_witnessed=until_witnessed, progress=progress or (lambda _: None))
        self._transport = transport
        self._save_every, self._folder = save_every, saved
        self._interrupts = Interrupts()
        self._machines = transport.machines()
        self._position: SavedSearchPosition | None = None
        self._findings = SearchFindings(self.result, transport)
        self._saved_at = time.monotonic()
        self._losses: list[str] = []
        self._failed, self._resumed = "", ""
        self._sent = 0  # bytes, before the last loss
        self._losses_here, self._deepest = 0, -1
        self._imbalance = 1.0  # of the largest level
        self._begin_anew()

    def run(self) -> Exploration:
        """Explore until all states were seen or there is a reason to stop. Raises ModelError."""
        try:
            with self._interrupts:
                self._resume()
                while not self._explored():
                    self._go_back()
        except KeyboardInterrupt:
            self.result.stop = Stop.INTERRUPTED
        except MemoryError:
            self.result.stop = Stop.MEMORY  # the system refused memory to a part before the limit was reached
        finally:
            self._report()
        self._note()
        return self.result

    # -- levels ----------------------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        self.result.levels = []
        self._findings.go_back([])
        self._reports: list[PartReport] = []
        self._pieces: Pieces | None = None  # of the present level; None until the search is divided
        self._firsts = [0] * self._transport.parts  # the number of the first state of the level in each part
        self._waiting = 0  # rows of the next level
        self._is_restored = False

    def _explored(self) -> bool:
        """Explore level by level until there is a reason to stop; return False if a part was lost."""
        try:
            if not self._is_restored:
                self._reports, self._waiting = self._all("begin"), 1
                self._findings.note(self._reports[:1])
            self._explore()
        except PartLostError:
            return False
        except LimitReachedError as reached:
            self.result.levels += [self._waiting] if self._waiting else []
            self.result.stop = reached.stop or Stop.INTERRUPTED
        return True

    def _begin_level(self) -> bool:
        if not self._waiting:
            return False
        self.result.levels.append(self._waiting)
        self._report()
        if not self._is_restored:
            self._all("advance")
        return True

    def _keep(self) -> None:
        if self._folder is not None and not self._is_restored:
            self._save()

    def _expand_level(self) -> None:
        if not self._is_restored:
            self._divide_if_large()
            if self._save_every is not None and time.monotonic() - self._saved_at >= self._save_every:
                self._save()
        self._is_restored = False
        is_whole = self._expand_alone() if self._pieces is None else self._expand_divided(self._pieces.cut(PIECE))
        if not is_whole:
            raise LimitReachedError(self._reached_limit())

    def _expand_divided(self, pieces: Pieces) -> bool:
        """Expand the level by all parts; return whether the end was reached."""
        rounds = pieces.rounds(ROUND * self._transport.parts)
        following, finished = expand_rounds(self._transport, rounds, self._must_end, self._note_round)
        self._findings.note(self._reports, Divided(pieces, following, self._firsts))
        if following.rows >= max(self.result.levels):
            self._imbalance = following.imbalance(self._transport.parts)
        self._firsts = [first + int(pieces.of(part).sum()) for part, first in enumerate(self._firsts)]
        self._pieces, self._waiting = following, following.rows
        return finished

    def _examine_ends(self) -> None:
        result, pieces = self.result, self._pieces
        rounds = [None] if pieces is None else pieces.rounds(ROUND * self._transport.parts)
        for part in rounds:
            if self._must_end():
                result.stop = self._reached_limit() or Stop.INTERRUPTED
                break
            self._reports = self._all("find_ends", part)
            self._report()
        self._findings.note(
            self._reports[:1] if pieces is None else self._reports,
            None if pieces is None else Divided(pieces, joined([]), self._firsts),
        )
        if result.stop is Stop.DEPTH:
            result.stop = result.wanted(until_witnessed=False) or result.stop

    def _expand_alone(self) -> bool:
        before = self._reports[0].states
        self._reports = self._all("expand_alone")
        self._findings.note(self._reports[:1])
        self._firsts = [self._firsts[0] + self._waiting] * self._transport.parts
        self._waiting = self._reports[0].states - before
        self._report()
        return not self._must_end()

    def _divide_if_large(self) -> None:
        """Divide the level if it is the first that is large enough."""
        rows, parts = self._waiting, self._transport.parts
        if self._pieces is None and rows >= DIVIDED * parts:
            self._pieces = dealt(rows, DEALT, parts)
            self._all("divide", self._pieces)
            self._reports = self._all("report")

    def _note_round(self, part: int, report: PartReport) -> None:
        self._reports[part] = report
        if time.monotonic() - self._reported >= REPORT_EVERY:
            self._report()

    def _call(self, part: int, method: str, *arguments: Any, returns: int = 1) -> list[Ref]:
        return self._transport.call(part, method, *arguments, returns=returns)

    def _all(self, method: str, *arguments: Any) -> list[Any]:
        parts = range(self._transport.parts)
        return self._transport.get([self._call(part, method, *arguments)[0] for part in parts])

    # -- losses ----------------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Save all parts at the beginning of a level, once the search is divided. A failure is noted."""
        if self._pieces is None:
            return
        number = 1 if self._position is None else self._position.number + 1
        try:
            position = SavedSearchPosition(
                number=number,
                parts=self._all("save", number),
                levels=self.result.levels[:-1],
                waiting=self._waiting,
                found=list(self._findings.saved),
                piece_parts=self._pieces.parts.tolist(),
                piece_sizes=self._pieces.sizes.tolist(),
                firsts=list(self._firsts),
            )
            if self._folder is not None:
                self._folder.save(position, time.monotonic() - self._began + self.result.seconds_before)
            self._position, self._failed = position, ""
        except OSError as error:
            self._failed = f"the search could not be saved at depth {self.result.depth} ({error.strerror or error})"
        self._saved_at = time.monotonic()

    def _resume(self) -> None:
        """Continue the search in the folder, if there is one. Raises CheckpointError."""
        self._position = None if self._folder is None else self._folder.load(self._transport.parts, self.result)
        if self._position is not None:
            try:
                self._restore(self._position)
            except PartLostError:
                self._go_back()
            self._resumed = f"resumed from {self._waiting + sum(self.result.levels):,} states"
            self._began = time.monotonic()

    def _go_back(self) -> None:
        """Replace lost parts, and go back to the last save or to the start. Raises ModelError if losses go on."""
        depth = self.result.depth
        self._sent += sum(report.sent for report in self._reports)
        if depth > self._deepest:
            self._deepest, self._losses_here = depth, 0
        while True:
            self._losses_here += 1
            if self._losses_here > MOST_LOSSES:
                raise ModelError(f"workers were lost {MOST_LOSSES} times at depth {depth}; is there enough memory?")
            try:
                lost = self._transport.replace_lost()
                if self._position is None:
                    self._begin_anew()
                else:
                    self._restore(self._position)
            except PartLostError:
                continue
            names = ", ".join(f"{part + 1} on {self._machines[part]}" for part in lost) or "none"
            place = "the start" if self._position is None else f"depth {len(self._position.levels)}"
            self._losses.append(f"worker lost at depth {max(depth, 0)} and replaced: {names}; continued from {place}")
            self._machines = self._transport.machines()
            return

    def _restore(self, position: SavedSearchPosition) -> None:
        parts = [self._call(part, "restore", saved)[0] for part, saved in enumerate(position.parts)]
        self._reports = self._transport.get(parts)
        self.result.levels = list(position.levels)
        self._findings.go_back(position.found)
        self._pieces, self._firsts = position.pieces, list(position.firsts)
        self._waiting, self._is_restored = position.waiting, True

    # -- bookkeeping -----------------------------------------------------------------------------------------

    def _reached_limit(self) -> Stop | None:
        memory = self.result.limits.memory
        if memory is not None and planned_bytes(self._reports, self._machines) > memory:
            return Stop.MEMORY
        return self.result.limits.inside_a_level.reached(self.result)

    def _must_end(self) -> bool:
        """Whether a limit inside a level was reached, or an interrupt requested."""
        return self._interrupts.requested or self._reached_limit() is not None

    def _report(self) -> None:
        result, self._reported = self.result, time.monotonic()
        result.seconds = result.seconds_before + self._reported - self._began
        add_reports(result, self._reports, self._machines, is_divided=self._pieces is not None)
        result.workers = [self._line()]
        self._progress(result)

    def _note(self) -> None:
        states, size = max(1, self.result.states), self._bytes_sent()
        self.result.workers = [
            f"{self._transport.parts} on {self._transport.description}; {size:,} bytes sent, {size / states:.1f} "
            f"a state; in the largest level, one had {self._imbalance:.2f} times an equal share",
            *self._losses,
        ]
        self.result.notes = [text for text in (self._resumed, self._failed, self._folder_note()) if text]

    def _bytes_sent(self) -> int:
        return self._sent + sum(report.sent for report in self._reports)

    def _line(self) -> str:
        parts, growth = self._transport.parts, max([report.growth for report in self._reports], default=0)
        size = self._bytes_sent()
        return f"{parts} workers, {len(self._losses)} losses, {growth >> 20:,} MiB in one, {size >> 20:,} MiB sent"

    def _folder_note(self) -> str:
        """Describe what is kept in the folder, after a search that ended; without a limit, nothing is."""
        folder = self._folder
        if folder is None:
            return ""
        if self.result.stop in FINISHED:
            folder.remove()
        return kept_note(folder.folder, folder.states) if folder.is_needed else ""
