"""The messages in flight in a trace are those in the model's channels, after any sequence of events."""

import random
from collections import Counter
from typing import Any

import pytest

from checker.engine.discovery import Step
from checker.engine.model import Actor, Column, Model, Move, Outcome, Read, Row, Rule, Send
from checker.engine.semantics import successors
from checker.job import DiagramEvent, Job
from checker.models.service.messages import ConnectionClosed
from checker.present import DefaultPresenter
from checker.scenario import bundled, load
from checker.traces import Trace, walk_of
from checker.traces.summary import messages_of

PATHS = {path.stem: path for path in bundled()}
ENSEMBLES = ["r10-wrong-order-fine", "elects-after-a-partition", "zookeeper-4394", "r10-zab-healing"]
CLIENTS = ["r12-ephemeral-dies-with-connection", "r13-moving", "r12-r13-r14-anything", "r15-blind-retry", "r18-lock"]


def walks(job: Job, seed: int, count: int = 12, depth: int = 25) -> list[tuple[Trace, dict[str, Any]]]:
    """Return runs of random moves, each with its last row by the names of columns."""
    choose, found = random.Random(seed), []
    names = [column.name for column in job.model.columns]
    for _ in range(count):
        path = [Step(None, job.model.initial())]
        while len(path) <= depth and (possible := list(successors(job.model, path[-1].row))):
            path.append(Step(*choose.choice(possible)))
        found.append((walk_of(job, tuple(path)), dict(zip(names, path[-1].row, strict=True))))
    return found


def server(sid: object) -> str:
    return f"server.{sid}"


def held(name: str, value: Any) -> dict[tuple[str, str], int]:
    """Return the number of messages that a column of an ensemble holds, by sender and receiver."""
    match type(value).__name__:
        case "Channel":
            source, _, target = name.partition(">")
            return {(server(source), server(target)): len(value.in_flight) + (value.queued is not None)}
        case "Connection":
            learner, leader = server(value.learner), server(value.leader)
            return {(learner, leader): len(value.up), (leader, learner): len(value.down)}
    return {}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_of_an_ensemble(name: str) -> None:
    for trace, row in walks(load(PATHS[name]), 4):
        told = Counter((each.sender, each.receiver) for each in messages_of(trace) if each.ended is None)
        assert told == +sum((Counter(held(*each)) for each in row.items()), Counter())


@pytest.mark.parametrize("name", CLIENTS)
def test_of_clients_also_where_connections_were_lost(name: str) -> None:
    job = load(PATHS[name])
    links = [each.name for each in job.model.columns if each.name.startswith("link ")]
    assert links
    for trace, row in walks(job, 4):
        on_their_way = [each for each in messages_of(trace) if each.ended is None and each.text != "connection closed"]
        for link in links:
            client = f"client {link.removeprefix('link ')}"
            asked = sum(each.sender == client for each in on_their_way)
            assert asked == len(row[link].up) + len(row[link].stray), [step.caption for step in trace.steps]
            answered = sum(not isinstance(each, ConnectionClosed) for each in row[link].down)
            assert sum(each.receiver == client for each in on_their_way) == answered


ASKED = ["client 1 asks: create -e /e 1.1", "client 1 loses its connection to server 1"]
LATE = "client 1's create -e /e 1.1, of a lost connection, arrives late"
RECONNECTS = "client 1 connects to server 2 with its session"


@pytest.mark.parametrize(("then", "end"), [(LATE, "arrives in step 3"), (RECONNECTS, "lost in step 3")])
def test_a_request_of_a_lost_connection_arrives_late_where_it_was_sent_or_is_lost(then: str, end: str) -> None:
    job = load(PATHS["r12-ephemeral-dies-with-connection"])
    path = [Step(None, job.model.initial())]
    for caption in [*ASKED, then]:
        possible = successors(job.model, path[-1].row)
        path.append(next(Step(*each) for each in possible if job.presenter.caption(each[0]) == caption))
    message = messages_of(walk_of(job, tuple(path)))[0]
    assert message.sentence == f"m1 client 1 -> server 1: create -e /e 1.1; sent in step 1, {end}"


class Script(DefaultPresenter):
    """A presenter that draws the n-th element at the n-th step of a counting model."""

    def __init__(self, model: Model, *steps: DiagramEvent) -> None:
        super().__init__(model)
        self._steps = steps

    def diagram(self, before: Row, _move: Move, _after: Row) -> tuple[DiagramEvent, ...]:
        return (self._steps[before[0]],)


def test_of_messages_that_read_the_same_the_oldest_ends_first_and_none_ends_twice() -> None:
    count = Actor("n", ("n",), lambda values, _: Outcome((values[0] + 1,)))
    up = Rule("up", (Read("n"),), lambda n: [Move("up", (), (Send("n", None),))] if n < 6 else None)
    model = Model("six", (Column("n", 0),), (count,), (up,), ())
    asks = [DiagramEvent("send", "c", "ask", peer) for peer in "ba"]
    late, lost = (DiagramEvent(kind, "c", "ask") for kind in ("late", "lost"))
    job = Job("six", model, Script(model, *asks, late, lost, late, lost), {})
    path = [Step(None, model.initial())]
    while possible := list(successors(model, path[-1].row)):
        path.append(Step(*possible[0]))
    trace = walk_of(job, tuple(path))
    assert [each.sentence for each in messages_of(trace)] == [
        "m1 c -> b: ask; sent in step 1, arrives in step 3",
        "m2 c -> a: ask; sent in step 2, lost in step 4",
    ]
    assert [step.events for step in trace.steps[5:]] == [(), ()]
