"""Traces as Markdown, ShiViz logs, pages and tests for pytest, each parsed by an independent reader."""

import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from checker.engine.model import Kind
from checker.job import DiagramEvent, Verdict
from checker.traces import Trace, TraceFileError, Truth, to_itf, to_text
from checker.traces.formats import FORMATS, to_pytest
from checker.traces.html import to_html
from checker.traces.itf import read_trace
from checker.traces.markdown import SIGNS, to_markdown
from checker.traces.sequence_diagrams import to_mermaid, to_shiviz
from checker.traces.summary import claim, messages_of, truth_lines, turns
from checker.traces.text import WIDTH
from tests.support.trace_readers import Page, itf_validator, read_markdown, shiviz_events
from tests.support.traces import SHIPPED, everything, made, repeating, send, shipped

ROOT = Path(__file__).parents[4]
EVERY = ["everything", "repeating", *SHIPPED]


def trace_called(name: str) -> Trace:
    return {"everything": everything, "repeating": repeating}.get(name, lambda: shipped(name))()


# -- Markdown --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_markdown_is_a_heading_a_table_with_a_row_a_step_and_a_diagram(name):
    trace = trace_called(name)
    read = read_markdown(to_markdown(trace))
    assert read.headings == [trace.headline]
    (table,) = read.tables
    properties = list(trace.steps[0].truth)
    assert table[0] == ["step", "what happens", *trace.lanes, *properties]
    assert [row[0] for row in table[1:]] == [str(number) for number in range(trace.depth + 1)]
    for row, step in zip(table[1:], trace.steps, strict=True):
        assert row[1].split("\n")[0] == step.caption
        assert row[-len(properties) :] == [SIGNS[step.truth[name]] for name in properties]
    assert read.fences == [("mermaid", to_mermaid(trace))]
    assert claim(trace) in read.paragraphs
    assert all(any(message.sentence == shown for shown in read.paragraphs) for message in messages_of(trace))
    assert any(shown.startswith("To replay it: quorate replay FILE") for shown in read.paragraphs)


def test_a_cell_of_markdown_holds_only_what_the_step_changed():
    (table,) = read_markdown(to_markdown(everything())).tables
    a, b, c = (["state=up", "vote={leader: 1, epoch: 1}"] for _ in "abc")
    shown = [[cell.split("\n") if cell else [] for cell in row[2:5]] for row in table[1:]]
    assert shown == [
        [a, b, c],
        [["sends m1->b", "m2->c"], [], []],
        [["*cut b*", "*cut c*", "lost: m1->b"], [], []],
        [[], [], ["gets m2", "vote=leader: 3", "sends m3->b"]],
        [[], ["*crash: stops*", "state=down", "no vote"], []],
        [["*heal b*", "*heal c*"], [], []],
        [[], ["*start: starts with zoo-5.cfg*", *b], []],
        [[], [], ["*decide: LEADING*", "state=LEADING", "no vote"]],
        [["is told"], [], ["*holds*", "sends m4->a"]],
    ]


HOSTILE = [
    "a | b",
    "`code`",
    "<script>alert(1)</script>",
    "**bold** _slanted_ ~~gone~~",
    "[a link](https://example.org)",
    "![a picture](x.png)",
    "- item",
    "1. item",
    "# heading",
    "> said",
    "<https://example.org>",
    "https://example.org/a_b_c",
    "&amp; &#64;",
    "back\\slash \\| \\",
    ":warning:",
    "```",
    "</details>",
    "a  b",
    "+",
    "---",
    "=",
]


@pytest.mark.parametrize("words", HOSTILE)
def test_markdown_shows_hostile_words_as_they_are(words):
    steps = [
        ("at first", {words: {words: words}}, []),
        (words, {words: {words: "x"}}, [DiagramEvent("note", words, words)]),
    ]
    trace = made(steps, [{words: Truth.HOLDS}] * 2, names={"job": words, "clause": words, "prop": words})
    read = read_markdown(to_markdown(trace).replace("&#8203;", ""))
    (table,) = read.tables
    assert table[0] == ["step", "what happens", words, words]
    assert table[1][2] == f"{words}={words}"
    assert table[2][1:3] == [words, f"{words}=x"]
    assert read.headings == [f"violated: {words} at depth 1"]
    assert read.html == []
    assert f"run: {words}" in read.paragraphs
    assert not any(kind != "mermaid" for kind, _ in read.fences)


# -- Mermaid and words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_mermaid_has_an_arrow_for_each_message_that_ends_and_one_with_a_cross_where_it_is_lost(name):
    trace = trace_called(name)
    diagram = to_mermaid(trace)
    lanes = dict(re.findall(r"participant (p\d+) as (.*)", diagram))
    arrows = re.findall(r"(p\d+)(->>|-x)(p\d+): m(\d+) ", diagram)
    assert sorted((int(number), lanes[one], sign, lanes[other]) for one, sign, other, number in arrows) == [
        (each.number, each.sender, "-x" if each.fate.value == "lost" else "->>", each.receiver)
        for each in sorted(messages_of(trace), key=lambda each: each.number)
        if each.ended is not None
    ]


def test_where_nothing_turns_the_claim_is_the_last_four_steps():
    steps = [(f"step {number} of it", {"a": {"x": number}}, []) for number in range(8)]
    trace = made(steps, [{"P": Truth.HOLDS}] * 7 + [{"P": Truth.FAILS}])
    assert claim(trace) == "; ".join(f"step {number}: step {number} of it" for number in (4, 5, 6, 7))


def test_a_property_that_holds_again_is_told_where_it_does_and_one_that_never_failed_is_not():
    steps = [("a step", {"a": {"x": number}}, []) for number in range(4)]
    said = [Truth.TRIVIAL, Truth.HOLDS, Truth.FAILS, Truth.HOLDS]
    trace = made(steps, [{"P": each} for each in said])
    assert [turns(trace, step) for step in trace.steps] == [[], [], ["P fails"], ["P holds again"]]


def test_the_headline_of_a_page_is_marked_as_bad_where_the_verdict_is():
    for trace, bad in ((everything(), True), (replace(everything(), verdict=Verdict.PASSED), False)):
        (heading,) = [has for tag, has in Page(to_html(trace)).elements if tag == "h1"]
        assert heading == ({"class": "bad"} if bad else {})


# -- ShiViz ----------------------------------------------------------------------------------------------------


def dominated(one, other):
    return all(other.get(host, 0) >= count for host, count in one.items())


@pytest.mark.parametrize("name", EVERY)
def test_the_clocks_of_a_shiviz_log_are_valid(name):
    trace = trace_called(name)
    events = shiviz_events(to_shiviz(trace))
    seen, at = defaultdict(dict), defaultdict(dict)
    for event in events:
        before = seen[event.host]
        assert event.clock[event.host] == before.get(event.host, 0) + 1
        assert dominated(before, event.clock)
        assert all(count <= seen[host].get(host, 0) for host, count in event.clock.items() if host != event.host)
        seen[event.host] = event.clock
        at[int(re.match(r"step (\d+): ", event.text)[1])][event.host] = event.clock
    assert set(at) == set(range(trace.depth + 1))
    hosts = {lane: lane.replace(" ", "_") for lane in trace.lanes}
    arrivals = defaultdict(set)
    for message in messages_of(trace):
        if message.fate.value == "arrives" and message.sent is not None:
            sender, receiver = hosts[message.sender], hosts[message.receiver]
            assert dominated(at[message.sent][sender], at[message.ended][receiver])
            assert not dominated(at[message.ended][receiver], at[message.sent][sender])
            arrivals[message.ended, receiver].add(sender)
    # Only messages transfer causes: a host without an arrival in a step learns nothing about other hosts.
    known = defaultdict(dict)
    for step, clocks in at.items():
        for host, clock in clocks.items():
            if not arrivals[step, host]:
                assert {k: v for k, v in clock.items() if k != host} == {
                    k: v for k, v in known[host].items() if k != host
                }
            known[host] = clock


def test_a_message_that_arrives_in_the_step_of_its_sending_leaves_in_an_event_of_its_own():
    lanes = {"a": {}, "b": {}}
    handed = [DiagramEvent("deliver", "b", "vote 1", "a", 1), send("a", "b", 1)]
    log = shiviz_events(to_shiviz(made([("at first", lanes, []), ("at once", lanes, handed)], [{}, {}])))
    assert [(event.host, event.clock) for event in log] == [
        ("a", {"a": 1}),
        ("a", {"a": 2}),
        ("a", {"a": 3}),
        ("b", {"a": 2, "b": 1}),
    ]


def test_lanes_whose_names_differ_by_a_blank_are_two_hosts():
    lanes = {"a b": {"x": 1}, "a_b": {"x": 1}}
    assert {event.host for event in shiviz_events(to_shiviz(made([("at first", lanes, [])], [{}])))} == {"a_b", "a_b_2"}


# -- ITF -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_an_itf_file_is_as_its_format_has_it(name):
    data = json.loads(to_itf(trace_called(name)))
    itf_validator().validate(data)
    assert all(set(state) == {"#meta", *data["vars"]} for state in data["states"])
    assert data.get("loop", 0) < len(data["states"])


@pytest.mark.parametrize("wrong", [None, 3, {"#bigint": 3}, {"#set": [1]}, {"#map": [["key"]]}, {"#new": []}, [None]])
def test_the_schema_of_itf_refuses_what_the_format_does_not_have(wrong):
    data = json.loads(to_itf(everything()))
    data["states"][1]["a"] = {"field": wrong}
    assert not itf_validator().is_valid(data)


# -- pytest ----------------------------------------------------------------------------------------------------


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=120)


def test_a_trace_as_a_test_passes_where_it_happens_again_and_fails_where_it_does_not(tmp_path):
    """The tests are a trace of votes that repeat, a trace of a violation, and a copy of the second with a false end."""
    format_ = FORMATS["pytest"]
    for place, name in enumerate(["votes for ever", "an election in one step"]):
        (tmp_path / format_.file_name(f"Run-{place}.x")).write_text(to_pytest(shipped(name)), encoding="utf-8")
    good = run_pytest(tmp_path)
    assert "2 passed" in good.stdout, good.stdout + good.stderr
    trace = shipped("an election in one step")
    steps = (*trace.steps[:-2], replace(trace.steps[-1], number=trace.depth - 1))
    (tmp_path / "test_changed.py").write_text(to_pytest(replace(trace, steps=steps)), encoding="utf-8")
    bad = run_pytest(tmp_path)
    assert "1 failed, 2 passed" in bad.stdout
    assert "the trace does not replay: in step 7" in bad.stdout


def test_a_trace_as_a_test_is_clean_and_says_what_it_holds(tmp_path):
    for name in EVERY:
        path = tmp_path / FORMATS["pytest"].file_name(name)
        path.write_text(to_pytest(trace_called(name)), encoding="utf-8")
        documented = compile(path.read_text(encoding="utf-8"), name, "exec").co_consts[0]
        flat = " ".join(documented.split())
        assert "It holds that this run of the model happens step by step as it was recorded" in flat
        assert trace_called(name).clause.replace('"', "'") in flat
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "E,F,W,I,N,UP,D1,RUF100,PT", tmp_path]
    command += ["--target-version", "py311", "--line-length", "88", "--no-cache", "--config", "src=['checker']"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout


def test_the_file_of_a_test_has_a_name_that_pytest_collects_and_python_imports():
    name = FORMATS["pytest"].file_name("R10-three-to-five.x-OneLeader-2")
    assert name == "test_r10_three_to_five_x_oneleader_2.py"
    assert FORMATS["svg"].file_name("R10.x-y") == "R10.x-y.svg"
    assert len({each.file_name("stem") for each in FORMATS.values()}) == len(FORMATS)


# -- pages and files with a trace --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_a_page_and_a_test_hold_the_trace_that_they_show(name):
    trace = trace_called(name)
    for text in (to_itf(trace), to_html(trace), to_pytest(trace)):
        assert read_trace(text) == trace


@pytest.mark.parametrize("name", ["text", "markdown", "mermaid", "svg", "shiviz"])
def test_a_file_that_holds_no_trace_is_refused_and_those_that_do_are_named(name):
    said = r"^x\.txt is not a trace: .* the \.itf\.json, \.html and \.py files replay"
    with pytest.raises(TraceFileError, match=said):
        read_trace(FORMATS[name].view(everything()), "x.txt")


def test_a_page_names_nothing_that_is_elsewhere():
    page = Page(to_html(everything()))
    addresses = [value for _, has in page.elements for name, value in has.items() if name in ("href", "src", "action")]
    assert addresses and all(str(address).startswith("#step-") for address in addresses)
    assert not any(tag in ("link", "img", "iframe", "object", "embed") for tag, _ in page.elements)
    (policy,) = [has["content"] for tag, has in page.elements if tag == "meta" and "http-equiv" in has]
    assert "default-src 'none'" in str(policy)


# -- requirements of every format for readers ----------------------------------------------------------------------


READERS = {"text": to_text, "markdown": to_markdown, "html": to_html, "svg": FORMATS["svg"].view}


def plainly(name: str, shown: str) -> str:
    """Return the words that a reader of that format sees, including tooltips."""
    if name == "markdown":
        read = read_markdown(shown)
        cells = [cell for table in read.tables for row in table for cell in row]
        return " ".join(" ".join([*read.headings, *read.paragraphs, *cells]).split())
    return " ".join((" ".join(Page(shown).shown) if name in ("html", "svg") else shown).split())


@pytest.mark.parametrize("format_name", READERS)
@pytest.mark.parametrize("name", EVERY)
def test_a_trace_for_readers_is_readable(name, format_name):
    """The order in formats for readers: the finding, the claim, bounds and hidden parts, each step, each message."""
    trace = trace_called(name)
    shown = plainly(format_name, READERS[format_name](trace))
    first = shown.index(" ".join(trace.headline.split()))
    values = [f"{key} = " for key, _ in trace.values]
    assert first <= shown.index(trace.clause) and all(value in shown for value in values)
    assert shown.index(trace.clause) < shown.index(claim(trace)) < shown.index("step 0 has every field of a lane")
    assert trace.grain in shown and all(bound in shown for bound in trace.bounds)
    assert all(step.caption in shown for step in trace.steps) or format_name == "text"
    assert all(f"m{message.number}" in shown for message in messages_of(trace))
    assert all(name in shown for name in trace.steps[0].truth)


def test_a_claim_tells_what_turned_and_the_end_in_the_words_of_the_steps():
    assert claim(shipped("an election in one step")) == (
        "step 1: the operator stops server.2; step 4: server.1 elects server.3; "
        "step 6: server.5 has lost its leader server.2; step 7: the operator starts server.2 with zoo-5.cfg; "
        "step 8: server.2 and server.4 elect server.5"
    )
    told = claim(repeating())
    assert told.endswith("step 4: a turns back; then the loop begins here: steps 3 to 4 repeat for ever")
    still = made([("at first", {"a": {}}, [])], [{"P": Truth.FAILS}])
    assert claim(still) == "the run ends where it begins"


def test_a_claim_of_a_long_run_tells_its_end_and_says_that_more_went_before():
    steps = [("at first", {"a": {"n": 0}}, [])]
    steps += [(f"turn {n}", {"a": {"n": n}}, [DiagramEvent("decide", "a", str(n))]) for n in range(1, 20)]
    told = claim(made(steps, [{}] * 20))
    assert told.startswith("…; step 12: turn 12; ") and told.endswith("step 19: turn 19")


def test_a_claim_names_the_crash_the_election_and_the_steps_right_before_the_finding():
    lanes = {"a": {}, "b": {}}
    kinds = {
        2: DiagramEvent("crash", "a", "stops"),
        4: DiagramEvent("decide", "b", "LEADING"),
        1: DiagramEvent("note", "b", "a write"),
    }
    steps = [("at first", lanes, [])]
    steps += [(f"step {n} of it", lanes, [kinds[n]] if n in kinds else []) for n in range(1, 10)]
    told = claim(made(steps, [{}] * 10))
    assert told == "; ".join(f"step {n}: step {n} of it" for n in (1, 2, 4, 7, 8, 9))


def test_a_claim_names_the_step_from_which_the_goal_is_out_of_reach():
    steps = [("at first", {"a": {}}, [])]
    steps += [
        (f"step {n} of it", {"a": {}}, [DiagramEvent("crash", "a", "stops")] if n > 6 else []) for n in range(1, 10)
    ]
    told = claim(made(steps, [{"P": Truth.OPEN}] * 10, kind=Kind.RECOVERABLE, since=2))
    assert told == "; ".join(f"step {n}: step {n} of it" for n in (2, 7, 8, 9))


def test_a_claim_has_its_gap_where_turning_steps_are_left_out():
    """The goal is unreachable from step 1 on; the claim has no room for steps 2 to 4."""
    steps = [("at first", {"a": {}}, [])]
    steps += [(f"turn {n}", {"a": {}}, [DiagramEvent("decide", "a", str(n))]) for n in range(1, 12)]
    told = claim(made(steps, [{"P": Truth.OPEN}] * 12, kind=Kind.RECOVERABLE, since=1))
    assert told == "; ".join(["step 1: turn 1", "…", *(f"step {n}: turn {n}" for n in range(5, 12))])


def test_a_claim_has_a_gap_for_each_run_of_turning_steps_that_are_left_out():
    steps = [("at first", {"a": {}}, [])]
    steps += [(f"turn {n}", {"a": {}}, [DiagramEvent("decide", "a", str(n))]) for n in range(1, 14)]
    told = claim(made(steps, [{"P": Truth.OPEN}] * 14, kind=Kind.RECOVERABLE, since=3))
    assert told.startswith("…; step 3: turn 3; …; step 7: turn 7; step 8: turn 8; ")


def test_a_claim_has_no_gap_for_other_steps_that_are_left_out():
    steps = [("at first", {"a": {}}, [])]
    steps += [(f"turn {n}", {"a": {}}, [DiagramEvent("decide", "a", "")] if n > 14 else []) for n in range(1, 20)]
    assert "…" not in claim(made(steps, [{}] * 20))


def test_a_claim_prefers_turning_steps_to_the_steps_before_the_finding_and_to_notes():
    lanes = {"a": {}}
    kinds = ["note"] * 3 + ["decide"] * 7 + ["note"] * 3
    steps = [("at first", lanes, [])]
    steps += [(f"step {n} of it", lanes, [DiagramEvent(kind, "a", "so")]) for n, kind in enumerate(kinds, 1)]
    told = claim(made(steps, [{}] * 14))
    assert told == "; ".join(f"step {n}: step {n} of it" for n in (4, 5, 6, 7, 8, 9, 10, 13))


def test_the_truth_of_a_property_is_told_by_steps():
    assert dict(truth_lines(everything())) == {
        "P": "says nothing: 0-3; holds: 4-7; fails: 8",
        "Q": "not witnessed: 0-3, 8; witnessed: 4-7",
    }


def test_a_walk_without_a_finding_is_shown_in_every_format():
    walk = replace(everything(), kind=None, verdict=None, prop="", clause="", values=())
    for name, format_ in FORMATS.items():
        assert "walked: 8 moves, without a finding" in format_.view(walk) or name in ("itf", "shiviz")
    assert walk.kind is not Kind.ALWAYS


# -- text --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_text_tells_of_each_message_what_every_other_format_tells(name):
    trace = trace_called(name)
    listed = [" ".join(line.split()) for line in to_text(trace, width=400).splitlines()]
    for message in messages_of(trace):
        assert message.sentence.replace(": ", " ", 1).replace(f"{message.text};", message.text) in listed


@pytest.mark.parametrize("name", EVERY)
def test_text_lists_bounds_within_its_width_and_leaves_none_out(name):
    trace = trace_called(name)
    lines = to_text(trace).splitlines()
    about_it = next(n for n, line in enumerate(lines) if line.endswith(f"; grain: {trace.grain}"))
    bounds = lines[about_it + 1 : lines.index("", about_it)]
    assert all(len(line) <= WIDTH for line in bounds)
    told = " ".join(" ".join(bounds).split())
    assert told == ("bounds: " + "; ".join(trace.bounds) if trace.bounds else "")
