"""Validation of the journals of live servers against the specification: the same step functions, the same invariants.

- `codec`, `journals`: the format of a journal, and the reader of its files.
- `replay`: the replay of one server: every step, and the contents of its disk after a restart.
- `happens_before`: the messages between the servers, and an order of all steps in which every message is sent before it
  is read.
- `global_history`: the logs and the history that follow from that order, without the settled part.
- `invariants`: the invariants, evaluated on that history.
- `refinement`: the conditions of abstract Zab, evaluated on each step.
- `ensemble`: all of this for all servers, record by record.
- `report`: the command, and its report.

This module validates the journals of an ensemble in one call: each one alone, then all of them in one order.

Rules this module keeps:

- The first pass replays each journal and records the messages; the order follows from them. The second pass replays all
  journals together, record by record, and evaluates the invariants after each record.
- The verdict is one of the lattice (`checker.job.Verdict`). A step that does not fit, a message that was never sent,
  and an invariant that does not hold are all violations: the running system differs from the specification.
- If one server does not fit alone, the others are still replayed and the messages between them compared, but the
  invariants are not evaluated. The earliest mismatch, by the clocks, comes first.
- If a journal that does not fit names variants, it is replayed once more with them. Only the refinement is judged
  there: it names the condition of abstract Zab that the variant breaks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from checker.job import Verdict
from checker.report.verdict import ExitCode
from checker.validate.ensemble import Ensemble, Reader
from checker.validate.happens_before import HappensBefore, Track, happens_before, merged
from checker.validate.invariants import Count
from checker.validate.journals import JournalError, StartRecord, TornRecord, read, read_with_variants
from checker.validate.replay import DiskAhead, Mismatch, Replay
from spec.quorum import Sid, View
from spec.txn import format_zxid

__all__ = ["JournalError", "Validation", "validate"]

Progress = Callable[[str, int, int], None]
"""A progress callback: the present activity, the number of records done, and their total (0: not yet known)."""
OFTEN = 500  # records between calls


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
    needed = happens_before(tracks)
    if isinstance(needed, Mismatch):
        found.mismatches.append(needed)
    elif not found.mismatches:
        _together(tracks, needed, found, progress)
    else:
        found.mismatches += _broken_by_variants(firsts, progress)
    found.mismatches.sort(key=lambda mismatch: mismatch.time)
    found.seconds = time.monotonic() - began
    return found


def _firsts(paths: Sequence[Path]) -> dict[Sid, Path]:
    """The journal of each server."""
    found: dict[Sid, Path] = {}
    for path in paths:
        first = next(read(path))
        if not isinstance(first, StartRecord):
            raise JournalError(path, 1, "it begins with a torn line; a journal begins with a start record")
        if first.sid in found:
            other = found[first.sid]
            raise JournalError(path, 1, f"server {first.sid} has another journal, {other}; name one for each server")
        found[first.sid] = path
    return dict(sorted(found.items()))


# One server alone.


def _alone(
    sid: Sid, path: Path, journaled: frozenset[Sid], found: Validation, progress: Progress, reader: Reader = read
) -> Track:
    """Replay one journal to its end, or to the first record that does not fit."""
    track, replay = Track(path, sid, journaled), None
    for record in reader(path):
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
        else:
            assert replay is not None  # a journal begins with a start record
            effects = replay.step(record)
            if isinstance(effects, Mismatch):
                track.torn()  # the messages that it sent from here on are unknown
                found.mismatches.append(effects)
                break
            track.handled(record, effects)
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


def _together(tracks: list[Track], needed: HappensBefore, found: Validation, progress: Progress) -> None:
    found.notes += dict.fromkeys(needed.tolerated)
    ensemble = Ensemble(tracks, needed)
    found.counts = ensemble.held.counts
    for place in merged(tracks, needed):
        mismatch = place if isinstance(place, Mismatch) else ensemble.take(place)
        if mismatch is not None:
            found.mismatches.append(mismatch)
            break
        found.merged += 1
        if found.merged % OFTEN == 0:
            progress("all servers together", found.merged, found.steps)
    for name in ensemble.held.left_out:
        found.notes.append(f"{name}: not evaluated where a voter has no journal, nor after a record that reads what "
                           "is in no journal any more")  # fmt: skip
    past = ensemble.past
    found.facts, found.transactions = past.facts, len(past.committed)
    if past.start:
        found.notes.append(f"everything up to zxid {format_zxid(past.start)} is taken as given: no journal tells of it")
    for source, sid, zxid in sorted(past.given_snapshots):
        snapshot = f"server {sid} had a snapshot up to zxid {format_zxid(zxid)} of server {source}"
        found.notes.append(f"{snapshot}, which has no journal: it is taken as given")


def _broken_by_variants(firsts: Mapping[Sid, Path], progress: Progress) -> list[Mismatch]:
    """The first condition of abstract Zab that servers break with the variants that their journals name, if any."""
    starts = [record for path in firsts.values() for record in read(path) if isinstance(record, StartRecord)]
    if not any(start.variants for start in starts):
        return []
    aside = Validation(tuple(firsts.values()), tuple(firsts))
    tracks = [_alone(sid, path, frozenset(firsts), aside, progress, read_with_variants) for sid, path in firsts.items()]
    needed = happens_before(tracks)
    if aside.mismatches or isinstance(needed, Mismatch):
        return []
    ensemble = Ensemble(tracks, needed, read_with_variants)
    for place in merged(tracks, needed):
        mismatch = place if isinstance(place, Mismatch) else ensemble.take(place, invariants=False)
        if mismatch is not None:
            return [mismatch] if mismatch.invariant else []
    return []
