"""The planner's page in a browser: folders and files are dropped, chosen or pasted, and the plan is shown.

The fixture `operator` fails a test whose page sends a request to another server, or writes an error to the console.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checker.planner_page import FIELDS, PlannerHandlers, PlannerServer
from checker.rollout.output.cache import AnswerCache
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import RunSpec
from checker.scenario import bundled
from tests.support.page_scripts import CONTRAST, SIDEWAYS, SMALL

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

FOLDERS = bundled()[0].parent.parent / "rollouts"
DROP = """([id, name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  document.querySelector(`#${id} .drop`).dispatchEvent(
    new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
}"""


PART = "(element) => element.closest('fieldset').id"
DROP_FOLDER = """([id, tree]) => {
  const entry = ([name, content], path) => typeof content === "string"
    ? { name, fullPath: `${path}/${name}`, isFile: true, file: (take) => take(new File([content], name)) }
    : { name, fullPath: `${path}/${name}`, isFile: false, createReader: () => {
        const parts = [Object.entries(content).map((each) => entry(each, `${path}/${name}`)), []];
        return { readEntries: (take) => take(parts.shift()) };
      } };
  const items = Object.entries(tree).map((each) => ({ webkitGetAsEntry: () => entry(each, "") }));
  const event = new Event("drop", { bubbles: true, cancelable: true });
  Object.defineProperty(event, "dataTransfer", { value: { items, files: [] } });
  document.querySelector(`#${id} .drop`).dispatchEvent(event);
}"""


def served(handlers: PlannerHandlers) -> Iterator[PlannerServer]:
    with PlannerServer(handlers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlannerServer]:
    yield from served(PlannerHandlers(AnswerCache(tmp_path_factory.mktemp("answers"))))


class SlowRuns:
    """Runs that end when the test says so."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def run(self, spec: RunSpec, _seconds: float) -> RunResult:
        assert self.may_end.wait(60)
        return RunResult(spec, SafetyVerdict.SAFE, RunEnd.EXHAUSTED, 100, 10, 1.0, (), spec.name)


@pytest.fixture
def slow() -> SlowRuns:
    return SlowRuns()


@pytest.fixture
def slow_server(slow: SlowRuns) -> Iterator[PlannerServer]:
    yield from served(PlannerHandlers(AnswerCache(None), slow.run))


@pytest.fixture
def operator(server: PlannerServer, context: BrowserContext, page: Page) -> Iterator[Page]:
    """The page; checks after the test that it asked no other server, and that its console is empty."""
    asked: list[str] = []
    said: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(server.address)
    page.locator(".field").first.wait_for(state="attached")
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
    assert "violated: " in picture.inner_html() and picture.bounding_box() is not None
    assert not operator.locator("#plan", has_text="sequenceDiagram").count()
    folded = operator.locator("#plan > details")
    assert folded.count() and all(not folded.nth(place).get_attribute("open") for place in range(folded.count()))
    assert operator.locator("#release").is_hidden()
    operator.locator("#plan > details", has=operator.locator("a[href='#release']")).first.locator("summary").click()
    operator.locator("#plan a[href='#release']").first.click()
    operator.get_by_label("Release now").wait_for()
    operator.click("#judge")
    operator.locator("#kept", has_text="answered before").wait_for()
    operator.click("#after .clear")
    assert operator.inner_text("#kept") == "The question has changed since; judge it again."


def test_a_mistake_in_a_pasted_file_is_told_with_its_line_and_is_no_markup(operator: Page) -> None:
    operator.fill("#before textarea", text("three"))
    bad = "server.1=<img src=x>:2888:3888\n"
    operator.fill("#after textarea", bad)
    operator.click("#judge")
    error = operator.locator("#after .error", has_text="after/zoo.cfg:1: ")
    error.wait_for()
    assert not error.locator("img").count() and operator.locator("#answer").is_hidden()


def folder(root: Path, members: tuple[int, ...], line: str = "") -> Path:
    """A folder for each server with its zoo.cfg and its myid, in a folder of this name."""
    lines = "".join(f"server.{sid}=zk{sid}:2888:3888\n" for sid in members)
    for sid in members:
        place = root / f"host-{'abcdefg'[sid]}"
        place.mkdir(parents=True)
        (place / "zoo.cfg").write_text(f"dataDir=/data\nclientPort=2181\n{lines}{line}")
        (place / "myid").write_text(f"{sid}\n")
    return root


def choose(page: Page, part: str, path: Path) -> None:
    page.set_input_files(f"#{part} input[webkitdirectory]", path)
    page.locator(f"#{part} li").first.wait_for(state="attached")


def listed(page: Page, part: str) -> list[str]:
    return sorted(page.locator(f"#{part} li code").all_text_contents())


def tree(path: Path) -> dict[str, object]:
    return {each.name: tree(each) if each.is_dir() else each.read_text() for each in sorted(path.iterdir())}


def test_chosen_files_are_listed_and_removed(operator: Page) -> None:
    operator.set_input_files("#before input[multiple]", str(FOLDERS / "three" / "zoo.cfg"))
    operator.get_by_role("button", name="Remove zoo.cfg").click()
    assert operator.locator("#before li").count() == 0
    operator.click("#judge")
    operator.locator("#before .error", has_text="there are no files before the change").wait_for()


def test_a_folder_is_chosen_for_each_side_and_a_third_one_for_now(operator: Page, tmp_path: Path) -> None:
    """The ids are those of the myid files, whatever the folders are called; the answer goes on from now."""
    choose(operator, "before", folder(tmp_path / "old", (1, 2, 3)))
    assert listed(operator, "before") == sorted(f"host-{x}/{name}" for x in "bcd" for name in ("myid", "zoo.cfg"))
    choose(operator, "after", folder(tmp_path / "new", (1, 2, 3, 4)))
    now = folder(tmp_path / "now", (1, 2, 3))
    new = folder(tmp_path / "copy", (1, 2, 3, 4))
    (now / "host-b" / "zoo.cfg").write_text((new / "host-b" / "zoo.cfg").read_text())
    operator.get_by_text("The roll-out was interrupted").click()
    choose(operator, "now", now)
    operator.click("#judge")
    operator.locator("#plan h1").wait_for()
    assert operator.inner_text("#plan h1").startswith("Not decided")
    assert operator.inner_text("#command").endswith("--from=before --to=after --now=now")


def test_a_folder_is_dropped_with_the_names_below_it(operator: Page, tmp_path: Path) -> None:
    """Hidden files, and the data of a server, are passed over."""
    old = folder(tmp_path / "old", (1, 2, 3))
    (old / ".git").mkdir()
    (old / ".git" / "zoo.cfg").write_text("hidden")
    (old / "host-b" / "version-2").mkdir()
    (old / "host-b" / "version-2" / "log.1").write_text("data")
    names = sorted(f"host-{x}/{name}" for x in "bcd" for name in ("myid", "zoo.cfg"))
    operator.evaluate(DROP_FOLDER, ["before", {"old": tree(old)}])
    operator.locator("#before li").first.wait_for()
    assert listed(operator, "before") == names
    operator.evaluate(DROP_FOLDER, ["after", tree(old)])
    operator.locator("#after li").first.wait_for()
    assert listed(operator, "after") == names
    choose(operator, "now", old)
    assert listed(operator, "now") == names
    assert operator.locator("#now .passed").text_content() == "2 files passed over: hidden, data, or more than 1 MiB."


def test_the_files_of_a_set_are_few_and_small(operator: Page, tmp_path: Path) -> None:
    for number in range(65):
        (tmp_path / "many" / str(number)).mkdir(parents=True)
        (tmp_path / "many" / str(number) / "zoo.cfg").write_text("")
    (tmp_path / "large.cfg").write_bytes(b"#" * (1024 * 1024 + 1))
    operator.set_input_files("#before input[webkitdirectory]", tmp_path / "many")
    operator.locator("#before .error", has_text="65 files, and 64 are the most").wait_for()
    operator.set_input_files("#after input[multiple]", tmp_path / "large.cfg")
    operator.locator("#after .error", has_text="large.cfg has more than 1 MiB").wait_for()
    assert not listed(operator, "before") and not listed(operator, "after")


def test_files_that_are_too_large_together_are_refused_with_the_limit(page: Page, server: PlannerServer) -> None:
    page.goto(server.address)
    page.locator(".field").first.wait_for(state="attached")
    page.fill("#before textarea", "#" * (5 * 1024 * 1024))
    page.click("#judge")
    page.locator("#message.bad", has_text="4,194,304 are the most; give fewer or smaller files").wait_for()


def test_the_fields_are_part_of_the_question_and_an_error_stands_beside_its_field(operator: Page) -> None:
    operator.fill("#before textarea", text("three"))
    operator.fill("#after textarea", text("five"))
    assert operator.locator(".field").count() == len(FIELDS)
    assert all(operator.locator(".field small").all_text_contents())
    operator.get_by_text("More about the ensemble").click()
    operator.get_by_label("Leader").fill("9")
    operator.get_by_text("More about the ensemble").click()
    operator.click("#judge")
    error = operator.locator("[data-field=leader] .error", has_text="server 9 cannot lead at first; one of 1, 2, 3 can")
    error.wait_for()
    assert operator.evaluate("document.activeElement.id") == "leader"
    assert operator.get_by_label("Leader").get_attribute("aria-invalid") == "true"
    operator.get_by_label("Leader").fill("2")
    operator.get_by_label("Disks").fill("4=empty, 5=empty")
    operator.get_by_label("Order").fill("4,5,2,1,3")
    operator.get_by_label("Way of working").select_option("no-wait")
    operator.get_by_label("In one go").check()
    operator.click("#judge")
    operator.locator("#plan h1").wait_for()
    assert error.is_hidden() and not operator.locator("[aria-invalid]").count()
    assert operator.inner_text("#plan h1").startswith("Do not use this order: ")
    words = "--leader=2 --how=no-wait --disk=4=empty --disk=5=empty --order=4,5,2,1,3 --in-one-go"
    assert operator.inner_text("#command") == f"python -m checker rollout --from=before --to=after {words}"


def test_commands_and_files_are_copied_with_the_keyboard(
    operator: Page, context: BrowserContext, tmp_path: Path
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    choose(operator, "before", folder(tmp_path / "old", (1, 2, 3)))
    new = folder(tmp_path / "new", (1, 2, 3, 4))
    choose(operator, "after", new)
    operator.click("#judge")
    operator.locator("#plan h1").wait_for()
    waits = operator.locator("#plan li code.command", has_text="zk4 2181").all_inner_texts()
    copied = {}
    for _ in range(200):
        operator.keyboard.press("Tab")
        if operator.evaluate("!document.activeElement.closest('#answer')"):
            break
        if operator.evaluate("document.activeElement.matches('.copy, #copy')"):
            operator.keyboard.press("Enter")
            operator.locator("button:focus", has_text="Copied").wait_for()
            label = operator.evaluate("document.activeElement.ariaLabel ?? document.activeElement.id")
            copied.setdefault(label, set()).add(operator.evaluate("navigator.clipboard.readText()"))
    assert waits and set(waits) <= copied["Copy this command"]
    assert copied["Copy the text of after/host-e/zoo.cfg"] == {(new / "host-e" / "zoo.cfg").read_text()}
    assert "python -m checker rollout --from=before --to=after" in copied["Copy these lines"]
    (whole,) = copied["copy"]
    assert whole.startswith("# Add server 4 ")
    operator.locator("#copy", has_text="Copy as Markdown").wait_for()
    operator.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('denied')); }")
    operator.locator("#copy").click()
    operator.locator("#message", has_text="The browser does not let this page copy").wait_for()


def test_a_question_is_asked_with_the_keyboard_alone(operator: Page, tmp_path: Path) -> None:
    pressed = operator.keyboard.press
    folders = {
        part: folder(tmp_path / part, members) for part, members in (("before", (1, 2, 3)), ("after", (1, 2, 3, 4)))
    }
    operator.on("filechooser", lambda chooser: chooser.set_files(folders[chooser.element.evaluate(PART)]))

    def tab_to(name: str) -> None:
        for _ in range(60):
            pressed("Tab")
            if operator.evaluate("document.activeElement.ariaLabel ?? document.activeElement.textContent") == name:
                return
        raise AssertionError(f"Tab does not lead to {name}")

    for part in folders:
        tab_to("Choose a folder…")
        pressed("Enter")
        operator.locator(f"#{part} li").first.wait_for()
        tab_to("Choose files…")
    operator.locator("#before .folder").focus()
    pressed("Shift+Tab")
    pressed("Enter")
    assert len(listed(operator, "before")) == 5
    assert operator.evaluate("document.activeElement.matches('#before button')")
    tab_to("Remove all")
    pressed("Enter")
    assert operator.evaluate("document.activeElement.matches('#before .folder')")
    operator.keyboard.press("Tab")
    tab_to("More about the ensemble and the roll-out")
    pressed("Enter")
    operator.get_by_label("Leader").wait_for()
    tab_to("Judge this change")
    pressed("Enter")
    operator.locator("#before .error", has_text="there are no files before the change").wait_for()
    assert operator.evaluate("document.activeElement.matches('#before .folder')")


def test_a_question_that_runs_long_shows_progress_and_is_cancelled(
    page: Page, slow: SlowRuns, slow_server: PlannerServer
) -> None:
    page.goto(slow_server.address)
    page.fill("#before textarea", text("three"))
    page.fill("#after textarea", text("five"))
    page.click("#judge")
    page.locator("#progress", has_text="0 questions answered; now: ").wait_for()
    page.locator("#clock", has_text="1 s").wait_for()
    assert page.locator("#judge").is_disabled()
    page.click("#cancel")
    page.locator("#cancel").wait_for(state="hidden")
    assert page.locator("#judge").is_enabled() and page.locator("#answer").is_hidden()
    slow.may_end.set()
    for _ in range(100):  # the question that was cancelled ends after its run
        page.click("#judge")
        page.locator("#plan h1, #message.bad").locator("visible=true").first.wait_for()
        if page.locator("#plan h1").is_visible():
            break
        time.sleep(0.1)
    assert page.locator("#plan h1").is_visible(), "the cancelled question goes on"
    slow.may_end.clear()
    page.fill("#after textarea", text("four"))
    page.click("#judge")
    page.locator("#progress", has_text="0 questions answered; now: ").wait_for()
    page.fill("#after textarea", text("five"))
    slow.may_end.set()
    page.locator("#kept", has_text="The question has changed since").wait_for()


def test_the_page_is_usable_on_a_phone(operator: Page, tmp_path: Path) -> None:
    """At 390 pixels nothing scrolls the page sideways, and all that is pressed is at least 40 pixels high and wide."""
    operator.set_viewport_size({"width": 390, "height": 844})
    choose(operator, "before", folder(tmp_path / ("long-name-" * 10), (1, 2, 3)))
    choose(operator, "after", folder(tmp_path / "new", (1, 2, 3, 4), "qqkey=" + "x" * 200 + "\n"))
    for summary in operator.locator("#question summary").all():
        summary.click()
    operator.get_by_label("Leader").fill("9" * 18)
    assert operator.evaluate(SMALL) == []
    operator.click("#judge")
    operator.locator("[data-field=leader] .error").wait_for()
    assert operator.evaluate(SIDEWAYS) == 0
    operator.get_by_label("Leader").fill("")
    operator.click("#judge")
    operator.locator("#plan h1").wait_for()
    for summary in operator.locator("#plan > details > summary").all():
        summary.click()
    assert operator.evaluate(SMALL) == []
    assert operator.evaluate(SIDEWAYS) == 0
    assert operator.locator("#plan table").evaluate_all(
        "tables => tables.every((each) => each.getBoundingClientRect().right <= innerWidth)"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_words_of_the_page_can_be_read(operator: Page, scheme: str) -> None:
    operator.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for summary in operator.locator("#question summary").all():
        summary.click()
    operator.fill("#before textarea", text("three"))
    operator.click("#judge")
    operator.locator("#after .error").wait_for()
    operator.mouse.move(0, 0)
    assert operator.evaluate(CONTRAST) == []
    operator.fill("#after textarea", text("five"))
    operator.click("#judge")
    operator.locator("#plan h1").wait_for()
    assert operator.evaluate(CONTRAST) == []


def test_names_of_files_and_hosts_are_never_read_as_markup(operator: Page) -> None:
    script = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    lines = text("three")
    operator.evaluate(DROP, ["before", f"{script.replace('/', '')}.cfg", lines])
    operator.locator("#before li").wait_for()
    assert operator.locator("#before li code").inner_text().startswith("<img src=x")
    operator.fill("#after textarea", text("five"))
    operator.click("#judge")
    operator.locator("#before .error", has_text="is not a name for a file here").wait_for()
    operator.click("#before .clear")
    operator.fill("#before textarea", lines + f"qqkey={script}\n")
    operator.fill("#after textarea", lines.replace("zoo1", "zoo1<script>") + f"qq{script}=1\n")
    operator.click("#judge")
    operator.locator("#plan h1, .error").locator("visible=true").first.wait_for()
    assert not operator.locator("#question img, #answer img, main script, #message img").count()
