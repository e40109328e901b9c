"""An interrupted roll-out: the state is read from the files that servers have, and judged forwards and backwards."""

from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest

from checker.engine import Limits
from checker.rollout import Plan, PlanRequest, SafetyVerdict, plan
from checker.rollout.assessor import Assessor
from checker.rollout.files.differences import Interruption
from checker.rollout.orders import Way, candidates, may_lead, may_split, steps_of
from checker.rollout.output.data import data
from checker.rollout.output.markdown import markdown
from checker.rollout.output.recommendation import headline
from checker.rollout.route_verdict import Order
from checker.rollout.runs import RunResult, Work, leads_first, run_within
from checker.rollout.scenarios import PARTITIONS, Question, RunSpec
from checker.rollout.stages import reverse, whole
from checker.scenario import from_text
from tests.support.rollout_runs import (
    FOLDERS,
    HEAD,
    change_of,
    edited,
    fine,
    folder_of,
    folder_with,
    made_up,
    plan_of,
    seen_state,
    shipped,
    unfinished,
)


def put(folder: Path, **files: str) -> Path:
    """Return a folder with a file for each server: `s1="five"` is the file of the folder `five` for server 1."""
    folder.mkdir(exist_ok=True)
    for name, source in files.items():
        text = (FOLDERS / source / "zoo.cfg").read_text(encoding="utf-8")
        (folder / f"zoo-{name[1:]}.cfg").write_text(f"# server {name[1:]}\n{text}", encoding="utf-8")
    return folder


def state(folder: Path, old: str, new: str) -> Interruption:
    return seen_state(folder, shipped(old), shipped(new))


def limited(spec: RunSpec, seconds: float, states: int = 10_000) -> RunResult:
    """Explore a number of states, so that the verdict does not depend on the machine."""
    return run_within(spec, Limits(states=states))


def planned(now: Interruption, old: str, new: str, faults: int = 0, **requests: object) -> Plan:
    """The plan from a state between two shipped folders, on a clock that does not move."""
    folders = shipped(old), shipped(new)
    return plan(PlanRequest(*folders, faults=faults, now=now, **requests), limited)  # type: ignore[arg-type]


STATES = {
    "nothing done": ({"s1": "three", "s2": "three", "s3": "three"}, "three", "five", set()),
    "one restarted": ({"s1": "three", "s2": "five", "s3": "three"}, "three", "five", {2}),
    "one started": ({"s1": "three", "s2": "three", "s3": "three", "s4": "five"}, "three", "five", {4}),
    "all done": ({f"s{sid}": "five" for sid in (1, 2, 3, 4, 5)}, "three", "five", {1, 2, 3, 4, 5}),
    "one stopped": ({"s1": "five", "s2": "five", "s3": "five", "s4": "five"}, "five", "three", {5}),
}


@pytest.mark.parametrize(("files", "old", "new", "applied"), STATES.values(), ids=STATES)
def test_the_files_show_which_servers_are_done(
    tmp_path: Path, files: dict[str, str], old: str, new: str, applied: set[int]
) -> None:
    assert state(put(tmp_path, **files), old, new).applied == applied


def test_a_stage_begins_with_the_files_that_the_servers_have() -> None:
    """Server 2 runs with the new file, and 4 is started; 1 and 3 have the old file, and 5 does not run."""
    stage = change_of("three", "five", frozenset({2, 4}))
    assert (stage.running, stage.remaining) == ({1, 2, 3, 4}, (1, 3, 5))
    spec = RunSpec(stage, steps_of(stage, (1, 3, 5)), 3, Question.COMMITS, writes=1, always=("Leadership",))
    text = spec.text
    files = {1: "before", 2: "after", 3: "before", 4: "after", 5: "after"}
    assert all(f"  {sid}: {{file: {name}.cfg" in text for sid, name in files.items())
    assert "\n- start: [1, 2, 3, 4]\n" in text
    job = from_text(text, stage.texts.get)
    lanes = job.presenter.lanes(job.model.initial())
    assert lanes["server.3"]["state"] == "LEADING" and lanes["server.5"]["state"] == "down"
    assert sorted(tuple(step.sid for step in steps) for steps in candidates(stage, 3)) == [
        (1, 3, 5), (1, 5, 3), (3, 1, 5), (3, 5, 1), (5, 1, 3), (5, 3, 1),
    ]  # fmt: skip


def test_the_way_back_undoes_what_is_done_and_nothing_else() -> None:
    stage = change_of("three", "five", frozenset({2, 4}))
    back = reverse(stage)
    assert (back.running, back.restarted, back.added, back.removed) == (stage.running, (2,), (), (4,))
    shrinking = change_of("five", "three", frozenset({5, 1}))
    back = reverse(shrinking)
    assert (back.running, back.restarted, back.added, back.removed) == ({1, 2, 3, 4}, (1,), (5,), ())
    assert back.new.view.voters == {1, 2, 3, 4, 5}


def test_both_directions_are_safe_where_all_quorums_meet(tmp_path: Path) -> None:
    """3 + 2 > 4: every quorum of four servers meets every quorum of three of them."""
    now = state(put(tmp_path, s1="four", s2="three", s3="three", s4="four"), "three", "four")
    made = planned(now, "three", "four")
    assert made.back is not None
    assert (made.outcome, made.back.outcome, made.exit_code) == (SafetyVerdict.SAFE, SafetyVerdict.SAFE, 0)
    assert {frozenset(step.sid for step in order.steps) for order in made.direct.orders} == {frozenset({2, 3})}
    assert {frozenset(map(str, order.steps)) for order in made.back.orders} == {frozenset({"restart 1", "stop 4"})}
    text = markdown(made)
    assert text.splitlines()[0] == "# Go on with the roll-out, or go back: both are safe"
    assert "<summary>The way back: SAFE</summary>" in text and "**Stop server 4**" in text
    answer = data(made)
    assert answer["now"]["applied"] == [1, 4] and answer["back"]["verdict"] == "safe"


def test_no_direction_is_safe_under_a_partition_where_two_quorums_run() -> None:
    """Servers 2 and 3 are two of three by the old file; 1, 4 and 5 are three of five by the new file."""
    onward = change_of("three", "five", frozenset({1, 4, 5}))
    for part in (onward, reverse(onward)):
        assert may_split(part, ())
        assessor = Assessor(Work(limited, 60.0), 1)
        assessment = assessor.begin(part)
        assessment.orders = [Order(2, next(iter(candidates(part, 2))))]
        assessor.explore(Question.ELECTION, assessment, faulty=True)
        assert assessment.answer(Question.ELECTION, faulty=True).outcome is SafetyVerdict.UNSAFE


def test_the_headline_and_the_exit_code_are_those_of_both_directions() -> None:
    """The exit code depends only on the forward direction."""
    folders = shipped("three"), shipped("five")
    now = Interruption("now", frozenset({1, 4, 5}), ())
    for onward, code in (("after", 12), ("before", 20)):

        def split(spec: RunSpec, seconds: float, onward: str = onward) -> RunResult:
            unsafe = spec.stage.new.label == onward
            outcome = SafetyVerdict.UNSAFE if unsafe else SafetyVerdict.OPEN
            return made_up(spec, outcome)

        made = plan(PlanRequest(*folders, leader=2, now=now), split)
        verdicts = ("UNSAFE", "UNDECIDED") if code == 12 else ("UNDECIDED", "UNSAFE")
        assert headline(made).endswith(f": {verdicts[0]} to go on, {verdicts[1]} to go back")
        assert made.exit_code == code


@pytest.mark.parametrize(("old", "new"), [("three", "five"), ("five", "three"), ("three", "replaced")])
def test_every_mixed_state_agrees_with_the_arithmetic_of_its_quorums(old: str, new: str) -> None:
    """One partition, no further step: there are two leaders if each file has a quorum of servers that have that file.

    They are impossible if no partition of the running servers has a quorum by each file.
    """
    folders = shipped(old), shipped(new)
    change = whole(*folders)
    sids = change.sids
    for applied in (frozenset(some) for count in range(len(sids) + 1) for some in combinations(sids, count)):
        stage = replace(change, applied=applied)
        behind = stage.running - stage.renewed
        asked = RunSpec(stage, (), None, Question.ELECTION, always=("OneLeader",))
        leading = (replace(asked, leader=sid) for sid in sorted(may_lead(stage), reverse=True))
        begun = next(filter(leads_first, leading), None)
        if begun is None:
            continue
        outcome = limited(replace(begun, faults={PARTITIONS: 1}, zab=False), 1.0).outcome
        if stage.old.view.contains_quorum(behind) and stage.new.view.contains_quorum(stage.renewed):
            assert outcome is SafetyVerdict.UNSAFE, applied
        elif not may_split(stage, ()):
            assert outcome is SafetyVerdict.SAFE, applied


def test_the_rest_of_a_safe_order_is_safe(tmp_path: Path) -> None:
    """The order 4, 1, 3, 2, 5 is safe: two old and three new servers never run together. It stopped after 4 and 1."""
    now = state(put(tmp_path, s1="five", s2="three", s3="three", s4="five"), "three", "five")
    folders = shipped("three"), shipped("five")
    made = plan(PlanRequest(*folders, faults=0, now=now, leader=2), partial(limited, states=40_000))
    assert [step.sid for step in made.direct.orders[0].steps] == [3, 2, 5]
    assert made.direct.answer(Question.ELECTION, faulty=False).outcome is SafetyVerdict.SAFE
    assert made.direct.outcome is not SafetyVerdict.UNSAFE


def test_a_state_without_a_leader_is_explored_as_well(tmp_path: Path) -> None:
    """Server 2 has {1, 2, 3} and server 3 has {3, 4, 5}: neither is followed by a quorum of its file."""
    folders = folder_of(tmp_path / "old", (1, 2, 3)), folder_of(tmp_path / "new", (3, 4, 5))
    made = plan(PlanRequest(*folders, faults=0, now=Interruption("now", frozenset({1, 3}), ())), limited)
    assert made.direct.runs and made.back is not None and made.back.runs


@pytest.mark.parametrize(("files", "done"), [("five", True), ("three", False)])
def test_a_state_with_one_file_for_all_needs_no_run_in_the_direction_without_steps(files: str, done: bool) -> None:
    """Quorums of one file meet, for any other file."""

    made = plan_of("three", "five", unfinished, now=state(FOLDERS / files, "three", "five"))
    assert made.back is not None
    finished = made.direct if done else made.back
    assert (finished.outcome, finished.runs, finished.orders) == (SafetyVerdict.SAFE, [], [])


def test_the_way_back_to_an_old_host_is_never_safe(tmp_path: Path) -> None:
    """The disk there lacks the writes that the server acknowledged on its new host."""
    moved = edited(tmp_path, "three", ("zoo3.example", "new3.example"))
    made = plan_of("three", moved, fine, now=Interruption("now", frozenset({3}), ()))
    assert made.back is not None and made.back.stage.outdated == {3}
    assert {made.back.answer(question, faulty=False).outcome for question in Question} == {SafetyVerdict.OPEN}


HEAVIER = "".join(f"server.{sid}=z{sid}:2888:3888\nweight.{sid}={3 if sid == 2 else 1}\n" for sid in (1, 2, 3, 4))
EQUAL = HEAVIER.replace("weight.2=3", "weight.2=1")
GROUP = f"{HEAD}group.1=1:2:3:4\n"


def test_the_rest_of_an_order_stays_the_same_where_weights_change(tmp_path: Path) -> None:
    """By the new file server 2 finds no leader until most weights are new, so it goes last; so it does after a step.

    Done so on real servers of 3.9.5, from the plan and from the state after one step.
    """
    folders = folder_with(tmp_path / "old", GROUP + EQUAL), folder_with(tmp_path / "new", GROUP + HEAVIER)

    def steps_of_plan(now: Interruption | None = None) -> dict[int, list[int]]:
        made = plan(PlanRequest(*folders, faults=0, now=now, leader=4, how=Way.ONE_BY_ONE), limited)
        assert made.outcome is SafetyVerdict.SAFE and not made.direct.orders[0].vain
        return {order.leader: [step.sid for step in order.steps] for order in made.direct.orders}

    whole_order = steps_of_plan()[4]
    assert whole_order[-1] == 2
    first = whole_order[0]
    assert steps_of_plan(Interruption("now", frozenset({first}), ()))[4] == whole_order[1:]


def test_a_roll_out_goes_on_from_a_state_with_one_leader_and_says_so(tmp_path: Path) -> None:
    """A server of the step before still looks for a leader if nobody has waited for it; the plan has waited."""
    now = state(put(tmp_path, s1="four", s2="three", s3="three", s4="four"), "three", "four")
    made = planned(now, "three", "four", leader=3)
    assert all(
        result.spec.opening == ({"settle": [1, 2, 3, 4]},) for result in made.direct.runs if not result.spec.done
    )
    (check,) = made.checks_between
    assert check is not None and (check.step, check.running, check.renewed) == (1, (1, 2, 3, 4), False)
    assert data(made)["direct"]["condition"]["running"] == [1, 2, 3, 4]


@pytest.mark.parametrize("gone", [1, 2])
def test_the_rest_of_an_order_stays_the_same_where_a_voter_is_removed(tmp_path: Path, gone: int) -> None:
    """A server with the new file finds no leader by the votes of {2, 3} or {1, 3} until the third server is stopped."""
    folders = folder_of(tmp_path / "old", {1, 2, 3}), folder_of(tmp_path / "new", {1, 2, 3} - {gone})

    def orders(now: Interruption | None = None) -> dict[int, list[int]]:
        made = plan(PlanRequest(*folders, faults=0, now=now, how=Way.ONE_BY_ONE), limited)
        assert made.outcome is SafetyVerdict.SAFE
        return {order.leader: [step.sid for step in order.steps] for order in made.direct.orders}

    wholes, rests = orders(), orders(Interruption("now", frozenset({gone}), ()))
    other = 3 - gone
    assert {leader: wholes[leader] for leader in (other, 3)} == {other: [gone, 3, other], 3: [gone, other, 3]}
    assert all(wholes[leader][1:] == rests[leader] for leader in (other, 3))


def test_every_server_that_may_lead_now_is_named_with_its_order() -> None:
    """4 and 1 have their new files. The order 2, 3, 5 is that of 3, and of 1, which is restarted no more."""
    folders = shipped("three"), shipped("five")
    made = plan(PlanRequest(*folders, faults=0, now=Interruption("now", frozenset({1, 4}), ())), limited)
    orders = {order.leader: [step.sid for step in order.steps] for order in made.direct.orders}
    assert orders == {3: [2, 3, 5], 2: [3, 2, 5], 1: [2, 3, 5]}
    text = markdown(made)
    assert "**Server 3 or 1 leads now**:" in text and "| 2 | 3, 2, 5 |" in text


def test_the_rest_of_an_order_stays_the_same_where_the_leader_restarts_first(tmp_path: Path) -> None:
    """Server 1 leads, and its port changes, so it goes first. Then 2 leads alone, and goes last, after observer 5."""
    peers = "server.1=z1:{}:3888\nserver.2=z2:2888:3888\nserver.5=z5:2888:3888:observer\n"
    folders = (folder_with(tmp_path / str(port), HEAD + peers.format(port)) for port in (2888, 2889))
    request = PlanRequest(*folders, faults=0, how=Way.ONE_BY_ONE)
    (first,) = (order for order in plan(request, limited).direct.orders if order.leader == 1)
    rests = plan(replace(request, now=Interruption("now", frozenset({1}), ())), limited).direct.orders
    assert [step.sid for step in first.steps] == [1, 5, 2]
    assert {tuple(step.sid for step in rest.steps) for rest in rests} == {(5, 2)}
