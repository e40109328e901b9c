"""The commands on scenarios and models: `run` explores, `replay` executes a saved trace, `explore` serves a page."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from checker.cli.ensemble_commands import add_page, serve_page
from checker.cli.options import add_exploration, add_format, add_like, variant, wants_reports
from checker.command import Command, ExitCode, refused, say
from checker.user_files import read_trace_text

if TYPE_CHECKING:
    from checker.explorer import Handlers
    from checker.job import Job

FILES = "scenario files (YAML), or models in Python files: FILE.py:NAME or FILE.py:NAME(ARGUMENTS)"


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=FILES)
    add_exploration(parser)


def _run(options: argparse.Namespace) -> int:
    from checker.cli.sources import InvalidScenario, load_request  # noqa: PLC0415
    from checker.scenario import VariantError, bundled  # noqa: PLC0415
    from checker.user_files import OutputError  # noqa: PLC0415

    try:
        requests = [load_request(path, options.variants, options.like) for path in options.files or bundled()]
        for request in requests:
            # Reports list every scenario. Without one, an error ends the command before the first run.
            if isinstance(request, InvalidScenario) and not wants_reports(options):
                return refused(request.why, request.code)
        from checker.cli.runner import run_requests  # noqa: PLC0415 (slow to import, so errors come first)

        return run_requests(requests, options)
    except (OutputError, VariantError) as error:
        return refused(str(error), ExitCode.COMMAND_LINE)


RUN = Command("run", "Runs scenarios; without files, all that come with the package.", _run_options, _run)


def _replay_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace as --traces writes it: ITF, HTML, pytest")
    parser.add_argument(
        "--model", type=Path, metavar="FILE.py:NAME", help="the model that the trace is of, whose code is run"
    )
    add_format(parser, "how to show the trace (default: text)")


def _replay(options: argparse.Namespace) -> int:
    from checker.cli.sources import SourceError, job_of  # noqa: PLC0415
    from checker.traces import ReplayError, TraceFileError, read_trace, replay  # noqa: PLC0415
    from checker.traces.formats import FORMATS  # noqa: PLC0415

    try:
        text = read_trace_text(options.file)
    except (OSError, ValueError) as error:
        return refused(f"{options.file}: it cannot be read ({error}); name a saved trace", ExitCode.SCENARIO)
    try:
        trace = read_trace(text, str(options.file))
        replayed = replay(trace, job_of(trace.source, options.model))
    except (TraceFileError, SourceError, ReplayError) as error:
        return refused(str(error), ExitCode.SCENARIO)
    if options.format != "none":
        say(FORMATS[options.format].view(replayed.trace))
        say()
    if replayed.found is None:
        say(f"replayed: {trace.depth} steps, a run that was walked, without a finding")
    else:
        say(f"replayed: {trace.depth} steps, and {trace.prop} again: {trace.clause}")
    if trace.is_liveness:
        say("\n".join(f"verified: {seen}" for seen in replayed.verified))
    return int(ExitCode.PASSED)


REPLAY = Command("replay", "Executes a saved trace again; it must reach the same finding.", _replay_options, _replay)


def _explore_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", type=Path, metavar="SCENARIO", help=FILES)
    parser.add_argument(
        "--variant", type=variant, action="append", default=[], metavar="NAME", dest="variants",
        help="reproduce a known defect or a mutant; may be repeated",
    )  # fmt: skip
    add_like(parser)
    parser.add_argument("--trace", type=Path, metavar="FILE", help="begin with a saved trace (ITF)")
    add_page(parser)


def _explore(options: argparse.Namespace) -> int:
    from checker.explorer import BadRequestError, Handlers, PortError, Server  # noqa: PLC0415
    from checker.scenario import ScenarioError, VariantError, load  # noqa: PLC0415

    if not options.files and options.trace is None:
        right = "name a scenario (python -m checker list), or a trace: --trace FILE"
        return refused(f"there is nothing to explore; {right}", ExitCode.COMMAND_LINE)
    try:
        jobs = [load(path, options.variants, options.like) for path in options.files]
        handlers = Handlers(zip(map(_walked, jobs), map(_folder_of, options.files), strict=True))
        _begin(handlers, options.trace)
        server = Server(handlers, options.port)
    except (ScenarioError, BadRequestError) as error:
        return refused(str(error), ExitCode.SCENARIO)
    except (VariantError, PortError) as error:
        return refused(str(error), ExitCode.COMMAND_LINE)
    return serve_page(server, browser=not options.no_browser)


def _walked(job: Job) -> Job:
    """The job whose moves a reader walks: the finer one, if the steps of a job do not fit together."""
    return job.refinement.job() if job.refinement is not None and job.refinement.by_default else job


def _begin(handlers: Handlers, trace: Path | None) -> None:
    """Load the saved trace for the first view, if the options name one. Raises BadRequestError."""
    from checker.explorer import BadRequestError  # noqa: PLC0415
    from checker.explorer.walk import LoadRequest  # noqa: PLC0415

    if trace is None:
        return
    try:
        text = read_trace_text(trace)
    except (OSError, ValueError) as error:
        raise BadRequestError(f"{trace}: it cannot be read ({error}); name a saved trace") from None
    say(f"{trace}: {handlers.begin_with(LoadRequest(str(trace), text))}")


def _folder_of(path: Path) -> str:
    """Return the name of the folder that contains a file. `Path.resolve` raises for a symlink loop."""
    from checker.scenario.model_file import file_of  # noqa: PLC0415

    return Path(os.path.realpath(file_of(path))).parent.name


EXPLORE = Command(
    "explore", "Serves a local page to walk through the states of a scenario.", _explore_options, _explore
)
