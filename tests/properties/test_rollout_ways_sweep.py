"""The table of ways agrees with brute force, for every pair of memberships within three servers.

A verdict that the planner leaves undecided contradicts nothing; the test says how many there are. Under a fault the
brute force looks at one first leader only.
"""

from itertools import combinations
from pathlib import Path

import pytest

from checker.rollout import Engine, PlanRequest, SafetyVerdict, plan
from checker.rollout.orders import Way
from checker.rollout.route_verdict import PlanRoute
from tests.support.rollout_runs import folder_of
from tests.support.rollout_ways import is_unsafe, steps_by_hand

Members = tuple[tuple[int, ...], tuple[int, ...]]  # voters, observers
VOTERS: list[Members] = [(sids, ()) for size in (2, 3) for sids in combinations((1, 2, 3), size)]
OBSERVED: Members = ((1, 2), (3,))
FEW = [(((1, 2), ()), ((1, 2, 3), ())), (((1, 2), ()), ((1, 3), ()))]
MANY = [(a, b) for a in VOTERS for b in VOTERS] + [(OBSERVED, VOTERS[3]), (VOTERS[3], OBSERVED)]


def undecided(tmp_path: Path, old: Members, new: Members, engine: Engine, faults: int) -> list[str]:
    """Compare the verdicts with these faults, and return those that the planner left undecided."""
    before, after = folder_of(tmp_path / "old", *old), folder_of(tmp_path / "new", *new)
    made = plan(PlanRequest(before, after, faults=faults, in_one_go=True), engine.run)
    return [text for answer in made.ways if (text := _compared(answer, faults))]


def _compared(answer: PlanRoute, faults: int) -> str:
    """Raise AssertionError for a wrong verdict; the text says that there is none."""
    stage, told = answer.stage, answer.worst(faulty=bool(faults))
    what = f"{stage.title}, {answer.way.value}, {faults} faults"
    for order in answer.orders:
        steps = steps_by_hand(answer.way, stage, order.leader, order.steps)
        assert [(step.action, step.sid) for step in steps] == [(step.action, step.sid) for step in order.steps], what
        fewer = [own.wait or not planned.wait for own, planned in zip(steps, order.steps, strict=True)]
        assert all(fewer), f"{what}: waits in vain are left out, and none is added"
    orders = answer.orders[: 1 if faults else None]
    truth = any(is_unsafe(stage, answer.way, order.leader, order.steps, faults) for order in orders)
    if told.outcome is SafetyVerdict.OPEN:
        return f"{what}: {'unsafe' if truth else 'safe'} by brute force"
    assert (told.outcome is SafetyVerdict.UNSAFE) is truth, what
    return ""


@pytest.mark.parametrize(("old", "new"), FEW)
def test_the_ways_of_a_few_pairs_agree_with_brute_force(tmp_path: Path, old: Members, new: Members) -> None:
    assert undecided(tmp_path, old, new, Engine(), 0) == []


@pytest.mark.slow
@pytest.mark.parametrize("faults", [0, 1])
def test_the_ways_of_every_pair_within_three_servers_agree_with_brute_force(tmp_path: Path, faults: int) -> None:
    engine, left = Engine(), []
    for number, (old, new) in enumerate(MANY):
        (tmp_path / str(number)).mkdir()
        found = undecided(tmp_path / str(number), old, new, engine, faults)
        print(old, new, found, flush=True)
        left += found
    print(f"{len(MANY) * len(Way)} verdicts with {faults} faults, {len(left)} undecided")
    assert len(left) <= len(MANY) * len(Way) // 10
