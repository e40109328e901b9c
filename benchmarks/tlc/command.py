"""``python -m benchmarks tlc --jar tla2tools.jar``: states per second of our models, and of TLC on the same in TLA+.

`Election.tla` is the small election, and `TwoPhase.tla` the two-phase commit of `docs/examples`. The jar is that of the
TLA+ tools; it is not part of this project. TLC runs on a Java machine, with its usual heap, and reads the module first.

Rules: all searches run in this run, one after another, each in its own process and with the same number of threads; a
ratio needs equal counts of distinct states; the best of several runs counts, for both. A search by TLC counts only if
it reports its completion without an error; its time and memory are those of the process, less those of a start with
nothing to search, since TLC rounds the time that it reports.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.child import Usage, run_alone
from benchmarks.comparison import Comparison, SearchFigures, add_run_options, as_rows, as_text, in_turns, search_ours
from benchmarks.engine import TAIL
from benchmarks.outcome import NotMeasured, ToolFailed, ToolMissing
from spec.text import between, required_integer

TLC = "TLC"
FOLDER = Path(__file__).parent
MODULES = {"election": "Election", "two_phase_commit": "TwoPhase"}
INVARIANTS = {"two_phase_commit": "INVARIANT Consistent\n"}
COMPLETED = "Model checking completed. No error has been found."
_COUNTS = re.compile(
    r"^([\d,]+) states generated, ([\d,]+) distinct states found, 0 states left on queue\.$", re.MULTILINE
)
_VERSION = re.compile(r"^TLC2 Version (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class TlcReport:
    """The counts in TLC's report. TLC counts an initial state as generated; `transitions` does not have it."""

    states: int
    transitions: int
    version: str


@dataclass(frozen=True)
class Start:
    """The wall clock and the peak resident size of TLC with nothing to search."""

    seconds: float
    peak_bytes: int
    version: str


def parse(output: str) -> TlcReport:
    """Read the report of a finished search from one initial state; raise ToolFailed if TLC did not complete it."""
    counts, version = _COUNTS.search(output), _VERSION.search(output)
    if COMPLETED not in output or counts is None or version is None:
        raise ToolFailed(f"TLC's search was not completed without an error:\n{output[-TAIL:]}")
    generated, distinct = (required_integer(figure.replace(",", "")) for figure in counts.groups())
    return TlcReport(distinct, generated - 1, version.group(1))


def start(jar: Path) -> Start:
    """Start TLC on two-phase commit without a manager, which has three states. Raises NotMeasured."""
    usage, report = _run(jar, "two_phase_commit", 0, 1)
    return Start(usage.wall_seconds, usage.peak_bytes, report.version)


def search(jar: Path, empty: Start, example: str, size: int, workers: int = 1) -> SearchFigures:
    """Search a model completely; the count is not checked. Raises NotMeasured.

    A search that takes no longer than the start has no figure.
    """
    usage, report = _run(jar, example, size, workers)
    seconds, memory = usage.wall_seconds - empty.seconds, usage.peak_bytes - empty.peak_bytes
    if seconds <= 0:
        raise NotMeasured(f"TLC takes no longer for {MODULES[example]} with N = {size} than for its start")
    return SearchFigures(TLC, report.states, report.transitions, seconds, max(0, memory))


def _run(jar: Path, example: str, size: int, workers: int) -> tuple[Usage, TlcReport]:
    java = shutil.which("java")
    if java is None:
        raise ToolMissing("java", "default-jre-headless")
    module = MODULES[example]
    with tempfile.TemporaryDirectory(prefix="quorate-tlc-") as name:
        folder = Path(name)
        shutil.copy(FOLDER / f"{module}.tla", folder)
        configuration = f"INIT Init\nNEXT Next\nCONSTANT N = {size}\nCHECK_DEADLOCK FALSE\n"
        (folder / f"{module}.cfg").write_text(configuration + INVARIANTS.get(example, ""), encoding="utf-8")
        options = ["-workers", str(workers), "-noGenerateSpecTE", "-metadir", str(folder / "states")]
        command = [java, "-XX:+UseParallelGC", f"-Djava.io.tmpdir={folder}", "-cp", str(jar), "tlc2.TLC", *options]
        usage = run_alone([*command, module], folder / "output", folder)
        printed = (folder / "output").read_text(encoding="utf-8", errors="replace")
    if usage.exit_code != 0:
        raise ToolFailed(f"TLC ended with exit code {usage.exit_code}:\n{printed[-TAIL:]}")
    return usage, parse(printed)


OURS = {"election": "rounds", "two_phase_commit": "two_phase_commit"}
"""The names of the models in `benchmarks.search_alone`."""


def compare(jar: Path, empty: Start, example: str, size: int, threads: int, runs: int) -> Comparison:
    """Search a model with both, in turns. Raises NotMeasured."""
    theirs = partial(search, jar, empty, example, size, threads)
    return in_turns(example, size, runs, theirs, partial(search_ours, OURS[example], size, threads))


def jar_file(text: str) -> Path:
    """The absolute path of a jar, for the command line; raises ArgumentTypeError."""
    path = Path(text).absolute()
    if path.suffix != ".jar" or not path.is_file():
        raise argparse.ArgumentTypeError(f"{text}: this is no jar file; the path of tla2tools.jar would be right")
    return path


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks tlc",
        description="Measure the small election and two-phase commit against TLC, the model checker of TLA+, in one "
        "run and with the same number of threads. The jar is that of the TLA+ tools and is not installed.",
    )
    parser.add_argument("--jar", type=jar_file, required=True, metavar="FILE", help="tla2tools.jar")
    parser.add_argument(
        "--servers", type=between(3, 4), nargs="+", default=[3], metavar="N",
        help="sizes of the election, 3 or 4 (default: 3; TLC needs a quarter of an hour for 4)",
    )  # fmt: skip
    parser.add_argument("--managers", type=between(1), nargs="+", default=[5, 7], metavar="N", help="sizes of 2pc")
    add_run_options(parser, runs=1)
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Run the command; 1 if a figure is missing."""
    options = arguments(argv)
    comparisons, missed = [], 0
    try:
        empty = start(options.jar)
    except NotMeasured as reason:
        sys.stderr.write(f"not measured: {reason}\n")
        return 1
    for example, sizes in (("election", options.servers), ("two_phase_commit", options.managers)):
        for size in sizes:
            try:
                comparisons.append(compare(options.jar, empty, example, size, options.threads, options.runs))
            except NotMeasured as reason:
                missed += 1
                sys.stderr.write(f"not measured: {reason}\n")
    if options.json:
        result = {"threads": options.threads, "version": empty.version, "comparisons": as_rows(comparisons)}
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
    elif comparisons:
        sys.stdout.write(f"{as_text(comparisons)}\n{options.threads} thread(s) each, best of {options.runs}\n")
        sys.stdout.write(f"TLC {empty.version}; its start took {empty.seconds:.2f} s, which is not counted\n")
    return 1 if missed else 0
