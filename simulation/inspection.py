"""The inspection of running servers: the parts of a node beside its protocol, compared with the state of the protocol.

A history of clients shows an error of these parts only if a client looks at the right moment. These checks need none.

Rules of this module:

- A server is inspected between two of its turns, so that the effects of its last step are carried out.
- Only what holds at every such moment is a failure. A connection that a turn has just opened is not; one that nothing
  in the server refers to, for some looks, is.
- Nothing of the server is changed. Its calls are watched.
"""

from typing import Any

from refimpl.node import RULES, Node
from refimpl.peers.election_port import ElectionSocket, ElectionSockets
from refimpl.peers.learners import Learners
from refimpl.peers.quorum_endpoint import TOGETHER, QuorumEndpoint
from refimpl.peers.quorum_port import QuorumSockets
from refimpl.peers.quorum_socket import QuorumSocket
from refimpl.wire import quorum as wire
from simulation.world.loop import Process
from simulation.world.network import Network
from spec import server as spec_server
from spec.election.messages import LeaderLost
from spec.server import Event
from spec.txn import counter_of
from spec.zab import packets as zab
from spec.zab.events import Receive
from spec.zab.state import Leader, Learner

MOST = 3
"""Failures that are reported of one run."""
PATIENCE = 1.0
"""Seconds for which a running server may have a connection that it does not know: it has just been opened."""


class Inspector:
    """The inspection of the servers of a run; `failures` describe what does not fit."""

    def __init__(self, network: Network) -> None:
        self.failures: list[str] = []
        self._network = network
        self._unknown: dict[Any, float] = {}
        """Since when an open connection has been unknown to its server, in seconds of simulated time."""
        self._steps_at_failure: dict[Node, int] = {}
        """The number of steps of a server when its disk failed, by its journal."""

    def _fail(self, node: Node, what: str) -> None:
        if len(self.failures) < MOST:
            self.failures.append(f"{self._network.loop.now:.6f} s, server {node.server.sid}: {what}")

    def started(self, node: Node) -> None:
        """Watches the calls of a server that starts: no transaction is applied early, no event follows a failure."""
        replica = node._replica
        apply, failed = replica.apply, node._failed

        def checked(zxid: int, change: Any) -> Any:
            most = _delivered(node)
            if most is not None and zxid > most:
                self._fail(node, f"transaction 0x{zxid:x} is applied, and only 0x{most:x} is committed")
            return apply(zxid, change)

        def noted(why: str) -> None:
            if node._journal is not None:
                self._steps_at_failure.setdefault(node, node._journal._number)
            failed(why)

        replica.apply, node._failed = checked, noted  # type: ignore[method-assign]

    def ended(self, node: Node) -> None:
        """A server has ended by itself."""
        steps = self._steps_at_failure.pop(node, None)
        if steps is not None and node._journal is not None and node._journal._number > steps:
            self._fail(node, f"{node._journal._number - steps} steps after the failure of its disk")

    def look(self, node: Node, process: Process) -> None:
        """Inspects a running server."""
        if node._stopped:
            return
        self._look_at_tree(node)
        self._look_at_configuration(node)
        self._look_at_packets(node)
        if process.blocked_until <= self._network.loop.now:
            self._look_at_connections(node, process)

    # The tree.

    def _look_at_tree(self, node: Node) -> None:
        zxid, zab_part, last = node._replica.zxid, node.server.zab, node.server.durable.last_zxid
        if node.role is None:
            synchronising = isinstance(zab_part, Learner) and zab_part.tree is not None
            if not synchronising and zxid > last:
                self._fail(node, f"its tree is that of 0x{zxid:x}, and its log ends at 0x{last:x}")
            return
        delivered = _delivered(node)
        if delivered is not None and zxid != delivered and (counter_of(delivered) or zxid > delivered):
            self._fail(node, f"its tree is that of 0x{zxid:x}, and 0x{delivered:x} is the last transaction applied")

    def _look_at_configuration(self, node: Node) -> None:
        """The configurations that the protocol has are those that the server has written."""
        membership, latest = node._executor._membership, node.server.last_seen
        if membership is None:
            return
        if membership.version != node.server.view.version:
            self._fail(node, f"its configuration is {membership.version:x}, and {node.server.view.version:x} is active")
        if latest is not None and latest.version > membership.version and membership._last_seen != latest:
            self._fail(node, f"configuration {latest.version:x} was seen, and is not written")

    # Packets.

    def _look_at_packets(self, node: Node) -> None:
        """No packet waits that the protocol accepts now."""
        port = node.quorum_port
        if not isinstance(port, QuorumSockets) or not port.is_waiting:
            return
        if port._link.lost and self._is_possible(node, LeaderLost()):
            self._fail(node, "the loss of its leader waits, and is possible")
        for socket in port._side.waiting:
            event = _event_of(port._side, socket)
            if event is not None and self._is_possible(node, event):
                self._fail(node, f"{event} waits, and is possible")

    @staticmethod
    def _is_possible(node: Node, event: Event) -> bool:
        return spec_server.step(node.server, event, RULES, node._zab_rules) is not None

    # Connections.

    def _look_at_connections(self, node: Node, process: Process) -> None:
        """A server knows each of its connections with peers: none is forgotten and left open."""
        protocols = _known(node)
        now = self._network.loop.now
        for end in self._network.ends_of(process):
            protocol = end.protocol
            if not isinstance(protocol, QuorumSocket | ElectionSocket) or end.is_closing() or protocol in protocols:
                self._unknown.pop(end, None)
            elif now - self._unknown.setdefault(end, now) > PATIENCE:
                self._fail(node, f"a connection with {end.peer_host} is open, and the server has forgotten it")
                self._unknown[end] = 1e9


def _delivered(node: Node) -> int | None:
    """The last transaction that a serving server has applied, by the protocol; None if it does not serve."""
    part = node.server.zab
    if node.role is None or part is None or not part.serves:
        return None
    return part.applied if isinstance(part, Leader) else part.delivered


def _event_of(side: QuorumEndpoint, socket: QuorumSocket) -> Event | None:
    """The event of the oldest packet of a connection; None if the packet is more than an event."""
    if not socket.inbox or socket.peer is None:
        return None
    packet = socket.inbox[0]
    if packet.type in TOGETHER:
        return side.event_of(socket, packet)
    match wire.decode_packet(packet):
        case wire.PingPacket():
            return Receive(socket.peer, zab.QuorumPing())
        case wire.LeaderConfig(packet=config):
            return Receive(socket.peer, config)
        case zab.UpToDate() | zab.LeaderInfo() | zab.AckEpoch() | zab.QuorumSync() as message:
            return Receive(socket.peer, message)
    return None


def _known(node: Node) -> set[object]:
    protocols: set[object] = set()
    port, election = node.quorum_port, node.election_port
    if isinstance(port, QuorumSockets):
        learners: Learners = port._learners
        protocols.update((port._link.leader, *learners._learners.values(), *learners._strangers))
    if isinstance(election, ElectionSockets):
        protocols.update((*election._strangers, *(link.socket for link in election._links.values())))
    return protocols
