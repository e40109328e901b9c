"""The quorum port of one server: a leader's connections with its learners, or a learner's with its leader.

Rules this module keeps:

- A server has one role at a time, and so one of the two ends; a change of role ends every connection.
- Fields that the wire carries in addition to a packet of the specification are added here, just before sending.

Source: `Leader`, `Learner`, `LearnerHandler`.
"""

from refimpl.disk.body import body_chunks
from refimpl.membership import Membership
from refimpl.peers.leader_link import LeaderLink
from refimpl.peers.learners import Learners
from refimpl.peers.ports import QuorumCore
from refimpl.peers.quorum_endpoint import QuorumEndpoint
from refimpl.roles import LearnerRole
from refimpl.tls import PeerStreams
from refimpl.wire import quorum as wire
from spec.config import ServerLine
from spec.config.dynamic_files import versioned_text
from spec.effects import Message
from spec.quorum import Sid, change_of
from spec.zab import packets as zab
from spec.zab.state import Leader, Learner

_WRAPPED = (zab.FollowerInfo, zab.NewLeader, zab.QuorumPing, zab.SyncRequest)
"""The packets to which this module adds fields of the wire."""


class QuorumSockets:
    """The quorum port, implemented with sockets (`refimpl.peers.ports.QuorumPort`)."""

    def __init__(self, core: QuorumCore, own: ServerLine, membership: Membership, streams: PeerStreams) -> None:
        self._core, self._own, self._membership = core, own, membership
        self._learners = Learners(core, own, membership, streams)
        self._link = LeaderLink(core, membership, streams)
        self._leads = False
        self._sent: tuple[zab.Proposal | None, bytes] = (None, b"")

    def role_changed(self, part: Leader | Learner | None) -> None:
        """Start or end leading or following. Raises ListenError."""
        self._learners.end()
        self._link.end()
        self._leads = isinstance(part, Leader)
        if part is not None:
            self._side.begin()

    @property
    def _side(self) -> QuorumEndpoint:
        return self._learners if self._leads else self._link

    def close(self) -> None:
        """Stop the port with its server."""
        self.role_changed(None)

    @property
    def is_waiting(self) -> bool:
        """Whether something has arrived that the server could not take yet."""
        return bool(self._side.waiting) or self._link.lost

    def retry(self) -> None:
        """Offer it again."""
        self._side.retry()

    # Connections.

    def connect(self, leader: Sid, first: Message) -> None:
        """Connect to a leader, and send `first` as soon as it accepts."""
        assert isinstance(first, zab.QuorumPacket)
        self._link.connect(leader, wire.encode_packet(self._wrapped(first)))

    def disconnect(self, peer: Sid | None) -> None:
        """Close the connection with a peer; None: all."""
        if peer is None or not self._leads:
            self._link.disconnect()
        if peer is not None:
            self._learners.disconnect(peer)

    # Sending.

    def send(self, peer: Sid, packet: Message) -> None:
        """Send a packet to a learner, or to the leader."""
        socket = self._learners.of(peer) if self._leads else self._link.leader
        if socket is None:
            return  # the connection is gone, and the event for that is on its way
        assert isinstance(packet, zab.QuorumPacket)
        socket.write(self._encoded(packet))
        if isinstance(packet, zab.Snap):
            socket.stream(body_chunks(self._core.tree_at(packet.zxid), packet.zxid))

    def _encoded(self, packet: zab.QuorumPacket) -> bytes:
        if not isinstance(packet, zab.Proposal):
            return wire.encode_packet(self._wrapped(packet) if isinstance(packet, _WRAPPED) else packet)
        if packet is not self._sent[0]:  # it goes to several learners
            zxid, change = packet.txn.zxid, change_of(packet.txn.value)
            self._sent = packet, wire.encode_proposal(zxid, self._core.encoder.encoded(zxid, change))
        return self._sent[1]

    def revalidate(self, session: int, timeout: int) -> None:
        """Ask the leader whether a session is alive."""
        if self._link.leader is not None:
            self._link.leader.write(wire.encode_packet(wire.RevalidateRequest(session, timeout)))

    def _wrapped(self, packet: zab.QuorumPacket) -> wire.QuorumMessage:
        """Return the packet with the additional fields of the wire."""
        role = self._core.role
        match packet:
            case zab.FollowerInfo():
                return wire.Registration(packet, self._own.sid)
            case zab.NewLeader(view=view):
                return wire.LeaderConfig(packet, self._membership.text if view is None else versioned_text(view))
            case zab.QuorumPing() if isinstance(role, LearnerRole):
                return wire.PingPacket(self._link.ping_zxid, role.take_touched())
            case zab.QuorumPing():
                return wire.PingPacket(self._core.last_applied)
            case zab.SyncRequest() if isinstance(role, LearnerRole):
                return wire.ForwardedSync(role.newest_sync)
        return packet
