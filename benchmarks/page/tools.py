"""The tools of the page: each searches a model of some size in its own process.

Rules: the programs of SPIN and of stateright are nothing but their search, so their whole size counts; TLC's size at a
start with nothing to search, and ours before the search, do not. SPIN's table has 1.2 to 2.4 slots for each state.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks import spin, stateright
from benchmarks.comparison import QUORATE, SearchFigures, known_states, searched
from benchmarks.outcome import SPIN, NotMeasured
from benchmarks.page.record import Series
from benchmarks.tlc import run as tlc
from benchmarks.tlc.command import OURS

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
        command = [sys.executable, "-m", "benchmarks.search_alone", OURS[example], str(size), str(threads)]
        return searched(QUORATE, command)

    return Tool(Series(QUORATE, threads), tuple(OURS), search)


def _spin(example: str, size: int) -> SearchFigures:
    slots = SLOTS * (known_states(example, size) or 0)
    result = spin.explore(spin.MODELS / PROMELA[example], size, max(LEAST_POWER, int(slots).bit_length()))
    return SearchFigures(SPIN, result.states, result.transitions, result.seconds, result.peak_bytes)


class _Stateright:
    @cached_property
    def program(self) -> Path:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quorate" / "stateright"
        return stateright.build(cache)

    def search(self, example: str, size: int) -> SearchFigures:
        return searched(stateright.STATERIGHT, [str(self.program), example, str(size), "1"])


class _Tlc:
    def __init__(self, jar: Path) -> None:
        self._jar = jar

    @cached_property
    def empty(self) -> tlc.Start:
        return tlc.start(self._jar)

    def search(self, example: str, size: int) -> SearchFigures:
        return tlc.search(self._jar, self.empty, example, size)


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
