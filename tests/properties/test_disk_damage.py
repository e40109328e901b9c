"""Damaged disks: a bit flips or a file ends early; no wrong data is served, and no loss is silent.

The last record of the log is the exception in every log: if it is damaged, it looks like one that a crash cut short.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.disk import database, snapshot
from refimpl.disk.files import DataError
from refimpl.disk.logreader import DamagedLogError, read
from refimpl.disk.txnlog import TxnLog
from refimpl.tree import Tree
from refimpl.wire.txn import encode_txn
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE
from spec.tree.txns import Change, CreateSessionTxn, CreateTxn, SetDataTxn

FEW = settings(max_examples=75, deadline=None)
MANY = settings(max_examples=200, deadline=None)
PADDING = st.sampled_from([0, 1, 100, 5000])
FILES = st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=5), min_size=1, max_size=3)
"""The lengths of the data in the records of each file."""


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def change(zxid: int, size: int) -> Change:
    data = bytes((zxid * 31 + place * 7) % 256 for place in range(size))
    return Change(1, zxid & 0xFFFF, 1_700_000_000_000, CreateTxn(f"/n{zxid:x}", data, OPEN_ACL_UNSAFE, False, 1))


def write(directory: Path, files: list[list[int]], epochs: bool, padding: int) -> list[tuple[int, bytes]]:
    """Write logs, and return the written records; with `epochs` each file begins a new epoch."""
    written, zxid = [], 0x1_0000_0000
    log = TxnLog(directory, preallocation=0)
    for sizes in files:
        for size in sizes:
            zxid += 1
            written.append((zxid, encode_txn(zxid, change(zxid, size))))
            log.append(*written[-1])
        log.roll()
        zxid = (zxid >> 32) + 1 << 32 if epochs else zxid
    log.close()
    for path in directory.iterdir():
        path.write_bytes(path.read_bytes() + bytes(padding))
    return written


def logs(directory: Path) -> list[Path]:
    return sorted(directory.iterdir(), key=lambda path: int(path.suffix[1:], 16))


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position // 8 % len(data)] ^= 1 << position % 8
    path.write_bytes(data)


def cut(path: Path, position: int) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: position % len(data)])


def read_all(directory: Path) -> list[tuple[int, bytes]] | None:
    """Return the records of the log, or None if it is refused; a refusal names a file and a place in it."""
    try:
        return list(read(directory, 0))
    except DamagedLogError as error:
        assert ", offset " in str(error)
        return None


@MANY
@given(FILES, PADDING, st.booleans(), st.integers(0, 2), st.integers(0, 1 << 16))
def test_a_flipped_bit_in_a_log_is_refused_or_costs_the_last_record_at_most(
    files: list[list[int]], padding: int, epochs: bool, which: int, position: int
) -> None:
    with scratch() as directory:
        written = write(directory, files, epochs, padding)
        paths = logs(directory)
        flip(paths[which % len(paths)], position)
        found = read_all(directory)
        assert found in (None, written, written[:-1])


@MANY
@given(FILES, PADDING, st.integers(0, 2), st.integers(0, 1 << 13))
def test_a_log_file_that_ends_anywhere_gives_what_is_before_or_is_refused(
    files: list[list[int]], padding: int, which: int, position: int
) -> None:
    with scratch() as directory:
        written = write(directory, files, epochs=False, padding=padding)
        paths = logs(directory)
        path = paths[which % len(paths)]
        cut(path, position)
        found = read_all(directory)
        if path == paths[-1]:
            assert found is not None
            assert found == written[: len(found)]
            assert len(found) >= len(written) - len(files[-1])
        else:
            assert found in (None, written)


@FEW
@given(FILES, st.integers(0, 1 << 16), st.booleans())
def test_records_appended_after_recovery_follow_the_undamaged_ones(
    files: list[list[int]], position: int, flips: bool
) -> None:
    with scratch() as directory:
        written = write(directory, files, epochs=False, padding=50)
        (flip if flips else cut)(logs(directory)[-1], position)
        good = read_all(directory)
        if good is None:
            return
        log = TxnLog(directory)
        zxid = (good[-1][0] if good else 0x1_0000_0000) + 1
        assert log.last_zxid == zxid - 1 or not good
        new = (zxid, encode_txn(zxid, change(zxid, 10)))
        log.append(*new)
        log.close()
        assert read_all(directory) == [*written[: len(good)], new]


class States(NamedTuple):
    """A data directory with two snapshots and three logs, and the contents of its tree at each zxid."""

    base: Path
    contents: dict[int, object]


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> States:
    base = tmp_path_factory.mktemp("states")
    (base / "version-2").mkdir()
    tree = Tree()
    snapshot.save(base / "version-2", tree, 0)
    contents: dict[int, object] = {0: value(tree)}
    log = TxnLog(base / "version-2", preallocation=0)
    for zxid in range(1, 13):
        record = (
            CreateSessionTxn(4000 + zxid) if zxid % 4 == 0
            else SetDataTxn("/n1", bytes(zxid), zxid) if zxid % 4 == 3
            else CreateTxn(f"/n{zxid}", b"data", READ_ACL_UNSAFE, False, zxid)
        )  # fmt: skip
        done = Change(zxid, 1, zxid * 1000, record)
        log.append(zxid, encode_txn(zxid, done))
        tree.carry_out(apply(tree, zxid, done).operations)
        contents[zxid] = value(tree)
        if zxid in (4, 8):
            log.roll()
        if zxid == 6:
            snapshot.save(base / "version-2", tree, zxid)
    log.close()
    return States(base, contents)


def value(tree: Tree) -> object:
    return dict(tree.preorder()), dict(tree.sessions)


LAST = 12


@MANY
@given(st.integers(0, 4), st.integers(0, 1 << 15), st.booleans())
def test_a_damaged_directory_is_refused_or_gives_a_state_that_was(
    states: States, which: int, position: int, flips: bool
) -> None:
    with scratch() as directory:
        shutil.copytree(states.base, directory, dirs_exist_ok=True)
        path = sorted((directory / "version-2").iterdir())[which]
        (flip if flips else cut)(path, position)
        try:
            loaded = database.load(directory, directory)
        except DataError as error:
            assert "version-2" in str(error)
            return
        assert value(loaded.tree) == states.contents[loaded.last_zxid]
        # Only the end of the last log can be lost without a refusal.
        assert loaded.last_zxid == LAST or path.name == "log.9"


@FEW
@given(st.integers(0, 1 << 15), st.booleans(), st.booleans())
def test_a_damaged_snapshot_is_never_taken(states: States, position: int, flips: bool, newest: bool) -> None:
    with scratch() as directory:
        path = directory / ("snapshot.6" if newest else "snapshot.0")
        shutil.copy(states.base / "version-2" / path.name, path)
        size = path.stat().st_size
        (flip if flips else cut)(path, position)
        try:
            found = snapshot.read(path, int(path.suffix[1:], 16))
        except DataError as error:
            assert str(path) in str(error)
        else:
            # Without its last section, of 20 bytes and a seal of 13, it is a complete snapshot as before ZooKeeper 3.6.
            assert path.stat().st_size == size - 33, "a damaged snapshot was read"
            assert found.recorded is None
            assert value(found.tree) == states.contents[6 if newest else 0]
