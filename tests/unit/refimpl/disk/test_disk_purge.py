"""Purging keeps the newest snapshots and every log that one of them needs."""

import struct
from pathlib import Path

import pytest

from refimpl.disk.storage import purge

WHOLE = b"ZKSN" + bytes(30) + struct.pack(">i", 1) + b"/"


def directory(base: Path, *names: str) -> Path:
    (base / "version-2").mkdir()
    for name in names:
        (base / "version-2" / name).write_bytes(WHOLE if name.startswith("snapshot") else b"ZKLG")
    return base


def names(base: Path) -> set[str]:
    return {path.name for path in (base / "version-2").iterdir()}


def test_the_newest_three_snapshots_and_their_logs_stay(tmp_path: Path) -> None:
    directory(tmp_path, "snapshot.0", "snapshot.10", "snapshot.20", "snapshot.30", "log.1", "log.c", "log.12", "log.22")
    removed = purge(tmp_path, tmp_path, 3)
    # log.c is the last one that starts at or below 0x10: it may contain 0x11 and later transactions.
    assert names(tmp_path) == {"snapshot.10", "snapshot.20", "snapshot.30", "log.c", "log.12", "log.22"}
    assert {path.name for path in removed} == {"snapshot.0", "log.1"}


def test_zxids_are_compared_as_numbers(tmp_path: Path) -> None:
    directory(tmp_path, "snapshot.9", "snapshot.a", "snapshot.100000001", "snapshot.10", "log.8", "log.9")
    purge(tmp_path, tmp_path, 3)
    assert names(tmp_path) == {"snapshot.a", "snapshot.10", "snapshot.100000001", "log.9"}


def test_few_snapshots_all_stay(tmp_path: Path) -> None:
    directory(tmp_path, "snapshot.5", "snapshot.7", "log.1", "log.6")
    purge(tmp_path, tmp_path, 3)
    assert names(tmp_path) == {"snapshot.5", "snapshot.7", "log.1", "log.6"}


def test_an_unfinished_snapshot_does_not_count(tmp_path: Path) -> None:
    directory(tmp_path, "snapshot.0", "snapshot.10", "snapshot.20", "log.1")
    (tmp_path / "version-2" / "snapshot.30").write_bytes(WHOLE[:20])
    purge(tmp_path, tmp_path, 3)
    assert names(tmp_path) == {"snapshot.0", "snapshot.10", "snapshot.20", "snapshot.30", "log.1"}


def test_without_snapshots_nothing_is_removed(tmp_path: Path) -> None:
    directory(tmp_path, "log.1", "log.2")
    assert purge(tmp_path, tmp_path, 3) == []
    assert names(tmp_path) == {"log.1", "log.2"}


def test_other_files_stay(tmp_path: Path) -> None:
    directory(tmp_path, *(f"snapshot.{n}" for n in range(1, 6)), "log.0", "acceptedEpoch", "log.1.bak", "snapshot.x")
    purge(tmp_path, tmp_path, 3)
    kept = {"snapshot.3", "snapshot.4", "snapshot.5", "log.0"}
    assert names(tmp_path) == kept | {"acceptedEpoch", "log.1.bak", "snapshot.x"}


def test_logs_may_be_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "logs").mkdir()
    data = directory(tmp_path / "data", *(f"snapshot.{n}" for n in range(1, 6)))
    logs = directory(tmp_path / "logs", "log.1", "log.2", "log.4")
    purge(data, logs, 3)
    assert names(logs) == {"log.2", "log.4"}


@pytest.mark.parametrize("keep", [2, 0, -1])
def test_fewer_than_three_are_refused(tmp_path: Path, keep: int) -> None:
    with pytest.raises(ValueError, match=rf"snapRetainCount is {keep}, expected 3 or more"):
        purge(tmp_path, tmp_path, keep)
