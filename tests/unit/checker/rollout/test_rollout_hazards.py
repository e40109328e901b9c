"""The planner says SAFE only within the reach of its proof and its model.

Most tests use a runner without an engine, which calls every run SAFE or cuts it. A SAFE cell then shows that the
planner, not the exploration, took the decision.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.inputs.folders import Folder, read_folder
from checker.rollout.orders import Way, counts_an_observer, steps_of
from checker.rollout.output.story import story
from checker.rollout.planner import plan
from checker.rollout.runs import RunResult, SafetyVerdict, run
from checker.rollout.scenarios import Question, RunSpec
from checker.rollout.stages import whole
from tests.support.rollout_runs import fine, plan_of


def cut(spec: RunSpec, seconds: float) -> RunResult:
    return replace(fine(spec, seconds), outcome=SafetyVerdict.OPEN)


def folder(tmp_path: Path, name: str, *lines: str, client_port: int = 2181) -> Folder:
    path = tmp_path / f"{name}.cfg"
    members = "".join(f"server.{sid}={line}\n" for sid, line in enumerate(lines, start=1))
    path.write_text(f"tickTime=2000\nclientPort={client_port}\n{members}", encoding="utf-8")
    return read_folder(path)


def planned(old: Folder, new: Folder, *order: int) -> Plan:
    return plan(PlanRequest(old, new, order or None), fine)


THREE = ("a:2888:3888", "b:2888:3888", "c:2888:3888")


def test_a_change_of_client_ports_is_safe(tmp_path: Path) -> None:
    made = planned(folder(tmp_path, "old", *THREE), folder(tmp_path, "new", *THREE, client_port=2182))
    assert made.direct.stage.readdressed == ()
    assert made.outcome is SafetyVerdict.SAFE


OBSERVED = (*THREE[:2], f"{THREE[2]}:observer")


@pytest.mark.parametrize(
    ("order", "counted"),
    [((3, 1, 2), False), ((3, 2, 1), False), ((1, 3, 2), True), ((1, 2, 3), True), ((2, 1, 3), True)],
)
def test_a_promoted_observer_is_counted_too_early_unless_it_restarts_first(
    tmp_path: Path, order: tuple[int, ...], counted: bool
) -> None:
    old, new = folder(tmp_path, "old", *OBSERVED), folder(tmp_path, "new", *THREE)
    stage = whole(old, new)
    assert counts_an_observer(stage, steps_of(stage, order)) is counted
    assert counts_an_observer(whole(new, old), steps_of(whole(new, old), order[::-1])) is counted


def test_an_order_without_a_split_is_preferred_to_one_with(tmp_path: Path) -> None:
    """The run about leaders of the first order is unsafe. The plan uses the next order."""
    old, new = folder(tmp_path, "old", *OBSERVED), folder(tmp_path, "new", *THREE)
    orders: list[tuple[int, ...]] = []

    def split_at_first(spec: RunSpec, seconds: float) -> RunResult:
        ran = fine(spec, seconds)
        order = tuple(step.sid for step in spec.steps)
        if spec.question is Question.ELECTION and spec.zab and spec.leader == 2:
            orders.append(order)
        return replace(ran, outcome=SafetyVerdict.UNSAFE) if order == orders[0] else ran

    made = plan(PlanRequest(old, new, None, 2, 0, how=Way.ONE_BY_ONE), split_at_first)
    (chosen,) = made.direct.orders
    assert len(orders) == 2
    assert tuple(step.sid for step in chosen.steps) == orders[1]


def test_intersecting_quorums_prove_nothing_where_an_observer_is_counted(tmp_path: Path) -> None:
    """The counterexample is the scenario r4-observer-promoted-last. No observer is counted if 3 restarts first."""
    old, new = folder(tmp_path, "old", *OBSERVED), folder(tmp_path, "new", *THREE)
    late = planned(old, new, 1, 2, 3)
    assert not late.direct.proved
    assert late.direct.answer(Question.COMMITS, faulty=True).outcome is SafetyVerdict.OPEN
    assert late.outcome is SafetyVerdict.OPEN
    early = planned(old, new, 3, 1, 2)
    assert early.direct.proved
    assert early.outcome is SafetyVerdict.SAFE


def test_an_observer_that_is_counted_loses_a_write_without_a_fault(tmp_path: Path) -> None:
    """An observer writes currentEpoch with NEWLEADER, and keeps the transactions before it in memory.

    The operator stops 3, which then leads as a voter: by its epoch, and without the last transaction.
    """
    old, new = folder(tmp_path, "old", *OBSERVED), folder(tmp_path, "new", *THREE)
    made = plan(PlanRequest(old, new, (1, 2, 3), 2, faults=0, how=Way.ONE_BY_ONE), run)
    answer = made.direct.answer(Question.COMMITS, faulty=False)
    assert answer.outcome is SafetyVerdict.UNSAFE and answer.finding is not None and answer.finding.trace is not None
    assert answer.finding.prop == "LeaderLogCompleteness"
    assert "Server 2, with the write, is not heard in time." in story(answer.finding)
    assert dict(answer.finding.trace.values)["leader"] == 3, "it restarts as a voter, with the shortest log"
    captions = [step.caption for step in answer.finding.trace.steps]
    assert "server.3 receives PROPOSAL 2:2 from server.2" in captions
    assert "server.3 has 2:2=2 on disk" not in captions


@pytest.mark.parametrize("order", [(4, 5, 1, 3, 2), (5, 1, 2, 4, 3)])
def test_exhausted_runs_say_nothing_behind_waits_that_were_not_explored(order: tuple[int, ...]) -> None:
    """The search for waits in vain is cut off. A run that stops at such a wait is fine after a few states."""

    def first_cut(spec: RunSpec, seconds: float) -> RunResult:
        return (cut if spec.recoverable and spec.zab else fine)(spec, seconds)

    made = plan_of("three", "five", first_cut, order, 2)
    assert made.direct.answer(Question.ELECTION, faulty=False).outcome is SafetyVerdict.OPEN
    assert made.direct.answer(Question.COMMITS, faulty=False).outcome is SafetyVerdict.OPEN
    assert made.direct.answer(Question.COMMITS, faulty=True).outcome is SafetyVerdict.OPEN


def test_an_order_explored_for_one_leader_is_not_safe_for_the_others(tmp_path: Path) -> None:
    """Quorums of {1, 2, 3} and {4, 5, 6} are disjoint. Each server may lead first, with an order for each."""
    old = folder(tmp_path, "old", *THREE)
    path = tmp_path / "new.cfg"
    path.write_text("tickTime=2000\n" + "".join(f"server.{sid}={sid}:2888:3888\n" for sid in (4, 5, 6)), "utf-8")
    made = plan(PlanRequest(old, read_folder(path), None, in_one_go=True), fine)
    assert [order.explored for order in made.direct.orders] == [True, False, False]
    assert made.direct.outcome is SafetyVerdict.OPEN
