"""Runs jobs one after the other, and hands what they come to to whatever prints or writes it.

The verdict of a job is made once, by `checker.report.judge`; this module chooses engines and times. An interrupt ends
the job under way and those after it; what is known by then is reported like everything else.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from checker.cli.budget import Budget
from checker.cli.kept import (
    prepare,
    say_to_github,
    silent_to_github,
    wants_reports,
    write_reports,
    write_traces,
)
from checker.cli.limits import checkpoint_of, limits_of
from checker.cli.output import say_on_error_stream, unread_output_discarded
from checker.cli.printed import line, print_outcomes
from checker.cli.profiles import settle
from checker.engine import Exploration, Found, Limits, ModelError, Stop
from checker.engine.checkpoint import CheckpointError
from checker.engine.compare import disagreements
from checker.engine.model import Kind
from checker.job import Job
from checker.models.ensemble import NotRefinedError
from checker.report import ExitCode, Progress, judge, refuse
from checker.report.document import verdicts
from checker.report.outcome import Outcome, gravest
from checker.report.verdict import not_explored
from checker.traces import trace_of
from checker.traces.minimise import minimised
from checker.traces.trace import Trace

__all__ = ["Refused", "Wanted", "compile_kernels", "outcome_of", "run_all", "run_wanted", "with_traces"]

CUT_SHORT = (Stop.TIME, Stop.MEMORY, Stop.INTERRUPTED)  # where that happens depends on the machine


@dataclass(frozen=True)
class Wanted:
    """A job that is to be run, with the path of its scenario if it has one."""

    job: Job
    path: Path | None = None


@dataclass(frozen=True)
class Refused:
    """A scenario that cannot be used: why, with which exit code, and the line if it is known."""

    path: Path
    why: str
    code: ExitCode
    line: int = 0


def run_all(jobs: Sequence[Job], options: argparse.Namespace) -> int:
    """Run jobs that have no files, as `run_wanted` does."""
    return run_wanted([Wanted(job) for job in jobs], options)


def run_wanted(wanted: Sequence[Wanted | Refused], options: argparse.Namespace) -> int:
    """Run jobs one after the other, print and write what they come to, and return the exit code. Raises OutputError.

    The code is that of the verdicts also if nobody reads the output to its end.
    """
    settle(options)
    prepare(options)
    began, clock = time.time(), time.monotonic()
    with silent_to_github(options):
        ran = _run_each(wanted, options)
        ran = [_told_of(each, options, alone=len(wanted) == 1) for each in ran]
        write_traces(ran, options.traces)
        with unread_output_discarded():
            if options.json:
                print(json.dumps(verdicts(ran)))
            else:
                print_outcomes([each for each in ran if not each.dropped], options, asked=len(wanted))
    write_reports(ran, options, began, time.monotonic() - clock)
    if options.github:
        say_to_github(ran, options)
    return gravest(ran)


def _run_each(wanted: Sequence[Wanted | Refused], options: argparse.Namespace) -> list[Outcome]:
    """What came of each, in order; of several a line is printed as soon as it is settled."""
    jobs = [each.job for each in wanted if isinstance(each, Wanted)]
    names = [job.name for job in jobs]

    def show(outcome: Outcome) -> None:
        if len(wanted) > 1 and not options.json:
            with unread_output_discarded():
                print(line(outcome, names), flush=True)

    def run(each: Wanted | Refused, part: float, earlier: Outcome | None) -> Outcome:
        outcome = outcome_of(each, options, part, again=earlier is not None)
        if not outcome.judgement.undecided:
            show(outcome)
        return outcome

    if options.budget is not None and jobs:
        compile_kernels(jobs[0], options)
    budget = options.budget or Budget(math.inf)
    ran = budget.share(wanted, run, lambda each: each.judgement.undecided, lambda each: each.interrupted)
    interrupted = any(each.interrupted for each in ran.values())
    for place, each in enumerate(wanted):
        begun = place in ran
        if not begun:
            ran[place] = _left_out(each, options, interrupted=interrupted)
        if ran[place].judgement.undecided or (not begun and not interrupted):
            show(ran[place])
    return [ran[place] for place in range(len(wanted))]


def _left_out(wanted: Wanted | Refused, options: argparse.Namespace, *, interrupted: bool) -> Outcome:
    """What came of a job that was never begun."""
    if isinstance(wanted, Refused):
        return replace(outcome_of(wanted, options), dropped=interrupted)
    job, why = wanted.job, "an interrupt" if interrupted else "the end of the budget"
    judgement = not_explored(job, f"it was not begun before {why}")
    return Outcome(job.name, judgement, job, path=wanted.path, dropped=interrupted)


def outcome_of(
    wanted: Wanted | Refused, options: argparse.Namespace, part: float = math.inf, *, again: bool = False
) -> Outcome:
    """Run a job within so many seconds, its part of a budget; without the traces of what was found.

    `again`: this command has run it before, and kept it if that is wanted.
    """
    if isinstance(wanted, Refused):
        judgement = refuse(wanted.why, wanted.code, bare=options.verdict)
        return Outcome(wanted.path.as_posix(), judgement, path=wanted.path, line=wanted.line)
    limits, on_budget = limits_of(wanted.job, options, part)
    job, began = replace(wanted.job, limits=limits), time.time()
    unseen = not_explored(job, "it was interrupted before there was anything to report")
    outcome = Outcome(job.name, unseen, job, path=wanted.path, began=began)
    try:
        exploration = _explore(job, options, again=again)
    except CheckpointError as error:
        judgement = refuse(str(error), ExitCode.COMMAND_LINE, job.expected, bare=options.verdict)
        return replace(outcome, judgement=judgement)
    except ModelError as error:
        return replace(outcome, judgement=refuse(str(error), expected=job.expected, bare=options.verdict))
    except KeyboardInterrupt:
        return replace(outcome, interrupted=True)
    judgement = judge(job, exploration, job.actions, bare=options.verdict, on_budget=on_budget)
    interrupted = exploration.stop is Stop.INTERRUPTED
    return replace(outcome, judgement=judgement, exploration=exploration, interrupted=interrupted)


def compile_kernels(job: Job, options: argparse.Namespace) -> None:
    """Have the kernels compiled, or read from their cache, so that no run's part of a budget goes to that."""
    from checker.engine import jit, search  # noqa: PLC0415

    if options.engine != "plain":
        with Progress() as progress, suppress(ModelError):  # what is wrong with a model, its own run says
            if not jit.is_compiled():
                progress.compiling()
            search.explore(job.model, Limits(depth=1))


def _explore(job: Job, options: argparse.Namespace, *, again: bool) -> Exploration:
    """Explore with the engine asked for. Raises ModelError, also where two engines disagree.

    Two engines are compared where both ended for a reason of the model's. Else the run ended as the second did, and
    what the first has found stands.
    """
    from checker.engine import jit, plain, search  # noqa: PLC0415 (kernels load when they are needed)

    with Progress(job.name) as progress:
        if options.engine == "plain":
            return plain.explore(job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress)
        if not jit.is_compiled(with_graph=bool(job.model.liveness)):
            progress.compiling()
        checkpoint = checkpoint_of(job, options, again=again)
        found = search.explore(
            job.model,
            job.limits,
            until_witnessed=job.until_witnessed,
            progress=progress,
            workers=options.workers,
            checkpoint=checkpoint,
        )
        if checkpoint is not None:
            with suppress(OSError):  # a search is kept there
                checkpoint.folder.rmdir()
        if options.engine == "both" and found.stop not in CUT_SHORT:
            other = plain.explore(job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress)
            if other.stop in CUT_SHORT:
                return replace(found, stop=other.stop) if found.violations else other
            differences = disagreements(found, other)
            if differences:
                raise ModelError("the engines disagree, which is a defect: " + "; ".join(differences))
        return found


# What was found.


def _told_of(outcome: Outcome, options: argparse.Namespace, *, alone: bool) -> Outcome:
    """The outcome with the traces that are to be told of; witnesses only for a folder or the report."""
    witnesses = options.traces is not None or options.report is not None
    shown = options.format != "none" and (alone or outcome.judgement.exit_code != 0)
    if witnesses or shown or options.json or wants_reports(options):
        return with_traces(outcome, refine=options.refine, witnesses=witnesses, budget=options.budget)
    return outcome


def with_traces(
    outcome: Outcome, *, refine: bool = False, witnesses: bool = False, budget: Budget | None = None
) -> Outcome:
    """The outcome with the runs that were found, each told as is easiest to read, the shortest first.

    `refine`: message by message where that is possible. When a budget is over, or after an interrupt, runs are told as
    they were found.
    """
    job, exploration = outcome.job, outcome.exploration
    if job is None or exploration is None:
        return outcome
    found = sorted(exploration.found.values(), key=lambda each: each.depth)
    told = [each for each in found if witnesses or each.prop.kind is not Kind.SOMETIMES]
    traces, hurried = [], False
    for each in told:
        hurried = hurried or (budget is not None and not budget.left)
        try:
            easiest = each if hurried else minimised(job, each, exploration.levels)
            traces.append(_trace(outcome, job, easiest, refine=refine))
        except KeyboardInterrupt:
            hurried, refine = True, False
            traces.append(_trace(outcome, job, each, refine=refine))
    return replace(outcome, traces=tuple(traces))


def _trace(outcome: Outcome, job: Job, found: Found, *, refine: bool) -> Trace:
    verdict = outcome.judgement.verdict if found.prop.kind is not Kind.SOMETIMES else None
    if refine and job.refinement is not None:
        try:
            finer, fine = job.refinement.found(found)
        except NotRefinedError as error:
            say_on_error_stream(f"note: {found.prop.name} is told by the oracle, not message by message: {error}")
        else:
            return trace_of(finer, fine, verdict)
    return trace_of(job, found, verdict)
