"""Answers kept on disk, so that the same question about the same files is answered without a run.

Rules of this module:

- The key of an answer is a digest of the whole request, with the text of every file, of the source of the program, and
  of the versions of Python and of the solvers. So an answer is found only by the question that it belongs to, and never
  by another version. Once the source has changed under a running process, that process reads and keeps nothing.
- An answer that depends on the machine is not kept: one for which any run filled the free memory, shown or not.
- A file that cannot be read or written, or that holds something else, is passed over: the cache makes nothing fail.
- Answers are private: the folder has the mode 0700, a file 0600.
- The folder is `quorate/answers` in the user's cache ($XDG_CACHE_HOME or ~/.cache), or $QUORATE_ANSWERS; no answer is
  kept if that variable is empty. It holds at most `MOST` answers; the oldest go first.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec

from checker.command_table import called
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.output.data import data
from checker.rollout.output.markdown import github_comment, markdown
from checker.rollout.output.story import told_runs
from checker.source import STARTED, ProgramSource
from checker.traces.svg import picture

VARIABLE = "QUORATE_ANSWERS"
MOST = 200
PRIVATE_FOLDER = 0o700


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
    """The kept answers in a folder; without a folder, none is kept.

    `source` is the program that gives the answers. An `owned` folder has nothing else in it, so it is made private.
    """

    def __init__(self, folder: Path | None, source: ProgramSource = STARTED, *, owned: bool = False) -> None:
        self._folder, self._source, self._owned = folder, source, owned

    @classmethod
    def of_user(cls, source: ProgramSource = STARTED) -> AnswerCache:
        """The cache of the user of this process; without a home directory, none is kept."""
        folder = os.environ.get(VARIABLE)
        if folder is not None:
            return cls(Path(folder) if folder else None, source)
        try:
            caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        except RuntimeError:
            return cls(None, source)
        return cls(caches / "quorate" / "answers", source, owned=True)

    def load(self, request: PlanRequest) -> RenderedAnswer | None:
        """The kept answer to a request, if there is one."""
        with suppress(OSError, ValueError, RecursionError, msgspec.MsgspecError):
            path = self._path(request)
            if path is not None and stat.S_ISREG(path.stat().st_mode):
                answer = msgspec.json.decode(path.read_bytes(), type=RenderedAnswer)
                # The page looks these fields up, and an answer is the same in every form.
                texts = [answer.data.get(name) for name in ("verdict", "recommendation")]
                is_whole = all(isinstance(text, str) for text in texts)
                return answer if is_whole and answer.data.get("exit_code") == answer.exit_code else None
        return None

    def save(self, plan: Plan, answer: RenderedAnswer) -> None:
        """Keep an answer, unless it depends on the machine."""
        if plan.depends_on_memory:
            return
        with suppress(OSError, ValueError, TypeError, RecursionError):
            path = self._path(plan.request)
            if path is not None:
                path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
                if self._owned:
                    path.parent.chmod(PRIVATE_FOLDER)
                with NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:  # of mode 0600
                    file.write(msgspec.json.encode(answer))
                Path(file.name).replace(path)
                files = sorted(path.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
                for oldest in files[:-MOST]:
                    oldest.unlink(missing_ok=True)

    def _path(self, request: PlanRequest) -> Path | None:
        """The file of an answer; None if none is kept. Raises OSError."""
        source = None if self._folder is None else self._source.digest()
        return None if self._folder is None or source is None else self._folder / _name(request, source)


def _name(request: PlanRequest, source: str) -> str:
    """The name of the file of an answer: a digest of the program, its name as called, and the whole request."""
    content = msgspec.to_builtins(request, str_keys=True, order="deterministic", enc_hook=repr)
    question = json.dumps([source, called("rollout"), content], sort_keys=True)
    return f"{hashlib.sha256(question.encode()).hexdigest()}.json"
