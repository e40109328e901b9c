"""Reading transaction logs: the end of a log, damage that is refused, and the remains of crashes of a real server."""

import struct
import zlib
from pathlib import Path

import pytest

from refimpl.disk.logreader import DamagedLogError, read

HEADER = b"ZKLG" + struct.pack(">iq", 2, 0)
PADDING = bytes(8192)
EPOCH_2 = 0x2_0000_0001


def payload(zxid: int, body: bytes = b"body") -> bytes:
    return struct.pack(">qiqqi", 0x1234, 7, zxid, 1_700_000_000_000, 1) + body


def record(zxid: int, body: bytes = b"body") -> bytes:
    data = payload(zxid, body)
    return struct.pack(">qi", zlib.adler32(data), len(data)) + data + b"B"


def file(directory: Path, *zxids: int, tail: bytes = PADDING) -> Path:
    path = directory / f"log.{zxids[0]:x}"
    path.write_bytes(HEADER + b"".join(map(record, zxids)) + tail)
    return path


def zxids(directory: Path, start: int = 0, notes: list[str] | None = None) -> list[int]:
    return [zxid for zxid, _ in read(directory, start, notes=notes)]


def test_records_come_in_order_over_all_files(tmp_path: Path) -> None:
    file(tmp_path, 0xA, 0xB)
    file(tmp_path, 0x8, 0x9)
    file(tmp_path, 0xC)
    assert list(read(tmp_path, 0)) == [(zxid, payload(zxid)) for zxid in range(8, 13)]


@pytest.mark.parametrize(("start", "expected"), [(1, [1, 2, 3, 4]), (2, [2, 3, 4]), (3, [3, 4]), (4, [4]), (5, [])])
def test_reading_starts_at_a_zxid(tmp_path: Path, start: int, expected: list[int]) -> None:
    file(tmp_path, 1, 2)
    file(tmp_path, 3, 4)
    assert zxids(tmp_path, start) == expected


def test_reading_stops_behind_a_zxid_whatever_follows(tmp_path: Path) -> None:
    file(tmp_path, 1, 2, tail=b"just being written")
    assert [zxid for zxid, _ in read(tmp_path, 1, 2)] == [1, 2]


def test_no_log_is_an_empty_one(tmp_path: Path) -> None:
    assert zxids(tmp_path) == []
    assert zxids(tmp_path / "missing") == []


def test_other_names_are_not_logs(tmp_path: Path) -> None:
    file(tmp_path, 1)
    for name in ("log.1.bak", "log.x", "log", "log.2.tmp", "currentEpoch"):
        (tmp_path / name).write_bytes(b"?")
    assert zxids(tmp_path) == [1]


@pytest.mark.parametrize("size", [5, 8, 11, 12, 13, 30, 47, 48])
def test_a_record_that_was_cut_short_ends_the_log(tmp_path: Path, size: int) -> None:
    path = file(tmp_path, 1, 2, tail=record(3)[:size] + PADDING)
    notes: list[str] = []
    assert zxids(tmp_path, notes=notes) == [1, 2]
    assert notes[0].startswith(f"{path}, offset {16 + 2 * len(record(1))}: ")


def test_a_wrong_checksum_of_the_last_record_ends_the_log(tmp_path: Path) -> None:
    file(tmp_path, 1, 2, tail=record(3)[:-6] + bytes(5) + b"B" + PADDING)
    notes: list[str] = []
    assert zxids(tmp_path, notes=notes) == [1, 2]
    assert "checksum" in notes[0]


@pytest.mark.parametrize("content", [b"", b"ZKL", HEADER, HEADER + PADDING, bytes(100)])
def test_a_file_that_was_just_being_created_ends_the_log(tmp_path: Path, content: bytes) -> None:
    file(tmp_path, 1, 2)
    (tmp_path / "log.3").write_bytes(content)
    assert zxids(tmp_path) == [1, 2]


@pytest.mark.parametrize("header", ["5a4b534e00000002", "5a4b4c4700000003"], ids=["another magic", "another version"])
def test_a_file_with_another_header_is_refused(tmp_path: Path, header: str) -> None:
    (tmp_path / "log.1").write_bytes(bytes.fromhex(header) + HEADER[8:] + record(1))
    with pytest.raises(DamagedLogError, match=rf"log\.1, offset 0: the header is {header}, expected 5a4b4c4700000002"):
        zxids(tmp_path)


@pytest.mark.parametrize("offset", [0, 4, 8, 11, 12, 30, 47])
def test_a_bad_record_before_valid_ones_is_refused_with_its_place(tmp_path: Path, offset: int) -> None:
    path = file(tmp_path, 1, 2, 3)
    damaged = bytearray(path.read_bytes())
    second = 16 + len(record(1))
    damaged[second + offset] ^= 0x10
    path.write_bytes(damaged)
    third = second + len(record(2))
    with pytest.raises(DamagedLogError, match=rf"log\.1, offset {second}: .* follows at offset {third}.*restore"):
        zxids(tmp_path)


def test_a_zeroed_record_before_valid_ones_is_refused(tmp_path: Path) -> None:
    file(tmp_path, 1, 2, tail=bytes(len(record(3))) + record(4) + PADDING)
    with pytest.raises(DamagedLogError, match="length is 0, expected 32 or more"):
        zxids(tmp_path)


def test_a_missing_zxid_within_an_epoch_is_refused(tmp_path: Path) -> None:
    file(tmp_path, 1, 2)
    file(tmp_path, 4)
    with pytest.raises(DamagedLogError, match=r"after 0x2, and log\.4 starts with 0x4, expected 0x3"):
        zxids(tmp_path)


def test_what_is_missing_below_the_zxid_asked_for_is_no_damage(tmp_path: Path) -> None:
    file(tmp_path, 1, 2)
    file(tmp_path, 9, 10)
    assert zxids(tmp_path, 8) == [9, 10]


def test_a_new_epoch_starts_with_one(tmp_path: Path) -> None:
    file(tmp_path, 1, 2)
    file(tmp_path, EPOCH_2, EPOCH_2 + 1)
    assert zxids(tmp_path) == [1, 2, EPOCH_2, EPOCH_2 + 1]
    file(tmp_path, 0x5_0000_0002)
    with pytest.raises(DamagedLogError, match="starts with 0x500000002"):
        zxids(tmp_path)


def test_zxids_must_rise_within_a_file(tmp_path: Path) -> None:
    file(tmp_path, 1, 2, 2)
    with pytest.raises(DamagedLogError, match="the record has zxid 0x2, expected a zxid above 0x2"):
        zxids(tmp_path)


def test_a_file_must_begin_with_the_zxid_of_its_name(tmp_path: Path) -> None:
    file(tmp_path, 1).rename(tmp_path / "log.7")
    with pytest.raises(DamagedLogError, match="has zxid 0x1, expected zxid 0x7"):
        zxids(tmp_path)


def test_the_torn_end_of_a_crash_is_passed_over_if_the_very_next_zxid_follows(tmp_path: Path) -> None:
    file(tmp_path, 1, 2, tail=record(3)[:20])
    file(tmp_path, 3, 4)
    notes: list[str] = []
    assert zxids(tmp_path, notes=notes) == [1, 2, 3, 4]
    assert len(notes) == 1


def test_the_torn_end_of_a_crash_is_passed_over_before_a_new_epoch(tmp_path: Path) -> None:
    file(tmp_path, 1, 2, tail=record(3)[:40] + PADDING)
    file(tmp_path, EPOCH_2)
    notes: list[str] = []
    assert zxids(tmp_path, notes=notes) == [1, 2, EPOCH_2]
    assert len(notes) == 1


@pytest.mark.parametrize(
    "tail", [record(3)[:39], record(3)[:40], record(3)[:39] + bytes(4000), record(3, b"x" * 9000)[:8000]]
)
def test_a_file_that_ends_amid_a_record_before_a_new_epoch_is_refused(tmp_path: Path, tail: bytes) -> None:
    """A server that crashes leaves a file with zeros at its end, so this file was truncated in another way."""
    file(tmp_path, 1, 2, tail=tail)
    file(tmp_path, EPOCH_2)
    with pytest.raises(DamagedLogError, match=r", in a file that is not the last"):
        zxids(tmp_path)


@pytest.mark.parametrize("content", [b"", b"ZKLG", HEADER, HEADER + bytes(4000)])
def test_a_file_that_has_lost_all_its_records_before_a_new_epoch_is_refused(tmp_path: Path, content: bytes) -> None:
    file(tmp_path, 1, 2)
    (tmp_path / "log.3").write_bytes(content)
    file(tmp_path, EPOCH_2)
    with pytest.raises(
        DamagedLogError, match=r"log\.3, offset .*the file has no (record|header), in a file that is not"
    ):
        zxids(tmp_path)


def test_a_file_whose_first_record_a_crash_prevented_is_passed_over(tmp_path: Path) -> None:
    file(tmp_path, 1, 2)
    (tmp_path / "log.3").write_bytes(HEADER + PADDING)
    file(tmp_path, EPOCH_2)
    assert zxids(tmp_path) == [1, 2, EPOCH_2]


@pytest.mark.parametrize("offset", [0, 4, 8, 9, 11, 12, 30, 47, 48])
def test_a_damaged_whole_record_before_a_new_epoch_is_refused(tmp_path: Path, offset: int) -> None:
    bad = bytearray(record(3))
    bad[offset] ^= 0x10
    file(tmp_path, 1, 2, tail=bytes(bad) + PADDING)
    file(tmp_path, EPOCH_2)
    with pytest.raises(DamagedLogError, match=r"not the last \(log\.200000001 follows\)"):
        zxids(tmp_path)


def test_a_record_longer_than_what_is_read_at_once_is_read(tmp_path: Path) -> None:
    big = bytes(range(256)) * 10_000
    (tmp_path / "log.1").write_bytes(HEADER + record(1) + record(2, big) + record(3) + PADDING)
    assert list(read(tmp_path, 2)) == [(2, payload(2, big)), (3, payload(3))]
