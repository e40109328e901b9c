"""A search by TLC: the command, its report, and its figures.

TLC runs on a Java machine and reads the module first. Rules: a search counts only if TLC reports its completion without
an error; its time and memory are those of the process, less those of a start with nothing to search, since TLC rounds
the time that it reports; the Java machine has its usual heap.
"""

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.child import Usage, run_alone
from benchmarks.comparison import SearchFigures
from benchmarks.engine import TAIL
from benchmarks.outcome import NotMeasured, ToolFailed, ToolMissing
from spec.text import required_integer

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
