"""The admission of a client: it gets a new session, its existing one, or none.

Rules of this module:

- A client never goes back in time. If it has seen a transaction that this server has not, it is rejected without a
  reply, and tries another server.
- A client gets its session back only with the password. The leader decides on the owner and the expiry.
- A server without a quorum admits clients that ask for a read-only server, and only with local sessions.
- The timeout that a client asks for is clamped to the server's limits, for new and for existing sessions.

Source: `ZooKeeperServer.processConnectRequest`, `reopenSession`, `checkPasswd`;
`ReadOnlyZooKeeperServer.validateSession`, `ReadOnlyRequestProcessor`.
"""

from typing import TypeAlias

import msgspec

from spec.service.sessions import password
from spec.tree.requests import SessionId


class ConnectClaims(msgspec.Struct, frozen=True, gc=False):
    """The claims of a client (`ConnectRequest`); session 0 asks for a new one; `timeout` is in milliseconds.

    `read_only` is whether a server without a quorum will do.
    """

    last_zxid_seen: int
    timeout: int
    session: SessionId
    passwd: bytes | None
    read_only: bool = False


class ReadOnlyRules(msgspec.Struct, frozen=True, gc=False):
    """The further conditions of a server without a quorum.

    They are whether it may open local sessions, and whether the presented session is one of the ensemble.
    """

    local_sessions: bool
    is_global: bool


class Limits(msgspec.Struct, frozen=True, gc=False):
    """The range of session timeouts that a server allows, in milliseconds (minSessionTimeout, maxSessionTimeout)."""

    min_session_timeout: int
    max_session_timeout: int

    def negotiate(self, timeout: int) -> int:
        """The timeout of a session whose client asked for this one."""
        return min(max(timeout, self.min_session_timeout), self.max_session_timeout)


class NewSession(msgspec.Struct, frozen=True, gc=False):
    """Open a session with this timeout; the client gets its reply when the session is replicated."""

    timeout: int


class Renew(msgspec.Struct, frozen=True, gc=False):
    """Ask the leader for this session; an older connection of the session is closed."""

    session: SessionId
    timeout: int


class Invalid(msgspec.Struct, frozen=True, gc=False):
    """Reply that the session does not exist any longer: session 0, timeout 0."""


class Rejection(msgspec.Struct, frozen=True, gc=False):
    """Close the connection without a reply."""

    reason: str


Verdict: TypeAlias = NewSession | Renew | Invalid | Rejection


def present(
    presented: ConnectClaims, limits: Limits, last_zxid: int, read_only: ReadOnlyRules | None = None
) -> Verdict:
    """The verdict on a client of a server whose last applied transaction is `last_zxid`.

    `read_only` are the rules of a server without a quorum; None if this one has a quorum.

    ZooKeeper closes the session's older connection before it checks the password, so a client that knows only a
    session's id can cut its connection. Here a wrong password changes nothing.
    """
    if read_only is not None and not presented.read_only:
        return Rejection("it does not ask for a read-only server")
    if presented.last_zxid_seen > last_zxid:
        return Rejection(f"it has seen zxid 0x{presented.last_zxid_seen:x}, our last one is 0x{last_zxid:x}")
    timeout = limits.negotiate(presented.timeout)
    if presented.session == 0:
        if read_only is not None and not read_only.local_sessions:
            return Rejection("a read-only server opens local sessions only, and they are not enabled")
        return NewSession(timeout)
    if read_only is not None and read_only.is_global:
        return Rejection("its session is one of the ensemble, which a read-only server cannot check")
    if presented.passwd != password(presented.session):
        return Invalid()
    return Renew(presented.session, timeout)
