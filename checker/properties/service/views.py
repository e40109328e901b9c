"""What the invariants of the service look at, each as little of a column as decides."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from checker.engine import TRIVIAL, Finding, Kind, Property, Read
from checker.engine.model import Trivial
from checker.models.service.leader import Leader
from checker.models.service.memory import Memory
from checker.models.service.replica import Replica
from checker.models.service.scripts import Script
from checker.models.service.setup import LEADER, ServiceSetup, client_name, server_name
from spec.tree.store import FrozenStore

Answer: TypeAlias = Finding | Trivial | None


@dataclass(frozen=True)
class Run:
    """A service and the scripts of its clients, by which properties are built."""

    setup: ServiceSetup
    scripts: tuple[Script, ...]


def trees(setup: ServiceSetup, look: Callable[[FrozenStore, int], Hashable]) -> tuple[Read, ...]:
    """A read of the leader's tree and of each server's that has one of its own; `look` gets the tree and its zxid."""

    def leader(value: Leader) -> Hashable:
        return look(value.store, value.zxid)

    def replica(value: Replica) -> Hashable:
        return look(value.store, value.zxid)

    servers = setup.server_ids if setup.lag else ()
    return (Read(LEADER, leader), *(Read(server_name(server), replica) for server in servers))


def keepers(setup: ServiceSetup) -> tuple[str, ...]:
    """Whose the trees are."""
    return (LEADER, *(server_name(server) for server in setup.server_ids if setup.lag))


def memories(setup: ServiceSetup, look: Callable[[Memory], Hashable]) -> tuple[Read, ...]:
    """A read of what each client remembers."""
    return tuple(Read(client_name(client), lambda standing: look(standing.memory)) for client in setup.client_ids)


def flagged(
    run: Run,
    name: str,
    look: Callable[[Memory], tuple[object, tuple[Hashable, ...] | None]],
    clause: str,
    values: Sequence[str],
    kind: Kind = Kind.ALWAYS,
) -> Property:
    """A property of what each client alone has seen.

    `look` shows whether that says anything, and the values that prove the property wrong, in the order of their names.
    """

    def check(*seen: tuple[bool, tuple[Any, ...] | None]) -> Answer:
        for client, (_, shown) in enumerate(seen, 1):
            if shown is not None:
                return found(clause, zip(("client", *values), (client, *shown), strict=True))
        return None if any(premise for premise, _ in seen) else TRIVIAL

    def shown(memory: Memory) -> tuple[bool, tuple[Hashable, ...] | None]:
        premise, wrong = look(memory)
        return bool(premise), wrong

    return Property(name, memories(run.setup, shown), check, kind)


def found(clause: str, values: Iterable[tuple[str, Any]]) -> Finding:
    """A finding."""
    return Finding(clause, tuple(values))
