"""The reports for other programs as JSON: of one run, and of a command.

`--report FILE` writes the whole object of a command, `--json` prints its verdicts. docs/reference-report.md describes
every field, and `report.schema.json` beside this module is the JSON Schema. A new field does not change the number of
the schema, but a new meaning of a field does. A run that could not begin has null for limits and search and no
properties or actions.
"""

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from checker.engine.model import Kind, Property
from checker.engine.result import Coverage, Exploration
from checker.job import Job
from checker.report.verdict import Judgement, RunOutcome, fairness, gravest, location_of, may_be_idle
from checker.traces.itf import to_itf
from checker.traces.trace import values_of
from spec.packages import DISTRIBUTION

SCHEMA = 1


def report_json(job: Job | None, exploration: Exploration | None, judgement: Judgement) -> dict[str, Any]:
    """The report as an object; it contains only types that `json.dumps` accepts."""
    return {
        "schema": SCHEMA,
        "job": None
        if job is None
        else {
            "name": job.name,
            "grain": job.grain,
            "bounds": list(job.bounds),
            "expected": None if judgement.expected is None else judgement.expected.value,
            "violations": None if job.violations is None else dict(job.violations),
            "like": None
            if job.like is None
            else {
                "release": job.like.release,
                "variants": list(job.like.variants),
                "without_effect": dict(job.like.idle),
            },
        },
        "verdict": judgement.verdict.value,
        "as_expected": judgement.as_expected,
        "exit_code": judgement.exit_code,
        "sentence": judgement.sentence,
        "reasons": list(judgement.reasons),
        "limits": None if exploration is None else asdict(exploration.limits),
        "properties": [] if exploration is None else _properties(job, exploration),
        "actions": [] if job is None or exploration is None else _actions(job, exploration, judgement),
        "search": None if exploration is None else _search(exploration),
    }


def _properties(job: Job | None, exploration: Exploration) -> list[dict[str, Any]]:
    return [_property(job, exploration, prop) for prop in exploration.properties]


def _property(job: Job | None, exploration: Exploration, prop: Property) -> dict[str, Any]:
    discovery = exploration.found.get(prop.name)
    count = exploration.evaluations.get(prop.name)
    examined = exploration.liveness.get(prop.name)
    return {
        "name": prop.name,
        "kind": prop.kind.value,
        "meaning": prop.meaning,
        "outcome": exploration.outcome(prop),
        "examined": 0 if count is None else count.states,
        "premise": 0 if count is None else count.premise,
        "allowed_silent": job is not None and may_be_idle(job, prop),
        "found": None
        if discovery is None
        else {
            "depth": discovery.depth,
            "clause": discovery.finding.clause,
            "values": [list(pair) for pair in values_of(discovery.finding)],
            "since": discovery.since,
            "loop": discovery.loop,
        },
        "liveness": None if examined is None else asdict(examined),
        "fairness": dict(zip(("happens", "strong", "need_not_happen"), fairness(exploration, prop), strict=True))
        if prop.kind is Kind.EVENTUALLY
        else None,
    }


def _actions(job: Job, exploration: Exploration, judgement: Judgement) -> list[dict[str, Any]]:
    coverages = {name: Coverage() for name in judgement.silent} | exploration.coverage
    return [
        {
            "name": name,
            "fired": coverage.fired,
            "new_states": coverage.new,
            "allowed_silent": name in job.allowed_silent,
        }
        for name, coverage in sorted(coverages.items())
    ]


def _search(exploration: Exploration) -> dict[str, Any]:
    e = exploration
    return {
        "engine": e.engine,
        "stop": e.stop.value,
        "exhausted": e.exhausted,
        "states": e.states,
        "transitions": e.transitions,
        "depth": e.depth,
        "levels": list(e.levels),
        "ends": e.deadlocks,
        "seconds": e.seconds,
        "states_per_second": e.states / e.seconds if e.seconds > 0 else None,
        "python_steps": e.python_steps,
        "python_calls": e.python_calls,
        "python_seconds": e.python_seconds,
        "values": e.values,
        "peak_bytes": e.peak_bytes or None,
        "bytes_per_state": e.peak_bytes / e.states if e.peak_bytes and e.states else None,
        "spilled_bytes": e.spilled_bytes,
        "collision_probability": e.collision_probability,
        "seed": e.seed,
        "growth": e.growth,
        "reduction": e.reduction,
        "second_engine": e.second,
        "notes": list(e.notes),
        "workers": list(e.workers),
    }


Object = dict[str, Any]


def document(outcomes: Sequence[RunOutcome], options: argparse.Namespace, began: float, seconds: float) -> Object:
    """The whole report; `began` is in seconds since 1970."""
    return {
        "schema": SCHEMA,
        "tool": {"name": "quorate", "version": release()},
        "platform": {
            "python": platform.python_version(),
            "numba": _version("numba"),
            "numpy": _version("numpy"),
            "system": sys.platform,
            "machine": platform.machine(),
        },
        "command": list(options.words),
        "parameters": parameters(options),
        "began": datetime.fromtimestamp(began, UTC).isoformat(timespec="seconds"),
        "seconds": seconds,
        "runs": [_run(outcome) for outcome in outcomes],
        "exit_code": gravest(outcomes),
    }


def verdicts(outcomes: Sequence[RunOutcome]) -> Object:
    """The part of the report with the verdicts of the runs."""
    return {"schema": SCHEMA, "runs": [_verdict(outcome) for outcome in outcomes], "exit_code": gravest(outcomes)}


def parameters(options: argparse.Namespace) -> Object:
    """The command-line options that all runs share."""
    return {
        "variants": [variant.value for variant in options.variants],
        "like": None if options.like is None else str(options.like),
        "engine": options.engine,
        "workers": options.workers if isinstance(options.workers, int) else str(options.workers),
        "seed": options.seed,
        "reduce": options.reduce,
        "refine": options.refine,
        "verdict": options.verdict,
        "depth": options.depth,
        "states": options.states,
        "memory": options.memory,
        "time": options.time,
        "budget": None if options.budget is None else options.budget.seconds,
    }


def release() -> str:
    """The version of this program; `source` if it was not installed."""
    return _version(DISTRIBUTION) or "source"


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _run(outcome: RunOutcome) -> Object:
    place = location_of(outcome)
    return {
        "name": outcome.name,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "undecided": outcome.judgement.undecided,
        **_verdict(outcome),
        "witnesses": [json.loads(to_itf(trace)) for trace in outcome.witnesses],
    }


def _verdict(outcome: RunOutcome) -> Object:
    data = report_json(outcome.job, outcome.exploration, outcome.judgement)
    return {**data, "traces": [json.loads(to_itf(trace)) for trace in outcome.findings]}
