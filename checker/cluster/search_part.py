"""One part of a search on a cluster: a process with its own tables, its share of the visited set, and its rows.

All parts explore the first levels alone, with equal results. When a level is large enough, it is divided: each part
keeps the rows of its pieces and the fingerprints that it owns. Rows never move after that. Every method is called
by the exchange, one after the other (`exchange`).

The fingerprints of two parts must agree. They do if the text of a value determines its number, as that of data does.
Other values have equal texts, also where no process meets two of them, so the tables of a part refuse them.
"""

from __future__ import annotations

import shutil
from collections import deque
from contextlib import suppress
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from checker.cluster.messages import Candidates, Pieces
from checker.engine.checkpoint.checkpoint_store import SavedFiles, SavedPart, Source
from checker.engine.checkpoint.search_checkpoint import ReplayableTables
from checker.engine.contract import described
from checker.engine.kernels import move_kernels
from checker.engine.model import Model, Row
from checker.engine.part import Part, PartReport
from checker.engine.rounds import Round
from checker.engine.tables.interner import CellNumbers

SEEN = "seen"
"""The file of the share of the visited set."""

Array = np.ndarray[Any, Any]


class TextNumbers(CellNumbers):
    """The numbers of values by their texts alone."""

    def number(self, column: int, value: Any, text: str) -> int:
        """The number of a new value. Raises ModelError for a value whose text others may have."""
        number = super().number(column, value, text)
        self.check(column, value, text)
        return number


class PartTables(ReplayableTables):
    """The tables of one process of a distributed search."""

    def __init__(self, model: Model, seed: int, *, symmetric: bool = False) -> None:
        super().__init__(model, seed, symmetric=symmetric)
        self._numbers = TextNumbers(model.columns, seed)


def row_digest(row: Row) -> str:
    """A digest of the texts of the values of a row, the same in every process."""
    return blake2b("\0".join(map(described, row)).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def owned_by(fingerprints: Array, parts: int) -> Array:
    """The part that owns each fingerprint, as `hash_tables.owner` (u64)."""
    owners: Array = (fingerprints & np.uint64(0xFFFFFFFF)) * np.uint64(parts) >> np.uint64(32)
    return owners


class Expansion(NamedTuple):
    """A round after its first pass, and its successors one after the other.

    `found` has the fingerprints, `ends` the position after the last successor of each own piece, and `places` the
    positions of the successors of each owner.
    """

    round: Round
    found: Array
    ends: Array
    places: list[Array]

    @classmethod
    def of(cls, expanded: Round, last: Array, parts: int) -> Expansion:
        """The successors of a round; `last` has the number of the state after each own piece."""
        sources, fingerprints = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for part in expanded.slices:
            sources.append((part.origins[: part.size] & move_kernels.SOURCE_BITS).astype(np.int64) + part.base)
            fingerprints.append(part.found[: part.size])
        joined = np.concatenate(fingerprints)
        owners = owned_by(joined, parts)
        places = [np.flatnonzero(owners == owner) for owner in range(parts)]
        return cls(expanded, joined, np.searchsorted(np.concatenate(sources), last), places)


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


class SearchPart(Part):
    """The part with this number, of `parts`. With a folder, it can be saved below it and restored."""

    tables_of_saved = PartTables

    def __init__(self, model: Model, seed: int, folder: Path | None, number: int, parts: int) -> None:
        self._number, self._is_divided, self._is_saved = number, False, folder is not None
        super().__init__(model, seed, parts=parts, files=SavedFiles((folder or Path()) / f"part-{number}"))

    @property
    def _has_fingerprints(self) -> bool:
        """False: the visited set has the fingerprints of other states, in a separate file."""
        return False

    def begin(self) -> PartReport:
        """Start from the initial state, also after another start."""
        self._is_divided = False
        if self._is_saved:
            self._own_files.open()
            self._own_files.remove()
        return super().begin()

    def divide(self, pieces: Pieces) -> PartReport:
        """Keep the rows of the own pieces of the level, and the own fingerprints; only the first part keeps counts."""
        before, result, work = self.state, self.result, self.rounds.expanded
        is_own = np.repeat(pieces.parts == self._number, pieces.sizes)
        arrays = [array.copy() for array in self._saved.now(self.rounds.level)]
        *level, fired, reached, judged_times, final = arrays
        rows, judgements = (iter(np.concatenate(level[place::2])[is_own]) for place in (0, 1))
        records, slots = np.concatenate([*before.history.since(0)]), before.visited.parts[0].slots
        fingerprints = slots[slots != 0]
        fingerprints = np.ascontiguousarray(fingerprints[owned_by(fingerprints, self._parts) == self._number])
        before.close()
        self._begin_anew()
        self._is_divided = True
        state, first = self.state, len(records) - len(is_own)
        state.history.extend(np.concatenate([records[:first], records[first:][is_own]]))
        state.visited.refill(fingerprints, 0)
        self._log_seen(fingerprints)
        self.rounds.following.blocks = self._saved.blocks(
            int(np.count_nonzero(is_own)),
            lambda count: (np.array([*islice(rows, count)]), np.array([*islice(judgements, count)])),
        )
        self.rounds.begin_level()
        state.evaluator.resume(judged_times, final, None, [])
        if self._number:
            judged_times[:], final[:] = 0, 0
        else:
            state.counts.fired, state.counts.reached, self.rounds.expanded = fired, reached, work
            self.result.transitions, self.result.deadlocks = result.transitions, result.deadlocks
        return self.report()

    # -- a round ---------------------------------------------------------------------------------------------

    def expand(self, pieces: Pieces) -> Any:
        """Expand the own pieces of a round; return the Candidates for each owner (None for this part).

        With one part, the only element is returned without a list. Raises ModelError.
        """
        sizes = pieces.of(self._number)
        last = self.rounds.next_state + np.cumsum(sizes)
        expansion = Expansion.of(self.rounds.generate(int(sizes.sum())), last, self._parts)
        ends = np.concatenate([np.zeros(1, np.int64), expansion.ends])
        messages = list[Candidates | None]()
        for owner, chosen in enumerate(expansion.places):
            lengths = np.diff(np.searchsorted(chosen, ends)).astype(np.uint32)
            candidates = Candidates(expansion.found[chosen], lengths)
            if owner == self._number:
                self._own.append(candidates)
                messages.append(None)
            else:
                self._sent += candidates.bytes
                messages.append(candidates)
        self._expanded.append(expansion)
        return messages if self._parts > 1 else messages[0]

    def probe(self, pieces: Pieces, *received: Candidates | None) -> Any:
        """Add the candidates of all parts for this owner; return packed flags for each part (None for this one)."""
        own_candidates = self._own.popleft()
        merge = Merge.of(pieces, [own_candidates if candidates is None else candidates for candidates in received])
        visited, count = self.state.visited.parts[0], len(merge.fingerprints)
        is_new, picks = np.zeros(count, np.uint8), np.zeros(count + 1, np.uint32)
        visited.reserve(count)
        visited.probe(0, 1, merge.fingerprints, count, picks, is_new)
        self.rounds.candidates = count
        self._log_seen(merge.fingerprints[is_new.view(np.bool_)])
        packed = [np.packbits(is_new[places]) for places in merge.places]
        self._own_flags.append(packed[self._number])
        flags = [None if part == self._number else flag for part, flag in enumerate(packed)]
        self._sent += sum(flag.nbytes for flag in flags if flag is not None)
        return flags if self._parts > 1 else flags[0]

    def build(self, *flags: Array | None) -> tuple[Array, PartReport]:
        """Build the rows of the new states of a round, by the flags of each owner; return their number for each piece.

        Raises ModelError.
        """
        expansion, own_flags, begin = self._expanded.popleft(), self._own_flags.popleft(), 0
        is_new = np.zeros(len(expansion.found), np.uint8)
        for chosen, packed in zip(expansion.places, flags, strict=True):
            is_new[chosen] = np.unpackbits(own_flags if packed is None else packed, count=len(chosen))
        for part in expansion.round.slices:
            part.mark(is_new[begin : begin + part.size])
            begin += part.size
        self.rounds.build(expansion.round)
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_new, dtype=np.int64)])
        return np.diff(sums[np.concatenate([np.zeros(1, np.int64), expansion.ends])]), self.report()

    # -- answers ---------------------------------------------------------------------------------------------

    def report(self) -> PartReport:
        """The counts so far; before the search is divided, all parts would count the same."""
        report = super().report()
        if self._number and not self._is_divided:
            report.transitions, report.deadlocks, report.coverage, report.evaluations = 0, 0, {}, {}
        report.sent = self._sent
        return report

    def route(self, state: int) -> tuple[list[int], str]:
        """The way to a state with a finding, with a digest of the row there."""
        ordinals, values = super().route(state)
        return ordinals, row_digest(values)

    def pid(self) -> int:
        """The number of this process."""
        return self._process.pid

    def sees(self, path: Path) -> bool:
        """Whether a file exists on this machine."""
        return path.exists()

    # -- saving ----------------------------------------------------------------------------------------------

    def restore(self, saved: SavedPart, number: int, *, is_at_level: bool = True) -> PartReport:
        """Go back to a save, which is at the beginning of a level. Raises CheckpointError."""
        self._is_divided = True
        return super().restore(saved, number, is_at_level=is_at_level)

    def remove(self) -> None:
        """Remove the files of this part."""
        if self._is_saved:
            shutil.rmtree(self._own_files.folder, ignore_errors=True)
            with suppress(OSError):  # another part has files there
                self._own_files.folder.parent.rmdir()

    def close(self) -> None:
        """Delete the temporary files, and release the folder."""
        super().close()
        self._own_files.close()

    def _sizes(self, saved: SavedPart, number: int) -> dict[str, int]:
        """The bytes of every file by the counts."""
        return {**super()._sizes(saved, number), SEEN: self._whole(saved, SEEN, 8)}

    def _growing(self, tables: ReplayableTables) -> dict[str, Source]:
        return {**super()._growing(tables), SEEN: lambda _: []}

    def _refill(self, files: SavedFiles, saved: SavedPart) -> None:
        """Restore the history, and the share of the visited set."""
        super()._refill(files, saved)
        for fingerprints in files.read(SEEN, np.uint64):
            self.state.visited.refill(fingerprints, 0)

    # -- help ------------------------------------------------------------------------------------------------

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._expanded: deque[Expansion] = deque()
        self._own: deque[Candidates] = deque()
        self._own_flags: deque[Array] = deque()
        self._sent = 0

    def _log_seen(self, fingerprints: Array) -> None:
        if self._is_saved:
            self._own_files.append(SEEN, [fingerprints])
