"""The commands on scenarios and models: `run` explores, `replay` executes a saved trace, `explore` serves a page.

`swarm` walks at random and deep through a scenario or a model that no exhaustive search finishes.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from checker.cli.ensemble_commands import add_page, serve_page
from checker.cli.options import add_defects, add_exploration, add_format, size, wants_reports, workers
from checker.command import Command, ExitCode, refused, say, seconds, unread_output_discarded
from checker.command_table import called
from checker.engine.result import MOST_SEED, Limits, Stop
from checker.user_files import read_trace_text
from spec.text import between

if TYPE_CHECKING:
    from checker.cli.sources import RunRequest
    from checker.engine.model import Model
    from checker.job import Job
    from checker.report import Progress
    from checker.report.verdict import RunOutcome
    from checker.swarm.outcome import SwarmOutcome

FILES = "scenario files (YAML), or models in Python files: FILE.py:NAME or FILE.py:NAME(ARGUMENTS)"


def _add_presenter(parser: argparse.ArgumentParser) -> None:
    """Add `--presenter`, for models in Python files."""
    parser.add_argument(
        "--presenter", metavar="NAME", help="what shows the model: a part of its file with lanes, caption or diagram"
    )


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=FILES)
    _add_presenter(parser)
    add_exploration(parser)


def _run(options: argparse.Namespace) -> int:
    from checker.cli.sources import InvalidScenario, load_request  # noqa: PLC0415
    from checker.scenario import bundled  # noqa: PLC0415

    paths = options.files or bundled()
    requests = [load_request(path, options.variants, options.like, options.presenter) for path in paths]
    for request in requests:
        # Reports list every scenario. Without one, an error ends the command before the first run.
        if isinstance(request, InvalidScenario) and not wants_reports(options):
            return refused(request.why, request.code)
    from checker.cli.runner import run_requests  # noqa: PLC0415 (slow to import, so errors come first)

    return run_requests(requests, options)


RUN = Command(_run_options, _run)


def _replay_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace as --traces writes it: ITF, HTML, pytest")
    parser.add_argument(
        "--model", type=Path, metavar="FILE.py:NAME", help="the model that the trace is of, whose code is run"
    )
    _add_presenter(parser)
    add_format(parser, "how to show the trace (default: text)")


def _replay(options: argparse.Namespace) -> int:
    from checker.cli.sources import job_of  # noqa: PLC0415
    from checker.traces import read_trace, replay  # noqa: PLC0415
    from checker.traces.formats import FORMATS  # noqa: PLC0415

    trace = read_trace(read_trace_text(options.file), str(options.file))
    replayed = replay(trace, job_of(trace.source, options.model, options.presenter))
    if options.format != "none":
        say(FORMATS[options.format].view(replayed.trace))
        say()
    if replayed.found is None:
        say(f"replayed: {trace.depth} steps, a run that was walked, without a finding")
    else:
        say(f"replayed: {trace.depth} steps, and {trace.prop} again: {trace.clause}")
    if trace.is_liveness:
        say("\n".join(f"verified: {fact}" for fact in replayed.verified))
    return int(ExitCode.PASSED)


REPLAY = Command(_replay_options, _replay)


def _explore_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="SCENARIO", help=f"{FILES}, or NAME.story.yaml")
    _add_presenter(parser)
    add_defects(parser)
    parser.add_argument("--trace", type=Path, metavar="FILE", help="begin with a saved trace (ITF)")
    parser.add_argument(
        "--export", type=Path, metavar="DIR", help="write the page and the whole space to a folder, and serve nothing"
    )
    add_page(parser)


def _explore(options: argparse.Namespace) -> int:
    from checker.explorer import Handlers, Server  # noqa: PLC0415
    from checker.explorer.export import export  # noqa: PLC0415
    from checker.explorer.stories import load_any  # noqa: PLC0415
    from checker.explorer.walk import LoadRequest  # noqa: PLC0415

    if not options.files and options.trace is None:
        right = f"name a scenario ({called('list')}), or a trace: --trace FILE"
        return refused(f"there is nothing to explore; {right}", ExitCode.COMMAND_LINE)
    opened = [load_any(path, options.variants, options.like, options.presenter) for path in options.files]
    handlers = Handlers((job, _folder_of(path), story) for job, path, story in opened)
    if options.trace is not None:
        begun = handlers.begin_with(LoadRequest(str(options.trace), read_trace_text(options.trace)))
        say(f"{options.trace}: {begun}")
    if options.export is None:
        return serve_page(Server(handlers, options.port), browser=not options.no_browser)
    page, states = export(handlers, options.export)
    say(f"{page}: {states:,} states, {page.stat().st_size:,} bytes; open it in a browser")
    return int(ExitCode.PASSED)


def _folder_of(path: Path) -> str:
    """Return the name of the folder that contains a file. `Path.resolve` raises for a symlink loop."""
    from checker.scenario.model_file import file_of  # noqa: PLC0415

    return Path(os.path.realpath(file_of(path))).parent.name


EXPLORE = Command(_explore_options, _explore)


SECONDS = 60.0
SHORTEN = 30.0
SHARE_OF_MEMORY = 0.8  # of the available memory, unless --memory is given
MOST_DEPTH = 60_000
MOST_WALKS = 10**9
_OF_A_SWARM = (
    "seconds", "walks", "memory", "keep_going", "plot", "json", "traces", "refine", "verdict", "junit", "sarif",
)  # fmt: skip
"""The options that mean nothing for one walk."""


def _swarm_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a scenario (YAML), or a model: FILE.py:NAME")
    _add_presenter(parser)
    group = parser.add_argument_group("the swarm")
    group.add_argument(
        "--seconds",
        type=seconds,
        metavar="T",
        help="walk for a time, such as 600 or 10m (default: 60, without --walks)",
    )
    group.add_argument("--walks", type=between(1, MOST_WALKS), metavar="K", help="stop after this number of walks")
    group.add_argument(
        "--depth", type=between(1, MOST_DEPTH), default=1000, metavar="D", help="no walk is longer (1000)"
    )
    group.add_argument("--memory", type=size, metavar="M", help="stop at a size, such as 4G (default: 80%% of free)")
    group.add_argument(
        "--seed", type=between(0, MOST_SEED), default=1, metavar="N", help="the seed of all walks (default: 1)"
    )
    group.add_argument(
        "--workers",
        type=workers,
        default=2,
        metavar="W",
        help="processes (default: 2), or a Ray cluster: ray, ray:ADDRESS",
    )
    group.add_argument("--keep-going", action="store_true", help="do not stop at the first violation")
    group.add_argument(
        "--shorten", type=seconds, default=SHORTEN, metavar="T", help="make each run shorter for a time (default: 30)"
    )
    group.add_argument("--walk", type=between(0, MOST_WALKS), metavar="K", help="repeat the walk number K and show it")
    add_defects(group)
    output = parser.add_argument_group("the output")
    output.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the coverage over time; needs matplotlib")
    output.add_argument("--json", action="store_true", help="a report for machines, on standard output")
    add_format(output, "how to show a run (default: text)")
    output.add_argument("--traces", type=Path, metavar="DIR", help="write every run found there, in every format")
    output.add_argument("--refine", action="store_true", help="tell a run of the oracle grain message by message")
    output.add_argument("--verdict", action="store_true", help="exit with the verdict's own code, expected or not")
    output.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    output.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0")
    parser.set_defaults(report=None, checkpoint=None, github=False, levels=False)


def _swarm_or_walk(options: argparse.Namespace) -> int:
    from checker.cli.runner import prepare  # noqa: PLC0415 (slow to import, so errors come first)
    from checker.cli.sources import InvalidScenario, load_request  # noqa: PLC0415
    from checker.swarm.report import check_available  # noqa: PLC0415
    from checker.user_files import check_writable  # noqa: PLC0415

    if options.walk is not None:
        _check_alone(options)
    prepare(options)
    if options.plot is not None:
        check_available(options.plot)
        check_writable(options.plot)
    request = load_request(options.file, options.variants, options.like, options.presenter)
    if isinstance(request, InvalidScenario):
        return refused(request.why, request.code)
    return _walk(request.job, options) if options.walk is not None else _swarm(request, options)


def _check_alone(options: argparse.Namespace) -> None:
    """Raise OutputError for an option beside --walk that would do nothing."""
    from checker.user_files import OutputError  # noqa: PLC0415

    for name in _OF_A_SWARM:
        if getattr(options, name):
            raise OutputError(f"--walk repeats and shows one walk; leave --{name.replace('_', '-')} out")


def _swarm_limits(options: argparse.Namespace) -> Limits:
    from checker.engine.process import free_memory  # noqa: PLC0415

    default = SECONDS if options.walks is None else None
    memory = options.memory or free_memory(SHARE_OF_MEMORY)
    return Limits(options.depth, work=options.walks, seconds=options.seconds or default, memory=memory)


def _swarm(request: RunRequest, options: argparse.Namespace) -> int:
    from checker.cli.runner import print_outcomes, write_reports, write_traces  # noqa: PLC0415
    from checker.engine.search import explore  # noqa: PLC0415
    from checker.report import Progress  # noqa: PLC0415
    from checker.report.verdict import RunOutcome, judge  # noqa: PLC0415
    from checker.swarm.outcome import SwarmOutcome  # noqa: PLC0415
    from checker.swarm.report import draw, swarm_json  # noqa: PLC0415
    from checker.swarm.search import RandomWalks  # noqa: PLC0415

    job, began = request.job, time.time()
    with Progress(job.name) as progress:
        source = json.dumps(dict(job.source), sort_keys=True)
        frontier = RandomWalks(options.keep_going, partial(_model_of, source, options.file), source)
        outcome = explore(
            job.model, _swarm_limits(options), frontier=frontier, workers=options.workers, progress=progress,
            seed=options.seed,
        )  # fmt: skip
        assert isinstance(outcome, SwarmOutcome)
        if outcome.violated and outcome.stop is not Stop.INTERRUPTED:
            _shorten(job, outcome, options, progress)
    judgement = judge(job, outcome, job.actions, bare=options.verdict)
    ran = RunOutcome(
        job.name, judgement, job, replace(outcome, found=dict(outcome.found)), path=request.path, began=began
    )
    ran = _with_traces(ran, outcome, options)
    write_traces([ran], options.traces)
    with unread_output_discarded():
        if options.json:
            say(json.dumps(swarm_json(job, outcome, judgement, ran.findings)))
        else:
            print_outcomes([ran], options, requested=1)
    write_reports([ran], options, began, outcome.seconds)
    if options.plot is not None:
        draw(job.name, outcome, options.plot)
    return judgement.exit_code


def _model_of(source: str, file: Path) -> Model:
    """The model of a job's source, made in another process. Raises ModelError."""
    from checker.cli.sources import SourceError, job_of  # noqa: PLC0415
    from checker.engine.model import ModelError  # noqa: PLC0415

    try:
        content = json.loads(source)
        return job_of(content, file, content.get("presenter")).model
    except SourceError as error:
        raise ModelError(str(error)) from None


def _shorten(job: Job, outcome: SwarmOutcome, options: argparse.Namespace, progress: Progress) -> None:
    from checker.execution import Deadline  # noqa: PLC0415
    from checker.swarm.shorten import shortened  # noqa: PLC0415
    from checker.swarm.walker import safety  # noqa: PLC0415

    job = replace(job, model=safety(job.model))
    for name in outcome.violated:
        progress.update(partial("making the run to {} shorter".format, name))
        short = shortened(job, outcome.found[name], Deadline(options.shorten), _threads(options))
        outcome.found[name] = short.found
        if short.is_shortest:
            outcome.shortest.add(name)


def _threads(options: argparse.Namespace) -> int:
    return options.workers if isinstance(options.workers, int) else 2


def _with_traces(ran: RunOutcome, outcome: SwarmOutcome, options: argparse.Namespace) -> RunOutcome:
    """The outcome with its traces; those of witnesses only for a folder."""
    from checker.cli.runner import with_traces  # noqa: PLC0415
    from checker.engine.model import Kind  # noqa: PLC0415
    from checker.swarm.report import NOT_SHORTEST, SHORTEST  # noqa: PLC0415
    from checker.swarm.walker import WalkRunner, safety  # noqa: PLC0415

    if options.traces is not None and ran.exploration is not None:
        runner = WalkRunner(safety(outcome.model), outcome.seed, options.depth)
        for prop in outcome.model.properties:
            if prop.kind is Kind.SOMETIMES and prop.name in outcome.sightings:
                discovery = runner.discovery(prop, outcome.sightings[prop.name])
                ran.exploration.found[discovery.prop.name] = discovery
    ran = with_traces(ran, refine=options.refine, witnesses=options.traces is not None)
    remarks = [SHORTEST if trace.prop in outcome.shortest else NOT_SHORTEST for trace in ran.traces]
    traces = [replace(t, bounds=(*t.bounds, remark)) for t, remark in zip(ran.traces, remarks, strict=True)]
    return replace(ran, traces=tuple(traces))


def _walk(job: Job, options: argparse.Namespace) -> int:
    from checker.engine.model import Kind  # noqa: PLC0415
    from checker.swarm.walker import WalkRunner, safety  # noqa: PLC0415
    from checker.traces import trace_of  # noqa: PLC0415
    from checker.traces.formats import FORMATS  # noqa: PLC0415
    from checker.traces.trace import walk_of  # noqa: PLC0415

    path, runs = WalkRunner(safety(job.model), options.seed, options.depth).repeat(options.walk)
    if options.format != "none":
        traces = [trace_of(job, run) for run in runs] or [walk_of(job, path)]
        say("\n\n".join(FORMATS[options.format].view(trace) for trace in traces))
    names = ", ".join(run.prop.name for run in runs)
    ends = f"a finding of {names}" if runs else "no finding"
    say(f"walk {options.walk} of the seed {options.seed}: {len(path) - 1} steps, {ends} at its end")
    kinds = {run.prop.kind for run in runs}
    deadlock = ExitCode.DEADLOCK if Kind.FINAL in kinds else ExitCode.INCOMPLETE
    return int(ExitCode.SAFETY if Kind.ALWAYS in kinds else deadlock)


SWARM = Command(_swarm_options, _swarm_or_walk)
