"""Prints and writes the outcomes of runs: their output, traces in every format, and reports for other programs.

The output is the report of one run, or a line for each of several and a report of each unexpected outcome. `prepare`
checks the paths before the first run, so that a wrong path fails early. Every failure is an OutputError. This module
runs and judges nothing.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from checker.cli.options import REPORT_FILES
from checker.command import say, say_on_error_stream, unread_output_discarded
from checker.report import invariants_lines, print_report, report_lines, summary_line
from checker.report.verdict import RunOutcome
from checker.traces.formats import FORMATS
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
    from checker.report.build_servers import junit_xml, sarif_log  # noqa: PLC0415
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
    from checker.report.build_servers import commands_stopped  # noqa: PLC0415

    with commands_stopped(lambda line: _say(line, options)) if options.github else nullcontext():
        yield


def say_to_github(outcomes: Sequence[RunOutcome], options: argparse.Namespace) -> None:
    """Print annotations, and write the summary of the step if the environment names a file. Raises OutputError."""
    from checker.report.build_servers import annotation_lines, summary  # noqa: PLC0415

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
    taken: set[str] = set()
    for trace in [trace for outcome in outcomes for trace in outcome.traces]:
        stem = slug(f"{trace.job} {trace.prop}")
        names = (stem, *(f"{stem}-{n}" for n in range(2, len(taken) + 3)))
        stem = next(name for name in names if taken.isdisjoint(_files(name)))
        taken.update(_files(stem))
        for each in FORMATS.values():
            write(folder / each.file_name(stem), each.view(trace))


def _files(stem: str) -> set[str]:
    """Return the file names of a trace in lower case, since some file systems ignore case."""
    return {each.file_name(stem).lower() for each in FORMATS.values()}


def line(outcome: RunOutcome, names: Sequence[str]) -> str:
    """A run in one line, of a set of runs with these names."""
    if outcome.job is None:
        return outcome.judgement.sentence
    return summary_line(outcome.job, outcome.exploration, outcome.judgement, (max(len(name) for name in names), 6))


def print_outcomes(ran: Sequence[RunOutcome], options: argparse.Namespace, *, requested: int) -> None:
    """The complete output of the runs that ended, out of `requested`; their lines are printed before."""
    alone = requested == 1
    for each in ran:
        in_full = alone or each.judgement.exit_code != 0
        if each.exploration is None or each.job is None:
            if alone or each.job is not None:  # otherwise its line has the same text
                say(each.judgement.sentence)
        elif in_full:
            if not alone:
                say()
            print_report(each.job, each.exploration, each.judgement, levels=options.levels)
        if in_full and options.format != "none":
            for trace in each.findings:
                say()
                say(FORMATS[options.format].view(trace))
    if getattr(options, "command", None) == "nodes" and not alone:
        decided = [each.exploration for each in ran if each.exploration and not each.judgement.undecided]
        say("\n".join(invariants_lines(decided)))
    if not alone:
        say(_total(ran, options, requested))


def _total(ran: Sequence[RunOutcome], options: argparse.Namespace, requested: int) -> str:
    good, undecided = (sum(each) for each in zip(*((r.is_good, r.judgement.undecided) for r in ran), strict=True))
    runs = f"{requested} runs" if len(ran) == requested else f"{len(ran)} of {requested} runs"
    success = "passed" if options.verdict or options.variants or options.like else "as expected"
    left_open = f", {undecided} undecided within the budget" if undecided else ""
    return f"{runs}, {'all' if good == len(ran) else good} {success}{left_open}"


def outcome_text(outcome: RunOutcome) -> str:
    """A run in full, as the text in reports: its outcome, and the trace of every finding."""
    if outcome.job is None or outcome.exploration is None:
        return outcome.judgement.sentence
    report = "\n".join(report_lines(outcome.job, outcome.exploration, outcome.judgement))
    return "\n\n".join([report, *(FORMATS["text"].view(trace) for trace in outcome.findings)])
