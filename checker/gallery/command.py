"""The command `python -m checker gallery DIR`: explores scenarios one after the other, and writes their pages.

A page is written only for a scenario with its expected verdict. For any other scenario the verdict is printed, and its
page stays unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from checker.cli.command import unread_output_discarded
from checker.engine.process import free_memory
from checker.execution import run_uninterrupted
from checker.gallery.page import index_of, page_name, page_of
from checker.report import ExitCode, judge
from checker.scenario import ScenarioError, bundled, load

SHARE_OF_MEMORY = 0.8  # of the free memory


def write(gallery: Path, files: Sequence[Path]) -> int:
    """Write the pages of these scenarios, or of all, and the front page. Raises ScenarioError and OSError.

    An interrupt ends the command as KeyboardInterrupt; the pages written before stay.
    """
    jobs = {path: load(path) for path in bundled()}
    failed = 0
    for path in _chosen(files, list(jobs)):
        job, memory = jobs[path], free_memory(SHARE_OF_MEMORY)
        exploration = run_uninterrupted(job, replace(job.limits, memory=job.limits.memory or memory))
        judgement = judge(job, exploration, job.actions)
        if judgement.as_expected:
            page_of(path, job, exploration, judgement, gallery).write(gallery)
            result = judgement.verdict.value
        else:
            failed = int(ExitCode.UNEXPECTED)
            result = f"no page: {judgement.sentence}"
        with unread_output_discarded():
            print(f"{page_name(path)}: {result}", flush=True)
    gallery.mkdir(parents=True, exist_ok=True)
    (gallery / "README.md").write_text(index_of(jobs, gallery), encoding="utf-8")
    return failed


def _chosen(files: Sequence[Path], shipped: Sequence[Path]) -> list[Path]:
    """The shipped scenarios with these names. Raises ScenarioError for a file that is not a shipped scenario."""
    known = {os.path.realpath(path): path for path in shipped}
    named = [os.path.realpath(file) for file in files]  # `Path.resolve` raises for a symlink loop
    for file, real in zip(files, named, strict=True):
        if real not in known:
            right = "name one of those that `python -m checker list` lists, by its path"
            raise ScenarioError(str(file), 0, "", "this is no scenario that comes with the package", right)
    return [known[real] for real in named] if files else list(shipped)
