"""What goes wrong: each run that was found, as a short story with a picture, and how likely it is.

Rules of this module: it judges nothing. A likelihood is a fact that was measured on real servers, or the condition that
the run needs.
"""

from __future__ import annotations

from collections.abc import Sequence

from checker.engine import Move
from checker.models.ensemble.actions import Action
from checker.printable import capital, code, escaped, fenced, folded
from checker.rollout.answer import Plan
from checker.rollout.assessment import Reason, StageAssessment
from checker.rollout.output.conditions import LOST_WRITES, conditions, where_the_write_was
from checker.rollout.output.recommendation import listed, servers
from checker.rollout.output.sentences import clause
from checker.rollout.reconfig.questions import ReconfigSpec
from checker.rollout.runs import RunResult
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS, SERVED_ALONE, THROWN_AWAY
from checker.rollout.stages import Stage
from checker.rollout.steps import unwaited
from checker.traces.sequence_diagrams import escaped as mermaid_text
from checker.traces.sequence_diagrams import to_mermaid
from checker.traces.text import to_text
from checker.traces.trace import Trace
from spec.quorum import Majority, Sid
from spec.txn import counter_of
from spec.zab.packets import Ack, AckEpoch, FollowerInfo, LeaderInfo, NewLeader, Snap, UpToDate

TWO_LEADERS = frozenset({"Leadership", "OneLeader"})
NEEDS = {
    PARTITIONS: "It needs a network failure between servers while the roll-out is under way.",
    CRASHES: "It needs a server that crashes, or that a controller restarts, at that moment.",
    DISCONNECTS: "It needs a connection between two servers that breaks at that moment.",
}


def what_goes_wrong(plan: Plan, *, traces: bool) -> list[str]:
    """A run for each question that is answered with a violation, or a wait in vain."""
    shown = told_runs(plan)
    if not shown:
        return []
    heading = "## Why not in one go" if plan.stages else "## What goes wrong"
    heading = "## What goes wrong in another way" if plan.reconfig_route is not None else heading
    lines = [heading, "", *_disjoint(plan.direct)]
    return [*lines, *(line for result in shown for line in _run(result, traces=traces))]


def told_runs(plan: Plan) -> list[RunResult]:
    """The runs that the story tells, in its order; each has a trace."""
    shown: dict[tuple[str, bool], RunResult] = {}
    for assessment in plan.judged:
        for _, _, answer in assessment.answers:
            if (result := answer.finding) and result.found and answer.reason is Reason.FOUND:
                shown.setdefault((result.prop, bool(result.spec.faults)), result)
    by_defect = plan.software.finding if plan.software is not None else None
    routes = plan.by_reconfig.routes if plan.by_reconfig is not None else ()
    others = (by_defect, *(route.finding for route in routes))
    return [*shown.values(), *(each for each in others if each is not None)]


def _disjoint(assessment: StageAssessment) -> list[str]:
    """The two groups of servers that can each work without the other, if there are any."""
    pair = next((pair for pair in assessment.pairs if pair.disjoint is not None), None)
    if pair is None or pair.disjoint is None:
        return []
    one, other = (_enough(sorted(each)) for each in (pair.disjoint.a, pair.disjoint.b))
    enough = f"{one} enough to decide by the old files, and {other[:1].lower()}{other[1:]} enough by the new files"
    return [f"{enough}. The two groups have no server in common, so each can work without the other.", ""]


def _enough(sids: Sequence[Sid]) -> str:
    return f"Server {sids[0]} is" if len(sids) == 1 else f"Servers {listed(sids)} are"


def _run(result: RunResult, *, traces: bool) -> list[str]:
    trace = result.trace
    assert trace is not None
    what = clause(result)
    by = "By `reconfig`: " if isinstance(result.spec, ReconfigSpec) else ""
    lines = [f"### {by}{escaped(what if by else capital(what))}, {escaped(conditions(result).removesuffix(','))}"]
    lines += ["", f"{likelihood(result)}{_unwaited(result)}", ""]
    steps = zip(trace.steps[1:], result.moves, strict=True)
    told = [step for step, move in steps if not _catches_up(move)]
    lines += [f"- step {step.number}: {escaped(_in_words(result, step.caption))}" for step in told]
    lines += [f"- {escaped(line)}" for line in where_the_write_was(result)]
    left = len(trace.steps) - 1 - len(told)
    if left:
        lines += ["", f"({left} packets by which servers catch up are left out.)"]
    if not traces:
        return [*lines, "", "(`--explain` shows a picture and the whole run, `--traces DIR` writes every format.)", ""]
    found = f"Found as {code(result.prop)} in the run *{escaped(result.spec.name)}*: {escaped(trace.clause)}."
    return [*lines, "", *_picture(trace, what), "", *folded("The whole run", [found, "", *fenced(to_text(trace))]), ""]


def _picture(trace: Trace, what: str) -> list[str]:
    """A sequence diagram, which ends with the violation in the words of the story."""
    *lines, conclusion = to_mermaid(trace).splitlines()
    place = conclusion.partition(": ")[0]
    return ["```mermaid", *lines, f"{place}: {mermaid_text(what)}", "```"]


def likelihood(result: RunResult) -> str:
    """What the run needs, and what was seen on real servers."""
    needs = [text for kind, text in NEEDS.items() if result.spec.faults.get(kind)]
    if needs:
        return " ".join(needs)
    if result.prop in TWO_LEADERS and _is_three_to_five(result.spec.stage):
        return "No fault is needed. Real servers came to two leaders in 16 of 16 runs of such an order."
    if result.prop in (SERVED_ALONE, *THROWN_AWAY) and result.spec.stage.old.view.standalone:
        return "No fault is needed. Real servers of 3.9.5 did so in 5 of 5 runs of such an order."
    if result.prop in LOST_WRITES:
        return (
            "No fault is needed, but late messages. Real servers lost a write when messages were held back, and none "
            "of 3,666 on a healthy network."
        )
    return "No fault is needed."


def _is_three_to_five(stage: Stage) -> bool:
    """Whether the stage is the one that real servers were seen in: three voters become five, and none leaves."""
    old, new = stage.old.view, stage.new.view
    majorities = isinstance(old.quorums, Majority) and isinstance(new.quorums, Majority)
    return majorities and len(old.voters) == 3 and len(new.voters) == 5 and old.voters < new.voters


def _in_words(result: RunResult, caption: str) -> str:
    """A caption with the words of an operator for servers and files."""
    stage = result.spec.stage
    for sid in stage.sids:
        for side, whose in ((stage.new, "new"), (stage.old, "old")):
            if sid in side.files:
                caption = caption.replace(f"server.{sid} with {side.files[sid]}", f"server {sid} with its {whose} file")
    return caption.replace("server.", "server ")


def _unwaited(result: RunResult) -> str:
    """A remark on a run that continues where the plan would wait."""
    sids = unwaited(result.spec.steps)
    return f" The run goes on without waiting for {servers(sids)}, which would be in vain." if sids else ""


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
