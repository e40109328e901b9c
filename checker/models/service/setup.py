"""The input of a model of a service: servers, clients, an initial tree, and budgets of faults.

Everything here is plain data, which scenarios make; `rules` makes columns, actors and rules of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from checker.kit.actions import Budget, BudgetCounts
from spec.tree.data import Id
from spec.tree.requests import SessionId
from spec.variants import Variant

_SESSIONS = 16  # the limit for the sessions of one client
IDENTITIES = (Id("ip", "10.0.0.1"),)
"""The identities of each client: its address (`IPAuthenticationProvider`)."""


class Clocks(Enum):
    """Whether a client learns from its clock in time that its session has ended."""

    TRUSTED = "trusted"  # a session expires only when its client knows that it is disconnected, or is gone
    PAUSED = "paused"  # at any time: the client's process may pause, and learns of it late


class FaultBudgets(BudgetCounts, frozen=True):
    """The budget of each fault. The session of a client that has crashed or closed it lapses without a budget."""

    disconnects: int = 0
    expiries: int = 0
    crashes: int = 0


NO_FAULTS = FaultBudgets()
FAULTS_OF_CLIENTS: Mapping[str, Budget] = MappingProxyType(
    {
        "disconnects": Budget("lost connection", "lost connections"),
        "expiries": Budget("expired session of a live client", "expired sessions of live clients"),
        "crashes": Budget("crash of a client", "crashes of clients"),
    }
)
"""The description of each fault's budget; a scenario sets it in its map `faults`."""


@dataclass(frozen=True)
class ServiceSetup:
    """The input of a model of a service.

    `lag`: each server applies a committed transaction later, in a separate step; without it, all servers have the
    leader's tree. `at` is the initial server of each client, in order; by default they are distributed.
    `keeps_watches`: the library registers its watches again when it reconnects, as Java's does; kazoo's does not.
    `reopens`: it opens a new session when the old one has expired. `observe_commits` and `observe_watches` name actors
    of the caller.
    """

    clients: int = 1
    servers: int = 1
    lag: bool = False
    paths: tuple[str, ...] = ()
    at: tuple[int, ...] = ()
    clocks: Clocks = Clocks.TRUSTED
    budgets: FaultBudgets = NO_FAULTS
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
        """Whether a model depends on the memory of a client's library; otherwise the library has no column."""
        return self.lag or self.keeps_watches or self.pipelined

    def first_server(self, client: int) -> int:
        """The server of a client's initial connection."""
        return self.at[client - 1] if self.at else (client - 1) % self.servers + 1


def session_of(client: int, number: int = 1) -> SessionId:
    """The id of a client's n-th session."""
    return client * _SESSIONS + number


def client_of(session: SessionId) -> int:
    """The client of a session."""
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
    """The column and actor of a client's library, if the setup has one."""
    return f"library {client}"


def client_name(client: int) -> str:
    """The actor of a client, which the caller adds."""
    return f"client {client}"


LEADER = "leader"
