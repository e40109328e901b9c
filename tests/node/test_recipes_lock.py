"""The lock at live servers, ours and real ones: exclusive, fair, re-entrant, for threads and for tasks."""

import asyncio
import queue
import threading

import pytest
from kazoo.security import make_acl

from refimpl.recipes import AsyncLock, Lock, Refused
from spec.tree.replies import Code
from tests.node.recipes import BRIEF, WAIT, Running, World, eventually, places

# The first request of each test creates its chroot.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")


def test_no_two_of_many_clients_hold_at_once_and_tokens_grow(at: World) -> None:
    locks = [Lock(at.client(sid), "/lock") for sid in (1, 2, 3)]
    inside: list[int] = []
    tokens: list[int] = []

    def work(lock: Lock) -> None:
        for _ in range(5):
            with lock:
                inside.append(1)
                assert lock.token is not None
                tokens.append(lock.token)
                assert inside == [1]
                inside.pop()

    runs = [Running(work, lock) for lock in locks for _ in range(2)]
    for run in runs:
        run.result()
    assert len(tokens) == 30
    assert tokens == sorted(set(tokens))


def test_who_comes_first_is_served_first(at: World) -> None:
    holder, served = Lock(at.client(1), "/lock"), queue.Queue[int]()
    assert holder.acquire(WAIT)
    waiting = [Lock(at.client(sid), "/lock") for sid in (3, 1, 2)]

    def take(turn: int) -> None:
        with waiting[turn]:
            served.put(turn)

    runs = []
    for turn in range(3):
        runs.append(Running(take, turn))
        places(at.client(1), 2 + turn)
    holder.release()
    assert [served.get(timeout=WAIT) for _ in waiting] == [0, 1, 2]
    for run in runs:
        run.result()


def test_its_thread_takes_it_again_and_frees_it_with_the_last_release(at: World) -> None:
    lock, other = Lock(at.client(1), "/lock"), Lock(at.client(2), "/lock")
    with lock:
        first = lock.token
        with lock:
            assert lock.token == first
        assert lock.is_held
        assert not other.acquire(BRIEF)
    assert other.acquire(WAIT)
    other.release()


def test_threads_of_one_object_take_turns_with_one_znode(at: World) -> None:
    client = at.client()
    lock, served = Lock(client, "/lock"), queue.Queue[int]()
    assert lock.acquire(WAIT)

    def take(turn: int) -> None:
        with lock:
            served.put(turn)

    runs = []
    for turn in range(3):
        runs.append(Running(take, turn))
        eventually(lambda turn=turn: len(lock._turns) == turn + 1)  # type: ignore[misc]
    assert len(client.get_children("/lock")) == 1
    lock.release()
    assert [served.get(timeout=WAIT) for _ in runs] == [0, 1, 2]
    for run in runs:
        run.result()


def test_a_timeout_leaves_nothing_behind(at: World) -> None:
    holder, client = Lock(at.client(1), "/lock"), at.client(2)
    late = Lock(client, "/lock")
    with holder:
        assert not late.acquire(BRIEF)
        assert late.token is None
        places(client, 1)
    places(client, 0)
    assert late.acquire(WAIT)
    late.release()


def test_an_object_that_is_not_used_has_no_thread_and_no_listener(at: World) -> None:
    client = at.client()
    before, threads = set(client.state_listeners), set(threading.enumerate())
    # Only new threads are compared: those of earlier tests may end meanwhile.
    with Lock(client, "/lock"):
        assert set(threading.enumerate()) - threads
    eventually(lambda: set(client.state_listeners) == before and set(threading.enumerate()) <= threads)


def test_only_its_thread_may_release_it(at: World) -> None:
    lock = Lock(at.client(), "/lock")
    with pytest.raises(RuntimeError, match="not held"):
        lock.release()
    with lock:
        with pytest.raises(RuntimeError, match="not held"):
            Running(lock.release).result()
        assert lock.is_held


def test_what_the_servers_refuse_is_said(at: World) -> None:
    client = at.client()
    client.create("/lock", acl=[make_acl("world", "anyone", read=True)])
    with pytest.raises(Refused) as refused:
        Lock(client, "/lock").acquire(WAIT)
    assert refused.value.code is Code.NO_AUTH


def test_a_path_that_is_none_is_refused_at_once(at: World) -> None:
    with pytest.raises(ValueError, match="starts with /"):
        Lock(at.client(), "locks")


def test_clients_with_different_chroots_meet_at_one_znode(at: World) -> None:
    above, within = Lock(at.client(1), "/app/lock"), Lock(at.client(2, below="/app"), "/lock")
    with above:
        assert not within.acquire(BRIEF)
    assert within.acquire(WAIT)
    within.release()


def test_kazoos_own_lock_at_the_same_path_is_another_queue(at: World) -> None:
    ours, theirs = Lock(at.client(1), "/lock"), at.client(2).Lock("/lock")
    assert theirs.acquire(timeout=WAIT)
    assert ours.acquire(WAIT)
    ours.release()
    theirs.release()


def test_tasks_hold_it_as_threads_do(at: World) -> None:
    async def main() -> None:
        lock, other = AsyncLock(at.client(1), "/lock"), AsyncLock(at.client(2), "/lock")
        async with lock, lock:
            assert lock.is_held
            assert lock.token is not None
            assert await other.acquire(BRIEF) is False
            with pytest.raises(RuntimeError):
                await asyncio.create_task(_release(lock))
        async with other:
            assert not lock.is_held

    async def _release(lock: AsyncLock) -> None:
        lock.release()

    asyncio.run(main())


def test_a_task_that_is_cancelled_gives_up_its_place(at: World) -> None:
    watching = at.client(3)

    async def main() -> None:
        lock, other = AsyncLock(at.client(1), "/lock"), AsyncLock(at.client(2), "/lock")
        async with lock:
            waiting = asyncio.create_task(other.acquire())
            await asyncio.to_thread(places, watching, 2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await asyncio.to_thread(places, watching, 1)
        assert await other.acquire(WAIT)
        other.release()

    asyncio.run(main())
