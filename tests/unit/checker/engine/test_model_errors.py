"""A wrong function of a model ends in one error with its name, its file and its line, however the model is run.

The mistakes are those that authors made: a tuple in place of an Outcome, one Move in place of a list, a malformed send.
"""

import http.client
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from checker.engine import Actor, Column, Model, ModelError, Move, Outcome, Property, Read, Rule, Send, plain, search
from checker.engine.steps import StepProperty
from checker.explorer import Handlers, Server
from checker.kit import HistoryVariable, Machine, Reaction, network_model
from checker.scenario import load
from tests.support.command_line import cli

ENGINES = pytest.mark.parametrize("engine", [plain, search], ids=["plain", "tables"])
ADD = Move("add", (), (Send("c", "x"),))


class Unprintable:
    """A value whose text raises."""

    def __repr__(self) -> str:
        raise ValueError("no text")


def counter(step: Any = None, moves: Any = None, check: Any = None, show: Any = None) -> Model:
    """Return a model of one column, with one wrong function."""
    step = step or (lambda values, operation: Outcome((values[0] + 1,)))
    moves = moves or (lambda count: [ADD] if count < 3 else [])
    props = (Property("P", (Read("c"),), check),) if check else ()
    reads = (Read("c", show),)
    return Model("m", (Column("c", 0),), (Actor("c", ("c",), step),), (Rule("r", reads, moves),), props)


def machine(on_message: Any = None, **how: Any) -> Model:
    """Return a model of two machines; the second gets one message."""
    sender = Machine("a", Reaction(0, (("b", "m"),)))
    histories = [HistoryVariable("seen", 0, lambda value: value)] if how.pop("history", False) else []
    return network_model("m", [sender, Machine("b", Reaction(0), on_message, **how)], histories=histories)


STEPS = {
    "a tuple": lambda values, operation: (1,),
    "a number": lambda values, operation: 5,
    "too many values": lambda values, operation: Outcome((1, 2)),
    "values that are no tuple": lambda values, operation: Outcome(1),
    "a list of sends": lambda values, operation: Outcome((1,), [Send("c", "x")]),
    "a send alone": lambda values, operation: Outcome((1,), Send("c", "x")),
    "a short send": lambda values, operation: Outcome((1,), (("c",),)),
    "a send to nobody": lambda values, operation: Outcome((1,), (Send("nobody", "x"),)),
    "a send that cannot be hashed": lambda values, operation: Outcome((1,), (Send("c", []),)),
    "a value that cannot be hashed": lambda values, operation: Outcome(([],)),
    "too few parameters": lambda values: Outcome((1,)),
}
MOVES = {
    "one move": lambda count: ADD,
    "a string": lambda count: ["add"],
    "a number": lambda count: 5,
    "arguments that are no tuple": lambda count: [Move("add", "x", (Send("c", "x"),))],
    "an action that is no string": lambda count: [Move(1, (), (Send("c", "x"),))],
    "a send alone": lambda count: [Move("add", (), Send("c", "x"))],
    "a pair of strings": lambda count: [Move("add", (), ("c", "x"))],
}
CHECKS = {"a truth": lambda count: count < 2, "a text": lambda count: "bad"}
SHOWS = {"a list": lambda count: [count]}
MACHINES: dict[str, Callable[[], Model]] = {
    "a state": lambda: machine(lambda state, source, message: state + 1),
    "too few parameters": lambda: machine(lambda state, source: Reaction(1)),
    "a send alone": lambda: machine(lambda state, source, message: Reaction(state, ("a", "x"))),
    "sends to nobody": lambda: machine(lambda state, source, message: Reaction(state, (("z", "x"),))),
    "choices without a function": lambda: machine(choices=lambda state: ["go"], on_message=lambda *_: None),
    "choices that are no list": lambda: machine(choices=lambda state: 5, on_choice=lambda state, choice: None),
    "one choice": lambda: machine(choices=lambda state: "go", on_choice=lambda state, choice: None),
    "a history": lambda: machine(lambda state, source, message: Reaction(1, (), (("seen", 1),)), history=True),
}
WRONG: dict[str, Callable[[], Model]] = (
    {f"step: {name}": (lambda step=step: counter(step=step)) for name, step in STEPS.items()}
    | {f"moves: {name}": (lambda moves=moves: counter(moves=moves)) for name, moves in MOVES.items()}
    | {f"check: {name}": (lambda check=check: counter(check=check)) for name, check in CHECKS.items()}
    | {f"read: {name}": (lambda show=show: counter(show=show)) for name, show in SHOWS.items()}
    | {f"kit: {name}": made for name, made in MACHINES.items()}
)


@ENGINES
@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_a_wrong_result_is_one_error_with_the_file_and_the_line(make: Callable[[], Model], engine: ModuleType) -> None:
    with pytest.raises(ModelError) as caught:
        engine.explore(make())
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1500
    assert message.endswith("; this is in the first state") or "; this is in the state (" in message
    if "no link between them" not in message:  # the model is wrong, or the machine: the names say where
        assert f"of {__file__}" in message


def test_a_first_state_that_cannot_be_hashed_is_an_error() -> None:
    @dataclass
    class Mutable:
        number: int = 0

    for value in ([], {}, Mutable()):
        for engine in (plain, search):
            with pytest.raises(ModelError, match="the initial state puts into the column 'c' a value that cannot be"):
                engine.explore(Model("m", (Column("c", value),), (), ()))


FILE = """\
from checker.engine import Actor, Column, Finding, Model, Move, Outcome, Property, Read, Rule, Send


def step(values, operation):
    return (1,) if WRONG else Outcome((values[0] + 1,))


def moves(count):
    return [Move("add", (), (Send("c", "x"),))] if count < 3 else []


def check(count):
    return Finding("three") if count == 3 else None


def model():
    rule = Rule("r", (Read("c"),), moves)
    return Model("m", (Column("c", 0),), (Actor("c", ("c",), step),), (rule,), (Property("P", (Read("c"),), check),))
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "own.py"
    path.write_text(f"WRONG = False\n{FILE}")
    return path


def test_every_command_says_it_in_one_line_with_the_code_of_a_bad_model(file: Path) -> None:
    assert cli("run", "own.py:model", "--engine", "plain", "--traces", "kept").code == 12
    trace = next(Path("kept").glob("*.itf.json"))
    file.write_text(f"WRONG = True\n{FILE}")
    commands: list[tuple[object, ...]] = [
        ("run", "own.py:model", "--engine", "plain"),
        ("run", "own.py:model"),
        ("swarm", "own.py:model", "--walks", 10),
        ("swarm", "own.py:model", "--walk", 1),
        ("replay", trace, "--model", "own.py:model"),
    ]
    for command in commands:
        ended = cli(*command)
        said = (ended.err + ended.out).strip().splitlines()
        assert ended.code == 150, command
        assert "returned (1,); return Outcome(values, sends) with a tuple of 1 value, or None" in said[-1]
        assert f"(step, line 5 of {file})" in said[-1]
        assert "Traceback" not in ended.err + ended.out


def test_the_page_of_the_explorer_answers_with_the_error(file: Path) -> None:
    file.write_text(f"WRONG = True\n{FILE}")
    handlers = Handlers([(load(Path("own.py:model")), "")])
    with Server(handlers) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            key = handlers.jobs()["jobs"][0]["key"]
            headers = {"Content-Type": "application/json", "Host": f"127.0.0.1:{server.server_port}"}
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
            connection.request("POST", "/api/walk", json.dumps({"job": key, "path": []}), headers)
            answer = connection.getresponse()
            assert answer.status == 422
            assert f"(step, line 5 of {file})" in json.loads(answer.read())["error"]
            connection.close()
        finally:
            server.shutdown()
            thread.join()


def test_a_value_without_a_text_is_an_error_of_the_model() -> None:
    from checker.engine.values import to_json

    with pytest.raises(ModelError, match="the text of a Unprintable raises ValueError: no text"):
        to_json(Unprintable())


@pytest.mark.parametrize("answer", [True, "the count is 2"])
@pytest.mark.parametrize("engine", [plain, search])
def test_the_judge_of_a_step_gives_an_answer_of_a_property(answer: object, engine: ModuleType) -> None:
    never = StepProperty.over("Never", ("c",), lambda *_: answer)  # type: ignore[arg-type,return-value]
    with pytest.raises(ModelError, match=r"'Never' returned .* Finding, None or TRIVIAL is right .*test_model_errors"):
        engine.explore(counter().with_properties([never]))


def test_a_property_of_the_steps_of_no_actor_is_an_error() -> None:
    with pytest.raises(ModelError, match="steps of no actor; name one or more"):
        counter().with_properties([StepProperty.over("Never", (), lambda *_: None)])


def test_a_kind_that_is_a_text_is_an_error() -> None:
    text = Property("P", (Read("c"),), lambda _: None, "always")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"has the kind 'always'; write Kind\.ALWAYS"):
        counter().with_properties([text])
