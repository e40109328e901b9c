"""The interface between a node and its connections with other servers: sockets, or a simulated network."""

from typing import Protocol

from refimpl.roles import Core, LeaderRole, LearnerRole
from refimpl.settings import Settings
from refimpl.tree import Tree
from refimpl.wire.txn import TxnEncoder
from spec.effects import Message
from spec.election.messages import Notification
from spec.quorum import Sid
from spec.zab.state import Leader, Learner


class QuorumCore(Core, Protocol):
    """The node, as its quorum port sees it."""

    settings: Settings

    @property
    def encoder(self) -> TxnEncoder:
        """Encode transactions, for the log and for learners."""

    @property
    def role(self) -> LeaderRole | LearnerRole | None:
        """The work for clients, while the server serves."""

    @property
    def last_applied(self) -> int:
        """The zxid of the last transaction applied to the tree."""

    def lose_leader(self) -> bool:
        """Handle the loss of the leader; return False if that is impossible now."""

    def tree_at(self, zxid: int) -> Tree:
        """Return the tree for a snapshot with this zxid."""

    def install_snapshot(self, tree: Tree, zxid: int) -> None:
        """Replace the tree with that of the leader."""


class ElectionPort(Protocol):
    """Carries notifications (`QuorumCnxManager`)."""

    def send(self, peer: Sid, notification: Notification) -> None:
        """Pass a notification to the connection with a peer, and open one if necessary."""

    def reset(self) -> None:
        """End the connections with all peers, and forget the votes that wait for them."""

    def close(self) -> None:
        """Stop the port with its server."""


class QuorumPort(Protocol):
    """Carries the packets between a leader and its learners (`LearnerHandler`, `Learner`)."""

    @property
    def is_waiting(self) -> bool:
        """Whether something has arrived that the server could not take yet."""

    def retry(self) -> None:
        """Offer it again."""

    def role_changed(self, part: Leader | Learner | None) -> None:
        """Start or end leading or following; without a role every connection is closed."""

    def connect(self, leader: Sid, first: Message) -> None:
        """Connect to a leader, and send `first` as soon as it accepts."""

    def send(self, peer: Sid, packet: Message) -> None:
        """Send a packet to a learner, or to the leader."""

    def disconnect(self, peer: Sid | None) -> None:
        """Close the connection with a peer; None: all."""

    def revalidate(self, session: int, timeout: int) -> None:
        """Ask the leader whether a session is alive."""

    def close(self) -> None:
        """Stop the port with its server."""
