"""One run of all tools over all models, within a limit for each search.

Rules: searches run one after another; a search of less than a second is repeated, and the best of three counts; a tool
is not given a model for which the rate of its last search predicts more than the limit; the first search of a tool is
always made; a count of states that differs from the known one is an error and no figure.
"""

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

import psutil

from benchmarks.comparison import TITLES, SearchFigures, check_states, known_states
from benchmarks.outcome import NotMeasured
from benchmarks.page.record import LeftOut, Machine, Record, Search
from benchmarks.page.tools import Tool

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
            predicted = self._predict(name, size)
            if predicted > self._limit:
                reason = f"about {predicted:,.0f} s were predicted, and the limit was {self._limit:g} s"
                self.left_out.append(LeftOut(name, size, self._tool.series, reason))
                continue
            say(f"{self._tool.series}: {TITLES[name].format(size)}")
            found = self._search(name, size)
            check_states(name, size, [found])
            figures = (found.states, round(found.seconds, 4), found.peak_bytes)
            self.searches.append(Search(name, size, self._tool.series, *figures))

    def _predict(self, name: str, size: int) -> float:
        return (known_states(name, size) or 0) / self.searches[-1].rate if self.searches else 0.0

    def _search(self, name: str, size: int) -> SearchFigures:
        found = [self._tool.search(name, size)]
        if found[0].seconds < SHORT:
            found += [self._tool.search(name, size) for _ in range(RUNS - 1)]
        return min(found, key=lambda each: each.seconds)


def measure(
    tools: Sequence[Tool], versions: dict[str, str], *, quick: bool, limit: float, say: Callable[[str], None]
) -> Record:
    """Make the run. A tool that fails keeps its figures up to then, and has the reason in `missed`."""
    here = machine()
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
    return Record(date.today().isoformat(), quick, here, versions, tuple(searches), tuple(left_out), missed)


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
