"""The invariants and witnesses of elections.

Every property returns a value: the clause that decided and its witnesses. Properties read small projections of servers
(`ElectionStatus`), so that each is evaluated once for every combination of projected values.
"""

from collections.abc import Callable
from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Read
from checker.models.ensemble.setup import Link, Setup, server_name
from checker.models.ensemble.status import ElectionStatus, followers, has_rejoined, is_established
from checker.properties.projections import (
    ELECTION,
    ENSEMBLE_PROPERTIES,
    FINE,
    SERVER,
    STANDALONE,
    STATIC,
    Statuses,
    serving,
    statuses_and_links_of,
    statuses_of,
)
from checker.properties.registry import Answer, Condition
from spec.quorum import Sid, votes_in
from spec.server import Server


def _of_statuses(setup: Setup, check: Callable[[Statuses], Answer]) -> Condition:
    return Condition(statuses_of(setup), lambda *seen: check(dict(zip(setup.sids, seen, strict=True))))


@ENSEMBLE_PROPERTIES.declare(
    "OneLeader",
    Kind.ALWAYS,
    meaning="No two servers lead at the same time with a quorum of their view behind them",
    violation="two servers lead at once, each with a quorum of its own file",
    premise="Some server is established",
    requirements=("R11",),
    notes="This is the rule for the election alone. LEADING alone is not enough: a correct server is LEADING for a "
    "moment beside another leader. Views with disjoint quorums break the property, for example files that differ by "
    "two voters.",
    default=ELECTION,
)
def _one_leader(setup: Setup) -> Condition:
    def check(statuses: Statuses) -> Answer:
        leaders = _established(statuses)
        if not leaders:
            return TRIVIAL
        if len(leaders) < 2:
            return None
        return Finding(
            "two servers lead, each followed by a quorum of its own view",
            tuple((f"behind server.{sid}", _support(statuses, sid)) for sid in leaders),
        )

    return _of_statuses(setup, check)


def _established(statuses: Statuses, *, standalone: bool = False) -> list[Sid]:
    """The servers that lead an ensemble with a quorum of their view behind them, or those that run standalone."""
    return [
        sid
        for sid, status in statuses.items()
        if isinstance(status, ElectionStatus) and status.is_standalone is standalone and is_established(statuses, sid)
    ]


@ENSEMBLE_PROPERTIES.declare(
    "StandaloneServesAlone",
    Kind.ALWAYS,
    meaning="While a standalone server runs, no other server runs standalone, or leads and serves with a quorum of its "
    "view",
    violation="a standalone server and other servers serve clients at the same time, each with writes of its own",
    premise="Some server runs standalone",
    requirements=("R11",),
    source="`QuorumPeerMain.initializeAndRun`: a standalone server takes part in no election, so nothing keeps the "
    "others from electing a leader",
    notes="Clients are given the addresses of all servers, and each of them may reach either side. A standalone server "
    "leads no ensemble, so OneLeader does not count it.",
    default=STANDALONE,
)
def _standalone_serves_alone(setup: Setup) -> Condition:
    def check(statuses: Statuses) -> Answer:
        alone = _established(statuses, standalone=True)
        leaders = [sid for sid in _established(statuses) if _serves(statuses[sid])]
        if not alone:
            return TRIVIAL
        if len(alone) + len(leaders) < 2:
            return None
        return Finding(
            "a standalone server serves, and so do others",
            (("standalone", alone), *((f"behind server.{sid}", _support(statuses, sid)) for sid in leaders)),
        )

    return _of_statuses(setup, check)


def _serves(each: ElectionStatus | str) -> bool:
    return isinstance(each, ElectionStatus) and each.serves


def _support(statuses: Statuses, leader: Sid) -> str:
    status = statuses[leader]
    assert isinstance(status, ElectionStatus)
    behind = sorted(followers(statuses, leader) & status.view.voters)
    return f"{behind} of the voters {sorted(status.view.voters)} in its view"


@ENSEMBLE_PROPERTIES.declare(
    "LeaderIsAVoter",
    Kind.ALWAYS,
    meaning="The leader of a decided server is a voter in the view of that server",
    violation="a server follows one that is no voter in its own file",
    premise="Some server has decided",
    requirements=("R4",),
    source="`FastLeaderElection.validVoter`, which drops votes *for* servers that are not voters",
    notes="The leader of a server that leads is the server itself.",
    default=STATIC,
)
def _leader_is_a_voter(setup: Setup) -> Condition:
    def check(statuses: Statuses) -> Answer:
        decided = [(s, e) for s, e in statuses.items() if isinstance(e, ElectionStatus) and e.leader is not None]
        if not decided:
            return TRIVIAL
        wrong = [(sid, status.leader) for sid, status in decided if not status.view.is_voter(status.leader or 0)]
        values = tuple((f"server.{sid} follows", leader) for sid, leader in wrong)
        return Finding("a server follows one that is no voter in its view", values) if wrong else None

    return _of_statuses(setup, check)


@ENSEMBLE_PROPERTIES.declare(
    "OnlyVotersCounted",
    Kind.ALWAYS,
    meaning="A server counts only votes of voters in its view",
    violation="a vote of a server that is no voter is counted",
    premise="Some recvset or outofelection is not empty",
    requirements=("R4",),
    source="`FastLeaderElection.validVoter`, which drops votes *of* servers that are voters of neither configuration",
    notes="The votes in recvset and outofelection count. Voters of the configuration that it has seen last are voters, "
    "too. A vote of another server gets a reply.",
    default=FINE,
)
def _only_voters_counted(setup: Setup) -> Condition:
    def counted(server: Server) -> frozenset[Sid] | str | None:
        election = server.election
        if election is None or not (election.recvset or election.outofelection):
            return "nothing"
        senders = {sid for sid, _ in election.recvset} | {sid for sid, _ in election.outofelection}
        return frozenset(sid for sid in senders if not votes_in(server.peer.views, sid))

    def check(*seen: frozenset[Sid] | str) -> Answer:
        if all(votes == "nothing" for votes in seen):
            return TRIVIAL
        wrong = [(sid, votes) for sid, votes in zip(setup.sids, seen, strict=True) if votes and votes != "nothing"]
        if not wrong:
            return None
        return Finding(
            "a server counts a vote of one that is no voter in its view",
            tuple((f"server.{sid} counts", sorted(votes)) for sid, votes in wrong),
        )

    return Condition(tuple(Read(server_name(sid), counted) for sid in setup.sids), check)


@ENSEMBLE_PROPERTIES.declare(
    "OneVotePerSender",
    Kind.ALWAYS,
    meaning="A receive bucket contains at most one vote of each sender",
    premise="Some recvset or outofelection is not empty",
    requirements=("R8",),
    source="`recvset` and `outofelection` are maps from sender to vote in `lookForLeader`",
    notes="With a list instead of a map, a server that votes twice would count twice.",
)
def _one_vote_per_sender(setup: Setup) -> Condition:
    def senders(server: Server) -> tuple[tuple[Sid, ...], tuple[Sid, ...]] | str:
        election = server.election
        if election is None or not (election.recvset or election.outofelection):
            return "nothing"
        return tuple(sid for sid, _ in election.recvset), tuple(sid for sid, _ in election.outofelection)

    def check(*seen: Any) -> Answer:
        if all(votes == "nothing" for votes in seen):
            return TRIVIAL
        twice = [
            (f"server.{sid} holds votes of", list(bucket))
            for sid, votes in zip(setup.sids, seen, strict=True)
            for bucket in (votes if votes != "nothing" else ())
            if len(set(bucket)) != len(bucket)
        ]
        return Finding("a receive bucket holds two votes of one sender", tuple(twice)) if twice else None

    return Condition(tuple(Read(server_name(sid), senders) for sid in setup.sids), check)


def _leads_finding(statuses: Statuses, leader: Sid) -> Finding | None:
    if not is_established(statuses, leader):
        return None
    return Finding("it leads", (("followed by", sorted(followers(statuses, leader))),))


@ENSEMBLE_PROPERTIES.declare(
    "NeverLeads",
    Kind.ALWAYS,
    meaning="The server never leads with a quorum of its view behind it",
    requirements=("R7",),
    notes="It states that a server must not win, because its data is older or its id is lower. It is a claim about "
    "one scenario, not about ZooKeeper.",
    parameter=SERVER,
)
def _never_leads(setup: Setup, leader: Sid) -> Condition:
    return _of_statuses(setup, lambda statuses: _leads_finding(statuses, leader))


@ENSEMBLE_PROPERTIES.declare(
    "Leads",
    Kind.SOMETIMES,
    meaning="In some state the server leads with a quorum of its view behind it",
    requirements=("R7",),
    parameter=SERVER,
)
def _leads(setup: Setup, leader: Sid) -> Condition:
    return _of_statuses(setup, lambda statuses: _leads_finding(statuses, leader))


@ENSEMBLE_PROPERTIES.declare(
    "Elected",
    Kind.SOMETIMES,
    meaning="In some state a server leads with a quorum of its view within reach",
    requirements=("R2", "R3"),
    notes="It shows which side of a partition elects. Only followers within reach of the leader count.",
)
def _elected(setup: Setup) -> Condition:
    def check(cut: frozenset[Link], *seen: ElectionStatus | str) -> Answer:
        leaders = serving(dict(zip(setup.sids, seen, strict=True)), cut)
        return Finding("a leader is established", (("leader", leaders[0]),)) if leaders else None

    return Condition(statuses_and_links_of(setup), check)


@ENSEMBLE_PROPERTIES.declare(
    "AllSettled",
    Kind.SOMETIMES,
    meaning="In some state every server runs and follows, observes or is an established leader",
    requirements=("R10",),
    notes="Every server has rejoined, which is the goal of a roll-out. More than one leader is possible; the finding "
    "names the leaders.",
)
def _all_settled(setup: Setup) -> Condition:
    def check(statuses: Statuses) -> Answer:
        if not all(has_rejoined(statuses, sid) for sid in statuses):
            return None
        sids = {status.leader for status in statuses.values() if isinstance(status, ElectionStatus) and status.leader}
        return Finding("every server has rejoined", (("leaders", sorted(sids)),))

    return _of_statuses(setup, check)
