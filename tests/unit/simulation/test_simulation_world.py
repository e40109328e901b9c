"""The simulated clock, network and disk, against the promises of POSIX, TCP and asyncio that the node relies on."""

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest

from refimpl.system import SYSTEM
from simulation.world.disk import SECTOR, SimulatedDisk
from simulation.world.loop import DeadlockError, Process, SimulatedLoop
from simulation.world.machine import LONGEST_CALL, Machine
from simulation.world.network import ListeningSocket, Network
from simulation.world.paths import SimulatedPath
from simulation.world.transport import End

SERVER, CLIENT = "10.0.0.1", "10.0.0.2"


def disk_with(seed: int, data: bytes, *, synced: bool) -> SimulatedDisk:
    disk = SimulatedDisk(str(seed))
    disk.make_directory("/kept")
    inode = disk.make_file("/file")
    disk.sync(disk.root)
    disk.write(inode, 0, data)
    if synced:
        disk.sync(inode)
    return disk


def after_power_failure(seed: int, data: bytes, *, synced: bool) -> bytes:
    disk = disk_with(seed, data, synced=synced)
    disk.power_failed(keep="kept")
    return bytes(disk.file("/file").data)


def test_what_was_synced_remains_when_the_power_fails() -> None:
    assert {after_power_failure(seed, b"data", synced=True) for seed in range(50)} == {b"data"}


def test_what_was_not_synced_may_be_lost_or_remain() -> None:
    assert {after_power_failure(seed, b"data", synced=False) for seed in range(50)} == {b"", b"data"}


def test_a_write_is_torn_at_the_boundaries_of_sectors() -> None:
    left = {after_power_failure(seed, b"1" * SECTOR + b"2" * SECTOR, synced=False) for seed in range(200)}
    assert b"1" * SECTOR in left
    assert bytes(SECTOR) + b"2" * SECTOR in left


def test_a_later_write_of_a_sector_brings_the_earlier_one_with_it_and_not_that_of_another_sector() -> None:
    def left(seed: int) -> bytes:
        disk = disk_with(seed, b"1" * 100, synced=False)
        disk.write(disk.file("/file"), 100, b"2" * 100)
        disk.write(disk.file("/file"), 2 * SECTOR, b"3")
        disk.power_failed(keep="kept")
        return bytes(disk.file("/file").data)

    one, two, zeros = b"1" * 100, b"2" * 100, bytes(2 * SECTOR)
    first_sectors = (b"", one, one + two)
    expected = {*first_sectors, *((each + zeros)[: 2 * SECTOR] + b"3" for each in first_sectors)}
    assert {left(seed) for seed in range(500)} == expected


def test_a_sector_is_on_the_disk_as_it_was_at_one_time() -> None:
    """Four old bytes, the file made empty, and one new byte: never the new byte before the old ones."""

    def left(seed: int) -> bytes:
        disk = disk_with(seed, b"OOOO", synced=True)
        disk.truncate(disk.file("/file"), 0)
        disk.write(disk.file("/file"), 0, b"N")
        disk.write(disk.file("/file"), 600, b"")
        disk.power_failed(keep="kept")
        return bytes(disk.file("/file").data)

    assert {left(seed) for seed in range(500)} == {b"OOOO", b"", b"N", b"N\0\0\0"}


def test_everything_remains_when_only_the_process_ends() -> None:
    disk = disk_with(0, b"data", synced=False)
    disk.process_ended()
    assert bytes(disk.file("/file").data) == b"data"


def test_a_name_remains_only_after_a_sync_of_its_directory() -> None:
    def new_name(seed: int, *, synced: bool) -> bool:
        disk = disk_with(seed, b"data", synced=True)
        disk.rename("/file", "/new")
        if synced:
            disk.sync(disk.root)
        disk.power_failed(keep="kept")
        assert (disk.find("/new") is None) is not (disk.find("/file") is None)
        return disk.find("/new") is not None

    assert {new_name(seed, synced=True) for seed in range(50)} == {True}
    assert {new_name(seed, synced=False) for seed in range(50)} == {True, False}


def test_waiting_takes_simulated_time_only() -> None:
    loop = SimulatedLoop("0")  # type: ignore[abstract]
    loop.run(Process(loop, "one"), asyncio.sleep(1e6))
    assert loop.now == pytest.approx(1e6)


def test_a_run_in_which_nothing_can_happen_is_an_error() -> None:
    loop = SimulatedLoop("0")  # type: ignore[abstract]

    async def for_ever() -> None:
        await loop.create_future()

    with pytest.raises(DeadlockError):
        loop.run(Process(loop, "one"), for_ever())


def test_callbacks_of_a_process_run_in_their_order_and_those_of_two_in_any() -> None:
    def order(seed: int) -> list[str]:
        loop, seen = SimulatedLoop(str(seed)), list[str]()  # type: ignore[abstract]
        for name in ("a", "b"):
            process = Process(loop, name)
            for number in range(3):
                loop.inside(process, seen.append, f"{name}{number}")
        loop.run(Process(loop, "main"), asyncio.sleep(1))
        return seen

    orders = [order(seed) for seed in range(20)]
    assert all(
        [each for each in seen if each[0] == name] == [f"{name}{n}" for n in range(3)]
        for seen in orders
        for name in "ab"
    )
    assert {seen[0] for seen in orders} == {"a0", "b0"}


def test_a_dead_process_runs_no_callback() -> None:
    loop, seen = SimulatedLoop("0"), list[str]()  # type: ignore[abstract]
    process = Process(loop, "one")
    process.context.run(loop.call_later, 1.0, seen.append, "late")
    loop.outside(0.5, process.end)
    loop.run(Process(loop, "main"), asyncio.sleep(2))
    assert seen == []


def test_an_exception_that_nobody_handles_is_recorded() -> None:
    loop = SimulatedLoop("0")  # type: ignore[abstract]
    process = Process(loop, "one")
    loop.inside(process, int, "no number")
    loop.run(Process(loop, "main"), asyncio.sleep(1))
    assert len(loop.defects) == 1
    assert "ValueError" in loop.defects[0]


class Recorder(asyncio.Protocol):
    """A protocol that records what it is told."""

    def __init__(self) -> None:
        self.data, self.lost = b"", list[Exception | None]()

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class Wire:
    """Two machines with a connection between them."""

    def __init__(self, seed: int) -> None:
        self.loop = SimulatedLoop(str(seed))  # type: ignore[abstract]
        self.network = Network(self.loop, str(seed))
        self.machines = {name: Machine(self.loop, self.network, name, str(seed)) for name in (SERVER, CLIENT)}
        self.server, self.client = Recorder(), Recorder()

    def play(self, scene: Callable[["Wire", End], Awaitable[None]]) -> None:
        accepting, connecting = (self.machines[name].boot(name) for name in (SERVER, CLIENT))
        listening = ListeningSocket(self.network, accepting, SERVER)
        listening.bind((SERVER, 1))
        listening.listen(1)

        def accept() -> None:
            socket, _ = listening.accept()
            accepting.spawn(socket.attach(lambda: self.server))

        listening.watch(accept, ())

        async def main() -> None:
            end, _ = await self.loop.create_connection(lambda: self.client, SERVER, 1)
            await scene(self, end)

        self.loop.run(connecting, main())


@pytest.mark.parametrize("seed", range(10))
def test_bytes_arrive_in_their_order(seed: int) -> None:
    async def scene(wire: Wire, end: End) -> None:
        for number in range(100):
            end.write(b"%03d" % number)
            await asyncio.sleep(0.0001)
        await asyncio.sleep(60)

    wire = Wire(seed)
    wire.play(scene)
    assert wire.server.data == b"".join(b"%03d" % number for number in range(100))


def test_a_cut_holds_bytes_back_until_it_ends() -> None:
    async def scene(wire: Wire, end: End) -> None:
        await asyncio.sleep(1)
        wire.network.cut(CLIENT, SERVER)
        end.write(b"late")
        await asyncio.sleep(30)
        assert wire.server.data == b""
        wire.network.heal(CLIENT, SERVER)
        await asyncio.sleep(1)

    wire = Wire(1)
    wire.play(scene)
    assert wire.server.data == b"late"


@pytest.mark.parametrize("power", [False, True])
def test_the_peer_hears_of_the_end_of_a_process_and_not_of_a_machine_without_power(power: bool) -> None:
    async def scene(wire: Wire, end: End) -> None:
        await asyncio.sleep(1)
        wire.machines[SERVER].crash(power)
        await asyncio.sleep(30)
        assert bool(wire.client.lost) is not power
        wire.machines[SERVER].boot("again")
        end.write(b"to nobody")
        await asyncio.sleep(30)

    wire = Wire(1)
    wire.play(scene)
    assert len(wire.client.lost) == 1


def test_a_connection_is_closed_if_the_task_that_opens_it_is_cancelled_just_then() -> None:
    async def scene(wire: Wire, _: End) -> None:
        opening: asyncio.Task[object]

        class Cancelling(Recorder):
            def connection_made(self, _: asyncio.BaseTransport) -> None:
                opening.cancel()

        second = Cancelling()
        opening = wire.loop.create_task(wire.loop.create_connection(lambda: second, SERVER, 1))
        with pytest.raises(asyncio.CancelledError):
            await opening
        await asyncio.sleep(1)
        assert second.lost == [None]

    Wire(1).play(scene)


def test_nobody_listens_is_a_refusal() -> None:
    wire = Wire(1)

    async def scene(wire: Wire, _: End) -> None:
        with pytest.raises(ConnectionRefusedError):
            await wire.loop.create_connection(Recorder, SERVER, 2)

    wire.play(scene)


def test_a_call_of_a_disk_that_several_faults_slow_down_has_an_end() -> None:
    """Such a call blocks its process, also after the disk is as fast as before."""
    loop = SimulatedLoop("1")  # type: ignore[abstract]
    machine = Machine(loop, Network(loop, "1"), SERVER, "1")
    machine.slowness = 3000.0**4
    assert 1 < max(machine.time_of(0.004) for _ in range(100)) <= LONGEST_CALL


def test_a_wait_for_a_thread_takes_the_time_of_all_its_syncs() -> None:
    """The clock of the thread goes on with each of them, and never back."""
    loop = SimulatedLoop("1")  # type: ignore[abstract]
    machine = Machine(loop, Network(loop, "1"), SERVER, "1")
    machine.slowness = 1.0
    process = machine.boot(SERVER)
    times: list[float] = []

    def work() -> None:
        system = SYSTEM.get()
        descriptor = system.open(SimulatedPath("/file"), os.O_CREAT | os.O_WRONLY)
        for _ in range(50):
            system.fsync(descriptor)
            times.append(system.monotonic())

    async def main() -> None:
        before = loop.time()
        SYSTEM.get().thread("sync").submit(work).result()
        assert times == sorted(times)
        assert loop.time() == times[-1]
        assert 0.05 < loop.time() - before < 0.15, "50 syncs of 2 ms on average"

    loop.run(process, main())


def test_other_code_runs_while_a_thread_waits_for_a_sync_that_does_not_cover_later_writes() -> None:
    loop = SimulatedLoop("1")  # type: ignore[abstract]
    machine = Machine(loop, Network(loop, "1"), SERVER, "1")
    machine.slowness = 300.0
    process = machine.boot(SERVER)

    async def main() -> None:
        system = SYSTEM.get()
        descriptor = system.open(SimulatedPath("/file"), os.O_CREAT | os.O_WRONLY)
        system.pwrite(descriptor, b"1", 0)
        synced = system.thread("sync").submit(system.fsync, descriptor)
        while not process.threads[0].is_waiting:
            await asyncio.sleep(0.001)
        system.pwrite(descriptor, b"2", 1)
        assert not synced.done()
        while not synced.done():
            await asyncio.sleep(0.001)
        inode = machine.disk.file("/file")
        assert (inode.durable, inode.data) == (b"1", b"12")

    loop.run(process, main())


@pytest.mark.parametrize("repaired", [False, True])
def test_the_power_fails_during_a_slow_sync_unless_the_machine_is_repaired_meanwhile(repaired: bool) -> None:
    loop = SimulatedLoop("1")  # type: ignore[abstract]
    machine = Machine(loop, Network(loop, "1"), SERVER, "1")
    machine.slowness, machine.die_in_sync = 300.0, 1
    process = machine.boot(SERVER)
    loop.died = lambda _, why: machine.crash(power=why == "power")
    watching = Process(loop, "watching")

    async def write() -> None:
        system = SYSTEM.get()
        descriptor = system.open(SimulatedPath("/file"), os.O_CREAT | os.O_WRONLY)
        system.pwrite(descriptor, b"1", 0)
        system.thread("sync").submit(system.fsync, descriptor)

    async def main() -> None:
        process.spawn(write())
        while not process.threads or not process.threads[0].is_waiting:
            await asyncio.sleep(0.001)
        inode = machine.disk.file("/file")
        if repaired:
            machine.be_reliable()
        await asyncio.sleep(LONGEST_CALL)
        assert process.alive is repaired
        assert (inode.done == inode.synced == 1) is repaired

    loop.run(watching, main())


def test_a_process_hangs_while_a_sync_of_its_disk_fails() -> None:
    loop = SimulatedLoop("1")  # type: ignore[abstract]
    machine = Machine(loop, Network(loop, "1"), SERVER, "1")
    machine.fail_sync, machine.hang = 1, 7.0
    process = machine.boot(SERVER)

    async def main() -> None:
        system = SYSTEM.get()
        descriptor = system.open(SimulatedPath("/file"), os.O_CREAT | os.O_WRONLY)
        failing = system.thread("sync").submit(system.fsync, descriptor)
        while not failing.done():
            await asyncio.sleep(0.001)
        assert isinstance(failing.exception(), OSError)
        assert 7.0 <= loop.time() < 8.0

    loop.run(process, main())
