"""Files on request: the scenarios of all runs, the traces of all findings, the configuration files of the stages.

All functions raise `checker.user_files.OutputError` with the path for a file that cannot be written.
"""

from __future__ import annotations

from pathlib import Path

from checker.rollout.answer import Plan
from checker.rollout.runs import RunResult, SafetyVerdict
from checker.rollout.steps import unwaited
from checker.traces.formats import FORMATS
from checker.user_files import make_folder, slug, write

NOT_FORMATS = frozenset({"pytest"})  # a test that repeats a run belongs to a project, not to a change request


def write_scenarios(plan: Plan, folder: Path) -> None:
    """Write every run as a scenario with its files, a folder for each stage."""
    seen = set()
    for assessment, result in plan.runs:
        if (assessment.stage.title, result.text) in seen:  # one run may answer two questions
            continue
        seen.add((assessment.stage.title, result.text))
        place = folder / slug(f"{assessment.stage.old.label} to {assessment.stage.new.label}")
        make_folder(place)
        for name, text in assessment.stage.texts.items():
            write(place / name, text)
        verdict = {
            SafetyVerdict.UNSAFE: "violated",
            SafetyVerdict.SAFE: "passed",
            SafetyVerdict.STALLS: "violated",
        }.get(result.outcome)
        expect = f"expect: {verdict}\n" if verdict else ""
        write(place / f"{_stem_of(result)}.yaml", result.text + expect)


def write_traces(plan: Plan, folder: Path) -> None:
    """Write the trace of every finding in every format."""
    for assessment, result in plan.runs:
        if result.trace is not None:
            name = slug(f"{assessment.stage.new.label} {_stem_of(result)}")
            for each in FORMATS.values():
                if each.name not in NOT_FORMATS:
                    write(folder / each.file_name(name), each.view(result.trace))


def write_stages(plan: Plan, folder: Path) -> None:
    """Write the zoo.cfg of every server for every stage, with its dynamic file."""
    for number, assessment in enumerate(plan.advised, start=1):
        side = assessment.stage.new
        for sid, name in side.files.items():
            place = folder / f"stage-{number}" / str(sid)
            make_folder(place)
            write(place / "zoo.cfg", side.texts[name].replace(f"{name}.dynamic", "zoo.cfg.dynamic"))
            for beside, text in side.texts.items():
                if beside.startswith(f"{name}.dynamic"):
                    write(place / f"zoo.cfg{beside.removeprefix(name)}", text)


def _stem_of(result: RunResult) -> str:
    vain = f" without waiting for {waited}" if (waited := unwaited(result.spec.steps)) else ""
    return slug(f"{result.spec.name}{vain} {result.prop}")
