"""The actions of servers that lead and follow: packets, the disk, clients, and the loss of the other side.

The actions, and their arguments:

    receive a b packet     sync s operation       apply s zxid        client write s n     client sync s
    lose leader s l        lose quorum l          give up s           disconnect a b
    sync late s            resume s               ping l               fill disk s
    restore zxid

A loss is free where waiting is hopeless: the connection is gone, or the leader does not lead. Where the other side may
still come, giving up is an early timeout and costs one of `early_timeouts`. A leader may give up as soon as its whole
connections are not a quorum, even before it has noticed that each one ended: its tick checks exactly this.

Source: `Learner.readPacket`, `LearnerHandler.run`, `Leader.lead`, `SyncRequestProcessor`, `CommitProcessor`.
"""

from collections.abc import Callable, Iterator
from typing import Any

from checker.engine import Move, Read, Rule, Send
from checker.kit.actions import FAULTS, Faults, has_left, limited_rule, spend
from checker.kit.environment import LINKS
from checker.models.ensemble.actions import ServerAction, losses, may_give_up
from checker.models.ensemble.connection import Connection, Disconnection, PeerClosed, Take
from checker.models.ensemble.setup import Grain, Link, Setup, connection_name, server_name
from checker.models.ensemble.status import LEADING, LOOKING, StatusInRound, in_round, is_serving
from spec.election.messages import LeaderLost, QuorumLost
from spec.quorum import Port, Sid, View, have_quorums, reaches
from spec.server import Server, tree_at_rest
from spec.txn import Txn
from spec.variants import Variant
from spec.zab import disk
from spec.zab import learner as spec_learner
from spec.zab.events import (
    Applied,
    ClientSync,
    ClientWrite,
    LogFailed,
    Receive,
    Restored,
    Resumed,
    Synced,
    SyncedLate,
    Tick,
)
from spec.zab.state import Leader, Learner, ZabRules


def rules(setup: Setup) -> Iterator[Rule]:
    """The rules of leading and following, without those that can never be enabled in this setup."""
    assert setup.zab is not None
    for near, far in setup.quorum_pairs:
        yield _receive(near, far)
    for sid in setup.sids:
        if setup.zab.asynchronous_disk:
            yield _own(ServerAction.SYNC, sid, _disk_moves(setup.zab))
        if setup.zab.asynchronous_commits:
            yield _own(ServerAction.APPLY, sid, _apply_moves)
        if Variant.QUEUE_SURVIVES_SHUTDOWN in setup.all_variants:
            yield _own(ServerAction.SYNC_LATE, sid, _late_moves)
        if Variant.PROPOSAL_ACK_BEFORE_NEWLEADER_ACK in setup.all_variants:
            yield _own(ServerAction.RESUME, sid, _resume_moves)
        if setup.budgets.full_disks:
            yield _fill_disk(sid)
        yield from _clients(setup, sid)
        yield _lose_quorum(setup, sid)
    if setup.budgets.restores:
        yield _restore(setup)
    for near, far in setup.quorum_pairs:
        for sid, leader in ((near, far), (far, near)):
            yield _lose_leader(setup, sid, leader)
        if setup.budgets.disconnects:
            yield _disconnect(near, far)


def _receive(one: Sid, other: Sid) -> Rule:
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
                read = (Send(name, Take(reader)), Send(server_name(reader), Receive(source, stream[0])))
                ends = (Send(server_name(reader), PeerClosed(source)),) if connection.last_word_of(source) else ()
                yield Move(ServerAction.RECEIVE, (source, reader, stream[0]), (*read, *ends))

    return Rule(f"receive {name}", (Read(name),), lambda connection: list(moves(connection)), (ServerAction.RECEIVE,))


# The disk and the commit processor: events of one server.


def _own(action: ServerAction, sid: Sid, moves: Callable[[Sid, Server], list[Move] | None]) -> Rule:
    return Rule(f"{action} {sid}", (Read(server_name(sid)),), lambda server: moves(sid, server), (action,))


def _disk_moves(zab: ZabRules) -> Callable[[Sid, Server], list[Move] | None]:
    def moves(sid: Sid, server: Server) -> list[Move] | None:
        next_write = None if server.zab is None else disk.next_written(server.durable, server.zab.queue, zab)
        sends = (Send(server_name(sid), Synced()),)
        return None if next_write is None else [Move(ServerAction.SYNC, (sid, next_write.operation), sends)]

    return moves


def _apply_moves(sid: Sid, server: Server) -> list[Move] | None:
    commits = () if server.zab is None else server.zab.commits
    return [Move(ServerAction.APPLY, (sid, commits[0]), (Send(server_name(sid), Applied()),))] if commits else None


def _late_moves(sid: Sid, server: Server) -> list[Move] | None:
    queue = server.remains.queue
    return [Move(ServerAction.SYNC_LATE, (sid, queue[0]), (Send(server_name(sid), SyncedLate()),))] if queue else None


def _resume_moves(sid: Sid, server: Server) -> list[Move] | None:
    resumes = isinstance(server.zab, Learner) and server.zab.may_resume
    return [Move(ServerAction.RESUME, (sid,), (Send(server_name(sid), Resumed()),))] if resumes else None


def _fill_disk(sid: Sid) -> Rule:
    writes = Read(server_name(sid), lambda server: True if server.zab is not None and server.zab.queue else None)
    return limited_rule(ServerAction.FILL_DISK, sid, (sid,), (Send(server_name(sid), LogFailed()),), writes)


# Clients, and the leader's pings.


def _clients(setup: Setup, sid: Sid) -> Iterator[Rule]:
    """A client writes at the leader, or with `clients_anywhere` at any server that serves."""
    serving = Read(server_name(sid), _serves if setup.clients_anywhere else _leads_and_serves)
    total = setup.budgets.writes

    def write(left: int, _: bool) -> list[Move]:
        number = total - left + 1  # each write is a different transaction
        sends = (spend(ServerAction.CLIENT_WRITE), Send(server_name(sid), ClientWrite(number)))
        return [Move(ServerAction.CLIENT_WRITE, (sid, number), sends)]

    def simple(action: ServerAction, gate: Read, event: Any) -> Rule:
        return limited_rule(action, sid, (sid,), (Send(server_name(sid), event),), gate)

    if total:
        action = ServerAction.CLIENT_WRITE
        yield Rule(f"{action} {sid}", (Read(FAULTS, _writes_left), serving), write, (action,))
    if setup.budgets.syncs:
        yield simple(ServerAction.CLIENT_SYNC, Read(server_name(sid), _serves), ClientSync())
    if setup.budgets.pings:
        yield simple(ServerAction.PING, Read(server_name(sid), _leads_and_serves), Tick())


def _writes_left(faults: Faults) -> int | None:
    return faults.left.writes or None


def _serves(server: Server) -> bool | None:
    return True if is_serving(server) else None


def _leads_and_serves(server: Server) -> bool | None:
    return _serves(server) if isinstance(server.zab, Leader) else None


# An operator who restores a snapshot.


def _restore(setup: Setup) -> Rule:
    """An operator restores a snapshot of an earlier zxid at every server, while no client asks for anything.

    The Snapshot and Restore Guide has the servers restored one after another. Here it is one step: no fault comes
    between two servers.
    """

    def moves(_: bool, *trees: tuple[Txn, ...]) -> list[Move] | None:
        tree = trees[0]
        if any(other != tree for other in trees):
            return None
        return [to_restore(tree[:count]) for count in range(1, len(tree))]

    def to_restore(txns: tuple[Txn, ...]) -> Move:
        sends = (Send(server_name(sid), Restored(txns)) for sid in setup.sids)
        return Move(ServerAction.RESTORE, (txns[-1].zxid,), (spend(ServerAction.RESTORE), *sends))

    reads = (has_left(ServerAction.RESTORE), *(Read(server_name(sid), tree_at_rest) for sid in setup.sids))
    return Rule(str(ServerAction.RESTORE), reads, moves, (ServerAction.RESTORE,), ())


# Loss of the other side.


def _lose_leader(setup: Setup, sid: Sid, leader: Sid) -> Rule:
    """A learner gives up its leader: the connection is gone or, with the fine grain, the leader does not lead."""
    name = connection_name(sid, leader)
    give_up = Send(server_name(sid), LeaderLost())
    lost = [Move(ServerAction.LOSE_LEADER, (sid, leader), (give_up,))]
    early = Move(ServerAction.GIVE_UP, (sid,), (spend(ServerAction.GIVE_UP), give_up))
    behind = Read(server_name(sid), lambda server: _round_behind(server, leader))
    actions = losses(setup.budgets, ServerAction.LOSE_LEADER)
    if setup.grain is Grain.ORACLE and not setup.reconfigs:
        gone = Read(name, lambda connection: True if _is_gone(connection) else None)
        return Rule(f"lose leader {leader} {sid}", (behind, gone), lambda *_: lost, actions)
    if setup.grain is Grain.ORACLE:
        looks = Read(server_name(leader), _looks)
        return Rule(
            f"lose leader {leader} {sid}",
            (behind, Read(name, _is_gone), looks),
            lambda _, gone, looking: lost if gone or looking else None,
            actions,
        )

    def moves(own_round: int, gone: bool, other: StatusInRound | str, patience_ends: bool) -> list[Move] | None:
        state = other.status.state if isinstance(other, StatusInRound) else None
        if gone or state not in (LEADING, LOOKING):
            return lost
        assert isinstance(other, StatusInRound)
        if state is LEADING:
            return None
        if other.round != own_round:
            return lost
        return [early] if patience_ends else None

    reads = (behind, Read(name, _is_gone), Read(server_name(leader), in_round), Read(FAULTS, may_give_up))
    return Rule(f"lose leader {leader} {sid}", reads, moves, actions)


def _looks(server: Server) -> bool:
    """Whether a server looks for a leader.

    A designated leader may give up before its learners come; their first packets would wait for it for ever
    (`Learner.connectToLeader`, which fails after initLimit).
    """
    return server.election is not None and server.election.state is LOOKING


def _is_gone(connection: Connection | None) -> bool:
    """Whether the leader's side of the connection is closed."""
    return connection is None or not connection.leader_holds


def _round_behind(server: Server, leader: Sid) -> int | None:
    """The round in which a server started to follow this leader, if it may leave the leader now."""
    election, part = server.election, server.zab
    if election is None or not isinstance(part, Learner) or part.leader != leader:
        return None
    return election.round if spec_learner.may_leave(part) else None


def _lose_quorum(setup: Setup, sid: Sid) -> Rule:
    """A leader gives up: its whole connections are not a quorum, and no server may come that would complete one.

    With the oracle no server can come: a leader has its quorum from the beginning.
    """
    peers = [peer for peer in setup.sids if (min(sid, peer), max(sid, peer)) in setup.quorum_pairs]
    give_up = Send(server_name(sid), QuorumLost())
    lost = [Move(ServerAction.LOSE_QUORUM, (sid,), (give_up,))]
    early = Move(ServerAction.GIVE_UP, (sid,), (spend(ServerAction.GIVE_UP), give_up))
    one_step = setup.grain is Grain.ORACLE

    def moves(own: tuple[tuple[View, ...], int], *seen: Any) -> list[Move] | None:
        views, election_round = own
        behind = {sid} | {peer for peer, whole in zip(peers, seen, strict=False) if whole}
        if have_quorums(views, behind):
            return None
        if one_step:
            return lost
        patience_ends, cut, *standings = seen[len(peers) :]
        looking = zip(peers, standings, strict=True)
        coming = {peer for peer, standing in looking if _may_come(standing, views[0], election_round, (sid, peer), cut)}
        if not have_quorums(views, behind | coming):
            return lost
        return [early] if patience_ends else None

    def leads(server: Server) -> tuple[tuple[View, ...], int] | None:
        election = server.election
        return (server.peer.views, election.round) if election is not None and election.state is LEADING else None

    def whole(connection: Connection | None) -> bool:
        return connection is not None and connection.leader == sid and connection.is_whole

    reads = [Read(server_name(sid), leads), *(Read(connection_name(sid, peer), whole) for peer in peers)]
    if not one_step:
        reads += [Read(FAULTS, may_give_up), Read(LINKS), *(Read(server_name(o), in_round) for o in peers)]
    return Rule(f"lose quorum {sid}", tuple(reads), moves, losses(setup.budgets, ServerAction.LOSE_QUORUM))


def _may_come(other: StatusInRound | str, view: View, election_round: int, link: Link, cut: frozenset[Link]) -> bool:
    """Whether a server is still LOOKING, in a round and on a link that allow it to find the first server of the link.

    `view` is the view of the leader, for its quorum port.
    """
    if not isinstance(other, StatusInRound) or other.status.state is not LOOKING or other.round > election_round:
        return False
    reached = reaches(other.status.view.addresses, view.addresses, link[0], Port.QUORUM)
    return reached and (min(link), max(link)) not in cut


def _disconnect(one: Sid, other: Sid) -> Rule:
    """The network drops one connection; both sides may connect again immediately."""
    name = connection_name(one, other)
    whole = Read(name, lambda connection: True if connection is not None and connection.is_whole else None)
    return limited_rule(ServerAction.DISCONNECT, name, (one, other), (Send(name, Disconnection()),), whole)
