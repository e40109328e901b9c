"""What a service under check consists of: servers, clients, a tree to begin with, and what may happen to them.

Everything here is plain data, which scenarios make; `build` makes columns, actors and rules of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import msgspec

from spec.tree.data import Id
from spec.tree.requests import SessionId
from spec.variants import Variant

_SESSIONS = 16  # more than a client ever opens
IDENTITIES = (Id("ip", "10.0.0.1"),)
"""The identities of each client: its address (`IPAuthenticationProvider`)."""


class Clocks(Enum):
    """Whether a client's clock tells it of its session's end in time."""

    TRUSTED = "trusted"  # a session expires only when its client knows that it is disconnected, or is gone
    PAUSED = "paused"  # at any time: the client's process may stand still, and is told late


class Budgets(msgspec.Struct, frozen=True):
    """How often each fault may happen. The session of a client that has crashed or closed lapses without any."""

    disconnects: int = 0
    expiries: int = 0
    crashes: int = 0


@dataclass(frozen=True)
class ServiceSetup:
    """A service.

    `lag`: each server applies what is committed at a time of its own; without it, all servers are as the leader is.
    `at` is the server of each client at first, in order; by default they are spread. `keeps_watches`: the library
    registers its watches again when it reconnects, as Java's does; kazoo's does not. `reopens`: it opens a new session
    when the old one has expired. `observe_commits` and `observe_watches` name actors of whoever plugs in.
    """

    clients: int = 1
    servers: int = 1
    lag: bool = False
    paths: tuple[str, ...] = ()
    at: tuple[int, ...] = ()
    clocks: Clocks = Clocks.TRUSTED
    budgets: Budgets = field(default_factory=Budgets)
    keeps_watches: bool = False
    reopens: bool = True
    pipelined: bool = False
    variants: frozenset[Variant] = frozenset()
    observe_commits: tuple[str, ...] = ()
    observe_watches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.clients < 1 or self.servers < 1:
            raise ValueError(f"{self.clients} clients, {self.servers} servers: there is at least one of each")
        if self.at and len(self.at) != self.clients:
            raise ValueError(f"at {self.at}: this names the first server of each of {self.clients} clients")
        if not set(self.at) <= set(self.server_ids):
            raise ValueError(f"at {self.at}: the servers are 1 to {self.servers}")

    @property
    def client_ids(self) -> tuple[int, ...]:
        """The clients, from 1."""
        return tuple(range(1, self.clients + 1))

    @property
    def server_ids(self) -> tuple[int, ...]:
        """The servers, from 1."""
        return tuple(range(1, self.servers + 1))

    @property
    def has_library(self) -> bool:
        """Whether something depends on what a client's library remembers: else there is no column for it."""
        return self.lag or self.keeps_watches or self.pipelined

    def first_server(self, client: int) -> int:
        """The server that a client is connected to at first."""
        return self.at[client - 1] if self.at else (client - 1) % self.servers + 1


def session_of(client: int, number: int = 1) -> SessionId:
    """The id of a client's n-th session."""
    return client * _SESSIONS + number


def client_of(session: SessionId) -> int:
    """The client whose session this is."""
    return session // _SESSIONS


def server_name(server: int) -> str:
    """The column (with lag) and actor of a server."""
    return f"server {server}"


def watches_name(server: int) -> str:
    """The column and actor of a server's watches."""
    return f"watches {server}"


def link_name(client: int) -> str:
    """The column and actor of a client's connection."""
    return f"link {client}"


def library_name(client: int) -> str:
    """The column and actor of a client's library, where it remembers anything."""
    return f"library {client}"


def client_name(client: int) -> str:
    """The actor that whoever plugs in gives for a client."""
    return f"client {client}"


LEADER = "leader"
FAULTS_LEFT = "faults left"
