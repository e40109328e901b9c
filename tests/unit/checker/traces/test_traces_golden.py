"""The trace of two leaders and its report, as printed: read the files as documentation.

Their contents, derived by hand from the model: servers 1, 2 and 3 start; 2 hears of 1, and 1 adopts 2's vote and sends
it; with its own and 1's vote 2 has a majority of three and leads; then 1 hears of 3, adopts its vote too, sends it, and
3 has a majority of the same kind. The files are rewritten only on request.
"""

import os
import re
from pathlib import Path

import pytest

from checker.engine import plain
from checker.job import Job
from checker.models.small_election import election
from checker.present import DefaultPresenter
from checker.report import judge, report_lines
from checker.traces import to_mermaid, to_text, trace_of
from checker.traces.sequence_diagrams import escaped

GOLDEN = Path(__file__).parents[2] / "golden"
REWRITE = "REWRITE_GOLDEN"


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get(REWRITE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == expected, f"{name} reads otherwise; if it should, run again with {REWRITE}=1 and read the diff"


@pytest.fixture(scope="module")
def job():
    model = election(3)
    return Job("election of 3", model, DefaultPresenter(model), {"servers": 3}, bounds=("each server starts once",))


@pytest.fixture(scope="module")
def exploration(job):
    return plain.explore(job.model)


@pytest.fixture(scope="module")
def trace(job, exploration):
    return trace_of(job, exploration.found["OneLeader"])


def test_two_leaders_as_text(trace):
    compare("two_leaders.txt", to_text(trace))


def test_two_leaders_as_a_sequence_diagram(trace):
    compare("two_leaders.mmd", to_mermaid(trace))


def test_two_leaders_as_a_report(job, exploration):
    exploration.seconds, exploration.peak_bytes = 0.25, 0  # these differ between runs
    judgement = judge(job, exploration, ("start", "deliver", "decide"))
    compare("two_leaders_report.txt", "\n".join(report_lines(job, exploration, judgement, levels=True)) + "\n")


def test_the_text_stays_within_a_page(trace):
    assert max(len(line) for line in to_text(trace).splitlines()) <= 110


def test_both_decisions_and_the_two_leaders_are_in_the_text(trace):
    lines = to_text(trace).splitlines()
    decisions = [line.split("|")[0].strip() for line in lines if "*decide* state=LEADING" in line]
    assert decisions == ["8", "12"]
    assert lines[1] == "two servers are LEADING: leaders = [2, 3]"
    assert sum("state=LEADING" in line for line in lines[lines.index("at the end") :]) == 2


def test_the_numbers_of_arrows_are_those_of_the_steps(trace):
    """Mermaid counts arrows; where steps without an arrow lie between two arrows, the diagram sets the count again."""
    count, numbered = 1, []
    for line in to_mermaid(trace).splitlines():
        given = re.fullmatch(r" *autonumber(?: (\d+))?", line)
        if given:
            count = int(given[1] or 1)
        elif "->>" in line:
            numbered.append(count)
            count += 1
    deliveries = [step.number for step in trace.steps if step.action == "deliver"]
    assert numbered == deliveries == [4, 5, 6, 7, 9, 10, 11]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a; b", "a#59; b"),
        ("#1", "#35;1"),
        ("line\nline", "line<br/>line"),
        ("the end", "the #101;nd"),
        ("End of it, endless", "#69;nd of it, endless"),
        ("a->>b %% c", "a-#62;#62;b #37;#37; c"),
        ("&lt; $$x$$", "#38;lt#59; #36;#36;x#36;#36;"),
    ],
)
def test_what_mermaid_would_read_as_its_own_is_escaped(text, expected):
    assert escaped(text) == expected
