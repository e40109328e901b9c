"""Watches (R14): the notification before the new data, once, none lost, in the order of updates."""

from typing import Any

from checker.engine import TRIVIAL, Kind, Read
from checker.models.service.client_connection import ClientConnection, ConnectionState
from checker.models.service.history import HISTORY, CommitHistory
from checker.models.service.messages import WatchNotification
from checker.models.service.observations import Note, PendingWatch, WatchedState, explains, state_in_store
from checker.models.service.scripts import ScriptPosition
from checker.models.service.setup import client_name, link_name
from checker.properties.registry import Answer, Condition
from checker.properties.service.projections import (
    SERVICE_PROPERTIES,
    TWO_WATCHES,
    WATCHES,
    ServiceRun,
    flagged,
    found,
    memories,
    trees,
)
from spec.client import Awaits
from spec.tree.requests import Exists, GetChildren2, GetData
from spec.tree.store import FrozenStore


@SERVICE_PROPERTIES.declare(
    "EventBeforeData",
    Kind.ALWAYS,
    meaning="No reply shows a client a change before the notification that it waits for",
    premise="A client has a watch",
    requirements=("R14",),
    default=WATCHES,
    facts=(Note.WATCHES,),
)
def _event_before_data(run: ServiceRun) -> Condition:
    return flagged(
        run,
        lambda memory: (memory.watches, memory.unheard and _states_of(*memory.unheard)),
        "a client sees a change before the notice that it waits for",
        ("path", "was", "is"),
    )


@SERVICE_PROPERTIES.declare(
    "WatchIsOneShot",
    Kind.ALWAYS,
    meaning="Every notification ends one watch of its client",
    premise="A client has a watch",
    requirements=("R14",),
    default=WATCHES,
    facts=(Note.WATCHES,),
)
def _heard_once(run: ServiceRun) -> Condition:
    return flagged(
        run,
        lambda memory: (memory.watches, memory.unasked),
        "a client hears a notice for which it has no watch left",
        ("event", "path"),
    )


@SERVICE_PROPERTIES.declare(
    "NoEventIsLost",
    Kind.ALWAYS,
    meaning="The state that a connected client watches is unchanged at its server, or the notification is in flight",
    premise="A connected client has a watch",
    requirements=("R14",),
    default=WATCHES,
    facts=(Note.WATCHES,),
)
def _no_event_lost(run: ServiceRun) -> Condition:
    setup = run.setup
    looks = sorted(_watched(run), key=lambda look: (look[1], look[0].value))

    def waiting(standing: ScriptPosition) -> tuple[PendingWatch, ...]:
        return tuple(sorted(standing.memory.watches, key=repr))

    def connection(link: ClientConnection) -> tuple[int, tuple[WatchNotification, ...]] | tuple[()]:
        if link.server is None or link.state is not ConnectionState.UP or link.cut:
            return ()
        return link.server, tuple(message for message in link.down if isinstance(message, WatchNotification))

    def states(store: FrozenStore, _zxid: int) -> tuple[WatchedState, ...]:
        return tuple(state_in_store(store, awaits, path) for awaits, path in looks)

    def check(*shown: Any) -> Answer:
        watching, links, tree = shown[:clients], shown[clients : 2 * clients], shown[2 * clients :]
        if not any(watches and link for watches, link in zip(watching, links, strict=True)):
            return TRIVIAL
        for client, watches, link in zip(setup.client_ids, watching, links, strict=True):
            # The first tree is the leader's; without lag it is the tree of every server.
            versions = dict(zip(looks, tree[link[0] if setup.lag else 0], strict=True)) if link else {}
            for watch in watches if link else ():
                awaits, path, was = watch
                is_ = versions[_looked_at(awaits), path]
                if is_ != was and not any(explains(notice, watch) for notice in link[1]):
                    return found(
                        "something has happened that a client waits for, and no notice is on its way",
                        zip(("client", "path", "was", "is"), (client, *_states_of(path, was, is_)), strict=True),
                    )
        return None

    clients = setup.clients
    reads = (
        *(Read(client_name(client), waiting) for client in setup.client_ids),
        *(Read(link_name(client), connection) for client in setup.client_ids),
        *trees(setup, states),
    )
    return Condition(reads, check)


@SERVICE_PROPERTIES.declare(
    "OutdatedAfterNotice",
    Kind.SOMETIMES,
    meaning="A client that moves to another server after a notification may still read the older state",
    requirements=("R14",),
    notes="A notification means that a znode has changed, and not that the next server has applied the change.",
    facts=(Note.WATCHES, Note.NOTICED),
)
def _outdated_after_notice(run: ServiceRun) -> Condition:
    return flagged(
        run,
        lambda memory: (memory.noticed, memory.outdated and _states_of(*memory.outdated)),
        "a client is told of a change, and then reads what was there before it",
        ("path", "is"),
    )


@SERVICE_PROPERTIES.declare(
    "EventsInOrder",
    Kind.ALWAYS,
    meaning="On one connection, a client receives notifications in the order of the events",
    premise="A client has received at least two notifications",
    requirements=("R14",),
    default=TWO_WATCHES,
    facts=(Note.EVENTS,),
)
def _events_in_order(run: ServiceRun) -> Condition:
    def events(history: CommitHistory) -> tuple[tuple[str, str], ...]:
        return history.events

    def check(events: tuple[tuple[str, str], ...], *clients: tuple[tuple[str, str], ...]) -> Answer:
        if all(len(heard) < 2 for heard in clients):
            return TRIVIAL
        for client, heard in enumerate(clients, 1):
            rest = iter(events)
            if not all(event in rest for event in heard):
                return found(
                    "a client hears of events in another order than they happened in",
                    (("client", client), ("heard", heard), ("happened", events)),
                )
        return None

    reads = (Read(HISTORY, events), *memories(run.setup, lambda memory: memory.heard or ()))
    return Condition(reads, check)


def _states_of(path: str, *states: WatchedState) -> tuple[str, ...]:
    return path, *("no znode" if state is None else f"as of zxid {state[1]}" for state in states)


def _looked_at(awaits: Awaits) -> Awaits:
    """The state that a watch observes: the data or the children of a znode."""
    return Awaits.CHILDREN if awaits is Awaits.CHILDREN else Awaits.DATA


def _watched(run: ServiceRun) -> set[tuple[Awaits, str]]:
    return {
        (Awaits.CHILDREN if isinstance(record, GetChildren2) else Awaits.DATA, record.path)
        for script in run.scripts
        for step in script.steps
        for record in step
        if isinstance(record, Exists | GetData | GetChildren2) and record.watch
    }
