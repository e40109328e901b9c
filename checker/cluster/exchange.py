"""Explores a model on a Ray cluster: the exchange divides a level, numbers the pieces, and replaces lost parts.

The files of the parts are in a folder that all machines share (`Checkpoint.folder`), or in a temporary folder of each
machine. In the second case a lost part can be replaced only on its machine. The exchange holds counts only; rows and
fingerprints stay at the parts and go from part to part. Rules:

- A limit inside a level ends it between two rounds.
- A part carries out its calls in the order in which they are started. The rows of the next two rounds of
  a divided level are expanded before the new states of a round are built: while a part expands them, the candidates and
  the flags of the others arrive.
- The first finding of a property is the one with the least number in the order of the whole search, so that it does not
  depend on the number of parts.
"""

import shutil
import tempfile
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from checker.cluster.messages import Pieces, dealt, joined
from checker.cluster.ray_transport import RayPlace, RayTransport, Ref, connected
from checker.cluster.search_part import SearchPart, row_digest
from checker.engine.checkpoint import Checkpoint
from checker.engine.checkpoint.checkpoint_store import SavedDivision, SavedPart, SavedSearch
from checker.engine.checkpoint.search_checkpoint import SearchFolder
from checker.engine.model import ModelError, Row
from checker.engine.result import Exploration
from checker.engine.search import Exchange, PartFinding, Request, Search

DIVIDED = 1 << 12  # rows for each part in the first level that is divided
DEALT = 8  # rows in a piece of that level
PIECE = 1 << 12  # rows in the largest piece of a later level
ROUND = 1 << 17  # rows of a round, for each part
SAVE_EVERY = 60.0  # seconds

_Expansion = tuple[Pieces, list[list[Ref]]]
_Built = tuple[Pieces, list[Ref]]


class ClusterExchange(Exchange):
    """The parts of a search, which expand each level together as soon as one is large enough."""

    is_here = False

    def __init__(self, transport: RayTransport) -> None:
        super().__init__(None, transport.parts, transport.machines())
        self._transport = transport
        self._sent = 0  # bytes, before the last loss
        self._most, self._imbalance = 0, 1.0  # the rows of the largest level, and how uneven it was divided
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.reports = []
        self._pieces: Pieces | None = None  # of the present level; None until the search is divided
        self._following: Pieces | None = None  # of the next level; None while the present one is expanded
        self._firsts = [0] * self.parts  # the number of the first state of the level in each part
        self._states = self._left = 0  # of a divided search

    def all(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all parts, and wait for the results."""
        return self._get(method, [arguments] * self.parts)

    def _get(self, method: str, arguments: Iterable[Iterable[Any]]) -> list[Any]:
        return self._transport.get([ref for (ref,) in self._call_each(method, arguments)])

    # -- levels ----------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Make the next level the present one, and divide it if it is the first that is large enough."""
        pieces, following = self._pieces, self._following
        super().advance()
        if pieces is not None and following is not None:
            self._firsts = [first + int(pieces.of(part).sum()) for part, first in enumerate(self._firsts)]
            self._begin_divided(following)
        elif (rows := self.reports[0].left) >= DIVIDED * self.parts:
            self._states = self.reports[0].states
            self._firsts = [self._states - rows] * self.parts
            self._begin_divided(dealt(rows, DEALT, self.parts))
            self.reports = self.all("divide", self._pieces)

    def _begin_divided(self, pieces: Pieces) -> None:
        self._pieces, self._following, self._left = pieces, None, pieces.rows
        if pieces.rows >= self._most:
            self._most, self._imbalance = pieces.rows, pieces.imbalance(self.parts)

    @property
    def states(self) -> int:
        """The states seen."""
        return self.reports[0].states if self._pieces is None else self._states

    @property
    def left(self) -> int:
        """The rows of the level that were not expanded."""
        return self.reports[0].left if self._pieces is None else self._left

    def expand(self, search: Search) -> bool:
        """Expand a round, or a divided level; return whether the end was reached."""
        if self._pieces is None:
            self.reports = self.all("expand_round")
            return True
        rounds = deque(self._pieces.cut(PIECE).rounds(ROUND * self.parts))
        expansions, built, following = deque[_Expansion](), deque[_Built](), list[Pieces]()
        self._expand_next(rounds, expansions, search)
        while expansions:
            self._expand_next(rounds, expansions, search)
            pieces, messages = expansions.popleft()
            candidates = [(pieces, *(message[owner] for message in messages)) for owner in range(self.parts)]
            flags = self._call_each("probe", candidates, returns=self.parts)
            self._expand_next(rounds, expansions, search)
            own_flags = [[flag[part] for flag in flags] for part in range(self.parts)]
            built.append((pieces, [ref for (ref,) in self._call_each("build", own_flags)]))
            while len(built) > (1 if expansions else 0):
                following.append(self._built(*built.popleft(), search))
        self._following = joined(following)
        self._states += self._following.rows
        self._left = 0
        return not rounds

    def _expand_next(self, rounds: deque[Pieces], expansions: deque[_Expansion], search: Search) -> None:
        """Expand the rows of the next round. None begins after the search must end; those under way are finished."""
        if rounds and not search.must_end():
            pieces = rounds.popleft()
            expansions.append((pieces, self._call_each("expand", [(pieces,)] * self.parts, returns=self.parts)))

    def _built(self, pieces: Pieces, built: list[Ref], search: Search) -> Pieces:
        """The new pieces of a round that is built."""
        sizes = np.zeros(len(pieces.parts), np.int64)
        for part, (counts, report) in enumerate(self._transport.get(built)):
            sizes[pieces.parts == part] = counts
            self.reports[part] = report
        search.note_round()
        return Pieces(pieces.parts, sizes).without_empty()

    def _call_each(self, method: str, arguments: Iterable[Iterable[Any]], returns: int = 1) -> list[list[Ref]]:
        """Start a method of each part, each with its arguments."""
        return [self._transport.call(part, method, *own, returns=returns) for part, own in enumerate(arguments)]

    def find_ends(self, search: Search) -> bool:
        """Examine a round, or a divided level, for states without a successor; return as `expand`."""
        if self._pieces is None:
            self.reports = self.all("find_ends")
            return True
        self._following, self._left = joined([]), 0
        for pieces in self._pieces.rounds(ROUND * self.parts):
            if search.must_end():
                return False
            rows = [[int(pieces.of(part).sum())] for part in range(self.parts)]
            self.reports = self._get("find_ends", rows)
            search.note_round()
        return True

    def findings(self, known: Callable[[int], bool]) -> Iterator[PartFinding]:
        """The first finding of each property that is not known, in a level that was expanded."""
        if self._pieces is not None and self._following is None:
            return
        first: dict[int, tuple[tuple[bool, int], int, int]] = {}
        for part, report in enumerate(self.reports if self._pieces is not None else self.reports[:1]):
            for position, state in report.hits:
                if not known(position):
                    place = self._place(part, state)
                    first[position] = min(first.get(position, (place, part, state)), (place, part, state))
        for position, (_, part, state) in sorted(first.items()):
            ((ordinals, digest),) = self._transport.get(self._transport.call(part, "route", state))
            yield PartFinding(position, ordinals, partial(_has_digest, digest))

    def _place(self, part: int, state: int) -> tuple[bool, int]:
        """The place of a state of a part in the order: whether it is in the next level, and the place there."""
        if self._pieces is None or self._following is None:
            return False, state
        rows, row = int(self._pieces.of(part).sum()), state - self._firsts[part]
        return (
            (True, self._following.place(part, row - rows)) if row >= rows else (False, self._pieces.place(part, row))
        )

    # -- saves and losses ------------------------------------------------------------------------------------

    def save(self, number: int) -> tuple[list[SavedPart], SavedDivision | None]:
        """Save all parts, if the search is divided. Raises OSError."""
        pieces = self._pieces
        if pieces is None:
            return [], None
        division = SavedDivision(pieces.parts.tolist(), pieces.sizes.tolist(), list(self._firsts))
        return self.all("save", number), division

    def restore(self, saved: SavedSearch) -> None:
        """Go back to a save. Raises CheckpointError."""
        division = saved.division
        assert division is not None
        self.reports = self._get("restore", [(own, saved.number) for own in saved.parts])
        self._pieces = Pieces(np.zeros(0, np.uint16), np.zeros(0, np.int64))
        self._following = Pieces(np.array(division.piece_parts, np.uint16), np.array(division.piece_sizes, np.int64))
        self._firsts, self._states, self._left = list(division.firsts), saved.states, 0

    def go_back(self) -> list[str]:
        """Replace all lost parts, and forget the division; return the names of those that were lost."""
        self._sent += sum(report.sent for report in self.reports)
        self._begin_anew()
        names = [f"{part + 1} on {self.machines[part]}" for part in self._transport.replace_lost()]
        self.machines = self._transport.machines()
        return names

    # -- in words --------------------------------------------------------------------------------------------

    @property
    def _bytes_sent(self) -> int:
        return self._sent + sum(report.sent for report in self.reports)

    def in_words(self, states: int | None = None, /) -> str:
        """The parts and the bytes sent, for the progress or, with the number of states, for the end."""
        size, growth = self._bytes_sent, max((report.growth for report in self.reports), default=0)
        if states is None:
            return f"{self.parts} workers, {growth >> 20:,} MiB in one, {size >> 20:,} MiB sent"
        return (
            f"{self.parts} on {self._transport.description}; {size:,} bytes sent, {size / max(1, states):.1f} a state; "
            f"in the largest level, one had {self._imbalance:.2f} times an equal share"
        )

    def remove(self) -> None:
        """Remove the files of all parts that answer."""
        self._transport.remove_files()

    def close(self) -> None:
        """End all parts."""
        self._transport.close()


def _has_digest(digest: str, row: Row) -> bool:
    return row_digest(row) == digest


def explore(request: Request, place: RayPlace) -> Exploration:
    """Explore a model breadth-first on a cluster, with the result of threads. Raises ModelError and CheckpointError.

    Each worker is a process with its own tables. The limit of memory holds for each machine: the growth of its workers
    together. The limit of work counts the calls of all workers, so that it depends on their number. Properties of
    liveness are refused. A lost worker is replaced, and the result is the same. A checkpoint is on storage that all
    machines share; a search is saved at the beginning of a level.
    """
    model, checkpoint = request.model, request.checkpoint
    if model.liveness:
        raise ModelError(
            f"{model.liveness[0].name!r} is a property of liveness, which is judged on one machine: use --workers N"
        )
    with connected(place) as ray, _folder(checkpoint) as folder:
        make = partial(SearchPart, model, request.seed, folder)
        is_shared = checkpoint is not None or place.address is None
        transport = RayTransport(ray, make, place.processes, is_shared=is_shared)
        try:
            exchange = ClusterExchange(transport)
            if checkpoint is not None:
                _check_shared(exchange, folder)
            saved = None if checkpoint is None else SearchFolder(checkpoint, model, request.seed)
            every = SAVE_EVERY if checkpoint is None else min(SAVE_EVERY, checkpoint.every)
            return Search(request, exchange, save_every=every, folder=saved).run()
        finally:
            transport.close()


@contextmanager
def _folder(checkpoint: Checkpoint | None) -> Iterator[Path]:
    """The folder for the files of the parts: a shared one, or the same temporary name on each machine."""
    if checkpoint is not None:
        yield checkpoint.folder.absolute()
        return
    folder = Path(tempfile.gettempdir()) / f"quorate-parts-{uuid.uuid4().hex}"
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_shared(exchange: ClusterExchange, folder: Path) -> None:
    """Raise ModelError if a machine of the cluster does not see the folder of the checkpoint."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".shared-") as file:
            answers = exchange.all("sees", Path(file.name))
    except OSError as error:
        raise ModelError(f"{folder}: no checkpoint can be kept there ({error.strerror or error})") from None
    missing = [machine for machine, sees in zip(exchange.machines, answers, strict=True) if not sees]
    if missing:
        raise ModelError(
            f"{folder}: the machine {missing[0]} does not see this folder; name a folder on storage that all machines "
            "of the cluster share, or leave --checkpoint out"
        )
