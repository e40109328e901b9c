"""Who heard what of whom: an order of the steps of all servers in which nothing is heard before it is sent.

Rules this module keeps:

- A quorum connection is a stream in each direction. What a leader read of a learner on one connection is the beginning
  of what the learner sent on one, and the other way round; connections of two servers follow each other in the same
  order on both sides. What ended unread is lost.
- A notification was sent before it is heard. One may be overtaken by a newer, and the last one sent comes again with a
  new connection, so of a sender's notifications each that is heard is at or behind the one before; where a socket of an
  older connection is slow it may be an earlier one.
- A life that ends torn may have lost its last records: what others heard of it beyond its journal is tolerated, and
  told. So is the end of a journal that is shorter than what others heard, since journals are copied one by one.
- What a REQUEST asks for is not compared, since a leader reads the transaction it comes to; nor what a SNAP holds.
- Among the orders that are left the one nearest to the clocks is taken. Memory is some tens of bytes a message.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checker.validate.journals import Begun, Handled
from checker.validate.replay import Misfit
from spec.effects import Connect, Disconnect, Effects, Message, Send
from spec.election.messages import Deliver
from spec.quorum import Sid
from spec.server import Event
from spec.zab.events import LearnerGone, Receive
from spec.zab.packets import FollowerInfo, QuorumPacket, Request, Snap

NONE = -1
_SERVER_BITS = 40


@dataclass
class Stream:
    """Messages in one direction: the record of each, and a word that equal messages share."""

    records: array[int] = field(default_factory=lambda: array("q"))
    words: array[int] = field(default_factory=lambda: array("q"))

    def add(self, record: int, message: Message) -> None:
        """One more message."""
        self.records.append(record)
        self.words.append(_word(message))

    def __len__(self) -> int:
        return len(self.records)


@dataclass
class Connection:
    """One side of a quorum connection; `life` in which it was made."""

    life: int
    sent: Stream = field(default_factory=Stream)
    read: Stream = field(default_factory=Stream)


@dataclass
class Life:
    """A life of a server: its records from `first` to `last`, and whether the end is torn."""

    first: int
    last: int
    torn: bool = False


class Track:
    """What one journal says of messages. Records are numbered from 0 through all lives, start records included."""

    def __init__(self, path: Path, sid: Sid, journaled: frozenset[Sid]) -> None:
        self.path, self.sid = path, sid
        self.lines, self.times = array("q"), array("d")
        self.lives: list[Life] = []
        self.dialled: dict[Sid, list[Connection]] = {each: [] for each in journaled}
        self.accepted: dict[Sid, list[Connection]] = {each: [] for each in journaled}
        self.notified: dict[Sid, Stream] = {each: Stream() for each in journaled}
        self.heard: dict[Sid, Stream] = {each: Stream() for each in journaled}
        self._open: dict[Sid, Connection] = {}

    def __len__(self) -> int:
        return len(self.lines)

    def begun(self, begun: Begun) -> None:
        """A start record."""
        self._open.clear()
        self.lives.append(Life(len(self), len(self)))
        self._numbered(begun)

    def torn(self) -> None:
        """The present life ends with a line that is no record."""
        self.lives[-1].torn = True

    def handled(self, handled: Handled, effects: Effects) -> None:
        """A step: what was heard, then what was sent."""
        number = len(self)
        self._numbered(handled)
        self.lives[-1].last = number
        self._heard(number, handled.event)
        for effect in effects:
            self._asked(number, effect)

    def event_at(self, record: int) -> tuple[int, float]:
        """The line and the time of a record."""
        return self.lines[record], self.times[record]

    def _numbered(self, record: Begun | Handled) -> None:
        self.lines.append(record.line)
        self.times.append(record.time)

    def _heard(self, number: int, event: Event) -> None:
        match event:
            case Deliver(source=source, notification=heard) if source in self.heard:
                self.heard[source].add(number, heard)
            case Receive(source=source, packet=packet) if source in self.accepted:
                if isinstance(packet, FollowerInfo):
                    self._open[source] = Connection(len(self.lives) - 1)
                    self.accepted[source].append(self._open[source])
                if source in self._open:
                    self._open[source].read.add(number, packet)
            case LearnerGone(learner=learner):
                self._open.pop(learner, None)

    def _asked(self, number: int, effect: Any) -> None:
        match effect:
            case Send(peer=peer, message=QuorumPacket() as packet):
                if peer in self._open:
                    self._open[peer].sent.add(number, packet)
            case Send(peer=peer, message=message) if peer in self.notified:
                self.notified[peer].add(number, message)
            case Connect(leader=leader, first=first) if leader in self.dialled:
                self._open[leader] = Connection(len(self.lives) - 1)
                self._open[leader].sent.add(number, first)
                self.dialled[leader].append(self._open[leader])
            case Disconnect(peer=None):
                self._open.clear()
            case Disconnect(peer=peer):
                self._open.pop(peer, None)  # type: ignore[arg-type]


def _word(message: Message) -> int:
    if isinstance(message, Request):
        return 1
    return hash((2, message.zxid)) if isinstance(message, Snap) else hash(message)


@dataclass
class Needs:
    """For each record the one that must come before it, as a number of `_at`, or NONE; and what was tolerated.

    `beyond` are records that read what its sender's journal does not have any more.
    """

    of: dict[Sid, array[int]]
    beyond: dict[Sid, set[int]]
    tolerated: list[str] = field(default_factory=list)


def _at(server: int, record: int) -> int:
    return server << _SERVER_BITS | record


def sender_of(need: int) -> tuple[int, int]:
    """The place of the server in the list of tracks, and the number of its record."""
    return need >> _SERVER_BITS, need & ((1 << _SERVER_BITS) - 1)


def needs(tracks: list[Track]) -> Needs | Misfit:
    """What must come before what; the first message, by its time, that nobody sent is a misfit."""
    found = Needs({each.sid: array("q", [NONE]) * len(each) for each in tracks}, {each.sid: set() for each in tracks})
    wrong: list[tuple[float, Misfit]] = []
    for place, sender in enumerate(tracks):
        for reader in tracks:
            if reader is sender:
                continue
            for misfit in (_notified(place, sender, reader, found), _connected(tracks, sender, reader, found)):
                if misfit is not None:
                    wrong.append((misfit.time, misfit))
    return min(wrong, key=lambda pair: pair[0])[1] if wrong else found


def _unsent(
    sender: Track, reader: Track, record: int, what: str, values: tuple[tuple[str, object], ...] = ()
) -> Misfit:
    line, time = reader.event_at(record)
    return Misfit(reader.path, line, time, reader.sid, f"{what} of server {sender.sid}", f"a {what} is read that "
                  f"server {sender.sid} did not send by its own journal ({sender.path})", values)  # fmt: skip


# Notifications.


def _notified(place: int, sender: Track, reader: Track, found: Needs) -> Misfit | None:
    sent, heard = sender.notified[reader.sid], reader.heard[sender.sid]
    earliest: dict[int, int] = {}
    latest = 0
    overtaken = 0
    for number in range(len(sent)):
        earliest.setdefault(sent.words[number], number)
    for record, word in zip(heard.records, heard.words, strict=True):
        here = next((n for n in range(latest, len(sent)) if sent.words[n] == word), None)
        if here is None:
            here = earliest.get(word)
            overtaken += here is not None
        if here is None:
            if not any(life.torn for life in sender.lives):
                return _unsent(sender, reader, record, "notification")
            heard_more = f"server {reader.sid} heard a notification of server {sender.sid} that is not in its journal"
            found.tolerated.append(f"{heard_more}, which has a torn end")
            continue
        latest = max(latest, here)
        found.of[reader.sid][record] = _at(place, sent.records[here])
    if overtaken:
        found.tolerated.append(f"server {reader.sid} heard {overtaken} notifications of server {sender.sid} behind "
                               "newer ones, as of an older connection")  # fmt: skip
    return None


# Quorum connections: those that a learner made, and those that a leader accepted, in the order of both.


def _connected(tracks: list[Track], learner: Track, leader: Track, found: Needs) -> Misfit | None:
    made, accepted = learner.dialled[leader.sid], leader.accepted[learner.sid]
    pairs = _paired(made, accepted)
    for one, other in pairs:
        wrong = _joined(tracks, learner, leader, one, other, found)
        if wrong is not None:
            return wrong
    return None


def _joined(
    tracks: list[Track], learner: Track, leader: Track, one: Connection | None, other: Connection | None, found: Needs
) -> Misfit | None:
    """Both sides of one connection; a side that is missing has sent nothing."""
    empty = Connection(NONE)
    one, other = one or empty, other or empty
    ways = ((learner, leader, one, other), (leader, learner, other, one))
    for sender, reader, sending, reading in ways:
        wrong = _streamed(tracks.index(sender), sender, reader, sending, reading.read, found)
        if wrong is not None:
            return wrong
    return None


def _streamed(
    place: int, sender: Track, reader: Track, sending: Connection, read: Stream, found: Needs
) -> Misfit | None:
    sent = sending.sent
    need = found.of[reader.sid]
    for number, (record, word) in enumerate(zip(read.records, read.words, strict=True)):
        if number < len(sent) and sent.words[number] == word:
            need[record] = _at(place, sent.records[number])
            continue
        life = _life_of(sender, sending)
        if number < len(sent) or life is None or not _ends_early(sender, life, reader.times[record]):
            values = (("packets of this connection that were sent and read before it", number),)
            return _unsent(sender, reader, record, "packet", values)
        need[record] = _at(place, life.last)
        found.beyond[reader.sid].add(record)
        if number == len(sent):
            found.tolerated.append(f"server {reader.sid} read {len(read) - number} packets of server {sender.sid} that "
                                   f"are not in its journal, which ends at line {sender.lines[life.last]}")  # fmt: skip
    return None


def _life_of(track: Track, connection: Connection) -> Life | None:
    """The life of a connection; of one that its journal does not know of, the last life that ends torn."""
    if connection.life != NONE:
        return track.lives[connection.life]
    return next((life for life in reversed(track.lives) if life.torn), None)


def _ends_early(track: Track, life: Life, time: float) -> bool:
    """Whether the records of a life may have an end that is lost: torn, or copied before the others."""
    return life.torn or (life is track.lives[-1] and track.times[life.last] <= time)


def _paired(
    made: list[Connection], accepted: list[Connection]
) -> Iterator[tuple[Connection | None, Connection | None]]:
    """Which connection of a learner is which of its leader: those that fit best, in the order of both.

    A connection that one side alone knows of says nothing, unless that side has read something on it: this is what the
    costs of a pairing count. The table is small, since connections are few.
    """
    rows, columns = len(made), len(accepted)
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            choices = [best[i + 1][j + 1] + _cost(made[i], accepted[j])] if i < rows and j < columns else []
            choices += [best[i + 1][j] + len(made[i].read)] if i < rows else []
            choices += [best[i][j + 1] + len(accepted[j].read)] if j < columns else []
            best[i][j] = min(choices, default=0)
    i = j = 0
    while i < rows or j < columns:
        if i < rows and j < columns and best[i][j] == best[i + 1][j + 1] + _cost(made[i], accepted[j]):
            yield made[i], accepted[j]
            i, j = i + 1, j + 1
        elif i < rows and best[i][j] == best[i + 1][j] + len(made[i].read):
            yield made[i], None
            i += 1
        else:
            yield None, accepted[j]
            j += 1


def _cost(one: Connection, other: Connection) -> int:
    """How many packets were read on either side from the first on that the other did not send."""
    return _unmatched(one.sent, other.read) + _unmatched(other.sent, one.read)


def _unmatched(sent: Stream, read: Stream) -> int:
    if read.words == sent.words[: len(read)]:
        return 0
    same = next((n for n, (a, b) in enumerate(zip(sent.words, read.words, strict=False)) if a != b),
                min(len(sent), len(read)))  # fmt: skip
    return len(read) - same


# The order.


def merged(tracks: list[Track], needed: Needs) -> Iterator[int | Misfit]:
    """The places of the servers whose next record comes next; a misfit where every next one waits for another."""
    done = [0] * len(tracks)
    need = [needed.of[track.sid] for track in tracks]
    left = sum(len(track) for track in tracks)
    while left:
        chosen, earliest = NONE, 0.0
        for place, track in enumerate(tracks):
            number = done[place]
            if number == len(track) or (chosen != NONE and track.times[number] >= earliest):
                continue
            wanted = need[place][number]
            if wanted == NONE or done[wanted >> _SERVER_BITS] > wanted & ((1 << _SERVER_BITS) - 1):
                chosen, earliest = place, track.times[number]
        if chosen == NONE:
            yield _knot(tracks, done, need)
            return
        done[chosen] += 1
        left -= 1
        yield chosen


def _knot(tracks: list[Track], done: list[int], need: list[array[int]]) -> Misfit:
    """Every server waits for what another has yet to send."""
    waits = []
    for place, track in enumerate(tracks):
        if done[place] < len(track):
            sender, record = sender_of(need[place][done[place]])
            what = f"line {track.lines[done[place]]} waits for {tracks[sender].path}:{tracks[sender].lines[record]}"
            waits.append((track.times[done[place]], place, (f"server.{track.sid}", what)))
    _, place, _ = min(waits)
    line, time = tracks[place].event_at(done[place])
    clause = "no order of the steps has every message sent before it is read"
    return Misfit(tracks[place].path, line, time, tracks[place].sid, "", clause, tuple(told for _, _, told in waits))
