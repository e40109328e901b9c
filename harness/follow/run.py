"""One run of a roll-out by restarts: the steps of the plan, with kills between.

Rules of this module:

- A step waits as the command in the answer does: until `srvr` has a `Mode:` of the new role.
- Before a step with a condition of a proof, and before each stage but the first, the run waits until the servers that
  run follow one leader, and the others are stopped.
- A kill while another server restarts may make a wait vain. The run notes it and does the next step if a proof covers
  that. Conditions before a step are kept.
- The steps of a stage depend on the server that leads. A stage that is proved without a run has no steps when nothing
  changes that is modelled; then each server is restarted once, the leader last, as the preferred order of the planner
  is.

Source: `checker.rollout.output.operator_steps`.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from checker.rollout.answer import Plan
from checker.rollout.config_state import ConfigState
from checker.rollout.order_proof import StageCondition
from checker.rollout.route import Order, PlanRoute
from checker.rollout.steps import START, STOP, ServerStep, Steps, steps_of
from harness.follow.follower import SERVE_SECONDS, EnsembleFollower, FollowOptions, StallError
from harness.follow.servers import FollowedServers, Loopback, ids
from harness.processes import free_ports, wait_until
from spec.quorum import Sid


def steps_for(part: PlanRoute, leader: Sid) -> Steps:
    """The steps of a stage if this server leads when it begins: those for it, or else those shown first."""
    for order in part.orders:
        if order.leader == leader and order.steps:
            return order.steps
    if part.orders and part.orders[0].steps:
        return part.orders[0].steps
    return steps_of(part.stage, sorted(part.stage.remaining, key=lambda sid: (sid == leader, sid)))


def modes(state: ConfigState, sid: Sid) -> frozenset[str]:
    """The roles that the answer's command waits for: the values of `Mode:` in the answer to `srvr`."""
    if state.view.standalone:
        return frozenset({"standalone"})
    return frozenset({"observer"}) if sid in state.view.observers else frozenset({"leader", "follower"})


class PlanFollower(EnsembleFollower):
    """Follows the restarts of one plan once, below `directory`."""

    def __init__(self, plan: Plan, options: FollowOptions, directory: Path, say: Callable[[str], None]) -> None:
        states = [part.stage.old for part in plan.advised] + [part.stage.new for part in plan.advised]
        servers = FollowedServers(ids(states), directory, options.release, Loopback(free_ports))
        super().__init__(servers, options, sum(len(part.stage.remaining) for part in plan.advised), say)
        self._plan = plan
        self._count = 0

    @property
    def _last(self) -> dict[Sid, frozenset[str]]:
        last = self._plan.advised[-1].stage.new
        return {sid: modes(last, sid) for sid in last.members}

    def _begin(self) -> Sid:
        old = self._plan.advised[0].stage.old
        for sid in sorted(old.members):
            self._servers.give(sid, old)
            self._servers.start(sid)
        self._wait_in(old, old.members)
        return min(old.members)

    def _take_steps(self) -> None:
        for part, check in zip(self._plan.advised, self._plan.checks_between, strict=True):
            if check is not None:
                self._wait_for_condition(part.stage.old, check)
            wait_until(lambda: len(self._servers.leaders()) == 1, SERVE_SECONDS, "one server leads")
            leader = self._servers.leaders()[0]
            self._say(f"{part.stage.title}; server {leader} leads")
            steps = steps_for(part, leader)
            # The conditions are those that a proof of these steps demands, by the number of the step from 1.
            conditions = part.conditions_of(Order(leader, steps))
            for number, step in enumerate(steps, start=1):
                if number in conditions:
                    condition = conditions[number]
                    self._wait_for_condition(part.stage.new if condition.renewed else part.stage.old, condition)
                self._killer.step_begins(self._count)
                self._count += 1
                self._follow(part, step)

    def _wait_in(self, state: ConfigState, sids: Iterable[Sid]) -> None:
        self._wait_serving({sid: modes(state, sid) for sid in sids})

    def _follow(self, part: PlanRoute, step: ServerStep) -> None:
        began, led = time.monotonic(), self._servers.role(step.sid) in {"leader", "standalone"}
        with self._servers.locks[step.sid]:
            if step.action != START:
                self._servers.stop(step.sid)
            if step.action != STOP:
                self._servers.give(step.sid, part.stage.new)
                self._servers.start(step.sid)
        if step.wait and step.action != STOP:
            # After a kill a wait may be in vain; the plan goes on where a proof covers that.
            try:
                self._wait_in(part.stage.new, [step.sid])
            except StallError as error:
                if not (part.is_settled_by_proof and self._options.kills):
                    raise
                self._say(
                    f"a wait in vain: {error.args[0].splitlines()[0]}; the next step follows, as a proof covers it"
                )
                self._result.vain += 1
        wait = "" if step.wait or step.action == STOP else ", without a wait"
        self._done(f"{step}{' (it leads)' if led else ''}{wait}", began, led)

    def _wait_for_condition(self, state: ConfigState, condition: StageCondition) -> None:
        """Wait as the answer says: the servers that run have their files of `state`, and follow one leader."""
        self._wait_in(state, condition.running)
        wait_until(lambda: self._is_one_leader_of(condition.running), SERVE_SECONDS, "one server leads")
        if started := [sid for sid in condition.stopped if self._servers.alive(sid)]:
            raise StallError(f"servers that must stay stopped and run: {', '.join(map(str, started))}")
        self._say(f"servers {', '.join(map(str, condition.running))} follow one leader")

    def _is_one_leader_of(self, sids: Sequence[Sid]) -> bool:
        leaders = self._servers.leaders()
        return len(leaders) == 1 and leaders[0] in sids
