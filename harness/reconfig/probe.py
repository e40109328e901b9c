"""A question to the election port of a server, whose answer shows the vote and the configuration that it gossips.

The question is a notification of a server outside the configuration. Every server answers it at once, in any state.

Source: `FastLeaderElection.Messenger.WorkerReceiver.run` (validVoter), `buildMsg`; `QuorumCnxManager.handleConnection`.
"""

import socket
import struct
from dataclasses import dataclass

from harness.processes import LOOPBACK, ServerError
from harness.session import receive_exactly

OUTSIDER = 200
"""An id that no configuration has. It is greater than the others, so the server keeps the connection."""
SECONDS = 5.0
OPENING = struct.Struct(">qqi")
ONE_ADDRESS = -65536
NOTIFICATION = struct.Struct(">iqqqqii")
STATES = ("LOOKING", "FOLLOWING", "LEADING", "OBSERVING")


@dataclass(frozen=True)
class Gossip:
    """A notification as it was read: the state of the sender, its vote and the text of its configuration."""

    state: str
    leader: int
    zxid: int
    election_epoch: int
    peer_epoch: int
    version: int
    config: str


def gossip(election_port: int, config: str) -> Gossip:
    """Ask a server; `config` is a readable configuration, whose version is not newer than the server's.

    Raises ServerError without an answer.
    """
    address = f"{LOOPBACK}:9".encode()
    text = config.encode()
    question = NOTIFICATION.pack(0, OUTSIDER, 0, 0, 0, 2, len(text)) + text
    try:
        with socket.create_connection((LOOPBACK, election_port), SECONDS) as connection:
            opening = OPENING.pack(ONE_ADDRESS, OUTSIDER, len(address)) + address
            connection.sendall(opening + struct.pack(">i", len(question)) + question)
            (length,) = struct.unpack(">i", receive_exactly(connection, 4))
            answer = receive_exactly(connection, length)
    except OSError as error:
        raise ServerError(f"the election port {election_port} does not answer: {error}") from error
    state, leader, zxid, epoch, peer_epoch, version, size = NOTIFICATION.unpack_from(answer)
    named = answer[NOTIFICATION.size : NOTIFICATION.size + size].decode("utf-8")
    return Gossip(STATES[state], leader, zxid, epoch, peer_epoch, version, named)
