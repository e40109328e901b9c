"""Every format of a trace with hostile words, parsed by an independent reader of the format."""

import ast
import json
import re
from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checker.engine.model import Kind
from checker.job import DiagramEvent
from checker.traces import Trace, Truth, read_itf, to_itf
from checker.traces.formats import FORMATS
from checker.traces.itf import read_trace
from spec.text import UNREADABLE, on_a_line
from tests.support.trace_readers import Page, itf_validator, read_markdown, shiviz_events
from tests.support.traces import made

NASTY = [
    "", " ", '"', "'", '"""', "'''", "\\", "\\N{", "<", "</script>", "<!--", "]]>", "&", "&amp;", "|", "a|b",
    "\n", "a\nb", "\r", "\t", "\x00", "\x1b[31m", "\x85", "\u2028", "\ufffe", "\u202e", "end", "`", "```", "#",
    "%%", ";", "{", "}", "{0}", "%s", "$", "é", "日本語" * 9, "👩‍👩‍👧", "a" * 400, "*", "**x**",
    "_", "~", "- x", "1. x", "[x](y)", "<b>x</b>", "x.py", "http://example.org/a_b", "=> x", "--", "TRACE = r",
    "}\n\"\"\"", "constructor", "__proto__",
]  # fmt: skip
words = st.sampled_from(NASTY) | st.text(max_size=12)
names = words.filter(lambda name: not name.startswith(("#", "mbt::")))
fields = st.dictionaries(words, words | st.integers() | st.none() | st.lists(words, max_size=2), max_size=2)
KINDS = ["send", "deliver", "lost", "crash", "start", "cut", "heal", "decide", "note"]


@st.composite
def drawn(draw: st.DrawFn, lanes: list[str]) -> list[DiagramEvent]:
    found = []
    for kind in draw(st.lists(st.sampled_from(KINDS), max_size=3)):
        lane, peer = draw(st.sampled_from(lanes)), draw(st.sampled_from(lanes))
        message = kind in ("send", "deliver", "lost")
        number = draw(st.integers(1, 4)) if message else None
        linked = message or kind in ("cut", "heal") or draw(st.booleans())
        found.append(DiagramEvent(kind, lane, draw(words), peer if linked else None, number))
    return found


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    lanes = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    depth = draw(st.integers(0, 4))
    steps = [(draw(words), {lane: draw(fields) for lane in lanes}, draw(drawn(lanes))) for _ in range(depth + 1)]
    steps[0] = (*steps[0][:1], {lane: {"x": draw(words)} for lane in lanes}, [])
    prop = draw(words.filter(bool))
    said = {prop: draw(st.sampled_from(Truth)), draw(words): Truth.HOLDS}
    about = {"job": draw(words), "grain": draw(words), "prop": prop, "clause": draw(words.filter(bool))}
    return made(steps, [said] * (depth + 1), kind=Kind.ALWAYS, names=about)


def squeezed(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(traces())
def test_hostile_words_are_shown_as_they_are_and_nothing_of_them_is_markup(trace):
    shown = {name: each.view(trace) for name, each in FORMATS.items()}
    depth = trace.depth

    assert read_itf(shown["itf"]) == trace
    itf_validator().validate(json.loads(shown["itf"]))
    for name in ("html", "pytest"):
        assert read_trace(shown[name]) == trace

    picture = ET.fromstring(shown["svg"].encode())
    ids = [each.get("id") for each in picture.iter() if each.get("id") is not None]
    assert len(ids) == len(set(ids))
    titles = [squeezed(each.text or "") for each in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert all(squeezed(on_a_line(lane)) in titles for lane in trace.lanes)
    assert {each.tag.split("}")[1] for each in picture.iter()} <= {
        "svg", "title", "style", "rect", "line", "polyline", "g", "text", "tspan", "path", "circle", "a",
    }  # fmt: skip

    page = Page(shown["html"])
    assert len(page.scripts) == 2
    assert squeezed(on_a_line(trace.headline)) in [squeezed(each) for each in page.shown]
    assert not [has for _, has in page.elements for key in has if key.startswith("on")]

    (table,) = read_markdown(shown["markdown"]).tables
    assert len(table) == depth + 2 and all(len(row) == len(table[0]) for row in table)
    columns = table[0][2 : 2 + len(trace.lanes)]
    assert [squeezed(name) for name in columns] == [squeezed(on_a_line(lane)) for lane in trace.lanes]

    events = shiviz_events(shown["shiviz"])
    assert len({event.host for event in events}) == len(trace.lanes)
    assert all(event.clock[event.host] > 0 for event in events)

    tree = ast.parse(shown["pytest"])
    asserted = [node.comparators[0].value for node in ast.walk(tree) if isinstance(node, ast.Compare)
                and isinstance(node.comparators[0], ast.Constant)]  # fmt: skip
    assert asserted == [trace.headline, trace.clause]

    assert all(f"m{d.message}" in shown["text"] for step in trace.steps for d in step.events if d.message)
    assert shown["mermaid"].startswith("sequenceDiagram\n")
    for name, text in shown.items():
        assert not UNREADABLE.search(text.replace("\n", "")), f"{name}: a terminal would obey it"
    steps = [line for line in shown["text"].splitlines() if re.match(r" *\d+( \||  )", line)]
    assert len(steps) >= depth + 1


def test_equal_traces_are_equal_files() -> None:
    trace = made([("at first", {"a": {"x": 1}}, [])], [{"P": Truth.FAILS}])
    for each in FORMATS.values():
        assert each.view(trace) == each.view(read_itf(to_itf(trace)))
