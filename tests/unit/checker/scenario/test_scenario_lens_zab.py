"""The presentation of servers that lead and follow: lanes, captions, and the packets that a picture draws."""

from collections.abc import Iterator
from typing import Any

import pytest

from checker.engine import Move, Row
from checker.engine.semantics import successors
from checker.job import DiagramEvent, Job
from checker.present.ensemble import disk_of, part_of
from checker.scenario import from_text
from spec.durable import Durable
from spec.quorum import majority_view
from spec.server import Server
from spec.txn import Txn, make_zxid
from spec.zab.packets import Commit, Proposal
from spec.zab.state import (
    Append,
    EnterEpoch,
    Handler,
    Leader,
    LeaderPhase,
    Learner,
    LearnerPhase,
    Outstanding,
    Stage,
    StaleMemory,
    SyncMode,
    TakeSnapshot,
)

THREE = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
ZAB = "file: zoo-3.cfg\nservers: [1, 2, 3]\nprotocol: zab\ngrain: oracle\n"
ESTABLISHED = ZAB + "history: [{start: [1, 2, 3]}]\nworkload: {writes: 1, syncs: 1, pings: 1}\n"
FAULTS = ESTABLISHED + "faults: {crashes: 1, disconnects: 1, cuts: 1}\n"
ONE, TWO = Txn(make_zxid(1, 1), "1:1"), Txn(make_zxid(1, 2), "x")


def job(text: str) -> Job:
    return from_text(text, {"zoo-3.cfg": THREE}.get, "s.yaml")


def walk(made: Job, *captions: str) -> Iterator[tuple[Row, Move, Row]]:
    """Yield the steps with these captions, one after the other."""
    row = made.model.initial()
    for each in captions:
        steps = {made.presenter.caption(move): (move, after) for move, after in successors(made.model, row)}
        assert each in steps, f"{each!r} is none of {sorted(steps)}"
        move, after = steps[each]
        yield row, move, after
        row = after


def after(made: Job, *captions: str) -> tuple[Any, tuple[DiagramEvent, ...]]:
    """Return the lanes after these steps, and the elements that the last of them draws."""
    before, move, row = list(walk(made, *captions))[-1]
    return made.presenter.lanes(row), made.presenter.diagram(before, move, row)


def server(
    part: Leader | Learner | None = None, durable: Durable = Durable(), remains: StaleMemory = StaleMemory()
) -> Server:
    return Server(1, majority_view((1, 2, 3)), durable, zab=part, remains=remains)


# Lanes.


def test_a_leader_shows_its_phase_its_epoch_and_who_is_counted() -> None:
    leader = Leader(LeaderPhase.ACKEPOCH, 2, (1, 3), (Handler(2, Stage.EPOCH_SENT), Handler(3, Stage.EPOCH_ACKED)))
    assert part_of(server(leader)) == {
        "zab": "ACKEPOCH",
        "epoch": 2,
        "counted": [1, 3],
        "handlers": {"2": "EPOCH_SENT", "3": "EPOCH_ACKED"},
    }


def test_a_leader_that_serves_shows_proposals_with_their_acknowledgements_and_no_learner_that_serves() -> None:
    leader = Leader(
        LeaderPhase.BROADCAST, 1, (), (Handler(2, Stage.SERVING),),
        outstanding=(Outstanding(TWO.zxid, (1, 2)),), committed=ONE.zxid, commits=(ONE.zxid,), syncs=((TWO.zxid, 2),),
    )  # fmt: skip
    assert part_of(server(leader)) == {
        "zab": "BROADCAST",
        "epoch": 1,
        "outstanding": {"1:2": [1, 2]},
        "committed": "1:1",
        "toBeApplied": ["1:1"],
        "pendingSyncs": ["1:2 for 2"],
    }


def test_a_learner_that_synchronises_shows_how_and_what_is_in_memory_only() -> None:
    learner = Learner(
        3,
        LearnerPhase.SYNCHRONIZATION,
        1,
        SyncMode.SNAP,
        (ONE,),
        ONE.zxid,
        not_logged=(TWO,),
        packets_committed=(TWO.zxid,),
    )
    assert part_of(server(learner)) == {
        "zab": "SYNCHRONIZATION",
        "mode": "SNAP",
        "tree": ["1:1"],
        "notLogged": ["1:2=x"],
        "packetsCommitted": ["1:2"],
    }


def test_a_learner_that_serves_shows_what_it_has_applied_and_what_is_pending() -> None:
    learner = Learner(
        3,
        LearnerPhase.BROADCAST,
        1,
        pending=(TWO.zxid,),
        commits=(TWO.zxid,),
        delivered=ONE.zxid,
        syncs=1,
        owes_ack=True,
    )
    assert part_of(server(learner)) == {
        "zab": "BROADCAST",
        "owes": "ACK of NEWLEADER",
        "pending": ["1:2"],
        "toBeApplied": ["1:2"],
        "delivered": "1:1",
        "pendingSyncs": 1,
    }


def test_a_disk_shows_epochs_and_log_with_the_values_that_say_more_than_the_zxid() -> None:
    assert disk_of(server(durable=Durable(2, 1, make_zxid(0, 7), (ONE, TWO)))) == {
        "acceptedEpoch": 2,
        "currentEpoch": 1,
        "snapshot": "0:7",
        "log": ["1:1", "1:2=x"],
    }


def test_a_disk_shows_what_it_was_asked_for() -> None:
    queue = (Append(TWO), TakeSnapshot((ONE, TWO), ONE.zxid), EnterEpoch(2))
    assert disk_of(server(Learner(3, queue=queue)))["writing"] == ["1:2=x", "snapshot 1:2", "currentEpoch 2"]


def test_what_outlives_a_learner_is_shown_beside_the_disk() -> None:
    shown = disk_of(server(remains=StaleMemory((TWO,), ONE.zxid)))
    assert (shown["oldQueue"], shown["treeZxid"]) == (["1:2=x"], "1:1")


def test_a_server_that_is_down_shows_its_disk() -> None:
    lanes, _ = after(job(FAULTS), "server.1 crashes")
    assert lanes["server.1"] == {"state": "down", "acceptedEpoch": 1, "currentEpoch": 1, "file": "zoo-3.cfg"}


def test_by_the_oracle_a_lane_names_the_leader_and_no_votes() -> None:
    lanes = job(ESTABLISHED).presenter.lanes(job(ESTABLISHED).model.initial())
    assert (lanes["server.1"]["state"], lanes["server.1"]["leader"]) == ("FOLLOWING", 3)
    assert not {"round", "vote"} & set(lanes["server.1"])


def test_message_by_message_a_lane_has_its_vote() -> None:
    fine = job(ESTABLISHED.replace("oracle", "fine"))
    lane = fine.presenter.lanes(fine.model.initial())["server.1"]
    assert lane["vote"] == {"leader": 3, "zxid": "0x0", "epoch": 1}
    assert "leader" not in lane


# Captions.


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (Move("receive", (3, 2, Proposal(TWO)), ()), "server.2 receives PROPOSAL 1:2 from server.3"),
        (Move("receive", (3, 2, Commit(TWO.zxid)), ()), "server.2 receives COMMIT 1:2 from server.3"),
        (Move("sync", (2, Append(TWO)), ()), "server.2 has 1:2=x on disk and acknowledges it"),
        (Move("sync", (2, Append(TWO, ack=False)), ()), "server.2 has 1:2=x on disk"),
        (Move("sync", (2, TakeSnapshot((ONE,), 0)), ()), "server.2 has a snapshot of its tree on disk"),
        (Move("sync", (2, EnterEpoch(3)), ()), "server.2 has currentEpoch 3 on disk and acknowledges NEWLEADER"),
        (Move("sync late", (2, TWO), ()), "an old sync thread of server.2 has 1:2=x on disk"),
        (Move("apply", (2, TWO.zxid), ()), "server.2 applies 1:2"),
        (Move("resume", (2,), ()), "server.2 goes on to acknowledge NEWLEADER"),
        (Move("client write", (3, 1), ()), "a client writes 1 at server.3"),
        (Move("client sync", (1,), ()), "a client calls sync at server.1"),
        (Move("ping", (3,), ()), "server.3 pings its learners"),
        (Move("disconnect", (1, 3), ()), "the connection of server.1 and server.3 is dropped"),
    ],
)  # fmt: skip
def test_a_caption_says_who_does_what(move: Move, said: str) -> None:
    assert job(ESTABLISHED).presenter.caption(move) == said


# The elements of a picture.


def test_packets_are_drawn_where_they_are_sent_and_where_they_arrive() -> None:
    made = job(ESTABLISHED)
    assert after(made, "a client writes 1 at server.3")[1] == (
        DiagramEvent("note", "server.3", "a client writes 1 at server.3"),
        DiagramEvent("send", "server.3", "PROPOSAL 1:1", peer="server.1"),
        DiagramEvent("send", "server.3", "PROPOSAL 1:1", peer="server.2"),
    )
    steps = ("a client writes 1 at server.3", "server.2 receives PROPOSAL 1:1 from server.3")
    assert after(made, *steps)[1] == (DiagramEvent("deliver", "server.2", "PROPOSAL 1:1", peer="server.3"),)


def test_an_acknowledgement_is_drawn_when_the_disk_has_the_proposal() -> None:
    steps = ("a client writes 1 at server.3", "server.2 receives PROPOSAL 1:1 from server.3")
    on_disk = "server.2 has 1:1=1 on disk and acknowledges it"
    assert after(job(ESTABLISHED), *steps, on_disk)[1] == (
        DiagramEvent("note", "server.2", on_disk),
        DiagramEvent("send", "server.2", "ACK 1:1", peer="server.3"),
    )


def test_a_ping_is_answered_by_a_ping() -> None:
    drawn = after(job(ESTABLISHED), "server.3 pings its learners", "server.1 receives PING from server.3")[1]
    assert drawn == (
        DiagramEvent("deliver", "server.1", "PING", peer="server.3"),
        DiagramEvent("send", "server.1", "PING", peer="server.3"),
    )


def test_a_connection_that_is_dropped_loses_what_is_on_its_way() -> None:
    steps = ("a client writes 1 at server.3", "the connection of server.1 and server.3 is dropped")
    drawn = after(job(FAULTS), *steps)[1]
    assert DiagramEvent("cut", "server.1", "the connection", peer="server.3") in drawn
    assert DiagramEvent("lost", "server.3", "PROPOSAL 1:1", peer="server.1") in drawn
    assert not any(each.peer == "server.2" for each in drawn)


def test_a_cut_link_loses_what_is_on_its_way() -> None:
    drawn = after(job(FAULTS), "a client writes 1 at server.3", "the link 1-3 is cut")[1]
    assert DiagramEvent("lost", "server.3", "PROPOSAL 1:1", peer="server.1") in drawn


def test_what_a_server_sent_before_its_crash_is_on_its_way_still() -> None:
    steps = ("a client writes 1 at server.3", "server.3 crashes")
    made = job(FAULTS)
    assert after(made, *steps)[1] == (DiagramEvent("crash", "server.3", "stops"),)
    arrived = after(made, *steps, "server.1 receives PROPOSAL 1:1 from server.3")[1]
    assert arrived[0] == DiagramEvent("deliver", "server.1", "PROPOSAL 1:1", peer="server.3")


def test_what_was_sent_to_a_server_that_crashes_is_lost() -> None:
    drawn = after(job(FAULTS), "a client writes 1 at server.3", "server.1 crashes")[1]
    assert DiagramEvent("lost", "server.3", "PROPOSAL 1:1", peer="server.1") in drawn


def test_whoever_decides_for_a_leader_connects_to_it() -> None:
    drawn = after(job(ZAB), "server.1 and server.2 elect server.3")[1]
    assert drawn[:3] == (
        DiagramEvent("decide", "server.1", "FOLLOWING 3"),
        DiagramEvent("decide", "server.2", "FOLLOWING 3"),
        DiagramEvent("decide", "server.3", "LEADING"),
    )
    assert DiagramEvent("send", "server.2", "FOLLOWERINFO acceptedEpoch 0", peer="server.3") in drawn


def test_a_leader_and_a_learner_that_begin_to_serve_are_noted() -> None:
    steps = (
        "server.1 elects server.3",
        "server.3 receives FOLLOWERINFO acceptedEpoch 0 from server.1",
        "server.1 receives LEADERINFO epoch 1 from server.3",
        "server.3 receives ACKEPOCH last zxid 0:0, currentEpoch 0 from server.1",
        "server.1 receives DIFF 0:0 from server.3",
        "server.1 receives NEWLEADER epoch 1 from server.3",
        "server.3 receives ACK 1:0 from server.1",
    )
    assert DiagramEvent("note", "server.3", "serves in epoch 1") in after(job(ZAB), *steps)[1]
    serving = after(job(ZAB), *steps, "server.1 receives UPTODATE from server.3")[1]
    assert DiagramEvent("note", "server.1", "serves in epoch 1") in serving


def test_who_connects_again_loses_what_the_old_connection_held() -> None:
    """The leader has not read the first FOLLOWERINFO when the learner, back from a crash, sends another one."""
    made = job(ZAB + "elections: 2\nfaults: {crashes: 1, restarts: 1}\n")
    steps = ("server.1 and server.2 elect server.3", "server.1 crashes", "server.1 starts again with zoo-3.cfg")
    lanes, drawn = after(made, *steps, "server.1 joins server.3")
    info = "FOLLOWERINFO acceptedEpoch 0"
    assert DiagramEvent("lost", "server.1", info, peer="server.3") in drawn
    assert DiagramEvent("send", "server.1", info, peer="server.3") in drawn
    assert lanes["server.1"]["state"] == "FOLLOWING"
