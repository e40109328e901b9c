"""`recover`: the cases of an operator, through the command line.

The expected values follow from the disks that each test writes, and from the rules of Zab, worked out by hand.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from checker.cli.main import main
from refimpl.disk import database, epochs, snapshot
from refimpl.disk.txnlog import TxnLog
from refimpl.tree import Tree
from refimpl.wire.txn import encode_txn
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.txns import Change, CreateTxn, ErrorTxn, ReconfigTxn, SetDataTxn

E1, E2, E3 = 1 << 32, 2 << 32, 3 << 32


def change(zxid: int, name: str = "") -> Change:
    path = f"/{name or format(zxid, 'x')}"
    return Change(1, zxid & 0xFFFF, 1_700_000_000_000, CreateTxn(path, b"data", OPEN_ACL_UNSAFE, False, -1))


def disk(
    home: Path,
    sid: int | None,
    zxids: list[int],
    epoch: int | None = None,
    *,
    begin: int | None = 0,
    changes: dict[int, Change] | None = None,
) -> Path:
    """Write a dataDir: a snapshot at `begin` (None: none), and these transactions; `changes` replace the usual ones."""
    directory = home / "version-2"
    directory.mkdir(parents=True)
    tree = Tree()
    log = TxnLog(directory, preallocation=0)
    for zxid in zxids:
        record = (changes or {}).get(zxid) or change(zxid)
        if begin is not None and zxid <= begin:
            tree.carry_out(apply(tree, zxid, record).operations)
        else:
            log.append(zxid, encode_txn(zxid, record))
    log.close()
    if begin is not None:
        snapshot.save(directory, tree, begin)
    if epoch is not None:
        epochs.save_accepted(directory, epoch)
        epochs.save_current(directory, epoch)
    if sid is not None:
        (home / "myid").write_text(f"{sid}\n")
    return home


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, dict[str, Any]]:
    code = main(["recover", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def refusal(capsys: pytest.CaptureFixture[str], *words: object, code: int = 2) -> str:
    assert main(["recover", *map(str, words)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def paths(home: Path) -> set[str]:
    tree = database.load(home, home).tree
    return {path for path, _ in tree.znodes() if path != "/" and not path.startswith("/zookeeper")}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_one_of_three_disks_lost_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk(tmp_path / "1", 1, [E1 + 1, E1 + 2], 1)
    disk(tmp_path / "2", 2, [E1 + 1, E1 + 2, E1 + 3], 1)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3")
    assert code == 0
    assert said["kept"]["end"] == "0x100000003"
    assert (said["lost_voters"], said["may_be_lost"]["most"], said["not_kept"]) == ([3], 0, [])


def test_a_majority_of_the_disks_gone_has_no_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk(tmp_path / "1", 1, [E1 + 1, E1 + 2], 1)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3")
    assert code == 12
    assert said["may_be_lost"]["most"] is None
    assert said["may_be_lost"]["on_no_disk"] == [{"after": "0x100000002", "before": None, "count": None}]


def test_observers_and_strangers_count_in_no_quorum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Disks of 4 and 5, which do not vote: still the quorum {2, 3} is lost."""
    for sid in (1, 4, 5):
        disk(tmp_path / str(sid), sid, [E1 + 1], 1)
    assert answer(capsys, tmp_path, "--voters", "1,2,3")[1]["may_be_lost"]["most"] is None


def test_what_an_observer_has_may_have_been_acknowledged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It hears of commits alone. The voters have another transaction under its zxid."""
    lines = [f"server.{sid}=h{sid}:2888:3888{':observer' * (sid == 4)}" for sid in (1, 2, 3, 4)]
    (tmp_path / "zoo.cfg").write_text("\n".join([*lines, "tickTime=2000"]) + "\n")
    for sid in (1, 2, 3, 4):
        mine = change(E1 + 2, "observed" if sid == 4 else "")
        disk(tmp_path / f"disks/{sid}", sid, [E1 + 1, E1 + 2], 1, changes={E1 + 2: mine})
    code, said = answer(capsys, tmp_path / "disks", "--config", tmp_path / "zoo.cfg")
    assert (code, said["may_be_lost"]["most"]) == (12, 1)


def test_a_quorum_by_weights_needs_its_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two groups, both needed: without the disks of one group no write was acknowledged by them alone."""
    lines = [f"server.{sid}=h{sid}:2888:3888" for sid in (1, 2, 3, 4, 5)]
    (tmp_path / "zoo.cfg").write_text("\n".join([*lines, "group.1=1:2:3", "group.2=4:5", "tickTime=2000"]) + "\n")
    for sid in (4, 5):
        disk(tmp_path / f"disks/{sid}", sid, [E1 + 1], 1)
    assert answer(capsys, tmp_path / "disks", "--config", tmp_path / "zoo.cfg")[1]["may_be_lost"]["most"] == 0
    assert answer(capsys, tmp_path / "disks", "--voters", "1,2,3,4,5")[1]["may_be_lost"]["most"] is None


def test_a_later_epoch_without_a_write_shows_that_nobody_has_its_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk(tmp_path / "1", 1, [E1 + 1, E1 + 2], 1)
    disk(tmp_path / "2", 2, [E1 + 1, E2 + 1], 2)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3")
    assert (code, said["kept"]["end"], said["needs_choice"]) == (0, "0x200000001", False)
    assert [(line["first"], line["standing"]) for line in said["not_kept"]] == [("0x100000002", "superseded")]


def test_an_epoch_alone_shows_nothing_and_the_operator_chooses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Server 2 may have written its epoch before the transaction that the epoch begins with (ZOOKEEPER-4643)."""
    disk(tmp_path / "1", 1, [E1 + 1, E1 + 2], 1)
    disk(tmp_path / "2", 2, [E1 + 1], 2)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3")
    assert (code, said["kept"]["end"], said["needs_choice"]) == (12, "0x100000001", True)
    assert said["not_kept"][0]["standing"] == "possible"
    assert said["choices"] == [str(tmp_path / "1"), str(tmp_path / "2")]
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3", "--keep", tmp_path / "1")
    assert (code, said["kept"]["end"], said["not_kept"]) == (0, "0x100000002", [])


def test_two_leaders_in_one_epoch_are_two_sides_by_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = {E2 + 1: change(E2 + 1, "ours")}, {E2 + 1: change(E2 + 1, "theirs")}
    for sid, changes in ((1, ours), (2, ours), (4, theirs), (5, theirs)):
        disk(tmp_path / str(sid), sid, [E1 + 1, E2 + 1], 2, changes=changes)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3,4,5")
    assert (code, said["needs_choice"], said["may_be_lost"]["one_electorate"]) == (12, True, False)
    assert [line["paths"] for line in said["kept_beside"]] == [["/ours"]]
    assert [line["paths"] for line in said["not_kept"][0]["transactions"]] == [["/theirs"]]
    assert main(["recover", str(tmp_path), "--voters", "1,2,3,4,5"]) == 12
    text = capsys.readouterr().out
    assert "| /ours | create |  |  |" in text
    assert "| /theirs |  | create | server 4, server 5 |" in text


def test_nothing_is_written_before_a_side_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    disk(old / "1", 1, [E2 + 1], 2, changes={E2 + 1: change(E2 + 1, "ours")})
    disk(old / "2", 2, [E2 + 1], 2, changes={E2 + 1: change(E2 + 1, "theirs")})
    words = [old, "--voters", "1,2,3", "--to", new, "--write"]
    assert answer(capsys, *words)[0] == 20
    assert not new.exists()
    code, said = answer(capsys, *words, "--keep", old / "2")
    assert (code, len(said["written"])) == (12, 3)
    assert paths(new / "server-1") == {"/theirs"}


def test_a_gap_is_filled_from_another_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = disk(tmp_path / "1", 1, [E1 + number for number in range(1, 6)], 1) / "version-2" / "log.100000001"
    path.write_bytes(path.read_bytes().replace(b"/100000003", b"/10000000X"))
    disk(tmp_path / "2", 2, [E1 + 1, E1 + 2, E1 + 3], 1)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3")
    assert (code, said["kept"]["end"], said["kept"]["znodes"]) == (0, "0x100000005", len(Tree()) + 5)
    assert said["kept"]["node_count"] == len(Tree()) + 6  # real servers count the root twice


def test_a_gap_that_no_disk_fills_ends_the_history_and_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Server 1 lost 3; 4 and 5 are on it alone. With the lost disk of 3 each may have had a quorum."""
    path = disk(tmp_path / "1", 1, [E1 + number for number in range(1, 6)], 1) / "version-2" / "log.100000001"
    path.write_bytes(path.read_bytes().replace(b"/100000003", b"/10000000X"))
    disk(tmp_path / "2", 2, [E1 + 1, E1 + 2], 1)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3")
    assert (code, said["kept"]["end"], said["needs_choice"]) == (12, "0x100000002", False)
    assert said["may_be_lost"]["on_no_disk"] == [{"after": "0x100000002", "before": "0x100000004", "count": 1}]
    assert [(line["first"], line["count"], line["standing"]) for line in said["not_kept"]] == [
        ("0x100000004", 2, "possible")
    ]
    assert said["may_be_lost"]["most"] == 3


def test_a_cut_log_and_a_lost_disk_can_be_a_quorum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = disk(tmp_path / "1", 1, [E1 + 1, E1 + 2, E1 + 3], 1) / "version-2" / "log.100000001"
    path.write_bytes(path.read_bytes()[:-5])
    disk(tmp_path / "2", 2, [E1 + 1, E1 + 2], 1)
    assert answer(capsys, tmp_path, "--voters", "1,2,3")[1]["may_be_lost"]["most"] is None
    disk(tmp_path / "3", 3, [E1 + 1, E1 + 2], 1)
    assert answer(capsys, tmp_path, "--voters", "1,2,3")[1]["may_be_lost"]["most"] == 0


def test_a_failed_request_is_no_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = Change(1, 1, 1, ErrorTxn(-110))
    disk(tmp_path / "1", 1, [E1 + 1, E1 + 2], 1, changes={E1 + 2: failed})
    disk(tmp_path / "2", 2, [E1 + 1], 2)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3")
    assert (code, said["may_be_lost"]["most"], said["needs_choice"]) == (0, 0, False)


def test_stale_records_before_a_snapshot_of_the_leader_do_not_come_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Server 1 kept 2 of epoch 1 when the leader of epoch 2 sent it a snapshot without it."""
    home = disk(tmp_path / "1", 1, [E1 + 1, E1 + 2, E2 + 1], 2)
    tree = Tree()
    tree.carry_out(apply(tree, E1 + 1, change(E1 + 1)).operations)
    snapshot.save(home / "version-2", tree, E2)
    disk(tmp_path / "2", 2, [E1 + 1, E2 + 1], 2)
    code, said = answer(capsys, tmp_path, "--voters", "1,2,3", "--to", tmp_path / "new", "--write")
    assert code == 0
    assert paths(tmp_path / "new" / "server-3") == {"/100000001", "/200000001"}
    assert [(line["first"], line["standing"]) for line in said["not_kept"]] == [("0x100000002", "covered")]


def test_data_of_3_4_is_a_log_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk(tmp_path / "old", None, [1, 2, 3], begin=None)
    code, said = answer(capsys, tmp_path / "old", "--to", tmp_path / "new", "--write")
    assert (code, said["kept"]["end"], said["kept"]["snapshot"]) == (0, "0x3", None)
    assert "ran alone" in said["voters"][0]["source"]
    assert "taken for all of them" in said["notes"][0]
    assert paths(tmp_path / "new" / "server") == {"/1", "/2", "/3"}
    assert sorted(path.name for path in (tmp_path / "new" / "server" / "version-2").iterdir()) == ["snapshot.3"]


def test_a_log_without_its_beginning_and_a_snapshot_is_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disk(tmp_path, None, [7, 8], begin=None)
    assert "nothing can be kept" in refusal(capsys, tmp_path)


def test_new_epochs_are_above_all_that_disks_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old"
    disk(old / "1", 1, [E1 + 1, E1 + 2], 1)
    (disk(old / "2", 2, [E1 + 1], 1) / "version-2" / "acceptedEpoch").write_text("7")
    (old / "1" / "version-2" / "currentEpoch").unlink()
    code, said = answer(capsys, old, "--voters", "1,2,3", "--to", tmp_path / "new", "--write")
    assert (code, said["kept"]["new_epoch"]) == (0, 7)
    for sid in (1, 2, 3):
        directory = tmp_path / "new" / f"server-{sid}" / "version-2"
        assert (directory.parent / "myid").read_text() == f"{sid}\n"
        assert {path.name: path.read_text() for path in directory.glob("*Epoch")} == {
            "acceptedEpoch": "7",
            "currentEpoch": "7",
        }
        assert paths(directory.parent) == {"/100000001", "/100000002"}


def test_old_directories_never_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old"
    home = disk(old / "1", 1, [E1 + 1, E1 + 2], 1)
    (home / "version-2" / "log.100000003").write_bytes(b"")
    before = contents(old)
    answer(capsys, old, "--voters", "1", "--to", tmp_path / "new", "--write")
    assert contents(old) == before
    assert (tmp_path / "new" / "server-1").is_dir()


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk(tmp_path / "old", 1, [E1 + 1], 1)
    assert main(["recover", str(tmp_path / "old"), "--voters", "1", "--to", str(tmp_path / "new")]) == 0
    assert "Nothing was written" in capsys.readouterr().out
    assert not (tmp_path / "new").exists()


def test_the_target_must_be_new_and_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = disk(tmp_path / "old", 1, [E1 + 1], 1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "it is not empty" in refusal(capsys, old, "--voters", "1", "--to", tmp_path / "full")
    assert "it is inside of" in refusal(capsys, old, "--voters", "1", "--to", old / "new")
    assert "it is no folder" in refusal(capsys, old, "--voters", "1", "--to", tmp_path / "full" / "file")
    assert "--write needs --to" in refusal(capsys, old, "--write")


def test_without_voters_the_bound_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk(tmp_path / "1", 1, [E1 + 1], 1)
    code, said = answer(capsys, tmp_path)
    assert (code, said["may_be_lost"]["voters_known"], said["voters"]) == (20, False, [])
    assert main(["recover", str(tmp_path)]) == 20
    assert "--voters 1,2,3" in capsys.readouterr().out


def test_voters_come_from_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"server.{sid}=h{sid}:2888:3888:participant" for sid in (1, 2, 3)]
    text = "\n".join([*lines, f"version={E1 + 2:x}"])
    reconfig = Change(1, 1, 1, ReconfigTxn("/zookeeper/config", text.encode(), -1))
    disk(tmp_path / "1", 1, [E1 + 1, E1 + 2], 1, changes={E1 + 2: reconfig})
    said = answer(capsys, tmp_path)[1]
    assert said["voters"][0]["voters"] == [1, 2, 3]
    assert said["voters"][0]["source"] == "/zookeeper/config in log.100000001 of server 1"
    assert said["lost_voters"] == [2, 3]


def test_files_with_other_voters_are_all_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Server 3 ran with a file of five: with 4 and 5 it is a quorum there."""
    for sid, members in ((1, 3), (2, 3), (3, 5)):
        disk(tmp_path / f"s{sid}" / "data", sid, [E1 + 1], 1)
        lines = [f"server.{number}=h{number}:2888:3888" for number in range(1, members + 1)]
        (tmp_path / f"s{sid}" / "zoo.cfg").write_text("\n".join(lines) + "\n")
    said = answer(capsys, tmp_path)[1]
    assert [voters["voters"] for voters in said["voters"]] == [[1, 2, 3], [1, 2, 3, 4, 5]]
    assert (said["lost_voters"], said["may_be_lost"]["one_electorate"]) == ([4, 5], False)


def test_a_data_log_dir_is_read_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, logs = disk(tmp_path / "server" / "data", 1, [E1 + 1], 1), tmp_path / "server" / "logs"
    (logs / "version-2").mkdir(parents=True)
    (data / "version-2" / "log.100000001").rename(logs / "version-2" / "log.100000001")
    for words in ((tmp_path,), (data, "--log-dir", logs)):
        assert answer(capsys, *words, "--voters", "1")[1]["kept"]["end"] == "0x100000001"


def test_an_id_may_be_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk(tmp_path / "a", None, [E1 + 1], 1)
    disk(tmp_path / "b", 2, [E1 + 1], 1)
    said = answer(capsys, f"1={tmp_path / 'a'}", tmp_path / "b", "--voters", "1,2,3")[1]
    assert (said["lost_voters"], [line["sid"] for line in said["disks"]]) == ([3], [1, 2])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nosuch",), "there is no such folder"),
        (("1/version-2",), "it is the folder inside of a dataDir"),
        (("empty",), "no data of ZooKeeper is there"),
        (("1", "1"), "is named twice"),
        (("1", "2"), "both have the id 1"),
        (("1", "--log-dir", "empty"), "it has no folder version-2"),
        (("1", "--config", "nosuch.cfg"), "it cannot be read"),
        (("1", "--voters", "1", "--keep", "empty"), "it is none of the directories"),
        (("1", "--voters", "one"), "--voters"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    disk(Path("1"), 1, [E1 + 1], 1)
    disk(Path("2"), 1, [E1 + 1], 1)
    Path("empty").mkdir()
    assert message in refusal(capsys, *words)


def test_foreign_text_is_shown_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = "/\x1b[31mred|x"
    strange = Change(1, 1, 1, SetDataTxn(path, b"", 1))
    disk(tmp_path / "1", 1, [E1 + 1, E1 + 2], 1, changes={E1 + 2: strange})
    disk(tmp_path / "2", 2, [E1 + 1], 2)
    assert main(["recover", str(tmp_path), "--voters", "1,2,3"]) == 12
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "u001b" in text
    assert "\\|x" in text


def test_a_stated_electorate_hides_no_quorum_that_the_data_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tarfile.open(Path(__file__).parents[2] / "incidents" / "two-leaders.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "two-leaders"  # 1 and 3 were a quorum of their file; 2, 4 and 5 had that of five servers
    for electorate in ([], ["--config", str(folder / "2" / "zoo.cfg")], ["--voters", "1,2,3,4,5"]):
        assert main(["recover", str(folder), *electorate, "--json"]) == 12
        assert json.loads(capsys.readouterr().out)["may_be_lost"]["most"] > 0
