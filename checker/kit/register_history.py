"""The history of a register's clients as a value of a model, and its judge.

The history keeps the order that a client can observe: for each operation, how many operations of each client were
completed when it was invoked. Histories with the same order are one value, so they do not multiply states. A request is
invoked when it is sent, and completed when its reply arrives. A put without a reply may have happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from checker.engine import TRIVIAL, Finding, Kind, ModelError, Property, Read
from checker.engine.contract import same_types
from checker.engine.model import Trivial
from checker.histories import linearizable
from checker.histories.linearizable import PlainRegister
from checker.histories.record import Operation

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
        seen = tuple(len(each.done) for each in logs)
        log = ClientLog(log.done, Call(event.is_put, event.value, seen))
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
            after = [sum(each.seen) - 0.5 for each in calls if each.seen[number] > place]
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
        found = linearizable.search(operations_of(history, initial), object_=specification)
        if isinstance(found, linearizable.Linearization):
            return None
        if isinstance(found, linearizable.NoAnswer):
            raise ModelError("the search for an order of the history was given up; write shorter scripts")
        return Finding("no order of the operations explains the replies", tuple(history.lane_fields().items()))

    meaning = "an order of the operations, which respects real time, explains every reply"
    return Property("Linearizable", (Read(HISTORY),), check, meaning=meaning)


def value_read(initial: Any = None) -> Property:
    """The property ValueRead: sometimes a get returns a value that was put."""

    def check(history: RegisterHistory) -> Finding | None:
        read = [value for log in history.logs for call, value in log.done if not call.is_put and value != initial]
        return Finding("a get returned a value that was put", (("values", read),)) if read else None

    return Property("ValueRead", (Read(HISTORY),), check, Kind.SOMETIMES, "a get returns a value that was put")
