"""Listening sockets: the number of connections that a turn of the event loop accepts, and the cost of a refused one."""

import asyncio
import importlib
import os
import resource
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias

import psutil
import pytest

from refimpl import listening
from refimpl.listening import ACCEPTS, Listener, bind, serve

LOOPBACK = "127.0.0.1"
BURST = 100
"""The number of connections that wait in the kernel together."""
Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """A runner for an event loop of this kind, with a limit of 20 seconds."""
    found = importlib.import_module(request.param).run
    return lambda coroutine: found(asyncio.wait_for(coroutine, 20))


@contextmanager
def burst(port: int, count: int = BURST) -> Iterator[list[socket.socket]]:
    """Open connections without waiting for the server."""
    with ExitStack() as opened:
        begun = [opened.enter_context(socket.socket()) for _ in range(count)]
        for each in begun:
            each.setblocking(False)
            each.connect_ex((LOOPBACK, port))
        yield begun


def test_only_one_refused_socket_is_open_at_a_time(run: Run) -> None:
    async def descriptors() -> list[int]:
        found: list[int] = []
        enough = asyncio.Event()

        def refuse(opened: socket.socket, _peer: tuple[Any, ...]) -> None:
            found.append(opened.fileno())
            opened.close()
            if len(found) == BURST:
                enough.set()

        listener = Listener(bind(LOOPBACK, 0), refuse)
        with burst(listener.port):
            await enough.wait()
        listener.close()
        return found

    found = run(descriptors())
    assert len(set(found)) == 1


def test_a_turn_accepts_a_limited_number_of_connections(run: Run) -> None:
    async def by_turn() -> list[int]:
        loop = asyncio.get_running_loop()
        counts = [0]
        enough = asyncio.Event()

        def turn() -> None:
            counts.append(0)
            if not enough.is_set():
                loop.call_soon(turn)

        def accepted(opened: socket.socket, _peer: tuple[Any, ...]) -> None:
            opened.close()
            counts[-1] += 1
            if sum(counts) == BURST:
                enough.set()

        listener = Listener(bind(LOOPBACK, 0), accepted)
        with burst(listener.port):
            turn()
            await enough.wait()
        listener.close()
        return counts

    assert max(run(by_turn())) == ACCEPTS


def test_a_connection_that_its_protocol_closes_is_closed_within_four_turns(run: Run) -> None:
    class Refusing(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            ended.append(exc)

    ended: list[Exception | None] = []

    async def descriptors() -> list[int]:
        process = psutil.Process()
        listener = serve(bind(LOOPBACK, 0), Refusing)
        with burst(listener.port):
            found = [process.num_fds()]
            while len(ended) < BURST:
                await asyncio.sleep(0)
                found.append(process.num_fds())
        listener.close()
        return found

    before, *turns = run(descriptors())
    assert max(turns) - before <= 4 * ACCEPTS


def test_a_port_that_closes_accepts_no_further_connection(run: Run) -> None:
    async def first() -> int:
        taken = 0

        def accepted(opened: socket.socket, _peer: tuple[Any, ...]) -> None:
            nonlocal taken
            taken += 1
            opened.close()
            listener.close()

        listener = Listener(bind(LOOPBACK, 0), accepted)
        with burst(listener.port, 5) as begun:
            loop = asyncio.get_running_loop()
            for each in begun:
                with pytest.raises(ConnectionError):  # each one is closed or reset
                    if not await loop.sock_recv(each, 1):
                        raise ConnectionResetError
        return taken

    assert run(first()) == 1


def test_a_connection_sends_without_delay(run: Run) -> None:
    async def option() -> int:
        loop = asyncio.get_running_loop()
        made: asyncio.Future[asyncio.Task[Any]] = loop.create_future()

        def accepted(opened: socket.socket, _peer: tuple[Any, ...]) -> None:
            made.set_result(loop.create_task(loop.connect_accepted_socket(asyncio.Protocol, opened)))

        listener = Listener(bind(LOOPBACK, 0), accepted)
        with burst(listener.port, 1):
            transport, _ = await (await made)
            delay: int = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            transport.close()
        listener.close()
        return delay

    assert run(option()) != 0


def test_a_port_without_a_free_descriptor_accepts_later(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening, "PAUSE", 0.01)

    async def accepted_later() -> None:
        came = asyncio.Event()

        def accepted(opened: socket.socket, _peer: tuple[Any, ...]) -> None:
            opened.close()
            came.set()

        listener = Listener(bind(LOOPBACK, 0), accepted)
        with burst(listener.port, 1), no_free_descriptor():
            while not caplog.messages:
                await asyncio.sleep(0)
            assert not came.is_set()
        await came.wait()
        listener.close()

    run(accepted_later())
    assert "no connection is accepted for 0.01 s: Too many open files" in caplog.text


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_an_address_in_use_is_an_error(run: Run) -> None:
    async def twice() -> None:
        first = Listener(bind(LOOPBACK, 0), lambda *_: None)
        with pytest.raises(OSError, match="in use"):
            Listener(bind(LOOPBACK, first.port), lambda *_: None)
        first.close()

    run(twice())


@pytest.mark.parametrize("host", ["a..b", "no-such-host.invalid", "192.0.2.1"])
def test_an_address_that_is_not_of_this_machine_is_an_error(host: str) -> None:
    with pytest.raises((OSError, ValueError)):
        bind(host, 0)
