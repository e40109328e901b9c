"""One run of a plan: an ensemble in the old state, writes and kills meanwhile, and a look at every server at the end.

`EnsembleFollower` is the common part, and `PlanFollower` takes the steps of a roll-out by restarts. `Killer` kills
random servers at random moments of a plan, and starts each again with the file that it has then.

Rules of this module:

- The load is bounded: `clients` sessions, each with one request in flight and a pause after it.
- A step waits as the command in the answer does: until `srvr` has a `Mode:` of the new role.
- Before a step with a condition of a proof, and before each stage but the first, the run waits until the servers that
  run follow one leader, and the others are stopped.
- A kill while another server restarts may make a wait vain. The run notes it and does the next step if a proof covers
  that. Conditions before a step are kept.
- The steps of a stage depend on the server that leads. A stage that is proved without a run has no steps when nothing
  changes that is modelled; then each server is restarted once, the leader last, as the preferred order of the planner
  is.
- At the end the clients stop. Each server of the new state is asked after a sync with its leader.

Source: ZooKeeper Programmer's Guide (sync); `checker.rollout.output.operator_steps`.
"""

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from checker.rollout.answer import Plan
from checker.rollout.config_state import ConfigState
from checker.rollout.order_proof import StageCondition
from checker.rollout.orders import START, STOP, ServerStep, Steps, steps_of
from checker.rollout.route_verdict import Order, PlanRoute
from harness.follow.result import Acknowledgements, Ending, FollowedRun, FollowedStep, absent
from harness.follow.servers import FollowedServers, Loopback, MappingError, ids
from harness.processes import ServerError, free_ports, wait_until
from harness.record.ensemble import CHILDREN, LOAD, WriteClient
from harness.record.ensemble import Plan as LoadPlan
from harness.servers import CREATE, SYNC, WORLD
from spec.quorum import Sid

AFTER_STEP_SECONDS = 4.0
DOWN_SECONDS = 1.0


class Killer:
    """Kills `kills` servers in a run with this many steps. Each kill is a random time after the begin of a random step.

    The same seed chooses the same steps and delays. The server is one of those that run at that time, so it depends on
    the run as well.
    """

    def __init__(self, servers: FollowedServers, kills: int, steps: int, seed: str, say: Callable[[str], None]) -> None:
        self._servers, self._say = servers, say
        self._random = random.Random(f"{seed}-kills")
        chosen = sorted(
            (self._random.randrange(steps), self._random.uniform(0, AFTER_STEP_SECONDS)) for _ in range(kills)
        )
        self._delays = {step: [delay for number, delay in chosen if number == step] for step, _ in chosen}
        self._threads: list[threading.Thread] = []
        self._one_at_a_time = threading.Lock()
        self.errors: list[ServerError | OSError] = []

    def step_begins(self, number: int) -> None:
        """Start the clocks of the kills that follow the begin of this step, counted from 0."""
        for delay in self._delays.pop(number, []):
            thread = threading.Thread(target=self._kill_after, args=(delay, self._random.random()), daemon=True)
            thread.start()
            self._threads.append(thread)

    def finish(self) -> None:
        """Wait until every server that was killed has been started again."""
        for thread in self._threads:
            thread.join()

    def _kill_after(self, delay: float, choice: float) -> None:
        threading.Event().wait(delay)
        with self._one_at_a_time:
            try:
                self._kill(choice)
            except (ServerError, OSError) as error:  # the run reports it
                self.errors.append(error)

    def _kill(self, choice: float) -> None:
        while True:
            running = self._servers.running
            if running and self._killed(running[int(choice * len(running))], choice):
                return
            threading.Event().wait(0.1)  # a step is under way on it

    def _killed(self, sid: Sid, choice: float) -> bool:
        """Kill a server and start it again, unless a step stops or starts it now."""
        if not self._servers.locks[sid].acquire(blocking=False):
            return False
        try:
            if not self._servers.alive(sid):
                return False
            self._say(f"kill -9 of server {sid} ({self._servers.role(sid) or 'not serving'})")
            self._servers.kill(sid)
            threading.Event().wait(choice * DOWN_SECONDS)
            self._servers.start(sid)
            return True
        finally:
            self._servers.locks[sid].release()


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


class EnsembleFollower(ABC):
    """Follows one plan once on these servers. A subclass knows the files, the steps and the end of its plan."""

    def __init__(
        self, servers: FollowedServers, options: FollowOptions, steps: int, say: Callable[[str], None]
    ) -> None:
        self._servers, self._options, self._say = servers, options, say
        self._witness = Acknowledgements()
        self._clients: list[WriteClient] = []
        self._killer = Killer(servers, options.kills, steps, str(options.seed), say)
        self._result = FollowedRun(Ending.FAILED)

    @property
    @abstractmethod
    def _last(self) -> dict[Sid, frozenset[str]]:
        """The servers of the new state, each with the values of `Mode:` in which it may serve."""

    @abstractmethod
    def _begin(self) -> Sid:
        """Start the servers of the old state, and wait until they serve; return one of them."""

    @abstractmethod
    def _take_steps(self) -> None:
        """Take the steps of the plan."""

    def follow(self) -> FollowedRun:
        """Follow the plan, and look for every acknowledged write."""
        try:
            self._write(self._begin())
            began = time.monotonic()
            self._take_steps()
            self._killer.finish()
            self._wait_serving(self._last)
            time.sleep(QUIET_SECONDS)
            self._result.pause = self._witness.longest_pause(began, time.monotonic())
            self._stop_clients()
            self._look(sorted(self._last))
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

    def _write(self, first: Sid) -> None:
        """Start the clients, and wait until they write; their first request is at that server."""
        session = self._servers.connect(first)
        session.ask(CREATE, LOAD, b"", WORLD, 0)
        session.close()
        load = LoadPlan(seed=self._options.seed, pause=self._options.pause)
        self._clients = [
            WriteClient(self._servers, number, load, self._witness) for number in range(self._options.clients)
        ]
        wait_until(lambda: bool(self._witness.replies), SETTLE_SECONDS, "a write is acknowledged before the first step")
        time.sleep(QUIET_SECONDS)

    def _done(self, caption: str, began: float, led: bool) -> None:
        end = time.monotonic()
        pause = self._witness.longest_pause(began, end)
        self._say(f"{caption}: {end - began:.1f} s, longest pause {pause:.1f} s")
        self._result.steps.append(FollowedStep(caption, end - began, pause, led))

    def _wait_serving(self, modes: Mapping[Sid, Set[str]]) -> None:
        """Wait until each server serves in one of its modes. Raises StallError."""
        for sid, allowed in sorted(modes.items()):
            try:
                wait_until(partial(self._serves, sid, allowed), SERVE_SECONDS, f"server {sid} serves")
            except ServerError as error:
                raise StallError(str(error)) from None

    def _serves(self, sid: Sid, wanted: Set[str]) -> bool:
        # A killed server has no process for a moment, and holds its lock then.
        with self._servers.locks[sid]:
            if not self._servers.alive(sid):
                raise OSError(f"server {sid} has ended{self._servers.process(sid).last_words()}")
        return self._servers.role(sid) in wanted

    def _stop_clients(self) -> None:
        for client in self._clients:
            client.stop()

    def _look(self, sids: list[Sid]) -> None:
        """Look for every acknowledged write at every server, after a sync; a server may be late for some seconds."""
        replies = self._witness.replies
        self._result.acknowledged = len(replies)
        holdings = {sid: self._paths(sid) for sid in sids}
        deadline = time.monotonic() + SETTLE_SECONDS
        while len(set(map(frozenset, holdings.values()))) > 1 and time.monotonic() < deadline:
            time.sleep(0.5)
            holdings = {sid: self._paths(sid) for sid in sids}
        self._result.missing = absent(replies, holdings)
        if self._result.missing:
            self._result.ending = Ending.LOST
            self._result.reason = "; ".join(
                f"server {sid} lacks {', '.join(map(str, lacking[:5]))}"
                for sid, lacking in self._result.missing.items()
            )
        elif len(set(map(frozenset, holdings.values()))) > 1:
            counts = ", ".join(f"server {sid}: {len(paths)}" for sid, paths in holdings.items())
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
