"""The proof of one order of a roll-out whose quorums may be disjoint, against an independent reading of the theorem.

The theorem (`checker.symbolic.zab.rollout`): quorums of one stage, and of neighbouring stages, meet if all their
servers run in the later stage; before a stage begins, all servers that run have the file of the stage before, and
follow one leader of it that serves.
"""

import json
from collections.abc import Collection
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.rollout import Plan, PlanRequest, SafetyVerdict, plan, read_folder
from checker.rollout.inputs.folders import Folder
from checker.rollout.order_proof import StageCondition, order_proof
from checker.rollout.orders import START, STOP, Steps, Way, steps_of, unsplit
from checker.rollout.runs import RunResult, run
from checker.rollout.scenarios import Question, RunSpec
from checker.rollout.stages import Stage, whole
from tests.support.command_line import cli
from tests.support.rollout_runs import FOLDERS, change_of, made_up, shipped

Members = frozenset[int]


def stage_of(path: Path, old: Members, new: Members) -> Stage:
    """The change between two sets of voters."""
    return whole(folder_of(path / "old.cfg", old), folder_of(path / "new.cfg", new))


def folder_of(file: Path, members: Members) -> Folder:
    lines = [f"server.{sid}=zoo{sid}:2888:3888" for sid in sorted(members)]
    file.write_text("tickTime=2000\ndataDir=/data\nclientPort=2181\ninitLimit=5\nsyncLimit=2\n" + "\n".join(lines))
    return read_folder(file)


def is_proved(stage: Stage, steps: Steps, way: Way = Way.ONE_BY_ONE) -> bool:
    return order_proof(stage, steps, way) is not None


# -- an independent reading of the theorem -------------------------------------------------------------------


def majorities(members: Members) -> list[Members]:
    return [frozenset(each) for each in combinations(sorted(members), len(members) // 2 + 1)]


def keeps_the_theorem(old: Members, new: Members, steps: Steps) -> bool:
    """Whether the steps are two stages of the theorem, or three, of which the last has only starts at the end."""
    return any(is_divided_well(old, new, steps, place) for place in range(1, len(steps) + 1))


def is_divided_well(old: Members, new: Members, steps: Steps, place: int) -> bool:
    """The same if the third stage begins at this place; there is none at the end of the steps.

    A stage is a file and the servers that have run. A server that was stopped has a file of a stage that has ended. It
    stays stopped, and follows nobody. The fourth stage of the theorem would need a leader elected in the third.
    """
    names, late = [step.sid for step in steps], steps[place:]
    begun = frozenset(step.sid for step in steps[:place] if step.action == START)
    stages = [(old, old), (new, old | begun)]
    if late:
        following = (old | begun) & new
        may_serve = any(quorum <= following for quorum in majorities(new))
        if not may_serve or not old <= {*names[:place]} or any(step.action != START for step in late):
            return False
        stages.append((new, old | new))
    for at, (file, _) in enumerate(stages):
        runs = stages[min(at + 1, len(stages) - 1)][1]
        for other, _ in stages[at : at + 2]:
            if any(a <= runs and b <= runs and not a & b for a in majorities(file) for b in majorities(other)):
                return False
    return True


@pytest.mark.parametrize(("old", "new"), [("three", "five"), ("five", "three"), ("three", "four"), ("two", "four")])
def test_an_order_is_proved_if_it_keeps_the_theorem(old: str, new: str) -> None:
    stage = change_of(old, new)
    for order in permutations(stage.remaining):
        steps = steps_of(stage, order)
        assert is_proved(stage, steps) == keeps_the_theorem(stage.old.members, stage.new.members, steps), order


def shuffled(paths: pytest.TempPathFactory, old: Members, new: Members, random: object) -> tuple[Stage, list[int]]:
    """Return the change between two sets of voters, and an order of its steps."""
    stage = stage_of(paths.mktemp("files"), old, new)
    order = list(stage.remaining)
    random.shuffle(order)  # type: ignore[attr-defined]
    return stage, order


sets = st.frozensets(st.integers(1, 5), min_size=2, max_size=5)


@settings(deadline=None, max_examples=300)
@given(sets, sets, st.randoms(use_true_random=False))
def test_an_order_of_any_change_is_proved_if_it_keeps_the_theorem(
    tmp_path_factory: pytest.TempPathFactory, old: Members, new: Members, random: object
) -> None:
    stage, order = shuffled(tmp_path_factory, old, new, random)
    steps = steps_of(stage, order)
    assert is_proved(stage, steps) == keeps_the_theorem(old, new, steps)


def interrupted(stage: Stage, applied: Collection[int]) -> Stage:
    return replace(stage, applied=frozenset(applied))


@settings(deadline=None, max_examples=200)
@given(sets, sets, st.randoms(use_true_random=False))
def test_the_rest_of_a_proved_order_is_proved_after_each_of_its_steps(
    tmp_path_factory: pytest.TempPathFactory, old: Members, new: Members, random: object
) -> None:
    """So `--now` goes on with the plan that it interrupts."""
    stage, order = shuffled(tmp_path_factory, old, new, random)
    proved = is_proved(stage, steps_of(stage, order))
    for done in range(1, len(order)) if proved else ():
        rest = interrupted(stage, order[:done])
        assert is_proved(rest, steps_of(rest, order[done:])), (order, done)


@settings(deadline=None, max_examples=200)
@given(sets, sets, st.integers(0, 5), st.randoms(use_true_random=False))
def test_a_rest_is_proved_only_if_an_order_of_the_whole_keeps_the_theorem(
    tmp_path_factory: pytest.TempPathFactory, old: Members, new: Members, done: int, random: object
) -> None:
    """The files show which steps were done, and not in which order. With one file everywhere, that does not matter."""
    stage, order = shuffled(tmp_path_factory, old, new, random)
    rest = interrupted(stage, order[:done])
    steps = steps_of(rest, order[done:])
    if steps and is_proved(rest, steps) and rest.renewed < rest.running:
        wholes = (steps_of(stage, (*begun, *order[done:])) for begun in permutations(order[:done]))
        assert any(keeps_the_theorem(old, new, whole) for whole in wholes)


# -- what it says --------------------------------------------------------------------------------------------


def test_three_servers_grow_to_five_in_48_of_120_orders() -> None:
    """Those in which 4 or 5 starts when all others have the new file: five servers run too late to be two quorums."""
    stage = change_of("three", "five")
    proved = {order for order in permutations(stage.remaining) if is_proved(stage, steps_of(stage, order))}
    assert proved == {order for order in permutations(stage.remaining) if order[-1] in (4, 5)}


def test_the_operator_checks_before_the_first_step_and_before_the_last_server_starts() -> None:
    stage = change_of("three", "five")
    proof = order_proof(stage, steps_of(stage, (4, 1, 3, 2, 5)), Way.ONE_BY_ONE)
    assert proof is not None
    assert proof.conditions == (
        StageCondition(1, (1, 2, 3), renewed=False),
        StageCondition(5, (1, 2, 3, 4), renewed=True),
    )
    assert [sorted(each.running) for each in proof.stages] == [[1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]]


def test_servers_that_are_stopped_must_stay_stopped(tmp_path: Path) -> None:
    """Two of three are replaced: 2 and 3 are stopped for good, when 1 and 4 have the new file."""
    stage = stage_of(tmp_path, frozenset({1, 2, 3}), frozenset({1, 4, 5}))
    proof = order_proof(stage, steps_of(stage, (4, 1, 2, 3, 5)), Way.ONE_BY_ONE)
    assert proof is None, "2 and 3 are a quorum of the old file, 1 and 4 one of the new file"
    stage = stage_of(tmp_path, frozenset({1, 2, 3, 4}), frozenset({1, 2, 3, 5, 6}))
    proof = order_proof(stage, steps_of(stage, (1, 2, 3, 4, 5, 6)), Way.ONE_BY_ONE)
    assert proof is not None
    assert [(each.step, each.stopped) for each in proof.conditions] == [(1, ()), (5, (4,))]


def test_no_order_is_proved_in_which_no_leader_could_serve_before_a_stage(tmp_path: Path) -> None:
    """Servers 1 and 2 are stopped, then 3 and 4 start: they have no data, although no quorums ever run together."""
    stage = stage_of(tmp_path, frozenset({1, 2}), frozenset({3, 4}))
    steps = steps_of(stage, (1, 2, 3, 4))
    assert [step.action for step in steps] == [STOP, STOP, START, START]
    assert not is_proved(stage, steps)


# -- what it does not speak of -------------------------------------------------------------------------------


def test_only_a_person_keeps_the_condition_before_a_server_starts_last() -> None:
    stage = change_of("three", "five")
    steps = steps_of(stage, (4, 1, 3, 2, 5))
    assert {way for way in Way if is_proved(stage, steps, way)} == {Way.ONE_BY_ONE}


def test_a_wait_in_vain_before_the_last_start_leaves_no_proof() -> None:
    stage = change_of("three", "five")
    *first, last, start = steps_of(stage, (4, 1, 3, 2, 5))
    assert not is_proved(stage, (*first, replace(last, wait=False), start))


@pytest.mark.parametrize(("old", "new"), [("one", "three"), ("reconfig-three", "reconfig-five")])
def test_the_theorem_says_nothing_of_standalone_servers_and_versions(old: str, new: str) -> None:
    stage = change_of(old, new)
    assert not any(is_proved(stage, steps_of(stage, order)) for order in permutations(stage.remaining))


def test_an_interrupted_roll_out_with_4_and_5_started_has_no_proof() -> None:
    """Servers 1 and 2 are a quorum by the old file, and 3, 4 and 5 by the new one."""
    stage = replace(change_of("three", "five"), applied=frozenset({4, 5}))
    assert not any(is_proved(stage, steps_of(stage, order)) for order in permutations((1, 2, 3)))


def test_an_observer_that_is_counted_leaves_no_proof() -> None:
    """Server 4 becomes a voter, and must have its new file before a leader counts it."""
    stage = change_of("observer", "voters")
    assert is_proved(stage, steps_of(stage, (4, 1, 2, 3)))
    assert not is_proved(stage, steps_of(stage, (1, 2, 3, 4)))


# -- where a proof is not enough -----------------------------------------------------------------------------


def planned(path: Path, openly: Collection[Question], *, whole_only: bool) -> Plan:
    """Plan a growth to five in which server 3 moves to another host, from runs that no engine made.

    The runs about these questions are not finished: those of the change in one go, or those of every stage too.
    """
    text = (FOLDERS / "five" / "zoo.cfg").read_text(encoding="utf-8").replace("zoo3.example", "new3.example")
    (path / "zoo.cfg").write_text(text, encoding="utf-8")

    def runner(spec: RunSpec, seconds: float) -> RunResult:
        in_one_go = spec.stage.old.given and spec.stage.new.given
        is_open = spec.question in openly and (in_one_go or not whole_only)
        return made_up(spec, SafetyVerdict.OPEN if is_open else SafetyVerdict.SAFE)

    return plan(PlanRequest(shipped("three"), read_folder(path)), runner)


UNFINISHED = {"healing": (Question.ELECTION, Question.HEALING), "empty disks": (Question.EMPTY_DISK,)}


@pytest.mark.parametrize("openly", UNFINISHED.values(), ids=UNFINISHED)
def test_stages_are_the_answer_if_a_proved_order_is_undecided_and_they_are_not(
    tmp_path: Path, openly: tuple[Question, ...]
) -> None:
    """The proof is about leaders and commits, not about healing or empty disks."""
    made = planned(tmp_path, openly, whole_only=True)
    assert made.direct.order_proofs and made.direct.outcome is SafetyVerdict.OPEN
    assert len(made.stages) == 3 and made.outcome is SafetyVerdict.SAFE


@pytest.mark.parametrize("openly", UNFINISHED.values(), ids=UNFINISHED)
def test_a_proved_order_stays_the_answer_if_the_stages_are_undecided_as_well(
    tmp_path: Path, openly: tuple[Question, ...]
) -> None:
    made = planned(tmp_path, openly, whole_only=False)
    assert made.direct.order_proofs and made.stages == [] and made.outcome is SafetyVerdict.OPEN


def test_no_stages_are_judged_beside_a_proved_order_that_is_safe(tmp_path: Path) -> None:
    made = planned(tmp_path, (), whole_only=True)
    assert made.direct.order_proofs and made.stages == [] and made.outcome is SafetyVerdict.SAFE
    assert {result.spec.stage.title for result in made.runs} == {made.direct.stage.title}


# -- the command ---------------------------------------------------------------------------------------------


def test_the_order_that_the_readme_calls_proved_has_the_two_conditions_that_it_names() -> None:
    """The README states the claim with its conditions; the plan has a proof with these two and no other."""
    text = " ".join((Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8").split())
    assert "if the two printed conditions are kept: before the first step, and before server 5 starts" in text
    stage = change_of("three", "five")
    for leader in (1, 2, 3):
        steps = next(unsplit(stage, leader))
        proof = order_proof(stage, steps, Way.ONE_BY_ONE)
        assert proof is not None and str(steps[-1]) == "start 5"
        assert [each.step for each in proof.conditions] == [1, len(steps)]


@pytest.mark.parametrize("leader", [1, 2, 3])
def test_no_run_of_the_elections_contradicts_a_proved_order(leader: int) -> None:
    """Two leaders at once would need two quorums that run; each kind of fault is explored to the end."""
    stage = change_of("three", "five")
    steps = next(unsplit(stage, leader))
    assert is_proved(stage, steps)
    order = tuple(step.sid for step in steps)

    def is_asked(spec: RunSpec) -> bool:
        return spec.question is Question.ELECTION and bool(spec.faults)

    def of_elections(spec: RunSpec, seconds: float) -> RunResult:
        return run(spec, seconds) if is_asked(spec) else made_up(spec, SafetyVerdict.SAFE)

    folders = shipped("three"), shipped("five")
    request = PlanRequest(*folders, order, leader, 1, explored=True, how=Way.ONE_BY_ONE)
    runs = [each for each in plan(request, of_elections).direct.runs if is_asked(each.spec)]
    assert [each.spec.faults for each in runs] == [{"partitions": 1}, {"crashes": 1}]
    assert all(each.outcome is SafetyVerdict.SAFE and each.exhausted for each in runs)


def test_the_runs_that_a_proof_spares_are_made_on_demand() -> None:
    """Most of them have no time here, and none contradicts the proof."""
    folders = ("--from", str(FOLDERS / "three"), "--to", str(FOLDERS / "four"))
    ended = cli("rollout", *folders, "--leader", "3", "--how", "one-by-one", "--explore", "--budget", "4s", "--json")
    answer = json.loads(ended.out)
    asked = {(each["question"], *each["faults"]) for each in answer["direct"]["runs"]}
    assert {("commits",), ("election", "partitions"), ("election", "crashes")} <= asked
    assert (ended.code, answer["verdict"]) == (0, "safe")
