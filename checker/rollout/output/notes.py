"""The notes under the recommendation: the basis of the verdict, and a line for each duty of the operator.

Rules of this module: it judges nothing, and says each idea once. No sentence has more than 25 words, except in
warnings about the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checker.printable import capital, code, escaped
from checker.rollout.answer import Plan, ReleaseAnswer
from checker.rollout.claims import Evidence, Reason
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.working import Readiness
from checker.rollout.output.operator_steps import reverse_stops
from checker.rollout.output.recommendation import is_searched
from checker.rollout.output.sentences import (
    WORDS,
    needs,
    order_words,
    reason_words,
    servers,
    who_looks,
)
from checker.rollout.reconfig.section import obstacle, safer
from checker.rollout.route import PlanRoute
from checker.rollout.runs import SafetyVerdict
from checker.rollout.scenarios import CRASHES, Question
from checker.rollout.ways import Way

PROMISE = "never two leaders, no acknowledged write lost"
SAFETY = (Question.ELECTION, Question.COMMITS)
PROVED = frozenset({Reason.PROVED, Reason.UNCHANGED})
DANGERS = {
    Question.ELECTION: "two leaders",
    Question.COMMITS: "a lost write",
    Question.HEALING: "servers that find no leader",
    Question.EMPTY_DISK: "a write that an empty disk loses",
    Question.GIVEN_DISKS: "a write that one of the given disks loses",
    Question.DEFECTS: "a write that a defect loses",
    Question.QUIET_DEFECTS: "a write that a defect loses",
}
OF_THE_SEARCH = frozenset({Reason.EXPLORED, Reason.STEPS_OPEN, Reason.OPEN_WITHOUT_FAULTS, Reason.NO_WORK_LEFT})
"""The reasons for which the search has no answer yet."""
UNFINISHED = "the search was not finished, and a larger `--budget` may finish it"
WAYS = {
    Way.ONE_BY_ONE: "one server after the other",
    Way.NO_WAIT: "without waits",
    Way.PARALLEL: "all new servers together",
    Way.STOP_ALL: "stopping all",
    Way.CONTROLLER: "a rolling update of a StatefulSet",
    Way.PARALLEL_CONTROLLER: "such an update with `podManagementPolicy: Parallel`",
    Way.UNREADY_CONTROLLER: "such an update with a probe that does not ask for service",
}
EVERY_OTHER = "every other way of working"
ANY_UPDATE = "any rolling update of a StatefulSet"
PROBES = {
    Readiness.ALIVE: "its readinessProbe does not ask for that",
    Readiness.NONE: "it has no readinessProbe",
}
WAY_VERDICTS = {
    SafetyVerdict.UNSAFE: "Unsafe in one go",
    SafetyVerdict.STALLS: "Comes to a stop in one go",
    SafetyVerdict.OPEN: "Not decided in one go",
}
DEFECTS = {
    SafetyVerdict.UNSAFE: "while clients write, a write can be lost{}",
    SafetyVerdict.OPEN: "while clients write, the search was not finished{}",
    SafetyVerdict.STALLS: "while clients write, the search was not finished{}",
    SafetyVerdict.SAFE: "while clients write, no write is lost{} (explored to the end)",
}
UNDECIDED = "Whether the same restarts of {old}, without the upgrade, lose a write in this way is not decided."
STAYING = {
    SafetyVerdict.UNSAFE: "**Staying at {old} is not safer**: its restarts lose a write in the same way.",
    SafetyVerdict.SAFE: "**Staying at {old} is safer**: its restarts lose no write in this way.",
}
TLS = (
    "TLS needs three roll-outs: `portUnification=true` at all servers, then `sslQuorum=true` as well, then no "
    "`portUnification`."
)
SASL = (
    "SASL needs three roll-outs: `quorum.auth.enableSasl`, then `quorum.auth.learnerRequireSasl`, then "
    "`quorum.auth.serverRequireSasl`."
)


def notes(plan: Plan) -> list[str]:
    """The lines under the recommendation."""
    warnings = dict.fromkeys((*plan.request.old.warnings, *plan.request.new.warnings))
    lines = [f"- **Warning**: {escaped(warning)}" for warning in warnings]
    if plan.left_out:
        verb = "is" if len(plan.left_out) == 1 else "are"
        missing = f"{servers(plan.left_out)} {verb} not in the order, and left as before"
        lines.append(f"- **Not the whole change**: {missing}.")
    for group in (_verdicts, _ways, _releases, _addresses, _of_operator, _readiness, _reconfig, _keys, _crashes):
        lines += [f"- {line}" for line in group(plan)]
    return lines


# The verdict and its basis.


def _verdicts(plan: Plan) -> Iterator[str]:
    """The basis of the recommendation, and the unsafe parts."""
    by_restarts = plan.reconfig_route is None and any(_steps(part) for part in plan.advised)
    if by_restarts and plan.outcome is SafetyVerdict.SAFE:
        yield _basis(plan.advised)
    if is_searched(plan) and plan.direct.outcome is SafetyVerdict.SAFE and plan.direct.order_proofs:
        yield "Other orders were not judged."
    whole = f"In one go, in the order {order_words(plan.direct.orders[0])}, it" if is_searched(plan) else "It"
    if plan.stages:
        yield from ["In one go it is not decided."] if plan.direct.outcome is SafetyVerdict.OPEN else []
    elif plan.reconfig_route is None:
        yield from _problem(plan.direct, whole)
    for number, part in enumerate(plan.stages, start=1):
        yield from _problem(part, f"Stage {number}")
    if plan.back is not None:
        if plan.back.outcome is SafetyVerdict.SAFE and _steps(plan.back):
            yield f"The way back: {_basis([plan.back])}"
        yield from _problem(plan.back, "The way back")


def _steps(part: PlanRoute) -> bool:
    return any(order.steps for order in part.orders) or part.unchanged


def _basis(parts: Sequence[PlanRoute]) -> str:
    """How it is known that some stages are safe."""
    claims = [claim for part in parts for claim in part.claims]
    safe = [claim for claim in claims if claim.question in SAFETY and claim.evidence.outcome is SafetyVerdict.SAFE]
    reasons = {claim.evidence.reason for claim in safe}
    healing = {claim.evidence.outcome for claim in claims if claim.question is Question.HEALING and not claim.faults}
    faults = max(part.faults for part in parts)
    if reasons <= PROVED:
        known = f"**Proved** for any order and any faults: {PROMISE}."
    elif reasons <= {*PROVED, Reason.PROVED_IN_ORDER}:
        known = f"**Proved in this order**, for any faults: {PROMISE}."
    else:
        known = f"**Explored to the end**, with up to {faults} fault{'s' * (faults != 1)}: {PROMISE}."
    if healing == {SafetyVerdict.SAFE}:
        return f"{known} All serve in the end."
    return f"{known} Not decided: whether all serve in the end." if SafetyVerdict.OPEN in healing else known


def _problem(part: PlanRoute, name: str) -> Iterator[str]:
    """Why a stage is not safe; not where a run shows it, which the story tells."""
    waits = "Not every step may be waited for: see the steps." if any(order.vain for order in part.orders) else ""
    match part.outcome:
        case SafetyVerdict.UNSAFE:
            reasons = [claim.evidence for claim in part.claims if claim.evidence.reason in WITHOUT_A_RUN]
            others = [reason_words(reason) for reason in reasons if reason.outcome is SafetyVerdict.UNSAFE]
            if others:
                yield f"{name} is unsafe: {'; '.join(dict.fromkeys(others))}."
            if part.stage.moved:
                yield f"With the disks moved it is {WORDS[part.outcome_with_disks].lower()}."
        case SafetyVerdict.STALLS:
            stuck = part.answer(Question.HEALING, faulty=False)
            yield f"{name} comes to a stop: {_where_it_stops(stuck)}. No acknowledged write is lost."
        case SafetyVerdict.OPEN:
            for reason, dangers in _open(part).items():
                yield f"{name} is not decided ({reason}). Not excluded: {', or '.join(dict.fromkeys(dangers))}."
    if waits and part.outcome in (SafetyVerdict.OPEN, SafetyVerdict.SAFE):
        yield waits


WITHOUT_A_RUN = frozenset({Reason.NOT_DURABLE})


def _where_it_stops(answer: Evidence) -> str:
    """The step behind which the operator waits in vain, and the servers that look for a leader then."""
    result = answer.finding
    if result is None or result.stuck is None:
        return reason_words(answer)
    number = next(n for n, step in enumerate(result.spec.steps, start=1) if step.sid == result.stuck)
    return f"after step {number}, {result.spec.steps[number - 1]}, {who_looks(result.looking)} LOOKING"


def _open(part: PlanRoute) -> dict[str, list[str]]:
    """The questions without an answer, in the words of an operator, by reason."""
    reasons: dict[str, list[str]] = {}
    for claim in part.claims:
        if claim.evidence.outcome is SafetyVerdict.OPEN:
            because = UNFINISHED if claim.evidence.reason in OF_THE_SEARCH else reason_words(claim.evidence)
            reasons.setdefault(because, []).append(DANGERS[claim.question])
    return reasons


def _ways(plan: Plan) -> Iterator[str]:
    """The other ways to make the change in one go, where the plan recommends that."""
    others = [answer for answer in plan.ways if answer.way is not plan.request.way]
    if not others or not plan.direct.stage.remaining or plan.request.disks or plan.outcome is not SafetyVerdict.SAFE:
        return
    if plan.stages or plan.reconfig_route is not None or plan.releases is not None:
        return
    if all(answer.outcome is SafetyVerdict.SAFE for answer in plan.ways):
        yield "Every other way to do it is safe, too."
        return
    for outcome, words in WAY_VERDICTS.items():
        ways = [way.way for way in others if way.outcome is outcome]
        updates = [way for way in ways if way.is_of_controller]
        names = [WAYS[way] for way in ways if len(updates) < 3 or way not in updates]
        names += [ANY_UPDATE] if len(updates) == 3 else []
        if names:
            yield f"**{words}**: {'; '.join(names) if len(ways) < len(others) else EVERY_OTHER}."
    if plan.depends_on_the_way:
        yield "**The gate does not pass**: nothing says how the change is applied. Name a safe way with `--how`."


def _releases(plan: Plan) -> Iterator[str]:
    """The effects of the known defects of the releases in these steps."""
    releases, answer = plan.request.releases, plan.releases
    if releases is None or not plan.direct.stage.remaining:
        return
    if answer is None:
        yield f"**ZooKeeper {releases}**: its defects were not looked at, since the steps are not safe without them."
        return
    quiet = "nothing is" if answer.is_safe_if_quiet else "that is not decided"
    yield f"**ZooKeeper {releases}**: {DEFECTS[answer.verdict()].format(_under(answer))}. Without writes {quiet}."
    if answer.staying is not None:
        yield STAYING.get(answer.staying.outcome, UNDECIDED).format(old=releases.old)
    if answer.culprits:
        names = ", ".join(code(defect.value) for defect in answer.culprits)
        yield f"One of these defects is enough: {names}."


def _under(answer: ReleaseAnswer) -> str:
    finding = answer.finding
    return "" if finding is None else f" {needs(finding)}"


# What to see to.


def _addresses(plan: Plan) -> Iterator[str]:
    """The changes of addresses, and their meaning for the operator."""
    stage = plan.direct.stage
    if stage.readdressed:
        yield (
            f"**Addresses change**: the host or a peer port of {servers(stage.readdressed)}. A server with the old "
            "file cannot connect there. If it restarts, it may stay LOOKING until it has its new file."
        )
    if stage.moved:
        yield (
            f"**The hosts of {servers(stage.moved)} have other names in the new files.** If these are the same "
            "machines, add `--same-machines`. Else move the disk to the new host before the server starts there, and "
            "never start the old host again. With an empty disk under an old id a committed write can be lost. A new "
            "machine with a new id needs no disk."
        )
    if names := plan.request.new.names:
        pairs = ", ".join(f"{code(host)} is {code(name)}" for host, name in names.items())
        yield (
            f"**The same machines under other names**: {pairs}. Check first, on every server, that both names have "
            "one address. With TLS between servers the certificates need both names."
        )


def _of_operator(plan: Plan) -> Iterator[str]:
    """The remark that an operator for Kubernetes changes the membership in its own way."""
    working = plan.request.new.working
    if working is not None and working.operator is not None and plan.request.old.view != plan.request.new.view:
        yield (
            f"**{working.operator.value} makes this change itself**, by `reconfig` and one server after the other. "
            "Leave it to the operator. The steps below are restarts with new files, and it does not do them."
        )


def _readiness(plan: Plan) -> Iterator[str]:
    """When a controller takes a server as ready."""
    way, working = plan.request.way, plan.request.new.working or plan.request.old.working
    readiness = None if working is None else working.readiness
    if not plan.direct.stage.remaining or not way.is_of_controller or readiness is Readiness.SERVING:
        return
    if way is Way.UNREADY_CONTROLLER:
        probe = "" if readiness is None else f": {PROBES[readiness]}"
        yield (
            f"**Readiness**: a pod counts as ready before its server serves{probe}. So the StatefulSet does not wait "
            "for service between two steps. A readinessProbe that asks `srvr` and looks for `Mode:` makes it wait."
        )
    else:
        yield (
            "**Readiness**: a pod counts as ready here when its server serves. A probe by `ruok` answers while the "
            "server still looks for a leader; then ask with `--how unready-controller`."
        )


def _reconfig(plan: Plan) -> Iterator[str]:
    """Whether to use `reconfig`, where restarts do not bring a change of members about."""
    answer, working = plan.by_reconfig, plan.request.new.working
    if plan.direct.stage.gossips and (working is None or working.operator is None):
        yield (
            "**Use `reconfig` for this change**: servers send each other versions of the configuration. One that "
            "restarts with other members in its file may take over those of another version."
        )
    if reverse_stops(plan):
        yield "**No way back by single restarts**: no server without `reconfigEnabled` follows those that have it."
    if answer is not None and answer.advised is None:
        yield from (f"**`reconfig` is not possible with these files.** {obstacle(each)}" for each in answer.refusals)
    elif answer is not None:
        yield f"{capital(safer(answer))}."


def _keys(plan: Plan) -> Iterator[str]:
    """The duties of an operator because of the keys that change, and the servers that do not talk meanwhile."""
    differences = plan.direct.stage.differences
    if plan.direct.stage.strangers:
        sasl = any(difference.key.startswith("quorum.auth.") for difference in differences)
        tls = any(difference.key in ("sslQuorum", "portUnification") for difference in differences)
        yield " ".join(([TLS] if tls or not sasl else []) + ([SASL] if sasl else []))
    keys: dict[tuple[Effect, str], dict[str, None]] = {}
    for difference in differences:
        if difference.effect is not Effect.MODELLED:
            keys.setdefault((difference.effect, difference.note), {})[difference.key] = None
    for (effect, note), names in sorted(keys.items(), key=lambda item: -list(Effect).index(item[0][0])):
        advice = f" {capital(note)}." if note else ""
        yield f"**{capital(effect.value)}**: {', '.join(map(code, names))}.{advice}"


def _crashes(plan: Plan) -> Iterator[str]:
    """The file of a server that starts again after a crash, where the verdict may depend on it."""
    findings = [claim.evidence.finding for part in plan.advised for claim in part.claims]
    if plan.request.at_step:
        yield "**Files are copied at their step**: a server that crashes before it starts again with its old file."
    elif not plan.request.way.is_of_controller and any(
        finding is not None and CRASHES in finding.spec.faults for finding in findings
    ):
        yield (
            "**A crash may bring the new file**, since it may lie ready on its server before its step. If you copy "
            "each file at its step, ask with `--files at-step`."
        )
