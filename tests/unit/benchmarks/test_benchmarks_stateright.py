"""The comparison with stateright: a ratio needs equal counts, and every missing tool is named.

The program of stateright is replaced by scripts here; `python -m benchmarks stateright` builds and runs the real one.
"""

import json
import stat
from pathlib import Path

import pytest

from benchmarks import stateright
from benchmarks.comparison import Comparison, SearchFigures, as_text, known_states
from benchmarks.outcome import NotMeasured, ToolFailed, WrongCount


def figures(tool: str, states: int, seconds: float) -> SearchFigures:
    return SearchFigures(tool, states, 1_145, seconds, 10 * states)


def test_a_ratio_is_that_of_states_per_second() -> None:
    comparison = Comparison("two_phase_commit", 3, figures("stateright", 288, 0.3), figures("Quorate", 288, 0.1))
    assert comparison.ratio == pytest.approx(3.0)
    assert as_text([comparison]) == (
        "workload                      states  tool        transitions  search s  bytes/state  states/s  ratio\n"
        "two-phase commit, 3 managers  288     stateright  1,145        0.300     10           960\n"
        "two-phase commit, 3 managers  288     Quorate     1,145        0.100     10           2,880     3.00"
    )


@pytest.mark.parametrize(("theirs", "ours"), [(288, 287), (287, 288), (287, 287)])
def test_unequal_counts_give_no_ratio(theirs: int, ours: int) -> None:
    with pytest.raises(WrongCount, match="found 287 states where the model has 288"):
        Comparison("two_phase_commit", 3, figures("stateright", theirs, 1), figures("Quorate", ours, 1))


def test_a_size_without_a_known_count_needs_equal_counts() -> None:
    Comparison("paxos", 1, figures("stateright", 265, 1), figures("Quorate", 265, 1))
    with pytest.raises(WrongCount):
        Comparison("paxos", 1, figures("stateright", 265, 1), figures("Quorate", 264, 1))


@pytest.mark.parametrize(("managers", "states"), [(3, 288), (5, 8_832), (7, 296_448)])
def test_the_states_of_two_phase_commit_are_those_of_the_tests_of_stateright(managers: int, states: int) -> None:
    assert known_states("two_phase_commit", managers) == states


def test_a_missing_cargo_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NotMeasured, match="cargo is missing: install Rust"):
        stateright.build(tmp_path)
    assert stateright.main([]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "not measured: cargo is missing: install Rust (apt-get install cargo, or rustup)\n"


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_both_are_searched_and_the_best_run_counts(tmp_path: Path) -> None:
    line = json.dumps({"states": 288, "transitions": 1145, "seconds": 1.0})
    found = stateright.compare(program(tmp_path / "fake", f"echo '{line}'"), "two_phase_commit", 3, 1, 1)
    assert (found.ours.states, found.ours.transitions) == (288, 1_145)
    assert found.theirs.rate == 288.0


def test_a_program_that_fails_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"stateright ended with exit code 3:\nno such example"):
        stateright.compare(program(tmp_path / "fake", "echo no such example; exit 3"), "two_phase_commit", 3, 1, 1)
