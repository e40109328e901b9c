"""The invariants and witnesses of elections.

Every property returns a value: the clause that decided and its witnesses. Properties read small projections of servers
(`ElectionStatus`), so that each is evaluated once for every combination of projected values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Property, Read
from checker.engine.model import Trivial
from checker.models.ensemble.names import LINKS, VOTES, Link, server_name
from checker.models.ensemble.setup import Setup
from checker.models.ensemble.status import (
    LEADING,
    ElectionStatus,
    election_status,
    followers,
    has_rejoined,
    is_established,
)
from spec.election.vote import ServerState
from spec.quorum import Sid
from spec.server import Server

Statuses = Mapping[Sid, ElectionStatus | str]
Answer = Finding | Trivial | None


def _of_statuses(setup: Setup, check: Callable[[Statuses], Answer]) -> dict[str, Any]:
    """The reads and the check of a property of the summaries of all servers."""
    return {
        "reads": tuple(Read(server_name(sid), election_status) for sid in setup.sids),
        "check": lambda *seen: check(dict(zip(setup.sids, seen, strict=True))),
    }


def one_leader(setup: Setup) -> Property:
    """R11, for the election alone: no two servers lead at one time, each with a quorum of its view that follows it."""

    def check(statuses: Statuses) -> Answer:
        leaders = [sid for sid, each in statuses.items() if is_established(statuses, sid)]
        if not leaders:
            return TRIVIAL
        if len(leaders) < 2:
            return None
        return Finding(
            "two servers lead, each followed by a quorum of its own view",
            tuple((f"behind server.{sid}", _support(statuses, sid)) for sid in leaders),
        )

    meaning = "no two servers each lead with a quorum of their own view behind them"
    return Property("OneLeader", kind=Kind.ALWAYS, meaning=meaning, **_of_statuses(setup, check))


def _support(statuses: Statuses, leader: Sid) -> str:
    own = statuses[leader]
    assert isinstance(own, ElectionStatus)
    behind = sorted(followers(statuses, leader) & own.view.voters)
    return f"{behind} of the voters {sorted(own.view.voters)} in its view"


def only_voters_counted(setup: Setup) -> Property:
    """R4: no vote of an observer, or of a server outside the view, is ever in recvset or outofelection."""

    def counted(server: Server) -> frozenset[Sid] | str | None:
        election = server.election
        if election is None or not (election.recvset or election.outofelection):
            return "nothing"
        senders = {sid for sid, _ in election.recvset} | {sid for sid, _ in election.outofelection}
        return frozenset(senders - server.view.voters)

    def check(*seen: frozenset[Sid] | str) -> Answer:
        if all(each == "nothing" for each in seen):
            return TRIVIAL
        wrong = [(sid, each) for sid, each in zip(setup.sids, seen, strict=True) if each and each != "nothing"]
        if not wrong:
            return None
        return Finding(
            "a server counts a vote of one that is no voter in its view",
            tuple((f"server.{sid} counts", sorted(each)) for sid, each in wrong),
        )

    return Property(
        "OnlyVotersCounted",
        tuple(Read(server_name(sid), counted) for sid in setup.sids),
        check,
        meaning="a server counts votes of the voters in its own view, and of nobody else",
    )


def leader_is_a_voter(setup: Setup) -> Property:
    """R4: every server that leads or is followed is a voter in the view of the deciding server."""

    def check(statuses: Statuses) -> Answer:
        decided = [(s, e) for s, e in statuses.items() if isinstance(e, ElectionStatus) and e.leader is not None]
        if not decided:
            return TRIVIAL
        wrong = [(sid, each.leader) for sid, each in decided if not each.view.is_voter(each.leader or 0)]
        values = tuple((f"server.{sid} follows", leader) for sid, leader in wrong)
        return Finding("a server follows one that is no voter in its view", values) if wrong else None

    meaning = "a server follows voters of its own view only, and leads only if it is one"
    return Property("LeaderIsAVoter", meaning=meaning, **_of_statuses(setup, check))


def elected(setup: Setup) -> Property:
    """A witness: some server leads and a quorum of its view follows it, with no cut link between them."""

    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Answer:
        statuses = dict(zip(setup.sids, seen, strict=True))
        for sid, each in statuses.items():
            if isinstance(each, ElectionStatus) and each.state is LEADING:
                connected = {o: e for o, e in statuses.items() if (min(o, sid), max(o, sid)) not in cut}
                if is_established(connected, sid):
                    return Finding("a leader is established", (("leader", sid),))
        return None

    reads = (Read(LINKS), *(Read(server_name(sid), election_status) for sid in setup.sids))
    return Property("Elected", reads, check, Kind.SOMETIMES, "a server leads with a quorum of its view within reach")


def all_settled(setup: Setup) -> Property:
    """A witness: every server runs, and follows, observes or is an established leader."""

    def check(statuses: Statuses) -> Answer:
        if not all(has_rejoined(statuses, sid) for sid in statuses):
            return None
        leaders = sorted(
            {each.leader for each in statuses.values() if isinstance(each, ElectionStatus) and each.leader}
        )
        return Finding("every server has rejoined", (("leaders", leaders),))

    meaning = "every server runs and follows, observes or is an established leader"
    return Property("AllSettled", kind=Kind.SOMETIMES, meaning=meaning, **_of_statuses(setup, check))


def leads(setup: Setup, leader: Sid) -> Property:
    """A witness: this server is an established leader."""

    def check(statuses: Statuses) -> Answer:
        found = is_established(statuses, leader)
        return Finding("it leads", (("followed by", sorted(followers(statuses, leader))),)) if found else None

    meaning = f"server.{leader} leads with a quorum of its view behind it"
    return Property(f"Leads({leader})", kind=Kind.SOMETIMES, meaning=meaning, **_of_statuses(setup, check))


def never_leads(setup: Setup, leader: Sid) -> Property:
    """An invariant: this server is never an established leader."""

    def check(statuses: Statuses) -> Answer:
        if not is_established(statuses, leader):
            return None
        return Finding("it leads", (("followed by", sorted(followers(statuses, leader))),))

    meaning = f"server.{leader} never leads with a quorum of its view behind it"
    return Property(f"NeverLeads({leader})", meaning=meaning, **_of_statuses(setup, check))


class Bucket:
    """The entry of the source's table for one server: its state, and the last vote of each sender."""

    def __init__(self, state: ServerState, votes: Mapping[Sid, tuple[int, Sid]]) -> None:
        self.state, self.votes = state, dict(votes)


def buckets(name: str, table: Mapping[Sid, Bucket]) -> Property:
    """A witness (R7, R10): at one moment the servers have exactly these receive buckets, as (zxid, leader)."""
    sids = tuple(sorted(table))

    def check(votes: Iterable[Any], *seen: ElectionStatus | str) -> Answer:
        received: dict[Sid, dict[Sid, tuple[int, Sid]]] = {sid: {} for sid in sids}
        for (server, sender), vote in votes:
            if server in received:
                received[server][sender] = (vote.zxid, vote.leader)
        for sid, each in zip(sids, seen, strict=True):
            if not isinstance(each, ElectionStatus) or each.state is not table[sid].state:
                return None
            if received[sid] != table[sid].votes:
                return None
        return Finding("the receive buckets are those of the table")

    reads = (Read(VOTES), *(Read(server_name(sid), election_status) for sid in sids))
    return Property(name, reads, check, Kind.SOMETIMES, f"the receive buckets of the table {name!r}")
