"""Runs jobs in order, and prints and writes their outcomes: traces in every format, and reports for other programs.

This module chooses engines and time limits; `checker.report.judge` makes the verdicts. An interrupt ends the current
job and cancels the later ones; the report includes the results until then.

The output is the report of one run, or a line for each of several and a report of each unexpected outcome. `prepare`
checks the paths before the first run, so that a wrong path fails early. Every failure is an OutputError.
"""

import argparse
import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from checker.cli.options import REPORT_FILES, apply_profile, wants_reports
from checker.cli.sources import InvalidScenario, RunRequest
from checker.command import ExitCode, say, say_on_error_stream, unread_output_discarded
from checker.engine import Discovery, Exploration, Limits, ModelError, Stop
from checker.engine.checkpoint import Checkpoint, CheckpointError
from checker.engine.model import Kind
from checker.engine.process import allowed_memory, free_memory
from checker.execution import Deadline, compare_with_symmetry, compile_kernels, run_job
from checker.job import Job
from checker.models.ensemble import NotRefinedError
from checker.present.author import presented_otherwise
from checker.report import invariants_lines, judge, refuse, summary_line
from checker.report.json_report import verdicts
from checker.report.text import Line, print_lines, search_lines
from checker.report.verdict import RunOutcome, gravest, not_explored
from checker.traces import trace_of
from checker.traces.formats import FORMATS
from checker.traces.minimise import minimised
from checker.traces.trace import Trace
from checker.user_files import OutputError, make_folder, slug, write

SUMMARY = "GITHUB_STEP_SUMMARY"


def prepare(options: argparse.Namespace) -> None:
    """Create the folders for all output files. Raises OutputError."""
    if options.traces is not None:
        make_folder(options.traces, f"--traces {options.traces}")
    if options.checkpoint is not None:
        make_folder(options.checkpoint, f"--checkpoint {options.checkpoint}")
    for name in REPORT_FILES:
        path: Path | None = getattr(options, name)
        if path is not None:
            make_folder(path.parent, f"--{name} {path}")
            if path.is_dir():
                raise OutputError(f"--{name} {path}: a folder is there; name a file")


def write_reports(outcomes: Sequence[RunOutcome], options: argparse.Namespace, began: float, seconds: float) -> None:
    """Write the reports that the options name. `began` is in seconds since 1970. Raises OutputError."""
    from checker.report.ci_reports import junit_xml, sarif_log  # noqa: PLC0415
    from checker.report.json_report import document, release  # noqa: PLC0415 (few commands write a report)

    if options.junit is not None:
        write(options.junit, junit_xml(outcomes, outcome_text))
    if options.sarif is not None:
        write(options.sarif, json.dumps(sarif_log(outcomes, release()), indent=1) + "\n")
    if options.report is not None:
        write(options.report, json.dumps(document(outcomes, options, began, seconds), indent=1) + "\n")


@contextmanager
def silent_to_github(options: argparse.Namespace) -> Iterator[None]:
    """Stop the GitHub runner from reading the output as workflow commands."""
    from checker.report.ci_reports import commands_stopped  # noqa: PLC0415

    with commands_stopped(lambda line: _say(line, options)) if options.github else nullcontext():
        yield


def say_to_github(outcomes: Sequence[RunOutcome], options: argparse.Namespace) -> None:
    """Print annotations, and write the summary of the step if the environment names a file. Raises OutputError."""
    from checker.report.ci_reports import annotation_lines, summary  # noqa: PLC0415

    for annotation in annotation_lines(outcomes):
        _say(annotation, options)
    path = os.environ.get(SUMMARY)
    if path:
        write(Path(path), summary(outcomes, outcome_text), mode="a")


def _say(line: str, options: argparse.Namespace) -> None:
    if options.json:
        say_on_error_stream(line)
        return
    with unread_output_discarded():
        say(line)


def write_traces(outcomes: Sequence[RunOutcome], folder: Path | None) -> None:
    """Write every trace in every format, each under a unique name. Raises OutputError."""
    if folder is None:
        return
    files: set[str] = set()
    for trace in [trace for outcome in outcomes for trace in outcome.traces]:
        stem = slug(f"{trace.job} {trace.prop}")
        names = (stem, *(f"{stem}-{n}" for n in range(2, len(files) + 3)))
        stem = next(name for name in names if files.isdisjoint(_files(name)))
        files.update(_files(stem))
        for form in FORMATS.values():
            write(folder / form.file_name(stem), form.view(trace))


def _files(stem: str) -> set[str]:
    """Return the file names of a trace in lower case, since some file systems ignore case."""
    return {form.file_name(stem).lower() for form in FORMATS.values()}


def line(outcome: RunOutcome, names: Sequence[str]) -> str:
    """A run in one line, of a set of runs with these names."""
    if outcome.job is None:
        return outcome.judgement.sentence
    return summary_line(outcome.job, outcome.exploration, outcome.judgement, (max(len(name) for name in names), 6))


def print_outcomes(ran: Sequence[RunOutcome], options: argparse.Namespace, *, requested: int) -> None:
    """The complete output of the runs that ended, out of `requested`; their lines are printed before."""
    alone = requested == 1
    for outcome in ran:
        in_full = alone or outcome.judgement.exit_code != 0
        if outcome.exploration is None or outcome.job is None:
            if alone or outcome.job is not None:  # otherwise its line has the same text
                say(outcome.judgement.sentence)
        elif in_full:
            if not alone:
                say()
            print_lines(_report(outcome.job, outcome.exploration, outcome, levels=options.levels), outcome.judgement)
        if in_full and options.format != "none":
            for trace in outcome.findings:
                say()
                say(FORMATS[options.format].view(trace))
    if getattr(options, "command", None) == "nodes" and not alone:
        decided = [outcome.exploration for outcome in ran if outcome.exploration and not outcome.judgement.undecided]
        say("\n".join(invariants_lines(decided)))
    if not alone:
        say(_total(ran, options, requested))


def _total(ran: Sequence[RunOutcome], options: argparse.Namespace, requested: int) -> str:
    good, undecided = (sum(count) for count in zip(*((r.is_good, r.judgement.undecided) for r in ran), strict=True))
    runs = f"{requested} runs" if len(ran) == requested else f"{len(ran)} of {requested} runs"
    success = "passed" if options.verdict or options.variants or options.like else "as expected"
    left_open = f", {undecided} undecided within the budget" if undecided else ""
    return f"{runs}, {'all' if good == len(ran) else good} {success}{left_open}"


def outcome_text(outcome: RunOutcome) -> str:
    """A run in full, as the text in reports: its outcome, and the trace of every finding."""
    if outcome.job is None or outcome.exploration is None:
        return outcome.judgement.sentence
    report = "\n".join(line.text for line in _report(outcome.job, outcome.exploration, outcome))
    return "\n\n".join([report, *(FORMATS["text"].view(trace) for trace in outcome.findings)])


def _report(job: Job, exploration: Exploration, outcome: RunOutcome, *, levels: bool = False) -> list[Line]:
    """The lines of the report of a search, or of a swarm."""
    if not exploration.sampled:
        return search_lines(job, exploration, outcome.judgement, levels=levels)
    from checker.swarm.outcome import SwarmOutcome  # noqa: PLC0415 (it loads the kernels of walks)
    from checker.swarm.report import swarm_lines  # noqa: PLC0415

    assert isinstance(exploration, SwarmOutcome)
    return swarm_lines(job, exploration, outcome.judgement)


Run = TypeVar("Run")
Result = TypeVar("Result")

WORTH = 1.5  # states grow by factors with depth, so a little additional time has no effect
SHARE_OF_MEMORY = 0.8  # of the available memory, unless --memory is given


def run_requests(requests: Sequence[RunRequest | InvalidScenario], options: argparse.Namespace) -> int:
    """Run jobs in order, print and write their outcomes, and return the exit code. Raises OutputError.

    A closed output stream does not change the exit code.
    """
    apply_profile(options)
    prepare(options)
    began, clock = time.time(), time.monotonic()
    with silent_to_github(options):
        ran = _run_each(requests, options)
        ran = [_with_shown_traces(outcome, options, alone=len(requests) == 1) for outcome in ran]
        write_traces(ran, options.traces)
        with unread_output_discarded():
            if options.json:
                say(json.dumps(verdicts(ran)))
            else:
                print_outcomes([outcome for outcome in ran if not outcome.dropped], options, requested=len(requests))
    write_reports(ran, options, began, time.monotonic() - clock)
    if options.github:
        say_to_github(ran, options)
    return gravest(ran)


def _run_each(requests: Sequence[RunRequest | InvalidScenario], options: argparse.Namespace) -> list[RunOutcome]:
    """Return the outcomes in order; with several jobs, print a line for each final outcome."""
    jobs = [request.job for request in requests if isinstance(request, RunRequest)]
    names = [job.name for job in jobs]

    def show(outcome: RunOutcome) -> None:
        if len(requests) > 1 and not options.json:
            with unread_output_discarded():
                say(line(outcome, names))

    def run(item: RunRequest | InvalidScenario, part: float, earlier: RunOutcome | None) -> RunOutcome:
        outcome = outcome_of(item, options, part, again=earlier is not None)
        if not outcome.judgement.undecided:
            show(outcome)
        return outcome

    if options.budget is not None and jobs:
        load_kernels(jobs[0], options)
    deadline = options.budget or Deadline(math.inf)
    ran = share(deadline, requests, run, lambda item: item.judgement.undecided, lambda item: item.interrupted)
    interrupted = any(item.interrupted for item in ran.values())
    for place, item in enumerate(requests):
        is_begun = place in ran
        if not is_begun:
            ran[place] = _left_out(item, options, interrupted=interrupted)
        if ran[place].judgement.undecided or (not is_begun and not interrupted):
            show(ran[place])
    return [ran[place] for place in range(len(requests))]


def share(
    deadline: Deadline,
    runs: Sequence[Run],
    run: Callable[[Run, float, Result | None], Result],
    is_cut: Callable[[Result], bool],
    is_over: Callable[[Result], bool] = lambda _: False,
) -> dict[int, Result]:
    """Carry out all runs for which there is time; return the results by the positions of the runs.

    Each run gets an equal share of the time left; the unused part of a share remains for the later runs. After all runs
    have had a share, each run that its share ended is tried again with an equal share of the time left then, if that is
    at least `WORTH` times as long. Small runs therefore get the time that they need, and large ones the rest.

    `run` gets the seconds that the run may take, and the result of its earlier attempt or None. No run begins after the
    deadline, or after a result for which `is_over` is true.
    """
    results: dict[int, Result] = {}
    parts: dict[int, float] = {}
    waiting = list(range(len(runs)))
    while waiting:
        cut = []
        for number, place in enumerate(waiting):
            part = deadline.left / (len(waiting) - number)
            if part <= 0 or part < WORTH * parts.get(place, 0.0):
                continue
            parts[place] = part
            results[place] = run(runs[place], part, results.get(place))
            if is_over(results[place]):
                return results
            if is_cut(results[place]):
                cut.append(place)
        waiting = cut
    return results


def load_kernels(job: Job, options: argparse.Namespace) -> None:
    """Compile the kernels if the engine of the options has any, so that no share of a budget pays for it."""
    if options.engine != "plain":
        with suppress(ModelError):  # the run of the job reports it
            compile_kernels(job)


def _left_out(request: RunRequest | InvalidScenario, options: argparse.Namespace, *, interrupted: bool) -> RunOutcome:
    if isinstance(request, InvalidScenario):
        return replace(outcome_of(request, options), dropped=interrupted)
    job, why = request.job, "an interrupt" if interrupted else "the end of the budget"
    judgement = not_explored(job, f"it was not begun before {why}")
    return RunOutcome(job.name, judgement, job, path=request.path, dropped=interrupted)


def outcome_of(
    request: RunRequest | InvalidScenario, options: argparse.Namespace, part: float = math.inf, *, again: bool = False
) -> RunOutcome:
    """Run a job for at most `part` seconds, its share of a budget; the outcome has no traces yet.

    `again`: this command has run the job before, and has saved a checkpoint if the options name a folder.
    """
    if isinstance(request, InvalidScenario):
        judgement = refuse(request.why, request.code, bare=options.verdict)
        return RunOutcome(request.path.as_posix(), judgement, path=request.path, line=request.line)
    limits, on_budget = limits_of(request.job, options, part)
    job, began = replace(request.job, limits=limits), time.time()
    unseen = not_explored(job, "it was interrupted before there was anything to report")
    outcome = RunOutcome(job.name, unseen, job, path=request.path, began=began)
    try:
        checkpoint = checkpoint_of(job, options, again=again)
        exploration = run_job(
            job,
            engine=options.engine,
            workers=options.workers,
            checkpoint=checkpoint,
            seed=options.seed,
            reduce="none" if options.reduce in (None, "compare") else options.reduce,
        )
        if checkpoint is not None:
            with suppress(OSError):  # the folder holds a checkpoint
                checkpoint.folder.rmdir()
    except CheckpointError as error:
        judgement = refuse(str(error), ExitCode.COMMAND_LINE, job.expected, bare=options.verdict)
        return replace(outcome, judgement=judgement)
    except ModelError as error:
        return replace(outcome, judgement=refuse(str(error), expected=job.expected, bare=options.verdict))
    except KeyboardInterrupt:
        return replace(outcome, interrupted=True)
    judgement = judge(job, exploration, job.actions, bare=options.verdict, on_budget=on_budget)
    interrupted = exploration.stop is Stop.INTERRUPTED
    outcome = replace(outcome, judgement=judgement, exploration=exploration, interrupted=interrupted)
    return _with_comparison(outcome, job, exploration, options) if options.reduce == "compare" else outcome


def _with_comparison(outcome: RunOutcome, job: Job, found: Exploration, options: argparse.Namespace) -> RunOutcome:
    """Compare a run in full with a symmetric search.

    An error of that search is the verdict, and after an interrupt the run is incomplete; but a violation stays.
    """
    judgement, answer, interrupted = outcome.judgement, "", outcome.interrupted
    try:
        answer = compare_with_symmetry(job, found, workers=options.workers, seed=options.seed)
    except ModelError as error:
        answer = f"none; the comparison with a symmetric search failed: {error}"
        if not found.violations:
            judgement = refuse(str(error), expected=job.expected, bare=options.verdict)
    except KeyboardInterrupt:
        answer, interrupted = "none; the comparison with a symmetric search was interrupted", True
        if not found.violations:
            judgement = not_explored(job, "the comparison with a symmetric search was interrupted")
    return replace(outcome, judgement=judgement, exploration=replace(found, reduction=answer), interrupted=interrupted)


def _with_shown_traces(outcome: RunOutcome, options: argparse.Namespace, *, alone: bool) -> RunOutcome:
    """Return the outcome with the traces to show; witnesses only for a folder or the report."""
    witnesses = options.traces is not None or options.report is not None
    shows = options.format != "none" and (alone or outcome.judgement.exit_code != 0)
    if witnesses or shows or options.json or wants_reports(options):
        return with_traces(outcome, refine=options.refine, witnesses=witnesses, budget=options.budget)
    return outcome


def with_traces(
    outcome: RunOutcome, *, refine: bool = False, witnesses: bool = False, budget: Deadline | None = None
) -> RunOutcome:
    """Return the outcome with a minimised trace of each finding, shortest first.

    `refine` refines runs of the oracle grain to messages where possible. After the end of a budget, or an interrupt,
    the traces are not minimised. Where a presenter fails, another one shows all of them, so that no finding is lost.
    """
    while True:
        try:
            return _with_traces(outcome, refine=refine, witnesses=witnesses, budget=budget)
        except ModelError as error:
            job = None if outcome.job is None else presented_otherwise(outcome.job)
            if job is None:
                raise
            say_on_error_stream(f"note: the traces are shown without a part that fails: {error}")
            outcome = replace(outcome, job=job)


def _with_traces(outcome: RunOutcome, *, refine: bool, witnesses: bool, budget: Deadline | None) -> RunOutcome:
    job, exploration = outcome.job, outcome.exploration
    if job is None or exploration is None:
        return outcome
    runs = sorted(exploration.found.values(), key=lambda run: run.depth)
    chosen = [run for run in runs if witnesses or run.prop.kind is not Kind.SOMETIMES]
    traces, hurried = [], False
    for run in chosen:
        hurried = hurried or (budget is not None and not budget.left)
        try:
            easiest = run if hurried else minimised(job, run, exploration.least_moves(run.depth))
            traces.append(_trace(outcome, job, easiest, refine=refine))
        except KeyboardInterrupt:
            hurried, refine = True, False
            traces.append(_trace(outcome, job, run, refine=refine))
    return replace(outcome, traces=tuple(traces))


def _trace(outcome: RunOutcome, job: Job, found: Discovery, *, refine: bool) -> Trace:
    verdict = outcome.judgement.verdict if found.prop.kind is not Kind.SOMETIMES else None
    if job.refinement is not None and refine:
        try:
            finer, fine = job.refinement.found(found)
        except NotRefinedError as error:
            say_on_error_stream(
                f"note: {found.prop.name} is shown with the steps of the oracle, not message by message: {error}"
            )
        else:
            return trace_of(finer, fine, verdict)
    return trace_of(job, found, verdict)


def limits_of(job: Job, options: argparse.Namespace, part: float = math.inf) -> tuple[Limits, bool]:
    """The job's limits, replaced by those of the command line, and whether its time limit is its share of the budget.

    `part` is that share in seconds; infinite without a budget.
    """
    base = job.limits
    most = options.memory or base.memory
    memory = min(most, int(SHARE_OF_MEMORY * allowed_memory())) if most else free_memory(SHARE_OF_MEMORY)
    seconds = options.time or base.seconds
    if options.engine == "both":
        part /= 2  # each of the two engines gets the same time
    on_budget = part < (math.inf if seconds is None else seconds)
    limits = Limits(
        depth=base.depth if options.depth is None else options.depth,
        states=options.states or base.states,
        memory=memory,
        seconds=round(part, 2) if on_budget else seconds,
    )
    return limits, on_budget


def checkpoint_of(job: Job, options: argparse.Namespace, *, again: bool = False) -> Checkpoint | None:
    """The checkpoint of a job, or None if none is requested: a folder named after the job and a hash of its source.

    A changed scenario is therefore a different search, which starts from the beginning. `again`: this command has
    already saved the search.
    """
    if options.checkpoint is None:
        return None
    made_from = json.dumps(dict(job.source), sort_keys=True).encode("utf-8", "backslashreplace")
    name = f"{slug(job.name)}-{hashlib.sha256(made_from).hexdigest()[:12]}"
    return Checkpoint(options.checkpoint / name, source=dict(job.source), resume=options.resume or again)
