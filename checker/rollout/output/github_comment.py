"""The plan as a comment on a pull request on GitHub.

The first line is a marker that readers do not see. A bot finds its earlier comment by it, and replaces that comment.
GitHub refuses a comment of more than 65,536 characters; in a longer one the traces are left out first, and then the
largest folded sections, each with a pointer to the whole answer.

Source: GitHub REST API, "Create an issue comment"; GitHub Flavored Markdown.
"""

from __future__ import annotations

from dataclasses import replace

from checker.rollout.answer import Plan
from checker.rollout.output.markdown import AnswerSection, sections

MARKER = "<!-- quorate: rollout -->"
LONGEST = 65_536
"""The limit for a comment, in characters; the text stays below it."""
LEFT_OUT = "Left out here: the comment would be too long. `--output FILE.md` has the whole answer."
CUT = "\n\n(Cut off here: the comment would be too long. `--output FILE.md` has the whole answer.)\n"


def github_comment(plan: Plan) -> str:
    """The comment, with a newline at its end; shorter than `LONGEST`."""
    with_traces = _joined(sections(plan, traces=True))
    return with_traces if len(with_traces) < LONGEST else _shortened(plan)


def _shortened(plan: Plan) -> str:
    """The comment without traces, and without its largest folded sections if it is still too long."""
    given = sections(plan, traces=False)
    for each in sorted(given, key=lambda section: -sum(map(len, section.lines))):
        text = _joined(given)
        if len(text) < LONGEST:
            return text
        if each.evidence:
            given[given.index(each)] = replace(each, lines=[LEFT_OUT])
    text = _joined(given)
    return text if len(text) < LONGEST else text[: LONGEST - len(CUT) - 1] + CUT


def _joined(given: list[AnswerSection]) -> str:
    first, *rest = given
    parts = [replace(first, heading=f"#{first.heading}"), *rest]
    return "\n\n".join([MARKER, *("\n".join(each.text) for each in parts)]) + "\n"
