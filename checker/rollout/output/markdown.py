"""The answer as Markdown that a person pastes into a change request; on a terminal it reads well as it is.

    the recommendation                      one line, with the basis of the verdict and what to see to
    by reconfig, or the steps               its commands, or the file of each server and the command that waits
    if a step fails                         the actions, and whether both directions are safe
    disks                                   the safe alternatives
    what goes wrong                         the story of the run that was found
    evidence, folded                        every question, way, quorum, key and run, with the limits of the answer

Rules of this module: it judges nothing. Only the evidence uses words of model checking.

The comment on a pull request has the same sections behind a marker that readers do not see: a bot finds its earlier
comment by it, and replaces that one. In a comment that is too long the traces are left out first, and then the largest
folded sections, each with a pointer to the whole answer.

Source: GitHub REST API, "Create an issue comment"; GitHub Flavored Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from checker.printable import escaped, folded
from checker.rollout.answer import Plan
from checker.rollout.output import evidence as behind
from checker.rollout.output.by_reconfig import commands, comparison
from checker.rollout.output.operator_steps import if_a_step_fails, steps, steps_behind
from checker.rollout.output.recommendation import headline, notes, recommendation
from checker.rollout.output.story import runs, what_goes_wrong

MARKER = "<!-- quorate: rollout -->"
LONGEST = 65_536  # characters; GitHub refuses a longer comment
LEFT_OUT = "Left out here: the comment would be too long. `--output FILE.md` has the whole answer."
CUT = "\n\n(Cut off here: the comment would be too long. `--output FILE.md` has the whole answer.)\n"
MORE = "`--explain` prints the evidence."
MORE_WITH_THE_WAY_BACK = "`--explain` prints the steps of the way back, and the evidence."


@dataclass(frozen=True)
class AnswerSection:
    """A part of the answer: its heading, its lines, and whether it is evidence, which is folded away."""

    heading: str
    lines: list[str]
    evidence: bool = False

    @property
    def text(self) -> list[str]:
        """The lines with the heading."""
        head = [self.heading, ""] if self.lines else [self.heading]
        return folded(self.heading.lstrip("# "), self.lines) if self.evidence else [*head, *self.lines]


def markdown(plan: Plan, *, traces: bool = True, evidence: bool = True) -> str:
    """The whole document, with a newline at its end.

    `traces`: with every trace that was found. Without `evidence` a line points to it instead.
    """
    parts = ["\n".join(part.text) for part in sections(plan, traces=traces) if evidence or not part.evidence]
    more = MORE if plan.back is None else MORE_WITH_THE_WAY_BACK
    return "\n\n".join(parts if evidence else [*parts, more]) + "\n"


def sections(plan: Plan, *, traces: bool) -> list[AnswerSection]:
    """The sections of the document; the first has the recommendation as its heading."""
    route = commands(plan)
    by_reconfig, wrong = plan.reconfig_route is not None, what_goes_wrong(plan)
    operator = [
        [f"# {recommendation(plan)}", "", *notes(plan)],
        [] if plan.stages else wrong,
        *([route] if by_reconfig else steps(plan)),
        if_a_step_fails(plan),
        behind.disks(plan),
        wrong if plan.stages else [],
    ]
    evidence = [
        [f"## {escaped(headline(plan))}", "", *behind.verdicts(plan)],
        comparison(plan),
        *([] if by_reconfig else [route]),
        *steps_behind(plan),
        behind.step_failures(plan),
        behind.releases(plan),
        runs(plan, traces=traces),
        behind.states(plan),
        behind.order_proofs(plan),
        behind.differences(plan),
        behind.what_was_checked(plan),
        behind.limits(plan),
    ]
    shown = [AnswerSection(lines[0], lines[2:]) for lines in operator if lines]
    return [*shown, *(AnswerSection(lines[0], lines[2:], evidence=True) for lines in evidence if lines)]


def github_comment(plan: Plan) -> str:
    """The comment, with a newline at its end; shorter than `LONGEST`."""
    text = _joined(sections(plan, traces=True))
    given = sections(plan, traces=False) if len(text) >= LONGEST else []
    text = _joined(given) if given else text
    for section in sorted(given, key=lambda section: -sum(map(len, section.lines))):
        if len(text) >= LONGEST and section.evidence:
            given[given.index(section)] = replace(section, lines=[LEFT_OUT])
            text = _joined(given)
    return text if len(text) < LONGEST else text[: LONGEST - len(CUT) - 1] + CUT


def _joined(given: list[AnswerSection]) -> str:
    first, *rest = given
    parts = [replace(first, heading=f"#{first.heading}"), *rest]
    return "\n\n".join([MARKER, *("\n".join(part.text) for part in parts)]) + "\n"
