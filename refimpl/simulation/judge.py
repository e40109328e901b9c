"""The verdict on a run: its journals against the specification, its history against the guarantees of clients.

Rules of this module:

- Every step of every journal is replayed, and every message compared. The invariants are evaluated for one seed in
  `SAMPLE`.
- Every check runs, even after a failure of another one.
- A journal is written to a file for the validation, which reads files as those of a live server.
"""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from checker.histories import ClientHistoryError, FinalZnodes, check, history_of
from checker.job import Verdict
from checker.validate import JournalError, validate
from refimpl.simulation.run import Outcome
from refimpl.simulation.workload import Numbered
from spec.quorum import Sid

SAMPLE = 4


def judged(outcome: Outcome) -> tuple[str, ...]:
    """The failures of a run: those it noticed, then those in its record. Empty if it passed."""
    return (
        *outcome.failures,
        *_journals(outcome.journals, _is_sampled(outcome)),
        *_history(outcome),
        *_pairs(outcome),
        *_numbers(outcome),
    )


def _is_sampled(outcome: Outcome) -> bool:
    """Whether the invariants are evaluated too. That takes longer than the run, so one seed in `SAMPLE` is chosen.

    They do not apply to a run in which the operator has written files: the view in them was never committed.
    """
    return not outcome.joined and zlib.crc32(outcome.plan.seed.encode()) % SAMPLE == 0


def _journals(journals: Mapping[Sid, bytes], together: bool) -> Sequence[str]:
    with tempfile.TemporaryDirectory(prefix="quorate-simulate-") as folder:
        paths = []
        for sid, data in journals.items():
            if data:
                paths.append(Path(folder) / f"server-{sid}.jsonl")
                paths[-1].write_bytes(data)
        if not paths:
            return []  # no server has started, which is a failure already
        try:
            found = validate(paths, together=together)
        except JournalError as error:
            return [f"journal: {error}".replace(f"{folder}/", "")]
    if found.verdict is Verdict.VIOLATED:
        return [f"journal: {mismatch}".replace(f"{folder}/", "") for mismatch in found.mismatches[:3]]
    return []


def _history(outcome: Outcome) -> Sequence[str]:
    try:
        findings = check(history_of(outcome.entries))
    except ClientHistoryError as error:
        return [f"history: {error}"]
    undecided = [f"history: {key}: the search for an order was given up" for key in findings.undecided]
    return [*(f"history: {violation}" for violation in findings.violations), *undecided]


def _replica(outcome: Outcome) -> FinalZnodes | None:
    return next((entry for entry in outcome.entries if isinstance(entry, FinalZnodes)), None)


def _pairs(outcome: Outcome) -> Sequence[str]:
    """Both znodes of a multi exist, or none; both if it was acknowledged."""
    replica = _replica(outcome)
    if replica is None:
        return []
    found = []
    for pair in outcome.pairs:
        there = [path for path in pair.paths if path in replica.znodes]
        if len(there) == 1 or (pair.acknowledged and not there):
            found.append(f"a multi created {list(pair.paths)}, and {there} exist on server {replica.server}")
    return found


def _numbers(outcome: Outcome) -> Sequence[str]:
    """Numbers of sequential znodes are unique, and rise in the order of real time."""
    found: list[str] = []
    highest: Numbered | None = None
    by_end = sorted(outcome.numbered, key=lambda each: each.completed)
    waiting = list(by_end)
    if len({each.number for each in by_end}) < len(by_end):
        found.append("two sequential znodes have one number")
    for each in sorted(outcome.numbered, key=lambda each: each.invoked):
        while waiting and waiting[0].completed < each.invoked:
            ended = waiting.pop(0)
            if highest is None or ended.number > highest.number:
                highest = ended
        if highest is not None and highest.number > each.number:
            found.append(f"sequential znode {each.number} was asked for after {highest.number} was acknowledged")
            break
    return found
