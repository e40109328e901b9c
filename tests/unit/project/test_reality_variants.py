"""The comparison of variants with their releases: the page, the choice of runs, and what the driver would see.

The releases of a defect are those of `spec.releases`. The run of ZOOKEEPER-1549 has the rule of
`ZooKeeperServer.loadData`: a server that begins to lead takes a snapshot of its whole log.
"""

import json
import re
from collections import Counter

import pytest

from checker.engine.semantics import successors
from harness.reproduce.schedule import schedule_of
from spec.releases import HISTORIES, Release, affected
from spec.variants import Variant
from spec.zab.state import Leader
from tests.reality.variants.choice import ChosenRun, NoRunError, choose, obstacle, scenario_of
from tests.reality.variants.table import PAGE, SEEN, page
from tests.reality.variants.visible import differences
from tests.support.schedules import run_of

NEWEST = Release(3, 9, 5)
LINES = [json.loads(line) for line in SEEN.read_text("utf-8").splitlines()]
TRIED = {(line["variant"], line["release"]) for line in LINES}


def test_the_page_is_that_of_the_lines() -> None:
    assert PAGE.read_text("utf-8") == page(LINES)


@pytest.mark.parametrize("variant", HISTORIES, ids=lambda variant: str(variant.value))
def test_the_page_has_a_row_for_a_known_defect(variant: Variant) -> None:
    assert f"\n| {variant.value} | " in PAGE.read_text("utf-8")


def test_no_line_is_about_a_release_without_the_defect() -> None:
    having = {(variant.value, str(release)) for variant in HISTORIES for release in affected(HISTORIES[variant])}
    assert having >= TRIED


@pytest.mark.parametrize("release", sorted({line["release"] for line in LINES}))
def test_three_runs_of_each_defect_agree_or_there_is_a_reason(release: str) -> None:
    defects = {variant.value for variant in HISTORIES if release in map(str, affected(HISTORIES[variant]))}
    own = [line for line in LINES if line["release"] == release]
    agreed = Counter(line["variant"] for line in own if line["run"] and line["outcome"] == "confirmed")
    reasons = {line["variant"]: line["reason"] for line in own if not line["run"]}
    assert {variant for variant in defects if agreed[variant] < 3} == reasons.keys()
    assert all(reasons.values())


@pytest.fixture(scope="module")
def run() -> ChosenRun:
    return choose(Variant.SNAPSHOT_OF_UNCOMMITTED, NEWEST, 1, 1)[0]


def test_a_chosen_run_has_a_leader_that_takes_a_snapshot_of_its_log(run: ChosenRun) -> None:
    server = int(re.sub(r"\D", "", run.sight))
    after = run.schedule.server(run.path[run.shows].row, server)
    assert isinstance(after.zab, Leader) and after.durable.dirty is not None
    assert after.durable.dirty.txns == tuple(after.durable.log)
    assert run.sight == f"the snapshot of server {server}"


def test_the_same_seed_chooses_the_same_run(run: ChosenRun) -> None:
    assert choose(Variant.SNAPSHOT_OF_UNCOMMITTED, NEWEST, 1, 1)[0].captions == run.captions


def test_a_state_does_not_differ_from_itself_and_differs_from_one_with_another_log(run: ChosenRun) -> None:
    schedule = schedule_of(run.job, run.path)
    row = run.path[0].row
    assert list(differences(schedule, row, row)) == []
    move, after = next(option for option in successors(run.job.model, row) if option[0].action == "client write")
    leader = move.arguments[0]
    assert list(differences(schedule, after, row)) == [
        f"the next write of server {leader}",
        *(f"the packets of server {leader} to server {sid}" for sid in (1, 2, 3) if sid != leader),
    ]
    assert list(differences(schedule, row, after)) == [], "a server may be ahead of the model"


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        (Variant.VOTE_ORDER_CYCLES, "between two notifications"),
        (Variant.FUZZY_SNAPSHOT, "snapshot"),
        (Variant.RESTORE_UNDONE, "restore of a snapshot"),
    ],
)
def test_a_defect_without_events_of_the_driver_has_a_reason(variant: Variant, reason: str) -> None:
    with pytest.raises(NoRunError, match=reason):
        scenario_of(variant)


JOINS = ("the connection of server.3 and server.4", "an operator sends reconfig", "server.4 joins server.3")
"""The beginning of a run in which server 4 is synchronised while a reconfiguration is not committed."""


def test_a_server_that_would_learn_a_later_view_in_its_election_is_an_obstacle() -> None:
    """`FastLeaderElection.Messenger.WorkerReceiver.run` takes the view of a notification before its vote."""
    committed = run_of(
        scenario_of(Variant.EPOCH_OF_ACTIVE_VIEW),
        "the connection of server.3 and server.4", "an operator sends reconfig", "server.1 receives PROPOSAL",
        "server.5 receives PROPOSAL", "server.3 receives ACK 1:1 from server.1",
        "server.3 receives ACK 1:1 from server.5", "server.4 joins server.3",
    )  # fmt: skip
    assert obstacle(committed) == "an election in which a server would learn a later view before it decides"


def test_a_view_that_the_model_has_not_seen_yet_is_an_obstacle_where_its_server_gives_up() -> None:
    """`Learner.syncWithLeader` calls setLastSeenQuorumVerifier when it reads the PROPOSAL."""
    scenario = scenario_of(Variant.EPOCH_OF_ACTIVE_VIEW)
    read = (*JOINS, "server.4 receives DIFF", "server.4 receives PROPOSAL")
    assert obstacle(run_of(scenario, *read)) == ""
    lost = run_of(scenario, *read, "the connection of server.3 and server.4")
    assert obstacle(lost) == "a server has seen the view of a proposal, and the model sees it with NEWLEADER"


def test_the_files_of_a_view_are_seen() -> None:
    schedule = run_of(
        scenario_of(Variant.PENDING_VIEW_ACTIVATED),
        *JOINS, "server.4 receives DIFF", "server.4 receives PROPOSAL", "server.4 receives NEWLEADER",
        "server.3 receives ACK 1:0 from server.4", "server.4 receives UPTODATE",
    )  # fmt: skip
    before, after = schedule.steps[-1].before, schedule.steps[-1].after
    assert "the configuration of server 4" in list(differences(schedule, after, before))
    assert "the configuration that server 3 has seen last" in list(differences(schedule, after, schedule.initial))
