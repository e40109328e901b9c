"""A learner's end of the quorum port: the connection with its leader.

Rules this module keeps:

- A leader that cannot be reached is tried again a few times, and then given up: the election continues.
- The loss of the leader is reported until the server accepts it; while it handles NEWLEADER it cannot.
- A leader that is silent for too long is lost: initLimit while this server synchronises, syncLimit afterwards.

Source: `Learner` (`connectToLeader`, `readPacket`, `validateSession`, `ping`).
"""

import asyncio

from refimpl.log_lines import Repeats, reason_of
from refimpl.membership import Membership
from refimpl.peers.ports import QuorumCore
from refimpl.peers.quorum_endpoint import QuorumEndpoint, logger
from refimpl.peers.quorum_socket import QuorumSocket
from refimpl.roles import LearnerRole
from refimpl.tls import PeerStreams
from refimpl.wire import quorum as wire
from refimpl.wire.packet import Packet, PacketType
from refimpl.wire.request import BadRequestError
from spec.quorum import Sid, change_of
from spec.txn import Txn
from spec.zab import packets as zab
from spec.zab.events import Receive
from spec.zab.registration import followed_epochs
from spec.zab.state import Learner, SyncMode
from spec.zab.timeouts import is_leader_silent

TRIES, RETRY = 10, 0.05
"""Attempts to connect, and seconds between them (ZooKeeper: 5 and 0.1, `leaderConnectDelayDuringRetryMs`)."""


BETWEEN = 0.5
"""Seconds between two connections, so that a leader that refuses this server does not get a flood of them."""


class LeaderLink(QuorumEndpoint):
    """The connection with the leader; `ping_zxid` is the zxid of its last PING, which the answer repeats."""

    def __init__(self, core: QuorumCore, membership: Membership, streams: PeerStreams) -> None:
        super().__init__(core)
        self._streams = streams
        self._membership = membership
        self.ping_zxid = 0
        self.lost = False
        self.leader: QuorumSocket | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._repeats = Repeats(self.loop.time)

    def end(self) -> None:
        """End the role and close the connection."""
        super().end()
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection, or cancel the attempt to open one."""
        if self._connecting is not None:
            self._connecting.cancel()
        leader, self.leader = self.leader, None
        if leader is not None:
            self.waiting.pop(leader, None)
            leader.close()
        self.lost = False

    def connect(self, leader: Sid, first: bytes) -> None:
        """Connect to a leader, and send `first` as soon as it accepts."""
        self._connecting = self.loop.create_task(self._connect(leader, first))

    async def _connect(self, leader: Sid, first: bytes) -> None:
        server, wait = self._membership.servers.get(leader), max(0.0, self._not_before - self.loop.time())
        self._not_before = self.loop.time() + wait + BETWEEN
        await asyncio.sleep(wait)
        deadline = self.loop.time() + self.limits.silence(synchronised=False)
        reason = "its server.N line is missing"
        for _ in range(TRIES):
            for address in () if server is None else server.addresses:
                socket = await self._connect_at(leader, address.host, address.quorum_port, deadline)
                if isinstance(socket, QuorumSocket):
                    self.leader = socket
                    socket.write(first)
                    if not socket.is_open:
                        self._lose(leader, "it has ended the connection")  # before it was registered as the leader's
                    return
                reason = f"no connection to its quorum port {address.host}:{address.quorum_port}: {socket}"
            await asyncio.sleep(RETRY)
        self._lose(leader, reason)

    async def _connect_at(self, leader: Sid, host: str, port: int, deadline: float) -> QuorumSocket | str:
        try:
            async with asyncio.timeout_at(deadline):
                socket = await self._streams.connect(lambda: self.socket(leader), host, port)
        except (OSError, TimeoutError, ValueError) as error:  # ValueError: an IDNA error of the host name
            return reason_of(error)
        return socket

    def _lose(self, leader: Sid, why: str) -> None:
        part = self._core.server.zab
        if isinstance(part, Learner) and part.serves:
            self._repeats.forget(leader)  # it was followed, so this is news
        if not self.lost and self._repeats.is_due(leader, why):
            logger.warning("lost leader %d: %s", leader, why)
        self.lost = True
        self._core.submit(self.retry)

    def retry(self) -> None:
        """Report the loss of the leader again, and offer the waiting packets again."""
        if self.lost and self._core.lose_leader():
            self.lost = False
        super().retry()

    # The callbacks of the sockets.

    def opened(self, socket: QuorumSocket) -> None:
        """This server has connected; there is nothing to do."""

    def gone(self, socket: QuorumSocket) -> None:
        """Handle the end of the connection."""
        self.waiting.pop(socket, None)
        if socket is self.leader and socket.peer is not None:
            self._lose(socket.peer, f"the connection with {socket.address} has ended")

    # Messages.

    decode = staticmethod(wire.decode_packet)

    def take(self, socket: QuorumSocket, message: wire.QuorumMessage) -> bool:
        """Handle a message of the leader."""
        role, leader = self._core.role, socket.peer
        if socket is not self.leader or leader is None:
            return True  # from a connection that is being closed
        match message:
            case wire.PingPacket(zxid=zxid):
                self.ping_zxid = zxid
                return self._core.run(Receive(leader, zab.QuorumPing()))
            case wire.LeaderConfig(packet=packet):
                return self._core.run(Receive(leader, self._understood(packet)))
            case wire.RevalidateReply(session=session, valid=valid):
                if isinstance(role, LearnerRole):
                    role.revalidated(session, valid)
                return True
            case zab.LeaderInfo(epoch=epoch):
                self._warn_of_epoch(leader, epoch)
                return self._core.run(Receive(leader, message))
            case zab.Snap(zxid=zxid):
                return self._take_snapshot(socket, zxid)
            case zab.QuorumSync():
                accepts = self._core.run(Receive(leader, message))
                if accepts and isinstance(role, LearnerRole):
                    role.synced()
                return accepts
            case zab.QuorumPacket():
                return self._core.run(Receive(leader, self._understood(message)))
        return self.drop(socket, f"{type(message).__name__} from a leader")

    def _understood(self, packet: zab.QuorumPacket) -> zab.QuorumPacket:
        """Return the packet as this server understands it.

        Without `reconfigEnabled` a server knows no configuration but that of its file. A reconfiguration then only
        replaces the data of `/zookeeper/config` (`QuorumPeer.processReconfig`, `setLastSeenQuorumVerifier`).
        """
        if self._core.settings.reconfigurable:
            return packet
        match packet:
            case zab.NewLeader(epoch=epoch):
                return zab.NewLeader(epoch)
            case zab.Proposal(txn=txn):
                return zab.Proposal(Txn(txn.zxid, change_of(txn.value)))
            case zab.CommitAndActivate(zxid=zxid):
                return zab.Commit(zxid)
            case zab.Inform(txn=txn) | zab.InformAndActivate(txn=txn):
                return zab.Inform(Txn(txn.zxid, change_of(txn.value)))
        return packet

    def event_of(self, socket: QuorumSocket, packet: Packet) -> Receive | None:
        """The event of a proposal or a commit; a leader sends no ACK."""
        if socket.peer is None or socket is not self.leader or packet.type == PacketType.ACK:
            return None
        message = wire.decode_packet(packet)
        return Receive(socket.peer, self._understood(message)) if isinstance(message, zab.QuorumPacket) else None

    def refuse(self, socket: QuorumSocket, error: BadRequestError) -> bool:
        """Drop the connection: a leader never sends a REQUEST."""
        return self.drop(socket, str(error))

    def _warn_of_epoch(self, leader: Sid, epoch: int) -> None:
        """Log why the server is about to leave a leader whose epoch it does not accept."""
        right = followed_epochs(self._core.server.durable.accepted_epoch)
        if epoch not in right:
            logger.warning(
                "quorum port: leader %d proposes epoch %d, where %d to %d would be right; it is left",
                leader,
                epoch,
                right[0],
                right[-1],
            )

    def _take_snapshot(self, socket: QuorumSocket, zxid: int) -> bool:
        assert socket.peer is not None and socket.snapshot is not None
        if not self._core.run(Receive(socket.peer, zab.Snap(zxid, None))):
            return False
        part = self._core.server.zab
        if isinstance(part, Learner) and part.mode is SyncMode.SNAP:
            self._core.install_snapshot(socket.snapshot, zxid)
        socket.snapshot = None
        return True

    # Time.

    def look(self) -> None:
        """Check whether the leader has been silent for too long."""
        part, leader = self._core.server.zab, self.leader
        if not isinstance(part, Learner) or leader is None:
            return
        if is_leader_silent(part, self.loop.time() - leader.last_heard, self.limits):
            self._lose(part.leader, f"it was silent for {self.loop.time() - leader.last_heard:.1f} s")
            leader.close()
