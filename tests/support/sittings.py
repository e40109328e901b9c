"""Searches in several sittings: put down again and again, and taken up from a folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from checker.engine import Exploration, Model, Stop, frontier, search
from checker.engine.checkpoint import Checkpoint


class CrashError(BaseException):
    """What ends a process at once, so that nothing is tidied up or kept."""


class After:
    """A `progress` that is told of every batch and every level, and does something the n-th time."""

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
    """So small that a small model has many, and `progress` is told of each batch."""
    quick = patch.object(os, "fsync", lambda _: None)  # what these tests kill is a search, not a machine
    with quick, patch.object(frontier, "BLOCK", rows), patch.object(search, "REPORT_EVERY", 0.0):
        yield


def in_sittings(
    model: Model, folder: Path, breaks: Iterable[tuple[int, str]], *options: Any, **more: Any
) -> tuple[Exploration, int]:
    """What a search comes to that is ended so often, each time after so many reports; and in how many sittings.

    Before a crash it is kept after every block. A break that comes too late is none.
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
    """All that a search comes to is the same: figures, coverage with who came first, findings with their paths."""
    same = (
        "model", "levels", "transitions", "stop", "found", "coverage", "evaluations", "liveness", "deadlocks",
        "python_steps", "python_calls",
    )  # fmt: skip
    for name in same:
        assert getattr(one, name) == getattr(other, name), name
