"""All mutants of `refimpl`, and the command that searches for them: `python -m tests.simulation.table [WORD ...]`."""

import argparse
import multiprocessing
import sys
from functools import partial
from pathlib import Path

from tests.simulation.mutant import Mutant, hunted, read_mutants

FILES = tuple(Path(__file__).parent / f"mutants-of-{part}.txt" for part in ("disk", "node", "clients"))
ALL: tuple[Mutant, ...] = tuple(mutant for file in FILES for mutant in read_mutants(file))
SECONDS = 60.0
"""Seconds of processor time for each mutant."""


def main(words: list[str]) -> int:
    """Search for the mutants that the command line chooses, and print each result; the exit code is 0.

    Those that change nothing are named with the reason, and not counted.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.table", description=main.__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="the mutants whose description has one of the words")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help="processor time for each mutant")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="mutants at the same time (default 1)")
    options = parser.parse_args(words)
    chosen = [mutant for mutant in ALL if not options.words or any(word in mutant.about for word in options.words)]
    for mutant in chosen:
        if mutant.nothing:
            print(f"{mutant.about}: changes nothing: {mutant.nothing}", flush=True)
    chosen = [mutant for mutant in chosen if not mutant.nothing]
    found = 0
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        for hunt in pool.imap(partial(hunted, seconds=options.seconds), chosen):
            found += bool(hunt.failure)
            verdict = f"{hunt.seeds} seeds: {hunt.failure[:120]}" if hunt.failure else "NOT FOUND"
            print(f"{hunt.about}: {hunt.seconds:.1f} s, {verdict}", flush=True)
    print(f"{found} of {len(chosen)} found")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
