"""A trace as Markdown for a pull request or a change request: the finding, the steps, a diagram, how to replay.

It is written in GitHub's flavour: a table with a row for each step and a column for each lane, an anchor in each row,
and a Mermaid diagram. Rules of this module:

- A cell holds the changes of the step, and nothing else; the first row holds everything.
- Text from a model is escaped, character by character, so that it renders unchanged: no part of it is markup, ends a
  cell, or begins a line.

Source: the GitHub Flavored Markdown specification, "Backslash escapes", "Tables (extension)".
"""

from collections.abc import Iterator, Sequence

from checker.printable import escaped
from checker.traces.sequence_diagrams import to_mermaid
from checker.traces.summary import MEANING, NOT_SHOWN, REPLAY, about, claim, finding, messages_of, short_pieces, turns
from checker.traces.trace import Trace, TraceStep, Truth

SIGNS = {
    Truth.HOLDS: "✓",
    Truth.FAILS: "✗",
    Truth.TRIVIAL: "·",
    Truth.WITNESSED: "★",
    Truth.UNSEEN: "–",
    Truth.REACHED: "●",
    Truth.OPEN: "○",
}


def to_markdown(trace: Trace) -> str:
    """The whole trace, with a newline at the end."""
    sections = [_heading(trace), _steps(trace), _messages(trace), _diagram(trace), FOOT]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


FOOT = [f"Shown: {escaped(NOT_SHOWN)}.", "", f"To replay it: {escaped(REPLAY)}."]


def _heading(trace: Trace) -> list[str]:
    clause = [f"**{escaped(finding(trace))}**", ""] if finding(trace) else []
    lines = [f"### {escaped(trace.headline)}", "", *clause, escaped(claim(trace))]
    return [*lines, "", *(f"- {name}: {escaped(words)}" for name, words in about(trace))]


def _steps(trace: Trace) -> list[str]:
    names = list(dict.fromkeys(name for step in trace.steps for name in step.truth))
    head = ["step", "what happens", *map(escaped, trace.lanes), *map(escaped, names)]
    rule = ["--:", "---", *("---" for _ in trace.lanes), *(":-:" for _ in names)]
    used = [truth for truth in Truth if any(truth in step.truth.values() for step in trace.steps)]
    legend = [", ".join(f"{SIGNS[truth]} {MEANING[truth]}" for truth in used)] if used else []
    return [_row(head), _row(rule), *(_row(_cells(trace, step, names)) for step in trace.steps), "", *legend]


def _cells(trace: Trace, step: TraceStep, names: Sequence[str]) -> Iterator[str]:
    yield f'<a id="step-{step.number}"></a>[{step.number}](#step-{step.number})'
    remarks = [f"**{escaped(line)}**" for line in turns(trace, step)]
    yield "<br>".join([escaped(step.caption), *remarks])
    for lane in trace.lanes:
        yield "<br>".join(map(escaped, short_pieces(trace, step, lane)))
    yield from (SIGNS[step.truth[name]] if name in step.truth else "" for name in names)


def _row(cells: Sequence[str] | Iterator[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _messages(trace: Trace) -> list[str]:
    lines = [f"- {escaped(message.sentence)}" for message in messages_of(trace)]
    return ["<details><summary>Messages</summary>", "", *lines, "", "</details>"] if lines else []


def _diagram(trace: Trace) -> list[str]:
    return ["```mermaid", to_mermaid(trace).rstrip("\n"), "```"]
