"""The recommendation for an operator: the first line of the answer, and the reasons in the words of ZooKeeper's manual.

    recommendation      one imperative sentence: do it so, or do not do it
    changes             a stage in imperative words: `add servers 4 and 5`
    change_of           the same for a stage of a plan, which may be an upgrade
    summary             a row for each stage: the verdict, and its basis

Rules of this module:

- It judges nothing. No word of model checking stands here except those that `BASIS` explains.
- A verdict of SAFE stands beside its basis: proved, or explored to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from checker.printable import capital
from checker.rollout.answer import Plan
from checker.rollout.assessment import Order, QuestionAnswer, Reason, StageAssessment
from checker.rollout.disks.hazards import DiskHazard
from checker.rollout.output.sentences import clause, order_words
from checker.rollout.reconfig.answers import FaultBudget, RouteAnswer
from checker.rollout.reconfig.commands import MembershipCommand
from checker.rollout.runs import RunResult, SafetyVerdict
from checker.rollout.scenarios import Question
from checker.rollout.software.answers import SoftwareAnswer
from checker.rollout.stages import Stage
from checker.rollout.steps import RESTART, START, STOP
from spec.quorum import Sid

HAZARD_NAMES = {
    DiskHazard.EMPTY: "an empty disk",
    DiskHazard.STALE: "a disk of an earlier time",
    DiskHazard.FOREIGN: "a disk of another cluster",
}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
VERBS = {START: "start", RESTART: "restart", STOP: "stop"}


def recommendation(plan: Plan) -> str:
    """The first line of the answer, without a full stop."""
    if plan.back is not None:
        return _after_an_interruption(plan)
    if plan.reconfig_route is not None:
        return _by_reconfig(plan, plan.reconfig_route)
    return _despite_defects(plan, plan.software) if plan.software is not None else _by_protocol(plan)


def _by_reconfig(plan: Plan, route: RouteAnswer) -> str:
    """The recommendation where `reconfig` is safer than restarts."""
    change, commands = (
        changes(plan.direct.stage),
        ", then ".join(command_words(each.command) for each in route.commands),
    )
    how = f": {commands}" if len(route.commands) > 1 else ""
    if route.outcome is SafetyVerdict.SAFE:
        return f"{capital(change)} by `reconfig`{how}"
    known = "No loss was found, and it was not explored to the end, even without a fault"
    if route.verdict(FaultBudget.NONE) is SafetyVerdict.SAFE:
        known = "Without a fault nothing is lost, and under faults it was not explored to the end"
    elif not any(each.begun for each in route.results(FaultBudget.NONE)):
        known = "It was not explored"
    return f"Not decided: use `reconfig`, rather than restarts, to {change}{how}. {known}"


def command_words(command: MembershipCommand) -> str:
    """A `reconfig` command in imperative words."""
    before, change = command.before, command.change
    groups = (
        ("add {}", change.voters - before.members),
        ("make {} a voter", change.voters & before.observers),
        ("add observer {}", change.observers - before.members),
        ("make {} an observer", change.observers & before.voters),
        ("remove {}", change.leaving),
    )
    return " and ".join(words.format(servers(sids)) for words, sids in groups if sids)


def _despite_defects(plan: Plan, software: SoftwareAnswer) -> str:
    """The recommendation by the protocol, with what the defects of the releases demand."""
    by_protocol, defects = _by_protocol(plan), f"defects of ZooKeeper {software.releases}"
    if software.outcome is SafetyVerdict.SAFE or not plan.direct.stage.remaining:
        return by_protocol
    if software.quiet_outcome_without_faults is SafetyVerdict.SAFE:
        when = "with a fault, " if software.outcome_without_faults is SafetyVerdict.SAFE else ""
        return f"{by_protocol}. Let nothing be written meanwhile: {when}{defects} may lose it"
    if software.outcome is SafetyVerdict.UNSAFE:
        return f"Do not {change_of(plan, plan.direct)}: {defects} can lose an acknowledged write"
    return f"Not decided: {defects} were not explored to the end"


def change_of(plan: Plan, part: StageAssessment) -> str:
    """A stage of a plan in imperative words; an upgrade has one stage."""
    releases = plan.request.releases
    if releases is not None and releases.is_upgrade:
        return f"change ZooKeeper {releases.old} to {releases.new}"
    return changes(part.stage)


def _by_protocol(plan: Plan) -> str:
    """The recommendation without regard to the defects of a release."""
    change, releases = change_of(plan, plan.direct), plan.request.releases
    match plan.outcome:
        case SafetyVerdict.SAFE if plan.left_out:
            return f"This order is safe as far as it goes, but it is not the whole change: {_order(plan)}"
        case SafetyVerdict.SAFE if plan.stages:
            return f"Do it in {_number(len(plan.stages))} stages: {', then '.join(_each(plan.stages))}"
        case SafetyVerdict.SAFE if plan.request.order is not None:
            stop = any(order.vain for order in plan.direct.orders)
            return f"This order is safe{', but do not wait after every step' if stop else ''}: {_order(plan)}"
        case SafetyVerdict.SAFE if not plan.direct.stage.remaining:
            return "There is nothing to do: the two states are equal"
        case SafetyVerdict.SAFE if releases is not None and releases.is_upgrade:
            return f"{capital(change)}, one server after the other: {_in_one_go(plan.direct)}"
        case SafetyVerdict.SAFE if plan.direct.unchanged and not any(order.steps for order in plan.direct.orders):
            return "There is nothing to do: nothing changes for the ensemble"
        case SafetyVerdict.SAFE if plan.direct.unchanged:
            if any(difference.note for difference in plan.direct.stage.differences):
                return "Restart the servers one by one: who votes stays as it is, and the keys below have conditions"
            return "Restart the servers one by one: nothing changes for the ensemble"
        case SafetyVerdict.SAFE:
            return f"{capital(change)} in one go: {_in_one_go(plan.direct)}"
        case SafetyVerdict.STALLS:
            return f"Do not {change} in this way: it comes to a stop"
        case SafetyVerdict.OPEN:
            moved = plan.outcome_with_disks is SafetyVerdict.SAFE
            if moved:
                return f"Move the disks, then {change}; without the disks it is not decided"
            return f"Not decided: do not {change} on the strength of this answer"
    if plan.request.disks and all(_is_safe_but_for_disks(part) for part in plan.advised):
        if any(answer.reason is Reason.FOREIGN_OBSERVER for part in plan.advised for *_, answer in part.answers):
            return f"Do not start {_with_disks(plan)}: it never serves, or serves the data of that cluster"
        return f"Do not start {_with_disks(plan)}: an acknowledged write can be lost"
    if plan.outcome_with_disks is SafetyVerdict.SAFE:
        return f"Move the disks, then {change}; with an empty disk an acknowledged write can be lost"
    what = "use this order" if plan.request.order is not None else f"{change} in one go"
    finding = worst_finding(plan.advised)
    return f"Do not {what}" + (f": {clause(finding)}" if finding is not None else "")


def _is_safe_but_for_disks(part: StageAssessment) -> bool:
    return all(
        answer.outcome is not SafetyVerdict.UNSAFE
        for question, _, answer in part.answers
        if question is not Question.GIVEN_DISKS
    )


def _with_disks(plan: Plan) -> str:
    return listed(f"server {sid} with {HAZARD_NAMES[kind]}" for sid, kind in sorted(plan.request.disks.items()))


def _after_an_interruption(plan: Plan) -> str:
    assert plan.back is not None
    on, back = plan.direct.outcome is SafetyVerdict.SAFE, plan.back.outcome is SafetyVerdict.SAFE
    if on and not plan.direct.stage.remaining:
        return "There is nothing left to do: every server has its new file"
    if on:
        return "Go on with the roll-out" + (", or go back: both are safe" if back else "; the way back is not safe")
    if plan.direct.outcome is SafetyVerdict.UNSAFE:
        return "Do not go on" + (": go back" if back else ", and do not go back, without further measures")
    return "Go back: the way on is not decided" if back else "Not decided: change nothing yet"


def _order(plan: Plan) -> str:
    return order_words(plan.direct.orders[0])


def _each(stages: Iterable[StageAssessment]) -> Iterator[str]:
    return (changes(part.stage) for part in stages)


def _in_one_go(assessment: StageAssessment) -> str:
    """The steps of the first order, each action named once for the servers that follow each other."""
    order = assessment.orders[0]
    groups = [
        (action, [step.sid for step in steps]) for action, steps in groupby(order.steps, lambda step: step.action)
    ]
    return ", then ".join(f"{VERBS[action]} {listed(sids)}{_last(order, sids)}" for action, sids in groups)


def _last(order: Order, sids: list[Sid]) -> str:
    return " (the leader last)" if len(sids) > 1 and sids[-1] == order.leader else ""


def worst_finding(parts: Iterable[StageAssessment]) -> RunResult | None:
    """The finding that a reader should see: the one with the fewest faults."""
    found = [
        answer.finding
        for part in parts
        for _, _, answer in part.answers
        if answer.outcome is SafetyVerdict.UNSAFE and answer.finding is not None and answer.reason is Reason.FOUND
    ]
    return min(found, key=lambda each: sum(each.spec.faults.values()), default=None)


def changes(stage: Stage) -> str:
    """A stage in imperative words."""
    old, new = stage.old.view, stage.new.view
    added, removed = new.members - old.members, old.members - new.members
    if len(added) == len(removed) == 1:
        parts = [f"replace server {min(removed)} by server {min(added)}"]
    else:
        parts = [f"{verb} {servers(sids)}" for verb, sids in (("add", added), ("remove", removed)) if sids]
    for role, sids in (("voter", old.observers & new.voters), ("observer", old.voters & new.observers)):
        if sids:
            article = "an" if role == "observer" else "a"
            parts.append(f"make {servers(sids)} {f'{article} {role}' if len(sids) == 1 else f'{role}s'}")
    moved = frozenset(stage.moved) & new.members
    if moved:
        parts.append(f"move {servers(moved)} to {'another host' if len(moved) == 1 else 'other hosts'}")
    if rest := frozenset(stage.readdressed) - moved:
        parts.append(f"change the {'address' if len(rest) == 1 else 'addresses'} of {servers(rest)}")
    if old.voters == new.voters and old.quorums != new.quorums:
        parts.append("change groups or weights")
    return " and ".join(parts) or "change these files"


def servers(sids: Iterable[Sid]) -> str:
    """`server 4`, or `servers 4 and 5`."""
    given = sorted(sids)
    return f"server{'s' * (len(given) > 1)} {listed(given)}"


def listed(items: Iterable[object]) -> str:
    """`4`, `4 and 5`, or `4, 5 and 6`."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last


def _number(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)


# The verdicts in a table, each with its basis.


COLUMNS = {
    Question.ELECTION: "one leader at a time",
    Question.COMMITS: "no acknowledged write is lost",
    Question.EMPTY_DISK: "the same with empty disks on new hosts",
    Question.GIVEN_DISKS: "the same with the given disks",
    Question.HEALING: "all servers serve in the end",
}
BASIS = (
    "*Proved*: by these files, any servers that may elect a leader include one with every acknowledged write, in any "
    "order of steps and with any number of crashes and network failures. *Explored to the end*: a program has followed "
    "every possible run within the limits that the evidence lists. Neither covers lost disks, or defects of a release."
)
IN_ORDER = (
    "*Proved in this order*: the same of the servers that run at each step, with any number of crashes and network "
    "failures, if you keep the conditions that stand before the steps."
)


def summary(plan: Plan) -> list[str]:
    """A table: a row for each stage and the direct change, with a verdict and its basis for each question."""
    rows = [(f"{number}. {changes(part.stage)}", part) for number, part in enumerate(plan.stages, start=1)]
    direct = "the order above" if plan.request.order is not None else "the rest" if plan.back else "in one go"
    rows = [*rows, (direct, plan.direct), *([("the way back", plan.back)] if plan.back is not None else [])]
    questions = [each for each in COLUMNS if any(each in part.questions for _, part in rows)]
    head = " | ".join(("", *(COLUMNS[each] for each in questions)))
    lines = [f"|{head} |", "| --- " * (len(questions) + 1) + "|"]
    for name, part in rows:
        cells = [_cell(part, each) if each in part.questions else "not asked" for each in questions]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    release = " `--release` asks about those."
    if plan.software is not None:
        lines.append(_with_defects(plan.software, questions))
        release = ""
    in_order = f"{IN_ORDER} " if any(part.order_proofs for _, part in rows) else ""
    return [*lines, "", f"{in_order}{BASIS}{release}"]


def _with_defects(software: SoftwareAnswer, questions: Sequence[Question]) -> str:
    """The row of the table about the defects of the releases."""
    verdicts = {
        Question.COMMITS: f"while clients write: {DEFECT_WORDS[software.outcome]}; while nothing is written, without a "
        f"fault: {DEFECT_WORDS[software.quiet_outcome_without_faults]}"
    }
    cells = " | ".join(verdicts.get(each, "not asked") for each in questions)
    return f"| with the defects of {software.releases} | {cells} |"


DEFECT_WORDS = {
    SafetyVerdict.SAFE: "yes, explored to the end",
    SafetyVerdict.UNSAFE: "**no**",
    SafetyVerdict.OPEN: "not decided",
    SafetyVerdict.STALLS: "not decided",
}


def _cell(part: StageAssessment, question: Question) -> str:
    """The verdict on a question: without faults and, where they were asked for, with them."""
    faults = f"{part.faults} fault{'s' * (part.faults > 1)}"
    plain, faulty = (part.answer(question, faulty=each) for each in (False, True))
    same = (plain.outcome, plain.reason) == (faulty.outcome, faulty.reason)
    if question is Question.HEALING and plain.outcome is SafetyVerdict.STALLS and part.outcome is SafetyVerdict.SAFE:
        return "not after every step: see the steps"
    if not part.faults or same or plain.outcome is SafetyVerdict.UNSAFE:
        return verdict_words(plain)
    return f"{verdict_words(plain)}; with {faults}: {verdict_words(faulty)}"


def verdict_words(answer: QuestionAnswer) -> str:
    """A verdict with its basis."""
    match answer.outcome:
        case SafetyVerdict.UNSAFE:
            return "**no**"
        case SafetyVerdict.STALLS:
            return "**stops before**"
        case SafetyVerdict.OPEN:
            return "not explored" if answer.reason in (Reason.UNSAFE_ALREADY, Reason.NOT_DEMANDED) else "not decided"
    match answer.reason:
        case Reason.PROVED:
            return "yes, proved"
        case Reason.PROVED_IN_ORDER:
            return "yes, proved in this order"
        case Reason.UNCHANGED:
            return "yes, as before the change"
    return "yes, explored to the end"
