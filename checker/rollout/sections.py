"""Sections of the Markdown with tables of files: the keys that differ, and the state after a failed step."""

from __future__ import annotations

from checker.markdown import table
from checker.rollout.answer import Plan
from checker.rollout.assess import StageAssessment
from checker.rollout.failures import Failure, failures
from checker.rollout.phrases import WORDS, order_words
from checker.rollout.runs import SafetyVerdict
from checker.rollout.sentences import direction_sentence
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


IF_A_STEP_FAILS = [
    "A step fails if its server does not serve afterwards. Touch no other server. To go on, repair the server with its "
    "new file, wait until it serves, and do the next step. To go back, do the steps of the last column. SAFE means "
    "that there are never two leaders, and that no committed write is lost."
]


def if_a_step_fails(plan: Plan) -> list[str]:
    """The actions if a step fails, with the verdicts on the files at that time."""
    if plan.outcome_with_disks is SafetyVerdict.UNSAFE:
        return []
    lines = [line for part in plan.advised for line in _of_orders(plan, part)]
    if not lines:
        return []
    return ["## If a step fails", "", *IF_A_STEP_FAILS, *lines]


HEAD = ("step that fails", "new file", "old file", "service without it", "to go on", "to go back", "the way back")


def _of_orders(plan: Plan, part: StageAssessment) -> list[str]:
    """A table for each order; one table where a proof covers all orders."""
    lines: list[str] = []
    orders = [order for order in part.orders if order.steps]
    for order in orders[:1] if part.proved else orders:
        others = ", as an example of every order" if part.proved and len(orders) > 1 else ""
        lines += [
            "",
            f"**{part.stage.title}**, order {order_words(order)}, server {order.leader} leads first{others}:",
            "",
        ]
        lines += table(HEAD, map(_failure, failures(part, order, plan.request.down)))
    return lines


def _failure(row: Failure) -> tuple[str, ...]:
    new, old = (", ".join(map(str, sids)) or "none" for sids in (row.new, row.old))
    on, back = (f"{WORDS[each.outcome]}: {direction_sentence(each)}" for each in (row.going_on, row.going_back))
    way = ", ".join(map(str, row.undo))
    return f"{row.number}. {row.step}", new, old, "yes" if row.serves else "no", on, back, way
