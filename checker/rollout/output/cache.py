"""Answers kept on disk, so that the same question about the same files is answered at once.

Rules of this module:

- The key of an answer is a digest of the whole request, with the text of every file, and of the source of the program.
  So an answer is found only by the question that it belongs to, and never by another version.
- An answer that depends on the machine is not kept: one in which a run filled the free memory.
- A file that cannot be read or written is passed over: the cache makes nothing fail.
- The folder is `quorate/answers` in the user's cache ($XDG_CACHE_HOME or ~/.cache), or $QUORATE_ANSWERS; no answer is
  kept if that variable is empty. It holds at most `MOST` answers; the oldest go first.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import checker
import spec
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.output.data import data
from checker.rollout.output.github_comment import github_comment
from checker.rollout.output.markdown import markdown
from checker.rollout.output.story import told_runs
from checker.rollout.runs import RunEnd
from checker.traces.svg import picture

VARIABLE = "QUORATE_ANSWERS"
MOST = 200


@dataclass(frozen=True)
class RenderedAnswer:
    """An answer in every form: for a terminal, whole, as a comment, and for machines; with the exit code.

    `pictures` are the runs of the story as SVG elements without styles, in the order of the Mermaid blocks of `whole`.
    """

    brief: str
    whole: str
    comment: str
    data: Mapping[str, Any]
    exit_code: int
    pictures: Sequence[str] = ()


def rendered(plan: Plan) -> RenderedAnswer:
    """The answer to a plan in every form."""
    brief = markdown(plan, traces=False, evidence=False)
    traces = [result.trace for result in told_runs(plan)]
    pictures = [
        picture(trace, heading=False, prefix=f"run-{number}-", styled=False)
        for number, trace in enumerate(traces)
        if trace is not None
    ]
    return RenderedAnswer(brief, markdown(plan), github_comment(plan), data(plan), int(plan.exit_code), pictures)


class AnswerCache:
    """The kept answers in a folder; without a folder, none is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @classmethod
    def of_user(cls) -> AnswerCache:
        """The cache of the user who runs this process."""
        named = os.environ.get(VARIABLE)
        if named is not None:
            return cls(Path(named) if named else None)
        return cls(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quorate" / "answers")

    def load(self, request: PlanRequest) -> RenderedAnswer | None:
        """The kept answer to a request, if there is one."""
        with suppress(OSError, ValueError, TypeError):
            if self._folder is not None:
                return RenderedAnswer(**json.loads((self._folder / _name(request)).read_text(encoding="utf-8")))
        return None

    def save(self, plan: Plan, answer: RenderedAnswer) -> None:
        """Keep an answer, unless it depends on the machine."""
        if self._folder is None or any(result.end is RunEnd.MEMORY for _, result in plan.runs):
            return
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / _name(plan.request)
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(dataclasses.asdict(answer)), encoding="utf-8")
            part.replace(path)
            self._remove_oldest(self._folder)

    @staticmethod
    def _remove_oldest(folder: Path) -> None:
        kept = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-MOST]:
            path.unlink(missing_ok=True)


def _name(request: PlanRequest) -> str:
    digest = hashlib.sha256(_source().encode())
    for part in _list_content(request):
        digest.update(part.encode() + b"\0")
    return f"{digest.hexdigest()}.json"


def _list_content(value: object) -> Iterator[str]:
    """Everything in a value, in a fixed order."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield field.name
            yield from _list_content(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield repr(key)
            yield from _list_content(value[key])
    elif isinstance(value, frozenset):
        yield repr(sorted(value, key=repr))
    elif isinstance(value, tuple):
        yield f"tuple of {len(value)}"
        for each in value:
            yield from _list_content(each)
    else:
        yield repr(value)


@cache
def _source() -> str:
    """A digest of the source of the checker and the specification."""
    digest = hashlib.sha256()
    for package in (checker, spec):
        for path in sorted(Path(folder) for folder in package.__path__):
            for file in sorted(path.rglob("*.py")):
                digest.update(file.read_bytes())
    return digest.hexdigest()
