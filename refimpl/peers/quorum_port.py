"""The quorum port: a leader's connections with its learners, or a learner's connection with its leader.

Rules this module keeps:

- Every packet becomes an event of the server. One that is impossible now stays where it is, with all behind it, until
  something else has happened.
- What the wire carries and no step reads is settled here: who a learner is, sessions in a PING, REVALIDATE.
- Silence ends a connection: initLimit while a learner is brought up to date, syncLimit afterwards. A leader looks with
  every half tick whether enough learners are left.
- Only so many connections may be of nobody, or of servers that the configuration does not name, and the first have to
  say whose they are within initLimit. What a learner says of itself has to be possible: it is not this server, and an
  epoch is left after its own.

Source: `LearnerHandler.run`, `Learner` (`connectToLeader`, `ping`, `revalidate`), `Leader.lead`,
`LearnerMaster.revalidateSession`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from refimpl.disk.body import body_chunks
from refimpl.jute import JuteError
from refimpl.peers.ports import ListenError
from refimpl.peers.quorum_socket import QuorumSocket
from refimpl.services import LeaderService, LearnerService
from refimpl.wire import quorum as wire
from refimpl.wire.packet import Packet
from refimpl.wire.request import BadRequestError
from spec.config import Ensemble, Server, render_ensemble
from spec.effects import Message
from spec.quorum import Sid
from spec.zab import leader as spec_leader
from spec.zab import packets as zab
from spec.zab.events import LearnerGone, Receive
from spec.zab.state import Leader, LeaderPhase, Learner, Mode, Stage

if TYPE_CHECKING:
    from refimpl.node import Node

logger = logging.getLogger("quorate.quorum")

TRIES, RETRY = 10, 0.05
"""How often a leader is tried, and seconds between (ZooKeeper: 5 and 0.1, `leaderConnectDelayDuringRetryMs`)."""
MAX_STRANGERS = 64
"""How many connections may be open that have not said whose they are, and how many of servers unknown here."""
LAST_EPOCH = (1 << 31) - 1
"""The highest epoch that fits into a zxid."""


class QuorumSockets:
    """The quorum port of one server."""

    def __init__(self, node: Node, own: Server, ensemble: Ensemble) -> None:
        self._node, self._own = node, own
        self._servers = {server.sid: server for server in ensemble.servers}
        self._config = render_ensemble(ensemble)
        self._loop = asyncio.get_running_loop()
        self._listening: list[asyncio.Server | socket.socket] = []
        self._strangers: set[QuorumSocket] = set()
        self._learners: dict[Sid, QuorumSocket] = {}
        self._leader: QuorumSocket | None = None
        self._leader_lost = False
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: set[QuorumSocket] = set()
        self._ping_zxid = 0
        self._watch: asyncio.TimerHandle | None = None
        self._phase: LeaderPhase | None = None
        self._phase_began = 0.0

    # Roles.

    def role_changed(self, zab: Leader | Learner | None) -> None:
        """The server begins or ends to lead or to follow."""
        self._close_all()
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if zab is None:
            return
        self._phase, self._phase_began = None, self._loop.time()
        self._watch = self._loop.call_later(self._node.settings.tick_time / 2000, self._look)
        if isinstance(zab, Leader):
            self._listen()

    def close(self) -> None:
        """The server stops."""
        self.role_changed(None)

    def _close_all(self) -> None:
        for listening in self._listening:
            listening.close()
        self._listening.clear()
        self.disconnect(None)
        for stranger in tuple(self._strangers):
            stranger.close()

    def _listen(self) -> None:
        """Accepts learners at once: the sockets listen before this returns. Raises OSError."""
        for address in self._own.addresses:
            family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
            try:
                listening = socket.create_server((address.host, address.quorum_port), family=family, backlog=128)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                what = f"cannot listen for learners at {address.host}:{address.quorum_port}: {why}"
                raise ListenError(what) from None
            listening.setblocking(False)
            self._listening.append(listening)
            self._loop.create_task(self._accept(listening))

    async def _accept(self, listening: socket.socket) -> None:
        if listening not in self._listening:
            return  # it leads no more
        accepting = await self._loop.create_server(self._stranger, sock=listening)
        if listening in self._listening:
            self._listening[self._listening.index(listening)] = accepting
        else:
            accepting.close()

    def _stranger(self) -> QuorumSocket:
        return QuorumSocket(self, None, self._node.settings.jute_maxbuffer)

    # A learner connects.

    def connect(self, leader: Sid, first: Message) -> None:
        """Connects to a leader, and sends `first` as soon as it accepts."""
        self._connecting = self._loop.create_task(self._connect(leader, first))

    async def _connect(self, leader: Sid, first: Message) -> None:
        server = self._servers.get(leader)
        deadline = self._loop.time() + self._node.settings.init_time / 1000
        for _ in range(TRIES):
            for address in () if server is None else server.addresses:
                try:
                    async with asyncio.timeout_at(deadline):
                        _, found = await self._loop.create_connection(
                            lambda: QuorumSocket(self, leader, self._node.settings.jute_maxbuffer),
                            address.host,
                            address.quorum_port,
                        )
                except (OSError, TimeoutError, ValueError):  # the last one is what IDNA says of a host
                    continue
                self._leader = found
                self.send(leader, first)
                return
            await asyncio.sleep(RETRY)
        logger.warning("leader %d cannot be reached at its quorum port", leader)
        self._lose_leader()

    def _lose_leader(self) -> None:
        self._leader_lost = True
        self._node.submit(self.retry)

    # Sending.

    def send(self, peer: Sid, packet: Message) -> None:
        """Sends a packet to a learner, or to the leader."""
        found = self._learners.get(peer) if isinstance(self._node.server.zab, Leader) else self._leader
        if found is None:
            return  # the connection is gone, and the event that says so is on its way
        if isinstance(packet, zab.Snap):
            found.write(wire.encode_packet(packet))
            found.stream(body_chunks(self._node.replica.tree, packet.zxid))
            return
        assert isinstance(packet, zab.QuorumPacket)
        found.write(wire.encode_packet(self._wrapped(packet)))

    def _wrapped(self, packet: zab.QuorumPacket) -> wire.QuorumMessage:
        """The packet with what the wire carries beside it."""
        service = self._node.service
        match packet:
            case zab.FollowerInfo():
                return wire.Registration(packet, self._own.sid, self._node.server.view.version)
            case zab.NewLeader():
                return wire.LeaderConfig(packet, self._config)
            case zab.Ping() if isinstance(service, LearnerService):
                return wire.Pinged(self._ping_zxid, service.take_touched())
            case zab.Ping():
                return wire.Pinged(self._node.replica.zxid)
            case zab.SyncRequest() if isinstance(service, LearnerService):
                return wire.SyncAsked(service.newest_sync)
        return packet

    def revalidate(self, session: int, timeout: int) -> None:
        """Asks the leader whether a session lives."""
        if self._leader is not None:
            self._leader.write(wire.encode_packet(wire.Revalidate(session, timeout)))

    def disconnect(self, peer: Sid | None) -> None:
        """Closes the connection with a peer; None: all."""
        if self._connecting is not None and peer is None:
            self._connecting.cancel()
        for sid in tuple(self._learners) if peer is None else (peer,):
            learner = self._learners.pop(sid, None)
            if learner is not None:
                self._waiting.discard(learner)
                learner.close()
        if self._leader is not None and peer in (None, self._leader.peer):
            leader, self._leader = self._leader, None
            self._waiting.discard(leader)
            leader.close()
        if self._leader is None:
            self._leader_lost = False

    # What sockets tell.

    def opened(self, found: QuorumSocket) -> None:
        """Somebody has connected, or this server has; of those that nobody knows only so many are kept."""
        if found.peer is not None:
            return
        if len(self._strangers) >= MAX_STRANGERS or not self._listening:
            found.close()
        else:
            self._strangers.add(found)

    def arrived(self, found: QuorumSocket) -> None:
        """Packets have come."""
        self._node.submit(lambda: self._read(found))

    def gone(self, found: QuorumSocket) -> None:
        """A connection has ended: what came before its end is read first."""
        self._strangers.discard(found)
        self._waiting.discard(found)
        if found is self._leader:
            self._lose_leader()
        elif found.peer is not None and self._learners.get(found.peer) is found:
            self._node.submit(lambda: self._learner_gone(found))

    def broken(self, found: QuorumSocket, why: str) -> None:
        """A peer sent what is no packet, or does not read."""
        whose = "a peer that has not said who it is" if found.peer is None else f"server {found.peer}"
        logger.warning("quorum port: %s: %s; the connection ends", whose, why)

    def _learner_gone(self, found: QuorumSocket) -> None:
        assert found.peer is not None
        if self._learners.get(found.peer) is found:
            del self._learners[found.peer]
            self._node.run(LearnerGone(found.peer))

    # Reading.

    @property
    def is_waiting(self) -> bool:
        """Whether something has arrived that the server could not take yet."""
        return bool(self._waiting) or self._leader_lost

    def retry(self) -> None:
        """Offers that again."""
        if self._leader_lost and self._node.lose_leader():
            self._leader_lost = False
        for found in tuple(self._waiting):
            self._read(found)

    def _read(self, found: QuorumSocket) -> None:
        self._waiting.discard(found)
        while found.inbox:
            taken = self._take(found, found.inbox[0])
            if not taken:
                self._waiting.add(found)
                break
            if not found.inbox:
                break
            found.inbox.popleft()
        found.drained()

    def _take(self, found: QuorumSocket, packet: Packet) -> bool:
        """One packet; False while it is impossible."""
        try:
            message = wire.decode_packet(packet)
        except BadRequestError as error:
            return self._refuse(found, error)
        except wire.UnknownPacketError as error:
            logger.warning("quorum port: %s", error)
            return True
        except JuteError as error:
            self._drop(found, str(error))
            return True
        if found is self._leader:
            return self._from_leader(found, message)
        if found.peer is None:
            return self._introduced(found, message)
        if self._learners.get(found.peer) is found:
            return self._from_learner(found.peer, message)
        return True  # of a connection that is being closed

    def _drop(self, found: QuorumSocket, why: str) -> None:
        self.broken(found, why)
        found.inbox.clear()
        found.close()

    def _introduced(self, found: QuorumSocket, message: wire.QuorumMessage) -> bool:
        """The first packet of a learner."""
        if not isinstance(message, wire.Registration) or not isinstance(self._node.server.zab, Leader):
            self._drop(found, "its first packet is neither FOLLOWERINFO nor OBSERVERINFO")
            return True
        if why := self._refusal(message):
            self._drop(found, why)
            return True
        older = self._learners.get(message.sid)
        if older is not None:
            self._learner_gone(older)
            older.close()
        self._strangers.discard(found)
        found.peer = message.sid
        self._learners[message.sid] = found
        return self._node.run(Receive(message.sid, message.packet))

    def _refusal(self, message: wire.Registration) -> str | None:
        """Why what a learner says of itself cannot be; None if it can."""
        sid, accepted = message.sid, message.packet.accepted_epoch
        unknown = [each for each in self._learners if each not in self._servers]
        if message.config_version > self._node.server.view.version:
            return f"server {sid} has a later configuration, {message.config_version:#x}"
        if sid == self._own.sid:
            return f"it says that it is server {sid}, and that is this one"
        if not 0 <= accepted < LAST_EPOCH:
            return f"server {sid} has accepted epoch {accepted}, where 0 to {LAST_EPOCH - 1} would be right"
        if sid not in self._servers and sid not in unknown and len(unknown) >= MAX_STRANGERS:
            return f"server {sid} is not in the configuration, and {len(unknown)} others that are not are connected"
        return None

    def _from_learner(self, sid: Sid, message: wire.QuorumMessage) -> bool:
        service = self._node.service
        match message:
            case wire.Pinged(sessions=sessions):
                if not self._node.run(Receive(sid, zab.Ping())):
                    return False
                if isinstance(service, LeaderService):
                    for session in sessions:
                        service.touch(*session)
                return True
            case zab.Request(value=request):
                return isinstance(service, LeaderService) and service.requested(sid, request)
            case wire.SyncAsked():
                return self._node.run(Receive(sid, zab.SyncRequest()))
            case wire.Revalidate(session=session, timeout=timeout):
                if not isinstance(service, LeaderService):
                    return False
                valid = service.claim(session, timeout, sid)
                self._learners[sid].write(wire.encode_packet(wire.Revalidated(session, valid)))
                return True
            case zab.QuorumPacket():
                return self._node.run(Receive(sid, message))
        self._drop(self._learners[sid], f"{type(message).__name__} from a learner")
        return True

    def _from_leader(self, found: QuorumSocket, message: wire.QuorumMessage) -> bool:
        service = self._node.service
        assert found.peer is not None
        match message:
            case wire.Pinged(zxid=zxid):
                self._ping_zxid = zxid
                return self._node.run(Receive(found.peer, zab.Ping()))
            case wire.LeaderConfig(packet=packet):
                return self._node.run(Receive(found.peer, packet))
            case wire.Revalidated(session=session, valid=valid):
                if isinstance(service, LearnerService):
                    service.revalidated(session, valid)
                return True
            case zab.Snap(zxid=zxid):
                return self._take_snapshot(found, zxid)
            case zab.Sync():
                taken = self._node.run(Receive(found.peer, message))
                if taken and isinstance(service, LearnerService):
                    service.synced()
                return taken
            case zab.QuorumPacket():
                return self._node.run(Receive(found.peer, message))
        self._drop(found, f"{type(message).__name__} from a leader")
        return True

    def _take_snapshot(self, found: QuorumSocket, zxid: int) -> bool:
        """The leader's tree has arrived; it takes the place of the own one if the server accepts it."""
        assert found.peer is not None and found.snapshot is not None
        if not self._node.run(Receive(found.peer, zab.Snap(zxid, None))):
            return False
        part = self._node.server.zab
        if isinstance(part, Learner) and part.mode is Mode.SNAP:
            self._node.replica.replace(found.snapshot, zxid)
        found.snapshot = None
        return True

    def _refuse(self, found: QuorumSocket, error: BadRequestError) -> bool:
        """A forwarded request that cannot be read: its client is answered with an error."""
        service = self._node.service
        if found.peer is None or not isinstance(service, LeaderService):
            self._drop(found, str(error))
            return True
        return service.refused(found.peer, error.session, error.xid, error.code)

    # Time.

    def _look(self) -> None:
        """Every half tick: who has been silent for too long, and are there enough left?"""
        self._watch = self._loop.call_later(self._node.settings.tick_time / 2000, self._look)
        now = self._loop.time()
        for stranger in tuple(self._strangers):
            if now - stranger.began > self._node.settings.init_time / 1000:
                stranger.close()
        part = self._node.server.zab
        if isinstance(part, Leader):
            self._look_at_learners(part, now)
        elif isinstance(part, Learner) and self._leader is not None:
            self._look_at_leader(self._leader, now - self._leader.last_heard > self._limit(part.serves))

    def _look_at_leader(self, leader: QuorumSocket, silent: bool) -> None:
        if silent:
            logger.warning("leader %s is silent", leader.peer)
            leader.close()
            self._lose_leader()

    def _look_at_learners(self, part: Leader, now: float) -> None:
        for handler in part.handlers:
            found = self._learners.get(handler.sid)
            if found is not None and now - found.last_heard > self._limit(handler.stage >= Stage.SYNCED):
                logger.warning("learner %d is silent", handler.sid)
                self._node.submit(self._closing(found))
        self._node.submit(self._judge)

    def _closing(self, found: QuorumSocket) -> Callable[[], None]:
        def close() -> None:
            self._learner_gone(found)
            found.close()

        return close

    def _judge(self) -> None:
        """Gives up without a quorum of learners, or if a phase before serving takes longer than initLimit."""
        part = self._node.server.zab
        if not isinstance(part, Leader):
            return
        if part.phase is not self._phase:
            self._phase, self._phase_began = part.phase, self._loop.time()
        if part.phase is LeaderPhase.BROADCAST:
            if not spec_leader.is_supported(self._node.server.peer, part):
                self._node.lose_quorum("too few learners are left")
        elif self._loop.time() - self._phase_began > self._limit(False):
            self._node.lose_quorum(f"no quorum for {part.phase.name} within initLimit")

    def _limit(self, synced: bool) -> float:
        """Seconds of silence that are allowed."""
        return (self._node.settings.sync_time if synced else self._node.settings.init_time) / 1000
