"""The summary of a command in Markdown, for the page of a build server: a table of all runs, then the findings.

Rules of this module: text from a scenario is escaped or fenced, and never becomes markup. GitHub accepts one megabyte,
so long traces are cut, with a note at the cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from checker.markdown import escaped, fenced
from checker.report.junit import sentence
from checker.report.outcome import RunOutcome
from checker.report.source_location import location_of

LONGEST = 30_000  # characters of the view of one run
MOST = 20  # runs that are shown in full
TABLE = ("| scenario | verdict | states | depth | time |", "| --- | --- | --: | --: | --: |")


def summary(outcomes: Sequence[RunOutcome], view: Callable[[RunOutcome], str]) -> str:
    """The whole summary, with an empty line at its end; `view` gives the full text of a run."""
    bad = [each for each in outcomes if each.judgement.exit_code]
    undecided = sum(each.judgement.undecided for each in outcomes)
    good = len(outcomes) - len(bad) - undecided
    left_open = f", {undecided} undecided within the budget" if undecided else ""
    lines = ["## Quorate", "", f"{good} of {len(outcomes)} as expected{left_open}", "", *TABLE]
    lines += [_row(each) for each in outcomes]
    for each in bad[:MOST]:
        lines += ["", f"### {escaped(each.name)}", "", escaped(sentence(each)), *_where(each), *_found(each, view)]
    if len(bad) > MOST:
        lines += ["", f"{len(bad) - MOST} more are in the reports."]
    return "\n".join(lines) + "\n\n"


def _row(outcome: RunOutcome) -> str:
    found, verdict = outcome.exploration, outcome.judgement.verdict.value
    remark = outcome.judgement.remark
    mark = "✅" if outcome.is_good else "❌" if outcome.judgement.exit_code else "⏳"
    told = f"{mark} {verdict}" + (f" ({remark})" if remark else "")
    figures = ("", "", "") if found is None else (f"{found.states:,}", str(found.depth), f"{found.seconds:.1f} s")
    return f"| {' | '.join((escaped(outcome.name), told, *figures))} |"


def _where(outcome: RunOutcome) -> list[str]:
    place = location_of(outcome, outcome.findings[0].prop if outcome.findings else None)
    return ["", f"{escaped(place.file)}, line {place.line}"] if place else []


def _found(outcome: RunOutcome, view: Callable[[RunOutcome], str]) -> list[str]:
    """The view of a run that was explored; nothing for one that was not."""
    if outcome.exploration is None:
        return []
    text = view(outcome)
    return ["", *fenced(text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… cut here; the reports have all of it")]
