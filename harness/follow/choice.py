"""The steps of a stage for the server that leads, and the roles in which its servers serve afterwards.

Rules of this module: it starts nothing. A stage that is proved without a run has no steps when nothing changes that is
modelled; then each server is restarted once, the leader last, as the preferred order of the planner is.
"""

from __future__ import annotations

from checker.rollout.config_state import ConfigState
from checker.rollout.order_proof import StageCondition
from checker.rollout.route import Order, PlanRoute
from checker.rollout.steps import Steps, steps_of
from spec.quorum import Sid


def steps_for(part: PlanRoute, leader: Sid) -> Steps:
    """The steps of a stage if this server leads when it begins: those for it, or else those shown first."""
    for order in part.orders:
        if order.leader == leader and order.steps:
            return order.steps
    if part.orders and part.orders[0].steps:
        return part.orders[0].steps
    return steps_of(part.stage, sorted(part.stage.remaining, key=lambda sid: (sid == leader, sid)))


def conditions_for(part: PlanRoute, leader: Sid, steps: Steps) -> dict[int, StageCondition]:
    """The conditions that a proof of these steps demands, by the number of the step from 1; empty without one."""
    return part.conditions_of(Order(leader, steps))


def modes(state: ConfigState, sid: Sid) -> frozenset[str]:
    """The roles that the answer's command waits for: the values of `Mode:` in the answer to `srvr`."""
    if state.view.standalone:
        return frozenset({"standalone"})
    return frozenset({"observer"}) if sid in state.view.observers else frozenset({"leader", "follower"})
