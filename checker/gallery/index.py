"""The front page of the gallery: every scenario by its folder, every variant with the scenarios that catch it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from checker.gallery.page import page_name, written
from checker.job import Job
from checker.markdown import escaped
from spec.variants import DESCRIBED, Area, Variant, of_area

_HEAD = """\
# Gallery

What the checker finds, a page for each scenario: the verdict, what was asked, and every run that was found. A run is
told as it was found by breadth-first search, shortest, and of all shortest ones with the fewest faults and switches
from one server to another. The pages are written by

    python -m checker gallery docs/gallery

and a test fails where one is not what the checker finds.

`R10` and the like number what the system must show: R1 to R11 are about the ensemble (R10 is growing three servers to
five, R10' the same with the leader last), R12 to R14 about the service, R15 to R22 about recipes. *Passed* means that
nothing that was asked for is violated, within the bounds on the page; what was asked for may be that something bad can
happen. *Vacuous* means that a part of the question never came up."""


def index_of(jobs: Mapping[Path, Job], gallery: Path) -> str:
    """The front page for these scenarios, as Markdown. A scenario without a page in the gallery has no link."""
    lines = [_HEAD, "", "## Scenarios"]
    for folder, paths in groupby(jobs, key=lambda path: path.parent.name):
        lines += ["", f"### {folder}", "", "| scenario | verdict |", "| --- | --- |"]
        lines += [f"| {_link(path, jobs[path], gallery)} | {_expected(jobs[path])} |" for path in paths]
    lines += ["", "## Variants", "", "What each does wrong, and where it is caught."]
    for area in Area:
        lines += ["", f"### {area.value[:1].upper()}{area.value[1:]}", "", *_variants(area, jobs, gallery)]
    return "\n".join(lines) + "\n"


def _link(path: Path, job: Job, gallery: Path) -> str:
    name = page_name(path)
    return f"[{escaped(job.name)}]({name}.md)" if (gallery / f"{name}.md").exists() else escaped(job.name)


def _expected(job: Job) -> str:
    return job.expected.value if job.expected else ""


def _variants(area: Area, jobs: Mapping[Path, Job], gallery: Path) -> Iterator[str]:
    yield from ("| variant | what is wrong | caught in |", "| --- | --- | --- |")
    for variant in sorted(of_area(area), key=list(Variant).index):
        caught = [_link(path, job, gallery) for path, job in jobs.items() if variant.value in _has(job)]
        yield f"| {escaped(str(variant.value))} | {escaped(DESCRIBED[variant].wrong)} | {'; '.join(caught)} |"


def _has(job: Job) -> Sequence[str]:
    """The variants of a scenario that demonstrates their defects."""
    return written(job).get("variants", []) if _expected(job) != "passed" else []
