"""The rules of an ensemble: messages arrive, timers fire, elections end, servers give up; and those of other modules.

A rule reads only the values that decide it, budgets first, so that a spent budget disables it immediately. Time has no
length here, so giving up a leader or a quorum is free only where waiting is hopeless. Where the other side may still
come, giving up is an early timeout, and costs one of `early_timeouts`. The names of actions and their arguments appear
in traces and coverage:

    deliver a b message    decide s           rebroadcast s         elect l members
    start s file           restart s file     crash s               plan n: stop s, plan n: start s
    lose leader s l        lose quorum s      give up s
    cut a b                partition side     heal

Sources: `QuorumPeer.run`, `Follower.followLeader`, `Leader.lead`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from checker.engine import Move, Read, Rule, Send
from checker.kit.actions import FAULTS, fair_among, limited_rule, spend
from checker.kit.environment import LINKS
from checker.models.ensemble import environment, zab
from checker.models.ensemble.actions import Need, ServerAction, losses, may_give_up
from checker.models.ensemble.columns import ConnectionsMade, Pop
from checker.models.ensemble.connection import Pass
from checker.models.ensemble.setup import CONNECTIONS, Grain, Link, Setup, channel_name, connection_name, server_name
from checker.models.ensemble.status import FOLLOWING, LEADING, LOOKING, OBSERVING, StatusInRound, followers, in_round
from checker.models.ensemble.symmetry import Groups, orders, renamed
from spec.effects import Timer
from spec.election import oracle
from spec.election.channel import Channel
from spec.election.messages import Deliver, Elected, Fired, LeaderLost, Notification, QuorumLost, ViewHeard
from spec.election.state import Summary
from spec.quorum import Addresses, Port, Sid, View, reaches, votes_in
from spec.server import Server, summary


def rules(setup: Setup, groups: Groups = ()) -> tuple[Rule, ...]:
    """All rules of an ensemble at its grain; with `groups`, elections for every order of the ids within these."""
    if setup.grain is Grain.ORACLE:
        parts = [_elect(setup, sid, groups) for sid in setup.sids]
        if setup.gossip:
            parts += [_learn(*pair) for pair in pairs(setup)]
    else:
        parts = [_decide(sid) for sid in setup.sids] + [_deliver(a, b) for a, b in pairs(setup)]
        if setup.budgets.notification_timeouts:
            parts += [_rebroadcast(sid) for sid in setup.sids]
    if setup.zab is None:
        parts += [_lose_leader(setup, sid, leader) for sid in setup.sids for leader in setup.sids if leader != sid]
        parts += [_lose_quorum(setup, sid) for sid in setup.sids]
    else:
        parts += zab.rules(setup)
    return tuple(replace(rule, fair=fair_among(rule.actions)) for rule in (*parts, *environment.rules(setup)))


def may_be_silent(setup: Setup) -> frozenset[ServerAction]:
    """The actions that need not fire.

    Without a fault, or with enough servers left, nothing is lost, and no server has to learn a configuration. Where
    servers lead and follow, nothing may be written; a client that never writes is still reported, as the silent action
    `client write`. After a history with an established leader its work alone is explored, so there need be no election.
    """
    absent = {Need.FAULT, Need.CONFIGURATION} if setup.gossip else {Need.FAULT}
    if setup.zab is not None:
        absent |= {Need.WRITE, Need.ELECTION} if setup.prologue else {Need.WRITE}
    return frozenset(action for action in ServerAction if action.traits.need in absent)


def pairs(setup: Setup) -> list[Link]:
    """Ordered pairs of servers that may exchange notifications."""
    return [(a, b) for a in setup.sids for b in setup.sids if a != b and setup.talk(a, b)]


def _decide(sid: Sid) -> Rule:
    def moves(server: Server) -> list[Move] | None:
        if server.election is None or not server.election.finalizing:
            return None
        arguments = (sid, server.election.vote.leader)
        return [Move(ServerAction.DECIDE, arguments, (Send(server_name(sid), Fired(Timer.FINALIZE_WAIT)),))]

    return Rule(f"decide {sid}", (Read(server_name(sid)),), moves, (ServerAction.DECIDE,))


def _deliver(source: Sid, destination: Sid) -> Rule:
    name = channel_name(source, destination)

    def moves(channel: Channel) -> list[Move] | None:
        if not channel.in_flight:
            return None
        heard = channel.in_flight[0]
        assert isinstance(heard, Notification)
        event = Deliver(source, heard)
        sends = (Send(name, Pop()), Send(server_name(destination), event))
        return [Move(ServerAction.DELIVER, (source, destination, heard), sends)]

    return Rule(f"deliver {name}", (Read(name),), moves, (ServerAction.DELIVER,))


def _rebroadcast(sid: Sid) -> Rule:
    fired = Send(server_name(sid), Fired(Timer.NOTIFICATION_TIMEOUT))
    looking = Read(server_name(sid), _waits_for_notifications)
    return limited_rule(ServerAction.REBROADCAST, sid, (sid,), (fired,), looking)


def _waits_for_notifications(server: Server) -> bool | None:
    election = server.election
    return True if election and election.state is LOOKING and not election.finalizing else None


def _elect(setup: Setup, first: Sid, groups: Groups) -> Rule:
    """The oracle: one step for each possible decision of an election; `first` is the first LOOKING server.

    There is a rule for each server that may be first, so that nothing is computed while no server is LOOKING. Where
    servers continue to lead, each new leader may make a new epoch: then elections have a budget.
    """
    limited = setup.zab is not None

    def moves(left: bool, cut: frozenset[Link], *seen: Any) -> list[Move]:
        options = []
        summaries, connected = seen[: len(setup.sids)], (seen[-1] if setup.keeps_connections else ())
        links = {frozenset(link) for link in cut}

        def outcomes(summaries: Any, links: Any) -> tuple[oracle.Outcome, ...]:
            known = map(frozenset, connected)
            return oracle.outcomes(summaries, links, not limited, known, setup.hears_observers)

        for outcome, learners in _in_every_order(outcomes, summaries, links, groups):
            new = outcome.leader in outcome.members
            if new and not left:
                continue
            spent = (spend(ServerAction.ELECT),) if new and limited else ()
            decided = tuple(Send(server_name(sid), Elected(outcome.vote, outcome.round)) for sid in outcome.members)
            discovery = _discovery(outcome.leader, learners) if setup.discovery_in_one_step else ()
            remaining: tuple[Send, ...] = ()
            if setup.keeps_connections:
                ties = oracle.made_connections(summaries, links, outcome.members)
                remaining = (Send(CONNECTIONS, ConnectionsMade(frozenset((min(link), max(link)) for link in ties))),)
            options.append(
                Move(ServerAction.ELECT, (outcome.leader, outcome.members), (*decided, *spent, *discovery, *remaining))
            )
        return options

    def looks(server: Server) -> Summary | None:
        return summary(server) if server.election is not None and server.election.state is LOOKING else None

    def looks_not(server: Server) -> Summary | None:
        return None if server.election is not None and server.election.state is LOOKING else summary(server)

    budget = Read(FAULTS, lambda faults: not limited or faults.left.elections > 0)
    seen = (
        Read(server_name(sid), looks if sid == first else looks_not if sid < first else summary) for sid in setup.sids
    )
    connection_reads = (Read(CONNECTIONS),) if setup.keeps_connections else ()
    return Rule(f"elect {first}", (budget, Read(LINKS), *seen, *connection_reads), moves, (ServerAction.ELECT,))


def _in_every_order(
    outcomes: Callable[[Iterable[Summary], Iterable[oracle.Link]], Iterable[oracle.Outcome]],
    summaries: Iterable[Summary],
    cut: Iterable[oracle.Link],
    groups: Groups,
) -> Iterable[tuple[oracle.Outcome, tuple[Sid, ...]]]:
    """The outcomes of an election, each with its learners in the order in which the leader hears them: that of ids.

    With `groups` they are those for every order of the ids, as far as it is another order of the LOOKING servers. No
    other ids are compared.
    """
    looking = [item.sid for item in summaries if item.state is LOOKING]
    past = set[tuple[Sid, ...]]()
    fresh = dict[tuple[oracle.Outcome, tuple[Sid, ...]], None]()
    for ids in orders(groups):
        order = tuple(sorted(looking, key=lambda sid, ids=ids: ids.get(sid, sid)))  # type: ignore[misc]
        if order in past:
            continue
        past.add(order)
        back = {target: sid for sid, target in ids.items()}
        links = (frozenset(ids.get(sid, sid) for sid in link) for link in cut)
        for outcome in outcomes([renamed(item, ids) for item in summaries], links):
            learners = tuple(back.get(sid, sid) for sid in outcome.members if sid != outcome.leader)
            fresh[renamed(outcome, back), learners] = None
    return fresh


def _discovery(leader: Sid, learners: tuple[Sid, ...]) -> tuple[Send, ...]:
    """FOLLOWERINFO of every learner, LEADERINFO and ACKEPOCH arrive together: an epoch begins in one step."""
    readers = [*[(sid, leader) for sid in learners], *[(sid, sid) for sid in learners]]
    return tuple(
        Send(connection_name(sid, leader), Pass(reader)) for sid, reader in (*readers, *[(s, leader) for s in learners])
    )


def _learn(sid: Sid, other: Sid) -> Rule:
    """A LOOKING server hears a notification with a later configuration: the oracle has no notifications of its own.

    It hears another server that answers its vote, because it is a voter for the first one, or that looks and sends it
    its own vote.
    """
    link = (min(sid, other), max(sid, other))

    def looks(server: Server) -> tuple[View, ...] | None:
        election = server.election
        return server.peer.views if election is not None and election.state is LOOKING else None

    def moves(views: tuple[View, ...], cut: bool, heard: Summary) -> list[Move] | None:
        if cut or heard.view.version <= views[0].version:
            return None
        if not votes_in(views, other) and not (heard.state is LOOKING and heard.is_voter(sid)):
            return None
        return [Move(ServerAction.LEARN, (sid, other), (Send(server_name(sid), ViewHeard(heard.view)),))]

    def heard(server: Server) -> Summary | None:
        return summary(server) if server.election is not None else None

    reads = (Read(server_name(sid), looks), Read(LINKS, lambda cut: link in cut), Read(server_name(other), heard))
    return Rule(f"learn {sid} {other}", reads, moves, (ServerAction.LEARN,))


# The loss of a leader by a learner, and of learners by a leader, in an election alone.


def _lose_leader(setup: Setup, sid: Sid, leader: Sid) -> Rule:
    """A learner gives up its leader: without cost when the leader can no longer come, by a budget when it still may.

    The leader cannot come if it does not run, is cut off, has decided otherwise, or leads or looks in another round.
    With the oracle it cannot come if it looks, in whatever round. It cannot come either if its quorum port differs from
    the one in the learner's file.
    """
    one_step = setup.grain is Grain.ORACLE
    link = (min(sid, leader), max(sid, leader))

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
            return [Move(ServerAction.LOSE_LEADER, (sid, leader), (event,))]
        return [Move(ServerAction.GIVE_UP, (sid,), (spend(ServerAction.GIVE_UP), event))] if faults else None

    def followed(server: Server) -> tuple[int, Addresses | None] | None:
        election = server.election
        follows = election and election.state in (FOLLOWING, OBSERVING) and election.vote.leader == leader
        return (election.round, server.view.addresses) if election and follows else None

    reads = (
        Read(server_name(sid), followed),
        Read(server_name(leader), in_round),
        Read(LINKS, lambda cut: link in cut),
        Read(FAULTS, may_give_up),
    )
    return Rule(f"lose leader {leader} {sid}", reads, moves, losses(setup.budgets, ServerAction.LOSE_LEADER))


def _lose_quorum(setup: Setup, sid: Sid) -> Rule:
    """A leader gives up: without cost when its present and possible followers are not a quorum, else by a budget.

    A server may still come while it is LOOKING in a round that is not later than the leader's. Where an election is one
    step, no server can: a leader then has its quorum from the beginning.
    """
    one_step = setup.grain is Grain.ORACLE
    peers = [peer for peer in setup.sids if peer != sid]

    def moves(own: StatusInRound, cut: frozenset[Link], faults: bool, *seen: StatusInRound | str) -> list[Move] | None:
        within_reach = {
            peer: standing
            for peer, standing in zip(peers, seen, strict=True)
            if isinstance(standing, StatusInRound)
            and (min(sid, peer), max(sid, peer)) not in cut
            and reaches(standing.status.view.addresses, own.status.view.addresses, sid, Port.QUORUM)
        }
        behind = followers({peer: standing.status for peer, standing in within_reach.items()}, sid) | {sid}
        if own.status.view.contains_quorum(behind):
            return None
        event = Send(server_name(sid), QuorumLost())
        coming = {o for o, standing in within_reach.items() if _looks_for(standing, own)}
        if one_step or not own.status.view.contains_quorum(behind | coming):
            return [Move(ServerAction.LOSE_QUORUM, (sid,), (event,))]
        return [Move(ServerAction.GIVE_UP, (sid,), (spend(ServerAction.GIVE_UP), event))] if faults else None

    def leads(server: Server) -> StatusInRound | None:
        status = in_round(server)
        return status if isinstance(status, StatusInRound) and status.status.state is LEADING else None

    reads = (
        Read(server_name(sid), leads),
        Read(LINKS),
        Read(FAULTS, may_give_up),
        *(Read(server_name(peer), in_round) for peer in peers),
    )
    return Rule(f"lose quorum {sid}", reads, moves, losses(setup.budgets, ServerAction.LOSE_QUORUM))


def _looks_for(other: StatusInRound, leader: StatusInRound) -> bool:
    """Whether a server is LOOKING in a round that still allows it to find this leader."""
    return other.status.state is LOOKING and other.round <= leader.round
