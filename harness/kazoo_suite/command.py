"""`python -m harness kazoo`: runs kazoo's whole test-suite against real servers and against our nodes, and compares.

Exit codes: 0 every test that passes at the real servers passes at ours; 1 not so; 2 a wrong command line; 3 a run that
the harness could not make.

Rules of this module:

- A difference is a test that passes at the real servers and not at ours. Only differences decide about the exit code.
- A test that one of the two runs did not report counts as not run there, which is not a pass.

Source: the outcomes are those of `harness.kazoo_suite.run`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from checker.command import Command, refused, show_on_terminal
from harness import real
from harness.directories import add_keep, directories, keep_mistake
from harness.kazoo_suite.run import (
    KAZOO,
    ServerCommand,
    SuiteOutcome,
    SuiteRun,
    node_servers,
    real_servers,
    suite_python,
)
from harness.processes import ServerError
from harness.releases import MAVEN
from spec.text import between

NOT_RUN = "not run"


class TestOutcomes(msgspec.Struct, frozen=True):
    """One test with its outcomes at real servers and at ours; None where it was not run."""

    __test__ = False

    name: str
    real: SuiteOutcome | None
    ours: SuiteOutcome | None

    @property
    def is_difference(self) -> bool:
        """Whether the test passes at the real servers only."""
        return self.real is SuiteOutcome.PASSED and self.ours is not SuiteOutcome.PASSED


class SuiteComparison(msgspec.Struct, frozen=True):
    """Both runs against ensembles of one size; `real` is None if only our nodes were tested."""

    size: int
    real: Mapping[str, SuiteOutcome] | None
    ours: Mapping[str, SuiteOutcome]

    def rows(self) -> list[TestOutcomes]:
        """Each test of either run, by name."""
        real = self.real or {}
        return [TestOutcomes(name, real.get(name), self.ours.get(name)) for name in sorted({*real, *self.ours})]

    @property
    def differences(self) -> list[TestOutcomes]:
        """The tests that pass at the real servers only; without a run there, those that fail at ours."""
        if self.real is None:
            return [row for row in self.rows() if row.ours is SuiteOutcome.FAILED]
        return [row for row in self.rows() if row.is_difference]

    def lines(self, *, every: bool) -> Iterator[str]:
        """The table as Markdown: every test, or those that do not pass in both runs; then the totals."""
        yield f"## {self.size} server{'s' if self.size > 1 else ''}"
        yield ""
        yield "| test | real | ours |"
        yield "| --- | --- | --- |"
        for row in self.rows():
            if every or row.ours is not SuiteOutcome.PASSED or row.real not in (None, SuiteOutcome.PASSED):
                yield f"| `{row.name}` | {row.real or NOT_RUN} | {row.ours or NOT_RUN} |"
        yield f"| all | {_total(self.real)} | {_total(self.ours)} |"
        yield ""


def _total(outcomes: Mapping[str, SuiteOutcome] | None) -> str:
    if outcomes is None:
        return NOT_RUN
    counter = Counter(outcomes.values())
    return ", ".join(f"{counter[outcome]} {outcome}" for outcome in SuiteOutcome)


LARGEST = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--servers",
        type=between(1, LARGEST),
        nargs="+",
        default=[1, 3],
        metavar="N",
        help="sizes of the ensembles (default: 1 3)",
    )
    parser.add_argument("--release", default=MAVEN[-1], metavar="R", help=f"of the real servers (default: {MAVEN[-1]})")
    parser.add_argument("--ours-only", action="store_true", help="no real servers: no test may fail")
    parser.add_argument("--select", default="", metavar="EXPRESSION", help="the tests to run, as pytest's -k")
    parser.add_argument(
        "--again",
        type=between(0),
        default=1,
        metavar="N",
        help="run tests that do not pass up to N more times (default: 1)",
    )
    parser.add_argument("--all", action="store_true", help="list every test, not only those that do not pass")
    add_keep(parser)


def run(options: argparse.Namespace) -> int:
    """Carry out the command; return its exit code."""
    if reason := keep_mistake(options.keep) or (None if options.ours_only else real.available(options.release)):
        return refused(reason, 2)
    differences = 0
    try:
        python = suite_python()
        with directories(options.keep) as folder:
            for size in options.servers:
                outcomes = partial(_outcomes, options, python, size=size, folder=folder)
                expected = None if options.ours_only else outcomes(real_servers(options.release))
                comparison = SuiteComparison(size, expected, outcomes(node_servers()))
                print("\n".join(comparison.lines(every=options.all)), flush=True)
                differences += len(comparison.differences)
    except (ServerError, OSError) as error:
        return refused(str(error), 3)
    sizes = " and ".join(map(str, options.servers))
    where = "our nodes" if options.ours_only else f"our nodes and not at ZooKeeper {options.release}"
    print(f"kazoo {KAZOO}, ensembles of {sizes}: {differences} tests do not pass at {where}")
    return 1 if differences else 0


def _outcomes(
    options: argparse.Namespace, python: Path, servers: ServerCommand, size: int, folder: Path
) -> Mapping[str, SuiteOutcome]:
    """The outcome of each test; a test that does not pass is run again, and passes if it passes then."""
    outcomes: dict[str, SuiteOutcome] = {}
    selection = options.select
    for attempt in range(options.again + 1):
        where = folder / f"{servers.kind}-{size}-{attempt + 1}"
        with _Progress(f"{servers.kind}, {size} server{'s' if size > 1 else ''}, run {attempt + 1}") as ended:
            outcomes |= SuiteRun(servers, size, where, selection).outcomes(python, ended)
        failed = [name for name, outcome in outcomes.items() if outcome is SuiteOutcome.FAILED]
        if not failed:
            break
        # Names of methods: pytest's -k knows no path. A name that occurs twice is run twice.
        selection = " or ".join(sorted({name.rpartition("::")[2].partition("[")[0] for name in failed}))
        if options.select:
            selection = f"({options.select}) and ({selection})"
    return outcomes


class _Progress:
    """The number of tests that have ended, on a terminal; elsewhere one line for each run."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._count = 0

    def __enter__(self) -> Callable[[str], None]:
        if not sys.stderr.isatty():
            print(f"{self._what} ...", file=sys.stderr, flush=True)
        return self._ended

    def __exit__(self, *_: object) -> None:
        show_on_terminal()

    def _ended(self, line: str) -> None:
        self._count += 1
        test = line.split(maxsplit=1)[0].rpartition("/")[2]
        show_on_terminal(f"{self._what}: {self._count} tests, {test}"[:107])


SUITE = Command(add_options, run)
