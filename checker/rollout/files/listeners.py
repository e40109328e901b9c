"""The ports that a server listens on: whether it can bind them all.

    conflicts(given, values)  -> a Problem for each pair of listeners that cannot both be bound

Rules of this module:

- A listener without a host binds every address of its machine, so it conflicts with any other one of that port. Names
  are compared as they are written: two names of one machine are not seen.
- A server that listens with its AdminServer and for clients at one port starts all the same (`QuorumPeer.start` logs
  the failure of the AdminServer). With any other pair it does not start, never elects, or cannot lead.
- A standalone server has no ports for peers.

Sources: `QuorumPeerMain.runFromConfig`, `QuorumPeer.start`, `QuorumCnxManager.Listener`, `Leader.createServerSocket`,
`JettyAdminServer`, `PrometheusMetricsProvider` of 3.9.5; the guide has the defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from checker.rollout.inputs.folders import ServerFiles
from spec.config.ensemble import shared_addresses
from spec.config.problems import Problem
from spec.quorum.addresses import WILDCARDS
from spec.text import integer

ADMIN, CLIENT = "admin.serverPort", "clientPort"
PROMETHEUS = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"
HIGHEST = 65535


class Listener(NamedTuple):
    """A port of a server, the host by which it is bound ("" for every address), and the key that says so."""

    name: str
    host: str
    port: int

    def excludes(self, other: Listener) -> bool:
        """Whether one machine cannot bind both, and the server needs both."""
        if self.port != other.port or {self.name, other.name} == {ADMIN, CLIENT}:
            return False
        return not self.host or not other.host or self.host == other.host


def listeners_of(given: ServerFiles, values: Mapping[str, str]) -> tuple[Listener, ...]:
    """The listeners of a server, by its files and their keys."""
    return tuple(listener for listener in _listeners(given, values) if listener.port > 0)


def _listeners(given: ServerFiles, values: Mapping[str, str]) -> Iterator[Listener]:
    config = given.config
    if config.client is not None:
        yield Listener(CLIENT, _bound(config.client.host), config.client.port)
    yield Listener(
        "secureClientPort", _bound(values.get("secureClientPortAddress", "")), _port(values, "secureClientPort")
    )
    own = config.server(given.sid)
    if own is not None and not config.effective_view.standalone:
        for address in own.addresses:
            host = "" if config.listens_on_all_ips else _bound(address.host)
            yield Listener("the quorum port", host, address.quorum_port)
            yield Listener("the election port", host, address.election_port)
    yield Listener("observerMasterPort", "", _port(values, "observerMasterPort"))
    if values.get("admin.enableServer", "true").lower() == "true":
        yield Listener(ADMIN, _bound(values.get("admin.serverAddress", "")), _port(values, "admin.serverPort", 8080))
    if values.get("metricsProvider.className") == PROMETHEUS:
        host = _bound(values.get("metricsProvider.httpHost", ""))
        yield Listener("metricsProvider.httpPort", host, _port(values, "metricsProvider.httpPort", 7000))


def _bound(host: str) -> str:
    return "" if host in WILDCARDS else host.lower()


def _port(values: Mapping[str, str], key: str, default: int = 0) -> int:
    return integer(values[key], 0, HIGHEST) or 0 if key in values else default


def conflicts(given: ServerFiles, values: Mapping[str, str]) -> Iterator[Problem]:
    """The ports that a server cannot bind: it names a port twice, or the address of another server."""
    for first, second in combinations(listeners_of(given, values), 2):
        if first.excludes(second):
            problem = (
                f"server {given.sid} cannot listen twice on port {first.port}, by {first.name} and by {second.name}"
            )
            yield Problem(given.origin, 0, problem, "give each of them a port of its own")
    if not given.config.effective_view.standalone:
        for sid, name, address, owner in shared_addresses({line.sid: line for line in given.config.servers}):
            problem = f"server.{sid}: the {name} {address} is also an address of server.{owner}"
            yield Problem(given.origin, 0, problem, "only one server can listen there: change the host or the port")
