"""Ways of working: the order and the waits of a person or a platform that changes files.

    ONE_BY_ONE  one server after the other; each step waits until the server serves again
    NO_WAIT     the same order, without waits
    PARALLEL    all new servers start together; the others are restarted one by one, with waits
    STOP_ALL    every server is stopped, then every server of the new state is started with its new file, without waits
    CONTROLLER  new servers ascending, servers that go descending, then restarts from the highest id down, with waits
    PARALLEL_CONTROLLER  the same, but new servers start together: podManagementPolicy Parallel changes no restart
    UNREADY_CONTROLLER   the same steps, without waits: a pod counts as ready before its server serves

Rules of this module:

- A controller has all new files ready from the beginning, and restarts a server that is not ready. So a server that
  crashes may come back with its new file before its turn, and this way is judged with at least one crash.
- A controller keeps every wait. Where a wait is in vain, the roll-out stops: only a person may continue.
- A controller waits until a pod is ready. The readinessProbe decides whether a pod that is ready serves. If it does not
  ask for that, as with `ruok`, the way of the platform is the one without waits, in the order of the controller.
- Fewer waits allow more runs: a run of one way is also a run of another one that has the same actions and no further
  wait.
- A proof about quorums covers every way in which no server that may have acknowledged as an observer counts as a voter.
  A promoted server that is not waited for may have the epoch of a leader on its disk without that leader's
  transactions. So a proof covers its promotion only if the next step waits for it.

Sources: Kubernetes, "StatefulSets" (Pod Management Policies, Rolling Updates) and `defaultStatefulSetControl`;
ZooKeeper's `Learner.syncWithLeader`, which writes currentEpoch with NEWLEADER.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from checker.rollout.inputs.working import PodManagement, Readiness, UpdateStrategy, WayOfWorking
from checker.rollout.stages import Stage
from checker.rollout.steps import RESTART, START, STOP, OrderError, ServerStep, Steps, counts_an_observer, unwaited
from spec.quorum import Sid


class Way(Enum):
    """A way of working, by its name on the command line."""

    ONE_BY_ONE = "one-by-one"
    NO_WAIT = "no-wait"
    PARALLEL = "parallel"
    STOP_ALL = "stop-all"
    CONTROLLER = "controller"
    PARALLEL_CONTROLLER = "parallel-controller"
    UNREADY_CONTROLLER = "unready-controller"

    @property
    def has_one_order(self) -> bool:
        """Whether the way itself fixes the order of its steps."""
        return self is Way.STOP_ALL or self.is_of_controller

    @property
    def is_of_controller(self) -> bool:
        """Whether a program takes the steps, and has all new files ready from the beginning."""
        return self in (Way.CONTROLLER, Way.PARALLEL_CONTROLLER, Way.UNREADY_CONTROLLER)


WAY_WORDS = {
    Way.ONE_BY_ONE: "one server after the other, waiting after each",
    Way.NO_WAIT: "one server after the other, without waiting",
    Way.PARALLEL: "all new servers at once, then restarts one by one, waiting after each",
    Way.STOP_ALL: "everything is stopped, then everything is started",
    Way.CONTROLLER: "a rolling update of a StatefulSet: new servers first, then restarts from the highest id down",
    Way.PARALLEL_CONTROLLER: "a rolling update with `podManagementPolicy: Parallel`: all new servers at once",
    Way.UNREADY_CONTROLLER: "a rolling update whose pods count as ready before their servers serve, so without waits",
}
"""Each way in words."""


def way_of(working: WayOfWorking | None) -> Way | None:
    """The way of a platform; None if its input does not state one.

    A partition restarts only a part of the servers, so the change is not made by the platform.
    """
    if working is None or working.operator is not None or working.updates is not UpdateStrategy.ROLLING_UPDATE:
        return None
    if working.partition:
        return None
    if working.readiness not in (None, Readiness.SERVING):
        return Way.UNREADY_CONTROLLER
    return Way.PARALLEL_CONTROLLER if working.pods is PodManagement.PARALLEL else Way.CONTROLLER


def in_way(way: Way, stage: Stage, leader: Sid, steps: Steps, down: frozenset[Sid] = frozenset()) -> Steps:
    """The steps of a way, from those of one server after the other. Servers that are `down` have no step.

    Where all are stopped, the leader is the last one.
    """
    if way is Way.STOP_ALL:
        running = sorted(stage.running - down, key=lambda sid: (sid == leader, sid))
        stopped = [ServerStep(STOP, sid, wait=False) for sid in running]
        return (*stopped, *(ServerStep(START, sid, wait=False) for sid in sorted(stage.new.members - down)))
    if way.is_of_controller:
        started = [ServerStep(START, sid, wait=way is Way.CONTROLLER) for sid in stage.added]
        stopped = [ServerStep(STOP, sid, wait=False) for sid in reversed(stage.removed)]
        waits = way is not Way.UNREADY_CONTROLLER
        restarted = [ServerStep(RESTART, sid, wait=waits) for sid in reversed(stage.restarted)]
        return tuple(step for step in (*started, *stopped, *restarted) if step.sid not in down)
    if way is Way.PARALLEL:
        steps = (*(each for each in steps if each.action == START), *(each for each in steps if each.action != START))
    return with_waits(way, steps)


def with_waits(way: Way, steps: Steps) -> Steps:
    """The same order with the waits of a way. Raises OrderError for a way that fixes its order."""
    if way.has_one_order:
        raise OrderError(f"--how {way.value} fixes its order; leave out --order, or take another way", "how")
    if way is Way.ONE_BY_ONE:
        return steps
    return tuple(replace(step, wait=step.wait and way is Way.PARALLEL and step.action != START) for step in steps)


def proof_covers(way: Way, stage: Stage, steps: Steps, down: frozenset[Sid] = frozenset()) -> bool:
    """Whether a proof that all quorums meet covers these steps: no server counts as a voter that acknowledges as none.

    With a controller any server may come back with its new file early, so no change of roles is covered.
    """
    if not stage.changed_roles:
        return True
    promoted = stage.old.view.observers & stage.new.view.voters
    if way.is_of_controller or promoted.intersection(unwaited(steps)):
        return False
    return not counts_an_observer(stage, steps, down)


def covers_runs(steps: Steps, others: Steps) -> bool:
    """Whether every run of `others` is a run of `steps`: the same actions, and no wait that `others` lacks."""
    same = [(step.action, step.sid) for step in steps] == [(each.action, each.sid) for each in others]
    return same and all(other.wait or not own.wait for own, other in zip(steps, others, strict=True))
