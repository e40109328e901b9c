"""The environment of the kit: spaces counted by hand, the words of its faults, and Raft with its two classic errors.

The counts are derived in the comments. Raft is `docs/examples/raft.py`. Its errors are those of the paper: section 5.2
demands a vote on disk, and figure 8 shows the loss of an entry of an earlier term that was counted as committed.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from checker.engine import Discovery, Finding, Model, Property, Read, Stop, plain, search
from checker.engine.result import disagreements
from checker.engine.semantics import successors
from checker.engine.symmetric_search import SYMMETRIC
from checker.kit import (
    Action,
    Environment,
    FaultAction,
    Machine,
    Network,
    Reaction,
    Traits,
    interchangeable,
    network_model,
)
from checker.present import DefaultPresenter, job_of_model
from checker.traces import to_text, trace_of

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "raft.py"


class Step(Action):
    COUNT = "count", Traits(budget="timeouts", caption="{} counts")


def grow(state: int, choice: str) -> Reaction:
    return Reaction(state + 1)


def counter(budgets: Environment, durable: Any) -> Model:
    """A machine that counts to two."""
    machine = Machine("a", Reaction(0), choices=lambda n: ["up"] if n < 2 else [], on_choice=grow, durable=durable)
    return network_model("counter", [machine], faults=budgets)


def sequence(state: tuple[str, ...], source: str, message: str) -> Reaction:
    return Reaction((*state, message))


def sent(budgets: Environment, network: Network, *messages: str) -> Model:
    """Messages from a to b, which keeps them in order and loses them in a crash."""
    receiver = Machine("b", Reaction(()), sequence, durable=lambda _: ())
    return network_model("sent", [Machine("a", Reaction(0, tuple(("b", m) for m in messages))), receiver], network,
                         links=[("a", "b")], faults=budgets)  # fmt: skip


FORGETS, KEEPS = (lambda _: 0), (lambda n: n)
COUNTED = [
    (counter(Environment(crashes=1), FORGETS), 4),  # 0, 1, 2, and down
    (counter(Environment(crashes=1), KEEPS), 6),  # 0, 1, 2, each running and down
    (counter(Environment(crashes=1, restarts=1), FORGETS), 7),  # and again 0, 1, 2
    (counter(Environment(crashes=1, restarts=1), KEEPS), 9),
    (counter(Environment(crashes=1), None), 3),  # without `durable` it never crashes
    (counter(Environment(), KEEPS), 3),
    # x waits or is received; x waited or was received at the cut; healed after each of these two.
    (sent(Environment(cuts=1, heals=1), Network(), "x"), 6),
    (sent(Environment(partitions=1, heals=1), Network(ordered=True), "x"), 6),
    # Received: nothing, x, xy. A crash ends the connection, and nothing is received any more.
    (sent(Environment(crashes=1), Network(ordered=True), "x", "y"), 4),
    # Received: nothing, x, y, xy, yx. After a crash the messages that are under way stay there: xy, x, y, none.
    (sent(Environment(crashes=1), Network(), "x", "y"), 9),
    # Each of two messages waits, is received or lost, and one at most is lost; two that are received have an order.
    (sent(Environment(losses=1), Network(), "x", "y"), 9),
]


@pytest.mark.parametrize(("model", "states"), COUNTED)
def test_the_states_are_those_counted_by_hand(model: Model, states: int) -> None:
    assert plain.explore(model).states == states
    assert disagreements(plain.explore(model), search.explore(model)) == []


def trio(budgets: Environment, network: Network = Network()) -> Model:
    """Three machines, each with a message for each other one."""
    names = ["a", "b", "c"]
    machines = [
        Machine(name, Reaction(frozenset(), tuple((other, name) for other in names if other != name)),
                lambda state, source, message: Reaction(state | {source}), durable=lambda state: state)
        for name in names
    ]  # fmt: skip
    return network_model("trio", machines, network, faults=budgets)


def test_a_partition_cuts_every_link_between_its_two_sides() -> None:
    model = trio(Environment(partitions=1))
    first = plain.explore(model.with_properties([cut_off(2)])).found["CutOff"]
    assert first.depth == 1
    assert plain.explore(model).coverage["partition"].fired > 3  # three ways to divide the first state, and later ones
    assert plain.explore(model.with_properties([cut_off(3)])).found == {}  # one pair is always together


def cut_off(links: int) -> Property:
    check = lambda cut: Finding("cut") if len(cut) == links else None  # noqa: E731
    return Property("CutOff", (Read("links"),), check)


def test_machines_remain_interchangeable_under_faults() -> None:
    model = trio(Environment(crashes=1, restarts=1, cuts=1, partitions=1, heals=1))
    whole, smaller = search.explore(model), search.explore(interchangeable(model, ["a", "b", "c"]), frontier=SYMMETRIC)
    assert smaller.exhausted
    assert whole.states / 6 <= smaller.states < whole.states / 3
    assert smaller.depth == whole.depth


def test_a_machine_that_is_down_receives_nothing_and_decides_nothing() -> None:
    model = trio(Environment(crashes=1))
    down = Property("Down", (Read("faults"), Read("a")), lambda faults, a: Finding("a") if "a" in faults.down else None)
    found: Discovery = plain.explore(model.with_properties([down])).found["Down"]
    (crashed,) = (step.row for step in found.path[1:])
    following = {move.arguments[1] for move, _ in successors(model, crashed) if move.action == "deliver"}
    assert following == {"b", "c"}


def test_an_action_takes_from_its_budget() -> None:
    machine = Machine("a", Reaction(0), choices=lambda _: [Step.COUNT], on_choice=grow, actions=tuple(Step))
    model = network_model("timer", [machine], faults=Environment(timeouts=2))
    assert plain.explore(model).states == 3
    assert [rule.is_fair("count") for rule in model.rules] == [True]


def test_bounds_captions_and_pictures_come_from_the_table() -> None:
    model = sent(Environment(crashes=1, partitions=1, losses=2), Network(), "x")
    job = job_of_model(model)
    assert job.bounds == ("at most 1 crash, 1 partition, 2 lost messages",)
    captions = {DefaultPresenter(model).caption(move) for move, _ in successors(model, model.initial())}
    assert captions == {
        "deliver a->b x", "lose a->b x", "b crashes", "a can no longer be reached by the others"
    }  # fmt: skip
    (cut,) = (
        (move, after) for move, after in successors(model, model.initial()) if move.action == FaultAction.PARTITION
    )
    events = [(event.kind, event.text) for event in DefaultPresenter(model).diagram(model.initial(), *cut)]
    assert ("lost", "x") in events
    assert ("cut", "cut") in events


# The late disk.


def go(state: str, choice: str, *, waits: bool) -> Reaction:
    sends = (("b", "x"),)
    return Reaction("went", after_sync=sends) if waits else Reaction("went", sends)


def told(budgets: Environment, *, waits: bool, durable: Any = KEEPS) -> Model:
    """A machine that writes "went" and tells b, once the write is durable or before."""
    machines = [
        Machine("a", Reaction("idle"), choices=lambda state: ["go"] if state == "idle" else [],
                on_choice=partial(go, waits=waits), durable=durable),
        Machine("b", Reaction(0), lambda state, source, message: Reaction(state + 1)),
    ]  # fmt: skip
    forgotten = Property(
        "Kept", (Read("a"), Read("b")), lambda a, b: Finding("forgotten") if b and a == "idle" else None
    )
    return network_model("told", machines, links=[("a", "b")], faults=budgets, properties=[forgotten])


LATE = [
    # In memory and on disk: 0 0, 1 0, 1 1, 2 1, 2 2; a second unfinished write adds 2 0.
    (counter(Environment(unfinished_writes=1), KEEPS), 5),
    (counter(Environment(unfinished_writes=2), KEEPS), 6),
    (counter(Environment(crashes=1, unfinished_writes=1), KEEPS), 8),  # and down with 0, 1, 2 on disk
    (counter(Environment(crashes=1, unfinished_writes=2), KEEPS), 9),
    (counter(Environment(crashes=1, restarts=1, unfinished_writes=1), KEEPS), 13),  # and the first five again
    (counter(Environment(crashes=1, unfinished_writes=1), FORGETS), 4),  # nothing is written: 0, 1, 2, and down
    (counter(Environment(unfinished_writes=1), None), 3),  # without `durable` there is no disk
    # Idle; unfinished; durable with x under way, or received. Down: idle; went with x under way, or received.
    (told(Environment(crashes=1, unfinished_writes=1), waits=True), 7),
    # Idle; unfinished or durable with x under way, or received. Down: idle without x; each of the two with x, received.
    (told(Environment(crashes=1, unfinished_writes=1), waits=False), 10),
    # On a disk that is not late both are the same: idle, x under way, received, and down in each.
    (told(Environment(crashes=1), waits=True), 6),
    (told(Environment(crashes=1), waits=False), 6),
    (told(Environment(crashes=1, unfinished_writes=1), waits=True, durable=None), 3),
]


@pytest.mark.parametrize(("model", "states"), LATE)
def test_the_states_of_late_disks_are_those_counted_by_hand(model: Model, states: int) -> None:
    space = model.with_properties([])
    assert plain.explore(space).states == states
    assert disagreements(plain.explore(space), search.explore(space)) == []


def test_only_a_machine_that_waits_for_its_disk_keeps_what_it_told() -> None:
    budgets = Environment(crashes=1, unfinished_writes=1)
    assert search.explore(told(budgets, waits=True)).found == {}
    found = search.explore(told(budgets, waits=False)).found["Kept"]
    assert found.depth == 3  # go, the arrival and the crash
    assert search.explore(told(Environment(crashes=1), waits=False)).found == {}


def test_an_answer_without_a_write_waits_for_the_unfinished_one() -> None:
    """The second answer writes nothing, and is as good as the first one: both need the same write."""
    answers = Machine("a", Reaction(0), lambda state, source, message: Reaction(1, after_sync=((source, message),)),
                      durable=KEEPS)  # fmt: skip
    asks = Machine("b", Reaction((), (("a", "x"), ("a", "y"))), sequence)
    early = Property("Early", (Read("disk of a"), Read("b")),
                     lambda disk, b: Finding("early") if b and not disk.durable else None)  # fmt: skip
    model = network_model("asked", [answers, asks], Network(ordered=True), faults=Environment(unfinished_writes=1))
    result = search.explore(model.with_properties([early]))
    assert result.found == {}
    # Before the sync a is asked nothing, x, or both. After it y waits or is answered, while the answer to x is under
    # way or has arrived: four. In the last state both answers have arrived.
    assert result.states == 8


def test_what_a_machine_sends_at_the_start_is_under_way_at_once() -> None:
    first = Machine("a", Reaction(0, (("b", "x"),), after_sync=(("b", "y"),)), durable=KEEPS)
    model = network_model("start", [first, Machine("b", Reaction(()), sequence)], Network(ordered=True),
                          faults=Environment(unfinished_writes=1))  # fmt: skip
    assert model.initial()[model.index["a->b"]] == ("x", "y")


def test_machines_with_late_disks_remain_interchangeable() -> None:
    model = trio(Environment(crashes=1, unfinished_writes=1))
    whole, smaller = search.explore(model), search.explore(interchangeable(model, ["a", "b", "c"]), frontier=SYMMETRIC)
    assert smaller.exhausted
    assert whole.states / 6 <= smaller.states < whole.states / 3
    assert smaller.depth == whole.depth


def test_the_words_of_a_late_disk() -> None:
    model = told(Environment(crashes=1, unfinished_writes=2), waits=True)
    assert job_of_model(model).bounds == ("at most 1 crash, 2 unfinished writes of a machine",)
    (went,) = (row for move, row in successors(model, model.initial()) if move.action == "go")
    presenter = DefaultPresenter(model)
    assert presenter.lanes(went)["disk of a"] == {"unfinished": 1, "messages": 1}
    captions = {presenter.caption(move) for move, _ in successors(model, went)}
    assert captions == {"a crashes", "a write of a is on disk"}
    (fair,) = (rule.is_fair("sync") for rule in model.rules if rule.name == "sync a")
    assert fair


# Raft.


@pytest.fixture(scope="module")
def raft() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_raft", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "bounds",
    [
        {"timeouts": 2, "commands": 1, "crashes": 1, "partitions": 1, "losses": 0},
        {"timeouts": 2, "commands": 2, "crashes": 0, "partitions": 0, "losses": 1},
        {"timeouts": 3, "commands": 1, "crashes": 0, "partitions": 0, "losses": 0},
    ],
    ids=str,
)
def test_raft_is_exhausted_without_a_violation(raft: ModuleType, bounds: dict[str, int]) -> None:
    model = raft.model(**bounds)
    result = search.explore(model)
    assert result.stop is Stop.EXHAUSTED
    assert result.found == {}
    assert set(result.coverage) == model.actions
    assert result.evaluations["LeaderCompleteness"].premise > 0


def test_raft_is_the_same_for_both_engines(raft: ModuleType) -> None:
    model = raft.model(timeouts=1, crashes=1, partitions=1, losses=0)
    assert disagreements(plain.explore(model), search.explore(model)) == []


def test_a_vote_that_is_not_on_disk_is_given_twice(raft: ModuleType) -> None:
    """Eight steps: a time-out, a vote and its way back for each of two leaders, and a crash and a restart between."""
    model = raft.model(error="two votes")
    found = search.explore(model).found
    assert [(name, discovery.depth) for name, discovery in found.items()] == [("ElectionSafety", 8)]
    text = to_text(trace_of(job_of_model(model), found["ElectionSafety"]))
    assert "s2 crashes" in text
    assert "s2 starts again" in text


def test_an_entry_of_an_earlier_term_is_committed_and_lost(raft: ModuleType) -> None:
    """Figure 8: s1 leads in term 1, s2 in term 2, s1 in term 3 and commits its old entry, s2 in term 4 without it."""
    bounds = {"timeouts": 4, "commands": 1, "crashes": 0, "partitions": 0, "losses": 0, "candidates": 2}
    result = search.explore(raft.model(error="earlier term", **bounds))
    assert set(result.found) == {"LeaderCompleteness"}
    found = result.found["LeaderCompleteness"]
    leads = [
        next(server for server in step.row[:3] if server.role == raft.LEADER and server.term == term)
        for term in (1, 2, 3, 4)
        for step in found.path
        if any(server.role == raft.LEADER and server.term == term for server in step.row[:3])
    ]
    assert {leader.term for leader in leads} == {1, 2, 3, 4}
    last = {server.term: server for server in found.path[-1].row[:3] if server.role == raft.LEADER}
    assert last[3].log[0].term == 1
    assert last[3].commit == 1
    assert last[4].log[0].term == 2


LATE_DISK = {"losses": 0, "partitions": 0, "writes": 1}


def test_a_vote_before_it_is_durable_is_given_twice(raft: ModuleType) -> None:
    """The eight steps of a vote that is not on disk: the disk is late, and no write completes."""
    found = search.explore(raft.model(error="early votes", **LATE_DISK)).found
    assert [(name, discovery.depth) for name, discovery in found.items()] == [("ElectionSafety", 8)]


def test_an_entry_that_is_acknowledged_before_it_is_durable_is_lost(raft: ModuleType) -> None:
    """Seventeen steps.

    Five make s1 the leader: a time-out, its write, the request, the write of a vote, the vote. Five commit: the
    command, two requests and two answers. Then a crash and a restart, and five that make another leader.
    """
    model = raft.model(error="early entries", **LATE_DISK)
    found = search.explore(model).found
    assert [(name, discovery.depth) for name, discovery in found.items()] == [("LeaderCompleteness", 17)]
    text = to_text(trace_of(job_of_model(model), found["LeaderCompleteness"]))
    assert "a write of s3 is on disk" in text
    assert search.explore(raft.model(error="early entries", losses=0, partitions=0)).found == {}


@pytest.mark.parametrize("writes", [1, 2])
def test_raft_that_waits_for_late_disks_is_exhausted_without_a_violation(raft: ModuleType, writes: int) -> None:
    model = raft.model(losses=0, partitions=0, writes=writes)
    result = search.explore(model)
    assert result.stop is Stop.EXHAUSTED
    assert result.found == {}
    assert set(result.coverage) == model.actions
    assert result.evaluations["LeaderCompleteness"].premise > 0


def test_the_rule_of_the_paper_repairs_it(raft: ModuleType) -> None:
    bounds = {"timeouts": 4, "commands": 1, "crashes": 0, "partitions": 0, "losses": 0, "candidates": 2}
    result = search.explore(raft.model(**bounds))
    assert result.exhausted
    assert result.found == {}
