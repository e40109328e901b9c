"""`python -m research.corrections`: each defect on real servers, without its correction and with it, in one table.

A run of a defect is that of `quorate reproduce` for its scenario, without `--with-correction` and with it.

Rules of this module:

- Each run is a line of the file of results, written as it ends. A command that was interrupted goes on from there; a
  run with a correction does not count if the Java source of that is another one now.
- A run that did not come to its end is open. It stays in the table, and another one is made.

Exit codes: 0 measured; 1 the table has a run without a loss where nothing is corrected, or a loss or an open run where
something is; 2 a wrong command line; 3 an error of the servers.
"""

import argparse
import hashlib
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import product
from pathlib import Path

import msgspec

from checker.command import refused
from checker.scenario import shipped
from harness import real
from harness.corrections.agent import FOLDER, class_of, java_options
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import ServerError
from harness.releases import MAVEN
from harness.reproduce.by_hand.catalogue import hand_made_of
from harness.reproduce.by_hand.hand_made import HandMade
from harness.reproduce.driver import reproduce
from harness.reproduce.ends import Outcome, Reproduction, StepReport
from harness.reproduce.gates import compile_shim
from harness.reproduce.schedule import Schedule, load_schedule, with_corrections, with_losses
from research.reconfig.facts import FactTable, written
from spec.text import between

NEWEST = MAVEN[-1]


class End(Enum):
    """The end of a run."""

    WRONG = "wrong"
    RIGHT = "right"
    OPEN = "open"


class Line(msgspec.Struct, frozen=True):
    """A line of the file of results: one run."""

    defect: str
    corrected: bool
    source: str
    release: str
    end: End
    note: str
    seconds: float


@dataclass(frozen=True)
class Defect:
    """A defect with a correction: its letter, the name of both, the scenario that shows it, and what goes wrong."""

    letter: str
    name: str
    scenario: str
    wrong: str

    @property
    def source(self) -> str:
        """The Java source of the correction, as the beginning of its SHA-256."""
        return hashlib.sha256((FOLDER / f"{class_of(self.name)}.java").read_bytes()).hexdigest()[:16]

    def schedule(self, *, corrected: bool) -> Schedule | HandMade:
        """The schedule of the scenario: with its correction, on the model that has it unless it is made by hand."""
        file = shipped(Path(self.scenario))
        by_hand = hand_made_of(file)
        if by_hand is not None:
            return by_hand.with_corrections() if corrected else by_hand
        schedule = load_schedule(file)
        return with_losses(with_corrections(schedule) if corrected else schedule)


DEFECTS = (
    Defect("A", "acks-survive-truncation", "acks-survive-truncation", "an acknowledged write is on no server"),
    Defect("B", "sync-from-applied", "sync-from-applied", "a committed write is on no server"),
    Defect("C", "trunc-after-snap", "trunc-after-snap", "one server has a znode that no other has"),
    Defect(
        "D",
        "observer-becomes-voter",
        "r4-observer-promoted-loses-a-write",
        "an acknowledged write is dropped by the leader and its followers",
    ),
    Defect("E", "pending-view-activated", "pending-view-activated", "two leaders acknowledge writes in one epoch"),
    Defect("F", "last-seen-forgotten", "last-seen-forgotten", "two leaders acknowledge writes"),
    Defect("G", "epoch-of-active-view", "epoch-of-active-view", "two leaders establish one epoch"),
    Defect("H", "promotion-stops-service", "observer-promoted-stops-service", "no write is answered any more"),
    Defect("I", "restore-undone", "restore-undone", "what was restored, and every write since, is lost"),
)


class Bench:
    """The schedules, the shim and the agents for the runs of one command, each made once, below a folder."""

    def __init__(self, folder: Path, release: str) -> None:
        self._folder, self._release = folder, release
        self._schedules: dict[tuple[str, bool], Schedule | HandMade] = {}
        self._agents: dict[str, tuple[str, ...]] = {}
        self._shim = compile_shim(folder)

    def run(self, defect: Defect, number: int, *, corrected: bool) -> tuple[End, str]:
        """Make one run, with a correction or without. Raises ServerError if the servers cannot be corrected."""
        key = (defect.name, corrected)
        if key not in self._schedules:
            self._schedules[key] = defect.schedule(corrected=corrected)
        if corrected and defect.name not in self._agents:
            self._agents[defect.name] = java_options([defect.name], self._release, self._folder / defect.name)
        agent = self._agents[defect.name] if corrected else ()
        directory = self._folder / f"{defect.name}-{'with' if corrected else 'without'}-{number}"
        directory.mkdir()
        schedule = self._schedules[key]
        if isinstance(schedule, HandMade):
            result = schedule.reproduce(directory, self._release, _no_report, agent)
        else:
            result = reproduce(schedule, directory, self._release, self._shim, _no_report, java_options=agent)
        return end_of(result)


def _no_report(_: StepReport) -> None:
    pass


def end_of(result: Reproduction) -> tuple[End, str]:
    """The end of a run, and what was seen. A harm is one wherever it comes from."""
    if result.outcome is Outcome.HARNESS_FAILED:
        return End.OPEN, result.reason.splitlines()[0]
    if result.effects:
        return End.WRONG, ", ".join(sorted(effect.value for effect in result.effects))
    if result.outcome is Outcome.CONFIRMED:
        return End.RIGHT, "no harm"
    return End.OPEN, result.reason


class Results:
    """The file of results."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def lines(self, release: str) -> list[Line]:
        """The lines of a release that count: with a correction only those of the present one.

        Raises ServerError for another file.
        """
        if not self.file.exists():
            return []
        try:
            lines = [msgspec.json.decode(text, type=Line) for text in self.file.read_bytes().splitlines()]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ServerError(f"{self.file}: it is no file of results ({error}); name a new one") from None
        sources = {defect.name: defect.source for defect in DEFECTS}
        return [
            line
            for line in lines
            if line.release == release and (not line.corrected or sources.get(line.defect) == line.source)
        ]

    def add(self, line: Line) -> None:
        """Add a run."""
        with self.file.open("ab") as output:
            output.write(msgspec.json.encode(line) + b"\n")


def table_of(lines: Iterable[Line], defects: Iterable[Defect] = DEFECTS) -> FactTable:
    """The table: the runs of each defect that ended wrong, of all, without the correction and with it."""
    counted = list(lines)
    rows = []
    for defect in defects:
        cells = [f"{defect.letter}, {defect.name}", defect.wrong]
        for corrected in (False, True):
            ends = [line.end for line in counted if line.defect == defect.name and line.corrected is corrected]
            is_open = ends.count(End.OPEN)
            counts = f"{ends.count(End.WRONG)} of {len(ends) - is_open}" + (f", {is_open} open" if is_open else "")
            cells.append(counts if ends else "not tried")
        rows.append(tuple(cells))
    return FactTable("corrections", ("defect", "effect", "without", "with the correction"), tuple(rows))


def as_expected(line: Line) -> bool:
    """Whether a run shows the defect where nothing is corrected, and does not where it is."""
    return line.end is (End.RIGHT if line.corrected else End.WRONG)


def main(arguments: list[str] | None = None) -> int:
    """Carry out the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m research.corrections", description="Run each defect without its correction and with it."
    )
    names = [defect.name for defect in DEFECTS]
    parser.add_argument("name", nargs="*", help=f"the defects (default: all): {', '.join(names)}")
    parser.add_argument("--release", default=NEWEST, help=f"the release of the servers (default: {NEWEST})")
    parser.add_argument("--runs", type=between(1), default=1, help="the runs of each kind (default: 1)")
    parser.add_argument(
        "--results", type=Path, default=Path("corrections.jsonl"), help="the file of results, which grows"
    )
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into a page")
    add_keep(parser)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.name if name not in names]:
        return refused(f"no defect with a correction is called {unknown[0]!r}; write {', '.join(names)}", 2)
    if options.write is not None and not options.write.is_file():
        return refused(f"{options.write}: no such page; name one with a place for the table", 2)
    if reason := keep_mistake(options.keep) or real.available(options.release):
        return refused(reason, 2)
    chosen = [defect for defect in DEFECTS if not options.name or defect.name in options.name]
    results = Results(options.results)
    try:
        with directories(options.keep) as folder:
            _measure(chosen, results, options, folder)
        lines = results.lines(options.release)
    except (ServerError, OSError) as error:
        return refused(str(error), 3)
    table = table_of(lines)
    print(f"\n{table.markdown()}")
    if options.write is not None:
        options.write.write_text(written(options.write.read_text(encoding="utf-8"), [table]), encoding="utf-8")
    return int(not all(as_expected(line) for line in lines if line.defect in {defect.name for defect in chosen}))


def _measure(defects: list[Defect], results: Results, options: argparse.Namespace, folder: Path) -> None:
    """Make the runs that the file of results lacks."""
    bench = Bench(folder, options.release)
    for defect, corrected in product(defects, (False, True)):
        while (number := _next_run(results.lines(options.release), defect, corrected, options.runs)) is not None:
            began = time.monotonic()
            end, note = bench.run(defect, number, corrected=corrected)
            seconds = round(time.monotonic() - began, 1)
            results.add(Line(defect.name, corrected, defect.source, options.release, end, note, seconds))
            how = "with the correction" if corrected else "without it"
            print(f"{defect.name}, {how}, run {number}: {end.value} ({note}, {seconds} s)", flush=True)


def _next_run(lines: list[Line], defect: Defect, corrected: bool, runs: int) -> int | None:
    """The number of the next run of a kind; None if there are enough, or as many open ones."""
    ends = [line.end for line in lines if line.defect == defect.name and line.corrected is corrected]
    is_open = ends.count(End.OPEN)
    return None if len(ends) - is_open >= runs or is_open >= runs else len(ends) + 1


if __name__ == "__main__":
    sys.exit(main())
