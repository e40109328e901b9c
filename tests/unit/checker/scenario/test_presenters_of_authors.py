"""`--presenter`: a part of the author's file shows the model, and an error in it loses no finding."""

from pathlib import Path
from typing import Any

import pytest

from checker.engine import Actor, Column, Finding, Model, ModelError, Move, Outcome, Property, Read, Rule, Send, plain
from checker.job import DiagramEvent
from checker.kit import Action, Traits
from checker.present import AuthorPresenter, DefaultPresenter, job_of_model
from checker.scenario import load
from checker.traces import to_text, trace_of
from tests.support.command_line import cli

LAMP = """\
from checker.engine import Actor, Column, Finding, Model, Move, Outcome, Property, Read, Rule, Send
from checker.job import DiagramEvent
from checker.present import DefaultPresenter


def press(values, operation):
    return Outcome((not values[0],))


model = Model(
    "lamp",
    (Column("lamp", False),),
    (Actor("lamp", ("lamp",), press),),
    (Rule("press", (Read("lamp"),), lambda on: [Move("press", (), (Send("lamp", "press"),))]),),
    (Property("Dark", (Read("lamp"),), lambda on: Finding("it is lit") if on else None),),
)


class Words:
    def caption(self, move):
        return "somebody presses the button"


class Whole(DefaultPresenter):
    def lanes(self, row):
        return {"room": {"light": "on" if row[0] else "off"}}

    def diagram(self, before, move, after):
        return (DiagramEvent("note", "room", "click"),)


words = Words()


def made(model):
    return Words()


class Broken:
    def caption(self, move):
        return {}["caption"]


class Nothing:
    pass
"""


COUNT = """\
from dataclasses import dataclass

from checker.engine import Actor, Channel, Column, Finding, Model, Move, Outcome, Property, Read, Rule, Send
from checker.kit import Action, Traits

fails = "FAILS"


class Step(Action):
    ADD = "add", Traits(caption="{} {}" if fails == "caption" else "one more")


@dataclass(frozen=True)
class Count:
    number: int = 0

    def lane_fields(self):
        return {"number": self.number // (fails != "lane_fields")}


def receiver(message):
    return ["count"][message // (fails != "receiver")]


move = Move(Step.ADD, ("count",), (Send("count", "add"), Send("mail", "add")))
model = Model(
    "count",
    (Column("count", Count()), Column("mail", (), Channel("count", receiver))),
    (
        Actor("count", ("count",), lambda values, _: Outcome((Count(values[0].number + 1),))),
        Actor("mail", ("mail",), lambda values, _: Outcome(((*values[0], 0),))),
    ),
    (Rule("add", (Read("count"),), lambda count: [move] if count.number < 3 else []),),
    (Property("Few", (Read("count"),), lambda count: Finding("2") if count.number == 2 else None),),
)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lamp.py").write_text(LAMP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(presenter: str, *options: str) -> Any:
    return cli("run", "lamp.py:model", "--engine", "plain", "--presenter", presenter, *options)


@pytest.mark.parametrize("presenter", ["Words", "words", "made"], ids=["class", "object", "function"])
def test_an_object_with_some_of_the_methods_shows_what_it_has_and_the_default_the_rest(presenter: str) -> None:
    ended = run(presenter)
    assert ended.code == 12
    assert "1 | somebody presses the button | value=true" in ended.out


def test_a_presenter_may_change_the_lanes_and_the_elements_of_the_picture() -> None:
    ended = run("Whole")
    assert "1 | press        | click light=on" in ended.out


def test_an_error_in_a_presenter_loses_no_finding() -> None:
    ended = run("Broken")
    assert ended.code == 12
    assert "violated: Dark at depth 1" in ended.out
    assert "1 | press        | value=true" in ended.out
    assert ended.err.startswith(
        "note: the traces are shown without a part that fails: caption of the presenter 'Broken' raises KeyError: "
        "'caption' (line "
    )


def test_a_trace_is_replayed_with_its_presenter_if_the_reader_names_it() -> None:
    run("Whole", "--traces", "traces")
    name = "traces/lamp-Dark.itf.json"
    replayed = cli("replay", name, "--model", "lamp.py:model", "--presenter", "Whole")
    assert (replayed.code, "light=on" in replayed.out) == (0, True)
    for options, advice in (
        ((), "--model lamp.py:model --presenter Whole"),
        (
            ("--model", "lamp.py:model"),
            "the trace is shown by the presenter 'Whole', so that its lanes are others; add",
        ),
    ):
        refused = cli("replay", name, *options)
        assert refused.code == 150
        assert advice in refused.err


def test_a_trace_without_a_presenter_refuses_one() -> None:
    cli("run", "lamp.py:model", "--engine", "plain", "--traces", "traces")
    refused = cli("replay", "traces/lamp-Dark.itf.json", "--model", "lamp.py:model", "--presenter", "Whole")
    assert refused.code == 150
    assert "shown without a presenter of the author, so that its lanes are others; leave --presenter out" in refused.err


def test_the_traces_of_a_failing_presenter_are_replayed_without_it() -> None:
    run("Broken", "--traces", "traces")
    assert cli("replay", "traces/lamp-Dark.itf.json", "--model", "lamp.py:model").code == 0


def test_the_test_of_a_trace_names_its_presenter() -> None:
    run("Whole", "--traces", "traces")
    text = next(Path("traces").glob("test_*.py")).read_text()
    assert 'job_of(trace.source, Path("lamp.py:model"), "Whole")' in text
    namespace: dict[str, Any] = {}
    exec(compile(text, "test", "exec"), namespace)
    next(value for name, value in namespace.items() if name.startswith("test_"))()


@pytest.mark.parametrize(
    ("presenter", "problem"),
    [
        ("Wrods", "lamp.py: it has no 'Wrods'; did you mean Words?"),
        ("model", "'model' is no presenter but Model; it needs one or more of the methods lanes, caption, diagram"),
        ("Nothing", "'Nothing' is no presenter but Nothing; it needs one or more of the methods"),
    ],
)
def test_a_name_of_something_else_is_an_error_before_the_search(presenter: str, problem: str) -> None:
    ended = run(presenter)
    assert (ended.code, ended.out) == (150, "")
    assert problem in ended.err


def test_a_scenario_has_no_presenter() -> None:
    ended = cli("run", "split-brain", "--presenter", "Whole")
    assert ended.code == 150
    assert ended.err.count("\n") == 1
    assert "--presenter names a part of a Python file, and this is a scenario; leave it out" in ended.err


def test_the_other_commands_on_models_take_it() -> None:
    walked = cli("swarm", "lamp.py:model", "--depth", "3", "--presenter", "Words", "--walk", "0")
    assert "somebody presses the button" in walked.out
    exported = cli("explore", "lamp.py:model", "--presenter", "Words", "--export", "page")
    assert exported.code == 0
    assert "somebody presses the button" in next(Path("page").rglob("*.html")).read_text()


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("lane_fields", "lane_fields of a Count raises ZeroDivisionError"),
        ("caption", "the caption of the action 'add' raises IndexError"),
        ("receiver", "the receiver of the channel 'mail' raises ZeroDivisionError"),
    ],
)
def test_an_error_in_what_shows_a_model_loses_no_finding(folder: Path, function: str, problem: str) -> None:
    (folder / "count.py").write_text(COUNT.replace("FAILS", function))
    ended = cli("run", "count.py:model", "--engine", "plain", "--junit", "junit.xml")
    assert ended.code == 12
    assert "violated: Few at depth 2" in ended.out
    assert "value=Count(number=2)" in ended.out
    assert ended.err.startswith(f"note: the traces are shown without a part that fails: {problem}")
    assert ended.err.count("\n") == 1


# -- wrong results -------------------------------------------------------------------------------------------


def counter(action: str = "add", arguments: tuple[Any, ...] = ("counter",)) -> Model:
    return Model(
        "counter",
        (Column("counter", 0),),
        (Actor("counter", ("counter",), lambda values, _: Outcome((values[0] + 1,))),),
        (Rule("add", (Read("counter"),), lambda _: [Move(action, arguments, (Send("counter", "add"),))]),),
        (Property("Zero", (Read("counter"),), lambda count: Finding("more") if count else None),),
    )


class Given:
    """A presenter whose method of this name gives this result."""

    def __init__(self, name: str, result: Any) -> None:
        setattr(self, name, lambda *_: result)


@pytest.mark.parametrize(
    ("method", "result", "problem"),
    [
        ("caption", 7, "caption of the presenter 'View' returned 7; a text is right"),
        ("lanes", ["counter"], "returned ['counter']; a map from each lane to the map of its fields is right"),
        ("lanes", {"counter": 7}, "returned {'counter': 7}; a map from each lane"),
        ("lanes", {"#meta": {}}, "returned '#meta'; a lane is a text that does not begin with # or mbt::"),
        ("lanes", {7: {}}, "returned 7; a lane is a text"),
        ("diagram", None, "diagram of the presenter 'View' returned None; a tuple of DiagramEvent is right"),
        ("diagram", ("note",), "returned 'note'; a DiagramEvent has one of the kinds send, deliver, lost"),
        ("diagram", (DiagramEvent("nod", "counter", ""),), "a DiagramEvent has one of the kinds"),
        ("diagram", (DiagramEvent("note", "nowhere", ""),), "its lanes are among counter"),
        ("diagram", (DiagramEvent("send", "counter", "", peer="nowhere"),), "its lanes are among counter"),
    ],
)
def test_a_wrong_result_is_one_error_that_names_the_method_and_what_is_right(
    method: str, result: Any, problem: str
) -> None:
    model = counter()
    job = job_of_model(model, presenter=AuthorPresenter("View", Given(method, result), model))
    with pytest.raises(ModelError) as error:
        trace_of(job, plain.explore(model).found["Zero"])
    assert problem in str(error.value)


# -- captions of actions, without a presenter ----------------------------------------------------------------


class Step(Action):
    ADD = "add", Traits(caption="{} counts one more")
    PAIR = "pair", Traits(caption="{} counts for {}")


def test_the_caption_of_an_action_is_that_of_its_traits_in_any_model() -> None:
    model = counter(Step.ADD)
    assert "1 | counter counts one more | value=1" in to_text(
        trace_of(job_of_model(model), plain.explore(model).found["Zero"])
    )


def test_a_caption_with_more_braces_than_arguments_is_an_error_that_names_the_action() -> None:
    with pytest.raises(ModelError, match=r"^the caption of the action 'pair' raises IndexError"):
        DefaultPresenter(counter(Step.PAIR)).caption(Move(Step.PAIR, ("counter",), ()))


def test_the_source_of_a_job_names_its_presenter() -> None:
    assert load(Path("lamp.py:model"), presenter="Words").source["presenter"] == "Words"
    assert "presenter" not in load(Path("lamp.py:model")).source
