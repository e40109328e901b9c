"""`--same-machines`: hosts that have other names in the new files, and the renamings that cannot be.

The expected texts are written by hand: they are the old files, with what else changes.
"""

import json
from pathlib import Path

import pytest

from checker.command import ExitCode
from checker.rollout.config_state import with_same_machines
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.stages import Stage, one_at_a_time, whole
from spec.config import ConfigError
from tests.support.command_line import cli

NAMES = {1: "zk1:2888:3888", 2: "zk2:2888:3888", 3: "zk3:2888:3888"}
ADDRESSES = {1: "10.0.0.1:2888:3888", 2: "10.0.0.2:2888:3888", 3: "10.0.0.3:2888:3888"}
LONG = {1: "zk1.example.com:2888:3888", 2: "zk2.example.com:2888:3888", 3: "zk3.example.com:2888:3888"}
SIX = {sid: f"[2001:db8::{sid}]:2888:3888" for sid in NAMES}
LOCAL = {sid: f"localhost:288{sid}:388{sid}" for sid in NAMES}
NUMBERS = {sid: f"127.0.0.1:288{sid}:388{sid}" for sid in NAMES}
STILL = "The hosts of servers 1, 2 and 3 have other names in the new files."


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


def test_a_move_that_is_unsafe_is_asked_again_with_the_same_machines(tmp_path: Path) -> None:
    old, new = written(tmp_path / "a", NAMES), written(tmp_path / "b", ADDRESSES)
    code, out, _ = cli("rollout", "--from", old, "--to", new, "--in-one-go")
    assert code == ExitCode.SAFETY
    assert f"ask again: `python -m checker rollout --from {old} --to {new} --same-machines`" in out


def test_the_command_asks_and_judges_the_renaming_as_what_it_is(tmp_path: Path) -> None:
    given = ("rollout", "--from", str(written(tmp_path / "a", NAMES)), "--to", str(written(tmp_path / "b", ADDRESSES)))
    code, out, _ = cli(*given, "--budget", "1s", "--how", "one-by-one", "--in-one-go")
    assert code != ExitCode.PASSED and STILL in out and "add `--same-machines`" in out
    code, out, _ = cli(*given, "--same-machines", "--in-one-go")
    assert code == ExitCode.PASSED and STILL not in out and "empty disk" not in out
    assert "`10.0.0.1` is `zk1`" in out and "both names have one address" in out
    code, out, _ = cli(*given, "--same-machines", "--json")
    answer = json.loads(out)
    assert answer["verdict"] == "safe" and answer["stages"] == []
    assert "10.0.0.2 is zk2, the machine of server 2 under another name (--same-machines)" in answer["after"]["taken"]


def test_ports_that_change_with_the_names_stay_a_change_of_ports(tmp_path: Path) -> None:
    moved = {sid: line.replace("2888:3888", "2889:3889") for sid, line in ADDRESSES.items()}
    stage = stage_of(tmp_path, NAMES, moved)
    assert (stage.moved, stage.readdressed) == ((), (1, 2, 3))
    assert stage.title == "{1, 2, 3} to {1, 2, 3} (changes the peer addresses of 1, 2, 3)"
    assert "server.2=zk2:2889:3889\n" in stage.texts["after.cfg"]
    (tmp_path / "again").mkdir()
    parts = one_at_a_time(*changed(tmp_path / "again", NAMES, moved))
    assert [part.readdressed for part in parts] == [(1,), (2,), (3,)]


def test_stages_have_both_names_in_their_files_and_one_in_their_runs(tmp_path: Path) -> None:
    five = ADDRESSES | {4: "10.0.0.4:2888:3888", 5: "10.0.0.5:2888:3888"}
    first, last = one_at_a_time(*changed(tmp_path, NAMES, five))
    assert (first.moved, first.readdressed, first.added, last.added) == ((), (), (4,), (5,))
    assert "server.1=zk1:2888:3888\n" in first.new.texts["step-1.cfg"]
    assert "server.4=10.0.0.4:2888:3888\n" in first.new.texts["step-1.cfg"]
    assert "server.1=10.0.0.1:2888:3888\n" in last.new.texts["after.cfg"]
    assert "server.1=zk1:2888:3888\n" in last.texts["after.cfg"]


def test_a_renaming_under_way_is_told_by_the_names_in_the_files(tmp_path: Path) -> None:
    old, new = written(tmp_path / "a", NAMES), written(tmp_path / "b", ADDRESSES)
    now = tmp_path / "now"
    for sid in (1, 2, 3):
        (now / str(sid)).mkdir(parents=True)
        source = new if sid == 1 else old
        (now / str(sid) / "zoo.cfg").write_bytes((source / "zoo.cfg").read_bytes())
    given = ("rollout", "--from", str(old), "--to", str(new), "--now", str(now), "--same-machines", "--json")
    code, out, _ = cli(*given)
    answer = json.loads(out)
    assert (code, answer["verdict"], answer["now"]["applied"]) == (0, "safe", [1])
    assert {step["server"] for order in answer["direct"]["orders"] for step in order["steps"]} == {2, 3}


def test_with_reconfig_the_names_of_the_files_are_not_those_of_the_ensemble(tmp_path: Path) -> None:
    """A server takes over the newest configuration, with the names in it: that is not explored."""
    assert stage_of(tmp_path, NAMES, ADDRESSES, "reconfigEnabled=true\n").gossips


BAD = {
    "the host of another server": (
        NAMES, NAMES | {1: "zk2:2889:3889"},
        "zk2 is the host of server 1 here, and that of server 2 in the old files",
    ),
    "two names exchanged": (
        NAMES, NAMES | {1: "zk2:2888:3888", 2: "zk1:2888:3888"},
        "zk2 is the host of server 1 here, and that of server 2 in the old files",
    ),
    "the host of a server that goes": (
        NAMES | {4: "zk4:2888:3888"}, NAMES | {1: "zk4:2889:3889"},
        "zk4 is the host of server 1 here, and that of server 4 in the old files",
    ),
    "an old name for a new server": (
        NAMES, ADDRESSES | {4: "zk1:2889:3889"}, "zk1 was the host of server 1, and is that of server 4 here",
    ),
    "two machines become one": (
        NAMES, {1: "box:2881:3881", 2: "box:2882:3882", 3: "box:2883:3883"},
        "box is one host here, and in the old files it is zk1 and zk2",
    ),
    "one machine becomes two": (LOCAL, NUMBERS | {3: "10.0.0.3:2888:3888"}, "is one host in the old files"),
    "several addresses": (
        NAMES, NAMES | {1: "10.0.0.1:2888:3888|10.0.1.1:2888:3888"},
        "server 1 has several addresses, and nothing says which of them are the same",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_renaming_is_refused_with_the_reason(
    tmp_path: Path, old: dict[int, str], new: dict[int, str], reason: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        changed(tmp_path, old, new)
    problem = raised.value.problems[0]
    assert reason in problem.what and problem.line > 0
    assert problem.right.startswith("leave --same-machines out")


def test_the_command_refuses_with_151(tmp_path: Path) -> None:
    old, new = written(tmp_path / "a", NAMES), written(tmp_path / "b", NAMES | {1: "zk2:2889:3889"})
    code, _, err = cli("rollout", "--from", str(old), "--to", str(new), "--same-machines")
    assert code == ExitCode.CONFIGURATION and "zk2 is the host of server 1 here" in err
