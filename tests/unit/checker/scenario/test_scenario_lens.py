"""The presentation of an ensemble: lanes, captions and the elements of a picture, in ZooKeeper's terms."""

from collections.abc import Iterator

from checker.engine import Move, Row
from checker.engine.semantics import successors
from checker.job import DiagramEvent, Job
from checker.scenario import from_text

THREE = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
FIVE = THREE + "server.4=d:2888:3888\nserver.5=e:2888:3888\n"
WATCHED = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888:observer\n"
FILES = {"zoo-3.cfg": THREE, "zoo-5.cfg": FIVE, "watched.cfg": WATCHED}
R7 = """
file: zoo-3.cfg
servers: {1: {zxid: 10}, 2: {zxid: 10}, 3: {zxid: 8}}
history: [{start: [1, 2]}, {start: [3]}]
plan: [{restart: 2, file: zoo-5.cfg}]
faults: {cuts: 1, crashes: 1, restarts: 1, heals: 1, partitions: 1, notification_timeouts: 1, early_timeouts: 1}
"""


def job(text: str) -> Job:
    return from_text(text, FILES.get, "s.yaml")


def walk(made: Job, *captions: str) -> Iterator[tuple[Row, Move, Row]]:
    """Yield the steps with these captions, one after the other."""
    row = made.model.initial()
    for caption in captions:
        steps = {made.presenter.caption(move): (move, after) for move, after in successors(made.model, row)}
        assert caption in steps, f"{caption!r} is none of {sorted(steps)}"
        move, after = steps[caption]
        yield row, move, after
        row = after


def after(made: Job, *captions: str) -> tuple[Row, tuple[DiagramEvent, ...]]:
    """Return the row after these steps, and the elements that the last of them draws."""
    before, move, row = list(walk(made, *captions))[-1]
    return row, made.presenter.diagram(before, move, row)


def test_a_lane_shows_state_round_vote_and_file() -> None:
    made = job(R7)
    lanes = made.presenter.lanes(made.model.initial())
    assert lanes["server.2"] == {
        "state": "LEADING",
        "round": 1,
        "vote": {"leader": 2, "zxid": "0xa", "epoch": 0},
        "file": "zoo-3.cfg",
    }


def test_a_looking_server_shows_its_bucket_as_sender_to_leader() -> None:
    """R7, first round: server.1 has 1 -> 1, 3 -> 3."""
    row, _ = after(
        job(R7),
        "the operator stops server.2",
        "server.1 has lost its leader server.2",
        "server.3 has lost its leader server.2",
        "server.1 hears server.3 vote for 3 (LOOKING, round 2)",
    )
    lanes = job(R7).presenter.lanes(row)
    assert lanes["server.1"]["bucket"] == {"1": 1, "3": 3}
    assert lanes["server.2"] == {"state": "down", "file": "zoo-3.cfg"}


def test_a_stop_is_drawn_and_so_is_a_start_with_another_file() -> None:
    stopped = after(job(R7), "the operator stops server.2")[1]
    assert DiagramEvent("crash", "server.2", "stops") in stopped
    _, drawn = after(
        job(R7),
        "the operator stops server.2",
        "server.1 has lost its leader server.2",
        "server.3 has lost its leader server.2",
        "the operator starts server.2 with zoo-5.cfg",
    )
    assert DiagramEvent("start", "server.2", "starts with zoo-5.cfg") in drawn
    assert DiagramEvent("send", "server.2", "vote for 2 (LOOKING, round 1)", peer="server.1") in drawn


def test_a_delivery_is_drawn_with_what_it_makes_the_receiver_send() -> None:
    """R7: server.3 changes its vote to (10, 1) and sends it to all."""
    _, drawn = after(
        job(R7),
        "the operator stops server.2",
        "server.1 has lost its leader server.2",
        "server.3 has lost its leader server.2",
        "server.3 hears server.1 vote for 1 (LOOKING, round 2)",
    )
    assert drawn[0] == DiagramEvent("deliver", "server.3", "vote for 1 (LOOKING, round 2)", peer="server.1")
    assert DiagramEvent("send", "server.3", "vote for 1 (LOOKING, round 2)", peer="server.1") in drawn
    # The send queue towards server.2, which is down, holds one message, the newest.
    assert DiagramEvent("lost", "server.3", "vote for 3 (LOOKING, round 2)", peer="server.2") in drawn


def test_a_decision_names_the_state_and_the_leader() -> None:
    steps = (
        "the operator stops server.2",
        "server.1 has lost its leader server.2",
        "server.3 has lost its leader server.2",
        "server.3 hears server.1 vote for 1 (LOOKING, round 2)",
        "server.3 decides: FOLLOWING 1",
        "server.1 hears server.3 vote for 3 (LOOKING, round 2)",
        "server.1 hears server.3 vote for 1 (LOOKING, round 2)",
        "server.1 decides: LEADING",
    )
    assert after(job(R7), *steps)[1] == (DiagramEvent("decide", "server.1", "LEADING"),)


def test_an_observer_decides_to_observe() -> None:
    made = job("file: watched.cfg\nservers: {1: {}, 2: {}, 3: {late: true}}\nhistory: [{start: [1, 2]}]\n")
    row, drawn = after(
        made,
        "server.3 starts with watched.cfg",
        "server.1 hears server.3 vote for nobody (LOOKING, round 1)",
        "server.3 hears server.1 vote for 2 (FOLLOWING, round 1)",
        "server.2 hears server.3 vote for nobody (LOOKING, round 1)",
        "server.3 hears server.2 vote for 2 (LEADING, round 1)",
    )
    assert DiagramEvent("decide", "server.3", "OBSERVING 2") in drawn
    assert made.presenter.lanes(row)["server.3"]["state"] == "OBSERVING"


def test_cuts_partitions_and_healing() -> None:
    row, drawn = after(job(R7), "the link 2-3 is cut")
    assert DiagramEvent("cut", "server.2", "cut", peer="server.3") in drawn
    assert row is not None
    _, drawn = after(job(R7), "server.1 is cut off from server.2 and server.3", "all links are whole again")
    assert DiagramEvent("heal", "server.1", "heal", peer="server.2") in drawn
    assert DiagramEvent("heal", "server.1", "heal", peer="server.3") in drawn


def test_crashes_restarts_and_losses() -> None:
    made = job(R7)
    list(
        walk(
            made,
            "server.2 crashes",
            "server.1 has lost its leader server.2",
            "server.1 has heard nothing for a while and sends its vote again",
            "server.3 has lost its leader server.2",
            "server.2 starts again with zoo-3.cfg",
        )
    )
    # Messages sent to a server are lost with it.
    steps = ("server.3 crashes", "server.3 starts again with zoo-3.cfg", "the operator stops server.2")
    drawn = after(job(R7), *steps)[1]
    assert DiagramEvent("lost", "server.3", "vote for 3 (LOOKING, round 1)", peer="server.2") in drawn


def test_an_election_by_the_oracle_names_who_decides_for_whom() -> None:
    made = job("file: zoo-3.cfg\nservers: [1, 2, 3]\ngrain: oracle\n")
    captions = {made.presenter.caption(move) for move, _ in successors(made.model, made.model.initial())}
    assert {"server.1 elects server.2", "server.1 and server.2 elect server.3"} <= captions
    joined = next(walk(made, "server.1 elects server.3"))[2]
    assert "server.2 joins server.3" in {made.presenter.caption(m) for m, _ in successors(made.model, joined)}
