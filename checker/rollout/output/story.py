"""What goes wrong, as a story: who starts, who elects whom, which client gets which answer, and which write is lost.

Rules of this module: it judges nothing. Every sentence is a step of the run that was found, or a fact of the states on
its way. A likelihood is a measurement on real servers, or the condition that the run needs.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby

from checker.engine import Move
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.setup import server_name
from checker.printable import capital, code, escaped, fenced, folded
from checker.rollout.answer import Plan
from checker.rollout.claims import Reason
from checker.rollout.orders import RESTART, START, STOP, UNWAITED, unwaited
from checker.rollout.output.sentences import (
    HAZARD_NAMES,
    LATE,
    LOST_WRITES,
    clause,
    finding_words,
    listed,
    needs,
    servers,
)
from checker.rollout.reconfig.answers import ReconfigSpec
from checker.rollout.runs import RunResult, SafetyVerdict, worst_result
from checker.rollout.scenarios import SERVED_ALONE, THROWN_AWAY, Question
from checker.traces.sequence_diagrams import escaped as mermaid_text
from checker.traces.sequence_diagrams import to_mermaid
from checker.traces.text import to_text
from checker.traces.trace import Trace, TraceStep
from spec.quorum import Majority, Sid
from spec.text import integers

TWO_LEADERS = frozenset({"Leadership", "OneLeader"})
LEADING, DOWN = "LEADING", "down"  # states in a trace
MOST = (1 << 32) - 1  # of an epoch and of a counter
TOLD = frozenset({*(action for action in ServerAction if action.traits.fault), ServerAction.RESTART, ServerAction.HEAL})
"""The actions whose captions are sentences of a story."""


def what_goes_wrong(plan: Plan) -> list[str]:
    """The story of the run that a reader should see: a violation, with the fewest faults."""
    result, safe = worst_result(told_runs(plan)), plan.outcome is SafetyVerdict.SAFE and not plan.stages
    if result is None or safe or plan.reconfig_route is not None:
        return []
    if plan.stages:
        return ["## Why not in one go", "", f"{capital(finding_words(result))}. {likelihood(result)}".rstrip()]
    return ["## What goes wrong", "", _whole_story(result)]


def told_runs(plan: Plan) -> list[RunResult]:
    """The runs with a finding, one for each property with and without faults; each has a trace."""
    results: dict[tuple[str, bool], RunResult] = {}
    for route in plan.judged:
        for claim in route.claims:
            if (result := claim.evidence.finding) and result.found and claim.evidence.reason is Reason.FOUND:
                results.setdefault((result.prop, bool(result.spec.faults)), result)
    by_defect = plan.releases.finding if plan.releases is not None else None
    routes = plan.by_reconfig.routes if plan.by_reconfig is not None else ()
    findings = (by_defect, *(route.finding for route in routes))
    return [*results.values(), *(result for result in findings if result is not None)]


def story(result: RunResult) -> list[str]:
    """The run in sentences."""
    trace = result.trace
    assert trace is not None
    events = [event for place, move in enumerate(result.moves) for event in _events(result, trace, place, move)]
    sentences: list[str] = []
    if result.spec.question is Question.EMPTY_DISK:
        moved = result.spec.stage.moved
        hosts = "its new host has an empty disk" if len(moved) == 1 else "their new hosts have empty disks"
        sentences.append(f"{capital(servers(moved))}: {hosts}.")
    disks = sorted(result.spec.disks.items())
    sentences += [f"Server {sid} starts with {HAZARD_NAMES[hazard]}." for sid, hazard in disks]
    for _, group in groupby(events, lambda event: isinstance(event, tuple)):
        items = list(group)
        actions = [event for event in items if isinstance(event, tuple)]
        sentences += [_by_operator(actions)] if actions else map(str, items)
    return [*sentences, *_end(result, trace)]


def _whole_story(result: RunResult) -> str:
    return f"{' '.join(map(escaped, story(result)))} {likelihood(result)}".rstrip()


Event = str | tuple[str, Sid]
"""A sentence, or the action of the operator at a server."""


def _events(result: RunResult, trace: Trace, at: int, move: Move) -> Iterator[Event]:
    """The contribution of a move to the story."""
    step = trace.steps[at + 1]
    if not isinstance(move.action, ServerAction):
        if isinstance(result.spec, ReconfigSpec):
            yield f"{capital(_in_words(result, step.caption))}."
        else:
            yield (STOP if len(move.arguments) == 1 else START), move.arguments[0]
    elif move.action in (*TOLD, ServerAction.CLIENT_WRITE) or _elects(move, step):
        yield f"{capital(_in_words(result, step.caption))}."
        if move.action is ServerAction.CLIENT_WRITE:
            yield from _answer(result, trace, at + 1, move.arguments[0])


def _elects(move: Move, step: TraceStep) -> bool:
    """Whether a move makes a leader; a server that joins one is not told."""
    if move.action is ServerAction.ELECT:
        return move.arguments[0] in move.arguments[1]
    changed = [step.lanes[lane].get("state") for lane, names in step.changed.items() if "state" in names]
    return move.action is ServerAction.DECIDE and LEADING in changed


def _by_operator(events: list[tuple[str, Sid]]) -> str:
    """Steps of the operator in a row; a server that is stopped and started is restarted."""
    steps: list[tuple[str, Sid]] = []
    for action, sid in events:
        if action == START and (STOP, sid) == (steps[-1] if steps else None):
            steps[-1] = (RESTART, sid)
        else:
            steps.append((action, sid))
    groups = [(action, [sid for _, sid in group]) for action, group in groupby(steps, lambda step: step[0])]
    words = []
    for action, sids in groups:
        files = "" if action == STOP else " with its new file" if len(sids) == 1 else " with their new files"
        words.append(f"{action}s {servers(sids)}{files}")
    return f"The operator {listed(words)}."


def _answer(result: RunResult, trace: Trace, written: int, leader: Sid) -> Iterator[str]:
    """The answer that a client gets for its write, and the servers with the write on disk by then."""
    before = _servers(result, trace.steps[written - 1])[leader].get("committed")
    for step in trace.steps[written:]:
        running = {sid: fields for sid, fields in _servers(result, step).items() if fields.get("state") != DOWN}
        zxid = running.get(leader, {}).get("committed", before)
        if zxid != before:
            holders = _holders(_servers(result, step), str(zxid))
            absent = [sid for sid in running if sid not in holders]
            yield f"Server {leader} commits it, and answers the client that it is done."
            missing = f", not at {servers(absent)}" if absent else ""
            yield f"On disk it is at {servers(holders)}{missing}." if holders else "No server has it on disk yet."
            return


Fields = Mapping[str, object]
"""The state of a server in a trace."""


def _servers(result: RunResult, step: TraceStep) -> dict[Sid, Fields]:
    """The servers of a step by their ids, ascending."""
    lanes = {sid: step.lanes.get(server_name(sid)) for sid in sorted(result.spec.stage.sids)}
    return {sid: fields for sid, fields in lanes.items() if fields}


def _holders(states: Mapping[Sid, Fields], zxid: str) -> list[Sid]:
    """The servers with a transaction on disk: in the log, or in a snapshot."""

    def is_on_disk(fields: Fields) -> bool:
        log = fields.get("log")
        logged = [str(txn).partition("=")[0] for txn in log] if isinstance(log, (list, tuple)) else []
        number, last = (integers(str(text).split(":"), 0, MOST) for text in (zxid, fields.get("snapshot", "")))
        return zxid in logged or (number is not None and last is not None and number <= last)

    return [sid for sid, fields in states.items() if is_on_disk(fields)]


def _end(result: RunResult, trace: Trace) -> Iterator[str]:
    """The fault of the last state."""
    last, values = _servers(result, trace.steps[-1]), dict(trace.values)
    leaders = [sid for sid, fields in last.items() if fields.get("state") == LEADING]
    if result.prop in LOST_WRITES and leaders:
        elections = [move.arguments for move in result.moves if move.action is ServerAction.ELECT]
        electors = {elections[-1][0], *elections[-1][1]} if elections else set()
        zxid = str(values["missing"]).partition(",")[0]
        running = [sid for sid, fields in last.items() if fields.get("state") != DOWN and sid not in electors]
        unheard = [sid for sid in _holders(last, zxid) if sid in running]
        if unheard:
            verb = "is" if len(unheard) == 1 else "are"
            yield f"{capital(servers(unheard))}, with the write, {verb} not heard in time."
        yield f"Server {values.get('leader', leaders[-1])} leads without the write: it is lost."
    elif result.prop in TWO_LEADERS and len(leaders) > 1:
        yield f"Now {servers(leaders)} lead at once, each with a quorum of its own file."
        yield "Each may answer a client that its write is done, and the other lacks it."
    else:
        yield f"{capital(clause(result))}."


def _in_words(result: RunResult, caption: str) -> str:
    """A caption with the words of an operator for servers and files."""
    stage = result.spec.stage
    for sid in stage.sids:
        for side, whose in ((stage.new, "new"), (stage.old, "old")):
            if sid in side.files:
                caption = caption.replace(f"server.{sid} with {side.files[sid]}", f"server {sid} with its {whose} file")
    return caption.replace("server.", "server ")


def likelihood(result: RunResult) -> str:
    """The measurements on real servers."""
    if result.spec.faults:
        return ""
    old, new = result.spec.stage.old.view, result.spec.stage.new.view
    majorities = isinstance(old.quorums, Majority) and isinstance(new.quorums, Majority)
    is_three_to_five = majorities and len(old.voters) == 3 and len(new.voters) == 5 and old.voters < new.voters
    if result.prop in TWO_LEADERS and is_three_to_five:
        return "Real servers came to two leaders in 16 of 16 runs of such an order."
    if result.prop in (SERVED_ALONE, *THROWN_AWAY) and old.standalone:
        return "Real servers of 3.9.5 did so in 5 of 5 runs of such an order."
    if needs(result) == LATE:
        return "Real servers lost a write when messages were held back, and none of 3,666 on a healthy network."
    return ""


# The evidence: every run, step by step, with a picture.


def runs(plan: Plan, *, traces: bool) -> list[str]:
    """Each run with a finding: its story, and with `traces` a picture and the whole trace."""
    results = told_runs(plan)
    if not results:
        return []
    return ["## The runs that were found", "", *(line for result in results for line in _run(result, traces=traces))]


def _run(result: RunResult, *, traces: bool) -> list[str]:
    trace = result.trace
    assert trace is not None
    by = "By `reconfig`: " if isinstance(result.spec, ReconfigSpec) else ""
    vain = () if result.spec.way in UNWAITED else unwaited(result.spec.steps)
    waits = f" The run goes on without waiting for {servers(vain)}, which would be in vain." if vain else ""
    lines = [f"### {by}{capital(finding_words(result))}", "", f"{_whole_story(result)}{waits}", ""]
    if not traces:
        return lines
    *picture, last = to_mermaid(trace).splitlines()  # the picture ends with the violation in the words of the story
    picture.append(f"{last.partition(': ')[0]}: {mermaid_text(clause(result))}")
    sentence = f"Found as {code(result.prop)} in the run *{escaped(result.spec.name)}*: {escaped(trace.clause)}."
    whole = folded("The whole run", [sentence, "", *fenced(to_text(trace))])
    return [*lines, "```mermaid", *picture, "```", "", *whole, ""]
