"""The statistics of the client port and of each connection, for the four-letter words.

Rules this module keeps:

- Times are milliseconds of the node's own clock. A latency is from a request's arrival to its answer.
- Counting costs only additions; derived figures are computed when a word requests them.

Source: `ServerStats`, `ServerCnxn.updateStatsForResponse`, `AvgMinMaxCounter`.
"""

from spec.tree.data import Record
from spec.tree.requests import OPCODE_OF

OPERATIONS = {
    1: "CREA", 2: "DELE", 3: "EXIS", 4: "GETD", 5: "SETD", 6: "GETA", 7: "SETA", 8: "GETC", 9: "SYNC", 11: "PING",
    12: "GETC", 13: "CHEC", 14: "MULT", 15: "CREA", 16: "RECO", 17: "CHKW", 18: "REMW", 19: "CREA", 21: "CREA",
    22: "MLTR", 101: "SETW", 103: "GETE", 104: "GETACN", 105: "STW2", 106: "ADDW", 107: "HOMI", -11: "CLOS",
}  # fmt: skip
"""The names of operations that `cons` prints for the last one of a connection (`FinalRequestProcessor`, lastOp)."""

OPERATION_OF: dict[type[Record] | type[None], str] = {
    record: OPERATIONS[opcode] for record, opcode in OPCODE_OF.items() if opcode in OPERATIONS
}


class Latency:
    """The minimum, maximum and average of latencies since the last reset."""

    __slots__ = ("_least", "count", "greatest", "total")

    def __init__(self) -> None:
        self.count = self.total = self.greatest = 0
        self._least = 1 << 63

    def add(self, latency: int) -> None:
        """Add a latency."""
        self.count += 1
        self.total += latency
        if latency < self._least:  # noqa: PLR1730 - `min` and `max` are calls, for every answer of the server
            self._least = latency
        if latency > self.greatest:  # noqa: PLR1730
            self.greatest = latency

    def reset(self) -> None:
        """Forget all latencies."""
        self.count = self.total = self.greatest = 0
        self._least = 1 << 63

    @property
    def least(self) -> int:
        """The minimum; 0 without latencies."""
        return self._least if self.count else 0

    @property
    def average(self) -> float:
        """The average to four digits; 0 without latencies."""
        return round(self.total / self.count, 4) if self.count else 0.0


class ServerStatistics:
    """The figures of all connections; `refused` counts connections beyond the limits."""

    __slots__ = ("auth_failed", "latency", "received", "refused", "sent")

    def __init__(self) -> None:
        self.latency = Latency()
        self.auth_failed = self.refused = self.received = self.sent = 0

    def reset(self) -> None:
        """Reset the figures that the word `srst` resets."""
        self.latency.reset()
        self.received = self.sent = 0


class ConnectionStatistics:
    """The figures of one connection; `operation`, `cxid`, `zxid`, `answered_at` belong to its last answer."""

    __slots__ = ("answered_at", "cxid", "last_latency", "latency", "operation", "received", "sent", "zxid")

    def __init__(self) -> None:
        self.latency = Latency()
        self.received = self.sent = 0
        self.operation, self.cxid, self.zxid = "NA", -1, -1
        self.answered_at = self.last_latency = 0

    def reset(self) -> None:
        """Reset the figures, for the word `crst`."""
        self.latency.reset()
        self.received = self.sent = 0
        self.operation, self.cxid, self.zxid = "NA", -1, -1
        self.answered_at = self.last_latency = 0

    def answered(self, operation: str, cxid: int, zxid: int, arrived: int, now: int) -> None:
        """Count an answered request; xids below 0 (ping and the like) are not the client's own operations."""
        if cxid >= 0:
            self.cxid = cxid
        self.zxid = zxid
        self.operation = operation
        self.answered_at = now
        self.last_latency = now - arrived
        self.latency.add(now - arrived)
