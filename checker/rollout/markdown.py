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

import re
from collections.abc import Iterator, Sequence

from checker.markdown import escaped, fenced, folded
from checker.rollout.answer import Plan
from checker.rollout.assess import Order, QuestionAnswer, Reason, StageAssessment
from checker.rollout.phrases import WORDS, clause, headline, in_short, not_covered, order_words, verdict_of
from checker.rollout.quorums import ENOUGH, view_words
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import Question
from checker.rollout.sections import differences, if_a_step_fails
from checker.rollout.sentences import answer_sentence, who_looks
from checker.rollout.stages import Stage, one_at_a_time
from checker.rollout.steps import START, STOP, ServerStep, quorum_without, unwaited
from checker.traces.text import to_text
from spec.quorum import Sid


def markdown(plan: Plan, *, traces: bool = True) -> str:
    """The whole document, with a newline at its end; `traces`: with every trace that was found, folded away."""
    sections = [
        [f"# {headline(plan)}", "", *in_short(plan)],
        _verdicts(plan),
        _taken(plan),
        differences(plan),
        _steps(plan),
        if_a_step_fails(plan),
        _wrong(plan, traces=traces),
        _checked(plan),
        ["## What is not covered", "", *(f"- {line}" for line in not_covered(plan))],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _taken(plan: Plan) -> list[str]:
    """The two states, where they were read, and what z3 says of their quorums."""
    lines = ["## The two states, and the quick answer", ""]
    for label, folder in (("before", plan.request.old), ("after", plan.request.new)):
        lines.append(f"- **{label}**: {view_words(folder.view)}")
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
    return list(dict.fromkeys(str(pair) for stage in stages for pair in stage.pairs))


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
    if not any(part.stage.remaining for part in plan.advised) or not _any_step(plan):
        return ["## The plan", "", "There is nothing to do: every server has its new file."]
    lines = [
        "## The plan" if plan.outcome_with_disks is SafetyVerdict.SAFE else "## The steps that were judged",
        "",
        *BEFORE,
    ]
    for number, part in enumerate(plan.advised, start=1):
        if len(plan.advised) > 1:
            lines += ["", f"### Stage {number} of {len(plan.advised)}: {part.stage.title}"]
        lines += ["", *_of_stage(plan, part)]
    return lines


def _any_step(plan: Plan) -> bool:
    return any(order.steps for part in plan.advised for order in part.orders)


BEFORE = [
    "`srvr` below is what `echo srvr | nc HOST 2181` answers; `Mode:` is in it only while the server serves, that is, "
    "when it has caught up with its leader. Do the next step only when the one before is done. If a server does not "
    "come back, find out why, or give it its old file again, before you touch another."
]


def _of_stage(plan: Plan, part: StageAssessment) -> list[str]:
    """The steps for each server that may lead when the stage begins."""
    lines: list[str] = []
    if not part.stage.new.given:
        lines += [*_members(part.stage), ""]
    orders = part.orders
    if len(orders) > 1 and len({order.steps for order in orders}) > 1:
        lines += [f"Find out who leads now (`Mode: leader`). If it is server {orders[0].leader}:", ""]
    lines += [f"{n}. {_told(plan, part, orders[0], step)}" for n, step in enumerate(orders[0].steps, start=1)]
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
        lines += [
            f"| {order.leader} | {_with_waits(order)}{'' if order.explored else unexplored} |" for order in others
        ]
    return lines


def _members(stage: Stage) -> list[str]:
    """The lines of a file that lies between the two folders."""
    name = f"{stage.new.label}{'-N' if len(set(stage.new.files.values())) > 1 else ''}.cfg"
    texts = [text for each, text in stage.new.texts.items() if "server." in text]
    lines = [line for line in texts[0].splitlines() if line.lstrip().startswith("server.")]
    head = f"`{name}` is each server's own file, with these lines in the place of its `server.N` lines"
    return [f"{head} (`--stages DIR` writes the files):", "", "```", *lines, "```"]


def _told(plan: Plan, part: StageAssessment, order: Order, step: ServerStep) -> str:
    last = " It leads, so an election follows: a moment without service." if step.sid == order.leader else ""
    if not quorum_without(part.stage, order.steps, step, plan.request.down):
        last += " **Without it no quorum runs**: no service until the next server is back."
        if step.action != STOP:
            last = " **Without it no quorum runs**: no service until it is back."
    if step.action == STOP:
        return f"**Stop server {step.sid}** for good.{last}"
    file = _file(part.stage, step.sid)
    what = f"{'Start' if step.action == START else 'Restart'} server {step.sid}** with {file}"
    if step.sid in part.stage.moved:
        hosts = " or ".join(f"`{host}`" for host in sorted(part.stage.new.hosts(step.sid)))
        disk = "its disk (`dataDir` and `dataLogDir`)"
        what = f"Stop server {step.sid}, move {disk} to {hosts}, then start it there** with {file}"
    if step.wait:
        return f"**{what}. Wait until its `srvr` shows `Mode: {_mode(part.stage, step.sid)}`.{last}"
    vain = next((result for result in order.vain if result.stuck == step.sid), None)
    who = f" ({who_looks(vain.looking)} LOOKING)" if vain else ""
    return f"**{what}. Do not wait for it: it may not serve before the next step{who}.{last}"


def _mode(stage: Stage, sid: Sid) -> str:
    return "observer" if sid in stage.new.view.observers else "follower` or `leader"


def _file(stage: Stage, sid: Sid) -> str:
    if not stage.new.given:
        return f"`{stage.new.files[sid]}`"
    return f"`{stage.new.servers[sid].origin}`"


def _with_waits(order: Order) -> str:
    """The steps in a row, each with its action, where servers are stopped for good too."""
    verbs = any(step.action == STOP for step in order.steps)
    return ", ".join(
        f"{step if verbs else step.sid}{'' if step.wait or step.action == STOP else ' (do not wait for it)'}"
        for step in order.steps
    )


def _instead(plan: Plan) -> list[str]:
    """An alternative that may be safe if the requested change is not."""
    parts = one_at_a_time(plan.request.old, plan.request.new)
    lines = ["## What to do instead", ""]
    if plan.request.order is None:
        return [
            *lines,
            "No order that was tried is safe, and there is no smaller step of voters to take: see what goes wrong.",
        ]
    if parts:
        lines += ["One voter at a time, the leader last in each stage:", ""]
        lines += [*(f"{number}. {part.title}" for number, part in enumerate(parts, start=1)), ""]
    command = f"`python -m checker rollout --from {plan.request.old.path} --to {plan.request.new.path}`"
    what = "plans each stage and checks it" if parts else "tries other orders"
    return [*lines, f"{command}, without `--order`, {what}."]


# What goes wrong.


def _wrong(plan: Plan, *, traces: bool) -> list[str]:
    """A run for each question that is answered with a violation, or a wait in vain."""
    shown: dict[tuple[str, bool], RunResult] = {}
    for assessment in plan.judged:
        for question in assessment.questions:
            for faulty in (False, True):
                answer = assessment.answer(question, faulty=faulty)
                if answer.finding and answer.finding.found and answer.reason is Reason.FOUND:
                    shown.setdefault((answer.finding.prop, bool(answer.finding.spec.faults)), answer.finding)
    if not shown:
        return []
    heading = "## What goes wrong" + (" in one go" if plan.stages else "")
    return [heading, *(line for result in shown.values() for line in _run(result, traces=traces))]


def _run(result: RunResult, *, traces: bool) -> list[str]:
    trace = result.trace
    assert trace is not None
    what = clause(result)
    under = f"with {result.spec.under}" if result.spec.under else "without any fault"
    lines = [
        "",
        f"### {what[:1].upper()}{what[1:]}, {under}",
    ]
    where = f"Found in the run *{result.spec.name}*: `{result.prop}`"
    lines += ["", f"{where}, {escaped(trace.clause)}.{_unwaited(result)}", ""]
    told = [step for step in trace.steps[1:] if not CATCHING_UP.search(step.caption)]
    lines += [f"- step {step.number}: {escaped(step.caption)}" for step in told]
    lines += [f"- {line}" for line in _where_it_was(result)]
    left = len(trace.steps) - 1 - len(told)
    if left:
        lines += ["", f"({left} packets by which servers catch up are left out.)"]
    if not traces:
        return [*lines, "", "(`--output FILE.md` has the whole trace, `--traces DIR` every format of it.)"]
    return [*lines, "", *folded("The whole trace", fenced(to_text(trace)))]


def _unwaited(result: RunResult) -> str:
    """A remark on a run that continues where the plan would wait."""
    sids = ", ".join(map(str, unwaited(result.spec.steps)))
    return f" It goes on without waiting for server {sids}, which would be in vain." if sids else ""


def _where_it_was(result: RunResult) -> Iterator[str]:
    """Of a write that is lost: on whose disks it is."""
    if result.trace is None or result.prop != "LeaderLogCompleteness":
        return
    missing = str(dict(result.trace.values)["missing"]).partition(",")[0]
    lanes = result.trace.steps[-1].lanes.items()
    has = [lane for lane, fields in lanes if any(str(txn).split("=")[0] == missing for txn in fields.get("log", ()))]
    yield f"now the write {missing} is on the disk of {' and '.join(has) or 'nobody'}, not on that of the new leader"


CATCHING_UP = re.compile(r" receives (?:SNAP|NEWLEADER|UPTODATE|ACK \d+:0 |LEADERINFO|ACKEPOCH|FOLLOWERINFO)")
"""Long lines that are equal in every run; a DIFF and a TRUNC change a log, and stay."""


# The table of runs.


def _checked(plan: Plan) -> list[str]:
    if not plan.runs:
        return ["## What was checked", "", "z3 has compared the quorums. No run was made."]
    head = "| stage | question | faults | leads first | result | states | depth | s |"
    lines = ["## What was checked", "", head, "| --- | --- | --- | --- | --- | ---: | ---: | ---: |"]
    for stage, questions, result in _rows(plan):
        leader = "any" if result.spec.leader is None else str(result.spec.leader)
        outcome = _result(result) + (", the first steps in one order" if result.spec.opening else "")
        cells = (stage, questions, result.spec.under or "none", leader, outcome)
        lines.append(f"| {' | '.join(cells)} | {result.states:,} | {result.depth} | {result.seconds:.1f} |")
    lines += [
        "",
        f"{plan.seconds:.0f} s of work in all. A run that is not finished has used up its share of {_shared(plan)}. "
        "Bounds:",
        "",
    ]
    return [*lines, *_bounds([result for _, result in plan.runs])]


def _shared(plan: Plan) -> str:
    """What an unfinished run has used up."""
    full = any(result.end is RunEnd.MEMORY for _, result in plan.runs)
    return "the budget, or of the free memory" if full else "the budget"


def _rows(plan: Plan) -> list[tuple[str, str, RunResult]]:
    """Every run once, with its stage and the questions that it answers."""
    rows: dict[tuple[str, str], tuple[list[str], RunResult]] = {}
    for assessment, result in plan.runs:
        stage = f"{assessment.stage.old.label} to {assessment.stage.new.label}"
        questions, first = rows.setdefault((stage, result.text), ([], result))
        questions.append(_question(result))
        if result.found and not first.found:
            rows[stage, result.text] = (questions, result)
    return [(stage, " and ".join(dict.fromkeys(questions)), result) for (stage, _), (questions, result) in rows.items()]


def _question(result: RunResult) -> str:
    return {
        Question.ELECTION: "leaders",
        Question.COMMITS: "commits",
        Question.HEALING: "healing",
        Question.EMPTY_DISK: "empty disks",
    }[result.spec.question]


def _result(result: RunResult) -> str:
    if result.outcome is SafetyVerdict.UNSAFE:
        return f"**violated**: {result.prop}"
    return {
        SafetyVerdict.SAFE: "all explored",
        SafetyVerdict.STALLS: "a wait in vain",
        SafetyVerdict.OPEN: "not finished",
    }[result.outcome]


def _bounds(runs: Sequence[RunResult]) -> list[str]:
    """The bounds of each kind of run, without repetitions."""
    kinds: dict[str, list[RunResult]] = {}
    for result in runs:
        model = "the election alone" if not result.spec.zab else "the whole protocol"
        model += f", {result.spec.writes} write{'s' * (result.spec.writes > 1)}" if result.spec.writes else ""
        kinds.setdefault(model, []).append(result)
    lines, told = [], set[str]()
    for kind, of_kind in kinds.items():
        common = [bound for bound in of_kind[0].bounds if all(bound in result.bounds for result in of_kind)]
        new = [bound for bound in common if bound not in told and bound != "no faults"]
        told |= set(new)
        lines.append(f"- {kind}: {'; '.join(new) or 'as above'}")
    return lines
