"""The steps for the operator: the file of each server, the command that waits, the service meanwhile, a failed step.

Rules of this module: it judges nothing. A command that it prints only reads.
"""

from dataclasses import replace
from itertools import takewhile
from pathlib import PurePosixPath
from shlex import quote

from checker.command_table import called
from checker.printable import capital, code, fenced
from checker.rollout.answer import Failure, Plan, failures
from checker.rollout.claims import Evidence, Reason
from checker.rollout.inputs.folders import settings
from checker.rollout.order_proof import StageCondition
from checker.rollout.orders import (
    RESTART,
    START,
    STOP,
    UNWAITED,
    ServerStep,
    Steps,
    Way,
    may_lead,
    quorum_without,
    unwaited,
)
from checker.rollout.output.sentences import (
    changes,
    direction_sentence,
    listed,
    row_of,
    servers,
    verdict_words,
    who_looks,
)
from checker.rollout.output.shell_commands import LAST_POD, LEADS, StatefulSet, wait_of
from checker.rollout.route_verdict import Order, PlanRoute
from checker.rollout.runs import SafetyVerdict
from checker.rollout.stages import Stage, one_at_a_time
from spec.quorum import Sid
from spec.releases import upgrade_conditions

WAIT = "Paste this wait:"
FILES_AT_THEIR_STEP = (
    "Copy a new file to a server at its step, and not earlier. A server that crashes before its step must come back "
    "with its old file."
)
ELECTION = "It leads: no service for up to 2.9 s (measured)."
REPEATED = (
    "**Check first**, each time: all but the stopped servers run with their new files, and cannot start with others. "
    "One leads, the others follow."
)
RULE = "If another server leads, it restarts last, the others in ascending order."
LEAVING = " One that goes stops first if it leads."
NO_WAITS = "Do not wait between the steps."
DISK = "move its disk (`dataDir` and `dataLogDir`)"
WRITTEN = "DIR/stage-{}/N/zoo.cfg"  # by `checker.rollout.output.data.write_stages`
MOST_ORDERS = 2  # for other leaders, before one rule takes their place
QUIET = (
    "**Before the first step** stop every client, and wait one session time-out. Begin when every `srvr` has the same "
    "`Zxid:`. Start clients again **after the last step**."
)
EVERY_MYID = "Each server needs its number in `dataDir/myid`; a new one has nothing else in `dataDir`"
MYID = "A new server has only `dataDir/myid`, its number"


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
    headings = [lines[0] for lines in steps(plan)]
    ways = [_forward(plan), *([_back(plan, plan.back)] if plan.back is not None and plan.back.orders else [])]
    return [lines for lines in ways if lines and lines[0] not in headings]


def _is_advised(plan: Plan) -> bool:
    moved = any(part.stage.moved for part in plan.advised)
    outcome = plan.outcome_with_disks if moved else plan.outcome
    return outcome is SafetyVerdict.SAFE and plan.reconfig_route is None


def _back(plan: Plan, back: PlanRoute) -> list[str]:
    lines = [f"## The way back: {verdict_words(back)}", ""]
    if back.outcome_with_disks is SafetyVerdict.UNSAFE:
        return [*lines, "No order that was tried is safe: see what goes wrong."]
    return [*lines, *_dynamic_files(plan, [back]), *_functions(plan, [back]), *_of_stage(plan, back)]


def _forward(plan: Plan) -> list[str]:
    any_step = any(order.steps for part in plan.advised for order in part.orders)
    if not any_step and plan.request.disks and plan.outcome is not SafetyVerdict.SAFE:
        return []  # the section on the disks says what to do
    if not any_step or not any(part.stage.remaining for part in plan.advised):
        return ["## The steps", "", "There is nothing to do: every server has its new file."]
    limit = "" if plan.outcome_with_disks is SafetyVerdict.SAFE else " that were judged"
    title = f"## The steps{limit}{', by restarts' if plan.reconfig_route is not None else ''}"
    pods = StatefulSet.of_plan(plan)
    lines = [title, "", *_preparation(plan), *_dynamic_files(plan, plan.advised), *_functions(plan, plan.advised)]
    repeated = _repeated(plan)
    for number, (part, check) in enumerate(zip(plan.advised, plan.checks_between, strict=True), start=1):
        if number > 1 and repeated:
            return [*lines, *repeated]
        if len(plan.advised) > 1:
            lines += [f"### Stage {number}", ""]
        if check is not None and not (part.orders and 1 in part.conditions_of(part.orders[0])):
            lines += [condition_sentence(part.stage, check, pods), ""]
        lines += [*_of_stage(plan, part, number), ""]
    lines += pods.end(plan.advised[-1]) if pods is not None else []
    return lines[:-1]


def _preparation(plan: Plan) -> list[str]:
    answer, stage, releases = plan.releases, plan.direct.stage, plan.request.releases
    checks = [] if releases is None else upgrade_conditions(releases.old, releases.new)
    lines = ["**Before the first step:**", "", *(f"- {check}" for check in checks), ""] if checks else []
    if answer is not None and answer.verdict() is not SafetyVerdict.SAFE:
        lines += [QUIET, ""] if answer.is_safe_if_quiet else []
    by_image = StatefulSet.of_plan(plan) is not None
    alone = stage.old.view.standalone
    if (stage.added or alone) and not by_image:
        configs = [stage.new.servers[sid].config for sid in stage.added]
        logs = (
            ", and an empty `dataLogDir`" if any(config.data_log_dir != config.data_dir for config in configs) else ""
        )
        lines += [f"{EVERY_MYID if alone else MYID}{logs}.", ""]
    lines += [NO_WAITS, ""] if plan.request.way is Way.NO_WAIT else []
    if alone:
        lines += [f"Copy the data of server {min(stage.old.members)} first: it is the only copy.", ""]
    return lines + ([FILES_AT_THEIR_STEP, ""] if any(part.stage.changed_roles for part in plan.advised) else [])


def _dynamic_files(plan: Plan, parts: list[PlanRoute]) -> list[str]:
    """The places of the dynamic files, which `--to` and `--stages` have beside each zoo.cfg."""
    files = (files for part in parts for files in part.stage.new.servers.values() if files.dynamic is not None)
    paths = dict.fromkeys(files_of_server.config.dynamic_config_file or "" for files_of_server in files)
    if not paths or StatefulSet.of_plan(plan) is not None:
        return []
    names = listed(dict.fromkeys(code(PurePosixPath(path).name) for path in paths))
    return [f"Put {names}, beside each new file, where `dynamicConfigFile` says: {listed(map(code, paths))}.", ""]


def _functions(plan: Plan, parts: list[PlanRoute]) -> list[str]:
    """The shell functions that the steps call."""
    in_pods, waits = StatefulSet.of_plan(plan) is not None, []
    for part in parts:
        of_all = part.way is Way.STOP_ALL or (part.way.is_of_controller and in_pods)
        steps_taken = part.orders[0].steps if part.orders else ()
        waited = [step.sid for step in steps_taken if step.wait and step.action != STOP]
        waits += [
            wait_of(part.stage.new, sid).question for sid in (sorted(part.stage.new.members) if of_all else waited)
        ]
    questions = dict.fromkeys(waits)
    assumed = dict.fromkeys(question.assumes for question in questions if question.assumes)
    functions = "\n".join(question.function for question in questions)
    return [" ".join((*assumed, WAIT)), "", *fenced(functions, ""), ""] if questions else []


def _origins(stage: Stage) -> list[str]:
    """The files that the servers get, by server and without repetitions; none if `--stages` writes them."""
    owned = sorted(stage.new.servers.items()) if stage.new.given else []
    return list(dict.fromkeys(files.origin for _, files in owned))


def _of_stage(plan: Plan, part: PlanRoute, number: int = 1) -> list[str]:
    """The files of a stage, and the steps for each server that may lead when it begins."""
    pods, order = StatefulSet.of_plan(plan), part.orders[0]
    lines = []
    if pods is None and len(origins := _origins(part.stage)) == 1:
        lines = [f"Every server gets {code(origins[0])}.", ""]
    elif not part.stage.new.given and (pods is None or not pods.edits(part, 0)):
        lines = [*_members(part.stage, number, in_pods=pods is not None), ""]
    differing = [order_other for order_other in part.orders if order_other.steps != order.steps]
    items = [_instruction(plan, part, order, step) for step in order.steps]
    for place, condition in part.conditions_of(order).items():
        if place:
            items[place - 1] = f"{condition_sentence(part.stage, condition, pods)}\n\n   {items[place - 1]}"
    if pods is not None and part.way.is_of_controller:
        items, differing = [*pods.by_controller(part)], []
    elif pods is not None and part.way is Way.STOP_ALL:
        items = [*pods.all_stopped(part)]
    elif pods is not None:
        lines += [*pods.preparation(part), *([] if pods.takes(part) else [LAST_POD, ""])]
    leaders = " or ".join(str(same.leader) for same in part.orders if same.steps == order.steps)
    lines += [f"**Server {leaders} leads now**:", ""] if differing else []
    lines += [f"{place}. {item}" for place, item in enumerate(items, start=1)]
    if part.way is Way.STOP_ALL:
        calls = [wait_of(part.stage.new, sid).call for sid in sorted(part.stage.new.members)]
        lines += ["", "Then wait until every server serves:", "", *fenced("\n".join(calls), "")]
    return [*lines, *(_other_leaders(part, differing, pods, ruled=bool(_repeated(plan))) if differing else [])]


def _other_leaders(part: PlanRoute, others: list[Order], pods: StatefulSet | None, *, ruled: bool) -> list[str]:
    """The order for each other server that may lead now, and its checks; one rule if it is `ruled`, or for many."""
    conditions = part.conditions_of(part.orders[0])
    checks = [(order.leader, part.conditions_of(order)) for order in others]
    same = all(by_step == conditions for _, by_step in checks)
    if same and (ruled or len(others) > MOST_ORDERS) and _is_by_rule(part):
        return ["", RULE + (LEAVING if part.stage.removed else "")]
    checked = ", with the same checks" if same and any(conditions) else ""
    lines = ["", f"| leads now | order{checked} |", "| --- | --- |"]
    for order in others:
        vain = set() if part.way in UNWAITED else set(unwaited(order.steps))
        row = ", ".join(f"{step.sid}{' (do not wait for it)' if step.sid in vain else ''}" for step in order.steps)
        unjudged = "" if order.explored or part.proved else " (not judged)"
        lines.append(f"| {order.leader} | {row}{unjudged} |")
    items = [(leader, n, check) for leader, by_step in checks for n, check in by_step.items() if n and not same]
    details = [
        f"- server {leader} leads now, before step {place}: {_check(part.stage, check, pods)}"
        for leader, place, check in items
    ]
    return [*lines, "", "There the checks are:", "", *details] if details else lines


def _by_rule(first: Steps, leader: Sid) -> Steps:
    """The steps of a first order if another server leads: restarts ascend, and the leader is the last of them.

    A server that goes is stopped before the last restart, or first if it leads.
    """
    starts = [*takewhile(lambda step: step.action == START, first)]
    ended = [*takewhile(lambda step: step.action == START, reversed(first[len(starts) :]))][::-1]
    restarts = sorted((step for step in first if step.action == RESTART), key=lambda step: step.sid)
    restarts.sort(key=lambda step: step.sid == leader)
    early = [step for step in first if step.action == STOP and step.sid == leader]
    late = [step for step in first if step.action == STOP and step.sid != leader]
    return (*starts, *early, *restarts[:-1], *late, *restarts[-1:], *ended)


def _is_by_rule(part: PlanRoute) -> bool:
    first, leaders = part.orders[0].steps, {order.leader for order in part.orders}
    is_judged = part.proved or all(order.explored for order in part.orders)
    ruled = all(order.steps == _by_rule(first, order.leader) for order in part.orders)
    return ruled and is_judged and leaders == may_lead(part.stage)


def _repeated(plan: Plan) -> list[str]:
    """The stages after the first, if each does as the first: one server comes or goes, and the others keep the rule."""
    first, *later = plan.advised
    (_, *checks), shape = plan.checks_between, _shape(first)
    alike = shape is not None and all(_shape(part) == shape and _is_by_rule(part) for part in plan.advised)
    if not later or not alike or StatefulSet.of_plan(plan) is not None:
        return []
    title, duty, rows = f"### Stages 2 to {len(plan.advised)}", REPEATED, []
    for number, (before, part, check) in enumerate(zip(plan.advised, later, checks, strict=False), start=2):
        assert check is not None
        if len(later) == 1:
            title, duty = "### Stage 2", condition_sentence(part.stage, check)
        rows.append((str(number), ", ".join(map(str, check.stopped)), *_changed(before.stage, part, number)))
    head = ("stage", "stay stopped", "change", "new file", "no service")
    used = [place for place in range(len(head)) if any(row[place] for row in rows)]
    lines = [[row[place] for place in used] for row in (head, ("---",) * len(head), *rows)]
    return [title, "", f"{duty} Then do as in stage 1.", "", *(f"| {' | '.join(line)} |" for line in lines)]


def _shape(part: PlanRoute) -> tuple[object, ...] | None:
    """How many servers come and go in a stage, and which steps wait; None if it changes more, or has a check inside."""
    stage, orders = part.stage, part.orders
    if stage.standalone or stage.readdressed or stage.changed_roles or len(stage.added + stage.removed) != 1:
        return None
    waits = frozenset((step.action, step.wait) for order in orders for step in order.steps)
    return None if any(map(part.conditions_of, orders)) else (len(stage.added), len(stage.removed), waits)


def _changed(before: Stage, part: PlanRoute, number: int) -> tuple[str, str, str]:
    """The server that comes or goes in a stage, the new file beside that of the stage before, and missing quorums."""
    stage, pairs = part.stage, [(order, step) for order in part.orders for step in order.steps]
    change = f"stop {servers(stage.removed)}" if stage.removed else f"start {servers(stage.added)}"
    for sid in stage.added:
        is_waited = any(step.wait for _, step in pairs if step.sid == sid)
        change += f", and wait: {code(wait_of(stage.new, sid).call)}" if is_waited else ""
    file, old, new = ", ".join(map(code, _origins(stage))), _member_lines(before), _member_lines(stage)
    if not stage.new.given:
        lines = [f"without {code(name)}" for name in old.keys() - new.keys()]
        lines += [f"with {code(f'{name}={line}')}" for name, line in new.items() if old.get(name) != line]
        file = f"{code(WRITTEN.format(number))}, {listed(lines)}"
    away = (
        f"while server {step.sid} is away, if server {order.leader} leads"
        for order, step in pairs
        if not quorum_without(stage, order.steps, step)
    )
    return change, file, "; ".join(away)


def condition_sentence(stage: Stage, condition: StageCondition, pods: StatefulSet | None = None) -> str:
    """The condition that the operator checks before a step or a stage."""
    return f"**Check first**: {_check(stage, condition, pods)}"


def _check(stage: Stage, condition: StageCondition, pods: StatefulSet | None) -> str:
    names_of = servers if pods is None else pods.with_pods
    sids = names_of(condition.running)
    if not condition.renewed:
        states = (
            (stage.old if sid in stage.old.members - stage.renewed else stage.new, sid) for sid in condition.running
        )
        fields = dict.fromkeys(LEADS[wait_of(*server).question.mark] for server in states)
        return f"one of {sids} says {' or '.join(fields)}, and the others follow."
    stopped = f" {capital(names_of(condition.stopped))} must stay stopped." if condition.stopped else ""
    return f"{sids} run with their new files, and cannot start with others.{stopped} One leads, the others follow."


def _members(stage: Stage, number: int, *, in_pods: bool) -> list[str]:
    sentence = f"Server N gets {code(WRITTEN.format(number))} (`--stages DIR`), with:"
    lines = "\n".join(f"{name}={line}" for name, line in _member_lines(stage).items())
    return ["The servers:" if in_pods else sentence, "", *fenced(lines, "")]


def _member_lines(stage: Stage) -> dict[str, str]:
    """The lines of the servers in the first file after a stage."""
    first = settings(stage.new.servers[min(stage.new.servers)])
    return {name: value for name, value in first.items() if name.startswith("server.")}


def _instruction(plan: Plan, part: PlanRoute, order: Order, step: ServerStep) -> str:
    service = _service(plan, part, order, step)
    pods = StatefulSet.of_plan(plan)
    if step.action == STOP:
        starts = any(later.action == START and later.sid == step.sid for later in order.steps)
        stop = f"**Stop server {step.sid}**{'' if starts else ' for good'}"
        return f"{stop}.{service}" if pods is None else f"{stop}: {code(pods.command(step))}.{service}"
    new = part.stage.new
    origin = f" with {code(new.servers[step.sid].origin)}" if len(_origins(part.stage)) > 1 else ""
    file = origin if pods is None else f": {code(pods.command(step))}"
    releases = plan.request.releases
    release = f" and ZooKeeper {releases.new}" if releases is not None and releases.is_upgrade else ""
    action = f"{'Start' if step.action == START else 'Restart'} server {step.sid}**{file}{release}"
    if step.sid in part.stage.moved:
        hosts = " or ".join(map(code, sorted(new.hosts(step.sid))))
        action = f"Stop server {step.sid}, {DISK} to {hosts}, then start it there**{file}"
    if step.wait:
        return f"**{action}.{service} Wait: {code(wait_of(new, step.sid).call)}"
    if plan.request.way in (Way.STOP_ALL, Way.NO_WAIT):
        return f"**{action}.{service if plan.request.way is Way.NO_WAIT else ''}"
    if plan.request.way is Way.UNREADY_CONTROLLER:
        return f"**{action}. The StatefulSet does not wait until it serves.{service}"
    vain = next((result for result in order.vain if result.stuck == step.sid), None)
    who = f" ({who_looks(vain.looking)} LOOKING)" if vain else ""
    return f"**{action}. Do not wait for it: it may not serve before the next step{who}.{service}"


def _service(plan: Plan, part: PlanRoute, order: Order, step: ServerStep) -> str:
    """The service while a step is done, after a space; empty if it continues."""
    if not quorum_without(part.stage, order.steps, step, plan.request.down):
        until = "it is back"
        if step.action == STOP:
            until = "enough servers are started" if plan.request.way is Way.STOP_ALL else "the next server is back"
        return f" **Without it no quorum runs**: no service until {until}."
    return f" {ELECTION}" if step.sid == order.leader and step.action != START else ""


def _instead(plan: Plan) -> list[str]:
    """The alternative that may be safe if the requested change is not; empty if nothing is known."""
    request, is_given = plan.request, plan.request.order is not None
    by_controller = request.way.is_of_controller and not is_given
    if request.disks or not (by_controller or is_given or plan.outcome is SafetyVerdict.UNSAFE):
        return []
    command = f"{called('rollout')} --from {quote(request.old.path)} --to {quote(request.new.path)}"
    lines = ["## What to do instead", ""]
    if plan.direct.stage.moved and not request.new.names and request.now is None:
        same = code(f"{command} --same-machines")
        lines += [f"If the hosts are the same machines under other names, ask again: {same}.", ""]
    if by_controller:
        by_hand = code(f"{command} --how one-by-one")
        return [*lines, f"{by_hand} judges steps that a person takes, and not a controller."]
    if not is_given:
        return [*lines, "No order that was tried is safe."]
    parts = one_at_a_time(request.old, request.new)[0] if request.now is None else ()
    stages = "; then ".join(changes(part) for part in parts)
    lines += [f"{code(command)}, without `--order`, looks for a safe order, or for safe stages."]
    return (
        [*lines, "", f"One server at a time the stages are: {stages}, each with the leader last."] if parts else lines
    )


# A failed step.


IF_A_STEP_FAILS = (
    "If its server does not serve after some minutes, touch no other. Repair it, wait, and go on{check}: {on}. {undo}: "
    "{back}.{how}"
)
UNDO = "Or undo the steps backwards with the old files"
UNDO_STAGE = "Or undo this stage backwards, with the files from before it"
SAID = frozenset({Reason.PROVED, Reason.PROVED_IN_ORDER, Reason.DEFECTS, Reason.DEFECTS_NOT_EXPLORED})
"""The reasons that stand above the steps."""
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
    return [
        (part, order, failures(part, order, plan.request.down, plan.releases))
        for part in plan.advised
        for order in part.orders[: 1 if part.is_settled_by_proof else None]
        if order.steps
    ]


def if_a_step_fails(plan: Plan) -> list[str]:
    """The actions if a step fails, and whether both directions are safe."""
    rows = [row for _, _, table in failed_steps(plan) for row in table]
    if not rows or not _is_advised(plan):
        return []
    check = " with the checks that follow" if any(row.going_on.conditions for row in rows) else ""
    on, back = (_directions(rows, [getattr(row, name) for row in rows]) for name in ("going_on", "going_back"))
    waits = "" if all(is_waited_for(step) for row in rows for step in row.undo) else " (waits: `--explain`)"
    undo, how, pods = UNDO if len(plan.advised) == 1 else UNDO_STAGE, "", StatefulSet.of_plan(plan)
    back = "the service stops" if reverse_stops(plan) else back
    if pods is not None:
        undo, how = pods.way_back(plan.advised)
        waits = "" if plan.request.way.is_of_controller else waits
    text = IF_A_STEP_FAILS.format(check=check, on=on, undo=f"{undo}{waits}", back=back, how=how)
    return ["## If a step fails", "", text]


def reverse_stops(plan: Plan) -> bool:
    """Whether the way back by single restarts turns `reconfigEnabled` off, which stops the service."""
    stages = (part.stage for part in plan.advised)
    return any(replace(stage, old=stage.new, new=stage.old).disables_reconfig for stage in stages)


def is_waited_for(step: ServerStep) -> bool:
    """Whether the next step waits until the server serves; a server that stops is not waited for."""
    return step.wait or step.action == STOP


def _directions(rows: list[Failure], directions: list[Evidence]) -> str:
    """The verdicts on one direction, each with its reasons and the steps that have it."""
    groups: dict[SafetyVerdict, list[tuple[int, Evidence]]] = {}
    for row, direction in zip(rows, directions, strict=True):
        groups.setdefault(direction.outcome, []).append((row.number, direction))
    parts = []
    for outcome, group in groups.items():
        unsaid = [evidence for _, evidence in group if evidence.reason not in SAID]
        reasons = "; ".join(dict.fromkeys(map(direction_sentence, unsaid)))
        steps = f" at step {row_of(sorted({number for number, _ in group}))}" if len(groups) > 1 else ""
        parts.append(f"{ANSWERS[outcome]}{f' ({reasons})' if reasons else ''}{steps}")
    return "; ".join(parts)
