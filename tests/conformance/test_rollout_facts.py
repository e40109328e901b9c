"""The planner agrees with observations of ZooKeeper 3.8.0, case by case (R10), and finds a safe way for every change.

Each test cites the behaviour of real servers. The planner must find it without a fault. The planner explores every
order of messages, so it may find more; in that case the test says so.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from checker.engine import Limits, search
from checker.job import Verdict
from checker.report import judge
from checker.rollout import Plan, PlanRequest, SafetyVerdict, plan
from checker.rollout.assessor import Assessor
from checker.rollout.claims import Evidence
from checker.rollout.orders import START, Way, candidates, may_split, steps_of, unsplit
from checker.rollout.route_verdict import PlanRoute
from checker.rollout.runs import LEAST_SECONDS, RunResult, Work, run_within
from checker.rollout.scenarios import Question, RunSpec
from checker.rollout.stages import Stage
from checker.scenario import from_text
from checker.traces import read_itf, replay, to_itf
from checker.traces.trace import Trace
from tests.support.rollout_runs import FOLDERS, change_of, made_up, shipped

ELECTION, COMMITS, HEALING = Question.ELECTION, Question.COMMITS, Question.HEALING


STATES_PER_SECOND = 100_000


def whole_levels(spec: RunSpec, seconds: float) -> RunResult:
    """A runner that counts states as work, and ends a run only between two levels."""
    ran = run_within(spec, Limits(states=round(max(seconds, LEAST_SECONDS) * STATES_PER_SECOND)))
    return replace(ran, seconds=ran.states / STATES_PER_SECOND)


def planned_for(spec: PlanRequest) -> Plan:
    return plan(spec, whole_levels)


def request(
    old: str, new: str, order: tuple[int, ...] | None = None, leader: int | None = None, faults: int = 0
) -> PlanRequest:
    """Return a request for a change between two of the shipped folders, in one way of working."""
    folders = shipped(old), shipped(new)
    return PlanRequest(*folders, order, leader, faults, 24.0, how=Way.ONE_BY_ONE)


@cache
def planned(
    old: str, new: str, order: tuple[int, ...] | None = None, leader: int | None = None, faults: int = 0
) -> Plan:
    """Return the plan for two of the shipped folders; each plan is computed once."""
    return planned_for(request(old, new, order, leader, faults))


def without_faults(made: Plan, question: Question) -> Evidence:
    """Return the answer, without faults, to a question about the direct change."""
    return made.direct.answer(question, faulty=False)


def trace_of(answer: Evidence) -> Trace:
    assert answer.finding is not None and answer.finding.trace is not None
    return answer.finding.trace


# Growing from three to five.


def test_the_wrong_order_has_leaders_3_and_5_in_one_epoch() -> None:
    """Observed in 16 of 16 runs: 1 and 3 elect 3; 2, 4 and 5 elect 5; both in the same epoch."""
    answer = without_faults(planned("three", "five", (2, 1, 3), 2), ELECTION)
    assert answer.outcome is SafetyVerdict.UNSAFE
    trace = trace_of(answer)
    assert trace.prop == "Leadership" and dict(trace.values)["leaders"] == [3, 5]
    lanes = trace.steps[-1].lanes
    assert {sid: lanes[f"server.{sid}"].get("leader") for sid in (1, 2, 4)} == {1: 3, 2: 5, 4: 5}


def test_after_the_wrong_order_one_zxid_is_two_transactions() -> None:
    """Observed: both leaders accept writes, and the same zxid names two different transactions."""
    answer = without_faults(planned("three", "five", (2, 1, 3), 2), COMMITS)
    assert answer.outcome is SafetyVerdict.UNSAFE and trace_of(answer).prop == "OneTxnPerZxid"


def test_healing_the_wrong_order_leaves_replicas_different() -> None:
    """Observed: 1, restarted with the five-member file, joins 5 by a plain DIFF, and the replicas stay different for
    ever.
    """
    answer = without_faults(planned("three", "five", (2, 1, 3), 2), HEALING)
    trace = trace_of(answer)
    assert answer.outcome is SafetyVerdict.UNSAFE and trace.prop == "ReplicasAgree"
    assert any("server.1 receives DIFF" in step.caption and "from server.5" in step.caption for step in trace.steps)


def test_with_4_and_5_down_2_stays_looking_and_nothing_splits() -> None:
    """Observed: 2 sees 3 LEADING and 1 FOLLOWING and stays LOOKING, because that is two of five."""
    spec = request("three", "five", (2,), 2)
    made = planned_for(replace(spec, seconds=20.0, down=frozenset({4, 5})))
    assert without_faults(made, ELECTION).outcome is SafetyVerdict.SAFE
    assert without_faults(made, COMMITS).outcome is SafetyVerdict.SAFE
    stalled = without_faults(made, HEALING)
    assert stalled.outcome is SafetyVerdict.STALLS and stalled.finding is not None
    assert stalled.finding.looking == (2,)


def test_lagging_4_and_5_may_all_join_3_and_may_split_where_messages_are_slow() -> None:
    """Observed: if 4 and 5 have missed one write, all join 3. The model has that run, and a split if 2 hears 3 late."""
    growth = change_of("three", "five")
    spec = RunSpec(growth, steps_of(growth, (2,)), 2, ELECTION, zab=False, patient=False, always=("LeaderIsAVoter",))
    text = spec.text
    for sid in (1, 2, 3):
        text = text.replace(f"  {sid}: {{file: before.cfg", f"  {sid}: {{file: before.cfg, epoch: 1, zxid: 1:3")
    for sid in (4, 5):
        text = text.replace(f"  {sid}: {{file: after.cfg", f"  {sid}: {{file: after.cfg, epoch: 1, zxid: 1:2")
    all_follow_3 = "{1: FOLLOWING 3, 2: FOLLOWING 3, 3: LEADING, 4: FOLLOWING 3, 5: FOLLOWING 3}"
    assert _verdict(growth, f"{text}sometimes: [{{Stands: {all_follow_3}}}]\n") is Verdict.PASSED
    assert _verdict(growth, text.replace("[LeaderIsAVoter]", "[OneLeader]")) is Verdict.VIOLATED


def _verdict(of: Stage, text: str) -> Verdict:
    job = from_text(text, of.texts.get)
    return judge(job, search.explore(job.model), job.actions).verdict


def test_versions_that_are_gossiped_prevent_the_split() -> None:
    """Observed with reconfigEnabled=true: no split; 2, 4 and 5 adopt the newer view of three members."""
    made = planned("reconfig-three", "reconfig-five", (2, 1, 3), 2)
    assert any(pair.disjoint for pair in made.direct.pairs)
    elections = without_faults(made, ELECTION)
    assert elections.outcome is SafetyVerdict.SAFE and any(ran.spec.opening for ran in elections.runs)
    assert made.outcome is SafetyVerdict.OPEN, (
        "what follows an election is not modelled with versions, and that is said"
    )
    assert any("takes over the first" in note for note in made.notes)


@cache
def with_the_leader_last() -> Plan:
    """Return the plan for an order that ends with the leader, of whose healing nothing is asked here."""

    def not_of_healing(spec: RunSpec, seconds: float) -> RunResult:
        return made_up(spec, SafetyVerdict.OPEN) if spec.question is HEALING else whole_levels(spec, seconds)

    return plan(request("three", "five", (4, 5, 1, 3, 2), 2, 1), not_of_healing)


def test_the_leader_last_has_one_leader_but_loses_a_write() -> None:
    """R10': no fault ever gives two leaders, but two of three commit transactions that three of five do not have."""
    made = with_the_leader_last()
    assert without_faults(made, ELECTION).outcome is SafetyVerdict.SAFE
    lost = without_faults(made, COMMITS)
    assert lost.outcome is SafetyVerdict.UNSAFE and trace_of(lost).prop == "LeaderLogCompleteness"


def test_the_leader_last_with_one_partition_has_two_leaders() -> None:
    """R10': {2, 3} by the old file, {1, 4, 5} by the new one."""
    answer = with_the_leader_last().direct.answer(ELECTION, faulty=True)
    assert answer.outcome is SafetyVerdict.UNSAFE and answer.finding is not None
    assert answer.finding.spec.faults == {"partitions": 1} and trace_of(answer).prop == "OneLeader"


def grown(order: tuple[int, ...]) -> PlanRoute:
    """Assess an order from three to five until it is unsafe: commits without faults, leaders also with one fault."""
    growth = change_of("three", "five")
    assessor = Assessor(Work(whole_levels, 60.0), 1)
    trial: PlanRoute = assessor.begin(growth)
    assessor.without_faults(trial, 2, steps_of(growth, order))
    for question, faulty in ((COMMITS, False), (ELECTION, True)):
        if trial.outcome is not SafetyVerdict.UNSAFE:
            assessor.explore(question, trial, faulty=faulty)
    return trial


GROWTH_ORDERS = [tuple(step.sid for step in steps) for steps in candidates(change_of("three", "five"), 2)]
BOTH_EARLY = [order for order in GROWTH_ORDERS if max(order.index(4), order.index(5)) <= 2]
ONE_AT_THE_END = [order for order in GROWTH_ORDERS if order[-1] in (4, 5)]
FEW = 6


def some_and_the_rest(orders: list[tuple[int, ...]]) -> list[object]:
    """Return a parameter for each order; all but a few of them are marked slow."""
    return [*orders[:FEW], *(pytest.param(order, marks=pytest.mark.slow) for order in orders[FEW:])]


def test_the_servers_of_three_to_five_that_run_may_split_unless_4_or_5_starts_at_the_end() -> None:
    growth = change_of("three", "five")
    assert [order for order in GROWTH_ORDERS if not may_split(growth, steps_of(growth, order))] == ONE_AT_THE_END


@pytest.mark.parametrize("order", some_and_the_rest(BOTH_EARLY), ids=str)
def test_three_to_five_is_unsafe_if_4_and_5_run_before_two_others_have_the_new_file(order: tuple[int, ...]) -> None:
    """Two servers with the old file are a quorum by that file, and three with the new file are a quorum by theirs."""
    assert grown(order).outcome is SafetyVerdict.UNSAFE


@pytest.mark.parametrize("order", some_and_the_rest(ONE_AT_THE_END), ids=str)
def test_three_to_five_splits_nothing_and_loses_nothing_if_4_or_5_starts_at_the_end(order: tuple[int, ...]) -> None:
    """While there are two files, four servers run: too few for two with the old file and three others with the new."""
    found = grown(order)
    cells = [found.answer(ELECTION, faulty=faulty) for faulty in (False, True)] + [found.answer(COMMITS, faulty=False)]
    assert [answer.outcome for answer in cells] == [SafetyVerdict.SAFE] * 3


# Growing from three to four.


def test_three_to_four_in_the_wrong_order_stalls_until_1_restarts_and_does_not_split() -> None:
    """Observed: no split; 2 and 4 stay LOOKING until 1 restarts with the new file."""
    made = planned("three", "four", (4, 2, 1, 3), 2)
    assert made.direct.proved and made.outcome is SafetyVerdict.SAFE
    stalled = without_faults(made, HEALING)
    assert stalled.outcome is SafetyVerdict.STALLS and stalled.finding is not None
    assert stalled.finding.stuck == 2 and stalled.finding.looking == (2, 4)
    (order,) = made.direct.orders
    waits = {step.sid: step.wait for step in order.steps}
    assert waits[4] and not waits[2], "it is said that 2 must not be waited for"
    assert any(ran.outcome is SafetyVerdict.SAFE for ran in made.direct.runs if not ran.spec.patient), (
        "and all settle at last"
    )


# A safe way for every change.

CHANGES = {
    "3 to 4": ("three", "four", 1),
    "3 to 5": ("three", "five", 1),
    "5 to 3": ("five", "three", 2),
    "a server replaced": ("three", "replaced", 2),
    "an observer promoted": ("observer", "voters", 1),
}


SLOW = {"5 to 3"}
MARKED = [pytest.param(*CHANGES[name], id=name, marks=pytest.mark.slow if name in SLOW else ()) for name in CHANGES]


@pytest.mark.parametrize(("old", "new", "stages"), MARKED)
def test_a_safe_way_is_found(old: str, new: str, stages: int) -> None:
    made = planned(old, new)
    assert made.outcome is SafetyVerdict.SAFE and len(made.advised) == stages
    if stages > 1:
        assert made.direct.outcome is not SafetyVerdict.SAFE, (
            "with five servers it may take longer than a part of the budget"
        )
        assert made.direct.outcome is SafetyVerdict.UNSAFE or "five" in (old, new)
    for part in made.advised:
        assert part.proved or part.order_proofs
        leaders = {order.leader for order in part.orders}
        assert leaders == part.stage.old.view.voters, "an order for every server that may lead"
        first = part.orders[0]
        assert not first.vain and first.explored
        stopped = [step.sid for step in first.steps if step.action != START]
        assert stopped[-1] == first.leader or first.leader in part.stage.removed


def test_three_to_five_is_safe_in_one_go_if_5_starts_when_all_others_have_the_new_file() -> None:
    made = planned_for(replace(request("three", "five", None, 2), in_one_go=True))
    (order,) = made.direct.orders
    assert made.tried == 1
    assert [step.sid for step in order.steps] == [4, 1, 3, 2, 5] and all(step.wait for step in order.steps)
    cells = [without_faults(made, question) for question in (ELECTION, COMMITS, HEALING)]
    assert not made.direct.proved and all(answer.outcome is SafetyVerdict.SAFE for answer in cells)


def test_an_order_in_which_somebody_waits_in_vain_is_not_followed_where_stages_are_safe() -> None:
    """When 5 has been stopped, 4 leads, and by the new file 1 cannot follow it."""
    shrinking = change_of("five", "three")
    steps = next(unsplit(shrinking, 5))

    def with_all_waits(spec: RunSpec, seconds: float) -> RunResult:
        return whole_levels(spec, 60.0) if spec.steps == steps else made_up(spec, SafetyVerdict.OPEN)

    assessor = Assessor(Work(with_all_waits, 60.0), 0)
    (vain, *_) = assessor.without_faults(assessor.begin(shrinking), 5, steps).vain
    assert str(steps[0]) == "stop 5" and vain.stuck == 1
    made = planned("five", "three", leader=5)
    assert len(made.stages) == 2 and made.outcome is SafetyVerdict.SAFE


@pytest.mark.slow
def test_a_safe_way_from_three_to_seven_has_four_stages() -> None:
    spec = request("three", "seven")
    made = planned_for(replace(spec, seconds=120.0))
    assert made.outcome is SafetyVerdict.SAFE and len(made.stages) == 4
    assert [len(part.stage.new.view.voters) for part in made.stages] == [4, 5, 6, 7]


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "stages"), MARKED)
def test_a_safe_way_is_safe_under_a_fault_too(old: str, new: str, stages: int) -> None:
    """The runs for an observer that becomes a voter are finished, so they confirm the proof."""
    spec = request(old, new, faults=1)
    budget = 12_000.0 if old == "observer" else spec.seconds
    made = planned_for(replace(spec, seconds=budget, explored=True))
    assert made.outcome is SafetyVerdict.SAFE and len(made.advised) == stages
    if old == "observer":
        commits = [ran for ran in made.runs if ran.spec.question is COMMITS]
        assert len(commits) == 4 and all(ran.complete for ran in commits)


def test_every_run_that_is_found_can_be_replayed_from_what_its_trace_carries() -> None:
    from checker.cli.sources import job_of

    found = [ran.trace for ran in planned("three", "five", (2, 1, 3), 2).runs if ran.trace]
    assert {trace.prop for trace in found} == {"Leadership", "OneTxnPerZxid", "ReplicasAgree"}
    for trace in found:
        again = read_itf(to_itf(trace), "trace")
        assert replay(again, job_of(again.source)).trace.depth == trace.depth


def test_the_shipped_folders_are_there() -> None:
    assert {path.name for path in Path(FOLDERS).iterdir()} >= {"three", "four", "five", "seven", "replaced"}
