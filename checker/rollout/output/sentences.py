"""The sentences of an answer: its headline, the reasons of runs and answers, the reasons in short, and the limits.

Rules of this module: a sentence is made from the data, and nothing is decided by one. Every reason has a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from checker.printable import capital, code, escaped
from checker.properties import ENSEMBLE_PROPERTIES
from checker.report.verdict import finding_text
from checker.rollout.answer import Plan
from checker.rollout.assessment import LARGEST, Order, QuestionAnswer, Reason, StageAssessment, ViewPair
from checker.rollout.failures import Basis, DirectionAnswer
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.working import Readiness
from checker.rollout.output.conditions import conditions
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.scenarios import CRASHES, Question
from checker.rollout.ways import Way
from checker.symbolic.report import set_text
from spec.quorum import Sid

PROVED = "proved by z3"
PROVED_IN_ORDER = "proved for any faults, by the theorem about roll-outs, if the conditions of the steps are kept"
REASONS = {
    Reason.UNCHANGED: "as without the roll-out: no step changes a configuration as it is modelled",
    Reason.FOUND_WITHOUT_FAULTS: "already without faults",
    Reason.STEPS_OPEN: "the run about leaders that they rest on was not finished",
    Reason.OPEN_WITHOUT_FAULTS: "the same without faults has no answer",
    Reason.NO_WORK_LEFT: "the budget was used up before it",
    Reason.NO_FAULTS: "no faults were asked for",
    Reason.UNSAFE_ALREADY: "not explored, since the change is unsafe already",
    Reason.NOT_DEMANDED: "not explored, since it cannot change the verdict; `--explore` does it",
    Reason.NO_SUCH_ELECTION: "not explored: the model has no election that ends in this first state",
    Reason.VERSIONS: "not explored where configurations have versions",
    Reason.TOO_LARGE: f"more than {LARGEST} servers are not explored",
    Reason.OLD_DISK: "has run with another address: a disk on its old host may lack acknowledged writes",
    Reason.ANY_ADDRESS: "listens on all addresses of its machine: which host names reach it is unknown",
    Reason.RECONFIG_OFF: (
        "does not follow servers with `reconfigEnabled`: there is no service from the step that leaves them without a "
        "quorum until the last server has its new file; stop all servers, and start them with the new files"
    ),
    Reason.FOREIGN_OBSERVER: (
        "with the disk of another cluster never serves, or answers with znodes that this ensemble has never written"
    ),
    Reason.OBSERVER_COUNTED: (
        "a server runs as an observer while the leader's file counts it as a voter: it acknowledges without a log, and "
        "a committed write can be lost; restart a promoted server first, a demoted server last"
    ),
}

BASES = {
    Basis.PROVED: PROVED,
    Basis.PROVED_IN_ORDER: "proved in this order",
    Basis.CRASH_EXPLORED: "explored with a crash of any server at any time, which starts again with either file",
    Basis.NO_CRASH_EXPLORED: "no finished run has a server that fails",
    Basis.TWO_DISKS: "addresses change: a failed server may have two disks, on its old and on its new host",
    Basis.BACK_NOT_EXPLORED: "not explored; `--now` asks about it",
    Basis.DEFECTS: "a defect of the release can lose a write that a client sends meanwhile",
    Basis.DEFECTS_NOT_EXPLORED: "safe by the protocol, and not explored to the end with the defects of the release",
}


def run_sentence(result: RunResult) -> str:
    """The reason for the end of a run."""
    match result.end:
        case RunEnd.VIOLATION:
            return finding_text(result.found) if result.found is not None else "a violation"
        case RunEnd.STALL:
            return f"{who_looks(result.looking)} LOOKING, and waiting does not help"
        case RunEnd.WORK | RunEnd.MEMORY:
            full = "; the memory was used up" if result.end is RunEnd.MEMORY else ""
            return f"{result.states:,} states to depth {result.depth}, not all; no violation among them{full}"
        case RunEnd.ELECTIONS:
            most = result.spec.elections
            return f"{result.states:,} states within {most} elections; that bound is used up before all settle"
        case RunEnd.NO_WORK_LEFT:
            return REASONS[Reason.NO_WORK_LEFT]
        case RunEnd.IMPOSSIBLE:
            return REASONS[Reason.NO_SUCH_ELECTION]
    return f"all {result.states:,} states, no violation"


def answer_sentence(answer: QuestionAnswer) -> str:
    """The reason for the outcome of a cell."""
    subjects, seen = ", ".join(map(str, answer.subjects)), _seen(answer.runs)
    match answer.reason:
        case Reason.FOUND if answer.finding is not None:
            return run_sentence(answer.finding)
        case Reason.PROVED | Reason.PROVED_IN_ORDER:
            proved = PROVED if answer.reason is Reason.PROVED else PROVED_IN_ORDER
            return f"{proved}; {seen}" if seen else proved
        case Reason.EXPLORED:
            return seen
        case Reason.STEPS_OPEN | Reason.OPEN_WITHOUT_FAULTS:
            return f"{seen}, but {REASONS[answer.reason]}"
        case Reason.OLD_DISK | Reason.ANY_ADDRESS | Reason.RECONFIG_OFF:
            return f"server {subjects} {REASONS[answer.reason]}"
        case Reason.STRANGERS:
            one, other = answer.subjects
            return f"servers {one} and {other} refuse each other while one of them has its new file"
        case Reason.FOREIGN_OBSERVER:
            return f"observer {subjects} {REASONS[answer.reason]}"
        case Reason.NOT_DURABLE:
            return f"with the new value of {subjects} a server can lose what it has acknowledged"
        case Reason.NOT_MODELLED:
            return f"the roll-out changes, or may change, {subjects}, which is not modelled"
    return REASONS[answer.reason]


def direction_sentence(direction: DirectionAnswer) -> str:
    """The basis of a direction about a failed step, and the checks that are still to be made."""
    if direction.answer is not None:
        return answer_sentence(direction.answer)
    checks = " and ".join(f"before step {each.step}" for each in direction.conditions)
    return BASES[direction.basis] + (f", with the check {checks}" if checks else "")


def who_looks(looking: tuple[Sid, ...]) -> str:
    """The servers that look for a leader: `server 2 stays`, `servers 2 and 4 stay`."""
    if len(looking) == 1:
        return f"server {looking[0]} stays"
    return f"servers {', '.join(map(str, looking[:-1]))} and {looking[-1]} stay" if looking else "some servers stay"


def _seen(runs: Sequence[RunResult]) -> str:
    """The size of runs without a violation, and whether they were finished."""
    if not runs:
        return ""
    states = sum(result.states for result in runs)
    unfinished = sum(result.outcome is not SafetyVerdict.SAFE for result in runs)
    what = f"{len(runs)} run{'s' * (len(runs) > 1)}, {states:,} states"
    if any(result.spec.opening for result in runs):
        what += ", behind one order of the steps before"
    if not unfinished:
        return f"{what}, all explored"
    which = "" if unfinished == len(runs) else f"{unfinished} of the runs "
    return f"{what}, {which}not explored to the end"


WORDS = {
    SafetyVerdict.UNSAFE: "UNSAFE",
    SafetyVerdict.OPEN: "UNDECIDED",
    SafetyVerdict.STALLS: "STALLS",
    SafetyVerdict.SAFE: "SAFE",
}

NOT_COVERED = (
    "Whatever is bounded above: more faults than were asked for, more than one write, more elections.",
    "Messages of an election one by one: an election is one step here, to any of its outcomes (`python -m checker "
    "run --refine` tells a saved scenario message by message).",
    "Disks that are lost or changed by hand, two processes with one id, and servers that are restarted together or "
    "while one before them is still missing.",
    "Time: how long elections and restarts take, time-outs that are too short, clients that give up.",
    "Values of keys that are too small or wrong in practice, and files that keys name.",
)


OF_RECONFIG = (
    "Of `reconfig`: servers that differ in `reconfigEnabled`, changes of an address, groups and weights, a restart of "
    "a joiner that has not activated its configuration, and whether all servers serve in the end. Its defects are "
    "those of 3.9.5; other releases were not measured."
)
BEFORE_NOW = (
    "The time before the interruption: the ensemble is taken as healthy now, with one leader, equal data, and each "
    "server running with the file in the folder. If two servers lead now, compare their data first."
)


def verdict_of(judged: StageAssessment | Plan) -> str:
    """The verdict in capitals. A server on another host has its old disk or an empty one: that makes two verdicts."""
    stages = [judged] if isinstance(judged, StageAssessment) else judged.advised
    moved = {sid for each in stages for sid in each.stage.moved}
    if not moved:
        return WORDS[judged.outcome]
    kept, empty = ("its disk", "an empty disk") if len(moved) == 1 else ("their disks", "empty disks")
    return f"{WORDS[judged.outcome_with_disks]} with {kept}, {WORDS[judged.outcome]} with {empty}"


def not_covered(plan: Plan) -> tuple[str, ...]:
    """The limits of all answers of a plan."""
    before = () if plan.request.now is None else (BEFORE_NOW,)
    return (*before, *NOT_COVERED, *((OF_RECONFIG,) if plan.reconfig_route is not None else ()))


def headline(plan: Plan) -> str:
    """The verdict in one line."""
    what = plan.direct.stage.title
    if plan.back is not None:
        back = f", {verdict_of(plan.back)} to go back"
        order = f" in the order {order_words(plan.direct.orders[0])}" if plan.request.order else ""
        part = ", but the order is not the rest of the change" if plan.left_out else ""
        return f"Interrupted roll-out {what}: {verdict_of(plan)} to go on{order}{part}{back}"
    if plan.stages:
        one = "server" if plan.direct.stage.readdressed else "voter"
        rest = f"{verdict_of(plan)} in {len(plan.stages)} stages, one {one} at a time"
        return f"Roll-out {what}: {verdict_of(plan.direct)} in one go{_as_tried(plan)}, {rest}"
    if plan.request.order is not None:
        order = order_words(plan.direct.orders[0])
        stand = ", but it comes to a stand" if plan.outcome is SafetyVerdict.SAFE and plan.direct.orders[0].vain else ""
        part = " AS FAR AS IT GOES, which is not the whole change" if plan.left_out else ""
        return f"Roll-out {what} in the order {order}: {verdict_of(plan)}{part}{stand}"
    commands = "" if plan.reconfig_route is None else f"; {WORDS[plan.reconfig_route.outcome]} by reconfig"
    return f"Roll-out {what}: {verdict_of(plan)}{_as_tried(plan)}{commands}"


def _is_searched(plan: Plan) -> bool:
    """Whether an order was looked for, so that the verdict on the change in one go is one on the orders tried."""
    return plan.request.order is None and plan.tried > 0


def _as_tried(plan: Plan) -> str:
    """Which orders the verdict on the change in one go is about."""
    if not _is_searched(plan):
        return ""
    if plan.direct.outcome is SafetyVerdict.SAFE:
        return " in the order of the plan"
    return f" ({plan.tried} of {plan.orders} orders tried)"


def order_words(order: Order) -> str:
    """The servers of an order, one after the other."""
    return ", ".join(str(step.sid) for step in order.steps)


def in_short(plan: Plan) -> list[str]:
    """What a reader must know besides the verdicts, a sentence each."""
    warnings = dict.fromkeys((*plan.request.old.warnings, *plan.request.new.warnings))
    lines = [f"- **Warning**: {escaped(warning)}" for warning in warnings]
    if plan.left_out:
        verb = "is" if len(plan.left_out) == 1 else "are"
        missing = f"{_named(plan.left_out)} {verb} not in the order, and left as before"
        lines.append(f"- **Not the whole change**: {missing}.")
    if plan.request.old.view == plan.request.new.view:
        lines.append("- Nothing changes in who votes: the two folders have the same members, in the same roles.")
    lines += _addresses(plan)
    lines += _by_operator(plan)
    lines += _of_controller(plan)
    lines += _by_reconfig(plan)
    lines += _of_keys(plan)
    lines += _of_crashes(plan)
    lines += _of_direct(plan)
    for number, part in enumerate(plan.stages, start=1):
        lines += _of_stage(part, f"Stage {number}")
    if plan.back is not None:
        lines += _of_stage(plan.back, "The way back")
    return lines


def _of_crashes(plan: Plan) -> list[str]:
    """The file with which a server starts again after a crash, where the verdict may depend on it."""
    if plan.request.at_step:
        return ["- **Files are copied at their step**: a server that crashes before it starts again with its old file."]
    crashed = any(
        answer.finding is not None and CRASHES in answer.finding.spec.faults
        for part in plan.advised
        for *_, answer in part.answers
    )
    if not crashed or plan.request.way.is_of_controller:
        return []
    return [
        "- **A crash may bring the new file**, since it may lie ready on its server before its step. If you copy each "
        "file at its step, ask with `--files at-step`."
    ]


def _of_direct(plan: Plan) -> list[str]:
    """The verdict on the direct change, where the table of verdicts is not enough."""
    whole = "This order" if plan.request.order else "The rest" if plan.back else "This change"
    whole = "By restarts this change" if plan.reconfig_route is not None else whole
    if not _is_searched(plan):
        return _of_stage(plan.direct, whole)
    if plan.direct.outcome is SafetyVerdict.SAFE:
        others = "- Other orders were not judged. They may be unsafe, since quorums of the two files may be disjoint."
        return [*_of_stage(plan.direct, "This order"), others]
    more = " A larger `--budget` may decide it." if plan.direct.outcome is SafetyVerdict.OPEN else ""
    order = order_words(plan.direct.orders[0])
    return [f"{line}{more}" for line in _of_stage(plan.direct, f"In one go, in the order {order}, it")]


def _addresses(plan: Plan) -> list[str]:
    """The changes of addresses, and what they mean for the operator."""
    stage, lines = plan.direct.stage, []
    if stage.readdressed:
        lines.append(
            f"- **Addresses change**: the host or a peer port of {_named(stage.readdressed)}. A server with the old "
            "file cannot connect to the new address. If such a server restarts during the roll-out, it may stay "
            "LOOKING until it has its new file."
        )
    if stage.moved:
        lines.append(
            f"- **The hosts of {_named(stage.moved)} have other names in the new files.** If these are the same "
            "machines, add `--same-machines`; else move the disk to the new host before the server starts there, "
            "and never start the old host again. With an empty disk under an old id a committed write can be lost. "
            "A new machine with a new id needs no disk."
        )
    if names := plan.request.new.names:
        pairs = ", ".join(f"`{host}` is `{name}`" for host, name in names.items())
        lines.append(
            f"- **The same machines under other names**: {pairs}. Check first, on every server, that both names "
            "have one address. With TLS between servers the certificates need both names."
        )
    return lines


def _by_operator(plan: Plan) -> list[str]:
    """The remark that an operator for Kubernetes changes the membership in its own way."""
    working = plan.request.new.working
    if working is None or working.operator is None or plan.request.old.view == plan.request.new.view:
        return []
    return [
        f"- **{working.operator.value} makes this change itself**, by `reconfig` and one server after the other. Leave "
        "it to the operator. The steps below are restarts with new files, and it does not do them."
    ]


def _by_reconfig(plan: Plan) -> list[str]:
    """The advice to use `reconfig`, where restarts do not bring a change of members about."""
    working = plan.request.new.working
    if not plan.direct.stage.gossips or (working is not None and working.operator is not None):
        return []
    impossible = plan.by_reconfig is not None and plan.by_reconfig.advised is None
    refused = " But it is not possible with these files: see below." if impossible else ""
    return [
        "- **Use `reconfig` for this change.** Configurations have versions, and servers send them to each other. A "
        f"server that restarts with other members in its file may take over the members of another version.{refused}"
    ]


def _of_controller(plan: Plan) -> list[str]:
    """When a controller takes a server as ready."""
    way, working = plan.request.way, plan.request.new.working or plan.request.old.working
    if not way.is_of_controller or not plan.direct.stage.remaining:
        return []
    readiness = None if working is None else working.readiness
    if way is Way.UNREADY_CONTROLLER:
        probe = "" if readiness is None else f" (readinessProbe: {readiness.value})"
        sentence = (
            f"a pod counts as ready before its server serves{probe}, so the StatefulSet does not wait for service "
            "between two steps. A readinessProbe that asks `srvr` and looks for `Mode:` makes it wait."
        )
    elif readiness is Readiness.SERVING:
        return []
    else:
        sentence = (
            "a pod counts as ready here when its server serves. A probe by `ruok` answers while the server still looks "
            "for a leader; then ask with `--how unready-controller`."
        )
    return [f"- **Readiness**: {sentence}"]


def _named(sids: tuple[Sid, ...]) -> str:
    return f"server{'s' * (len(sids) > 1)} {', '.join(map(str, sids))}"


def _of_keys(plan: Plan) -> list[str]:
    """What an operator sees to because of the keys that change, and the servers that do not talk meanwhile."""
    keys: dict[tuple[Effect, str], dict[str, None]] = {}
    for difference in plan.direct.stage.differences:
        if difference.effect is not Effect.MODELLED:
            keys.setdefault((difference.effect, difference.note), {})[difference.key] = None
    lines = []
    for (effect, note), names in sorted(keys.items(), key=lambda item: -list(Effect).index(item[0][0])):
        advice = f" {capital(note)}." if note else ""
        lines.append(f"- **{capital(effect.value)}**: {', '.join(map(code, names))}.{advice}")
    if pairs := plan.direct.stage.strangers:
        one, other = pairs[0]
        more = f", and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
        lines.insert(
            0,
            f"- **Servers {one} and {other}{more} do not talk** in a state of this roll-out: one of two connects in a "
            "way that the other refuses. TLS needs three roll-outs: `portUnification=true` at all servers, then "
            "`sslQuorum=true` as well, then no `portUnification`. SASL needs three, too: `quorum.auth.enableSasl`, "
            "then `quorum.auth.learnerRequireSasl`, then `quorum.auth.serverRequireSasl`.",
        )
    return lines


def _of_stage(assessment: StageAssessment, name: str) -> list[str]:
    """A sentence on a stage that is not safe, or whose plan needs a remark."""
    if assessment.outcome is SafetyVerdict.UNSAFE:
        with_disks = WORDS[assessment.outcome_with_disks].lower()
        moved = f" With the disks moved it is {with_disks}." if assessment.stage.moved else ""
        return [f"- {name} is unsafe: {escaped('; '.join(dict.fromkeys(_violations(assessment))))}.{moved}"]
    if assessment.outcome is SafetyVerdict.STALLS:
        stuck = assessment.answer(Question.HEALING, faulty=False)
        return [f"- {name} comes to a stop: {escaped(_where_it_stops(stuck))}. No acknowledged write is lost."]
    waits = " Not every step may be waited for: see the steps." if any(each.vain for each in assessment.orders) else ""
    if assessment.outcome is SafetyVerdict.OPEN:
        return [f"- {name} is not decided. Not excluded: {'; '.join(_open(assessment))}.{waits}"]
    return [f"-{waits}"] if waits else []


def _violations(assessment: StageAssessment) -> list[str]:
    found = []
    for question, _, answer in sorted(assessment.answers, key=lambda each: each[1]):
        if answer.reason in (Reason.NOT_DURABLE, Reason.FOREIGN_OBSERVER):
            found.append(answer_sentence(answer))
        elif answer.outcome is SafetyVerdict.UNSAFE and answer.finding and answer.reason is Reason.FOUND:
            disk = " (empty disk)" if question is Question.EMPTY_DISK else ""
            found.append(f"{conditions(answer.finding)} {clause(answer.finding)}{disk}")
    return found


def _where_it_stops(answer: QuestionAnswer) -> str:
    """The step behind which the operator waits in vain, and the servers that look for a leader then."""
    result = answer.finding
    if result is None or result.stuck is None:
        return answer_sentence(answer)
    number = next(n for n, step in enumerate(result.spec.steps, start=1) if step.sid == result.stuck)
    return f"after step {number}, {result.spec.steps[number - 1]}, {who_looks(result.looking)} LOOKING"


def _open(assessment: StageAssessment) -> list[str]:
    """The questions without an answer, in the words of an operator, by reason."""
    reasons: dict[str, list[str]] = {}
    for question, faulty, answer in assessment.answers:
        if answer.outcome is SafetyVerdict.OPEN and (assessment.faults or not faulty):
            because = UNFINISHED if answer.reason in OF_THE_SEARCH else escaped(answer_sentence(answer))
            reasons.setdefault(because, []).append(f"{DANGERS[question]}{' under faults' if faulty else ''}")
    return [f"{', or '.join(dict.fromkeys(dangers))} ({because})" for because, dangers in reasons.items()]


DANGERS = {
    Question.ELECTION: "two leaders",
    Question.COMMITS: "a lost write",
    Question.HEALING: "servers that find no leader",
    Question.EMPTY_DISK: "a write that an empty disk loses",
    Question.GIVEN_DISKS: "a write that one of the given disks loses",
    Question.DEFECTS: "a write that a defect loses",
    Question.QUIET_DEFECTS: "a write that a defect loses",
}
UNFINISHED = "the search was not finished, and a larger `--budget` may finish it"
OF_THE_SEARCH = frozenset({Reason.EXPLORED, Reason.STEPS_OPEN, Reason.OPEN_WITHOUT_FAULTS, Reason.NO_WORK_LEFT})
"""The reasons for which the search has no answer yet."""


def clause(result: RunResult) -> str:
    """The violation of a run, for readers without knowledge of the properties."""
    declared = ENSEMBLE_PROPERTIES.get(result.prop)
    return (declared and declared.violation) or run_sentence(result)


ENOUGH = (
    "A server follows one leader at a time, a write is committed by a quorum, and a new leader asks a quorum what was "
    "committed. So where every two quorums meet and no server changes its role there are never two leaders that both "
    "have one, and no leader begins without what was committed: in any order, under any of these faults, as long as no "
    "disk is lost and every server keeps its address. A server that is an observer by its own file acknowledges "
    "without a log, and is counted by a leader whose file has it as a voter."
)
"""Why it is enough that quorums meet. That they do is proved by z3; this sentence is Zab's own argument."""


def pair_sentence(pair: ViewPair) -> str:
    """The answer of z3 about two views."""
    whose = f"{pair.old} and {pair.new}" if pair.old != pair.new else f"{pair.old} alone"
    if pair.disjoint is None:
        return f"{whose}: every two quorums meet (proved)"
    a, b = set_text(pair.disjoint.a), set_text(pair.disjoint.b)
    return f"{whose}: DISJOINT QUORUMS. {a} is a quorum by {pair.old}, {b} is one by {pair.new}"
