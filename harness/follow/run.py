"""One run: an ensemble in the old state, writes, the steps of the plan with kills between, and a look at every server.

Rules of this module:

- A step waits as the command in the answer does: until `srvr` has a `Mode:` of the new role.
- Before a step with a condition of a proof, and before each stage but the first, the run waits until the servers that
  run follow one leader, and the others are stopped.
- A kill while another server restarts may make a wait vain. The run notes it and does the next step if a proof covers
  that. Conditions before a step are kept.
- The load is bounded: `clients` sessions, each with one request in flight and a pause after it.
- At the end the clients stop. Each server of the new state is asked after a sync with its leader.

Source: `checker.rollout.output.operator_steps`; ZooKeeper Programmer's Guide (sync).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from checker.rollout.answer import Plan
from checker.rollout.assessment import StageAssessment
from checker.rollout.order_proof import StageCondition
from checker.rollout.stages import ConfigState
from checker.rollout.steps import START, STOP, ServerStep
from harness.follow.choice import conditions_for, modes, steps_for
from harness.follow.kills import Killer
from harness.follow.loopback import Loopback, MappingError, ids
from harness.follow.result import Acknowledgements, Ending, FollowedRun, FollowedStep, absent
from harness.follow.servers import FollowedServers
from harness.processes import ServerError, free_ports, wait_until
from harness.record.ensemble import CHILDREN, CREATE, LOAD, SYNC, WORLD, WriteClient
from harness.record.ensemble import Plan as LoadPlan
from spec.quorum import Sid

SERVE_SECONDS = 40.0
SETTLE_SECONDS = 20.0
QUIET_SECONDS = 1.0


@dataclass(frozen=True)
class FollowOptions:
    """The size of a run. `pause`: seconds between a reply and the next write of a client."""

    release: str
    kills: int = 1
    seed: int = 1
    clients: int = 3
    pause: float = 0.02


class StallError(Exception):
    """A server does not serve where the plan waits for it."""


class PlanFollower:
    """Follows one plan once, below `directory`."""

    def __init__(self, plan: Plan, options: FollowOptions, directory: Path, say: Callable[[str], None]) -> None:
        self._plan, self._options, self._say = plan, options, say
        states = [part.stage.old for part in plan.advised] + [part.stage.new for part in plan.advised]
        self._servers = FollowedServers(ids(states), directory, options.release, Loopback(free_ports))
        self._directory = directory
        self._witness = Acknowledgements()
        self._clients: list[WriteClient] = []
        count = sum(len(part.stage.remaining) for part in plan.advised)
        self._killer = Killer(self._servers, options.kills, count, str(options.seed), say)
        self._result = FollowedRun(Ending.FAILED)
        self._done = 0

    def follow(self) -> FollowedRun:
        """Follow the plan, and look for every acknowledged write."""
        try:
            self._begin()
            began = time.monotonic()
            for part, check in zip(self._plan.advised, self._plan.checks_between, strict=True):
                if check is not None:
                    self._wait_for_condition(part.stage.old, check)
                self._stage(part)
            self._killer.finish()
            last = self._plan.advised[-1].stage.new
            self._wait_serving(last, sorted(last.members))
            time.sleep(QUIET_SECONDS)
            self._result.pause = self._witness.longest_pause(began, time.monotonic())
            self._stop_clients()
            self._look(sorted(last.members))
            for error in self._killer.errors:
                self._result.ending, self._result.reason = Ending.FAILED, f"a kill: {error}"
        except StallError as error:
            self._result.ending, self._result.reason = Ending.STALLED, str(error)
        except (ServerError, OSError, MappingError) as error:
            self._result.ending, self._result.reason = Ending.FAILED, str(error)
        finally:
            self._killer.finish()
            self._stop_clients()
            self._servers.shut_down()
        return self._result

    def _begin(self) -> None:
        """Start the old state and the clients."""
        old = self._plan.advised[0].stage.old
        for sid in sorted(old.members):
            self._servers.give(sid, old)
            self._servers.start(sid)
        self._wait_serving(old, sorted(old.members))
        session = self._servers.connect(min(old.members))
        session.ask(CREATE, LOAD, b"", WORLD, 0)
        session.close()
        load = LoadPlan(seed=self._options.seed, pause=self._options.pause)
        self._clients = [
            WriteClient(self._servers, number, load, self._witness) for number in range(self._options.clients)
        ]
        wait_until(lambda: bool(self._witness.replies), SETTLE_SECONDS, "a write is acknowledged before the first step")
        time.sleep(QUIET_SECONDS)

    def _stage(self, part: StageAssessment) -> None:
        wait_until(lambda: len(self._servers.leaders()) == 1, SERVE_SECONDS, "one server leads")
        leader = self._servers.leaders()[0]
        self._say(f"{part.stage.title}; server {leader} leads")
        steps = steps_for(part, leader)
        conditions = conditions_for(part, leader, steps)
        for number, step in enumerate(steps, start=1):
            if number in conditions:
                condition = conditions[number]
                self._wait_for_condition(part.stage.new if condition.renewed else part.stage.old, condition)
            self._killer.step_begins(self._done)
            self._done += 1
            self._follow(part, step)

    def _follow(self, part: StageAssessment, step: ServerStep) -> None:
        began, led = time.monotonic(), self._servers.mode(step.sid) in {"leader", "standalone"}
        with self._servers.locks[step.sid]:
            if step.action != START:
                self._servers.stop(step.sid)
            if step.action != STOP:
                self._servers.give(step.sid, part.stage.new)
                self._servers.start(step.sid)
        if step.wait and step.action != STOP:
            self._wait_for_step(part, step)
        now = time.monotonic()
        pause = self._witness.longest_pause(began, now)
        caption = (
            f"{step}{' (it leads)' if led else ''}{'' if step.wait or step.action == STOP else ', without a wait'}"
        )
        self._say(f"{caption}: {now - began:.1f} s, longest pause {pause:.1f} s")
        self._result.steps.append(FollowedStep(caption, now - began, pause, led))

    def _wait_for_step(self, part: StageAssessment, step: ServerStep) -> None:
        """Wait as the plan does. After a kill a wait may be in vain; the plan goes on where a proof covers that."""
        try:
            self._wait_serving(part.stage.new, [step.sid])
        except StallError as error:
            if not (part.is_settled_by_proof and self._options.kills):
                raise
            self._say(f"a wait in vain: {error.args[0].splitlines()[0]}; the next step follows, as a proof covers it")
            self._result.vain += 1

    def _wait_for_condition(self, state: ConfigState, condition: StageCondition) -> None:
        """Wait as the answer says: the servers that run have their files of `state`, and follow one leader."""
        self._wait_serving(state, condition.running)
        wait_until(lambda: self._is_one_leader_of(condition.running), SERVE_SECONDS, "one server leads")
        if started := [sid for sid in condition.stopped if self._servers.alive(sid)]:
            raise StallError(f"servers that must stay stopped and run: {', '.join(map(str, started))}")
        self._say(f"servers {', '.join(map(str, condition.running))} follow one leader")

    def _is_one_leader_of(self, sids: Sequence[Sid]) -> bool:
        leaders = self._servers.leaders()
        return len(leaders) == 1 and leaders[0] in sids

    def _wait_serving(self, state: ConfigState, sids: Iterable[Sid]) -> None:
        for sid in sids:
            try:
                wait_until(partial(self._serves, state, sid), SERVE_SECONDS, f"server {sid} serves")
            except ServerError as error:
                raise StallError(str(error)) from None

    def _serves(self, state: ConfigState, sid: Sid) -> bool:
        # A killed server has no process for a moment, and holds its lock then.
        with self._servers.locks[sid]:
            if not self._servers.alive(sid):
                raise OSError(f"server {sid} has ended{self._servers.last_words(sid)}")
        return self._servers.mode(sid) in modes(state, sid)

    def _stop_clients(self) -> None:
        for client in self._clients:
            client.stop()

    def _look(self, sids: list[Sid]) -> None:
        """Look for every acknowledged write at every server, after a sync; a server may be late for some seconds."""
        replies = self._witness.replies
        self._result.acknowledged = len(replies)
        found = {sid: self._paths(sid) for sid in sids}
        deadline = time.monotonic() + SETTLE_SECONDS
        while len(set(map(frozenset, found.values()))) > 1 and time.monotonic() < deadline:
            time.sleep(0.5)
            found = {sid: self._paths(sid) for sid in sids}
        self._result.missing = absent(replies, found)
        if self._result.missing:
            self._result.ending = Ending.LOST
            self._result.reason = "; ".join(
                f"server {sid} lacks {', '.join(map(str, lacking[:5]))}"
                for sid, lacking in self._result.missing.items()
            )
        elif len(set(map(frozenset, found.values()))) > 1:
            counts = ", ".join(f"server {sid}: {len(paths)}" for sid, paths in found.items())
            self._result.ending, self._result.reason = Ending.DIFFERS, f"znodes at the end: {counts}"
        else:
            self._result.ending = Ending.KEPT

    def _paths(self, sid: Sid) -> set[str]:
        session = self._servers.connect(sid)
        try:
            session.ask(SYNC, LOAD)
            answer = session.ask(CHILDREN, LOAD, False)
            # A server that has lost all writes has lost their parent, too.
            return {f"{LOAD}/{name}" for name in answer.values[0]} if answer.err == 0 else set()
        finally:
            session.drop()
