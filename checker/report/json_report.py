"""The reports for other programs as JSON: of one run, and of a command.

`--report FILE` writes the whole object of a command, `--json` prints its verdicts. `report.schema.json` beside this
module is the JSON Schema, docs/reference-report.md explains it. Fields of schema 1; a new field does not change the
number, but a new meaning of a field does. The object of a run:

    schema        1
    job           name, grain, bounds (list of texts), expected (a verdict or null), violations (the depth of each
                  property that is expected to be violated, or null), like (null, or the release of ZooKeeper, its known
                  defects in the run as variants, and without_effect: the others with the reason); null if the scenario
                  cannot be read, so that there is no job
    verdict       violated | deadlock | error | incomplete | vacuous | passed
    as_expected   true | false | null (nothing was expected, or it is undecided)
    exit_code     the exit code of the process
    sentence      the first line of the text report
    reasons       list of texts, every reason for the verdict
    limits        depth, states, memory (bytes), seconds, work; null for a missing limit
    properties    list of: name, kind (always | sometimes | final | recoverable | eventually), meaning, outcome (text),
                  examined, premise (numbers of states), allowed_silent, found (null, or depth, clause, values as a
                  list of [name, value], since and loop: steps of a run that never reaches a goal, else null), liveness
                  (null, or goals, open, states, edges, components, traps, forced (actions that need never happen, by
                  which alone it would hold), seconds, size (bytes): the examined graph), fairness (null, or for an
                  `eventually` lists of actions: happens, what was assumed to happen if it stays possible, and
                  need_not_happen)
    actions       list of: name, fired, new_states, allowed_silent
    search        engine, stop, exhausted, states, transitions, depth, levels (states at each depth), ends
                  (states without a successor), seconds, states_per_second, python_steps, python_calls, python_seconds,
                  peak_bytes (null if not measured), bytes_per_state, spilled_bytes (of waiting states, written to a
                  temporary file), collision_probability, seed (of the fingerprints), reduction (a sentence),
                  second_engine (with --engine both, a sentence), notes (on its checkpoint), workers (on those of a
                  cluster)

A run that could not begin has null for limits and search and no properties or actions. The object of a command; fields
with a star are in both outputs, the others only in the file:

    schema    * 1
    tool        name, version
    platform    python, numba, numpy, system, machine
    command     list of words, as they were given
    parameters  the command-line options that all runs share: variants, like, engine, workers, seed, reduce, refine,
                verdict (whether codes are the verdicts' own), depth, states, memory (bytes), time and budget (seconds);
                null where not given
    began       the time at which the command began, ISO 8601 in UTC
    seconds     its duration
    runs      * list of: the fields of a run*, traces* of the findings, witnesses (traces that show that a `sometimes`
                is possible; traces and witnesses are objects of the ITF with the property in `#meta`), and name, file,
                line (of the verdict; null without a file), undecided
    exit_code * the gravest exit code of the runs
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
from checker.report.text import outcome
from checker.report.verdict import Judgement, RunOutcome, fairness, gravest, location_of, may_be_idle
from checker.traces.itf import to_itf
from checker.traces.trace import values_of
from spec.packages import DISTRIBUTION

SCHEMA = 1


def report_json(job: Job | None, exploration: Exploration | None, judgement: Judgement) -> dict[str, Any]:
    """The report as an object of the fields above; it contains only types that `json.dumps` accepts."""
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
    return [_property(job, exploration, prop) for prop in exploration.model.properties]


def _property(job: Job | None, exploration: Exploration, prop: Property) -> dict[str, Any]:
    discovery = exploration.found.get(prop.name)
    count = exploration.evaluations.get(prop.name)
    examined = exploration.liveness.get(prop.name)
    return {
        "name": prop.name,
        "kind": prop.kind.value,
        "meaning": prop.meaning,
        "outcome": outcome(exploration, prop),
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
        "fairness": dict(zip(("happens", "need_not_happen"), fairness(exploration, prop), strict=True))
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
        "peak_bytes": e.peak_bytes or None,
        "bytes_per_state": e.peak_bytes / e.states if e.peak_bytes and e.states else None,
        "spilled_bytes": e.spilled_bytes,
        "collision_probability": e.collision_probability,
        "seed": e.seed,
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
