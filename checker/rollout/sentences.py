"""The sentences of the planner's data: why a run ended, why a cell has its outcome, what an answer is based on.

Rules of this module: a sentence is made from the data, and nothing is decided by one. Every reason has a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from checker.report.verdict import finding_text
from checker.rollout.assess import LARGEST, QuestionAnswer, Reason
from checker.rollout.failures import Basis, DirectionAnswer
from checker.rollout.runs import RunEnd, RunResult, SafetyVerdict
from spec.quorum import Sid

PROVED = "proved by z3"
REASONS = {
    Reason.UNCHANGED: "as without the roll-out: no step changes a configuration as it is modelled",
    Reason.FOUND_WITHOUT_FAULTS: "already without faults",
    Reason.STEPS_OPEN: "the run about leaders that they rest on was not finished",
    Reason.OPEN_WITHOUT_FAULTS: "the same without faults has no answer",
    Reason.NO_WORK_LEFT: "the budget was used up before it",
    Reason.NO_FAULTS: "no faults were asked for",
    Reason.NO_SUCH_ELECTION: "not explored: the model has no election that ends in this first state",
    Reason.VERSIONS: "not explored where configurations have versions",
    Reason.TOO_LARGE: f"more than {LARGEST} servers are not explored",
    Reason.OLD_DISK: "has run with another address: a disk on its old host may lack acknowledged writes",
    Reason.ANY_ADDRESS: "listens on all addresses of its machine: which host names reach it is unknown",
    Reason.OBSERVER_COUNTED: (
        "a server runs as an observer while the leader's file counts it as a voter: it acknowledges without a log, and "
        "a committed write can be lost; restart a promoted server first, a demoted server last"
    ),
}
BASES = {
    Basis.PROVED: PROVED,
    Basis.CRASH_EXPLORED: "explored with a crash of any server at any time, which starts again with either file",
    Basis.NO_CRASH_EXPLORED: "no finished run has a server that fails",
    Basis.TWO_DISKS: "addresses change: a failed server may have two disks, on its old and on its new host",
    Basis.BACK_NOT_EXPLORED: "not explored; `--now` asks about it",
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
        case Reason.PROVED:
            return f"{PROVED}; {seen}" if seen else PROVED
        case Reason.EXPLORED:
            return seen
        case Reason.STEPS_OPEN | Reason.OPEN_WITHOUT_FAULTS:
            return f"{seen}, but {REASONS[answer.reason]}"
        case Reason.OLD_DISK | Reason.ANY_ADDRESS:
            return f"server {subjects} {REASONS[answer.reason]}"
        case Reason.NOT_MODELLED:
            return f"the roll-out changes {subjects}, which is not modelled"
    return REASONS[answer.reason]


def direction_sentence(direction: DirectionAnswer) -> str:
    """The basis of an direction about a failed step."""
    return answer_sentence(direction.answer) if direction.answer is not None else BASES[direction.basis]


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
