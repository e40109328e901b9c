"""The chaos harness itself: a cut link carries nothing, and servers that lose their disk are detected."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import replace as replaced
from pathlib import Path

import pytest

from checker.histories.writes import DURABLE
from harness.commands import Sync
from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, free_ports
from tests.node.chaos.client import Session
from tests.node.chaos.links import OPENING, Links, Proxy
from tests.node.chaos.run import VIEW, chaos
from tests.support.programs import need_kind

BOTH = pytest.mark.parametrize("kind", ["node", pytest.param("real", marks=pytest.mark.slow)])
SETTLED = ["follower", "follower", "leader"]
KILLS_ALL_FIRST = 5
"""A seed whose first fault is the death of all servers."""


class Forgetful(Ensemble):
    """An ensemble whose servers lose their disk at every start."""

    def start(self, sid: int) -> None:
        shutil.rmtree(self.data(sid) / "version-2", ignore_errors=True)
        super().start(sid)


@BOTH
def test_servers_that_lose_their_disks_are_found_out(kind: str, tmp_path: Path) -> None:
    need_kind(kind)
    with Forgetful([kind] * 3, tmp_path) as ensemble:
        report = chaos(ensemble, cycles=1, seed=KILLS_ALL_FIRST, recovery=5.0)

    assert DURABLE in {violation.clause for violation in report.findings.violations}, str(report)


async def becomes(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    for _ in range(int(seconds / 0.05)):
        if await asyncio.to_thread(holds):
            return True
        await asyncio.sleep(0.05)
    return False


@BOTH
@pytest.mark.parametrize("way", ["cut", "silence"])
def test_a_leader_whose_links_are_cut_is_replaced_and_comes_back_as_a_follower(
    kind: str, way: str, tmp_path: Path
) -> None:
    need_kind(kind)

    async def run(ensemble: Ensemble) -> None:
        async with Links(ensemble, replaced(VIEW, sync_limit=10)) as links:
            await asyncio.to_thread(ensemble.start_all)
            # One may have lost the others since it served, and be LOOKING again.
            roles: dict[int, str | None] = {}

            def settled() -> bool:
                roles.update({sid: ensemble.role(sid) for sid in ensemble.sids})
                return sorted(map(str, roles.values())) == SETTLED

            assert await becomes(settled)
            (old,) = [sid for sid, role in roles.items() if role == "leader"]
            others = [sid for sid in ensemble.sids if sid != old]
            getattr(links, way)(links.around(old))
            assert await becomes(lambda: ensemble.role(old) is None), "it serves no more"
            assert await becomes(lambda: "leader" in {ensemble.role(sid) for sid in others})
            links.heal()
            assert await becomes(lambda: ensemble.role(old) == "follower")

    with Ensemble([kind] * 3, tmp_path) as ensemble:
        asyncio.run(run(ensemble))


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def through_a_proxy(check: Callable[[Proxy, Streams], Awaitable[None]], calls_back: int | None = None) -> None:
    """Run `check` with a proxy in front of an echo, and a connection through it."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async def run() -> None:
        target, port = free_ports(2)
        async with await asyncio.start_server(echo, LOOPBACK, target):
            proxy = Proxy(target, calls_back)
            await proxy.listen(port)
            streams = await asyncio.open_connection(LOOPBACK, port)
            await asyncio.wait_for(check(proxy, streams), 10.0)
            streams[1].close()
            await proxy.close()

    asyncio.run(run())


def test_a_question_that_is_cancelled_takes_its_connection_along() -> None:
    async def check(proxy: Proxy, streams: Streams) -> None:
        proxy.silence()
        session = Session(4000, 60.0)
        session._streams = streams
        asking = asyncio.create_task(session.ask(Sync.opcode, "/"))
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert not session.attached

    through_a_proxy(check)


def test_a_proxy_carries_both_ways() -> None:
    async def check(proxy: Proxy, streams: Streams) -> None:
        streams[1].write(b"hello")
        assert await streams[0].readexactly(5) == b"hello"

    through_a_proxy(check)


def test_a_cut_closes_open_connections() -> None:
    async def check(proxy: Proxy, streams: Streams) -> None:
        streams[1].write(b"hello")
        await streams[0].readexactly(5)
        proxy.cut()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await streams[0].readexactly(1)

    through_a_proxy(check)


def test_what_waits_in_silence_is_carried_afterwards_in_order() -> None:
    async def check(proxy: Proxy, streams: Streams) -> None:
        proxy.silence()
        streams[1].write(b"one")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(streams[0].read(1), 0.1)
        streams[1].write(b"two")
        proxy.heal()
        assert await streams[0].readexactly(6) == b"onetwo"

    through_a_proxy(check)


def test_an_election_connection_is_called_back_through_a_proxy() -> None:
    async def check(proxy: Proxy, streams: Streams) -> None:
        address = b"127.0.0.1:3888"
        streams[1].write(OPENING.pack(-65536, 2, len(address)) + address + b"votes")
        expected = b"127.0.0.1:14001"
        assert await streams[0].readexactly(OPENING.size) == OPENING.pack(-65536, 2, len(expected))
        assert await streams[0].readexactly(len(expected) + 5) == expected + b"votes"

    through_a_proxy(check, calls_back=14001)
