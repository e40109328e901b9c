"""The explorer in a browser: walks by clicks and keys, saved traces, links, searches.

The fixture `walker` fails a test whose page sends a request to another server, or writes an error to the console.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checker.explorer import Handlers, Server
from checker.explorer.walk import WalkRequest
from checker.scenario import from_text
from checker.traces import read_itf, replay
from tests.support.explorer import SCRIPT, WRONG_ORDER, job, with_folder
from tests.support.page_scripts import CONTRAST, SIDEWAYS, SMALL

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

NAMES = ("r10-wrong-order", "r18-lock", "zookeeper-1419-never-elects", "r10-wrong-order-fine")
VISIBLE_MOVES = """() => {
  const list = document.getElementById("moves").getBoundingClientRect();
  const moves = [...document.querySelectorAll("button.move")].map((each) => each.getBoundingClientRect());
  return moves.filter((each) => each.top >= list.top && each.bottom <= Math.min(list.bottom, innerHeight)).length;
}"""


@contextmanager
def serving(names: tuple[str, ...]) -> Iterator[Server]:
    with Server(Handlers(map(with_folder, names))) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(NAMES) as served:
        yield served


@pytest.fixture
def walker(server: Server, context: BrowserContext, page: Page) -> Iterator[Page]:
    """The page at the first state of the first scenario; checks the requests and the console after the test."""
    asked: list[str] = []
    said: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(server.address)
    at_step(page, 0)
    yield page
    assert [url for url in asked if not url.startswith((server.address, "blob:", "data:"))] == []
    assert said == []


def at_step(page: Page, number: int) -> None:
    """Wait until the page shows the state after that step."""
    page.locator("#state-title", has_text=re.compile(f"after step {number}$")).wait_for()


def move(page: Page, caption: str) -> Locator:
    return page.locator("button.move").filter(has=page.get_by_text(caption, exact=True))


def walk(page: Page, captions: tuple[str, ...] = SCRIPT, begin: int = 0) -> None:
    for number, caption in enumerate(captions, begin + 1):
        move(page, caption).click()
        page.mouse.move(0, 0)
        at_step(page, number)


def begin_at(page: Page, server: Server, number: int) -> None:
    """Open the run in the wrong order after that step by its link, which is faster than clicks."""
    key = server.handlers.jobs()["jobs"][0]["key"]
    link = server.handlers.walk(WalkRequest(key, WRONG_ORDER[:number]))["link"]
    page.evaluate("(link) => { location.hash = link; }", link)
    at_step(page, number)


def choose(page: Page, name: str) -> None:
    entry = page.locator("#jobs option", has_text=f"/{name}.yaml").first
    page.select_option("#jobs", value=entry.get_attribute("value"))
    page.get_by_role("heading", name=job(name).name, exact=True).wait_for()


def red(where: Locator) -> bool:
    """Whether red is by far the strongest component of a text's colour."""
    colour = where.evaluate("element => getComputedStyle(element).color")
    r, g, b = map(int, re.findall(r"\d+", colour)[:3])
    return r > 1.5 * max(g, b)


def test_a_roll_out_in_the_wrong_order_is_walked_to_its_two_leaders(walker: Page) -> None:
    walk(walker, SCRIPT[:-1])
    last = move(walker, SCRIPT[-1])
    assert last.locator(".hint").all_text_contents() == ["✗ OneLeader fails", "■ nothing can happen after it"]
    assert red(last.locator(".hint.bad"))
    assert not walker.locator(".finding").count()
    last.click()
    banner = walker.locator(".finding.bad")
    assert banner.locator("strong").inner_text() == "violated: OneLeader at depth 8"
    assert "behind server.5 = [2, 4, 5]" in banner.inner_text()
    assert red(banner.locator("strong"))
    assert red(walker.locator("#truths .truth-fails .name"))
    assert walker.locator("#truths .truth-fails .name").inner_text().startswith("OneLeader")
    assert walker.locator(".end").inner_text() == "Nothing can happen any more: the run ends here."
    changed = walker.locator(".lane", has_text="server.5").locator(".changed").all_inner_texts()
    assert changed == ["state LEADING"]
    assert walker.locator("#picture .step").count() == 9
    assert walker.locator("#picture .row.selected").get_attribute("data-step") == "8"


def test_a_click_on_a_step_goes_back_to_it_and_forward_and_reload_show_the_rest(server: Server, walker: Page) -> None:
    begin_at(walker, server, 8)
    walker.locator("#picture .step[data-step='5'] .caption").first.click()
    at_step(walker, 5)
    assert not walker.locator(".finding").count()
    walker.click("#forward")
    at_step(walker, 6)
    walker.reload()
    at_step(walker, 6)
    for number in (7, 8):
        walker.keyboard.press("ArrowRight")
        at_step(walker, number)
    assert walker.locator("#forward").is_disabled()
    walker.go_back()
    at_step(walker, 7)
    walker.click("#reset")
    at_step(walker, 0)
    assert walker.locator("#back").is_disabled() and walker.locator("#reset").is_disabled()


def test_another_move_than_before_leaves_nothing_to_go_forward_to(server: Server, walker: Page) -> None:
    begin_at(walker, server, 2)
    walker.click("#back")
    at_step(walker, 1)
    assert move(walker, SCRIPT[1]).locator(".hint").all_text_contents() == ["→ forward"]
    move(walker, "server.3 has lost its leader server.2").click()
    at_step(walker, 2)
    assert walker.locator("#forward").is_disabled()


def test_the_whole_walk_is_taken_with_keys_alone(walker: Page) -> None:
    walker.keyboard.press("ArrowDown")
    walker.keyboard.press("Enter")
    at_step(walker, 1)
    walker.keyboard.press("/")
    walker.keyboard.type("server.3 has LOST")
    assert walker.locator("button.move").count() == 1
    assert walker.locator("#count").inner_text() == "1 of 4 moves"
    walker.keyboard.press("Enter")
    at_step(walker, 2)
    assert walker.locator("button.move").count() == walker.locator("button.move:visible").count() > 1
    walker.keyboard.press("Backspace")
    at_step(walker, 1)
    walker.keyboard.press("?")
    assert walker.locator("dialog").is_visible()
    walker.keyboard.press("Escape")
    walker.keyboard.press("Home")
    at_step(walker, 0)


def test_enter_takes_the_highlighted_first_move_at_once(walker: Page) -> None:
    assert walker.locator("button.move[aria-current]").inner_text() == SCRIPT[0]
    walker.keyboard.press("Enter")
    at_step(walker, 1)
    first = walker.locator("button.move").first
    assert first.get_attribute("aria-current") == "true"
    assert walker.locator("button.move[aria-current]").count() == 1
    caption = first.locator(".caption").inner_text()
    walker.keyboard.press("Enter")
    at_step(walker, 2)
    assert walker.locator("#picture .step[data-step='2'] title").first.text_content() == f"step 2: {caption}"


def test_enter_presses_the_focused_button_and_takes_no_move(walker: Page) -> None:
    walker.keyboard.press("Enter")
    at_step(walker, 1)
    walker.locator("#back").focus()
    walker.keyboard.press("Enter")
    at_step(walker, 0)


def test_enter_takes_the_first_move_after_a_click_on_start_over(walker: Page) -> None:
    walker.keyboard.press("Enter")
    at_step(walker, 1)
    walker.click("#reset")
    at_step(walker, 0)
    walker.keyboard.press("Enter")
    at_step(walker, 1)


def test_pointing_at_a_move_shows_what_it_would_change(server: Server, walker: Page) -> None:
    begin_at(walker, server, 5)
    move(walker, SCRIPT[5]).hover()
    assert walker.locator("#preview").inner_text() == SCRIPT[5]
    would = walker.locator(".lane", has_text="server.1").locator(".would").all_inner_texts()
    assert would == ["state LOOKING → FOLLOWING", "vote leader: 1 → leader: 3"]
    walker.mouse.move(0, 0)
    at_step(walker, 5)
    assert not walker.locator(".would").count()


def test_a_link_shows_the_same_state_in_a_new_page(server: Server, walker: Page, context: BrowserContext) -> None:
    begin_at(walker, server, 6)
    state, picture = walker.locator("#lanes").inner_text(), walker.locator("#picture").inner_html()
    other = context.new_page()
    other.goto(walker.url)
    at_step(other, 6)
    assert (other.locator("#lanes").inner_text(), other.locator("#picture").inner_html()) == (state, picture)


def test_a_stale_link_is_refused_with_the_reason_and_the_page_begins_anew(server: Server, page: Page) -> None:
    key = server.handlers.jobs()["jobs"][0]["key"]
    stale = {
        "0123456789abcdef/0/0123456789ab": "this link is of another run (0123456789abcdef)",
        f"{key}/0.1/0123456789ab": "this link was made by another release",
        f"{key}/0.77/0123456789ab": "step 2 is move number 77, and only 4 can happen there",
        f"{key}/0.x/0123456789ab": "this link is not whole",
    }
    for link, why in stale.items():
        page.goto("about:blank")
        page.goto(f"{server.address}#{link}")
        at_step(page, 0)
        page.locator("#message.bad", has_text=why).wait_for()
        assert page.url.startswith(f"{server.address}#{key}//")


def test_a_walk_is_saved_replayed_and_opened_again(server: Server, walker: Page, tmp_path: Path) -> None:
    begin_at(walker, server, 8)
    walker.click("#save summary")
    with walker.expect_download() as download:
        walker.locator("#formats a", has_text="itf").click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    assert saved.name == "R10-three-to-five-in-the-wrong-order-OneLeader.itf.json"
    found = replay(read_itf(saved.read_text(encoding="utf-8")), job(NAMES[0])).found
    assert found is not None and found.prop.name == "OneLeader"
    walker.keyboard.press("Escape")
    walker.click("#reset")
    at_step(walker, 0)
    walker.set_input_files("#file", saved)
    at_step(walker, 8)
    walker.locator("#message.good", has_text="was replayed: violated: OneLeader at depth 8").wait_for()
    assert walker.locator(".finding.bad strong").inner_text() == "violated: OneLeader at depth 8"
    walker.click("#back")
    at_step(walker, 7)
    assert walker.locator("button.move").count() == 4


def test_a_trace_that_is_dropped_is_walked_from_and_one_that_is_none_is_refused(server: Server, page: Page) -> None:
    page.goto(server.address)
    at_step(page, 0)
    handlers = server.handlers
    text = handlers.file(handlers.jobs()["jobs"][0]["key"], WRONG_ORDER[:3], "itf", None)[2]
    drop = """(text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], "a run.itf.json"));
      window.dispatchEvent(new DragEvent("dragover", {dataTransfer: data, cancelable: true}));
      const offered = !document.getElementById("drop").hidden;
      window.dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
      return offered;
    }"""
    assert page.evaluate(drop, text)
    page.locator("#message.good", has_text="a run.itf.json was replayed: walked: 3 moves, without a finding").wait_for()
    at_step(page, 3)
    page.evaluate(drop, "no trace")
    page.locator("#message.bad", has_text="a run.itf.json is not a trace: it is not JSON").wait_for()
    at_step(page, 3)


def test_views_open_beside_the_page_and_reach_nothing(server: Server, walker: Page, context: BrowserContext) -> None:
    begin_at(walker, server, 3)
    for name, seen in (("html", "server.5 has lost"), ("svg", "server.5 has lost"), ("text", "at the end")):
        walker.click("#save summary")
        with context.expect_page() as opened:
            walker.locator("#formats li", has_text=name).locator("a", has_text="open").click()
        opened.value.wait_for_load_state()
        assert seen in " ".join(opened.value.locator(":root").text_content().split())
        assert opened.value.evaluate("() => window.origin") == "null"
        opened.value.close()
        walker.bring_to_front()
        walker.keyboard.press("Escape")


def test_what_is_looked_for_is_walked_to(server: Server, walker: Page) -> None:
    begin_at(walker, server, 1)
    walker.select_option("#goal", label="OneLeader fails")
    walker.click("#look")
    at_step(walker, 8)
    walker.locator("#progress", has_text="Found 7 moves ahead").wait_for()
    walker.go_back()
    at_step(walker, 1)
    walker.select_option("#goal", label="a move with these words …")
    walker.fill("#words", "elects server.3")
    walker.press("#words", "Enter")
    walker.locator("#progress", has_text="Found 3 moves ahead").wait_for()
    at_step(walker, 4)
    walker.select_option("#goal", label="LeaderIsAVoter fails")
    walker.click("#look")
    walker.locator("#progress", has_text="Not ahead of here: all").wait_for()
    at_step(walker, 4)


def test_the_shortest_counterexample_is_walked_to_and_told_message_by_message(walker: Page) -> None:
    walker.click("#whole")
    at_step(walker, 8)
    assert walker.locator("#results button").all_inner_texts() == ["violated: OneLeader at depth 8"]
    walker.click("#refine")
    walker.locator("#progress", has_text="The same run message by message").wait_for()
    assert walker.locator(".finding.bad strong").inner_text().startswith("violated: OneLeader at depth")
    assert walker.locator("#picture .message").count() > 4
    assert "grain: fine, along a run by the oracle" in walker.locator("#about").inner_text()


def test_a_search_is_cancelled(walker: Page) -> None:
    choose(walker, "r18-lock")
    walker.select_option("#goal", label="a move with these words …")
    walker.fill("#words", "nobody says this")
    walker.click("#look")
    walker.locator("#progress", has_text="states seen, at depth").wait_for()
    walker.click("#cancel")
    walker.locator("#progress", has_text="Cancelled.").wait_for()
    assert walker.locator("#cancel").is_hidden()


def test_a_recipe_is_walked_until_somebody_holds_the_lock(walker: Page) -> None:
    choose(walker, "r18-lock")
    walker.select_option("#group", "action")
    assert walker.locator("#moves h3").first.inner_text() == "want"
    walker.select_option("#goal", label="Held is witnessed")
    walker.click("#look")
    at_step(walker, 5)
    assert walker.locator(".finding.good strong").inner_text() == "witnessed: Held at depth 5"
    assert walker.locator("#truths .truth-witnessed").inner_text().startswith("★")
    assert walker.locator("#picture .message").count() >= 3
    assert not walker.locator(".finding.bad").count()


def test_a_run_that_never_ends_is_walked_round_and_told_as_one(walker: Page) -> None:
    choose(walker, "zookeeper-1419-never-elects")
    walker.click("#whole")
    at_step(walker, 6)
    told = walker.locator(".finding.bad strong").all_inner_texts()
    assert told == [
        "not recoverable: Settles, a stem of 2 moves and a loop of 4 moves",
        "violated: Elects, a stem of 2 moves and a loop of 4 moves",
    ]
    assert walker.locator("#picture .loop").count() == 1
    assert walker.locator("#truths .truth-fails .word").all_inner_texts() == ["never on this run"] * 2
    assert walker.locator("button.move .hint", has_text="as after step 3").count() == 1
    walker.click("#back")
    at_step(walker, 5)
    assert not walker.locator(".finding").count()


def test_the_moves_are_visible_without_scrolling(page: Page) -> None:
    """In a window of 1280 by 800: all nine moves of a scenario with 24 properties, before and after a search."""
    page.set_viewport_size({"width": 1280, "height": 800})
    with serving(("zab-3-servers",)) as served:
        page.goto(served.address)
        at_step(page, 0)
        assert page.locator("#truths li").count() == 24
        assert page.locator("button.move").count() == page.evaluate(VISIBLE_MOVES) == 9
        page.select_option("#goal", label="a move with these words …")
        page.fill("#words", "server.1 crashes")
        page.click("#look")
        at_step(page, 1)
        assert page.locator("button.move").count() == page.evaluate(VISIBLE_MOVES) > 0


def test_the_moves_with_long_captions_are_visible_without_scrolling(walker: Page) -> None:
    """Nine moves of two lines each, before the last move of the run message by message."""
    walker.click("#whole")
    at_step(walker, 8)
    walker.click("#refine")
    walker.locator("#progress", has_text="The same run message by message").wait_for()
    walker.click("#back")
    walker.locator(".hint", has_text="forward").wait_for()
    assert walker.locator("button.move").count() == walker.evaluate(VISIBLE_MOVES) == 9


def test_the_moves_come_right_below_the_picture_in_a_narrow_window(walker: Page) -> None:
    walker.set_viewport_size({"width": 700, "height": 800})
    moves = walker.locator("button.move").first.bounding_box()
    assert moves is not None and moves["y"] + moves["height"] < 800
    assert walker.locator("#picture").bounding_box()["y"] < moves["y"]  # type: ignore[index]


def test_a_walk_on_a_phone_shows_the_picture_and_the_moves_together(walker: Page) -> None:
    """At 390 pixels the panel of moves lies below the picture, not on it; clicks and keys take moves."""
    walker.set_viewport_size({"width": 390, "height": 844})
    for number, caption in enumerate(SCRIPT, 1):
        if number % 2:
            move(walker, caption).click()
            walker.mouse.move(0, 0)
        else:
            walker.locator("#filter").fill(caption)
            walker.locator("#filter").press("Enter")
        at_step(walker, number)
        picture, panel = (walker.locator(name).bounding_box() for name in ("#picture", "#next"))
        assert picture is not None and panel is not None
        assert picture["height"] > 90 and panel["height"] > 90 and picture["y"] + picture["height"] <= panel["y"]
        assert panel["y"] + panel["height"] - picture["y"] <= 844, "one screen has both"
        assert (walker.evaluate(SIDEWAYS), walker.evaluate(SMALL)) == (0, [])
    walker.click("#save summary")
    sheet = walker.locator(".sheet").bounding_box()
    assert sheet is not None and sheet["x"] >= 0 and sheet["x"] + sheet["width"] <= 390 and sheet["y"] >= 0


def test_many_moves_scroll_within_their_panel_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    with serving(("zab-3-servers",)) as served:
        page.goto(served.address)
        at_step(page, 0)
        for _ in range(9):
            page.keyboard.press("ArrowDown")
        last = page.locator("button.move").last
        assert last.evaluate("each => each === document.activeElement")
        picture, chosen = page.locator("#picture").bounding_box(), last.bounding_box()
        assert picture is not None and chosen is not None
        assert picture["y"] + picture["height"] > 0 and chosen["y"] + chosen["height"] <= 844
        page.keyboard.press("Enter")
        at_step(page, 1)
        assert page.evaluate(SIDEWAYS) == 0


def test_no_text_is_smaller_than_12_pixels(server: Server, walker: Page) -> None:
    """Also in the picture, which is scaled to the width of its panel."""
    smaller = """() => [...document.querySelectorAll("header *, main *")]
      .filter((each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
      .filter((each) => !["title", "option", "optgroup"].includes(each.nodeName) && each.checkVisibility())
      .map((each) => [parseFloat(getComputedStyle(each).fontSize) * (each.closest("svg")
        ? each.closest("svg").getBoundingClientRect().width / each.closest("svg").viewBox.baseVal.width : 1), each])
      .filter(([size]) => size < 11.99).map(([size, each]) => `${size}: ${each.textContent}`)"""
    for name in ("r10-wrong-order-fine", "r18-lock"):
        choose(walker, name)
        assert walker.evaluate(smaller) == []
    choose(walker, NAMES[0])
    begin_at(walker, server, 8)
    assert walker.evaluate(smaller) == []


def test_the_names_of_the_lanes_stay_visible_while_the_picture_scrolls(server: Server, walker: Page) -> None:
    begin_at(walker, server, 8)
    picture, heads = walker.locator("#picture"), walker.locator("#picture .heads")
    names = [f"server.{number}" for number in range(1, 6)]
    edge = picture.bounding_box()
    assert edge is not None
    assert heads.locator(".lane-name").all_text_contents() == names
    for scroll in ("element => element.scrollHeight", "element => element.scrollHeight / 2"):
        picture.evaluate(f"element => {{ element.scrollTop = ({scroll})(element); }}")
        heads.locator("svg").wait_for()
        strip = heads.locator("svg").bounding_box()
        assert strip is not None and abs(strip["y"] - edge["y"]) < 1
        line = walker.locator("#picture .life").nth(0).bounding_box()
        box = heads.locator(".lane rect").first.bounding_box()
        assert line is not None and box is not None and box["x"] < line["x"] < box["x"] + box["width"]
    picture.evaluate("element => { element.scrollTop = 0; }")
    heads.wait_for(state="hidden")


def test_entries_of_the_chooser_show_name_folder_and_expected_verdict(walker: Page) -> None:
    assert walker.locator("#jobs option").all_text_contents()[: len(NAMES)] == [
        "R10, three to five in the wrong order · r10-three-to-five/r10-wrong-order.yaml"
        " · expected: violated · grain: oracle",
        "R18, the lock · r18-lock/r18-lock.yaml · expected: passed · grain: each request",
        "ZOOKEEPER-1419, two servers vote for ever · liveness/zookeeper-1419-never-elects.yaml"
        " · expected: violated · grain: fine",
        "R10, three to five in the wrong order, message by message · r10-three-to-five/r10-wrong-order-fine.yaml"
        " · expected: violated · grain: fine",
    ]
    choose(walker, "r18-lock")
    assert walker.locator("#about").inner_text().startswith("r18-lock/r18-lock.yaml · grain: each request")
    assert walker.locator("#jobs").get_attribute("title") == walker.locator("#jobs option").nth(1).text_content()


def test_nothing_spills_over_and_everything_has_a_name(walker: Page) -> None:
    choose(walker, "r10-wrong-order-fine")
    spilled = """() => [...document.querySelectorAll("header *, main button, main select, main h2, article.lane")]
      .filter((each) => each.checkVisibility() && each.getBoundingClientRect().right > innerWidth + 1)
      .map((each) => each.id || each.className || each.textContent)"""
    unnamed = """() => [...document.querySelectorAll("button, input, select, a, section, [role]")]
      .filter((each) => !(each.getAttribute("aria-label") || each.getAttribute("aria-labelledby") || each.textContent
        || each.labels?.length) && each.checkVisibility()).map((each) => each.outerHTML)"""
    assert walker.evaluate(unnamed) == []
    for width, height in ((1280, 800), (900, 700), (700, 900)):
        walker.set_viewport_size({"width": width, "height": height})
        assert walker.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert walker.evaluate(spilled) == []


def test_words_can_be_read_on_light_and_on_dark(server: Server, walker: Page) -> None:
    begin_at(walker, server, 8)
    for scheme in ("light", "dark"):
        walker.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert walker.evaluate(CONTRAST) == [], scheme


def test_words_of_a_scenario_are_never_read_as_markup(page: Page) -> None:
    name = "<img src=x onerror=boom()> & <b>R18</b>"
    text = job("r18-lock").source["text"].replace("name: R18, the lock", f"name: {name}")
    with Server(Handlers([(from_text(text, lambda _: None), "")])) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            page.goto(served.address)
            at_step(page, 0)
            assert page.locator("h1").inner_text() == name
            assert not page.locator("img, h1 b").count()
        finally:  # otherwise a failure would leave a thread that blocks the end of the test process
            served.shutdown()
            thread.join()
