"""``python -m benchmarks stateright``: states per second of our two-phase commit and Paxos, and of stateright's own.

stateright is a model checker in Rust. Its examples `2pc.rs` and `paxos.rs` are built unchanged from its package on
crates.io, with a function at the end of each that measures a search. Ours are `docs/examples`, on the public API.

Rules: all searches run in this run, one after another, each in its own process and with the same number of threads; a
ratio needs equal counts of distinct states; the best of several runs counts, for both; the time is that of the search
alone, without compilation. stateright searches depth-first or breadth-first, as the example itself does (`2pc.rs`
depth-first, `paxos.rs` breadth-first); our search is breadth-first, and checks the same properties.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.comparison import Comparison, add_run_options, as_rows, as_text, in_turns, search_ours, searched
from benchmarks.engine import TAIL
from benchmarks.outcome import NotMeasured, ToolFailed
from spec.text import between

PROJECT = Path(__file__).parent / "stateright"
CRATE, PROGRAM = "stateright", "quorate-stateright"
STATERIGHT = "stateright"

TWO_PHASE_COMMIT = """
pub fn search(size: usize, threads: usize) -> (usize, usize, f64) {
    let begin = std::time::Instant::now();
    let checker = TwoPhaseSys { rms: 0..size }.checker().threads(threads).spawn_dfs().join();
    (checker.unique_state_count(), checker.state_count() - 1, begin.elapsed().as_secs_f64())
}
"""
PAXOS = """
pub fn search(size: usize, threads: usize) -> (usize, usize, f64) {
    let begin = std::time::Instant::now();
    let model = PaxosModelCfg {
        client_count: size,
        server_count: 3,
        network: Network::new_unordered_nonduplicating([]),
    };
    let checker = model.into_model().checker().threads(threads).spawn_bfs().join();
    (checker.unique_state_count(), checker.state_count() - 1, begin.elapsed().as_secs_f64())
}
"""


@dataclass(frozen=True)
class Example:
    """An example of both projects: its name, its file in stateright, and the Rust function that measures it."""

    name: str
    file: str
    measured: str


EXAMPLES = {
    "two_phase_commit": Example("two_phase_commit", "2pc.rs", TWO_PHASE_COMMIT),
    "paxos": Example("paxos", "paxos.rs", PAXOS),
}


def release() -> str:
    """The version of stateright that is built."""
    with (PROJECT / "Cargo.toml").open("rb") as file:
        requirement: str = tomllib.load(file)["dependencies"]["stateright"]
    return requirement.removeprefix("=")


def cache_folder() -> Path:
    """The folder of the user's cache for the program."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quorate" / "stateright"


def build(folder: Path) -> Path:
    """Build stateright's examples in a folder, and return the program. Raises NotMeasured."""
    cargo = shutil.which("cargo")
    if cargo is None:
        raise NotMeasured("cargo is missing: install Rust (apt-get install cargo, or rustup)")
    shutil.copytree(PROJECT, folder, dirs_exist_ok=True)
    for example in EXAMPLES.values():
        (folder / "src" / f"{example.name}.rs").touch()
    metadata = json.loads(_run([cargo, "metadata", "--format-version", "1"], folder))
    (crate,) = (Path(package["manifest_path"]).parent for package in metadata["packages"] if package["name"] == CRATE)
    for example in EXAMPLES.values():
        source = (crate / "examples" / example.file).read_text(encoding="utf-8")
        (folder / "src" / f"{example.name}.rs").write_text(source + example.measured, encoding="utf-8")
    _run([cargo, "build", "--release", "--quiet"], folder)
    return Path(metadata["target_directory"]) / "release" / PROGRAM


def _run(command: list[str], folder: Path) -> str:
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise ToolFailed(f"`{' '.join(command[1:])}` ended with exit code {run.returncode}:\n{run.stderr[-TAIL:]}")
    return run.stdout


def compare(program: Path, example: str, size: int, threads: int, runs: int) -> Comparison:
    """Search one example with both, in turns. Raises NotMeasured."""
    theirs = [str(program), example, str(size), str(threads)]
    ours = partial(search_ours, example, size, threads)
    return in_turns(example, size, runs, partial(searched, STATERIGHT, theirs), ours)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks stateright",
        description="Measure our two-phase commit and Paxos against stateright's own examples, in one run and with "
        "the same number of threads. The first run builds stateright with cargo, from crates.io.",
    )
    parser.add_argument("--managers", type=between(1), nargs="+", default=[3, 5, 7], metavar="N", help="sizes of 2pc")
    parser.add_argument("--clients", type=between(1), nargs="+", default=[2], metavar="N", help="sizes of Paxos")
    add_run_options(parser, runs=3)
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Run the command; 1 if a figure is missing."""
    options = arguments(argv)
    comparisons = []
    try:
        program = build(cache_folder())
        for example, sizes in (("two_phase_commit", options.managers), ("paxos", options.clients)):
            comparisons += [compare(program, example, size, options.threads, options.runs) for size in sizes]
    except NotMeasured as reason:
        sys.stderr.write(f"not measured: {reason}\n")
    if options.json:
        sys.stdout.write(json.dumps({"threads": options.threads, "comparisons": as_rows(comparisons)}, indent=2) + "\n")
    elif comparisons:
        sys.stdout.write(f"{as_text(comparisons)}\n{options.threads} thread(s) each, best of {options.runs}\n")
    expected = len(options.managers) + len(options.clients)
    return 0 if len(comparisons) == expected else 1
