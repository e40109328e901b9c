"""Searches in several sittings: interrupted repeatedly, and resumed from a folder."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from checker.engine import Exploration, Model, Stop, rounds, search
from checker.engine.checkpoint import Checkpoint
from checker.engine.states import frontier


class CrashError(BaseException):
    """A simulated crash: it ends the search immediately, without cleanup and without a checkpoint."""


class After:
    """A `progress` callback, called for every batch and every level, that interrupts or crashes the search at its n-th
    call.
    """

    def __init__(self, times: int, what: str) -> None:
        self.left, self.what = times, what

    def __call__(self, _: Exploration) -> None:
        self.left -= 1
        if self.left == 0 and self.what == "interrupt":
            signal.raise_signal(signal.SIGINT)
        elif self.left == 0:
            raise CrashError


@contextmanager
def small_blocks(rows: int) -> Iterator[None]:
    """Use blocks so small that a small model has many rounds of several slices, and report progress after each pass."""
    quick = patch.object(os, "fsync", lambda _: None)  # these tests kill a search, not the machine
    small = patch.multiple(rounds, ROUND=1, SLICE=max(1, rows // 3))
    with quick, small, patch.object(frontier, "BLOCK", rows), patch.object(search, "REPORT_EVERY", 0.0):
        yield


def in_sittings(
    model: Model, folder: Path, breaks: Iterable[tuple[int, str]], *options: Any, **more: Any
) -> tuple[Exploration, int]:
    """Return the result of a search that ends early at each of these breaks, and the number of sittings.

    A break is a number of progress reports, and an interrupt or a crash. Before a crash, the search writes a checkpoint
    after every block. A break after the end of the search has no effect.
    """
    sittings = 0
    for times, what in breaks:
        sittings += 1
        kept = Checkpoint(folder, every=0.0 if what == "crash" else 300.0, resume=True)
        try:
            found = search.explore(model, *options, progress=After(times, what), checkpoint=kept, **more)
        except (CrashError, KeyboardInterrupt):
            continue
        if found.stop is not Stop.INTERRUPTED:
            return found, sittings
    last = search.explore(model, *options, checkpoint=Checkpoint(folder, resume=True), **more)
    return last, sittings + 1


def assert_same(one: Exploration, other: Exploration) -> None:
    """Assert that two explorations agree: figures, coverage with first transitions, findings with their paths."""
    same = (
        "model", "levels", "transitions", "stop", "found", "coverage", "evaluations", "liveness", "deadlocks",
        "python_steps", "python_calls",
    )  # fmt: skip
    for name in same:
        assert getattr(one, name) == getattr(other, name), name
