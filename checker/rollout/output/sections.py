"""Sections of the Markdown about evidence: the keys that differ, failed steps, counterexamples, and all runs.

Rules of this module: it judges nothing. Results of exploration are never called proved, and a search that was not
finished is called that wherever it is named.
"""

from __future__ import annotations

from collections.abc import Sequence

from checker.printable import escaped, table
from checker.rollout.answer import Plan
from checker.rollout.assessment import Order, StageAssessment
from checker.rollout.failures import Basis, Failure, failures
from checker.rollout.output.recommendation import change_of
from checker.rollout.output.sentences import direction_sentence
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import QUESTION_WORDS
from checker.rollout.steps import STOP
from checker.scenario.ensemble import NO_FAULTS
from spec.quorum import Sid


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
    "new file, wait until it serves, and do the next step{check}. To go back, do the steps of the last column."
)
AFTER_ITS_CHECK = ", after its *Check first* if it begins with one"
BOTH_SAFE = "Both are safe at every step (proved): there are never two leaders, and no acknowledged write is lost."
STAYS_LOOKING = (
    "If a server runs and stays LOOKING while others serve, as happens when another one crashes at the same time, do "
    "the next step without waiting"
)
NEXT_STEP = (
    f"{STAYS_LOOKING}: that is safe too (proved), and the server joins when enough others have its file. "
    "Do not begin the next stage so: check first."
)
NEXT_STEP_IN_ORDER = f"{STAYS_LOOKING}, unless it begins with *Check first*: that is safe too (proved)."
HEAD = ("step that fails", "service without it", "to go back, with the old files")
HEAD_JUDGED = (*HEAD[:2], "is it safe to go on", "is it safe to go back", HEAD[2])


def if_a_step_fails(plan: Plan) -> list[str]:
    """The actions if a step fails, with the verdicts on the files at that time."""
    if plan.outcome_with_disks is SafetyVerdict.UNSAFE:
        return []
    down = plan.request.down
    shown = [
        (part, order, failures(part, order, down, plan.software)) for part in plan.advised for order in _shown(part)
    ]
    if not shown:
        return []
    found = [each for _, _, rows in shown for each in rows]
    proved = all(each.going_on.basis is each.going_back.basis is Basis.PROVED for each in found)
    check = AFTER_ITS_CHECK if any(each.going_on.conditions for each in found) else ""
    what = IF_A_STEP_FAILS.format(check=check)
    lines = ["## If a step fails", "", f"{what} {BOTH_SAFE}" if proved else what]
    in_order = all(each.going_on.basis is Basis.PROVED_IN_ORDER for each in found)
    if (proved or in_order) and not any(part.stage.changed_roles for part in plan.advised):
        lines += ["", NEXT_STEP if proved else NEXT_STEP_IN_ORDER]
    for part, order, rows in shown:
        example = ", as an example" if len(part.orders) > 1 else ""
        lines += ["", f"**{change_of(plan, part)}**, if server {order.leader} leads{example}:", ""]
        lines += table(HEAD if proved else HEAD_JUDGED, (_failure(each, proved=proved) for each in rows))
    return lines


def _shown(part: StageAssessment) -> list[Order]:
    """The orders with a table; one where a proof covers all that are shown."""
    orders = [order for order in part.orders if order.steps]
    return orders[:1] if part.is_settled_by_proof else orders


def _failure(row: Failure, *, proved: bool) -> tuple[str, ...]:
    first = (f"{row.number}. {row.step}", "yes" if row.serves else "no")
    way = ", ".join(f"{step}{'' if step.wait or step.action == STOP else ' (do not wait for it)'}" for step in row.undo)
    if proved:
        return (*first, way)
    on, back = (f"{ANSWERS[each.outcome]}: {direction_sentence(each)}" for each in (row.going_on, row.going_back))
    return (*first, on, back, way)


ANSWERS = {
    SafetyVerdict.SAFE: "yes",
    SafetyVerdict.UNSAFE: "no",
    SafetyVerdict.OPEN: "not decided",
    SafetyVerdict.STALLS: "it stops",
}


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
        cells = (escaped(stage), questions, escaped(result.spec.under or "none"), leader, outcome)
        lines.append(f"| {' | '.join(cells)} | {result.states:,} | {result.depth} | {result.seconds:.1f} |")
    full = any(result.end is RunEnd.MEMORY for result in plan.runs)
    shared = "the budget, or of the free memory" if full else "the budget"
    work = f"{plan.seconds:.0f} s of work in all. A run that is not finished has used up its share of {shared}. Bounds:"
    return [*lines, "", work, "", *_bounds(plan.runs)]


def _rows(plan: Plan) -> list[tuple[str, str, RunResult]]:
    """Every run once, with its stage and the questions that it answers."""
    rows: dict[tuple[str, str], tuple[list[str], RunResult]] = {}
    for result in plan.runs:
        stage = f"{result.spec.stage.old.label} to {result.spec.stage.new.label}"
        questions, first = rows.setdefault((stage, result.text), ([], result))
        questions.append(QUESTION_WORDS[result.spec.question])
        if result.found and not first.found:
            rows[stage, result.text] = (questions, result)
    return [(stage, " and ".join(dict.fromkeys(questions)), result) for (stage, _), (questions, result) in rows.items()]


def _result(result: RunResult) -> str:
    match result.outcome:
        case SafetyVerdict.UNSAFE:
            return f"**violated**: {escaped(result.prop)}"
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
        lines.append(f"- {kind}: {escaped('; '.join(new)) or 'as above'}")
    return lines
