"""`--same-machines`: hosts that have other names in the new files, and the renamings that cannot be.

The expected texts are written by hand: they are the old files, with what else changes.
"""

from pathlib import Path

import pytest

from checker.rollout.config_state import with_same_machines
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.stages import Stage, one_at_a_time, whole

NAMES = {1: "zk1:2888:3888", 2: "zk2:2888:3888", 3: "zk3:2888:3888"}
ADDRESSES = {1: "10.0.0.1:2888:3888", 2: "10.0.0.2:2888:3888", 3: "10.0.0.3:2888:3888"}
LONG = {1: "zk1.example.com:2888:3888", 2: "zk2.example.com:2888:3888", 3: "zk3.example.com:2888:3888"}
SIX = {sid: f"[2001:db8::{sid}]:2888:3888" for sid in NAMES}
LOCAL = {sid: f"localhost:288{sid}:388{sid}" for sid in NAMES}
NUMBERS = {sid: f"127.0.0.1:288{sid}:388{sid}" for sid in NAMES}


def written(path: Path, lines: dict[int, str], more: str = "") -> Path:
    path.mkdir()
    text = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nclientPort=2181\n" + more
    text += "".join(f"server.{sid}={line}\n" for sid, line in lines.items())
    (path / "zoo.cfg").write_text(text, encoding="utf-8")
    return path


def changed(tmp_path: Path, old: dict[int, str], new: dict[int, str], more: str = "") -> tuple[Folder, Folder]:
    before, after = (read_folder(written(tmp_path / name, each, more)) for name, each in (("a", old), ("b", new)))
    return before, with_same_machines(before, after)


def stage_of(tmp_path: Path, old: dict[int, str], new: dict[int, str], more: str = "") -> Stage:
    return whole(*changed(tmp_path, old, new, more))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NAMES, ADDRESSES),
        (ADDRESSES, NAMES),
        (LONG, NAMES),
        (NAMES, LONG),
        (NAMES, SIX),
        (SIX, NAMES),
        (LOCAL, NUMBERS),
    ],
    ids=["addresses", "names", "no suffix", "suffix", "IPv6", "from IPv6", "one machine"],
)
def test_nothing_moves_and_the_runs_have_one_name_for_each_machine(
    tmp_path: Path, old: dict[int, str], new: dict[int, str]
) -> None:
    stage = stage_of(tmp_path, old, new)
    assert (stage.moved, stage.readdressed, stage.restarted) == ((), (), (1, 2, 3))
    assert stage.texts["after.cfg"] == (tmp_path / "a" / "zoo.cfg").read_text(encoding="utf-8")
    assert stage.new.texts["after.cfg"] == (tmp_path / "b" / "zoo.cfg").read_text(encoding="utf-8")
    assert {each.effect for each in stage.differences} == {Effect.LOCAL}
    assert {(each.key, each.new) for each in stage.differences} == {
        (f"server.{sid}", line) for sid, line in new.items()
    }
    assert (whole(read_folder(tmp_path / "a"), read_folder(tmp_path / "b")).moved) == (1, 2, 3)


def test_ports_that_change_with_the_names_stay_a_change_of_ports(tmp_path: Path) -> None:
    moved = {sid: line.replace("2888:3888", "2889:3889") for sid, line in ADDRESSES.items()}
    stage = stage_of(tmp_path, NAMES, moved)
    assert (stage.moved, stage.readdressed) == ((), (1, 2, 3))
    assert stage.title == "{1, 2, 3} to {1, 2, 3} (changes the peer addresses of 1, 2, 3)"
    assert "server.2=zk2:2889:3889\n" in stage.texts["after.cfg"]
    (tmp_path / "again").mkdir()
    parts, _ = one_at_a_time(*changed(tmp_path / "again", NAMES, moved))
    assert [part.readdressed for part in parts] == [(1,), (2,), (3,)]


def test_stages_have_both_names_in_their_files_and_one_in_their_runs(tmp_path: Path) -> None:
    five = ADDRESSES | {4: "10.0.0.4:2888:3888", 5: "10.0.0.5:2888:3888"}
    (first, last), _ = one_at_a_time(*changed(tmp_path, NAMES, five))
    assert (first.moved, first.readdressed, first.added, last.added) == ((), (), (4,), (5,))
    assert "server.1=zk1:2888:3888\n" in first.new.texts["step-1.cfg"]
    assert "server.4=10.0.0.4:2888:3888\n" in first.new.texts["step-1.cfg"]
    assert "server.1=10.0.0.1:2888:3888\n" in last.new.texts["after.cfg"]
    assert "server.1=zk1:2888:3888\n" in last.texts["after.cfg"]


def test_with_reconfig_the_names_of_the_files_are_not_those_of_the_ensemble(tmp_path: Path) -> None:
    """A server takes over the newest configuration, with the names in it: that is not explored."""
    assert stage_of(tmp_path, NAMES, ADDRESSES, "reconfigEnabled=true\n").gossips
