"""The sentences of the planner's data: why a run ended, why a cell has its outcome, what an answer is based on.

Rules of this module: a sentence is made from the data, and nothing is decided by one. Every reason has a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from checker.report.verdict import told
from checker.rollout.assess import LARGEST, Cell, Reason
from checker.rollout.failures import Answer, Basis
from checker.rollout.runs import End, Outcome, Ran
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


def of_run(ran: Ran) -> str:
    """The reason for the end of a run."""
    match ran.end:
        case End.VIOLATION:
            return told(ran.found) if ran.found is not None else "a violation"
        case End.STALL:
            return f"{who_looks(ran.looking)} LOOKING, and waiting does not help"
        case End.WORK | End.MEMORY:
            full = "; the memory was used up" if ran.end is End.MEMORY else ""
            return f"{ran.states:,} states to depth {ran.depth}, not all; no violation among them{full}"
        case End.ELECTIONS:
            most = ran.asked.elections
            return f"{ran.states:,} states within {most} elections; that bound is used up before all settle"
        case End.NO_WORK_LEFT:
            return REASONS[Reason.NO_WORK_LEFT]
        case End.IMPOSSIBLE:
            return REASONS[Reason.NO_SUCH_ELECTION]
    return f"all {ran.states:,} states, no violation"


def of_cell(cell: Cell) -> str:
    """The reason for the outcome of a cell."""
    subjects, seen = ", ".join(map(str, cell.subjects)), _seen(cell.runs)
    match cell.reason:
        case Reason.FOUND if cell.ran is not None:
            return of_run(cell.ran)
        case Reason.PROVED:
            return f"{PROVED}; {seen}" if seen else PROVED
        case Reason.EXPLORED:
            return seen
        case Reason.STEPS_OPEN | Reason.OPEN_WITHOUT_FAULTS:
            return f"{seen}, but {REASONS[cell.reason]}"
        case Reason.OLD_DISK | Reason.ANY_ADDRESS:
            return f"server {subjects} {REASONS[cell.reason]}"
        case Reason.NOT_MODELLED:
            return f"the roll-out changes {subjects}, which is not modelled"
    return REASONS[cell.reason]


def of_answer(answer: Answer) -> str:
    """The basis of an answer about a failed step."""
    return of_cell(answer.cell) if answer.cell is not None else BASES[answer.basis]


def who_looks(looking: tuple[Sid, ...]) -> str:
    """The servers that look for a leader: `server 2 stays`, `servers 2 and 4 stay`."""
    if len(looking) == 1:
        return f"server {looking[0]} stays"
    return f"servers {', '.join(map(str, looking[:-1]))} and {looking[-1]} stay" if looking else "some servers stay"


def _seen(runs: Sequence[Ran]) -> str:
    """The size of runs without a violation, and whether they were finished."""
    if not runs:
        return ""
    states = sum(ran.states for ran in runs)
    unfinished = sum(ran.outcome is not Outcome.SAFE for ran in runs)
    what = f"{len(runs)} run{'s' * (len(runs) > 1)}, {states:,} states"
    if any(ran.asked.opening for ran in runs):
        what += ", behind one order of the steps before"
    if not unfinished:
        return f"{what}, all explored"
    which = "" if unfinished == len(runs) else f"{unfinished} of the runs "
    return f"{what}, {which}not explored to the end"
