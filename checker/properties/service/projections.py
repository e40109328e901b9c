"""The registry of the guarantees of the service, the scripts that they are meant for, and what they read.

Rules of this module: a projection is as small as possible; a default property is not vacuous for its scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from checker.engine import TRIVIAL, Finding, Read
from checker.models.service.observations import Note, Observations
from checker.models.service.scripts import Script
from checker.models.service.servers import LaggingServer, Leader
from checker.models.service.setup import LEADER, ServiceSetup, client_name, server_name
from checker.properties.registry import Answer, Condition, Registry, Scope
from spec.tree.requests import (
    CloseSession,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren2,
    GetData,
    Multi,
    SetData,
    Sync,
)
from spec.tree.store import FrozenStore


@dataclass(frozen=True)
class ScriptSummary:
    """The kinds of requests in some scripts."""

    creates: bool = False
    sequential: bool = False
    ephemeral: bool = False
    writes: bool = False
    changes: bool = False
    multi: bool = False
    sync: bool = False
    closes: bool = False
    expects: bool = False
    watches: int = 0

    @classmethod
    def of(cls, scripts: Iterable[Script]) -> ScriptSummary:
        """The summary of all steps of all scripts; `watches` is the greatest number for one client."""
        scripts = tuple(scripts)
        records = [record for script in scripts for step in script.steps for record in step]
        whole = [
            operation
            for record in records
            for operation in (record.operations if isinstance(record, Multi) else (record,))
        ]
        flags = {CreateMode(record.flags) for record in whole if isinstance(record, Create)}
        watched = [
            sum(
                any(isinstance(record, Exists | GetData | GetChildren2) and record.watch for record in step)
                for step in script.steps
            )
            for script in scripts
        ]
        return cls(
            creates=any(isinstance(record, Create) and record.flags in (0, 1) for record in records),
            sequential=bool(flags & {CreateMode.PERSISTENT_SEQUENTIAL, CreateMode.EPHEMERAL_SEQUENTIAL}),
            ephemeral=bool(flags & {CreateMode.EPHEMERAL, CreateMode.EPHEMERAL_SEQUENTIAL}),
            writes=any(hasattr(record, "data") for record in whole),
            changes=any(isinstance(record, Create | SetData | Delete | CloseSession) for record in whole),
            multi=any(isinstance(record, Multi) for record in records),
            sync=any(isinstance(record, Sync) for record in records),
            closes=any(isinstance(record, CloseSession) for record in records),
            expects=any(answer is not None for script in scripts for answer in script.expected),
            watches=max(watched, default=0),
        )


@dataclass(frozen=True)
class ServiceRun:
    """A service and the scripts of its clients: the input of a property's constructor."""

    setup: ServiceSetup
    scripts: tuple[Script, ...]

    @cached_property
    def requests(self) -> ScriptSummary:
        """The kinds of requests of the scripts."""
        return ScriptSummary.of(self.scripts)


SERVICE_PROPERTIES: Registry[ServiceRun, Note] = Registry("a service")
"""All guarantees of the service, by name."""

EVERYWHERE: Scope[ServiceRun] = Scope(lambda _: True, "yes")
CREATES: Scope[ServiceRun] = Scope(
    lambda run: run.requests.creates, "if a script creates a znode that is not sequential"
)
SEQUENTIAL: Scope[ServiceRun] = Scope(lambda run: run.requests.sequential, "if a script creates a sequential znode")
EPHEMERAL: Scope[ServiceRun] = Scope(lambda run: run.requests.ephemeral, "if a script creates an ephemeral znode")
UPDATES: Scope[ServiceRun] = Scope(lambda run: run.requests.writes, "if a script writes data")
EXPECTATIONS: Scope[ServiceRun] = Scope(lambda run: run.requests.expects, "if a script states an answer")
MULTI: Scope[ServiceRun] = Scope(lambda run: run.requests.multi, "if a script has a multi")
SYNCS: Scope[ServiceRun] = Scope(lambda run: run.requests.sync, "if a script has a sync")
WATCHES: Scope[ServiceRun] = Scope(lambda run: run.requests.watches > 0, "if a script sets a watch")
TWO_WATCHES: Scope[ServiceRun] = Scope(lambda run: run.requests.watches > 1, "if one client sets two watches")


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
    run: ServiceRun,
    look: Callable[[Observations], tuple[object, tuple[Hashable, ...] | None]],
    clause: str,
    values: Sequence[str],
) -> Condition:
    """A condition on the memory of each client separately.

    `look` returns whether the premise holds, and the values that violate the property, in the order of their names.
    """

    def check(*seen: tuple[bool, tuple[Any, ...] | None]) -> Answer:
        for client, (_, witness) in enumerate(seen, 1):
            if witness is not None:
                return found(clause, zip(("client", *values), (client, *witness), strict=True))
        return None if any(premise for premise, _ in seen) else TRIVIAL

    def shown(memory: Observations) -> tuple[bool, tuple[Hashable, ...] | None]:
        premise, wrong = look(memory)
        return bool(premise), wrong

    return Condition(memories(run.setup, shown), check)


def found(clause: str, values: Iterable[tuple[str, Any]]) -> Finding:
    """A finding."""
    return Finding(clause, tuple(values))
