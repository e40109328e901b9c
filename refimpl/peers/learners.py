"""A leader's end of the quorum port: it accepts learners, and checks for a quorum.

Rules this module keeps:

- Fields of the wire that no step reads are handled here: the id of a learner, sessions in a PING, REVALIDATE.
- The number of connections without an introduction is limited, and so is that of servers outside the configuration. An
  introduction must arrive within initLimit, with an id other than this server's and a credible epoch.
- Every half tick a leader measures the silence of its learners and the time of its phase. `spec.zab.timeouts` decides
  which connections end, and whether the leader gives up.

Source: `LearnerHandler.run`, `LearnerMaster.revalidateSession`, `Leader.lead`, `LearnerCnxAcceptor`.
"""

from collections.abc import Callable

from refimpl.listening import MAX_STRANGERS, Listener, ListenError, bind
from refimpl.membership import Membership
from refimpl.peers.ports import QuorumCore
from refimpl.peers.quorum_endpoint import QuorumEndpoint, logger
from refimpl.peers.quorum_socket import QuorumSocket
from refimpl.roles import LeaderRole
from refimpl.tls import PeerStreams
from refimpl.wire import quorum as wire
from refimpl.wire.packet import Packet, PacketType
from refimpl.wire.request import BadRequestError
from spec.config import ServerLine
from spec.quorum import Sid
from spec.zab import packets as zab
from spec.zab.events import LearnerGone, Receive
from spec.zab.registration import Refusal, believed_epochs, refusal
from spec.zab.state import Leader, LeaderPhase
from spec.zab.timeouts import is_late, resignation, silent_learners


class Learners(QuorumEndpoint):
    """The learners of a leader."""

    def __init__(self, core: QuorumCore, own: ServerLine, membership: Membership, streams: PeerStreams) -> None:
        super().__init__(core)
        self._streams = streams
        self._own, self._membership = own, membership
        self._listening: list[Listener] = []
        self._strangers: dict[QuorumSocket, None] = {}
        self._learners: dict[Sid, QuorumSocket] = {}
        self._phase: LeaderPhase | None = None
        self._phase_began = 0.0

    def begin(self) -> None:
        """Start to accept learners; the sockets listen before this returns. Raises ListenError."""
        super().begin()
        self._phase, self._phase_began = None, self.loop.time()
        for address in self._own.addresses:
            self._listening.append(self._listen(address.host, address.quorum_port))

    def end(self) -> None:
        """Stop listening, and end every connection."""
        super().end()
        for listener in self._listening:
            listener.close()
        self._listening.clear()
        for sid in tuple(self._learners):
            self.disconnect(sid)
        for stranger in tuple(self._strangers):
            stranger.close()

    def _listen(self, host: str, port: int) -> Listener:
        try:
            return self._streams.serve(bind(host, port), lambda: self.socket(None))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ListenError(f"cannot listen for learners at {host}:{port}: {why}") from None

    def of(self, sid: Sid) -> QuorumSocket | None:
        """Return the connection of a learner."""
        return self._learners.get(sid)

    def disconnect(self, sid: Sid) -> None:
        """Close the connection of a learner."""
        learner = self._learners.pop(sid, None)
        if learner is not None:
            self.waiting.pop(learner, None)
            learner.close()

    # The callbacks of the sockets.

    def opened(self, socket: QuorumSocket) -> None:
        """Handle a new connection; the number of unknown peers is limited."""
        if not self._listening:
            socket.close()
        elif len(self._strangers) >= MAX_STRANGERS:
            self.drop(socket, f"{MAX_STRANGERS} others have not said who they are either")
        else:
            self._strangers[socket] = None

    def gone(self, socket: QuorumSocket) -> None:
        """Handle the end of a connection."""
        self._strangers.pop(socket, None)
        self.waiting.pop(socket, None)
        if self._is_learner(socket):
            self._core.submit(lambda: self._learner_gone(socket, "the connection has ended"))

    def _is_learner(self, socket: QuorumSocket) -> bool:
        return socket.peer is not None and self._learners.get(socket.peer) is socket

    def _learner_gone(self, socket: QuorumSocket, why: str) -> None:
        if socket.peer is not None and self._is_learner(socket):
            logger.warning("lost learner %d at %s: %s", socket.peer, socket.address, why)
            del self._learners[socket.peer]
            self._core.run(LearnerGone(socket.peer))
            part = self._core.server.zab
            if isinstance(part, Leader) and part.successor is not None:
                self._judge()  # its learners leave it, and it follows its successor once they are gone

    # Messages.

    decode = staticmethod(wire.decode_of_learner)

    def take(self, socket: QuorumSocket, message: wire.QuorumMessage) -> bool:
        """Handle a message of a learner, or the first one of a connection."""
        if socket.peer is None:
            return self._introduced(socket, message)
        if not self._is_learner(socket):
            return True  # its connection is being closed
        role, sid = self._core.role, socket.peer
        match message:
            case wire.PingPacket(sessions=sessions):
                return self._pinged(sid, sessions)
            case zab.QuorumRequest(value=request):
                return isinstance(role, LeaderRole) and role.requested(sid, request)
            case wire.ForwardedSync():
                return self._core.run(Receive(sid, zab.SyncRequest()))
            case wire.RevalidateRequest(session=session, timeout=timeout):
                if not isinstance(role, LeaderRole):
                    return False
                valid = role.claim(session, timeout, sid)
                socket.write(wire.encode_packet(wire.RevalidateReply(session, valid)))
                return True
            case zab.QuorumPacket():
                return self._core.run(Receive(sid, message))
        return self.drop(socket, f"{type(message).__name__} from a learner")

    def event_of(self, socket: QuorumSocket, packet: Packet) -> Receive | None:
        """The event of an ACK; learners send none of the others."""
        if socket.peer is None or packet.type != PacketType.ACK or not self._is_learner(socket):
            return None
        return Receive(socket.peer, zab.Ack(packet.zxid))

    def refuse(self, socket: QuorumSocket, error: BadRequestError) -> bool:
        """Answer the client of an unreadable forwarded request with an error."""
        role = self._core.role
        if socket.peer is None or not isinstance(role, LeaderRole):
            return self.drop(socket, str(error))
        return role.refused(socket.peer, error.session, error.xid, error.code)

    def _introduced(self, socket: QuorumSocket, message: wire.QuorumMessage) -> bool:
        assert isinstance(message, wire.Registration)  # `PacketDecoder` accepts no other first packet
        if why := self._refusal(message):
            return self.drop(socket, why)
        older = self._learners.get(message.sid)
        if older is not None:
            self._learner_gone(older, f"it connects again from {socket.address}")
            older.close()
        self._strangers.pop(socket, None)
        socket.peer = message.sid
        self._learners[message.sid] = socket
        if message.sid in self._membership.servers:
            logger.info("server %d at %s follows", message.sid, socket.address)
        else:
            text = "server %d at %s follows, and is not in the configuration: its acknowledgements do not count"
            logger.warning(text, message.sid, socket.address)
        return self._core.run(Receive(message.sid, message.packet))

    def _refusal(self, message: wire.Registration) -> str | None:
        sid, accepted, peer = message.sid, message.packet.accepted_epoch, self._core.server.peer
        version = message.packet.config_version
        match refusal(peer, sid, accepted, version):
            case Refusal.LATER_CONFIGURATION:
                return f"server {sid} has a later configuration, {version:#x}"
            case Refusal.SAME_ID:
                return f"it says that it is server {sid}, and that is this one"
            case Refusal.INCREDIBLE_EPOCH:
                highest = believed_epochs(peer.durable.accepted_epoch)[-1]
                return f"server {sid} has accepted epoch {accepted}, where 0 to {highest} would be right"
        servers = self._membership.servers
        unknown = [learner for learner in self._learners if learner not in servers]
        if sid not in servers and sid not in unknown and len(unknown) >= MAX_STRANGERS:
            return f"server {sid} is not in the configuration, and {len(unknown)} others that are not are connected"
        return None

    def _pinged(self, sid: Sid, sessions: tuple[tuple[int, int], ...]) -> bool:
        """Handle the answer to a PING: the sessions in it are alive."""
        if not self._core.run(Receive(sid, zab.QuorumPing())):
            return False
        role = self._core.role
        if isinstance(role, LeaderRole):
            for session in sessions:
                role.touch(*session)
        return True

    # Time.

    def look(self) -> None:
        """End silent connections, and give up without a quorum."""
        time = self.loop.time()
        for stranger in tuple(self._strangers):
            if is_late(time - stranger.began, self.limits):
                self.drop(stranger, "no complete first packet within initLimit")
        part = self._core.server.zab
        if isinstance(part, Leader):
            silence = {sid: time - socket.last_heard for sid, socket in self._learners.items()}
            for sid in silent_learners(part, silence, self.limits):
                socket = self._learners.get(sid)
                if socket is not None:  # the end of another connection may have ended this one
                    self._core.submit(self._ending(socket, f"it was silent for {silence[sid]:.1f} s"))
        self._core.submit(self._judge)

    def _ending(self, socket: QuorumSocket, why: str) -> Callable[[], None]:
        def end() -> None:
            self._learner_gone(socket, why)
            socket.close()

        return end

    def _judge(self) -> None:
        """Give up if the specification says so, which knows the time in the present phase."""
        part = self._core.server.zab
        if not isinstance(part, Leader):
            return
        if part.phase is not self._phase:
            self._phase, self._phase_began = part.phase, self.loop.time()
        reason = resignation(self._core.server.peer, part, self.loop.time() - self._phase_began, self.limits)
        if reason is not None:
            self._core.resign(reason)
