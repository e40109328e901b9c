"""A register service: clients with scripts, their history, and the property that every history is linearizable.

A register has one value. A server of the service is a `Machine` that understands the messages of this module:
`PutRequest` and `GetRequest` come from clients, `PutReply` and `GetReply` go back to them, with the number of the
request. What servers say to each other is up to them.

    def server(value, source, message):
        match message:
            case PutRequest(request, new):
                return Reaction(new, ((source, PutReply(request)),))
            case GetRequest(request):
                return Reaction(value, ((source, GetReply(request, value)),))
        return None

    model = register_model(
        "one copy",
        [Machine("s1", Reaction(None), server)],
        [ScriptedClient("c1", (PutTo("s1", "A"), GetFrom("s1"))), ScriptedClient("c2", (GetFrom("s1"),))],
    )

A client sends the first request of its script at the start, and each other one when it has the reply to the request
before. It ignores every message but the reply that it waits for. The history is part of the state: the column
"history" (`checker.kit.register_history`). The property Linearizable judges it with the search of
`checker.histories.linearizable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from checker.engine import Model, ModelError, Property
from checker.kit.machines import HistoryVariable, Machine, Reaction, network_model
from checker.kit.networks import Network
from checker.kit.register_history import (
    HISTORY,
    Invoked,
    RegisterHistory,
    Returned,
    linearizable_property,
    record,
    value_read,
)


class PutRequest(msgspec.Struct, frozen=True):
    """A client asks a server to write a value; `request` is the number of the request among those of the client."""

    request: int
    value: Any


class GetRequest(msgspec.Struct, frozen=True):
    """A client asks a server for the value."""

    request: int


class PutReply(msgspec.Struct, frozen=True):
    """The value was written."""

    request: int


class GetReply(msgspec.Struct, frozen=True):
    """The value that was read."""

    request: int
    value: Any


class PutTo(NamedTuple):
    """A step of a script: put a value at a server."""

    server: str
    value: Any


class GetFrom(NamedTuple):
    """A step of a script: get the value from a server."""

    server: str


@dataclass(frozen=True)
class ScriptedClient:
    """A client and its script."""

    name: str
    script: tuple[PutTo | GetFrom, ...]


def scripted_clients(servers: Sequence[str], number: int, puts: int = 1) -> list[ScriptedClient]:
    """Clients c1, c2, ... that put `puts` different values and then get, each request at the next server.

    The first client begins at the first server, the second one at the second server. The values are A1, A2, ... of the
    first client, B1, ... of the second one; without the number if there is one put.
    """
    clients = []
    for place in range(number):
        values = [chr(ord("A") + place) + (str(n + 1) if puts > 1 else "") for n in range(puts)]
        at = [servers[(place + step) % len(servers)] for step in range(puts + 1)]
        writes = [PutTo(server, value) for server, value in zip(at[:-1], values, strict=True)]
        clients.append(ScriptedClient(f"c{place + 1}", (*writes, GetFrom(at[-1]))))
    return clients


def register_model(
    name: str,
    servers: Sequence[Machine],
    clients: Sequence[ScriptedClient],
    network: Network = Network(),
    *,
    initial: Any = None,
    properties: Iterable[Property] = (),
) -> Model:
    """The model of servers and scripted clients, with the properties Linearizable and ValueRead and those given.

    `initial` is the value of the register before the first put. Servers have links to each other and to every client;
    a client has links to the servers of its script. Raises ModelError, for example for a script that names no server.
    """
    names = [server.name for server in servers]
    links = [(a, b) for a in names for b in names if a != b]
    links += [(server, client.name) for server in names for client in clients]
    links += [(client.name, step.server) for client in clients for step in client.script]
    for client in clients:
        _check_script(client, names)
    machines = [*servers, *(_machine(number, client) for number, client in enumerate(clients))]
    history = HistoryVariable(HISTORY, RegisterHistory.of(client.name for client in clients), record)
    own = [linearizable_property(initial), value_read(initial)]
    return network_model(name, machines, network, links=links, histories=[history], properties=[*own, *properties])


def _check_script(client: ScriptedClient, servers: Sequence[str]) -> None:
    for step in client.script:
        if step.server not in servers:
            raise ModelError(
                f"the script of {client.name!r} names {step.server!r}; the servers are {', '.join(servers)}"
            )


def _machine(number: int, client: ScriptedClient) -> Machine:
    """A client; its state is the number of requests with a reply."""

    def request(done: int) -> Reaction:
        if done == len(client.script):
            return Reaction(done)
        step = client.script[done]
        if isinstance(step, PutTo):
            invoked, message = Invoked(number, True, step.value), PutRequest(done + 1, step.value)
            return Reaction(done, ((step.server, message),), ((HISTORY, invoked),))
        return Reaction(done, ((step.server, GetRequest(done + 1)),), ((HISTORY, Invoked(number, False, None)),))

    def on_message(done: int, source: str, message: Any) -> Reaction | None:  # noqa: ARG001 (any server may reply)
        expected = PutReply if done < len(client.script) and isinstance(client.script[done], PutTo) else GetReply
        if not isinstance(message, expected) or message.request != done + 1:
            return None
        value = message.value if isinstance(message, GetReply) else None
        following = request(done + 1)
        return following._replace(reports=((HISTORY, Returned(number, value)), *following.reports))

    return Machine(client.name, request(0), on_message)
