"""SPIN's exhaustive search of the election model: the reference of the table.

SPIN turns `spin/election.pml` into a C program for this one model, which gcc then compiles; the search is that program.
Rules: it is built again in a temporary directory on every run; the search runs as one process on one core; the options
are those of an exhaustive search for safety, with partial order reduction off, since the purpose is to visit the same
states; a search that did not end, or with a count that differs from the model, is an error.
"""

import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.child import Usage, run_alone
from benchmarks.outcome import SIZES, SPIN, Row, Size, ToolFailed, ToolMissing, check_size, workload
from spec.text import required_decimal, required_integer

MODELS = Path(__file__).parent / "spin"
MODEL = MODELS / "election.pml"
PACKAGES = {"spin": "spin", "gcc": "gcc"}  # program: Debian package

# No -DCOLLAPSE, -DHC or -DBITSTATE: they trade time or certainty for memory. -DNOCOMP is left out because it
# trades memory for time: with four servers it made the search 9 percent faster and 8 percent larger. A larger
# hash table (-w), -O2 and -march=native made it no faster.
GCC_OPTIONS = ("-O3", "-DSAFETY", "-DNOREDUCE")
# The hash table has 2 to the power of -w slots, more than there are states, so that it never has to grow.
HASH_POWER = {3: 16, 4: 24}
# No run of the model is longer than 42 events; SPIN gives up with an error if one were longer than this.
DEPTH = 1000

TAIL_LINES = 40
# SPIN prints hundredths of a second; below this our own wall clock is the better figure.
SHORTEST_TRUSTED_SECONDS = 1.0


@dataclass(frozen=True)
class Report:
    """The figures in SPIN's report on its search; `transitions` are those of the model, None if SPIN rounded them."""

    states: int
    transitions: int | None
    elapsed_seconds: float


@dataclass(frozen=True)
class SpinRun:
    """One finished search; `transitions` is None if SPIN rounded them.

    `elapsed_seconds` is SPIN's own figure, `wall_seconds` ours around the whole process, `build_seconds` the time of
    spin and gcc together, `peak_bytes` the peak resident size of the search, `tail` the end of SPIN's report as
    printed.
    """

    states: int
    transitions: int | None
    elapsed_seconds: float
    wall_seconds: float
    build_seconds: float
    peak_bytes: int
    tail: str

    @property
    def seconds(self) -> float:
        """The better figure for the time of the search."""
        trusted = self.elapsed_seconds >= SHORTEST_TRUSTED_SECONDS
        return self.elapsed_seconds if trusted else self.wall_seconds


def parse(output: str) -> Report:
    """Read the report of a finished search; raise `ToolFailed` if it found an error or did not end."""
    if "errors: 0" not in output or re.search(r"not completed|too small|out of memory", output):
        raise ToolFailed(f"SPIN's search did not end without an error:\n{_tail(output)}")
    number, _, power = _figure(r"^pan: elapsed time ([\d.e+-]+) seconds", output).partition("e")
    # SPIN counts the creation of the first state as a transition, and rounds a hundred million of them.
    transitions = _figure(r"^ *([\d.e+]+) transitions \(= stored\+matched\)$", output)
    return Report(
        states=required_integer(_figure(r"^ *(\d+) states, stored$", output)),
        transitions=None if "." in transitions or "e" in transitions else required_integer(transitions) - 1,
        elapsed_seconds=required_decimal(number) * 10 ** required_integer(power or "0"),
    )


def run(servers: int) -> SpinRun:
    """Build the model for `servers` (3 or 4), search it completely, check the count.

    Raises `ToolMissing`, `ToolFailed` or `WrongCount`.
    """
    if servers not in SIZES:
        raise ValueError(f"the model's size is known for {sorted(SIZES)} servers, not for {servers}")
    result = explore(MODEL, servers, HASH_POWER[servers])
    if result.transitions is None:
        raise ToolFailed(f"SPIN's report has no exact count of transitions:\n{result.tail}")
    check_size(SPIN, servers, Size(result.states, result.transitions))
    return result


def explore(model: Path, size: int, hash_power: int) -> SpinRun:
    """Build a model for N = `size` and search it completely, with 2**hash_power slots; the count is not checked.

    Raises `ToolMissing` or `ToolFailed`.
    """
    tools = {tool: _path_of(tool) for tool in PACKAGES}
    with tempfile.TemporaryDirectory(prefix="quorate-spin-") as name:
        directory = Path(name)
        # Copy the model into the output folder, because spin passes the file name to a shell.
        shutil.copy(model, directory)
        begin = time.perf_counter()
        _must_run([tools["spin"], "-a", f"-DN={size}", model.name], directory)
        _must_run([tools["gcc"], *GCC_OPTIONS, "-o", "pan", "pan.c"], directory)
        build_seconds = time.perf_counter() - begin
        usage, output = _search(hash_power, directory)
    report = parse(output)
    return SpinRun(
        states=report.states,
        transitions=report.transitions,
        elapsed_seconds=report.elapsed_seconds,
        wall_seconds=usage.wall_seconds,
        build_seconds=build_seconds,
        peak_bytes=usage.peak_bytes,
        tail=_tail(output),
    )


def measure(servers: int) -> list[Row]:
    """The measurement `spin`: one row."""
    result = run(servers)
    assert result.transitions is not None  # of the size that `run` has checked
    return [
        Row(
            tool=SPIN,
            workload=workload(servers),
            states=result.states,
            transitions=result.transitions,
            seconds=result.seconds,
            setup_seconds=result.build_seconds,
            peak_bytes=result.peak_bytes,
        )
    ]


def _path_of(tool: str) -> str:
    path = shutil.which(tool)
    if path is None:
        raise ToolMissing(tool, PACKAGES[tool])
    return path


def _must_run(command: list[str], directory: Path) -> None:
    process = subprocess.run(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if process.returncode != 0:
        words = " ".join([Path(command[0]).name, *command[1:]])
        raise ToolFailed(f"`{words}` ended with exit code {process.returncode}:\n{_tail(process.stdout)}")


def _search(hash_power: int, directory: Path) -> tuple[Usage, str]:
    output = directory / "report.txt"
    command = [str(directory / "pan"), f"-w{hash_power}", f"-m{DEPTH}"]
    usage = run_alone(command, output, directory)
    text = output.read_text(encoding="utf-8", errors="replace")
    if usage.exit_code != 0:
        raise ToolFailed(f"SPIN's search ended with exit code {usage.exit_code}:\n{_tail(text)}")
    return usage, text


def _figure(pattern: str, output: str) -> str:
    match = re.search(pattern, output, re.MULTILINE)
    if match is None:
        raise ToolFailed(f"SPIN's report has no line like {pattern!r}:\n{_tail(output)}")
    return match.group(1)


def _tail(output: str) -> str:
    return "\n".join(output.splitlines()[-TAIL_LINES:])
