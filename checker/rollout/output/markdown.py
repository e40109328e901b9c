"""The plan as Markdown that a person pastes into a change request; on a terminal it reads well as it is.

    the verdict, and why in a sentence
    a table of questions for each stage     without faults and under faults, always both
    the two states                          the files that were read; the quick answer
    what differs                            every key, by server, with its effect on the verdict
    the steps                               which file goes where, what to wait for
    if a step fails                         the files at that time; whether going on and going back are safe
    what goes wrong                         the run that was found, step by step; the whole trace folded away
    checked and unchecked                   every run with its states and bounds

Rules of this module: it judges nothing. Results of exploration are never called proved, and a search that was not
finished is called that wherever it is named.
"""

from __future__ import annotations

from checker.rollout.answer import Plan
from checker.rollout.assessment import Order, QuestionAnswer, Reason, StageAssessment
from checker.rollout.output.sections import differences, if_a_step_fails, what_goes_wrong, what_was_checked
from checker.rollout.output.sentences import (
    ENOUGH,
    WORDS,
    answer_sentence,
    clause,
    headline,
    in_short,
    not_covered,
    order_words,
    pair_sentence,
    verdict_of,
    who_looks,
)
from checker.rollout.runs import SafetyVerdict
from checker.rollout.stages import Stage, one_at_a_time
from checker.rollout.steps import START, STOP, ServerStep, quorum_without, unwaited
from checker.symbolic.report import view_text


def markdown(plan: Plan, *, traces: bool = True) -> str:
    """The whole document, with a newline at its end; `traces`: with every trace that was found, folded away."""
    sections = [
        [f"# {headline(plan)}", "", *in_short(plan)],
        _verdicts(plan),
        _taken(plan),
        differences(plan),
        _steps(plan),
        if_a_step_fails(plan),
        what_goes_wrong(plan, traces=traces),
        what_was_checked(plan),
        ["## What is not covered", "", *(f"- {line}" for line in not_covered(plan))],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _taken(plan: Plan) -> list[str]:
    """The two states, where they were read, and what z3 says of their quorums."""
    lines = ["## The two states, and the quick answer", ""]
    for label, folder in (("before", plan.request.old), ("after", plan.request.new)):
        lines.append(f"- **{label}**: {view_text(folder.view)}")
        lines += [f"  - {taken}" for taken in folder.taken]
        lines += [f"  - warning: {warning}" for warning in folder.warnings]
    if plan.request.now is not None:
        lines += ["- **now**:", *(f"  - {taken}" for taken in plan.request.now.taken)]
    lines += [f"- note: {note}" for note in plan.notes]
    lines += ["", *(f"- {pair}" for pair in _pairs(plan)), "", ENOUGH]
    return lines


def _pairs(plan: Plan) -> list[str]:
    """What z3 says, once for each pair."""
    stages = [plan.direct, *plan.stages] if plan.direct.stage.remaining else plan.judged
    return list(dict.fromkeys(pair_sentence(pair) for stage in stages for pair in stage.pairs))


# The answers.


def _verdicts(plan: Plan) -> list[str]:
    lines = ["## Verdict"]
    if plan.stages:
        lines += ["", f"### In one go: {verdict_of(plan.direct)}", "", _tried(plan), "", *_table(plan.direct)]
        for number, part in enumerate(plan.stages, start=1):
            title = f"### Stage {number} of {len(plan.stages)}, {part.stage.title}: {verdict_of(part)}"
            lines += ["", title, "", *_table(part)]
        return lines
    if plan.back is not None:
        on, back = verdict_of(plan.direct), verdict_of(plan.back)
        lines += ["", f"### To go on: {on}", "", *_table(plan.direct)]
        return [*lines, "", f"### To go back: {back}", "", *_table(plan.back)]
    return [*lines, "", *_table(plan.direct)]


def _tried(plan: Plan) -> str:
    if not plan.tried:
        return "None of its orders was run."
    shown = plan.direct.orders[0]
    tried = f"Of {plan.orders} orders {plan.tried} {'was' if plan.tried == 1 else 'were'} run; unsafe: {plan.unsafe}"
    others = " Nothing is said of the others: `--order` asks about one." if plan.tried < plan.orders else ""
    return f"{tried}. Shown is {order_words(shown)}, where server {shown.leader} leads first.{others}"


def _table(assessment: StageAssessment) -> list[str]:
    many = f"under {assessment.faults} fault{'s' * (assessment.faults != 1)}" if assessment.faults else "under faults"
    lines = [f"| question | without faults | {many} |", "| --- | --- | --- |"]
    for question in assessment.questions:
        without, under = (_cell(assessment.answer(question, faulty=faulty)) for faulty in (False, True))
        lines.append(f"| {question.value} | {without} | {under if assessment.faults else 'not asked for'} |")
    return lines


def _cell(answer: QuestionAnswer) -> str:
    word = WORDS[answer.outcome]
    if answer.outcome is SafetyVerdict.UNSAFE and answer.finding is not None:
        why = clause(answer.finding) if answer.reason is Reason.FOUND else answer_sentence(answer)
        return f"**{word}**: {why}"
    return f"{word}: {answer_sentence(answer)}"


# The steps.


def _steps(plan: Plan) -> list[str]:
    lines = _instead(plan) if plan.outcome_with_disks is SafetyVerdict.UNSAFE else _forward(plan)
    if plan.back is None or not plan.back.orders:
        return lines
    lines += ["", f"## The way back: {verdict_of(plan.back)}", ""]
    if plan.back.outcome_with_disks is SafetyVerdict.UNSAFE:
        return [*lines, "No order that was tried is safe: see what goes wrong."]
    return [*lines, *_of_stage(plan, plan.back)]


def _forward(plan: Plan) -> list[str]:
    any_step = any(order.steps for part in plan.advised for order in part.orders)
    if not any_step or not any(part.stage.remaining for part in plan.advised):
        return ["## The plan", "", "There is nothing to do: every server has its new file."]
    title = "## The plan" if plan.outcome_with_disks is SafetyVerdict.SAFE else "## The steps that were judged"
    lines = [title, "", BEFORE]
    for number, part in enumerate(plan.advised, start=1):
        if len(plan.advised) > 1:
            lines += ["", f"### Stage {number} of {len(plan.advised)}: {part.stage.title}"]
        lines += ["", *_of_stage(plan, part)]
    return lines


BEFORE = (
    "`srvr` below is what `echo srvr | nc HOST 2181` answers; `Mode:` is in it only while the server serves, that is, "
    "when it has caught up with its leader. Do the next step only when the one before is done. If a server does not "
    "come back, find out why, or give it its old file again, before you touch another."
)


def _of_stage(plan: Plan, part: StageAssessment) -> list[str]:
    """The steps for each server that may lead when the stage begins."""
    lines: list[str] = []
    if not part.stage.new.given:
        lines += [*_members(part.stage), ""]
    orders = part.orders
    if len(orders) > 1 and len({order.steps for order in orders}) > 1:
        lines += [f"Find out who leads now (`Mode: leader`). If it is server {orders[0].leader}:", ""]
    lines += [f"{n}. {_instruction(plan, part, orders[0], step)}" for n, step in enumerate(orders[0].steps, start=1)]
    others = [order for order in orders[1:] if order.steps != orders[0].steps]
    unexplored = " (not explored, by the proof)" if part.proved else " (not explored)"
    if others:
        lines += [
            "",
            "If another server leads, the same in another order:",
            "",
            "| leads now | order |",
            "| --- | --- |",
        ]
    for order in others:
        lines.append(f"| {order.leader} | {_with_waits(order)}{'' if order.explored else unexplored} |")
    return lines


def _members(stage: Stage) -> list[str]:
    """The lines of a file that lies between the two folders."""
    name = f"{stage.new.label}{'-N' if len(set(stage.new.files.values())) > 1 else ''}.cfg"
    texts = [text for each, text in stage.new.texts.items() if "server." in text]
    lines = [line for line in texts[0].splitlines() if line.lstrip().startswith("server.")]
    head = f"`{name}` is each server's own file, with these lines in the place of its `server.N` lines"
    return [f"{head} (`--stages DIR` writes the files):", "", "```", *lines, "```"]


def _instruction(plan: Plan, part: StageAssessment, order: Order, step: ServerStep) -> str:
    last = " It leads, so an election follows: a moment without service." if step.sid == order.leader else ""
    if not quorum_without(part.stage, order.steps, step, plan.request.down):
        last += " **Without it no quorum runs**: no service until the next server is back."
        if step.action != STOP:
            last = " **Without it no quorum runs**: no service until it is back."
    if step.action == STOP:
        return f"**Stop server {step.sid}** for good.{last}"
    new = part.stage.new
    file = f"`{new.servers[step.sid].origin if new.given else new.files[step.sid]}`"
    what = f"{'Start' if step.action == START else 'Restart'} server {step.sid}** with {file}"
    if step.sid in part.stage.moved:
        hosts = " or ".join(f"`{host}`" for host in sorted(new.hosts(step.sid)))
        disk = "its disk (`dataDir` and `dataLogDir`)"
        what = f"Stop server {step.sid}, move {disk} to {hosts}, then start it there** with {file}"
    if step.wait:
        mode = "observer" if step.sid in new.view.observers else "follower` or `leader"
        return f"**{what}. Wait until its `srvr` shows `Mode: {mode}`.{last}"
    vain = next((result for result in order.vain if result.stuck == step.sid), None)
    who = f" ({who_looks(vain.looking)} LOOKING)" if vain else ""
    return f"**{what}. Do not wait for it: it may not serve before the next step{who}.{last}"


def _with_waits(order: Order) -> str:
    """The steps in a row, each with its action, where servers are stopped for good too."""
    verbs = any(step.action == STOP for step in order.steps)
    vain = set(unwaited(order.steps))
    steps = ((step if verbs else step.sid, step.sid in vain) for step in order.steps)
    return ", ".join(f"{step}{' (do not wait for it)' if in_vain else ''}" for step, in_vain in steps)


def _instead(plan: Plan) -> list[str]:
    """An alternative that may be safe if the requested change is not."""
    parts = one_at_a_time(plan.request.old, plan.request.new)
    lines = ["## What to do instead", ""]
    if plan.request.order is None:
        nothing = (
            "No order that was tried is safe, and there is no smaller step of voters to take: see what goes wrong."
        )
        return [*lines, nothing]
    if parts:
        lines += ["One voter at a time, the leader last in each stage:", ""]
        lines += [*(f"{number}. {part.title}" for number, part in enumerate(parts, start=1)), ""]
    command = f"`python -m checker rollout --from {plan.request.old.path} --to {plan.request.new.path}`"
    what = "plans each stage and checks it" if parts else "tries other orders"
    return [*lines, f"{command}, without `--order`, {what}."]
