"""The first line of the answer, the verdict in one line, and the notes: one for each duty of the operator.

Rules of this module: it judges nothing, and says each idea once. The first line is one imperative sentence without a
word of model checking: do it so, or do not do it. No sentence has more than 25 words, except in warnings about files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from checker.printable import capital, code, escaped
from checker.rollout.answer import Plan, ReleaseAnswer
from checker.rollout.claims import Reason
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.platform import Readiness
from checker.rollout.orders import Way
from checker.rollout.output.by_reconfig import obstacle, safer
from checker.rollout.output.operator_steps import reverse_stops
from checker.rollout.output.sentences import (
    HAZARD_NAMES,
    LARGER,
    WORDS,
    change_of,
    changes,
    clause,
    command_words,
    listed,
    needs,
    order_words,
    reason_words,
    servers,
    verdict_words,
    who_looks,
)
from checker.rollout.reconfig.answers import FaultBudget, RouteAnswer
from checker.rollout.route_verdict import SAFETY, Order, PlanRoute
from checker.rollout.runs import RunEnd, SafetyVerdict, worst_result
from checker.rollout.scenarios import CRASHES, Question

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def recommendation(plan: Plan) -> str:
    """The first line of the answer, without a full stop."""
    if plan.back is not None:
        return _after_an_interruption(plan, plan.back)
    if plan.reconfig_route is not None:
        return _by_reconfig(plan, plan.reconfig_route)
    return _despite_defects(plan, plan.releases) if plan.releases is not None else _by_protocol(plan)


def _by_reconfig(plan: Plan, route: RouteAnswer) -> str:
    change = changes(plan.direct.stage)
    commands = ", then ".join(command_words(answer.command) for answer in route.commands)
    how = f": {commands}" if len(route.commands) > 1 else ""
    if route.outcome is SafetyVerdict.SAFE:
        return f"{capital(change)} by `reconfig`{how}"
    sentence = "No loss was found, and it was not explored to the end, even without a fault"
    if route.verdict(FaultBudget.NONE) is SafetyVerdict.SAFE:
        sentence = "Without a fault nothing is lost, and under faults it was not explored to the end"
    elif not any(result.begun for result in route.results(FaultBudget.NONE)):
        sentence = "It was not explored"
    return f"Not decided: use `reconfig`, rather than restarts, to {change}{how}. {sentence}"


def _despite_defects(plan: Plan, answer: ReleaseAnswer) -> str:
    """The recommendation by the protocol, with the demands of the defects of the releases."""
    by_protocol, defects = _by_protocol(plan), f"defects of ZooKeeper {answer.change}"
    if answer.verdict() is SafetyVerdict.SAFE or not plan.direct.stage.remaining:
        return by_protocol
    if answer.is_safe_if_quiet:
        by_fault = answer.verdict(faulty=False) is SafetyVerdict.SAFE
        when = ": with a fault, defects may lose it" if by_fault else ""
        return f"{by_protocol}. Let nothing be written meanwhile{when}"
    if answer.verdict() is SafetyVerdict.UNSAFE:
        return f"Do not {change_of(plan, plan.direct)}: {defects} can lose an acknowledged write"
    return f"Not decided: {defects} were not explored to the end"


def _is_given(plan: Plan) -> bool:
    return plan.request.order is not None


def _needs_its_disks(plan: Plan) -> bool:
    return plan.outcome_with_disks is SafetyVerdict.SAFE


def _is_safe_but_for_disks(plan: Plan) -> bool:
    claims = (claim for part in plan.advised for claim in part.claims)
    unsafe = {claim.question for claim in claims if claim.evidence.outcome is SafetyVerdict.UNSAFE}
    return bool(plan.request.disks) and unsafe <= {Question.GIVEN_DISKS}


def _has_a_foreign_observer(plan: Plan) -> bool:
    reasons = {claim.evidence.reason for part in plan.advised for claim in part.claims}
    return _is_safe_but_for_disks(plan) and Reason.FOREIGN_OBSERVER in reasons


RULES: Mapping[SafetyVerdict, Sequence[tuple[Callable[[Plan], object], str]]] = {
    SafetyVerdict.SAFE: (
        (lambda plan: plan.left_out, "This order is safe as far as it goes, but it is not the whole change: {order}"),
        (lambda plan: plan.stages, "Do it in {count} stages: {stages}"),
        (
            lambda plan: _is_given(plan) and any(order.vain for order in plan.direct.orders),
            "This order is safe, but do not wait after every step: {order}",
        ),
        (_is_given, "This order is safe: {order}"),
        (lambda plan: not plan.direct.stage.remaining, "There is nothing to do: the two states are equal"),
        (
            lambda plan: plan.request.releases is not None and plan.request.releases.is_upgrade,
            "{Change}, {manner}: {steps}",
        ),
        (lambda plan: not plan.direct.unchanged, "{Change} in one go: {steps}"),
        (
            lambda plan: not any(order.steps for order in plan.direct.orders),
            "There is nothing to do: nothing changes for the ensemble",
        ),
        (
            lambda plan: any(difference.note for difference in plan.direct.stage.differences),
            "{restart}, and keep the conditions of the keys below",
        ),
        (bool, "{restart}: nothing changes for the ensemble"),
    ),
    SafetyVerdict.STALLS: ((bool, "Do not {change} in this way: it comes to a stop"),),
    SafetyVerdict.OPEN: (
        (_needs_its_disks, "Move the disks, then {change}; without the disks it is not decided"),
        (bool, "Not decided: do not {change} on the strength of this answer"),
    ),
    SafetyVerdict.UNSAFE: (
        (_has_a_foreign_observer, "Do not start {disks}: it never serves, or serves the data of that cluster"),
        (_is_safe_but_for_disks, "Do not start {disks}: an acknowledged write can be lost"),
        (_needs_its_disks, "Move the disks, then {change}; with an empty disk an acknowledged write can be lost"),
        (_is_given, "Do not use this order{danger}"),
        (bool, "Do not {change} in one go{danger}"),
    ),
}
"""The recommendations by the verdict on the protocol. The first one whose condition holds is given."""
RESTARTS = {
    Way.STOP_ALL: "Stop all servers, then start them with the new files",
    Way.NO_WAIT: "Restart the servers one by one without waits",
}
MANNERS = {Way.STOP_ALL: "with all servers stopped", Way.NO_WAIT: "without waits"}


def _by_protocol(plan: Plan) -> str:
    """The recommendation without regard to the defects of a release."""
    change, orders = change_of(plan, plan.direct), plan.direct.orders
    evidence = [claim.evidence for part in plan.advised for claim in part.claims]
    findings = [answer.finding for answer in evidence if answer.reason is Reason.FOUND and answer.finding is not None]
    finding = worst_result(result for result in findings if result.outcome is SafetyVerdict.UNSAFE)
    disks, count = sorted(plan.request.disks.items()), len(plan.stages)
    rule = next(words for holds, words in RULES[plan.outcome] if holds(plan))
    return rule.format(
        change=change,
        Change=capital(change),
        restart=RESTARTS.get(plan.request.way, "Restart the servers one by one"),
        manner=MANNERS.get(plan.request.way, WAYS[Way.ONE_BY_ONE]),
        order=order_words(orders[0]) if _is_given(plan) else "",
        count=NUMBERS[count] if count < len(NUMBERS) else count,
        stages=", then ".join(changes(part.stage) for part in plan.stages),
        steps=_steps_in_words(orders[0]) if orders else "",
        disks=listed(f"server {sid} with {HAZARD_NAMES[kind]}" for sid, kind in disks) if disks else "",
        danger=f": {clause(finding)}" if finding is not None else "",
    )


def _after_an_interruption(plan: Plan, way_back: PlanRoute) -> str:
    on, back = plan.direct.outcome is SafetyVerdict.SAFE, way_back.outcome is SafetyVerdict.SAFE
    if on and not plan.direct.stage.remaining:
        return "There is nothing left to do: every server has its new file"
    if on:
        return "Go on with the roll-out" + (", or go back: both are safe" if back else "; the way back is not safe")
    if plan.direct.outcome is SafetyVerdict.UNSAFE:
        return "Do not go on" + (": go back" if back else ", and do not go back, without further measures")
    return "Go back: the way on is not decided" if back else "Not decided: change nothing yet"


def _steps_in_words(order: Order) -> str:
    """The steps of an order, each action named once for the servers that follow each other."""
    words = []
    for action, steps in groupby(order.steps, lambda step: step.action):
        sids = [step.sid for step in steps]
        last = " (the leader last)" if len(sids) > 1 and sids[-1] == order.leader else ""
        words.append(f"{action} {listed(sids)}{last}")
    return ", then ".join(words)


def headline(plan: Plan) -> str:
    """The verdict in one line."""
    change, order = plan.direct.stage.title, plan.request.order and order_words(plan.direct.orders[0])
    if plan.back is not None:
        ordered = f" in the order {order}" if order else ""
        part = ", but the order is not the rest of the change" if plan.left_out else ""
        back = f", {verdict_words(plan.back)} to go back"
        return f"Interrupted roll-out {change}: {verdict_words(plan)} to go on{ordered}{part}{back}"
    if plan.stages:
        unit = "server" if plan.direct.stage.readdressed else "voter"
        rest = f"{verdict_words(plan)} in {len(plan.stages)} stages, one {unit} at a time"
        return f"Roll-out {change}: {verdict_words(plan.direct)} in one go{_as_tried(plan)}, {rest}"
    if order:
        stand = ", but it comes to a stand" if plan.outcome is SafetyVerdict.SAFE and plan.direct.orders[0].vain else ""
        part = " AS FAR AS IT GOES, which is not the whole change" if plan.left_out else ""
        return f"Roll-out {change} in the order {order}: {verdict_words(plan)}{part}{stand}"
    commands = "" if plan.reconfig_route is None else f"; {WORDS[plan.reconfig_route.outcome]} by reconfig"
    return f"Roll-out {change}: {verdict_words(plan)}{_as_tried(plan)}{commands}"


def _is_searched(plan: Plan) -> bool:
    """Whether an order was looked for, so that the verdict on the change in one go is one on the orders tried."""
    return not _is_given(plan) and plan.tried > 0


def _as_tried(plan: Plan) -> str:
    if not _is_searched(plan):
        return ""
    is_safe = plan.direct.outcome is SafetyVerdict.SAFE
    return " in the order of the plan" if is_safe else f" ({plan.tried} of {plan.orders} orders tried)"


# The notes.

PROMISE = "never two leaders, no acknowledged write lost"
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
    SafetyVerdict.UNSAFE: "a write can be lost{}",
    SafetyVerdict.SAFE: "no write is lost{} (explored to the end)",
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
STOP_ALL = "Or stop all servers, then start them with the new files: ask with `--how stop-all`."


def notes(plan: Plan) -> list[str]:
    """The lines under the recommendation."""
    warnings = dict.fromkeys((*plan.request.old.warnings, *plan.request.new.warnings))
    lines = [f"- **Warning**: {escaped(warning)}" for warning in warnings]
    if plan.left_out:
        verb = "is" if len(plan.left_out) == 1 else "are"
        missing = f"{servers(plan.left_out)} {verb} not in the order, and left as before"
        lines.append(f"- **Not the whole change**: {missing}.")
    for group in (_verdicts, _ways, _releases, _duties, _keys, _crashes):
        lines += [f"- {line}" for line in group(plan)]
    return lines


# The verdict and its basis.


def _verdicts(plan: Plan) -> Iterator[str]:
    yield from (f"**Not known**: {reason_words(gap)}." for _, gap in plan.direct.facts_of_now())
    by_restarts = plan.reconfig_route is None and any(_steps(part) for part in plan.advised)
    if by_restarts and plan.outcome is SafetyVerdict.SAFE:
        yield _basis(plan.advised)
    if _is_searched(plan) and plan.direct.outcome is SafetyVerdict.SAFE and plan.direct.order_proofs:
        yield "Other orders were not judged."
    whole = f"In one go, in the order {order_words(plan.direct.orders[0])}, it" if _is_searched(plan) else "It"
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
        if plan.back.stage.absent and plan.back.outcome is SafetyVerdict.SAFE:
            absent = servers(sorted(plan.back.stage.absent))
            yield f"The way back takes it that {absent} never ran. After a start of {absent} it is not decided."


def _steps(part: PlanRoute) -> bool:
    return any(order.steps for order in part.orders) or part.unchanged


def _basis(parts: Sequence[PlanRoute]) -> str:
    claims = [claim for part in parts for claim in part.claims]
    safe = [claim for claim in claims if claim.question in SAFETY and claim.evidence.outcome is SafetyVerdict.SAFE]
    reasons = {claim.evidence.reason for claim in safe}
    healing = {claim.evidence.outcome for claim in claims if claim.question is Question.HEALING and not claim.faults}
    faults = max(part.faults for part in parts)
    if reasons <= PROVED:
        sentence = f"**Proved** for any order and any faults: {PROMISE}."
    elif reasons <= {*PROVED, Reason.PROVED_IN_ORDER}:
        sentence = f"**Proved in this order**, for any faults: {PROMISE}."
    else:
        sentence = f"**Explored to the end**, with up to {faults} fault{'s' * (faults != 1)}: {PROMISE}."
    if healing == {SafetyVerdict.SAFE}:
        return f"{sentence} All serve in the end."
    return f"{sentence} Not decided: whether all serve in the end." if SafetyVerdict.OPEN in healing else sentence


def _problem(part: PlanRoute, name: str) -> Iterator[str]:
    """Why a stage is not safe; not where a run shows it, which the story tells."""
    match part.outcome:
        case SafetyVerdict.UNSAFE:
            reasons = [claim.evidence for claim in part.claims if claim.evidence.reason is Reason.NOT_DURABLE]
            if reasons:
                yield f"{name} is unsafe: {'; '.join(dict.fromkeys(map(reason_words, reasons)))}."
            if part.stage.moved:
                yield f"With the disks moved: {WORDS[part.outcome_with_disks]}."
        case SafetyVerdict.STALLS:
            answer = part.answer(Question.HEALING, faulty=False)
            where, result = reason_words(answer), answer.finding
            if result is not None and result.stuck is not None:
                number, step = next(p for p in enumerate(result.spec.steps, start=1) if p[1].sid == result.stuck)
                where = f"after step {number}, {step}, {who_looks(result.looking)} LOOKING"
            yield f"{name} comes to a stop: {where}. No acknowledged write is lost."
        case SafetyVerdict.OPEN if not any(part.facts_of_now()):  # which is told once
            for reason, dangers in _open(part).items():
                yield f"{name} is not decided ({reason}). Not excluded: {', or '.join(dict.fromkeys(dangers))}."
    if part.outcome in (SafetyVerdict.OPEN, SafetyVerdict.SAFE) and any(order.vain for order in part.orders):
        where = "On the way back not every step" if part.stage.absent else "Not every step"
        yield f"{where} may be waited for: see the steps."


def _open(part: PlanRoute) -> dict[str, list[str]]:
    """The questions without an answer, in the words of an operator, by reason."""
    reasons: dict[str, list[str]] = {}
    is_cut = any(result.end is RunEnd.NO_KERNELS for result in part.runs)
    unfinished = f"the search was not finished: {LARGER}" if is_cut else UNFINISHED
    for claim in part.claims:
        if claim.evidence.outcome is SafetyVerdict.OPEN:
            because = unfinished if claim.evidence.reason in OF_THE_SEARCH else reason_words(claim.evidence)
            reasons.setdefault(because, []).append(DANGERS[claim.question])
    return reasons


def _ways(plan: Plan) -> Iterator[str]:
    """The other ways to make the change in one go, where the plan recommends that."""
    answers = [answer for answer in plan.ways if answer.way is not plan.request.way]
    if not answers or not plan.direct.stage.remaining or plan.request.disks or plan.outcome is not SafetyVerdict.SAFE:
        return
    if plan.stages or plan.reconfig_route is not None or plan.releases is not None:
        return
    if all(answer.outcome is SafetyVerdict.SAFE for answer in plan.ways):
        yield "Every other way to do it is safe, too."
        return
    for outcome, words in WAY_VERDICTS.items():
        ways = [way.way for way in answers if way.outcome is outcome]
        updates = [way for way in ways if way.is_of_controller]
        names = [WAYS[way] for way in ways if len(updates) < 3 or way not in updates]
        names += [ANY_UPDATE] if len(updates) == 3 else []
        if names:
            yield f"**{words}**: {'; '.join(names) if len(ways) < len(answers) else EVERY_OTHER}."
    if plan.depends_on_the_way:
        safe = (answer.way for answer in plan.ways if answer.outcome is SafetyVerdict.SAFE)
        flags = " or ".join(code(f"--how {way.value}") for way in dict.fromkeys((plan.request.way, *safe)))
        yield f"**The gate does not pass**: nothing says how the change is applied. Name a safe way: {flags}."


def _releases(plan: Plan) -> Iterator[str]:
    releases, answer = plan.request.releases, plan.releases
    if releases is None or not plan.direct.stage.remaining:
        return
    if answer is None:
        yield f"**ZooKeeper {releases}**: its defects were not looked at, since the steps are not safe without them."
        return
    quiet = "nothing is" if answer.is_safe_if_quiet else "that is not decided"
    under = f" {needs(answer.finding)}" if answer.finding is not None else ""
    writing = DEFECTS.get(answer.verdict(), "the search was not finished{}").format(under)
    yield f"**ZooKeeper {releases}**: while clients write, {writing}. Without writes {quiet}."
    if answer.staying is not None:
        yield STAYING.get(answer.staying.outcome, UNDECIDED).format(old=releases.old)
    if answer.culprits:
        names = ", ".join(code(defect.value) for defect in answer.culprits)
        yield f"One of these defects is enough: {names}."


def _duties(plan: Plan) -> Iterator[str]:
    """The duties of the operator because of addresses, the platform and `reconfig`."""
    stage, answer, way = plan.direct.stage, plan.by_reconfig, plan.request.way
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
    working = plan.request.new.working
    operator = None if working is None else working.operator
    if operator is not None and plan.request.old.view != plan.request.new.view:
        yield (
            f"**{operator.value} makes this change itself**, by `reconfig` and one server after the other. "
            "Leave it to the operator. The steps below are restarts with new files, and it does not do them."
        )
    working = working or plan.request.old.working
    readiness = None if working is None else working.readiness
    by_controller = bool(stage.remaining) and way.is_of_controller and readiness is not Readiness.SERVING
    if by_controller and way is Way.UNREADY_CONTROLLER:
        probe = "" if readiness is None else f": {PROBES[readiness]}"
        yield (
            f"**Readiness**: a pod counts as ready before its server serves{probe}. So the StatefulSet does not wait "
            "between two steps. One that asks `srvr` for `Mode:` makes it wait."
        )
    elif by_controller:
        yield (
            "**Readiness**: a pod counts as ready here when its server serves. A probe by `ruok` answers while the "
            "server still looks for a leader; then ask with `--how unready-controller`."
        )
    if stage.gossips and operator is None:
        yield (
            "**Use `reconfig` for this change**: servers send each other versions of the configuration. One that "
            "restarts with other members in its file may take over those of another version."
        )
    if reverse_stops(plan):
        yield "**No way back by single restarts**: no server without `reconfigEnabled` follows those that have it."
    if answer is not None and answer.advised is None:
        yield from (f"**`reconfig` is not possible with these files.** {obstacle(fact)}" for fact in answer.refusals)
    elif answer is not None:
        yield f"{capital(safer(answer))}."


def _keys(plan: Plan) -> Iterator[str]:
    differences = plan.direct.stage.differences
    if plan.direct.stage.strangers and plan.request.way is not Way.STOP_ALL:
        sasl = any(difference.key.startswith("quorum.auth.") for difference in differences)
        tls = any(difference.key in ("sslQuorum", "portUnification") for difference in differences)
        stop = plan.outcome is SafetyVerdict.STALLS and not any(
            answer.way is Way.STOP_ALL and answer.outcome is SafetyVerdict.UNSAFE for answer in plan.ways
        )
        yield " ".join(([TLS] if tls or not sasl else []) + ([SASL] if sasl else []) + ([STOP_ALL] if stop else []))
    keys: dict[tuple[Effect, str], dict[str, None]] = {}
    for difference in differences:
        if difference.effect is not Effect.MODELLED:
            keys.setdefault((difference.effect, difference.note), {})[difference.key] = None
    for (effect, note), names in sorted(keys.items(), key=lambda item: -list(Effect).index(item[0][0])):
        advice = f" {capital(note)}." if note else ""
        yield f"**{capital(effect.value)}**: {', '.join(map(code, names))}.{advice}"


def _crashes(plan: Plan) -> Iterator[str]:
    """The file of a server that starts again after a crash, where the verdict may depend on it."""
    findings = (claim.evidence.finding for part in plan.advised for claim in part.claims)
    crashed = any(finding is not None and CRASHES in finding.spec.faults for finding in findings)
    if plan.request.at_step:
        yield "**Files are copied at their step**: a server that crashes before it starts again with its old file."
    elif crashed and not plan.request.way.is_of_controller:
        yield (
            "**A crash may bring the new file**, since it may lie ready on its server before its step. If you copy "
            "each file at its step, ask with `--files at-step`."
        )
