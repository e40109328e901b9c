"""Runs jobs in order, and passes their outcomes to the printer and the writers.

This module chooses engines and time limits; `checker.report.judge` makes the verdicts. An interrupt ends the current
job and cancels the later ones; the report includes the results until then.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from checker.cli.artifacts import (
    line,
    prepare,
    print_outcomes,
    say_to_github,
    silent_to_github,
    write_reports,
    write_traces,
)
from checker.cli.budget import Budget
from checker.cli.command import say_on_error_stream, unread_output_discarded
from checker.cli.limits import checkpoint_of, limits_of
from checker.cli.options import apply_profile, wants_reports
from checker.cli.sources import InvalidScenario, RunRequest
from checker.engine import Discovery, Exploration, Limits, ModelError, Stop
from checker.engine.checkpoint import CheckpointError
from checker.engine.model import Kind
from checker.engine.result import disagreements
from checker.job import Job
from checker.models.ensemble import NotRefinedError
from checker.report import ExitCode, Progress, judge, refuse
from checker.report.json_report import verdicts
from checker.report.outcome import RunOutcome, gravest
from checker.report.verdict import not_explored
from checker.traces import trace_of
from checker.traces.minimise import minimised
from checker.traces.trace import Trace

__all__ = ["InvalidScenario", "RunRequest", "compile_kernels", "outcome_of", "run_all", "run_requests", "with_traces"]

CUT_SHORT = (Stop.TIME, Stop.WORK, Stop.MEMORY, Stop.INTERRUPTED)  # the place depends on the machine or the engine


def run_all(jobs: Sequence[Job], options: argparse.Namespace) -> int:
    """Run jobs without files, as `run_requests` does."""
    return run_requests([RunRequest(job) for job in jobs], options)


def run_requests(wanted: Sequence[RunRequest | InvalidScenario], options: argparse.Namespace) -> int:
    """Run jobs in order, print and write their outcomes, and return the exit code. Raises OutputError.

    A closed output stream does not change the exit code.
    """
    apply_profile(options)
    prepare(options)
    began, clock = time.time(), time.monotonic()
    with silent_to_github(options):
        ran = _run_each(wanted, options)
        ran = [_with_shown_traces(each, options, alone=len(wanted) == 1) for each in ran]
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


def _run_each(wanted: Sequence[RunRequest | InvalidScenario], options: argparse.Namespace) -> list[RunOutcome]:
    """Return the outcomes in order; with several jobs, print a line for each final outcome."""
    jobs = [each.job for each in wanted if isinstance(each, RunRequest)]
    names = [job.name for job in jobs]

    def show(outcome: RunOutcome) -> None:
        if len(wanted) > 1 and not options.json:
            with unread_output_discarded():
                print(line(outcome, names), flush=True)

    def run(each: RunRequest | InvalidScenario, part: float, earlier: RunOutcome | None) -> RunOutcome:
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


def _left_out(wanted: RunRequest | InvalidScenario, options: argparse.Namespace, *, interrupted: bool) -> RunOutcome:
    """Return the outcome of a job that did not start."""
    if isinstance(wanted, InvalidScenario):
        return replace(outcome_of(wanted, options), dropped=interrupted)
    job, why = wanted.job, "an interrupt" if interrupted else "the end of the budget"
    judgement = not_explored(job, f"it was not begun before {why}")
    return RunOutcome(job.name, judgement, job, path=wanted.path, dropped=interrupted)


def outcome_of(
    wanted: RunRequest | InvalidScenario, options: argparse.Namespace, part: float = math.inf, *, again: bool = False
) -> RunOutcome:
    """Run a job for at most `part` seconds, its share of a budget; the outcome has no traces yet.

    `again`: this command has run the job before, and has saved a checkpoint if the options name a folder.
    """
    if isinstance(wanted, InvalidScenario):
        judgement = refuse(wanted.why, wanted.code, bare=options.verdict)
        return RunOutcome(wanted.path.as_posix(), judgement, path=wanted.path, line=wanted.line)
    limits, on_budget = limits_of(wanted.job, options, part)
    job, began = replace(wanted.job, limits=limits), time.time()
    unseen = not_explored(job, "it was interrupted before there was anything to report")
    outcome = RunOutcome(job.name, unseen, job, path=wanted.path, began=began)
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
    """Compile the kernels, or load them from their cache, so that no share of a budget pays for it."""
    from checker.engine import search  # noqa: PLC0415

    if options.engine != "plain":
        with Progress() as progress, suppress(ModelError):  # the run of the job reports it
            search.explore(job.model, Limits(depth=1), progress=progress)


def _explore(job: Job, options: argparse.Namespace, *, again: bool) -> Exploration:
    """Explore with the engine of the options. Raises ModelError, also if two engines disagree.

    Two engines are compared if neither was cut short. Otherwise the stop of the second is the stop of the run, and the
    violations found by the first remain.
    """
    from checker.engine import plain, search  # noqa: PLC0415 (loads the kernels)

    with Progress(job.name) as progress:
        if options.engine == "plain":
            return plain.explore(job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress)
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
            with suppress(OSError):  # the folder holds a checkpoint
                checkpoint.folder.rmdir()
        if options.engine == "both" and found.stop not in CUT_SHORT:
            other = plain.explore(job.model, job.limits, until_witnessed=job.until_witnessed, progress=progress)
            if other.stop in CUT_SHORT:
                return replace(found, stop=other.stop) if found.violations else other
            differences = disagreements(found, other)
            if differences:
                raise ModelError("the engines disagree, which is a defect: " + "; ".join(differences))
        return found


def _with_shown_traces(outcome: RunOutcome, options: argparse.Namespace, *, alone: bool) -> RunOutcome:
    """Return the outcome with the traces to show; witnesses only for a folder or the report."""
    witnesses = options.traces is not None or options.report is not None
    shown = options.format != "none" and (alone or outcome.judgement.exit_code != 0)
    if witnesses or shown or options.json or wants_reports(options):
        return with_traces(outcome, refine=options.refine, witnesses=witnesses, budget=options.budget)
    return outcome


def with_traces(
    outcome: RunOutcome, *, refine: bool = False, witnesses: bool = False, budget: Budget | None = None
) -> RunOutcome:
    """Return the outcome with a minimised trace of each finding, shortest first.

    `refine` refines runs of the oracle grain to messages where possible. After the end of a budget, or an interrupt,
    the traces are not minimised.
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


def _trace(outcome: RunOutcome, job: Job, found: Discovery, *, refine: bool) -> Trace:
    verdict = outcome.judgement.verdict if found.prop.kind is not Kind.SOMETIMES else None
    if refine and job.refinement is not None:
        try:
            finer, fine = job.refinement.found(found)
        except NotRefinedError as error:
            say_on_error_stream(f"note: {found.prop.name} is told by the oracle, not message by message: {error}")
        else:
            return trace_of(finer, fine, verdict)
    return trace_of(job, found, verdict)
