"""Sections of the Markdown about evidence: the keys that differ, failed steps, counterexamples, and all runs.

Rules of this module: it judges nothing. Results of exploration are never called proved, and a search that was not
finished is called that wherever it is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checker.engine import Move
from checker.models.ensemble.actions import Action
from checker.printable import escaped, fenced, folded, table
from checker.rollout.answer import Plan
from checker.rollout.assessment import Reason, StageAssessment
from checker.rollout.failures import Failure, failures
from checker.rollout.output.sentences import WORDS, clause, direction_sentence, order_words
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import QUESTION_WORDS
from checker.rollout.steps import unwaited
from checker.scenario.ensemble import NO_FAULTS
from checker.traces.text import to_text
from spec.quorum import Sid
from spec.txn import counter_of
from spec.zab.packets import Ack, AckEpoch, FollowerInfo, LeaderInfo, NewLeader, Snap, UpToDate


def differences(plan: Plan) -> list[str]:
    """Every key that differs, with the servers that have the same values in one row."""
    rows: dict[tuple[str, ...], list[Sid]] = {}
    for each in plan.direct.stage.differences:
        values = ("not set" if value is None else value for value in (each.old, each.new))
        rows.setdefault((each.key, *values, each.effect.value), []).append(each.sid)
    lines = ["## What differs between the files", ""]
    if not rows:
        return [*lines, "No key differs between the two files of any server."]
    head = ("servers", "key", "before", "after", "effect")
    return [*lines, *table(head, ((", ".join(map(str, sids)), *row) for row, sids in rows.items()))]


IF_A_STEP_FAILS = (
    "A step fails if its server does not serve afterwards. Touch no other server. To go on, repair the server with its "
    "new file, wait until it serves, and do the next step. To go back, do the steps of the last column. SAFE means "
    "that there are never two leaders, and that no committed write is lost."
)


def if_a_step_fails(plan: Plan) -> list[str]:
    """The actions if a step fails, with the verdicts on the files at that time."""
    if plan.outcome_with_disks is SafetyVerdict.UNSAFE:
        return []
    lines = [line for part in plan.advised for line in _of_orders(plan, part)]
    if not lines:
        return []
    return ["## If a step fails", "", IF_A_STEP_FAILS, *lines]


HEAD = ("step that fails", "new file", "old file", "service without it", "to go on", "to go back", "the way back")


def _of_orders(plan: Plan, part: StageAssessment) -> list[str]:
    """A table for each order; one table where a proof covers all orders."""
    lines: list[str] = []
    orders = [order for order in part.orders if order.steps]
    for order in orders[:1] if part.proved else orders:
        others = ", as an example of every order" if part.proved and len(orders) > 1 else ""
        order_text = f"order {order_words(order)}, server {order.leader} leads first{others}"
        lines += ["", f"**{part.stage.title}**, {order_text}:", ""]
        lines += table(HEAD, map(_failure, failures(part, order, plan.request.down)))
    return lines


def _failure(row: Failure) -> tuple[str, ...]:
    new, old = (", ".join(map(str, sids)) or "none" for sids in (row.new, row.old))
    on, back = (f"{WORDS[each.outcome]}: {direction_sentence(each)}" for each in (row.going_on, row.going_back))
    way = ", ".join(map(str, row.undo))
    return f"{row.number}. {row.step}", new, old, "yes" if row.serves else "no", on, back, way


# What goes wrong.


def what_goes_wrong(plan: Plan, *, traces: bool) -> list[str]:
    """A run for each question that is answered with a violation, or a wait in vain."""
    shown: dict[tuple[str, bool], RunResult] = {}
    for assessment in plan.judged:
        for _, _, answer in assessment.answers:
            if (result := answer.finding) and result.found and answer.reason is Reason.FOUND:
                shown.setdefault((result.prop, bool(result.spec.faults)), result)
    if not shown:
        return []
    heading = "## What goes wrong" + (" in one go" if plan.stages else "")
    return [heading, *(line for result in shown.values() for line in _run(result, traces=traces))]


def _run(result: RunResult, *, traces: bool) -> list[str]:
    trace = result.trace
    assert trace is not None
    what = clause(result)
    under = f"with {result.spec.under}" if result.spec.under else "without any fault"
    where = f"Found in the run *{result.spec.name}*: `{result.prop}`"
    lines = ["", f"### {what[:1].upper()}{what[1:]}, {under}"]
    lines += ["", f"{where}, {escaped(trace.clause)}.{_unwaited(result)}", ""]
    steps = zip(trace.steps[1:], result.moves, strict=True)
    told = [step for step, move in steps if not _catches_up(move)]
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


CATCHING_UP = (LeaderInfo, AckEpoch, Snap, NewLeader, UpToDate)


def _catches_up(move: Move) -> bool:
    """Whether a learner catches up by this packet, in steps that are equal in every run.

    A DIFF and a TRUNC change a log, and are shown.
    """
    if move.action is not Action.RECEIVE:
        return False
    match move.arguments[2]:
        case FollowerInfo(observer=observer):
            return not observer
        case Ack(zxid=zxid):
            return counter_of(zxid) == 0
        case packet:
            return isinstance(packet, CATCHING_UP)


# The table of runs.


def what_was_checked(plan: Plan) -> list[str]:
    """The table of all runs, and their bounds."""
    if not plan.runs:
        return ["## What was checked", "", "z3 has compared the quorums. No run was made."]
    head = "| stage | question | faults | leads first | result | states | depth | s |"
    lines = ["## What was checked", "", head, "| --- | --- | --- | --- | --- | ---: | ---: | ---: |"]
    for stage, questions, result in _rows(plan):
        leader = "any" if result.spec.leader is None else str(result.spec.leader)
        outcome = _result(result) + (", the first steps in one order" if result.spec.opening else "")
        cells = (stage, questions, result.spec.under or "none", leader, outcome)
        lines.append(f"| {' | '.join(cells)} | {result.states:,} | {result.depth} | {result.seconds:.1f} |")
    full = any(result.end is RunEnd.MEMORY for _, result in plan.runs)
    shared = "the budget, or of the free memory" if full else "the budget"
    work = f"{plan.seconds:.0f} s of work in all. A run that is not finished has used up its share of {shared}. Bounds:"
    return [*lines, "", work, "", *_bounds([result for _, result in plan.runs])]


def _rows(plan: Plan) -> list[tuple[str, str, RunResult]]:
    """Every run once, with its stage and the questions that it answers."""
    rows: dict[tuple[str, str], tuple[list[str], RunResult]] = {}
    for assessment, result in plan.runs:
        stage = f"{assessment.stage.old.label} to {assessment.stage.new.label}"
        questions, first = rows.setdefault((stage, result.text), ([], result))
        questions.append(QUESTION_WORDS[result.spec.question])
        if result.found and not first.found:
            rows[stage, result.text] = (questions, result)
    return [(stage, " and ".join(dict.fromkeys(questions)), result) for (stage, _), (questions, result) in rows.items()]


def _result(result: RunResult) -> str:
    match result.outcome:
        case SafetyVerdict.UNSAFE:
            return f"**violated**: {result.prop}"
        case SafetyVerdict.STALLS:
            return "a wait in vain"
    return "all explored" if result.outcome is SafetyVerdict.SAFE else "not finished"


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
        new = [bound for bound in common if bound not in told and bound != NO_FAULTS]
        told |= set(new)
        lines.append(f"- {kind}: {'; '.join(new) or 'as above'}")
    return lines
