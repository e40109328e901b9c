"""`python -m research.cost`: the throughput of a real ensemble with all corrections, next to one without.

Both ensembles have three servers on this machine and run at the same time. In each round the leader of each gets the
same writes, one ensemble after the other, and the order alternates. The figure is the median ratio of the rounds: a
machine that is busy with other work slows both.

Exit codes: 0 measured; 2 a wrong command line; 3 an error of the servers.
"""

import argparse
import sys
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median, quantiles

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
            rates = _measured(options, folder)
    except (ServerError, OSError) as error:
        return refused(str(error), 3)
    ratios = [corrected / bare for bare, corrected in rates]
    low, _, high = quantiles(ratios, n=4)
    bare, corrected = (median(column) for column in zip(*rates, strict=True))
    print(f"without: {bare:,.0f} writes a second; with all corrections: {corrected:,.0f} (medians)")
    print(f"ratio with / without: median {median(ratios):.3f}, half of {len(ratios)} rounds in {low:.3f} to {high:.3f}")
    return 0


def _measured(options: argparse.Namespace, folder: Path) -> list[tuple[float, float]]:
    """The writes a second in each round, without the corrections and with them."""
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
        rates = []
        for number in range(WARM_UP_ROUNDS + options.rounds):
            order = (0, 1) if number % 2 else (1, 0)
            rate = {place: _rate(ensembles[place], options.requests, next(numbers)) for place in order}
            print(f"round {number + 1}: {rate[0]:,.0f} without, {rate[1]:,.0f} with", flush=True)
            rates.append((rate[0], rate[1]))
        return rates[WARM_UP_ROUNDS:]


def _rate(ensemble: Ensemble, requests: int, number: int) -> float:
    path = f"/load-{number:06d}"
    with session(ensemble.client_port(ensemble.leader())) as connection:
        make(connection, path)
        return drive(connection, batch(OPERATION, requests, path), OUTSTANDING).rate


if __name__ == "__main__":
    sys.exit(main())
