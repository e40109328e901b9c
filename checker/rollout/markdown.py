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
from checker.rollout.assess import Assessed, Cell, Order, Reason
from checker.rollout.quorums import ENOUGH, view_words
from checker.rollout.runs import End, Outcome, Ran
from checker.rollout.scenarios import Question
from checker.rollout.sections import differences, if_a_step_fails
from checker.rollout.sentences import of_cell, who_looks
from checker.rollout.stages import Stage, one_at_a_time
from checker.rollout.steps import START, STOP, Step, quorum_without, unwaited
from checker.rollout.words import WORDS, clause, headline, in_short, not_covered, order_words, verdict_of
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
    for label, folder in (("before", plan.wish.old), ("after", plan.wish.new)):
        lines.append(f"- **{label}**: {view_words(folder.view)}")
        lines += [f"  - {taken}" for taken in folder.taken]
        lines += [f"  - warning: {warning}" for warning in folder.warnings]
    if plan.wish.now is not None:
        lines += ["- **now**:", *(f"  - {taken}" for taken in plan.wish.now.taken)]
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


def _table(assessed: Assessed) -> list[str]:
    many = f"under {assessed.faults} fault{'s' * (assessed.faults != 1)}" if assessed.faults else "under faults"
    lines = [f"| question | without faults | {many} |", "| --- | --- | --- |"]
    for question in assessed.questions:
        without, under = (_cell(assessed.cell(question, faulty=faulty)) for faulty in (False, True))
        lines.append(f"| {question.value} | {without} | {under if assessed.faults else 'not asked for'} |")
    return lines


def _cell(cell: Cell) -> str:
    word = WORDS[cell.outcome]
    if cell.outcome is Outcome.UNSAFE and cell.ran is not None:
        why = clause(cell.ran) if cell.reason is Reason.FOUND else of_cell(cell)
        return f"**{word}**: {why}"
    return f"{word}: {of_cell(cell)}"


# The steps.


def _steps(plan: Plan) -> list[str]:
    lines = _instead(plan) if plan.outcome_with_disks is Outcome.UNSAFE else _forward(plan)
    if plan.back is None or not plan.back.orders:
        return lines
    lines += ["", f"## The way back: {verdict_of(plan.back)}", ""]
    if plan.back.outcome_with_disks is Outcome.UNSAFE:
        return [*lines, "No order that was tried is safe: see what goes wrong."]
    return [*lines, *_of_stage(plan, plan.back)]


def _forward(plan: Plan) -> list[str]:
    if not any(part.stage.remaining for part in plan.advised) or not _any_step(plan):
        return ["## The plan", "", "There is nothing to do: every server has its new file."]
    lines = ["## The plan" if plan.outcome_with_disks is Outcome.SAFE else "## The steps that were judged", "", *BEFORE]
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


def _of_stage(plan: Plan, part: Assessed) -> list[str]:
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


def _told(plan: Plan, part: Assessed, order: Order, step: Step) -> str:
    last = " It leads, so an election follows: a moment without service." if step.sid == order.leader else ""
    if not quorum_without(part.stage, order.steps, step, plan.wish.down):
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
    vain = next((ran for ran in order.vain if ran.stuck == step.sid), None)
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
    parts = one_at_a_time(plan.wish.old, plan.wish.new)
    lines = ["## What to do instead", ""]
    if plan.wish.order is None:
        return [
            *lines,
            "No order that was tried is safe, and there is no smaller step of voters to take: see what goes wrong.",
        ]
    if parts:
        lines += ["One voter at a time, the leader last in each stage:", ""]
        lines += [*(f"{number}. {part.title}" for number, part in enumerate(parts, start=1)), ""]
    asked = f"`python -m checker rollout --from {plan.wish.old.path} --to {plan.wish.new.path}`"
    what = "plans each stage and checks it" if parts else "tries other orders"
    return [*lines, f"{asked}, without `--order`, {what}."]


# What goes wrong.


def _wrong(plan: Plan, *, traces: bool) -> list[str]:
    """A run for each question that is answered with a violation, or a wait in vain."""
    shown: dict[tuple[str, bool], Ran] = {}
    for assessed in plan.judged:
        for question in assessed.questions:
            for faulty in (False, True):
                cell = assessed.cell(question, faulty=faulty)
                if cell.ran and cell.ran.found and cell.reason is Reason.FOUND:
                    shown.setdefault((cell.ran.prop, bool(cell.ran.asked.faults)), cell.ran)
    if not shown:
        return []
    heading = "## What goes wrong" + (" in one go" if plan.stages else "")
    return [heading, *(line for ran in shown.values() for line in _run(ran, traces=traces))]


def _run(ran: Ran, *, traces: bool) -> list[str]:
    trace = ran.trace
    assert trace is not None
    what = clause(ran)
    lines = [
        "",
        f"### {what[:1].upper()}{what[1:]}, {f'with {ran.asked.under}' if ran.asked.under else 'without any fault'}",
    ]
    lines += ["", f"Found in the run *{ran.asked.name}*: `{ran.prop}`, {escaped(trace.clause)}.{_unwaited(ran)}", ""]
    told = [step for step in trace.steps[1:] if not CATCHING_UP.search(step.caption)]
    lines += [f"- step {step.number}: {escaped(step.caption)}" for step in told]
    lines += [f"- {line}" for line in _where_it_was(ran)]
    left = len(trace.steps) - 1 - len(told)
    if left:
        lines += ["", f"({left} packets by which servers catch up are left out.)"]
    if not traces:
        return [*lines, "", "(`--output FILE.md` has the whole trace, `--traces DIR` every format of it.)"]
    return [*lines, "", *folded("The whole trace", fenced(to_text(trace)))]


def _unwaited(ran: Ran) -> str:
    """A remark on a run that continues where the plan would wait."""
    sids = ", ".join(map(str, unwaited(ran.asked.steps)))
    return f" It goes on without waiting for server {sids}, which would be in vain." if sids else ""


def _where_it_was(ran: Ran) -> Iterator[str]:
    """Of a write that is lost: on whose disks it is."""
    if ran.trace is None or ran.prop != "LeaderLogCompleteness":
        return
    missing = str(dict(ran.trace.values)["missing"]).partition(",")[0]
    lanes = ran.trace.steps[-1].lanes.items()
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
    for stage, questions, ran in _rows(plan):
        leader = "any" if ran.asked.leader is None else str(ran.asked.leader)
        result = _result(ran) + (", the first steps in one order" if ran.asked.opening else "")
        cells = (stage, questions, ran.asked.under or "none", leader, result)
        lines.append(f"| {' | '.join(cells)} | {ran.states:,} | {ran.depth} | {ran.seconds:.1f} |")
    lines += [
        "",
        f"{plan.seconds:.0f} s of work in all. A run that is not finished has used up its share of {_shared(plan)}. "
        "Bounds:",
        "",
    ]
    return [*lines, *_bounds([ran for _, ran in plan.runs])]


def _shared(plan: Plan) -> str:
    """What an unfinished run has used up."""
    full = any(ran.end is End.MEMORY for _, ran in plan.runs)
    return "the budget, or of the free memory" if full else "the budget"


def _rows(plan: Plan) -> list[tuple[str, str, Ran]]:
    """Every run once, with its stage and the questions that it answers."""
    rows: dict[tuple[str, str], tuple[list[str], Ran]] = {}
    for assessed, ran in plan.runs:
        stage = f"{assessed.stage.old.label} to {assessed.stage.new.label}"
        questions, first = rows.setdefault((stage, ran.text), ([], ran))
        questions.append(_question(ran))
        if ran.found and not first.found:
            rows[stage, ran.text] = (questions, ran)
    return [(stage, " and ".join(dict.fromkeys(questions)), ran) for (stage, _), (questions, ran) in rows.items()]


def _question(ran: Ran) -> str:
    return {
        Question.ELECTION: "leaders",
        Question.COMMITS: "commits",
        Question.HEALING: "healing",
        Question.EMPTY_DISK: "empty disks",
    }[ran.asked.question]


def _result(ran: Ran) -> str:
    if ran.outcome is Outcome.UNSAFE:
        return f"**violated**: {ran.prop}"
    return {Outcome.SAFE: "all explored", Outcome.STALLS: "a wait in vain", Outcome.OPEN: "not finished"}[ran.outcome]


def _bounds(runs: Sequence[Ran]) -> list[str]:
    """The bounds of each kind of run, without repetitions."""
    kinds: dict[str, list[Ran]] = {}
    for ran in runs:
        model = "the election alone" if not ran.asked.zab else "the whole protocol"
        model += f", {ran.asked.writes} write{'s' * (ran.asked.writes > 1)}" if ran.asked.writes else ""
        kinds.setdefault(model, []).append(ran)
    lines, told = [], set[str]()
    for kind, of_kind in kinds.items():
        common = [bound for bound in of_kind[0].bounds if all(bound in ran.bounds for ran in of_kind)]
        new = [bound for bound in common if bound not in told and bound != "no faults"]
        told |= set(new)
        lines.append(f"- {kind}: {'; '.join(new) or 'as above'}")
    return lines
