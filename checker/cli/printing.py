"""The output of runs: the report of one, or a line for each of several and a report of each unexpected outcome.

This module runs and judges nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from checker.report import invariants_lines, print_report, report_lines, summary_line
from checker.report.outcome import RunOutcome
from checker.traces.formats import FORMATS


def line(outcome: RunOutcome, names: Sequence[str]) -> str:
    """A run in one line, of a set of runs with these names."""
    if outcome.job is None:
        return outcome.judgement.sentence
    return summary_line(outcome.job, outcome.exploration, outcome.judgement, (max(len(name) for name in names), 6))


def print_outcomes(ran: Sequence[RunOutcome], options: argparse.Namespace, *, asked: int) -> None:
    """The complete output for `ran`, out of `asked` requested runs; the lines of several runs were printed before."""
    alone = asked == 1
    for each in ran:
        in_full = alone or each.judgement.exit_code != 0
        if each.exploration is None or each.job is None:
            if alone or each.job is not None:  # otherwise its line has the same text
                print(each.judgement.sentence)
        elif in_full:
            if not alone:
                print()
            print_report(each.job, each.exploration, each.judgement, levels=options.levels)
        if in_full and options.format != "none":
            for trace in each.findings:
                print()
                print(FORMATS[options.format].view(trace))
    if getattr(options, "command", None) == "nodes" and not alone:
        decided = [each.exploration for each in ran if each.exploration and not each.judgement.undecided]
        print("\n".join(invariants_lines(decided)))
    if not alone:
        print(_total(ran, options, asked))


def _total(ran: Sequence[RunOutcome], options: argparse.Namespace, asked: int) -> str:
    good, undecided = (sum(each) for each in zip(*((r.is_good, r.judgement.undecided) for r in ran), strict=True))
    runs = f"{asked} runs" if len(ran) == asked else f"{len(ran)} of {asked} runs"
    wanted = "passed" if options.verdict or options.variants else "as expected"
    left_open = f", {undecided} undecided within the budget" if undecided else ""
    return f"{runs}, {'all' if good == len(ran) else good} {wanted}{left_open}"


def outcome_text(outcome: RunOutcome) -> str:
    """A run in full, as the text in reports: its outcome, and the trace of every finding."""
    if outcome.job is None or outcome.exploration is None:
        return outcome.judgement.sentence
    report = "\n".join(report_lines(outcome.job, outcome.exploration, outcome.judgement))
    return "\n\n".join([report, *(FORMATS["text"].view(trace) for trace in outcome.findings)])
