"""The lock at live servers, ours and real ones, when connections, sessions, answers, znodes or servers are lost."""

import queue

import pytest
from kazoo.protocol.serialization import Create2, Delete, GetChildren, GetData
from kazoo.protocol.states import KazooState

from refimpl.recipes import ClientClosed, Lock, LockLost
from tests.node.recipes import WAIT, Running, World, becomes, drop, eventually, lose_answer, places, remove_queue

# The first request of each test creates its chroot.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")


def test_the_end_of_a_session_frees_the_lock_and_its_holder_learns_it(at: World) -> None:
    client, other = at.client(1), Lock(at.client(2), "/lock")
    lock, doubts = Lock(client, "/lock"), queue.Queue[str]()
    lock.add_lost_listener(doubts.put)
    assert lock.acquire(WAIT)
    assert lock.acquire(WAIT)
    token = lock.token
    at.expire(client)
    assert other.acquire(WAIT)
    assert other.token is not None
    assert token is not None
    assert other.token > token
    assert [doubts.get(timeout=WAIT) for _ in range(2)] == ["suspended", "lost"]
    assert (lock.is_held, lock.token) == (False, token)
    for _ in range(2):
        with pytest.raises(LockLost):
            lock.release()
    with pytest.raises(RuntimeError):
        lock.release()
    other.release()
    assert lock.acquire(WAIT)
    lock.release()


def test_a_lock_that_was_lost_is_taken_anew_by_the_same_thread(at: World) -> None:
    client = at.client()
    lock = Lock(client, "/lock")
    with pytest.raises(LockLost), lock:
        first = lock.token
        at.expire(client)
        with lock:
            assert lock.is_held
            assert lock.token != first
        assert not lock.is_held


def test_the_end_of_a_block_does_not_hide_its_error(at: World, caplog: pytest.LogCaptureFixture) -> None:
    client = at.client()
    with pytest.raises(ZeroDivisionError), Lock(client, "/lock"):
        at.expire(client)
        _ = 1 // 0
    assert "was lost" in caplog.text


def test_a_lost_connection_is_a_doubt_that_ends_when_it_is_back(at: World) -> None:
    client = at.client()
    lock, doubts = Lock(client, "/lock"), queue.Queue[str]()
    lock.add_lost_listener(doubts.put)
    with lock:
        token = lock.token
        drop(client)
        assert doubts.get(timeout=WAIT) == "suspended"
        eventually(lambda: lock.is_held)
        assert lock.token == token
    assert doubts.empty()


def test_a_znode_that_was_deleted_meanwhile_is_a_lost_lock(at: World) -> None:
    client = at.client(1)
    lock, doubts = Lock(client, "/lock"), queue.Queue[str]()
    lock.add_lost_listener(doubts.put)
    with pytest.raises(LockLost), lock:
        (name,) = client.get_children("/lock")
        client.delete(f"/lock/{name}")
        drop(client)
        assert [doubts.get(timeout=WAIT) for _ in range(2)] == ["suspended", "lost"]


def test_a_queue_that_was_removed_is_made_again_for_who_waits(at: World) -> None:
    client = at.client(1)
    holder, waiting = Lock(at.client(2), "/lock"), Lock(client, "/lock")
    assert holder.acquire(WAIT)
    run = Running(waiting.acquire, WAIT)
    places(client, 2)
    remove_queue(client, "/lock")
    assert run.result()


@pytest.mark.parametrize("request_", [Create2, GetChildren, GetData])
def test_a_lost_answer_leaves_no_second_znode(at: World, request_: type) -> None:
    client, holder, watching = at.client(1), Lock(at.client(2), "/lock"), at.client(3)
    assert holder.acquire(WAIT)
    lost = lose_answer(client, request_)

    def take() -> None:
        with Lock(client, "/lock"):
            places(watching, 1)

    run = Running(take)
    assert lost.wait(WAIT)
    places(watching, 2)
    assert run.runs()
    holder.release()
    run.result()
    places(watching, 0)


def test_a_release_whose_answer_was_lost_is_finished(at: World) -> None:
    client, other = at.client(1), Lock(at.client(2), "/lock")
    lock = Lock(client, "/lock")
    assert lock.acquire(WAIT)
    lost = lose_answer(client, Delete)
    lock.release()
    assert lost.wait(WAIT)
    assert other.acquire(WAIT)
    other.release()


def test_who_gives_up_when_the_creation_was_not_answered_leaves_no_znode(at: World) -> None:
    client = at.client(1)
    lock = Lock(client, "/lock")
    with Lock(at.client(2), "/lock"):
        lost = lose_answer(client, Create2)
        run = Running(lock.acquire, 0.0)
        assert lost.wait(WAIT)
        assert run.result() is False
        places(at.client(3), 1)


def test_the_loss_of_a_server_neither_loses_the_lock_nor_the_place_in_the_queue(at: World) -> None:
    holds, waiting = at.client(), at.client()
    holder, next_one = Lock(holds, "/lock"), Lock(waiting, "/lock")
    assert holder.acquire(WAIT)
    token = holder.token

    def take() -> None:
        with next_one:
            assert next_one.token != token

    run = Running(take)
    places(waiting, 2)
    sid, back = at.server_of(holds), becomes(holds, KazooState.CONNECTED)
    at.ensemble.kill(sid)
    try:
        assert back.wait(WAIT)
        eventually(lambda: holder.is_held)
        assert holder.token == token
        assert run.runs()
        holder.release()
        run.result()
    finally:
        at.ensemble.start(sid)
        at.ensemble.wait_serving()


def test_a_listener_may_call_back_into_the_lock_and_may_fail(at: World, caplog: pytest.LogCaptureFixture) -> None:
    client = at.client()
    lock, seen = Lock(client, "/lock"), queue.Queue[bool]()

    def fails(doubt: str) -> None:
        raise ValueError(doubt)

    def asks(doubt: str) -> None:
        lock.remove_lost_listener(asks)
        with lock:
            seen.put(lock.is_held)

    lock.add_lost_listener(fails)
    lock.add_lost_listener(asks)
    assert lock.acquire(WAIT)
    at.expire(client)
    assert seen.get(timeout=WAIT) is True
    assert "ValueError: suspended" in caplog.text
    with pytest.raises(LockLost):
        lock.release()


def test_the_end_of_its_client_ends_a_hold_and_a_wait(at: World) -> None:
    client = at.client(1)
    lock, other = Lock(client, "/lock"), Lock(at.client(2), "/lock")
    assert lock.acquire(WAIT)
    run = Running(Lock(client, "/lock").acquire)
    assert run.runs()
    client.stop()
    with pytest.raises(ClientClosed):
        run.result()
    with pytest.raises(LockLost):
        lock.release()
    with pytest.raises(ClientClosed):
        lock.acquire()
    assert other.acquire(WAIT)
    other.release()
