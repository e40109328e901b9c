"""The steps of the operator, server by server: an order written out, the orders worth trying, and ways of working.

Rules of this module:

- A server that is new is started, one that goes is stopped, any other is restarted with its new file. After a start or
  a restart the next step waits until that server serves again, except where waiting was found to be in vain.
- A server is not waited for if it can serve only when one that runs standalone has joined it.
- Servers outside an order: new ones are started first; others stay as they are, and the roll-out is incomplete.
- An order that cannot split the servers which run is preferred to all others, if there is one.
- Orders are tried in the order of preference: the leader last, since each of its restarts is an election; new
  voters first, since no server with the new file can have a quorum of it without them; servers that go after the
  others. But a leader that goes is stopped first: no server follows it by a file that does not name it. A server whose
  address changes is restarted before those whose addresses stay: it still connects to them, and not they to it.

A way of working is the order and the waits of a person or a platform that changes files.

    ONE_BY_ONE  one server after the other; each step waits until the server serves again
    NO_WAIT     the same order, without waits
    PARALLEL    all new servers start together; the others are restarted one by one, with waits
    STOP_ALL    every server is stopped, then every server of the new state is started with its new file, without waits
    CONTROLLER  new servers ascending, servers that go descending, then restarts from the highest id down, with waits
    PARALLEL_CONTROLLER  the same, but new servers start together: podManagementPolicy Parallel changes no restart
    UNREADY_CONTROLLER   the same steps, without waits: a pod counts as ready before its server serves

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

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations, permutations

from checker.command import CommandError
from checker.execution import poll
from checker.rollout.inputs.platform import PodManagement, Readiness, UpdateStrategy, WayOfWorking
from checker.rollout.stages import Stage
from spec.quorum import Addresses, Port, Sid, View, opens, reaches

START, RESTART, STOP = "start", "restart", "stop"


class OrderError(CommandError):
    """A request that cannot be followed; the message says why, and what would be right. `option` is its subject."""

    def __init__(self, message: str, option: str = "order") -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class ServerStep:
    """One thing that the operator does; `wait`: the next step waits until that server serves again."""

    action: str
    sid: Sid
    wait: bool = True

    def __str__(self) -> str:
        return f"{self.action} {self.sid}"


Steps = tuple[ServerStep, ...]


def steps_of(stage: Stage, order: Sequence[Sid]) -> Steps:
    """An order written out. Raises OrderError for an unknown server, or one that occurs twice."""
    for sid in order:
        if sid not in (*stage.sids, *stage.applied):
            members = ", ".join(map(str, stage.sids))
            raise OrderError(f"server {sid} is in neither folder; they have {members}")
        if sid in stage.applied:
            raise OrderError(f"server {sid} has its new file already; leave it out of the order")
    twice = sorted({sid for sid in order if order.count(sid) > 1})
    if twice:
        raise OrderError(f"server {twice[0]} is there twice; name each server once")
    first = [sid for sid in stage.added if sid not in order]
    return tuple(_step(stage, sid) for sid in (*first, *order))


def may_lead(stage: Stage, down: frozenset[Sid] = frozenset()) -> frozenset[Sid]:
    """The servers that run when a stage begins and are voters by their own files."""
    up = stage.running - down
    return frozenset(sid for sid in up if stage.view_of(sid, stage.renewed).is_voter(sid))


def unwaited(steps: Steps) -> tuple[Sid, ...]:
    """The servers that are started, and not waited for."""
    return tuple(step.sid for step in steps if not step.wait and step.action != STOP)


def left_out(stage: Stage, steps: Steps) -> tuple[Sid, ...]:
    """The servers that an order leaves as they are, or stopped although the new state has them."""
    last = {step.sid: step.action for step in steps}
    return tuple(sid for sid in stage.remaining if sid not in last or (last[sid] == STOP and sid in stage.new.members))


def quorum_without(stage: Stage, steps: Steps, step: ServerStep, down: frozenset[Sid] = frozenset()) -> bool:
    """Whether a quorum runs while a step is under way, by the file of one that may lead it.

    A start stops no server.
    """
    if step.action == START:
        return True
    return has_quorum(stage, *servers_after(stage, steps[: steps.index(step)], down | {step.sid}))


def has_quorum(stage: Stage, running: frozenset[Sid], new: frozenset[Sid]) -> bool:
    """Whether these servers are a quorum behind one that may lead them, by its file. `new` have their new files.

    A server does not count if the addresses in its file and in that of the leader keep it from following.
    """
    views = {sid: stage.view_of(sid, new) for sid in running}
    addresses = {sid: stage.config_of(sid, new).peer_addresses for sid in running} if stage.readdressed else {}
    for leader, view in views.items():
        behind = (sid for sid, v in views.items() if v.is_voter(leader) and _may_follow(sid, leader, addresses))
        if view.is_voter(leader) and view.contains_quorum(view.voters.intersection(behind)):
            return True
    return False


def _may_follow(sid: Sid, leader: Sid, known: Mapping[Sid, Addresses]) -> bool:
    """Whether a server can connect to the quorum port of a leader, and one of the two to the election port."""
    if sid == leader or not known:
        return True
    addresses, leading = known[sid], known[leader]
    hears = opens(addresses, sid, leading, leader) or opens(leading, leader, addresses, sid)
    return hears and reaches(addresses, leading, leader, Port.QUORUM)


def servers_after(stage: Stage, done: Steps, down: frozenset[Sid]) -> tuple[frozenset[Sid], frozenset[Sid]]:
    """The servers that run when these steps are done, and those that were started with their new file."""
    running, new = set(stage.running), set(stage.renewed)
    for step in done:
        if step.action == STOP:
            running.discard(step.sid)
        else:
            running.add(step.sid)
            new.add(step.sid)
    return frozenset(running - down), frozenset(new)


def counts_an_observer(stage: Stage, steps: Steps, down: frozenset[Sid] = frozenset()) -> bool:
    """Whether at some time a server runs as an observer while the file of another running server has it as a voter.

    An observer acknowledges NEWLEADER without logging (`Learner.syncWithLeader`), and the leader counts it by its own
    file (`SyncedLearnerTracker.addAck`). So a committed write can be on fewer disks than a quorum.
    """
    for number in range(len(steps) + 1) if stage.changed_roles else ():
        running, new = servers_after(stage, steps[:number], down)
        views = {sid: stage.view_of(sid, new) for sid in running}
        if any(sid in mine.observers and any(v.is_voter(sid) for v in views.values()) for sid, mine in views.items()):
            return True
    return False


def may_split(stage: Stage, steps: Steps, down: frozenset[Sid] = frozenset()) -> bool:
    """Whether at some time the servers that run are two quorums apart from each other, one by each file.

    A server counts for both: with the new file it may still follow a leader that has the old one. While a server is
    restarted fewer run, so that it is enough to look between the steps, and before the first one if some servers have
    their new files already.
    """
    mixed = bool(stage.applied)
    for prefix in (steps[:number] for number in range(not mixed, max(mixed, len(steps)))):
        running, new = servers_after(stage, prefix, down)
        for group in (group for size in range(len(running) + 1) for group in combinations(running, size)):
            behind = frozenset(group)
            rest = running - behind
            if _is_quorum(stage.old.view, behind, behind - new) and _is_quorum(stage.new.view, rest, rest & new):
                return True
    return False


def _is_quorum(view: View, servers: frozenset[Sid], leaders: Set[Sid]) -> bool:
    """Whether these servers are a quorum behind one of these leaders."""
    return view.contains_quorum(servers & view.voters) and any(view.is_voter(sid) for sid in leaders)


def unsplit(stage: Stage, leader: Sid, down: frozenset[Sid] = frozenset()) -> Iterator[Steps]:
    """Orders along which the servers that run can never be two quorums, and always have one; the leader goes last.

    Two disjoint quorums, one by each file, are more servers than run, if enough of the new ones are started at the very
    end, or enough of those that go are stopped first. Where a server runs standalone before or after, no order always
    has a quorum.
    """
    added = [sid for sid in stage.added if sid not in down]
    removed = sorted((sid for sid in stage.removed if sid not in down), key=lambda sid: (sid != leader, sid))
    restarted = sorted((sid for sid in stage.restarted if sid not in down), key=lambda sid: (sid == leader, sid))
    for late in range(len(added) + 1):
        first, ended = added[: len(added) - late], added[len(added) - late :]
        for early in range(len(removed), -1, -1):
            order = (*first, *removed[:early], *restarted, *removed[early:], *ended)
            steps = _steps(stage, order, down)
            serves = stage.standalone or all(quorum_without(stage, steps, step, down) for step in steps)
            if serves and not may_split(stage, steps, down):
                yield steps


def candidates(stage: Stage, leader: Sid | None) -> Iterator[Steps]:
    """Every order once: the leader as late as can be, new servers first, then all remaining orders."""
    orders: set[tuple[Sid, ...]] = set()
    old, new = stage.old.view, stage.new.view
    promoted, demoted = old.observers & new.voters, old.voters & new.observers
    # Observers come first, since the leader comes last: after its own restart it is another voter.
    restarted = sorted(
        stage.restarted,
        key=lambda sid: (sid not in stage.readdressed, sid not in promoted, old.is_voter(sid), sid),
    )
    # A leader with its old file counts a voter that has become an observer, so that such a voter comes after it.
    late = [sid for sid in restarted if sid in demoted and sid != leader]
    middle = [sid for sid in (*restarted, *stage.removed) if sid != leader and sid not in late]
    last = [sid for sid in (*stage.restarted, *stage.removed) if sid == leader]
    places = range(len(middle), -1, -1) if last else [len(middle)]
    for place in reversed(places) if leader in (*stage.removed, *stage.readdressed) else places:
        for order in permutations(middle):
            whole = (*stage.added, *order[:place], *last, *order[place:], *late)
            orders.add(whole)
            yield _steps(stage, whole)
    yield from (_steps(stage, order) for order in permutations(stage.remaining) if order not in orders)


def _steps(stage: Stage, order: Sequence[Sid], down: frozenset[Sid] = frozenset()) -> Steps:
    """An order written out, without a wait for a server that cannot serve yet because others run standalone."""
    poll()
    steps = tuple(_step(stage, sid) for sid in order)
    if not stage.standalone:
        return steps

    def may_serve(sid: Sid, running: frozenset[Sid], new: frozenset[Sid]) -> bool:
        """Whether a server runs standalone, or a quorum runs that can elect a leader."""
        alone = frozenset(member for member in running if stage.view_of(member, new).standalone)
        return sid in alone or has_quorum(stage, running - alone, new)

    return tuple(
        replace(step, wait=step.wait and may_serve(step.sid, *servers_after(stage, steps[: number + 1], down)))
        for number, step in enumerate(steps)
    )


def _step(stage: Stage, sid: Sid) -> ServerStep:
    if sid in stage.added:
        return ServerStep(START, sid)
    if sid in stage.removed:
        return ServerStep(STOP, sid, wait=False)
    return ServerStep(RESTART, sid)


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


UNWAITED = (Way.STOP_ALL, Way.NO_WAIT, Way.UNREADY_CONTROLLER)
"""The ways without a wait between two steps."""
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
        steps = (*(s for s in steps if s.action == START), *(s for s in steps if s.action != START))
    return with_waits(way, steps)


def with_waits(way: Way, steps: Steps) -> Steps:
    """The same order with the waits of a way. Raises OrderError for a way that fixes its order."""
    if way.has_one_order:
        raise OrderError(f"--how {way.value} fixes its order; leave out --order, or take another way", "how")
    if way is Way.ONE_BY_ONE:
        return steps
    return tuple(replace(step, wait=step.wait and way is Way.PARALLEL and step.action != START) for step in steps)


def proof_covers(way: Way, stage: Stage, steps: Steps) -> bool:
    """Whether a proof that all quorums meet covers these steps: no server counts as a voter that acknowledges as none.

    With a controller any server may come back with its new file early, so no change of roles is covered.
    """
    if not stage.changed_roles:
        return True
    promoted = stage.old.view.observers & stage.new.view.voters
    if way.is_of_controller or promoted.intersection(unwaited(steps)):
        return False
    return not counts_an_observer(stage, steps)


def covers_runs(steps: Steps, others: Steps) -> bool:
    """Whether every run of `others` is a run of `steps`: the same actions, and no wait that `others` lacks."""
    same = [(step.action, step.sid) for step in steps] == [(s.action, s.sid) for s in others]
    return same and all(b.wait or not a.wait for a, b in zip(steps, others, strict=True))
