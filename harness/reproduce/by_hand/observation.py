"""What a real server shows of its configuration, in its answers, files and gossip, and waits for it.

Source: `FastLeaderElection.Messenger.WorkerReceiver.run` (validVoter), `buildMsg`; `QuorumCnxManager.handleConnection`.
"""

import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from harness.processes import LOOPBACK, ServerError, wait_until
from harness.reproduce.by_hand.servers import ReconfigServers
from harness.servers import SERVE_SECONDS
from harness.session import receive_exactly
from harness.zoo_cfg import NEXT, brief
from spec.quorum import Sid

OUTSIDER = 200
"""An id that no configuration has. It is greater than the others, so the server keeps the connection."""
SECONDS = 5.0
OPENING = struct.Struct(">qqi")
ONE_ADDRESS = -65536
NOTIFICATION = struct.Struct(">iqqqqii")
COLUMNS = ("srvr", "config node", "active file", ".next", "gossip")
"""The columns of `Sight.cells`."""


@dataclass(frozen=True)
class Sight:
    """The answers and files of one server: each part a short text, or `-`."""

    mode: str
    node: str
    active: str
    next: str
    gossip: str

    def cells(self) -> tuple[str, ...]:
        """The parts as cells of a table."""
        return (self.mode, self.node, self.active, self.next, self.gossip)


def look(servers: ReconfigServers, sid: Sid) -> Sight:
    """Look at the answers and the files of a server."""
    gossip = gossip_of(servers, sid)
    next_file = servers.file(sid, NEXT)
    return Sight(
        mode=(servers.role(sid) or "not serving") if servers.alive(sid) else "down",
        node=brief(servers.config(sid)) if servers.role(sid) else "-",
        active=servers.active_file(sid).removeprefix("zoo.cfg") or "-",
        next=brief(next_file) if next_file else "-",
        gossip=brief(gossip[1]) if gossip else "-",
    )


def gossip_of(servers: ReconfigServers, sid: Sid) -> tuple[int, str] | None:
    """The format and the configuration in a notification of a server; None if it does not run or does not answer.

    The question is a notification of a server outside the configuration, which every server answers in any state. It
    has a readable configuration of version 0, which is not newer than that of the server.
    """
    if not servers.alive(sid):
        return None
    address, config_text = f"{LOOPBACK}:9".encode(), "\n".join(servers.members.lines(servers.sids)).encode()
    question = NOTIFICATION.pack(0, OUTSIDER, 0, 0, 0, 2, len(config_text)) + config_text
    with suppress(ServerError, OSError):
        port = servers.members[sid].election_port
        with socket.create_connection((LOOPBACK, port), SECONDS) as connection:
            opening = OPENING.pack(ONE_ADDRESS, OUTSIDER, len(address)) + address
            connection.sendall(opening + struct.pack(">i", len(question)) + question)
            (length,) = struct.unpack(">i", receive_exactly(connection, 4))
            answer = receive_exactly(connection, length)
        *_, version, size = NOTIFICATION.unpack_from(answer)
        return version, answer[NOTIFICATION.size : NOTIFICATION.size + size].decode("utf-8")
    return None


def wait_logged(servers: ReconfigServers, sids: Iterable[Sid], zxid: int) -> None:
    """Wait until the logs of these servers contain a transaction. Raises ServerError."""
    for sid in sids:
        wait_until(lambda sid=sid: zxid in servers.logged(sid), 20.0, f"server {sid} logs {zxid:#x}")  # type: ignore[misc]


def wait_config(servers: ReconfigServers, sids: Iterable[Sid], config: str, seconds: float = SERVE_SECONDS) -> None:
    """Wait until clients read a configuration, in brief, from these servers. Raises ServerError."""
    for sid in sids:
        condition = f"server {sid} has {config}"
        wait_until(lambda sid=sid: brief(servers.config(sid)) == config, seconds, condition)  # type: ignore[misc]


def drop_links(servers: ReconfigServers, server: Sid) -> None:
    """End the quorum connections of a server."""
    for peer in servers.sids:
        if peer != server and (link := servers.network.link(peer, server)):
            link.drop()
