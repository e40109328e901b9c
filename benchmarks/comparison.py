"""Two tools on one model: the figures of a search, and the ratio of two searches of the same states.

Rules: a ratio needs equal counts of distinct states, which are also the known ones where they are known; the time is
that of the search alone; memory is the peak resident size less that before the search.
"""

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.engine import run_for_figures, search_command
from benchmarks.outcome import SIZES, WrongCount
from spec.text import between

QUORATE = "Quorate"
TITLES = {
    "election": "election, {} servers",
    "two_phase_commit": "two-phase commit, {} managers",
    "paxos": "Paxos, 3 servers, {} clients",
    "zab_tla": "Zab.tla, {}",
}
PAXOS_STATES: dict[int | str, int] = {2: 16_668}
"""The distinct states by stateright's own tests."""


def known_states(example: str, size: int | str) -> int | None:
    """The distinct states of a model, from a source independent of all tools here; None if there is none.

    Two-phase commit has 4**n states before the decision (a manager is working, has refused, has prepared, or has been
    heard as well), 6**n after an abort (each of the last two may have obeyed), and 2**n after a commit.
    """
    if example == "two_phase_commit" and isinstance(size, int):
        return int(4**size + 6**size + 2**size)
    if example == "election" and isinstance(size, int):
        return SIZES[size].states if size in SIZES else None
    return PAXOS_STATES.get(size)


@dataclass(frozen=True)
class SearchFigures:
    """A complete search by one tool; of several, the fastest. `peak_bytes` is the memory of the search alone."""

    tool: str
    states: int
    transitions: int | None
    seconds: float
    peak_bytes: int

    @property
    def rate(self) -> float:
        """Distinct states per second."""
        return self.states / self.seconds

    @property
    def bytes_per_state(self) -> float:
        """The memory of the search, divided by the number of states."""
        return self.peak_bytes / self.states


def check_states(example: str, size: int | str, searches: Iterable[SearchFigures]) -> None:
    """Raise WrongCount unless all searches of a model found the same states, and the known number of them."""
    expected = known_states(example, size)
    for search in searches:
        expected = search.states if expected is None else expected
        if search.states != expected:
            raise WrongCount(search.tool, "states", search.states, expected)


@dataclass(frozen=True)
class Comparison:
    """A model of one size, or of one instance in words, searched by both.

    Raises WrongCount if the counts of states differ.
    """

    example: str
    size: int | str
    theirs: SearchFigures
    ours: SearchFigures

    def __post_init__(self) -> None:
        check_states(self.example, self.size, (self.theirs, self.ours))

    @property
    def ratio(self) -> float:
        """Our states per second over theirs: above 1 we are faster."""
        return self.ours.rate / self.theirs.rate


def searched(tool: str, command: list[str]) -> SearchFigures:
    """Run a search in its own process, whose last line of output is JSON: states, transitions, seconds.

    Raises ToolFailed.
    """
    usage, figures = run_for_figures(tool, command)
    peak = usage.peak_bytes - int(figures.get("baseline_bytes", 0))
    return SearchFigures(tool, figures["states"], figures["transitions"], figures["seconds"], peak)


def search_ours(model: str, size: int | str, threads: int, *more: str) -> SearchFigures:
    """Search a model of `benchmarks.search_alone`. Raises ToolFailed."""
    return searched(QUORATE, search_command(model, size, threads, *more))


def in_turns(
    example: str, size: int | str, runs: int, theirs: Callable[[], SearchFigures], ours: Callable[[], SearchFigures]
) -> Comparison:
    """Search a model with both tools in turns, so that both meet the same load; the fastest run of each counts."""
    searches = [(theirs(), ours()) for _ in range(runs)]
    best = (min(tool, key=lambda figures: figures.seconds) for tool in zip(*searches, strict=True))
    return Comparison(example, size, *best)


def add_run_options(parser: argparse.ArgumentParser, runs: int) -> None:
    """Add the options of a comparison; `runs` is the default of `--runs`."""
    parser.add_argument("--threads", type=between(1, 2), default=1, help="of both (default: 1)")
    parser.add_argument(
        "--runs", type=between(1), default=runs, metavar="N", help=f"the best of N runs counts (default: {runs})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")


HEADINGS = ("workload", "states", "tool", "transitions", "search s", "bytes/state", "states/s", "ratio")


def as_text(comparisons: Iterable[Comparison]) -> str:
    """Aligned columns, two lines for each comparison."""
    lines = [HEADINGS]
    for comparison in comparisons:
        title = TITLES[comparison.example].format(comparison.size)
        for figures, ratio in ((comparison.theirs, ""), (comparison.ours, f"{comparison.ratio:.2f}")):
            transitions = "-" if figures.transitions is None else f"{figures.transitions:,}"
            cells = (transitions, f"{figures.seconds:.3f}", f"{figures.bytes_per_state:,.0f}", f"{figures.rate:,.0f}")
            lines.append((title, f"{figures.states:,}", figures.tool, *cells, ratio))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def as_rows(comparisons: Iterable[Comparison]) -> list[dict[str, Any]]:
    """The comparisons for JSON: example, size, theirs, ours, ratio."""
    return [
        {
            **vars(comparison),
            "theirs": vars(comparison.theirs),
            "ours": vars(comparison.ours),
            "ratio": comparison.ratio,
        }
        for comparison in comparisons
    ]
