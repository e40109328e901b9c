"""What may happen where servers lead and follow: packets arrive, the disk catches up, clients write, sides lose each
other. Actions, and their arguments:

    receive a b packet     sync s operation       apply s zxid        client write s n     client sync s
    lose leader s l        lose learner l s       lose quorum l       give up s            disconnect a b
    sync late s            resume s               ping l

Losing each other is free where waiting is hopeless: the connection is gone, or the leader does not lead. Where
the other may yet come it is an early time-out and costs `impatience`. A leader may give up as soon as its whole
connections are no quorum, whether it has noticed the end of each or not: that is what its tick looks at.

Source: `Learner.readPacket`, `LearnerHandler.run`, `Leader.lead`, `SyncRequestProcessor`, `CommitProcessor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from checker.engine import Move, Read, Rule, Send
from checker.models.ensemble.connection import Break, Close, Connection, Take
from checker.models.ensemble.faults import Faults, Spend, has_left
from checker.models.ensemble.names import FAULTS, LINKS, Link, connection_name, server_name
from checker.models.ensemble.setup import Grain, Setup
from checker.models.ensemble.standing import FOLLOWING, LEADING, LOOKING, OBSERVING, InRound, in_round
from spec.effects import DiskOperation
from spec.election.messages import LeaderLost, QuorumLost
from spec.quorum import Sid, View
from spec.server import Server
from spec.variants import Variant
from spec.zab import learner as spec_learner
from spec.zab.events import Applied, ClientSync, ClientWrite, LearnerGone, Receive, Resumed, Synced, SyncedLate, Tick
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase


def rules(setup: Setup) -> Iterator[Rule]:
    """The rules of leading and following; those that nothing can bring about in this setup are left out."""
    assert setup.zab is not None
    for one, other in setup.quorum_pairs:
        yield _receive(one, other)
    for sid in setup.sids:
        if setup.zab.asynchronous_disk:
            yield _own("sync", sid, _disk_moves)
        if setup.zab.asynchronous_commits:
            yield _own("apply", sid, _apply_moves)
        if Variant.QUEUE_SURVIVES_SHUTDOWN in setup.variants:
            yield _own("sync late", sid, _late_moves)
        if Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK in setup.variants:
            yield _own("resume", sid, _resume_moves)
        yield from _clients(setup, sid)
        yield _lose_quorum(setup, sid)
    for one, other in setup.quorum_pairs:
        for sid, leader in ((one, other), (other, one)):
            yield _lose_leader(setup, sid, leader)
            yield _lose_learner(sid, leader)
        if setup.budgets.disconnects:
            yield _disconnect(one, other)


def _receive(one: Sid, other: Sid) -> Rule:
    """The oldest packet of either direction arrives."""
    name = connection_name(one, other)

    def moves(connection: Connection | None) -> Iterator[Move]:
        if connection is None:
            return
        ways = (
            (connection.learner, connection.leader, connection.up),
            (connection.leader, connection.learner, connection.down),
        )
        for source, reader, stream in ways:
            if stream:
                sends = (Send(name, Take(reader)), Send(server_name(reader), Receive(source, stream[0])))
                yield Move("receive", (source, reader, stream[0]), sends)

    return Rule(f"receive {name}", (Read(name),), lambda connection: list(moves(connection)))


# The disk and the commit processor: events of one server alone.


def _own(action: str, sid: Sid, moves: Callable[[Sid, Server], list[Move] | None]) -> Rule:
    return Rule(f"{action} {sid}", (Read(server_name(sid)),), lambda server: moves(sid, server))


def _disk_moves(sid: Sid, server: Server) -> list[Move] | None:
    queue: tuple[DiskOperation, ...] = () if server.zab is None else server.zab.queue
    return [Move("sync", (sid, queue[0]), (Send(server_name(sid), Synced()),))] if queue else None


def _apply_moves(sid: Sid, server: Server) -> list[Move] | None:
    commits = () if server.zab is None else server.zab.commits
    return [Move("apply", (sid, commits[0]), (Send(server_name(sid), Applied()),))] if commits else None


def _late_moves(sid: Sid, server: Server) -> list[Move] | None:
    queue = server.remains.queue
    return [Move("sync late", (sid, queue[0]), (Send(server_name(sid), SyncedLate()),))] if queue else None


def _resume_moves(sid: Sid, server: Server) -> list[Move] | None:
    owes = isinstance(server.zab, Learner) and server.zab.owes_ack
    return [Move("resume", (sid,), (Send(server_name(sid), Resumed()),))] if owes else None


# Clients, and the leader's pings.


def _clients(setup: Setup, sid: Sid) -> Iterator[Rule]:
    """A client writes: at the leader, or where `clients_anywhere` says so at any server that serves."""
    serving = Read(server_name(sid), _serves if setup.clients_anywhere else _leads_and_serves)
    total = setup.budgets.writes

    def write(left: int, _: bool) -> list[Move]:
        number = total - left + 1  # each write is another transaction
        sends = (Send(FAULTS, Spend("writes")), Send(server_name(sid), ClientWrite(number)))
        return [Move("client write", (sid, number), sends)]

    def simple(action: str, budget: str, event: Any) -> Callable[..., list[Move]]:
        return lambda *_: [Move(action, (sid,), (Send(FAULTS, Spend(budget)), Send(server_name(sid), event)))]

    if total:
        yield Rule(f"client write {sid}", (Read(FAULTS, _writes_left), serving), write)
    if setup.budgets.syncs:
        anywhere = Read(server_name(sid), _serves)
        yield Rule(f"client sync {sid}", (has_left("syncs"), anywhere), simple("client sync", "syncs", ClientSync()))
    if setup.budgets.pings:
        leads = Read(server_name(sid), _leads_and_serves)
        yield Rule(f"ping {sid}", (has_left("pings"), leads), simple("ping", "pings", Tick()))


def _writes_left(faults: Faults) -> int | None:
    return faults.left.writes or None


def _serves(server: Server) -> bool | None:
    part = server.zab
    return True if part is not None and part.phase in (LeaderPhase.BROADCAST, LearnerPhase.BROADCAST) else None


def _leads_and_serves(server: Server) -> bool | None:
    return _serves(server) if isinstance(server.zab, Leader) else None


# Losing each other.


def _lose_leader(setup: Setup, sid: Sid, leader: Sid) -> Rule:
    """A learner gives its leader up: at once when it cannot come any more, by a budget when it still may."""
    one_step = setup.grain is Grain.ORACLE
    name = connection_name(sid, leader)

    def moves(own: int, lost: bool, other: InRound | str, impatient: bool) -> list[Move] | None:
        leads = isinstance(other, InRound) and other.standing.state is LEADING
        if leads and not lost:
            return None
        sends = (Send(server_name(sid), LeaderLost()),)
        looks = isinstance(other, InRound) and other.standing.state is LOOKING and other.round == own
        if lost or one_step or not looks:
            return [Move("lose leader", (sid, leader), sends)]
        return [Move("give up", (sid,), (Send(FAULTS, Spend("impatience")), *sends))] if impatient else None

    reads = (
        Read(server_name(sid), lambda server: _round_behind(server, leader)),
        Read(name, lambda connection: connection is None or connection.is_lost_to(sid)),
        Read(server_name(leader), in_round),
        Read(FAULTS, _has_impatience),
    )
    return Rule(f"lose leader {leader} {sid}", reads, moves)


def _round_behind(server: Server, leader: Sid) -> int | None:
    """The round in which a server came to follow this leader, if it may leave it now."""
    election, part = server.election, server.zab
    if election is None or election.state not in (FOLLOWING, OBSERVING) or election.vote.leader != leader:
        return None
    return election.round if isinstance(part, Learner) and spec_learner.may_leave(part) else None


def _lose_learner(leader: Sid, sid: Sid) -> Rule:
    """A leader notices that a connection is gone: its handler ends."""
    name = connection_name(sid, leader)

    def moves(_: bool) -> list[Move]:
        sends = (Send(name, Close(leader)), Send(server_name(leader), LearnerGone(sid)))
        return [Move("lose learner", (leader, sid), sends)]

    def lost(connection: Connection | None) -> bool | None:
        led = connection is not None and connection.leader == leader and connection.is_lost_to(leader)
        return True if led else None

    return Rule(f"lose learner {leader} {sid}", (Read(name, lost),), moves)


def _lose_quorum(setup: Setup, sid: Sid) -> Rule:
    """A leader gives up: its whole connections are no quorum, and nobody may come who would make them one."""
    one_step = setup.grain is Grain.ORACLE
    others = [other for other in setup.sids if other != sid]

    def moves(
        own: tuple[View, int], cut: frozenset[Link], impatient: bool, *seen: tuple[bool, InRound | str]
    ) -> list[Move] | None:
        view, election_round = own
        connections, standings = seen[: len(others)], seen[len(others) :]
        behind = {sid} | {other for other, whole in zip(others, connections, strict=True) if whole}
        if view.contains_quorum(behind):
            return None
        sends = (Send(server_name(sid), QuorumLost()),)
        coming = {
            other
            for other, each in zip(others, standings, strict=True)
            if isinstance(each, InRound)
            and each.standing.state is LOOKING
            and each.round <= election_round
            and (min(sid, other), max(sid, other)) not in cut
        }
        if one_step or not view.contains_quorum(behind | coming):
            return [Move("lose quorum", (sid,), sends)]
        return [Move("give up", (sid,), (Send(FAULTS, Spend("impatience")), *sends))] if impatient else None

    def leads(server: Server) -> tuple[View, int] | None:
        election = server.election
        return (server.view, election.round) if election is not None and election.state is LEADING else None

    def whole(connection: Connection | None) -> bool:
        return connection is not None and connection.leader == sid and connection.is_whole

    looking = _nobody if one_step else in_round
    reads = (
        Read(server_name(sid), leads),
        Read(LINKS),
        Read(FAULTS, _has_impatience),
        *(Read(connection_name(sid, other), whole if (min(sid, other), max(sid, other)) in setup.quorum_pairs else _never)
          for other in others),
        *(Read(server_name(other), looking) for other in others),
    )  # fmt: skip
    return Rule(f"lose quorum {sid}", reads, moves)


def _nobody(_: Server) -> str:
    """With the oracle nobody comes on the way: a leader has its quorum from the first."""
    return "nobody"


def _never(_: Connection | None) -> bool:
    return False


def _has_impatience(faults: Faults) -> bool:
    return faults.left.impatience > 0


def _disconnect(one: Sid, other: Sid) -> Rule:
    """The network drops one connection; both may connect again at once."""
    name = connection_name(one, other)
    sends = (Send(FAULTS, Spend("disconnects")), Send(name, Break()))
    whole = Read(name, lambda connection: True if connection is not None and connection.is_whole else None)
    return Rule(
        f"disconnect {name}", (has_left("disconnects"), whole), lambda *_: [Move("disconnect", (one, other), sends)]
    )
