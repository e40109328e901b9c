"""`replay`: executes a saved trace again."""

from __future__ import annotations

import argparse
from pathlib import Path

from checker.cli.commands.command import Command, refused
from checker.cli.options import add_format
from checker.report.verdict import ExitCode


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a trace as --traces writes it: ITF, HTML, pytest")
    add_format(parser, "how to show the trace (default: text)")


def _run(options: argparse.Namespace) -> int:
    from checker.cli.sources import SourceError, job_of  # noqa: PLC0415
    from checker.traces import ReplayError, TraceFileError, read_trace, replay  # noqa: PLC0415
    from checker.traces.formats import FORMATS  # noqa: PLC0415

    try:
        text = options.file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        return refused(f"{options.file}: it cannot be read ({error}); name a saved trace", ExitCode.SCENARIO)
    try:
        trace = read_trace(text, str(options.file))
        replayed = replay(trace, job_of(trace.source))
    except (TraceFileError, SourceError, ReplayError) as error:
        return refused(str(error), ExitCode.SCENARIO)
    if options.format != "none":
        print(FORMATS[options.format].view(replayed.trace))
        print()
    if replayed.found is None:
        print(f"replayed: {trace.depth} steps, a run that was walked, without a finding")
    else:
        print(f"replayed: {trace.depth} steps, and {trace.prop} again: {trace.clause}")
    if trace.is_liveness:
        print("\n".join(f"verified: {seen}" for seen in replayed.verified))
    return int(ExitCode.PASSED)


COMMAND = Command("replay", "Executes a saved trace again; it must reach the same finding.", _options, _run)
