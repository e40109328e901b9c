"""Service at the end of every run of an ensemble, from every state again, and on every fair run.

Final properties judge the states in which every run ends after its faults; the others are goals of runs.

Rules of this module:

- *Fair* steps are the steps of servers and of the network: messages and packets arrive, waits and timeouts end, losses
  are noticed, disks catch up. The steps of a fault, an operator or a client need never happen: a crash, a cut and its
  healing, a first start and a return, an action of the plan, a write. A goal must therefore be reached whichever of
  these steps happen, and also if none of them ever does.
- The steps of an opening do happen, in their order.
- Steps beyond a budget or a bound cannot happen, such as a round after the last one or one timeout more than the budget
  allows. A run that ends for such a reason is shown like any other; give a scenario bounds that leave room.
"""

from collections.abc import Collection, Mapping
from itertools import combinations, permutations

from checker.engine import Finding, Kind
from checker.models.ensemble.setup import Link, Setup
from checker.models.ensemble.status import ElectionStatus, has_rejoined
from checker.properties.projections import ENSEMBLE_PROPERTIES, Statuses, serving, statuses_and_links_of
from checker.properties.registry import Condition
from checker.properties.role_patterns import witnesses
from spec.quorum import Port, Sid, opens, reaches


@ENSEMBLE_PROPERTIES.declare(
    "Serves",
    Kind.FINAL,
    meaning="In every state without a next step, a server leads with a quorum of its view within reach",
    requirements=("R2", "R3"),
    notes="An ensemble that still has a quorum serves. Only followers within reach of the leader count. The loss of "
    "one of two servers breaks the property.",
)
def _serves(setup: Setup) -> Condition:
    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(setup.sids, seen, strict=True))
        if serving(statuses, cut):
            return None
        return Finding("nothing more can happen, and nobody leads with a quorum within reach", witnesses(statuses))

    return Condition(statuses_and_links_of(setup), check)


@ENSEMBLE_PROPERTIES.declare(
    "ServesNoMore",
    Kind.FINAL,
    meaning="In every state without a next step, no server leads with a quorum of its view within reach",
    requirements=("R2", "R3", "R4"),
    notes="Without a quorum there is no service, regardless of the number of observers that run. Only followers within "
    "reach of the leader count.",
)
def _serves_no_more(setup: Setup) -> Condition:
    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(setup.sids, seen, strict=True))
        leaders = serving(statuses, cut)
        if not leaders:
            return None
        return Finding("a server leads with a quorum within reach", (("leaders", leaders), *witnesses(statuses)))

    return Condition(statuses_and_links_of(setup), check)


@ENSEMBLE_PROPERTIES.declare(
    "Settles",
    Kind.RECOVERABLE,
    meaning="From every state some run reaches a state where every running server within reach of a leader is with it",
    violation="servers look for a leader and cannot find one",
    requirements=("R2", "R3"),
    notes="The leader is established, and only followers within its reach count. A server is with it if it follows or "
    "observes it, and with `protocol: zab` also serves. A quorum that is lost forever breaks the property, and so do "
    "votes that are sent only once, and bounds that leave no room (rounds, elections).",
)
def _settles(setup: Setup) -> Condition:
    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(setup.sids, seen, strict=True))
        for leader in serving(statuses, cut):
            near = [s for s in statuses if s == leader or _link(s, leader) not in cut]
            if all(_is_with(statuses, sid, leader) for sid in near):
                return Finding("everybody within reach of a leader is with it", (("leader", leader),))
        return None

    return Condition(statuses_and_links_of(setup), check)


@ENSEMBLE_PROPERTIES.declare(
    "Elects",
    Kind.EVENTUALLY,
    meaning="On every fair run, a quorum that runs and reaches itself gets an established leader, unless it ends",
    requirements=("R2", "R3"),
    notes="The quorum is a set of running servers that all reach one another and are a quorum in the view of each of "
    "them. Every fair run from such a state reaches a state with an established leader, counting only followers "
    "within its reach, or a state without such a set. Fair are all steps of servers and of the network. These actions "
    "need never happen: `crash`, `restart`, `start`, `cut`, `partition`, `heal`, `disconnect`, `give up`, the plan's "
    "actions, and clients' requests. An order of votes with a cycle breaks the property, and so do votes that are sent "
    "only once.",
)
def _elects(setup: Setup) -> Condition:
    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(setup.sids, seen, strict=True))
        leaders = serving(statuses, cut)
        if leaders:
            return Finding("a leader is established", (("leaders", leaders),))
        return None if has_quorum(statuses, cut) else Finding("no quorum is within reach of itself")

    return Condition(statuses_and_links_of(setup), check)


def has_quorum(statuses: Statuses, cut: frozenset[Link]) -> bool:
    """Whether servers run that all reach one another, and are a quorum in the view of each of them."""
    running = {sid: status for sid, status in statuses.items() if isinstance(status, ElectionStatus)}
    return any(
        all(running[sid].view.contains_quorum(group) for sid in group)
        for size in range(len(running), 0, -1)
        for group in map(frozenset, combinations(running, size))
        if cut.isdisjoint(combinations(sorted(group), 2)) and _by_addresses(running, group)
    )


def _by_addresses(running: Mapping[Sid, ElectionStatus], group: Collection[Sid]) -> bool:
    """Whether each of these servers can connect to both peer ports of each other one, by the addresses in its file."""
    views = {sid: running[sid].view.addresses for sid in group}
    return all(
        opens(views[first], first, views[second], second) and reaches(views[first], views[second], second, Port.QUORUM)
        for first, second in permutations(group, 2)
    )


def _is_with(statuses: Statuses, sid: Sid, leader: Sid) -> bool:
    """Whether a server does not run, or serves with this leader, and can connect to it by its file."""
    status = statuses[sid]
    return isinstance(status, str) or (status.leader == leader and has_rejoined(statuses, sid))


def _link(one: Sid, other: Sid) -> Link:
    return min(one, other), max(one, other)
