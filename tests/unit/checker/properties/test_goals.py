"""Liveness of an ensemble: the demanded goals, the fair steps, and small scenarios of each."""

from collections.abc import Iterable

import pytest

from checker.engine import Exploration, Rule, plain
from checker.engine.search import explore
from checker.job import Job, Verdict
from checker.kit.actions import faults_among
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.status import FOLLOWING, LEADING, LOOKING, ElectionStatus
from checker.properties.liveness import has_quorum
from checker.report import judge
from checker.scenario import ScenarioError, bundled, from_text, load
from spec.quorum import majority_view

ZOO = {
    f"zoo-{servers}.cfg": "initLimit=5\nsyncLimit=2\n"
    + "".join(f"server.{sid}=zoo{sid}:2888:3888\n" for sid in range(1, servers + 1))
    for servers in (2, 3, 5)
}
THREE = "file: zoo-3.cfg\nservers: [1, 2, 3]\nhistory: [{start: [1, 2, 3]}]\n"
LIVE = "recoverable: [Settles]\neventually: [Elects]\n"
SHIPPED = {path.stem: path for path in bundled()}


def ran(text: str) -> tuple[Job, Exploration]:
    job = from_text(text, ZOO.get)
    return job, explore(job.model, job.limits)


# -- fairness ------------------------------------------------------------------------------------------------


NEED_NOT_HAPPEN = faults_among(ServerAction) | {
    ServerAction.RESTART,
    ServerAction.START,
    ServerAction.HEAL,
    ServerAction.CLIENT_WRITE,
    ServerAction.CLIENT_SYNC,
    ServerAction.RESTORE,
}


def fair_actions(rules: Iterable[Rule]) -> set[str]:
    return {action for rule in rules for action in rule.actions if rule.is_fair(action)}


def test_faults_operators_and_clients_need_never_act():
    text = THREE + "faults: {crashes: 1, restarts: 1, cuts: 1, partitions: 1, heals: 1, notification_timeouts: 1}\n"
    model = from_text(text + "plan: [{restart: 1}]\n", ZOO.get).model
    assert fair_actions(model.rules) == (model.actions & set(ServerAction)) - NEED_NOT_HAPPEN
    assert "crash" in model.actions - fair_actions(model.rules)


def test_steps_of_servers_and_the_network_are_fair():
    assert {action for action in ServerAction if not action.traits.fair} == NEED_NOT_HAPPEN


def test_the_steps_of_an_opening_are_fair_because_they_are_in_the_past():
    job = from_text(THREE + "faults: {crashes: 1}\nopening: [{crash: 3}]\n" + LIVE, ZOO.get)
    elects = next(each for each in job.model.properties if each.name == "Elects")
    assert job.model.unit(elects, "opening", ServerAction.CRASH) == ("opening", ServerAction.CRASH)
    assert job.model.unit(elects, "crash 3", ServerAction.CRASH) is None


def test_what_applications_and_operators_of_recipes_do_need_not_happen_but_a_release():
    """The expiry of a session, a crash and a lost connection are faults; a client that holds releases at last."""
    path = next(path for name, path in SHIPPED.items() if name.startswith("r20"))
    model = load(path).model
    assert fair_actions(model.rules) & {"disconnect", "expire", "crash", "remove", "want", "write", "give up"} == set()
    assert fair_actions(model.rules) >= {"release", "deliver", "arrive", "lapse"}


def test_every_rule_of_an_ensemble_declares_its_actions():
    """Coverage, fairness and fast networks read these declarations."""
    text = THREE + "faults: {crashes: 1, restarts: 1, cuts: 1, partitions: 1, heals: 1, notification_timeouts: 1}\n"
    job = from_text(text + "plan: [{restart: 1}]\n", ZOO.get)
    assert all(rule.actions for rule in job.model.rules)
    assert job.model.actions - set(ServerAction) == {"plan 1: stop 1", "plan 2: start 1"}


# -- quorums within reach ------------------------------------------------------------------------------------


def standings(*words: str) -> dict:
    view = majority_view(range(1, len(words) + 1))
    states = {"looks": LOOKING, "leads": LEADING, "follows": FOLLOWING}
    return {n: ElectionStatus(states[w], None, view) if w in states else w for n, w in enumerate(words, 1)}


@pytest.mark.parametrize(
    ("words", "cut", "expected"),
    [
        (("looks", "looks", "down"), (), True),
        (("looks", "down", "down"), (), False),
        (("looks", "looks", "down"), ((1, 2),), False),
        (("looks", "looks", "looks"), ((1, 2),), True),
        (("looks", "looks", "looks"), ((1, 2), (1, 3), (2, 3)), False),
        (("looks",) * 5, ((1, 2), (2, 3), (3, 4), (4, 5), (1, 5)), False),  # a ring: no three are all connected
    ],
)
def test_a_quorum_is_servers_that_run_and_all_reach_one_another(words, cut, expected):
    assert has_quorum(standings(*words), frozenset(cut)) is expected


# -- scenarios -----------------------------------------------------------------------------------------------


def test_two_losses_of_three_leave_no_quorum_and_nothing_is_demanded_of_one():
    job, found = ran(THREE + "faults: {crashes: 2, notification_timeouts: unlimited}\neventually: [Elects]\n")
    assert "Elects" not in found.found
    assert found.liveness["Elects"].open > 0
    job, found = ran(THREE + "faults: {crashes: 2, notification_timeouts: unlimited}\nrecoverable: [Settles]\n")
    assert judge(job, found).verdict is Verdict.VIOLATED


def test_an_opening_happens_and_what_it_leaves_open_is_demanded():
    """The crash of the opening differs from one that need not happen: the run continues after it."""
    job, found = ran(THREE + "faults: {crashes: 1, notification_timeouts: unlimited}\nopening: [{crash: 3}]\n" + LIVE)
    assert found.found == {}
    assert found.liveness["Elects"].open > 0
    assert plain.explore(job.model).liveness == found.liveness


def test_with_the_oracle_an_election_is_fair_too():
    _, found = ran(THREE + "grain: oracle\nfaults: {crashes: 1}\n" + LIVE)
    assert (found.found, found.liveness["Elects"].open > 0) == ({}, True)


def test_the_shortest_loop_of_1419_is_four_messages_and_without_the_variant_there_is_none():
    job = load(SHIPPED["zookeeper-1419-never-elects"])
    found = explore(job.model).found["Elects"]
    assert [step.move.action for step in found.path[found.loop + 1 :]] == ["deliver"] * 4
    fixed = load(SHIPPED["zookeeper-1419-fixed"])
    assert explore(fixed.model).found == {}


def test_notification_time_outs_without_limit_are_a_bound_that_is_named():
    job, found = ran(THREE + "faults: {crashes: 1, notification_timeouts: unlimited}\n")
    assert "notification time-outs without limit" in job.bounds
    assert found.exhausted
    with pytest.raises(ScenarioError, match=r"faults\.notification_timeouts"):
        from_text(THREE + "faults: {notification_timeouts: often}\n", ZOO.get)


def test_a_property_stands_in_its_list_once():
    with pytest.raises(ScenarioError, match="Elects is there twice"):
        from_text(THREE + "eventually: [Elects, Elects]\n", ZOO.get)


def test_scenarios_of_liveness_are_quick():
    paths = [path for path in SHIPPED.values() if path.parent.name == "liveness"]
    assert paths
    for path in paths:
        found = explore(load(path).model)
        assert found.exhausted
        assert found.states < 10_000
