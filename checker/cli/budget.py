"""The time budget of a whole command, and its division among the runs.

Each run gets an equal share of the time left; the unused part of a share remains for the later runs. After all runs
have had a share, each run that its share ended is tried again with an equal share of the time left then, if that is at
least `WORTH` times as long. Small runs therefore get the time that they need, and large ones the rest. No run begins
after the end of the budget. The time starts at the creation of the budget, when the command line is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from checker.budget import TimeLeft

WORTH = 1.5  # states grow by factors with depth, so a little additional time has no effect

Run = TypeVar("Run")
Result = TypeVar("Result")


class Budget(TimeLeft):
    """The time for all runs of a command."""

    def share(
        self,
        runs: Sequence[Run],
        run: Callable[[Run, float, Result | None], Result],
        is_cut: Callable[[Result], bool],
        is_over: Callable[[Result], bool] = lambda _: False,
    ) -> dict[int, Result]:
        """Carry out all runs for which there is time; return the results by the positions of the runs.

        `run` gets the seconds that the run may take, and the result of its earlier attempt or None. No run begins after
        a result for which `is_over` is true.
        """
        results: dict[int, Result] = {}
        parts: dict[int, float] = {}
        waiting = list(range(len(runs)))
        while waiting:
            cut = []
            for number, place in enumerate(waiting):
                part = self.left / (len(waiting) - number)
                if part <= 0 or part < WORTH * parts.get(place, 0.0):
                    continue
                parts[place] = part
                results[place] = run(runs[place], part, results.get(place))
                if is_over(results[place]):
                    return results
                if is_cut(results[place]):
                    cut.append(place)
            waiting = cut
        return results
