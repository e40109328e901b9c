"""Instances of the premises on quorums and roles, for the views and the running servers of one roll-out.

The theorems speak of any stages. This module decides whether their premise on quorums holds of given stages, exactly.

What it does not decide: that the operator keeps the rule (conditions a and b of `checker.symbolic.zab.rollout`), and
that disks keep what was written to them. So an answer of None is not yet a proof that the roll-out is safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from checker.symbolic.disjoint import DisjointQuorums, disjoint_quorums
from spec.quorum import Sid, View


@dataclass(frozen=True)
class RunningView:
    """One stage of the theorem: the view that its files give, and the servers started in this stage or before."""

    view: View
    running: frozenset[Sid]


@dataclass(frozen=True)
class FailedPremise:
    """The first premise that fails, for the stages at two positions (from 0, the earlier one first).

    Either `disjoint` are two quorums that do not meet, or `observer` is a running server that is an observer in one of
    the views and a voter in the other; the other field is None.
    """

    earlier: int
    later: int
    disjoint: DisjointQuorums | None = None
    observer: Sid | None = None


def failed_premise(stages: Sequence[RunningView]) -> FailedPremise | None:
    """The first pair of equal or neighbouring stages that breaks the premise `ONE_GO`; None if it holds.

    If all servers run from the first stage on, this is the premise `STAGED`. That no role changes is sufficient for
    counting voters only, and not necessary: an observer that restarts before all others is not counted either.
    Raises ValueError if a server stops running, since the theorem's servers are started once, and
    checker.symbolic.disjoint.UndecidedError if z3 gives up.
    """
    changed = _changed_role(stages)
    disjoint = disjoint_stages(stages)
    failed = [each for each in (disjoint, changed) if each is not None]
    return min(failed, key=lambda each: (each.earlier, each.later), default=None)


def disjoint_stages(stages: Sequence[RunningView]) -> FailedPremise | None:
    """The first pair of equal or neighbouring stages with disjoint quorums of running servers; None if all meet.

    Raises ValueError and UndecidedError like `failed_premise`.
    """
    for i, j, running in _pairs(stages):
        disjoint = disjoint_quorums(stages[i].view, stages[j].view, running)
        if disjoint is not None:
            return FailedPremise(i, j, disjoint=disjoint)
    return None


def _changed_role(stages: Sequence[RunningView]) -> FailedPremise | None:
    for i, j, running in _pairs(stages):
        a, b = stages[i].view, stages[j].view
        changed = (a.observers & b.voters | a.voters & b.observers) & running
        if changed:
            return FailedPremise(i, j, observer=min(changed))
    return None


def _pairs(stages: Sequence[RunningView]) -> Iterator[tuple[int, int, frozenset[Sid]]]:
    """Every two equal or neighbouring stages, with the servers that run in the stage after the earlier one."""
    for i, stage in enumerate(stages):
        following = stages[min(i + 1, len(stages) - 1)]
        stopped = stage.running - following.running
        if stopped:
            raise ValueError(f"servers {sorted(stopped)} run in stage {i} and not in stage {i + 1}")
        for j in range(i, min(i + 2, len(stages))):
            yield i, j, following.running
