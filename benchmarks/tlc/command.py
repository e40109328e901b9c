"""``python -m benchmarks tlc --jar tla2tools.jar``: states per second of our models, and of TLC on the same in TLA+.

`Election.tla` is the small election, and `TwoPhase.tla` the two-phase commit of `docs/examples`. With `--zab Zab.tla`
the models are instances of Apache's specification of Zab instead (`benchmarks.tlc.zab`). The jar is that of the TLA+
tools; neither it nor Zab.tla is part of this project. TLC runs on a Java machine, with its usual heap, and reads the
module first.

Rules: all searches run in this run, one after another, each in its own process and with the same number of threads; a
ratio needs equal counts of distinct states, and for Zab.tla of generated ones as well; the best of several runs counts,
for both. A search by TLC counts only if it reports its completion without an error; its time and memory are those of
the process, less those of a start with nothing to search, since TLC rounds the time that it reports.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.child import Usage, run_alone
from benchmarks.comparison import (
    QUORATE,
    Comparison,
    SearchFigures,
    add_run_options,
    as_rows,
    as_text,
    in_turns,
    search_ours,
)
from benchmarks.engine import TAIL
from benchmarks.outcome import NotMeasured, ToolFailed, ToolMissing, WrongCount
from benchmarks.tlc.official import NOTHING, Instance, Specification, official
from spec.text import between, required_integer

TLC = "TLC"
SYMMETRIC, IN_FULL = "symmetric", "in full"
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


def bundled(example: str, size: int) -> Specification:
    """A module of this folder with its size."""
    module = MODULES[example]
    configuration = f"INIT Init\nNEXT Next\nCONSTANT N = {size}\nCHECK_DEADLOCK FALSE\n"
    text = (FOLDER / f"{module}.tla").read_text(encoding="utf-8")
    return Specification(module, {f"{module}.tla": text, f"{module}.cfg": configuration + INVARIANTS.get(example, "")})


def start(jar: Path, empty: Specification | None = None) -> Start:
    """Start TLC on a specification with almost no states; by default two-phase commit without a manager, which has 3.

    Raises NotMeasured.
    """
    usage, report = _run(jar, bundled("two_phase_commit", 0) if empty is None else empty, 1)
    return Start(usage.wall_seconds, usage.peak_bytes, report.version)


def search(jar: Path, empty: Start, specification: Specification, workers: int = 1) -> SearchFigures:
    """Search a specification completely; the count is not checked. Raises NotMeasured.

    A search that takes no longer than the start has no figure.
    """
    usage, report = _run(jar, specification, workers)
    seconds, memory = usage.wall_seconds - empty.seconds, usage.peak_bytes - empty.peak_bytes
    if seconds <= 0:
        raise NotMeasured(f"TLC takes no longer for {specification.module} than for its start")
    return SearchFigures(TLC, report.states, report.transitions, seconds, max(0, memory))


def _run(jar: Path, specification: Specification, workers: int) -> tuple[Usage, TlcReport]:
    java = shutil.which("java")
    if java is None:
        raise ToolMissing("java", "default-jre-headless")
    with tempfile.TemporaryDirectory(prefix="quorate-tlc-") as name:
        folder = Path(name)
        for file, text in specification.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        options = ["-workers", str(workers), "-noGenerateSpecTE", "-metadir", str(folder / "states")]
        command = [java, "-XX:+UseParallelGC", f"-Djava.io.tmpdir={folder}", "-cp", str(jar), "tlc2.TLC", *options]
        usage = run_alone([*command, specification.module], folder / "output", folder)
        printed = (folder / "output").read_text(encoding="utf-8", errors="replace")
    if usage.exit_code != 0:
        raise ToolFailed(f"TLC ended with exit code {usage.exit_code}:\n{printed[-TAIL:]}")
    return usage, parse(printed)


OURS = {"election": "rounds", "two_phase_commit": "two_phase_commit"}
"""The names of the models in `benchmarks.search_alone`."""


def compare(jar: Path, empty: Start, example: str, size: int, threads: int, runs: int) -> Comparison:
    """Search a model with both, in turns. Raises NotMeasured."""
    theirs = partial(search, jar, empty, bundled(example, size), threads)
    return in_turns(example, size, runs, theirs, partial(search_ours, OURS[example], size, threads))


def compare_zab(
    jar: Path, file: Path, empty: Start, instance: Instance, kind: str, threads: int, runs: int
) -> Comparison:
    """Search an instance of Zab.tla with both, "symmetric" or "in full". Raises NotMeasured, and WrongCount also if the
    counts of transitions differ.
    """
    theirs = partial(search, jar, empty, official(file, instance, kind == SYMMETRIC), threads)
    ours = partial(search_ours, "zab_tla", str(instance), threads, kind)
    comparison = in_turns("zab_tla", f"{instance} {kind}", runs, theirs, ours)
    expected, transitions = comparison.theirs.transitions, comparison.ours.transitions
    if expected is not None and transitions is not None and transitions != expected:
        raise WrongCount(QUORATE, "transitions", transitions, expected)
    return comparison


def jar_file(text: str) -> Path:
    """The absolute path of a jar, for the command line; raises ArgumentTypeError."""
    path = Path(text).absolute()
    if path.suffix != ".jar" or not path.is_file():
        raise argparse.ArgumentTypeError(f"{text}: this is no jar file; the path of tla2tools.jar would be right")
    return path


def tla_file(text: str) -> Path:
    """The absolute path of a specification, for the command line; raises ArgumentTypeError."""
    path = Path(text).absolute()
    if path.suffix != ".tla" or not path.is_file():
        raise argparse.ArgumentTypeError(f"{text}: this is no file of TLA+; the path of Zab.tla would be right")
    return path


def an_instance(text: str) -> Instance:
    """An instance of Zab.tla, for the command line; raises ArgumentTypeError."""
    try:
        return Instance.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks tlc",
        description="Measure the small election and two-phase commit against TLC, the model checker of TLA+, in one "
        "run and with the same number of threads. The jar is that of the TLA+ tools and is not installed. With --zab, "
        "measure Apache's specification of Zab instead, which is in ZooKeeper's repository under "
        "zookeeper-specifications/protocol-spec: our model of it against TLC's search of the file that is given.",
    )
    parser.add_argument("--jar", type=jar_file, required=True, metavar="FILE", help="tla2tools.jar")
    parser.add_argument(
        "--servers", type=between(3, 4), nargs="+", default=[3], metavar="N",
        help="sizes of the election, 3 or 4 (default: 3; TLC needs a quarter of an hour for 4)",
    )  # fmt: skip
    parser.add_argument("--managers", type=between(1), nargs="+", default=[5, 7], metavar="N", help="sizes of 2pc")
    parser.add_argument("--zab", type=tla_file, metavar="FILE", help="Zab.tla, instead of the two models above")
    parser.add_argument(
        "--instances", type=an_instance, nargs="+", default=[Instance(), Instance(transactions=2)], metavar="N",
        help="servers, MaxTimeoutFailures, MaxTransactionNum, MaxEpoch (- for no limit) and MaxRestarts of Zab.tla, "
        "with commas (default: 3,1,1,-,0 3,1,2,-,0)",
    )  # fmt: skip
    parser.add_argument("--in-full", action="store_true", help="search Zab.tla without the symmetry of its servers")
    add_run_options(parser, runs=1)
    return parser.parse_args(argv)


def measurements(options: argparse.Namespace, empty: Start) -> list[Callable[[], Comparison]]:
    """The comparisons that the options ask for, in order."""
    jar, effort = options.jar, (options.threads, options.runs)
    if options.zab is not None:
        kind = IN_FULL if options.in_full else SYMMETRIC
        return [
            partial(compare_zab, jar, options.zab, empty, instance, kind, *effort) for instance in options.instances
        ]
    sizes = (("election", options.servers), ("two_phase_commit", options.managers))
    return [partial(compare, jar, empty, example, size, *effort) for example, numbers in sizes for size in numbers]


def main(argv: Sequence[str]) -> int:
    """Run the command; 1 if a figure is missing."""
    options = arguments(argv)
    comparisons, missed = [], 0
    try:
        empty = start(options.jar, None if options.zab is None else official(options.zab, NOTHING, symmetric=False))
    except NotMeasured as reason:
        sys.stderr.write(f"not measured: {reason}\n")
        return 1
    for measurement in measurements(options, empty):
        try:
            comparisons.append(measurement())
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
