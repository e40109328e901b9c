"""Writes the outcomes of runs: traces in every format, and reports for build servers, code hosts and other programs.

`prepare` checks the paths before the first run, so that a wrong path fails early. Every failure is an OutputError.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from checker.cli.options import REPORT_FILES
from checker.cli.output import say_on_error_stream, unread_output_discarded
from checker.cli.printing import outcome_text
from checker.output_files import OutputError, make_folder, slug, write
from checker.report.outcome import RunOutcome
from checker.traces.formats import FORMATS

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
    from checker.report.document import document, release  # noqa: PLC0415 (few commands write a report)
    from checker.report.junit import junit_xml  # noqa: PLC0415
    from checker.report.sarif import sarif_log  # noqa: PLC0415

    if options.junit is not None:
        write(options.junit, junit_xml(outcomes, outcome_text))
    if options.sarif is not None:
        write(options.sarif, json.dumps(sarif_log(outcomes, release()), indent=1) + "\n")
    if options.report is not None:
        write(options.report, json.dumps(document(outcomes, options, began, seconds), indent=1) + "\n")


@contextmanager
def silent_to_github(options: argparse.Namespace) -> Iterator[None]:
    """Stop the GitHub runner from reading the output as workflow commands."""
    from checker.report.github import commands_stopped  # noqa: PLC0415

    with commands_stopped(lambda line: _say(line, options)) if options.github else nullcontext():
        yield


def say_to_github(outcomes: Sequence[RunOutcome], options: argparse.Namespace) -> None:
    """Print annotations, and write the summary of the step if the environment names a file. Raises OutputError."""
    from checker.report.github import annotation_lines  # noqa: PLC0415
    from checker.report.summary import summary  # noqa: PLC0415

    for annotation in annotation_lines(outcomes):
        _say(annotation, options)
    path = os.environ.get(SUMMARY)
    if path:
        write(Path(path), summary(outcomes, outcome_text), mode="a")


def _say(line: str, options: argparse.Namespace) -> None:
    """Print a line for the runner, which reads both streams; with --json, standard output holds a single object."""
    if options.json:
        say_on_error_stream(line)
        return
    with unread_output_discarded():
        print(line, flush=True)


def write_traces(outcomes: Sequence[RunOutcome], folder: Path | None) -> None:
    """Write every trace in every format, each under a unique name. Raises OutputError."""
    if folder is None:
        return
    taken: set[str] = set()
    for trace in [trace for each in outcomes for trace in each.traces]:
        stem = slug(f"{trace.job} {trace.prop}")
        names = (stem, *(f"{stem}-{n}" for n in range(2, len(taken) + 3)))
        stem = next(name for name in names if taken.isdisjoint(_files(name)))
        taken.update(_files(stem))
        for each in FORMATS.values():
            write(folder / each.file_name(stem), each.view(trace))


def _files(stem: str) -> set[str]:
    """Return the file names of a trace in lower case, since some file systems ignore case."""
    return {each.file_name(stem).lower() for each in FORMATS.values()}
