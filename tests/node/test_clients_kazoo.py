"""kazoo, unchanged, with its recipes: everything that works at a real ensemble works at ours."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadVersionError,
    LockTimeout,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.security import make_acl, make_digest_acl

from harness.ensemble import Ensemble
from tests.node.patience import PATIENT, SESSION

# The first request of each test creates its chroot.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")

WAIT = 20.0
MakeClient = Callable[..., KazooClient]


@pytest.fixture(scope="module", params=["real", "node"])
def ensemble(request: pytest.FixtureRequest, launch: Callable[..., Ensemble]) -> Ensemble:
    return launch([request.param] * 3, **PATIENT)


@pytest.fixture
def client(ensemble: Ensemble, request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    """`client()` returns a started client, at one server or at all, under a separate chroot of the test."""
    root = f"/{request.node.name.split('[')[0]}"
    with ExitStack() as ends:

        def start(sid: int | None = None, **options: object) -> KazooClient:
            hosts = ensemble.connect_string if sid is None else ensemble.address(sid)
            started = KazooClient(hosts=hosts + root, **({"timeout": SESSION} | options))
            ends.callback(started.close)
            ends.callback(started.stop)
            started.start(timeout=WAIT)
            started.ensure_path("/")
            return started

        yield start


def test_a_lock_is_held_by_one_client_and_passes_on(client: MakeClient) -> None:
    holder, waiting = client(1), client(2)
    first, second = holder.Lock("/lock", "first"), waiting.Lock("/lock", "second")
    assert first.acquire(timeout=WAIT)
    with pytest.raises(LockTimeout):
        second.acquire(timeout=0.2)
    holder.sync("/")
    assert first.contenders() == ["first"]
    first.release()
    assert second.acquire(timeout=WAIT)
    second.release()


def test_a_lock_passes_on_when_its_holders_session_ends(client: MakeClient) -> None:
    holder, waiting = client(1), client(3)
    assert holder.Lock("/lock").acquire(timeout=WAIT)
    holder.stop()
    assert waiting.Lock("/lock").acquire(timeout=WAIT)


def test_readers_share_and_a_writer_excludes(client: MakeClient) -> None:
    one, other = client(1), client(2)
    assert one.ReadLock("/rw").acquire(timeout=WAIT)
    assert other.ReadLock("/rw").acquire(timeout=WAIT)
    assert not client(3).WriteLock("/rw").acquire(blocking=False)


def test_a_semaphore_gives_as_many_leases_as_it_has(client: MakeClient) -> None:
    leases = [client(sid).Semaphore("/semaphore", max_leases=2) for sid in (1, 2, 3)]
    assert leases[0].acquire(timeout=WAIT)
    assert leases[1].acquire(timeout=WAIT)
    # Kazoo counts the leases that its server has applied, without a sync.
    leases[2].client.sync("/")
    assert not leases[2].acquire(blocking=False)
    leases[0].release()
    assert leases[2].acquire(timeout=WAIT)


def test_an_election_leads_one_after_the_other(client: MakeClient) -> None:
    led: queue.Queue[str] = queue.Queue()
    elections = [(name, client(sid).Election("/election", name)) for sid, name in ((1, "a"), (2, "b"), (3, "c"))]
    threads = [threading.Thread(target=election.run, args=(led.put, name)) for name, election in elections]
    for thread in threads:
        thread.start()
    assert {led.get(timeout=WAIT) for _ in threads} == {"a", "b", "c"}
    for thread in threads:
        thread.join(WAIT)


def test_a_counter_loses_no_count_of_two_clients_at_once(client: MakeClient) -> None:
    counters = [client(sid).Counter("/counter", default=0) for sid in (1, 2)]

    def count(counter: object) -> None:
        for _ in range(10):
            counter += 1  # type: ignore[operator]

    threads = [threading.Thread(target=count, args=(counter,)) for counter in counters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    reader = client(1)
    reader.sync("/")
    assert reader.Counter("/counter").value == 20


def test_a_barrier_holds_until_it_is_removed(client: MakeClient) -> None:
    keeper, waiting = client(1), client(2)
    keeper.Barrier("/barrier").create()
    waiting.sync("/")
    assert not waiting.Barrier("/barrier").wait(timeout=0.2)
    keeper.Barrier("/barrier").remove()
    assert waiting.Barrier("/barrier").wait(timeout=WAIT)


def test_a_double_barrier_lets_all_in_together(client: MakeClient) -> None:
    barriers = [client(sid).DoubleBarrier("/double", 2) for sid in (1, 2)]
    threads = [threading.Thread(target=barrier.enter) for barrier in barriers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert [barrier.participating for barrier in barriers] == [True, True]


def test_a_queue_gives_entries_by_priority_and_then_in_order(client: MakeClient) -> None:
    entries = client(1).Queue("/queue")
    for value, priority in ((b"late", 200), (b"first", 100), (b"second", 100)):
        entries.put(value, priority)
    assert [entries.get(), entries.get(), entries.get()] == [b"first", b"second", b"late"]


def test_a_locking_queue_gives_an_entry_to_one_consumer(client: MakeClient) -> None:
    one, other = client(1).LockingQueue("/locking"), client(1).LockingQueue("/locking")
    one.put_all([b"a", b"b"])
    assert {one.get(WAIT), other.get(WAIT)} == {b"a", b"b"}
    assert one.consume()
    assert other.consume()


def test_a_data_watch_sees_creation_change_and_deletion(client: MakeClient) -> None:
    seen: queue.Queue[bytes | None] = queue.Queue()
    watching, writing = client(1), client(2)
    watching.DataWatch("/watched", lambda data, stat: seen.put(data))
    assert seen.get(timeout=WAIT) is None
    writing.create("/watched", b"one")
    assert seen.get(timeout=WAIT) == b"one"
    writing.set("/watched", b"two")
    assert seen.get(timeout=WAIT) == b"two"
    writing.delete("/watched")
    assert seen.get(timeout=WAIT) is None


def test_a_children_watch_sees_each_change(client: MakeClient) -> None:
    seen: queue.Queue[list[str]] = queue.Queue()
    watching, writing = client(1), client(3)
    writing.create("/parent")
    watching.sync("/")
    watching.ChildrenWatch("/parent", lambda children: seen.put(sorted(children)))
    assert seen.get(timeout=WAIT) == []
    writing.create("/parent/a")
    assert seen.get(timeout=WAIT) == ["a"]
    writing.create("/parent/b", ephemeral=True)
    assert seen.get(timeout=WAIT) == ["a", "b"]
    writing.stop()
    assert seen.get(timeout=WAIT) == ["a"]


def test_a_tree_cache_follows_a_subtree(client: MakeClient) -> None:
    from kazoo.recipe.cache import TreeCache, TreeEvent

    seen: queue.Queue[tuple[int, str | None]] = queue.Queue()
    watching, writing = client(1), client(2)
    cache = TreeCache(watching, "/tree")
    cache.listen(lambda event: seen.put((event.event_type, event.event_data and event.event_data.path)))
    cache.start()
    expected = [(TreeEvent.NODE_ADDED, "/tree"), (TreeEvent.INITIALIZED, None)]
    assert [seen.get(timeout=WAIT) for _ in expected] == expected
    writing.create("/tree/a/b", b"x", makepath=True)
    expected = [(TreeEvent.NODE_ADDED, "/tree/a"), (TreeEvent.NODE_ADDED, "/tree/a/b")]
    assert [seen.get(timeout=WAIT) for _ in expected] == expected
    assert cache.get_data("/tree/a/b").data == b"x"
    cache.close()


def test_a_party_lists_who_is_there(client: MakeClient) -> None:
    one, other = client(1), client(1)
    parties = [one.Party("/party", "one"), other.Party("/party", "other")]
    for party in parties:
        party.join()
    assert sorted(parties[0]) == ["one", "other"]
    other.stop()
    assert list(parties[0]) == ["one"]


def test_a_partitioner_shares_the_set(client: MakeClient) -> None:
    alone = client(1).SetPartitioner("/partition", set=("a", "b"), time_boundary=0.1)
    alone.wait_for_acquire(WAIT)
    assert alone.acquired
    assert sorted(alone) == ["a", "b"]
    alone.finish()


def test_a_transaction_is_done_whole_or_not_at_all(client: MakeClient) -> None:
    at = client()
    at.create("/kept", b"old")
    done = at.transaction()
    done.create("/one", b"1")
    done.set_data("/kept", b"new", version=0)
    done.check("/kept", version=1)
    results = done.commit()
    assert results[0] == "/one"
    assert results[1].version == 1
    failed = at.transaction()
    failed.create("/two")
    failed.delete("/missing")
    failed.set_data("/kept", b"never")
    assert [type(result) for result in failed.commit()] == [RolledBackError, NoNodeError, RuntimeInconsistency]
    assert at.exists("/two") is None
    assert at.get("/kept")[0] == b"new"


def test_errors_are_kazoos_own(client: MakeClient) -> None:
    at = client()
    at.create("/a/b", makepath=True)
    for error, action in (
        (NodeExistsError, lambda: at.create("/a")),
        (NoNodeError, lambda: at.get("/missing")),
        (NotEmptyError, lambda: at.delete("/a")),
        (BadVersionError, lambda: at.set("/a", b"", version=7)),
    ):
        with pytest.raises(error):
            action()


def test_acls_admit_the_identity_they_name(client: MakeClient) -> None:
    owner, other = client(1), client(2)
    owner.add_auth("digest", "anna:secret")
    owner.create(
        "/mine", b"x", acl=[make_digest_acl("anna", "secret", all=True), make_acl("world", "anyone", read=True)]
    )
    other.sync("/")
    assert other.get("/mine")[0] == b"x"
    with pytest.raises(NoAuthError):
        other.set("/mine", b"y")
    other.add_auth("digest", "anna:secret")
    assert other.set("/mine", b"y").version == 1


def test_sequential_and_ephemeral_znodes_are_what_they_say(client: MakeClient) -> None:
    one, other = client(1), client(2)
    assert one.create("/s-", sequence=True) == "/s-0000000000"
    assert one.create("/s-", sequence=True, ephemeral=True) == "/s-0000000001"
    other.sync("/")
    assert other.get("/s-0000000001")[1].owner_session_id == one.client_id[0]
    one.stop()
    other.sync("/")
    assert other.get_children("/") == ["s-0000000000"]


def test_a_client_keeps_its_session_over_the_loss_of_its_server(ensemble: Ensemble, client: MakeClient) -> None:
    states: queue.Queue[KazooState] = queue.Queue()
    at = client()
    at.create("/ephemeral", ephemeral=True)
    session = at.client_id[0]
    connected = at._connection._socket.getpeername()[1]
    sid = next(sid for sid in ensemble.sids if ensemble.client_port(sid) == connected)
    at.add_listener(states.put)
    ensemble.kill(sid)
    assert states.get(timeout=WAIT) == KazooState.SUSPENDED
    assert states.get(timeout=WAIT) == KazooState.CONNECTED
    assert at.client_id[0] == session
    assert at.exists("/ephemeral").owner_session_id == session
    ensemble.start(sid)
    ensemble.wait_serving()
