"""All mutants of `refimpl`, and the command that searches for them: `python -m tests.simulation.table [WORD ...]`."""

import sys
from pathlib import Path

from tests.simulation.mutant import Mutant, hunted, read_mutants

FILES = tuple(Path(__file__).parent / f"mutants-of-{part}.txt" for part in ("disk", "node", "clients"))
ALL: tuple[Mutant, ...] = tuple(mutant for file in FILES for mutant in read_mutants(file))
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
        print(f"{mutant.about}: {what}: {hunt.failure[:120]}", flush=True)
    print(f"{found} of {len(chosen)} found")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
