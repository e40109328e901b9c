"""What a notebook shows of a model, an exploration and a trace, and the line of a search in progress there."""

import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from checker.engine import (
    Actor,
    Channel,
    Column,
    Exploration,
    Finding,
    Kind,
    Limits,
    Model,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    plain,
    search,
)
from checker.engine.symmetric_search import SYMMETRIC
from checker.job import Job
from checker.kit import Machine, Reaction, interchangeable, network_model
from checker.present import DefaultPresenter
from checker.report import Progress
from checker.traces import Trace, trace_of

HOSTILE = "<script>alert('\"&$x$')</script>\n\x1b[31m\u202e"
"""Markup, quotes, mathematics, a line break, a command of a terminal, and a mark that turns the direction."""


class _Tags(HTMLParser):
    """The tags of a document, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def view(shown: Any) -> _Tags:
    document = _Tags(shown._repr_html_())
    assert document.open == []
    return document


def named(name: str) -> Model:
    """A model whose every text is this one."""

    def change(_: Any, after: Any) -> Outcome:
        return Outcome((after,))

    def moves(value: str) -> list[Move]:
        return [Move(name, (name,), (Send(name, name),))] if not value else []

    def check(value: str) -> Finding | None:
        return Finding(name, ((name, name),)) if value else None

    rule = Rule(name, (Read(name),), moves, (name,), fair=(name,))
    prop = Property(name, (Read(name),), check, meaning=name)
    return Model(name, (Column(name, ""),), (Actor(name, (name,), change),), (rule,), (prop,))


def trace(result: Exploration) -> Trace:
    job = Job(result.model.name, result.model, DefaultPresenter(result.model), {})
    return trace_of(job, next(iter(result.found.values())))


VIEWS = pytest.mark.parametrize(
    "shown", [lambda result: result.model, lambda result: result, trace], ids=["model", "exploration", "trace"]
)
View = Callable[[Exploration], Any]


@VIEWS
def test_a_text_of_the_author_is_never_markup(shown: View) -> None:
    plain_tags = view(shown(plain.explore(named("plain")))).tags
    hostile = view(shown(plain.explore(named(HOSTILE))))
    assert hostile.tags == plain_tags
    assert any("<script>alert('\"&$x$')</script>" in text for text in hostile.texts)


@VIEWS
def test_no_text_has_characters_that_a_reader_cannot_see(shown: View) -> None:
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown(plain.explore(named(HOSTILE)))._repr_html_())


@VIEWS
def test_a_notebook_takes_no_text_for_mathematics(shown: View) -> None:
    begins = shown(plain.explore(named("a")))._repr_html_()
    assert begins.startswith('<div class="quorate mathjax_ignore tex2jax_ignore">')


def words(shown: Any) -> str:
    return " | ".join(text.strip() for text in view(shown).texts if text.strip())


def test_an_exploration_shows_its_counts_its_end_and_each_outcome() -> None:
    text = words(plain.explore(named("late")))
    assert re.search(r"late: \| stopped at what was found, its level finished; 2 states, 1 transitions, depth 1", text)
    assert "late, VIOLATED at depth 1: | late (late = late)" in text
    assert "late | always | VIOLATED at depth 1 | 2 | 2" in text
    assert "action | fired | new states | late | 1 | 1" in text
    assert "states at each depth | depth | new states | 0 | 1 | 1 | 1" in text


def test_an_exploration_that_a_limit_ended_does_not_say_that_a_property_holds() -> None:
    model = named("late").with_properties([Property("Fine", (Read("late"),), lambda _: None)])
    assert "Fine | always | no violation seen" in words(plain.explore(model, Limits(depth=0)))
    assert "Fine | always | holds" in words(plain.explore(model))


def test_a_property_of_liveness_shows_no_evaluations() -> None:
    goal = Property("Arrives", (Read("late"),), lambda value: Finding("there") if value else None, Kind.EVENTUALLY)
    assert "Arrives | eventually | holds | action" in words(plain.explore(named("late").with_properties([goal])))


def test_a_symmetric_exploration_says_what_counts_once() -> None:
    names = ["w1", "w2"]
    machines = [
        Machine(name, Reaction("idle"), None, lambda own: ["work"] if own == "idle" else [], lambda *_: Reaction("ok"))
        for name in names
    ]
    model = interchangeable(network_model("workers", machines, links=[]), names)
    text = words(search.explore(model, frontier=SYMMETRIC))
    assert "space exhausted; 3 states" in text
    assert "reduction: | states that differ in names count once (2 renamings" in text
    assert "workers: | 2 columns, 2 actors, " in words(model)
    assert "2 renamings" in words(model)


def test_a_model_shows_its_columns_actors_rules_and_properties() -> None:
    text = words(named("late"))
    assert "late: | 1 column, 1 actor, 1 rule, 1 property | 1 column | column | at first | messages | late | ''" in text
    assert "rule | reads | actions | fair | late | late | late | late" in text
    assert "property | kind | reads | meaning | late | always | late | late" in text


def test_a_model_shows_the_ends_of_a_channel() -> None:
    channels = (Column("mail", (), Channel("a", "b")), Column("post", (), Channel("a", lambda message: message)))
    text = words(Model("model", (Column("a", 0), Column("b", 0), *channels), (), ()))
    assert "mail | () | from a to b | post | () | from a to each message says" in text


class _Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


def test_a_model_shows_a_value_that_has_no_text_and_cuts_a_long_one() -> None:
    columns = (Column("bad", _Unprintable()), Column("long", "x" * 10_000))
    text = words(Model("model", columns, (), ()))
    assert "bad | <_Unprintable instance at" in text
    assert len(text) < 400


def test_a_trace_is_its_picture_with_ids_of_its_own() -> None:
    results = [plain.explore(named(name)) for name in ("one", "other")]
    pictures = [re.sub("^<div[^>]*><div[^>]*>|</div></div>$", "", trace(result)._repr_html_()) for result in results]
    ids = [{element.get("id") for element in ElementTree.fromstring(text).iter()} - {None} for text in pictures]
    assert all(ids)
    assert not ids[0] & ids[1]
    assert trace(results[0])._repr_html_() == trace(results[0])._repr_html_()


# -- the line of a search in progress ------------------------------------------------------------------------


class Outputs:
    """The outputs of a cell of a notebook, as `IPython.display.display` makes them; each can be updated."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.updates = 0

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> "Outputs":
        assert raw
        assert display_id
        self.lines.append(content["text/plain"])
        return self

    def update(self, content: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.lines[-1] = content["text/plain"]
        self.updates += 1


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Outputs:
    outputs = Outputs()
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", outputs)  # type: ignore[arg-type]
    return outputs


def progress_at(*times: float) -> Progress:
    """The progress in a notebook; the clock has these times, and first 0."""
    clock = iter((0.0, *times))
    return Progress("company", console=Console(force_jupyter=True), clock=lambda: next(clock))


def test_a_notebook_shows_one_line_in_the_place_of_the_last_one(outputs: Outputs) -> None:
    progress = progress_at(1, 2)
    progress.update(lambda: "1,000 states")
    progress.update(lambda: "2,000 states")
    assert outputs.lines == ["company: 2,000 states"]


def test_the_line_of_a_notebook_is_empty_at_the_end(outputs: Outputs) -> None:
    with progress_at(1) as progress:
        progress.update(lambda: "1,000 states")
    progress.close()
    assert (outputs.lines, outputs.updates) == ([""], 1)


def test_a_short_search_shows_no_line_in_a_notebook(outputs: Outputs) -> None:
    progress_at().close()
    assert outputs.lines == []


def test_a_notebook_gets_no_line_more_often_than_twice_a_second(outputs: Outputs) -> None:
    progress = progress_at(0.6, 0.7, 0.8, 1.2)
    shown = []
    for number in range(4):
        progress.update(lambda number=number: shown.append(number) or "")  # type: ignore[misc]
    assert shown == [0, 3]
    assert len(outputs.lines) == 1
