"""``python -m benchmarks rollouts``: the time and the work of the planner, for the changes that operators make.

Each change is planned twice in processes of their own, without kept answers: the first may compile kernels, the second
is the figure. Work counts transitions (`checker.rollout.runs`), so it is the same on every machine; seconds are not.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from checker.command import ExitCode
from checker.scenario import bundled

FOLDERS = bundled()[0].parent.parent / "rollouts"
CHANGES = {
    "3 to 4": ("three", "four"),
    "4 to 3": ("four", "three"),
    "3 to 5": ("three", "five"),
    "3 to 5, the leader first": ("three", "five", "--leader", "2", "--order", "4,5,2,1,3"),
    "3 to 5, the leader last": ("three", "five", "--leader", "2", "--order", "4,5,1,3,2"),
    "5 to 3": ("five", "three"),
    "3 replaced by 4": ("three", "replaced"),
    "1 to 3": ("one", "three"),
    "3 to 1": ("three", "one"),
    "observer to voter": ("observer", "voters"),
    "a lost disk": ("three", "three", "--disk", "3=empty"),
    "3.8.4 to 3.9.5": ("three", "three", "--release", "3.8.4", "--to-release", "3.9.5"),
    "no change": ("three", "three"),
}


@dataclass(frozen=True)
class Planned:
    """One plan: its recommendation and verdict, elapsed seconds, seconds of the processor, and seconds of work."""

    change: str
    recommendation: str
    verdict: str
    exit_code: int
    elapsed: float
    processor: float
    work: float


def planned(change: str) -> Planned:
    """Plan a change in a separate process."""
    old, new, *options = CHANGES[change]
    words = ["rollout", "--from", str(FOLDERS / old), "--to", str(FOLDERS / new), *options]
    command = [sys.executable, "-m", "checker", *words, "--no-cache"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    before, began = _processor(), time.monotonic()
    ended = subprocess.run([*command, "--json"], check=False, capture_output=True, text=True, env=environment)
    elapsed, processor = time.monotonic() - began, _processor() - before
    answer = json.loads(ended.stdout)
    return Planned(
        change, answer["recommendation"], answer["verdict"], ended.returncode, elapsed, processor, answer["seconds"]
    )


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(argv: list[str]) -> int:
    """Plan every change, and print a table; 1 if a change is undecided."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rollouts", description=__doc__)
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="write the figures to a file as well")
    options = parser.parse_args(argv)
    rows: list[Planned] = []
    for change in CHANGES:
        planned(change)
        rows.append(planned(change))
    table = Table("change", "recommendation", "exit", "elapsed s", "processor s", "work s")
    for row in rows:
        figures = (f"{figure:.1f}" for figure in (row.elapsed, row.processor, row.work))
        table.add_row(row.change, row.recommendation, str(row.exit_code), *figures)
    Console(width=160).print(table)
    if options.output is not None:
        options.output.write_text(json.dumps([row.__dict__ for row in rows], indent=1), encoding="utf-8")
    return int(any(row.exit_code == ExitCode.INCOMPLETE for row in rows))
