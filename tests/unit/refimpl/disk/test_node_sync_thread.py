"""The thread that makes transactions durable, over a log that a test blocks and releases."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from refimpl.disk.sync_thread import FAST, SyncThread
from refimpl.system import SYSTEM, System

WAIT = 10.0
Told = list[int | str]


class HeldLog:
    """A log whose commits wait for `go`; `commits` lists the durable transactions of each commit."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)
        self.commits: list[list[int]] = []
        self.fails: Exception | None = None
        self._pending: list[int] = []

    def append(self, zxid: int, payload: bytes) -> None:
        assert payload == b"%d" % zxid
        self._pending.append(zxid)

    def commit(self) -> None:
        self.begun.release()
        assert self.go.acquire(timeout=WAIT)
        if self.fails is not None:
            raise self.fails
        if self._pending:
            self.commits.append(self._pending)
            self._pending = []


Scene = Callable[[SyncThread, HeldLog, Told], Awaitable[None]]


def play(scene: Scene) -> tuple[HeldLog, Told]:
    """Run a scene; return the log and the reports: a number for `done`, a text for `failed`."""
    log, told = HeldLog(), list[int | str]()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        thread = SyncThread(log, loop, told.append, lambda error: told.append(str(error)))
        thread.start()
        try:
            await scene(thread, log, told)
        finally:
            log.go.release(100)
            await asyncio.to_thread(thread.stop)
            await asyncio.sleep(0)  # the last report is delivered

    asyncio.run(asyncio.wait_for(run(), WAIT))
    return log, told


def ask(thread: SyncThread, *zxids: int) -> None:
    for zxid in zxids:
        thread.append((zxid, b"%d" % zxid))


async def begun(log: HeldLog) -> None:
    assert await asyncio.to_thread(log.begun.acquire, timeout=WAIT)


async def until(told: Told, length: int) -> None:
    while len(told) < length:
        await asyncio.sleep(0.001)


def test_what_gathers_while_the_disk_is_busy_is_one_commit_and_one_report() -> None:
    async def scene(thread: SyncThread, log: HeldLog, told: Told) -> None:
        ask(thread, 1)
        await begun(log)
        ask(thread, 2, 3, 4)
        assert told == []
        log.go.release(2)
        await until(told, 2)

    log, told = play(scene)
    assert log.commits == [[1], [2, 3, 4]]
    assert told == [1, 3]


def test_a_job_is_done_in_its_place_with_all_before_it_durable() -> None:
    seen: list[list[list[int]]] = []

    async def scene(thread: SyncThread, log: HeldLog, told: Told) -> None:
        ask(thread, 1)
        await begun(log)
        ask(thread, 2)
        thread.call(lambda: seen.append([*log.commits]))
        ask(thread, 3)
        log.go.release(100)
        await until(told, 2)

    log, told = play(scene)
    assert seen == [[[1], [2]]]
    assert log.commits == [[1], [2], [3]]
    assert told == [1, 3]


def test_a_flush_is_the_report_of_what_was_asked_for_before_it() -> None:
    async def scene(thread: SyncThread, log: HeldLog, told: Told) -> None:
        ask(thread, 1)
        log.go.release(100)
        thread.flush()
        assert log.commits == [[1]]

    assert play(scene)[1] == []


def test_a_flush_is_the_report_of_what_the_thread_had_not_begun_too() -> None:
    async def scene(thread: SyncThread, log: HeldLog, told: Told) -> None:
        ask(thread, 1)
        await begun(log)
        ask(thread, 2)  # it waits while the disk works on 1
        threading.Timer(0.05, log.go.release, [100]).start()
        thread.flush()
        assert log.commits == [[1], [2]]
        ask(thread, 3)
        await until(told, 1)

    # A report of 2 would be taken for 3, which may not be on the disk.
    assert play(scene)[1] == [1]


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ValueError("zxid 0x1 after 0x2: zxids must rise")], ids=str
)
def test_a_failure_is_reported_once_and_nothing_after_it(error: Exception) -> None:
    async def scene(thread: SyncThread, log: HeldLog, told: Told) -> None:
        ask(thread, 1)
        await begun(log)
        log.go.release()
        await until(told, 1)
        log.fails = error
        ask(thread, 2)
        log.go.release()
        await until(told, 2)
        log.fails = None
        ask(thread, 3)
        thread.call(lambda: told.append("a job after the failure"))
        with pytest.raises(OSError, match=str(error.args[-1])):
            thread.flush()

    log, told = play(scene)
    assert told == [1, str(error)]
    assert log.commits == [[1]]


def test_success_before_a_failure_is_not_reported_once_the_failure_is_known() -> None:
    async def scene(thread: SyncThread, log: HeldLog, told: Told) -> None:
        ask(thread, 1)
        await begun(log)
        ask(thread, 2)
        log.go.release()
        assert log.begun.acquire(timeout=WAIT)  # the event loop is blocked: 1 is durable, and not yet reported
        log.fails = OSError("broken")
        log.go.release()
        with pytest.raises(OSError, match="broken"):
            thread.flush()

    assert play(scene)[1] == ["broken"]


def test_stop_does_what_was_asked_for() -> None:
    async def scene(thread: SyncThread, log: HeldLog, told: Told) -> None:
        ask(thread, 1)
        await begun(log)
        ask(thread, 2, 3)
        log.go.release(100)
        thread.stop()
        assert log.commits == [[1], [2, 3]]

    play(scene)


def test_a_job_that_nobody_waits_for_is_done_in_its_place_and_not_reported() -> None:
    done: list[str] = []

    async def scene(thread: SyncThread, log: HeldLog, told: Told) -> None:
        ask(thread, 1)
        await begun(log)
        thread.aside(lambda: done.append(f"after {log.commits}"))
        ask(thread, 2)
        log.go.release(2)
        await until(told, 2)

    log, told = play(scene)
    assert told == [1, 1]
    assert done == ["after [[1]]"]
    assert log.commits == [[1], [2]]


class Stopwatch(System):
    """A system whose clock goes on only by the commits of a log."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class TimedLog(HeldLog):
    """A log whose commits take `seconds`, and that knows whether the last one was made in the event loop."""

    def __init__(self, system: Stopwatch) -> None:
        super().__init__()
        self.system, self.seconds = system, FAST / 2
        self.in_loop = False
        self.told: Told = []

    def commit(self) -> None:
        self.in_loop = threading.current_thread() is threading.main_thread()
        if self.fails is not None:
            raise self.fails
        self.system.now += self.seconds if self._pending else 0.0
        self._pending.clear()


def play_timed(scene: Callable[[SyncThread, TimedLog, Callable[[], Awaitable[bool]]], Awaitable[None]]) -> None:
    """Run a scene with a log whose time is known. The scene can log a transaction: it gets whether the loop did it."""

    async def run() -> None:
        log = TimedLog(system)
        told = log.told
        thread = SyncThread(log, asyncio.get_running_loop(), told.append, lambda error: told.append(str(error)))
        thread.start()

        async def logs_in_loop() -> bool:
            before = len(told)
            ask(thread, before + 1)
            assert len(told) == before, "a report comes later, not within the request"
            await until(told, before + 1)
            return log.in_loop

        await scene(thread, log, logs_in_loop)
        await asyncio.to_thread(thread.stop)

    system = Stopwatch()
    token = SYSTEM.set(system)
    try:
        asyncio.run(asyncio.wait_for(run(), WAIT))
    finally:
        SYSTEM.reset(token)


def test_a_disk_that_has_proved_to_be_fast_is_written_in_the_event_loop() -> None:
    async def scene(_thread: SyncThread, _log: TimedLog, logs_in_loop: Callable[[], Awaitable[bool]]) -> None:
        assert not await logs_in_loop()
        assert any([await logs_in_loop() for _ in range(500)])
        assert all([await logs_in_loop() for _ in range(10)])

    play_timed(scene)


def test_one_slow_commit_gives_the_disk_back_to_the_thread() -> None:
    async def scene(_thread: SyncThread, log: TimedLog, logs_in_loop: Callable[[], Awaitable[bool]]) -> None:
        while not await logs_in_loop():
            pass
        log.seconds = 2 * FAST
        assert await logs_in_loop()
        assert not await logs_in_loop()

    play_timed(scene)


def test_a_job_is_done_in_the_thread_however_fast_the_disk_is() -> None:
    async def scene(thread: SyncThread, _log: TimedLog, logs_in_loop: Callable[[], Awaitable[bool]]) -> None:
        while not await logs_in_loop():
            pass
        where: list[threading.Thread] = []
        thread.call(lambda: where.append(threading.current_thread()))
        thread.flush()
        assert len(where) == 1
        assert where[0] is not threading.main_thread()

    play_timed(scene)


def test_a_failure_in_the_event_loop_is_reported_later_and_once() -> None:
    async def scene(thread: SyncThread, log: TimedLog, logs_in_loop: Callable[[], Awaitable[bool]]) -> None:
        while not await logs_in_loop():
            pass
        log.fails = OSError("broken")
        before = len(log.told)
        ask(thread, 1)
        assert len(log.told) == before, "a report comes later, not within the request"
        await until(log.told, before + 1)
        ask(thread, 2)
        with pytest.raises(OSError, match="broken"):
            thread.flush()
        assert log.told[before:] == ["broken"]

    play_timed(scene)


def test_empty_commits_prove_nothing() -> None:
    """Each transaction is followed by a job, so that the last commit of each batch has nothing to do."""

    async def scene(thread: SyncThread, log: TimedLog, logs_in_loop: Callable[[], Awaitable[bool]]) -> None:
        log.seconds = 10 * FAST
        for _ in range(500):
            before = len(log.told)
            thread.append((before + 1, b"%d" % (before + 1)))
            thread.call(lambda: None)
            await until(log.told, before + 1)
        assert not await logs_in_loop()

    play_timed(scene)
