"""A change in stages: the voters that change in each stage, the intermediate files, and the orders of restarts."""

from itertools import pairwise, permutations
from pathlib import Path

import pytest

from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.orders import OrderError, ServerStep, candidates, left_out, steps_of, unsplit
from checker.rollout.route_verdict import pairs_of
from checker.rollout.scenarios import Question, RunSpec
from checker.rollout.stages import Stage, one_at_a_time, whole
from checker.scenario import from_text
from spec.config import parse_zoo_cfg
from tests.support.rollout_runs import shipped

HEAD = "# ours\ntickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/data\nclientPort=2181\n"


def folder_of(path: Path, *sids: int, observers: tuple[int, ...] = (), extra: str = "") -> Folder:
    path.mkdir()
    lines = [f"server.{sid}=zoo{sid}:2888:3888{':observer' if sid in observers else ''}\n" for sid in sids]
    (path / "zoo.cfg").write_text(HEAD + "".join(lines) + extra + "autopurge.purgeInterval=1\n", encoding="utf-8")
    return read_folder(path)


CHANGES = {
    "3 to 4": ((1, 2, 3), (1, 2, 3, 4), []),
    "3 to 5": ((1, 2, 3), (1, 2, 3, 4, 5), [{1, 2, 3, 4}]),
    "5 to 3": ((1, 2, 3, 4, 5), (1, 2, 3), [{1, 2, 3, 5}]),
    "3 to 7": ((1, 2, 3), (1, 2, 3, 4, 5, 6, 7), [{1, 2, 3, 4}, {1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6}]),
    "one replaced": ((1, 2, 3), (1, 2, 4), [{1, 2, 3, 4}]),
    "two replaced": ((1, 2, 3), (1, 4, 5), [{1, 2, 3, 4}, {1, 3, 4}, {1, 3, 4, 5}]),
}


@pytest.mark.parametrize(("old", "new", "between"), CHANGES.values(), ids=CHANGES)
def test_voters_come_and_go_one_by_one(
    tmp_path: Path, old: tuple[int, ...], new: tuple[int, ...], between: list[set[int]]
) -> None:
    before, after = folder_of(tmp_path / "old", *old), folder_of(tmp_path / "new", *new)
    stages, _ = one_at_a_time(before, after)
    assert [set(stage.new.view.voters) for stage in stages[:-1]] == between
    sides = [whole(before, after).old, *(stage.new for stage in stages)] if stages else []
    for one, other in pairwise(sides):
        assert len(one.view.voters ^ other.view.voters) == 1
    for stage in stages:  # the search agrees with the arithmetic of two majorities
        meet = stage.old.view.quorums, stage.new.view.quorums
        size = sum(each.quorum_size for each in meet)  # type: ignore[union-attr]
        assert size > len(stage.old.view.voters | stage.new.view.voters)
        assert all(pair.disjoint is None for pair in pairs_of(stage))


def test_a_file_between_differs_in_its_server_lines_alone(tmp_path: Path) -> None:
    stages, _ = one_at_a_time(folder_of(tmp_path / "old", 1, 2, 3), folder_of(tmp_path / "new", 1, 2, 3, 4, 5))
    side = stages[0].new
    text = side.texts[side.files[1]]
    assert parse_zoo_cfg(text, myid="1\n").view.voters == {1, 2, 3, 4}
    rest = [line for line in text.splitlines() if not line.startswith("server.")]
    assert rest == [*HEAD.splitlines(), "autopurge.purgeInterval=1"]
    assert not side.given and stages[1].new.given


def test_an_observer_that_is_promoted_is_one_stage(tmp_path: Path) -> None:
    before, after = folder_of(tmp_path / "old", 1, 2, 3, 4, observers=(4,)), folder_of(tmp_path / "new", 1, 2, 3, 4)
    assert one_at_a_time(before, after) == ((), "")
    stage = whole(before, after)
    assert stage.restarted == (1, 2, 3, 4) and stage.title.endswith("(promotes 4 from observer to voter)")


def test_two_observers_are_promoted_one_by_one(tmp_path: Path) -> None:
    before = folder_of(tmp_path / "old", 1, 2, 3, 4, 5, observers=(4, 5))
    stages, _ = one_at_a_time(before, folder_of(tmp_path / "new", 1, 2, 3, 4, 5))
    assert [(stage.new.view.voters, stage.new.view.observers) for stage in stages] == [
        ({1, 2, 3, 4}, {5}),
        ({1, 2, 3, 4, 5}, set()),
    ]


def test_no_stages_are_planned_if_zookeeper_refuses_a_file_between() -> None:
    """Server 4 has clientPort 2184 in its own file, and 2181 in the server list of the new one."""
    before, after = (shipped(name) for name in ("observer", "reconfig-five"))
    stages, reason = one_at_a_time(before, after)
    assert stages == () and "clientPort" in reason


def test_states_between_groups_and_weights_are_not_guessed(tmp_path: Path) -> None:
    groups = "group.1=1:2:3\nweight.1=1\nweight.2=1\nweight.3=1\n"
    before, after = folder_of(tmp_path / "old", 1, 2, 3, extra=groups), folder_of(tmp_path / "new", 1, 2)
    assert one_at_a_time(before, after) == ((), "")


@pytest.fixture
def growth(tmp_path: Path) -> Stage:
    """Three servers become five."""
    return whole(folder_of(tmp_path / "old", 1, 2, 3), folder_of(tmp_path / "new", 1, 2, 3, 4, 5))


def test_an_order_starts_what_is_new_and_restarts_the_rest(growth: Stage) -> None:
    steps = steps_of(growth, (4, 5, 1, 3, 2))
    assert steps == (
        ServerStep("start", 4),
        ServerStep("start", 5),
        ServerStep("restart", 1),
        ServerStep("restart", 3),
        ServerStep("restart", 2),
    )
    assert steps_of(growth, (2, 1, 3))[:3] == (ServerStep("start", 4), ServerStep("start", 5), ServerStep("restart", 2))
    assert left_out(growth, steps_of(growth, (2,))) == (1, 3)


@pytest.mark.parametrize(
    ("order", "said"), [((6,), "server 6 is in neither folder"), ((1, 1), "server 1 is there twice")]
)
def test_an_order_that_cannot_be_followed_is_refused(growth: Stage, order: tuple[int, ...], said: str) -> None:
    with pytest.raises(OrderError, match=said):
        steps_of(growth, order)


def test_every_order_is_a_candidate_once_and_the_leader_last_comes_first(growth: Stage) -> None:
    orders = [tuple(step.sid for step in steps) for steps in candidates(growth, 2)]
    assert orders[0] == (4, 5, 1, 3, 2)
    assert sorted(orders) == sorted(permutations((1, 2, 3, 4, 5)))


def test_a_leader_that_goes_is_stopped_first(tmp_path: Path) -> None:
    stage = whole(folder_of(tmp_path / "old", 1, 2, 3, 4), folder_of(tmp_path / "new", 1, 2, 3))
    steps = next(iter(candidates(stage, 4)))
    assert [str(step) for step in steps] == ["stop 4", "restart 1", "restart 2", "restart 3"]
    assert not steps[0].wait


UNSPLIT = {
    "3 to 5": ((1, 2, 3), (1, 2, 3, 4, 5), 2, [(4, 1, 3, 2, 5)]),
    "5 to 3": ((1, 2, 3, 4, 5), (1, 2, 3), 5, [(5, 1, 2, 3, 4)]),
    "3 to 7": ((1, 2, 3), (1, 2, 3, 4, 5, 6, 7), 3, [(4, 5, 1, 2, 3, 6, 7)]),
    # If the new server starts early, the two files have disjoint quorums; if it starts late, no server may be missing.
    "one replaced": ((1, 2, 3), (1, 2, 4), 3, []),
}


@pytest.mark.parametrize(("old", "new", "leader", "orders"), UNSPLIT.values(), ids=UNSPLIT)
def test_an_order_cannot_split_servers_if_too_few_run_while_there_are_two_files(
    tmp_path: Path, old: tuple[int, ...], new: tuple[int, ...], leader: int, orders: list[tuple[int, ...]]
) -> None:
    stage = whole(folder_of(tmp_path / "old", *old), folder_of(tmp_path / "new", *new))
    assert [tuple(step.sid for step in steps) for steps in unsplit(stage, leader)] == orders


def test_who_is_down_is_in_no_order(growth: Stage) -> None:
    assert [str(step) for step in next(unsplit(growth, 2, frozenset({5})))] == [
        "start 4", "restart 1", "restart 3", "restart 2",
    ]  # fmt: skip


@pytest.mark.parametrize("faults", [{}, {"crashes": 1}, {"partitions": 1}, {"disconnects": 1}])
@pytest.mark.parametrize("leader", [1, 2, 3])
def test_what_is_asked_is_a_scenario_in_which_that_server_leads(
    growth: Stage, leader: int, faults: dict[str, int]
) -> None:
    spec = RunSpec(
        growth, steps_of(growth, (2, 1, 3)), leader, Question.COMMITS, faults, writes=1, always=("Leadership",)
    )
    job = from_text(spec.text, growth.texts.get)
    lanes = job.presenter.lanes(job.model.initial())
    assert lanes[f"server.{leader}"]["state"] == "LEADING"
    assert {lanes[f"server.{sid}"].get("leader", leader) for sid in (1, 2, 3)} == {leader}
    assert lanes["server.4"]["state"] == lanes["server.5"]["state"] == "down"


def test_a_voter_that_becomes_an_observer_is_restarted_after_the_leader(tmp_path: Path) -> None:
    """A leader with its old file would count it as a voter. On real 3.9.5 four such roll-outs kept every write."""
    change = whole(folder_of(tmp_path / "old", 1, 2, 3, 4), folder_of(tmp_path / "new", 1, 2, 3, 4, observers=(1,)))
    assert [step.sid for step in next(candidates(change, 4))] == [2, 3, 4, 1]
