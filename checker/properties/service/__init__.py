"""The guarantees of the service to its clients (R12 to R14), and the model of a run with some of them.

- `consistency`, `watches`: the guarantees, each declared at its function
- `projections`: the registry, the scripts that a guarantee is meant for, and what guarantees read

A property reads the memory of scripted clients, the history, and the trees. Memory and history keep only the notes that
the properties of a run need. The order of the imports is the order of listings and of defaults.

Source: the ZooKeeper Programmer's Guide, "Consistency Guarantees" and "What ZooKeeper Guarantees about Watches".
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from checker.engine import Column, Model
from checker.models.service.history import HISTORY, CommitHistory, history_actor
from checker.models.service.observations import Note
from checker.models.service.rules import service
from checker.models.service.scripts import Script, scripted_clients
from checker.models.service.setup import ServiceSetup

from checker.properties.service import consistency, watches  # isort: skip
from checker.properties.service.projections import SERVICE_PROPERTIES, ScriptSummary, ServiceRun

__all__ = ["SERVICE_PROPERTIES", "ScriptSummary", "ServiceRun", "applicable", "consistency", "service_model", "watches"]

_OF_HISTORY = frozenset({Note.CREATED, Note.EVENTS, Note.NUMBERS, Note.EPHEMERALS, Note.ORDER, Note.COMMITTED})


def applicable(scripts: Iterable[Script]) -> tuple[str, ...]:
    """The invariants that are not vacuous in a run of these scripts."""
    return SERVICE_PROPERTIES.defaults(ServiceRun(ServiceSetup(), tuple(scripts)))


def service_model(name: str, setup: ServiceSetup, scripts: Sequence[Script], properties: Iterable[str]) -> Model:
    """A service whose clients run these scripts, with these properties. Raises UnknownPropertyError.

    The scripts and the properties determine the number of clients, pipelining and observers; the setup's values for
    these are replaced.
    """
    names = tuple(properties)
    tagged = tuple(script.with_tags(client) for client, script in enumerate(scripts, 1))
    notes = frozenset[Note]().union(*(SERVICE_PROPERTIES.find(word).facts for word in names))
    observed = bool(notes & _OF_HISTORY)
    setup = replace(
        setup,
        clients=len(tagged),
        pipelined=any(script.pipeline > 1 for script in tagged),
        observe_commits=(HISTORY,) if observed else (),
    )
    run = ServiceRun(setup, tagged)
    parts, clients = service(setup), scripted_clients(setup, tagged, notes)
    return Model(
        name,
        columns=(*parts.columns, *clients.columns, *((Column(HISTORY, CommitHistory()),) if observed else ())),
        actors=(*parts.actors, *clients.actors, *((history_actor(notes),) if observed else ())),
        rules=(*parts.rules, *clients.rules),
        properties=tuple(SERVICE_PROPERTIES.build(run, word) for word in names),
    )
