"""A trace is one run as data: numbered steps, full states, changed fields, and messages with their sends and ends."""

import dataclasses
from enum import Enum
from typing import NamedTuple

import msgspec
import pytest

from checker.engine import plain, semantics
from checker.engine.discovery import Discovery, Step
from checker.engine.model import Finding, Kind, Model, Move, Property, Read, Rule, Send
from checker.engine.values import brief, show, to_json
from checker.job import DiagramEvent, Job, Verdict
from checker.kit import WAIT, Machine, Network, Reaction, network_model
from checker.kit.networks import Remove
from checker.models.small_election import election
from checker.present import DefaultPresenter
from checker.traces import Trace, Truth, to_text, trace_of


def caller_and_listener() -> Model:
    """Return a model where `a` calls `b` twice over a lossy link; `b` may crash and start again."""

    def call(sent: int, _choice: object) -> Reaction:
        return Reaction(sent + 1, (("b", f"call {sent + 1}"),))

    def hear(heard: object, _source: str, message: object) -> Reaction:
        return WAIT if heard == "down" else Reaction(message)

    def crash_or_start(_heard: object, choice: str) -> Reaction:
        return Reaction({"crash": "down", "start": "silence"}[choice])

    model = network_model(
        "call",
        [
            Machine("a", Reaction(0), choices=lambda sent: ["call"] if sent < 2 else [], on_choice=call),
            Machine(
                "b", Reaction("silence"), hear, lambda heard: ["start" if heard == "down" else "crash"], crash_or_start
            ),
        ],
        Network(ordered=True),
    )
    loss = Rule(
        "loss a->b",
        (Read("a->b"),),
        lambda waiting: [Move("lose", ("a", "b"), (Send("a->b", Remove(waiting[0])),))] if waiting else [],
    )
    return dataclasses.replace(model, rules=(*model.rules, loss))


def counting(name: str, most: int) -> Machine:
    return Machine(
        name,
        Reaction(0),
        choices=lambda count: ["up"] if count < most else [],
        on_choice=lambda count, _: Reaction(count + 1),
    )


def run(model: Model, actions: list[str], prop: Property) -> Trace:
    """Return the trace of a run that takes, at each step, the first move with that action."""
    path = [Step(None, model.initial())]
    for action in actions:
        path.append(Step(*next(s for s in semantics.successors(model, path[-1].row) if s[0].action == action)))
    held = model.with_properties([prop])
    found = Discovery(prop, Finding("the end"), len(actions), tuple(path))
    return trace_of(Job(model.name, held, DefaultPresenter(held), {"model": "call"}), found)


HEARS_SECOND = Property(
    "HearsSecond",
    (Read("b"),),
    lambda heard: Finding("heard") if heard == "call 2" else None,
    Kind.SOMETIMES,
)


def of_messages(trace: Trace) -> list[tuple[int, str, int | None]]:
    return [(step.number, d.kind, d.message) for step in trace.steps for d in step.events if d.peer is not None]


@pytest.fixture(scope="module")
def two_leaders() -> Trace:
    model = election(3)
    found = plain.explore(model).found["OneLeader"]
    return trace_of(Job("election of 3", model, DefaultPresenter(model), {"servers": 3}), found)


def test_a_trace_says_what_was_found_and_with_which_values(two_leaders):
    assert two_leaders.verdict is Verdict.VIOLATED
    assert two_leaders.headline == "violated: OneLeader at depth 12"
    assert (two_leaders.clause, two_leaders.values) == ("two servers are LEADING", (("leaders", [2, 3]),))


def test_steps_are_numbered_from_the_initial_state(two_leaders):
    assert [step.number for step in two_leaders.steps] == list(range(13))
    assert two_leaders.steps[0].action is None
    assert two_leaders.steps[1].action == "start"


def test_a_step_holds_the_full_state_and_names_the_fields_that_changed(two_leaders):
    hears_of_one = two_leaders.steps[4]
    assert hears_of_one.caption == "deliver 1->2 (1, 1, LOOKING)"
    assert hears_of_one.changed == {"2": ("recvset",)}
    assert hears_of_one.lanes["2"] == {"state": "LOOKING", "round": 1, "vote": 2, "recvset": [1, 2, 0]}
    assert hears_of_one.lanes["3"] == two_leaders.steps[3].lanes["3"]


def test_the_truth_of_a_property_is_known_after_each_step(two_leaders):
    assert [step.truth["OneLeader"] for step in two_leaders.steps] == 12 * [Truth.HOLDS] + [Truth.FAILS]


def test_a_delivery_has_the_number_of_the_message_that_was_sent():
    trace = run(caller_and_listener(), ["call", "call", "deliver", "deliver"], HEARS_SECOND)
    assert of_messages(trace) == [(1, "send", 1), (2, "send", 2), (3, "deliver", 1), (4, "deliver", 2)]


def test_a_lost_message_is_told_from_a_delivered_one():
    trace = run(caller_and_listener(), ["call", "call", "lose", "deliver"], HEARS_SECOND)
    assert of_messages(trace) == [(1, "send", 1), (2, "send", 2), (3, "lost", 1), (4, "deliver", 2)]


def test_of_equal_messages_the_oldest_arrives_first_and_others_are_not_mixed_up():
    """A presenter may report a loss at the receiver's lane, too."""
    ping = DiagramEvent("send", "a", "ping", peer="b")
    told = [
        (ping,),
        (ping, DiagramEvent("send", "b", "pong", peer="a")),
        (DiagramEvent("lost", "a", "pong", peer="b"),),
    ]
    told += [(DiagramEvent("deliver", "b", "ping", peer="a"),)]

    class Telling(DefaultPresenter):
        def diagram(self, *_step):
            return told.pop(0)

    model = caller_and_listener()
    path = [Step(None, model.initial())] + 4 * [Step(Move("x", (), ()), model.initial())]
    job = Job("call", model, Telling(model), {})
    trace = trace_of(job, Discovery(HEARS_SECOND, Finding("heard"), 4, tuple(path)))
    assert of_messages(trace) == [(1, "send", 1), (2, "send", 2), (2, "send", 3), (3, "lost", 3), (4, "deliver", 1)]
    assert trace.steps[3].events[0].lane == "b"


def test_crashes_and_starts_are_drawn():
    trace = run(caller_and_listener(), ["crash", "start"], HEARS_SECOND)
    assert [d.kind for step in trace.steps for d in step.events] == ["crash", "start"]


def test_the_trace_of_a_witness_says_so_and_is_no_violation():
    trace = run(caller_and_listener(), ["call", "call", "deliver", "deliver"], HEARS_SECOND)
    assert trace.headline == "witnessed: HearsSecond at depth 4"
    assert trace.verdict is Verdict.PASSED
    assert [step.truth["HearsSecond"] for step in trace.steps][-2:] == [Truth.UNSEEN, Truth.WITNESSED]


def test_a_final_property_speaks_of_states_without_a_successor_only():
    counter = network_model("count", [counting("n", most=2)])
    stuck = Property("Ends", (Read("n"),), lambda n: Finding("stuck at two") if n == 2 else None, Kind.FINAL)
    trace = run(counter, ["up", "up"], stuck)
    assert trace.headline == "deadlock: Ends at depth 2"
    assert [step.truth["Ends"] for step in trace.steps] == [Truth.TRIVIAL, Truth.TRIVIAL, Truth.FAILS]


def test_a_lane_may_not_have_a_name_that_trace_files_keep_for_themselves():
    model = network_model("odd", [Machine("#x", Reaction(0))])
    with pytest.raises(ValueError, match="must not begin with"):
        run(model, [], Property("P", (Read("#x"),), lambda _: None))


def test_too_many_lanes_for_columns_become_a_list_of_changes():
    model = network_model("many", [counting(f"s{n}", most=9) for n in range(9)])
    trace = run(model, ["up"], Property("P", (Read("s0"),), lambda _: None))
    text = to_text(trace)
    assert "   1  up s0\n      s0: value=1\n" in text
    assert max(map(len, text.splitlines())) <= 110


def test_losses_and_crashes_cannot_be_missed_in_the_text():
    text = to_text(run(caller_and_listener(), ["call", "lose", "crash"], HEARS_SECOND))
    assert "lost: m1->b" in text
    assert "*crash* value=down" in text
    assert "m1  a -> b  call 1           sent in step 1, lost in step 2" in text


def test_a_very_long_value_is_shortened_and_the_line_stays_narrow():
    many = tuple(range(300))
    machines = [
        Machine(n, Reaction(()), choices=lambda _: ["fill"], on_choice=lambda _, __: Reaction(many)) for n in "ab"
    ]
    model = network_model("long", machines)
    text = to_text(run(model, ["fill"], Property("P", (Read("a"),), lambda _: None)))
    assert "…" in text
    assert max(map(len, text.splitlines())) <= 110


class Colour(Enum):
    RED = 1
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int


class Jump(msgspec.Struct, frozen=True):
    to: Point


class Halt(msgspec.Struct, frozen=True):
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, "RED"),
        (Colour.BLUE, "blue"),
        (Point(1, 2), {"x": 1, "y": 2}),
        (Jump(Point(1, 2)), {"class": "Jump", "to": {"x": 1, "y": 2}}),
        (frozenset({3, 1, 2}), [1, 2, 3]),
        ({7: (True, None)}, {"7": [True, None]}),
        (b"\x0f", "0f"),
        (0.5, "0.5"),
    ],
)
def test_values_of_a_model_become_json(value, expected):
    assert to_json(value) == expected


def test_values_are_shown_with_the_names_of_fields_or_briefly():
    assert show(to_json(Jump(Point(1, 2)))) == "Jump(to: {x: 1, y: 2})"
    assert brief(to_json(Jump(Point(1, 2)))) == "Jump((1, 2))"
    assert (show(to_json(Halt())), show(True), show(None), show("")) == ("Halt", "true", "none", "''")
