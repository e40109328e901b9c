"""Conversion of plain parameters, as a scenario gives them, to the parts of a job of the service.

Rules of this module: every bound and every omission of the model is described in words, and so is the reason why a
variant would change nothing in a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from checker.engine import Model
from checker.job import Presenter
from checker.models.service.rules import ServiceAction, known_actions
from checker.models.service.scripts import Script
from checker.models.service.setup import Clocks, FaultBudgets, ServiceSetup
from checker.present.service import ServicePresenter, scripted_fields
from checker.properties.service import SERVICE_PROPERTIES, ScriptSummary, applicable, service_model
from checker.scenario.variants import NoEffect
from spec.variants import Variant

DEFAULTS = tuple(name for name, each in SERVICE_PROPERTIES.items() if each.default is not None)
"""The invariants that are checked by default; `applicable` leaves out those that the scripts make vacuous."""


@dataclass(frozen=True)
class ServiceJobParts:
    """The parts of a `checker.job.Job` other than name, limits and expected verdict, which the scenario gives."""

    model: Model
    setup: ServiceSetup
    scripts: tuple[Script, ...]
    presenter: Presenter
    bounds: tuple[str, ...]
    actions: frozenset[str]


def service_setup(
    clients: Sequence[Script],
    *,
    servers: int = 2,
    lag: bool = True,
    paths: Sequence[str] = (),
    at: Sequence[int] = (),
    clocks: Clocks = Clocks.TRUSTED,
    keeps_watches: bool = True,
    budgets: FaultBudgets | None = None,
    variants: Iterable[Variant] = (),
) -> ServiceSetup:
    """The service for clients with these scripts. Raises ValueError with the mistake."""
    return ServiceSetup(
        clients=len(clients),
        servers=servers,
        lag=lag,
        paths=tuple(paths),
        at=tuple(at),
        clocks=clocks,
        budgets=budgets or FaultBudgets(),
        keeps_watches=keeps_watches,
        pipelined=any(script.pipeline > 1 for script in clients),
        variants=frozenset(variants),
    )


def service_job_parts(
    name: str, setup: ServiceSetup, clients: Sequence[Script], properties: Iterable[str] | None = None
) -> ServiceJobParts:
    """A service whose clients run scripts. Raises UnknownPropertyError with the mistake.

    `clients` come from `checker.scenario.request_parser.script_of`. The default for `properties` is every invariant
    that is not vacuous for these scripts.
    """
    wanted = applicable(clients) if properties is None else tuple(properties)
    model = service_model(name, setup, clients, wanted)
    presenter = ServicePresenter(model, setup, scripted_fields(model))
    changes = {
        name
        for name in known_actions(setup)
        if name is not ServiceAction.ARRIVE_LATE or ScriptSummary.of(clients).changes
    }
    actions = frozenset({"ask", *changes})
    return ServiceJobParts(model, setup, tuple(clients), presenter, tuple(bounds_of(setup, clients)), actions)


def bounds_of(setup: ServiceSetup, scripts: Sequence[Script]) -> Iterator[str]:
    """The bounds and omissions of a run, in words."""
    steps = ", ".join(f"{len(script.steps)} of client {n}" for n, script in enumerate(scripts, 1))
    yield f"requests, each asked once: {steps}"
    for n, script in enumerate(scripts, 1):
        if script.pipeline > 1:
            yield f"client {n} leaves up to {script.pipeline} requests unanswered"
    left = setup.budgets
    counts = {
        ("lost connection", "lost connections"): left.disconnects,
        ("expiry", "expiries"): left.expiries,
        ("crash of a client", "crashes of clients"): left.crashes,
    }
    faults = [f"{number} {one if number == 1 else more}" for (one, more), number in counts.items() if number]
    yield f"at most {', '.join(faults)}" if faults else "no faults"
    yield f"{setup.servers} servers, " + ("each behind the leader by any time" if setup.lag else "none of which lags")
    if left.expiries:
        told = {
            Clocks.TRUSTED: "a session expires only while its client knows that it is disconnected",
            Clocks.PAUSED: "a session expires at any time, and its client is told late",
        }
        yield told[setup.clocks]
    yield "one order of all updates, as Zab gives it; servers neither crash nor lose their leader"
    yield (
        "a client reconnects in one step, its watches with it" if setup.keeps_watches else "watches go with connections"
    )
    if setup.variants:
        yield f"wrong on purpose: {', '.join(sorted(str(variant.value) for variant in setup.variants))}"


def why_idle(variant: Variant, setup: ServiceSetup, scripts: Sequence[Script]) -> NoEffect | None:
    """The reason why a variant changes nothing in a run, and the correction; None if it may change something."""
    asked = ScriptSummary.of(scripts)
    unless = {
        Variant.STALE_AFTER_MOVING: _unless_lag(setup) or _unless_lost(setup),
        Variant.WATCH_AFTER_DATA: _unless_watched(asked),
        Variant.LOST_WATCH: _unless_watched(asked) or _unless_lost(setup) or _unless_kept(setup),
        Variant.WATCH_FIRES_TWICE: _unless_watched(asked),
        Variant.EVENTS_OUT_OF_ORDER: _unless_watched(asked),
        Variant.REUSED_SEQUENCE_NUMBER: _unless(asked.sequential, "nothing sequential is created", "create -s /q/n_"),
        Variant.HALF_A_MULTI: _unless(asked.multi, "there is no multi", "a list of requests as a step"),
        Variant.EPHEMERAL_OUTLIVES_SESSION: _unless_ephemeral(asked)
        or _unless(_may_end(setup, asked), "no session ends", "faults: {expiries: 1}"),
        Variant.EPHEMERAL_DIES_WITH_CONNECTION: _unless_ephemeral(asked) or _unless_lost(setup),
        Variant.TWO_CREATORS: _unless_lag(setup)
        or _unless(asked.creates or asked.sequential, "nothing is created", "create /a"),
        Variant.ANSWERED_BEFORE_COMMIT: _unless_lag(setup) or _unless(asked.writes, "nobody writes", "set /a"),
        Variant.REORDERED_REQUESTS: _unless(setup.pipelined, "clients wait for each answer", "pipeline: 2"),
        Variant.SYNC_WITHOUT_WAITING: _unless_lag(setup) or _unless(asked.sync, "nobody syncs", "sync /a"),
    }
    if variant not in unless:
        return NoEffect("it is none of the service's", "write it in a scenario of an ensemble, or of a recipe")
    return unless[variant]


def _unless(there: bool, why: str, right: str) -> NoEffect | None:
    return None if there else NoEffect(f"it changes nothing where {why}", f"write {right}")


def _unless_lag(setup: ServiceSetup) -> NoEffect | None:
    return _unless(setup.lag, "no server lags", "lag: true, and servers: 2")


def _unless_lost(setup: ServiceSetup) -> NoEffect | None:
    return _unless(setup.budgets.disconnects > 0, "no connection is lost", "faults: {disconnects: 1}")


def _unless_kept(setup: ServiceSetup) -> NoEffect | None:
    return _unless(setup.keeps_watches, "watches go with connections", "keeps_watches: true")


def _unless_watched(asked: ScriptSummary) -> NoEffect | None:
    return _unless(asked.watches > 0, "nobody watches", "get -w /a")


def _unless_ephemeral(asked: ScriptSummary) -> NoEffect | None:
    return _unless(asked.ephemeral, "nothing ephemeral is created", "create -e /a")


def _may_end(setup: ServiceSetup, asked: ScriptSummary) -> bool:
    return bool(setup.budgets.expiries or setup.budgets.crashes or asked.closes)
