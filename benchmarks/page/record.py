"""The figures of one run: the JSON from which the plot and the page are made.

Rules: the page and the plot show nothing that is not in the record; all searches of a record were made in one run, on
one machine, and searches of one model have equal counts of states.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import msgspec

from benchmarks.comparison import QUORATE, TITLES

LEAST_BYTES = 16 * 2**20
"""Less memory is not measured exactly: the peak of a process includes that of its launcher (`benchmarks.child`)."""


class RecordError(Exception):
    """A file with figures that cannot be used; the message names it and the reason."""


@dataclass(frozen=True)
class Series:
    """A tool with a number of threads."""

    tool: str
    threads: int

    def __str__(self) -> str:
        plural = "" if self.threads == 1 else "s"
        return f"{self.tool}, {self.threads} thread{plural}" if self.tool == QUORATE else self.tool


@dataclass(frozen=True)
class Search:
    """A complete search: seconds of the search alone, bytes beyond those of the program without a search."""

    example: str
    size: int
    series: Series
    states: int
    seconds: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        """Distinct states per second."""
        return self.states / self.seconds

    @property
    def bytes_per_state(self) -> float | None:
        """The memory of the search, divided by the number of states; None if it is too small to be measured."""
        return None if self.peak_bytes < LEAST_BYTES else self.peak_bytes / self.states


@dataclass(frozen=True)
class LeftOut:
    """A search that was not made, and the reason."""

    example: str
    size: int
    series: Series
    reason: str


@dataclass(frozen=True)
class Machine:
    """The machine of the run; memory in bytes, and its load (processes that run or wait, a minute's mean) before it."""

    processor: str
    cores: int
    memory: int
    system: str
    load: float


@dataclass(frozen=True)
class Record:
    """One run: its day (ISO 8601), whether it was a quick one, the versions of programs, and the figures."""

    date: str
    quick: bool
    machine: Machine
    versions: dict[str, str]
    searches: tuple[Search, ...]
    left_out: tuple[LeftOut, ...] = ()
    missed: dict[str, str] = field(default_factory=dict)
    """For each tool without figures, the reason."""

    def series(self) -> list[Series]:
        """The tools with their threads, in the order of the run."""
        return list(dict.fromkeys(search.series for search in self.searches))

    def models(self) -> list[tuple[str, int]]:
        """The models with their sizes: examples in the order of `TITLES`, sizes ascending."""
        order = list(TITLES)
        return sorted(
            {(search.example, search.size) for search in self.searches}, key=lambda e: (order.index(e[0]), e[1])
        )

    def find(self, example: str, size: int, series: Series) -> Search | None:
        """The search of a model by a tool, if it was made."""
        key = (example, size, series)
        return next((search for search in self.searches if (search.example, search.size, search.series) == key), None)


def save(record: Record, file: Path) -> None:
    """Write a record as JSON."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def load(file: Path) -> Record:
    """Read a record. Raises RecordError."""
    try:
        record = msgspec.json.decode(file.read_bytes(), type=Record)
    except OSError as error:
        raise RecordError(f"{file}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise RecordError(f"{file}: no figures of `python -m benchmarks page`: {error}") from None
    if not record.searches or any(search.example not in TITLES for search in record.searches):
        raise RecordError(f"{file}: searches of {', '.join(TITLES)} would be right")
    return record


def digest(record: Record) -> str:
    """The identity of a record: eight digits of the SHA-256 of its JSON. The plot contains it."""
    return sha256(msgspec.json.encode(record)).hexdigest()[:8]
