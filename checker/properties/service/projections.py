"""The projections that the invariants of the service read, each one as small as possible."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from checker.engine import TRIVIAL, Finding, Kind, Property, Read
from checker.engine.model import Trivial
from checker.models.service.observations import Observations
from checker.models.service.scripts import Script
from checker.models.service.servers import LaggingServer, Leader
from checker.models.service.setup import LEADER, ServiceSetup, client_name, server_name
from spec.tree.store import FrozenStore

Answer: TypeAlias = Finding | Trivial | None


@dataclass(frozen=True)
class Run:
    """A service and the scripts of its clients: the input of a property's constructor."""

    setup: ServiceSetup
    scripts: tuple[Script, ...]


def trees(setup: ServiceSetup, look: Callable[[FrozenStore, int], Hashable]) -> tuple[Read, ...]:
    """A read of the leader's tree, and with lag of each server's; `look` gets the tree and its zxid."""

    def leader(value: Leader) -> Hashable:
        return look(value.store, value.zxid)

    def replica(value: LaggingServer) -> Hashable:
        return look(value.store, value.zxid)

    servers = setup.server_ids if setup.lag else ()
    return (Read(LEADER, leader), *(Read(server_name(server), replica) for server in servers))


def keepers(setup: ServiceSetup) -> tuple[str, ...]:
    """The names of the owners of these trees, in the same order."""
    return (LEADER, *(server_name(server) for server in setup.server_ids if setup.lag))


def memories(setup: ServiceSetup, look: Callable[[Observations], Hashable]) -> tuple[Read, ...]:
    """A read of each client's memory."""
    return tuple(Read(client_name(client), lambda standing: look(standing.memory)) for client in setup.client_ids)


def flagged(
    run: Run,
    name: str,
    look: Callable[[Observations], tuple[object, tuple[Hashable, ...] | None]],
    clause: str,
    values: Sequence[str],
    kind: Kind = Kind.ALWAYS,
) -> Property:
    """A property of the memory of each client separately.

    `look` returns whether the premise holds, and the values that violate the property, in the order of their names.
    """

    def check(*seen: tuple[bool, tuple[Any, ...] | None]) -> Answer:
        for client, (_, shown) in enumerate(seen, 1):
            if shown is not None:
                return found(clause, zip(("client", *values), (client, *shown), strict=True))
        return None if any(premise for premise, _ in seen) else TRIVIAL

    def shown(memory: Observations) -> tuple[bool, tuple[Hashable, ...] | None]:
        premise, wrong = look(memory)
        return bool(premise), wrong

    return Property(name, memories(run.setup, shown), check, kind)


def found(clause: str, values: Iterable[tuple[str, Any]]) -> Finding:
    """A finding."""
    return Finding(clause, tuple(values))
