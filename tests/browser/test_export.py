"""Exported pages from `file://` in a browser: stories by keyboard, links, a narrow window, and the views of the server.

The fixture `reader` fails a test whose page asks any host for anything, or writes an error to the console.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checker.engine.result import Limits
from checker.explorer import Handlers
from checker.explorer.export import export
from checker.explorer.stories import load_any
from checker.explorer.walk import WalkRequest
from checker.scenario import from_text
from tests.support.explorer import job, random_walk
from tests.support.page_scripts import CONTRAST, SIDEWAYS, SMALL
from tests.support.pictures import tree

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

STORIES = sorted((Path(__file__).parents[2] / "docs" / "stories").glob("*.story.yaml"))[:2]
FIRST_PICTURE_MS = 5000
VIEW = "(body) => modules['server.js'].ask('/api/walk', body)"


@pytest.fixture(scope="module")
def stories() -> list[tuple[Any, str, Any]]:
    """The two stories with the smallest spaces, as jobs of the handlers."""
    return [(loaded, path.parent.name, story) for loaded, path, story in map(load_any, STORIES)]


@pytest.fixture(scope="module")
def address(stories: list[tuple[Any, str, Any]], tmp_path_factory: pytest.TempPathFactory) -> str:
    return export(Handlers(stories), tmp_path_factory.mktemp("page"))[0].as_uri()


@pytest.fixture
def reader(address: str, context: BrowserContext, page: Page) -> Iterator[Page]:
    asked: list[str] = []
    said: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text))
    page.goto(address)
    page.locator("#picture .step").first.wait_for(timeout=FIRST_PICTURE_MS)
    yield page
    assert {url.split("#")[0] for url in asked} <= {address}
    assert said == []


def told(page: Page, story: Any, number: int, language: str = "en") -> None:
    """Wait until the page tells a stop of a story and shows its state."""
    stop = story["stops"][number]
    page.locator("#told", has_text=stop["text"][language]).wait_for()
    step = len(stop["path"])
    title = {"en": f"The state after step {step}", "zh": f"第 {step} 步之后的状态"}[language]
    page.locator("#state-title", has_text=title).wait_for()


def test_a_story_is_read_with_the_keyboard_alone_in_both_languages(reader: Page, stories: list[Any]) -> None:
    first, second = stories[0][2], stories[1][2]
    for number in range(len(first["stops"])):
        told(reader, first, number)
        reader.keyboard.press("ArrowRight")
    for number in range(len(second["stops"])):
        told(reader, second, number)
        reader.keyboard.press("ArrowRight")
    assert reader.locator(".finding.bad strong").inner_text() == "violated: OneLeader at depth 8"
    reader.keyboard.press("ArrowLeft")
    told(reader, second, len(second["stops"]) - 2)
    for _ in range(40):
        reader.keyboard.press("Tab")
        if reader.evaluate("document.activeElement.id") == "language":
            break
    assert reader.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    reader.keyboard.press("Enter")
    told(reader, second, len(second["stops"]) - 2, "zh")
    assert reader.locator("#run-title").inner_text() == "到目前为止的执行过程"
    assert reader.evaluate("document.documentElement.lang") == "zh"
    reader.keyboard.press("ArrowRight")
    told(reader, second, len(second["stops"]) - 1, "zh")
    reader.reload()
    told(reader, second, len(second["stops"]) - 1, "zh")


def test_a_reader_who_leaves_the_story_is_told_so_and_comes_back(reader: Page, stories: list[Any]) -> None:
    story = stories[1][2]
    reader.select_option("#jobs", label=story["title"]["en"])
    for number in range(4):
        told(reader, story, number)
        if number < 3:
            reader.keyboard.press("ArrowRight")
    reader.locator("button.move", has_text="server.2 joins server.3").click()
    reader.mouse.move(0, 0)
    reader.locator("#left").wait_for()
    reader.keyboard.press("ArrowLeft")
    told(reader, story, 3)
    assert reader.locator("#left").is_hidden()


def test_a_link_opens_its_state_after_a_reload_and_in_a_new_page(reader: Page, context: BrowserContext) -> None:
    reader.locator("button.move").first.click()
    reader.locator("#state-title", has_text="after step 1").wait_for()
    shown = reader.locator("#lanes").inner_text(), reader.locator("#picture").inner_html()
    other = context.new_page()
    other.goto(reader.url)
    reader.reload()
    for page in (other, reader):
        page.locator("#state-title", has_text="after step 1").wait_for()
        assert (page.locator("#lanes").inner_text(), page.locator("#picture").inner_html()) == shown


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("0123456789abcdef/0/0123456789ab", "this link is of another run (0123456789abcdef)"),
        ("{key}/0/0123456789ab", "this link was made on another page"),
        ("{key}/7/{check}", "step 1 is move number 7, and only 1 can happen there"),
        ("{key}/__proto__/{check}", "this link is not whole"),
    ],
)
def test_a_link_of_another_page_is_refused_and_the_page_begins_anew(reader: Page, link: str, why: str) -> None:
    key, _, check = reader.url.partition("#")[2].split("/")
    address = reader.url.partition("#")[0]
    reader.goto("about:blank")
    reader.goto(f"{address}#{link.format(key=key, check=check)}")
    reader.locator("#message.bad", has_text=why).wait_for()
    assert reader.locator("#picture .step").count() == 1


def test_a_phone_shows_each_stop_without_scrolling_to_the_side(reader: Page, stories: list[Any]) -> None:
    reader.set_viewport_size({"width": 390, "height": 844})
    for language in ("en", "zh"):
        for number in range(len(stories[0][2]["stops"])):
            told(reader, stories[0][2], number, language)
            assert (reader.evaluate(SIDEWAYS), reader.evaluate(SMALL)) == (0, [])
            reader.locator("#following").click()
        reader.locator("#language").click()
        reader.select_option("#jobs", index=0)


OWN_TEXTS = """() => [
  ...[...document.querySelectorAll("h2, main label > span, #truths .word, #held, #keys dd, button:not(.move)")]
    .filter((each) => !each.closest("[lang=en], #message")).map((each) => each.textContent),
  ...["title", "placeholder", "aria-label"].flatMap((name) =>
    [...document.querySelectorAll(`:is(button, input, #picture)[${name}]:not(.close)`)]
      .map((each) => each.getAttribute(name))),
]"""


def test_the_texts_of_the_page_follow_the_language_of_the_story(reader: Page) -> None:
    english = reader.evaluate(OWN_TEXTS)
    reader.locator("#language").click()
    reader.locator("#state-title", has_text="第 0 步之后的状态").wait_for()
    chinese = reader.evaluate(OWN_TEXTS)
    assert reader.evaluate("document.documentElement.lang") == "zh"
    assert [text for text in chinese if text and not re.search("[\u4e00-\u9fff]", text)] == []
    assert reader.locator("button.move .caption").inner_text() == "the operator stops server.2"
    reader.locator("#language").click()
    reader.locator("#state-title", has_text="after step 0").wait_for()
    assert reader.evaluate(OWN_TEXTS) == english
    assert reader.evaluate("document.documentElement.lang") == "en"


OVERLAPS = """() => {
  const labels = [...document.querySelectorAll("#picture > svg text.label")]
    .map((each) => [each.lastChild.textContent, each.getBBox()]);
  return labels.flatMap(([one, a], place) => labels.slice(place + 1)
    .filter(([, b]) => a.x < b.x + b.width && b.x < a.x + a.width && Math.abs(a.y - b.y) < 10)
    .map(([other]) => [one, other]));
}"""


def test_no_label_of_a_message_lies_on_another_one_in_the_first_story(reader: Page, stories: list[Any]) -> None:
    """A message to a server that is down stays under way, beside the label of one that was lost."""
    for number in range(len(stories[0][2]["stops"])):
        told(reader, stories[0][2], number)
        assert reader.evaluate(OVERLAPS) == []
        reader.keyboard.press("ArrowRight")


ABOVE = """() => document.querySelector("#picture > svg .lane rect").getBoundingClientRect().top
  - document.querySelector("#picture").getBoundingClientRect().top"""


def test_the_first_picture_begins_with_its_lanes_and_the_names_of_properties_are_whole(reader: Page) -> None:
    for width in (1280, 390):
        reader.set_viewport_size({"width": width, "height": 844})
        reader.wait_for_function(f"(({ABOVE})()) >= 0 && (({ABOVE})()) < 20")
        split = "[...document.querySelectorAll('#truths .name')].map((each) => each.firstChild).filter((name) => {"
        split += "const range = document.createRange(); range.selectNode(name);"
        split += "return /^\\w+$/.test(name.data) && range.getClientRects().length > 1; }).map((name) => name.data)"
        assert reader.evaluate(split) == []


def test_words_can_be_read_on_light_and_on_dark(reader: Page) -> None:
    for scheme in ("light", "dark"):
        reader.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert reader.evaluate(CONTRAST) == [], scheme


def test_what_needs_a_program_is_absent_and_the_page_says_what_it_holds(reader: Page) -> None:
    assert not reader.locator("#open, #file, #save, #find, #drop").count()
    assert "All 27 states of this scenario are in this file." in reader.locator("#held").inner_text()


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("r10-wrong-order", 9),
        ("r7-worked-example", 9),
        ("r10-leader-last-partition", 7),
        ("acks-survive-truncation", 6),
        ("r20-unfenced", 7),
        ("r13-moving", 5),
        ("nodes-6-every-fault", 5),
    ],
)
def test_an_exported_walk_is_the_walk_of_the_server_with_its_picture(
    name: str, depth: int, page: Page, tmp_path: Path
) -> None:
    """The server is another computation of the same view, in Python; links differ, and moves end at the depth."""
    handlers = Handlers([(replace(job(name), limits=Limits(depth=depth)), "")])
    key = handlers.jobs()["jobs"][0]["key"]
    page.goto(export(handlers, tmp_path)[0].as_uri())
    for seed in range(4):
        for path in random_walk(name, seed, depth):
            served = handlers.walk(WalkRequest(key, path))
            shown = page.evaluate(VIEW, {"job": key, "path": list(path), "check": None})
            assert tree(shown.pop("picture")) == tree(served.pop("picture")), path
            for lane in shown["lanes"]:
                assert all(field.pop("whole").strip("{}") == field["text"].strip("{}") for field in lane["fields"])
            if shown.pop("cut"):
                assert len(path) == depth and served["moves"] and not shown["moves"]
                shown["moves"] = served["moves"]
            shown |= {"link": served["link"]}
            assert shown.pop("states") > 0
            assert shown == served


def test_words_of_a_scenario_are_never_read_as_markup(page: Page, tmp_path: Path) -> None:
    name = "</script><img src=x onerror=boom()> <!-- & <b>R18</b>"
    text = job("r18-lock").source["text"].replace("name: R18, the lock", f"name: '{name}'\nlimits: {{depth: 2}}")
    page.goto(export(Handlers([(from_text(text, lambda _: None), "")]), tmp_path)[0].as_uri())
    page.locator("#picture .step").first.wait_for()
    assert page.locator("h1").inner_text() == name
    assert not page.locator("img, h1 b").count()
