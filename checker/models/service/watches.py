"""The watches of one server's clients, as an immutable value with the rules of `spec.tree.watches`.

Several events of one transaction meet the watches one after the other, in their order; each client gets one
notification of an event. Variants: a watch remains after it has fired; the newest event is sent first.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from checker.engine import Actor, Outcome, Send
from checker.models.service.messages import (
    AddWatch,
    FireWatches,
    ForgetClient,
    SendMessage,
    WatchFact,
    WatchNotification,
)
from checker.models.service.setup import ServiceSetup, link_name, watches_name
from spec.tree.watches import Watches, WatchKind
from spec.variants import Variant

Watching: TypeAlias = frozenset[tuple[int, WatchKind, str]]
"""The watches as (client, kind, path)."""


def watches_actor(server: int, setup: ServiceSetup) -> Actor:
    """The watches of a server. Its operations are AddWatch, FireWatches and ForgetClient."""
    stays = Variant.WATCH_FIRES_TWICE in setup.variants
    ahead = Variant.EVENTS_OUT_OF_ORDER in setup.variants

    def step(values: tuple[Any, ...], asked: AddWatch | FireWatches | ForgetClient) -> Outcome:
        watching: Watching = values[0]
        match asked:
            case AddWatch(client, kind, path):
                return Outcome((watching | {(client, kind, path)},))
            case ForgetClient(client):
                return Outcome((frozenset(each for each in watching if each[0] != client),))
            case FireWatches(event):
                fired = _matches(watching, asked)
                clients = dict.fromkeys(client for client, _, _ in fired)
                facts = tuple(Send(name, WatchFact(event.path, len(clients))) for name in setup.observe_watches)
                notice = SendMessage(WatchNotification(event.type, event.path), ahead)
                told = tuple(Send(link_name(client), notice) for client in clients)
                return Outcome((watching if stays else watching - set(fired),), (*(facts if told else ()), *told))

    name = watches_name(server)
    return Actor(name, (name,), step)


def _matches(watching: Watching, fire: FireWatches) -> list[tuple[int, WatchKind, str]]:
    """The watches that an event meets, by client."""
    table: Watches[tuple[int, WatchKind]] = Watches()
    for client, kind, path in sorted(watching, key=lambda each: (each[0], each[2], each[1].value)):
        table.add(kind, path, (client, kind))
    return [(client, kind, fire.event.path) for (client, kind), _, _ in table.fire(fire.event)]
