"""The verdicts on other ways of working, and what is safe instead of a start with a given disk.

Rules of this module: it judges nothing.
"""

from __future__ import annotations

from checker.printable import escaped
from checker.rollout.answer import Plan, WayAnswer
from checker.rollout.assessment import QuestionAnswer
from checker.rollout.disks.hazards import HAZARD_WORDS, DiskRemedy, RemedyKind
from checker.rollout.output.conditions import conditions
from checker.rollout.output.recommendation import servers, verdict_words
from checker.rollout.output.sentences import clause
from checker.rollout.runs import SafetyVerdict
from checker.rollout.ways import WAY_WORDS

BY_THE_PROTOCOL = "That is by the protocol: the defects of the release were looked at for the steps above alone."
SAME = "Each stage is safe in each of these ways (proved), with the check before each stage after the first."


def ways(plan: Plan) -> list[str]:
    """A table of the ways to make the change in one go; a sentence if all of them are safe."""
    if not plan.ways or not plan.direct.stage.remaining or plan.request.disks:
        return []
    if all(each.outcome is SafetyVerdict.SAFE for each in plan.ways):
        others = [WAY_WORDS[each.way] for each in plan.ways if each.way is not plan.request.way]
        limit = "" if plan.request.releases is None else f" {BY_THE_PROTOCOL}"
        return ["## Other ways to do it", "", f"These ways are safe, too: {'; '.join(others)}.{limit}"]
    lines = ["## Ways to do it in one go", "", "| way | is it safe |", "| --- | --- |"]
    lines += [f"| {WAY_WORDS[each.way]} | {_cell(each)} |" for each in plan.ways]
    proved = plan.stages and all(part.proved and not part.stage.changed_roles for part in plan.stages)
    return [*lines, "", SAME] if proved else lines


def _cell(given: WayAnswer) -> str:
    """The verdict on a way, with the finding or the basis."""
    asked = [given.plain] if given.faulty is None else [given.plain, given.faulty]
    unsafe = next((each for each in asked if each.outcome is SafetyVerdict.UNSAFE), None)
    if unsafe is not None:
        return f"**no**{_reason(unsafe)}"
    return "; ".join(dict.fromkeys(verdict_words(each) for each in asked))


def _reason(answer: QuestionAnswer) -> str:
    if answer.finding is None:
        return ""
    return escaped(f": {conditions(answer.finding).removesuffix(',')}, {clause(answer.finding)}")


REMEDIES = {
    RemedyKind.RETURN_LATE: (
        "Start {} with an empty disk only when all other voters serve and have every acknowledged write (compare "
        "`Zxid:` in their `srvr`), and keep these running until {} {} as well."
    ),
    RemedyKind.NEW_ID: "Or remove {} from the ensemble, and then add new servers with new ids, one at a time.",
    RemedyKind.ERASE: "Erase the disk of {} (keep `myid`), and start it with an empty one: its id is new.",
}


def disks(plan: Plan) -> list[str]:
    """The disks of the request, and the safe ways."""
    if not plan.request.disks:
        return []
    lines = ["## The disks", ""]
    lines += [f"- Server {sid} starts with {HAZARD_WORDS[kind]}." for sid, kind in sorted(plan.request.disks.items())]
    if plan.remedies:
        lines += ["", "What is safe instead:", "", *(f"- {_remedy(each)}" for each in plan.remedies)]
    return lines


def _remedy(given: DiskRemedy) -> str:
    names, pronoun = servers(given.sids), "it serves" if len(given.sids) == 1 else "they serve"
    text = REMEDIES[given.kind].format(names, *pronoun.split())
    return f"{text}{' (proved)' if given.proved else ''}"
