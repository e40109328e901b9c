"""Histories that clients recorded, and checks of a running ensemble against the guarantees that clients have.

`check` runs all checks; `Findings` has their results and the report on them: text, plain data and an exit code.

Rules this module keeps:

- Every check runs, even after a violation in another one. Each check reports its first violation.
- A history does not pass if a search gave up, or if it holds nothing to judge. Nor does it pass with a reply that has
  no zxid: the order of this reply was not judged, and the report names the first one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from checker.command import ExitCode
from checker.histories import linearizable
from checker.histories.jepsen import load_registers
from checker.histories.linearizable import BOUND, CasRegister, NoAnswer, SequentialSpecification, Znode
from checker.histories.reads import StaleRead, check_sessions, check_synced_reads
from checker.histories.record import (
    ClientHistory,
    ClientHistoryError,
    Entry,
    FinalZnodes,
    Leaf,
    Operation,
    Pause,
    StaleBound,
    Violation,
    history_of,
    load,
    save,
)
from checker.histories.writes import Writes, check_replicas, check_zxids, compared_paths
from checker.job import Verdict

__all__ = [
    "ClientHistory",
    "ClientHistoryError",
    "Entry",
    "FinalZnodes",
    "Findings",
    "HistoryReport",
    "Leaf",
    "Operation",
    "Pause",
    "StaleBound",
    "Violation",
    "check",
    "history_of",
    "load",
    "report_of",
    "save",
]


class Findings(msgspec.Struct, frozen=True):
    """The results: violations, excused stale reads, keys whose search gave up, and counts of the judged entries."""

    violations: tuple[Violation, ...]
    stale: tuple[StaleRead, ...]
    undecided: tuple[str, ...]
    operations: int
    answered: int
    acknowledged: int
    unknown: int
    synced: int
    sessions: int
    replicas: int
    znodes: int = 0
    """The paths that replicas were compared at, without those that servers describe themselves in."""
    unmarked: int = 0
    first_unmarked: Operation | None = None
    """The operations whose place among the transactions is not known and was not judged: their number, and one."""

    @property
    def vacuous(self) -> bool:
        """Whether something was not judged: a reply has no zxid, or there is neither a reply that says something about
        the znodes or the session, nor a pair of replicas with a znode.
        """
        is_compared = self.replicas > 1 and self.znodes > 0
        return not self.violations and bool(self.unmarked or not (self.answered or is_compared))

    @property
    def passed(self) -> bool:
        """Whether there was something to judge, every check was completed, and no check failed."""
        return self.verdict is Verdict.PASSED

    @property
    def verdict(self) -> Verdict:
        """The verdict; a violation outweighs a search that gave up."""
        if self.violations:
            return Verdict.VIOLATED
        if self.undecided:
            return Verdict.INCOMPLETE
        return Verdict.VACUOUS if self.vacuous else Verdict.PASSED

    def __str__(self) -> str:
        counts = (
            f"{self.operations} operations of {self.sessions} sessions: {self.acknowledged} acknowledged writes,"
            f" {self.synced} synced reads, {self.unknown} without an answer; {self.replicas} replicas compared"
        )
        longest = max((read.seconds for read in self.stale), default=0.0)
        excused = [f"{len(self.stale)} stale synced reads in windows of deposed leaders, the longest {longest:.3f} s"]
        gave_up = [f"undecided: {key}: the search for an order was given up" for key in self.undecided]
        lines = [f"{self.verdict.value}: {counts}", *(excused if self.stale else []), *map(str, self.stale)]
        if self.unmarked:
            subject = f"not judged: the order of {self.unmarked} operations whose replies have no zxid, such as"
            gave_up.append(f"{subject} {self.first_unmarked}")
        return "\n".join([*lines, *gave_up, *map(str, self.violations)])


def check(history: ClientHistory, bound: int = BOUND) -> Findings:
    """Run all checks; `bound` limits the configurations of each linearizability search."""
    writes = Writes(history)
    synced = check_synced_reads(history)
    excused = {id(stale.read) for stale in synced.stale}
    constrained = {key: [op for op in ops if _ordered(op, excused)] for key, ops in history.by_key.items()}
    violation, undecided = _linearizable(constrained, bound)
    violations = [violation]
    violations += [check_zxids(history, writes), check_sessions(history, writes), synced.violation]
    violations.append(check_replicas(history, writes))
    unmarked = [op for op in history.operations if _tells(op) and not op.marked]
    return Findings(
        violations=tuple(violation for violation in violations if violation is not None),
        stale=synced.stale,
        undecided=undecided,
        operations=len(history.operations),
        answered=sum(_tells(op) or op.zxid > 0 for op in history.operations),
        acknowledged=sum(op.acknowledged for op in history.operations),
        unknown=sum(op.outcome == "unknown" for op in history.operations),
        synced=sum(op.kind == "sync+get" and op.outcome != "unknown" for op in history.operations),
        sessions=len({op.session for op in history.operations}),
        replicas=len(history.replicas),
        znodes=len(compared_paths(history.replicas)),
        unmarked=len(unmarked),
        first_unmarked=unmarked[0] if unmarked else None,
    )


def check_registers(registers: Mapping[str, Sequence[Operation]], processes: int, bound: int = BOUND) -> Findings:
    """Judge the histories of registers, by key."""
    violation, undecided = _linearizable(registers, bound, CasRegister("nil"))
    operations = [operation for register in registers.values() for operation in register]
    answered = [op for op in operations if op.outcome == "ok"]
    return Findings(
        violations=() if violation is None else (violation,),
        stale=(),
        undecided=undecided,
        operations=len(operations),
        answered=len(answered),
        acknowledged=sum(op.is_write for op in answered),
        unknown=len(operations) - len(answered),
        synced=sum(not op.is_write for op in answered),
        sessions=processes,
        replicas=0,
    )


def _linearizable(
    by_key: Mapping[str, Sequence[Operation]], bound: int, object_: SequentialSpecification = Znode()
) -> tuple[Violation | None, tuple[str, ...]]:
    """The first violation, and the keys whose search gave up before it."""
    undecided: list[str] = []
    for key, operations in by_key.items():
        answer = linearizable.check(operations, bound, object_)
        if isinstance(answer, NoAnswer):
            undecided.append(key)
        elif answer is not None:
            return answer, tuple(undecided)
    return None, tuple(undecided)


def _tells(operation: Operation) -> bool:
    """Whether the reply depends on the state of the znode."""
    return operation.outcome == "ok" or operation.refused


def _ordered(operation: Operation, excused: set[int]) -> bool:
    """Whether linearizability constrains an operation; it does not constrain plain reads and excused reads."""
    return operation.kind != "get" and id(operation) not in excused


EXIT_CODES = {
    Verdict.PASSED: ExitCode.PASSED,
    Verdict.VACUOUS: ExitCode.VACUOUS,
    Verdict.INCOMPLETE: ExitCode.INCOMPLETE,
    Verdict.VIOLATED: ExitCode.SAFETY,
}


class HistoryReport(msgspec.Struct, frozen=True):
    """The findings as text and as plain data, and the exit code of the process."""

    text: str
    data: object
    exit_code: ExitCode


def report_of(files: Sequence[Path]) -> HistoryReport:
    """Judge one history; several files are parts of one, and `.edn` is one of Jepsen. Raises ClientHistoryError."""
    if any(file.suffix == ".edn" for file in files):
        if len(files) > 1:
            raise ClientHistoryError(f"{', '.join(map(str, files))}: a history in EDN is one file; name it alone")
        findings = check_registers(*load_registers(files[0]))
    else:
        findings = check(load(*files))
    plain = msgspec.to_builtins(findings) | {"passed": findings.passed, "verdict": findings.verdict.value}
    return HistoryReport(str(findings), plain, EXIT_CODES[findings.verdict])
