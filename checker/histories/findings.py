"""All checks of a history, and what they came to.

Rules this module keeps: every check runs, whatever another one found; each reports its first violation; a search that
gave up is said, and keeps the history from passing.
"""

from __future__ import annotations

import msgspec

from checker.histories import linearizable, replicas, sessions, syncs, zxids
from checker.histories.linearizable import BOUND, Undecided
from checker.histories.record import History, Operation
from checker.histories.syncs import StaleRead
from checker.histories.violation import Violation
from checker.histories.writes import Writes


class Findings(msgspec.Struct, frozen=True):
    """What a history came to: violations, excused stale reads, keys whose search gave up, and how much was judged."""

    violations: tuple[Violation, ...]
    stale: tuple[StaleRead, ...]
    undecided: tuple[str, ...]
    operations: int
    acknowledged: int
    unknown: int
    synced: int
    sessions: int
    replicas: int

    @property
    def passed(self) -> bool:
        """Whether every check was carried to its end, and none was broken."""
        return not self.violations and not self.undecided

    def __str__(self) -> str:
        counted = (
            f"{self.operations} operations of {self.sessions} sessions: {self.acknowledged} acknowledged writes,"
            f" {self.synced} synced reads, {self.unknown} without an answer; {self.replicas} replicas compared"
        )
        longest = max((read.seconds for read in self.stale), default=0.0)
        excused = [f"{len(self.stale)} stale synced reads in windows of deposed leaders, the longest {longest:.3f} s"]
        gave_up = [f"undecided: {key}: the search for an order was given up" for key in self.undecided]
        verdict = "passed" if self.passed else "violated" if self.violations else "incomplete"
        lines = [f"{verdict}: {counted}", *(excused if self.stale else []), *map(str, self.stale)]
        return "\n".join([*lines, *gave_up, *map(str, self.violations)])


def check(history: History, bound: int = BOUND) -> Findings:
    """Hold a history to account; `bound` limits the configurations of each search for an order."""
    writes = Writes(history)
    synced = syncs.check(history)
    excused = {id(stale.read) for stale in synced.stale}
    violations: list[Violation | None] = []
    undecided: list[str] = []
    for key, operations in history.by_key.items():
        found = linearizable.check([op for op in operations if _ordered(op, excused)], bound)
        if isinstance(found, Undecided):
            undecided.append(key)
        elif found is not None:
            violations.append(found)
            break
    violations += [zxids.check(history, writes), sessions.check(history, writes), synced.violation]
    violations.append(replicas.check(history, writes))
    return Findings(
        violations=tuple(violation for violation in violations if violation is not None),
        stale=synced.stale,
        undecided=tuple(undecided),
        operations=len(history.operations),
        acknowledged=sum(op.acknowledged for op in history.operations),
        unknown=sum(op.outcome == "unknown" for op in history.operations),
        synced=sum(op.kind == "sync+get" and op.outcome != "unknown" for op in history.operations),
        sessions=len({op.session for op in history.operations}),
        replicas=len(history.replicas),
    )


def _ordered(operation: Operation, excused: set[int]) -> bool:
    """Whether an operation has to have its place in the order of its key: plain and excused reads have not."""
    return operation.kind != "get" and id(operation) not in excused
