"""The time of a whole command, and how its runs share it.

Each run may have an equal part of what is left; what a small one does not need is left to those after it. A run that
its part has ended is tried again, when all have had theirs, with an equal part of what is left then, if that is at
least `WORTH` times as long: so small runs get what they need, and large ones the rest. Nothing begins when the time is
over. It runs from the making of the budget, which is when the command line is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from checker.budget import TimeLeft

WORTH = 1.5  # states grow with depth by factors, so that a little more time shows nothing new

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
        """Carry out all runs for which there is time; the results by the places of the runs.

        `run` gets the seconds that a run may have, and the result of its earlier attempt. After a result for which
        `is_over` holds nothing more begins.
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
