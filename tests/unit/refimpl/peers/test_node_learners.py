"""A leader's port for learners opens and closes with its role, even if the role is very short."""

import asyncio
import gc
import importlib
import socket
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from harness.processes import free_ports
from refimpl.peers.learners import Learners
from refimpl.tls import PeerStreams

Run = Callable[[Coroutine[Any, Any, Any]], Any]
LOOPBACK = "127.0.0.1"


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """A runner for an event loop of this kind."""
    found: Run = importlib.import_module(request.param).run
    return found


def learners_at(port: int) -> Learners:
    """Return the leader's side of the quorum port of a server with only the attributes that it needs here."""
    settings = SimpleNamespace(tick_time=60_000, jute_maxbuffer=1000, init_time=60_000, sync_time=60_000)
    core: Any = SimpleNamespace(settings=settings, submit=lambda work: None)
    own: Any = SimpleNamespace(sid=1, addresses=[SimpleNamespace(host=LOOPBACK, quorum_port=port)])
    ensemble: Any = SimpleNamespace(servers=[])
    return Learners(core, own, ensemble, PeerStreams())


@pytest.mark.parametrize("turns", range(4))
def test_who_leads_again_is_reached_however_soon_the_first_time_was_over(turns: int, run: Run) -> None:
    """A role that ended while asyncio created its server left a socket in the event loop that was already closed."""
    said: list[str] = []

    async def lead_twice() -> bool:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context["message"]))
        (port,) = free_ports(1)
        learners = learners_at(port)
        learners.begin()
        for _ in range(turns):
            await asyncio.sleep(0)
        learners.end()
        await asyncio.sleep(0.05)
        learners.begin()
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        while not learners._strangers:  # if no connection is accepted, the timeout around this loop ends it
            await asyncio.sleep(0.01)
        learners.end()
        ended = await reader.read() == b""
        writer.close()
        gc.collect()  # reports exceptions that were never retrieved
        return ended

    assert run(asyncio.wait_for(lead_twice(), 30))
    assert said == []


def test_who_leads_no_more_listens_no_more(run: Run) -> None:
    async def lead_once() -> int:
        (port,) = free_ports(1)
        learners = learners_at(port)
        learners.begin()
        await asyncio.sleep(0.05)
        learners.end()
        with socket.socket() as asking:
            return asking.connect_ex((LOOPBACK, port))

    assert run(lead_once()) != 0


def test_a_refused_first_packet_has_the_address_of_its_sender(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("refimpl.peers.quorum_endpoint.logger.filters", [])

    async def refuse() -> str:
        (port,) = free_ports(1)
        learners = learners_at(port)
        learners.begin()
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        address, own_port = writer.get_extra_info("sockname")
        writer.write(b"\xff" * 64)
        await reader.read()
        writer.close()
        learners.end()
        return f"quorum port: a stranger at {address}:{own_port}: "

    whose = asyncio.run(asyncio.wait_for(refuse(), 30))
    assert [record.getMessage().startswith(whose) for record in caplog.records] == [True]
