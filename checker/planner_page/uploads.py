"""The question that the page asks: sets of files, each read as a folder is, and options of `checker rollout`.

A set is written to a temporary folder, which is removed as soon as it is read. A message about a file names it as the
page does: `before/1/zoo.cfg:3: ...`.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec

from checker.command import command_parser
from checker.job import Json
from checker.local_page import BadRequestError
from checker.rollout import PlanRequest
from checker.rollout.steps import WAY_WORDS
from checker.rollout_command import ROLLOUT, request_of
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
        named = [f"--{SETS[name]}={name}" for name in SETS if name != "now" or self.now]
        return [*named, *(f"--{name}={value}" if value else f"--{name}" for name, value in self.options)]

    @property
    def command(self) -> str:
        """The same question as a command, for folders with the names of the sets."""
        return f"python -m checker rollout {shlex.join(self.command_line)}"


def fields() -> list[Json]:
    """The fields of the page, in addition to its sets of files."""
    actions = {action.option_strings[-1].removeprefix("--"): action for action in command_parser(ROLLOUT)._actions}
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
    parser = command_parser(ROLLOUT)
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
            options.now = _placed(Path(root), "now", request.now) if request.now else None
            asked: PlanRequest = without(request_of(options), f"{root}/")
        except ConfigError as error:
            raise refusal_of(error, f"{root}/") from None
        return asked


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
    paths = {_path(name, each.name): each.text for each in given}
    if len(paths) < len(given):
        names = [each.name for each in given]
        twice = next(each for each in names if names.count(each) > 1)
        right = "choose the folder that has all of them (1/zoo.cfg), or name them zoo-1.cfg, zoo-2.cfg"
        raise BadRequestError(f"two files have the name {twice}; {right}", field=name)
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
        return tuple(without(each, part) for each in value)
    if isinstance(value, Mapping):
        return {key: without(each, part) for key, each in value.items()}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **_changed(value, value.__struct_fields__, part))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        return dataclasses.replace(value, **_changed(value, names, part))
    return value


def _changed(value: object, names: Sequence[str], part: str) -> dict[str, Any]:
    made = {name: without(getattr(value, name), part) for name in names}
    return {name: each for name, each in made.items() if each != getattr(value, name)}
