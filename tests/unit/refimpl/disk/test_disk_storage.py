"""A snapshot in the background, a truncation before its end, and the advice on a damaged disk."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from refimpl.disk.files import DataError
from refimpl.disk.remedies import Damage, Others, remedy
from refimpl.disk.snapshot import SnapshotFile
from refimpl.disk.storage import Storage
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.txns import Change, CreateTxn
from spec.txn import Txn


def change(zxid: int) -> Change:
    return Change(5, 1, zxid * 10, CreateTxn(f"/n{zxid}", b"x", OPEN_ACL_UNSAFE, False, zxid))


@pytest.mark.parametrize("syncing", [False, True], ids=["while it is written", "while it is synced"])
def test_a_truncation_gives_up_the_snapshot_in_the_background(
    syncing: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot begins at 2, contains a part of 3, and would get its name after the truncation to 2."""
    began, truncated, seal = threading.Event(), threading.Event(), SnapshotFile.seal

    def slow(file: SnapshotFile, last: int) -> None:
        began.set()
        assert truncated.wait(30)
        seal(file, last)

    async def scene() -> set[str]:
        settings: Any = SimpleNamespace(
            data_dir=tmp_path, log_dir=tmp_path, snap_count=2, preallocation=0, snapshots_kept=3, trusts_empty=False
        )
        storage = Storage(settings)
        tree = storage.load().tree
        monkeypatch.setattr(SnapshotFile, "seal", slow)
        storage.start(lambda _: None, lambda error: pytest.fail(str(error)))
        for zxid in (1, 2, 3):
            storage.append(Txn(zxid, change(zxid)))
            if zxid == 3:
                assert storage.is_snapshot_due
                storage.snapshot(tree, 2, lambda: 3)
            tree.carry_out(apply(tree, zxid, change(zxid)).operations)
        while syncing and not began.is_set():
            await asyncio.sleep(0.001)
        storage.truncate(2)
        truncated.set()
        while storage.is_writing_snapshot:
            await asyncio.sleep(0.001)
        storage.stop()
        return {path.name for path in (tmp_path / "version-2").iterdir()}

    assert asyncio.run(scene()) == {"snapshot.0", "log.1"}


@pytest.mark.parametrize("distributed", [False, True], ids=["standalone", "in an ensemble"])
@pytest.mark.parametrize("damage", [Damage.RECORDS, Damage.NO_SNAPSHOT])
def test_the_advice_on_a_damaged_disk_knows_whether_there_are_other_servers(
    distributed: bool, damage: Damage, tmp_path: Path
) -> None:
    async def scene() -> None:
        settings: Any = SimpleNamespace(
            data_dir=tmp_path,
            log_dir=tmp_path,
            snap_count=9,
            preallocation=0,
            trusts_empty=False,
            distributed=distributed,
        )
        storage = Storage(settings)
        storage.load()
        storage.start(lambda _: None, lambda error: pytest.fail(str(error)))
        for zxid in (1, 2, 3):
            storage.append(Txn(zxid, change(zxid)))
        storage.flush()
        storage.stop()
        if damage is Damage.NO_SNAPSHOT:
            (tmp_path / "version-2" / "snapshot.0").unlink()
        else:
            path = tmp_path / "version-2" / "log.1"
            path.write_bytes(path.read_bytes().replace(b"/n2", b"/nX"))
        Storage(settings).load()

    with pytest.raises(DataError) as refused:
        asyncio.run(scene())
    others = Others.UNKNOWN if distributed else Others.NONE
    assert str(refused.value).endswith(f"; {remedy(damage, others)}")
