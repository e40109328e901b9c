"""The second pass over a journal: its records in order, each with the server and the effects after it.

Rules this module keeps:

- A journal that fits has the same results in both passes. The first pass keeps them while a journal is short, so that
  its steps are not computed twice. A longer one is read and replayed again, so memory does not grow with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from checker.validate.journals import StartRecord, StepRecord, TornRecord, read
from checker.validate.replay import Mismatch, Replay
from spec.effects import Effects
from spec.server import Server

SHORT = 1 << 13
"""The number of records of a journal up to which their results are kept."""


class ReplayedRecord(NamedTuple):
    """A record and its effects; `stepped` is the server before it forgets any of its log, `server` the one after."""

    record: StartRecord | StepRecord
    stepped: Server
    server: Server
    effects: Effects = ()


class ReplayedRecords:
    """The results of the first pass over one journal; without `keeps` none are kept."""

    def __init__(self, path: Path, *, keeps: bool) -> None:
        self._path = path
        self._kept: list[ReplayedRecord] | None = [] if keeps else None

    def add(self, record: StartRecord | StepRecord, replay: Replay, effects: Effects = ()) -> None:
        """Keep the result of a record, if the journal is short."""
        if self._kept is not None:
            self._kept.append(ReplayedRecord(record, replay.stepped, replay.server, effects))
            if len(self._kept) > SHORT:
                self._kept = None

    def __iter__(self) -> Iterator[ReplayedRecord]:
        return iter(self._kept) if self._kept is not None else _replayed(self._path)


def _replayed(path: Path) -> Iterator[ReplayedRecord]:
    replay: Replay | None = None
    for record in read(path):
        if isinstance(record, StartRecord):
            replay = Replay(path, record, checks=False)
            yield ReplayedRecord(record, replay.server, replay.server)
        elif not isinstance(record, TornRecord):
            assert replay is not None  # a journal begins with a start record
            effects = replay.step(record)
            assert not isinstance(effects, Mismatch)  # the first pass has checked that it fits
            yield ReplayedRecord(record, replay.stepped, replay.server, effects)
