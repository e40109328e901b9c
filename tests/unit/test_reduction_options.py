"""`--reduce safe` beside the options of the engine: what it is compared with, and what refuses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from checker.cli.main import main
from checker.engine.reduction import reduced_search
from checker.engine.result import Exploration
from checker.report.verdict import ExitCode

SCENARIO = str(next(Path("spec/scenarios").rglob("leader-stays.yaml")))


def run(*options: str) -> int:
    return main(["run", SCENARIO, "--reduce", "safe", *options])


PAXOS = "docs/examples/paxos.py:model(1, 'ordered')"


def test_stubborn_sets_are_named_with_what_they_do_not_keep(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", PAXOS, "--reduce", "stubborn", "--engine", "both"]) == ExitCode.PASSED
    shown = capsys.readouterr().out
    assert "stubborn sets; how often an action fired, and how many deadlocks there are, is not kept" in shown


def test_an_ensemble_is_explored_by_stubborn_sets(capsys: pytest.CaptureFixture[str]) -> None:
    """The channels between servers replace a message that waits by a newer one, and so are bounded."""
    assert main(["run", SCENARIO, "--reduce", "stubborn"]) == ExitCode.PASSED
    assert "stubborn sets; how often an action fired" in capsys.readouterr().out


def test_stubborn_sets_save_no_checkpoint(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["run", PAXOS, "--reduce", "stubborn", "--checkpoint", str(tmp_path / "saved")]) != ExitCode.PASSED
    assert "--reduce stubborn saves no checkpoint" in capsys.readouterr().out


def test_a_witness_has_a_shortest_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Servers 1 and 3 hear from 2, 2 hears from one of them, and two votes for 2 arrive: start, four deliveries."""
    assert run() == ExitCode.PASSED
    assert "witnessed at depth 5" in capsys.readouterr().out


def test_the_plain_engine_refuses_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--engine", "plain") == ExitCode.COMMAND_LINE
    assert "--reduce safe is for the table engine; write --engine tables" in capsys.readouterr().err


def test_both_engines_compare_the_answers() -> None:
    assert run("--engine", "both") == ExitCode.PASSED


def test_a_different_answer_of_the_plain_engine_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explore = reduced_search.explore

    def without_its_witness(*positional: object, **named: object) -> Exploration:
        found = explore(*positional, **named)  # type: ignore[arg-type]
        found.found.clear()
        return found

    monkeypatch.setattr(reduced_search, "explore", without_its_witness)
    assert run("--engine", "both") == ExitCode.SCENARIO
    assert "the engines disagree, which is a defect: depth of Stands(" in capsys.readouterr().out
