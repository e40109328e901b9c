"""Our node among real ZooKeeper servers, 3.8.0 and 3.9.5: as follower, observer and leader, by DIFF, TRUNC and SNAP.

It also replaces a real server, with that server's own data directory.
"""

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat

from harness.ensemble import Ensemble
from harness.processes import wait_until
from refimpl.disk.logreader import read
from tests.node.conftest import QUICK_WITH_DEBIANS, launching
from tests.node.connecting import WAIT, client_at

Launch = Callable[..., Ensemble]


@pytest.fixture
def launch(tmp_path_factory: pytest.TempPathFactory, release: str) -> Iterator[Launch]:
    """A launcher whose servers end with their test: 47 servers at the end of the module took memory and time."""
    with launching(tmp_path_factory) as start:
        yield partial(start, release=release)


def tree_of(ensemble: Ensemble, sid: int) -> dict[str, tuple[bytes, ZnodeStat]]:
    """Return the znodes below `/` of one server, caught up with the leader."""
    found: dict[str, tuple[bytes, ZnodeStat]] = {}

    def walk(asking: KazooClient, path: str) -> None:
        found[path] = asking.get(path)
        for name in asking.get_children(path):
            if path != "/" or name != "zookeeper":
                walk(asking, f"{path.rstrip('/')}/{name}")

    with client_at(ensemble, sid) as asking:
        asking.sync("/")
        walk(asking, "/")
    return found


def same_everywhere(ensemble: Ensemble) -> dict[str, tuple[bytes, ZnodeStat]]:
    """Return the tree of all servers, Stat included; assert that it is the same everywhere."""
    first, *others = (tree_of(ensemble, sid) for sid in ensemble.running)
    for other in others:
        assert other == first
    return first


def logged(ensemble: Ensemble, sid: int) -> list[int]:
    """Return the zxids in the log of a stopped server."""
    return [zxid for zxid, _ in read(ensemble.data(sid) / "version-2", 0, notes=[])]


def how_it_caught_up(ensemble: Ensemble, sid: int) -> str:
    """Return DIFF, TRUNC or SNAP, from the log of a real learner about its last leader."""
    text = (ensemble.directory / f"server-{sid}" / "log.txt").read_text("utf-8", "replace")
    said = re.findall(r"Getting a (diff|snapshot) from|Truncating (log) to get in sync", text)
    return {"diff": "DIFF", "snapshot": "SNAP", "": "TRUNC"}[said[-1][0]]


@pytest.mark.parametrize(
    ("kinds", "observers", "leader"),
    [
        pytest.param(["node", "real", "real"], [], "real", id="it follows a real leader"),
        pytest.param(["real", "real", "node"], [], "node", id="it leads real followers"),
        pytest.param(["real", "real", "real", "node"], [4], "real", id="it observes a real leader"),
        pytest.param(["real", "node", "node", "real"], [4], "node", id="a real observer and a real follower"),
    ],
)
def test_writes_through_every_server_are_seen_at_every_server(
    launch: Launch, kinds: list[str], observers: list[int], leader: str
) -> None:
    ensemble = launch(kinds, observers=observers, first=3)
    assert ensemble.kind(ensemble.leader()) == leader
    for sid in ensemble.sids:
        with client_at(ensemble, sid) as writing:
            writing.create(f"/of-{sid}", b"first")
            writing.set(f"/of-{sid}", b"second")
            writing.create(f"/of-{sid}/n-", sequence=True)
            writing.create(f"/of-{sid}/gone", b"", ephemeral=True)
    tree = same_everywhere(ensemble)
    for sid in ensemble.sids:
        assert tree[f"/of-{sid}"][0] == b"second"
        assert f"/of-{sid}/n-0000000000" in tree
        assert f"/of-{sid}/gone" not in tree


@QUICK_WITH_DEBIANS
@pytest.mark.parametrize("kinds", [["real", "node", "node"], ["node", "real", "node"], ["node", "node", "real"]])
def test_the_rest_go_on_when_the_leader_is_killed_and_it_comes_back(launch: Launch, kinds: list[str]) -> None:
    ensemble = launch(kinds)
    with client_at(ensemble, *ensemble.sids) as writing:
        writing.create("/before", b"")
    lost = ensemble.leader()
    ensemble.kill(lost)
    left = [sid for sid in ensemble.sids if sid != lost]
    ensemble.wait_serving(left)
    with client_at(ensemble, *left) as writing:
        writing.create("/meanwhile", b"")
    ensemble.start(lost)
    ensemble.wait_serving()
    assert {"/before", "/meanwhile"} <= set(same_everywhere(ensemble))


@pytest.mark.parametrize(("leader", "learner"), [("node", "real"), ("real", "node")])
def test_a_learner_that_was_away_gets_a_diff(launch: Launch, leader: str, learner: str) -> None:
    ensemble = launch([learner, leader, leader])
    with client_at(ensemble, 2) as writing:
        writing.create("/before", b"")
        ensemble.stop(1)
        for number in range(5):
            writing.create(f"/missed-{number}", b"")
    ensemble.start(1)
    ensemble.wait_serving()
    if learner == "real":
        assert how_it_caught_up(ensemble, 1) == "DIFF"
    assert "/missed-4" in same_everywhere(ensemble)


@pytest.mark.parametrize(("leader", "learner"), [("node", "real"), ("real", "node")])
def test_a_learner_with_an_empty_disk_gets_a_snapshot(launch: Launch, leader: str, learner: str) -> None:
    ensemble = launch([learner, leader, leader])
    with client_at(ensemble, 2) as writing:
        for number in range(50):
            writing.create(f"/znode-{number}", b"x" * 1000)
        ensemble.stop(1)
        shutil.rmtree(ensemble.data(1) / "version-2")
        writing.set("/znode-0", b"changed")
    ensemble.start(1)
    ensemble.wait_serving()
    if learner == "real":
        assert how_it_caught_up(ensemble, 1) == "SNAP"
    assert same_everywhere(ensemble)["/znode-0"][0] == b"changed"


@pytest.mark.parametrize(("leader", "learner"), [("node", "real"), ("real", "node")])
def test_what_only_a_dead_leader_has_logged_is_truncated(launch: Launch, leader: str, learner: str) -> None:
    ensemble = launch([leader, leader, learner], first=3)
    assert ensemble.leader() == 3
    with client_at(ensemble, 3) as writing:
        writing.create("/kept", b"")
        # The pause keeps the others from acknowledging the next proposal, and from closing connections.
        ensemble.pause(1)
        ensemble.pause(2)
        writing.create_async("/lost", b"")
        wait_until(lambda: has_logged(ensemble, b"/lost"), WAIT, "the leader has logged what nobody acknowledges")
        # Before the client stops: the end of its session would wait for an acknowledgement too.
        ensemble.kill(3)
    for sid in (1, 2):
        ensemble.kill(sid)
    alone = logged(ensemble, 3)[-1]
    ensemble.start(1)
    ensemble.start(2)
    ensemble.wait_serving([1, 2])
    ensemble.start(3)
    ensemble.wait_serving()
    if learner == "real":
        assert how_it_caught_up(ensemble, 3) == "TRUNC"
    assert "/lost" not in same_everywhere(ensemble)
    ensemble.stop(3)
    assert alone not in logged(ensemble, 3)


def has_logged(ensemble: Ensemble, path: bytes) -> bool:
    """Whether the bytes of a path are in a log of server 3."""
    return any(path in file.read_bytes() for file in (ensemble.data(3) / "version-2").glob("log.*"))


def test_a_node_takes_the_place_of_a_real_server_and_gives_it_back(launch: Launch) -> None:
    ensemble = launch(["real", "real", "real"])
    with client_at(ensemble, *ensemble.sids) as writing:
        writing.create("/by-real-servers", b"1")
        for number in range(20):
            writing.set("/by-real-servers", b"%d" % number)
    ensemble.replace(2, "node")
    ensemble.wait_serving()
    with client_at(ensemble, 2) as writing:
        assert writing.get("/by-real-servers")[0] == b"19"
        writing.create("/by-a-node", b"", makepath=True)
        writing.create("/by-a-node/n-", sequence=True)
    ensemble.replace(2, "real")
    ensemble.wait_serving()
    with client_at(ensemble, 2) as writing:
        assert writing.create("/by-a-node/n-", sequence=True) == "/by-a-node/n-0000000001"
    assert same_everywhere(ensemble)["/by-real-servers"][1].version == 20


@QUICK_WITH_DEBIANS
def test_every_server_in_turn_changes_its_kind_while_clients_go_on(launch: Launch) -> None:
    ensemble = launch(["real", "real", "real"])
    with client_at(ensemble, *ensemble.sids) as writing:
        writing.create("/count", b"0")
        for kind in ("node", "real"):
            for sid in ensemble.sids:
                ensemble.replace(sid, kind)
                ensemble.wait_serving()
                writing.retry(writing.set, "/count", f"{kind} {sid}".encode())
    assert same_everywhere(ensemble)["/count"][0] == b"real 3"


@QUICK_WITH_DEBIANS
def test_a_real_follower_that_joins_under_writes_gets_no_commit_too_early(launch: Launch) -> None:
    """ZOOKEEPER-4394: a 3.8.0 follower throws a NullPointerException at a COMMIT between NEWLEADER and UPTODATE.

    Real server 1 leaves and comes back while ten clients of the leader write, so a proposal is nearly always
    outstanding.
    """
    ensemble = launch(["real", "node", "node"])
    leader = ensemble.leader()
    assert ensemble.kind(leader) == "node"
    stopping, written = threading.Event(), dict[str, int]()

    def write(path: str) -> None:
        with client_at(ensemble, leader) as writing:
            writing.create(path)
            while not stopping.is_set():
                written[path] = writing.set(path, b"").version

    threads = [threading.Thread(target=write, args=(f"/writer-{number}",)) for number in range(10)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            ensemble.kill(1)
            for log in (ensemble.data(1) / "version-2").glob("log.*"):
                if not log.stat().st_size:  # killed before it wrote the header, a server of 3.8.0 never starts again
                    log.unlink()
            ensemble.start(1)
            ensemble.wait_serving([1])
    finally:
        stopping.set()
        for thread in threads:
            thread.join(WAIT)
    said = (ensemble.directory / "server-1" / "log.txt").read_text("utf-8", "replace")
    assert "NullPointerException" not in said
    tree = same_everywhere(ensemble)
    assert {path: tree[path][1].version for path in written} == written
    assert len(written) == len(threads)
