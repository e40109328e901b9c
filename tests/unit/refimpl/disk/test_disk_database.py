"""Loading a data directory: snapshot and log together, fall-backs, gaps, truncation."""

import gc
import shutil
from pathlib import Path

import pytest

from refimpl.disk import database, snapshot
from refimpl.disk.body import body_chunks
from refimpl.disk.files import DataError, TruncationError
from refimpl.disk.logreader import DamagedLogError
from refimpl.disk.txnlog import TxnLog
from refimpl.tree import Tree
from refimpl.wire.txn import encode_txn
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, Znode
from spec.tree.store import Remove
from spec.tree.txns import (
    Change,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetAclTxn,
    SetDataTxn,
)

EPOCH_2 = 0x2_0000_0000


def change(zxid: int) -> Change:
    return Change(5, 1, zxid * 10, CreateTxn(f"/n{zxid}", b"x", OPEN_ACL_UNSAFE, False, zxid & 0xFF))


class Directory:
    """A data directory, and the tree that results from its transactions."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.files = base / "version-2"
        self.tree = Tree()
        self.files.mkdir()

    def log(self, *zxids: int) -> None:
        log = TxnLog(self.files, preallocation=4096)
        for zxid in zxids:
            log.append(zxid, encode_txn(zxid, change(zxid)))
            self.tree.carry_out(apply(self.tree, zxid, change(zxid)).operations)
        log.close()

    def snapshot(self, zxid: int) -> Path:
        return snapshot.save(self.files, self.tree, zxid)

    def changed(self, zxid: int, record: object) -> None:
        log = TxnLog(self.files, preallocation=4096)
        made = Change(5, 1, zxid * 10, record)  # type: ignore[arg-type]
        log.append(zxid, encode_txn(zxid, made))
        self.tree.carry_out(apply(self.tree, zxid, made).operations)
        log.close()

    def fuzzy(self, zxid: int, last: int | None) -> Path:
        """Write a snapshot of the present tree that was begun at `zxid`; `last` is recorded at its end."""
        file = snapshot.SnapshotFile(self.files, zxid)
        for piece in body_chunks(self.tree, zxid):
            file.write(piece)
        file.seal(zxid if last is None else last)
        path = file.publish()
        if last is None:  # as before ZooKeeper 3.6: only the first seal
            path.write_bytes(path.read_bytes()[:-33])
        return path

    def load(self) -> database.LoadedDatabase:
        return database.load(self.base, self.base)

    def names(self) -> set[str]:
        return {path.name for path in self.files.iterdir()}


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def nodes(tree: Tree) -> dict[str, Znode]:
    return dict(tree.preorder())


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-60])


def test_a_missing_directory_becomes_that_of_a_new_server(tmp_path: Path) -> None:
    loaded = database.load(tmp_path / "data", tmp_path / "logs")
    assert set(nodes(loaded.tree)) == {"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}
    assert (loaded.snapshot_zxid, loaded.last_zxid, list(loaded.recent), loaded.warnings) == (0, 0, [], [])
    assert [path.name for path in (tmp_path / "data" / "version-2").iterdir()] == ["snapshot.0"]
    assert (tmp_path / "logs" / "version-2").is_dir()
    assert nodes(database.load(tmp_path / "data", tmp_path / "logs").tree) == nodes(loaded.tree)


def test_the_log_is_applied_after_the_newest_snapshot(directory: Directory) -> None:
    directory.snapshot(0)
    directory.log(1, 2, 3)
    directory.snapshot(3)
    directory.log(4, 5)
    loaded = directory.load()
    assert nodes(loaded.tree) == nodes(directory.tree)
    assert (loaded.snapshot_zxid, loaded.last_zxid) == (3, 5)
    assert list(loaded.recent) == [(4, change(4)), (5, change(5))]


def test_a_log_that_goes_on_over_a_snapshot_is_applied_from_there(directory: Directory) -> None:
    directory.snapshot(0)
    directory.log(1, 2)
    directory.snapshot(2)
    path = directory.files / "log.1"
    directory.log(3, 4)
    path.write_bytes(path.read_bytes() + (directory.files / "log.3").read_bytes()[16:])
    (directory.files / "log.3").unlink()
    assert (directory.load().last_zxid, nodes(directory.load().tree)) == (4, nodes(directory.tree))


def test_sessions_and_failed_requests_count(directory: Directory) -> None:
    directory.snapshot(0)
    log = TxnLog(directory.files)
    records = (CreateSessionTxn(4000), CreateSessionTxn(5000), ErrorTxn(-101), CloseSessionTxn(()))
    for zxid, (session, record) in enumerate(zip((7, 8, 7, 7), records, strict=True), 1):
        log.append(zxid, encode_txn(zxid, Change(session, 0, 0, record)))
    log.close()
    loaded = directory.load()
    assert (loaded.tree.sessions, loaded.last_zxid) == ({8: 5000}, 4)


def test_only_the_last_transactions_are_kept(directory: Directory) -> None:
    directory.snapshot(0)
    directory.log(*range(1, 601))
    assert [zxid for zxid, _ in directory.load().recent] == list(range(101, 601))


def test_of_large_transactions_as_many_are_kept_as_fit(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty have equal sizes, and ten and a half fit. With room for fewer than five, five are kept."""
    directory.snapshot(100)
    directory.log(*range(101, 121))
    each = len(encode_txn(101, change(101)))
    monkeypatch.setattr(database, "LEAST", 5)
    for room, first in ((10 * each + each // 2, 111), (each, 116)):
        monkeypatch.setattr(database, "BYTES", room)
        loaded = directory.load()
        assert [zxid for zxid, _ in loaded.recent] == list(range(first, 121))
        assert loaded.sizes.total == each * len(loaded.recent)


def test_a_damaged_snapshot_is_passed_over_if_the_log_leads_there(directory: Directory) -> None:
    directory.snapshot(0)
    directory.log(1, 2, 3)
    damage(directory.snapshot(2))
    loaded = directory.load()
    assert (loaded.snapshot_zxid, loaded.last_zxid, nodes(loaded.tree)) == (0, 3, nodes(directory.tree))
    assert "snapshot.2: the file ends" in loaded.warnings[0]


def test_a_damaged_snapshot_of_a_new_leader_is_passed_over(directory: Directory) -> None:
    directory.snapshot(0)
    directory.log(1, 2)
    damage(directory.snapshot(EPOCH_2))
    directory.log(EPOCH_2 + 1)
    assert directory.load().last_zxid == EPOCH_2 + 1


def test_a_damaged_snapshot_that_the_log_does_not_reach_is_refused(directory: Directory) -> None:
    directory.snapshot(0)
    directory.log(1, 2)
    damage(directory.snapshot(EPOCH_2 + 7))
    with pytest.raises(DataError, match=r"\.200000007 cannot be read, and the log does not lead from snapshot\.0"):
        directory.load()


def test_without_a_readable_snapshot_it_is_refused(directory: Directory) -> None:
    damage(directory.snapshot(0))
    with pytest.raises(DataError, match=r"no snapshot can be read \(.*snapshot\.0: the file ends"):
        directory.load()


def test_a_log_without_a_snapshot_is_read_if_it_is_trusted_as_in_3_9_5(directory: Directory) -> None:
    """Data of 3.4.14 before its first snapshot: 3.9.5 with `snapshot.trust.empty` has all of it, and `config`."""
    directory.log(1, 2)
    refused = directory.names()
    with pytest.raises(DataError, match=r"start once with snapshot\.trust\.empty=true") as raised:
        directory.load()
    assert "remove" not in str(raised.value)
    assert directory.names() == refused

    loaded = database.load(directory.base, directory.base, trusts_empty=True)
    assert nodes(loaded.tree) == nodes(directory.tree)
    assert loaded.last_zxid == 2
    assert "no snapshot was found" in loaded.warnings[0]
    assert nodes(directory.load().tree) == nodes(directory.tree)


def test_a_trusted_log_that_begins_later_is_refused_and_gets_no_snapshot(directory: Directory) -> None:
    directory.log(7, 8)
    with pytest.raises(DamagedLogError, match="transactions are missing"):
        database.load(directory.base, directory.base, trusts_empty=True)
    assert directory.names() == {"log.7"}


def test_a_snapshot_of_3_4_has_no_configuration_and_a_standalone_server_adds_none(directory: Directory) -> None:
    """3.9.5 answers getData of /zookeeper/config with NoNode on such data."""
    directory.tree.carry_out([Remove("/zookeeper/config")])
    directory.snapshot(0)
    assert directory.load().tree.children("/zookeeper") == {"quota"}


def test_a_gap_between_snapshot_and_log_is_refused(directory: Directory) -> None:
    directory.snapshot(2)
    directory.log(4, 5)
    with pytest.raises(DamagedLogError, match=r"behind snapshot\.2 is 0x4, expected 0x3 or the first of a later epoch"):
        directory.load()


@pytest.mark.parametrize("suffix", ["gz", "snappy"])
def test_a_compressed_snapshot_is_told_of(directory: Directory, suffix: str) -> None:
    path = directory.snapshot(0)
    (directory.files / f"snapshot.5.{suffix}").write_bytes(path.read_bytes())
    assert "a compressed snapshot, which is not read" in directory.load().warnings[0]
    path.unlink()
    with pytest.raises(DataError, match=rf"snapshot\.5\.{suffix}: a compressed snapshot"):
        directory.load()


def test_a_transaction_that_cannot_be_understood_is_refused(directory: Directory) -> None:
    directory.snapshot(0)
    log = TxnLog(directory.files)
    log.append(1, encode_txn(1, change(1)) + b"?")
    log.close()
    with pytest.raises(DamagedLogError, match=r"transaction 0x1 cannot be understood: "):
        directory.load()


def test_exchanged_directories_are_refused(tmp_path: Path) -> None:
    data, logs = tmp_path / "data", tmp_path / "logs"
    database.load(data, logs)
    with pytest.raises(DataError, match=r"snapshot\.0: does not belong into dataLogDir"):
        database.load(logs, data)


def test_a_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("?")
    with pytest.raises(DataError, match=r"data/version-2: cannot be created"):
        database.load(tmp_path / "data", tmp_path / "data")


def test_collection_of_garbage_goes_on_afterwards(directory: Directory) -> None:
    directory.snapshot(0)
    directory.load()
    assert gc.isenabled()


def test_truncating_gives_the_state_of_that_zxid(directory: Directory) -> None:
    directory.snapshot(0)
    directory.log(1, 2)
    then = nodes(directory.tree)
    directory.snapshot(2)
    directory.log(3, 4)
    directory.snapshot(4)
    database.truncate(directory.base, TxnLog(directory.files), 2)
    loaded = directory.load()
    assert (loaded.last_zxid, nodes(loaded.tree)) == (2, then)
    assert directory.names() == {"snapshot.0", "snapshot.2", "log.1"}


def test_truncating_to_a_snapshot_below_the_log_leaves_no_log(directory: Directory) -> None:
    directory.snapshot(7)
    directory.log(8, 9)
    database.truncate(directory.base, TxnLog(directory.files), 7)
    assert (directory.load().last_zxid, directory.names()) == (7, {"snapshot.7"})


def test_truncating_to_the_begin_of_an_epoch_drops_all_transactions_of_it(directory: Directory) -> None:
    """The leader of a later epoch has nothing of this one but its number: epoch:0, which no transaction has."""
    directory.snapshot(0)
    directory.log(1, 2)
    then = nodes(directory.tree)
    directory.log(EPOCH_2 + 1, EPOCH_2 + 2)
    database.truncate(directory.base, TxnLog(directory.files), EPOCH_2)
    loaded = directory.load()
    assert (loaded.last_zxid, nodes(loaded.tree)) == (2, then)


@pytest.mark.parametrize("zxid", [3, 6, EPOCH_2])
def test_truncating_to_what_the_disk_does_not_lead_to_changes_nothing(directory: Directory, zxid: int) -> None:
    directory.snapshot(4)
    directory.log(5)
    before = directory.names()
    with pytest.raises(TruncationError, match=rf"cannot truncate to 0x{zxid:x}: ") as refused:
        database.truncate(directory.base, TxnLog(directory.files), zxid)
    assert refused.value.below_snapshot is (zxid < 4)
    assert (directory.names(), directory.load().last_zxid) == (before, 5)


BEYOND = {
    "a changed znode": SetDataTxn("/n1", b"later", 1),
    "a deleted znode": DeleteTxn("/n1"),
    "a changed ACL": SetAclTxn("/n1", READ_ACL_UNSAFE, 1),
}


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "not recorded"])
@pytest.mark.parametrize("beyond", BEYOND)
def test_truncating_leaves_no_snapshot_with_later_changes(beyond: str, recorded: bool, directory: Directory) -> None:
    """The expected tree is the result of the same transactions without any later one.

    A snapshot begun at 2 contains the change of 3. A truncation to 2 must go back to snapshot.0 and the log.
    """
    directory.snapshot(0)
    directory.log(1, 2)
    then = nodes(directory.tree)
    directory.changed(3, BEYOND[beyond])
    directory.fuzzy(2, last=3 if recorded else None)

    database.truncate(directory.base, TxnLog(directory.files), 2)

    loaded = directory.load()
    assert (loaded.last_zxid, nodes(loaded.tree), loaded.warnings) == (2, then, [])
    assert "snapshot.2" not in directory.names()


def test_truncating_keeps_a_snapshot_whose_changes_stay(directory: Directory) -> None:
    directory.snapshot(0)
    directory.log(1, 2, 3)
    then = nodes(directory.tree)
    directory.fuzzy(2, last=3)
    directory.log(4)

    database.truncate(directory.base, TxnLog(directory.files), 3)

    assert nodes(directory.load().tree) == then
    assert "snapshot.2" in directory.names()


@pytest.mark.parametrize("logged", [(), (1,)], ids=["no other snapshot", "a gap behind the older snapshot"])
def test_truncating_is_refused_where_only_later_changes_are_left(logged: tuple[int], directory: Directory) -> None:
    """No file is removed: without its data this server would lose transactions that it has acknowledged."""
    if logged:
        directory.snapshot(0)
    directory.log(1, 2)
    directory.changed(3, BEYOND["a changed znode"])
    directory.fuzzy(2, last=3)
    (directory.files / "log.1").unlink()
    before = directory.names()
    with pytest.raises(DataError, match=r"cannot truncate to 0x2: snapshot.2 may hold later changes"):
        database.truncate(directory.base, TxnLog(directory.files), 2)
    assert directory.names() == before


def test_what_zookeeper_truncated_does_not_come_back_from_its_snapshot(directory: Directory) -> None:
    """ZooKeeper cuts its log and keeps its snapshots (`FileTxnSnapLog.truncateLog`)."""
    directory.snapshot(0)
    directory.log(1, 2)
    then = nodes(directory.tree)
    directory.changed(3, BEYOND["a deleted znode"])
    directory.fuzzy(2, last=3)
    TxnLog(directory.files).truncate(2)

    loaded = directory.load()

    assert (loaded.last_zxid, nodes(loaded.tree)) == (2, then)
    assert "snapshot.2: holds changes up to 0x3, and the log ends at 0x2" in loaded.warnings[0]


def test_a_snapshot_beyond_the_log_is_used_where_nothing_else_is_left(directory: Directory) -> None:
    """A leader streams its tree while it changes: a learner that crashes before it has the log has only this one."""
    directory.log(1, 2)
    directory.changed(3, BEYOND["a changed znode"])
    directory.fuzzy(2, last=3)
    for path in directory.files.glob("log.*"):
        path.unlink()

    loaded = directory.load()

    assert (loaded.last_zxid, nodes(loaded.tree)["/n1"].data, len(loaded.warnings)) == (2, b"later", 1)


def test_a_data_directory_of_zookeeper_3_9_is_loaded(tmp_path: Path) -> None:
    """The znodes are those that the client wrote; see `golden/disk` and test_disk_snapshot.py."""
    shutil.copytree(Path(__file__).parents[2] / "golden" / "disk" / "zookeeper-3.9.5", tmp_path / "version-2")
    loaded = database.load(tmp_path, tmp_path)
    assert (loaded.snapshot_zxid, loaded.last_zxid, loaded.warnings) == (7, 7, [])
    (tmp_path / "version-2" / "snapshot.7").unlink()
    replayed = database.load(tmp_path, tmp_path)
    assert (replayed.snapshot_zxid, replayed.last_zxid) == (0, 7)
    assert nodes(replayed.tree) == nodes(loaded.tree)
