"""Runs jobs and prints what they come to: the report of one, a line for each of several, and every run found.

The verdict of a job is made once, by `checker.report.judge`; this module chooses engines and formats, and adds up
exit codes: that of several jobs is the gravest. An interrupt ends the job under way and those after it;
what is known by then is reported like everything else.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from checker.cli.output import unread_output_discarded
from checker.engine import Exploration, Found, Limits, ModelError, Stop
from checker.engine.compare import disagreements
from checker.engine.model import Kind
from checker.job import Job, Verdict
from checker.models.ensemble import NotRefinedError
from checker.report import (
    ExitCode,
    Judgement,
    Progress,
    invariants_lines,
    judge,
    print_report,
    refuse,
    report_json,
    summary_line,
)
from checker.traces import to_itf, trace_of
from checker.traces.formats import FORMATS
from checker.traces.trace import Trace

GRAVITY = (0, 1, 2, 21, 20, 152, 151, 150, 11, 13, 12)  # exit codes, by the lattice of verdicts
SHARE_OF_MEMORY = 0.8  # of what is free, unless --memory says otherwise
LONGEST_STEM = 150  # characters of a trace's file name before its suffix
CUT_SHORT = (Stop.TIME, Stop.MEMORY, Stop.INTERRUPTED)  # where that happens depends on the machine


class OutputError(Exception):
    """A trace cannot be written where it was wanted; the message says where, and why."""


@dataclass(frozen=True)
class Ran:
    """A job that was run, or could not be: then without an exploration. `traces` are those that are wanted of it."""

    job: Job
    judgement: Judgement
    exploration: Exploration | None = None
    traces: tuple[Trace, ...] = ()
    interrupted: bool = False


def run_all(jobs: Sequence[Job], options: argparse.Namespace) -> int:
    """Run jobs one after the other, print what they come to, and return the exit code. Raises OutputError.

    The code is that of the verdicts also if nobody reads the output to its end.
    """
    _make_folder(options.traces)
    ran: list[Ran] = []
    for job in jobs:
        ran.append(_run(_limited(job, options), options))
        if len(jobs) > 1 and not options.json:
            with unread_output_discarded():
                print(_line(ran[-1], jobs), flush=True)
        if ran[-1].interrupted:
            break
    alone = len(jobs) == 1
    ran = [replace(each, traces=tuple(_traces(each, options, alone=alone))) for each in ran]
    _write_traces(ran, options.traces)
    with unread_output_discarded():
        if options.json:
            print(json.dumps({"schema": 1, "runs": [_data(each) for each in ran], "exit_code": _code(ran)}))
        else:
            _print(ran, options, asked=len(jobs))
    return _code(ran)


def _code(ran: list[Ran]) -> int:
    """The gravest code of several runs: a violation is not hidden by what was merely incomplete before it."""
    return max((each.judgement.exit_code for each in ran), key=GRAVITY.index)


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
    except KeyboardInterrupt:
        reason = "it was interrupted before there was anything to report"
        judgement = Judgement(
            Verdict.INCOMPLETE, int(ExitCode.INCOMPLETE), f"incomplete: {reason}", (reason,), job.expected
        )
        return Ran(job, judgement, interrupted=True)
    judgement = judge(job, exploration, job.actions, bare=options.verdict)
    return Ran(job, judgement, exploration, interrupted=exploration.stop is Stop.INTERRUPTED)


def _explore(job: Job, options: argparse.Namespace) -> Exploration:
    """Explore with the engine asked for. Raises ModelError, also where two engines disagree.

    Two engines are compared where both ended for a reason of the model's; else the run is incomplete anyway.
    """
    from checker.engine import jit, plain, search  # noqa: PLC0415 (kernels load when they are needed)

    with Progress(job.name) as progress:
        if options.engine == "plain":
            return plain.explore(job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress)
        if not jit.is_compiled(with_graph=bool(job.model.liveness)):
            progress.compiling()
        found = search.explore(
            job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress, workers=options.workers
        )
        if options.engine == "both" and found.stop not in CUT_SHORT:
            other = plain.explore(job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress)
            if other.stop in CUT_SHORT:
                return found if found.violations else other
            differences = disagreements(found, other)
            if differences:
                raise ModelError("the engines disagree, which is a defect: " + "; ".join(differences))
        return found


# What is printed.


def _line(ran: Ran, jobs: Sequence[Job]) -> str:
    return summary_line(ran.job, ran.exploration, ran.judgement, (max(len(job.name) for job in jobs), 6))


def _print(ran: list[Ran], options: argparse.Namespace, *, asked: int) -> None:
    alone = asked == 1
    for each in ran:
        told = alone or each.judgement.exit_code != 0
        if each.exploration is None:
            print(each.judgement.sentence)
        elif told:
            if not alone:
                print()
            print_report(each.job, each.exploration, each.judgement, levels=options.levels)
        if told and options.format != "none":
            for trace in _findings(each):
                print()
                print(FORMATS[options.format].view(trace))
    if getattr(options, "command", None) == "nodes" and not alone:
        print("\n".join(invariants_lines([each.exploration for each in ran if each.exploration is not None])))
    if not alone:
        unexpected = sum(each.judgement.exit_code != 0 for each in ran)
        runs = f"{asked} runs" if len(ran) == asked else f"{len(ran)} of {asked} runs"
        wanted = "passed" if options.verdict or options.variants else "as expected"
        print(f"{runs}, {len(ran) - unexpected} {wanted}" if unexpected else f"{runs}, all {wanted}")


def _traces(ran: Ran, options: argparse.Namespace, *, alone: bool) -> Iterator[Trace]:
    """The runs that were found and are to be shown, the shortest first; witnesses only for a folder."""
    shown = options.json or (options.format != "none" and (alone or ran.judgement.exit_code != 0))
    found = () if ran.exploration is None else ran.exploration.found.values()
    for each in sorted(found, key=lambda each: each.depth):
        if options.traces is not None or (shown and each.prop.kind is not Kind.SOMETIMES):
            yield _trace(ran, each, options)


def _findings(ran: Ran) -> list[Trace]:
    """The runs that end in a violation or a deadlock."""
    return [trace for trace in ran.traces if trace.kind is not Kind.SOMETIMES]


def _trace(ran: Ran, found: Found, options: argparse.Namespace) -> Trace:
    verdict = ran.judgement.verdict if found.prop.kind is not Kind.SOMETIMES else None
    if options.refine and ran.job.refinement is not None:
        try:
            job, fine = ran.job.refinement.found(found)
        except NotRefinedError as error:
            print(f"note: {found.prop.name} is told by the oracle, not message by message: {error}", file=sys.stderr)
        else:
            return trace_of(job, fine, verdict)
    return trace_of(ran.job, found, verdict)


def _make_folder(folder: Path | None) -> None:
    """Before anything is run, so that a name that is wrong does not cost a run."""
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise OutputError(f"--traces {folder}: no folder can be there ({error})") from None


def _write_traces(ran: list[Ran], folder: Path | None) -> None:
    """Every run found, in every format, each under a name of its own."""
    if folder is None:
        return
    taken: set[str] = set()
    for trace in [trace for each in ran for trace in each.traces]:
        stem = re.sub(r"[^A-Za-z0-9.]+", "-", f"{trace.job} {trace.prop}").strip("-")[:LONGEST_STEM]
        stem = next(name for name in (stem, *(f"{stem}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)
        taken.add(stem)
        for each in FORMATS.values():
            path = folder / f"{stem}.{each.suffix}"
            try:
                path.write_text(each.view(trace) + "\n", encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                raise OutputError(f"{path}: it cannot be written ({error.strerror})") from None


def _data(ran: Ran) -> dict[str, object]:
    data = report_json(ran.job, ran.exploration, ran.judgement)
    return {**data, "traces": [json.loads(to_itf(trace)) for trace in _findings(ran)]}
