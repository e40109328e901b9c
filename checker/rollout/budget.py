"""The time that is left for a roll-out, shared out among the runs that are still to come."""

from __future__ import annotations

from checker.budget import TimeLeft


class Budget(TimeLeft):
    """The time for all runs of a roll-out."""

    def share(self, runs: int) -> float:
        """What one of so many runs may take: twice its part, since most runs take less than theirs."""
        return min(self.left, 2 * self.left / max(runs, 1))
