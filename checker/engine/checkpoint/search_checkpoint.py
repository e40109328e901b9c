"""Saves a search as a checkpoint and resumes it.

A search can be saved between any two blocks. A checkpoint holds the data that cannot be computed again: the states seen
with their order and parents (14 bytes each), the rows to expand, the counts, and the *questions* that the tables asked
of the model. It does not hold the tables. A resumed search asks the same questions again, in the same order. This
rebuilds the tables with the same numbers if and only if the model's functions still give the same answers, and a digest
of all answers verifies it (`ReplayableTables`). No Python object is ever written or read, and a resumed search has the
same result as an uninterrupted one.

Each part of a search on a cluster is saved in the same way, in a folder of its own (`checker.engine.part`), at the
beginning of a level. The head of the folder has the counts of all parts.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from checker.engine.arrays import Vector
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.checkpoint.checkpoint_store import (
    AGAIN,
    FORMAT,
    CheckpointStore,
    FileRecord,
    Head,
    Identity,
    SavedHit,
    SavedPart,
    SavedSearch,
)
from checker.engine.contract import described
from checker.engine.evaluator import Hit
from checker.engine.model import Model
from checker.engine.result import Exploration, Limits
from checker.engine.rounds import SearchState
from checker.engine.states.waiting import Block
from checker.engine.tables import Node, Tables

Array = np.ndarray[Any, Any]


class SavedState:
    """The counts and the rows of a search, or of one part of it, as they are saved in a folder."""

    def __init__(self, state: SearchState, folder: Path) -> None:
        self._state, self._folder = state, folder
        self._columns = len(state.result.model.columns)

    def record(self, files: dict[str, FileRecord], tables: ReplayableTables, left: int, following: int) -> SavedPart:
        """The record of the state, with this number of rows of the level and of the next one."""
        state, evaluator = self._state, self._state.evaluator
        return SavedPart(
            files=files,
            tables=tables.digest(),
            states=state.history.size,
            transitions=state.result.transitions,
            deadlocks=state.result.deadlocks,
            found=[SavedHit(*hit) for hit in evaluator.recorded],
            labels=len(state.counts.fired),
            judgements=len(evaluator.tallies[0]),
            verdicts=len(evaluator.tallies[1]),
            left=left,
            next=following,
            python_seconds=tables.seconds,
        )

    def now(self, blocks: list[Block]) -> Iterator[Array]:
        """The rows of these blocks with their judgements, and the counters."""
        state = self._state
        for block in blocks:
            with state.waiting.opened(block) as open_block:
                yield from (open_block.rows[: block.size, : self._columns], open_block.judgements[: block.size])
        judged, final, first = state.evaluator.tallies
        yield from (state.counts.fired, state.counts.reached, judged, final)
        if self._has_first:
            yield first

    @property
    def _has_first(self) -> bool:
        """Whether the first state of each judgement is kept: a symmetric search looks for runs to premises there.

        It means nothing in a part of a search that was divided, since a part has other numbers of states.
        """
        return self._state.tables.images is not None

    def size(self, saved: SavedPart) -> int:
        """The bytes of `now`."""
        rows = saved.left + saved.next
        counts = 2 * saved.labels + saved.judgements * (2 if self._has_first else 1) + saved.verdicts
        return rows * (self._columns + 1) * 4 + counts * 8

    def check_findings(self, saved: SavedPart) -> None:
        """Raises CheckpointError for a finding that cannot be."""
        for hit in saved.found:
            inside = hit.position <= max(self._state.result.model.raising) and hit.state < saved.states
            if not inside or len(hit.cells) != self._columns:
                raise self._refused("a finding names a property or state that is not there")
        if len({hit.position for hit in saved.found}) != len(saved.found):
            raise self._refused("a property has more than one finding")

    def restore(self, saved: SavedPart, file: IO[bytes]) -> list[list[Block]]:
        """Restore what `now` and `record` give; return the blocks of the level and of the next one.

        The history and the tables are restored already.
        """
        result, state = self._state.result, self._state
        result.transitions, result.deadlocks = saved.transitions, saved.deadlocks

        def take(count: int) -> tuple[Array, Array]:
            cells = np.fromfile(file, np.uint32, count * self._columns).reshape(-1, self._columns)
            return cells, np.fromfile(file, np.uint32, count)

        lists = [self.blocks(count, take) for count in (saved.left, saved.next)]
        sizes = saved.labels, saved.labels, saved.judgements, saved.verdicts
        fired, reached, judged, final = (np.fromfile(file, np.uint64, size) for size in sizes)
        first = np.fromfile(file, np.uint64, saved.judgements) if self._has_first else None
        if first is not None:
            self.check_bound("first states", first[judged > 0], saved.states)
        state.counts.fired, state.counts.reached = fired, reached
        if state.history.has_fingerprints:
            self._check_order([block for blocks in lists for block in blocks])
        cells = {cell for hit in saved.found for cell in hit.cells}
        if cells and max(cells) >= state.tables.bases.size:
            raise self._refused("a finding names a value that is not there")
        state.evaluator.resume(judged, final, first, [Hit(hit.position, hit.cells, hit.state) for hit in saved.found])
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


class SearchFolder:
    """The folder of a search, whose head has the last save; `open` it first. Raises CheckpointError.

    `is_needed` is false if nothing is kept there. `note` is about the save that was resumed, or kept at the end.
    """

    def __init__(self, checkpoint: Checkpoint, model: Model, seed: int, *, symmetric: bool = False) -> None:
        self._checkpoint, self.folder, self.every = checkpoint, checkpoint.folder, checkpoint.every
        self._model, self._identity = model, identity_of(checkpoint, model, seed, symmetric=symmetric)
        self.store = CheckpointStore(checkpoint.folder)
        self.is_needed = True  # until it is clear that nothing is there
        self.note = ""

    def load(self, result: Exploration, parts: int, *, is_here: bool) -> SavedSearch | None:
        """The last save, which this number of parts may resume; None without one."""
        self.store.open()
        head = self.store.load_head()
        if head is None:
            self.is_needed = False
            if self._checkpoint.resume:
                self.note = f"{self.folder}: nothing was kept there, so the search began anew"
            return None
        saved = head.search
        self._check(head.identity, saved, result)
        if is_here is not (saved.division is None) or len(saved.parts) != parts:
            kept, asked = (
                f"{count} workers" if divided else "threads of one machine"
                for count, divided in ((len(saved.parts), saved.division), (parts, not is_here))
            )
            raise CheckpointError(
                f"{self.folder}: {kept} kept this search, and {asked} would resume it; use the same, or {AGAIN}"
            )
        if max((finding.position for finding in saved.found), default=-1) > max(self._model.raising):
            raise CheckpointError(f"{self.store.head}: a finding names a property that is not there; {AGAIN}")
        self.note = f"taken up from {self.folder}, where {saved.states:,} states were kept"
        return saved

    def write(self, saved: SavedSearch) -> None:
        """Write the head. Raises OSError; the previous save is then still valid."""
        self.store.put_head(Head(FORMAT, self._identity, saved))
        self.is_needed = True

    def remove(self) -> None:
        """Remove the head of a search that has ended. Raises OSError."""
        self.store.remove()
        self.is_needed = False

    def _check(self, theirs: Identity, saved: SavedSearch, result: Exploration) -> None:
        """Refuse a checkpoint of another model or engine, and one beyond the present limits of depth or states."""
        folder, ours = self.folder, self._identity
        if not self._checkpoint.resume:
            why = f"a search of {saved.states:,} states is kept there already; resume it, or {AGAIN}"
            raise CheckpointError(f"{folder}: {why}")
        if theirs.engine != ours.engine:
            raise CheckpointError(f"{folder}: another version of the engine kept this; {AGAIN}")
        if theirs.seed != ours.seed:
            raise CheckpointError(f"{folder}: this search has the seed {theirs.seed}; use it, or {AGAIN}")
        if theirs.symmetric != ours.symmetric:
            right = "symmetric" if theirs.symmetric else "none"
            raise CheckpointError(f"{folder}: this search was one with --reduce {right}; use it, or {AGAIN}")
        if theirs != ours:
            difference = "as it was made then" if theirs.model == ours.model else f"but {theirs.model!r}"
            raise CheckpointError(f"{folder}: this is not {ours.model!r} as it is now, {difference}; {AGAIN}")
        levels = saved.levels if saved.left < saved.levels[-1] else saved.levels[:-1]
        bounds = Limits(result.limits.depth, result.limits.states)
        if bounds.reached(Exploration(result.model, result.engine, bounds, levels=levels)) is not None:
            raise CheckpointError(
                f"{folder}: the checkpoint is at depth {len(levels) - 1} with {saved.states:,} states, "
                "beyond the limit of depth or states; raise the limit, or " + AGAIN
            )


def identity_of(checkpoint: Checkpoint, model: Model, seed: int, *, symmetric: bool = False) -> Identity:
    """The identity that a checkpoint shares with every search that may resume it; the tables are compared later."""
    engine = hashlib.sha256(sys.byteorder.encode())
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        engine.update(path.read_bytes())
    names = [[entry.name for entry in part] for part in (model.columns, model.actors, model.rules, model.properties)]
    kinds = [prop.kind.value for prop in model.properties]  # it decides when a search ends
    made_from = json.dumps([checkpoint.source, names, kinds], sort_keys=True, default=dict)
    source = hashlib.sha256(made_from.encode()).hexdigest()
    return Identity(model.name, engine.hexdigest(), source, seed, symmetric)


def _changed(folder: Path, why: str) -> CheckpointError:
    problem = "the model's functions do not answer as they did when this was kept"
    return CheckpointError(f"{folder}: {problem}{why}; {AGAIN}")


END = np.uint64((1 << 64) - 1)  # ends the questions of one call of `fill`; it is never a key, since ids stay smaller


class ReplayableTables(Tables):
    """Tables with a record of the keys of each `fill` (u64), in `questions`."""

    def __init__(self, model: Model, seed: int, *, symmetric: bool = False) -> None:
        super().__init__(model, seed, symmetric=symmetric)
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
        self.first_states()
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
        digest.update(self.failed.data.data)
        if self.images is not None:
            digest.update(np.ascontiguousarray(self.images).data)
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
