"""The reports that build servers read: JUnit XML, SARIF 2.1.0, and the output of a step of a GitHub workflow.

JUnit XML has a test suite for each run, with one test case. The result of a case follows the judgement, and only a case
with the expected result passes:

    passes      the verdict is the expected one, or none was expected and the run passed
    failure     another verdict: violated, deadlock, vacuous, or passed where that was not expected
    error       no statement is possible: the scenario cannot be read, or a limit ended the search
    skipped     undecided: the budget of the command ended the search, and nothing had been found

The properties of a suite are the figures of the run.

SARIF is for code scanning: rules are properties, results are defects.

- A result is an unexpected finding. A run with the expected outcome has no results, even if it found the violation that
  its scenario demonstrates. A vacuous run, a scenario that cannot be read, and an unexpected pass are results too, of
  rules with these names.
- An undecided run is not a result. A limit or budget that ended a search is a notification of the invocation, and the
  invocation is a success only if every run reached a verdict.
- The steps of a trace are a code flow: the event, the changed fields, and the place of the property.
- A message is plain text: it has no link, and no character that nobody sees.
- The fingerprint of a result depends only on the scenario's name, the property and its clause. Another line number or a
  longer trace does not change it.

A GitHub workflow shows annotations at the lines of scenarios, and the summary of the step.

- An annotation is a line that the runner reads from the output of the step, `::error file=...,line=...,title=...::...`.
  Characters with a meaning there are escaped: line ends and per cent signs, in properties also colons and commas.
- Errors are the results that make the command fail, warnings those that the budget left undecided. Expected results are
  silent.
- Names in a scenario are arbitrary text, which the runner might read as a command. Commands are therefore stopped, with
  a random word, while any other text than annotations is printed.
- The summary is Markdown: a table of all runs, then the findings. Text from a scenario is escaped or fenced, and never
  becomes markup. GitHub accepts one megabyte, so long traces are cut, with a note at the cut.

Sources: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; GitHub's "Workflow commands for
GitHub Actions".
"""

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as Tree

from checker.engine.model import Property
from checker.engine.values import show
from checker.job import Verdict
from checker.printable import escaped, fenced
from checker.report.verdict import RunOutcome, SourceLocation, gravest, location_of
from checker.traces.trace import Trace, TraceStep
from spec.text import on_a_line, on_lines

NO_FILE = "quorate"  # the class of a run without a scenario
COUNTED = ("failure", "error", "skipped")


def junit_xml(outcomes: Sequence[RunOutcome], view: Callable[[RunOutcome], str]) -> str:
    """The report; `view` gives the full text of a run that did not have the expected result."""
    suites = [_suite(outcome, view) for outcome in outcomes]
    top = Tree.Element("testsuites", name="quorate", tests=str(len(suites)))
    for name, kind in (("failures", "failure"), ("errors", "error")):
        top.set(name, str(sum(_kind(ran) == kind for ran in outcomes)))
    top.set("time", f"{sum(_seconds(ran) for ran in outcomes):.3f}")
    top.extend(suites)
    return xml_text(top)


def xml_text(top: Tree.Element) -> str:
    """A tree as the text of a file; a character that nobody sees appears as its code."""
    for element in top.iter():
        element.text = element.text and on_lines(element.text)
        element.attrib.update({name: on_lines(value) for name, value in element.items()})
    Tree.indent(top)
    return Tree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _suite(outcome: RunOutcome, view: Callable[[RunOutcome], str]) -> Tree.Element:
    name, time, kind = outcome.name, f"{_seconds(outcome):.3f}", _kind(outcome)
    place = location_of(outcome)
    suite = Tree.Element("testsuite", name=name, tests="1", time=time)
    for attribute, each in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(int(kind == each)))
    if outcome.began is not None:
        suite.set("timestamp", datetime.fromtimestamp(outcome.began, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
    properties = Tree.SubElement(suite, "properties")
    for key, value in figures(outcome):
        Tree.SubElement(properties, "property", name=key, value=value)
    case = Tree.SubElement(suite, "testcase", name=name, time=time)
    case.set("classname", place.file if place else NO_FILE)
    case.set("status", outcome.judgement.verdict.value)
    if kind == "skipped":  # its element has no attributes
        Tree.SubElement(case, kind).text = f"undecided: {outcome.judgement.reasons[0]}"
    elif kind is not None:
        element = Tree.SubElement(case, kind, type=outcome.judgement.verdict.value)
        element.set("message", sentence(outcome))
        element.text = view(outcome)
    return suite


def sentence(outcome: RunOutcome) -> str:
    """The verdict, and the expected result if it was a different one."""
    remark = outcome.judgement.remark
    return outcome.judgement.sentence + (f" ({remark})" if remark else "")


def figures(outcome: RunOutcome) -> list[tuple[str, str]]:
    """The available figures of a run, by name."""
    judgement, exploration = outcome.judgement, outcome.exploration
    place = location_of(outcome)
    rows = [("verdict", judgement.verdict.value), ("exit_code", str(judgement.exit_code))]
    rows += [("expected", judgement.expected.value)] if judgement.expected else []
    rows += [("file", place.file), ("line", str(place.line))] if place else []
    rows += [("grain", outcome.job.grain)] if outcome.job else []
    if exploration is not None:
        rows += [
            ("states", str(exploration.states)),
            ("transitions", str(exploration.transitions)),
            ("depth", str(exploration.depth)),
            ("stop", exploration.stop.value),
            ("seconds", f"{exploration.seconds:.3f}"),
        ]
    return rows


def _kind(outcome: RunOutcome) -> str | None:
    """The element with the reason why a case does not pass."""
    if outcome.is_good:
        return None
    if outcome.judgement.exit_code == 0:
        return "skipped"
    return "error" if outcome.judgement.verdict in (Verdict.ERROR, Verdict.INCOMPLETE) else "failure"


def _seconds(outcome: RunOutcome) -> float:
    return 0.0 if outcome.exploration is None else outcome.exploration.seconds


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
        "executionSuccessful": not any(ran.judgement.verdict in UNDECIDED for ran in outcomes),
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
        for prop in _properties(outcome):
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


def _properties(outcome: RunOutcome) -> Sequence[Property]:
    if outcome.exploration is not None:
        return outcome.exploration.properties
    return outcome.job.model.properties if outcome.job else ()


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


def annotation_lines(outcomes: Sequence[RunOutcome]) -> list[str]:
    """A line for each result that a reader of the change should see. Errors come first, since GitHub shows few."""
    first = sorted(outcomes, key=lambda outcome: outcome.judgement.exit_code == 0)
    return [line for outcome in first for line in _lines(outcome)]


def _lines(outcome: RunOutcome) -> Iterator[str]:
    if outcome.is_good:
        return
    level = "warning" if outcome.judgement.exit_code == 0 else "error"
    if outcome.findings:
        for trace in outcome.findings:
            message = f"{outcome.name}: {trace.headline}: {trace.clause}"
            yield _command(level, location_of(outcome, trace.prop), trace.headline, message)
        return
    word = "undecided" if outcome.judgement.undecided else outcome.judgement.verdict.value
    if outcome.judgement.verdict is Verdict.PASSED:
        word = "passed unexpectedly"
    yield _command(level, location_of(outcome), f"{word}: {outcome.name}", sentence(outcome))


def _command(level: str, place: SourceLocation | None, title: str, message: str) -> str:
    properties = {"file": place.file, "line": str(place.line)} if place else {}
    fields = ",".join(f"{name}={_escaped_property(value)}" for name, value in {**properties, "title": title}.items())
    return f"::{level} {fields}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return on_lines(text).replace("%", "%25").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


@contextmanager
def commands_stopped(say: Callable[[str], None]) -> Iterator[None]:
    """A context in which the runner does not interpret printed text as commands. `say` prints a line and flushes it."""
    word = secrets.token_hex(16)
    say(f"::stop-commands::{word}")
    try:
        yield
    finally:
        say(f"\n::{word}::")


LONGEST_VIEW = 30_000  # characters of the view of one run
MOST = 20  # runs that are shown in full
TABLE = ("| scenario | verdict | states | depth | time |", "| --- | --- | --: | --: | --: |")


def summary(outcomes: Sequence[RunOutcome], view: Callable[[RunOutcome], str]) -> str:
    """The whole summary, with an empty line at its end; `view` gives the full text of a run."""
    bad = [outcome for outcome in outcomes if outcome.judgement.exit_code]
    undecided = sum(outcome.judgement.undecided for outcome in outcomes)
    good = len(outcomes) - len(bad) - undecided
    left_open = f", {undecided} undecided within the budget" if undecided else ""
    lines = ["## Quorate", "", f"{good} of {len(outcomes)} as expected{left_open}", "", *TABLE]
    lines += [_row(outcome) for outcome in outcomes]
    for ran in bad[:MOST]:
        lines += ["", f"### {escaped(ran.name)}", "", escaped(sentence(ran)), *_where(ran), *_found(ran, view)]
    if len(bad) > MOST:
        lines += ["", f"{len(bad) - MOST} more are in the reports."]
    return "\n".join(lines) + "\n\n"


def _row(outcome: RunOutcome) -> str:
    search, verdict = outcome.exploration, outcome.judgement.verdict.value
    remark = outcome.judgement.remark
    mark = "✅" if outcome.is_good else "❌" if outcome.judgement.exit_code else "⏳"
    status = f"{mark} {verdict}" + (f" ({escaped(remark)})" if remark else "")
    figures = ("", "", "") if search is None else (f"{search.states:,}", str(search.depth), f"{search.seconds:.1f} s")
    return f"| {' | '.join((escaped(outcome.name), status, *figures))} |"


def _where(outcome: RunOutcome) -> list[str]:
    place = location_of(outcome, outcome.findings[0].prop if outcome.findings else None)
    return ["", f"{escaped(place.file)}, line {place.line}"] if place else []


def _found(outcome: RunOutcome, view: Callable[[RunOutcome], str]) -> list[str]:
    """The view of a run that was explored; nothing for one that was not."""
    if outcome.exploration is None:
        return []
    text = view(outcome)
    if len(text) > LONGEST_VIEW:
        text = f"{text[:LONGEST_VIEW]}\n… cut here; the reports have all of it"
    return ["", *fenced(text)]
