"""The server under test: one real process, its gates, its clients and the sockets of its peers.

Rules of this module:

- `cause` makes an event happen. `look` then reads until the sight is that of an expected state, or cannot become it,
  or until the time is up.
- A state that shows nothing is confirmed by an answer that can only come after the event was handled: PING of a
  follower, REVALIDATE of a leader, `srvr`. Before a server serves it has no such answer.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Protocol

from checker.engine import Move
from checker.engine.model import Row
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.setup import PlannedReconfig
from harness import node, real
from harness.processes import POLL_SECONDS, Process, ServerError, srvr
from harness.reproduce.disks import (
    SESSION_MILLISECONDS,
    logged_zxids,
    path_of,
    read_accepted_epoch,
    read_current_epoch,
    write_disk,
)
from harness.reproduce.gates import DiskGate, ServerThread, ThreadGate
from harness.servers import CREATE, RECONFIG, SKIP_ACL, SYNC, WORLD, incremental
from harness.session import Session
from harness.twin.candidates import (
    GATES,
    HOLD,
    HOLD_READER,
    RELEASE,
    DiskState,
    Emission,
    Ensemble,
    Event,
    Outlook,
    Sight,
    agree,
    explains,
    holds,
    toward,
)
from harness.twin.sockets import PeerSockets
from harness.twin.wires import Wire
from harness.zoo_cfg import Member, members, write_zoo_cfg
from harness.zoo_cfg import View as Files
from refimpl.wire import quorum as wire_quorum
from refimpl.wire.packet import PacketType
from spec.election.messages import Notification
from spec.election.vote import ServerState, Vote
from spec.quorum import Sid, View, same_members
from spec.text import required_integer
from spec.zab.packets import QuorumPing
from spec.zab.state import Leader, Learner, Stage

SECONDS = 20.0
"""The longest wait for an expected observation."""
REST_SECONDS = 0.3
"""The time without anything new after which a server is at rest, also where an event has no answer."""
ANSWER_SECONDS = 2.0
"""The time after which the peers answer again a server that still looks; it repeats its vote five times a second."""
NODE = "node"
TICK_MILLISECONDS = 100
LIMIT_TICKS = 200_000
OPTIONS = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:GuaranteedSafepointInterval=0",  # a safepoint would wait for a thread that rests, and stop the others
    "-Dzookeeper.snapshotSizeFactor=0",
    "-Dzookeeper.maxBatchSize=1",
    "-Dzookeeper.fastleader.maxNotificationInterval=200",
    "-Dzookeeper.globalOutstandingLimit=100000",
    "-Dzookeeper.preAllocSize=64",
    "-Dzookeeper.admin.enableServer=false",
    SKIP_ACL,
)
KEYS = {"localSessionsEnabled": "true", "maxSessionTimeout": str(SESSION_MILLISECONDS)}
ANSWERS = frozenset({PacketType.PING, PacketType.REVALIDATE})


class Subject(Protocol):
    """A server under test, or something in its place.

    `has_clients`: clients may write at it, in local sessions, and its commit processor can be held.
    """

    has_clients: bool

    def begin(self, ensemble: Ensemble) -> None:
        """Start a new life with the disk of the model; all earlier ones are forgotten."""

    def cause(self, event: Event) -> None:
        """Make an event happen."""

    def look(self, outlooks: Sequence[Outlook]) -> Sight:
        """The sight after it; the possible states say for which observations to wait."""

    def waiting(self) -> tuple[int, ...]:
        """The zxids of the write that waits at the gate."""

    def shut_down(self) -> None:
        """End the process."""


@dataclass
class _Seen:
    """The observations since the last event."""

    emitted: list[Emission] = field(default_factory=list)
    ended: set[Sid] = field(default_factory=set)
    vote: Vote | None = None


class RealServer:
    """A process of a release, or of our own node, below `directory`.

    Nothing shows that a learner which does not serve has handled a packet. So its end of a connection may be seen only
    after a later event. A `patient` look waits for it.
    """

    def __init__(
        self, release: str, sids: tuple[Sid, ...], sid: Sid, directory: Path, shim: Path, *, patient: bool = False
    ) -> None:
        self.sid, self.has_clients, self._patient = sid, release != NODE, patient
        self._home = directory / f"server-{sid}"
        self._home.mkdir(parents=True)
        self._members = {member.sid: member for member in members(sids)}
        self._gate, self._threads = DiskGate(self._home / "gate"), ThreadGate(self._home / "threads")
        peers = tuple(member for member in self._members.values() if member.sid != sid)
        self._sockets = PeerSockets(self.own, peers)
        self._sockets.accepts = self._accepts
        zoo_cfg = self._home / "zoo.cfg"
        gates = {"DISK_GATE": str(self._gate.directory), "THREAD_GATE": str(self._threads.directory)}
        command = real.command(zoo_cfg, OPTIONS, release) if self.has_clients else node.command(zoo_cfg)
        environment = {"LD_PRELOAD": str(shim), **gates, **({} if self.has_clients else node.environment())}
        self._process = Process(command, self._home, self._home / "log.txt", environment)
        self._sessions: list[Session] = []
        self._seen = _Seen()
        self._quiet = False  # whether it may not have handled the last event yet
        self._caused = 0.0  # the time of the last event at this server
        self._decided = 0  # the round of the last election of this process that ended
        self._answers: tuple[tuple[Sid, ServerState, Vote], ...] = ()  # of peers, if the last event is an election
        self._answered_at = 0.0
        self._row: Row = ()
        self._gone: set[Sid] = set()  # peers that have closed their side, with packets in flight

    @property
    def own(self) -> Member:
        """The ports of the server under test."""
        return self._members[self.sid]

    def begin(self, ensemble: Ensemble) -> None:
        """Start a new life with the disk of the model."""
        self._kill()
        data = self._home / "data" / "version-2"
        if data.exists():
            for file in data.iterdir():
                file.unlink()
            data.rmdir()
        write_disk(self._home / "data", ensemble.server(ensemble.model.initial()).durable)
        self._ensemble = ensemble
        self._view = ensemble.setup.files[0].view
        for file in self._home.glob("zoo.cfg*"):
            file.unlink()
        written = self._files(self._view)
        write_zoo_cfg(written, next(member for member in written.members if member.sid == self.sid), self._home)
        self._wire = Wire(self._view, lambda view: self._files(view).config, local_sessions=self.has_clients)
        self._gate.close()
        self._start()
        deadline = time.monotonic() + SECONDS
        while self._sockets.looking is None:
            if time.monotonic() > deadline or not self._process.alive:
                raise ServerError(f"server {self.sid} does not look for a leader{self._process.last_words()}")
            self._sockets.pump(0.05)

    def _is_own(self, move: Move) -> bool:
        return self.sid in move.arguments or (move.action == ServerAction.ELECT and self.sid in move.arguments[1])

    def _files(self, view: View) -> Files:
        """The content of the files of the server under test with this view."""
        parts = tuple(replace(self._members[sid], observer=sid in view.observers) for sid in sorted(view.members))
        return Files(parts, TICK_MILLISECONDS, LIMIT_TICKS, LIMIT_TICKS, KEYS, version=view.version or None)

    def shut_down(self) -> None:
        """End the process and close all sockets."""
        self._kill()
        self._sockets.shut_down()

    def waiting(self) -> tuple[int, ...]:
        """The zxids of the write that waits at the gate."""
        return self._gate.waiting()

    # --- events

    def cause(self, event: Event) -> None:
        """Make an event happen."""
        move, after = event.move, event.after
        self._seen, self._row, self._answers = _Seen(), after, ()
        self._quiet = False
        if move.action != ServerAction.LEARN:
            self._note_view(after)
        before, self._caused = self._caused, time.monotonic() if self._is_own(move) else self._caused
        arguments = move.arguments
        match move.action:
            case ServerAction.RECEIVE if arguments[1] == self.sid:
                source, _, packet = arguments
                self._sockets.send(source, self._wire.encoded(packet, source))
                self._quiet = True
            case ServerAction.SYNC if arguments[0] == self.sid:
                self._gate.permit()
            case ServerAction.CLIENT_WRITE if arguments[0] == self.sid:
                self._write(arguments[1])
                self._quiet = True
            case ServerAction.DISCONNECT | ServerAction.LOSE_LEADER if self.sid in arguments:
                self._sockets.end(next(peer for peer in arguments if peer != self.sid))
            case ServerAction.CLIENT_SYNC if arguments[0] == self.sid:
                self._session().send(SYNC, "/")
                self._quiet = True
            case ServerAction.CRASH if arguments[0] == self.sid:
                time.sleep(max(0.0, before + REST_SECONDS - time.monotonic()))
                self._kill()
            case ServerAction.RESTART if arguments[0] == self.sid:
                self._start()
            case ServerAction.LEARN if arguments[0] == self.sid:
                self._tell(arguments[1], after)
            case ServerAction.ELECT if self.sid in arguments[1]:
                self._elect(arguments[0], move.sends[0].operation.vote)
            case str() if move.action in GATES:
                self._move_thread(move.action)
        planned = self._ensemble.setup.planned.get(move.action)
        if isinstance(planned, PlannedReconfig) and arguments[0] == self.sid:
            self._session().send(RECONFIG, *incremental(self._members, planned.change))
            self._quiet = True
        self._end_connections(event)

    def _move_thread(self, action: str) -> None:
        """Let a thread of the server under test rest, or continue."""
        if action == HOLD:
            self._session()  # a new session would wait for the thread
            self._threads.hold(ServerThread.COMMIT)
        elif action == HOLD_READER:
            self._threads.linger(ServerThread.PEER)
        else:
            self._threads.release(ServerThread.COMMIT if action == RELEASE else ServerThread.PEER)

    def _end_connections(self, event: Event) -> None:
        """End the connections that the peers have ended, but for those that the server under test ends."""
        for peer in self._ensemble.peers:
            if peer not in self._sockets.quorum:
                self._gone.discard(peer)
                continue
            connection = self._ensemble.connection(event.after, peer)
            if peer in event.opening:
                self._sockets.end(peer)
                self._gone.discard(peer)
            elif holds(connection, peer):
                self._gone.discard(peer)
            elif toward(connection, self.sid):
                self._gone.add(peer)
            elif peer not in event.ending:
                self._sockets.end(peer)

    def _start(self) -> None:
        self._gate.reset()
        self._threads.reset()
        self._process.start()

    def _kill(self) -> None:
        self._process.kill()
        self._sockets.reset()
        for session in self._sessions:
            session.drop()
        self._sessions.clear()
        self._gone.clear()
        self._decided = 0

    def _accepts(self, peer: Sid) -> bool:
        return bool(self._row) and self._ensemble.connection(self._row, peer) is not None

    def _elect(self, leader: Sid, vote: Vote) -> None:
        """Let the server under test decide immediately: peers that have decided notify it in its own round."""
        deadline = time.monotonic() + SECONDS
        while (looking := self._sockets.looking) is None or looking.election_epoch <= self._decided:
            if time.monotonic() > deadline:
                raise ServerError(f"server {self.sid} does not look for a leader")
            self._sockets.pump(POLL_SECONDS)
        if leader == self.sid:
            vote = looking.vote
        views = self._ensemble.server(self._row).peer.views  # a decision needs a quorum of each
        voters = frozenset[Sid]().union(*(view.voters for view in views)) - {self.sid}
        self._answers = tuple(
            (peer, ServerState.LEADING if peer == leader else ServerState.FOLLOWING, vote)
            for peer in sorted(voters, key=lambda peer: peer != leader)
        )
        self._answer(looking.election_epoch)

    def _answer(self, election_epoch: int) -> None:
        """Let each peer that has decided answer a server that looks (`WorkerReceiver.run`)."""
        self._decided, self._sockets.looking, self._answered_at = election_epoch, None, time.monotonic()
        config = self._files(self._view).config
        for peer, state, vote in self._answers:
            self._sockets.notify(peer, Notification(state, vote, election_epoch, None), config)

    def _answer_again(self) -> None:
        """Answer a server that still looks: the connection with its first answer has ended, or it began again."""
        looking = self._sockets.looking
        if self._answers and looking is not None and time.monotonic() - self._answered_at > ANSWER_SECONDS:
            self._answer(looking.election_epoch)

    def _note_view(self, row: Row) -> None:
        """Note the view of the server under test; with other members it begins a new election object, at round 1."""
        view = self._ensemble.server(row).view
        if not same_members(view, self._view):
            self._decided, self._sockets.looking = 0, None
        self._view = view

    def _tell(self, peer: Sid, after: Row) -> None:
        """Let a peer with a later view send a notification of a round before all rounds, whose vote is not counted."""
        vote = Vote(peer, 0, 0)
        before, later = self._view, self._ensemble.server(after, peer).view
        self._sockets.notify(peer, Notification(ServerState.LOOKING, vote, 0, None), self._files(later).config)
        if not same_members(before, later):
            self._sockets.forget_election()
        self._note_view(after)

    def _write(self, number: int) -> None:
        self._session().send(CREATE, path_of(0, number), b"", WORLD, 0)

    def _session(self) -> Session:
        """The session of the present role; a new one if the server has ended the last one."""
        for session in self._sessions:
            with suppress(ServerError, OSError):
                while session.readable():
                    session.receive_raw()  # a reply, or the end of the connection, which raises
                if session.connected:
                    return session
            session.drop()
        session, deadline = Session(SESSION_MILLISECONDS), time.monotonic() + SECONDS
        while not session.connected:
            try:
                session.connect(self.own.client_port)
            except (ServerError, OSError) as error:
                session.drop()
                if time.monotonic() > deadline:
                    raise ServerError(f"server {self.sid} accepts no client: {error}") from None
                self._sockets.pump(0.01)
        self._sessions = [session]
        return session

    # --- sight

    def look(self, outlooks: Sequence[Outlook]) -> Sight:
        """Read until the sight is that of an outlook, or of none."""
        deadline = time.monotonic() + SECONDS
        for outlook in outlooks:
            self._note_view(outlook.row)
        if any(outlook.vote for outlook in outlooks):
            self._threads.open()  # a server that shuts down waits for its threads
        while True:
            sight = self._sight(outlooks)
            fitting = [outlook for outlook in outlooks if explains(outlook, sight, self._ensemble)]
            if fitting:
                if self._quiet and not any(outlook.emitted or outlook.vote for outlook in fitting):
                    self._quiet = not self._fence(fitting[0])
                    if not self._quiet:
                        continue
                    waits = self._patient or self._has_two_views(fitting)
                    if waits and time.monotonic() - self._caused < REST_SECONDS:
                        self._sockets.pump(POLL_SECONDS)
                        continue
                return sight
            if not any(self._begins(outlook, sight) for outlook in outlooks) or time.monotonic() > deadline:
                return self._whole_sight(outlooks)
            self._flush(outlooks)
            self._answer_again()
            self._sockets.pump(0.002)

    def _has_two_views(self, outlooks: Sequence[Outlook]) -> bool:
        """Whether the server under test has seen a later view.

        A release may then find the quorum of one view enough, before the specification has that of both. Its packets
        would be taken for an answer to a later event.
        """
        return any(self._ensemble.server(outlook.row).last_seen is not None for outlook in outlooks)

    def _whole_sight(self, outlooks: Sequence[Outlook]) -> Sight:
        """A sight that no outlook explains: everything that can be observed, once the server is at rest."""
        sight, since = self._sight(outlooks, whole=True), time.monotonic()
        while time.monotonic() - since < REST_SECONDS:
            self._sockets.pump(POLL_SECONDS)
            later = self._sight(outlooks, whole=True)
            if later != sight:
                sight, since = later, time.monotonic()
        return sight

    def _flush(self, outlooks: Sequence[Outlook]) -> None:
        """Permit the writes that an orderly shutdown of the server completes."""
        waiting = self._gate.waiting()
        for outlook in outlooks if waiting else ():
            server = self._ensemble.server(outlook.row)
            if {txn.zxid for txn in (*server.durable.records, *server.remains.queue)}.issuperset(waiting):
                self._gate.permit()
                return

    def _sight(self, outlooks: Sequence[Outlook], *, whole: bool = False) -> Sight:
        """The parts of the sight that some outlook has, or the whole sight."""
        self._sockets.pump(0)
        seen = self._seen
        for peer, end in self._sockets.quorum.items():
            for packet in end.arrived:
                modelled = self._wire.modelled(packet)
                if modelled is not None and peer not in self._gone:
                    seen.emitted.append((peer, modelled))
            end.arrived.clear()
            if end.ended and peer not in seen.ended and peer not in self._gone:
                seen.ended.add(peer)
                seen.emitted.append((peer, None))
        for peer in seen.ended:
            self._sockets.end(peer)
        looking = self._sockets.looking
        wanted = whole or any(outlook.vote is not None for outlook in outlooks)
        if wanted and looking is not None and looking.election_epoch > self._decided:
            seen.vote = seen.vote or looking.vote
        waiting: tuple[int, ...] | None = self._gate.waiting() if self._process.alive else ()
        if not waiting and not whole and not any(outlook.queued for outlook in outlooks):
            waiting = None
        applied = None
        if whole or any(outlook.applied for outlook in outlooks):
            applied = self._applied()
        disk = None
        if not self._process.alive:
            data = self._home / "data"
            disk = DiskState(read_accepted_epoch(data) or 0, read_current_epoch(data) or 0, logged_zxids(data))
        return Sight(tuple(seen.emitted), seen.vote, waiting, applied, disk)

    def _applied(self) -> int:
        zxid = srvr(self.own.client_port).get("Zxid")
        return 0 if zxid is None else required_integer(zxid.removeprefix("0x"), base=16)

    def _begins(self, outlook: Outlook, sight: Sight) -> bool:
        """Whether the sight is a beginning of that of a state."""
        accepted = self._ensemble.server(outlook.row).durable.accepted_epoch
        for peer in self._ensemble.peers:
            seen = [packet for receiver, packet in sight.emitted if receiver == peer]
            expected = outlook.to(peer)
            if len(seen) > len(expected) or not all(map(agree, expected, seen, repeat(accepted))):
                return False
        waiting = sight.waiting or ()
        return waiting == outlook.queued[: len(waiting)] or bool(outlook.vote)

    def _fence(self, outlook: Outlook) -> bool:
        """Wait until the server has handled all sent packets; False without an answer that shows it."""
        part = self._ensemble.server(outlook.row).zab
        if isinstance(part, Learner) and part.serves and part.leader in self._sockets.quorum:
            self._answered(part.leader, self._wire.encoded(QuorumPing(), part.leader))
            return True
        if isinstance(part, Leader) and part.serves:
            for handler in part.handlers:
                if handler.stage is Stage.SERVING and handler.sid in self._sockets.quorum:
                    request = wire_quorum.RevalidateRequest(handler.sid << 56 | 1, SESSION_MILLISECONDS)
                    self._answered(handler.sid, wire_quorum.encode_packet(request), PacketType.REVALIDATE)
            return True
        return False

    def _answered(self, peer: Sid, data: bytes, kind: PacketType = PacketType.PING) -> None:
        deadline = time.monotonic() + SECONDS
        end = self._sockets.quorum[peer]
        self._sockets.send(peer, data)
        count = 0
        while not any(packet.type == kind for packet in end.arrived[count:]):
            if end.ended:
                return
            if time.monotonic() > deadline:
                raise ServerError(f"server {self.sid} does not answer {kind.name}")
            self._sockets.pump(0.05)
