"""One part of a search: a process with its own tables, its share of the visited set, and its rows.

All parts explore the first levels alone, with equal results. When a level is large enough, the driver divides it: each
part keeps the rows of its pieces and the fingerprints that it owns. Rows never move after that. Every method is called
by the driver, one after the other (`distributed_search`).

The fingerprints of two parts must agree. They do if the text of a value determines its number, as that of data does.
Other values have equal texts, also where no process meets two of them, so the tables of a part refuse them.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from checker.cluster.part.files import ORIGINS, QUESTIONS, SEEN, PartFiles
from checker.cluster.part.messages import Candidates, PartHit, PartReport, Route, SavedPart
from checker.cluster.part.pieces import Pieces
from checker.cluster.part.rounds import Expansion, PartRounds
from checker.engine.checkpoint import CheckpointError
from checker.engine.checkpoint.head import SavedHit
from checker.engine.checkpoint.search_checkpoint import ReplayableTables
from checker.engine.contract import described
from checker.engine.evaluator import Hit
from checker.engine.model import Model, ModelError, Row
from checker.engine.result import Exploration, Limits
from checker.engine.states.frontier import OriginLog, padded
from checker.engine.steps import stop_counting
from checker.engine.tables.interner import CellNumbers

Array = np.ndarray[Any, Any]


class TextNumbers(CellNumbers):
    """The numbers of values by their texts alone."""

    def number(self, column: int, value: Any) -> int:
        """The number of a new value. Raises ModelError for a value whose text others may have."""
        super().number(column, value)
        return self.of_text(column, value)


class PartTables(ReplayableTables):
    """The tables of one process of a distributed search."""

    def __init__(self, model: Model, seed: int) -> None:
        super().__init__(model, seed)
        self._numbers = TextNumbers(model.columns, seed)


def row_digest(row: Row) -> str:
    """A digest of the texts of the values of a row, the same in every process."""
    return blake2b("\0".join(map(described, row)).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def owned_by(fingerprints: Array, parts: int) -> Array:
    """The part that owns each fingerprint, as `hash_tables.owner` (u64)."""
    owners: Array = (fingerprints & np.uint64(0xFFFFFFFF)) * np.uint64(parts) >> np.uint64(32)
    return owners


class Merge(NamedTuple):
    """The candidates of all parts for one owner in the order of the pieces, and the places of those of each part."""

    fingerprints: Array
    places: list[Array]

    @classmethod
    def of(cls, pieces: Pieces, received: list[Candidates]) -> Merge:
        """Merge the candidates that an owner received in a round, one element for each part."""
        lengths = np.zeros(len(pieces.parts), np.int64)
        for part, candidates in enumerate(received):
            lengths[pieces.parts == part] = candidates.lengths
        begins = np.cumsum(lengths) - lengths
        merged = np.empty(int(lengths.sum()), np.uint64)
        places = []
        for part, (fingerprints, own) in enumerate(received):
            ends = np.cumsum(own, dtype=np.int64)
            shifts = begins[pieces.parts == part] - (ends - own)
            place = np.repeat(shifts, own) + np.arange(len(fingerprints))
            merged[place] = fingerprints
            places.append(place)
        return cls(merged, places)


ALONE = 1 << 15  # rows of a round before the search is divided


class SearchPart:
    """The part with this number, of `parts`. With a folder, it can be saved there and restored."""

    def __init__(self, model: Model, number: int, parts: int, seed: int, folder: Path | None = None) -> None:
        self._process = psutil.Process()
        self._resident = self._process.memory_info().rss
        self._model, self._number, self._parts, self._seed = model, number, parts, seed
        self._files = None if folder is None else PartFiles(folder)
        self._tables = PartTables(model, seed)
        self._rounds: PartRounds | None = None
        self._reset()

    # -- the first levels ------------------------------------------------------------------------------------

    def begin(self) -> PartReport:
        """Start from the initial state, also after another start. Raises ModelError."""
        self._reset()
        if self._files is not None:
            self._files.clear()
        self._now.begin()
        return self.report()

    def advance(self) -> int:
        """Make the next level the present one; return its number of rows."""
        return self._now.advance()

    def expand_alone(self) -> PartReport:
        """Expand the whole level without the other parts. Raises ModelError."""
        left = sum(block.size for block in self._now.level)
        while left:
            rows = min(left, ALONE)
            expansion = self._now.expand(np.array([rows], np.int64))
            self._now.build(expansion, self._now.probe(expansion.found))
            left -= rows
        return self.report()

    def find_ends(self, pieces: Pieces | None) -> PartReport:
        """Examine the own pieces of the level for states without a successor. Raises ModelError.

        None stands for the whole level, before it is divided.
        """
        stop_counting(self._model)
        left = sum(block.size for block in self._now.level) if pieces is None else int(pieces.of(self._number).sum())
        while left:
            rows = min(left, ALONE)
            self._now.find_ends(rows)
            left -= rows
        return self.report()

    def divide(self, pieces: Pieces) -> None:
        """Keep the rows of the own pieces of the level, and the own fingerprints; only the first part keeps counts."""
        rounds, kept = self._now, np.repeat(pieces.parts == self._number, pieces.sizes)
        rows, judgements = (row[kept] for row in rounds.level_rows())
        first = rounds.history.size - len(kept)
        history = rounds.history
        records = np.concatenate([*history.since(0)])
        rounds.history = OriginLog()
        rounds.history.extend(np.concatenate([records[:first], records[first:][kept]]))
        history.close()
        slots = rounds.visited.slots
        seen = slots[slots != 0]
        own = np.ascontiguousarray(seen[owned_by(seen, self._parts) == self._number])
        rounds.replace_visited(own)
        self._log_seen(own)
        rounds.replace_level(rows, judgements)
        rounds.forget_hits()
        if self._number:
            rounds.forget_counts()

    # -- a round ---------------------------------------------------------------------------------------------

    def expand(self, pieces: Pieces) -> Any:
        """Expand the own pieces of a round; return the Candidates for each owner (None for this part).

        With one part, the only element is returned without a list. Raises ModelError.
        """
        expansion = self._now.expand(pieces.of(self._number))
        owners = owned_by(expansion.found, self._parts)
        ends = np.concatenate([np.zeros(1, np.int64), expansion.ends])
        places, sent = list[Array](), list[Candidates | None]()
        for owner in range(self._parts):
            chosen = np.flatnonzero(owners == owner)
            lengths = np.diff(np.searchsorted(chosen, ends)).astype(np.uint32)
            candidates = Candidates(expansion.found[chosen], lengths)
            places.append(chosen)
            if owner == self._number:
                self._own.append(candidates)
                sent.append(None)
            else:
                self._sent += candidates.bytes
                sent.append(candidates)
        self._expanded.append((expansion, places))
        return sent if self._parts > 1 else sent[0]

    def probe(self, pieces: Pieces, *received: Candidates | None) -> Any:
        """Add the candidates of all parts for this owner; return packed flags for each part (None for this one)."""
        own = self._own.popleft()
        merge = Merge.of(pieces, [own if each is None else each for each in received])
        is_new = self._now.probe(merge.fingerprints)
        self._log_seen(merge.fingerprints[is_new.view(np.bool_)])
        packed = [np.packbits(is_new[places]) for places in merge.places]
        self._own_flags.append(packed[self._number])
        flags = [None if part == self._number else each for part, each in enumerate(packed)]
        self._sent += sum(flag.nbytes for flag in flags if flag is not None)
        return flags if self._parts > 1 else flags[0]

    def build(self, *flags: Array | None) -> tuple[Array, PartReport]:
        """Build the rows of the new states of a round, by the flags of each owner; return their number for each piece.

        Raises ModelError.
        """
        expansion, places = self._expanded.popleft()
        own = self._own_flags.popleft()
        is_new = np.zeros(len(expansion.found), np.uint8)
        for chosen, packed in zip(places, flags, strict=True):
            is_new[chosen] = np.unpackbits(own if packed is None else packed, count=len(chosen))
        return self._now.build(expansion, is_new), self.report()

    # -- answers ---------------------------------------------------------------------------------------------

    def report(self) -> PartReport:
        """The counts so far."""
        rounds, tables = self._now, self._tables
        rounds.evaluator.report()
        evaluations = self._result.evaluations.values()
        return PartReport(
            rounds.history.size,
            rounds.transitions,
            rounds.deadlocks,
            {action: (each.fired, each.new) for action, each in rounds.counts.coverage().items()},
            [(evaluation.states, evaluation.premise) for evaluation in evaluations],
            [PartHit(hit.position, hit.state) for hit in rounds.evaluator.recorded],
            rounds.expanded + tables.functions.work,
            tables.functions.steps,
            tables.functions.calls,
            tables.seconds,
            max(0, self._process.memory_info().rss - self._resident),
            rounds.visited.growth(2 * rounds.candidates),  # the next round may have more
            rounds.waiting.spilled,
            self._sent,
        )

    def route(self, state: int) -> Route:
        """The way to a state with a finding."""
        hit = next(each for each in self._now.evaluator.recorded if each.state == state)
        return Route(self._now.history.ordinals(state), row_digest(self._tables.values(hit.cells)))

    def pid(self) -> int:
        """The number of this process."""
        return self._process.pid

    def sees(self, path: Path) -> bool:
        """Whether a file exists on this machine."""
        return path.exists()

    # -- saving ----------------------------------------------------------------------------------------------

    def save(self, number: int) -> SavedPart:
        """Save this part at the beginning of a level. Raises OSError."""
        files, rounds, tables = self._saved_files, self._now, self._tables
        record = rounds.history.record.itemsize
        files.append(ORIGINS, rounds.history.since(files.size(ORIGINS) // record))
        files.append(QUESTIONS, [tables.questions.view[files.size(QUESTIONS) // 8 :]])
        judged, final = rounds.evaluator.tallies
        return SavedPart(
            number,
            files.record(number, self._current()),
            tables.digest(),
            sum(block.size for block in rounds.level),
            rounds.history.size,
            rounds.transitions,
            rounds.deadlocks,
            len(rounds.counts.fired),
            len(judged),
            len(final),
            [SavedHit(*hit) for hit in rounds.evaluator.recorded],
        )

    def restore(self, saved: SavedPart) -> PartReport:
        """Go back to a save; a new process first asks the model all questions again. Raises CheckpointError."""
        files = self._saved_files
        with files.restore(saved.number, saved.files) as file:
            if not self._tables.questions.size:
                self._rebuild_tables(saved)
            self._reset()
            rounds, columns = self._now, len(self._model.columns)
            rows = np.fromfile(file, np.uint32, saved.rows * columns).reshape(-1, columns)
            judgements = np.fromfile(file, np.uint32, saved.rows)
            fired, reached = (np.fromfile(file, np.uint64, saved.labels) for _ in range(2))
            tallies = np.fromfile(file, np.uint64, saved.judgements), np.fromfile(file, np.uint64, saved.verdicts)
        self._check_rows(rows, judgements)
        for seen in files.read(SEEN, np.uint64):
            rounds.visited.refill(seen, np.zeros(len(seen), np.uint32))
        for records in files.read(ORIGINS, rounds.history.record):
            rounds.history.extend(records)
        rounds.counts.fired, rounds.counts.reached = fired, reached
        rounds.transitions, rounds.deadlocks = saved.transitions, saved.deadlocks
        rounds.evaluator.resume(tallies, [Hit(*_fields(hit)) for hit in saved.hits], rounds.history)
        wide = np.zeros((saved.rows, padded(columns)), np.uint32)
        wide[:, :columns] = rows
        rounds.replace_level(wide, judgements)
        return self.report()

    def remove(self) -> None:
        """Remove the files of this part."""
        if self._files is not None:
            shutil.rmtree(self._files.folder, ignore_errors=True)
            with suppress(OSError):  # another part has files there
                self._files.folder.parent.rmdir()

    def close(self) -> None:
        """Delete the temporary file."""
        self._now.close()

    # -- help ------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> PartRounds:
        assert self._rounds is not None
        return self._rounds

    @property
    def _saved_files(self) -> PartFiles:
        assert self._files is not None
        return self._files

    def _reset(self) -> None:
        if self._rounds is not None:
            self._rounds.close()
        self._result = Exploration(self._model, "tables", Limits(), seed=self._seed)
        self._rounds = PartRounds(self._tables, self._result, self._parts)
        self._expanded: deque[tuple[Expansion, list[Array]]] = deque()
        self._own: deque[Candidates] = deque()
        self._own_flags: deque[Array] = deque()
        self._sent = 0

    def _log_seen(self, fingerprints: Array) -> None:
        if self._files is not None:
            self._files.append(SEEN, [fingerprints])

    def _current(self) -> Iterator[Array]:
        columns, rounds = len(self._model.columns), self._now
        for block in rounds.level:
            with rounds.waiting.opened(block) as awake:
                yield awake.rows[: block.size, :columns]
        for block in rounds.level:
            with rounds.waiting.opened(block) as awake:
                yield awake.judgements[: block.size]
        yield from (rounds.counts.fired, rounds.counts.reached, *rounds.evaluator.tallies)

    def _rebuild_tables(self, saved: SavedPart) -> None:
        questions = np.concatenate([np.zeros(0, np.uint64), *self._saved_files.read(QUESTIONS, np.uint64)])
        try:
            self._tables.replay(questions)
            same = self._tables.digest() == saved.tables
        except Exception as error:
            # Another model may do anything with questions that it never asked.
            raise self._changed(f" (error: {error!r})") from error
        if not same:
            raise self._changed("")

    def _changed(self, why: str) -> ModelError:
        folder = self._saved_files.folder
        return CheckpointError(f"{folder}: the model's functions do not answer as they did when this was kept{why}")

    def _check_rows(self, rows: Array, judgements: Array) -> None:
        tables, folder = self._tables, self._saved_files.folder
        numbers = ((rows, tables.bases.size), (judgements, tables.verdicts.judgements.size))
        for values, bound in numbers:
            if values.size and int(values.max()) >= bound:
                raise CheckpointError(f"{folder}: a number of a row must be below {bound:,}")


def _fields(hit: SavedHit) -> tuple[int, tuple[int, ...], int]:
    return hit.position, hit.cells, hit.state
