"""The fate of messages in traces of models with channels of their own: decided by a declaration, else by the step.

The model restates a broadcast as a TLA+ specification would: `msgs["1->2"]` is a set or a sequence, and an action of
the receiver takes a message out of it.
"""

from operator import itemgetter
from typing import Any, NamedTuple

import pytest

from checker.engine import (
    Actor,
    Channel,
    Column,
    Finding,
    Kind,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    plain,
)
from checker.job import Job
from checker.kit import Bag
from checker.present import DefaultPresenter
from checker.traces import to_mermaid, to_text, trace_of
from checker.traces.summary import messages_of
from checker.traces.svg import to_svg

SET, SEQUENCE = frozenset({"vote"}), ("vote",)


class Take(NamedTuple):
    message: str


def channel(values: tuple[Any, ...], operation: Take) -> Outcome | None:
    (content,) = values
    if operation.message not in content:
        return None
    if isinstance(content, frozenset):
        return Outcome((content - {operation.message},))
    return Outcome((content[1:],))


def server(values: tuple[Any, ...], operation: object) -> Outcome:
    """The follower processes a message: it takes it out of the channel as a consequence."""
    return Outcome((values[0] + 1,), (Send("1->2", operation),))


def steps_of(kind: str) -> Move:
    """The move that removes the message from the channel `1->2`."""
    take = Take("vote")
    return {
        "nested": Move("FollowerProcess", ("2", "1"), (Send("2", take),)),
        "beside": Move("FollowerProcess", ("2", "1"), (Send("1->2", take), Send("log", "vote"))),
        "discard": Move("Discard", ("2", "1"), (Send("1->2", take),)),
        "crash": Move("crash", ("2",), (Send("2", take),)),
        "lose": Move("lose", ("1", "2"), (Send("1->2", take),)),
        "sweep": Move("Sweep", (), (Send("1->2", take),)),
    }[kind]


def model(kind: str, content: Any) -> Model:
    reads = (Read("1->2"), Read("2")) if kind == "discard" else (Read("1->2"),)
    empty = Property("Empty", (Read("1->2"),), lambda now: None if now else Finding("empty"), Kind.SOMETIMES)
    return Model(
        "restated",
        (Column("1", 0), Column("2", 0), Column("1->2", content)),
        (
            Actor("2", ("2",), server),
            Actor("log", ("2",), lambda values, _: Outcome((values[0] + 1,))),
            Actor("1->2", ("1->2",), channel),
        ),
        (Rule("next", reads, lambda now, *_: [steps_of(kind)] if now else []),),
        (empty,),
    )


def trace(kind: str, content: Any) -> Any:
    found = plain.explore(model(kind, content)).found["Empty"]
    restated = model(kind, content)
    return trace_of(Job("restated", restated, DefaultPresenter(restated), {}), found)


@pytest.mark.parametrize("content", [SET, SEQUENCE], ids=["set", "sequence"])
@pytest.mark.parametrize(
    ("kind", "fate"),
    [
        ("nested", "arrives"),
        ("beside", "arrives"),
        ("discard", "arrives"),
        ("crash", "lost"),
        ("lose", "lost"),
        ("sweep", "removed"),
    ],
)
def test_a_removal_is_called_what_the_step_says(kind: str, fate: str, content: Any) -> None:
    (message,) = messages_of(trace(kind, content))
    assert (message.sender, message.receiver, message.end_text) == ("1", "2", f"{fate} in step 1")


@pytest.mark.parametrize(("kind", "arrow"), [("nested", "p1->>p2"), ("lose", "p1-xp2"), ("sweep", "p1->p2")])
def test_pictures_show_the_direction_and_the_fate(kind: str, arrow: str) -> None:
    shown = trace(kind, SET)
    assert arrow in to_mermaid(shown)
    word = {"nested": "arrives", "lose": "lost", "sweep": "removed"}[kind]
    assert f'class="message {word}"' in to_svg(shown)
    assert f"{word} in step 1" in to_text(shown)


@pytest.mark.parametrize(
    ("move", "caption"),
    [
        (Move("Receive", ("2", "1"), (Send("1->2", Take("vote")),)), "Receive 2 1"),
        (Move("Send", ("1", "2"), (Send("1->2", "vote"),)), "Send 1->2"),
        (Move("Swap", ("1", "2"), (Send("1->2", "vote"), Send("2->1", "vote"))), "Swap 1 2"),
        (Move("Compare", ("2", "1"), (Send("2", "x"),)), "Compare 2 1"),
    ],
)
def test_a_caption_has_an_arrow_only_in_the_direction_of_its_channel(move: Move, caption: str) -> None:
    """An action of the receiver names itself first, as `FollowerProcessPROPOSAL(i, j)` of Zab.tla does."""
    assert DefaultPresenter(model("nested", SET)).caption(move) == caption


# -- channels that a column declares -------------------------------------------------------------------------


def mail(channel: Channel | None, content: Any = SET, action: str = "Sweep", process: str = "2") -> Model:
    """One message under way in a column of any name, and a move that says nothing about its receiver."""
    take = Move(action, (), (Send("post", Take("vote")),))
    return Model(
        "mail",
        (Column("1", 0), Column(process, 0), Column("mail", content, channel)),
        (Actor("post", ("mail",), lambda values, _: Outcome((type(values[0])(),))),),
        (Rule("next", (Read("mail"),), lambda now: [take] if now else []),),
        (Property("Empty", (Read("mail"),), lambda now: None if now else Finding("empty"), Kind.SOMETIMES),),
    )


def mail_trace(model: Model) -> Any:
    return trace_of(Job("mail", model, DefaultPresenter(model), {}), plain.explore(model).found["Empty"])


@pytest.mark.parametrize("content", [SET, SEQUENCE, Bag.of(["vote"])], ids=["set", "sequence", "bag"])
@pytest.mark.parametrize(
    ("action", "fate"), [("Sweep", "arrives"), ("Shred", "lost"), ("crash", "lost"), ("lose", "lost")]
)
def test_a_message_of_a_declared_channel_arrives_unless_the_declaration_or_a_fault_loses_it(
    action: str, fate: str, content: Any
) -> None:
    trace = mail_trace(mail(Channel("1", "2", lost_by=("Shred",)), content, action))
    (message,) = messages_of(trace)
    assert (message.sender, message.receiver, message.end_text) == ("1", "2", f"{fate} in step 1")
    assert trace.lanes == ("1", "2")


def test_a_message_says_itself_where_it_goes() -> None:
    content = frozenset({("2", "vote"), ("1", "ack")})
    (first, second) = messages_of(mail_trace(mail(Channel("1", itemgetter(0)), content)))
    assert {(first.sender, first.receiver), (second.sender, second.receiver)} == {("1", "2"), ("1", "1")}


def test_a_column_with_an_arrow_may_declare_other_ends() -> None:
    model = mail(Channel("1", "2"))
    columns = (*model.columns[:2], Column("a->b", SET, Channel("1", "2")))
    renamed = Model("renamed", columns, (Actor("post", ("a->b",), lambda *_: Outcome((frozenset(),))),), ())
    before = renamed.initial()
    (event,) = DefaultPresenter(renamed).diagram(before, Move("Sweep", (), ()), (*before[:2], frozenset()))
    assert (event.kind, event.lane, event.peer) == ("deliver", "2", "1")


def test_the_caption_of_a_step_of_a_declared_channel_has_an_arrow() -> None:
    presenter = DefaultPresenter(mail(Channel("1", "2")))
    assert presenter.caption(Move("Take", ("1", "2"), (Send("post", Take("vote")),))) == "Take 1->2"


@pytest.mark.parametrize(
    ("channel", "problem"),
    [
        (Channel("1", "3"), "the channel 'mail' names the process '3', and no column has that name"),
        (Channel("1", "2", lost_by="Shred"), "declares lost_by='Shred'; write a tuple, as in ('Shred',)"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_declaration_is_an_error_of_the_model(channel: Channel, problem: str) -> None:
    with pytest.raises(ModelError) as error:
        mail(channel)
    assert problem in str(error.value)


def test_a_channel_with_a_content_of_another_kind_is_an_error() -> None:
    with pytest.raises(ModelError) as error:
        DefaultPresenter(mail(Channel("1", "2"), content=7))
    assert "the channel 'mail' has at first 7; a channel has a tuple, a frozenset or a Bag" in str(error.value)


@pytest.mark.parametrize(
    ("receiver", "problem"),
    [
        (lambda _: "nobody", "has 'vote' of the process 'nobody'; the columns that are no channel are 1, 2"),
        (lambda _: 1 / 0, "the receiver of the channel 'mail' raises ZeroDivisionError"),
    ],
)
def test_a_message_without_a_place_is_an_error(receiver: Any, problem: str) -> None:
    with pytest.raises(ModelError) as error:
        mail_trace(mail(Channel("1", receiver)))
    assert problem in str(error.value)
