"""The conditions of a violation: its faults or, without a fault, the messages that have to be late.

A run without a fault may still need a slow network: the model lets every message take any time. A committed write is
lost without a fault only if it reaches too few servers in time, and if the next election does not hear those that have
it. A server that looks for a leader waits 200 ms for better votes (`FastLeaderElection.finalizeWait`).
"""

from checker.models.ensemble.actions import Action
from checker.rollout.runs import RunResult
from checker.traces.trace import Trace

LOST_WRITES = frozenset({"LeaderLogCompleteness", "AcknowledgedLogCompleteness"})


def conditions(result: RunResult) -> str:
    """What a run with a finding needs besides the steps of the operator."""
    if result.spec.under:
        return f"with {result.spec.under}"
    if result.prop not in LOST_WRITES or result.trace is None:
        return "without any fault"
    late, unheard = _late(result, result.trace), _unheard(result, result.trace)
    delay = f"messages to {_listed(late)} are late" if late else "messages are late"
    silence = f" and the election does not hear {_listed(unheard)} for 200 ms" if unheard else ""
    return f"without a crash or a cut, if {delay}{silence},"


def where_the_write_was(result: RunResult) -> tuple[str, ...]:
    """Of a write that is lost: the disks that have it; empty for other findings."""
    trace = result.trace
    if trace is None or result.prop not in LOST_WRITES:
        return ()
    holders = _holders(trace)
    has = f"on the disk of {_listed(holders)}" if holders else "on no disk"
    return (f"now the write {_missing(trace)} is {has}, not on that of the new leader",)


def _missing(trace: Trace) -> str:
    return str(dict(trace.values)["missing"]).partition(",")[0]


def _holders(trace: Trace) -> list[str]:
    """The servers that have the lost write on disk at the end."""
    missing, lanes = _missing(trace), trace.steps[-1].lanes.items()
    return [lane for lane, fields in lanes if any(str(txn).split("=")[0] == missing for txn in fields.get("log", ()))]


def _electors(result: RunResult) -> set[str]:
    """The servers of the last election, which the lost write has not reached."""
    elections = [move for move in result.moves if move.action is Action.ELECT]
    if not elections:
        return set()
    leader, members = elections[-1].arguments
    return {f"server.{sid}" for sid in (leader, *members)}


def _unheard(result: RunResult, trace: Trace) -> list[str]:
    """The servers that run and have the write, and that the election does not hear."""
    lanes, electors = trace.steps[-1].lanes, _electors(result)
    return [lane for lane in _holders(trace) if lanes[lane].get("state") != "down" and lane not in electors]


def _late(result: RunResult, trace: Trace) -> list[str]:
    """The servers of the last election that followed when the client wrote."""
    written = next((at for at, move in enumerate(result.moves) if move.action is Action.CLIENT_WRITE), None)
    if written is None:
        return []
    lanes = trace.steps[written + 1].lanes
    return sorted(lane for lane in _electors(result) if lanes[lane].get("state") in ("FOLLOWING", "OBSERVING"))


def _listed(lanes: list[str]) -> str:
    """`server 3`, `servers 4 and 5`, or `servers 1, 4 and 5`."""
    sids = [lane.removeprefix("server.") for lane in lanes]
    return ("servers " if len(sids) > 1 else "server ") + " and ".join(filter(None, [", ".join(sids[:-1]), sids[-1]]))
