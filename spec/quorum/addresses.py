"""The peer addresses in one configuration file: where the server itself listens, and which addresses it dials.

A server binds the address of its own `server.N` line. Other servers dial the address that their own files give it. So
whether a connection is possible depends on two files. Rules of this module:

- A server with several addresses, joined by `|`, listens on all of them, and one of them is enough to reach it.
- With a wildcard as its own host, or with `quorumListenOnAllIPs`, a server accepts connections to every host name.
- Names are not resolved. Two names are two hosts.

Sources: `QuorumCnxManager.Listener`, `QuorumCnxManager.connectOne`, `Leader` (its server sockets),
`Learner.connectToLeader`.
"""

import enum
from collections.abc import Mapping, Set
from typing import TypeAlias

import msgspec

from spec.quorum.systems import Sid

Endpoint: TypeAlias = tuple[str, int]
"""A host, in lower case, and a port."""
WILDCARDS = frozenset({"0.0.0.0", "::", "0:0:0:0:0:0:0:0"})
"""The hosts that mean every address of a machine (`MultipleAddresses`, `InetAddress.isAnyLocalAddress`)."""


def is_loopback(host: str) -> bool:
    """Whether a host is the machine itself (`InetAddress.isLoopbackAddress`); names are not resolved."""
    return host.lower() in ("localhost", "::1", "0:0:0:0:0:0:0:1") or host.startswith("127.")


class Port(enum.Enum):
    """The two ports of a server for its peers: votes travel over the first, packets of Zab over the second."""

    ELECTION = "election"
    QUORUM = "quorum"


class Endpoints(msgspec.Struct, frozen=True):
    """The addresses of one server in one file."""

    election: frozenset[Endpoint]
    quorum: frozenset[Endpoint]

    def of(self, port: Port) -> frozenset[Endpoint]:
        """The addresses of one kind."""
        return self.election if port is Port.ELECTION else self.quorum


class Addresses(msgspec.Struct, frozen=True):
    """The addresses of all servers in one file, by ascending id; `on_all_ips` is `quorumListenOnAllIPs`."""

    servers: tuple[tuple[Sid, Endpoints], ...]
    on_all_ips: bool = False

    def endpoints(self, sid: Sid, port: Port) -> frozenset[Endpoint] | None:
        """The addresses of a server; None if the file does not name it."""
        return next((addresses.of(port) for owner, addresses in self.servers if owner == sid), None)


def addresses_of(servers: Mapping[Sid, Set[tuple[str, int, int]]], on_all_ips: bool = False) -> Addresses:
    """The addresses of a file. `servers` gives a host, a quorum port and an election port for each address."""
    return Addresses(
        tuple(
            (
                sid,
                Endpoints(
                    frozenset((host.lower(), election) for host, _, election in servers[sid]),
                    frozenset((host.lower(), quorum) for host, quorum, _ in servers[sid]),
                ),
            )
            for sid in sorted(servers)
        ),
        on_all_ips,
    )


def reaches(dialler: Addresses | None, listener: Addresses | None, sid: Sid, port: Port) -> bool:
    """Whether a server with one file can connect to server `sid`, which runs with another file.

    True if addresses are not given, or if one of the files does not name the server, because addresses then decide
    nothing.
    """
    if dialler is None or listener is None or dialler == listener:
        return True
    dialled, bound = dialler.endpoints(sid, port), listener.endpoints(sid, port)
    if dialled is None or bound is None or dialled & bound:
        return True
    everywhere = {endpoint for host, endpoint in bound if listener.on_all_ips or host in WILDCARDS}
    return any(endpoint in everywhere for _, endpoint in dialled)


def opens(dialler: Addresses | None, own: Sid, listener: Addresses | None, sid: Sid) -> bool:
    """Whether server `own` can make an election connection to server `sid`.

    The server with the larger id keeps the connection that it makes. One with the smaller id sends its own address and
    closes the connection, and the larger one dials that address (`QuorumCnxManager.receiveConnection`); a wildcard is
    not sent (`InitialMessage.parse`), and then the larger one dials the address in its own file.
    """
    if not reaches(dialler, listener, sid, Port.ELECTION):
        return False
    if own > sid or dialler is None:
        return True
    endpoints = dialler.endpoints(own, Port.ELECTION)
    is_dialled = endpoints is None or any(host not in WILDCARDS for host, _ in endpoints)
    return is_dialled or reaches(listener, dialler, own, Port.ELECTION)
