"""`python -m research.cost`: the throughput of a real ensemble with all corrections, next to one without.

Both ensembles have three servers on this machine and run at the same time. In each round the leader of each gets the
same writes, one ensemble after the other, and the order alternates. The figures are median ratios of the rounds. On a
machine that is busy with other work the processor time says more than the writes a second.

Exit codes: 0 measured; 2 a wrong command line; 3 an error of the servers.
"""

import argparse
import sys
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import psutil

from benchmarks.node.load import drive, make, session
from benchmarks.node.requests import batch
from checker.command import refused
from harness import real
from harness.corrections.agent import java_options
from harness.directories import add_keep, directories, keep_mistake
from harness.ensemble import Ensemble
from harness.processes import ServerError
from harness.releases import MAVEN
from research.corrections import DEFECTS
from spec.text import between

OPERATION, OUTSTANDING, SERVERS = "create", 50, 3
WARM_UP_ROUNDS = 6
TICK = 2000


def main(arguments: list[str] | None = None) -> int:
    """Carry out the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m research.cost", description="Compare the throughput with all corrections and without."
    )
    newest = MAVEN[-1]
    parser.add_argument("--release", default=newest, help=f"the release (default: {newest})")
    parser.add_argument("--rounds", type=between(2), default=15, help="the rounds (default: 15)")
    parser.add_argument(
        "--requests", type=between(OUTSTANDING), default=10_000, help="writes of a round (default: 10000)"
    )
    add_keep(parser)
    options = parser.parse_args(arguments)
    if reason := keep_mistake(options.keep) or real.available(options.release):
        return refused(reason, 2)
    try:
        with directories(options.keep) as folder:
            rounds = _measured(options, folder)
    except (ServerError, OSError) as error:
        return refused(str(error), 3)
    rates = [corrected.rate / bare.rate for bare, corrected in rounds]
    times = [corrected.processor / bare.processor for bare, corrected in rounds]
    for name, ratios in (("writes a second", rates), ("processor time of the servers for a write", times)):
        low, middle, high = quantiles(ratios, n=4)
        print(f"{name}, with / without: median {middle:.3f}, half of {len(ratios)} rounds in {low:.3f} to {high:.3f}")
    return 0


class Figures(NamedTuple):
    """The figures of a round: writes a second, and the seconds of a processor that all servers take for a write."""

    rate: float
    processor: float


def _measured(options: argparse.Namespace, folder: Path) -> list[tuple[Figures, Figures]]:
    """The figures of each round, without the corrections and with them."""
    agent = java_options([defect.name for defect in DEFECTS], options.release, folder / "agent")
    numbers = count()
    with ExitStack() as running:
        ensembles = []
        for name, correction in (("without", ()), ("with", agent)):
            directory = folder / name
            directory.mkdir()
            ensemble = Ensemble(
                ["real"] * SERVERS, directory, tick_time=TICK, java_options=correction, release=options.release
            )
            running.enter_context(ensemble)
            ensemble.start_all()
            ensembles.append(ensemble)
        rounds = []
        for number in range(WARM_UP_ROUNDS + options.rounds):
            order = (0, 1) if number % 2 else (1, 0)
            figures = {place: _figures(ensembles[place], options.requests, next(numbers)) for place in order}
            print(f"round {number + 1}: {figures[0].rate:,.0f} without, {figures[1].rate:,.0f} with", flush=True)
            rounds.append((figures[0], figures[1]))
        return rounds[WARM_UP_ROUNDS:]


def _figures(ensemble: Ensemble, requests: int, number: int) -> Figures:
    path = f"/load-{number:06d}"
    with session(ensemble.client_port(ensemble.leader())) as connection:
        make(connection, path)
        before = _processor_time(ensemble)
        run = drive(connection, batch(OPERATION, requests, path), OUTSTANDING)
        return Figures(run.rate, (_processor_time(ensemble) - before) / run.count)


def _processor_time(ensemble: Ensemble) -> float:
    times = [psutil.Process(ensemble.process(sid).pid).cpu_times() for sid in ensemble.sids]
    return sum(time.user + time.system for time in times)


if __name__ == "__main__":
    sys.exit(main())
