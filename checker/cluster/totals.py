"""The totals of the reports of all parts, in the result of the search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from checker.cluster.part.messages import PartReport
from checker.engine.result import Coverage, Evaluations, Exploration


def add_reports(
    result: Exploration, reports: Sequence[PartReport], machines: Sequence[str], *, is_divided: bool = True
) -> None:
    """Set the counts of a result. Before the search is divided, all parts have the same counts."""
    counted = reports if is_divided else reports[:1]
    result.transitions = sum(each.transitions for each in counted)
    result.deadlocks = sum(each.deadlocks for each in counted)
    result.coverage = _coverage(counted)
    for place, prop in enumerate(result.model.properties):
        pairs = [each.evaluations[place] for each in counted if each.evaluations]
        result.evaluations[prop.name] = Evaluations(sum(states for states, _ in pairs), sum(held for _, held in pairs))
    result.work = sum(each.work for each in reports)
    result.python_steps, result.python_calls = sum(each.steps for each in reports), sum(each.calls for each in reports)
    result.python_seconds = max([each.seconds for each in reports], default=0.0)
    result.spilled_bytes = sum(each.spilled for each in reports)
    result.peak_bytes = max(result.peak_bytes, _largest(machines, [each.growth for each in reports]))


def planned_bytes(reports: Sequence[PartReport], machines: Sequence[str]) -> int:
    """The memory of the largest machine after the next round: the growth of its workers, with that of visited sets.

    It is 0 if no visited set will grow.
    """
    growing = any(each.planned for each in reports)
    return _largest(machines, [each.growth + each.planned for each in reports]) if growing else 0


def _largest(machines: Sequence[str], sizes: Sequence[int]) -> int:
    total: defaultdict[str, int] = defaultdict(int)
    for machine, size in zip(machines, sizes, strict=False):
        total[machine] += size
    return max(total.values(), default=0)


def _coverage(reports: Sequence[PartReport]) -> dict[str, Coverage]:
    total: defaultdict[str, Coverage] = defaultdict(Coverage)
    for each in reports:
        for action, (fired, new) in each.coverage.items():
            total[action].fired += fired
            total[action].new += new
    return dict(total)
