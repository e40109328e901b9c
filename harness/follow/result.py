"""The result of a plan that was followed: the acknowledged writes, the pauses, and the writes at the end."""

import threading
import time
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from spec.quorum import Sid
from spec.txn import format_zxid


class Ending(Enum):
    """The end of a run."""

    KEPT = "every acknowledged write is at every server"
    LOST = "an acknowledged write is missing"
    DIFFERS = "servers have different writes"
    STALLED = "a server did not serve where the plan waits for it"
    FAILED = "the harness failed"


@dataclass(frozen=True)
class FollowedStep:
    """A step as done: the time from its begin to its end, and the longest pause of writes in it, in seconds.

    `led`: the server led when the step began.
    """

    caption: str
    seconds: float
    pause: float
    led: bool = False


@dataclass
class FollowedRun:
    """The result of one run.

    `missing` are the acknowledged writes that a server of the new state lacks, and `vain` counts the waits in vain.
    """

    ending: Ending
    reason: str = ""
    steps: list[FollowedStep] = field(default_factory=list)
    acknowledged: int = 0
    missing: "dict[Sid, tuple[WriteReply, ...]]" = field(default_factory=dict)
    pause: float = 0.0
    vain: int = 0

    @property
    def lost(self) -> int:
        """The number of acknowledged writes that some server of the new state lacks."""
        return len({reply.path for lacking in self.missing.values() for reply in lacking})


@dataclass(frozen=True)
class WriteReply:
    """The reply to a write: its moment in seconds of a monotonic clock, the server, the path and the zxid."""

    moment: float
    sid: Sid
    path: str
    zxid: int

    def __str__(self) -> str:
        return f"{self.path} (acknowledged by server {self.sid}, zxid {format_zxid(self.zxid)})"


class Acknowledgements:
    """The replies to all clients."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._replies: list[WriteReply] = []

    def acknowledged(self, sid: Sid, path: str, zxid: int) -> None:
        """Note a reply to a client."""
        with self._lock:
            self._replies.append(WriteReply(time.monotonic(), sid, path, zxid))

    @property
    def replies(self) -> tuple[WriteReply, ...]:
        """The replies so far, in the order of their moments."""
        with self._lock:
            return tuple(self._replies)

    def longest_pause(self, begin: float, end: float) -> float:
        """The longest time between two moments without an acknowledged write, in seconds."""
        return longest_pause([reply.moment for reply in self.replies], begin, end)


def absent(replies: Iterable[WriteReply], found: Mapping[Sid, Set[str]]) -> dict[Sid, tuple[WriteReply, ...]]:
    """The acknowledged writes that each server lacks, of the servers that lack any; `found` are their paths."""
    writes = tuple(replies)
    missing = {sid: tuple(write for write in writes if write.path not in paths) for sid, paths in found.items()}
    return {sid: lacking for sid, lacking in missing.items() if lacking}


def longest_pause(moments: list[float], begin: float, end: float) -> float:
    """The longest part of the time from `begin` to `end` without any of the ascending moments, in seconds."""
    inside = [moment for moment in moments if begin < moment < end]
    return max((after - before for before, after in pairwise([begin, *inside, end])), default=0.0)
