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
before. It ignores every message but the reply that it waits for.

The history is part of the state: the column "history". It keeps the order that a client can observe: for each
operation, how many operations of each client were completed when it was invoked. Histories with the same order are one
value, so they do not multiply states. A request is invoked when it is sent, and completed when its reply arrives. A put
without a reply may have happened. `checker.histories.linearizable` judges the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from checker.engine import TRIVIAL, Finding, Kind, Model, ModelError, Property, Read
from checker.engine.contract import same_types
from checker.engine.model import Trivial
from checker.histories import linearizable
from checker.histories.linearizable import PlainRegister
from checker.histories.record import Operation
from checker.kit.machines import HistoryVariable, Machine, Reaction, network_model
from checker.kit.networks import Network

HISTORY = "history"
"""The name of the column with the history."""


class Call(msgspec.Struct, frozen=True):
    """An operation that was invoked: a put with its value, or a get.

    `seen` has for each client the number of its operations that were completed before.
    """

    is_put: bool
    value: Any
    seen: tuple[int, ...]


class ClientLog(msgspec.Struct, frozen=True):
    """The operations of a client: those with a reply, each with the value that it returned, and the one without."""

    done: tuple[tuple[Call, Any], ...] = ()
    pending: Call | None = None


class RegisterHistory(msgspec.Struct, frozen=True):
    """The history of all clients: their names, and the log of each."""

    names: tuple[str, ...]
    logs: tuple[ClientLog, ...]

    @staticmethod
    def of(names: Iterable[str]) -> RegisterHistory:
        """The history of these clients before the first operation."""
        clients = tuple(names)
        return RegisterHistory(clients, tuple(ClientLog() for _ in clients))

    def lane_fields(self) -> dict[str, list[str]]:
        """The operations of each client in words, for reports."""
        return {name: self._operations(number) for number, name in enumerate(self.names)}

    def _operations(self, number: int) -> list[str]:
        log = self.logs[number]
        lines = [self._worded(call, number, "" if call.is_put else f" -> {value}") for call, value in log.done]
        return lines if log.pending is None else [*lines, self._worded(log.pending, number, " (no reply)")]

    def _worded(self, call: Call, number: int, reply: str) -> str:
        before = [f"{self.names[n]} {count}" for n, count in enumerate(call.seen) if count and n != number]
        operation = f"put {call.value}" if call.is_put else "get"
        return operation + reply + (f" (completed before: {', '.join(before)})" if before else "")


class Invoked(msgspec.Struct, frozen=True):
    """The event that a client, by its number, sends a request."""

    client: int
    is_put: bool
    value: Any


class Returned(msgspec.Struct, frozen=True):
    """The event that a client, by its number, has the reply that it waits for."""

    client: int
    value: Any


def record(history: RegisterHistory, event: Invoked | Returned) -> RegisterHistory:
    """The history after an event."""
    logs = history.logs
    log = logs[event.client]
    if isinstance(event, Invoked):
        completed = tuple(len(history_log.done) for history_log in logs)
        log = ClientLog(log.done, Call(event.is_put, event.value, completed))
    elif log.pending is not None:
        log = ClientLog((*log.done, (log.pending, event.value)))
    return RegisterHistory(history.names, (*logs[: event.client], log, *logs[event.client + 1 :]))


def operations_of(history: RegisterHistory, initial: Any = None) -> list[Operation]:
    """The history as operations with times, for a search of an order.

    The value of an operation is the number of the value, since values are compared and not described: equal values have
    one number, and `initial` has 0. An operation is invoked at the number of operations that were completed before. It
    is completed just before the first invocation that has seen it completed.
    """
    logs = history.logs
    calls = [call for log in logs for call in (*(call for call, _ in log.done), log.pending) if call is not None]
    last = sum(len(log.done) for log in logs) + 1.0
    numbers: dict[Any, tuple[int, Any]] = {initial: (0, initial)}
    operations = []

    def number_of(value: Any) -> str:
        number, first = numbers.setdefault(value, (len(numbers), value))
        same_types(first, value, "the history")
        return str(number)

    for number, (name, log) in enumerate(zip(history.names, logs, strict=True)):
        for place, (call, returned) in enumerate(log.done):
            after = [sum(later.seen) - 0.5 for later in calls if later.seen[number] > place]
            value = number_of(call.value if call.is_put else returned)
            operations.append(_operation(name, call, min(after, default=last), value))
        if log.pending is not None:
            operations.append(_operation(name, log.pending, None, number_of(log.pending.value)))
    return operations


def _operation(client: str, call: Call, completed: float | None, value: str) -> Operation:
    return Operation(
        client=client,
        session=0,
        server=0,
        kind="set" if call.is_put else "sync+get",
        key="register",
        invoked=float(sum(call.seen)),
        completed=completed,
        outcome="unknown" if completed is None else "ok",
        value=value,
    )


def linearizable_property(initial: Any = None) -> Property:
    """The property Linearizable: an order of the operations explains every reply.

    The order respects real time. The property is trivial before the first reply.
    """
    specification = PlainRegister("0")

    def check(history: RegisterHistory) -> Finding | Trivial | None:
        if not any(log.done for log in history.logs):
            return TRIVIAL
        order = linearizable.search(operations_of(history, initial), object_=specification)
        if isinstance(order, linearizable.Linearization):
            return None
        if isinstance(order, linearizable.NoAnswer):
            raise ModelError("the search for an order of the history was given up; write shorter scripts")
        return Finding("no order of the operations explains the replies", tuple(history.lane_fields().items()))

    meaning = "an order of the operations, which respects real time, explains every reply"
    return Property("Linearizable", (Read(HISTORY),), check, meaning=meaning)


def value_read(initial: Any = None) -> Property:
    """The property ValueRead: sometimes a get returns a value that was put."""

    def check(history: RegisterHistory) -> Finding | None:
        values = [value for log in history.logs for call, value in log.done if not call.is_put and value != initial]
        return Finding("a get returned a value that was put", (("values", values),)) if values else None

    return Property("ValueRead", (Read(HISTORY),), check, Kind.SOMETIMES, "a get returns a value that was put")


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
    judged = [linearizable_property(initial), value_read(initial)]
    return network_model(name, machines, network, links=links, histories=[history], properties=[*judged, *properties])


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
