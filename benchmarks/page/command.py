"""``python -m benchmarks page DIR``: measure all tools in one run, and write the page of results.

It writes `benchmarks.json` (the figures), `benchmarks.svg` and `benchmarks.md` to the folder. Rules: the exit code is 0
only if every tool was measured (1: one was missed; 2: a bad command line); progress goes to standard error.

Rules of a run: searches run one after another, each within a limit; a search of less than a second is repeated, and the
best of three counts; a tool is not given a model for which the rate of its last search predicts more than the limit;
the first search of a tool is always made; a count of states that differs from the known one is an error and no figure.

The programs of SPIN and of stateright are nothing but their search, so their whole size counts; TLC's size at a start
with nothing to search, and ours before the search, do not. SPIN's table has 1.2 to 2.4 slots for each state.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path

import psutil

from benchmarks import spin, stateright
from benchmarks.comparison import QUORATE, TITLES, SearchFigures, check_states, known_states, search_ours, searched
from benchmarks.outcome import SPIN, NotMeasured
from benchmarks.page import text
from benchmarks.page.record import LeftOut, Machine, Record, RecordError, Search, Series, load, save
from benchmarks.tlc import command as tlc
from spec.text import decimals_between

PROMELA = {"election": "election.pml", "two_phase_commit": "two_phase_commit.pml"}
SLOTS = 1.2  # the least number for each state
LEAST_POWER = 10


@dataclass(frozen=True)
class Tool:
    """A tool with its threads; `search` makes one search of an example of `examples`. It raises NotMeasured."""

    series: Series
    examples: tuple[str, ...]
    search: Callable[[str, int], SearchFigures]


def quorate(threads: int) -> Tool:
    """The table engine."""

    def search(example: str, size: int) -> SearchFigures:
        return search_ours(tlc.OURS[example], size, threads)

    return Tool(Series(QUORATE, threads), tuple(tlc.OURS), search)


def _spin(example: str, size: int) -> SearchFigures:
    slots = SLOTS * (known_states(example, size) or 0)
    result = spin.explore(spin.MODELS / PROMELA[example], size, max(LEAST_POWER, int(slots).bit_length()))
    return SearchFigures(SPIN, result.states, result.transitions, result.seconds, result.peak_bytes)


class _Stateright:
    @cached_property
    def program(self) -> Path:
        return stateright.build(stateright.cache_folder())

    def search(self, example: str, size: int) -> SearchFigures:
        return searched(stateright.STATERIGHT, [str(self.program), example, str(size), "1"])


class _Tlc:
    def __init__(self, jar: Path) -> None:
        self._jar = jar

    @cached_property
    def empty(self) -> tlc.Start:
        return tlc.start(self._jar)

    def search(self, example: str, size: int) -> SearchFigures:
        return tlc.search(self._jar, self.empty, tlc.bundled(example, size))


def all_tools(jar: Path | None) -> list[Tool]:
    """The tools in the order of the run: ours with one and two threads, all others with one. TLC needs its jar."""
    tools = [
        quorate(1),
        quorate(2),
        Tool(Series(SPIN, 1), tuple(PROMELA), _spin),
        Tool(Series(stateright.STATERIGHT, 1), ("two_phase_commit",), _Stateright().search),
    ]
    return tools if jar is None else [*tools, Tool(Series(tlc.TLC, 1), tuple(tlc.MODULES), _Tlc(jar).search)]


def versions(jar: Path | None) -> dict[str, str]:
    """The versions of the programs that are here."""
    import numba  # noqa: PLC0415 (loads slowly)

    texts = {"Python": sys.version.split()[0], "Numba": numba.__version__}
    for name, command in {"SPIN": ["spin", "-V"], "gcc": ["gcc", "--version"], "Rust": ["rustc", "--version"]}.items():
        if line := _first_line(command):
            texts[name] = line
    texts["stateright"] = stateright.release()
    if jar is not None:
        texts["Java"] = _first_line(["java", "--version"])
        try:
            texts["TLC"] = tlc.start(jar).version
        except NotMeasured:
            texts.pop("Java")
    return texts


def _first_line(command: list[str]) -> str:
    program = shutil.which(command[0])
    if program is None:
        return ""
    process = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    return (process.stdout.splitlines() or [""])[0]


Sizes = Mapping[str, Sequence[int]]
FULL: Sizes = {"election": (3, 4), "two_phase_commit": (5, 6, 7, 8, 9, 10)}
QUICK: Sizes = {"election": (3,), "two_phase_commit": (5, 6, 7, 8)}
SHORT, RUNS = 1.0, 3  # a search of less than SHORT seconds is made RUNS times


class Plan:
    """The searches of one tool: made, left out, or missed for one reason."""

    def __init__(self, tool: Tool, limit: float) -> None:
        self._tool, self._limit = tool, limit
        self.searches: list[Search] = []
        self.left_out: list[LeftOut] = []

    def make(self, sizes: Sizes, say: Callable[[str], None]) -> None:
        """Make all searches, the smallest models first. Raises NotMeasured."""
        models = [(name, size) for name in self._tool.examples for size in sizes.get(name, ())]
        for name, size in sorted(models, key=lambda model: known_states(*model) or 0):
            # A larger model costs at least the time per state of the last one, so no search is begun that cannot end.
            predicted = (known_states(name, size) or 0) / self.searches[-1].rate if self.searches else 0.0
            if predicted > self._limit:
                reason = f"about {predicted:,.0f} s were predicted, and the limit was {self._limit:g} s"
                self.left_out.append(LeftOut(name, size, self._tool.series, reason))
                continue
            say(f"{self._tool.series}: {TITLES[name].format(size)}")
            result = self._search(name, size)
            check_states(name, size, [result])
            figures = (result.states, round(result.seconds, 4), result.peak_bytes)
            self.searches.append(Search(name, size, self._tool.series, *figures))

    def _search(self, name: str, size: int) -> SearchFigures:
        results = [self._tool.search(name, size)]
        if results[0].seconds < SHORT:
            results += [self._tool.search(name, size) for _ in range(RUNS - 1)]
        return min(results, key=lambda each: each.seconds)


def measure(
    tools: Sequence[Tool], versions: dict[str, str], *, quick: bool, limit: float, say: Callable[[str], None]
) -> Record:
    """Make the run. A tool that fails keeps its figures up to then, and has the reason in `missed`."""
    host = machine()
    searches: list[Search] = []
    left_out: list[LeftOut] = []
    missed: dict[str, str] = {}
    for tool in tools:
        plan = Plan(tool, limit)
        try:
            plan.make(QUICK if quick else FULL, say)
        except NotMeasured as reason:
            missed[str(tool.series)] = str(reason)
        searches += plan.searches
        left_out += plan.left_out
    return Record(date.today().isoformat(), quick, host, versions, tuple(searches), tuple(left_out), missed)


def machine() -> Machine:
    """This machine."""
    load = round(psutil.getloadavg()[0], 1)
    return Machine(_processor(), os.cpu_count() or 1, psutil.virtual_memory().total, platform.system(), load)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


NAME = "benchmarks"
LIMITS = {True: 15.0, False: 60.0}
"""Seconds for a search, in a quick run and in a full one."""


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks page",
        description="Measure the small election and two-phase commit with every tool, in one run and in growing sizes, "
        "and write a page with a plot: benchmarks.md, benchmarks.svg, and the figures, benchmarks.json. Leave the "
        "machine alone meanwhile. A run takes at most ten minutes.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the page is written")
    parser.add_argument("--quick", action="store_true", help="up to two million states, in at most two minutes")
    parser.add_argument("--jar", type=tlc.jar_file, metavar="FILE", help="tla2tools.jar; without it TLC is left out")
    parser.add_argument(
        "--limit", type=decimals_between(1), metavar="SECONDS",
        help="leave out a search that is predicted to take longer (default: 60, quick: 15)",
    )  # fmt: skip
    parser.add_argument("--from", dest="figures", type=Path, metavar="FILE", help="figures of an earlier run")
    options = parser.parse_args(argv)
    if not options.folder.is_dir():
        parser.error(f"{options.folder}: the folder does not exist; name one that exists")
    if options.figures is not None and (options.quick or options.jar or options.limit):
        parser.error("--from measures nothing, so --quick, --jar and --limit do not go with it")
    if reason := text.available():
        parser.error(reason)
    return options


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = arguments(argv)
    if options.figures is None:
        limit = options.limit or LIMITS[options.quick]
        record = measure(all_tools(options.jar), versions(options.jar), quick=options.quick, limit=limit, say=_progress)
        if not record.searches:
            sys.stderr.write("".join(f"{tool}: not measured: {why}\n" for tool, why in record.missed.items()))
            return 1
    else:
        try:
            record = load(options.figures)
        except RecordError as error:
            sys.stderr.write(f"error: {error}\n")
            return 2
    write(record, options.folder)
    for tool, reason in record.missed.items():
        sys.stderr.write(f"{tool}: not measured: {reason}\n")
    return 1 if record.missed else 0


def write(record: Record, folder: Path) -> None:
    """Write the figures, the plot and the page."""
    save(record, folder / f"{NAME}.json")
    text.draw(record, folder / f"{NAME}.svg")
    (folder / f"{NAME}.md").write_text(text.page(record), encoding="utf-8")


def _progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")
