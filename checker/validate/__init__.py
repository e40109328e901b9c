"""Validation of the journals of live servers against the specification: the same step functions, the same invariants.

- `codec`, `journals`: the format of a journal, and the reader of its files.
- `replay`: the replay of one server, perhaps twice: every step, and the contents of its disk after a restart.
- `connections`: the quorum connections of two servers, paired by their packets.
- `happens_before`: the messages between the servers, and an order of all steps in which every message is sent before it
  is read.
- `global_history`: the logs and the history that follow from that order, without the settled part.
- `invariants`: the invariants, evaluated on that history.
- `report`: the command, and its report.

This module validates the journals of an ensemble in one call: each one alone, then all of them in one order.

Rules this module keeps:

- The first pass replays each journal and records the messages; the order follows from them. The second pass takes the
  records of all journals in this order, and evaluates the invariants after each.
- The verdict is one of the lattice (`checker.job.Verdict`). A step that does not fit, a message that was never sent,
  and an invariant that does not hold are all violations: the running system differs from the specification.
- If one server does not fit alone, the others are still replayed and the messages between them compared, but the
  invariants are not evaluated. The earliest mismatch, by the clocks, comes first.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from checker.command import ExitCode
from checker.job import Verdict
from checker.refinement.abstract_steps import REFINEMENT, named
from checker.validate.codec import text_of
from checker.validate.global_history import GlobalHistory
from checker.validate.happens_before import NONE, HappensBefore, Track, happens_before, merged, sender_of
from checker.validate.invariants import Count, Invariants, JournalRefinement
from checker.validate.journals import JournalError, StartRecord, StepRecord, TornRecord, read
from checker.validate.replay import DiskAhead, Mismatch, Replay, ReplayedRecords
from spec.effects import Effects
from spec.quorum import Sid, View
from spec.server import Server, stopped
from spec.txn import format_zxid

__all__ = ["JournalError", "Validation", "validate"]

Progress = Callable[[str, int, int], None]
"""A progress callback: the present activity, the number of records done, and their total (0: not yet known)."""
OFTEN = 500  # records between calls
UNKNOWN_DISKS = "Durability"
"""The invariant over the contents of all disks at one moment. It cannot be decided unless all of them are known. It is
not evaluated after views differ, since a quorum of an old view may lack what a new view has committed."""


@dataclass
class Validation:
    """The input and the findings. `steps` counts all records, `merged` those that were reached in the common order."""

    paths: tuple[Path, ...]
    sids: tuple[Sid, ...]
    mismatches: list[Mismatch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    views: dict[Sid, View] = field(default_factory=dict)
    counts: Mapping[str, Count] = field(default_factory=dict)
    steps: int = 0
    lives: int = 0
    merged: int = 0
    facts: int = 0
    transactions: int = 0
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The first verdict of the lattice that applies."""
        if self.mismatches:
            return Verdict.VIOLATED
        return Verdict.PASSED if any(count.premise for count in self.counts.values()) else Verdict.VACUOUS

    @property
    def exit_code(self) -> ExitCode:
        """12 for anything that does not fit, 21 if the premise of every invariant was false everywhere."""
        codes = {Verdict.VIOLATED: ExitCode.SAFETY, Verdict.VACUOUS: ExitCode.VACUOUS}
        return codes.get(self.verdict, ExitCode.PASSED)

    @property
    def without_journal(self) -> tuple[Sid, ...]:
        """The servers that a view names and that have no journal here."""
        return tuple(sorted({sid for view in self.views.values() for sid in view.members} - set(self.sids)))


def validate(
    paths: Sequence[Path], progress: Progress = lambda *_: None, *, refines: bool = False, together: bool = True
) -> Validation:
    """Validate the journals of one ensemble, a file for each server. Raises JournalError.

    With `refines`, each step must also be a step of abstract Zab (`checker.validate.invariants`). Without `together`,
    each journal is replayed and the messages are compared, and no invariant is evaluated: the verdict is then VIOLATED
    or VACUOUS.
    """
    began = time.monotonic()
    firsts = _firsts(paths)
    validation = Validation(tuple(firsts.values()), tuple(firsts))
    tracks, replayed = [], []
    for sid, path in firsts.items():
        replayed.append(ReplayedRecords(path, keeps=together))
        track = _alone(sid, path, frozenset(firsts), validation, progress, replayed[-1])
        validation.steps += len(track)
        tracks.append(track)
    needed = happens_before(tracks)
    if isinstance(needed, Mismatch):
        validation.mismatches.append(needed)
    elif together and not validation.mismatches:
        _together(tracks, replayed, needed, validation, progress, refines=refines)
    validation.mismatches.sort(key=lambda mismatch: mismatch.time)
    validation.seconds = time.monotonic() - began
    return validation


def _firsts(paths: Sequence[Path]) -> dict[Sid, Path]:
    """The journal of each server."""
    journals: dict[Sid, Path] = {}
    for path in paths:
        first = next(read(path))
        if not isinstance(first, StartRecord):
            raise JournalError(path, 1, "it begins with a torn line; a journal begins with a start record")
        if first.sid in journals:
            journal = journals[first.sid]
            raise JournalError(path, 1, f"server {first.sid} has another journal, {journal}; name one for each server")
        journals[first.sid] = path
    return dict(sorted(journals.items()))


# One server alone.


def _alone(
    sid: Sid,
    path: Path,
    journaled: frozenset[Sid],
    found: Validation,
    progress: Progress,
    replayed: ReplayedRecords,
) -> Track:
    track, replay = Track(path, sid, journaled), None
    for record in read(path):
        if isinstance(record, TornRecord):
            track.torn()
            found.notes.append(f"{path}:{record.line}: a torn line, where the process of server {sid} ended")
        elif isinstance(record, StartRecord):
            mismatch = _begun(record, replay, found, path)
            if mismatch is not None:
                track.torn()
                found.mismatches.append(mismatch)
                break
            replay = replay or Replay(path, record)
            track.begun(record)
            replayed.add(record, replay)
        else:
            assert replay is not None  # a journal begins with a start record
            effects = replay.step(record)
            if isinstance(effects, Mismatch):
                track.torn()  # the messages that it sent from here on are unknown
                found.mismatches.append(effects)
                break
            track.handled(record, effects)
            replayed.add(record, replay, effects)
            if len(track) % OFTEN == 0:
                progress(f"server {sid} by itself", len(track), 0)
    found.lives += len(track.lives)
    return track


def _begun(begun: StartRecord, replay: Replay | None, found: Validation, path: Path) -> Mismatch | None:
    """Process a start record; return None if the server may start in this way."""
    if begun.variants:
        found.notes.append(f"{path}:{begun.line}: server {begun.sid} says it runs the variants "
                           f"{', '.join(begun.variants)}; it is held to the specification without them")  # fmt: skip
    found.views[begun.sid] = begun.view
    if replay is None:
        return None
    compared = replay.restart(begun)
    if isinstance(compared, DiskAhead):
        found.notes.append(f"{path}:{compared.line}: {compared.what}; it did more than it could write down")
        return None
    return compared


# All of them.


def _together(
    tracks: list[Track],
    replayed: list[ReplayedRecords],
    needed: HappensBefore,
    found: Validation,
    progress: Progress,
    *,
    refines: bool,
) -> None:
    ensemble = Ensemble(tracks, replayed, needed, refines=refines)
    for place in merged(tracks, needed):
        mismatch = place if isinstance(place, Mismatch) else ensemble.take(place)
        if mismatch is not None:
            found.mismatches.append(mismatch)
            break
        found.merged += 1
        if found.merged % OFTEN == 0:
            progress("all servers together", found.merged, found.steps)
    found.notes += dict.fromkeys(needed.tolerated)
    found.counts = ensemble.held.counts
    if ensemble.refinement is not None:
        found.counts = {**found.counts, REFINEMENT: ensemble.refinement.count}
    if ensemble.unrefined:
        found.notes.append(f"{REFINEMENT}: {ensemble.unrefined}")
    if ensemble.held.left_out:
        names = ", ".join(ensemble.held.left_out)
        found.notes.append(f"{names}: not evaluated where a voter has no journal, nor after a record that reads what "
                           "is in no journal any more, nor after a change of the quorums, nor after an observer has "
                           "ended between NEWLEADER and its log (docs/findings/observer-becomes-voter.md)")  # fmt: skip
    past = ensemble.past
    found.facts, found.transactions = past.facts, len(past.committed)
    if past.start:
        found.notes.append(f"everything up to zxid {format_zxid(past.start)} is taken as given: no journal tells of it")
    for source, sid, zxid in sorted(past.given_snapshots):
        snapshot = f"server {sid} had a snapshot up to zxid {format_zxid(zxid)} of server {source}"
        found.notes.append(f"{snapshot}, which has no journal: it is taken as given")


class Ensemble:
    """All servers in one order."""

    def __init__(
        self, tracks: list[Track], replayed: list[ReplayedRecords], needed: HappensBefore, *, refines: bool = False
    ) -> None:
        self.refinement = JournalRefinement() if refines else None
        self.unrefined = ""  # the reason why the refinement was not judged, or not to the end
        self._tracks, self._needed = tracks, needed
        self._done = [0] * len(tracks)
        starts = [next(iter(records)) for records in replayed]
        self._records = [iter(records) for records in replayed]
        self._ends = [{life.last for life in track.lives} for track in tracks]
        self._servers = [start.server for start in starts]
        servers: dict[Sid, Server] = {server.sid: server for server in self._servers}
        first = starts[0].record
        assert isinstance(first, StartRecord)  # a journal begins with a start record
        self.past = GlobalHistory(servers)
        self.held = Invariants(self.past, servers, first.zab)
        if any(server.view.voters - servers.keys() for server in self._servers):
            self.held.leave_out(UNKNOWN_DISKS)
        for server in self._servers:
            self._look_at(server, server.view)

    def _look_at(self, server: Server, last: View) -> None:
        """Leave out what cannot be judged where a voter of a view has no journal, or a server runs standalone.

        What is stated for equal views is left out once a server has other quorums than by its `last` view. The
        refinement is judged as long as the configuration does not change.
        """
        if server.view.quorums != last.quorums:
            self.held.leave_out(UNKNOWN_DISKS)
        if server.view.voters - self.past.images.keys():
            self._leave_refinement("not judged where a voter has no journal")
            self.held.leave_out_views()
        elif server.view.standalone:
            self._leave_refinement("not judged where a server runs standalone")

    def _leave_refinement(self, reason: str) -> None:
        if self.refinement is not None and not self.unrefined:
            self.unrefined = reason

    def take(self, place: int) -> Mismatch | None:
        """Process the next record of a server; return a mismatch if an invariant does not hold after it."""
        track, before, number = self._tracks[place], self._servers[place], self._done[place]
        record, stepped, server, effects = next(self._records[place])
        self._servers[place] = server
        self._done[place] += 1
        if isinstance(record, StartRecord):
            if number:
                self.past.restarted(server)
                self._look_at(server, before.view)
        else:
            need = self._needed.of[track.sid][number]
            beyond = number in self._needed.beyond[track.sid]
            source = NONE if need == NONE or beyond else sender_of(need)[1]
            if beyond:
                self.past.given_by(record.event)
                self.held.leave_out(UNKNOWN_DISKS)
                self._leave_refinement("not judged after a record that reads what is in no journal any more")
            floor = self.past.floor
            self.past.stepped(number, before, stepped, record.event, effects, source, first=record.first)
            if server.view is not before.view and server.view != before.view:
                self._look_at(server, before.view)
                self._leave_refinement("not judged after a change of the configuration")
            mismatch = self._refines(track, record, before, stepped, effects, floor)
            if mismatch is not None:
                return mismatch
        broken = self.held.evaluate()
        if broken is not None:
            prop, finding = broken
            event = "start" if isinstance(record, StartRecord) else text_of(record.event)
            where = (track.path, record.line, record.time, track.sid)
            return Mismatch(*where, event, finding.clause, finding.values, prop.name)
        if number in self._ends[place]:
            self._servers[place] = stopped(server, server.durable)
            if self.refinement is not None and not self.unrefined:
                self.refinement.ended(server, self._servers[place], self.past.floor)
            self.past.crashed(track.sid)
        self.past.settle()
        return None

    def _refines(
        self, track: Track, record: StepRecord, before: Server, after: Server, effects: Effects, floor: int
    ) -> Mismatch | None:
        """The first condition of abstract Zab that a step breaks, if it is judged."""
        if self.refinement is None or self.unrefined:
            return None
        broken = self.refinement.stepped(before, record.event, after, effects, floor)
        if not broken:
            return None
        clause, details = named(broken)
        where = (track.path, record.line, record.time, track.sid)
        return Mismatch(*where, text_of(record.event), clause, details, REFINEMENT)
