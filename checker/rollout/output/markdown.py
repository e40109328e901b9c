"""The answer as Markdown that a person pastes into a change request; on a terminal it reads well as it is.

    the recommendation                      one line, with warnings and a table of verdicts
    by reconfig                             its commands, and which way is safer
    the steps                               the file of each server, the command that waits, the service meanwhile
    if a step fails                         what to do, and whether going on and going back are safe
    the release                             what its known defects can do in these steps, and what helps
    disks and ways of working               what is safe instead, and which other ways are safe
    what goes wrong                         the run that was found, step by step, with a picture
    evidence, folded                        every question, quorum, key and run, with the limits of the answer

Rules of this module: it judges nothing. Only the evidence uses words of model checking.
"""

from __future__ import annotations

from dataclasses import dataclass

from checker.printable import escaped, folded
from checker.rollout.answer import Plan
from checker.rollout.output.evidence import order_proofs, states, verdicts
from checker.rollout.output.operator_steps import steps
from checker.rollout.output.recommendation import recommendation, summary
from checker.rollout.output.release_section import release_section
from checker.rollout.output.sections import differences, if_a_step_fails, what_was_checked
from checker.rollout.output.sentences import headline, in_short, not_covered
from checker.rollout.output.story import what_goes_wrong
from checker.rollout.output.ways_and_disks import disks, ways
from checker.rollout.reconfig.section import by_reconfig

MEANINGS = {
    "acknowledged write": "a write whose client has the answer that it is done.",
    "committed write": "a write that a quorum has on disk. Every acknowledged write is committed.",
    "fault": "a crash, a network failure between servers, or a connection that breaks. A restart by the plan is none.",
    "leader": "the server that orders all writes; the other voters follow it. `srvr` shows `Mode: leader`.",
    "observer": "a server that receives every write and has no vote.",
    "quorum": "a set of voters that may decide without the others: more than half of them, by a server's file.",
    "stage": "a part of the change, which is finished before the next part begins.",
    "voter": "a server that takes part in elections, and whose acknowledgements count.",
}

MORE = "Evidence: every question, every run and the limits of this answer. `--explain` prints it."


@dataclass(frozen=True)
class AnswerSection:
    """A part of the answer: its heading, its lines, and whether it is evidence, which is folded away."""

    heading: str
    lines: list[str]
    evidence: bool = False

    @property
    def text(self) -> list[str]:
        """The lines with the heading."""
        return folded(self.heading.lstrip("# "), self.lines) if self.evidence else [self.heading, "", *self.lines]


def markdown(plan: Plan, *, traces: bool = True, evidence: bool = True) -> str:
    """The whole document, with a newline at its end.

    `traces`: with every trace that was found. Without `evidence` a line points to it instead.
    """
    parts = ["\n".join(each.text) for each in sections(plan, traces=traces) if evidence or not each.evidence]
    return "\n\n".join(parts if evidence else [*parts, MORE]) + "\n"


def sections(plan: Plan, *, traces: bool) -> list[AnswerSection]:
    """The sections of the document; the first has the recommendation as its heading."""
    limits = [f"- {line}" for line in not_covered(plan)]
    operator = [
        [f"# {recommendation(plan)}", "", *in_short(plan), "", *summary(plan)],
        by_reconfig(plan),
        steps(plan),
        *([if_a_step_fails(plan)] if plan.reconfig_route is None else []),
        release_section(plan),
        disks(plan),
        *([ways(plan)] if plan.reconfig_route is None else []),
        what_goes_wrong(plan, traces=traces),
    ]
    behind = [
        [f"## {escaped(headline(plan))}", "", *verdicts(plan)],
        states(plan),
        order_proofs(plan),
        differences(plan),
        what_was_checked(plan),
        ["## What is not covered", "", *limits],
        ["## Words used here", "", *(f"- **{word}**: {meaning}" for word, meaning in MEANINGS.items())],
    ]
    shown = [AnswerSection(lines[0], lines[2:]) for lines in operator if lines]
    return [*shown, *(AnswerSection(lines[0], lines[2:], evidence=True) for lines in behind if lines)]
