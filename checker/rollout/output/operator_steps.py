"""The steps for the operator: the file of each server, the command that waits, the service meanwhile, a failed step.

Rules of this module: it judges nothing. A command that it prints only reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from shlex import quote

from checker.printable import capital, code, fenced
from checker.rollout.answer import Plan
from checker.rollout.claims import Evidence, Reason
from checker.rollout.failures import Failure, failures
from checker.rollout.order_proof import StageCondition
from checker.rollout.output.kubernetes import BY_PERSON, GO_BACK, LAST_POD, StatefulSet
from checker.rollout.output.sentences import (
    changes,
    direction_sentence,
    listed,
    servers,
    verdict_of,
    who_looks,
)
from checker.rollout.output.waits import wait_of
from checker.rollout.route import Order, PlanRoute
from checker.rollout.runs import SafetyVerdict
from checker.rollout.stages import Stage, one_at_a_time
from checker.rollout.steps import RESTART, START, STOP, ServerStep, quorum_without, unwaited
from checker.rollout.ways import Way
from spec.quorum import Sid
from spec.releases import upgrade_conditions

WAIT = "First paste this wait:"
FILES_AT_THEIR_STEP = (
    "Copy a new file to a server at its step, and not earlier. A server that crashes before its step must come back "
    "with its old file."
)
ELECTION = "It leads: no service for up to 2.9 s (measured)."
LEADS = "It leads."
QUIET = (
    "**Before the first step** stop every client, and wait one session time-out. Begin when `Zxid:` in every `srvr` is "
    "the same. Start the clients again **after the last step**."
)
MYID = "Each server needs its number in `dataDir/myid`; a new one has nothing else in `dataDir`."


def steps(plan: Plan) -> list[list[str]]:
    """The sections for the operator: the steps, or the alternatives."""
    if plan.reconfig_route is not None:
        return []
    if plan.back is not None and plan.outcome is not SafetyVerdict.SAFE and plan.back.outcome is SafetyVerdict.SAFE:
        return [_back(plan, plan.back)]
    lines = _forward(plan) if _is_advised(plan) else _instead(plan)
    return [lines] if lines else []


def steps_behind(plan: Plan) -> list[list[str]]:
    """The sections with steps that the answer does not advise, or shows later."""
    shown = [lines[0] for lines in steps(plan)]
    ways = [_forward(plan), *([_back(plan, plan.back)] if plan.back is not None and plan.back.orders else [])]
    return [lines for lines in ways if lines and lines[0] not in shown]


def _is_advised(plan: Plan) -> bool:
    moved = any(part.stage.moved for part in plan.advised)
    outcome = plan.outcome_with_disks if moved else plan.outcome
    return outcome is SafetyVerdict.SAFE and plan.reconfig_route is None


def _back(plan: Plan, back: PlanRoute) -> list[str]:
    lines = [f"## The way back: {verdict_of(back)}", ""]
    if back.outcome_with_disks is SafetyVerdict.UNSAFE:
        return [*lines, "No order that was tried is safe: see what goes wrong."]
    return [*lines, *_functions(plan, [back]), *_of_stage(plan, back, set())]


def _forward(plan: Plan) -> list[str]:
    any_step = any(order.steps for part in plan.advised for order in part.orders)
    if not any_step and plan.request.disks and plan.outcome is not SafetyVerdict.SAFE:
        return []  # the section on the disks says what to do
    if not any_step or not any(part.stage.remaining for part in plan.advised):
        return ["## The steps", "", "There is nothing to do: every server has its new file."]
    judged = "" if plan.outcome_with_disks is SafetyVerdict.SAFE else " that were judged"
    title = f"## The steps{judged}{', by restarts' if plan.reconfig_route is not None else ''}"
    pods = StatefulSet.of_plan(plan)
    lines = [title, "", *_preparation(plan), *_functions(plan, plan.advised)]
    shown: set[Sid] = set()
    for number, (part, check) in enumerate(zip(plan.advised, plan.checks_between, strict=True), start=1):
        if len(plan.advised) > 1:
            lines += [f"### Stage {number}", ""]
        if check is not None:
            lines += [condition_sentence(check), ""]
        lines += [*_of_stage(plan, part, shown), ""]
    lines += pods.end(plan.advised[-1]) if pods is not None else []
    return lines[:-1]


def _preparation(plan: Plan) -> list[str]:
    """The preparation before the first step."""
    software, stage, releases = plan.software, plan.direct.stage, plan.request.releases
    checks = [] if releases is None else upgrade_conditions(releases.old, releases.new)
    lines = ["**Before the first step:**", "", *(f"- {check}" for check in checks), ""] if checks else []
    if software is not None and software.outcome is not SafetyVerdict.SAFE:
        lines += [QUIET, ""] if software.quiet_outcome_without_faults is SafetyVerdict.SAFE else []
    by_image = StatefulSet.of_plan(plan) is not None
    lines += [MYID, ""] if (stage.added or stage.old.view.standalone) and not by_image else []
    if stage.old.view.standalone:
        lines += [f"Copy the data of server {min(stage.old.members)} first: it is the only copy.", ""]
    return lines + ([FILES_AT_THEIR_STEP, ""] if any(part.stage.changed_roles for part in plan.advised) else [])


def _waits(parts: list[PlanRoute], *, in_pods: bool) -> Iterator[tuple[PlanRoute, Sid]]:
    """The servers that a step waits for."""
    for part in parts:
        for order in part.orders[:1]:
            all_of_them = part.way is Way.STOP_ALL or (part.way.is_of_controller and in_pods)
            yield from ((part, step.sid) for step in order.steps if step.wait and step.action != STOP)
            yield from ((part, sid) for sid in sorted(part.stage.new.members) if all_of_them)


def _functions(plan: Plan, parts: list[PlanRoute]) -> list[str]:
    """The shell functions that the steps call, and the file of all servers."""
    in_pods = StatefulSet.of_plan(plan) is not None
    waits = _waits(parts, in_pods=in_pods)
    questions = dict.fromkeys(wait_of(part.stage.new, sid).question for part, sid in waits)
    assumed = dict.fromkeys(question.assumes for question in questions if question.assumes)
    functions = "\n".join(question.function for question in questions)
    lines = [" ".join((*assumed, WAIT)), "", *fenced(functions, ""), ""] if questions else []
    file = "" if in_pods else _only_file(parts)
    return [*lines, f"The new file of every server is {code(file)}.", ""] if file else lines


def _only_file(parts: list[PlanRoute]) -> str:
    """The file that all servers get; empty if they get several."""
    if not all(part.stage.new.given for part in parts):
        return ""
    origins = {each.origin for part in parts for each in part.stage.new.servers.values()}
    return origins.pop() if len(origins) == 1 else ""


def _of_stage(plan: Plan, part: PlanRoute, shown: set[Sid]) -> list[str]:
    """The steps for each server that may lead when the stage begins. The wait for a server is `shown` once."""
    pods = StatefulSet.of_plan(plan)
    lines = [] if part.stage.new.given else [*_members(part.stage, in_pods=pods is not None), ""]
    by_rule = bool(shown) and all(order.steps == _with_last(part.orders[0], order.leader) for order in part.orders)
    others = [] if by_rule else [order for order in part.orders if order.steps != part.orders[0].steps]
    if pods is not None and part.way.is_of_controller:
        return [*lines, *(f"{number}. {item}" for number, item in enumerate(pods.by_controller(part), start=1))]
    items = [*_items(plan, part, shown, by_rule=by_rule)]
    if pods is not None:
        lines += [] if part.way is Way.STOP_ALL else pods.preparation(part)
        lines += [] if part.way is Way.STOP_ALL or pods.takes(part) else [LAST_POD, ""]
        items = [*pods.all_stopped(part)] if part.way is Way.STOP_ALL else items
    lines += [f"**Server {part.orders[0].leader} leads now**:", ""] if others else []
    lines += [f"{number}. {item}" for number, item in enumerate(items, start=1)]
    if part.way is Way.STOP_ALL:
        calls = [wait_of(part.stage.new, sid).call for sid in sorted(part.stage.new.members)]
        lines += ["", "Then wait until every server serves:", "", *fenced("\n".join(calls), "")]
    return [*lines, *(_other_leaders(part, others) if others else [])]


def _items(plan: Plan, part: PlanRoute, shown: set[Sid], *, by_rule: bool) -> Iterator[str]:
    """The steps of the first order. Restarts in a row are one item if each wait was shown."""
    order, repeated, number = part.orders[0], frozenset(shown), 1
    conditions = part.conditions_of(order)
    for known, group in groupby(order.steps, lambda step: step.action == RESTART and step.sid in repeated):
        items = list(group)
        numbers = range(number, number + len(items))
        if known and len(items) > 1 and not any(at in conditions for at in numbers):
            last = ", the leader last" if by_rule and len(part.orders) > 1 else ""
            wait = "and wait" if all(step.wait for step in items) else "and no wait"
            names = listed(step.sid for step in items)
            yield f"**Restart servers {names}** one by one{last}, each with its new file {wait}."
        else:
            for at, step in zip(numbers, items, strict=True):
                check = f"{condition_sentence(conditions[at])}\n\n   " if at in conditions else ""
                yield f"{check}{_instruction(plan, part, order, step, again=bool(repeated))}"
        number += len(items)
    shown.update(step.sid for step in order.steps)


def _other_leaders(part: PlanRoute, others: list[Order]) -> list[str]:
    """The order for each other server that may lead now, and its checks."""
    conditions = part.conditions_of(part.orders[0])
    checks = [(order.leader, part.conditions_of(order)) for order in others]
    same = all(given == conditions for _, given in checks)
    checked = ", with the same checks" if same and any(conditions) else ""
    lines = ["", f"| leads now | order{checked} |", "| --- | --- |"]
    for order in others:
        unjudged = "" if order.explored or part.proved else " (not judged)"
        lines.append(f"| {order.leader} | {_with_waits(part, order)}{unjudged} |")
    items = [(leader, at, check) for leader, given in checks for at, check in given.items() if at and not same]
    told = [f"- server {leader} leads now, before step {at}: {_check(check)}" for leader, at, check in items]
    return [*lines, "", "There the checks are:", "", *told] if told else lines


def _with_last(order: Order, leader: Sid) -> tuple[ServerStep, ...]:
    """The steps of an order with its restarts ascending, and this server the last of them."""
    restarts = sorted((step for step in order.steps if step.action == RESTART), key=lambda step: step.sid)
    ordered = iter(sorted(restarts, key=lambda step: step.sid == leader))
    return tuple(next(ordered) if step.action == RESTART else step for step in order.steps)


def condition_sentence(condition: StageCondition) -> str:
    """The condition that the operator checks before a step or a stage."""
    return f"**Check first**: {_check(condition)}"


def _check(condition: StageCondition) -> str:
    sids = servers(condition.running)
    parts = [f"{sids} run with their new files, and cannot start with others."]
    parts = parts if condition.renewed else []
    parts += [f"{capital(servers(condition.stopped))} must stay stopped."] if condition.stopped else []
    leader = f"One of {'these' if condition.renewed else sids} says `Mode: leader`, and the others follow."
    return " ".join((*parts, capital(leader) if parts else leader[:1].lower() + leader[1:]))


def _members(stage: Stage, *, in_pods: bool) -> list[str]:
    """The lines of a file that lies between the two folders."""
    name = f"{stage.new.label}{'-N' if len(set(stage.new.files.values())) > 1 else ''}.cfg"
    texts = [text for text in stage.new.texts.values() if "server." in text]
    lines = [line for line in texts[0].splitlines() if line.lstrip().startswith("server.")]
    head = "The servers:" if in_pods else f"{code(name)} (written by `--stages DIR`) has these lines:"
    return [head, "", *fenced("\n".join(lines), "")]


def _instruction(plan: Plan, part: PlanRoute, order: Order, step: ServerStep, *, again: bool) -> str:
    service = _service(plan, part, order, step)
    service = service.replace(ELECTION, LEADS) if again else service
    pods = StatefulSet.of_plan(plan)
    if step.action == STOP:
        starts = any(other.action == START and other.sid == step.sid for other in order.steps)
        stop = f"**Stop server {step.sid}**{'' if starts else ' for good'}"
        return f"{stop}.{service}" if pods is None else f"{stop}: {code(pods.command(step))}.{service}"
    new = part.stage.new
    origin = new.servers[step.sid].origin if new.given else new.files[step.sid]
    file = "" if _only_file([part]) and part in plan.advised else f" with {code(origin)}"
    file = file if pods is None else f": {code(pods.command(step))}"
    action = f"{'Start' if step.action == START else 'Restart'} server {step.sid}**{file}{_release(plan)}"
    if step.sid in part.stage.moved:
        hosts = " or ".join(map(code, sorted(new.hosts(step.sid))))
        disk = "its disk (`dataDir` and `dataLogDir`)"
        action = f"Stop server {step.sid}, move {disk} to {hosts}, then start it there**{file}"
    if step.wait:
        return f"**{action}.{service} Wait: {code(wait_of(new, step.sid).call)}"
    if plan.request.way is Way.STOP_ALL:
        return f"**{action}."
    if plan.request.way is Way.UNREADY_CONTROLLER:
        return f"**{action}. The StatefulSet does not wait until it serves.{service}"
    vain = next((result for result in order.vain if result.stuck == step.sid), None)
    who = f" ({who_looks(vain.looking)} LOOKING)" if vain else ""
    return f"**{action}. Do not wait for it: it may not serve before the next step{who}.{service}"


def _release(plan: Plan) -> str:
    """The release to install at a step of an upgrade."""
    releases = plan.request.releases
    return f" and ZooKeeper {releases.new}" if releases is not None and releases.is_upgrade else ""


def _service(plan: Plan, part: PlanRoute, order: Order, step: ServerStep) -> str:
    """The service while a step is done, after a space; empty if it continues."""
    if not quorum_without(part.stage, order.steps, step, plan.request.down):
        until = "it is back"
        if step.action == STOP:
            until = "enough servers are started" if plan.request.way is Way.STOP_ALL else "the next server is back"
        return f" **Without it no quorum runs**: no service until {until}."
    return f" {ELECTION}" if step.sid == order.leader and step.action != START else ""


def _with_waits(part: PlanRoute, order: Order) -> str:
    """The servers of an order in a row."""
    vain = set() if part.way in (Way.STOP_ALL, Way.UNREADY_CONTROLLER) else set(unwaited(order.steps))
    return ", ".join(f"{step.sid}{' (do not wait for it)' if step.sid in vain else ''}" for step in order.steps)


def _instead(plan: Plan) -> list[str]:
    """The alternative that may be safe if the requested change is not; empty if nothing is known."""
    parts = one_at_a_time(plan.request.old, plan.request.new) if plan.request.now is None else ()
    if plan.request.disks:
        return []
    command = f"python -m checker rollout --from {quote(plan.request.old.path)} --to {quote(plan.request.new.path)}"
    lines = ["## What to do instead", ""]
    if plan.request.way.is_of_controller and plan.request.order is None:
        return [
            *lines,
            f"{code(f'{command} --how one-by-one')} judges steps that a person takes, and not a controller.",
        ]
    if plan.request.order is None:
        return [] if plan.outcome is not SafetyVerdict.UNSAFE else [*lines, "No order that was tried is safe."]
    stages = "; then ".join(changes(part) for part in parts)
    lines += [f"One server at a time, the leader last in each stage: {stages}.", ""] if parts else []
    return [*lines, f"{code(command)}, without `--order`, {'judges each stage' if parts else 'tries other orders'}."]


# A failed step.


IF_A_STEP_FAILS = (
    "A step fails if its server does not serve after some minutes. Touch no other server. Repair it, wait, and go "
    "on{check}: {on}. {undo}: {back}."
)
UNDO = "Or undo the steps backwards with the old files"
ANSWERS = {
    SafetyVerdict.SAFE: "safe",
    SafetyVerdict.UNSAFE: "unsafe",
    SafetyVerdict.OPEN: "not decided",
    SafetyVerdict.STALLS: "it stops",
}


def failed_steps(plan: Plan) -> list[tuple[PlanRoute, Order, tuple[Failure, ...]]]:
    """The states after a failed step, of one order where a proof covers all; empty if no step is advised."""
    if plan.outcome_with_disks is SafetyVerdict.UNSAFE or plan.reconfig_route is not None:
        return []
    orders = [
        (part, order) for part in plan.advised for order in part.orders[: 1 if part.is_settled_by_proof else None]
    ]
    down, software = plan.request.down, plan.software
    return [(part, order, failures(part, order, down, software)) for part, order in orders if order.steps]


def if_a_step_fails(plan: Plan) -> list[str]:
    """The actions if a step fails, and whether both directions are safe."""
    rows = [row for _, _, table in failed_steps(plan) for row in table]
    if not rows or not _is_advised(plan):
        return []
    check = " with the checks that follow" if any(row.going_on.conditions for row in rows) else ""
    on, back = (_directions(rows, [getattr(row, name) for row in rows]) for name in ("going_on", "going_back"))
    waits = "" if all(is_waited_for(step) for row in rows for step in row.undo) else " (waits: `--explain`)"
    undo, back = UNDO, "the service stops" if reverse_stops(plan) else back
    if StatefulSet.of_plan(plan) is not None:
        undo, waits = (GO_BACK, "") if plan.request.way.is_of_controller else (BY_PERSON, waits)
    return ["## If a step fails", "", IF_A_STEP_FAILS.format(check=check, on=on, undo=f"{undo}{waits}", back=back)]


def reverse_stops(plan: Plan) -> bool:
    """Whether the way back by single restarts turns `reconfigEnabled` off, which stops the service."""
    stages = (part.stage for part in plan.advised)
    return any(replace(stage, old=stage.new, new=stage.old).disables_reconfig for stage in stages)


def is_waited_for(step: ServerStep) -> bool:
    """Whether the next step waits until the server serves; a server that stops is not waited for."""
    return step.wait or step.action == STOP


def _directions(rows: list[Failure], directions: list[Evidence]) -> str:
    """The verdicts on one direction, each with the steps that have it."""
    groups: dict[str, list[int]] = {}
    for row, direction in zip(rows, directions, strict=True):
        proved = direction.reason in (Reason.PROVED, Reason.PROVED_IN_ORDER)
        words = (
            ANSWERS[direction.outcome] if proved else f"{ANSWERS[direction.outcome]} ({direction_sentence(direction)})"
        )
        groups.setdefault(words, []).append(row.number)
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{verdict} at step {_range(sorted(set(numbers)))}" for verdict, numbers in groups.items())


def _range(numbers: list[int]) -> str:
    """`5`, `1 to 4`, or `1, 3 and 4`."""
    first, last = numbers[0], numbers[-1]
    return f"{first} to {last}" if len(numbers) > 2 and numbers == list(range(first, last + 1)) else listed(numbers)
