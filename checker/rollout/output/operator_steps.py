"""The steps for the operator: the file of each server, the command that waits, the service meanwhile.

Rules of this module: it judges nothing. A command that it prints only reads.
"""

from __future__ import annotations

from shlex import quote

from checker.printable import capital, code, fenced
from checker.rollout.answer import Plan
from checker.rollout.assessment import Order, StageAssessment
from checker.rollout.order_proof import StageCondition
from checker.rollout.output.recommendation import changes, servers
from checker.rollout.output.sentences import verdict_of, who_looks
from checker.rollout.output.waits import wait_command
from checker.rollout.runs import SafetyVerdict
from checker.rollout.stages import Stage, one_at_a_time
from checker.rollout.steps import START, STOP, ServerStep, quorum_without, unwaited
from checker.rollout.ways import Way


def steps(plan: Plan) -> list[str]:
    """The section with the steps for the operator."""
    lines = _instead(plan) if plan.outcome_with_disks is SafetyVerdict.UNSAFE else _forward(plan)
    if plan.back is None or not plan.back.orders:
        return lines
    lines += ["", f"## The way back: {verdict_of(plan.back)}", ""]
    if plan.back.outcome_with_disks is SafetyVerdict.UNSAFE:
        return [*lines, "No order that was tried is safe: see what goes wrong."]
    return [*lines, *_of_stage(plan, plan.back)]


def _forward(plan: Plan) -> list[str]:
    any_step = any(order.steps for part in plan.advised for order in part.orders)
    if not any_step and plan.request.disks and plan.outcome is not SafetyVerdict.SAFE:
        return []  # the section on the disks says what to do
    if not any_step or not any(part.stage.remaining for part in plan.advised):
        return ["## The steps", "", "There is nothing to do: every server has its new file."]
    title = "## The steps" if plan.outcome_with_disks is SafetyVerdict.SAFE else "## The steps that were judged"
    title = f"{title}, by restarts" if plan.reconfig_route is not None else title
    head = [] if plan.request.way is Way.UNREADY_CONTROLLER else ["", BEFORE]
    lines = [title, *head, *_preparation(plan)]
    if any(part.stage.changed_roles for part in plan.advised):
        lines += ["", FILES_AT_THEIR_STEP]
    for number, (part, check) in enumerate(zip(plan.advised, plan.checks_between, strict=True), start=1):
        if len(plan.advised) > 1:
            lines += ["", f"### Stage {number} of {len(plan.advised)}: {changes(part.stage)}"]
        if check is not None:
            lines += ["", f"{condition_sentence(check)} {RESTS_ON_IT}"]
        lines += ["", *_of_stage(plan, part)]
    return lines


RESTS_ON_IT = "The verdict on this stage rests on it, in every way of working."
BEFORE = (
    "Each command waits until its server serves: a server answers `srvr` with a `Mode:` only then. Do the next step "
    "when the command has ended. If it has not ended after some minutes, see *If a step fails*."
)
FILES_AT_THEIR_STEP = (
    "Copy a new file to a server at the step of that server, and not earlier: a server that crashes before its step "
    "must come back with its old file."
)
ELECTION = "It leads, so an election follows: no service for a few seconds (seen on real servers: at most 2.9 s)."


QUIET = (
    "**Before the first step**, because of the defects of the release: stop every client, wait one session time-out, "
    "so that no session is left to end, and compare `Zxid:` in the `srvr` of all servers: begin when it is the same. "
    "Start the clients again **after the last step**."
)
MYID = (
    "Each server needs its number in `dataDir/myid`, also one that ran standalone before and had none. Apart from that "
    "file the `dataDir` of a new server is empty."
)


def _preparation(plan: Plan) -> list[str]:
    """What the operator does before the first step."""
    software, stage = plan.software, plan.direct.stage
    lines = []
    if software is not None and software.outcome is not SafetyVerdict.SAFE:
        lines += ["", QUIET] if software.quiet_outcome_without_faults is SafetyVerdict.SAFE else []
    lines += ["", MYID] if stage.added or stage.old.view.standalone else []
    if stage.old.view.standalone:
        lines += ["", f"Copy the data of server {min(stage.old.members)} first: it is the only copy."]
    return lines


def _of_stage(plan: Plan, part: StageAssessment) -> list[str]:
    """The steps for each server that may lead when the stage begins."""
    lines: list[str] = []
    if not part.stage.new.given:
        lines += [*_members(part.stage), ""]
    orders = part.orders
    if len(orders) > 1 and len({order.steps for order in orders}) > 1:
        lines += [f"Find out who leads now (`Mode: leader`). If it is server {orders[0].leader}:", ""]
    conditions = part.conditions_of(orders[0])
    for n, step in enumerate(orders[0].steps, start=1):
        if n in conditions:
            lines += [
                f"{n}. {condition_sentence(conditions[n])}",
                "",
                f"   {_instruction(plan, part, orders[0], step)}",
            ]
        else:
            lines.append(f"{n}. {_instruction(plan, part, orders[0], step)}")
    if part.way is Way.STOP_ALL:
        lines += ["", "Then wait until every server serves:", "", *fenced("\n".join(_all_waits(part)), "")]
    others = [order for order in orders[1:] if order.steps != orders[0].steps]
    if others:
        same = "If another server leads, the same steps in another order:"
        lines += ["", same, "", "| leads now | order |", "| --- | --- |"]
    for order in others:
        unjudged = "" if order.explored or part.proved else " (not judged)"
        lines.append(f"| {order.leader} | {_with_waits(part, order)}{unjudged} |")
    return lines + _checks_of_others(part, others)


def _checks_of_others(part: StageAssessment, others: list[Order]) -> list[str]:
    """What *check first* stands for in the orders of the other leaders."""
    above = part.conditions_of(part.orders[0])
    checks = [(order.leader, part.conditions_of(order)) for order in others]
    if not any(conditions for _, conditions in checks):
        return []
    if all(conditions == above for _, conditions in checks):
        return ["", "There *check first* is the check before the same step above."]
    lines = ["", "There *check first* is a check:", ""]
    for leader, conditions in checks:
        for number, each in conditions.items():
            lines.append(f"- server {leader} leads, before step {number}: {_check(each)}")
    return lines


def condition_sentence(condition: StageCondition) -> str:
    """The condition that the operator checks before a step or a stage."""
    return f"**Check first**: {_check(condition)}"


def _check(condition: StageCondition) -> str:
    sids = servers(condition.running)
    parts = [f"{capital(sids)} have been restarted with their new files, and none can start with another."]
    parts = parts if condition.renewed else []
    parts += [f"{capital(servers(condition.stopped))} must stay stopped."] if condition.stopped else []
    leader = f"`srvr` shows one `Mode: leader` among {sids}, and every other one of them follows it. If not, wait."
    return " ".join((*parts, leader))


def _members(stage: Stage) -> list[str]:
    """The lines of a file that lies between the two folders."""
    name = f"{stage.new.label}{'-N' if len(set(stage.new.files.values())) > 1 else ''}.cfg"
    texts = [text for each, text in stage.new.texts.items() if "server." in text]
    lines = [line for line in texts[0].splitlines() if line.lstrip().startswith("server.")]
    head = f"{code(name)} is each server's own file, with these lines in the place of its `server.N` lines"
    return [
        f"{head} (`--stages DIR` writes the files, such as `DIR/stage-1/4/zoo.cfg` for server 4):",
        "",
        *fenced("\n".join(lines), ""),
    ]


def _instruction(plan: Plan, part: StageAssessment, order: Order, step: ServerStep) -> str:
    service = _service(plan, part, order, step)
    if step.action == STOP:
        again = any(other.action == START and other.sid == step.sid for other in order.steps)
        return f"**Stop server {step.sid}**{'' if again else ' for good'}.{service}"
    new = part.stage.new
    file = code(new.servers[step.sid].origin if new.given else new.files[step.sid])
    what = f"{'Start' if step.action == START else 'Restart'} server {step.sid}** with {file}{_release(plan)}"
    if step.sid in part.stage.moved:
        hosts = " or ".join(map(code, sorted(new.hosts(step.sid))))
        disk = "its disk (`dataDir` and `dataLogDir`)"
        what = f"Stop server {step.sid}, move {disk} to {hosts}, then start it there** with {file}"
    if step.wait:
        return f"**{what}.{service} Wait:\n   {code(wait_command(new, step.sid))}"
    if plan.request.way is Way.STOP_ALL:
        return f"**{what}."
    if plan.request.way is Way.UNREADY_CONTROLLER:
        return f"**{what}. The StatefulSet does not wait until it serves.{service}"
    vain = next((result for result in order.vain if result.stuck == step.sid), None)
    who = f" ({who_looks(vain.looking)} LOOKING)" if vain else ""
    return f"**{what}. Do not wait for it: it may not serve before the next step{who}.{service}"


def _all_waits(part: StageAssessment) -> list[str]:
    return [wait_command(part.stage.new, sid) for sid in sorted(part.stage.new.members)]


def _release(plan: Plan) -> str:
    """The release to install at a step of an upgrade."""
    releases = plan.request.releases
    return f" and ZooKeeper {releases.new}" if releases is not None and releases.is_upgrade else ""


def _service(plan: Plan, part: StageAssessment, order: Order, step: ServerStep) -> str:
    """The service while a step is done, after a space; empty if it simply goes on."""
    if not quorum_without(part.stage, order.steps, step, plan.request.down):
        until = "it is back"
        if step.action == STOP:
            until = "enough servers are started" if plan.request.way is Way.STOP_ALL else "the next server is back"
        return f" **Without it no quorum runs**: no service until {until}."
    return f" {ELECTION}" if step.sid == order.leader and step.action != START else ""


def _with_waits(part: StageAssessment, order: Order) -> str:
    """The steps in a row, each with its action, where servers are stopped for good too."""
    verbs = any(step.action == STOP for step in order.steps)
    vain = set() if part.way in (Way.STOP_ALL, Way.UNREADY_CONTROLLER) else set(unwaited(order.steps))
    checked = part.conditions_of(order)
    shown = []
    for number, step in enumerate(order.steps, start=1):
        check = "*check first*, " if number in checked else ""
        shown.append(f"{check}{step if verbs else step.sid}{' (do not wait for it)' if step.sid in vain else ''}")
    return ", ".join(shown)


def _instead(plan: Plan) -> list[str]:
    """An alternative that may be safe if the requested change is not."""
    parts = one_at_a_time(plan.request.old, plan.request.new)
    lines = ["## What to do instead", ""]
    if plan.request.order is None:
        return [*lines, "No order that was tried is safe, and there is no smaller step to take."]
    if parts:
        lines += ["One server at a time, the leader last in each stage:", ""]
        lines += [*(f"{number}. {changes(part)}" for number, part in enumerate(parts, start=1)), ""]
    old, new = quote(plan.request.old.path), quote(plan.request.new.path)
    command = code(f"python -m checker rollout --from {old} --to {new}")
    what = "plans each stage and judges it" if parts else "tries other orders"
    return [*lines, f"{command}, without `--order`, {what}."]
