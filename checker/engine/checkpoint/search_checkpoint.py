"""Saves a search as a checkpoint and resumes it.

A search can be saved between any two blocks. A checkpoint holds the data that cannot be computed again: the states seen
with their order and parents (14 bytes each), the rows to expand, the counts, and the *questions* that the tables asked
of the model. It does not hold the tables. A resumed search asks the same questions again, in the same order. This
rebuilds the tables with the same numbers if and only if the model's functions still give the same answers, and a digest
of all answers verifies it (`ReplayableTables`). No Python object is ever written or read, and a resumed search has the
same result as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from checker.engine.arrays import Vector
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint.checkpoint_store import AGAIN, CheckpointStore, Source
from checker.engine.checkpoint.head import Identity, SavedHit, SavedSearch
from checker.engine.contract import described
from checker.engine.evaluator import Hit
from checker.engine.liveness.graph import Graph
from checker.engine.model import Model, ModelError
from checker.engine.process import Interrupts
from checker.engine.result import Exploration, Limits, Stop
from checker.engine.rounds import SearchState
from checker.engine.states.waiting import Block
from checker.engine.tables import Node, Tables

FINISHED = (Stop.EXHAUSTED, Stop.FOUND, Stop.WITNESSED)  # the search ended without a limit

Array = np.ndarray[Any, Any]


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
        self._state = state
        self._store.open()
        saved = self._store.load()
        if saved is None:
            if self._checkpoint.resume:
                self._note = f"{self._folder}: nothing was kept there, so the search began anew"
            return None
        if not self._checkpoint.resume:
            raise CheckpointError(
                f"{self._folder}: a search of {saved.states:,} states is kept there already; resume it, or {AGAIN}"
            )
        self._check_identity(saved)
        self._check_sizes(saved)
        self._rebuild_tables(saved)
        states = self._refill()
        if state.graph is not None:
            self._refill_graph(state.graph, states)
        level, following = self._restore_frontier(saved)
        self._states = saved.states
        self._note = f"taken up from {self._folder}, where {self._states:,} states were kept"
        return level, following

    @property
    def due(self) -> bool:
        """Whether the next save is due."""
        return time.monotonic() - self._last >= self._checkpoint.every

    def save(self, level: list[Block], following: list[Block]) -> None:
        """Save the search with the remaining blocks of the level and of the next one. A failure is recorded in the
        notes.
        """
        try:
            self._store.save(self._saved_search(level, following), self._growing(), self._current([*level, *following]))
            self._states, self._failed = self._state.history.size, ""
        except OSError as error:
            kept = f"the last checkpoint there has {self._states:,} states" if self._states else "nothing is kept there"
            self._failed = f"{self._folder}: the search could not be kept ({error.strerror or error}); {kept}"
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
            self._note += f"kept in {self._folder}: a search that resumes there goes on from {self._states:,} states"
        self._update_notes()

    def close(self) -> None:
        """Release the folder."""
        self._store.close()

    def _update_notes(self) -> None:
        self._state.result.notes = [note for note in (self._note, self._failed) if note]

    # -- saving ----------------------------------------------------------------------------------------------

    def _saved_search(self, level: list[Block], following: list[Block]) -> SavedSearch:
        result, evaluator = self._state.result, self._state.evaluator
        return SavedSearch(
            identity=self._identity,
            tables=self.tables.digest(),
            levels=result.levels,
            left=sum(block.size for block in level),
            next=sum(block.size for block in following),
            states=self._state.history.size,
            transitions=result.transitions,
            deadlocks=result.deadlocks,
            seconds=result.seconds,
            python_seconds=result.python_seconds,
            found=[SavedHit(*hit) for hit in evaluator.recorded],
            labels=len(self._state.counts.fired),
            judgements=len(evaluator.tallies[0]),
            verdicts=len(evaluator.tallies[1]),
        )

    def _growing(self) -> dict[str, Source]:
        history, graph = self._state.history, self._state.graph
        growing: dict[str, Source] = {
            "states": lambda size: history.since(size // history.record.itemsize),
            "questions": lambda size: [self.tables.questions.view[size // 8 :]],
        }
        if graph is not None:
            for name, numbers in graph.files.items():
                growing[name] = numbers.since_byte
            marks = graph.marks.room(history.size)
            growing["marks"] = lambda size: [marks[size // marks.itemsize : history.size]]
        return growing

    def _current(self, blocks: list[Block]) -> Iterator[Array]:
        columns = len(self._state.result.model.columns)
        for block in blocks:
            with self._state.waiting.opened(block) as open_block:
                yield from (open_block.rows[: block.size, :columns], open_block.judgements[: block.size])
        yield from (self._state.counts.fired, self._state.counts.reached, *self._state.evaluator.tallies)

    # -- resuming --------------------------------------------------------------------------------------------

    def _check_identity(self, saved: SavedSearch) -> None:
        """Refuse a checkpoint of another model or engine, and one beyond the present limits of depth or states."""
        result, theirs, ours = self._state.result, saved.identity, self._identity
        if theirs.engine != ours.engine:
            raise CheckpointError(f"{self._folder}: another version of the engine kept this; {AGAIN}")
        if theirs.seed != ours.seed:
            raise CheckpointError(f"{self._folder}: this search has the seed {theirs.seed}; use it, or {AGAIN}")
        if theirs != ours:
            other = "as it was made then" if theirs.model == ours.model else f"but {theirs.model!r}"
            raise CheckpointError(f"{self._folder}: this is not {ours.model!r} as it is now, {other}; {AGAIN}")
        done = saved.levels if saved.left < saved.levels[-1] else saved.levels[:-1]
        bounds = Limits(result.limits.depth, result.limits.states)
        if bounds.reached(Exploration(result.model, result.engine, bounds, levels=done)) is not None:
            raise CheckpointError(
                f"{self._folder}: the checkpoint is at depth {len(done) - 1} with {saved.states:,} states, "
                "beyond the limit of depth or states; raise the limit, or " + AGAIN
            )

    def _check_sizes(self, saved: SavedSearch) -> None:
        """Check every count and index that later code relies on. Raises CheckpointError."""
        model, history, graph = self._state.result.model, self._state.history, self._state.graph
        sizes = {"states": saved.states * history.record.itemsize, "questions": self._store.size("questions") // 8 * 8}
        if graph is not None:
            sizes["marks"] = saved.states * graph.marks.room(0).itemsize
            for name, numbers in graph.files.items():
                each = np.dtype(numbers.kind).itemsize
                sizes[name] = self._store.size(name) // each * each
        columns = len(model.columns)
        counters = 2 * saved.labels + saved.judgements + saved.verdicts
        self._store.sized(sizes, (saved.left + saved.next) * (columns + 1) * 4 + counters * 8)
        for hit in saved.found:
            inside = hit.position < len(model.properties) and hit.state < saved.states
            if not inside or len(hit.cells) != columns:
                raise CheckpointError(f"{self._folder}: a finding names a property or state that is not there; {AGAIN}")
        if len({each.position for each in saved.found}) != len(saved.found):
            raise CheckpointError(f"{self._folder}: a property has more than one finding; {AGAIN}")

    def _rebuild_tables(self, saved: SavedSearch) -> None:
        """Ask the model's functions the same questions again."""
        tables = self.tables
        questions = np.concatenate([np.zeros(0, np.uint64), *self._store.grown("questions", np.uint64)])
        try:
            tables.replay(questions)
            same = tables.digest() == saved.tables
        except Exception as error:
            # A different model may do anything with questions that it never asked.
            raise CheckpointError(f"{self._changed_model} (error: {error!r}); {AGAIN}") from error
        if not same:
            raise CheckpointError(f"{self._changed_model}; {AGAIN}")
        tables.seconds = saved.python_seconds

    @property
    def _changed_model(self) -> str:
        return f"{self._folder}: the model's functions do not answer as they did when this was kept"

    def _refill(self) -> int:
        """Restore the history and the set of states seen; return the number of states."""
        history, visited = self._state.history, self._state.visited
        for records in self._store.grown("states", history.record):
            numbers = np.arange(history.size, history.size + len(records))
            if np.any(records["parent"] >= np.maximum(numbers, 1)):
                raise CheckpointError(f"{self._folder}: a state's parent must be an earlier state; {AGAIN}")
            visited.refill(np.ascontiguousarray(records["fingerprint"]), history.size)
            history.extend(records)
        return history.size

    def _refill_graph(self, graph: Graph, states: int) -> None:
        tables, total = self._state.tables, 0
        bounds = {"targets": states, "labels": len(tables.labels), "degrees": 1 << 32}
        for name, numbers in graph.files.items():
            for part in self._store.grown(name, numbers.kind):
                self._bounded(name, part, bounds[name])
                total += int(part.sum(dtype=np.uint64)) if name == "degrees" else 0
                numbers.append(part)
        files = graph.files
        labels = files["targets"].size if graph.has_labels else 0
        if total != files["targets"].size or files["degrees"].size > states or files["labels"].size != labels:
            raise CheckpointError(f"{self._folder}: the numbers of moves contradict each other; {AGAIN}")
        marks, begin = graph.marks.room(states), 0
        for part in self._store.grown("marks", np.uint32):
            self._bounded("marks", part, tables.verdicts.judgements.size)
            marks[begin : begin + part.size] = part
            begin += part.size

    def _bounded(self, name: str, numbers: Array, bound: int) -> None:
        if numbers.size and int(numbers.max()) >= bound:
            raise CheckpointError(f"{self._folder}: a number of the file {name} must be below {bound:,}; {AGAIN}")

    def _restore_frontier(self, saved: SavedSearch) -> tuple[list[Block], list[Block]]:
        result, _, _, _, history, _, evaluator, counts, _ = self._state
        result.levels, result.transitions, result.deadlocks = saved.levels, saved.transitions, saved.deadlocks
        result.seconds_before = saved.seconds
        with self._store.now() as file:
            level, following = (self._blocks(file, rows) for rows in (saved.left, saved.next))
            counts.fired, counts.reached = (np.fromfile(file, np.uint64, saved.labels) for _ in range(2))
            tallies = np.fromfile(file, np.uint64, saved.judgements), np.fromfile(file, np.uint64, saved.verdicts)
        self._check_frontier([*level, *following])
        cells = {cell for each in saved.found for cell in each.cells}
        if cells and max(cells) >= self._state.tables.bases.size:
            raise CheckpointError(f"{self._folder}: a finding names a value that is not there; {AGAIN}")
        try:
            evaluator.resume(tallies, [Hit(each.position, each.cells, each.state) for each in saved.found], history)
        except ModelError as error:
            raise CheckpointError(f"{self._folder}: a finding is not that of the model ({error}); {AGAIN}") from None
        if level and saved.left == result.levels[-1]:
            # No block of the level was expanded: the level starts again, under the present limits.
            result.levels.pop()
            return [], level
        return level, following

    def _blocks(self, file: Any, rows: int) -> list[Block]:
        """Read this number of rows into blocks. All of them are full except the last, as they were before the save."""
        columns, blocks = len(self._state.result.model.columns), list[Block]()
        while rows:
            block = self._state.pool.take()
            block.size = min(rows, len(block.rows))
            cells = np.fromfile(file, np.uint32, block.size * columns).reshape(-1, columns)
            if cells.size and int(cells.max()) >= self._state.tables.bases.size:
                raise CheckpointError(f"{self._folder}: a row names a value that nothing has; {AGAIN}")
            block.rows[: block.size, :columns] = cells
            block.judgements[: block.size] = judgements = np.fromfile(file, np.uint32, block.size)
            self._bounded(self._store.now_name, judgements, self._state.tables.verdicts.judgements.size)
            block.fingerprints[: block.size] = self._state.tables.fingerprints(cells)
            rows -= block.size
            self._state.waiting.append(blocks, block, is_last=not rows)
        return blocks

    def _check_frontier(self, blocks: list[Block]) -> None:
        """Check by fingerprints that the waiting rows are the states seen last."""
        history = self._state.history
        first = history.size - sum(block.size for block in blocks)
        for block in blocks:
            seen = np.concatenate([records["fingerprint"] for records in history.between(first, first + block.size)])
            with self._state.waiting.opened(block) as open_block:
                if not np.array_equal(open_block.fingerprints[: block.size], seen):
                    raise CheckpointError(f"{self._folder}: the rows kept are not those of the states kept; {AGAIN}")
            first += block.size


def identity_of(checkpoint: Checkpoint, model: Model, seed: int) -> Identity:
    """The identity that a checkpoint shares with every search that may resume it; the tables are compared later."""
    engine = hashlib.sha256(sys.byteorder.encode())
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        engine.update(path.read_bytes())
    names = [[each.name for each in part] for part in (model.columns, model.actors, model.rules, model.properties)]
    kinds = [prop.kind.value for prop in model.properties]  # it decides when a search ends
    made_from = json.dumps([checkpoint.source, names, kinds], sort_keys=True, default=dict)
    return Identity(model.name, engine.hexdigest(), hashlib.sha256(made_from.encode()).hexdigest(), seed)


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

    def digest(self) -> str:
        """A hash of all answers, the same in every process. Each value is hashed only once, so later calls are fast.

        The values of a node are not hashed: they follow from the memo and the questions.
        """
        digest = hashlib.sha256()
        for vector in (self.cells, self.bases, self.entries, self.classes, self.masks, self.verdicts.judgements):
            digest.update(np.ascontiguousarray(vector.view).data)
        digest.update(self.memo.data.data)
        for place, named in enumerate(self._named):
            objects, count = self._digests[place]
            for each in islice(named, count, None):
                if not isinstance(each, Node):
                    objects.update(described(each).encode(errors="surrogatepass"))
            self._digests[place] = objects, len(named)
            digest.update(objects.digest())
        return digest.hexdigest()

    @property
    def _named(self) -> tuple[list[Any], ...]:
        """The objects behind the numbers; all these lists only grow."""
        return self._ids, self._operands, self.labels, self.verdicts.verdicts
