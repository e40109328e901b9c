"""The pages of the gallery: one for each scenario, and the front page, which lists all scenarios.

A page has the verdict, the properties, and every run that was found. The front page lists every scenario by its folder,
and every variant with the scenarios that catch it. `write_gallery` explores scenarios one after the other, and writes
their pages.

Rules of this module:

- A page is written only for a scenario with its expected verdict. For any other scenario the verdict is printed, and
  its page stays unchanged.
- A violation, a deadlock and a run that never reaches its goal are shown as a picture, with the text folded below it. A
  witness is shown as text alone, because a scenario may have many. All runs are minimised.
- A page contains nothing that depends on the machine, so that a page is stale only after a real change.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from checker.command import ExitCode, say, unread_output_discarded
from checker.command_table import called
from checker.engine import Exploration
from checker.engine.model import Kind
from checker.engine.process import free_memory
from checker.execution import run_uninterrupted
from checker.job import Job, Verdict
from checker.printable import capital, escaped, fenced, folded, table
from checker.report import judge
from checker.report.verdict import Judgement
from checker.scenario import ScenarioError, bundled, load
from checker.scenario.yaml_lines import read_yaml
from checker.traces.minimise import minimised
from checker.traces.summary import claim, finding
from checker.traces.svg import to_svg
from checker.traces.text import to_text
from checker.traces.trace import Trace, trace_of
from spec.variants import DESCRIBED, Area, Variant, of_area


@dataclass(frozen=True)
class Page:
    """A page. `text` is Markdown; `pictures` maps file names to SVG documents in the folder of the page."""

    name: str
    text: str
    pictures: Mapping[str, str]

    def write(self, gallery: Path) -> None:
        """Write the page and its pictures into a gallery, and delete older pictures of the page. Raises OSError."""
        page = gallery / f"{self.name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        for old in pictures_of(page):
            if old.name not in self.pictures:
                old.unlink()
        for name, picture in self.pictures.items():
            (page.parent / name).write_text(picture, encoding="utf-8")
        page.write_text(self.text, encoding="utf-8")


def pictures_of(page: Path) -> list[Path]:
    """The pictures that belong to a page, in its folder."""
    return sorted(page.parent.glob(f"{page.stem}.*.svg"))


def page_name(path: Path) -> str:
    """The name of a scenario's page below the gallery: the folder and the name of the scenario."""
    return f"{path.parent.name}/{path.stem}"


def scenario_of(job: Job) -> dict[str, Any]:
    """The content of a job's scenario, by its keys."""
    value = read_yaml(str(job.source["text"]), str(job.source["file"])).value
    return value if isinstance(value, dict) else {}


def page_of(path: Path, job: Job, exploration: Exploration, judgement: Judgement, gallery: Path) -> Page:
    """The page of an explored scenario. `gallery` is the folder of the page, for the links."""
    name = page_name(path)
    traces = list(_traces(job, exploration, judgement))
    pictured = [trace for trace in traces if trace.kind is not Kind.SOMETIMES]
    files = [f"{path.stem}.{number}.svg" for number, _ in enumerate(pictured, 1)]
    sections = [
        _opening(path, job, judgement, gallery / name),
        *(_found(trace, file) for trace, file in zip(pictured, files, strict=True)),
        _questions(exploration),
        _explored(job, exploration),
        *(folded(trace.headline, fenced(to_text(trace))) for trace in traces if trace.kind is Kind.SOMETIMES),
        _by_hand(path),
    ]
    text = "\n\n".join("\n".join(lines) for lines in sections) + "\n"
    return Page(name, text, {file: to_svg(trace) for trace, file in zip(pictured, files, strict=True)})


def _traces(job: Job, exploration: Exploration, judgement: Judgement) -> Iterator[Trace]:
    for prop in exploration.model.properties:
        discovery = exploration.found.get(prop.name)
        if discovery is not None:
            best = minimised(job, discovery, exploration.least_moves(discovery.depth))
            yield trace_of(job, best, judgement.verdict)


def _opening(path: Path, job: Job, judgement: Judgement, page: Path) -> Sequence[str]:
    about = " ".join(str(scenario_of(job).get("about", "")).split())
    link = f"[{path.parent.name}/{path.name}]({os.path.relpath(path, page.parent)})"
    reason = "" if judgement.verdict in (Verdict.VIOLATED, Verdict.DEADLOCK) else judgement.explanation
    verdict = f"**{judgement.verdict.value}**, {judgement.remark}{f': {escaped(reason)}' if reason else ''}."
    lines = [f"# {escaped(job.name)}", "", *([escaped(about), ""] if about else [])]
    return [*lines, f"Verdict: {verdict}", "", f"Scenario: {link}. Grain: {job.grain}."]


def _found(trace: Trace, picture: str) -> Sequence[str]:
    return [
        f"## {escaped(capital(trace.headline))}",
        "",
        f"{escaped(capital(finding(trace)))}.",
        "",
        f"In short: {escaped(claim(trace))}.",
        "",
        f"![{escaped(trace.headline)}]({picture})",
        "",
        *folded("The same run as text", fenced(to_text(trace))),
    ]


def _questions(exploration: Exploration) -> Sequence[str]:
    properties = exploration.model.properties
    rows = [(prop.name, prop.kind.value, prop.meaning, exploration.outcome(prop)) for prop in properties]
    return ["## What was asked", "", *table(("property", "kind", "meaning", "outcome"), rows)]


def _explored(job: Job, exploration: Exploration) -> Sequence[str]:
    space = f"{exploration.states:,} states and {exploration.transitions:,} transitions, to depth {exploration.depth}"
    bounds = [f"- {escaped(bound)}" for bound in job.bounds]
    return ["## What was explored", "", f"{space}; {exploration.end}. The bounds:", "", *bounds]


def _by_hand(path: Path) -> Sequence[str]:
    run = f"quorate run spec/scenarios/{page_name(path)}.yaml --traces DIR"
    return [
        "## By hand",
        "",
        f"    {run}",
        "",
        f"runs it, and writes every run found there, to be looked at, stepped through and replayed;"
        f" `quorate explore spec/scenarios/{page_name(path)}.yaml` walks the states in a browser.",
    ]


_HEAD = """\
# Gallery

What the checker finds. The page of a scenario has the verdict, what was asked, and every run that was found. A run is
told as it was found by breadth-first search, shortest, and of all shortest ones with the fewest faults and switches
from one server to another. A scenario without a page here leads to its file, and

    quorate gallery DIR

writes the pages of all scenarios. With the files of some it writes theirs alone.

`R10` and the like number what the system must show: R1 to R11 are about the ensemble (R10 is growing three servers to
five, R10' the same with the leader last), R12 to R14 about the service, R15 to R22 about recipes. *Passed* means that
nothing that was asked for is violated, within the bounds on the page; what was asked for may be that something bad can
happen. *Vacuous* means that a part of the question never came up."""


def index_of(jobs: Mapping[Path, Job], gallery: Path) -> str:
    """The front page for these scenarios, as Markdown. A scenario without a page in the gallery leads to its file."""
    lines = [_HEAD, "", "## Scenarios"]
    for folder, paths in groupby(jobs, key=lambda path: path.parent.name):
        lines += ["", f"### {folder}", "", "| scenario | verdict |", "| --- | --- |"]
        lines += [f"| {_link(path, jobs[path], gallery)} | {_expected(jobs[path])} |" for path in paths]
    lines += ["", "## Variants", "", "What each does wrong, and where it is caught."]
    for area in Area:
        lines += ["", f"### {area.value[:1].upper()}{area.value[1:]}", "", *_variants(area, jobs, gallery)]
    return "\n".join(lines) + "\n"


def _link(path: Path, job: Job, gallery: Path) -> str:
    page = gallery / f"{page_name(path)}.md"
    return f"[{escaped(job.name)}]({os.path.relpath(page if page.exists() else path, gallery)})"


def _expected(job: Job) -> str:
    return job.expected.value if job.expected else ""


def _variants(area: Area, jobs: Mapping[Path, Job], gallery: Path) -> Iterator[str]:
    yield from ("| variant | what is wrong | caught in |", "| --- | --- | --- |")
    for variant in sorted(of_area(area), key=list(Variant).index):
        caught = [_link(path, job, gallery) for path, job in jobs.items() if variant.value in _has(job)]
        yield f"| {escaped(str(variant.value))} | {escaped(DESCRIBED[variant].wrong)} | {'; '.join(caught)} |"


def _has(job: Job) -> Sequence[str]:
    """The variants of a scenario that demonstrates their defects."""
    return scenario_of(job).get("variants", []) if _expected(job) != "passed" else []


SHARE_OF_MEMORY = 0.8  # of the free memory


def write_gallery(gallery: Path, files: Sequence[Path]) -> int:
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
            say(f"{page_name(path)}: {result}")
    gallery.mkdir(parents=True, exist_ok=True)
    (gallery / "README.md").write_text(index_of(jobs, gallery), encoding="utf-8")
    return failed


def _chosen(files: Sequence[Path], shipped: Sequence[Path]) -> list[Path]:
    """The shipped scenarios with these names. Raises ScenarioError for a file that is not a shipped scenario."""
    paths = {os.path.realpath(path): path for path in shipped}
    names = [os.path.realpath(file) for file in files]  # `Path.resolve` raises for a symlink loop
    for file, real in zip(files, names, strict=True):
        if real not in paths:
            right = f"name one of those that `{called('list')}` lists, by its path"
            raise ScenarioError(str(file), 0, "", "the package has no such scenario", right)
    return [paths[real] for real in names] if files else list(shipped)
