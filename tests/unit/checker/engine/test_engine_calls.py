"""Exceptions in the functions of a model: a finding with the function and the line, for both engines."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from checker.cli import runner
from checker.command import ExitCode
from checker.engine import (
    Actor,
    Column,
    Discovery,
    Exploration,
    Finding,
    Limits,
    Model,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    Stop,
    plain,
    search,
)
from checker.engine.kernels import jit
from checker.engine.model import NO_EXCEPTION
from checker.engine.result import COMPILING
from checker.job import Job
from checker.present import DefaultPresenter

ENGINES = pytest.mark.parametrize("engine", [plain, search], ids=["plain", "tables"])


class BrokenError(Exception):
    """The exception of an author's function."""


def counter(**functions: Callable[..., Any]) -> Model:
    """A counter from 0 to 3, with some of its functions replaced."""

    def step(values: tuple[Any, ...], operation: Any) -> Outcome:
        return Outcome((values[0] + operation,))

    def moves(value: int) -> Iterator[Move]:
        if value < 3:
            yield Move("add", (), (Send("till", 1),))

    def check(value: int) -> Finding | None:
        return Finding("it is too large") if value > 9 else None

    given = {"step": step, "moves": moves, "check": check, "shown": None, **functions}
    return Model(
        "a till",
        (Column("money", 0),),
        (Actor("till", ("money",), given["step"]),),
        (Rule("the clerk", (Read("money", given["shown"]),), given["moves"]),),
        (Property("NeverRich", (Read("money"),), given["check"]),),
    )


def breaks_at(limit: int, otherwise: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that raises an exception for one value."""

    def function(value: Any, *_: Any) -> Any:
        money = value[0] if isinstance(value, tuple) else value
        if money == limit:
            raise BrokenError(f"no more than {limit}")
        return otherwise(value)

    return function


def exception_in(engine: ModuleType, model: Model) -> Discovery:
    """The only finding of a search."""
    result = engine.explore(model)
    (discovery,) = result.found.values()
    assert (discovery.prop, result.stop) == (NO_EXCEPTION, Stop.FOUND)
    return discovery  # type: ignore[no-any-return]


@ENGINES
def test_an_exception_in_a_step_names_actor_move_and_operation(engine: ModuleType) -> None:
    found = exception_in(engine, counter(step=breaks_at(2, lambda values: Outcome((values[0] + 1,)))))
    assert found.finding.clause == "the step of 'till' raises BrokenError: no more than 2"
    *values, (name, line) = found.finding.values
    assert values == [("move", ("add",)), ("operation", "1")]
    assert name == "line"
    assert line.endswith(" of test_engine_calls.py, in function")
    assert [step.row for step in found.path] == [(0,), (1,), (2,)]


@ENGINES
@pytest.mark.parametrize(
    ("name", "what"),
    [("moves", "the rule 'the clerk'"), ("check", "the property 'NeverRich'"), ("shown", "the projection of 'money'")],
)
def test_an_exception_in_another_function_names_it(engine: ModuleType, name: str, what: str) -> None:
    """Rules, properties and projections are called with values alone."""
    otherwise = {
        "moves": lambda value: [Move("add", (), (Send("till", 1),))],
        "check": lambda value: None,
        "shown": lambda value: value,
    }
    found = exception_in(engine, counter(**{name: breaks_at(2, otherwise[name])}))
    assert found.finding.clause == f"{what} raises BrokenError: no more than 2"
    assert [step.row for step in found.path] == [(0,), (1,), (2,)]


@ENGINES
def test_an_exception_in_a_generator_is_one_of_the_rule(engine: ModuleType) -> None:
    """The moves of a generator are computed after the call of the rule returns."""

    def moves(value: int) -> Iterator[Move]:
        yield Move("add", (), (Send("till", 1),))
        if value == 1:
            raise BrokenError

    assert exception_in(engine, counter(moves=moves)).finding.clause == "the rule 'the clerk' raises BrokenError"


@ENGINES
def test_values_whose_repr_fails_or_is_long_do_not_hide_the_exception(engine: ModuleType) -> None:
    """The finding is for a reader: a long value is cut, and an exception of repr is not raised."""

    class Silent:
        def __repr__(self) -> str:
            raise BrokenError("repr")

    def check(value: int) -> None:
        raise BrokenError("check" * 999)

    def send(value: Any) -> list[Move]:
        return [Move("add", (), (Send("till", ("x" * 9999, value)),))]

    def step(values: tuple[Any, ...], operation: Any) -> Outcome:
        raise BrokenError(operation[0][:1])

    assert len(str(exception_in(engine, counter(moves=send, step=step)).finding)) < 500
    silent = counter(check=check)
    silent = replace(silent, columns=(Column("money", Silent()),), rules=())
    clause = exception_in(engine, silent).finding.clause
    assert "raises BrokenError: check" in clause
    assert len(clause) < 500


def test_an_interrupt_is_no_mistake_of_the_model() -> None:
    def check(value: int) -> None:
        raise KeyboardInterrupt

    assert plain.explore(counter(check=check)).stop.value == "interrupted"


def test_the_command_line_says_it_like_any_violation(capsys: pytest.CaptureFixture[str]) -> None:
    options = runner.argparse.Namespace(
        engine="tables", verdict=False, workers=1, seed=1, reduce="none", checkpoint=None, resume=False,
        depth=None, states=None, memory=None, time=None,
    )  # fmt: skip
    model = counter(step=breaks_at(1, lambda values: Outcome((values[0] + 1,))))
    job = Job(model.name, model, DefaultPresenter(model), source={})
    outcome = runner.outcome_of(runner.RunRequest(job), options)
    assert outcome.judgement.exit_code == ExitCode.SAFETY
    assert "the step of 'till' raises BrokenError" in outcome.judgement.sentence
    assert "Traceback" not in capsys.readouterr().err


class Terminal(list[str]):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.append(text)
        return len(text)

    def flush(self) -> None:
        pass


def test_the_first_call_of_progress_is_about_the_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a caller of the API received no report for up to 40 s."""
    monkeypatch.setattr(jit, "is_compiled", lambda **_: False)
    seen: list[tuple[bool, int]] = []

    def progress(exploration: Exploration) -> None:
        seen.append((exploration.compiling, len(exploration.levels)))

    result = search.explore(counter(), Limits(), progress=progress)
    assert seen[0] == (True, 0)
    assert seen[-1] == (False, 4)
    assert not result.compiling


@pytest.mark.parametrize(("compiled", "said"), [(False, [COMPILING, "\n"]), (True, [])])
def test_a_terminal_has_a_line_about_the_compilation(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, said: list[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(jit, "is_compiled", lambda **_: compiled)
    monkeypatch.setattr("sys.stderr", terminal)
    search.explore(counter())
    assert terminal == said
