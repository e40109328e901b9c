"""The page and the picture of a trace in a browser: nothing is fetched, keys walk the steps, no text overflows."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from checker.traces import read_itf
from checker.traces.html import to_html
from checker.traces.svg import to_svg
from tests.support.traces import SHIPPED, everything, repeating, shipped

SPILLED = (Path(__file__).parent / "spilled.js").read_text(encoding="utf-8")


def trace_called(name):
    return {"everything": everything, "repeating": repeating}.get(name, lambda: shipped(name))()


@pytest.fixture
def opened(page, tmp_path):
    """A function that opens a text as a file with that name; requests for other files fail the test."""
    asked = []
    page.on("request", lambda request: asked.append(request.url))

    def opened(name, text, anchor=""):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        page.goto(path.as_uri() + anchor)
        return page

    yield opened
    assert {url.partition("#")[0] for url in asked} <= {each.as_uri() for each in tmp_path.iterdir()}


@pytest.mark.parametrize("name", ["everything", "repeating", *SHIPPED])
def test_nothing_in_a_picture_spills_over_or_lies_upon_other_words(opened, name):
    page = opened("trace.svg", to_svg(trace_called(name)))
    assert page.evaluate(SPILLED) == []


def selected(page):
    """Return the marked steps: in the picture, and in the list."""
    marked = [
        {int(each.get_attribute("data-step")) for each in page.query_selector_all(f"{where}.selected")}
        for where in ("svg .row", "tr")
    ]
    assert marked[0] == marked[1]
    return marked[0]


def test_keys_walk_the_steps_and_the_address_leads_to_one(opened):
    trace = shipped("an election in one step")
    page = opened("trace.html", to_html(trace))
    assert selected(page) == set()
    walked = []
    for key in ("ArrowDown", "ArrowDown", "j", "ArrowUp", "End", "ArrowDown", "Home", "k"):
        page.keyboard.press(key)
        walked.append((*selected(page), page.evaluate("location.hash")))
    steps = [0, 1, 2, 1, trace.depth, trace.depth, 0, 0]
    assert walked == [(step, f"#step-{step}") for step in steps]
    row = page.evaluate("(({top, bottom}) => [top, bottom])(document.getElementById('step-0').getBoundingClientRect())")
    assert 0 <= row[0] < row[1] <= 900


def test_an_address_with_a_step_shows_it_and_a_click_marks_another(opened):
    page = opened("trace.html", to_html(everything()), "#step-5")
    assert selected(page) == {5}
    page.click("tr[data-step='2'] td.number a")
    assert (selected(page), page.evaluate("location.hash")) == ({2}, "#step-2")
    page.click("svg .row[data-step='7']", position={"x": 5, "y": 5})
    assert (selected(page), page.evaluate("location.hash")) == ({7}, "#step-7")
    page.evaluate("location.hash = '#step-3'")
    page.wait_for_selector("tr.selected[data-step='3']")
    assert selected(page) == {3}


def test_the_list_has_a_line_a_step_and_the_whole_state_below(opened):
    trace = everything()
    page = opened("trace.html", to_html(trace))
    rows = page.query_selector_all("table.steps > tbody > tr")
    assert len(rows) == trace.depth + 1
    cells = [cell.inner_text() for cell in rows[3].query_selector_all(":scope > td")]
    assert cells[0] == "3" and cells[1].startswith("c hears a")
    assert [cell.split("\n") for cell in cells[2:5]] == [[""], [""], ["gets m2", "vote=leader: 3", "sends m3->b"]]
    assert not page.is_visible("tr[data-step='3'] details table")
    page.click("tr[data-step='3'] summary")
    assert "vote = {leader: 3, epoch: 1}" in page.inner_text("tr[data-step='3'] details table")


def test_the_page_is_a_document_without_javascript(chromium, tmp_path):
    trace = shipped("an election in one step")
    (tmp_path / "trace.html").write_text(to_html(trace), encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "trace.html").as_uri() + "#step-8")
    shown = page.inner_text("body")
    assert trace.headline in shown and trace.clause in shown
    assert all(step.caption in shown for step in trace.steps)
    assert "Arrow keys" not in shown
    assert page.locator("svg .row:target").get_attribute("data-step") == "8"
    context.close()


def test_a_browser_reads_the_trace_in_the_page(opened):
    """The trace includes words that would end a script element if they were not escaped."""
    trace = replace(everything(), job="</script><script>throw 1</script><!-- <script>")
    page = opened("trace.html", to_html(trace))
    data = page.evaluate("JSON.parse(document.getElementById('itf').textContent)")
    assert read_itf(json.dumps(data)) == trace


def test_the_page_follows_the_readers_choice_of_a_dark_screen(page, tmp_path):
    (tmp_path / "trace.html").write_text(to_html(everything()), encoding="utf-8")
    backgrounds = {}
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto((tmp_path / "trace.html").as_uri())
        backgrounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert backgrounds["light"] == "rgb(255, 255, 255)"
    assert max(int(each) for each in backgrounds["dark"].removeprefix("rgb(").rstrip(")").split(",")) < 64
