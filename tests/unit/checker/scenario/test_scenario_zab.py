"""Scenarios in which servers lead and follow: the meaning of each key, and the refusals."""

from typing import Any

import pytest

from checker.engine import Row
from checker.engine.semantics import successors
from checker.job import Job
from checker.models.ensemble import Budgets
from checker.scenario import from_source, from_text
from spec.server import Server
from spec.txn import Txn, make_zxid
from spec.variants import Variant

THREE = "initLimit=5\nsyncLimit=2\nserver.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n"
FILES = {"zoo-3.cfg": THREE}
SERVERS = "file: zoo-3.cfg\nservers: [1, 2, 3]\n"
ZAB = SERVERS + "protocol: zab\ngrain: oracle\n"
ESTABLISHED = ZAB + "history: [{start: [1, 2, 3]}]\n"
ONE_WRITE = ESTABLISHED + "workload: {writes: 1}\n"


def job(text: str) -> Job:
    return from_text(text, FILES.get, "s.yaml")


def server(made: Job, sid: int, row: Row | None = None) -> Server:
    found = (row or made.model.initial())[made.model.index[f"server.{sid}"]]
    assert isinstance(found, Server)
    return found


def budgets(made: Job) -> Budgets:
    left = made.model.columns[made.model.index["faults"]].initial.left
    assert isinstance(left, Budgets)
    return left


def possible(made: Job) -> list[tuple[Any, ...]]:
    return [(move.action, *move.arguments) for move, _ in successors(made.model, made.model.initial())]


# Protocol, grains.


def test_the_election_is_all_there_is_unless_the_protocol_is_zab() -> None:
    assert "1-2" not in job(SERVERS + "protocol: election\n").model.index
    assert "1-2" in job(ZAB).model.index


@pytest.mark.parametrize(("disk", "has_events"), [("", True), ("disk: async\n", True), ("disk: sync\n", False)])
def test_a_disk_takes_time_unless_it_is_synchronous(disk: str, has_events: bool) -> None:
    assert ("sync" in job(ZAB + disk).model.actions) is has_events


@pytest.mark.parametrize(
    ("commits", "has_events"), [("", False), ("commits: sync\n", False), ("commits: async\n", True)]
)
def test_commits_take_no_time_unless_they_are_asynchronous(commits: str, has_events: bool) -> None:
    assert ("apply" in job(ZAB + commits).model.actions) is has_events


def test_with_discovery_in_one_step_an_election_establishes_its_epoch() -> None:
    phases = {}
    for discovery in ("packets", "one-step"):
        made = job(ZAB + f"discovery: {discovery}\n")
        steps = successors(made.model, made.model.initial())
        leader = server(made, 3, next(row for move, row in steps if move.arguments == (3, (1, 2, 3)))).zab
        assert leader is not None
        phases[discovery] = leader.phase.name
    assert phases == {"packets": "FOLLOWERINFO", "one-step": "NEWLEADER_ACK"}


# Clients and budgets.


def test_clients_write_at_the_leader() -> None:
    made = job(ONE_WRITE + "clients: leader\n")
    assert [move for move in possible(made) if move[0] == "client write"] == [("client write", 3, 1)]


def test_clients_write_anywhere_if_the_scenario_says_so() -> None:
    made = job(ONE_WRITE + "clients: anywhere\n")
    writes = [move for move in possible(made) if move[0] == "client write"]
    assert writes == [("client write", sid, 1) for sid in (1, 2, 3)]


def test_the_workload_and_the_faults_become_budgets() -> None:
    made = job(ZAB + "elections: 2\nworkload: {writes: 2, syncs: 1, pings: 3}\nfaults: {disconnects: 4, crashes: 1}\n")
    assert budgets(made) == Budgets(crashes=1, disconnects=4, elections=2, writes=2, syncs=1, pings=3)


def test_three_elections_make_a_leader_unless_the_scenario_says_otherwise() -> None:
    assert budgets(job(ZAB)).elections == 3


def test_message_by_message_the_rounds_bound_the_elections() -> None:
    assert budgets(job(SERVERS + "protocol: zab\nrounds: 2\n")).elections == 0


# Disks.


def test_a_log_is_what_is_behind_the_snapshot() -> None:
    made = job(
        """
        file: zoo-3.cfg
        protocol: zab
        servers:
          1: {epoch: 1, accepted_epoch: 2, zxid: 1:1, log: [1:2, 0x100000003, {zxid: 1:4, value: x}]}
          2: {epoch: 1}
          3: {}
        """
    )
    durable = server(made, 1).durable
    assert (durable.accepted_epoch, durable.current_epoch, durable.snapshot) == (2, 1, make_zxid(1, 1))
    assert durable.txns == (Txn(make_zxid(1, 2), "1:2"), Txn(make_zxid(1, 3), "1:3"), Txn(make_zxid(1, 4), "x"))
    assert server(made, 2).durable.accepted_epoch == 1


# Refusals.


# Openings.


def test_an_opening_may_write_settle_and_disconnect() -> None:
    made = job(
        ONE_WRITE
        + "faults: {disconnects: 1}\nopening: [{write: 3}, {settle: [1, 3]}, {disconnect: [3, 1]}, {arrive: [2, 3]}]\n"
    )
    row, actions = made.model.initial(), []
    while row[made.model.index["opening"]] < 9:
        ((move, row),) = successors(made.model, row)
        actions.append((move.action, *move.arguments[:2]))
    assert actions[:2] == [("client write", 3, 1), ("receive", 3, 1)]
    assert ("disconnect", 1, 3) in actions
    assert actions[-1] == ("receive", 3, 2)
    assert {sid: len(server(made, sid, row).durable.txns) for sid in (1, 2, 3)} == {1: 1, 2: 0, 3: 1}


# The description of a run.


def test_the_bounds_say_what_is_asked_for_and_how_much() -> None:
    made = job(
        ONE_WRITE.replace("writes: 1", "writes: 2, pings: 1")
        + "elections: 1\nfaults: {disconnects: 1}\ndisk: sync\ncommits: async\nclients: anywhere\ndiscovery: one-step\n"
    )
    assert set(made.bounds) >= {
        "at most 1 drop of a quorum connection",
        "at most 2 writes of clients, 1 round of pings",
        "clients write at any server that serves",
        "at most 1 election of a leader",
        "a disk is never late",
        "what is committed is applied later, in order",
        "FOLLOWERINFO, LEADERINFO and ACKEPOCH of those who elect arrive in the step of their election",
        "a leader notices the loss of a learner when it has read all that the learner sent",
        "a snapshot is taken only of what a SNAP or a TRUNC left in memory",
    }
    assert not any("only the election is explored" in each for each in made.bounds)


def test_an_action_that_a_budget_allows_is_known_and_must_fire() -> None:
    made = job(ZAB + "workload: {writes: 1, syncs: 1, pings: 1}\nfaults: {disconnects: 1}\n")
    wanted = {"elect", "receive", "client write", "client sync", "ping", "disconnect"}
    assert wanted <= made.model.actions
    assert not wanted & made.allowed_silent


def test_an_action_without_a_budget_is_not_known() -> None:
    assert job(ZAB).model.actions == {"elect", "receive", "sync", "lose leader", "lose quorum"}


def test_disks_and_losses_need_nothing_to_do() -> None:
    assert job(ZAB).allowed_silent == {"lose leader", "lose quorum", "sync", "sync late", "apply"}


def test_where_a_leader_leads_already_nobody_need_be_elected_again() -> None:
    assert job(ESTABLISHED).allowed_silent - job(ZAB).allowed_silent == {"elect", "deliver", "decide"}


@pytest.mark.parametrize(("variant", "action"), [("ZOOKEEPER-4712", "sync late"), ("ZOOKEEPER-4685", "resume")])
def test_a_variant_may_bring_actions_of_its_own(variant: str, action: str) -> None:
    assert action in job(ZAB + f"variants: [{variant}]\n").model.actions
    assert action not in job(ZAB).model.actions


# Added variants.


def test_a_variant_may_be_added_to_a_scenario_and_is_named() -> None:
    made = from_text(ZAB + "name: n\nexpect: passed\n", FILES.get, added=[Variant.TORN_RECORD])
    assert (made.name, made.expected) == ("n with torn-record", None)
    assert "with torn-record" in made.bounds


def test_a_job_with_an_added_variant_is_made_again_from_its_source() -> None:
    again = from_source(from_text(ZAB, FILES.get, added=[Variant.QUEUE_SURVIVES_SHUTDOWN]).source)
    assert "with ZOOKEEPER-4712" in again.bounds
    assert "sync late" in again.model.actions
