"""The state after a step that fails: the files at that time, and verdicts that depend on a proof or on a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from checker.engine import Limits
from checker.rollout import PlanRequest, SafetyVerdict, plan
from checker.rollout.answer import Failure, Plan, ReleaseAnswer, failures
from checker.rollout.claims import Reason
from checker.rollout.disks import DiskHazard
from checker.rollout.files.differences import Interruption
from checker.rollout.orders import steps_of
from checker.rollout.output.data import data
from checker.rollout.output.markdown import markdown
from checker.rollout.route_verdict import Order, PlanRoute, pairs_of
from checker.rollout.runs import RunResult, run, run_within
from checker.rollout.scenarios import OF_RELEASES, Question, ReleaseChange, RunSpec
from checker.rollout.stages import reverse
from spec.releases import Release
from tests.support.rollout_runs import change_of, edited, fine, made_up, plan_of, shipped


def assessment(old: str, new: str, order: tuple[int, ...], *outcomes: tuple[Question, str, SafetyVerdict]) -> PlanRoute:
    """A stage with an order and a made-up run for each question, kind of fault and outcome."""
    of = change_of(old, new)
    steps = steps_of(of, order)
    made = PlanRoute(of, pairs_of(of), 1, [Order(2, steps)])
    for question, kind, outcome in outcomes:
        spec = RunSpec(of, steps, 2, question, {kind: 1} if kind else {})
        made.runs.append(made_up(spec, outcome, states=100, name=f"{question} {kind}"))
    return made


def rows(made: PlanRoute) -> tuple[Failure, ...]:
    return failures(made, made.orders[0])


ALL = [
    (question, kind, SafetyVerdict.SAFE)
    for question in (Question.ELECTION, Question.COMMITS)
    for kind in ("", "partitions", "crashes", "disconnects")
]


def test_each_state_has_the_files_of_its_time() -> None:
    found = rows(assessment("three", "four", (4, 1, 3, 2)))
    assert [(row.number, str(row.step), row.new, row.old) for row in found] == [
        (1, "start 4", (), (1, 2, 3)),
        (2, "restart 1", (4,), (2, 3)),
        (3, "restart 3", (1, 4), (2,)),
        (4, "restart 2", (1, 3, 4), ()),
    ]
    assert [[str(step) for step in row.undo] for row in found][:3] == [
        ["stop 4"],
        ["restart 1", "stop 4"],
        ["restart 3", "restart 1", "stop 4"],
    ]


def test_a_server_that_goes_is_started_again_on_the_way_back() -> None:
    found = rows(assessment("four", "three", (4, 1, 2, 3)))
    assert [(row.new, row.old) for row in found] == [((), (1, 2, 3)), ((), (2, 3)), ((1,), (3,)), ((1, 2), ())]
    assert [str(step) for step in found[1].undo] == ["restart 1", "start 4"]


def test_the_way_back_waits_for_no_server_while_one_may_lead_that_its_old_file_does_not_know() -> None:
    """Real 3.9.5: 4 leads when 2 was restarted, and 2 with its old file is LOOKING until 1 and 4 are no quorum."""
    found = rows(assessment("three", "five", (4, 1, 3, 2, 5)))
    assert [[step.wait for step in row.undo] for row in found[:4]] == [
        [True],
        [True, True],
        [True, True, True],
        [False, True, True, True],
    ]


def test_service_without_the_failed_server_is_a_matter_of_quorums() -> None:
    """Four become three, 4 first: 2 and 3 are two of four by the old file; later 1 and 2 are two of three."""
    assert [row.serves for row in rows(assessment("four", "three", (4, 1, 2, 3)))] == [True, False, True, True]


def test_a_proof_covers_both_directions_from_every_state() -> None:
    for row in rows(assessment("three", "four", (4, 1, 3, 2))):
        assert [answer.outcome for answer in (row.going_on, row.going_back)] == [SafetyVerdict.SAFE] * 2
        assert {answer.reason for answer in (row.going_on, row.going_back)} == {Reason.PROVED}


def test_the_proof_of_an_order_covers_the_way_on_and_the_way_back_until_the_last_stage_begins() -> None:
    """Server 5 is started when all others have the new file. From then on no server may have the old one."""
    found = rows(assessment("three", "five", (4, 1, 3, 2, 5)))
    assert {row.going_on.reason for row in found} == {Reason.PROVED_IN_ORDER}
    assert [row.going_back.outcome for row in found] == [SafetyVerdict.SAFE] * 4 + [SafetyVerdict.OPEN]


def test_the_way_on_of_a_proved_order_has_the_check_before_the_last_start() -> None:
    """Until server 5 has begun to start, its check is still to be made; before the first step it was made."""
    found = rows(assessment("three", "five", (4, 1, 3, 2, 5)))
    assert [[each.step for each in row.going_on.conditions] for row in found] == [[5]] * 4 + [[]]
    assert {each.running for row in found for each in row.going_on.conditions} == {(1, 2, 3, 4)}


def test_a_disk_that_loses_a_write_is_no_way_on_and_no_way_back_by_the_proof() -> None:
    """Server 3 starts with an empty disk under its old id, which no proof about quorums covers."""
    made = assessment("three", "four", (4, 1, 3, 2), (Question.GIVEN_DISKS, "", SafetyVerdict.UNSAFE))
    made.disks = {3: DiskHazard.EMPTY}
    assert made.proved
    for row in rows(made):
        assert (row.going_on.outcome, row.going_on.reason) == (SafetyVerdict.UNSAFE, Reason.FOUND)
        assert row.going_back.outcome is SafetyVerdict.OPEN


def test_a_disk_leaves_no_proof_of_an_order() -> None:
    made = assessment("three", "five", (4, 1, 3, 2, 5), (Question.GIVEN_DISKS, "", SafetyVerdict.SAFE))
    made.disks = {3: DiskHazard.EMPTY}
    assert {row.going_on.outcome for row in rows(made)} == {SafetyVerdict.OPEN}


def test_an_empty_disk_under_a_new_id_is_covered_by_the_proof() -> None:
    made = assessment("three", "four", (4, 1, 3, 2))
    made.disks = {4: DiskHazard.EMPTY}
    assert {row.going_on.reason for row in rows(made)} == {Reason.PROVED}


def with_release(*runs: tuple[str, SafetyVerdict]) -> tuple[set[Reason], set[Reason]]:
    """The bases of both directions for a release with defects, from runs with a kind of fault and an outcome."""
    made = assessment("three", "four", (4, 1, 3, 2))
    release = Release(3, 8, 4)
    writing = tuple(
        made_up(RunSpec(made.stage, made.orders[0].steps, 2, Question.DEFECTS, {kind: 1} if kind else {}), outcome)
        for kind, outcome in runs
    )
    route = replace(made.blank, runs=list(writing), asked=OF_RELEASES)
    found = failures(made, made.orders[0], releases=ReleaseAnswer(ReleaseChange(release, release), (route,)))
    return {row.going_on.reason for row in found}, {row.going_back.reason for row in found}


def test_the_ways_on_and_back_regard_the_defects_of_a_release() -> None:
    """The runs about defects follow the plan, and a failed step is a crash in them. None goes back."""
    safe, unsafe, undecided = SafetyVerdict.SAFE, SafetyVerdict.UNSAFE, SafetyVerdict.OPEN
    back = {Reason.DEFECTS_NOT_EXPLORED}
    assert with_release(("", safe), ("crashes", safe)) == ({Reason.PROVED}, back)
    assert with_release(("", safe), ("crashes", unsafe)) == ({Reason.DEFECTS}, back)
    assert with_release(("", safe), ("crashes", undecided)) == ({Reason.DEFECTS_NOT_EXPLORED}, back)
    assert with_release(("", safe)) == ({Reason.DEFECTS_NOT_EXPLORED}, back), "no run has a server that fails"


def test_the_proof_of_an_order_says_nothing_about_another_one() -> None:
    made = assessment("three", "five", (4, 1, 3, 2, 5))
    elsewhere = replace(made.orders[0], steps=steps_of(made.stage, (4, 5, 1, 3, 2)))
    assert {row.going_on.outcome for row in failures(made, elsewhere)} == {SafetyVerdict.OPEN}


def test_without_a_proof_going_on_rests_on_runs_with_a_crash_and_going_back_on_nothing() -> None:
    covered = assessment("three", "five", (4, 5, 1, 3, 2), *ALL)
    assert {row.going_on.outcome for row in rows(covered)} == {SafetyVerdict.SAFE}
    assert {row.going_on.reason for row in rows(covered)} == {Reason.CRASH_EXPLORED}
    assert {row.going_back.outcome for row in rows(covered)} == {SafetyVerdict.OPEN}


@pytest.mark.parametrize("missing", range(len(ALL)))
def test_a_run_that_is_not_finished_leaves_going_on_undecided(missing: int) -> None:
    """The runs about leaders and about commits are both needed."""
    outcomes = [
        (question, kind, SafetyVerdict.OPEN if n == missing else each) for n, (question, kind, each) in enumerate(ALL)
    ]
    assert {row.going_on.outcome for row in rows(assessment("three", "five", (4, 5, 1, 3, 2), *outcomes))} == {
        SafetyVerdict.OPEN
    }


def test_runs_of_another_order_or_leader_say_nothing() -> None:
    made = assessment("three", "five", (4, 5, 1, 3, 2), *ALL)
    other = Order(3, made.orders[0].steps)
    assert {row.going_on.outcome for row in failures(made, other)} == {SafetyVerdict.OPEN}
    elsewhere = replace(made.orders[0], steps=steps_of(made.stage, (4, 5, 3, 1, 2)))
    assert {row.going_on.outcome for row in failures(made, elsewhere)} == {SafetyVerdict.OPEN}


def test_without_faults_nothing_is_known_of_a_failure_but_by_proof() -> None:
    made = assessment("three", "five", (4, 5, 1, 3, 2), *(each for each in ALL if not each[1]))
    made.faults = 0
    assert {row.going_on.outcome for row in rows(made)} == {SafetyVerdict.OPEN}


def test_an_unsafe_plan_is_unsafe_to_go_on_with_and_has_no_such_section() -> None:
    made = assessment("three", "five", (4, 5, 1, 3, 2), (Question.COMMITS, "", SafetyVerdict.UNSAFE))
    assert {row.going_on.outcome for row in rows(made)} == {SafetyVerdict.UNSAFE}
    folders = shipped("three"), shipped("five")
    assert "## If a step fails" not in markdown(Plan(PlanRequest(*folders), made))


def test_the_answer_says_which_check_is_before_a_way_on() -> None:
    made = plan_of("three", "five", fine, (4, 1, 3, 2, 5), 2)
    (order,) = data(made)["direct"]["orders"]
    later = [[each["step"] for each in row["going_on"]["conditions"]] for row in order["failures"]]
    assert later == [[5]] * 4 + [[]]
    assert "go on with the checks that follow: safe. Or" in markdown(made)
    section = markdown(made).partition("<summary>Each step, if it fails")[2].partition("</details>")[0]
    cells = [line.split(" | ")[2] for line in section.splitlines() if line.startswith("| ") and "restart" in line]
    assert cells[0] == "safe: proved in this order, with the check before step 5"


def test_versions_are_not_covered_by_the_proof() -> None:
    made = assessment("reconfig-three", "reconfig-three", (1, 2, 3))
    assert made.quorums_meet and {row.going_back.outcome for row in rows(made)} == {SafetyVerdict.OPEN}


def test_no_direction_is_safe_where_addresses_change(tmp_path: Path) -> None:
    """A server that returns to its old host finds its old disk, without the latest acknowledged writes."""
    of = change_of("three", edited(tmp_path, "three", ("zoo3.example", "new3.example")))
    steps = steps_of(of, (1, 2, 3))
    runs = [
        made_up(RunSpec(of, steps, 2, question, {kind: 1} if kind else {}), outcome, name=f"{question}{kind}")
        for question, kind, outcome in ALL
    ]
    made = PlanRoute(of, pairs_of(of), 1, [Order(2, steps)], runs)
    outcomes = {answer.outcome for row in rows(made) for answer in (row.going_on, row.going_back)}
    assert outcomes == {SafetyVerdict.OPEN}


def test_every_form_of_the_answer_has_the_states() -> None:
    made = plan_of("three", "four", fine, (4, 2, 1, 3), 2)
    (order,) = data(made)["direct"]["orders"]
    states = [(each["step"], each["server"], each["new"], each["old"]) for each in order["failures"]]
    assert states == [(1, 4, [], [1, 2, 3]), (2, 2, [4], [1, 3]), (3, 1, [2, 4], [3]), (4, 3, [1, 2, 4], [])]
    assert {each["going_back"]["verdict"] for each in order["failures"]} == {"safe"}
    text = markdown(made)
    assert "go on: safe. Or undo the steps backwards with the old files (waits: `--explain`): safe." in text
    proved = "safe: proved by the quorums | safe: proved by the quorums"
    assert f"| 2\\. restart 2 | yes | {proved} | restart 2, stop 4 |" in text


@pytest.mark.parametrize("number", range(4))
def test_no_run_from_a_state_of_the_plan_contradicts_the_proof(number: int) -> None:
    """Each state is explored in both directions, as an interrupted roll-out."""
    growth = change_of("three", "four")
    applied = frozenset(step.sid for step in steps_of(growth, (4, 1, 3, 2))[:number])
    folders = shipped("three"), shipped("four")

    def limited(spec: RunSpec, seconds: float) -> RunResult:
        return run_within(spec, Limits(states=5_000))

    made = plan(PlanRequest(*folders, faults=0, now=Interruption("now", applied, ())), limited)
    outcomes = {ran.outcome for ran in made.runs if ran.spec.question is not Question.HEALING}
    assert made.runs and outcomes <= {SafetyVerdict.SAFE, SafetyVerdict.OPEN}


def test_the_way_back_from_the_end_is_the_opposite_change() -> None:
    growth = change_of("three", "four", frozenset({1, 2, 3, 4}))
    back = reverse(growth)
    assert (back.applied, back.remaining, back.removed) == (frozenset(), (1, 2, 3, 4), (4,))


def test_the_way_back_to_files_without_reconfig_enabled_comes_to_a_stop(tmp_path: Path) -> None:
    """Seen twice on 3.9.5: without service until the last server has its old file.

    Before the leader is restarted, the others come back with their old files and follow it: seen on 3.9.5, too.
    """
    made = plan_of("three", edited(tmp_path, "three", more="reconfigEnabled=true\n"), fine)
    found = failures(made.direct, made.direct.orders[0])
    assert made.outcome is SafetyVerdict.SAFE
    assert [row.going_on.outcome for row in found] == [SafetyVerdict.SAFE] * 3
    assert [row.going_back.outcome for row in found] == [*[SafetyVerdict.SAFE] * 2, SafetyVerdict.STALLS]
    assert found[2].going_back.reason is Reason.RECONFIG_OFF


def test_the_way_back_is_not_covered_once_the_proof_is_about_the_new_file_alone() -> None:
    """Servers 1 to 4 have the file of five, and 5 starts. By the old file {1, 2} decide, by the new one {3, 4, 5}."""
    folders = shipped("three"), shipped("five")
    made = plan(PlanRequest(*folders, now=Interruption("now", frozenset({1, 2, 3, 4}), ())), run)
    assert made.outcome is made.back.outcome is SafetyVerdict.SAFE if made.back else False
    for order in made.direct.orders:
        (row,) = failures(made.direct, order)
        assert (row.going_on.outcome, row.going_back.outcome) == (SafetyVerdict.SAFE, SafetyVerdict.OPEN)
    text = markdown(made)
    assert "The way back takes it that server 5 never ran." in text
    assert text.count("**Check first**: ") == 1
    assert "`--explain` prints the steps of the way back" in markdown(made, evidence=False)
