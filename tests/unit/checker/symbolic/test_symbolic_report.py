"""The answer for two zoo.cfg files: exit code, text and data, and their readable contents."""

import subprocess
import sys
from pathlib import Path

import pytest

from checker.symbolic.report import quorums_command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with three.cfg, four.cfg and five.cfg, so that names stay short."""
    monkeypatch.chdir(tmp_path)
    for size, name in ((3, "three"), (4, "four"), (5, "five")):
        Path(f"{name}.cfg").write_text("".join(f"server.{n}=zk{n}:2888:3888\n" for n in range(1, size + 1)))


def test_growing_three_to_five_shows_the_two_quorums() -> None:
    answer = quorums_command([Path("three.cfg"), Path("five.cfg")])
    assert answer.exit_code == 12
    assert answer.text == (
        "three.cfg  3 voters {1, 2, 3}, quorum: any 2\n"
        "five.cfg   5 voters {1, 2, 3, 4, 5}, quorum: any 3\n"
        "\n"
        "three.cfg and five.cfg: DISJOINT QUORUMS, so two leaders are possible\n"
        "  three.cfg  {1, 2} is a quorum\n"
        "  five.cfg   {3, 4, 5} is a quorum, and shares no server with it\n"
        "  because 2 + 3 = 5 is not more than the 5 voters of the two together"
    )


def test_growing_three_to_four_is_proved_safe() -> None:
    answer = quorums_command([Path("three.cfg"), Path("four.cfg")])
    assert answer.exit_code == 0
    assert answer.text.endswith(
        "every quorum of three.cfg meets every quorum of four.cfg (proved)\n"
        "  because 2 + 3 = 5 is more than the 4 voters of the two together"
    )


def test_the_data_says_the_same() -> None:
    data = quorums_command([Path("three.cfg"), Path("five.cfg")]).data
    assert data["verdict"] == "disjoint quorums"
    assert [file["voters"] for file in data["files"]] == [[1, 2, 3], [1, 2, 3, 4, 5]]
    assert data["pairs"][-1]["disjoint"] == {"a": [1, 2], "b": [3, 4, 5]}


def test_three_files_are_compared_two_by_two() -> None:
    pairs = quorums_command([Path("three.cfg"), Path("four.cfg"), Path("five.cfg")]).data["pairs"]
    met = {(pair["a"], pair["b"]): pair["meet"] for pair in pairs if pair["a"] != pair["b"]}
    assert met == {("three.cfg", "four.cfg"): True, ("three.cfg", "five.cfg"): False, ("four.cfg", "five.cfg"): True}


def test_one_file_alone_can_be_broken_by_negative_weights() -> None:
    with Path("three.cfg").open("a") as file:
        file.write("group.1=1:2:3\nweight.3=-1\n")
    answer = quorums_command([Path("three.cfg")])
    assert answer.exit_code == 12
    assert "three.cfg alone: DISJOINT QUORUMS" in answer.text
    assert "warning: three.cfg:5: weight.3: with a negative weight" in answer.text


def test_bad_lines_of_all_files_are_listed() -> None:
    Path("bad.cfg").write_text("server.1=zk1\nserver.x=zk1:1:2\n")
    answer = quorums_command([Path("three.cfg"), Path("bad.cfg"), Path("none.cfg")])
    assert answer.exit_code == 151
    assert [line.split(" ")[0] for line in answer.text.splitlines()] == ["bad.cfg:1:", "bad.cfg:2:", "none.cfg:"]
    assert [problem["line"] for problem in answer.data["problems"]] == [1, 2, 0]


def test_a_file_without_servers_is_no_success() -> None:
    # Without quorums every two of them meet, so any wrong file would look safe.
    Path("empty.cfg").write_text("tickTime=2000\n")
    assert quorums_command([Path("three.cfg"), Path("empty.cfg")]).exit_code == 151


def test_a_dynamic_file_is_found_beside_the_copy_of_its_zoo_cfg() -> None:
    Path("copy").mkdir()
    Path("copy/zoo.cfg").write_text("dynamicConfigFile=/etc/zookeeper/here-it-is-not/zoo.cfg.dynamic\n")
    Path("copy/zoo.cfg.dynamic").write_bytes(Path("five.cfg").read_bytes())
    assert quorums_command([Path("three.cfg"), Path("copy/zoo.cfg")]).exit_code == 12


def test_any_bytes_are_read() -> None:
    Path("bytes.cfg").write_bytes(bytes(range(256)))
    assert quorums_command([Path("bytes.cfg")]).exit_code == 151


def test_no_file_is_a_bad_command_line() -> None:
    assert quorums_command([]).exit_code == 2


def test_the_solver_is_not_loaded_before_it_is_asked() -> None:
    code = "import sys, checker.symbolic.report; sys.exit('z3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
