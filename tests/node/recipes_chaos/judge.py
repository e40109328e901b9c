"""The clauses that must hold of a run, and its figures: pure functions of the record.

Rules of this module:

- A violation of a clause has named values, and the message contains them.
- Delays by a pause of a client, a slow network or an election of servers are not violations: `Bounds` limits them.
- A stale write that the resource has refused is not a violation: the fence exists for this, and it is counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from tests.node.recipes_chaos import record
from tests.node.recipes_chaos.record import Entry

ORDER, OWNER, ALIVE, ORPHAN, SERVED, EMPTY, FAILED = (
    "accepted writes are in the order of their tokens",
    "a token belongs to one client",
    "a znode's session is alive",
    "a client has one znode in a queue, or knows of the other",
    "every waiter is served",
    "the queues are empty in the end",
    "no client fails",
)


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of durations, in seconds: the sessions' time-out, an election of servers, a wait at the end."""

    time_out: float
    election: float
    served: float


class Violation(msgspec.Struct, frozen=True):
    """The clause, and the values that break it."""

    clause: str
    text: str

    def __str__(self) -> str:
        return f"{self.clause}: {self.text}"


@dataclass
class Findings:
    """The violations and the figures of a run."""

    violations: list[Violation]
    acquisitions: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    rejected: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    gave_up: int = 0
    sessions: int = 0
    expired: int = 0
    samples: int = 0
    longest_wait: float = 0.0
    longest_last_wait: float = 0.0
    longest_window: float = 0.0
    """The longest time from the first write of a later holder to a refused write of an earlier one."""

    def __str__(self) -> str:
        by_resource = ", ".join(f"{name} {count}" for name, count in sorted(self.acquisitions.items()))
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self.faults.items()))
        lines = [
            f"acquisitions {self.acquisitions.total()} ({by_resource}), given up {self.gave_up}",
            f"writes accepted {self.accepted}, stale ones stopped by the fence {self.rejected}, up to"
            f" {self.longest_window:.2f} s after a later holder's first",
            f"faults {self.faults.total()} ({faults})",
            f"sessions {self.sessions}, of which expired under a client that lived {self.expired}",
            f"looks at the queues {self.samples}; longest wait {self.longest_wait:.2f} s, without faults"
            f" {self.longest_last_wait:.2f} s",
            *(f"VIOLATED {violation}" for violation in self.violations),
        ]
        return "\n".join(lines)


def judge(entries: Sequence[Entry], bounds: Bounds) -> Findings:
    """Return all violations of a run, and its figures."""
    found = Findings(
        [
            *_order(entries),
            *_owners(entries),
            *_alive(entries, bounds),
            *_orphans(entries, bounds),
            *_served(entries, bounds),
            *_emptied(entries),
            *_failed(entries),
        ]
    )
    _count(entries, found)
    return found


# -- the clauses


def _order(entries: Sequence[Entry]) -> Iterator[Violation]:
    greatest: dict[str, record.Write] = {}
    for entry in entries:
        if isinstance(entry, record.Write) and entry.accepted:
            before = greatest.get(entry.resource)
            if before is not None and entry.token < before.token:
                yield Violation(
                    ORDER,
                    f"{entry.resource} accepted {entry.token:#x} of {entry.client} after {before.token:#x} of"
                    f" {before.client}",
                )
            else:
                greatest[entry.resource] = entry


def _owners(entries: Sequence[Entry]) -> Iterator[Violation]:
    owners: dict[tuple[str, int], str] = {}
    for entry in entries:
        if isinstance(entry, record.Write | record.Held):
            owner = owners.setdefault((entry.resource, entry.token), entry.client)
            if owner != entry.client:
                yield Violation(OWNER, f"{entry.resource}: {entry.token:#x} is used by {owner} and {entry.client}")


def _alive(entries: Sequence[Entry], bounds: Bounds) -> Iterator[Violation]:
    """Violations by znodes in a queue whose session has ended: its client saw that, or was killed long enough ago."""
    ended: dict[int, float] = {}
    killed: dict[str, float] = {}
    owners = {entry.session: entry.client for entry in entries if isinstance(entry, record.Opened)}
    disturbed = [entry for entry in entries if isinstance(entry, record.Disturbed)]
    for entry in entries:
        match entry:
            case record.Ended(at, _, session):
                ended.setdefault(session, at)
            case record.Killed(at, clients):
                killed.update(dict.fromkeys(clients, at))
            case record.Sample(at, resource, places, alive):
                for place in places:
                    client = owners.get(place.owner)
                    what = f"{resource}: {place.name} of session {place.owner:#x}"
                    if client is None:
                        yield Violation(ALIVE, f"{what}, which no client has ever had")
                    elif place.owner in ended and ended[place.owner] < at:
                        yield Violation(
                            ALIVE, f"{what}, which {client} knew to be over {at - ended[place.owner]:.2f} s before"
                        )
                    elif alive is not None and place.owner not in alive:
                        yield Violation(ALIVE, f"{what} of {client}, which the leader does not know")
                    elif client in killed and at > _lapsed(killed[client], disturbed, bounds):
                        yield Violation(ALIVE, f"{what}, {at - killed[client]:.2f} s after {client} was killed")


def _lapsed(killed: float, disturbed: Sequence[record.Disturbed], bounds: Bounds) -> float:
    """Return the latest end of the session of a killed client; a new leader restarts the timeouts of all sessions."""
    lapsed = killed + 2 * bounds.time_out
    for each in disturbed:
        if each.at <= lapsed:
            lapsed = max(lapsed, each.until + bounds.election + 2 * bounds.time_out)
    return lapsed


def _orphans(entries: Sequence[Entry], bounds: Bounds) -> Iterator[Violation]:
    """Violations by two znodes of one session in a queue, for longer than a deletion may be in flight."""
    since: dict[tuple[str, int, str, str], float] = {}
    named: set[tuple[str, int, str, str]] = set()
    patience = 2 * bounds.time_out + 2 * bounds.election
    for entry in entries:
        if not isinstance(entry, record.Sample):
            continue
        by_owner: dict[int, list[str]] = defaultdict(list)
        for place in sorted(entry.places, key=lambda place: place.czxid):
            by_owner[place.owner].append(place.name)
        pairs = {(entry.resource, owner, names[0], other) for owner, names in by_owner.items() for other in names[1:]}
        since = {pair: at for pair, at in since.items() if pair[0] != entry.resource or pair in pairs}
        for pair in pairs:
            first = since.setdefault(pair, entry.at)
            if entry.at - first > patience and pair not in named:
                named.add(pair)
                resource, owner, older, younger = pair
                yield Violation(
                    ORPHAN, f"{resource}: session {owner:#x} has had {older} and {younger} for {entry.at - first:.2f} s"
                )


def _served(entries: Sequence[Entry], bounds: Bounds) -> Iterator[Violation]:
    """Violations by clients that are not served again in time after the faults have stopped."""
    calm = next((entry.at for entry in entries if isinstance(entry, record.Calm)), None)
    if calm is None:
        yield Violation(SERVED, "the run has not come to its end without faults")
        return
    gone = {client for entry in entries if isinstance(entry, record.Killed) for client in entry.clients}
    rested = {entry.client: entry.at for entry in entries if isinstance(entry, record.Rests)}
    clients = dict.fromkeys(entry.client for entry in entries if isinstance(entry, record.Opened))
    for client in clients:
        if client in gone:
            continue
        if client not in rested:
            yield Violation(SERVED, f"{client} is not served within {entries[-1].at - calm:.2f} s without faults")
        elif rested[client] - calm > bounds.served:
            yield Violation(SERVED, f"{client} is served {rested[client] - calm:.2f} s after the last fault")


def _emptied(entries: Sequence[Entry]) -> Iterator[Violation]:
    resources = {entry.resource for entry in entries if isinstance(entry, record.Waits)}
    looked = {entry.resource: entry for entry in entries if isinstance(entry, record.Emptied)}
    owners = {entry.session: entry.client for entry in entries if isinstance(entry, record.Opened)}
    for resource in sorted(resources - set(looked)):
        yield Violation(EMPTY, f"nobody has looked at {resource}")
    for resource, look in looked.items():
        for place in look.left:
            owner = owners.get(place.owner, "nobody known")
            yield Violation(
                EMPTY, f"{resource}: {place.name} of {owner} is there {look.at - look.since:.2f} s after the last wish"
            )


def _failed(entries: Sequence[Entry]) -> Iterator[Violation]:
    for entry in entries:
        if isinstance(entry, record.Failed):
            yield Violation(FAILED, f"{entry.client}: {entry.error}")


# -- the figures


def _count(entries: Sequence[Entry], found: Findings) -> None:
    waiting: dict[str, record.Waits] = {}
    sessions: set[int] = set()
    first: dict[str, dict[int, float]] = defaultdict(dict)  # for each token of a resource the time of its first write
    for entry in entries:
        match entry:
            case record.Waits(_, client):
                waiting[client] = entry
            case record.GaveUp(_, client):
                found.gave_up += 1
                waiting.pop(client, None)
            case record.Held(at, client, resource):
                found.acquisitions[resource] += 1
                if (began := waiting.pop(client, None)) is not None:
                    found.longest_wait = max(found.longest_wait, at - began.at)
                    if began.last:
                        found.longest_last_wait = max(found.longest_last_wait, at - began.at)
            case record.Write(at, _, resource, token, accepted):
                found.accepted += accepted
                found.rejected += not accepted
                times = first[resource]
                if accepted:
                    times.setdefault(token, at)
                elif later := [began for other, began in times.items() if other > token]:
                    found.longest_window = max(found.longest_window, at - min(later))
            case record.Fault(_, name):
                found.faults[name] += 1
            case record.Opened(_, _, session):
                sessions.add(session)
            case record.Ended():
                found.expired += 1
            case record.Sample():
                found.samples += 1
    found.sessions = len(sessions)
