"""Conversion of a scenario with the key `service` to a job: clients that run scripts, their service, faults.

Rules of this module: every bound of the model is described in words; a value that would change nothing is an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from checker.job import Job, Json
from checker.models.service import ServiceSetup
from checker.models.service.scripts import Script
from checker.properties.service import SERVICE_PROPERTIES
from checker.properties.service.projections import Run
from checker.scenario import common_keys
from checker.scenario.clients import budgets_of, check_counts, clocks_of
from checker.scenario.ensemble_setup import limits_of
from checker.scenario.errors import one_of
from checker.scenario.protocol import variants_of
from checker.scenario.request_parser import RequestError, script_of
from checker.scenario.schema import SERVICE, ServiceScenario, decode
from checker.scenario.service_setup import service_job_parts, service_setup, why_idle
from checker.scenario.yaml_lines import Path, YamlDocument, position
from spec.tree.paths import fault_of
from spec.variants import Variant

MOST = {"servers": (1, 9), "pipeline": (1, 9)}
"""The least and the greatest value of each count."""


def service_job(located: YamlDocument, source: Mapping[str, Json], added: frozenset[Variant]) -> Job:
    """The job of a scenario of the service. Raises ScenarioError and VariantError."""
    scenario = decode(ServiceScenario, located, located.value, ())
    check_counts(scenario, located, MOST)
    scripts = _scripts(scenario, located)
    name = common_keys.name_of(scenario, located, added)
    setup = _setup(scenario, located, scripts, frozenset(variants_of(scenario, located) | added))
    common_keys.refuse_without_effect(scenario, added, located, lambda variant: why_idle(variant, setup, scripts))
    chosen = common_keys.properties(scenario, located, SERVICE_PROPERTIES, Run(setup, scripts))
    parts = service_job_parts(name, setup, scripts, tuple(prop.name for prop in chosen))
    return Job(
        name=name,
        model=parts.model,
        presenter=parts.presenter,
        source=source,
        grain="each request",
        limits=limits_of(scenario, located),
        expected=None if added else common_keys.expected(scenario, located),
        violations=None if added else common_keys.violations(scenario, located, parts.model.properties),
        until_witnessed=scenario.until_witnessed,
        bounds=parts.bounds,
        actions=parts.actions,
        allowed_silent=common_keys.may_not_fire(scenario, parts.actions, located),
    )


def _scripts(scenario: ServiceScenario, located: YamlDocument) -> tuple[Script, ...]:
    if not isinstance(scenario.service, list) or not scenario.service:
        raise located.error((SERVICE,), "there are no clients", "write a list of requests for each, like [get -w /a]")
    scripts = []
    for number, steps in enumerate(scenario.service):
        path: Path = (SERVICE, position(number))
        if not isinstance(steps, list) or not steps:
            raise located.error(path, "a client asks nothing", "write its requests as a list, like [get -w /a]")
        for at, step in enumerate(steps):
            try:
                script_of([step])
            except RequestError as error:
                raise located.error((*path, position(at)), error.wrong, error.right) from None
        scripts.append(script_of(steps, scenario.pipeline))
    return tuple(scripts)


def _setup(
    scenario: ServiceScenario, located: YamlDocument, scripts: tuple[Script, ...], variants: frozenset[Variant]
) -> ServiceSetup:
    for number, path in enumerate(scenario.paths):
        if fault_of(path) is not None:
            raise located.error(("paths", position(number)), str(fault_of(path)), "write an absolute path, like /a")
    for number, server in enumerate(scenario.at):
        if not 1 <= server <= scenario.servers:
            right = one_of(str(each) for each in range(1, scenario.servers + 1))
            raise located.error(("at", position(number)), f"there is no server {server} here", right)
    if scenario.at and len(scenario.at) != len(scripts):
        what = f"{scenario.at} names the first server of each of {len(scripts)} clients"
        raise located.error(("at",), what, "write as many as there are clients, or leave it out")
    clocks, budgets = clocks_of(scenario.clocks, located), budgets_of(scenario.faults, located)
    return service_setup(
        scripts, servers=scenario.servers, lag=scenario.lag, paths=scenario.paths, at=scenario.at, clocks=clocks,
        keeps_watches=scenario.keeps_watches, budgets=budgets, variants=variants,
    )  # fmt: skip
