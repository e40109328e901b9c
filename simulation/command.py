"""The command `python -m refimpl simulate`: runs by seed, or the replay of a failing one.

Exit codes: 0 every run passed, 2 bad command line, 12 a run failed, 20 interrupted, 21 nothing was checked.

`minimise` finds a smaller plan that fails too: fewer faults, then a shorter run with fewer clients.

Rules of this module:

- A candidate is accepted if its run fails, in whichever way. Every candidate is a complete run and is judged in full.
- The faults are halved, then quartered, and so on, as in delta debugging (Zeller and Hildebrandt 2002, ddmin).
- The number of runs is limited; the smallest plan so far is returned.
"""

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from checker.command import ExitCode, show_on_terminal
from simulation.faults import Fault
from simulation.report import RunSummary, SwarmReport, shortened, swarm_report
from simulation.run import WARM_UP, Plan, plan_of
from simulation.swarm import run_all, run_plan
from spec.text import between, decimals_between, required_integer

MOST_RUNS = 120
AFTERWARDS = 5.0
"""Seconds of work after the last fault."""


def minimised(plan: Plan, fails: Callable[[Plan], bool], most: int = MOST_RUNS) -> Plan:
    """The smallest failing plan that was found; `fails` runs a plan."""
    candidates = _smaller(plan)
    for _ in range(most):
        candidate = next(candidates, None)
        if candidate is None:
            break
        if fails(candidate):
            plan, candidates = candidate, _smaller(candidate)
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    if plan.faults:
        end = max(fault.at + fault.seconds for fault in plan.faults) + AFTERWARDS
        if end < plan.seconds - 1:
            yield replace(plan, seconds=round(end, 3))
    elif plan.seconds > WARM_UP + 2 * AFTERWARDS:
        yield replace(plan, seconds=plan.seconds / 2)
    for faults in _fewer(plan.faults):
        yield replace(plan, faults=faults)
    if plan.clients > 1:
        yield replace(plan, clients=plan.clients // 2)


def _fewer(faults: tuple[Fault, ...]) -> Iterator[tuple[Fault, ...]]:
    size = len(faults)
    while size:
        for start in range(0, len(faults), size):
            yield faults[:start] + faults[start + size :]
        size //= 2


MOST_SERVERS = 9
LENGTH = 60.0


class Replay(msgspec.Struct, frozen=True):
    """The file of a failing run: its plan, the failures, and the digest of all packets and all operations of disks."""

    plan: Plan
    failures: tuple[str, ...]
    digest: str


def arguments(argv: Sequence[str], program: str) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog=program,
        description="Run ensembles of nodes on a simulated clock, network and disk, under faults that follow from a "
        "seed, and check every run.",
        epilog="exit codes: 0 every run passed, 2 bad command line, 12 a run failed, 20 interrupted, "
        "21 nothing was checked",
    )
    parser.add_argument("--seed", type=between(0), default=1, metavar="N", help="the first seed (default 1)")
    parser.add_argument(
        "--seeds", type=between(1), metavar="N", help="how many seeds (default 1, or as many as --seconds allows)"
    )
    parser.add_argument(
        "--seconds", type=decimals_between(0), metavar="S", help="begin no further seed after this real time"
    )
    parser.add_argument(
        "--servers", type=between(3, MOST_SERVERS), default=3, metavar="N", help="voting servers (default 3)"
    )
    parser.add_argument(
        "--observers", type=between(0, MOST_SERVERS), default=0, metavar="N", help="observers (default 0)"
    )
    parser.add_argument(
        "--length",
        type=decimals_between(10),
        default=LENGTH,
        metavar="S",
        help=f"simulated seconds with faults (default {LENGTH:g})",
    )
    parser.add_argument("--workers", type=between(1), metavar="N", help="processes (default: one for each processor)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run the plan in this file, and nothing else")
    parser.add_argument(
        "--folder", type=Path, default=Path(), metavar="DIR", help="where the files of failing runs go (default: here)"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser.parse_args(argv)


def main(argv: Sequence[str], program: str = "python -m refimpl simulate") -> int:
    """Runs the command and returns its exit code."""
    options = arguments(argv, program)
    if options.replay is not None:
        return _replay(options.replay)
    report = _swarm(options)
    text = msgspec.json.format(msgspec.json.encode(report)).decode() if options.json else str(report)
    sys.stdout.write(f"{text}\n")
    return int(report.exit_code)


def _replay(file: Path) -> int:
    try:
        replay = msgspec.json.decode(file.read_bytes(), type=Replay)
    except OSError as error:
        sys.stderr.write(f"error: {file}: it cannot be read: {error.strerror}; name the file of a failing run\n")
        return int(ExitCode.COMMAND_LINE)
    except msgspec.DecodeError as error:
        sys.stderr.write(f"error: {file}: {error}; name a file that `simulate` wrote\n")
        return int(ExitCode.COMMAND_LINE)
    run = run_plan(replay.plan)
    for fault in replay.plan.faults:
        sys.stdout.write(f"{fault}\n")
    for failure in run.failures:
        sys.stdout.write(f"{shortened(failure, 4000)}\n")
    same = (
        "the run is that of the file" if run.digest == replay.digest else "the program has changed since: another run"
    )
    sys.stdout.write(f"{'failed' if run.failures else 'passed'}: seed {replay.plan.seed}; {same}\n")
    return int(ExitCode.SAFETY if run.failures else ExitCode.PASSED)


def _plans(options: argparse.Namespace, count: int | None) -> Iterator[Plan]:
    seeds = itertools.count(options.seed) if count is None else range(options.seed, options.seed + count)
    return (plan_of(seed, options.servers, options.observers, options.length) for seed in seeds)


def _swarm(options: argparse.Namespace) -> SwarmReport:
    began = time.monotonic()
    runs: list[RunSummary] = []
    interrupted = False

    def goes_on(_: Plan) -> bool:
        return options.seconds is None or time.monotonic() - began < options.seconds

    count: int | None = options.seeds or (None if options.seconds else 1)
    workers = options.workers or len(os.sched_getaffinity(0))
    if count is not None:
        workers = min(workers, count)
    try:
        for run in run_all(itertools.takewhile(goes_on, _plans(options, count)), workers):
            runs.append(run)
            failed, simulated = sum(bool(run.failures) for run in runs), sum(run.simulated for run in runs)
            elapsed = time.monotonic() - began
            show_on_terminal(f"{len(runs)} seeds, {simulated:.0f} s simulated in {elapsed:.0f} s, {failed} failed")
    except KeyboardInterrupt:
        interrupted = True
    show_on_terminal()
    failing = next((run for run in runs if run.failures), None)
    replays = {} if failing is None else {failing.seed: _written(options, failing)}
    elapsed = time.monotonic() - began
    return swarm_report(
        runs, options.servers, options.observers, options.seed, elapsed, replays, interrupted=interrupted
    )


def _written(options: argparse.Namespace, run: RunSummary) -> str:
    """Minimises a failing run, and writes its file; returns the name, or an empty text if it cannot be written."""
    plan = plan_of(required_integer(run.seed), options.servers, options.observers, options.length)
    show_on_terminal(f"seed {run.seed} failed; looking for a smaller run that fails")
    smaller = minimised(plan, lambda candidate: bool(run_plan(candidate).failures))
    final = run_plan(smaller)
    show_on_terminal()
    file: Path = options.folder / f"simulation-{run.seed}.json"
    replay = Replay(smaller, tuple(shortened(failure, 2000) for failure in final.failures), final.digest)
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(replay)) + b"\n")
    except OSError as error:
        sys.stderr.write(f"error: {file}: it cannot be written: {error.strerror}\n")
        return ""
    return str(file)
