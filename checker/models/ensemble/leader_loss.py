"""The loss of a leader by a follower, and of followers by a leader.

Time has no length here, so giving up is free only where waiting is hopeless. Where the other side may still come,
giving up is an early timeout, and costs one of `early_timeouts`. Sources: `QuorumPeer.run`, `Follower.followLeader`,
`Leader.lead`.
"""

from __future__ import annotations

from collections.abc import Callable

from checker.engine import Move, Read, Rule, Send
from checker.models.ensemble.actions import FAULTS, Action, Spend, losses, may_give_up
from checker.models.ensemble.setup import LINKS, Grain, Link, Setup, server_name
from checker.models.ensemble.status import (
    FOLLOWING,
    LEADING,
    LOOKING,
    OBSERVING,
    StatusInRound,
    followers,
    in_round,
)
from spec.election.messages import LeaderLost, QuorumLost
from spec.quorum import Addresses, Port, Sid, reaches
from spec.server import Server


def rules(setup: Setup) -> list[Rule]:
    """The rules of every pair, and of every server that may lead."""
    learners = [_lose_leader(setup, sid, leader) for sid in setup.sids for leader in setup.sids if leader != sid]
    return [*learners, *(_lose_quorum(setup, sid) for sid in setup.sids)]


def _lose_leader(setup: Setup, sid: Sid, leader: Sid) -> Rule:
    """A learner gives up its leader: without cost when the leader can no longer come, by a budget when it still may.

    The leader cannot come if it does not run, is cut off, has decided otherwise, or leads or looks in another round.
    With the oracle it cannot come if it looks, in whatever round. It cannot come either if its quorum port differs from
    the one in the learner's file.
    """
    one_step = setup.grain is Grain.ORACLE

    def moves(
        own: tuple[int, Addresses | None], other: StatusInRound | str, cut: bool, faults: bool
    ) -> list[Move] | None:
        own_round, dialled = own
        if not isinstance(other, str):
            cut = cut or not reaches(dialled, other.status.view.addresses, leader, Port.QUORUM)
        if not isinstance(other, str) and other.status.state is LEADING and other.round == own_round and not cut:
            return None
        event = Send(server_name(sid), LeaderLost())
        may_come = (
            not one_step and not isinstance(other, str) and other.status.state is LOOKING and other.round == own_round
        )
        if cut or not may_come:
            return [Move(Action.LOSE_LEADER, (sid, leader), (event,))]
        return [Move(Action.GIVE_UP, (sid,), (Send(FAULTS, Spend("early_timeouts")), event))] if faults else None

    def followed(server: Server) -> tuple[int, Addresses | None] | None:
        election = server.election
        follows = election and election.state in (FOLLOWING, OBSERVING) and election.vote.leader == leader
        return (election.round, server.view.addresses) if election and follows else None

    reads = (
        Read(server_name(sid), followed),
        Read(server_name(leader), in_round),
        Read(LINKS, _is_cut(sid, leader)),
        Read(FAULTS, may_give_up),
    )
    return Rule(f"lose leader {leader} {sid}", reads, moves, losses(setup.budgets, Action.LOSE_LEADER))


def _lose_quorum(setup: Setup, sid: Sid) -> Rule:
    """A leader gives up: without cost when its present and possible followers are not a quorum, else by a budget.

    A server may still come while it is LOOKING in a round that is not later than the leader's. Where an election is one
    step, no server can: a leader then has its quorum from the beginning.
    """
    one_step = setup.grain is Grain.ORACLE
    others = [other for other in setup.sids if other != sid]

    def moves(own: StatusInRound, cut: frozenset[Link], faults: bool, *seen: StatusInRound | str) -> list[Move] | None:
        within_reach = {
            other: each
            for other, each in zip(others, seen, strict=True)
            if isinstance(each, StatusInRound)
            and (min(sid, other), max(sid, other)) not in cut
            and reaches(each.status.view.addresses, own.status.view.addresses, sid, Port.QUORUM)
        }
        behind = followers({other: each.status for other, each in within_reach.items()}, sid) | {sid}
        if own.status.view.contains_quorum(behind):
            return None
        event = Send(server_name(sid), QuorumLost())
        coming = {o for o, each in within_reach.items() if _looks_for(each, own)}
        if one_step or not own.status.view.contains_quorum(behind | coming):
            return [Move(Action.LOSE_QUORUM, (sid,), (event,))]
        return [Move(Action.GIVE_UP, (sid,), (Send(FAULTS, Spend("early_timeouts")), event))] if faults else None

    def leads(server: Server) -> StatusInRound | None:
        found = in_round(server)
        return found if isinstance(found, StatusInRound) and found.status.state is LEADING else None

    reads = (
        Read(server_name(sid), leads),
        Read(LINKS),
        Read(FAULTS, may_give_up),
        *(Read(server_name(other), in_round) for other in others),
    )
    return Rule(f"lose quorum {sid}", reads, moves, losses(setup.budgets, Action.LOSE_QUORUM))


def _looks_for(other: StatusInRound, leader: StatusInRound) -> bool:
    """Whether a server is LOOKING in a round that still allows it to find this leader."""
    return other.status.state is LOOKING and other.round <= leader.round


def _is_cut(one: Sid, other: Sid) -> Callable[[frozenset[Link]], bool]:
    link = (min(one, other), max(one, other))
    return lambda cut: link in cut
