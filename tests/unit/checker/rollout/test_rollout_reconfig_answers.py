"""The verdicts on `reconfig`: its questions as scenarios, the conclusions from runs, and the comparison with restarts.

The conclusions are tested with made-up runs. The runs with the engine are small: three servers and a joiner.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from checker.engine import Limits
from checker.rollout import PlanRequest, SafetyVerdict, plan
from checker.rollout.answer import Plan
from checker.rollout.orders import Way
from checker.rollout.planner import is_asked
from checker.rollout.reconfig.answers import (
    DEFECTS,
    FaultBudget,
    Ground,
    Preference,
    ReconfigAnswer,
    ReconfigSpec,
    WayVerdicts,
    leaders_of,
    stage_of,
)
from checker.rollout.reconfig.commands import MembershipCommand, RouteKind, at_once, one_at_a_time
from checker.rollout.runs import RunResult, job_of, run_within
from checker.rollout.scenarios import CRASHES, DISCONNECTS, PARTITIONS, SAFE_DATA, Question, RunSpec
from checker.rollout.stages import whole
from spec.quorum import Sid, majority_view
from tests.support.reconfig_folders import dynamic_folder
from tests.support.rollout_runs import made_up

LINES = {sid: f"zk{sid}:2888:3888:participant;2181" for sid in range(1, 7)}
Rule = Callable[[ReconfigSpec], SafetyVerdict]


def asked(tmp_path: Path, old: tuple[Sid, ...], new: tuple[Sid, ...], **keys: object) -> PlanRequest:
    before, after = dynamic_folder(tmp_path / "before", old), dynamic_folder(tmp_path / "after", new)
    return replace(PlanRequest(before, after), **keys)  # type: ignore[arg-type]


def judged(request: PlanRequest, rule: Rule) -> Plan:
    """The plan, with the verdicts of `rule` for the runs about commands; restarts are never decided."""

    def runner(spec: RunSpec, seconds: float) -> RunResult:
        return made_up(spec, rule(spec) if isinstance(spec, ReconfigSpec) else SafetyVerdict.OPEN)

    return plan(request, runner)


def answer_of(made: Plan) -> ReconfigAnswer:
    assert made.by_reconfig is not None
    return made.by_reconfig


def safe(_: ReconfigSpec) -> SafetyVerdict:
    return SafetyVerdict.SAFE


def replaces(spec: ReconfigSpec) -> bool:
    return spec.command is not None and len(spec.command.named) == len(spec.command.leaving) == 1


# The conclusions.


def test_the_plan_is_safe_if_every_run_was_explored_to_the_end(tmp_path: Path) -> None:
    made = judged(asked(tmp_path, (1, 2, 3), (1, 2, 3, 4)), safe)
    assert (made.verdict, int(made.exit_code)) == (SafetyVerdict.SAFE, 22), "22: the files alone are not safe"
    assert answer_of(made).comparison == (Preference.RECONFIG, Ground.BETTER_VERDICT)


def test_a_run_that_is_not_finished_leaves_the_plan_undecided(tmp_path: Path) -> None:
    def rule(spec: ReconfigSpec) -> SafetyVerdict:
        return SafetyVerdict.OPEN if spec.faults.get(CRASHES) else SafetyVerdict.SAFE

    made = judged(asked(tmp_path, (1, 2, 3), (1, 2, 3, 4)), rule)
    assert (made.verdict, int(made.exit_code)) == (SafetyVerdict.OPEN, 20)
    assert answer_of(made).comparison == (Preference.RECONFIG, Ground.BETTER_WITHOUT_FAULTS)


@pytest.mark.parametrize(("pair", "verdict"), [("open", SafetyVerdict.SAFE), ("unsafe", SafetyVerdict.UNSAFE)])
def test_a_search_under_two_faults_counts_only_if_it_finds_something(
    tmp_path: Path, pair: str, verdict: SafetyVerdict
) -> None:
    found = SafetyVerdict.UNSAFE if pair == "unsafe" else SafetyVerdict.OPEN

    def rule(spec: ReconfigSpec) -> SafetyVerdict:
        return found if sum(spec.faults.values()) == 2 else SafetyVerdict.SAFE

    (route,) = answer_of(judged(asked(tmp_path, (1, 2, 3), (1, 2, 3, 4)), rule)).routes
    assert (route.outcome, route.verdict(FaultBudget.PAIR)) == (verdict, found)


def test_the_route_with_the_better_verdict_is_followed(tmp_path: Path) -> None:
    def together_is_unsafe(spec: ReconfigSpec) -> SafetyVerdict:
        return SafetyVerdict.UNSAFE if replaces(spec) and spec.faults else SafetyVerdict.SAFE

    def single_is_unsafe(spec: ReconfigSpec) -> SafetyVerdict:
        return SafetyVerdict.SAFE if replaces(spec) else SafetyVerdict.UNSAFE

    kinds = []
    for number, rule in enumerate((together_is_unsafe, single_is_unsafe)):
        answer = answer_of(judged(asked(tmp_path / str(number), (1, 2, 3), (1, 2, 4)), rule))
        kinds.append([(route.kind, route.outcome) for route in answer.routes])
    one, together = RouteKind.ONE_AT_A_TIME, RouteKind.AT_ONCE
    assert kinds == [
        [(one, SafetyVerdict.SAFE), (together, SafetyVerdict.UNSAFE)],
        [(together, SafetyVerdict.SAFE), (one, SafetyVerdict.UNSAFE)],
    ]


def test_of_routes_with_equal_verdicts_the_one_whose_quorums_meet_is_followed(tmp_path: Path) -> None:
    answer = answer_of(judged(asked(tmp_path, (1, 2, 3), (1, 2, 4)), safe))
    assert [(route.kind, route.quorums_meet) for route in answer.routes] == [
        (RouteKind.ONE_AT_A_TIME, True),
        (RouteKind.AT_ONCE, False),
    ]


def test_a_violation_ends_the_search_of_its_route(tmp_path: Path) -> None:
    made = judged(asked(tmp_path, (1, 2, 3), (1, 2, 3, 4)), lambda _: SafetyVerdict.UNSAFE)
    assert len(answer_of(made).runs) == 1
    (route,) = answer_of(made).routes
    assert route.left_out == {FaultBudget.ASKED, FaultBudget.PAIR}
    assert made.reconfig_route is None, "undecided restarts are safer than an unsafe command"
    assert answer_of(made).comparison == (Preference.RESTARTS, Ground.BETTER_VERDICT)


@pytest.mark.parametrize(
    ("outcome", "without", "expected"),
    [
        (SafetyVerdict.SAFE, SafetyVerdict.SAFE, (Preference.RECONFIG, Ground.BRINGS_IT_ABOUT)),
        (SafetyVerdict.STALLS, SafetyVerdict.SAFE, (Preference.RECONFIG, Ground.BETTER_VERDICT)),
        (SafetyVerdict.UNSAFE, SafetyVerdict.UNSAFE, (Preference.RECONFIG, Ground.BETTER_VERDICT)),
    ],
)
def test_the_better_verdict_is_the_safer_way(
    tmp_path: Path,
    outcome: SafetyVerdict,
    without: SafetyVerdict,
    expected: tuple[Preference, Ground],
) -> None:
    answer = answer_of(judged(asked(tmp_path, (1, 2, 3), (1, 2, 3, 4)), safe))
    assert replace(answer, restarts=WayVerdicts(outcome, without)).comparison == expected


def test_two_unsafe_ways_have_no_safer_one(tmp_path: Path) -> None:
    made = judged(asked(tmp_path, (1, 2, 3), (1, 2, 3, 4)), lambda _: SafetyVerdict.UNSAFE)
    unsafe = WayVerdicts(SafetyVerdict.UNSAFE, SafetyVerdict.UNSAFE)
    assert replace(answer_of(made), restarts=unsafe).comparison == (Preference.NEITHER, Ground.BOTH_UNSAFE)


def test_a_mixed_ensemble_is_refused_without_a_run(tmp_path: Path) -> None:
    old = dynamic_folder(tmp_path / "a", (1, 2, 3), disabled=(2,))
    made = judged(PlanRequest(old, dynamic_folder(tmp_path / "b", (1, 2, 3, 4))), safe)
    assert not made.runs and int(made.exit_code) == 20
    assert answer_of(made).comparison == (Preference.RESTARTS, Ground.REFUSED)


@pytest.mark.parametrize(
    "keys", [{"order": (4, 1, 2, 3)}, {"how": Way.STOP_ALL}, {"in_one_go": True}, {"down": frozenset({1})}]
)
def test_a_question_about_restarts_is_not_compared_with_reconfig(tmp_path: Path, keys: dict[str, object]) -> None:
    request = asked(tmp_path, (1, 2, 3), (1, 2, 3, 4), **keys)
    assert not is_asked(request, whole(request.old, request.new))


def test_files_without_reconfig_enabled_are_not_compared_with_reconfig(tmp_path: Path) -> None:
    old = dynamic_folder(tmp_path / "a", (1, 2, 3), disabled=(1, 2, 3))
    new = dynamic_folder(tmp_path / "b", (1, 2, 3, 4), disabled=(1, 2, 3, 4))
    assert not is_asked(PlanRequest(old, new), whole(old, new))


def test_a_search_that_a_violation_has_ended_calls_nothing_safe(tmp_path: Path) -> None:
    """One command that replaces 3 is unsafe with 2 as the leader; 3 as the leader was not asked about."""

    def rule(spec: ReconfigSpec) -> SafetyVerdict:
        return SafetyVerdict.UNSAFE if replaces(spec) and spec.faults else SafetyVerdict.SAFE

    together = answer_of(judged(asked(tmp_path, (1, 2, 3), (1, 2, 4)), rule)).routes[1]
    assert [result.spec.leader for result in together.results(FaultBudget.NONE)] == [2]
    assert together.verdict(FaultBudget.NONE) is SafetyVerdict.OPEN


# The questions.


def spec_of(command: MembershipCommand, leader: Sid, writes: int = 0, **faults: int) -> ReconfigSpec:
    return ReconfigSpec(
        stage_of(command), (), leader, Question.COMMITS, faults, writes=writes, elections=max(1, sum(faults.values())),
        always=SAFE_DATA, variants=DEFECTS, command=command,
    )  # fmt: skip


def added() -> MembershipCommand:
    (command,) = one_at_a_time(majority_view((1, 2, 3)), majority_view((1, 2, 3, 4)), LINES)
    return command


def replaced() -> MembershipCommand:
    (command,) = at_once(majority_view((1, 2, 3)), majority_view((1, 2, 4)), LINES)
    return command


def test_both_kinds_of_first_leaders_are_asked_about() -> None:
    """Of {1, 2, 3} to {1, 2, 4}: 2 stays a voter, 3 hands the leadership over."""
    assert leaders_of(replaced()) == (2, 3)
    assert leaders_of(added()) == (3,)


def test_a_question_has_the_defects_of_the_release_and_the_first_leader() -> None:
    spec = spec_of(added(), 3)
    model = job_of(spec).model
    text = spec.text
    assert {each.value for each in DEFECTS} == {
        "pending-view-activated", "last-seen-forgotten", "epoch-of-active-view", "activation-not-counted",
    }  # fmt: skip
    assert f"variants: [{', '.join(each.value for each in DEFECTS)}]" in text
    assert "- reconfig:\n    add: [4]\n" in text
    assert "server.4" in model.index and "3: {file: members-1-2-3.cfg, epoch: 1}" in text


def test_a_promoted_observer_keeps_its_file() -> None:
    (command,) = one_at_a_time(majority_view((1, 2, 3), (4,)), majority_view((1, 2, 3, 4)), LINES)
    spec = spec_of(command, 3)
    assert "joiner" not in spec.text
    (dynamic,) = (text for name, text in spec.files.items() if ".dynamic." in name and "observers" in name)
    assert "server.4=zk4:2888:3888:observer;2181" in dynamic
    assert job_of(spec).model.columns


def test_adding_one_voter_is_explored_to_the_end() -> None:
    """Every quorum of three meets every quorum of four, so the defects of 3.9.5 give no second leader."""
    result = run_within(spec_of(added(), 3, **{DISCONNECTS: 1, PARTITIONS: 1}), Limits())
    assert result.outcome is SafetyVerdict.SAFE and result.complete


def test_a_replacement_in_one_command_has_two_leaders_of_one_epoch() -> None:
    """The pending configuration is activated (seen on 3.9.5): {1, 3} and {2, 4} each elect a leader."""
    result = run_within(spec_of(replaced(), 2, **{DISCONNECTS: 1, PARTITIONS: 1}), Limits())
    assert (result.outcome, result.prop) == (SafetyVerdict.UNSAFE, "Leadership")


def test_without_the_defects_a_replacement_in_one_command_has_no_second_leader() -> None:
    """The control: the corrected protocol, to the depth at which the defect shows."""
    spec = replace(spec_of(replaced(), 2, **{DISCONNECTS: 1, PARTITIONS: 1}), variants=())
    result = run_within(spec, Limits(depth=15))
    assert result.found is None and result.depth == 15
