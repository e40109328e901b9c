"""The validation of the journals of an ensemble: each one alone, then all of them in one order.

Rules this module keeps:

- The first pass replays each journal and records the messages; the order follows from them. The second pass replays all
  journals together, record by record, and evaluates the invariants after each record.
- If one server does not fit alone, the others are still replayed and the messages between them compared, but the
  invariants are not evaluated. The earliest misfit, by the clocks, comes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from checker.validate.held import Held
from checker.validate.journals import Begun, Handled, JournalError, Torn, read
from checker.validate.order import NONE, Needs, Track, merged, needs, sender_of
from checker.validate.past import Past
from checker.validate.replay import Ahead, Misfit, Replay
from checker.validate.report import Validation
from checker.validate.words import told
from spec.quorum import Sid
from spec.server import Server
from spec.txn import format_zxid as zxid_told

Progress = Callable[[str, int, int], None]
"""A progress callback: the present activity, the number of records done, and their total (0: not yet known)."""
OFTEN = 500  # records between calls
UNKNOWN_DISKS = "Durability"
"""The invariant over the contents of all disks at one moment; it cannot be decided unless all of them are known."""


def validate(paths: Sequence[Path], progress: Progress = lambda *_: None) -> Validation:
    """Validate the journals of one ensemble, a file for each server. Raises JournalError."""
    began = time.monotonic()
    firsts = _firsts(paths)
    found = Validation(tuple(firsts.values()), tuple(firsts))
    tracks = []
    for sid, path in firsts.items():
        track = _alone(sid, path, frozenset(firsts), found, progress)
        found.steps += len(track)
        tracks.append(track)
    needed = needs(tracks)
    if isinstance(needed, Misfit):
        found.misfits.append(needed)
    elif not found.misfits:
        _together(tracks, needed, found, progress)
    found.misfits.sort(key=lambda misfit: misfit.time)
    found.seconds = time.monotonic() - began
    return found


def _firsts(paths: Sequence[Path]) -> dict[Sid, Path]:
    """The journal of each server."""
    found: dict[Sid, Path] = {}
    for path in paths:
        first = next(read(path))
        if not isinstance(first, Begun):
            raise JournalError(path, 1, "it begins with a torn line; a journal begins with a start record")
        if first.sid in found:
            other = found[first.sid]
            raise JournalError(path, 1, f"server {first.sid} has another journal, {other}; name one for each server")
        found[first.sid] = path
    return dict(sorted(found.items()))


# One server alone.


def _alone(sid: Sid, path: Path, journaled: frozenset[Sid], found: Validation, progress: Progress) -> Track:
    """Replay one journal to its end, or to the first record that does not fit."""
    track, replay = Track(path, sid, journaled), None
    for record in read(path):
        if isinstance(record, Torn):
            track.torn()
            found.notes.append(f"{path}:{record.line}: a torn line, where the process of server {sid} ended")
        elif isinstance(record, Begun):
            misfit = _begun(record, replay, found, path)
            if misfit is not None:
                track.torn()
                found.misfits.append(misfit)
                break
            replay = replay or Replay(path, record)
            track.begun(record)
        else:
            assert replay is not None  # a journal begins with a start record
            effects = replay.step(record)
            if isinstance(effects, Misfit):
                track.torn()  # the messages that it sent from here on are unknown
                found.misfits.append(effects)
                break
            track.handled(record, effects)
            if len(track) % OFTEN == 0:
                progress(f"server {sid} by itself", len(track), 0)
    found.lives += len(track.lives)
    return track


def _begun(begun: Begun, replay: Replay | None, found: Validation, path: Path) -> Misfit | None:
    """Process a start record; return None if the server may start in this way."""
    if begun.variants:
        found.notes.append(f"{path}:{begun.line}: server {begun.sid} says it runs the variants "
                           f"{', '.join(begun.variants)}; it is held to the specification without them")  # fmt: skip
    found.views[begun.sid] = begun.view
    if replay is None:
        return None
    compared = replay.restart(begun)
    if isinstance(compared, Ahead):
        found.notes.append(f"{path}:{compared.line}: {compared.what}; it did more than it could write down")
        return None
    return compared


# All of them.


def _together(tracks: list[Track], needed: Needs, found: Validation, progress: Progress) -> None:
    found.notes += dict.fromkeys(needed.tolerated)
    ensemble = Ensemble(tracks, needed)
    found.counts = ensemble.held.counts
    for place in merged(tracks, needed):
        misfit = place if isinstance(place, Misfit) else ensemble.take(place)
        if misfit is not None:
            found.misfits.append(misfit)
            break
        found.merged += 1
        if found.merged % OFTEN == 0:
            progress("all servers together", found.merged, found.steps)
    if ensemble.held.left_out:
        names = ", ".join(ensemble.held.left_out)
        found.notes.append(f"{names}: not evaluated where a voter has no journal, nor after a record that reads what "
                           "is in no journal any more")  # fmt: skip
    past = ensemble.past
    found.facts, found.transactions = past.facts, len(past.committed)
    if past.start:
        found.notes.append(f"everything up to zxid {zxid_told(past.start)} is taken as given: no journal tells of it")
    for source, sid, zxid in sorted(past.given_snapshots):
        found.notes.append(f"server {sid} had a snapshot up to zxid {zxid_told(zxid)} of server {source}, which has no "
                           "journal: it is taken as given")  # fmt: skip


class Ensemble:
    """All servers in one order."""

    def __init__(self, tracks: list[Track], needed: Needs) -> None:
        self._tracks, self._needed = tracks, needed
        self._records = [_records(track.path) for track in tracks]
        self._done = [0] * len(tracks)
        starts = [next(records) for records in self._records]
        begun = [each for each in starts if isinstance(each, Begun)]
        self._replays = [Replay(t.path, each, checks=False) for t, each in zip(tracks, begun, strict=True)]
        self._ends = [{life.last for life in track.lives} for track in tracks]
        servers: dict[Sid, Server] = {replay.server.sid: replay.server for replay in self._replays}
        self._first: list[Begun | Handled | None] = [*begun]
        self.past = Past(servers)
        self.held = Held(self.past, servers, begun[0].zab)
        if any(replay.server.view.voters - servers.keys() for replay in self._replays):
            self.held.leave_out(UNKNOWN_DISKS)

    def take(self, place: int) -> Misfit | None:
        """Process the next record of a server; return a misfit if an invariant does not hold after it."""
        track, replay, number = self._tracks[place], self._replays[place], self._done[place]
        record = self._first[place] or next(self._records[place])
        self._first[place] = None
        self._done[place] += 1
        if isinstance(record, Begun):
            if number:
                replay.restart(record)
                self.past.restarted(replay.server)
        else:
            before, need = replay.server, self._needed.of[track.sid][number]
            effects = replay.step(record)
            assert not isinstance(effects, Misfit)  # the first pass has checked that it fits
            beyond = number in self._needed.beyond[track.sid]
            sent = NONE if need == NONE or beyond else sender_of(need)[1]
            if beyond:
                self.past.given_by(record.event)
                self.held.leave_out(UNKNOWN_DISKS)
            self.past.stepped(number, before, replay.stepped, record.event, effects, sent, first=record.first)
        broken = self.held.evaluate()
        if broken is not None:
            prop, finding = broken
            event = "start" if isinstance(record, Begun) else told(record.event)
            where = (track.path, record.line, record.time, track.sid)
            return Misfit(*where, event, finding.clause, finding.values, prop.name)
        if number in self._ends[place]:
            replay.crash()
            self.past.crashed(track.sid)
        self.past.settle()
        return None


def _records(path: Path) -> Iterator[Begun | Handled]:
    return (record for record in read(path) if not isinstance(record, Torn))
