"""A report as JUnit XML, which build servers read: a test suite for each run, with one test case.

The result of a case follows the judgement, and only a case with the expected result passes:

    passes      the verdict is the expected one, or none was expected and the run passed
    failure     another verdict: violated, deadlock, vacuous, or passed where that was not expected
    error       no statement is possible: the scenario cannot be read, or a limit ended the search
    skipped     undecided: the budget of the command ended the search, and nothing had been found

The properties of a suite are the figures of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as Tree

from checker.job import Verdict
from checker.report.outcome import RunOutcome, location_of
from spec.text import on_lines

NO_FILE = "python -m checker"  # the class of a run without a scenario
COUNTED = ("failure", "error", "skipped")


def junit_xml(outcomes: Sequence[RunOutcome], view: Callable[[RunOutcome], str]) -> str:
    """The report; `view` gives the full text of a run that did not have the expected result."""
    suites = [_suite(outcome, view) for outcome in outcomes]
    top = Tree.Element("testsuites", name="quorate", tests=str(len(suites)))
    for name, kind in (("failures", "failure"), ("errors", "error")):
        top.set(name, str(sum(_kind(each) == kind for each in outcomes)))
    top.set("time", f"{sum(_seconds(each) for each in outcomes):.3f}")
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
    judgement, found = outcome.judgement, outcome.exploration
    place = location_of(outcome)
    rows = [("verdict", judgement.verdict.value), ("exit_code", str(judgement.exit_code))]
    rows += [("expected", judgement.expected.value)] if judgement.expected else []
    rows += [("file", place.file), ("line", str(place.line))] if place else []
    rows += [("grain", outcome.job.grain)] if outcome.job else []
    if found is not None:
        rows += [
            ("states", str(found.states)),
            ("transitions", str(found.transitions)),
            ("depth", str(found.depth)),
            ("stop", found.stop.value),
            ("seconds", f"{found.seconds:.3f}"),
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
