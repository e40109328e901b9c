"""Runs jobs and prints what they come to: the report of one, a line for each of several, and every run found.

The verdict of a job is made once, by `checker.report.judge`; this module chooses engines and formats, and adds up
exit codes: that of several jobs is the first that is not 0.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from checker.engine import Exploration, Found, Limits, ModelError
from checker.engine.compare import disagreements
from checker.engine.model import Kind
from checker.job import Job
from checker.models.ensemble import NotRefinedError
from checker.report import Judgement, Progress, judge, print_report, refuse, report_json, summary_line
from checker.scenario import known_actions
from checker.traces import to_itf, to_mermaid, to_text, trace_of
from checker.traces.trace import Trace

VIEWS = {"text": to_text, "mermaid": to_mermaid, "itf": to_itf}
SUFFIXES = {"text": "txt", "mermaid": "mmd", "itf": "itf.json"}
SHARE_OF_MEMORY = 0.8  # of what is free, unless --memory says otherwise


@dataclass(frozen=True)
class Ran:
    """A job that was run, or could not be: then without an exploration."""

    job: Job
    judgement: Judgement
    exploration: Exploration | None = None


def run_all(jobs: Sequence[Job], options: argparse.Namespace) -> int:
    """Run jobs one after the other, print what they come to, and return the exit code."""
    ran = []
    for job in jobs:
        ran.append(_run(_limited(job, options), options))
        if len(jobs) > 1 and not options.json:
            print(_line(ran[-1], jobs), flush=True)
        if ran[-1].exploration is not None and ran[-1].exploration.stop.value == "interrupted":
            break
    for each in ran:
        _write_traces(each, options)
    if options.json:
        print(json.dumps({"schema": 1, "runs": [_data(each, options) for each in ran], "exit_code": _code(ran)}))
    else:
        _print(ran, options, alone=len(jobs) == 1)
    return _code(ran)


def _code(ran: list[Ran]) -> int:
    return next((each.judgement.exit_code for each in ran if each.judgement.exit_code), 0)


def _limited(job: Job, options: argparse.Namespace) -> Job:
    """The job with the limits of the command line in the place of its own."""
    own = job.limits
    memory = options.memory or own.memory or int(SHARE_OF_MEMORY * psutil.virtual_memory().available)
    limits = Limits(
        depth=own.depth if options.depth is None else options.depth,
        states=options.states or own.states,
        memory=memory,
        seconds=options.time or own.seconds,
    )
    return replace(job, limits=limits)


def _run(job: Job, options: argparse.Namespace) -> Ran:
    try:
        exploration = _explore(job, options)
    except ModelError as error:
        return Ran(job, refuse(str(error), expected=job.expected, bare=options.verdict))
    return Ran(job, judge(job, exploration, known_actions(job.model), bare=options.verdict), exploration)


def _explore(job: Job, options: argparse.Namespace) -> Exploration:
    """Explore with the engine asked for. Raises ModelError, also where two engines disagree."""
    from checker.engine import jit, plain, search  # noqa: PLC0415 (kernels load when they are needed)

    with Progress(job.name) as progress:
        if options.engine == "plain":
            return plain.explore(job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress)
        if not jit.is_compiled():
            progress.compiling()
        found = search.explore(
            job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress, workers=options.workers
        )
        if options.engine == "both":
            other = plain.explore(job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress)
            differences = disagreements(found, other)
            if differences:
                raise ModelError("the engines disagree, which is a defect: " + "; ".join(differences))
        return found


# What is printed.


def _line(ran: Ran, jobs: Sequence[Job]) -> str:
    return summary_line(ran.job, ran.exploration, ran.judgement, (max(len(job.name) for job in jobs), 6))


def _print(ran: list[Ran], options: argparse.Namespace, *, alone: bool) -> None:
    for each in ran:
        told = alone or each.judgement.exit_code != 0
        if each.exploration is None:
            print(each.judgement.sentence)
        elif told:
            if not alone:
                print()
            print_report(each.job, each.exploration, each.judgement, levels=options.levels)
        if told and options.format != "none":
            for trace in _traces(each, options, witnesses=False):
                print()
                print(VIEWS[options.format](trace))
    if not alone:
        unexpected = sum(each.judgement.exit_code != 0 for each in ran)
        asked = "with the verdict's own code" if options.verdict else "as expected"
        print(f"{len(ran)} runs, {len(ran) - unexpected} {asked}" if unexpected else f"{len(ran)} runs, all {asked}")


def _traces(ran: Ran, options: argparse.Namespace, *, witnesses: bool) -> list[Trace]:
    """The runs that were found: violations and deadlocks, and also witnesses if asked for or if that is all."""
    if ran.exploration is None:
        return []
    found = [each for each in ran.exploration.found.values() if witnesses or each.prop.kind is not Kind.SOMETIMES]
    return [_trace(ran, each, options) for each in sorted(found, key=lambda each: each.depth)]


def _trace(ran: Ran, found: Found, options: argparse.Namespace) -> Trace:
    verdict = ran.judgement.verdict if found.prop.kind is not Kind.SOMETIMES else None
    if options.refine and ran.job.refinement is not None:
        try:
            job, fine = ran.job.refinement.found(found)
        except NotRefinedError as error:
            raise ModelError(f"the run by the oracle cannot be told message by message: {error}") from None
        return trace_of(job, fine, verdict)
    return trace_of(ran.job, found, verdict)


def _write_traces(ran: Ran, options: argparse.Namespace) -> None:
    """Every run found, in every format, in a folder."""
    if options.traces is None:
        return
    options.traces.mkdir(parents=True, exist_ok=True)
    for trace in _traces(ran, options, witnesses=True):
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", f"{trace.job} {trace.prop}").strip("-")
        for name, view in VIEWS.items():
            path: Path = options.traces / f"{stem}.{SUFFIXES[name]}"
            path.write_text(view(trace) + "\n", encoding="utf-8")


def _data(ran: Ran, options: argparse.Namespace) -> dict[str, object]:
    data = report_json(ran.job, ran.exploration, ran.judgement)
    traces = _traces(ran, options, witnesses=False)
    return {**data, "traces": [json.loads(to_itf(trace)) for trace in traces]}
