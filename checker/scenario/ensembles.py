"""Conversion of a scenario of an ensemble to a job: the model with its properties, presenter, limits and expectations.

Rules of this module: `Job.bounds` describes in words every bound of the model, so that the result of the job can be
read without other documents.
"""

from __future__ import annotations

from collections.abc import Mapping

from checker.engine import Model, Property
from checker.job import Job, Json
from checker.models.ensemble import Grain, HistoryError, Setup, ensemble
from checker.models.ensemble.actions import FAULT_ACTIONS
from checker.models.ensemble.rules import may_be_silent
from checker.present.ensemble import EnsemblePresenter
from checker.properties import ENSEMBLE_PROPERTIES
from checker.scenario import common_keys
from checker.scenario.bounds import bounds_of
from checker.scenario.ensemble_setup import limits_of, setup_of
from checker.scenario.errors import nearest
from checker.scenario.files import Files
from checker.scenario.network import fast
from checker.scenario.opening import opened
from checker.scenario.refined import with_refinement
from checker.scenario.schema import Scenario, decode
from checker.scenario.variants import with_variants
from checker.scenario.yaml_lines import YamlDocument
from spec.variants import Variant

FAST = "fast"
NETWORKS = ("any", FAST)


def ensemble_job(located: YamlDocument, files: Files, source: Mapping[str, Json], added: frozenset[Variant]) -> Job:
    """The job of a scenario of an ensemble.

    Raises ScenarioError, spec.config.ConfigError and VariantError.
    """
    scenario = decode(Scenario, located, located.value, ())
    setup = with_variants(setup_of(scenario, located, files), added)
    name = common_keys.name_of(scenario, located, added)
    chosen = common_keys.properties(scenario, located, ENSEMBLE_PROPERTIES, setup)
    model = _model(name, setup, tuple(chosen), located)
    if _is_fast(scenario, setup, located):
        model = fast(model, setup)
    model, steps = opened(model, scenario.opening, setup, located)
    job = Job(
        name=name,
        model=model,
        presenter=EnsemblePresenter(model, setup),
        source=source,
        grain=setup.grain.value,
        limits=limits_of(scenario, located),
        expected=None if added else common_keys.expected(scenario, located),
        violations=None if added else common_keys.violations(scenario, located, model.properties),
        until_witnessed=scenario.until_witnessed,
        bounds=bounds_of(setup, steps, fast=scenario.network == FAST),
        actions=model.actions,
        faults=FAULT_ACTIONS,
        allowed_silent=may_be_silent(setup) | common_keys.may_not_fire(scenario, model.actions, located),
    )
    return with_refinement(job, setup)


def _model(name: str, setup: Setup, properties: tuple[Property, ...], located: YamlDocument) -> Model:
    try:
        return ensemble(name, setup, properties)
    except HistoryError as error:
        raise located.error(("history",), str(error), error.right) from None


def _is_fast(scenario: Scenario, setup: Setup, located: YamlDocument) -> bool:
    if scenario.network not in NETWORKS:
        what = f"{scenario.network[:60]!r} is no kind of network"
        raise located.error(("network",), what, nearest(scenario.network, NETWORKS))
    if scenario.network == FAST and setup.grain is Grain.ORACLE:
        raise located.error(("network",), "with the oracle there are no messages", "write grain: fine")
    return scenario.network == FAST
