"""The quorum connections of two servers: those that the learner made, paired with those that its leader accepted.

Rules this module keeps:

- The connections of two servers follow each other in the same order on both sides.
- The pairing is deterministic: it depends on the packets only, and not on the clocks.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from spec.effects import Message
from spec.zab.packets import QuorumRequest, Snap


@dataclass
class Stream:
    """Messages in one direction: the record of each, and a hash that equal messages share."""

    records: array[int] = field(default_factory=lambda: array("q"))
    words: array[int] = field(default_factory=lambda: array("q"))

    def add(self, record: int, message: Message) -> None:
        """Append a message."""
        self.records.append(record)
        self.words.append(_word(message))

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


def paired(
    made: list[ConnectionSide], accepted: list[ConnectionSide]
) -> Iterator[tuple[ConnectionSide | None, ConnectionSide | None]]:
    """Pair the connections of a learner with those of its leader: the best match that keeps both orders.

    A connection in only one journal costs nothing, unless that side has read packets on it; the cost is their number.
    The table is small, since there are few connections.
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


def _cost(one: ConnectionSide, other: ConnectionSide) -> int:
    """The number of packets, on both sides, from the first one that the other side did not send."""
    return _unmatched(one.sent, other.read) + _unmatched(other.sent, one.read)


def _unmatched(sent: Stream, read: Stream) -> int:
    if read.words == sent.words[: len(read)]:
        return 0
    same = next((n for n, (a, b) in enumerate(zip(sent.words, read.words, strict=False)) if a != b),
                min(len(sent), len(read)))  # fmt: skip
    return len(read) - same
