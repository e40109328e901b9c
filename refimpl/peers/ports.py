"""The interface between a node and its connections with other servers: sockets, or a simulated network."""

from typing import Protocol

from spec.effects import Message
from spec.election.messages import Notification
from spec.quorum import Sid
from spec.zab.state import Leader, Learner

MAX_STRANGERS = 64
"""The maximum number of connections per port from peers that are unknown or have not introduced themselves."""


class ElectionPort(Protocol):
    """Carries notifications (`QuorumCnxManager`)."""

    def send(self, peer: Sid, notification: Notification) -> None:
        """Pass a notification to the connection with a peer, and open one if necessary."""

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
