"""A client presents itself: it gets a new session, its old one back, or nothing.

Rules this module keeps:

- A client never goes back in time: one that has seen a transaction which this server has not is turned away
  without an answer, and tries another server.
- A session is given back only for its password. Who owns it, and whether it has expired, is the leader's to say.
- The time-out that a client asks for is brought within the server's limits, whatever session it presents.

Source: `ZooKeeperServer.processConnectRequest`, `reopenSession`, `checkPasswd`.
"""

from typing import TypeAlias

import msgspec

from spec.service.sessions import password
from spec.tree.requests import SessionId


class Presented(msgspec.Struct, frozen=True, gc=False):
    """What a client says of itself (`ConnectRequest`); session 0 asks for a new one; `timeout` in milliseconds."""

    last_zxid_seen: int
    timeout: int
    session: SessionId
    passwd: bytes | None


class Limits(msgspec.Struct, frozen=True, gc=False):
    """The session time-outs that a server allows, in milliseconds (minSessionTimeout, maxSessionTimeout)."""

    min_session_timeout: int
    max_session_timeout: int

    def negotiate(self, timeout: int) -> int:
        """The time-out a session gets that asked for this one."""
        return min(max(timeout, self.min_session_timeout), self.max_session_timeout)


class NewSession(msgspec.Struct, frozen=True, gc=False):
    """Open a session with this time-out; the client is answered when that is replicated."""

    timeout: int


class Renew(msgspec.Struct, frozen=True, gc=False):
    """Ask the leader for this session; an older connection of it ends here."""

    session: SessionId
    timeout: int


class Invalid(msgspec.Struct, frozen=True, gc=False):
    """Tell the client that its session is no more: session 0, time-out 0."""


class TurnedAway(msgspec.Struct, frozen=True, gc=False):
    """End the connection without an answer."""

    reason: str


Verdict: TypeAlias = NewSession | Renew | Invalid | TurnedAway


def present(presented: Presented, limits: Limits, last_zxid: int) -> Verdict:
    """What a server whose last applied transaction is `last_zxid` makes of a client.

    ZooKeeper ends the session's older connection before it looks at the password, so that anyone who knows a
    session's id can cut its connection; here a wrong password changes nothing.
    """
    if presented.last_zxid_seen > last_zxid:
        return TurnedAway(f"it has seen zxid 0x{presented.last_zxid_seen:x}, our last one is 0x{last_zxid:x}")
    timeout = limits.negotiate(presented.timeout)
    if presented.session == 0:
        return NewSession(timeout)
    if presented.passwd != password(presented.session):
        return Invalid()
    return Renew(presented.session, timeout)
