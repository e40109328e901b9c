"""The survey of a data directory: what was written is what it says, and every damage is a part of the answer.

The expected values are those that the test writes, byte by byte where it damages them, and a directory of ZooKeeper
3.9.5.
"""

import os
import random
import shutil
import struct
from pathlib import Path

import pytest

from refimpl.disk import epochs, snapshot
from refimpl.disk.files import DataError
from refimpl.disk.remedies import Damage, Others, remedy
from refimpl.disk.survey import DiskSurvey, EndKind, Gap, Loss, Reading, Run, survey, surviving_records
from refimpl.disk.txnlog import TxnLog
from refimpl.tree import Tree
from refimpl.wire.txn import encode_txn
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.txns import Change, CreateTxn, ReconfigTxn

EPOCH_1, EPOCH_2 = 1 << 32, 2 << 32
HEADER = 16
GOLDEN = Path(__file__).parents[2] / "golden" / "disk" / "zookeeper-3.9.5"


def change(zxid: int) -> Change:
    return Change(1, zxid & 0xFFFF, 1_700_000_000_000, CreateTxn(f"/n{zxid:x}", b"data", OPEN_ACL_UNSAFE, False, 1))


def write_log(home: Path, *files: list[int]) -> None:
    directory = home / "version-2"
    directory.mkdir(exist_ok=True)
    log = TxnLog(directory, preallocation=0)
    for zxids in files:
        for zxid in zxids:
            log.append(zxid, encode_txn(zxid, change(zxid)))
        log.roll()
    log.close()


def write_snapshot(home: Path, zxid: int) -> Path:
    directory = home / "version-2"
    directory.mkdir(exist_ok=True)
    return snapshot.save(directory, Tree(), zxid)


def zxids(home: Path) -> list[int]:
    return [record.zxid for record in surviving_records(home)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A member of an ensemble: five transactions of epoch 1 in two files, and two of epoch 2."""
    write_snapshot(tmp_path, 0)
    write_log(tmp_path, [EPOCH_1 + 1, EPOCH_1 + 2, EPOCH_1 + 3], [EPOCH_1 + 4, EPOCH_1 + 5], [EPOCH_2 + 1, EPOCH_2 + 2])
    epochs.save_accepted(tmp_path / "version-2", 2)
    epochs.save_current(tmp_path / "version-2", 2)
    (tmp_path / "myid").write_text("3\n")
    return tmp_path


def test_a_whole_directory_is_told_as_it_was_written(home: Path) -> None:
    said = survey(home)
    assert (said.myid.value, said.accepted.value, said.current.value) == (3, 2, 2)
    assert [(log.name, log.first, log.last, log.records, log.end) for log in said.logs] == [
        ("log.100000001", EPOCH_1 + 1, EPOCH_1 + 3, 3, EndKind.WHOLE),
        ("log.100000004", EPOCH_1 + 4, EPOCH_1 + 5, 2, EndKind.WHOLE),
        ("log.200000001", EPOCH_2 + 1, EPOCH_2 + 2, 2, EndKind.WHOLE),
    ]
    assert [(save.name, save.zxid, save.fault) for save in said.snapshots] == [("snapshot.0", 0, None)]
    assert said.runs == (Run(EPOCH_1 + 1, EPOCH_2 + 2, 7),)
    assert (said.faults, said.gaps, said.losses, said.damage) == ((), (), (), None)
    assert said.reading == Reading(0, EPOCH_2 + 2, is_whole=True)
    assert not said.is_of_3_4
    assert zxids(home) == [*(EPOCH_1 + number for number in range(1, 6)), EPOCH_2 + 1, EPOCH_2 + 2]


def test_nothing_is_changed_by_a_survey(home: Path) -> None:
    (home / "version-2" / "log.200000003").write_bytes(b"")
    (home / "version-2" / "snapshot.5.tmp").write_bytes(b"?")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    survey(home)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_separate_directories_belong_together(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    logs = tmp_path_factory.mktemp("logs")
    (logs / "version-2").mkdir()
    for path in (home / "version-2").glob("log.*"):
        shutil.move(path, logs / "version-2")
    said = survey(home, logs)
    assert (said.data_dir, said.log_dir) == (str(home), str(logs))
    assert said.reading == Reading(0, EPOCH_2 + 2, is_whole=True)


def test_a_missing_directory_is_a_fault_and_no_error(tmp_path: Path) -> None:
    said = survey(tmp_path / "none")
    assert said.faults == (f"{tmp_path}/none/version-2: there is no such directory",)
    assert said.is_empty
    assert said.myid.is_absent
    assert said.accepted.is_absent


def test_a_flipped_bit_shows_the_gap_and_the_records_behind_it(home: Path) -> None:
    path = home / "version-2" / "log.100000001"
    size = (path.stat().st_size - HEADER) // 3
    content = bytearray(path.read_bytes())
    content[HEADER + size + 40] ^= 4
    path.write_bytes(content)
    said = survey(home)
    log = said.logs[0]
    assert (log.end, log.offset, log.recovers, log.records) == (EndKind.DAMAGED, HEADER + size, HEADER + 2 * size, 2)
    assert said.runs == (Run(EPOCH_1 + 1, EPOCH_1 + 1, 1), Run(EPOCH_1 + 3, EPOCH_2 + 2, 5))
    assert said.gaps == (Gap(EPOCH_1 + 1, EPOCH_1 + 3),)
    assert said.gaps[0].missing == 1
    assert said.reading == Reading(0, EPOCH_1 + 1, is_whole=False)
    assert said.damage is Damage.RECORDS
    assert zxids(home) == [EPOCH_1 + 1, EPOCH_1 + 3, EPOCH_1 + 4, EPOCH_1 + 5, EPOCH_2 + 1, EPOCH_2 + 2]


def test_a_lost_first_record_does_not_hide_those_behind_it(home: Path) -> None:
    path = home / "version-2" / "log.100000001"
    content = bytearray(path.read_bytes())
    content[HEADER + 20] ^= 1
    path.write_bytes(content)
    assert survey(home).runs[0] == Run(EPOCH_1 + 2, EPOCH_2 + 2, 6)


def test_a_missing_file_is_a_gap_with_its_number_of_transactions(home: Path) -> None:
    (home / "version-2" / "log.100000004").unlink()
    said = survey(home)
    assert said.gaps == ()  # an epoch may end anywhere: no reader can see this
    assert said.damage is None
    write_log(home, [EPOCH_2 + 5])
    assert survey(home).gaps == (Gap(EPOCH_2 + 2, EPOCH_2 + 5),)
    assert survey(home).gaps[0].missing == 2


def test_a_gap_between_snapshot_and_log_is_named(home: Path) -> None:
    (home / "version-2" / "log.100000001").unlink()
    assert survey(home).gaps == (Gap(0, EPOCH_1 + 4),)
    assert survey(home).gaps[0].missing is None
    assert survey(home).reading == Reading(0, 0, is_whole=False)
    assert survey(home).damage is Damage.RECORDS
    write_snapshot(home, EPOCH_1 + 4)
    assert survey(home).gaps == ()
    assert survey(home).reading == Reading(EPOCH_1 + 4, EPOCH_2 + 2, is_whole=True)


def test_a_snapshot_of_the_leader_covers_the_gap_before_it(tmp_path: Path) -> None:
    home = tmp_path
    write_snapshot(home, 0)
    write_log(home, [EPOCH_1 + 1, EPOCH_1 + 2], [EPOCH_2 + 6, EPOCH_2 + 7])
    assert survey(home).open_gaps == (Gap(EPOCH_1 + 2, EPOCH_2 + 6),)
    write_snapshot(home, EPOCH_2 + 5)
    assert survey(home).gaps == (Gap(EPOCH_1 + 2, EPOCH_2 + 6),)
    assert survey(home).open_gaps == ()


@pytest.mark.parametrize(
    ("left", "padding", "end"), [(20, 8192, EndKind.TORN), (20, 0, EndKind.CUT), (0, 0, EndKind.WHOLE)]
)
def test_the_end_of_the_last_file_is_told(home: Path, left: int, padding: int, end: EndKind) -> None:
    path = home / "version-2" / "log.200000001"
    size = (path.stat().st_size - HEADER) // 2
    path.write_bytes(path.read_bytes()[: HEADER + size + left] + bytes(padding))
    said = survey(home)
    assert (said.logs[-1].end, said.logs[-1].records) == (end, 1)
    assert said.losses == ((Loss(EPOCH_2 + 1, None),) if end is EndKind.CUT else ())
    assert said.damage is (Damage.RECORDS if end is EndKind.CUT else None)


def test_a_file_without_any_record_is_told(home: Path) -> None:
    (home / "version-2" / "log.200000003").write_bytes(b"ZKLG" + struct.pack(">iq", 2, 0))
    assert survey(home).logs[-1].end is EndKind.EMPTY
    assert survey(home).damage is None


def test_what_is_no_log_is_told(home: Path) -> None:
    (home / "version-2" / "log.200000003").write_bytes(b"\x7fELF" + bytes(range(200)))
    said = survey(home)
    assert said.logs[-1].end is EndKind.DAMAGED
    assert "expected 5a4b4c4700000002" in str(said.logs[-1].fault)
    assert said.runs[-1].last == EPOCH_2 + 2


def test_a_zxid_out_of_order_is_told(home: Path) -> None:
    shutil.copy(home / "version-2" / "log.100000001", home / "version-2" / "log.300000001")
    said = survey(home)
    assert "expected zxid 0x300000001, as in the file's name" in str(said.logs[-1].fault)
    assert zxids(home)[-1] == EPOCH_2 + 2


def test_an_epoch_that_begins_behind_damage_does_not_hide_a_loss(home: Path) -> None:
    """The damaged record may be the last one of epoch 1: the next record alone does not show that none is missing."""
    path = home / "version-2" / "log.100000004"
    path.write_bytes(path.read_bytes()[:-3])
    said = survey(home)
    assert said.runs == (Run(EPOCH_1 + 1, EPOCH_1 + 4, 4), Run(EPOCH_2 + 1, EPOCH_2 + 2, 2))
    assert said.gaps == (Gap(EPOCH_1 + 4, EPOCH_2 + 1),)
    assert said.gaps[0].missing is None
    assert [record.continues for record in surviving_records(home)][-3:] == [True, False, True]


def test_an_unreadable_snapshot_had_all_that_its_name_says(home: Path) -> None:
    write_snapshot(home, EPOCH_2 + 9).write_bytes(b"ZKSN")
    assert survey(home).losses == (Loss(EPOCH_2 + 2, EPOCH_2 + 10),)
    assert survey(home).damage is Damage.SNAPSHOT


def test_a_damaged_snapshot_is_named_with_its_fault(home: Path) -> None:
    path = write_snapshot(home, EPOCH_1 + 2)
    path.write_bytes(path.read_bytes()[:-9])
    said = survey(home)
    assert [save.fault is None for save in said.snapshots] == [True, False]
    assert "cut short" in str(said.snapshots[1].fault)
    assert said.damage is None  # the log leads from the older one to the end
    assert said.newest_snapshot == 0


def test_unfinished_and_compressed_snapshots_are_named(home: Path) -> None:
    for name in ("snapshot.5.tmp", "snapshot.6.gz", "snapshot.7.snappy"):
        (home / "version-2" / name).write_bytes(b"?")
    said = survey(home)
    assert said.unfinished_snapshots == ("snapshot.5.tmp",)
    assert said.compressed_snapshots == ((6, "snapshot.6.gz"), (7, "snapshot.7.snappy"))


def test_epochs_are_told_with_their_faults(home: Path) -> None:
    directory = home / "version-2"
    (directory / "acceptedEpoch").write_text("x\n")
    (directory / "currentEpoch").unlink()
    (directory / "currentEpoch.tmp").write_text("3")
    said = survey(home)
    assert said.accepted.value is None
    assert "expected an epoch" in str(said.accepted.fault)
    assert said.current.is_absent
    assert (said.current.unfinished, said.current.has_unfinished) == (3, True)
    assert said.damage is Damage.PROMISE


def test_an_accepted_epoch_behind_the_log_is_a_forgotten_promise(home: Path) -> None:
    (home / "version-2" / "acceptedEpoch").write_text("1")
    assert survey(home).damage is Damage.PROMISE


@pytest.mark.parametrize("text", ["", "three", "1.5", " 3", "3 "])
def test_what_is_no_id_is_a_fault(home: Path, text: str) -> None:
    (home / "myid").write_text(text)
    assert survey(home).myid.value is None
    assert "is no id of a server" in str(survey(home).myid.fault)


def test_configurations_are_found_in_log_and_dynamic_files(home: Path) -> None:
    text = "server.1=h1:2888:3888:participant\nversion=200000003"
    log = TxnLog(home / "version-2", preallocation=0)
    record = ReconfigTxn("/zookeeper/config", text.encode(), -1)
    log.append(EPOCH_2 + 3, encode_txn(EPOCH_2 + 3, Change(1, 1, 1, record)))
    log.close()
    (home / "zoo.cfg.dynamic.200000003").write_text(text)
    (home / "zoo.cfg.dynamic.next").write_text(text)
    said = survey(home)
    assert [(found.zxid, found.text) for found in said.configurations][-1] == (EPOCH_2 + 3, text)
    assert [(Path(file.name).name, file.version, file.text) for file in said.dynamic_files] == [
        ("zoo.cfg.dynamic.200000003", EPOCH_2 + 3, text),
        ("zoo.cfg.dynamic.next", None, text),
    ]


def test_a_directory_of_3_4_has_a_log_alone(tmp_path: Path) -> None:
    write_log(tmp_path, [1, 2, 3])
    said = survey(tmp_path)
    assert said.is_of_3_4
    assert said.damage is Damage.NO_SNAPSHOT
    assert said.reading == Reading(None, 3, is_whole=False)


def test_a_log_that_begins_later_is_not_one_of_3_4(tmp_path: Path) -> None:
    write_log(tmp_path, [7, 8])
    assert not survey(tmp_path).is_of_3_4


def test_a_directory_of_zookeeper_3_9_is_whole(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "version-2")
    said = survey(tmp_path)
    assert [(save.name, save.fault) for save in said.snapshots] == [("snapshot.0", None), ("snapshot.7", None)]
    assert said.logs[0].end is EndKind.WHOLE
    assert said.damage is None


@pytest.mark.parametrize("name", ["log.300000001", "snapshot.300000001", "currentEpoch"])
def test_a_pipe_or_a_folder_is_not_opened(home: Path, name: str) -> None:
    path = home / "version-2" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    told = survey(home)
    faults = [*(log.fault for log in told.logs), *(save.fault for save in told.snapshots), told.current.fault]
    assert "it is no regular file" in faults
    path.unlink()
    path.mkdir()
    assert survey(home).damage is not None


def test_no_damage_of_a_file_ends_a_survey(home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    write_snapshot(home, EPOCH_1 + 5)
    draw = random.Random(7)
    damages = set[Damage | None]()
    for place in range(150):
        copy = tmp_path_factory.mktemp(f"copy{place}") / "data"
        shutil.copytree(home, copy)
        path = draw.choice([path for path in sorted(copy.rglob("*")) if path.is_file()])
        content = bytearray(path.read_bytes())
        for _ in range(draw.randint(1, 6)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content[: draw.randint(0, len(content))] if draw.random() < 0.4 else content)
        told = survey(copy)
        assert isinstance(told, DiskSurvey)
        damages.add(told.damage)
        written = set(zxids(home))
        assert set(zxids(copy)) <= written
    assert damages >= {None, Damage.RECORDS, Damage.PROMISE}


@pytest.mark.parametrize("damage", Damage)
def test_the_owner_of_the_only_copy_is_not_sent_to_other_servers(damage: Damage) -> None:
    alone = remedy(damage, Others.NONE)
    assert "synchronise" not in alone
    assert "move its data" not in alone
    assert "copy" in alone


@pytest.mark.parametrize("damage", Damage)
@pytest.mark.parametrize("others", Others)
def test_no_remedy_deletes(damage: Damage, others: Others) -> None:
    assert not any(word in remedy(damage, others) for word in ("delete", "remove", "erase", "wipe"))


def test_an_error_has_the_remedy_of_its_damage() -> None:
    error = DataError("/data/log.1: it is cut", Damage.RECORDS, Others.NONE)
    assert error.fault == "/data/log.1: it is cut"
    assert str(error) == f"/data/log.1: it is cut; {remedy(Damage.RECORDS, Others.NONE)}"
