"""Saves a search as a checkpoint and resumes it.

A search can be saved between any two blocks. A checkpoint holds the data that cannot be computed again: the states seen
with their order and parents (14 bytes each), the rows to expand, the counts, and the *questions* that the tables asked
of the model. It does not hold the tables. A resumed search asks the same questions again, in the same order. This
rebuilds the tables with the same numbers if and only if the model's functions still give the same answers, and a digest
of all answers verifies it (`ReplayableTables`). No Python object is ever written or read, and a resumed search has the
same result as an uninterrupted one.

A part of a search on a cluster is saved in the same way (`SavedState`), at the beginning of a level.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from checker.engine.arrays import Vector
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint.checkpoint_store import (
    AGAIN,
    CheckpointStore,
    Identity,
    SavedCounts,
    SavedHit,
    SavedSearch,
    Source,
)
from checker.engine.contract import described
from checker.engine.evaluator import Hit
from checker.engine.liveness.graph_liveness import Graph
from checker.engine.model import Model, ModelError
from checker.engine.process import Interrupts
from checker.engine.result import Exploration, Limits, Stop
from checker.engine.rounds import SearchState
from checker.engine.states.frontier import RecordFile
from checker.engine.states.waiting import Block
from checker.engine.tables import Node, Tables

FINISHED = (Stop.EXHAUSTED, Stop.FOUND, Stop.WITNESSED)  # the search ended without a limit

Array = np.ndarray[Any, Any]


class SavedState:
    """The counts and the rows of a search, or of one part of it, as they are saved in a folder."""

    def __init__(self, state: SearchState, folder: Path) -> None:
        self._state, self._folder = state, folder
        self._columns = len(state.result.model.columns)

    def counts(self, tables: ReplayableTables) -> dict[str, Any]:
        """The fields of `SavedCounts`."""
        state, evaluator = self._state, self._state.evaluator
        return {
            "tables": tables.digest(),
            "states": state.history.size,
            "transitions": state.result.transitions,
            "deadlocks": state.result.deadlocks,
            "found": [SavedHit(*hit) for hit in evaluator.recorded],
            "labels": len(state.counts.fired),
            "judgements": len(evaluator.tallies[0]),
            "verdicts": len(evaluator.tallies[1]),
        }

    def now(self, blocks: list[Block]) -> Iterator[Array]:
        """The rows of these blocks with their judgements, and the counters."""
        state = self._state
        for block in blocks:
            with state.waiting.opened(block) as open_block:
                yield from (open_block.rows[: block.size, : self._columns], open_block.judgements[: block.size])
        yield from (state.counts.fired, state.counts.reached, *state.evaluator.tallies)

    def size(self, saved: SavedCounts, rows: int) -> int:
        """The bytes of `now`."""
        return rows * (self._columns + 1) * 4 + (2 * saved.labels + saved.judgements + saved.verdicts) * 8

    def check_findings(self, saved: SavedCounts) -> None:
        """Raises CheckpointError for a finding that cannot be."""
        for hit in saved.found:
            inside = hit.position < len(self._state.result.model.properties) and hit.state < saved.states
            if not inside or len(hit.cells) != self._columns:
                raise self._refused("a finding names a property or state that is not there")
        if len({hit.position for hit in saved.found}) != len(saved.found):
            raise self._refused("a property has more than one finding")

    def restore(self, saved: SavedCounts, file: IO[bytes], *rows: int) -> list[list[Block]]:
        """Restore what `now` and `counts` give; return the blocks, lists of them with these numbers of rows.

        The history and the tables are restored already.
        """
        result, state = self._state.result, self._state
        result.transitions, result.deadlocks = saved.transitions, saved.deadlocks

        def take(count: int) -> tuple[Array, Array]:
            cells = np.fromfile(file, np.uint32, count * self._columns).reshape(-1, self._columns)
            return cells, np.fromfile(file, np.uint32, count)

        lists = [self.blocks(count, take) for count in rows]
        sizes = saved.labels, saved.labels, saved.judgements, saved.verdicts
        state.counts.fired, state.counts.reached, *tallies = (np.fromfile(file, np.uint64, size) for size in sizes)
        if state.history.has_fingerprints:
            self._check_order([block for blocks in lists for block in blocks])
        cells = {cell for hit in saved.found for cell in hit.cells}
        if cells and max(cells) >= state.tables.bases.size:
            raise self._refused("a finding names a value that is not there")
        try:
            state.evaluator.resume(
                tallies, [Hit(hit.position, hit.cells, hit.state) for hit in saved.found], state.history
            )
        except ModelError as error:
            raise self._refused(f"a finding is not that of the model ({error})") from None
        return lists

    def blocks(self, rows: int, take: Callable[[int], tuple[Array, Array]]) -> list[Block]:
        """Blocks of this number of rows, which `take` gives with their judgements; all are full except the last."""
        state, blocks = self._state, list[Block]()
        while rows:
            block = state.pool.take()
            block.size = min(rows, len(block.rows))
            cells, judgements = take(block.size)
            self.check_bound("rows", cells, state.tables.bases.size)
            self.check_bound("judgements", judgements, state.tables.verdicts.judgements.size)
            block.rows[: block.size, : self._columns], block.judgements[: block.size] = cells, judgements
            block.fingerprints[: block.size] = state.tables.fingerprints(cells)
            rows -= block.size
            state.waiting.append(blocks, block, is_last=not rows)
        return blocks

    def check_bound(self, name: str, numbers: Array, bound: int) -> None:
        """Raises CheckpointError for a number that means nothing."""
        if numbers.size and int(numbers.max()) >= bound:
            raise self._refused(f"a number of the {name} must be below {bound:,}")

    def _check_order(self, blocks: list[Block]) -> None:
        """Check by fingerprints that the waiting rows are the states seen last."""
        history = self._state.history
        first = history.size - sum(block.size for block in blocks)
        for block in blocks:
            order = np.concatenate([records["fingerprint"] for records in history.between(first, first + block.size)])
            with self._state.waiting.opened(block) as open_block:
                if not np.array_equal(open_block.fingerprints[: block.size], order):
                    raise self._refused("the rows kept are not those of the states kept")
            first += block.size

    def _refused(self, why: str) -> CheckpointError:
        return CheckpointError(f"{self._folder}: {why}; {AGAIN}")


class SearchCheckpoint:
    """Keeps one search in a folder; used by one thread, while no kernel runs. Raises CheckpointError."""

    def __init__(self, checkpoint: Checkpoint, model: Model, seed: int) -> None:
        self._checkpoint, self._folder = checkpoint, checkpoint.folder
        self.tables, self._identity = ReplayableTables(model, seed), identity_of(checkpoint, model, seed)
        self._store = CheckpointStore(checkpoint.folder)
        self._last = time.monotonic()  # the time of the last save or attempt
        self._note, self._failed = "", ""
        self._states = 0  # in the checkpoint
        self.interrupts = Interrupts()

    def resume(self, state: SearchState) -> tuple[list[Block], list[Block]] | None:
        """Restore the checkpoint into a new state, and return the remaining blocks of the level and of the next one.

        Return None if there is no checkpoint. The tables of the state must be `tables`.
        """
        self._state, self._saved = state, SavedState(state, self._folder)
        self._store.open()
        saved = self._store.load()
        if saved is None:
            if self._checkpoint.resume:
                self._note = f"{self._folder}: nothing was kept there, so the search began anew"
            return None
        expanded_levels = saved.levels if saved.left < saved.levels[-1] else saved.levels[:-1]
        check_resumption(self._checkpoint, saved.identity, self._identity, saved.states, expanded_levels, state.result)
        self._check_sizes(saved)
        self.tables.rebuild(self._store.files.read("questions", np.uint64), saved.tables, self._folder)
        self.tables.seconds = saved.python_seconds
        self._refill(saved)
        state.result.levels, state.result.seconds_before = saved.levels, saved.seconds
        with self._store.now() as file:
            level, following = self._saved.restore(saved, file, saved.left, saved.next)
        self._states = saved.states
        self._note = f"taken up from {self._folder}, where {self._states:,} states were kept"
        if level and saved.left == saved.levels[-1]:
            # No block of the level was expanded: the level starts again, under the present limits.
            state.result.levels.pop()
            return [], level
        return level, following

    @property
    def due(self) -> bool:
        """Whether the next save is due."""
        return time.monotonic() - self._last >= self._checkpoint.every

    def save(self, level: list[Block], following: list[Block]) -> None:
        """Save the search with the remaining blocks of the level and of the next one. A failure is recorded in the
        notes.
        """
        result = self._state.result
        try:
            saved = SavedSearch(
                identity=self._identity,
                levels=result.levels,
                left=sum(block.size for block in level),
                next=sum(block.size for block in following),
                seconds=result.seconds,
                python_seconds=result.python_seconds,
                **self._saved.counts(self.tables),
            )
            self._store.save(saved, self._growing(), self._saved.now([*level, *following]))
            self._states, self._failed = self._state.history.size, ""
        except OSError as error:
            rest = f"the last checkpoint there has {self._states:,} states" if self._states else "nothing is kept there"
            self._failed = f"{self._folder}: the search could not be kept ({error.strerror or error}); {rest}"
        self._last = time.monotonic()
        self._update_notes()

    def finish(self) -> None:
        """Remove the checkpoint of a search that ended without a limit, and describe it in the notes otherwise."""
        result = self._state.result
        if result.stop in FINISHED:
            try:
                self._store.remove()
                self._failed = ""
            except OSError as error:
                self._failed = f"{self._folder}: what was kept cannot be removed ({error.strerror})"
        elif self._states and not self._failed:
            self._note = f"{self._note}; " if self._note else ""
            self._note += kept_note(self._folder, self._states)
        self._update_notes()

    def close(self) -> None:
        """Release the folder."""
        self._store.close()

    def _update_notes(self) -> None:
        self._state.result.notes = [note for note in (self._note, self._failed) if note]

    def _growing(self) -> dict[str, Source]:
        history, graph = self._state.history, self._state.graph
        files: dict[str, RecordFile] = {"states": history, **({} if graph is None else graph.files)}
        growing: dict[str, Source] = {name: partial(_new_records, file) for name, file in files.items()}
        growing["questions"] = lambda size: [self.tables.questions.view[size // 8 :]]
        if graph is not None:
            marks = graph.marks(history.size)
            growing["marks"] = lambda size: [marks[size // marks.itemsize : history.size]]
        return growing

    # -- resuming --------------------------------------------------------------------------------------------

    def _check_sizes(self, saved: SavedSearch) -> None:
        """Check every count and index that later code relies on. Raises CheckpointError."""
        history, graph, files = self._state.history, self._state.graph, self._store.files
        sizes = {"states": saved.states * history.record.itemsize, "questions": files.size("questions") // 8 * 8}
        if graph is not None:
            sizes["marks"] = saved.states * graph.marks().itemsize
            for name, numbers in graph.files.items():
                item = numbers.record.itemsize
                sizes[name] = files.size(name) // item * item
        self._store.check_sizes(sizes, self._saved.size(saved, saved.left + saved.next))
        self._saved.check_findings(saved)

    def _refill(self, saved: SavedSearch) -> None:
        """Restore the history, the set of states seen, and the graph."""
        history, visited = self._state.history, self._state.visited
        for records in self._store.files.read("states", history.record):
            numbers = np.arange(history.size, history.size + len(records))
            if np.any(records["parent"] >= np.maximum(numbers, 1)):
                raise CheckpointError(f"{self._folder}: a state's parent must be an earlier state; {AGAIN}")
            visited.refill(np.ascontiguousarray(records["fingerprint"]), history.size)
            history.extend(records)
        if self._state.graph is not None:
            self._refill_graph(self._state.graph, saved.states)

    def _refill_graph(self, graph: Graph, states: int) -> None:
        tables, total = self._state.tables, 0
        bounds = {"targets": states, "labels": len(tables.labels), "degrees": 1 << 32}
        for name, numbers in graph.files.items():
            for part in self._store.files.read(name, numbers.record):
                self._saved.check_bound(f"file {name}", part, bounds[name])
                total += int(part.sum(dtype=np.uint64)) if name == "degrees" else 0
                numbers.extend(part)
        files = graph.files
        labels = files["targets"].size if graph.has_labels else 0
        if total != files["targets"].size or files["degrees"].size > states or files["labels"].size != labels:
            raise CheckpointError(f"{self._folder}: the numbers of moves contradict each other; {AGAIN}")
        marks, begin = graph.marks(states), 0
        for part in self._store.files.read("marks", np.uint32):
            self._saved.check_bound("file marks", part, tables.verdicts.judgements.size)
            marks[begin : begin + part.size] = part
            begin += part.size


def _new_records(file: RecordFile, size: int) -> Iterator[Array]:
    """The records after this number of bytes."""
    return file.since(size // file.record.itemsize)


def kept_note(folder: Path, states: int) -> str:
    """The note on a search that a limit ended."""
    return f"kept in {folder}: a search that resumes there goes on from {states:,} states"


def check_resumption(
    checkpoint: Checkpoint, theirs: Identity, ours: Identity, states: int, levels: list[int], result: Exploration
) -> None:
    """Refuse a checkpoint of another model or engine, and one beyond the present limits of depth or states.

    It has this number of states, and `levels` are those that were expanded. Raises CheckpointError.
    """
    folder = checkpoint.folder
    if not checkpoint.resume:
        why = f"a search of {states:,} states is kept there already; resume it, or {AGAIN}"
        raise CheckpointError(f"{folder}: {why}")
    if theirs.engine != ours.engine:
        raise CheckpointError(f"{folder}: another version of the engine kept this; {AGAIN}")
    if theirs.seed != ours.seed:
        raise CheckpointError(f"{folder}: this search has the seed {theirs.seed}; use it, or {AGAIN}")
    if theirs != ours:
        difference = "as it was made then" if theirs.model == ours.model else f"but {theirs.model!r}"
        raise CheckpointError(f"{folder}: this is not {ours.model!r} as it is now, {difference}; {AGAIN}")
    bounds = Limits(result.limits.depth, result.limits.states)
    if bounds.reached(Exploration(result.model, result.engine, bounds, levels=levels)) is not None:
        raise CheckpointError(
            f"{folder}: the checkpoint is at depth {len(levels) - 1} with {states:,} states, "
            "beyond the limit of depth or states; raise the limit, or " + AGAIN
        )


def identity_of(checkpoint: Checkpoint, model: Model, seed: int) -> Identity:
    """The identity that a checkpoint shares with every search that may resume it; the tables are compared later."""
    engine = hashlib.sha256(sys.byteorder.encode())
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        engine.update(path.read_bytes())
    names = [[entry.name for entry in part] for part in (model.columns, model.actors, model.rules, model.properties)]
    kinds = [prop.kind.value for prop in model.properties]  # it decides when a search ends
    made_from = json.dumps([checkpoint.source, names, kinds], sort_keys=True, default=dict)
    return Identity(model.name, engine.hexdigest(), hashlib.sha256(made_from.encode()).hexdigest(), seed)


def _changed(folder: Path, why: str) -> CheckpointError:
    problem = "the model's functions do not answer as they did when this was kept"
    return CheckpointError(f"{folder}: {problem}{why}; {AGAIN}")


END = np.uint64((1 << 64) - 1)  # ends the questions of one call of `fill`; it is never a key, since ids stay smaller


class ReplayableTables(Tables):
    """Tables with a record of the keys of each `fill` (u64), in `questions`."""

    def __init__(self, model: Model, seed: int) -> None:
        super().__init__(model, seed)
        self.questions = Vector(np.uint64)
        self._digests = [(hashlib.sha256(), 0) for _ in self._named]

    def fill(self, keys: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        """Answer these keys, and record them afterwards."""
        super().fill(keys)
        self.questions.extend(np.append(np.unique(keys), END))

    def replay(self, questions: np.ndarray[Any, np.dtype[np.uint64]]) -> None:
        """Fill new tables from the `questions` of others. They become equal if the models are equal.

        The functions of a different model may get meaningless questions, and raise any exception.
        """
        self.row(self.model.initial())
        for keys in np.split(questions, np.flatnonzero(questions == END) + 1)[:-1]:
            self.fill(keys[:-1])

    def rebuild(self, questions: Iterable[Array], digest: str, folder: Path) -> None:
        """Fill new tables from these questions. Raises CheckpointError if their digest is another one."""
        try:
            self.replay(np.concatenate([np.zeros(0, np.uint64), *questions]))
            is_same = self.digest() == digest
        except Exception as error:
            # A different model may do anything with questions that it never asked.
            raise _changed(folder, f" (error: {error!r})") from error
        if not is_same:
            raise _changed(folder, "")

    def digest(self) -> str:
        """A hash of all answers, the same in every process. Each value is hashed only once, so later calls are fast.

        The values of a node are not hashed: they follow from the memo and the questions.
        """
        digest = hashlib.sha256()
        for vector in (self.cells, self.bases, self.entries, self.classes, self.masks, self.verdicts.judgements):
            digest.update(np.ascontiguousarray(vector.view).data)
        digest.update(self.memo.data.data)
        for place, values in enumerate(self._named):
            objects, count = self._digests[place]
            for value in islice(values, count, None):
                if not isinstance(value, Node):
                    objects.update(described(value).encode(errors="surrogatepass"))
            self._digests[place] = objects, len(values)
            digest.update(objects.digest())
        return digest.hexdigest()

    @property
    def _named(self) -> tuple[list[Any], ...]:
        """The objects behind the numbers; all these lists only grow."""
        return self._ids, self._operands, self.labels, self.verdicts.verdicts
