"""A part of a search: its tables, its rows, and its share of the visited set. A search by threads has one part.

A part explores level by level, in rounds. Its methods are called one after the other (`checker.engine.search`), in this
process or in another. A part with files can be saved there and restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from checker.engine.checkpoint import CheckpointError
from checker.engine.checkpoint.checkpoint_store import AGAIN, SavedFiles, SavedPart, Source
from checker.engine.checkpoint.search_checkpoint import ReplayableTables, SavedState
from checker.engine.growth import Growth
from checker.engine.liveness.graph_liveness import Graph
from checker.engine.model import Model
from checker.engine.result import Exploration, Limits, SearchCounts
from checker.engine.rounds import Rounds, SearchState, unchecked
from checker.engine.states.frontier import RecordFile
from checker.engine.steps import stop_counting
from checker.engine.tables import Tables

STATES, QUESTIONS, MARKS = "states", "questions", "marks"
"""The files of a part that grow: the origins of its states, the questions of its tables, and those of the graph."""

Array = np.ndarray[Any, Any]


class PartHit(NamedTuple):
    """The first finding of a property in a part: the position of the property, and the number of the state there."""

    position: int
    state: int


@dataclass(kw_only=True)
class PartReport(SearchCounts):
    """The counts of a part.

    `states` are those in its history, and `left` the rows of the level that were not expanded. `growth` is the growth
    of the resident memory of the part's process, `planned` the further growth of its visited set in the next round, and
    `sent` the bytes that the part sent to others.
    """

    states: int
    left: int
    hits: list[PartHit] = field(default_factory=list)
    growth: int
    planned: int
    sent: int = 0


class Part:
    """The only part of a search, or one of `parts`. Its methods raise ModelError."""

    tables_of_saved: type[ReplayableTables] = ReplayableTables

    def __init__(
        self,
        model: Model,
        seed: int,
        *,
        parts: int = 1,
        workers: int = 1,
        memory: int | None = None,
        files: SavedFiles | None = None,
        symmetric: bool = False,
    ) -> None:
        self._process = psutil.Process()
        self._resident = self._process.memory_info().rss
        self._model, self._seed, self._parts, self._workers, self._memory = model, seed, parts, workers, memory
        self.files = files
        is_saved = files is not None
        kind = self.tables_of_saved if is_saved else Tables
        self.tables = kind(model, seed, symmetric=symmetric)
        self._work_before = self.tables.functions.work  # before this sitting
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.result = Exploration(self._model, "tables", Limits(memory=self._memory), seed=self._seed)
        self.state = SearchState.of(
            self.result, self.tables, self._workers, fingerprints=self._has_fingerprints, parts=self._parts
        )
        self.rounds = Rounds(self.state)
        self._ids_before: list[int] = []  # of the tables when each level began, since the start or the resumption
        self._saved = SavedState(self.state, Path() if self.files is None else self.files.folder)

    @property
    def _has_fingerprints(self) -> bool:
        """Whether the history has the fingerprints of the visited set, which are saved with it."""
        return self.files is not None

    def begin(self) -> PartReport:
        """Start from the initial state, also after another start."""
        self._clear()
        self.rounds.begin()
        return self.report()

    def _clear(self) -> None:
        """Forget all states."""
        if self.state.history.size:
            self.rounds.close()
            self.state.close()
            self._begin_anew()

    def advance(self) -> PartReport:
        """Make the next level the present one."""
        self.rounds.begin_level()
        self._ids_before.append(self.tables.ids)
        return self.report()

    def expand_round(self, check: Callable[[int], None] = unchecked) -> PartReport:
        """Expand a round of the level without other parts; `check` is that of `Rounds.expand`."""
        self.rounds.expand(check)
        return self.report()

    def find_ends(self, rows: int | None = None, check: Callable[[int], None] = unchecked) -> PartReport:
        """Examine the next rows of the level, or a round, for states without a successor."""
        stop_counting(self._model)
        self.rounds.find_ends(check, rows)
        return self.report()

    # -- answers ---------------------------------------------------------------------------------------------

    def report(self) -> PartReport:
        """The counts so far."""
        state, tables, result = self.state, self.tables, self.result
        state.evaluator.report()
        return PartReport(
            transitions=result.transitions,
            deadlocks=result.deadlocks,
            coverage=state.counts.coverage(),
            evaluations=result.evaluations,
            functions=dict(tables.functions.costs),
            values=tables.values_of_columns(),
            work=self.rounds.expanded + tables.functions.work - self._work_before,
            python_steps=tables.functions.steps,
            python_calls=tables.functions.calls,
            python_seconds=tables.seconds,
            spilled_bytes=state.waiting.spilled,
            states=state.history.size,
            left=self.rounds.left,
            hits=[PartHit(hit.position, hit.state) for hit in state.evaluator.recorded],
            growth=self.growth,
            # A part that is saved ends between two rounds only, and the next one may have more candidates.
            planned=0 if self.files is None else state.visited.growth(2 * self.rounds.candidates),
        )

    def growing_content(self, deepest: int) -> str:
        """The content that grows with the depth, in words; `deepest` is the depth of the level."""
        growth = Growth(self._model)
        for begin, end in pairwise([0, *self._ids_before]):
            growth.add_depth(self.tables.values_between(begin, end))
        return growth.in_words(deepest)

    @property
    def growth(self) -> int:
        """The growth of the resident size since the start, in bytes."""
        return max(0, self._process.memory_info().rss - self._resident)

    def route(self, state: int) -> tuple[list[int], Any]:
        """The way to a state with a finding: the ordinals of the successors on the path, and the row there."""
        hit = next(hit for hit in self.state.evaluator.recorded if hit.state == state)
        return self.state.history.ordinals(state), self.tables.values(hit.cells)

    # -- saving ----------------------------------------------------------------------------------------------

    def save(self, number: int) -> SavedPart:
        """Save this part between two rounds. Raises OSError; the previous save is then still valid."""
        files, tables = self._own_files, self.tables
        assert isinstance(tables, ReplayableTables)
        rows, level, following = self.rounds.left, self.rounds.level, self.rounds.following
        records = files.save(number, self._growing(tables), self._saved.now([*level, *following.blocks]))
        return self._saved.record(records, tables, rows, following.rows)

    def forget(self, number: int) -> None:
        """Remove the files of all saves but this one, which is complete."""
        self._own_files.forget_saves(number)

    def restore(self, saved: SavedPart, number: int, *, is_at_level: bool) -> PartReport:
        """Go back to a save; new tables first ask the model all questions again. Raises CheckpointError.

        `is_at_level`: no row of its level was expanded, so that this level is the next one.
        """
        files, tables = self._own_files, self.tables
        assert isinstance(tables, ReplayableTables)
        files.open()
        self._clear()
        self._saved.check_findings(saved)
        files.restore(number, saved.files, self._sizes(saved, number))
        if not tables.questions.size:
            tables.rebuild(files.read(QUESTIONS, np.uint64), saved.tables, files.folder)
            tables.seconds, self._work_before = saved.python_seconds, tables.functions.work
        self._refill(files, saved)
        with files.now(number) as file:
            level, following = self._saved.restore(saved, file)
        self.rounds.resume([], level) if is_at_level else self.rounds.resume(level, following)
        return self.report()

    def remove(self) -> None:
        """Remove the files of this part. Raises OSError."""
        if self.files is not None:
            self.files.remove()

    def close(self) -> None:
        """End the threads, and delete the temporary files."""
        self.rounds.close()
        self.state.close()

    @property
    def _own_files(self) -> SavedFiles:
        assert self.files is not None
        return self.files

    def _growing(self, tables: ReplayableTables) -> dict[str, Source]:
        history, graph = self.state.history, self.state.graph
        records: dict[str, RecordFile] = {STATES: history, **({} if graph is None else graph.files)}
        growing: dict[str, Source] = {name: partial(_new_records, file) for name, file in records.items()}
        growing[QUESTIONS] = lambda size: [tables.questions.view[size // 8 :]]
        if graph is not None:
            marks = graph.marks(history.size)
            growing[MARKS] = lambda size: [marks[size // marks.itemsize : history.size]]
        return growing

    def _sizes(self, saved: SavedPart, number: int) -> dict[str, int]:
        """The bytes of every file by the counts; of a file without a count, a whole number of records."""
        history, graph, whole = self.state.history, self.state.graph, partial(self._whole, saved)
        sizes = {STATES: saved.states * history.record.itemsize, QUESTIONS: whole(QUESTIONS, 8)}
        if graph is not None:
            sizes[MARKS] = saved.states * graph.marks().itemsize
            sizes |= {name: whole(name, numbers.record.itemsize) for name, numbers in graph.files.items()}
        return {**sizes, f"now-{number}": self._saved.size(saved)}

    def _whole(self, saved: SavedPart, name: str, item: int) -> int:
        return saved.files[name].size // item * item if name in saved.files else 0

    def _refill(self, files: SavedFiles, saved: SavedPart) -> None:
        """Restore the history, the set of states seen, and the graph."""
        history, visited = self.state.history, self.state.visited
        places = self.tables.first_states().places
        self.rounds.know_roots(len(places))
        for records in files.read(STATES, history.record):
            numbers = np.arange(history.size, history.size + len(records))
            if np.any(records["parent"] >= np.maximum(numbers, 1)):
                raise CheckpointError(f"{files.folder}: a state's parent must be an earlier state; {AGAIN}")
            if history.has_fingerprints:
                visited.refill(np.ascontiguousarray(records["fingerprint"]), history.size)
            history.extend(records)
        if history.has_fingerprints and not np.array_equal(
            np.concatenate([part["ordinal"] for part in history.between(0, len(places))]), places
        ):
            raise CheckpointError(f"{files.folder}: the first states are not those of the model; {AGAIN}")
        if self.state.graph is not None:
            self._refill_graph(self.state.graph, files, saved.states)

    def _refill_graph(self, graph: Graph, files: SavedFiles, states: int) -> None:
        tables, total = self.state.tables, 0
        bounds = {"targets": states, "labels": len(tables.labels), "degrees": 1 << 32}
        for name, numbers in graph.files.items():
            for part in files.read(name, numbers.record):
                self._saved.check_bound(f"file {name}", part, bounds[name])
                total += int(part.sum(dtype=np.uint64)) if name == "degrees" else 0
                numbers.extend(part)
        records = graph.files
        labels = records["targets"].size if graph.has_labels else 0
        if total != records["targets"].size or records["degrees"].size > states or records["labels"].size != labels:
            raise CheckpointError(f"{files.folder}: the numbers of moves contradict each other; {AGAIN}")
        marks, begin = graph.marks(states), 0
        for part in files.read(MARKS, np.uint32):
            self._saved.check_bound("file marks", part, tables.verdicts.judgements.size)
            marks[begin : begin + part.size] = part
            begin += part.size


def _new_records(file: RecordFile, size: int) -> Iterator[Array]:
    """The records after this number of bytes."""
    return file.since(size // file.record.itemsize)
