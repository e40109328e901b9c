"""Sessions: their ids and passwords, and the leader's table of live sessions and their owners.

Rules of this module:

- No clock: `now` is always an argument, in milliseconds of any monotonic clock.
- A session that has expired stays in the table, as closing, until its closeSession is applied. Until then it is
  refused, and cannot be revived.
- The table is mutable, like its `ExpiryQueue`, and its cost does not depend on the number of sessions.

Source: `SessionTrackerImpl`, `LeaderSessionTracker.checkSession`, `ZooKeeperServer.generatePasswd`;
`PrepRequestProcessor.pRequest2Txn`.
"""

from collections.abc import Hashable, Iterable
from typing import TypeAlias

from spec.service.expiry import ExpiryQueue
from spec.tree.replies import Code
from spec.tree.requests import CloseSession, CreateSession, DeleteContainer, Request, SessionId

Owner: TypeAlias = Hashable
"""The server that a session is connected to, as the leader knows it."""

_SECRET = 0xB3415C00
_MULTIPLIER, _INCREMENT, _MASK48 = 0x5DEECE66D, 0xB, (1 << 48) - 1
_MASK64 = (1 << 64) - 1
_CONTAINER_OWNER = -(1 << 63)


def _signed(number: int) -> int:
    return ((number & _MASK64) ^ (1 << 63)) - (1 << 63)


def first_session_id(sid: int, now: int) -> SessionId:
    """The first session id that a server assigns; each next one is one more (`next_session_id`).

    The server's id is the highest byte, five bytes are the time, and two are the count.
    """
    number = _signed((((now << 24) & _MASK64) >> 8) | sid << 56)
    return number + 1 if number == _CONTAINER_OWNER else number


def next_session_id(session: SessionId) -> SessionId:
    """The id that follows this one."""
    return _signed(session + 1)


def password(session: SessionId) -> bytes:
    """The password of a session: 16 bytes of `java.util.Random`, seeded with the id and a constant of ZooKeeper.

    Every server computes the same password, so a session can move. It protects against mistakes, not against attackers.
    """
    seed = ((session ^ _SECRET) ^ _MULTIPLIER) & _MASK48
    secret = bytearray()
    for _ in range(4):
        seed = (seed * _MULTIPLIER + _INCREMENT) & _MASK48
        secret += (seed >> 16).to_bytes(4, "little")
    return bytes(secret)


class Sessions:
    """The sessions of a leader, with their owners; `tick` is the granularity of expiry, in milliseconds."""

    __slots__ = ("_alive", "_closing", "_owners")

    def __init__(self, tick: int, sessions: Iterable[tuple[SessionId, int]] = (), now: int = 0) -> None:
        self._alive = ExpiryQueue(tick)
        self._closing: set[SessionId] = set()
        self._owners: dict[SessionId, Owner] = {}
        for session, timeout in sessions:
            self.open(session, timeout, now)

    def __len__(self) -> int:
        return len(self._alive) + len(self._closing)

    def __contains__(self, session: SessionId) -> bool:
        return session in self._alive or session in self._closing

    def open(self, session: SessionId, timeout: int, now: int) -> None:
        """Start to track a new or an existing session; a closing session stays closing."""
        if session not in self._closing:
            self._alive.update(session, timeout, now)

    def touch(self, session: SessionId, timeout: int, now: int) -> bool:
        """Refresh a session. Return False if it is unknown or closing."""
        if session not in self._alive:
            return False
        self._alive.update(session, timeout, now)
        return True

    def expired(self, now: int) -> tuple[SessionId, ...]:
        """The sessions whose timeout has passed, once each, in the order of time; from now on they are closing."""
        sessions = self._alive.expired(now)
        self._closing.update(sessions)
        return sessions

    def check(self, session: SessionId, owner: Owner) -> Code:
        """Check that the owner may act for a session; the first to ask becomes its owner.

        Return OK, SESSION_EXPIRED or SESSION_MOVED.
        """
        if session not in self._alive:
            return Code.SESSION_EXPIRED
        return Code.OK if self._owners.setdefault(session, owner) == owner else Code.SESSION_MOVED

    def check_request(self, request: Request, owner: Owner) -> Code:
        """Check that the owner may send this request for its session.

        The requests that begin and end sessions, and the leader's own deletions of containers, are not checked: the
        tracker of sessions closes an expired session without being its owner (`PrepRequestProcessor.pRequest2Txn`).
        """
        if isinstance(request.record, CreateSession | CloseSession | DeleteContainer):
            return Code.OK
        return self.check(request.session, owner)

    def claim(self, session: SessionId, owner: Owner) -> bool:
        """Make this owner the owner of the session. Return False if the session is unknown or closing."""
        if session not in self._alive:
            return False
        self._owners[session] = owner
        return True

    def close(self, session: SessionId) -> None:
        """Mark the session as closing, because a closeSession is in progress; it is refused from now on."""
        if session in self._alive:
            self._alive.remove(session)
            self._closing.add(session)

    def remove(self, session: SessionId) -> None:
        """Forget the session, because its closeSession is applied."""
        self._alive.remove(session)
        self._closing.discard(session)
        self._owners.pop(session, None)

    def by_expiry(self) -> tuple[tuple[int, tuple[SessionId, ...]], ...]:
        """The times at which sessions expire, with those sessions (for the word `dump`)."""
        return self._alive.by_time()
