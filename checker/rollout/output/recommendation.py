"""The first line of the answer: one imperative sentence, do it so, or do not do it; and the verdict in one line.

Rules of this module: it judges nothing. The first line has no word of model checking.
"""

from __future__ import annotations

from itertools import groupby

from checker.printable import capital
from checker.rollout.answer import Plan, ReleaseAnswer
from checker.rollout.claims import Reason
from checker.rollout.disks import DiskHazard
from checker.rollout.output.sentences import (
    WORDS,
    change_of,
    changes,
    clause,
    listed,
    order_words,
    servers,
    verdict_words,
    worst_finding,
)
from checker.rollout.reconfig.answers import FaultBudget, RouteAnswer
from checker.rollout.reconfig.commands import MembershipCommand
from checker.rollout.route import PlanRoute
from checker.rollout.runs import SafetyVerdict
from checker.rollout.scenarios import Question
from checker.rollout.steps import RESTART, START, STOP

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
    return _despite_defects(plan, plan.releases) if plan.releases is not None else _by_protocol(plan)


def _by_reconfig(plan: Plan, route: RouteAnswer) -> str:
    """The recommendation where `reconfig` is safer than restarts."""
    change = changes(plan.direct.stage)
    commands = ", then ".join(command_words(answer.command) for answer in route.commands)
    how = f": {commands}" if len(route.commands) > 1 else ""
    if route.outcome is SafetyVerdict.SAFE:
        return f"{capital(change)} by `reconfig`{how}"
    known = "No loss was found, and it was not explored to the end, even without a fault"
    if route.verdict(FaultBudget.NONE) is SafetyVerdict.SAFE:
        known = "Without a fault nothing is lost, and under faults it was not explored to the end"
    elif not any(result.begun for result in route.results(FaultBudget.NONE)):
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


def _despite_defects(plan: Plan, answer: ReleaseAnswer) -> str:
    """The recommendation by the protocol, with the demands of the defects of the releases."""
    by_protocol, defects = _by_protocol(plan), f"defects of ZooKeeper {answer.change}"
    if answer.verdict() is SafetyVerdict.SAFE or not plan.direct.stage.remaining:
        return by_protocol
    if answer.is_safe_if_quiet:
        by_fault = answer.verdict(faulty=False) is SafetyVerdict.SAFE
        when = ": with a fault, defects may lose it" if by_fault else ""
        return f"{by_protocol}. Let nothing be written meanwhile{when}"
    if answer.verdict() is SafetyVerdict.UNSAFE:
        return f"Do not {change_of(plan, plan.direct)}: {defects} can lose an acknowledged write"
    return f"Not decided: {defects} were not explored to the end"


def _by_protocol(plan: Plan) -> str:
    """The recommendation without regard to the defects of a release."""
    change, releases = change_of(plan, plan.direct), plan.request.releases
    count, stages = len(plan.stages), [changes(part.stage) for part in plan.stages]
    order = order_words(plan.direct.orders[0]) if plan.request.order is not None else ""
    match plan.outcome:
        case SafetyVerdict.SAFE if plan.left_out:
            return f"This order is safe as far as it goes, but it is not the whole change: {order}"
        case SafetyVerdict.SAFE if plan.stages:
            return f"Do it in {NUMBERS[count] if count < len(NUMBERS) else count} stages: {', then '.join(stages)}"
        case SafetyVerdict.SAFE if plan.request.order is not None:
            stop = any(order.vain for order in plan.direct.orders)
            return f"This order is safe{', but do not wait after every step' if stop else ''}: {order}"
        case SafetyVerdict.SAFE if not plan.direct.stage.remaining:
            return "There is nothing to do: the two states are equal"
        case SafetyVerdict.SAFE if releases is not None and releases.is_upgrade:
            return f"{capital(change)}, one server after the other: {_in_one_go(plan.direct)}"
        case SafetyVerdict.SAFE if plan.direct.unchanged and not any(order.steps for order in plan.direct.orders):
            return "There is nothing to do: nothing changes for the ensemble"
        case SafetyVerdict.SAFE if plan.direct.unchanged:
            if any(difference.note for difference in plan.direct.stage.differences):
                return "Restart the servers one by one, and keep the conditions of the keys below"
            return "Restart the servers one by one: nothing changes for the ensemble"
        case SafetyVerdict.SAFE:
            return f"{capital(change)} in one go: {_in_one_go(plan.direct)}"
        case SafetyVerdict.STALLS:
            return f"Do not {change} in this way: it comes to a stop"
        case SafetyVerdict.OPEN:
            if plan.outcome_with_disks is SafetyVerdict.SAFE:
                return f"Move the disks, then {change}; without the disks it is not decided"
            return f"Not decided: do not {change} on the strength of this answer"
    if plan.request.disks and all(_is_safe_but_for_disks(part) for part in plan.advised):
        if any(claim.evidence.reason is Reason.FOREIGN_OBSERVER for part in plan.advised for claim in part.claims):
            return f"Do not start {_with_disks(plan)}: it never serves, or serves the data of that cluster"
        return f"Do not start {_with_disks(plan)}: an acknowledged write can be lost"
    if plan.outcome_with_disks is SafetyVerdict.SAFE:
        return f"Move the disks, then {change}; with an empty disk an acknowledged write can be lost"
    what = "use this order" if plan.request.order is not None else f"{change} in one go"
    finding = worst_finding(plan.advised)
    return f"Do not {what}" + (f": {clause(finding)}" if finding is not None else "")


def _is_safe_but_for_disks(part: PlanRoute) -> bool:
    others = (claim for claim in part.claims if claim.question is not Question.GIVEN_DISKS)
    return all(claim.evidence.outcome is not SafetyVerdict.UNSAFE for claim in others)


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


def _in_one_go(route: PlanRoute) -> str:
    """The steps of the first order, each action named once for the servers that follow each other."""
    order = route.orders[0]
    words = []
    for action, steps in groupby(order.steps, lambda step: step.action):
        sids = [step.sid for step in steps]
        last = " (the leader last)" if len(sids) > 1 and sids[-1] == order.leader else ""
        words.append(f"{VERBS[action]} {listed(sids)}{last}")
    return ", then ".join(words)


def headline(plan: Plan) -> str:
    """The verdict in one line."""
    change, order = plan.direct.stage.title, plan.request.order and order_words(plan.direct.orders[0])
    if plan.back is not None:
        ordered = f" in the order {order}" if order else ""
        part = ", but the order is not the rest of the change" if plan.left_out else ""
        back = f", {verdict_words(plan.back)} to go back"
        return f"Interrupted roll-out {change}: {verdict_words(plan)} to go on{ordered}{part}{back}"
    if plan.stages:
        one = "server" if plan.direct.stage.readdressed else "voter"
        rest = f"{verdict_words(plan)} in {len(plan.stages)} stages, one {one} at a time"
        return f"Roll-out {change}: {verdict_words(plan.direct)} in one go{_as_tried(plan)}, {rest}"
    if order:
        stand = ", but it comes to a stand" if plan.outcome is SafetyVerdict.SAFE and plan.direct.orders[0].vain else ""
        part = " AS FAR AS IT GOES, which is not the whole change" if plan.left_out else ""
        return f"Roll-out {change} in the order {order}: {verdict_words(plan)}{part}{stand}"
    commands = "" if plan.reconfig_route is None else f"; {WORDS[plan.reconfig_route.outcome]} by reconfig"
    return f"Roll-out {change}: {verdict_words(plan)}{_as_tried(plan)}{commands}"


def is_searched(plan: Plan) -> bool:
    """Whether an order was looked for, so that the verdict on the change in one go is one on the orders tried."""
    return plan.request.order is None and plan.tried > 0


def _as_tried(plan: Plan) -> str:
    """Which orders the verdict on the change in one go is about."""
    if not is_searched(plan):
        return ""
    if plan.direct.outcome is SafetyVerdict.SAFE:
        return " in the order of the plan"
    return f" ({plan.tried} of {plan.orders} orders tried)"
