"""The page of the planner over HTTP, on the loopback interface only, by the rules of `checker.local_page`.

Lines of JSON are `{"progress": {"runs": 2, "now": "..."}}`, and finally `{"done": ...}` or an error. Closing the
connection earlier cancels the question.

The answer is HTML: the planner's Markdown, with the runs as pictures instead of Mermaid. Raw HTML in the Markdown is
shown as text, except the lines by which the planner folds a section: no text of the operator's files turns into markup.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, MutableMapping, Sequence
from html import escape, unescape
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from checker.engine.model import ModelError
from checker.execution import ended_by
from checker.job import Json
from checker.local_page import BadRequestError, PageHandler, PageServer, ProgressSender, read_request, slot
from checker.local_page.server import assets_of
from checker.planner_page.uploads import PlanFilesRequest, fields, read_options, read_question, refusal_of
from checker.rollout import Engine, OrderError, PlanRequest, plan
from checker.rollout.output.cache import AnswerCache, RenderedAnswer, rendered
from checker.rollout.runs import Runner, RunResult, TimeBetweenRuns
from checker.rollout.scenarios import QUESTION_WORDS, RunSpec
from checker.symbolic.disjoint import UndecidedError
from spec.config import ConfigError

FENCE = re.compile(r"(`{3,})")
SUMMARY = re.compile(r"<summary>(.*)</summary>")
FOLDS = ("<details>", "</details>")
PICTURES = "pictures"  # those that are left, in the environment of the renderer


def to_html(markdown: str, pictures: Sequence[str]) -> str:
    """The HTML of an answer. `pictures` are SVG elements, one for each Mermaid block, in the order of these."""
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    renderer.add_render_rule("fence", _fence)
    left = {PICTURES: iter(pictures)}
    return "".join(part if is_html else _rendered(renderer, part, left) for is_html, part in _split_at_folds(markdown))


def _rendered(renderer: MarkdownIt, markdown: str, env: dict[str, Iterator[str]]) -> str:
    """The HTML of Markdown without folds. Cells are aligned by classes, since the page allows no inline style."""
    tokens = renderer.parse(markdown, env)
    for token in tokens:
        if token.attrs.pop("style", None) == "text-align:right":
            token.attrs["class"] = "number"
    return str(renderer.renderer.render(tokens, renderer.options, env))


def _split_at_folds(markdown: str) -> Iterator[tuple[bool, str]]:
    """The text between folds as Markdown, and the lines of folds as HTML."""
    lines: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        opened = FENCE.match(line)
        if fence:
            fence = "" if line == fence else fence
        elif opened:
            fence = opened[1]
        elif line in FOLDS or SUMMARY.fullmatch(line):
            yield False, "\n".join(lines) + "\n"
            lines = []
            yield True, line if line in FOLDS else f"<summary>{escape(unescape(line[9:-10]))}</summary>"
            continue
        lines.append(line)
    yield False, "\n".join(lines) + "\n"


def _fence(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[Any, Any]
) -> str:
    token = tokens[index]
    drawn = next(env[PICTURES], None) if token.info == "mermaid" else None
    if drawn is not None:
        return f'<figure class="picture" tabindex="0" aria-label="The run as a picture">{drawn}</figure>\n'
    return renderer.fence(tokens, index, options, env)


OFTEN = 0.5  # seconds between two looks for the page, while no run ends
BUSY = "the planner is judging another change; wait until it ends, or cancel it on the page that asked"


class PlannerHandlers:
    """The answers, from the cache or from the planner. Threads may share it; one change is judged at a time."""

    def __init__(self, answers: AnswerCache, runner: Runner | None = None) -> None:
        self._answers, self._run = answers, runner or Engine().run
        self._busy = threading.BoundedSemaphore(1)

    def plan(self, request: PlanFilesRequest, progress: ProgressSender) -> dict[str, Json]:
        """Judge a change. Raises BadRequestError, also for a mistake in the files."""
        options = read_options(request)
        runs = _Told(self._run, options.budget, progress)
        try:
            with ended_by(runs.check):
                asked = read_question(request, options)
                answer = self._answers.load(asked)
                kept = answer is not None
                return _view(answer or self._judge(asked, runs), request.command, kept=kept)
        except ConfigError as error:
            raise refusal_of(error) from None
        except (OrderError, UndecidedError, ModelError) as error:
            field = error.option if isinstance(error, OrderError) else ""
            raise BadRequestError(str(error), HTTPStatus.UNPROCESSABLE_ENTITY, field) from None

    def _judge(self, asked: PlanRequest, runs: _Told) -> RenderedAnswer:
        with slot(self._busy, BUSY):
            made = plan(asked, runs.run)
            answer = rendered(made)
        self._answers.save(made, answer)
        return answer


class _Told(TimeBetweenRuns):
    """A runner that sends the page a message before each run and between them, and ends after the page has gone."""

    def __init__(self, run: Runner, seconds: float, progress: ProgressSender) -> None:
        super().__init__(run, seconds)
        self._progress, self._runs, self._last = progress, 0, time.monotonic()

    def check(self) -> None:
        """Raises BadRequestError if the page has gone, and UndecidedError as the base class."""
        super().check()
        if time.monotonic() - self._last > OFTEN:
            self._tell("the orders and the stages")

    def run(self, spec: RunSpec, seconds: float) -> RunResult:
        """Explore a question. Raises BadRequestError if the page has gone."""
        self._tell(f"{spec.stage.title}: {QUESTION_WORDS[spec.question]}")
        result = super().run(spec, seconds)
        self._runs += 1
        return result

    def _tell(self, now: str) -> None:
        self._last = time.monotonic()
        if not self._progress({"runs": self._runs, "now": now}):
            raise BadRequestError("the question was cancelled")


def _view(answer: RenderedAnswer, command: str, *, kept: bool) -> dict[str, Json]:
    """An answer as the page shows it, with the command for the same; `kept`: it comes from the cache."""
    return {
        "verdict": answer.data["verdict"],
        "html": to_html(answer.whole, answer.pictures),
        "markdown": answer.whole,
        "command": command,
        "kept": kept,
    }


LARGEST_SETS = 1 << 22  # bytes of a request with two sets of files


class PlannerServer(PageServer):
    """The HTTP server of the planner's page. Raises PortError."""

    def __init__(self, handlers: PlannerHandlers, port: int = 0) -> None:
        self.handlers = handlers
        super().__init__(_PlannerRequests, assets_of(__package__), "planner", port)


class _PlannerRequests(PageHandler):
    server: PlannerServer

    def _get_other(self, address: SplitResult) -> None:
        if address.path != "/api/fields":
            super()._get_other(address)
        self._json(fields())

    def _post(self) -> None:
        if self.path != "/api/plan":
            super()._post()
        request = read_request(self._body(LARGEST_SETS), PlanFilesRequest)
        self._lines(lambda progress: self.server.handlers.plan(request, progress))
