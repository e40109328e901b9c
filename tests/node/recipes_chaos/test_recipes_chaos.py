"""The recipes on live servers while clients, connections and servers die: their guarantees hold all the time.

The tests cover our server and the real ZooKeeper; the seed is part of every report.
"""

from pathlib import Path

import pytest

from harness.ensemble import Ensemble
from tests.node.recipes_chaos.judge import EMPTY, ORDER, SERVED, Bounds
from tests.node.recipes_chaos.run import TICK, TIME_OUT, Plan, Report, chaos
from tests.support.programs import need_kind


def run(kind: str, directory: Path, plan: Plan) -> Report:
    need_kind(kind)
    with Ensemble([kind] * 3, directory, tick_time=TICK) as ensemble:
        report = chaos(ensemble, plan)
    print(report)
    return report


KINDS = pytest.mark.parametrize("kind", ["node", "real"])


@pytest.mark.parametrize("kind", ["node", pytest.param("real", marks=pytest.mark.slow)])
def test_recipes_keep_their_promises_for_a_short_while(kind: str, tmp_path: Path) -> None:
    report = run(kind, tmp_path, Plan(8.0, workers=5, clients=4, seed=1))

    assert report.passed, str(report)
    assert len(report.findings.acquisitions) == 5, "every recipe has worked"
    assert report.findings.acquisitions.total() > 50
    assert report.findings.samples > 10


@pytest.mark.slow
@KINDS
def test_recipes_keep_their_promises_for_five_minutes_with_fifty_clients(kind: str, tmp_path: Path) -> None:
    report = run(kind, tmp_path, Plan(300.0, workers=10, clients=5, seed=2))

    assert report.passed, str(report)
    assert report.findings.rejected > 0, "the fence was never needed: the run shows nothing of it"


@pytest.mark.slow
def test_a_lock_without_protection_is_found_out(tmp_path: Path) -> None:
    bounds = Bounds(time_out=TIME_OUT, election=8.0, served=8.0)
    # No pauses and no kills: the orphan would disappear with its session.
    plan = Plan(8.0, workers=2, clients=5, seed=1, recipes=("unprotected",), only=("drop",), bounds=bounds)
    report = run("node", tmp_path, plan)

    assert {SERVED, EMPTY} <= {violation.clause for violation in report.findings.violations}, str(report)


@pytest.mark.slow
def test_a_resource_without_a_fence_is_found_out(tmp_path: Path) -> None:
    report = run("node", tmp_path, Plan(30.0, workers=5, clients=4, seed=1, fences=False))

    assert {violation.clause for violation in report.findings.violations} == {ORDER}, str(report)
