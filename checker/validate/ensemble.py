"""All servers of an ensemble in one order: each record is processed once, and the refinement and the invariants follow.

A journal that fits alone can still belong to a run that breaks an invariant, since that takes several servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from checker.engine import Finding
from checker.validate.codec import text_of
from checker.validate.global_history import GlobalHistory
from checker.validate.happens_before import NONE, HappensBefore, Track, sender_of
from checker.validate.invariants import Count, Invariants
from checker.validate.journals import Record, StartRecord, StepRecord, TornRecord, read
from checker.validate.refinement import REFINEMENT, JournalRefinement
from checker.validate.replay import Mismatch, Replay
from spec.effects import Effects
from spec.quorum import Sid
from spec.server import Server

Reader = Callable[[Path], Iterator[Record]]
UNKNOWN_DISKS = "Durability"
"""The invariant over the contents of all disks at one moment; it cannot be decided unless all of them are known."""


class Ensemble:
    """All servers in one order."""

    def __init__(self, tracks: list[Track], needed: HappensBefore, reader: Reader = read) -> None:
        self._tracks, self._needed = tracks, needed
        self._records = [_records(track.path, reader) for track in tracks]
        self._done = [0] * len(tracks)
        starts = [next(records) for records in self._records]
        begun = [each for each in starts if isinstance(each, StartRecord)]
        self._replays = [Replay(t.path, each, checks=False) for t, each in zip(tracks, begun, strict=True)]
        self._ends = [{life.last for life in track.lives} for track in tracks]
        servers: dict[Sid, Server] = {replay.server.sid: replay.server for replay in self._replays}
        self._first: list[StartRecord | StepRecord | None] = [*begun]
        self.past = GlobalHistory(servers)
        self.held = Invariants(self.past, servers, begun[0].zab)
        self._refinement = JournalRefinement(self.past.start)
        if begun[0].zab is not None:
            self.held.counts[REFINEMENT] = Count()
        for replay in self._replays:
            self._look_at(replay.server)

    def _look_at(self, server: Server) -> None:
        """Leave out what needs all voters of a view, if one has no journal."""
        if server.view.voters - self.past.images.keys():
            self.held.leave_out(UNKNOWN_DISKS)
            self.held.leave_out(REFINEMENT)

    def take(self, place: int, *, invariants: bool = True) -> Mismatch | None:
        """Process the next record of a server; return a mismatch if it breaks the refinement or an invariant."""
        track, replay, number = self._tracks[place], self._replays[place], self._done[place]
        record = self._first[place] or next(self._records[place])
        self._first[place] = None
        self._done[place] += 1
        broken: tuple[str, Finding] | None = None
        if isinstance(record, StartRecord):
            if number:
                before = replay.server.durable
                replay.restart(record)
                self._refinement.restarted(before, replay.server.durable)
                self._look_at(replay.server)
                self.past.restarted(replay.server)
        else:
            broken = self._step(place, number, record)
        if broken is None and invariants:
            violated = self.held.evaluate()
            broken = None if violated is None else (violated[0].name, violated[1])
        if broken is not None:
            name, finding = broken
            event = "start" if isinstance(record, StartRecord) else text_of(record.event)
            where = (track.path, record.line, record.time, track.sid)
            return Mismatch(*where, event, finding.clause, finding.values, name)
        if number in self._ends[place]:
            ended = replay.server
            replay.crash()
            self._refinement.stepped(ended, None, replay.server, ())
            self.past.crashed(track.sid)
        self.past.settle()
        self._refinement.raise_to(self.past.floor)
        return None

    def _step(self, place: int, number: int, record: StepRecord) -> tuple[str, Finding] | None:
        """Process a step; return the condition of abstract Zab that it breaks, if any."""
        track, replay = self._tracks[place], self._replays[place]
        before, need = replay.server, self._needed.of[track.sid][number]
        effects = replay.step(record)
        assert not isinstance(effects, Mismatch)  # the first pass has checked that it fits
        beyond = number in self._needed.beyond[track.sid]
        sent = NONE if need == NONE or beyond else sender_of(need)[1]
        if beyond:
            self.past.given_by(record.event)
            self.held.leave_out(UNKNOWN_DISKS)
            self.held.leave_out(REFINEMENT)
        self.past.stepped(number, before, replay.stepped, record.event, effects, sent, first=record.first)
        return self._refined(before, record, replay, effects)

    def _refined(
        self, before: Server, record: StepRecord, replay: Replay, effects: Effects
    ) -> tuple[str, Finding] | None:
        count = self.held.counts.get(REFINEMENT)
        if count is None or REFINEMENT in self.held.left_out:
            return None
        if replay.stepped.runs_standalone:
            self.held.leave_out(REFINEMENT)
            return None
        answer = self._refinement.stepped(before, record.event, replay.stepped, effects)
        count.evaluated += 1
        count.premise += answer is not False
        if record.oldest is not None:
            self._refinement.shortened(replay.server.durable)
        return (REFINEMENT, answer) if isinstance(answer, Finding) else None


def _records(path: Path, reader: Reader) -> Iterator[StartRecord | StepRecord]:
    return (record for record in reader(path) if not isinstance(record, TornRecord))
