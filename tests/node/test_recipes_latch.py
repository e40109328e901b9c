"""LeaderLatch at live servers, ours and real ones: the behaviour of Curator's latch, and faults."""

import queue

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.serialization import Create2
from kazoo.protocol.states import KazooState
from kazoo.security import make_acl

from refimpl.recipes import ClientClosed, LatchClosed, LatchState, LeaderLatch, Refused
from tests.node.recipes import BRIEF, WAIT, Running, World, becomes, drop, eventually, lose_answer, remove_queue

# The first request of each test creates its chroot.
pytestmark = pytest.mark.filterwarnings("ignore:No chroot path exists")


def standing(client: KazooClient, id: str) -> LeaderLatch:
    """Return a started latch whose znode exists."""
    latch = LeaderLatch(client, "/latch", id)
    latch.start()
    eventually(lambda: id in ids(latch))
    return latch


def ids(latch: LeaderLatch) -> list[str]:
    return [each.id for each in latch.participants()]


def listened(latch: LeaderLatch) -> queue.Queue[str]:
    """Return a queue of the notifications to the latch's listeners."""
    told: queue.Queue[str] = queue.Queue()
    latch.add_listener(lambda: told.put("is leader"), lambda: told.put("not leader"))
    return told


def test_leadership_passes_on_in_the_order_of_starting(at: World) -> None:
    latches = [standing(at.client(1), f"host-{number}") for number in range(3)]
    assert latches[0].participants()[0].is_leader
    assert ids(latches[0]) == ["host-0", "host-1", "host-2"]
    tokens = []
    for number, latch in enumerate(latches):
        assert latch.wait(WAIT)
        assert [each.has_leadership for each in latches] == [each is latch for each in latches]
        leader = latch.leader()
        assert leader is not None
        assert (leader.id, leader.token) == (f"host-{number}", latch.token)
        tokens.append(leader.token)
        latch.close()
        assert (latch.has_leadership, latch.token) == (False, None)
    assert tokens == sorted(tokens)


def test_who_does_not_lead_waits_until_a_timeout(at: World) -> None:
    leads, waits = standing(at.client(1), "leads"), standing(at.client(1), "waits")
    assert leads.wait(WAIT)
    assert not waits.wait(BRIEF)
    leads.close()
    assert waits.wait(WAIT)


def test_where_nobody_stands_nobody_leads(at: World) -> None:
    latch = LeaderLatch(at.client(), "/latch")
    assert latch.leader() is None
    assert latch.participants() == []


def test_a_latch_is_latent_then_started_then_closed(at: World) -> None:
    latch = LeaderLatch(at.client(), "/latch")
    assert latch.state is LatchState.LATENT
    with pytest.raises(RuntimeError, match="not started"):
        latch.wait()
    with latch:
        assert latch.state is LatchState.STARTED
        with pytest.raises(RuntimeError, match="started once"):
            latch.start()
    assert latch.state is LatchState.CLOSED
    with pytest.raises(RuntimeError, match="started once"):
        latch.start()
    latch.close()


def test_a_wait_ends_when_the_latch_is_closed(at: World) -> None:
    leads, waits = standing(at.client(1), "leads"), standing(at.client(1), "waits")
    run = Running(waits.wait)
    assert run.runs()
    waits.close()
    with pytest.raises(LatchClosed):
        run.result()
    with pytest.raises(LatchClosed):
        waits.wait(timeout=0.0)
    eventually(lambda: ids(leads) == ["leads"])


@pytest.mark.parametrize(("notify", "told"), [(False, ["is leader"]), (True, ["is leader", "not leader"])])
def test_a_close_tells_listeners_if_it_is_to(at: World, notify: bool, told: list[str]) -> None:
    latch = LeaderLatch(at.client(), "/latch")
    heard = listened(latch)
    latch.start()
    assert latch.wait(WAIT)
    latch.close(notify=notify)
    assert [heard.get(timeout=WAIT) for _ in told] == told
    with pytest.raises(queue.Empty):
        heard.get(timeout=BRIEF)


def test_a_listener_that_was_removed_is_not_called(at: World) -> None:
    latch = LeaderLatch(at.client(), "/latch")
    heard, removed = listened(latch), queue.Queue[int]()
    latch.add_listener(lambda: removed.put(1))
    with pytest.raises(ValueError, match="not in list"):
        latch.remove_listener(is_leader=print)
    latch.add_listener(print)
    latch.remove_listener(print)
    latch.start()
    assert heard.get(timeout=WAIT) == "is leader"
    assert removed.get(timeout=WAIT) == 1


def test_a_listener_may_close_the_latch(at: World) -> None:
    latch, other = LeaderLatch(at.client(1), "/latch"), LeaderLatch(at.client(1), "/latch", "other")
    latch.add_listener(latch.close)
    latch.start()
    eventually(lambda: latch.state is LatchState.CLOSED)
    other.start()
    assert other.wait(WAIT)


def test_a_lost_connection_ends_leadership_and_whoever_waited_comes_first(at: World) -> None:
    client = at.client(1)
    leads, waits = standing(client, "leads"), standing(at.client(1), "waits")
    assert leads.wait(WAIT)
    heard = listened(leads)
    drop(client)
    assert heard.get(timeout=WAIT) == "not leader"
    assert waits.wait(WAIT)
    assert not leads.has_leadership
    eventually(lambda: ids(waits) == ["waits", "leads"])
    waits.close()
    assert leads.wait(WAIT)
    assert heard.get(timeout=WAIT) == "is leader"


def test_who_is_alone_leads_again_with_a_greater_token(at: World) -> None:
    client = at.client()
    latch = standing(client, "alone")
    assert latch.wait(WAIT)
    first = latch.token
    assert first is not None
    drop(client)
    eventually(lambda: latch.token is not None and latch.token > first)
    assert ids(latch) == ["alone"]


def test_a_lost_connection_does_not_cost_the_place_of_one_who_waits(at: World) -> None:
    client = at.client(1)
    latches = [standing(at.client(1), "first"), standing(client, "second"), standing(at.client(1), "third")]
    drop(client)
    latches[0].close()
    assert latches[1].wait(WAIT)
    assert ids(latches[1]) == ["second", "third"]


def test_the_end_of_a_session_passes_leadership_on_and_the_latch_stands_again(at: World) -> None:
    client = at.client(1)
    leads, waits = standing(client, "leads"), standing(at.client(1), "waits")
    assert leads.wait(WAIT)
    at.expire(client)
    eventually(lambda: not leads.has_leadership)
    assert waits.wait(WAIT)
    assert not leads.has_leadership
    eventually(lambda: ids(waits) == ["waits", "leads"])


def test_the_end_of_its_client_ends_leadership(at: World) -> None:
    client = at.client(1)
    latch = LeaderLatch(client, "/latch")
    heard = listened(latch)
    latch.start()
    assert latch.wait(WAIT)
    client.stop()
    eventually(lambda: not latch.has_leadership)
    assert [heard.get(timeout=WAIT) for _ in range(2)] == ["is leader", "not leader"]
    with pytest.raises(ClientClosed):
        latch.wait()
    latch.close()


def test_a_latch_that_is_closed_while_disconnected_frees_its_place_when_it_is_back(at: World) -> None:
    client = at.client(1)
    leads, waits = standing(client, "leads"), standing(at.client(2), "waits")
    assert leads.wait(WAIT)
    suspended = becomes(client, KazooState.SUSPENDED)
    at.ensemble.kill(1)
    try:
        assert suspended.wait(WAIT)
        leads.close()
        assert not waits.wait(BRIEF)
    finally:
        at.ensemble.start(1)
        at.ensemble.wait_serving()
    assert waits.wait(WAIT)


def test_a_creation_whose_answer_was_lost_is_found_again(at: World) -> None:
    client = at.client(1)
    latch = LeaderLatch(client, "/latch", "host")
    lost = lose_answer(client, Create2)
    latch.start()
    assert lost.wait(WAIT)
    assert latch.wait(WAIT)
    assert ids(latch) == ["host"]


def test_a_queue_that_was_removed_is_made_again(at: World) -> None:
    client = at.client(1)
    standing(at.client(1), "leads")
    waits = standing(client, "waits")
    remove_queue(client, "/latch")
    assert waits.wait(WAIT)


def test_a_latch_may_be_started_before_its_client_is_connected(at: World) -> None:
    client = KazooClient(hosts=at.ensemble.address(1) + at.root)
    latch = LeaderLatch(client, "/latch")
    latch.start()
    assert not latch.has_leadership
    at.client(1)
    client.start(timeout=WAIT)
    try:
        assert latch.wait(WAIT)
    finally:
        client.stop()
        client.close()


def test_what_the_servers_refuse_is_said_by_the_wait(at: World) -> None:
    client = at.client()
    client.create("/latch", acl=[make_acl("world", "anyone", read=True)])
    with LeaderLatch(client, "/latch") as latch, pytest.raises(Refused, match="NO_AUTH"):
        latch.wait(WAIT)
