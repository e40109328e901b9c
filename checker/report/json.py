"""The final report of a run as a JSON object, for other programs.

Fields of schema 1; a new field does not change the number, but a new meaning of a field does:

    schema        1
    job           name, grain, bounds (list of texts), expected (a verdict or null), violations (the depth of each
                  property that is expected to be violated, or null); null if the scenario cannot be read, so that
                  there is no job
    verdict       violated | deadlock | error | incomplete | vacuous | passed
    as_expected   true | false | null (nothing was expected, or it is undecided)
    exit_code     the exit code of the process
    sentence      the first line of the text report
    reasons       list of texts, every reason for the verdict
    limits        depth, states, memory (bytes), seconds, work; null for a missing limit
    properties    list of: name, kind (always | sometimes | final | recoverable | eventually), meaning, outcome (text),
                  examined, premise (numbers of states), allowed_silent, found (null, or depth, clause, values as a
                  list of [name, value], since and loop: steps of a run that never reaches a goal, else null), liveness
                  (null, or goals, open, states, edges, components, traps, seconds, size (bytes): the examined graph)
    actions       list of: name, fired, new_states, allowed_silent
    search        engine, stop, exhausted, states, transitions, depth, levels (states at each depth), ends
                  (states without a successor), seconds, states_per_second, python_steps, python_calls, python_seconds,
                  peak_bytes (null if not measured), bytes_per_state, collision_probability, notes (on its checkpoint)

A run that could not begin has null for limits and search and no properties or actions.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from checker.engine.model import Property
from checker.engine.result import Coverage, Exploration
from checker.job import Job
from checker.report.text import outcome
from checker.report.verdict import Judgement, may_be_idle
from checker.traces.trace import values_of

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
    found = exploration.found.get(prop.name)
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
        if found is None
        else {
            "depth": found.depth,
            "clause": found.finding.clause,
            "values": [list(pair) for pair in values_of(found.finding)],
            "since": found.since,
            "loop": found.loop,
        },
        "liveness": None if examined is None else asdict(examined),
    }


def _actions(job: Job, exploration: Exploration, judgement: Judgement) -> list[dict[str, Any]]:
    known = {name: Coverage() for name in judgement.silent} | exploration.coverage
    return [
        {
            "name": name,
            "fired": coverage.fired,
            "new_states": coverage.new,
            "allowed_silent": name in job.allowed_silent,
        }
        for name, coverage in sorted(known.items())
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
        "collision_probability": e.collision_probability,
        "notes": list(e.notes),
    }
