"""What a node needs of its connections with other servers, whoever makes them: sockets, or a simulated network."""

from typing import Protocol

from spec.effects import Message
from spec.election.messages import Notification
from spec.quorum import Sid
from spec.zab.state import Leader, Learner

MAX_STRANGERS = 64
"""How many connections of each port may be of peers that have not said who they are, or that are unknown here."""


class ListenError(OSError):
    """The quorum port cannot be opened: which address, and why."""


class ElectionPort(Protocol):
    """Carries notifications (`QuorumCnxManager`)."""

    def send(self, peer: Sid, notification: Notification) -> None:
        """Hands a notification to the connection with a peer, which is made if there is none."""

    def close(self) -> None:
        """The server stops."""


class QuorumPort(Protocol):
    """Carries the packets between a leader and its learners (`LearnerHandler`, `Learner`)."""

    @property
    def is_waiting(self) -> bool:
        """Whether something has arrived that the server could not take yet."""

    def retry(self) -> None:
        """Offers that again."""

    def role_changed(self, part: Leader | Learner | None) -> None:
        """The server begins or ends to lead or to follow; without a role every connection is closed."""

    def connect(self, leader: Sid, first: Message) -> None:
        """Connects to a leader, and sends `first` as soon as it accepts."""

    def send(self, peer: Sid, packet: Message) -> None:
        """Sends a packet to a learner, or to the leader."""

    def disconnect(self, peer: Sid | None) -> None:
        """Closes the connection with a peer; None: all."""

    def revalidate(self, session: int, timeout: int) -> None:
        """Asks the leader whether a session lives."""

    def close(self) -> None:
        """The server stops."""
