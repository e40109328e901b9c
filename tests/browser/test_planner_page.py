"""The planner's page in a browser: files are dropped, chosen or pasted, and the plan is shown with its picture."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from checker.planner_page import PlannerHandlers, PlannerServer
from checker.rollout.output.cache import AnswerCache
from checker.scenario import bundled

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

FOLDERS = bundled()[0].parent.parent / "rollouts"
DROP = """([id, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  document.querySelector(`#${id} .drop`).dispatchEvent(
    new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlannerServer]:
    with PlannerServer(PlannerHandlers(AnswerCache(tmp_path_factory.mktemp("answers")))) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


@pytest.fixture
def operator(server: PlannerServer, context: BrowserContext, page: Page) -> Iterator[Page]:
    """The page; checks after the test that it asked no other server, and that its console is empty."""
    asked: list[str] = []
    said: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(server.address)
    yield page
    assert [url for url in asked if not url.startswith(server.address)] == []
    assert said == []


def text(folder: str) -> str:
    return (FOLDERS / folder / "zoo.cfg").read_text()


def test_dropped_files_are_judged_and_the_danger_is_a_picture(operator: Page) -> None:
    for part, folder in (("before", "five"), ("after", "three")):
        operator.evaluate(DROP, [part, "zoo.cfg", text(folder)])
        operator.locator(f"#{part} li code", has_text="zoo.cfg").wait_for()
    operator.click("#judge")
    operator.locator("#plan h1").wait_for()
    assert operator.inner_text("#plan h1") == "Do it in two stages: remove server 4, then remove server 5"
    picture = operator.locator("#plan figure.picture svg").first
    assert "OneLeader" in picture.inner_html() and picture.bounding_box() is not None
    assert not operator.locator("#plan", has_text="sequenceDiagram").count()
    folded = operator.locator("#plan > details")
    assert folded.count() and all(not folded.nth(place).get_attribute("open") for place in range(folded.count()))
    operator.click("#judge")
    operator.locator("#kept", has_text="answered before").wait_for()


def test_a_mistake_in_a_pasted_file_is_told_with_its_line_and_is_no_markup(operator: Page) -> None:
    operator.fill("#before textarea", text("three"))
    bad = "server.1=<img src=x>:2888:3888\n"
    operator.fill("#after textarea", bad)
    operator.click("#judge")
    message = operator.locator("#message.bad", has_text="after/zoo.cfg:1: ")
    message.wait_for()
    assert not message.locator("img").count() and operator.locator("#answer").is_hidden()


def test_chosen_files_are_listed_and_removed(operator: Page) -> None:
    operator.set_input_files("#before input", str(FOLDERS / "three" / "zoo.cfg"))
    operator.get_by_role("button", name="Remove zoo.cfg").click()
    assert operator.locator("#before li").count() == 0
    operator.click("#judge")
    operator.locator("#message.bad", has_text="there are no files before the change").wait_for()
