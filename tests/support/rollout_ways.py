"""The verdict on a way of working by brute force: every run of the plain questions, explored to the end.

The steps of each way are written here a second time, from its description, so that a mistake of the planner shows.
"""

from collections.abc import Iterator

from checker.engine import Limits
from checker.rollout.assessor import LEADERS
from checker.rollout.orders import ServerStep, Steps, Way
from checker.rollout.runs import RunEnd, SafetyVerdict, run_within
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS, SAFE_DATA, Question, RunSpec
from checker.rollout.stages import Stage

NO_FAULT: dict[str, int] = {}


def steps_by_hand(way: Way, stage: Stage, leader: int, planned: Steps) -> Steps:
    """The steps of a way; the order of restarts, where the way leaves it open, is the planned one."""
    old, new = set(stage.old.members), set(stage.new.members)

    def started(sids: list[int], *, wait: bool) -> list[ServerStep]:
        return [ServerStep("start", sid, wait) for sid in sids]

    def stopped(sids: list[int]) -> list[ServerStep]:
        return [ServerStep("stop", sid, False) for sid in sids]

    if way is Way.STOP_ALL:
        last = [*sorted(old - {leader}), leader]
        return (*stopped(last), *started(sorted(new), wait=False))
    if way in (Way.CONTROLLER, Way.PARALLEL_CONTROLLER, Way.UNREADY_CONTROLLER):
        waits_again = way is not Way.UNREADY_CONTROLLER
        again = [ServerStep("restart", sid, waits_again) for sid in sorted(old & new, reverse=True)]
        begun = started(sorted(new - old), wait=way is Way.CONTROLLER)
        return (*begun, *stopped(sorted(old - new, reverse=True)), *again)
    order = [step.sid for step in planned]
    assert sorted(order) == sorted(old | new)
    if way is Way.PARALLEL:
        assert set(order[: len(new - old)]) == new - old
    waits = {Way.ONE_BY_ONE: dict.fromkeys(new, True), Way.NO_WAIT: {}, Way.PARALLEL: dict.fromkeys(old & new, True)}[
        way
    ]
    return tuple(
        ServerStep("start" if sid not in old else "restart" if sid in new else "stop", sid, waits.get(sid, False))
        for sid in order
    )


def is_unsafe(stage: Stage, way: Way, leader: int, steps: Steps, faults: int) -> bool:
    """Whether any run without faults, or with this number of them, has a violation."""
    kinds = ({CRASHES: faults}, {PARTITIONS: faults}, {DISCONNECTS: faults}) if faults else ()
    return any(_violated(spec) for each in (NO_FAULT, *kinds) for spec in _questions(stage, way, leader, steps, each))


def _questions(stage: Stage, way: Way, leader: int, steps: Steps, faults: dict[str, int]) -> Iterator[RunSpec]:
    if not faults:
        yield RunSpec(stage, steps, leader, Question.ELECTION, always=LEADERS, way=way)
    elif DISCONNECTS not in faults:
        always = ("OneLeader", "LeaderIsAVoter")
        yield RunSpec(stage, steps, leader, Question.ELECTION, faults, zab=False, always=always, way=way)
    yield RunSpec(
        stage, steps, leader, Question.COMMITS, faults, writes=1, elections=2, always=SAFE_DATA, way=way
    )  # fmt: skip


def _violated(spec: RunSpec) -> bool:
    ran = run_within(spec, Limits())
    assert ran.end in (RunEnd.VIOLATION, RunEnd.EXHAUSTED), ran.end
    return ran.outcome is SafetyVerdict.UNSAFE
