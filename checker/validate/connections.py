"""The quorum connections of two servers: those that the learner made, paired with those that its leader accepted.

Rules this module keeps:

- FOLLOWERINFO begins a connection in the journal of a leader, and ends an older connection of the same learner. The
  packets behind it came by the new connection, since a node discards what it reads on another one.
- A learner closes its connection, or its process ends, before it makes another one. Connections are accepted in any
  order all the same, since the bytes of each travel alone. A *late* connection is one whose FOLLOWERINFO is read after
  that of a newer one. The learner had left it by then, without an answer. So the learner has read nothing on it, and
  the leader nothing but FOLLOWERINFO.
- All other connections follow each other in the same order on both sides.
- A connection that one life of the leader accepted is older than all that a later life accepted, late or not, since it
  ends with the process of the leader. Within a life this does not hold for the times of leading: a TLS handshake may
  last from one to the next.
- Several pairings may have a sender for every packet. The one that is chosen does not contradict the notifications
  between the two servers, and has few late connections. Where it is open which connection a packet came by, an old one
  is chosen: it demands less of the order of the steps. The clocks are not used, since they may be wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate, count
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from spec.effects import Message
from spec.election.messages import Notification
from spec.zab.packets import QuorumRequest, Snap


@dataclass
class Stream:
    """Messages in one direction: the record of each, and a hash that equal messages share.

    `refused` are the hashes of notifications without their configurations, which a reader may leave out.
    """

    records: array[int] = field(default_factory=lambda: array("q"))
    words: array[int] = field(default_factory=lambda: array("q"))
    refused: array[int] = field(default_factory=lambda: array("q"))

    def add(self, record: int, message: Message) -> None:
        """Append a message."""
        self.records.append(record)
        self.words.append(_word(message))
        if isinstance(message, Notification) and message.config is not None:
            message = replace(message, config=None)
        self.refused.append(_word(message))

    def __len__(self) -> int:
        return len(self.records)


@dataclass
class ConnectionSide:
    """One side of a quorum connection; `life` is the index of the life in which it was made."""

    life: int
    sent: Stream = field(default_factory=Stream)
    read: Stream = field(default_factory=Stream)


def _word(message: Message) -> int:
    if isinstance(message, QuorumRequest):
        return 1
    return hash((2, message.zxid)) if isinstance(message, Snap) else hash(message)


Pair: TypeAlias = tuple[ConnectionSide | None, ConnectionSide | None]
"""The side of the learner and the side of the leader."""


class PrecedingSteps:
    """The last step of a sender that precedes a step of a reader, by the notifications that the reader has heard.

    `heard` are the records of the reader that have heard one, and `sent` those of the sender that sent it.
    """

    def __init__(self, heard: Sequence[int], sent: Iterable[int]) -> None:
        self._heard = heard
        self._sent = list(accumulate(sent, max))

    def before(self, record: int) -> int:
        """The record of the sender; -1 if there is none."""
        number = bisect_right(self._heard, record)
        return self._sent[number - 1] if number else -1


def paired(
    made: list[ConnectionSide], accepted: list[ConnectionSide], preceding: tuple[PrecedingSteps, PrecedingSteps]
) -> list[Pair]:
    """Pair the connections of a learner with those of its leader, so that the fewest packets have no sender.

    A connection that belongs to no other side is paired with None if packets were read on it. `preceding` has the steps
    of the leader that precede those of the learner, and the steps of the learner that precede those of the leader.
    """
    return _Search(made, accepted, preceding).pairs()


class _Cost(NamedTuple):
    """The cost of a pairing: an earlier part outweighs all later ones.

    - `packets`: the packets that were read and not sent.
    - `early`: the first packets that would be read before they are sent, by the notifications.
    - `late`: the late connections.
    """

    packets: int = 0
    early: int = 0
    late: int = 0

    def plus(self, other: _Cost) -> _Cost:
        return _Cost(*(ours + another for ours, another in zip(self, other, strict=True)))


def _unmatched(sent: Stream, read: Stream) -> int:
    if read.words == sent.words[: len(read)]:
        return 0
    same = next((n for n, (a, b) in enumerate(zip(sent.words, read.words, strict=False)) if a != b),
                min(len(sent), len(read)))  # fmt: skip
    return len(read) - same


class _Place(NamedTuple):
    """A place in the search: the next connection of the learner (row), and the next one of the leader (column).

    `unanswered` are the rows before it that a late connection may belong to.
    """

    row: int = 0
    column: int = 0
    unanswered: tuple[int, ...] = ()


_Path: TypeAlias = tuple[Pair, Any] | None
"""The last pair, and the path before it."""


class _Search:
    """A search (A*) for the pairing of the least cost.

    The estimates are the least costs if one unanswered row were enough for all late connections. The search then looks
    at each connection about once. If no pairing has a sender for every packet, the number of places may grow with the
    third power of the number of connections: with a hundred of them this takes seconds.
    """

    def __init__(
        self,
        made: list[ConnectionSide],
        accepted: list[ConnectionSide],
        preceding: tuple[PrecedingSteps, PrecedingSteps],
    ) -> None:
        self._made, self._accepted, self._preceding = made, accepted, preceding
        self._firsts = [side.sent.words[0] for side in made]
        rows, columns = len(made), len(accepted)
        self._estimates = [[_Cost()] * (columns + 1) for _ in range(rows + 1)]
        for row in range(rows, -1, -1):
            unanswered = tuple(number for number in range(row) if not made[number].read)
            for column in range(columns, -1, -1):
                ways = self._ways(_Place(row, column, unanswered))
                self._estimates[row][column] = min((self._estimate(*way) for way in ways), default=_Cost())

    def pairs(self) -> list[Pair]:
        serial = count(0, -1)  # among equal estimates, the newest place is the next
        waiting: list[tuple[_Cost, int, _Cost, _Place, _Path]] = []
        heappush(waiting, (self._estimates[0][0], next(serial), _Cost(), _Place(), None))
        visited: set[tuple[int, int, tuple[int, ...]]] = set()
        while True:
            _, _, cost, place, path = heappop(waiting)
            if place.row == len(self._made) and place.column == len(self._accepted):
                return _along(path)
            key = place.row, place.column, tuple(sorted(self._firsts[row] for row in place.unanswered))
            if key in visited:
                continue
            visited.add(key)
            for step, after, pair in reversed([*self._ways(place)]):
                total, further = cost.plus(step), path if pair is None else (pair, path)
                heappush(waiting, (self._estimate(total, after), next(serial), total, after, further))

    def _estimate(self, cost: _Cost, place: _Place, _: Pair | None = None) -> _Cost:
        return cost.plus(self._estimates[place.row][place.column])

    def _ways(self, place: _Place) -> Iterator[tuple[_Cost, _Place, Pair | None]]:
        """The ways to go on, the preferred one first: the cost, the next place, and the pair on the way."""
        row, column, unanswered = place
        made = self._made[row] if row < len(self._made) else None
        accepted = self._accepted[column] if column < len(self._accepted) else None
        late = self._late(place)
        if late is not None:
            assert accepted is not None
            rest = tuple(unanswered_row for unanswered_row in unanswered if unanswered_row != late)
            cost = self._cost(late, column, late=1)
            yield cost, self._behind(row, column, rest), (self._made[late], accepted)
        if made is not None and accepted is not None:
            yield self._cost(row, column), self._behind(row + 1, column, unanswered), (made, accepted)
        if made is not None and made.read:
            yield _Cost(len(made.read)), _Place(row + 1, column, unanswered), (made, None)
        elif made is not None:
            yield _Cost(), _Place(row + 1, column, (*unanswered, row)), None
        if accepted is not None and late is None:
            yield _Cost(len(accepted.read)), self._behind(row, column, unanswered), (None, accepted)

    def _cost(self, row: int, column: int, late: int = 0) -> _Cost:
        """The cost of a pair. Behind the first packet that the other side did not send, all are counted."""
        made, accepted = self._made[row], self._accepted[column]
        packets = _unmatched(made.sent, accepted.read) + _unmatched(accepted.sent, made.read)
        to_learner, to_leader = self._preceding
        early = int(to_learner.before(made.sent.records[0]) >= accepted.read.records[0])
        if made.read and accepted.sent:
            early += to_leader.before(accepted.sent.records[0]) >= made.read.records[0]
        return _Cost(packets, early, late)

    def _late(self, place: _Place) -> int | None:
        """The oldest unanswered row that the next column may belong to."""
        stream = self._accepted[place.column].read if place.column < len(self._accepted) else Stream()
        if len(stream) != 1:
            return None
        return next((row for row in place.unanswered if self._firsts[row] == stream.words[0]), None)

    def _behind(self, row: int, column: int, unanswered: tuple[int, ...]) -> _Place:
        """The place behind a column. The unanswered rows before it are too old for a later life of the leader."""
        same = column + 1 < len(self._accepted) and self._accepted[column].life == self._accepted[column + 1].life
        return _Place(row, column + 1, unanswered if same else ())


def _along(path: _Path) -> list[Pair]:
    pairs: list[Pair] = []
    while path is not None:
        pair, path = path
        pairs.append(pair)
    return pairs[::-1]
