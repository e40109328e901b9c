"""What is written to disk on request: the scenarios that were run, the runs that were found, the files of the stages.

Rules of this module: a folder is made before anything is run, so that a wrong name does not cost a run; whatever
cannot be written is an OutputError that says where.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from checker.rollout.planner import Plan
from checker.rollout.runs import Outcome, Ran
from checker.traces.formats import FORMATS
from spec.quorum import Sid

LONGEST_STEM = 150
NOT_FORMATS = frozenset({"pytest"})  # a test that repeats a run belongs to a project, not to a change request


class OutputError(Exception):
    """Something cannot be written where it was wanted; the message says where, and why."""


def make_folders(folders: Iterable[Path | None]) -> None:
    """Make those that are wanted. Raises OutputError."""
    for folder in folders:
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise OutputError(f"{folder}: no folder can be there ({error})") from None


def write_scenarios(plan: Plan, folder: Path) -> None:
    """Every run as a scenario with its files beside it, a folder for each stage. Raises OutputError."""
    seen = set()
    for assessed, ran in plan.runs:
        if (assessed.stage.title, ran.text) in seen:  # one run may answer two questions
            continue
        seen.add((assessed.stage.title, ran.text))
        place = folder / stem(f"{assessed.stage.old.label} to {assessed.stage.new.label}")
        make_folders([place])
        for name, text in assessed.stage.texts.items():
            write(place / name, text)
        verdict = {Outcome.UNSAFE: "violated", Outcome.SAFE: "passed", Outcome.STALLS: "violated"}.get(ran.outcome)
        expect = f"expect: {verdict}\n" if verdict else ""
        write(place / f"{_stem_of(ran)}.yaml", ran.text + expect)


def write_traces(plan: Plan, folder: Path) -> None:
    """Every run that was found, in every format. Raises OutputError."""
    for assessed, ran in plan.runs:
        if ran.trace is not None:
            name = stem(f"{assessed.stage.new.label} {_stem_of(ran)}")
            for each in FORMATS.values():
                if each.name not in NOT_FORMATS:
                    write(folder / each.file_name(name), each.view(ran.trace))


def write_stages(plan: Plan, folder: Path) -> None:
    """The zoo.cfg of every server for every stage, with its dynamic file beside it. Raises OutputError."""
    for number, assessed in enumerate(plan.advised, start=1):
        side = assessed.stage.new
        for sid, name in side.files.items():
            place = folder / f"stage-{number}" / str(sid)
            make_folders([place])
            write(place / "zoo.cfg", side.texts[name].replace(f"{name}.dynamic", "zoo.cfg.dynamic"))
            for beside, text in side.texts.items():
                if beside.startswith(f"{name}.dynamic"):
                    write(place / f"zoo.cfg{beside.removeprefix(name)}", text)


def write(path: Path, text: str) -> None:
    """Write a text. Raises OutputError."""
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: it cannot be written ({error})") from None


def stem(text: str) -> str:
    """A text as a part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-")[:LONGEST_STEM]


def _stem_of(ran: Ran) -> str:
    vain = f" without waiting for {waited}" if (waited := _unwaited(ran)) else ""
    return stem(f"{ran.asked.name}{vain} {ran.prop}")


def _unwaited(ran: Ran) -> tuple[Sid, ...]:
    return tuple(step.sid for step in ran.asked.steps if not step.wait and step.action != "stop")
