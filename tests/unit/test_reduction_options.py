"""`--reduce` with the options of the engine: comparisons, refusals, `auto` and `compare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from checker import execution
from checker.cli.main import main
from checker.engine import ModelError, plain
from checker.engine.reduction import reduced_search
from checker.engine.result import Exploration, Limits, Stop
from checker.report.verdict import ExitCode
from checker.scenario import load

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


@pytest.fixture
def alike(tmp_path: Path) -> str:
    """Three servers that lead and follow, with one file, and no fault."""
    path = tmp_path / "alike.yaml"
    (tmp_path / "zoo.cfg").write_text("".join(f"server.{n}=zk{n}:2888:3888\n" for n in (1, 2, 3)))
    path.write_text(
        "name: alike\nfile: zoo.cfg\nservers: [1, 2, 3]\ngrain: oracle\nprotocol: zab\nalways: [OnlyVotersAck]\n"
    )
    return str(path)


def test_auto_explores_a_small_model_in_full(alike: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", alike, "--reduce", "auto"]) == ExitCode.PASSED
    assert "reduction" not in capsys.readouterr().out


def test_auto_begins_a_large_model_again_with_its_symmetry(
    alike: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(execution, "FULL_STATES", 10)
    assert main(["run", alike, "--reduce", "auto", "--engine", "both"]) == ExitCode.PASSED
    assert "states that differ in names count once (6 renamings; " in capsys.readouterr().out


def test_auto_explores_a_model_without_symmetry_in_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(execution, "FULL_STATES", 10)
    assert main(["run", SCENARIO, "--reduce", "auto"]) == ExitCode.PASSED
    assert "reduction" not in capsys.readouterr().out


def test_the_limit_of_states_of_a_run_ends_auto(
    alike: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first search ends at the limit of `auto`, and the second at that of the run."""
    monkeypatch.setattr(execution, "FULL_STATES", 10)
    assert main(["run", alike, "--reduce", "auto", "--states", "20"]) == ExitCode.INCOMPLETE
    assert "the number of states given (20) ended the search" in capsys.readouterr().out


def test_compare_explores_in_full_and_compares_with_the_symmetry(
    alike: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", alike, "--reduce", "compare"]) == ExitCode.PASSED
    assert "reduction     none; a symmetric search of " in (shown := capsys.readouterr().out)
    assert "s gives the same answers" in shown


def test_a_different_answer_of_the_symmetric_search_is_an_error(
    alike: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explore = reduced_search.explore

    def without_a_premise(*positional: object, **named: object) -> Exploration:
        found = explore(*positional, **named)  # type: ignore[arg-type]
        found.evaluations["OnlyVotersAck"].premise = 0
        return found

    monkeypatch.setattr(reduced_search, "explore", without_a_premise)
    assert main(["run", alike, "--reduce", "compare"]) == ExitCode.SCENARIO
    assert "the symmetric search and the full one disagree, which is a defect: " in capsys.readouterr().out


def raising(error: BaseException) -> Callable[..., Exploration]:
    def explore(*_: object, **__: object) -> Exploration:
        raise error

    return explore


def test_an_interrupt_of_the_comparison_ends_the_command(
    alike: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reduced_search, "explore", raising(KeyboardInterrupt()))
    assert main(["run", alike, SCENARIO, "--reduce", "compare"]) == ExitCode.INCOMPLETE
    assert "the comparison with a symmetric search was interrupted" in (shown := capsys.readouterr().out)
    assert "1 of 2 runs, " in shown


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ModelError("the temporary folder cannot take more")])
def test_a_violation_stays_if_the_comparison_does_not_end(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reduced_search, "explore", raising(error))
    defect = str(next(Path("spec/scenarios").rglob("ack-before-log.yaml")))
    assert main(["run", defect, "--verdict", "--reduce", "compare"]) == ExitCode.SAFETY
    assert "the comparison with a symmetric search" in capsys.readouterr().out


def test_a_comparison_has_the_time_that_this_sitting_has_left(alike: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = replace(load(Path(alike)), limits=Limits(seconds=100.0))
    found, given = execution.run_job(job), list[Limits]()

    def explore(_: object, limits: Limits, **__: object) -> Exploration:
        given.append(limits)
        return found

    monkeypatch.setattr(reduced_search, "explore", explore)
    execution.compare_with_symmetry(job, replace(found, seconds=90.0, seconds_before=80.0))
    assert given == [Limits(seconds=90.0)]


def test_auto_reports_the_deeper_search_if_the_second_is_cut_short(alike: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = load(Path(alike))
    shallow = replace(execution.run_job(job, Limits(depth=1)), stop=Stop.TIME)
    monkeypatch.setattr(execution, "FULL_STATES", 100)
    monkeypatch.setattr(reduced_search, "explore", lambda *_, **__: shallow)
    found = execution.run_job(job, reduce="auto")
    assert (found.stop, found.states >= 100, found.depth > shallow.depth) == (Stop.TIME, True, True)


def test_auto_keeps_the_first_search_if_an_interrupt_comes_before_the_second(
    alike: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "FULL_STATES", 100)
    monkeypatch.setattr(reduced_search, "explore", raising(KeyboardInterrupt()))
    found = execution.run_job(load(Path(alike)), reduce="auto")
    assert (found.stop, found.states >= 100) == (Stop.INTERRUPTED, True)


def test_both_engines_compare_every_figure_where_auto_explores_in_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    explore = plain.explore

    def with_another_deadlock(*positional: object, **named: object) -> Exploration:
        found = explore(*positional, **named)  # type: ignore[arg-type]
        return replace(found, deadlocks=found.deadlocks + 1)

    monkeypatch.setattr(plain, "explore", with_another_deadlock)
    assert main(["run", SCENARIO, "--reduce", "auto", "--engine", "both"]) == ExitCode.SCENARIO
    assert "the engines disagree, which is a defect: states without a successor" in capsys.readouterr().out
