"""Complete runs of the service model: both engines agree, every action fires, and findings are well presented."""

from typing import Any

import pytest

from checker.engine import plain, search
from checker.engine.result import disagreements
from checker.job import Job, Verdict
from checker.kit.actions import faults_among
from checker.models.service import Clocks, FaultBudgets, ServiceAction
from checker.properties.service import SERVICE_PROPERTIES
from checker.report import judge
from checker.scenario.request_parser import script_of
from checker.scenario.service import service_job
from checker.traces import to_text, trace_of
from spec.variants import Variant
from tests.support.services import service_setup

ALL_FAULTS = FaultBudgets(disconnects=1, expiries=1, crashes=1)

DEFAULTS = [name for name, each in SERVICE_PROPERTIES.items() if each.default is not None]


def parts(*clients: list[Any], pipeline: int = 1, properties: Any = None, **parameters: Any) -> Job:
    scripts = [script_of(each, pipeline) for each in clients]
    return service_job("run", service_setup(scripts, **parameters), scripts, properties)


def job_of(run: Job) -> Job:
    return Job("run", run.model, run.presenter, {}, bounds=run.bounds, actions=run.actions)


@pytest.mark.parametrize(
    "run",
    [
        parts(["create -e /e", "close"], ["stat -w /e", "get /e"], lag=False, servers=1, budgets=ALL_FAULTS),
        parts(["create -e /e"], ["stat -w /e"], budgets=FaultBudgets(expiries=1), clocks=Clocks.PAUSED),
        parts(["set /a", ["set /a", "set /b"], "get /a"], ["sync /a", "get /a"], paths=["/a", "/b"], pipeline=2),
        parts(["ls -w /q", "ls /q"], ["create -s /q/n_"], paths=["/q"], budgets=FaultBudgets(disconnects=1)),
        parts(
            ["get -w /a", "get /a"], ["set /a"], paths=["/a"], keeps_watches=False, budgets=FaultBudgets(disconnects=1)
        ),
        parts(
            ["set /a", "set /b"], ["get /b", "get /a"], paths=["/a", "/b"], pipeline=2,
            budgets=FaultBudgets(disconnects=1),
            variants=[Variant.REORDERED_REQUESTS, Variant.STALE_AFTER_MOVING],
        ),
    ],
    ids=["at once", "told late", "pipelined", "children", "forgetful", "wrong"],
)  # fmt: skip
def test_both_engines_see_the_same(run: Job) -> None:
    by_tables, by_sets = search.explore(run.model), plain.explore(run.model)

    assert disagreements(by_tables, by_sets) == []
    assert by_tables.states > 100


def test_every_action_happens_where_there_are_faults_of_every_kind() -> None:
    run = parts(["create -e /e", "get /e"], ["create /a"], budgets=ALL_FAULTS)
    exploration = search.explore(run.model)

    assert {action for action, coverage in exploration.coverage.items() if coverage.fired} == run.actions
    assert run.actions >= faults_among(ServiceAction)
    assert judge(job_of(run), exploration, run.actions).verdict is Verdict.PASSED


def test_with_one_server_that_does_not_lag_nothing_is_ever_applied_late() -> None:
    run = parts(
        ["set /a", "get /a"], ["set /a", "get /a"], paths=["/a"], lag=False, servers=1, properties=["StaleRead"]
    )
    exploration = search.explore(run.model)

    assert "apply" not in exploration.coverage
    assert exploration.exhausted
    assert exploration.found == {}


def test_the_service_holds_with_three_servers_and_a_client_on_each() -> None:
    run = parts(["set /a", "get /a"], ["get -w /a", "get /a"], ["get /a"], servers=3, paths=["/a"])
    exploration = search.explore(run.model)

    assert exploration.exhausted
    assert exploration.violations == []


def test_all_invariants_hold_where_clients_choose_from_a_menu() -> None:
    menu = {"one of": ["create -e /a", "create -s /q/n_", ["set /q", "set /x"], "get -w /x", "ls -w /q", "sync /x"]}
    run = parts(
        [menu, menu], [menu], paths=["/q", "/x"], properties=DEFAULTS, budgets=FaultBudgets(disconnects=1)
    )  # fmt: skip
    exploration = search.explore(run.model)

    assert exploration.exhausted
    assert exploration.violations == []


# The presentation to a reader.


@pytest.fixture(scope="module")
def told() -> str:
    """The text of the run in which a client that moves to a lagging server reads an older state."""
    run = parts(
        ["get /a", "get /a"],
        ["set /a"],
        paths=["/a"],
        budgets=FaultBudgets(disconnects=1),
        variants=[Variant.STALE_AFTER_MOVING],
        properties=["SingleSystemImage"],
    )
    return to_text(trace_of(job_of(run), search.explore(run.model).found["SingleSystemImage"]))


def test_a_trace_says_who_does_what(told: str) -> None:
    for sentence in (
        "client 1 asks: get /a",
        "server 2 takes from client 2: set /a 2.1",
        "server 1 applies 1: set /a 2.1",
        "client 1 hears from server 1: /a = 2.1",
        "client 1 loses its connection to server 1",
        "client 1 connects to server 2 with its session",
        "client 1 hears from server 2: /a = empty",
    ):
        assert sentence in told


def test_a_trace_shows_trees_what_waits_and_what_was_seen(told: str) -> None:
    assert "tree={/a: 2.1}" in told
    assert "pending=[1: set /a 2.1]" in told
    assert "seen=1" in told


def test_a_trace_follows_messages_from_sending_to_arrival(told: str) -> None:
    lines = [" ".join(line.split()) for line in told.splitlines()]
    assert any(
        line.startswith("m3 leader -> server 1 1: set /a 2.1 sent in step 3, arrives in step 4") for line in lines
    )
    assert any(line.startswith("m4 leader -> server 2 1: set /a 2.1 sent in step 3, on its way") for line in lines)


def test_a_finding_tells_what_a_client_saw_in_words() -> None:
    run = parts(
        ["get -w /a", "get /a"],
        ["set /a"],
        paths=["/a"],
        variants=[Variant.WATCH_AFTER_DATA],
        properties=["EventBeforeData"],
    )
    finding = search.explore(run.model).found["EventBeforeData"].finding

    assert finding.values == (("client", 1), ("path", "/a"), ("was", "as of zxid 0"), ("is", "as of zxid 1"))


def test_a_lost_connection_is_shown_with_what_it_took_along() -> None:
    run = parts(
        ["create -e /e"],
        budgets=FaultBudgets(disconnects=1),
        variants=[Variant.EPHEMERAL_DIES_WITH_CONNECTION],
        properties=["EphemeralsLiveWithSession"],
        servers=1,
    )
    exploration = search.explore(run.model)
    found = exploration.found["EphemeralsLiveWithSession"]
    drawn = [
        run.presenter.diagram(a.row, b.move, b.row) for a, b in zip(found.path, found.path[1:], strict=False) if b.move
    ]

    assert [each.kind for each in drawn[-1]] == ["note", "send"]
    assert found.finding.values == (("at", "leader"), ("path", "/e"), ("session", "session 1.1"))
