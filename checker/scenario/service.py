"""Scenarios with the key `service`: clients that run scripts, their service, faults.

Rules of this module: every bound and every omission of the model is described in words; a value that would change
nothing is an error, and so is a variant. Scenarios of recipes have the same counts, faults and clocks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from checker.job import Job, Json
from checker.models.service import Clocks, FaultBudgets, ServiceSetup
from checker.models.service.messages import ServiceAction
from checker.models.service.rules import known_actions
from checker.models.service.scripts import Script
from checker.models.service.setup import FAULTS_OF_CLIENTS
from checker.present.service import ServicePresenter
from checker.properties.service import SERVICE_PROPERTIES, ScriptSummary, ServiceRun, applicable, service_model
from checker.scenario.kind import ScenarioKind, word
from checker.scenario.request_parser import RequestError, script_of
from checker.scenario.schema import SERVICE, Common, ServiceScenario, decode
from checker.scenario.yaml_lines import NoEffect, Path, YamlDocument, one_of, position
from spec.tree.paths import fault_of
from spec.variants import Variant

MOST = {"servers": (1, 9), "pipeline": (1, 9)}
"""The least and the greatest value of each count."""
MOST_FAULTS = 9


class ServiceKind(ScenarioKind[ServiceScenario]):
    """A scenario of clients that run scripts."""

    schema = ServiceScenario

    def describe(self) -> Job:
        """The job of the clients and their service."""
        check_counts(self.keys, self.document, MOST)
        scripts = self._scripts()
        setup = self._setup(scripts)
        self.refuse_without_effect(lambda variant: why_no_effect(variant, setup, scripts))
        chosen = self.properties(SERVICE_PROPERTIES, ServiceRun(setup, scripts))
        return service_job(self.name, setup, scripts, [prop.name for prop in chosen], self.source)

    def _scripts(self) -> tuple[Script, ...]:
        clients = self.keys.service
        if not isinstance(clients, list) or not clients:
            right = "write a list of requests for each, like [get -w /a]"
            raise self.document.error((SERVICE,), "there are no clients", right)
        scripts = []
        for number, steps in enumerate(clients):
            path: Path = (SERVICE, position(number))
            if not isinstance(steps, list) or not steps:
                right = "write its requests as a list, like [get -w /a]"
                raise self.document.error(path, "a client asks nothing", right)
            for place, step in enumerate(steps):
                try:
                    script_of([step])
                except RequestError as error:
                    raise self.document.error((*path, position(place)), error.wrong, error.right) from None
            scripts.append(script_of(steps, self.keys.pipeline))
        return tuple(scripts)

    def _setup(self, scripts: tuple[Script, ...]) -> ServiceSetup:
        keys, document = self.keys, self.document
        variants = self.variants() | self.added
        for number, path in enumerate(keys.paths):
            if fault_of(path) is not None:
                raise document.error(
                    ("paths", position(number)), str(fault_of(path)), "write an absolute path, like /a"
                )
        for number, server in enumerate(keys.at):
            if not 1 <= server <= keys.servers:
                right = one_of(str(sid) for sid in range(1, keys.servers + 1))
                raise document.error(("at", position(number)), f"unknown server {server}", right)
        if keys.at and len(keys.at) != len(scripts):
            problem = f"{keys.at} names the first server of each of {len(scripts)} clients"
            raise document.error(("at",), problem, "write as many as there are clients, or leave it out")
        return ServiceSetup(
            clients=len(scripts),
            servers=keys.servers,
            lag=keys.lag,
            paths=tuple(keys.paths),
            at=tuple(keys.at),
            clocks=clocks_of(keys.clocks, document),
            keeps_watches=keys.keeps_watches,
            budgets=budgets_of(keys.faults, document),
            pipelined=any(script.pipeline > 1 for script in scripts),
            variants=variants,
        )


def service_job(
    name: str,
    setup: ServiceSetup,
    scripts: Sequence[Script],
    properties: Iterable[str] | None = None,
    source: Mapping[str, Json] = MappingProxyType({}),
) -> Job:
    """A service whose clients run scripts. Raises UnknownPropertyError.

    `scripts` come from `checker.scenario.request_parser.script_of`. The default for `properties` is every invariant
    that is not vacuous for these scripts.
    """
    model = service_model(name, setup, scripts, applicable(scripts) if properties is None else properties)
    actions: set[str] = {"ask", *known_actions(setup)}
    if not ScriptSummary.of(scripts).changes:
        actions.discard(ServiceAction.ARRIVE_LATE)
    return Job(
        name=name,
        model=model,
        presenter=ServicePresenter(model, setup),
        source=source,
        grain="each request",
        bounds=tuple(bounds_of(setup, scripts)),
        actions=frozenset(actions),
    )


def bounds_of(setup: ServiceSetup, scripts: Sequence[Script]) -> Iterator[str]:
    """The bounds and omissions of a run, in words."""
    steps = ", ".join(f"{len(script.steps)} of client {n}" for n, script in enumerate(scripts, 1))
    yield f"requests, each asked once: {steps}"
    for n, script in enumerate(scripts, 1):
        if script.pipeline > 1:
            yield f"client {n} leaves up to {script.pipeline} requests unanswered"
    yield faults_of(setup.budgets) or "no faults"
    yield f"{setup.servers} servers, " + ("each behind the leader by any time" if setup.lag else "none of which lags")
    if setup.budgets.expiries:
        texts = {
            Clocks.TRUSTED: "a session expires only while its client knows that it is disconnected",
            Clocks.PAUSED: "a session expires at any time, and its client is told late",
        }
        yield texts[setup.clocks]
    yield "one order of all updates, as Zab gives it; servers neither crash nor lose their leader"
    yield (
        "a client reconnects in one step, its watches with it" if setup.keeps_watches else "watches go with connections"
    )
    if setup.variants:
        yield f"wrong on purpose: {', '.join(sorted(str(variant.value) for variant in setup.variants))}"


def why_no_effect(variant: Variant, setup: ServiceSetup, scripts: Sequence[Script]) -> NoEffect | None:
    """The reason why a variant changes nothing in a run, and the correction; None if it may change something."""
    summary = ScriptSummary.of(scripts)
    lag = _unless(setup.lag, "no server lags", "lag: true, and servers: 2")
    lost = _unless(setup.budgets.disconnects, "no connection is lost", "faults: {disconnects: 1}")
    watched = _unless(summary.watches, "no client watches", "get -w /a")
    reason = _unless(setup.keeps_watches, "watches go with connections", "keeps_watches: true")
    ephemeral = _unless(summary.ephemeral, "nothing ephemeral is created", "create -e /a")
    ends = setup.budgets.expiries or setup.budgets.crashes or summary.closes
    reasons = {
        Variant.STALE_AFTER_MOVING: lag or lost,
        Variant.WATCH_AFTER_DATA: watched,
        Variant.LOST_WATCH: watched or lost or reason,
        Variant.WATCH_FIRES_TWICE: watched,
        Variant.EVENTS_OUT_OF_ORDER: watched,
        Variant.REUSED_SEQUENCE_NUMBER: _unless(summary.sequential, "nothing sequential is created", "create -s /q/n_"),
        Variant.HALF_A_MULTI: _unless(summary.multi, "there is no multi", "a list of requests as a step"),
        Variant.EPHEMERAL_OUTLIVES_SESSION: ephemeral or _unless(ends, "no session ends", "faults: {expiries: 1}"),
        Variant.EPHEMERAL_DIES_WITH_CONNECTION: ephemeral or lost,
        Variant.TWO_CREATORS: lag or _unless(summary.creates or summary.sequential, "nothing is created", "create /a"),
        Variant.ANSWERED_BEFORE_COMMIT: lag or _unless(summary.writes, "no client writes", "set /a"),
        Variant.REORDERED_REQUESTS: _unless(setup.pipelined, "clients wait for each answer", "pipeline: 2"),
        Variant.SYNC_WITHOUT_WAITING: lag or _unless(summary.sync, "no client syncs", "sync /a"),
    }
    if variant not in reasons:
        return NoEffect("it is not a variant of the service", "write it in a scenario of an ensemble, or of a recipe")
    return reasons[variant]


def _unless(there: object, why: str, right: str) -> NoEffect | None:
    return None if there else NoEffect(f"it changes nothing where {why}", f"write {right}")


# The keys that scenarios of recipes have, too.


def check_counts(scenario: Common, document: YamlDocument, most: Mapping[str, tuple[int, int]]) -> None:
    """Check that each count of a scenario is within its bounds. Raises ScenarioError."""
    for key, (least, greatest) in most.items():
        count = getattr(scenario, key)
        if not least <= count <= greatest:
            raise document.error((key,), f"{count} is not from {least} to {greatest}", "write a number in between")


def budgets_of(faults: Any, document: YamlDocument) -> FaultBudgets:
    """The budget of each fault."""
    if faults is msgspec.UNSET:
        return FaultBudgets()
    path: Path = ("faults",)
    budgets = decode(FaultBudgets, document, faults, path)
    for name, count in budgets.by_name.items():
        if not 0 <= count <= MOST_FAULTS:
            right = "write a number in between"
            raise document.error((*path, name), f"{count} is not from 0 to {MOST_FAULTS}", right)
    return budgets


def faults_of(budgets: FaultBudgets) -> str:
    """The faults that the budgets allow, in words; empty if they allow none."""
    return f"at most {counts}" if (counts := budgets.in_words(FAULTS_OF_CLIENTS)) else ""


def clocks_of(clocks: str, document: YamlDocument) -> Clocks:
    """The `Clocks` of a scenario: whether a client learns from its clock in time that its session has ended."""
    return Clocks(word(document, clocks, [Clock.value for Clock in Clocks], ("clocks",)))
