"""The order of the steps of all servers, in which every message is sent before it is read.

Rules this module keeps:

- A quorum connection is a stream in each direction. The packets that a leader read on one connection are a prefix of
  the packets that the learner sent on it, and vice versa. The unread rest of a stream is lost.
  Which connections belong together: `checker.validate.connections`.
- A notification is sent before it is heard. A newer one may overtake it, and a new connection repeats the last one
  sent. The notifications heard of a sender therefore never go backwards in the order of sending, except over a slow
  socket of an older connection. If every server waits, one of them waits for a notification that equals an older one,
  and it has heard the older one.
- A life with a torn end may have lost its last records. Messages heard of it beyond the end of its journal are
  tolerated and reported. The same holds for a journal that ends before messages that others heard, since journals are
  copied one after the other.
- The contents of a REQUEST are not compared, since the leader's journal has the resulting transaction in its place; nor
  are the contents of a SNAP.
- Of the remaining orders, the one nearest to the clocks is used. Memory is some tens of bytes per message.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

from checker.validate.connections import ConnectionSide, PrecedingSteps, Stream, paired
from checker.validate.journals import StartRecord, StepRecord
from checker.validate.replay import Mismatch
from spec.effects import Connect, Disconnect, Effects, Send
from spec.election.messages import Deliver
from spec.quorum import Sid
from spec.server import Event
from spec.zab.events import LearnerGone, Receive
from spec.zab.packets import FollowerInfo, QuorumPacket

NONE = -1
_SERVER_BITS = 40


@dataclass
class Life:
    """A life of a server: its records from `first` to `last`, and whether the end is torn."""

    first: int
    last: int
    torn: bool = False


class Track:
    """The messages in one journal. Records are numbered from 0 through all lives, start records included."""

    def __init__(self, path: Path, sid: Sid, journaled: frozenset[Sid]) -> None:
        self.path, self.sid = path, sid
        self.lines, self.times = array("q"), array("d")
        self.lives: list[Life] = []
        self.dialled: dict[Sid, list[ConnectionSide]] = {peer: [] for peer in journaled}
        self.accepted: dict[Sid, list[ConnectionSide]] = {peer: [] for peer in journaled}
        self.notified: dict[Sid, Stream] = {peer: Stream() for peer in journaled}
        self.heard: dict[Sid, Stream] = {peer: Stream() for peer in journaled}
        self._open: dict[Sid, ConnectionSide] = {}

    def __len__(self) -> int:
        return len(self.lines)

    def begun(self, begun: StartRecord) -> None:
        """Add a start record."""
        self._open.clear()
        self.lives.append(Life(len(self), len(self)))
        self._numbered(begun)

    def torn(self) -> None:
        """Mark the end of the present life as torn."""
        self.lives[-1].torn = True

    def handled(self, handled: StepRecord, effects: Effects) -> None:
        """Add a step: the message that it read, then the messages that it sent."""
        number = len(self)
        self._numbered(handled)
        self.lives[-1].last = number
        self._heard(number, handled.event)
        for effect in effects:
            self._sent(number, effect)

    def event_at(self, record: int) -> tuple[int, float]:
        """The line and the time of a record."""
        return self.lines[record], self.times[record]

    def _numbered(self, record: StartRecord | StepRecord) -> None:
        self.lines.append(record.line)
        self.times.append(record.time)

    def _heard(self, number: int, event: Event) -> None:
        match event:
            case Deliver(source=source, notification=heard) if source in self.heard:
                self.heard[source].add(number, heard)
            case Receive(source=source, packet=packet) if source in self.accepted:
                if isinstance(packet, FollowerInfo):
                    self._open[source] = ConnectionSide(len(self.lives) - 1)
                    self.accepted[source].append(self._open[source])
                if source in self._open:
                    self._open[source].read.add(number, packet)
            case LearnerGone(learner=learner):
                self._open.pop(learner, None)

    def _sent(self, number: int, effect: Any) -> None:
        match effect:
            case Send(peer=peer, message=QuorumPacket() as packet):
                if peer in self._open:
                    self._open[peer].sent.add(number, packet)
            case Send(peer=peer, message=message) if peer in self.notified:
                self.notified[peer].add(number, message)
            case Connect(leader=leader, first=first) if leader in self.dialled:
                self._open[leader] = ConnectionSide(len(self.lives) - 1)
                self._open[leader].sent.add(number, first)
                self.dialled[leader].append(self._open[leader])
            case Disconnect(peer=None):
                self._open.clear()
            case Disconnect(peer=peer):
                self._open.pop(peer, None)  # type: ignore[arg-type]


@dataclass
class HappensBefore:
    """For each record, the record that must precede it (as a number of `_at`) or NONE; and the tolerated deviations.

    `beyond` are records that read a message from beyond the end of the sender's journal.
    """

    of: dict[Sid, array[int]]
    beyond: dict[Sid, set[int]]
    tolerated: list[str] = field(default_factory=list)


def _at(server: int, record: int) -> int:
    return server << _SERVER_BITS | record


def sender_of(need: int) -> tuple[int, int]:
    """The position of the server in the list of tracks, and the number of its record."""
    return need >> _SERVER_BITS, need & ((1 << _SERVER_BITS) - 1)


def happens_before(tracks: list[Track]) -> HappensBefore | Mismatch:
    """The precedence between records. If a server read a message that was not sent, the earliest such record, by its
    time, is the mismatch.
    """
    order = HappensBefore(
        {track.sid: array("q", [NONE]) * len(track) for track in tracks}, {track.sid: set() for track in tracks}
    )
    ways = list(permutations(tracks, 2))
    wrong = [_notified(tracks.index(sender), sender, reader, order) for sender, reader in ways]
    wrong += [_connected(tracks, learner, leader, order) for learner, leader in ways]
    mismatches = [result for result in wrong if result is not None]
    return min(mismatches, key=lambda mismatch: mismatch.time) if mismatches else order


def _unsent(
    sender: Track, reader: Track, record: int, what: str, values: tuple[tuple[str, object], ...] = ()
) -> Mismatch:
    line, time = reader.event_at(record)
    return Mismatch(reader.path, line, time, reader.sid, f"{what} of server {sender.sid}", f"a {what} is read that "
                  f"server {sender.sid} did not send by its own journal ({sender.path})", values)  # fmt: skip


# Notifications.


def _notified(place: int, sender: Track, reader: Track, found: HappensBefore) -> Mismatch | None:
    sends, heard = sender.notified[reader.sid], reader.heard[sender.sid]
    earliest: dict[int, int] = {}
    latest = 0
    overtaken = 0
    for number in range(len(sends)):
        earliest.setdefault(sends.words[number], number)
        earliest.setdefault(sends.refused[number], number)
    for record, word in zip(heard.records, heard.words, strict=True):
        index = next((n for n in range(latest, len(sends)) if word in (sends.words[n], sends.refused[n])), None)
        if index is None:
            index = earliest.get(word)
            overtaken += index is not None
        if index is None:
            if not any(life.torn for life in sender.lives):
                return _unsent(sender, reader, record, "notification")
            heard_more = f"server {reader.sid} heard a notification of server {sender.sid} that is not in its journal"
            found.tolerated.append(f"{heard_more}, which has a torn end")
            continue
        latest = max(latest, index)
        found.of[reader.sid][record] = _at(place, sends.records[index])
    if overtaken:
        found.tolerated.append(f"server {reader.sid} heard {overtaken} notifications of server {sender.sid} behind "
                               "newer ones, as of an older connection")  # fmt: skip
    return None


# Quorum connections: those made by the learner, and those accepted by the leader.


def _connected(tracks: list[Track], learner: Track, leader: Track, found: HappensBefore) -> Mismatch | None:
    dialled, accepted = learner.dialled[leader.sid], leader.accepted[learner.sid]
    for dialling, accepting in paired(
        dialled, accepted, (_preceding_steps(leader, learner, found), _preceding_steps(learner, leader, found))
    ):
        wrong = _joined(tracks, learner, leader, dialling, accepting, found)
        if wrong is not None:
            return wrong
    return None


def _preceding_steps(sender: Track, reader: Track, found: HappensBefore) -> PrecedingSteps:
    heard = reader.heard[sender.sid].records
    needs = (found.of[reader.sid][record] for record in heard)
    return PrecedingSteps(heard, (NONE if need == NONE else sender_of(need)[1] for need in needs))


def _joined(
    tracks: list[Track],
    learner: Track,
    leader: Track,
    one: ConnectionSide | None,
    other: ConnectionSide | None,
    found: HappensBefore,
) -> Mismatch | None:
    """Match both sides of one connection; a missing side has sent nothing."""
    empty = ConnectionSide(NONE)
    one, other = one or empty, other or empty
    ways = ((learner, leader, one, other), (leader, learner, other, one))
    for sender, reader, sending, reading in ways:
        wrong = _streamed(tracks.index(sender), sender, reader, sending, reading.read, found)
        if wrong is not None:
            return wrong
    return None


def _streamed(
    place: int, sender: Track, reader: Track, sending: ConnectionSide, read: Stream, found: HappensBefore
) -> Mismatch | None:
    stream = sending.sent
    need = found.of[reader.sid]
    for number, (record, word) in enumerate(zip(read.records, read.words, strict=True)):
        if number < len(stream) and stream.words[number] == word:
            need[record] = _at(place, stream.records[number])
            continue
        life = _life_of(sender, sending)
        if number < len(stream) or life is None or not _ends_early(sender, life, reader.times[record]):
            values = (("packets of this connection that were sent and read before it", number),)
            return _unsent(sender, reader, record, "packet", values)
        need[record] = _at(place, life.last)
        found.beyond[reader.sid].add(record)
        if number == len(stream):
            found.tolerated.append(f"server {reader.sid} read {len(read) - number} packets of server {sender.sid} that "
                                   f"are not in its journal, which ends at line {sender.lines[life.last]}")  # fmt: skip
    return None


def _life_of(track: Track, connection: ConnectionSide) -> Life | None:
    if connection.life != NONE:
        return track.lives[connection.life]
    return next((life for life in reversed(track.lives) if life.torn), None)


def _ends_early(track: Track, life: Life, time: float) -> bool:
    """Whether the last records of a life may be missing: it ends torn, or its journal was copied before the others."""
    return life.torn or (life is track.lives[-1] and track.times[life.last] <= time)


# The order.


def merged(tracks: list[Track], needed: HappensBefore) -> Iterator[int | Mismatch]:
    """Yield, for each record in order, the position of its server; a mismatch if every server waits for another one.

    A record whose notification turns out to be an older one needs that one from then on (`needed` is changed).
    """
    counts = [0] * len(tracks)
    need = [needed.of[track.sid] for track in tracks]
    rest = sum(len(track) for track in tracks)
    while rest:
        chosen, earliest = NONE, 0.0
        for place, track in enumerate(tracks):
            number = counts[place]
            if number == len(track) or (chosen != NONE and track.times[number] >= earliest):
                continue
            needs = need[place][number]
            if needs == NONE or counts[needs >> _SERVER_BITS] > needs & ((1 << _SERVER_BITS) - 1):
                chosen, earliest = place, track.times[number]
        if chosen == NONE:
            if _take_older_notification(tracks, counts, needed):
                continue
            yield _knot(tracks, counts, need)
            return
        counts[chosen] += 1
        rest -= 1
        yield chosen


def _take_older_notification(tracks: list[Track], done: list[int], needed: HappensBefore) -> bool:
    """Let the earliest record that can have heard an older, equal notification need that one; False: there is none."""
    waiting = [place for place, track in enumerate(tracks) if done[place] < len(track)]
    for place in sorted(waiting, key=lambda place: tracks[place].times[done[place]]):
        reader, record = tracks[place], done[place]
        source, _ = sender_of(needed.of[reader.sid][record])
        sender = tracks[source]
        heard, sends = reader.heard[sender.sid], sender.notified[reader.sid]
        number = bisect_left(heard.records, record)
        if number == len(heard) or heard.records[number] != record:
            continue  # it reads no notification
        older = [sending for sending, word in zip(sends.records, sends.words, strict=True)
                 if sending < done[source] and word == heard.words[number]]  # fmt: skip
        if older:
            needed.of[reader.sid][record] = _at(source, older[-1])
            needed.tolerated.append(f"server {reader.sid} heard a notification of server {sender.sid} behind newer "
                                    "ones, as of an older connection")  # fmt: skip
            return True
    return False


def _knot(tracks: list[Track], done: list[int], need: list[array[int]]) -> Mismatch:
    """The mismatch for a cycle: every server waits for a record that another server has not reached."""
    waits = []
    for place, track in enumerate(tracks):
        if done[place] < len(track):
            sender, record = sender_of(need[place][done[place]])
            text = f"line {track.lines[done[place]]} waits for {tracks[sender].path}:{tracks[sender].lines[record]}"
            waits.append((track.times[done[place]], place, (f"server.{track.sid}", text)))
    _, place, _ = min(waits)
    line, time = tracks[place].event_at(done[place])
    clause = "no order of the steps has every message sent before it is read"
    return Mismatch(tracks[place].path, line, time, tracks[place].sid, "", clause, tuple(wait for _, _, wait in waits))
