"""The files that the page sends: two sets, before and after, each read as a folder is.

A set is written to a temporary folder, which is removed as soon as it is read. A message about a file names it as the
page does: `before/1/zoo.cfg:3: ...`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec

from checker.local_page import BadRequestError
from checker.rollout.inputs.folders import Folder
from checker.rollout.inputs.generated import with_namespace_of
from checker.rollout.inputs.sources import read_input
from spec.config import ConfigError
from spec.text import on_a_line

MOST_FILES = 64  # of one set
LONGEST_NAME = 200  # characters of the name of a file, with its folders
DEEPEST = 6  # parts of such a name
PART = re.compile(r"(?!\.{1,2}$)[\w.()+@~ -]{1,100}")  # a part of a name


class UploadedFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A file: its name, which may begin with folders (`1/zoo.cfg`), and its text."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NAME)]
    text: str


FileSet = Annotated[tuple[UploadedFile, ...], msgspec.Meta(max_length=MOST_FILES)]


class PlanFilesRequest(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The files before and after the change."""

    before: FileSet
    after: FileSet


def read_sets(request: PlanFilesRequest) -> tuple[Folder, Folder]:
    """The state before and the state after. Raises BadRequestError, with every mistake in the files."""
    with TemporaryDirectory(prefix="quorate-") as root:
        try:
            old = _read(Path(root), "before", request.before)
            new = _read(Path(root), "after", request.after)
            old, new = with_namespace_of(old, new), with_namespace_of(new, old)
        except ConfigError as error:
            problems = "\n".join(on_a_line(str(each)) for each in error.problems)
            raise BadRequestError(problems.replace(f"{root}/", "")) from None
        return without(old, f"{root}/"), without(new, f"{root}/")


def _read(root: Path, name: str, given: Sequence[UploadedFile]) -> Folder:
    """The state in one set. Raises BadRequestError, ConfigError."""
    if not given:
        raise BadRequestError(f"there are no files {name} the change; drop some, or paste the text of one")
    folder = root / name
    folder.mkdir()
    paths = {_path(name, each.name): each.text for each in given}
    if len(paths) < len(given):
        names = [each.name for each in given]
        twice = next(each for each in names if names.count(each) > 1)
        right = "drop the folders that contain them (1/zoo.cfg), or name them zoo-1.cfg, zoo-2.cfg"
        raise BadRequestError(f"{name}: two files have the name {twice}; {right}")
    for path, text in paths.items():
        place = folder / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode("utf-8", "surrogatepass"))
        except (OSError, ValueError):
            raise BadRequestError(f"{name}/{path}: a file and a folder have this name; rename one") from None
    return read_input(str(folder / next(iter(paths)) if len(paths) == 1 else folder))


def _path(where: str, name: str) -> PurePosixPath:
    """The relative path of a file. Raises BadRequestError for a name that leads elsewhere."""
    parts = name.split("/")
    if len(parts) > DEEPEST or not all(PART.fullmatch(part) for part in parts):
        right = "write letters, digits and .-_ with folders before, such as 1/zoo.cfg"
        raise BadRequestError(f"{where}: {on_a_line(name)[:80]!r} is not a name for a file here; {right}")
    return PurePosixPath(*parts)


def without(value: Any, part: str) -> Any:
    """A value in which no text contains that part. A value without it stays the same object.

    The cache knows a question by its content, and the temporary folder has another name each time.
    """
    if isinstance(value, str):
        return value.replace(part, "")
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        made = tuple(without(each, part) for each in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    if isinstance(value, Mapping):
        return {key: without(each, part) for key, each in value.items()}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **_changed(value, value.__struct_fields__, part))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = _changed(value, [each.name for each in dataclasses.fields(value) if each.init], part)
        return dataclasses.replace(value, **changed) if changed else value
    return value


def _changed(value: object, names: Sequence[str], part: str) -> dict[str, Any]:
    made = {name: without(getattr(value, name), part) for name in names}
    return {name: each for name, each in made.items() if each != getattr(value, name)}
