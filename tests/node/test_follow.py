"""Plans of the roll-out planner, followed on real servers under writes: `python -m harness follow`.

The planner calls these plans safe, so no acknowledged write may be missing from a server at the end, and every server
must serve where the plan waits for it, with a random kill in between.
"""

from pathlib import Path

import pytest

from checker.rollout import Engine, PlanRequest, SafetyVerdict, plan
from checker.rollout.inputs.sources import read_input
from checker.scenario import bundled
from harness.follow.follower import FollowOptions, PlanFollower
from harness.follow.result import Ending
from tests.node.conftest import NEWEST
from tests.support.programs import need_kind

FOLDERS = bundled()[0].parent.parent / "rollouts"
CHANGES = [
    ("three", "three"),
    ("three", "four"),
    ("four", "three"),
    ("three", "five"),
    ("five", "three"),
    ("three", "replaced"),
    ("observer", "voters"),
    ("one", "three"),
    ("three", "one"),
]


@pytest.mark.slow
@pytest.mark.parametrize("kills", [0, 1])
@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_plan_that_is_followed_keeps_every_acknowledged_write(old: str, new: str, kills: int, tmp_path: Path) -> None:
    need_kind("real", NEWEST)
    made = plan(PlanRequest(read_input(str(FOLDERS / old)), read_input(str(FOLDERS / new))), Engine().run)
    said: list[str] = []
    found = PlanFollower(made, FollowOptions(NEWEST, kills=kills), tmp_path, said.append).follow()
    assert found.ending is Ending.KEPT, found.reason
    assert found.acknowledged > 100
    assert sum("kill -9" in line for line in said) == kills
    assert len(found.steps) == sum(len(part.stage.remaining) for part in made.advised)


@pytest.mark.slow
def test_an_order_that_the_planner_calls_unsafe_loses_the_writes_of_a_standalone_server(tmp_path: Path) -> None:
    """The control: new servers first elect a leader over empty disks, and the look at the end finds the loss."""
    need_kind("real", NEWEST)
    old, new = (read_input(str(FOLDERS / name)) for name in ("one", "three"))
    made = plan(PlanRequest(old, new, order=(2, 3, 1)), Engine().run)
    assert made.outcome is SafetyVerdict.UNSAFE
    found = PlanFollower(made, FollowOptions(NEWEST, kills=0), tmp_path, lambda _: None).follow()
    assert found.ending is Ending.LOST, found.reason
    assert set(found.missing) == {1, 2, 3} and found.lost > 0
