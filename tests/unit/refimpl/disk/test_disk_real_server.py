"""One data directory in a real ZooKeeper and in the node: each reads the other's files, including every counter.

The real server is 3.8.0, then 3.9.5.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.security import make_digest_acl

from harness import real
from harness.processes import Process, free_ports, wait_until, word
from harness.releases import DEBIAN, MAVEN
from refimpl.disk import database, epochs, snapshot
from refimpl.disk.epochs import Epochs
from refimpl.disk.storage import purge
from refimpl.disk.txnlog import TxnLog
from refimpl.tree import Tree
from refimpl.wire.txn import encode_txn
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, Acl, Id, stat_of
from spec.tree.txns import (
    Change,
    CloseSessionTxn,
    Create2Txn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
)
from tests.support.programs import need_kind

Seen = dict[str, tuple[bytes | None, tuple[Acl, ...], tuple[int, ...]]]
SESSION = 0x1234_5678_9ABC
LONG = 600_000
"""A session timeout, in milliseconds, longer than the test."""


@pytest.fixture(autouse=True, scope="module", params=[DEBIAN, MAVEN[-1]])
def release(request: pytest.FixtureRequest) -> str:
    """The release, if it is here."""
    need_kind("real", request.param)
    return str(request.param)


@contextmanager
def serving(base: Path, release: str, ensemble: bool = False, kill: bool = False) -> Iterator[KazooClient]:
    """A real server on this data directory, and a client of it; both are stopped at the end.

    With `ensemble` it is an ensemble of one server, with elections and epochs; `kill` ends it with SIGKILL.
    """
    port, quorum_port, election_port = free_ports(3)
    options = {
        "tickTime": 500,
        "dataDir": base,
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
        "snapCount": 20,
        "preAllocSize": 64,
        "extendedTypesEnabled": "true",
    }
    if ensemble:
        members = {"initLimit": 10, "syncLimit": 5, "standaloneEnabled": "false"}
        options |= members | {"server.1": f"127.0.0.1:{quorum_port}:{election_port}"}
    base.mkdir(exist_ok=True)
    (base / "myid").write_text("1")
    zoo_cfg = base / "zoo.cfg"
    zoo_cfg.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    process = Process(real.command(zoo_cfg, release=release), base, base / "server.log")
    process.start()
    client = KazooClient(f"127.0.0.1:{port}", timeout=10)
    try:
        wait_until(lambda: "Mode" in word(port, "srvr", 0.5), 90, "serves", process.log)
        client.start(timeout=60)
        yield client
    finally:
        if kill:
            process.kill()
        process.stop()
        client.stop()
        client.close()


def seen_by(client: KazooClient, path: str = "/") -> Seen:
    """Return the tree as a client of the real server sees it."""
    found: Seen = {}
    waiting = [path]
    while waiting:
        path = waiting.pop()
        data, stat = client.get(path)
        acls, _ = client.get_acls(path)
        found[path] = data, tuple(Acl(each.perms, Id(each.id.scheme, each.id.id)) for each in acls), tuple(stat)
        waiting += [f"{path.rstrip('/')}/{name}" for name in client.get_children(path)]
    return found


def held(tree: Tree) -> Seen:
    """Return the same for a tree of the node. Null data stays None here, while some clients return it as empty data."""
    found: Seen = {}
    for path, node in tree.preorder():
        stat = stat_of(node, len(tree.children(path)))
        found[path] = node.data, node.acl, (
            stat.czxid, stat.mzxid, stat.ctime, stat.mtime, stat.version, stat.cversion, stat.aversion,
            stat.ephemeral_owner, stat.data_length, stat.num_children, stat.pzxid,
        )  # fmt: skip
    return found


def exercise(client: KazooClient) -> None:
    """Cause every kind of transaction that a client can cause, with snapshots in between."""
    client.create("/app", b"hello")
    client.create("/app/empty", b"")
    client.create("/app/digest", b"x", acl=[make_digest_acl("bob", "secret", read=True, all=True)])
    client.add_auth("digest", "bob:secret")
    client.create("/app/member-", b"me", ephemeral=True, sequence=True)
    client.create("/app/seq-", b"", sequence=True)
    client.create("/ünï", "ö".encode())
    for number in range(30):
        client.set("/app", b"value %d" % number)
    with pytest.raises(NodeExistsError):
        client.create("/app", b"again")
    transaction = client.transaction()
    transaction.create("/multi", b"1")
    transaction.create("/multi/child", b"2")
    transaction.set_data("/app/empty", b"3")
    transaction.check("/app/empty", 1)
    transaction.commit()
    failing = client.transaction()
    failing.create("/never", b"")
    failing.delete("/nothing")
    failing.commit()
    client.set_acls("/multi", [make_digest_acl("bob", "secret", all=True)])
    client.create("/gone", b"")
    client.delete("/gone")
    for number in range(25):
        client.create(f"/app/child{number:02}", bytes(number))
        if number % 3 == 0:
            client.delete(f"/app/child{number:02}")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, release: str) -> tuple[Path, Seen, int]:
    """A directory that a real server has written, the last state that its client saw, and the client's session."""
    base = tmp_path_factory.mktemp("real")

    def snapshots() -> list[Path]:
        return [path for _, path in snapshot.newest_first(base / "version-2")]

    def another_write() -> bool:
        """Write again; return whether there are enough snapshots. The server skips one during the previous one."""
        client.set("/app", b"more")
        return len(snapshots()) > 4

    with serving(base, release) as client:
        exercise(client)
        wait_until(another_write, 90, "writes snapshots")
        seen, session = seen_by(client), client.client_id[0]
        # A server that is stopped leaves an unfinished snapshot as it is.
        wait_until(lambda: all(map(snapshot.looks_whole, snapshots())), 90, "ends its snapshots")
    return base, seen, session


@pytest.fixture
def copied(written: tuple[Path, Seen, int], tmp_path: Path) -> Path:
    shutil.copytree(written[0] / "version-2", tmp_path / "copy" / "version-2")
    return tmp_path / "copy"


def signed(session: int) -> int:
    return session - (1 << 64) if session >= 1 << 63 else session


def test_what_a_real_server_wrote_is_loaded_as_its_client_saw_it(written: tuple[Path, Seen, int], copied: Path) -> None:
    _, seen, session = written
    loaded = database.load(copied, copied)
    assert held(loaded.tree) == seen
    assert set(loaded.tree.sessions) == {signed(session)}
    assert loaded.snapshot_zxid > 0
    assert loaded.warnings == []


def test_every_snapshot_of_a_real_server_leads_to_the_same_tree(written: tuple[Path, Seen, int], copied: Path) -> None:
    files = [path for _, path in snapshot.newest_first(copied / "version-2")]
    assert len(files) >= 3
    for path in files:
        assert held(database.load(copied, copied).tree) == written[1]
        path.unlink()


def test_an_unfinished_snapshot_of_a_real_server_is_passed_over(written: tuple[Path, Seen, int], copied: Path) -> None:
    _, path = next(iter(snapshot.newest_first(copied / "version-2")))
    path.write_bytes(path.read_bytes()[:200])
    loaded = database.load(copied, copied)
    assert held(loaded.tree) == written[1]
    assert path.name in loaded.warnings[0]


def test_a_purged_directory_of_a_real_server_loads_as_before(written: tuple[Path, Seen, int], copied: Path) -> None:
    assert purge(copied, copied, 3)
    assert held(database.load(copied, copied).tree) == written[1]


def changes(zxid: int) -> Iterator[tuple[int, Change]]:
    """Yield transactions of every type, as a leader would create them."""
    closed = SESSION + 1
    acl = (Acl(31, Id("world", "anyone")), Acl(1, Id("ip", "10.0.0.0/8")))
    records: tuple[tuple[int, Any], ...] = (
        (SESSION, CreateSessionTxn(LONG)),
        (closed, CreateSessionTxn(LONG)),
        (SESSION, CreateTxn("/ours", b"data", OPEN_ACL_UNSAFE, False, 1001)),
        (SESSION, Create2Txn("/ours/ephemeral", b"", acl, True, 1)),
        (closed, CreateTxn("/ours/closed", b"", OPEN_ACL_UNSAFE, True, 2)),
        (SESSION, CreateContainerTxn("/ours/container", b"c", OPEN_ACL_UNSAFE, 3)),
        (SESSION, CreateTtlTxn("/ours/ttl", b"t", OPEN_ACL_UNSAFE, 4, LONG)),
        (SESSION, CreateTxn("/ours/null", None, READ_ACL_UNSAFE, False, 5)),
        (SESSION, SetDataTxn("/ours", b"more data", 1)),
        (SESSION, SetAclTxn("/ours", acl, 1)),
        (SESSION, ErrorTxn(-101)),
        (SESSION, CreateTxn("/ours/deleted", b"", OPEN_ACL_UNSAFE, False, 6)),
        (SESSION, DeleteTxn("/ours/deleted")),
        (SESSION, MultiTxn((CreateTxn("/ours/m", b"1", OPEN_ACL_UNSAFE, False, 7), SetDataTxn("/ours/m", b"2", 1)))),
        (SESSION, MultiTxn((ErrorTxn(0), ErrorTxn(-110)))),
        (closed, CloseSessionTxn(("/ours/closed",))),
    )
    for number, (session, record) in enumerate(records, 1):
        yield zxid + number, Change(session, number, 1_700_000_000_000 + number, record)


def append(base: Path, loaded: database.LoadedDatabase) -> tuple[TxnLog, int]:
    """Log and apply our transactions after the loaded ones."""
    log = TxnLog(base / "version-2", preallocation=65536)
    zxid = loaded.last_zxid
    for zxid, change in changes(loaded.last_zxid):
        log.append(zxid, encode_txn(zxid, change))
        loaded.tree.carry_out(apply(loaded.tree, zxid, change).operations)
    log.commit()
    return log, zxid


def without_null_data(seen: Seen) -> Seen:
    """Return the tree with null data as empty: not every version of the client distinguishes them."""
    return {path: (data or b"", acl, stat) for path, (data, acl, stat) in seen.items()}


@pytest.mark.parametrize("saved", [False, True], ids=["log", "snapshot and log"])
def test_a_real_server_serves_what_we_wrote(tmp_path: Path, release: str, saved: bool) -> None:
    base = tmp_path / "ours"
    loaded = database.load(base, base)
    log, zxid = append(base, loaded)
    if saved:
        snapshot.save(base / "version-2", loaded.tree, zxid)
        log.roll()
    last = Change(SESSION, 99, 5, SetDataTxn("/ours", b"the last", 2))
    log.append(zxid + 1, encode_txn(zxid + 1, last))
    log.close()
    loaded.tree.carry_out(apply(loaded.tree, zxid + 1, last).operations)
    with serving(base, release) as client:
        assert without_null_data(seen_by(client)) == without_null_data(held(loaded.tree))


def test_a_real_server_goes_on_after_us_and_we_after_it(copied: Path, release: str) -> None:
    loaded = database.load(copied, copied)
    log, _ = append(copied, loaded)
    log.close()
    with serving(copied, release) as client:
        path = client.create("/back", b"again")
        assert client.exists("/ours/ephemeral").ephemeralOwner == SESSION
        client.create("/ours/by the real one", path.encode())
    again = database.load(copied, copied)
    assert again.tree.children("/ours") == {"ephemeral", "container", "ttl", "null", "m", "by the real one"}
    assert again.tree.node("/back") is not None
    assert again.tree.ephemerals(SESSION) == {"/ours/ephemeral"}


def test_a_real_server_reads_a_log_that_we_cut_after_a_crash(copied: Path, release: str) -> None:
    log = max((copied / "version-2").glob("log.*"), key=lambda path: int(path.suffix[1:], 16))
    whole = log.read_bytes().rstrip(b"\0")
    log.write_bytes(whole[:-10] + bytes(1000))
    # A snapshot is fuzzy: one begun before the cut change may hold it. The first one was taken without changes.
    for _, path in list(snapshot.newest_first(log.parent))[:-1]:
        path.unlink()
    loaded = database.load(copied, copied)
    assert len(loaded.warnings) == 1
    written, _ = append(copied, loaded)
    written.close()
    with serving(copied, release) as client:
        assert client.exists("/ours/m").version == 1


def test_an_ensemble_of_a_real_server_that_was_killed_goes_on_after_us(tmp_path: Path, release: str) -> None:
    base = tmp_path / "ensemble"
    with serving(base, release, ensemble=True, kill=True) as client:
        exercise(client)
        seen = seen_by(client)
    loaded = database.load(base, base)
    assert held(loaded.tree) == seen
    assert epochs.load(base / "version-2", loaded.last_zxid) == Epochs(1, 1)
    log, _ = append(base, loaded)
    log.close()
    epochs.save_accepted(base / "version-2", 5)
    epochs.save_current(base / "version-2", 5)
    with serving(base, release, ensemble=True) as client:
        assert client.exists("/ours/m").version == 1
        assert client.exists(client.create("/back")).czxid >> 32 == 6
    again = database.load(base, base)
    assert again.last_zxid >> 32 == 6
    assert epochs.load(base / "version-2", again.last_zxid) == Epochs(6, 6)
    assert again.tree.node("/back") is not None
