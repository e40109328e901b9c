"""Text of others in every field of every document: it is shown, and nothing of it is markup or a control character.

The fields are derived from the types of the values that the documents are made of, so a new field is covered. A
document with a hostile text in a field must have the structure of the same document with a harmless text there.
"""

import dataclasses
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from markdown_it import MarkdownIt

from checker.command import say
from checker.job import DiagramEvent, Verdict
from checker.planner_page import to_html
from checker.printable import code, fenced
from checker.report.ci_reports import annotation_lines, junit_xml, sarif_log, summary
from checker.report.verdict import Judgement, RunOutcome
from checker.rollout import PlanRequest, SafetyVerdict, plan
from checker.rollout.answer import Plan
from checker.rollout.inputs.folders import read_folder
from checker.rollout.output.data import data
from checker.rollout.output.markdown import github_comment
from checker.rollout.reconfig.answers import ReconfigSpec
from checker.rollout.runs import RunResult
from checker.rollout.scenarios import RunSpec
from checker.scenario import bundled, load
from checker.traces.formats import FORMATS
from checker.traces.trace import Truth
from harness.conform import report
from harness.conform.cases.case import Case, node
from harness.conform.run import CaseResult, ConformResult
from spec.text import UNREADABLE
from tests.support.reconfig_folders import dynamic_folder
from tests.support.rollout_runs import made_up
from tests.support.trace_readers import Page
from tests.support.traces import made

MARK = "qq"
HARMLESS = f"{MARK}x"
HOSTILE = (
    f"{MARK}`a``b``` <b>c</b> </details> <!-- | [d](http://e.example) ![f](g) @h #1 **i** $j$ ~~k~~ &lt; "
    f"\x1b[31m \u202e \x07 ]]> ::error::\n\n# l\n\n- m\n```\n"
)


# -- the fields of a value -----------------------------------------------------------------------------------


def fields_of(value: Any) -> Iterator[tuple[type, str]]:
    """The fields with text, of every type of record below a value, each once."""
    seen: dict[tuple[type, str], None] = {}
    for record, name, content in _records(value, set()):
        if any(isinstance(part, str) for part in _leaves(content)):
            seen[type(record), name] = None
    yield from seen


def _names(value: Any) -> tuple[str, ...]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    return value.__struct_fields__ if isinstance(value, msgspec.Struct) else ()


def _records(value: Any, seen: set[int]) -> Iterator[tuple[Any, str, Any]]:
    if id(value) in seen:
        return
    seen.add(id(value))
    for name in _names(value):
        content = getattr(value, name)
        yield value, name, content
        yield from _records(content, seen)
    if not _names(value):
        parts = [*value.keys(), *value.values()] if isinstance(value, Mapping) else value
        for part in parts if isinstance(value, Mapping | list | tuple | frozenset) else ():
            yield from _records(part, seen)


def _leaves(content: Any) -> Iterator[Any]:
    if isinstance(content, Mapping):
        yield from content.values()
    elif isinstance(content, list | tuple | frozenset):
        yield from content
    else:
        yield content


def with_text(value: Any, place: tuple[type, str], text: str) -> Any:
    """The value with a text at the end of a field, in every record of its type."""
    if names := _names(value):
        parts = {name: with_text(getattr(value, name), place, text) for name in names}
        if type(value) is place[0]:
            parts[place[1]] = _longer(parts[place[1]], text)
        if all(parts[name] is getattr(value, name) for name in names):
            return value
        if isinstance(value, msgspec.Struct):
            return msgspec.structs.replace(value, **parts)
        return dataclasses.replace(value, **{name: part for name, part in parts.items() if not name.startswith("_")})
    if isinstance(value, Mapping):
        parts = {key: with_text(part, place, text) for key, part in value.items()}
        return value if all(parts[key] is value[key] for key in value) else parts
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        items = [with_text(part, place, text) for part in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else type(value)(items)
    return value


def _longer(content: Any, text: str) -> Any:
    if isinstance(content, str):
        return content + text
    if isinstance(content, Mapping):
        return {key: _longer(part, text) if isinstance(part, str) else part for key, part in content.items()}
    if isinstance(content, list | tuple | frozenset):
        return type(content)(_longer(part, text) if isinstance(part, str) else part for part in content)
    return content


# -- the structure of a document -----------------------------------------------------------------------------


SUMMARY = re.compile(r"(?<=<summary>)[^<>]*(?=</summary>)")


def structure(text: str) -> list[tuple[Any, ...]]:
    """The elements of a Markdown document in order, without their texts; a run of text is one element."""
    assert not UNREADABLE.search(text.replace("\n", "")), "a terminal would obey it"
    elements = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        elements.append((token.type, token.tag, SUMMARY.sub("", token.content) if token.type == "html_block" else ""))
        for child in token.children or []:
            shown = "" if child.type in ("text", "text_special", "code_inline") else child.content
            kind = "text" if child.type == "text_special" else child.type
            if (kind, shown) != elements[-1][:2]:
                elements.append((kind, shown))
        shown = "".join(child.content for child in token.children or [] if child.type != "code_inline")
        assert not re.search(r"(?<![A-Za-z0-9])@[A-Za-z0-9]|#\d", shown), "GitHub would call a user or link an issue"
    return [(kind, *rest) for kind, *rest in elements]


def xml_structure(text: str) -> list[str]:
    return [element.tag for element in ElementTree.fromstring(text.encode()).iter()]


def shape(part: Any) -> Any:
    """Plain data without its texts."""
    if isinstance(part, dict):
        return [shape(value) for value in part.values()]
    return [shape(item) for item in part] if isinstance(part, list) else type(part)


# -- the documents -------------------------------------------------------------------------------------------


@cache
def planned() -> Plan:
    """A plan with commands, steps, differences and warnings, whose runs no engine made."""

    def runner(spec: RunSpec, _seconds: float) -> RunResult:
        return made_up(spec, SafetyVerdict.SAFE if isinstance(spec, ReconfigSpec) else SafetyVerdict.OPEN)

    with TemporaryDirectory() as name:
        old, after = dynamic_folder(Path(name) / "before", (1, 2, 3)), Path(name) / "after"
        dynamic_folder(after, (1, 2, 4))
        for file in after.rglob("zoo.cfg"):
            file.write_text(f"{file.read_text()}some.key=value\n")
        return dataclasses.replace(plan(PlanRequest(old, read_folder(after)), runner), notes=["a note"])


@cache
def outcome() -> RunOutcome:
    """A run that found a violation, with a trace."""
    drawn = [DiagramEvent("send", "a", "a text", "b", 1)]
    trace = made([("first", {"a": {"x": "y"}}, []), ("second", {"a": {"x": "z"}}, drawn)], [{"P": Truth.FAILS}] * 2)
    judgement = Judgement(Verdict.VIOLATED, 12, "violated: P at depth 1", ("P",), Verdict.PASSED, different="other")
    job = load(bundled()[0])
    trace = dataclasses.replace(trace, prop=job.model.properties[0].name)
    return RunOutcome("a run", judgement, job, traces=(trace,), path=Path("s.yaml"), line=3, began=0.0)


def _plan_shapes(made: Plan) -> list[Any]:
    comment = github_comment(made)
    json.dumps(data(made)).encode("ascii")
    return [structure(comment), [tag for tag, _ in Page(to_html(comment, ())).elements]]


def _outcome_shapes(ran: RunOutcome) -> list[Any]:
    text = FORMATS["text"].view(ran.traces[0])
    log = sarif_log([ran], "1.0")
    assert not UNREADABLE.search("".join(_texts(log)).replace("\n", ""))
    assert not re.search(r"(?<!\\)\[[^\]]*\]\(", "".join(_texts(log))), "a reader of SARIF would show a link"
    annotations = annotation_lines([ran])
    assert not UNREADABLE.search("".join(annotations))
    return [
        structure(summary([ran], lambda _: text)),
        xml_structure(junit_xml([ran], lambda _: text)),
        xml_structure(FORMATS["svg"].view(ran.traces[0]))[:1],
        structure(FORMATS["markdown"].view(ran.traces[0])),
        [tag for tag, _ in Page(FORMATS["html"].view(ran.traces[0])).elements if tag not in DRAWN],
        shape(log),
        len(annotations),
    ]


DRAWN = {"tspan", "text", "line", "path"}
"""Elements of a picture whose number depends on the length of a text."""


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    for item in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _texts(item)


PLAN_FIELDS = {
    ("Folder", "path"), ("Folder", "taken"), ("ServerFiles", "origin"), ("ServerFiles", "text"), ("Plan", "notes"),
    ("MembershipCommand", "lines"), ("ConfigState", "label"), ("Stage", "title"),
}  # fmt: skip
OUTCOME_FIELDS = {
    ("RunOutcome", "name"), ("Judgement", "sentence"), ("Trace", "job"), ("Trace", "clause"),
    ("TraceStep", "caption"), ("DiagramEvent", "text"),
}  # fmt: skip
ONE_LINE = {"text", "texts", "dynamic"}
"""Files: a text at the end is one more key."""


@pytest.mark.parametrize(
    ("value", "shapes", "fewest"),
    [(planned, _plan_shapes, PLAN_FIELDS), (outcome, _outcome_shapes, OUTCOME_FIELDS)],
    ids=["plan", "run"],
)
def test_a_hostile_text_in_any_field_leaves_every_document_as_it_is(
    value: Callable[[], Any], shapes: Callable[[Any], list[Any]], fewest: set[tuple[str, str]]
) -> None:
    covered, made = set(), value()
    shapes(made)
    for place in fields_of(made):
        try:
            usual = shapes(with_text(made, place, HARMLESS))
        except (KeyError, ValueError, StopIteration):
            continue  # a word of the program, not a text: no other word can be there
        text = HOSTILE.replace("\n", " ") if place[1] in ONE_LINE else HOSTILE
        assert shapes(with_text(made, place, text)) == usual, place
        covered.add((place[0].__name__, place[1]))
    assert fewest <= covered


def test_a_report_of_conformance_shows_what_a_server_says_as_text() -> None:
    case = Case("area", "a case", (node("/a"),))
    result = ConformResult("3.8.0", (CaseResult(case, ()),), (), 0, 0, ())
    for place in fields_of(result):
        usual, other = (with_text(result, place, text) for text in (HARMLESS, HOSTILE))
        for text in (HARMLESS, HOSTILE):
            assert not UNREADABLE.search(report.text(other).replace("\n", ""))
            shapes = [
                (structure(report.markdown(each, f"h{text}")), xml_structure(report.junit(each, f"h{text}")))
                for each in (usual, other)
            ]
            assert shapes[0] == shapes[1], place


def test_a_code_span_and_a_fence_hold_any_row_of_backticks() -> None:
    for text in ("`", "a`b", "``a`b``", " a ", "```\n# b", "", "a\nb"):
        (paragraph,) = (token for token in MarkdownIt("commonmark").parse(code(text)) if token.type == "inline")
        assert [(child.type, child.content) for child in paragraph.children or []] == [
            ("code_inline", " ".join(text.splitlines()) or " ")
        ]
        (block,) = MarkdownIt("commonmark").parse("\n".join(fenced(text)))
        assert (block.type, block.content) == ("fence", f"{text}\n")


def test_every_command_prints_by_one_function() -> None:
    """`print` of the checker's commands is `say`, which cleans every line."""
    printing = re.compile(r"(?<![\w.])print\(|stdout\.write|stderr\.write")
    folder = Path(__file__).parents[3] / "checker"
    files = [*folder.glob("*.py"), *(folder / "cli").glob("*.py"), *(folder / "validate").glob("*.py")]
    assert [file.name for file in files if printing.search(file.read_text())] == ["command.py"]
    shown = io.StringIO()
    say(HOSTILE, stream=shown)
    assert not UNREADABLE.search(shown.getvalue().replace("\n", ""))
