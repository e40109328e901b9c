"""The evidence behind an answer: a verdict for each question, the two states, and what z3 says of their quorums.

Rules of this module: it judges nothing. Results of exploration are never called proved, and a search that was not
finished is called that wherever it is named.
"""

from __future__ import annotations

from checker.printable import escaped
from checker.rollout.answer import Plan
from checker.rollout.assessment import QuestionAnswer, Reason, StageAssessment
from checker.rollout.order_proof import OrderProof
from checker.rollout.output.sentences import (
    ENOUGH,
    WORDS,
    answer_sentence,
    clause,
    order_words,
    pair_sentence,
    verdict_of,
)
from checker.rollout.runs import SafetyVerdict
from checker.symbolic.report import view_text


def states(plan: Plan) -> list[str]:
    """The two states, where they were read, and what z3 says of their quorums."""
    lines = ["## The two states, and the quick answer", ""]
    for label, folder in (("before", plan.request.old), ("after", plan.request.new)):
        lines.append(f"- **{label}**: {view_text(folder.view)}")
        lines += [f"  - {escaped(taken)}" for taken in folder.taken]
        lines += [f"  - warning: {escaped(warning)}" for warning in folder.warnings]
    if plan.request.now is not None:
        lines += ["- **now**:", *(f"  - {escaped(taken)}" for taken in plan.request.now.taken)]
    lines += [f"- note: {escaped(note)}" for note in plan.notes]
    lines += ["", *(f"- {escaped(pair)}" for pair in _pairs(plan)), "", ENOUGH]
    return lines


def _pairs(plan: Plan) -> list[str]:
    """What z3 says, once for each pair."""
    stages = [plan.direct, *plan.stages] if plan.direct.stage.remaining else plan.judged
    return list(dict.fromkeys(pair_sentence(pair) for stage in stages for pair in stage.pairs))


def verdicts(plan: Plan) -> list[str]:
    """A table of verdicts for each stage."""
    lines: list[str] = []
    if plan.stages:
        lines += [f"### In one go: {verdict_of(plan.direct)}", "", _tried(plan), "", *_table(plan.direct)]
        for number, part in enumerate(plan.stages, start=1):
            title = f"### Stage {number} of {len(plan.stages)}, {escaped(part.stage.title)}: {verdict_of(part)}"
            lines += ["", title, "", *_table(part)]
        return lines
    if plan.back is not None:
        on, back = verdict_of(plan.direct), verdict_of(plan.back)
        lines += [f"### To go on: {on}", "", *_table(plan.direct)]
        return [*lines, "", f"### To go back: {back}", "", *_table(plan.back)]
    return _table(plan.direct)


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
        return f"**{word}**: {escaped(why)}"
    return f"{word}: {escaped(answer_sentence(answer))}"


def order_proofs(plan: Plan) -> list[str]:
    """The theorem about roll-outs with its premises instantiated, for each order that it proves; empty without one."""
    lines: list[str] = []
    for part in plan.judged:
        for order, proof in zip(part.orders, part.order_proofs, strict=False):
            lines += ["", f"**{order_words(order)}**, if server {order.leader} leads:", "", *_proof_table(proof)]
    return ["## The proof of the order", "", THEOREM, *lines] if lines else []


THEOREM = (
    "The theorem about roll-outs (`python -m checker proofs`) says: there is one leader in an epoch, every leader "
    "begins with every committed write, and servers agree on the order of writes, whatever crashes and whichever "
    "messages are lost. Its premise: quorums of each stage, and of neighbouring stages, meet if all their servers run "
    "in the later one; and all servers that run follow one leader before a stage begins. It is proved of abstract Zab, "
    "for any number of servers. That the specification refines abstract Zab is checked, not proved."
)


def _proof_table(proof: OrderProof) -> list[str]:
    """The stages, and the premise on quorums for each pair of them."""
    lines = ["| stage | begins with | quorums | servers that run |", "| --- | --- | --- | --- |"]
    for number, stage in enumerate(proof.stages):
        step = proof.conditions[number - 1].step if number else 0
        begins = f"step {step}" if step else "the first state"
        running = ", ".join(map(str, sorted(stage.running)))
        lines.append(f"| {number} | {begins} | {view_text(stage.view)} | {running} |")
    met = [f"{number} and {number + 1}" for number in range(len(proof.stages) - 1)]
    each = f"Of one stage, and of the stages {', '.join(met)}: every two quorums of running servers meet (z3)."
    return [*lines, "", each]
