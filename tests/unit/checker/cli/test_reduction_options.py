"""`--reduce` with the options of the engine: comparisons, refusals, `auto` and `compare`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from checker import execution
from checker.cli.main import main
from checker.command import ExitCode
from checker.engine import ModelError, plain
from checker.engine.result import Exploration, Limits, Stop
from checker.engine.search import Request
from checker.engine.symmetric_search import SYMMETRIC
from checker.scenario import load

SCENARIO = str(next(Path("spec/scenarios").rglob("leader-stays.yaml")))


@pytest.fixture
def alike(tmp_path: Path) -> str:
    """Three servers that lead and follow, with one file, and no fault."""
    path = tmp_path / "alike.yaml"
    (tmp_path / "zoo.cfg").write_text("".join(f"server.{n}=zk{n}:2888:3888\n" for n in (1, 2, 3)))
    path.write_text(
        "name: alike\nfile: zoo.cfg\nservers: [1, 2, 3]\ngrain: oracle\nprotocol: zab\nalways: [OnlyVotersAck]\n"
    )
    return str(path)


@pytest.mark.parametrize("word", ["safe", "stubborn"])
def test_a_reduction_that_does_not_exist_is_one_error_with_those_that_do(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", SCENARIO, "--reduce", word]) == ExitCode.COMMAND_LINE
    (line,) = capsys.readouterr().err.splitlines()
    assert f"argument --reduce: invalid choice: '{word}' (choose from 'none', 'symmetric', 'auto', 'compare')" in line


def test_a_symmetric_search_goes_on_from_its_checkpoint(
    alike: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    saved = ("--checkpoint", str(tmp_path / "saved"))
    assert main(["run", alike, "--reduce", "symmetric"]) == ExitCode.PASSED
    whole = figures(capsys.readouterr().out)
    assert main(["run", alike, "--reduce", "symmetric", *saved, "--states", "20"]) == ExitCode.INCOMPLETE
    capsys.readouterr()
    assert main(["run", alike, *saved, "--resume"]) == ExitCode.COMMAND_LINE
    assert "this search was one with --reduce symmetric; use it" in capsys.readouterr().out
    assert main(["run", alike, "--reduce", "symmetric", *saved, "--resume"]) == ExitCode.PASSED
    assert figures(capsys.readouterr().out) == whole


def figures(report: str) -> list[str]:
    """The lines of a report with counts that do not depend on time."""
    return [line for line in report.splitlines() if line.split()[:1] in (["states"], ["transitions"], ["depth"])]


def test_the_plain_engine_refuses_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SCENARIO, "--reduce", "symmetric", "--engine", "plain"]) == ExitCode.COMMAND_LINE
    assert "--reduce symmetric is for the table engine; write --engine tables" in capsys.readouterr().err


def test_both_engines_compare_the_answers(alike: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", alike, "--reduce", "symmetric", "--engine", "both"]) == ExitCode.PASSED
    assert "states that differ in names count once (6 renamings; " in (shown := capsys.readouterr().out)
    assert ": every answer agrees" in shown
    assert "were compared" not in shown.splitlines()[0]


def test_the_verdict_says_that_symmetry_was_compared_in_some_states_alone(
    alike: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", alike, "--reduce", "symmetric"]) == ExitCode.PASSED
    (verdict, *others) = capsys.readouterr().out.splitlines()
    (compared,) = [line.split("renamings; ")[1].split()[0] for line in others if "renamings; " in line]
    assert verdict.endswith(f" states; renamed states were taken as alike, and {compared} were compared")


RARE = """
from checker.engine import Actor, Column, Finding, Kind, Model, Move, Outcome, Property, Read, Renaming, Rule, Send
from checker.engine import Symmetry

def model(kind="always"):
    def counts(name):
        return Rule(name, (Read(name),), lambda n: [Move("add", (), (Send(name, n + 1),))] if n < 40 else [])
    def wrong(a, b):
        return Finding("b alone") if (a, b) == (0, 30) else None
    actors = tuple(Actor(name, (name,), lambda _, n: Outcome((n,))) for name in "ab")
    columns, swapped = (Column("a", 0), Column("b", 0)), Renaming({"a": "b", "b": "a"}, lambda value: value)
    prop = Property("NotAlone", (Read("a"), Read("b")), wrong, Kind(kind))
    return Model("rare", columns, actors, (counts("a"), counts("b")), (prop,), Symmetry((swapped,)))
"""
"""Two counters, and a property that treats them differently in one state of 1,681, where no walk comes."""


@pytest.mark.parametrize("bound", [[], ["--depth", "35"], ["--states", "700"]])
@pytest.mark.parametrize("kind", ["always", "sometimes"])
@pytest.mark.parametrize("how", [["symmetric", "--engine", "both"], ["compare"]])
def test_a_symmetry_that_hides_a_finding_is_an_error_within_bounds_too(
    how: list[str], kind: str, bound: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rare.py").write_text(RARE, encoding="utf-8")
    code = main(["run", f"{tmp_path}/rare.py:model({kind!r})", "--reduce", *how, *bound])
    out = capsys.readouterr().out
    stays = how == ["compare"] and kind == "always"  # the search in full has found the violation
    assert code == (ExitCode.SAFETY if stays else ExitCode.SCENARIO), out
    assert "disagree, which is a defect: depth of NotAlone: None (symmetric) is not 30 (" in out


@pytest.mark.parametrize("bound", [[], ["--depth", "35"]])
@pytest.mark.parametrize("how", [["symmetric", "--engine", "both"], ["compare"]])
def test_a_symmetry_that_hides_a_premise_is_an_error_within_a_depth_too(
    how: list[str], bound: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The premise holds in the one state that the property treats differently."""
    rare = RARE.replace('Finding("b alone") if', "None if").replace("else None", "else TRIVIAL")
    (tmp_path / "rare.py").write_text(f"from checker.engine import TRIVIAL\n{rare}", encoding="utf-8")
    assert main(["run", f"{tmp_path}/rare.py:model", "--reduce", *how, *bound]) == ExitCode.SCENARIO
    assert "premises that held: [] (symmetric) is not ['NotAlone']" in capsys.readouterr().out


def test_a_different_answer_of_the_plain_engine_is_an_error(
    alike: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SYMMETRIC, "explore", without_a_premise(SYMMETRIC.explore))
    assert main(["run", alike, "--reduce", "symmetric", "--engine", "both"]) == ExitCode.SCENARIO
    assert "the engines disagree, which is a defect: premises that held" in capsys.readouterr().out


def without_a_premise(explore: Callable[..., Exploration]) -> Callable[..., Exploration]:
    """A search that forgets that the premise of OnlyVotersAck held."""

    def explored(*positional: object, **named: object) -> Exploration:
        found = explore(*positional, **named)
        found.evaluations["OnlyVotersAck"].premise = 0
        return found

    return explored


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
    monkeypatch.setattr(SYMMETRIC, "explore", without_a_premise(SYMMETRIC.explore))
    assert main(["run", alike, "--reduce", "compare"]) == ExitCode.SCENARIO
    assert "the symmetric search and the full one disagree, which is a defect: " in capsys.readouterr().out


def raising(error: BaseException) -> Callable[..., Exploration]:
    def explore(*_: object, **__: object) -> Exploration:
        raise error

    return explore


def test_an_interrupt_of_the_comparison_ends_the_command(
    alike: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SYMMETRIC, "explore", raising(KeyboardInterrupt()))
    assert main(["run", alike, SCENARIO, "--reduce", "compare"]) == ExitCode.INCOMPLETE
    assert "the comparison with a symmetric search was interrupted" in (shown := capsys.readouterr().out)
    assert "1 of 2 runs, " in shown


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ModelError("the temporary folder cannot take more")])
def test_a_violation_stays_if_the_comparison_does_not_end(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SYMMETRIC, "explore", raising(error))
    defect = str(next(Path("spec/scenarios").rglob("ack-before-log.yaml")))
    assert main(["run", defect, "--verdict", "--reduce", "compare"]) == ExitCode.SAFETY
    assert "the comparison with a symmetric search" in capsys.readouterr().out


def test_a_comparison_has_the_time_that_this_sitting_has_left(alike: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = replace(load(Path(alike)), limits=Limits(seconds=100.0))
    found, given = execution.run_job(job), list[Limits]()

    def explore(request: Request) -> Exploration:
        given.append(request.limits)
        return found

    monkeypatch.setattr(SYMMETRIC, "explore", explore)
    execution.compare_with_symmetry(job, replace(found, seconds=90.0, seconds_before=80.0))
    assert given == [Limits(seconds=90.0)]


def test_auto_reports_the_deeper_search_if_the_second_is_cut_short(alike: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = load(Path(alike))
    shallow = replace(execution.run_job(job, Limits(depth=1)), stop=Stop.TIME)
    monkeypatch.setattr(execution, "FULL_STATES", 100)
    monkeypatch.setattr(SYMMETRIC, "explore", lambda *_, **__: shallow)
    found = execution.run_job(job, reduce="auto")
    assert (found.stop, found.states >= 100, found.depth > shallow.depth) == (Stop.TIME, True, True)


def test_auto_keeps_the_first_search_if_an_interrupt_comes_before_the_second(
    alike: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "FULL_STATES", 100)
    monkeypatch.setattr(SYMMETRIC, "explore", raising(KeyboardInterrupt()))
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
