"""All mutants of `refimpl`, and the command that searches for them: `python -m tests.simulation.table [WORD ...]`."""

import sys

from tests.simulation.mutant import Mutant, hunted
from tests.simulation.mutants_of_clients import MUTANTS as OF_CLIENTS
from tests.simulation.mutants_of_disk import MUTANTS as OF_DISK
from tests.simulation.mutants_of_node import MUTANTS as OF_NODE

ALL: tuple[Mutant, ...] = (*OF_DISK, *OF_NODE, *OF_CLIENTS)
SECONDS = 60.0
"""Seconds of processor time for each mutant."""


def main(words: list[str], seconds: float = SECONDS) -> int:
    """Search for the mutants whose description has one of the words, all without a word; print each result."""
    chosen = [mutant for mutant in ALL if not words or any(word in mutant.about for word in words)]
    found = 0
    for mutant in chosen:
        hunt = hunted(mutant, seconds)
        found += bool(hunt.failure)
        what = f"{hunt.seconds:5.1f} s, {hunt.seeds} seeds" if hunt.failure else f"NOT FOUND in {hunt.seconds:.0f} s"
        print(f"{mutant.about}: {what}: {hunt.failure[:120]}", flush=True)  # noqa: T201
    print(f"{found} of {len(chosen)} found")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
