"""A learner's log says whose connection it lost, and why; a reason that stays is said once."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from refimpl.peers import leader_link
from refimpl.peers.leader_link import LeaderLink
from refimpl.tls import PeerStreams

LEADER, LOOPBACK = 3, "127.0.0.1"


def link_to(host: str, port: int) -> LeaderLink:
    """Return the learner's side of the quorum port of a server with only the attributes that it needs here."""
    settings = SimpleNamespace(tick_time=60_000, jute_maxbuffer=1000, init_time=60_000, sync_time=60_000)
    core: Any = SimpleNamespace(
        settings=settings, submit=lambda work: work(), server=SimpleNamespace(zab=None), lose_leader=lambda: True
    )
    line = SimpleNamespace(addresses=[SimpleNamespace(host=host, quorum_port=port)])
    membership: Any = SimpleNamespace(servers={LEADER: line})
    return LeaderLink(core, membership, PeerStreams())


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """The log without the limit on its rate, which counts the lines of other tests; and without waiting."""
    monkeypatch.setattr(leader_link.logger, "filters", [])
    monkeypatch.setattr(leader_link, "TRIES", 1)
    monkeypatch.setattr(leader_link, "BETWEEN", 0.0)
    return caplog


def lost_lines(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.getMessage().startswith("lost leader")]


def test_a_leader_that_ends_the_connection_is_named_with_its_address(log: pytest.LogCaptureFixture) -> None:
    async def scene() -> str:
        ends = await asyncio.start_server(lambda _, writer: writer.close(), LOOPBACK, 0)
        port = ends.sockets[0].getsockname()[1]
        link = link_to(LOOPBACK, port)
        link.connect(LEADER, b"hello")
        while not lost_lines(log):
            await asyncio.sleep(0.001)
        ends.close()
        return f"lost leader {LEADER}: the connection with {LOOPBACK}:{port} has ended"

    expected = asyncio.run(asyncio.wait_for(scene(), 30))
    assert lost_lines(log) == [expected]


@pytest.mark.parametrize(
    ("host", "reason"), [(LOOPBACK, "Connection refused"), ("no-such-host.invalid", "the name cannot be resolved (")]
)
def test_a_leader_that_cannot_be_reached_is_named_once(host: str, reason: str, log: pytest.LogCaptureFixture) -> None:
    async def scene() -> int:
        with socket.create_server((LOOPBACK, 0)) as taken:
            port: int = taken.getsockname()[1]
        link = link_to(host, port)
        for _ in range(3):
            link.connect(LEADER, b"hello")
            assert link._connecting is not None
            await link._connecting
        return port

    port = asyncio.run(asyncio.wait_for(scene(), 30))
    (line,) = lost_lines(log)
    assert line.startswith(f"lost leader {LEADER}: no connection to its quorum port {host}:{port}: {reason}")
