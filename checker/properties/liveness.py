"""The goals of runs of an ensemble: it can settle from every state, and every fair run elects a leader.

Rules of this module:

- *Fair* steps are the steps of servers and of the network: messages and packets arrive, waits and timeouts end, losses
  are noticed, disks catch up. The steps of a fault, an operator or a client need never happen: a crash, a cut and its
  healing, a first start and a return, an action of the plan, a write. A goal must therefore be reached whichever of
  these steps happen, and also if none of them ever does.
- The steps of an opening do happen, in their order.
- Steps beyond a budget or a bound cannot happen, such as a round after the last one or one timeout more than the budget
  allows. A run that ends for such a reason is shown like any other; give a scenario bounds that leave room.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from itertools import combinations, permutations

from checker.engine import Finding, Kind, Move, Property, Read
from checker.models.ensemble.actions import is_fair
from checker.models.ensemble.names import LINKS, Link, server_name
from checker.models.ensemble.setup import Setup
from checker.models.ensemble.status import ElectionStatus, election_status
from checker.properties.role_patterns import Statuses, serving
from spec.quorum import Port, Sid, opens, reaches


def fair(rule: str, move: Move) -> Hashable:
    """The unit of fairness of a move in an ensemble: the moves of one rule under one name.

    None for a move that need not happen. See `checker.models.ensemble.actions.Traits`.
    """
    return (rule, move.action) if is_fair(move) else None


def settles(setup: Setup) -> Property:
    """R2, R3: from every state, some run reaches one where all servers that run within reach of a leader follow it."""

    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(setup.sids, seen, strict=True))
        for leader in serving(statuses, cut):
            near = [s for s in statuses if s == leader or _link(s, leader) not in cut]
            if all(_is_with(statuses[sid], leader) for sid in near):
                return Finding("everybody within reach of a leader is with it", (("leader", leader),))
        return None

    meaning = "from every state some run comes to one in which all that run within reach of a leader are with it"
    return Property("Settles", _reads(setup), check, Kind.RECOVERABLE, meaning, fair)


def elects(setup: Setup) -> Property:
    """R2, R3: while servers of a quorum run and reach one another, every fair run reaches an established leader."""

    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Finding | None:
        statuses = dict(zip(setup.sids, seen, strict=True))
        leaders = serving(statuses, cut)
        if leaders:
            return Finding("a leader is established", (("leaders", leaders),))
        return None if has_quorum(statuses, cut) else Finding("no quorum is within reach of itself")

    meaning = "a quorum that runs and stays within reach of itself comes to an established leader, on every fair run"
    return Property("Elects", _reads(setup), check, Kind.EVENTUALLY, meaning, fair)


def has_quorum(statuses: Statuses, cut: frozenset[Link]) -> bool:
    """Whether servers run that all reach one another, and are a quorum in the view of each of them."""
    running = {sid: each for sid, each in statuses.items() if isinstance(each, ElectionStatus)}
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
        opens(views[one], one, views[other], other) and reaches(views[one], views[other], other, Port.QUORUM)
        for one, other in permutations(group, 2)
    )


def _is_with(each: ElectionStatus | str, leader: Sid) -> bool:
    return isinstance(each, str) or (each.leader == leader and each.serves)


def _link(one: Sid, other: Sid) -> Link:
    return min(one, other), max(one, other)


def _reads(setup: Setup) -> tuple[Read, ...]:
    sids: Iterable[Sid] = setup.sids
    return (Read(LINKS), *(Read(server_name(sid), election_status) for sid in sids))
