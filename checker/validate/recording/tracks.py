"""A server of a recording, with its possible states at rest or its role; and the results of a judgement."""

from __future__ import annotations

from dataclasses import dataclass, field

from checker.validate.recording.followers import FollowerTrack
from checker.validate.recording.leaders import LeaderTrack
from checker.validate.recording.streams import LearnerStream
from checker.validate.recording.worlds import Rest, distinct
from spec.quorum import Sid, View
from spec.zab.state import ZabRules


@dataclass(frozen=True)
class RecordedMisfit:
    """The first observation that does not fit: its line and time, the server, and the allowed observations."""

    line: int
    time: float
    sid: Sid
    event: str
    clause: str
    values: tuple[tuple[str, object], ...] = ()


@dataclass
class Counts:
    """The sizes of a recording, up to the first misfit."""

    lines: int = 0
    packets: int = 0
    connections: int = 0
    lives: int = 0
    disks: int = 0
    replies: int = 0
    epochs: int = 0
    kinds: dict[str, int] = field(default_factory=dict)


class ServerTrack:
    """A server: its possible states at rest, or its role."""

    def __init__(self, sid: Sid, view: View, rests: list[Rest]) -> None:
        self.sid, self.view, self.rests = sid, view, rests
        self.runs = True
        self.follows: FollowerTrack | None = None
        self.leads: LeaderTrack | None = None
        self.followed: LearnerStream | None = None  # the connection on which it follows
        self.registered: list[LearnerStream] = []  # connections of learners without LEADERINFO yet
        self.cut = ""  # the last TRUNC that was delivered, and its line

    def rest(self, *, crash: bool) -> None:
        """End the role, if there is one."""
        role = self.follows or self.leads
        if role is not None:
            self.rests = role.ends(crash=crash)
        self.follows = self.leads = self.followed = None

    def give_up(self, rules: ZabRules, *, crash: bool) -> None:
        """End the role, and one that no packet shows."""
        self.rest(crash=crash)
        self.rests = distinct([*self.rests, *self.unseen(rules, self.registered, crash=crash)])
        self.registered = []

    def unseen(self, rules: ZabRules, registered: list[LearnerStream], *, crash: bool = False) -> list[Rest]:
        """The possible states after it has begun to lead the learners that have registered, and given up."""
        if not registered:
            return []
        role = LeaderTrack(self.sid, self.view, 0, rules, self.rests)
        role.streams = registered
        return role.ends(crash=crash)
