"""A smaller plan that fails too: fewer faults, then a shorter run with fewer clients.

Rules of this module:

- A candidate is accepted if its run fails, in whichever way. Every candidate is a complete run and is judged in full.
- The faults are halved, then quartered, and so on, as in delta debugging (Zeller and Hildebrandt 2002, ddmin).
- The number of runs is limited; the smallest plan so far is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from refimpl.simulation.faults import Fault
from refimpl.simulation.run import WARM_UP, Plan

MOST_RUNS = 120
AFTERWARDS = 5.0
"""Seconds of work after the last fault."""


def minimised(plan: Plan, fails: Callable[[Plan], bool], most: int = MOST_RUNS) -> Plan:
    """The smallest failing plan that was found; `fails` runs a plan."""
    candidates = _smaller(plan)
    for _ in range(most):
        candidate = next(candidates, None)
        if candidate is None:
            break
        if fails(candidate):
            plan, candidates = candidate, _smaller(candidate)
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    if plan.faults:
        end = max(fault.at + fault.seconds for fault in plan.faults) + AFTERWARDS
        if end < plan.seconds - 1:
            yield replace(plan, seconds=round(end, 3))
    elif plan.seconds > WARM_UP + 2 * AFTERWARDS:
        yield replace(plan, seconds=plan.seconds / 2)
    for faults in _fewer(plan.faults):
        yield replace(plan, faults=faults)
    if plan.clients > 1:
        yield replace(plan, clients=plan.clients // 2)


def _fewer(faults: tuple[Fault, ...]) -> Iterator[tuple[Fault, ...]]:
    size = len(faults)
    while size:
        for start in range(0, len(faults), size):
            yield faults[:start] + faults[start + size :]
        size //= 2
