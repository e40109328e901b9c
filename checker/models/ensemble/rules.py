"""What may happen in an ensemble: servers act, messages arrive, operators work, and things break.

A rule reads as little as decides it, and the budgets first, so that a spent budget silences it at once. Names of
actions, and their arguments, are what traces and coverage show:

    start s / restart s file     crash s          deliver a b       decide s leader   rebroadcast s
    lose leader s                lose quorum s    give up s         elect l members   cut a b
    partition side               heal             plan stop s       plan start s file
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from checker.engine import Move, Read, Rule, Send
from checker.models.ensemble.columns import (
    CRASH,
    FAULTS,
    LINKS,
    PLAN,
    Change,
    Faults,
    Link,
    Pop,
    Settled,
    Spend,
    channel_name,
    reachable,
    server_name,
)
from checker.models.ensemble.setup import File, Grain, Planned, Setup
from checker.models.ensemble.standing import (
    FOLLOWING,
    LEADING,
    LOOKING,
    OBSERVING,
    InRound,
    Standing,
    followers,
    has_rejoined,
    in_round,
    is_running,
    standing,
)
from spec.effects import Timer
from spec.election import oracle
from spec.election.channel import Channel
from spec.election.messages import Deliver, Elected, Fired, LeaderLost, QuorumLost, Start
from spec.quorum import Sid
from spec.server import Server, summary


FOLLOWS = "follows"  # of a server that runs: its leader is the server in question


def rules(setup: Setup) -> tuple[Rule, ...]:
    """All rules of an ensemble; those that a budget of nothing would silence for good are left out."""
    made: list[Rule] = []
    for sid in setup.sids:
        made += [_lose_leader(setup, sid, leader) for leader in setup.sids if leader != sid]
        made.append(_lose_quorum(setup, sid))
    if setup.grain is Grain.FINE:
        made += [_decide(sid) for sid in setup.sids]
        made += [_deliver(a, b) for a, b in pairs(setup)]
        if setup.budgets.rebroadcasts:
            made += [_rebroadcast(sid) for sid in setup.sids]
    else:
        made.append(_elect(setup))
    return (*made, *_faults(setup), *(_planned(setup, n) for n in range(len(setup.plan))))


def pairs(setup: Setup) -> list[Link]:
    """Ordered pairs of servers that may exchange notifications."""
    return [(a, b) for a in setup.sids for b in setup.sids if a != b and setup.talk(a, b)]


# Servers and their messages.


def _decide(sid: Sid) -> Rule:
    def moves(server: Server) -> list[Move] | None:
        if server.election is None or not server.election.finalizing:
            return None
        arguments = (sid, server.election.vote.leader)
        return [Move("decide", arguments, (Send(server_name(sid), Fired(Timer.FINALIZE_WAIT)),))]

    return Rule(f"decide {sid}", (Read(server_name(sid)),), moves)


def _deliver(source: Sid, destination: Sid) -> Rule:
    name = channel_name(source, destination)

    def moves(channel: Channel) -> list[Move] | None:
        if not channel.in_flight:
            return None
        event = Deliver(source, channel.in_flight[0])
        sends = (Send(name, Pop()), Send(server_name(destination), event))
        return [Move("deliver", (source, destination, channel.in_flight[0]), sends)]

    return Rule(f"deliver {name}", (Read(name),), moves)


def _rebroadcast(sid: Sid) -> Rule:
    def moves(_: bool, server: bool) -> list[Move]:  # noqa: ARG001 (both are gates)
        fired = Send(server_name(sid), Fired(Timer.NOTIFICATION_TIMEOUT))
        return [Move("rebroadcast", (sid,), (Send(FAULTS, Spend("rebroadcasts")), fired))]

    looking = Read(server_name(sid), _waits_for_notifications)
    return Rule(f"rebroadcast {sid}", (_budget("rebroadcasts"), looking), moves)


def _waits_for_notifications(server: Server) -> bool | None:
    election = server.election
    return True if election and election.state is LOOKING and not election.finalizing else None


def _elect(setup: Setup) -> Rule:
    """The oracle: one step for each decision that an election can come to."""

    def moves(cut: frozenset[Link], *summaries: Any) -> list[Move]:
        found = oracle.outcomes(summaries, {frozenset(link) for link in cut})
        return [
            Move(
                "elect",
                (outcome.leader, outcome.members),
                tuple(Send(server_name(sid), Elected(outcome.vote, outcome.round)) for sid in outcome.members),
            )
            for outcome in found
        ]

    reads = (Read(LINKS), *(Read(server_name(sid), summary) for sid in setup.sids))
    return Rule("elect", reads, moves)


# Losing each other.


def _lose_leader(setup: Setup, sid: Sid, leader: Sid) -> Rule:
    """A learner gives its leader up: at once when it cannot come any more, by a budget when it still may.

    It cannot come if it does not run, is cut off, has decided otherwise, or looks in another round.
    """

    def moves(own: int, other: InRound | str, cut: bool, faults: bool) -> list[Move] | None:
        if not isinstance(other, str) and other.standing.state is LEADING and not cut:
            return None
        event = Send(server_name(sid), LeaderLost())
        may_come = not isinstance(other, str) and other.standing.state is LOOKING and other.round == own
        if cut or not may_come:
            return [Move("lose leader", (sid, leader), (event,))]
        return [Move("give up", (sid,), (Send(FAULTS, Spend("impatience")), event))] if faults else None

    def own_round(server: Server) -> int | None:
        election = server.election
        follows = election and election.state in (FOLLOWING, OBSERVING) and election.vote.leader == leader
        return election.round if election and follows else None

    reads = (
        Read(server_name(sid), own_round),
        Read(server_name(leader), in_round),
        Read(LINKS, _is_cut(sid, leader)),
        Read(FAULTS, _has_impatience),
    )
    return Rule(f"lose leader {leader} {sid}", reads, moves)


def _lose_quorum(setup: Setup, sid: Sid) -> Rule:
    """A leader gives up: at once when those who follow it or may yet come are no quorum, else by a budget.

    A server may yet come while it looks for a leader in a round that is not beyond the leader's.
    """
    others = [other for other in setup.sids if other != sid]

    def moves(own: InRound, cut: frozenset[Link], faults: bool, *seen: InRound | str) -> list[Move] | None:
        within_reach = {
            other: each
            for other, each in zip(others, seen, strict=True)
            if isinstance(each, InRound) and (min(sid, other), max(sid, other)) not in cut
        }
        behind = followers({other: each.standing for other, each in within_reach.items()}, sid) | {sid}
        if own.standing.view.contains_quorum(behind):
            return None
        event = Send(server_name(sid), QuorumLost())
        coming = {o for o, each in within_reach.items() if each.standing.state is LOOKING and each.round <= own.round}
        if not own.standing.view.contains_quorum(behind | coming):
            return [Move("lose quorum", (sid,), (event,))]
        return [Move("give up", (sid,), (Send(FAULTS, Spend("impatience")), event))] if faults else None

    def leads(server: Server) -> InRound | None:
        found = in_round(server)
        return found if isinstance(found, InRound) and found.standing.state is LEADING else None

    reads = (
        Read(server_name(sid), leads),
        Read(LINKS),
        Read(FAULTS, _has_impatience),
        *(Read(server_name(other), in_round) for other in others),
    )
    return Rule(f"lose quorum {sid}", reads, moves)


def _is_cut(one: Sid, other: Sid) -> Callable[[frozenset[Link]], bool]:
    link = (min(one, other), max(one, other))
    return lambda cut: link in cut


def _has_impatience(faults: Faults) -> bool:
    return faults.impatience > 0


# Faults.


def _faults(setup: Setup) -> Iterator[Rule]:
    budgets = setup.budgets
    late = [member.sid for member in setup.members if member.late]
    yield from (_start(setup, sid) for sid in late)
    if budgets.crashes:
        yield from (_crash(setup, sid) for sid in setup.sids)
    if budgets.crashes and budgets.restarts:
        yield from (_restart(setup, sid) for sid in setup.sids)
    if budgets.cuts:
        yield from (_cut(setup, "cut", f"{a} {b}", (a, b), ((a, b),)) for a, b in combinations(setup.sids, 2))
    if budgets.partitions:
        yield from (_cut(setup, "partition", str(side), (side,), crossing) for side, crossing in splits(setup.sids))
    if budgets.heals:
        yield _heal(setup)


def splits(sids: tuple[Sid, ...]) -> Iterator[tuple[tuple[Sid, ...], tuple[Link, ...]]]:
    """Every way to part the servers in two: the side of the first server, and the links that cross."""
    first, *rest = sids
    for size in range(len(rest)):
        for chosen in combinations(rest, size):
            side = (first, *chosen)
            yield side, tuple((a, b) for a, b in combinations(sids, 2) if (a in side) is not (b in side))


def boot(setup: Setup, sid: Sid, file: File, running: Iterable[Sid], cut: frozenset[Link]) -> tuple[Send, ...]:
    """A server starts with a file: connections become possible, then it begins its first election."""
    sends: list[Send] = []
    if setup.grain is Grain.FINE:
        for peer in running:
            if peer != sid and setup.talk(sid, peer) and (min(sid, peer), max(sid, peer)) not in cut:
                sends += reachable(sid, peer)
    return (*sends, Send(server_name(sid), Start(file.view)))


def stop(setup: Setup, sid: Sid) -> tuple[Send, ...]:
    """A server's process ends: what it sent may still arrive, what it was sent is lost."""
    sends = [Send(server_name(sid), CRASH)]
    if setup.grain is Grain.FINE:
        for peer in setup.sids:
            if peer != sid and setup.talk(sid, peer):
                sends.append(Send(channel_name(sid, peer), Change("self_crashed")))
                sends.append(Send(channel_name(peer, sid), Change("peer_crashed")))
    return tuple(sends)


def _boots(setup: Setup, gate: Read, action: str, sid: Sid, files: Iterable[File], spend: Spend) -> Rule:
    """A rule by which a server starts, with one of these files, when `gate` allows it."""
    others = [other for other in setup.sids if other != sid]

    def moves(_: Any, cut: frozenset[Link], *seen: bool | str) -> list[Move] | None:
        if not _all_noticed(sid, {other for other, each in zip(others, seen, strict=True) if each == FOLLOWS}, cut):
            return None
        up = [other for other, each in zip(others, seen, strict=True) if each]
        return [
            Move(action, (sid, file.name), (Send(FAULTS, spend), *boot(setup, sid, file, up, cut))) for file in files
        ]

    def towards(server: Server) -> bool | str:
        own = standing(server)
        return FOLLOWS if isinstance(own, Standing) and own.leader == sid else is_running(server)

    return Rule(f"{action} {sid}", (gate, Read(LINKS), *(Read(server_name(o), towards) for o in others)), moves)


def _all_noticed(sid: Sid, following: Iterable[Sid], cut: frozenset[Link]) -> bool:
    """Whether everybody who followed a server that has ended has noticed it, so that it may boot.

    The sockets of a process close when it ends, long before another one is up. Without this, servers that still
    follow the former life of a leader would count as followers of the next. Behind a cut link nobody notices.
    """
    return all((min(sid, other), max(sid, other)) in cut for other in following)


def _start(setup: Setup, sid: Sid) -> Rule:
    gate = Read(FAULTS, lambda faults: True if sid in faults.late else None)
    return _boots(setup, gate, "start", sid, (_member_file(setup, sid),), Spend(None, started=sid))


def _restart(setup: Setup, sid: Sid) -> Rule:
    member = next(member for member in setup.members if member.sid == sid)
    gate = Read(FAULTS, lambda faults: True if sid in faults.down and faults.restarts > 0 else None)
    files = (member.file, *member.other_files)
    return _boots(setup, gate, "restart", sid, files, Spend("restarts", started=sid))


def _member_file(setup: Setup, sid: Sid) -> File:
    return next(member.file for member in setup.members if member.sid == sid)


def _crash(setup: Setup, sid: Sid) -> Rule:
    def moves(_: bool, running: bool) -> list[Move]:  # noqa: ARG001 (both are gates)
        return [Move("crash", (sid,), (Send(FAULTS, Spend("crashes", crashed=sid)), *stop(setup, sid)))]

    up = Read(server_name(sid), lambda server: True if is_running(server) else None)
    return Rule(f"crash {sid}", (_budget("crashes"), up), moves)


def _cut(setup: Setup, action: str, label: str, arguments: tuple[Any, ...], links: tuple[Link, ...]) -> Rule:
    """A link is cut, or all links between two sides: what is in flight there is lost."""
    budget = {"cut": "cuts", "partition": "partitions"}[action]
    sends = [Send(FAULTS, Spend(budget)), Send(LINKS, Settled(frozenset(links)))]
    if setup.grain is Grain.FINE:
        crossing = [(a, b) for one, other in links if setup.talk(one, other) for a, b in ((one, other), (other, one))]
        sends += [Send(channel_name(a, b), Change("cut")) for a, b in crossing]
    move = Move(action, arguments, tuple(sends))
    whole = Read(LINKS, lambda cut: None if cut >= frozenset(links) else True)
    return Rule(f"{action} {label}", (_budget(budget), whole), lambda *_: [move])


def _heal(setup: Setup) -> Rule:
    """Every link is whole again; nobody connects for that reason alone."""

    def moves(_: bool, cut: frozenset[Link], *running: bool) -> list[Move]:
        up = {sid for sid, runs in zip(setup.sids, running, strict=True) if runs}
        sends = [Send(FAULTS, Spend("heals")), Send(LINKS, Settled(healed=True))]
        if setup.grain is Grain.FINE:
            for one, other in sorted(cut):
                if {one, other} <= up and setup.talk(one, other):
                    sends += reachable(one, other)
        return [Move("heal", (), tuple(sends))]

    some = Read(LINKS, lambda cut: cut or None)
    return Rule("heal", (_budget("heals"), some, *(Read(server_name(sid), is_running) for sid in setup.sids)), moves)


def _budget(name: str) -> Read:
    return Read(FAULTS, lambda faults: True if getattr(faults, name) > 0 else None)


# The operator's plan.


def _planned(setup: Setup, number: int) -> Rule:
    """The operator's next action, once those it waits for have rejoined."""
    planned: Planned = setup.plan[number]

    def moves(_: bool, cut: frozenset[Link], *seen: Standing | str) -> list[Move] | None:
        standings = dict(zip(setup.sids, seen, strict=True))
        if not all(has_rejoined(standings, sid) for sid in planned.after):
            return None
        running = [sid for sid, each in standings.items() if isinstance(each, Standing)]
        if planned.action == "stop":
            sends = stop(setup, planned.sid)
        elif not _all_noticed(planned.sid, _followers_of(standings, planned.sid), cut):
            return None
        else:
            sends = boot(setup, planned.sid, planned.file or _member_file(setup, planned.sid), running, cut)
        arguments = (planned.sid, planned.file.name) if planned.file else (planned.sid,)
        return [Move(f"plan {planned.action}", arguments, (Send(PLAN, "done"), *sends))]

    reads = (
        Read(PLAN, lambda done: True if done == number else None),
        Read(LINKS),
        *(Read(server_name(sid), standing) for sid in setup.sids),
    )
    return Rule(f"plan {number}", reads, moves)


def _followers_of(standings: Mapping[Sid, Standing | str], sid: Sid) -> set[Sid]:
    """Who follows or observes a server, itself left out."""
    return {o for o, each in standings.items() if isinstance(each, Standing) and each.leader == sid and o != sid}
