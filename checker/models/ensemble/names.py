"""The names of an ensemble's columns, and of their actors."""

from __future__ import annotations

from spec.quorum import Sid

FAULTS, LINKS, PLAN, VOTES, HISTORY = "faults", "links", "plan", "votes", "history"
CONNECTIONS = "connections"
Link = tuple[Sid, Sid]
"""The link between two servers, the smaller id first; or a direction of it."""


def server_name(sid: Sid) -> str:
    """The column of a server, in the notation of zoo.cfg."""
    return f"server.{sid}"


def channel_name(source: Sid, destination: Sid) -> str:
    """The column of the notifications that one server sends another."""
    return f"{source}>{destination}"


def connection_name(one: Sid, other: Sid) -> str:
    """The column of the quorum connection between two servers."""
    return f"{min(one, other)}-{max(one, other)}"
