"""Writing the transaction log: the bytes of ZooKeeper's files, group commit, recovery, truncation, failing disks."""

import errno
import os
import struct
import zlib
from pathlib import Path

import pytest

from refimpl.disk import logreader, txnlog
from refimpl.disk.logreader import DamagedLogError, read
from refimpl.disk.txnlog import LogUnusableError, TxnLog

HEADER = b"ZKLG" + struct.pack(">iq", 2, 0)


def payload(zxid: int, body: bytes = b"some record") -> bytes:
    return struct.pack(">qiqqi", 0x1234, 7, zxid, 1_700_000_000_000, 1) + body


def record(zxid: int, body: bytes = b"some record") -> bytes:
    data = payload(zxid, body)
    return struct.pack(">qi", zlib.adler32(data), len(data)) + data + b"B"


def write(directory: Path, *zxids: int) -> None:
    log = TxnLog(directory, preallocation=8192)
    for zxid in zxids:
        log.append(zxid, payload(zxid))
    log.close()


def zxids(directory: Path) -> list[int]:
    return [zxid for zxid, _ in read(directory, 0)]


def test_a_log_is_header_and_records_and_zeros_in_a_file_named_by_its_first_zxid(tmp_path: Path) -> None:
    log = TxnLog(tmp_path, preallocation=8192)
    log.append(0x1_0000_0001, payload(0x1_0000_0001))
    log.append(0x1_0000_0002, payload(0x1_0000_0002, b""))
    log.commit()
    written = HEADER + record(0x1_0000_0001) + record(0x1_0000_0002, b"")
    assert (tmp_path / "log.100000001").read_bytes() == written + bytes(8192 - len(written))


def test_a_file_grows_by_the_preallocation_before_less_than_4096_bytes_are_left(tmp_path: Path) -> None:
    log = TxnLog(tmp_path, preallocation=8192)
    sizes = []
    for zxid in range(1, 6):
        log.append(zxid, payload(zxid, bytes(2000)))
        log.commit()
        sizes.append((tmp_path / "log.1").stat().st_size)
    assert sizes == [8192, 16384, 16384, 16384, 16384]


def test_a_closed_file_has_no_zeros_at_its_end(tmp_path: Path) -> None:
    write(tmp_path, 1)
    assert (tmp_path / "log.1").read_bytes() == HEADER + record(1)


def test_nothing_is_on_the_disk_before_the_commit(tmp_path: Path) -> None:
    log = TxnLog(tmp_path)
    log.append(1, payload(1))
    assert list(tmp_path.iterdir()) == []


def test_what_was_gathered_is_written_with_one_write_and_one_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TxnLog(tmp_path)
    log.append(1, payload(1))
    log.commit()
    calls: list[str] = []
    pwrite, fdatasync = os.pwrite, os.fdatasync
    monkeypatch.setattr(os, "pwrite", lambda *a: calls.append("write") or pwrite(*a))
    monkeypatch.setattr(os, "fdatasync", lambda fd: calls.append("sync") or fdatasync(fd))
    for zxid in range(2, 100):
        log.append(zxid, payload(zxid))
    log.commit()
    assert calls == ["write", "sync"]


def test_the_name_of_a_new_file_is_synced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(str(Path(f"/proc/self/fd/{fd}").readlink())) or fsync(fd))
    log = TxnLog(tmp_path)
    log.append(1, payload(1))
    log.commit()
    assert str(tmp_path) in synced


def test_after_a_roll_the_next_record_begins_a_file(tmp_path: Path) -> None:
    log = TxnLog(tmp_path)
    log.append(1, payload(1))
    log.append(2, payload(2))
    log.roll()
    log.append(3, payload(3))
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.1", "log.3"]
    assert zxids(tmp_path) == [1, 2, 3]


def test_a_log_that_is_opened_again_goes_on_in_a_new_file(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    write(tmp_path, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.1", "log.3"]


def test_zxids_must_rise(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    with pytest.raises(ValueError, match=r"0x2 after 0x2"):
        TxnLog(tmp_path).append(2, payload(2))


def test_a_payload_must_be_the_transaction_it_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not have zxid 0x3"):
        TxnLog(tmp_path).append(3, payload(4))


@pytest.mark.parametrize(("call", "number"), [("pwrite", errno.ENOSPC), ("fdatasync", errno.EIO)])
def test_a_log_that_failed_is_unusable_until_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    log = TxnLog(tmp_path)
    log.append(1, payload(1))
    log.commit()

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as failing:
        failing.setattr(os, call, fail)
        log.append(2, payload(2))
        with pytest.raises(OSError, match=os.strerror(number)):
            log.commit()
    with pytest.raises(LogUnusableError, match="opened again"):
        log.append(3, payload(3))
    with pytest.raises(LogUnusableError, match="opened again"):
        log.commit()
    log.close()
    again = TxnLog(tmp_path)
    assert again.last_zxid in (1, 2)
    again.append(3, payload(3))
    again.commit()


def test_a_write_that_the_system_takes_in_parts_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, bytes(data)[:7], offset))
    write(tmp_path, 1, 2)
    assert (tmp_path / "log.1").read_bytes() == HEADER + record(1) + record(2)


def test_opening_cuts_off_a_torn_record(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    with (tmp_path / "log.1").open("ab") as file:
        file.write(record(3)[:40] + bytes(5000))
    log = TxnLog(tmp_path)
    assert log.last_zxid == 2
    assert (tmp_path / "log.1").read_bytes() == HEADER + record(1) + record(2)
    assert log.notes == [
        f"{tmp_path / 'log.1'}: cut off at offset {len(HEADER + record(1) + record(2))}: "
        "the record of 43 bytes ends with 00, expected 42"
    ]


def test_opening_removes_a_file_without_any_record(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    (tmp_path / "log.3").write_bytes(HEADER + bytes(8000))
    (tmp_path / "log.4").write_bytes(b"")
    log = TxnLog(tmp_path)
    assert (log.last_zxid, [path.name for path in tmp_path.iterdir()]) == (2, ["log.1"])


def test_opening_does_not_cut_where_valid_records_follow(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3)
    path = tmp_path / "log.1"
    damaged = bytearray(path.read_bytes())
    damaged[len(HEADER) + 20] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(DamagedLogError, match=r"log\.1, offset 16: .*a valid record follows at offset 72"):
        TxnLog(tmp_path)
    assert path.read_bytes() == damaged


def test_truncating_cuts_the_file_and_removes_the_later_ones(tmp_path: Path) -> None:
    write(tmp_path, 1, 2)
    write(tmp_path, 3, 4, 5)
    write(tmp_path, 6)
    log = TxnLog(tmp_path)
    log.append(7, payload(7))
    log.truncate(4)
    assert zxids(tmp_path) == [1, 2, 3, 4]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.1", "log.3"]
    log.append(5, payload(5, b"another"))
    log.close()
    assert [data for _, data in read(tmp_path, 5)] == [payload(5, b"another")]


def test_truncating_between_two_epochs_keeps_all_of_the_first(tmp_path: Path) -> None:
    write(tmp_path, 0x1_0000_0001, 0x1_0000_0002, 0x2_0000_0001)
    TxnLog(tmp_path).truncate(0x1_0000_0005)
    assert zxids(tmp_path) == [0x1_0000_0001, 0x1_0000_0002]


def test_truncating_below_everything_leaves_an_empty_log(tmp_path: Path) -> None:
    write(tmp_path, 5, 6)
    log = TxnLog(tmp_path)
    log.truncate(4)
    assert (list(tmp_path.iterdir()), log.last_zxid) == ([], 4)


# One write of many records, and a power failure before its fsync: any of its sectors may be on the disk.


def with_a_sector_lost(directory: Path, sector: int) -> None:
    """The log of forty records of one write, without one of its sectors."""
    write(directory, *range(1, 41))
    content = bytearray((directory / "log.1").read_bytes())
    content[sector * 512 : (sector + 1) * 512] = bytes(512)
    (directory / "log.1").write_bytes(content)


@pytest.mark.parametrize("sector", [1, 2, 3])
def test_a_sector_that_a_write_has_not_reached_ends_the_log(tmp_path: Path, sector: int) -> None:
    """Nothing behind it was acknowledged, since its fsync had not returned."""
    with_a_sector_lost(tmp_path, sector)
    whole = (sector * 512 - len(HEADER)) // len(record(1))

    log = TxnLog(tmp_path)

    assert log.last_zxid == whole
    assert len(log.notes) == 1
    assert zxids(tmp_path) == [*range(1, whole + 1)]


def with_a_header_lost(directory: Path, lost: int) -> bytearray:
    """A record that was synced, and three of a later write: the first bytes of the second record are lost.

    They are in the sector of the first record. The other bytes are in a sector that the write has reached.
    """
    path = directory / "log.1"
    first = record(1, bytes(512 - len(HEADER) - len(record(1, b"")) - lost))
    content = bytearray(HEADER + first + b"".join(record(zxid, bytes(300)) for zxid in (2, 3, 4)) + bytes(8192))
    content[512 - lost : 512] = bytes(lost)
    path.write_bytes(content)
    return content


@pytest.mark.parametrize("lost", range(5, 12))
def test_a_header_that_a_write_has_not_reached_ends_the_log(tmp_path: Path, lost: int) -> None:
    """A checksum has eight bytes, of which the first four are zero, and a length has four."""
    with_a_header_lost(tmp_path, lost)
    assert TxnLog(tmp_path).last_zxid == 1


@pytest.mark.parametrize("lost", range(5, 12))
def test_a_record_without_a_header_that_has_another_fault_is_damaged(tmp_path: Path, lost: int) -> None:
    """Its end mark is another byte, so it is not as it was written."""
    content = with_a_header_lost(tmp_path, lost)
    content[512 - lost + len(record(2, bytes(300))) - 1] ^= 1
    (tmp_path / "log.1").write_bytes(content)
    with pytest.raises(DamagedLogError, match="a valid record follows"):
        TxnLog(tmp_path)


@pytest.mark.parametrize("zeros", range(1, 5))
def test_a_lost_sector_that_ends_in_the_zeros_of_the_next_record_ends_the_log(tmp_path: Path, zeros: int) -> None:
    """The first four bytes of a record are zero in any case, so that the next record is whole without them."""
    first = record(1)
    second = record(2, bytes([7]) * (1024 - zeros - len(HEADER) - len(first) - len(record(2, b""))))
    content = bytearray(HEADER + first + second + record(3) + bytes(8192))
    content[512:1024] = bytes(512)
    (tmp_path / "log.1").write_bytes(content)
    assert TxnLog(tmp_path).last_zxid == 1


def test_a_lost_sector_that_is_too_far_from_the_end_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The write that it belongs to had its fsync before the next one began."""
    monkeypatch.setattr(logreader, "GROUP", 1024)
    with_a_sector_lost(tmp_path, 1)

    with pytest.raises(DamagedLogError, match="a valid record follows"):
        TxnLog(tmp_path)


def test_a_write_has_a_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(txnlog, "GROUP", 1000)
    log, sizes = TxnLog(tmp_path), list[int]()
    monkeypatch.setattr(log, "_write", lambda data: sizes.append(len(data)))
    for zxid in range(1, 41):
        log.append(zxid, payload(zxid, bytes(5000 if zxid == 20 else 60)))
    log.commit()

    assert sum(sizes) == 39 * len(record(1, bytes(60))) + len(record(1, bytes(5000)))
    assert sorted(size > 1000 for size in sizes) == [*[False] * (len(sizes) - 1), True]
