"""The report of a command as one JSON object: `--report FILE` writes the whole object, `--json` prints its verdicts.

`report.schema.json` beside this module is its JSON Schema, docs/reference-report.md explains it. Fields of schema 1; a
new field does not change the number. Fields with a star are in both outputs, the others only in the file:

    schema    * 1
    tool        name, version
    platform    python, numba, numpy, system, machine
    command     list of words, as they were given
    parameters  the command-line options that all runs share: variants, engine, workers, refine, verdict (whether codes
                are the verdicts' own), depth, states, memory (bytes), time and budget (seconds); null where not given
    began       the time at which the command began, ISO 8601 in UTC
    seconds     its duration
    runs      * list of: the fields of `checker.report.json`*, traces* of the findings, witnesses (traces that show that
                a `sometimes` is possible; traces and witnesses are objects of the ITF with the property in `#meta`),
                and name, file, line (of the verdict; null without a file), undecided
    exit_code * the gravest exit code of the runs
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from checker.report.json import SCHEMA, report_json
from checker.report.outcome import RunOutcome, gravest
from checker.report.source_location import location_of
from checker.traces.itf import to_itf

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
    return {"schema": SCHEMA, "runs": [_verdict(each) for each in outcomes], "exit_code": gravest(outcomes)}


def parameters(options: argparse.Namespace) -> Object:
    """The command-line options that all runs share."""
    return {
        "variants": [each.value for each in options.variants],
        "engine": options.engine,
        "workers": options.workers,
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
    return _version("quorate") or "source"


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
