"""The possible states of the server under test, as rows of the ensemble model.

All other servers are the specification, so their part of every state is known, and the candidates differ only in the
part of the server under test.

Rules of this module:

- An event is a move of the model, or one of the two moves of a gate. The driver causes it, and it happens in every
  candidate.
- Between two events the server under test takes its hidden steps, as far as they go: no event is caused before. Records
  of its log, and with a held commit processor the application of commits, are events and not hidden.
- An observation removes the candidates that it contradicts. An observation that removes all of them is a misfit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product, repeat
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from checker.engine import Model, Move, Send
from checker.engine.model import Row
from checker.engine.semantics import fire, listed, operations
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.connection import Close, Connection, Disconnection, Open, Pass, Take
from checker.models.ensemble.setup import Setup, connection_name, server_name
from checker.validate.candidates import reached
from harness.reproduce.schedule import applied_zxid, pending_appends, wire_form
from spec.durable import Durable
from spec.election.messages import QuorumLost
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid, View
from spec.server import Server
from spec.txn import counter_of, format_zxid, make_zxid
from spec.variants import Variant
from spec.zab.events import Synced
from spec.zab.leader import is_supported
from spec.zab.leader_sync import History, history_of
from spec.zab.packets import (
    AckEpoch,
    Commit,
    CommitAndActivate,
    Diff,
    FollowerInfo,
    InformAndActivate,
    LeaderInfo,
    NewLeader,
    Proposal,
    QuorumPacket,
    QuorumRequest,
    Snap,
    Trunc,
    described,
)
from spec.zab.state import Append, Leader, Learner, SyncMode

HOLD, RELEASE = "hold commits", "release commits"
HOLD_READER, RELEASE_READER = "hold reader", "release reader"
"""The thread that reads packets rests when it has woken the sync thread, until it is released."""
GATES = frozenset({HOLD, RELEASE, HOLD_READER, RELEASE_READER})
"""The events of the gates at threads; no model has them."""
OWN = frozenset({ServerAction.SYNC, ServerAction.APPLY, ServerAction.LOSE_LEADER, ServerAction.LOSE_QUORUM,
                 ServerAction.RESUME})  # fmt: skip
"""The actions that are hidden steps of a server."""

CHOICES = (Diff, Snap, Trunc)
SHOWN_ZXIDS = 4
"""The zxids of a log in a report."""

Emission = tuple[Sid, QuorumPacket | None]
"""A packet to a peer; None: the end of the connection with it."""
Packets: TypeAlias = list[QuorumPacket | None]
"""Packets to one peer."""


class Event(msgspec.Struct, frozen=True):
    """An event: its move, and the state directly after it, before any hidden step.

    The server under test ends the connections with the peers `ending`, and the peers `opening` open one.
    """

    move: Move
    after: Row
    ending: frozenset[Sid] = frozenset()
    opening: frozenset[Sid] = frozenset()


class Outlook(msgspec.Struct, frozen=True):
    """A possible state after an event, and the observations on the way to it.

    - `emitted`: its packets, in the order of each connection.
    - `vote`: its vote, if it begins an election.
    - `queued`: the zxids of the records that it is about to write.
    - `applied`: the last zxid that it has applied, if it has applied something.
    """

    row: Row
    emitted: tuple[Emission, ...] = ()
    vote: Vote | None = None
    queued: tuple[int, ...] = ()
    applied: int | None = None

    def to(self, peer: Sid) -> Packets:
        """The packets to a peer."""
        return [packet for receiver, packet in self.emitted if receiver == peer]


class DiskState(msgspec.Struct, frozen=True):
    """The disk of the server under test, after its process has ended: its epochs, and the zxids in its log files."""

    accepted: int
    current: int
    zxids: tuple[int, ...]


class Sight(msgspec.Struct, frozen=True):
    """The observations of the server under test after an event; the fields are those of `Outlook`.

    `waiting` are the zxids of the write that waits at the gate, and `applied` is 0 without an answer. They are None
    where nothing was expected, and nothing asked or seen: then another state may still have them.
    """

    emitted: tuple[Emission, ...] = ()
    vote: Vote | None = None
    waiting: tuple[int, ...] | None = None
    applied: int | None = None
    disk: DiskState | None = None


@dataclass(frozen=True)
class Ensemble:
    """The model of a twin, and the server under test: a real server, or our node."""

    sid: Sid
    setup: Setup
    model: Model
    is_node: bool = False
    hidden: Model = field(init=False)

    def __post_init__(self) -> None:
        rules = tuple(rule for rule in self.model.rules if OWN.intersection(rule.actions))
        object.__setattr__(self, "hidden", Model("hidden steps", self.model.columns, self.model.actors, rules))

    @property
    def peers(self) -> tuple[Sid, ...]:
        """The servers that are the specification."""
        return tuple(sid for sid in self.setup.sids if sid != self.sid)

    def server(self, row: Row, sid: Sid | None = None) -> Server:
        """The state of a server; by default of the one under test."""
        server: Server = row[self.model.index[server_name(self.sid if sid is None else sid)]]
        return server

    def connection(self, row: Row, peer: Sid) -> Connection | None:
        """The quorum connection of the server under test with a peer."""
        connection: Connection | None = row[self.model.index[connection_name(self.sid, peer)]]
        return connection

    def opening(self, row: Row, move: Move) -> frozenset[Sid]:
        """The peers that open a connection with the server under test in a move, be it in the place of another one."""
        opens = (send.operation for send in operations(self.model, row, move) if isinstance(send.operation, Open))
        return frozenset(opened.learner for opened in opens if opened.leader == self.sid)

    def moves(self, row: Row) -> Iterator[Move]:
        """The moves that are events: all but the hidden steps of the server under test. Some may be impossible."""
        for _, move in listed(self.model, row):
            if not self.is_own(row, move):
                yield move

    def is_own(self, row: Row, move: Move) -> bool:
        """Whether a move is a hidden step of the server under test.

        The loss of a leader with packets in flight is an event: the network loses them.
        """
        if move.action not in OWN or move.arguments[0] != self.sid:
            return False
        lost = move.action == ServerAction.LOSE_LEADER
        return not (lost and toward(self.connection(row, move.arguments[1]), self.sid))

    def has_lost_quorum(self, row: Row) -> bool:
        """Whether the server under test leads, and finds at its next tick that it has too few learners.

        A real leader counts every learner that has registered and whose connection it still has, the node only those
        that are synchronised. Before it serves it waits for initLimit, which is long here. The model counts connections
        (`Leader.lead`, `LearnerHandler.synced`).
        """
        server = self.server(row)
        if not isinstance(server.zab, Leader) or not server.zab.serves:
            return False
        if self.is_node:
            return not is_supported(server.peer, server.zab)
        learners = {handler.sid for handler in server.zab.handlers if self.connection(row, handler.sid) is not None}
        return not server.peer.has_all_quorums(learners | {self.sid})

    def write(self, zxids: Sequence[int]) -> Move:
        """The event that the write which waits at the gate, of these records, reaches the disk."""
        sends = tuple(Send(server_name(self.sid), Synced()) for _ in zxids)
        return Move(ServerAction.SYNC, (self.sid, tuple(zxids)), sends)


def toward(connection: Connection | None, reader: Sid) -> tuple[QuorumPacket, ...]:
    """The packets in flight to a reader."""
    if connection is None:
        return ()
    return connection.up if reader == connection.leader else connection.down


def holds(connection: Connection | None, sid: Sid) -> bool:
    """Whether a server holds its side of a connection."""
    if connection is None:
        return False
    return connection.learner_holds if sid == connection.learner else connection.leader_holds


class Candidates:
    """The candidates; `held` says whether the commit processor of the server under test rests.

    `lingers` is the record after which the thread that reads packets rests, and asks for no further one; 0 without.
    """

    def __init__(self, ensemble: Ensemble, rows: Iterable[Row]) -> None:
        self.ensemble = ensemble
        self.rows = list(rows)
        self.held, self.lingers = False, 0

    def after(self, move: Move) -> list[Row]:
        """The rows directly after an event, without hidden steps; no row if the event is impossible in all."""
        fired = (fire(self.ensemble.model, row, move) for row in self.rows)
        return list(dict.fromkeys(row for row in fired if row is not None))

    def event(self, move: Move, outlooks: Iterable[Outlook] = ()) -> Event:
        """The event of a move that is possible, with these states after it."""
        fired = ((row, fire(self.ensemble.model, row, move)) for row in self.rows)
        row, after = next((row, after) for row, after in fired if after is not None)
        ending = frozenset(peer for outlook in outlooks for peer, packet in outlook.emitted if packet is None)
        return Event(move, after, ending, self.ensemble.opening(row, move))

    def outlooks(self, move: Move) -> list[Outlook]:
        """The possible states after an event and the hidden steps that follow it."""
        match move.action:
            case str() if move.action in (HOLD, RELEASE):
                self.held = move.action == HOLD
            case str() if move.action in (HOLD_READER, RELEASE_READER):
                self.lingers = self.first_record if move.action == HOLD_READER else 0
        results: dict[Outlook, None] = {}
        for row in self.rows:
            after = fire(self.ensemble.model, row, move)
            if after is not None:
                crashes = move.action == ServerAction.CRASH  # the driver closes the connections of a process that ends
                emitted = () if crashes else self._emitted(row, move, after)
                for end, more in self._settled(after, emitted):
                    results[self._outlook(row, end, more)] = None
        return [*results, *(other for outlook in results for other in self._by_memory(outlook))]

    def _by_memory(self, outlook: Outlook) -> Iterator[Outlook]:
        """The same state with another first packet for learners: it depends on `committedLog`, which no disk has.

        A real leader may always choose SNAP, as it does where that log does not reach back far enough. It may choose
        DIFF where the specification sends SNAP: the files of its log keep the records before a snapshot. Where
        `committedLog` is empty, as after a start from a snapshot that covers the whole log, the leader counts from its
        last applied zxid. In an epoch without a transaction that is "epoch:0", and TRUNC has it (`syncFollower`).
        """
        ensemble = self.ensemble
        server = ensemble.server(outlook.row)
        part = server.zab
        if not isinstance(part, Leader) or not any(isinstance(packet, CHOICES) for _, packet in outlook.emitted):
            return
        history = history_of(server.durable, part, server.peer.tree, server.defects, server.peer.unlisted)
        choices = [
            synchronisations(outlook.to(peer), history, ensemble.server(outlook.row, peer).peer.last_zxid)
            for peer in ensemble.peers
        ]
        for choice in islice(product(*choices), 1, None):
            row, emitted = list(outlook.row), list[Emission]()
            for peer, packets in zip(ensemble.peers, choice, strict=True):
                usual = outlook.to(peer)
                if packets != usual:
                    place = ensemble.model.index[connection_name(ensemble.sid, peer)]
                    connection: Connection = row[place]
                    before = connection.down[: len(connection.down) - len(usual) + (None in usual)]
                    sent = (packet for packet in packets if packet is not None)
                    row[place] = replace(connection, down=(*before, *sent))
                emitted += [(peer, packet) for packet in packets]
            yield Outlook(tuple(row), tuple(emitted), outlook.vote, outlook.queued, outlook.applied)

    def fit(self, outlooks: Iterable[Outlook], sight: Sight) -> bool:
        """Keep the outlooks that explain a sight; False without any, and then nothing changes."""
        fitting = (outlook for outlook in outlooks if explains(outlook, sight, self.ensemble))
        rows = list(dict.fromkeys(self._remembering(outlook, sight) for outlook in fitting))
        if rows:
            self.rows = rows
        return bool(rows)

    def note_role(self) -> None:
        """Forget that threads of the server under test rest: its part has ended, or no sync thread was woken."""
        part = self.ensemble.server(self.rows[0]).zab
        if part is None or not part.serves:
            self.held = False
        if not self.first_record and not (isinstance(part, Learner) and part.owes_ack):
            self.lingers = 0

    @property
    def first_record(self) -> int:
        """The first record that the server under test logs if it reads NEWLEADER next; 0 if it does not."""
        row = self.rows[0]
        part = self.ensemble.server(row).zab
        if not isinstance(part, Learner) or part.mode is not SyncMode.DIFF or not part.not_logged:
            return 0
        packets = toward(self.ensemble.connection(row, part.leader), self.ensemble.sid)
        return part.not_logged[0].zxid if packets and isinstance(packets[0], NewLeader) else 0

    def _remembering(self, outlook: Outlook, sight: Sight) -> Row:
        """The row with the zxid that a server has in memory after an epoch without a transaction: "epoch:0".

        The specification votes with the end of its log (`spec.zab.leader_sync`). The vote of an observer has no zxid,
        so its ACKEPOCH may be the first packet that shows it.
        """
        row, model = list(outlook.row), self.ensemble.model
        shown = None if sight.vote is None or sight.vote == outlook.vote else sight.vote.zxid
        for peer, seen in sight.emitted:
            sent = next((packet for packet in outlook.to(peer) if isinstance(packet, AckEpoch)), None)
            if isinstance(seen, AckEpoch) and sent is not None and seen != sent:
                shown = seen.last_zxid
                place = model.index[connection_name(self.ensemble.sid, peer)]
                connection: Connection = row[place]
                row[place] = replace(
                    connection, up=tuple(seen if packet == sent else packet for packet in connection.up)
                )
        if shown is not None:
            server = self.ensemble.server(outlook.row)
            row[model.index[server_name(server.sid)]] = replace(server, remains=replace(server.remains, tree=shown))
        return tuple(row)

    def _settled(self, row: Row, emitted: tuple[Emission, ...]) -> list[tuple[Row, tuple[Emission, ...]]]:
        """The rows after all hidden steps, in every order, with everything emitted."""
        return [state for state, after in reached([(row, emitted)], self._steps) if not after]

    def _steps(self, state: tuple[Row, tuple[Emission, ...]]) -> Iterator[tuple[Row, tuple[Emission, ...]]]:
        """The rows after one hidden step, with everything emitted until then."""
        row, emitted = state
        for move, after in self._hidden(row):
            yield after, (*emitted, *self._emitted(row, move, after))

    def _hidden(self, row: Row) -> Iterator[tuple[Move, Row]]:
        """The hidden steps that are possible, with the rows after them."""
        ensemble, model = self.ensemble, self.ensemble.model
        for _, move in listed(ensemble.hidden, row):
            if ensemble.is_own(row, move) and self._is_taken(row, move):
                after = fire(model, row, move)
                if after is not None:
                    yield move, after
        if ensemble.has_lost_quorum(row):
            move = Move(ServerAction.LOSE_QUORUM, (ensemble.sid,), (Send(server_name(ensemble.sid), QuorumLost()),))
            after_loss = fire(model, row, move)
            if after_loss is not None:
                yield move, after_loss

    def _is_taken(self, row: Row, move: Move) -> bool:
        """Whether a possible step of the server is hidden; those of the gates are events.

        A leader that gives up completes its writes, and may commit by them (`Leader.shutdown`).
        """
        match move.action:
            case ServerAction.SYNC:
                return not isinstance(move.arguments[1], Append) or self.ensemble.has_lost_quorum(row)
            case ServerAction.APPLY:
                return not self.held
            case ServerAction.RESUME:
                return not self.lingers
            case ServerAction.LOSE_QUORUM:
                return False  # see `Ensemble.has_lost_quorum`
        return True

    def _outlook(self, before: Row, after: Row, emitted: tuple[Emission, ...]) -> Outlook:
        ensemble = self.ensemble
        old, new = ensemble.server(before), ensemble.server(after)
        old_applied, new_applied = applied_zxid(old), applied_zxid(new)
        queued = pending_appends(new)
        if self.lingers and isinstance(new.zab, Learner) and new.zab.owes_ack:
            queued = tuple(zxid for zxid in queued if zxid == self.lingers)
        began = _looks(new) and not (_looks(old) and old.runs)
        return Outlook(
            after,
            emitted,
            new.peer.initial_vote if began else None,
            queued,
            new_applied if new_applied > old_applied > 0 else None,
        )

    def _is_open(self, row: Row, peer: Sid) -> bool:
        """Whether the server under test knows of a connection: a leader does once the learner has registered."""
        part = self.ensemble.server(row).zab
        return not isinstance(part, Leader) or part.handler(peer) is not None

    def _emitted(self, before: Row, move: Move, after: Row) -> tuple[Emission, ...]:
        """The packets that the server under test sends in a move, and the connections that it ends."""
        ensemble, sid = self.ensemble, self.ensemble.sid
        sends = operations(ensemble.model, before, move)
        emissions: list[Emission] = []
        for peer in ensemble.peers:
            old, new = ensemble.connection(before, peer), ensemble.connection(after, peer)
            if old is new:
                continue
            name = connection_name(sid, peer)
            ops = [send.operation for send in sends if send.actor in (name, f"open {name}")]
            if any(isinstance(operation, Open) for operation in ops):
                packets = toward(new, peer)
            else:
                count = len(toward(old, peer))
                count -= sum(isinstance(operation, Take | Pass) and operation.reader == peer for operation in ops)
                packets = toward(new, peer)[count:]
            emissions += [(peer, packet) for packet in packets]
            ends = [operation for operation in ops if isinstance(operation, Close | Disconnection)]
            seen = move.action == ServerAction.RECEIVE or self._is_open(before, peer)
            if ends and ends[0] == Close(sid) and holds(old, sid) and holds(old, peer) and seen:
                emissions.append((peer, None))
        return tuple(emissions)


def synchronisations(packets: Packets, history: History, last: int) -> list[Packets]:
    """The packets of a synchronisation, and those that a real leader may send in their place.

    `last` is the last zxid of the learner.
    """
    first, rest = (packets[0], packets[1:]) if packets else (None, [])
    match first:
        case Diff() | Trunc():
            snap = Snap(history.last_processed, history.applied)
            results = [packets, [snap, *(packet for packet in rest if not _is_in(packet, snap))]]
            if isinstance(first, Trunc) and first.zxid < history.last_processed:
                results.append([Trunc(history.last_processed), *rest])
            return results
        case Snap(zxid=zxid, txns=txns) if txns is not None and last in {txn.zxid for txn in txns}:
            later = [txn for txn in txns if txn.zxid > last]
            return [
                packets,
                [Diff(zxid), *(packet for txn in later for packet in (Proposal(txn), Commit(txn.zxid))), *rest],
            ]
    return [packets]


def _is_in(packet: QuorumPacket | None, snap: Snap) -> bool:
    """Whether a snapshot contains the transaction of a packet."""
    match packet:
        case Proposal(txn=txn):
            return txn.zxid <= snap.zxid
        case Commit(zxid=zxid):
            return zxid <= snap.zxid
    return False


def _looks(server: Server) -> bool:
    return server.election is not None and server.election.state is ServerState.LOOKING


def agree(model: QuorumPacket | None, seen: QuorumPacket | None, accepted: int = 0) -> bool:
    """Whether a packet that was seen is the packet of the model. `accepted` is the epoch of its server."""
    if model is None or seen is None or type(model) is not type(seen):
        return model is seen is None
    match model:
        case AckEpoch(last_zxid=zxid, current_epoch=epoch) if isinstance(seen, AckEpoch):
            return epoch == seen.current_epoch and is_same_end(zxid, seen.last_zxid, accepted)
        case (
            FollowerInfo() | LeaderInfo() | NewLeader() | Proposal() | QuorumRequest()
            | CommitAndActivate() | InformAndActivate()
        ):  # fmt: skip
            return model == seen
    return wire_form(model) == wire_form(seen)


def explains(outlook: Outlook, sight: Sight, ensemble: Ensemble) -> bool:
    """Whether a possible state explains a sight."""
    server = ensemble.server(outlook.row)
    accepted = server.durable.accepted_epoch
    for peer in ensemble.peers:
        seen = [packet for receiver, packet in sight.emitted if receiver == peer]
        expected = outlook.to(peer)
        if len(seen) != len(expected) or not all(map(agree, expected, seen, repeat(accepted))):
            return False
    if not _same_vote(outlook, sight.vote, server) or not _same_write(outlook, sight.waiting):
        return False
    if sight.applied is not None and not is_same_end(applied_zxid(server), sight.applied, accepted):
        return False
    return sight.disk is None or (not server.runs and fits_disk(server.durable, sight.disk))


def _same_write(outlook: Outlook, seen: tuple[int, ...] | None) -> bool:
    """Whether a write that waits is the next one of a state."""
    return seen is None or (bool(seen) is bool(outlook.queued) and seen == outlook.queued[: len(seen)])


def is_same_end(model: int, seen: int, epoch: int) -> bool:
    """Whether a last zxid is that of a state, or "epoch:0" of a later epoch up to this one.

    Only the memory has that, and the name of a snapshot.
    """
    return model == seen or (counter_of(seen) == 0 and model < seen <= make_zxid(epoch))


def _same_vote(outlook: Outlook, seen: Vote | None, server: Server) -> bool:
    """Whether a vote is that of a state, or has a zxid that a server only has in memory (`Candidates._remembering`).

    In variants only, a snapshot that survives a TRUNC counts when the files are read again, and before that the log
    does. A learner with ZOOKEEPER-4712 reads its log while a queue is written, or not at all before it serves
    (`LearnerZooKeeperServer.shutdown`). With `trunc-after-snap` the log keeps a record behind the zxid of a TRUNC,
    which is that of a snapshot. A learner that does not serve yet keeps that zxid (`ZooKeeperServer.canShutdown`).
    """
    model = outlook.vote
    if model is None or seen is None or model == seen:
        return model == seen
    is_alike = (model.leader, model.peer_epoch) == (seen.leader, seen.peer_epoch)
    is_behind = seen.zxid == replace(server.durable, dirty=None).last_zxid < model.zxid
    is_begin = is_same_end(model.zxid, seen.zxid, seen.peer_epoch)
    is_late = Variant.QUEUE_SURVIVES_SHUTDOWN in server.defects and any(
        txn.zxid == seen.zxid for txn in (*server.durable.log, *server.remains.queue)
    )
    is_cut = Variant.TRUNC_AFTER_SNAP in server.defects and seen.zxid == server.durable.snapshot < model.zxid
    return is_alike and (is_behind or is_late or is_begin or is_cut)


def fits_disk(durable: Durable, disk: DiskState) -> bool:
    """Whether a disk is that of a state: its epochs, and the records beyond the last snapshot of a leader."""
    records = tuple(txn.zxid for txn in durable.records)
    zxids = tuple(zxid for zxid in disk.zxids if zxid > durable.snapshot)
    return (disk.accepted, disk.current) == (durable.accepted_epoch, durable.current_epoch) and zxids == records


def worded(packet: QuorumPacket | None) -> str:
    """A packet in a few words."""
    match packet:
        case None:
            return "the end of the connection"
        case NewLeader(view=View() as view):
            return f"{described(packet)} with the configuration {format_zxid(view.version)}"
    return described(packet)


def in_words(shown: Outlook | Sight) -> str:
    """The observations that a state allows, or those that were made."""
    items = [f"{worded(packet)} to server {peer}" for peer, packet in shown.emitted]
    if shown.vote is not None:
        items.append(f"a vote for itself with zxid {format_zxid(shown.vote.zxid)}, epoch {shown.vote.peer_epoch}")
    if zxids := shown.queued[:1] if isinstance(shown, Outlook) else shown.waiting:
        items.append(f"a write of {', '.join(map(format_zxid, zxids))} to its log")
    if shown.applied:
        items.append(f"{format_zxid(shown.applied)} as its last applied zxid")
    if isinstance(shown, Sight) and shown.disk is not None:
        zxids = shown.disk.zxids[-SHOWN_ZXIDS:]
        items.append(f"the end of its process, with the epochs {shown.disk.accepted} and {shown.disk.current} "
                     f"and a log that ends with {', '.join(map(format_zxid, zxids)) or 'nothing'}")  # fmt: skip
    return ", ".join(items) or "nothing"
