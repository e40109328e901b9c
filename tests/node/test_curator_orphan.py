"""An orphan in spite of protection, live: Curator searches for its id without a sync, and creates a second znode.

Server 1 takes the creation and forwards it to server 2, which leads. The client loses its connection and reconnects to
server 3, which has not applied the creation. Curator finds nothing there and creates again; then both are in the queue.
Server 3 has not applied it for one of two reasons:

- It is not committed. The leader's bytes to server 1 are held; server 3 does not vote, or its disk is slow.
- It is committed and waits there behind earlier commits (`CommitProcessor` serves reads between commits).

Rules of this module:

- Each step waits until the bytes that prove the previous one arrive at a relay. Only the slow disk and the delay before
  an apply have fixed lengths, longer than a reconnection; tests with one of them are marked slow.
- A relay holds bytes as a slow network does, in order, and changes none.
- Holding the bytes to a server is not enough for a lagging server: it accepts a session only when the leader has
  confirmed it, and earlier commits precede the confirmation in the same bytes.

Source: Curator's `CreateBuilderImpl.findProtectedNodeInForeground`; ZooKeeper's `CommitProcessor`, `LearnerHandler`
(REVALIDATE), `Leader.processSync`, `SyncRequestProcessor` (flushDelay).
"""

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace as replaced
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from harness.ensemble import Ensemble
from harness.processes import wait_until
from harness.zoo_cfg import View, write_zoo_cfg
from refimpl.recipes import Lock, keep_counting
from tests.node.orphan_world import FLUSH, LEADS, READS, TAKES, TICK, Curator, Relay, World
from tests.node.recipes import WAIT, Running
from tests.node.test_clients_curator import compiled
from tests.support.programs import need_kind


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return compiled("Orphan", tmp_path_factory, "-Xmx64m")


def route(ensemble: Ensemble, sid: int, view: View) -> Relay:
    """Return a relay between a server and the leader, whose address the server's `zoo.cfg` names."""
    leader = ensemble.member(LEADS)
    relay = Relay(leader.quorum_port)
    others = [ensemble.member(other) for other in ensemble.sids if other != LEADS]
    listed = (*others, replaced(leader, quorum_port=relay.port))
    write_zoo_cfg(replaced(view, members=listed), ensemble.member(sid), ensemble.directory / f"server-{sid}")
    return relay


@pytest.fixture(scope="module", params=["real", "node", pytest.param("slow disk", marks=pytest.mark.slow)])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Ensemble, dict[int, Relay], KazooClient]]:
    """The ensemble, its relays by the server behind them, and a client at the leader."""
    slow = request.param == "slow disk"
    kind = "real" if slow else request.param
    need_kind(kind)
    home: Path = tmp_path_factory.mktemp("orphan")
    with (
        Ensemble([kind] * 3, home, observers=set() if slow else {READS}, tick_time=TICK) as ensemble,
        ExitStack() as ends,
    ):
        relays = {}
        for sid, keys in (TAKES, {}), (READS, {"flushDelay": f"{FLUSH * 3000:.0f}"} if slow else {}):
            relays[sid] = route(ensemble, sid, View((), tick_time=TICK, extra=keys))
            ends.callback(relays[sid].close)
        for sids in (TAKES, LEADS), (READS,):
            for sid in sids:
                ensemble.start(sid)
            ensemble.wait_serving(sids)
        assert ensemble.leader() == LEADS
        reader = KazooClient(hosts=ensemble.address(LEADS))
        reader.start(timeout=WAIT)
        ends.callback(reader.close)
        ends.callback(reader.stop)
        yield ensemble, relays, reader


@pytest.fixture
def at(servers: tuple[Ensemble, dict[int, Relay], KazooClient], request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(*servers, "/" + "".join(filter(str.isalnum, request.node.name)))
    if "slow" in request.node.name:
        time.sleep(FLUSH)  # then earlier writes are on the disk, and new ones wait as long
    yield made
    for relay in (*made.relays.values(), made.client):
        relay.release()
    made.client.close()


@pytest.fixture
def curator(program: list[str], at: World) -> Iterator[Curator]:
    made = Curator(program, at)
    yield made
    at.client.release()
    made.end()


@pytest.fixture
def client(at: World) -> Iterator[KazooClient]:
    """A client with continuous numbering (`keep_counting`); without it, this race ends its thread at a real server."""
    made = keep_counting(KazooClient(hosts=at.client.address, timeout=30.0))
    made.start(timeout=WAIT)
    yield made
    at.client.release()
    made.stop()
    made.close()


def test_curator_creates_twice_and_waits_for_its_own_orphan(at: World, curator: Curator) -> None:
    at.relays[TAKES].hold()
    acquiring = curator.acquire()
    at.wait_created(TAKES, 1)
    at.lose()
    at.wait_created(TAKES, 2)
    at.relays[TAKES].release()
    (orphan, _), (own, _) = at.wait_znodes(2).items()
    assert orphan[:40] == own[:40]
    assert set(at.znodes().values()) == {curator.session}
    assert acquiring.runs()
    at.delete(orphan)
    assert acquiring.result() == "true"


def test_our_lock_creates_once_because_its_sync_waits(at: World, client: KazooClient) -> None:
    session, lock = client.client_id[0], Lock(client, at.path)
    at.relays[TAKES].hold()
    acquiring = Running(lock.acquire, WAIT)
    at.wait_created(TAKES, 1)
    at.lose()
    sync = struct.pack("!ii", 9, len(at.path)) + at.path.encode()
    wait_until(lambda: sync in at.client.asked, WAIT, "the sync")
    assert acquiring.runs()
    assert at.path.encode() not in at.client.asked.partition(sync)[2]
    at.relays[TAKES].release()
    assert acquiring.result() is True
    assert list(at.znodes().values()) == [session]


def test_a_server_that_lags_takes_the_session_only_when_it_has_heard_what_was_committed(
    at: World, curator: Curator
) -> None:
    at.relays[READS].hold()
    at.client.hold()
    acquiring = curator.acquire()
    (name,) = at.wait_znodes(1)
    at.lose()
    at.wait_valid(curator.session)
    assert acquiring.runs()
    at.relays[READS].release()
    assert acquiring.result() == "true"
    assert at.znodes() == {name: curator.session}


@pytest.mark.parametrize(
    ("takes", "reads"),
    [pytest.param(TAKES, LEADS, id="leader"), pytest.param(READS, READS, id="same server", marks=pytest.mark.slow)],
)
def test_the_search_waits_where_a_real_server_has_the_creation_of_the_session_in_its_queue_and_not_at_ours(
    at: World, curator: Curator, takes: int, reads: int
) -> None:
    if takes != TAKES:
        at.lose(takes)
        wait_until(lambda: struct.pack("!q", curator.session) in at.client.told, WAIT, "the session is back")
    at.relays[TAKES].hold()
    acquiring = curator.acquire()
    at.wait_created(TAKES, 1)
    at.lose(reads)
    wait_until(lambda: at.path.encode() in at.client.asked, WAIT, "the search")
    creations = 1 if at.ensemble.kind(reads) == "real" else 2
    at.wait_created(TAKES, creations)
    assert acquiring.runs()
    assert len(at.created(TAKES)) == creations
    at.relays[TAKES].release()
    assert list(at.wait_znodes(creations).values()) == [curator.session] * creations
    assert acquiring.runs() if creations == 2 else acquiring.result() == "true"


@pytest.mark.slow
def test_curator_creates_twice_where_what_was_committed_waits_to_be_applied_which_it_never_does_at_ours(
    at: World, curator: Curator
) -> None:
    at.relays[READS].hold()
    at.client.hold()
    at.burden()
    acquiring = curator.acquire()
    at.wait_znodes(1)
    at.lose()
    at.wait_valid(curator.session)
    at.relays[READS].release()
    if at.ensemble.kind(READS) == "real":
        (orphan, _), (own, _) = at.wait_znodes(2).items()
        assert orphan[:40] == own[:40]
        assert acquiring.runs()
    else:
        assert acquiring.result() == "true"
        assert len(at.znodes()) == 1
    assert set(at.znodes().values()) == {curator.session}


@pytest.mark.slow
def test_our_sync_waits_until_what_was_committed_is_applied(at: World, client: KazooClient) -> None:
    session, lock = client.client_id[0], Lock(client, at.path)
    at.relays[READS].hold()
    at.client.hold()
    at.burden()
    acquiring = Running(lock.acquire, WAIT)
    at.wait_znodes(1)
    at.lose()
    at.wait_valid(session)
    at.relays[READS].release()
    assert acquiring.result() is True
    assert list(at.znodes().values()) == [session]
