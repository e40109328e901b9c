"""The HTTP port for operators is bounded: in the size of a request, in connections, in unread answers, in time.

The statuses are those of RFC 9110."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from refimpl.admin.http import (
    MOST_BYTES,
    MOST_CONNECTIONS,
    MOST_UNREAD,
    TEXT,
    HttpAnswer,
    HttpHandler,
    HttpPort,
    HttpRequest,
)
from refimpl.listening import SmallShare
from refimpl.settings import PROMETHEUS, AdminError, AdminSettings
from spec.config import Address


def answer(request: HttpRequest) -> HttpAnswer:
    if request.path == "/defect":
        raise ZeroDivisionError
    if request.path == "/large":
        return HttpAnswer(200, TEXT, bytes(MOST_UNREAD // 2))
    return HttpAnswer(200, TEXT, f"{request.path} {request.query}".encode())


def run(work: Callable[[int], Awaitable[None]], idle: float = 20.0, handler: HttpHandler = answer) -> None:
    """Run work with the number of an open port."""

    async def main() -> None:
        port = HttpPort(Address("127.0.0.1", 0), handler, idle, SmallShare(), "/front")
        port.listen()
        try:
            await work(port.port)
        finally:
            port.close()

    asyncio.run(asyncio.wait_for(main(), 20))


async def ask(port: int, request: bytes) -> bytes:
    """All that the server answers before it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.replace(b"Host: x", b"Host: 127.0.0.1:%d" % port))
    found = await reader.read()
    writer.close()
    return found


CLOSE = b"Host: x\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "starts", "ends"),
    [
        (b"GET /a%20b?x=1&x=2&y= HTTP/1.1\r\n" + CLOSE, b"HTTP/1.1 200", b"/a b {'y': '', 'x': '1'}"),
        (b"HEAD /a HTTP/1.1\r\n" + CLOSE, b"HTTP/1.1 200", b"\r\n\r\n"),
        (b"POST /a HTTP/1.1\r\nContent-Length: 1\r\n" + CLOSE + b"x", b"HTTP/1.1 405", b""),
        (b"GET /defect HTTP/1.1\r\n" + CLOSE, b"HTTP/1.1 500", b""),
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400", b""),
        (b"GET /" + b"a" * 2 * MOST_BYTES + b" HTTP/1.1\r\n" + CLOSE, b"HTTP/1.1 431", b""),
        (b"GET /a HTTP/1.1\r\nContent-Length: 99999999\r\n" + CLOSE + b"x" * 2 * MOST_BYTES, b"HTTP/1.1 413", b""),
    ],
)
def test_a_request_has_one_answer(request_: bytes, starts: bytes, ends: bytes) -> None:
    async def work(port: int) -> None:
        found = await ask(port, request_)
        assert found.startswith(starts)
        assert found.endswith(ends)

    run(work)


def test_a_connection_serves_several_requests() -> None:
    async def work(port: int) -> None:
        found = await ask(port, b"GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\n" + CLOSE)
        assert found.count(b"HTTP/1.1 200") == 2
        assert found.index(b"/1 {}") < found.index(b"/2 {}")

    run(work)


def test_a_silent_connection_ends_after_the_idle_time() -> None:
    async def work(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionResetError):
            if await reader.read() == b"":
                raise ConnectionResetError
        writer.close()

    run(work, idle=0.05)


def test_bytes_that_complete_no_request_do_not_prolong_the_idle_time() -> None:
    async def work(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(10):
            while not writer.is_closing():
                writer.write(b"G")
                await asyncio.sleep(0.01)

    run(work, idle=0.2)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/commands/ruok", "", 200),
        ("/commands/ruok", "Host: evil.example:{port}", 421),
        ("/commands/ruok", "Host: 127.0.0.1", 421),
        ("/commands/ruok", "Origin: http://evil.example", 403),
        ("/commands/ruok", "Origin: http://localhost:{port}", 200),
        ("/commands/ruok", "Sec-Fetch-Site: cross-site", 403),
        ("/commands/ruok", "Sec-Fetch-Site: same-origin", 200),
        ("/front", "Sec-Fetch-Site: cross-site", 200),
        ("http://[", "", 400),
        ("http://[::1", "", 400),
    ],
)
def test_pages_of_other_sites_and_invalid_targets_are_refused(path: str, headers: str, status: int) -> None:
    async def work(port: int) -> None:
        host, end = ("" if headers.startswith("Host") else "Host: x\r\n"), ("\r\n" if headers else "")
        text = f"GET {path} HTTP/1.1\r\n{host}{headers.format(port=port)}{end}Connection: close\r\n\r\n"
        assert (await ask(port, text.encode())).split()[1] == b"%d" % status

    run(work)


def test_other_work_runs_between_pipelined_requests_most_of_the_time() -> None:
    durations: list[float] = []

    def slow(request: HttpRequest) -> HttpAnswer:
        began = time.perf_counter()
        while time.perf_counter() - began < 0.01:
            pass
        durations.append(time.perf_counter() - began)
        return answer(request)

    async def work(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port * 1000)
        began = time.perf_counter()
        await asyncio.sleep(0.5)
        assert len(durations) > 1
        assert 4 * sum(durations[:-1]) < time.perf_counter() - began
        writer.close()

    run(work, handler=slow)


def test_unread_answers_are_bounded_in_each_connection_and_in_all(caplog: pytest.LogCaptureFixture) -> None:
    """A client that does not read costs one answer, and many cost the bound and one answer more."""
    made = 0

    def large(request: HttpRequest) -> HttpAnswer:
        nonlocal made
        made += 1
        return answer(request)

    async def work(port: int) -> None:
        opened = [await asyncio.open_connection("127.0.0.1", port, limit=1) for _ in range(8)]
        pipelined = b"GET /large HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port * 20
        for _, writer in opened:
            writer.write(pipelined)
        async with asyncio.timeout(10):
            while made < len(opened):
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert made == len(opened)
        assert 1 <= caplog.text.count("does not read its answers") < len(opened)
        for _, writer in opened:
            writer.transport.abort()

    run(work, handler=large)


def test_the_number_of_connections_is_bounded() -> None:
    async def work(port: int) -> None:
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_CONNECTIONS)]
        for reader, writer in opened:
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionResetError):
            if await reader.read() == b"":
                raise ConnectionResetError
        for _, other in (*opened, (reader, writer)):
            other.close()

    run(work)


def test_the_defaults_are_those_of_zookeeper_but_for_the_address() -> None:
    assert AdminSettings.of({}) == AdminSettings(admin=Address("127.0.0.1", 8080), url="/commands", idle=30_000)
    assert AdminSettings.of({"metricsProvider.className": PROMETHEUS}).metrics == Address("127.0.0.1", 7000)
    assert AdminSettings.of({"admin.enableServer": "false"}).admin is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("admin.serverPort", "65536"),
        ("admin.idleTimeout", "0"),
        ("admin.commandURL", "commands"),
        ("admin.forceHttps", "true"),
        ("metricsProvider.className", "org.example.Other"),
    ],
)
def test_an_invalid_value_is_an_error_that_names_the_key(key: str, value: str) -> None:
    with pytest.raises(AdminError, match=f"{key}={value}: .*; "):
        AdminSettings.of({key: value})
