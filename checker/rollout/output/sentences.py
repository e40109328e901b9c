"""The words of an answer: one function words a verdict, one a reason, one a finding, and every section uses these.

    answer_sentence     the reason for the outcome of a question
    claim_table         claims as a table: a verdict and its reason in each cell
    finding_words       a violation with its needs
    run_sentence        the reason for the end of a run
    direction_sentence  the basis of a direction after a failed step
    changes             a stage in imperative words: `add servers 4 and 5`

Rules of this module: a sentence is made from the data, and nothing is decided by one. Every reason has a sentence.
"""

from collections.abc import Callable, Iterable, Sequence

from checker.printable import code, escaped
from checker.properties import ENSEMBLE_PROPERTIES
from checker.report.verdict import finding_text
from checker.rollout.answer import DIRECT, Plan
from checker.rollout.claims import Claim, Evidence, Reason, verdict_of, worst_of
from checker.rollout.disks import DiskHazard
from checker.rollout.orders import WAY_WORDS
from checker.rollout.reconfig.commands import MembershipCommand, RouteKind
from checker.rollout.route_verdict import LARGEST, Order, PlanRoute
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from checker.rollout.stages import Stage
from spec.packages import needed
from spec.quorum import Sid

REASONS = {
    Reason.PROVED: "proved by the quorums",
    Reason.PROVED_IN_ORDER: (
        "proved for any faults, by the theorem about roll-outs, if the conditions of the steps are kept"
    ),
    Reason.UNCHANGED: "as without the roll-out: no step changes a configuration as it is modelled",
    Reason.FOUND: "a run with this finding",
    Reason.FOUND_WITHOUT_FAULTS: "already without faults",
    Reason.EXPLORED: "no run was made",
    Reason.STEPS_OPEN: "the run about leaders that they rest on was not finished",
    Reason.OPEN_WITHOUT_FAULTS: "the same without faults has no answer",
    Reason.NO_WORK_LEFT: "the budget was used up before it",
    Reason.NO_FAULTS: "no faults were asked for",
    Reason.UNSAFE_ALREADY: "not explored, since the change is unsafe already",
    Reason.NOT_DEMANDED: "not explored, since it cannot change the verdict; `--explore` does it",
    Reason.NO_SUCH_ELECTION: "not explored: the model has no election that ends in this first state",
    Reason.VERSIONS: "not explored where configurations have versions",
    Reason.TOO_LARGE: f"more than {LARGEST} servers are not explored",
    Reason.OLD_DISK: "a disk at an old address may lack acknowledged writes ({})",
    Reason.ANY_ADDRESS: "which host names reach all addresses of a machine is unknown ({})",
    Reason.RECONFIG_OFF: (
        "a server without `reconfigEnabled` ({}) does not follow servers that have it. Service stops until the last "
        "server has its new file. Stop all servers, and start them with the new files"
    ),
    Reason.STRANGERS: "{} refuse each other while one of them has its new file",
    Reason.FOREIGN_OBSERVER: (
        "with the disk of another cluster an observer ({}) never serves, or serves znodes that were never written here"
    ),
    Reason.NOT_DURABLE: "with the new value of {} a server can lose what it has acknowledged",
    Reason.NOT_MODELLED: "the roll-out changes, or may change, {}, which is not modelled",
    Reason.UNSEEN: (
        "nothing shows whether {} run now. Name their client ports (HOST:PORT) with `--now`, and with `--down` what "
        "stays stopped"
    ),
    Reason.UNSTATED_FILE: (
        "nothing shows with which file {} run: their answers do not state the keys that differ. Give the folder of "
        "the files with which they were started, too"
    ),
    Reason.OBSERVER_COUNTED: (
        "an observer acknowledges without a log, and the leader counts it as a voter. Restart a promoted server first, "
        "a demoted server last"
    ),
    Reason.CRASH_EXPLORED: "explored with a crash of any server at any time, which starts again with either file",
    Reason.NO_CRASH_EXPLORED: "no finished run has a server that fails",
    Reason.TWO_DISKS: "a failed server may have two disks, on its old and on its new host",
    Reason.BACK_NOT_EXPLORED: "`--now` asks about it",
    Reason.DEFECTS: "a defect of the release can lose a write",
    Reason.DEFECTS_NOT_EXPLORED: "not explored to the end with the defects of the release",
}
WORDS = {verdict: verdict.value.upper() for verdict in SafetyVerdict}
RECONFIG_WORDS = {
    RouteKind.ONE_AT_A_TIME: "reconfig, one voter in each command",
    RouteKind.AT_ONCE: "reconfig, all in one command",
}
HAZARD_NAMES = {
    DiskHazard.EMPTY: "an empty disk",
    DiskHazard.STALE: "a disk of an earlier time",
    DiskHazard.FOREIGN: "a disk of another cluster",
}
LOST_WRITES = frozenset({"LeaderLogCompleteness", "AcknowledgedLogCompleteness"})
LATE = "without a fault, if messages are late"


LARGER = str(needed("numba", "a larger run"))
ENDS = {
    RunEnd.VIOLATION: "a violation",
    RunEnd.WORK: "{0.states:,} states to depth {0.depth}, not all; no violation among them",
    RunEnd.MEMORY: "{0.states:,} states to depth {0.depth}, not all; no violation among them; the memory was used up",
    RunEnd.NO_KERNELS: f"{{0.states:,}} states, not all; no violation among them; {LARGER}",
    RunEnd.ELECTIONS: "{0.states:,} states within {0.spec.elections} elections; the bound is used up before all settle",
    RunEnd.INIT_LIMIT: "{0.states:,} states, until all servers wait for `initLimit`, which is not explored",
    RunEnd.NO_WORK_LEFT: REASONS[Reason.NO_WORK_LEFT],
    RunEnd.IMPOSSIBLE: REASONS[Reason.NO_SUCH_ELECTION],
    RunEnd.EXHAUSTED: "all {0.states:,} states, no violation",
}


def run_sentence(result: RunResult) -> str:
    """The reason for the end of a run."""
    if result.end is RunEnd.VIOLATION and result.found is not None:
        return finding_text(result.found)
    if result.end is RunEnd.STALL:
        return f"{who_looks(result.looking)} LOOKING, and waiting does not help"
    return ENDS[result.end].format(result)


def reason_words(answer: Evidence) -> str:
    """The reason for the outcome of a question, as Markdown."""
    if answer.reason is Reason.FOUND and answer.finding is not None:
        return escaped(run_sentence(answer.finding))
    return answer_sentence(answer, code)


def answer_sentence(answer: Evidence, named: Callable[[str], str] = str) -> str:
    """The reason for the outcome of a question; `named` makes the text of a key."""
    if answer.reason is Reason.FOUND and answer.finding is not None:
        return run_sentence(answer.finding)
    sids = [subject for subject in answer.subjects if isinstance(subject, int)]
    subjects = servers(sids) if sids else ", ".join(named(str(subject)) for subject in answer.subjects)
    reason, runs_seen = REASONS[answer.reason].format(subjects), _seen(answer.runs)
    match answer.reason:
        case Reason.EXPLORED:
            return runs_seen or reason
        case Reason.PROVED | Reason.PROVED_IN_ORDER:
            return f"{reason}; {runs_seen}" if runs_seen else reason
        case Reason.STEPS_OPEN | Reason.OPEN_WITHOUT_FAULTS:
            return f"{runs_seen}, but {reason}"
    return reason


def direction_sentence(direction: Evidence) -> str:
    """The reason for a direction about a failed step, and the checks that are still to be made."""
    if direction.reason is not Reason.PROVED_IN_ORDER:
        return answer_sentence(direction)
    checks = " and ".join(f"before step {condition.step}" for condition in direction.conditions)
    return "proved in this order" + (f", with the check {checks}" if checks else "")


def _seen(runs: Sequence[RunResult]) -> str:
    """The size of runs without a violation, and whether they were finished."""
    if not runs:
        return ""
    states = sum(result.states for result in runs)
    unfinished = sum(result.outcome is not SafetyVerdict.SAFE for result in runs)
    extent = f"{len(runs)} run{'s' * (len(runs) > 1)}, {states:,} states"
    extent += ", behind one order of the steps before" if any(result.spec.opening for result in runs) else ""
    part = "" if unfinished == len(runs) else f"{unfinished} of the runs "
    reason = f" ({LARGER})" if any(result.end is RunEnd.NO_KERNELS for result in runs) else ""
    return f"{extent}, {part}not explored to the end{reason}" if unfinished else f"{extent}, all explored"


def claim_table(plan: Plan) -> list[str]:
    """Every claim of a plan: a row for questions about a route, and a column for each number of faults."""
    names = {DIRECT: "in one go" if plan.back is None else "to go on", "back": "to go back"}
    names |= {
        f"stage-{number}": f"stage {number}, {part.stage.title}" for number, part in enumerate(plan.stages, start=1)
    }
    names |= {f"{DIRECT}/{way.value}": words for way, words in WAY_WORDS.items()}
    names |= {f"reconfig/{kind.value}": words for kind, words in RECONFIG_WORDS.items()}
    counts = sorted({claim.faults for claims in plan.table.values() for claim in claims})
    rows: dict[tuple[str, ...], list[str]] = {}
    for route, claims in plan.table.items():
        name = f"{escaped(names.get(route, 'the steps'))}: {WORDS[verdict_of(claims)]}"
        for question in dict.fromkeys(claim.question for claim in claims):
            answered = [claim for claim in claims if claim.question is question]
            cells = (_cell([claim for claim in answered if claim.faults == count]) for count in counts)
            rows.setdefault((name, *cells), []).append(question.value)
    heads = (f"under {count} fault{'s' * (count > 1)}" if count else "without faults" for count in counts)
    lines = [("route", "question", *heads), ["---"] * (2 + len(counts))]
    lines += [(name, "; ".join(questions), *cells) for (name, *cells), questions in rows.items()]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(claims: Sequence[Claim]) -> str:
    """The verdict of the worst claim, and its reason."""
    if not claims:
        return "not asked"
    answer = worst_of([claim for claim in claims if claim.counts] or claims)
    is_unsafe, words = answer.outcome is SafetyVerdict.UNSAFE, escaped(answer_sentence(answer))
    if is_unsafe and answer.finding is not None and answer.reason is Reason.FOUND:
        words = finding_words(answer.finding)
    return f"{'**UNSAFE**' if is_unsafe else WORDS[answer.outcome]}: {words}"


def needs(result: RunResult) -> str:
    """The needs of a run with a finding, apart from the steps of the operator.

    The model lets every message take any time. Without a fault a committed write is lost only if it reaches too few
    servers in time, and if the next election does not hear those that have it: `finalizeWait` is 200 ms.
    """
    if result.spec.under:
        return f"with {result.spec.under}"
    return LATE if result.prop in LOST_WRITES and result.trace is not None else "without any fault"


def clause(result: RunResult) -> str:
    """The violation of a run, for readers without knowledge of the properties."""
    declared = ENSEMBLE_PROPERTIES.get(result.prop)
    return (declared and declared.violation) or run_sentence(result)


def finding_words(result: RunResult) -> str:
    """The violation of a run, with its needs."""
    return escaped(f"{needs(result)}, {clause(result)}")


def verdict_words(judged: PlanRoute | Plan) -> str:
    """The verdict in capitals. A server on another host has its old disk or an empty one: that makes two verdicts."""
    stages = [judged] if isinstance(judged, PlanRoute) else judged.advised
    moved = {sid for part in stages for sid in part.stage.moved}
    if not moved:
        return WORDS[judged.outcome]
    same, empty = ("its disk", "an empty disk") if len(moved) == 1 else ("their disks", "empty disks")
    return f"{WORDS[judged.outcome_with_disks]} with {same}, {WORDS[judged.outcome]} with {empty}"


def change_of(plan: Plan, part: PlanRoute) -> str:
    """A stage of a plan in imperative words; an upgrade has one stage."""
    releases = plan.request.releases
    if releases is not None and releases.is_upgrade:
        return f"change ZooKeeper {releases.old} to {releases.new}"
    return changes(part.stage)


def changes(stage: Stage) -> str:
    """A stage in imperative words."""
    old, new = stage.old.view, stage.new.view
    added, removed = new.members - old.members, old.members - new.members
    if len(added) == len(removed) == 1:
        parts = [f"replace server {min(removed)} by server {min(added)}"]
    else:
        parts = [f"{verb} {servers(sids)}" for verb, sids in (("add", added), ("remove", removed)) if sids]
    for role, sids in (("voter", old.observers & new.voters), ("observer", old.voters & new.observers)):
        if sids:
            article = "an" if role == "observer" else "a"
            parts.append(f"make {servers(sids)} {f'{article} {role}' if len(sids) == 1 else f'{role}s'}")
    if moved := frozenset(stage.moved) & new.members:
        parts.append(f"move {servers(moved)} to {'another host' if len(moved) == 1 else 'other hosts'}")
    if rest := frozenset(stage.readdressed) - moved:
        parts.append(f"change the {'address' if len(rest) == 1 else 'addresses'} of {servers(rest)}")
    if old.voters == new.voters and old.quorums != new.quorums:
        parts.append("change groups or weights")
    return " and ".join(parts) or "change these files"


def command_words(command: MembershipCommand) -> str:
    """A `reconfig` command in imperative words."""
    before, change = command.before, command.change
    groups = (
        ("add {}", change.voters - before.members),
        ("make {} a voter", change.voters & before.observers),
        ("add observer {}", change.observers - before.members),
        ("make {} an observer", change.observers & before.voters),
        ("remove {}", change.leaving),
    )
    return " and ".join(words.format(servers(sids)) for words, sids in groups if sids)


def order_words(order: Order) -> str:
    """The servers of an order, one after the other."""
    return ", ".join(str(step.sid) for step in order.steps)


def who_looks(looking: tuple[Sid, ...]) -> str:
    """The servers that look for a leader: `server 2 stays`, `servers 2 and 4 stay`."""
    return f"{servers(looking)} stay{'s' * (len(looking) == 1)}" if looking else "some servers stay"


def servers(sids: Iterable[Sid]) -> str:
    """`server 4`, `servers 4 and 5`, or `servers 1 to 4`."""
    numbers = sorted(sids)
    return f"server{'s' * (len(numbers) > 1)} {row_of(numbers)}"


def row_of(numbers: Sequence[int]) -> str:
    """`5`, `1 to 4`, or `1, 3 and 4`."""
    first, last = numbers[0], numbers[-1]
    is_long = len(numbers) > 3 and list(numbers) == list(range(first, last + 1))
    return f"{first} to {last}" if is_long else listed(numbers)


def listed(items: Iterable[object]) -> str:
    """`4`, `4 and 5`, or `4, 5 and 6`."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}" if first else last
