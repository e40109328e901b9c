"""A report as SARIF 2.1.0, which code scanning reads: rules are properties, results are defects.

- A result is an unexpected finding. A run with the expected outcome has no results, even if it found the violation that
  its scenario demonstrates. A vacuous run, a scenario that cannot be read, and an unexpected pass are results too, of
  rules with these names.
- An undecided run is not a result. A limit or budget that ended a search is a notification of the invocation, and the
  invocation is a success only if every run reached a verdict.
- The steps of a trace are a code flow: the event, the changed fields, and the place of the property.
- A message is plain text: it has no link, and no character that nobody sees.
- The fingerprint of a result depends only on the scenario's name, the property and its clause. Another line number or a
  longer trace does not change it.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from checker.job import Verdict
from checker.report.junit import sentence
from checker.report.outcome import RunOutcome, SourceLocation, gravest, location_of
from checker.traces.trace import Trace, TraceStep
from checker.traces.values import show
from spec.text import on_a_line, on_lines

Object = dict[str, Any]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "quorateFinding/v1"
LONGEST = 1000  # characters of a value in a step
UNDECIDED = (Verdict.ERROR, Verdict.INCOMPLETE)
VERDICTS = {
    Verdict.ERROR: ("bad-scenario", "The scenario, or a configuration file that it names, cannot be used."),
    Verdict.VACUOUS: ("vacuous", "What passed says less than it seems to: something never happened."),
    Verdict.PASSED: ("unexpected-pass", "The run passed, where the scenario expects another verdict."),
}


def sarif_log(outcomes: Sequence[RunOutcome], version: str) -> Object:
    """The report as an object; `version` is that of this program."""
    code = gravest(outcomes)
    results = [result for outcome in outcomes for result in _results(outcome)]
    rules = _rules(outcomes, {result["ruleId"] for result in results})
    places = {rule["id"]: place for place, rule in enumerate(rules)}
    invocation: Object = {
        "executionSuccessful": not any(each.judgement.verdict in UNDECIDED for each in outcomes),
        "exitCode": code,
        "toolExecutionNotifications": [note for outcome in outcomes for note in _notes(outcome)],
    }
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "Quorate", "version": version, "rules": rules}},
                "invocations": [invocation],
                "results": [{**result, "ruleIndex": places[result["ruleId"]]} for result in results],
            }
        ],
    }
    plain: Object = _plain(log)
    return plain


LINK = re.compile(r"\[(?=[^\]]*\]\()")
"""The beginning of a link in a message ("Messages with embedded links")."""


def _plain(part: Any, key: str = "") -> Any:
    """A part of the log with texts that every reader shows unchanged; `key` is its name in its parent."""
    if isinstance(part, dict):
        return {on_a_line(name): _plain(value, name) for name, value in part.items()}
    if isinstance(part, list):
        return [_plain(item) for item in part]
    if not isinstance(part, str):
        return part
    return LINK.sub(r"\\[", on_lines(part)) if key == "text" else on_a_line(part)


def _rules(outcomes: Sequence[RunOutcome], verdicts: set[str]) -> list[Object]:
    """All properties that the runs checked, each once; and those verdicts that have a result."""
    rules = {}
    for outcome in outcomes:
        for prop in outcome.job.model.properties if outcome.job else ():
            meaning = prop.meaning or prop.name
            rules[prop.name] = {
                "id": prop.name,
                "shortDescription": {"text": f"{prop.name}: {meaning}"},
                "help": {"text": f"{meaning}. Kind: {prop.kind.value}. Code flows are the runs that were found."},
                "properties": {"kind": prop.kind.value},
            }
    for name, meaning in VERDICTS.values():
        if name in verdicts:
            rules[name] = {"id": name, "shortDescription": {"text": meaning}, "help": {"text": meaning}}
    return list(rules.values())


def _results(outcome: RunOutcome) -> list[Object]:
    if outcome.is_good or outcome.judgement.verdict is Verdict.INCOMPLETE:
        return []
    if outcome.judgement.verdict in VERDICTS:
        name, _ = VERDICTS[outcome.judgement.verdict]
        reasons = "; ".join(outcome.judgement.reasons)
        return [_result(outcome, name, sentence(outcome), location_of(outcome), reasons)]
    return [_finding(outcome, trace) for trace in outcome.findings]


def _finding(outcome: RunOutcome, trace: Trace) -> Object:
    place = location_of(outcome, trace.prop)
    values = ", ".join(f"{name} = {show(value)}" for name, value in trace.values)
    text = f"{trace.headline}: {trace.clause}{f' ({values})' if values else ''}. {outcome.name}, grain {trace.grain}."
    flow = {"threadFlows": [{"locations": [_step(step, place) for step in trace.steps]}]}
    return {**_result(outcome, trace.prop, text, place, trace.clause), "codeFlows": [flow]}


def _result(outcome: RunOutcome, rule: str, text: str, place: SourceLocation | None, clause: str) -> Object:
    stable = "\n".join((outcome.name, rule, clause))
    return {
        "ruleId": rule,
        "level": "warning" if outcome.judgement.verdict is Verdict.VACUOUS else "error",
        "message": {"text": text},
        "locations": [_location(outcome.name, place)],
        "partialFingerprints": {FINGERPRINT: hashlib.sha256(stable.encode("utf-8", "backslashreplace")).hexdigest()},
    }


def _step(step: TraceStep, place: SourceLocation | None) -> Object:
    location = {**_location(step.caption, place), "message": {"text": f"{step.number}. {step.caption}"}}
    state = {
        f"{lane}.{name}": {"text": show(step.lanes[lane][name])[:LONGEST] or "(empty)"}
        for lane, names in step.changed.items()
        for name in names
        if name in step.lanes.get(lane, {})
    }
    return {"location": location, "executionOrder": step.number + 1, **({"state": state} if state else {})}


def _location(name: str, place: SourceLocation | None) -> Object:
    if place is None:
        return {"logicalLocations": [{"name": name}]}
    path = quote(os.fsencode(place.file))  # a file name is bytes in an unknown encoding
    uri = f"file://{path}" if place.file.startswith("/") else path
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": place.line}}}


def _notes(outcome: RunOutcome) -> Iterable[Object]:
    if outcome.judgement.verdict is Verdict.INCOMPLETE:
        expected = "note" if outcome.is_good else "error"
        level = "warning" if outcome.judgement.undecided else expected
        text = f"{outcome.name}: {sentence(outcome)}"
        yield {"level": level, "message": {"text": text}, "locations": [_location(outcome.name, location_of(outcome))]}
