"""Every change of members within three servers: the planner's verdict against a search by the plain engine.

A state with one member is a standalone server. For each pair of states, each order of its steps and each server that
may lead first, the planner judges the order. The plain engine explores the same steps with every invariant at once. The
two share the model, and neither the search nor the choice of questions. The gate takes a few pairs, and `pytest -m
slow` all of them.
"""

import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import pytest

from checker.engine import plain
from checker.engine.model import Kind
from checker.rollout import Engine, PlanRequest, SafetyVerdict, plan, read_folder
from checker.rollout.inputs.folders import Folder
from checker.rollout.orders import Way, may_lead
from checker.rollout.runs import job_of
from checker.rollout.scenarios import ALONE_COMPLETE, SAFE_DATA, SERVED_ALONE, Question, RunSpec
from checker.rollout.stages import whole

Members = tuple[int, ...]
STATES = [members for size in (1, 2, 3) for members in combinations((1, 2, 3), size)]
PAIRS = [(old, new) for old in STATES for new in STATES if old != new]
WITH_ONE = [((1,), (1, 2)), ((1, 2), (1,)), ((1,), (1, 2, 3)), ((1, 2, 3), (3,)), ((1,), (2,)), ((2,), (1, 3))]
ENGINE = Engine()
ALL = ("Leadership", "OneLeader", *SAFE_DATA[1:], SERVED_ALONE, ALONE_COMPLETE)


@cache
def folder_of(members: Members) -> Folder:
    """Return the state of these members; one alone has a file without a line for a server."""
    lines = [] if len(members) == 1 else [f"server.{sid}=zoo{sid}:2888:3888" for sid in members]
    keys = ["tickTime=2000", "dataDir=/var/lib/zookeeper", "clientPort=2181", "initLimit=10", "syncLimit=5"]
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, f"zoo-{members[0]}.cfg")
        file.write_text("\n".join([*keys, *lines]) + "\n", encoding="ascii")
        return read_folder(Path(name))


def orders_of(old: Members, new: Members) -> Iterator[tuple[int, ...]]:
    """Yield every order of the steps of a change."""
    yield from permutations(sorted({*old, *new}))


def differences(old: Members, new: Members) -> Iterator[str]:
    """Yield every order of a change on which the planner and the plain engine differ."""
    stage = whole(folder_of(old), folder_of(new))
    for order in orders_of(old, new):
        for leader in sorted(may_lead(stage)):
            folders = folder_of(old), folder_of(new)
            made = plan(PlanRequest(*folders, order, leader, 0, 60.0, explored=True, how=Way.ONE_BY_ONE), ENGINE.run)
            (judged,) = made.direct.orders
            spec = RunSpec(stage, judged.steps, leader, Question.COMMITS, writes=1, always=ALL)
            found = plain.explore(job_of(spec).model).violations
            broken = any(each.prop.kind is Kind.ALWAYS for each in found)
            if broken is not (made.direct.outcome is SafetyVerdict.UNSAFE):
                yield f"{old} to {new}, order {order}, {leader} leads: {made.direct.outcome}, plain found {found}"


@pytest.mark.parametrize(("old", "new"), WITH_ONE)
def test_brute_force_agrees_about_a_standalone_server(old: Members, new: Members) -> None:
    assert list(differences(old, new)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_brute_force_agrees_about_every_change_within_three_servers(old: Members, new: Members) -> None:
    assert list(differences(old, new)) == []
