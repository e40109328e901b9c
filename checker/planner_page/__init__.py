"""The page of the planner: a local web page that judges a change of two sets of files, and shows the plan.

It answers each request of the page over HTTP, on the loopback interface only, by the rules of `checker.local_page`.

Rules of this package:

- It judges nothing: `checker.rollout` plans, and the answers are those of `quorate rollout`, from the same
  cache.
- The files are in a temporary folder while they are read. Only the answer remains, in the cache.
- No name in the files turns into a path outside that folder, and no text of the files turns into markup.

Lines of JSON are `{"progress": {"runs": 2, "now": "..."}}`, and finally `{"done": ...}` or an error. Closing the
connection earlier cancels the question.

The answer is HTML: the planner's Markdown, with the runs as pictures instead of Mermaid. Raw HTML in the Markdown is
shown as text, except the lines by which the planner folds a section: no text of the operator's files turns into markup.

The page asks with sets of files, each read as a folder is, and options of `checker rollout`. A set is written to a
temporary folder, which is removed as soon as it is read. A message about a file names it as the page does:
`before/1/zoo.cfg:3: ...`.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import shlex
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from html import escape, unescape
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from urllib.parse import SplitResult

import msgspec
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from checker.command import command_parser
from checker.command_table import ENTRIES, called
from checker.engine.model import ModelError
from checker.execution import ended_by
from checker.job import Json
from checker.local_page import BadRequestError, PageHandler, PageServer, ProgressSender, assets_of, read_request, slot
from checker.rollout import Engine, OrderError, PlanRequest, plan
from checker.rollout.orders import WAY_WORDS
from checker.rollout.output.cache import AnswerCache, RenderedAnswer, rendered
from checker.rollout.runs import Runner, RunResult, TimeBetweenRuns
from checker.rollout.scenarios import QUESTION_WORDS, RunSpec
from checker.rollout_command import request_of
from checker.symbolic.disjoint import UndecidedError
from spec.config import ConfigError
from spec.text import on_a_line

MOST_FILES = 64  # of one set
LONGEST_NAME = 200  # characters of the name of a file, with its folders
DEEPEST = 6  # parts of such a name
PART = re.compile(r"(?!\.{1,2}$)[\w.()+@~ -]{1,100}")  # a part of a name
SETS = {"before": "from", "after": "to", "now": "now"}
"""The sets of files, and their options of the command."""
FIELDS = {
    "leader": ("Leader", "3", "The server that leads now. Without it, the answer has an order for each that may lead."),
    "how": ("Way of working", "", "How the change is applied. Without it, every way is compared."),
    "files": ("New files", "", "How a new file comes to its server."),
    "down": ("Stopped servers", "4,5", "Servers that do not run, now or later."),
    "disk": (
        "Disks",
        "3=empty",
        "Servers that start with a disk that is empty, stale (of an earlier time) or foreign.",
    ),
    "release": ("Release now", "3.8.4", "The release of ZooKeeper that runs: its known defects are judged, too."),
    "to-release": ("Release after", "3.9.5", "The release that each server gets at its step, for an upgrade."),
    "order": ("Order", "4,1,2,3,5", "An order to judge. Without it, a safe one is searched for."),
    "faults": ("Faults", "1", "Crashes, partitions and lost connections in all, at most 3."),
    "budget": ("Search time", "60s", "Work for all runs, such as 60s or 5m. More of it can decide more."),
    "same-machines": (
        "Same machines",
        "",
        "The hosts have other names, and are the machines of before.",
    ),
    "in-one-go": ("In one go", "", "Judge the change without stages, as a gate does."),
    "explore": ("Every run", "", "Make the runs that a proof makes unnecessary, too."),
}
"""The options of the command that the page offers: label, example and help. None of them names a file."""
CHOICES = {
    **{way.value: text.replace("`", "") for way, text in WAY_WORDS.items()},
    "ready": "they lie ready on their servers, so a crash may bring one early",
    "at-step": "each is copied to its server at its step",
}
"""The values of choices, in words."""


class UploadedFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A file: its name, which may begin with folders (`1/zoo.cfg`), and its text."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
    text: str


FileSet = Annotated[tuple[UploadedFile, ...], msgspec.Meta(max_length=MOST_FILES)]
Option = tuple[str, Annotated[str, msgspec.Meta(max_length=200)]]


class PlanFilesRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The files before and after the change, and those of now if it was interrupted.

    `options` are names and values; the value of a switch is empty. An option may be repeated.
    """

    before: FileSet
    after: FileSet
    now: FileSet = ()
    options: Annotated[tuple[Option, ...], msgspec.Meta(max_length=64)] = ()

    @property
    def command_line(self) -> list[str]:
        """The question as arguments of `checker rollout`."""
        sets = [f"--{SETS[name]}={name}" for name in SETS if name != "now" or self.now]
        return [*sets, *(f"--{name}={value}" if value else f"--{name}" for name, value in self.options)]

    @property
    def command(self) -> str:
        """The same question as a command, for folders with the names of the sets."""
        return f"{called('rollout')} {shlex.join(self.command_line)}"


def fields() -> list[Json]:
    """The fields of the page, in addition to its sets of files."""
    actions = {
        action.option_strings[-1].removeprefix("--"): action for action in command_parser(ENTRIES["rollout"])._actions
    }
    return [
        {
            "name": name,
            "label": label,
            "example": example,
            "help": meaning,
            "switch": actions[name].nargs == 0,
            "repeated": isinstance(actions[name].default, list),
            "choices": list(_choices(actions[name])),
        }
        for name, (label, example, meaning) in FIELDS.items()
    ]


def _choices(action: argparse.Action) -> Iterator[Json]:
    """The values of an option, with their words. The first is the default, which a question leaves out."""
    if action.choices:
        yield ["", CHOICES.get(action.default, "not said")]
        yield from ([choice, CHOICES[choice]] for choice in action.choices if choice != action.default)


def read_options(request: PlanFilesRequest) -> argparse.Namespace:
    """The options of a question, read as those of the command. Raises BadRequestError, with the field."""
    unknown = [name for name, _ in request.options if name not in FIELDS]
    if unknown:
        raise BadRequestError(f"the page has no field {unknown[0][:40]!r}; it has {', '.join(FIELDS)}")
    parser = command_parser(ENTRIES["rollout"])
    parser.exit_on_error = False
    try:
        return parser.parse_args(request.command_line)
    except argparse.ArgumentError as error:
        raise BadRequestError(error.message, field=(error.argument_name or "").removeprefix("--")) from None


def read_question(request: PlanFilesRequest, options: argparse.Namespace) -> PlanRequest:
    """The question with its files. Raises OrderError, and BadRequestError with every mistake in the files."""
    with TemporaryDirectory(prefix="quorate-") as root:
        try:
            options.old = _placed(Path(root), "before", request.before)
            options.new = _placed(Path(root), "after", request.after)
            options.now = [_placed(Path(root), "now", request.now)] if request.now else None
            question: PlanRequest = without(request_of(options), f"{root}/")
        except ConfigError as error:
            raise refusal_of(error, f"{root}/") from None
        return question


def refusal_of(error: ConfigError, root: str = "") -> BadRequestError:
    """The refusal of a question for mistakes in its files. `root` is the temporary folder, which no message names."""
    problems = "\n".join(on_a_line(str(problem)) for problem in error.problems)
    field = error.problems[0].file.removeprefix(root).partition("/")[0]
    return BadRequestError(problems.replace(root, "") if root else problems, field=field if field in SETS else "")


def _placed(root: Path, name: str, given: Sequence[UploadedFile]) -> str:
    """The path of a set of files as an input of the command. Raises BadRequestError."""
    if not given:
        raise BadRequestError(f"there are no files {name} the change; drop some, or paste the text of one", field=name)
    folder = root / name
    folder.mkdir()
    paths = {_path(name, file.name): file.text for file in given}
    if len(paths) < len(given):
        names = [file.name for file in given]
        repetition = next(file for file in names if names.count(file) > 1)
        right = "choose the folder that has all of them (1/zoo.cfg), or name them zoo-1.cfg, zoo-2.cfg"
        raise BadRequestError(f"two files have the name {repetition}; {right}", field=name)
    for path, text in paths.items():
        place = folder / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode("utf-8", "surrogatepass"))
        except (OSError, ValueError):
            raise BadRequestError(f"{path}: a file and a folder have this name; rename one", field=name) from None
    return str(folder / next(iter(paths)) if len(paths) == 1 else folder)


def _path(where: str, name: str) -> PurePosixPath:
    """The relative path of a file. Raises BadRequestError for a name that leads elsewhere."""
    parts = name.split("/")
    if len(parts) > DEEPEST or not all(PART.fullmatch(part) for part in parts):
        right = "write letters, digits and .-_ with folders before, such as 1/zoo.cfg"
        raise BadRequestError(f"{on_a_line(name)[:80]!r} is not a name for a file here; {right}", field=where)
    return PurePosixPath(*parts)


def without(value: Any, part: str) -> Any:
    """A value in which no text contains that part.

    The cache knows a question by its content, and the temporary folder has another name each time.
    """
    if isinstance(value, str):
        return value.replace(part, "")
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(without(item, part) for item in value)
    if isinstance(value, Mapping):
        return {key: without(item, part) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **_changed(value, value.__struct_fields__, part))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        return dataclasses.replace(value, **_changed(value, names, part))
    return value


def _changed(value: object, names: Sequence[str], part: str) -> dict[str, Any]:
    values = {name: without(getattr(value, name), part) for name in names}
    return {name: item for name, item in values.items() if item != getattr(value, name)}


FENCE = re.compile(r"(`{3,})")
SUMMARY = re.compile(r"<summary>(.*)</summary>")
FOLDS = ("<details>", "</details>")
PICTURES = "pictures"  # those that are left, in the environment of the renderer


def to_html(markdown: str, pictures: Sequence[str]) -> str:
    """The HTML of an answer. `pictures` are SVG elements, one for each Mermaid block, in the order of these."""
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    renderer.add_render_rule("fence", _fence)
    environment = {PICTURES: iter(pictures)}
    return "".join(
        part if is_html else _rendered(renderer, part, environment) for is_html, part in _split_at_folds(markdown)
    )


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
    picture = next(env[PICTURES], None) if token.info == "mermaid" else None
    if picture is not None:
        return f'<figure class="picture" tabindex="0" aria-label="The run as a picture">{picture}</figure>\n'
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
                question = read_question(request, options)
                answer = self._answers.load(question)
                is_kept = answer is not None
                return _view(answer or self._judge(question, runs), request.command, kept=is_kept)
        except ConfigError as error:
            raise refusal_of(error) from None
        except (OrderError, UndecidedError, ModelError) as error:
            field = error.option if isinstance(error, OrderError) else ""
            raise BadRequestError(str(error), HTTPStatus.UNPROCESSABLE_ENTITY, field) from None

    def _judge(self, asked: PlanRequest, runs: _Told) -> RenderedAnswer:
        with slot(self._busy, BUSY):
            judged_plan = plan(asked, runs.run)
            answer = rendered(judged_plan)
        self._answers.save(judged_plan, answer)
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
