"""The guarantees of the service to its clients (R12 to R14), by name; and the model of a run with some of them.

A property reads the memory of scripted clients, the history, and the trees. Memory and history keep only the notes that
the properties of a run need. A new property is an entry here, and a variant that breaks it.

Source: the ZooKeeper Programmer's Guide, "Consistency Guarantees" and "What ZooKeeper Guarantees about Watches".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from checker.engine import Column, Kind, Model, Property
from checker.models.service.build import service
from checker.models.service.history import HISTORY, CommitHistory, history_actor
from checker.models.service.observations import Note
from checker.models.service.scripts import Script, scripted
from checker.models.service.setup import ServiceSetup
from checker.properties.lookup import UnknownPropertyError
from checker.properties.patterns import check_parameter
from checker.properties.service import answers, consistency, watches, znodes
from checker.properties.service.projections import Run

_OF_HISTORY = frozenset({Note.CREATED, Note.EVENTS, Note.NUMBERS, Note.EPHEMERALS, Note.ORDER, Note.COMMITTED})


@dataclass(frozen=True)
class Entry:
    """A property that a scenario may name; these properties take no parameter."""

    name: str
    kind: Kind
    meaning: str
    build: Callable[[Run], Property]
    notes: frozenset[Note] = frozenset()
    parameter: str = ""

    @property
    def is_invariant(self) -> bool:
        """Whether it must hold in every state."""
        return self.kind is Kind.ALWAYS


def _always(name: str, meaning: str, build: Callable[[Run], Property], *notes: Note) -> Entry:
    return Entry(name, Kind.ALWAYS, meaning, build, frozenset(notes))


def _sometimes(name: str, meaning: str, build: Callable[[Run], Property], *notes: Note) -> Entry:
    return Entry(name, Kind.SOMETIMES, meaning, build, frozenset(notes))


_ALL = (
    _always(
        "OneCreator", "of several creators of one path exactly one succeeds (R12)", znodes.one_creator, Note.CREATED
    ),
    _always(
        "SequenceNumbersAreUnique",
        "no sequential name is given twice while the parent lives (R12)",
        znodes.sequence_numbers,
        Note.NUMBERS,
    ),
    _always(
        "EphemeralsEndWithSession",
        "where a session has ended, its ephemeral znodes are gone (R12)",
        znodes.ephemerals_end,
    ),
    _always(
        "EphemeralsLiveWithSession",
        "neither a lost connection nor another server ends an ephemeral znode (R12)",
        znodes.ephemerals_live,
        Note.EPHEMERALS,
    ),
    _always(
        "UpdatesInOrder", "a client's updates take effect in its order (R13)", consistency.updates_in_order, Note.ORDER
    ),
    _always(
        "ExpectedAnswers",
        "each answer is the one that the script states (R12, R13)",
        answers.expected_answers,
        Note.ANSWERS,
    ),
    _always("AllOrNothing", "of a multi everything shows in a tree, or nothing (R13)", consistency.all_or_nothing),
    _always(
        "SingleSystemImage",
        "within a session no client is shown an older state than it has seen (R13)",
        consistency.single_system_image,
        Note.NEWEST,
    ),
    _always(
        "AcceptedIsNotLost",
        "an update that a client was told is done is committed (R13)",
        consistency.accepted_is_kept,
        Note.ACCEPTED,
        Note.COMMITTED,
    ),
    _always(
        "ReadAfterSyncIsFresh",
        "a read after a sync sees all that was committed when the sync was asked (R13)",
        consistency.read_after_sync,
        Note.FRESHNESS,
    ),
    _sometimes(
        "StaleRead",
        "without a sync, a read may show an older state than was committed when it was asked (R13)",
        consistency.stale_read,
        Note.FRESHNESS,
    ),
    _always(
        "EventBeforeData",
        "no client sees a change before the notice that it waits for (R14)",
        watches.event_before_data,
        Note.WATCHES,
    ),
    _always("WatchIsOneShot", "a watch is heard of once (R14)", watches.heard_once, Note.WATCHES),
    _always(
        "NoEventIsLost",
        "what a connected client waits for has not happened at its server, or the notice is on its way (R14)",
        watches.no_event_lost,
        Note.WATCHES,
    ),
    _sometimes(
        "OutdatedAfterNotice",
        "a client that moves after a notice may still read what was there before it (R14)",
        watches.outdated_after_notice,
        Note.WATCHES,
        Note.NOTICED,
    ),
    _always(
        "EventsInOrder",
        "on one connection, events are heard in the order in which they happened (R14)",
        watches.events_in_order,
        Note.EVENTS,
    ),
)
SERVICE_PROPERTIES: Mapping[str, Entry] = {each.name: each for each in _ALL}
"""Every property of the service, by name."""


def entry(name: object) -> Entry:
    """The property of that name. Raises UnknownPropertyError."""
    if not isinstance(name, str) or name not in SERVICE_PROPERTIES:
        raise UnknownPropertyError(name, SERVICE_PROPERTIES)
    return SERVICE_PROPERTIES[name]


def build(run: Run, name: object, parameter: Any = None) -> Property:
    """A property of a run. Raises UnknownPropertyError, and ParameterError."""
    found = entry(name)
    check_parameter(name, found.parameter, parameter)
    return replace(found.build(run), meaning=found.meaning)


def service_model(name: str, setup: ServiceSetup, scripts: Sequence[Script], properties: Iterable[str]) -> Model:
    """A service whose clients run these scripts, with these properties. Raises UnknownPropertyError.

    The scripts and the properties determine the number of clients, pipelining and observers; the setup's values for
    these are replaced.
    """
    names = tuple(properties)
    tagged = tuple(script.tagged(client) for client, script in enumerate(scripts, 1))
    notes = frozenset[Note]().union(*(entry(each).notes for each in names))
    observed = bool(notes & _OF_HISTORY)
    setup = replace(
        setup,
        clients=len(tagged),
        pipelined=any(script.pipeline > 1 for script in tagged),
        observe_commits=(HISTORY,) if observed else (),
    )
    run = Run(setup, tagged)
    parts, clients = service(setup), scripted(setup, tagged, notes)
    return Model(
        name,
        columns=(*parts.columns, *clients.columns, *((Column(HISTORY, CommitHistory()),) if observed else ())),
        actors=(*parts.actors, *clients.actors, *((history_actor(notes),) if observed else ())),
        rules=(*parts.rules, *clients.rules),
        properties=tuple(build(run, each) for each in names),
    )
