"""Waiting for real servers, and the error of a driver that waits in vain."""

import time
from collections.abc import Callable

POLL_SECONDS = 0.05


class HarnessError(Exception):
    """The driver could not execute the schedule; nothing is known about the servers."""


def wait_for(differences: Callable[[], list[str]], seconds: float, what: str) -> None:
    """Wait until nothing differs. Raises HarnessError, with `what` and the differences, after `seconds`."""
    deadline = time.monotonic() + seconds
    while found := differences():
        if time.monotonic() > deadline:
            raise HarnessError(f"{what} within {seconds:g} s: {'; '.join(found)}")
        time.sleep(POLL_SECONDS)
