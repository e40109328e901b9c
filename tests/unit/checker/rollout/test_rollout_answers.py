"""The answers about a roll-out: never more than was proved or explored, in every form, with the right exit code.

Tests of the wording use made-up runs; the command is tested on the shipped folders.
"""

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from checker.cli.main import main
from checker.job import Verdict
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.assessor import splits
from checker.rollout.inputs.folders import read_folder
from checker.rollout.orders import quorum_without, steps_of
from checker.rollout.output.data import data
from checker.rollout.output.markdown import markdown
from checker.rollout.output.sentences import answer_sentence
from checker.rollout.planner import plan
from checker.rollout.route_verdict import QUESTIONS, Order, PlanRoute, Reason, pairs_of
from checker.rollout.runs import RunResult, SafetyVerdict
from checker.rollout.scenarios import OF_RELEASES, Question, RunSpec
from checker.scenario import load
from tests.support.command_line import Ended, cli
from tests.support.rollout_runs import (
    FOLDERS,
    change_of,
    edited,
    fine,
    folder_of,
    made_up,
    never,
    plan_of,
    shipped,
    unfinished,
)


def assessed_of(old: str, new: str, outcomes: dict[tuple[Question, bool], SafetyVerdict], faults: int = 1) -> PlanRoute:
    """Return a stage with one made-up run for each given question."""
    stage = change_of(old, new)
    steps = steps_of(stage, stage.restarted)
    made = PlanRoute(stage, pairs_of(stage), faults, [Order(2, steps)])
    for (question, faulty), outcome in outcomes.items():
        spec = RunSpec(stage, steps, 2, question, {"partitions": 1} if faulty else {})
        made.runs.append(made_up(spec, outcome, states=100, name=f"{question} {faulty}"))
    return made


ALL_SAFE = {(question, faulty): SafetyVerdict.SAFE for question in Question for faulty in (False, True)}


def test_a_run_that_was_not_finished_is_never_called_safe_without_a_proof() -> None:
    outcomes = ALL_SAFE | {(Question.COMMITS, True): SafetyVerdict.OPEN}
    made = assessed_of("three", "five", outcomes)
    assert not made.proved
    assert made.answer(Question.COMMITS, faulty=True).outcome is SafetyVerdict.OPEN
    assert made.outcome is SafetyVerdict.OPEN


def test_a_proof_carries_what_was_not_explored_and_says_so() -> None:
    made = assessed_of("three", "four", ALL_SAFE | {(Question.COMMITS, True): SafetyVerdict.OPEN})
    answer = made.answer(Question.COMMITS, faulty=True)
    assert answer.outcome is SafetyVerdict.SAFE
    assert answer_sentence(answer) == "proved by the quorums; 1 run, 100 states, not explored to the end"


def test_a_violation_outweighs_a_proof() -> None:
    made = assessed_of("three", "four", ALL_SAFE | {(Question.COMMITS, False): SafetyVerdict.UNSAFE})
    assert made.proved and made.answer(Question.COMMITS, faulty=False).outcome is SafetyVerdict.UNSAFE
    assert made.answer(Question.COMMITS, faulty=True).reason is Reason.FOUND_WITHOUT_FAULTS
    assert made.outcome is SafetyVerdict.UNSAFE


def test_unfinished_healing_beside_a_proof_of_safety_is_reported_and_does_not_count() -> None:
    """A busy machine may not finish that search. The proved answers stay proved."""
    made = assessed_of("three", "four", ALL_SAFE | {(Question.HEALING, False): SafetyVerdict.OPEN})
    assert made.proved and made.outcome is SafetyVerdict.SAFE
    assert made.answer(Question.HEALING, faulty=False).outcome is SafetyVerdict.OPEN
    text = markdown(Plan(PlanRequest(shipped("three"), shipped("four")), made))
    assert "**Proved** for any order and any faults: never two leaders, no acknowledged write lost." in text
    assert "Not decided: whether all serve in the end." in text
    (row,) = [line for line in text.splitlines() if f"| {Question.HEALING.value} |" in line]
    assert [cell.split(":")[0].strip() for cell in row.split("|")[3:5]] == ["UNDECIDED", "SAFE"]


def test_unfinished_healing_without_a_proof_leaves_the_stage_undecided() -> None:
    made = assessed_of("three", "five", ALL_SAFE | {(Question.HEALING, False): SafetyVerdict.OPEN})
    assert not made.proved and made.outcome is SafetyVerdict.OPEN


def test_a_run_that_was_cut_off_leaves_the_runs_that_follow_its_steps_undecided() -> None:
    """The run about leaders finds waits in vain; a plan with such a wait ends early, and its runs are small."""
    made = assessed_of("three", "five", ALL_SAFE)
    made.orders = [replace(made.orders[0], open_run=replace(made.runs[0], outcome=SafetyVerdict.OPEN))]
    follow = [(question, faulty) for question, faulty in ALL_SAFE if question not in OF_RELEASES]
    outcomes = {made.answer(question, faulty=faulty).outcome for question, faulty in follow}
    assert not made.proved and outcomes == {SafetyVerdict.OPEN}


def test_what_was_never_run_is_undecided() -> None:
    assert assessed_of("three", "five", {}).outcome is SafetyVerdict.OPEN
    assert assessed_of("three", "four", {}).outcome is SafetyVerdict.OPEN


def test_at_most_k_faults_are_all_ways_of_sharing_them() -> None:
    assert list(splits(1, ("a", "b"))) == [{"a": 1}, {"b": 1}]
    assert list(splits(2, ("a", "b"))) == [{"a": 2}, {"a": 1, "b": 1}, {"b": 2}]
    assert list(splits(0, ("a",))) == []


def test_runs_that_reach_no_end_leave_everything_but_the_proof_undecided() -> None:
    """Without an engine, every run reports that it was not finished."""

    direct = plan_of("three", "five", unfinished, (4, 5, 1, 3, 2), 2)
    assert direct.outcome is SafetyVerdict.OPEN
    text = markdown(direct)
    assert "SAFE:" not in text.replace("UNSAFE:", "") and "all explored" not in text


def test_an_ensemble_that_is_too_large_to_explore_rests_on_the_proof_and_says_so(tmp_path: Path) -> None:
    """Eleven servers: the quorums of 11 and 12 meet (6 + 7 > 12), those of 11 and 13 do not (6 + 7 = 13)."""
    folders = {count: folder_of(tmp_path / str(count), range(1, count + 1)) for count in (11, 12, 13)}

    one = plan(PlanRequest(folders[11], folders[12]), never)
    assert one.direct.proved and one.outcome is SafetyVerdict.OPEN  # healing does not depend on quorums
    assert one.direct.answer(Question.COMMITS, faulty=True).reason is Reason.PROVED
    assert one.direct.answer(Question.HEALING, faulty=False).reason is Reason.TOO_LARGE
    two = plan(PlanRequest(folders[11], folders[13]), never)
    assert not two.direct.proved and [part.proved for part in two.stages] == [True, True]
    assert "None of its orders was run." in markdown(two)


def test_an_order_that_leaves_servers_as_they_are_is_not_called_safe() -> None:
    part = plan_of("three", "four", fine, (4, 2), 2)
    assert part.left_out == (1, 3)
    text = markdown(part)
    assert "safe as far as it goes, but it is not the whole change" in text.splitlines()[0]
    assert "servers 1 and 3 are not in the order" in text
    assert data(part)["exit_code"] == 20
    whole_one = plan_of("three", "four", fine, (4, 2, 1, 3), 2)
    assert (whole_one.left_out, data(whole_one)["exit_code"]) == ((), 0)


def test_a_step_that_leaves_no_quorum_running_is_told() -> None:
    """One of {1, 2, 3, 4} leaves: by the old file the other three are a quorum together, so none may restart."""
    stage = change_of("four", "three")
    steps = steps_of(stage, (4, 1, 2, 3))
    assert [quorum_without(stage, steps, step) for step in steps] == [True, False, True, True]
    last = steps_of(stage, (1, 2, 3, 4))
    assert [quorum_without(stage, last, step) for step in last] == [True, True, True, True]


# The command.


Command = Callable[..., Ended]


def rollout(*words: object) -> Ended:
    return cli("rollout", *words)


def between(old: str, new: str, *words: object) -> Ended:
    return rollout("--from", FOLDERS / old, "--to", FOLDERS / new, "--budget", "30s", *words)


def test_a_safe_order_ends_with_0_and_an_unsafe_one_with_12(tmp_path: Path) -> None:
    safe = between("three", "four", "--order", "4,1,3,2", "--leader", 2, "--faults", 0, "--how", "one-by-one")
    assert safe.code == 0 and safe.out.startswith("# This order is safe: 4, 1, 3, 2\n")
    assert "1. **Start server 4**" in safe.out
    report, traces, kept = tmp_path / "plan.md", tmp_path / "traces", tmp_path / "kept"
    words = (
        "--order",
        "2,1,3",
        "--leader",
        2,
        "--faults",
        0,
        "--how",
        "one-by-one",
        "--output",
        report,
        "--traces",
        traces,
    )
    unsafe = between("three", "five", *words, "--scenarios", kept, "--json")
    assert unsafe.code == 12
    answer = json.loads(unsafe.out)
    assert answer["verdict"] == "unsafe" and answer["exit_code"] == 12
    _same_as(answer, report.read_text(encoding="utf-8"))
    assert {path.suffix for path in traces.iterdir()} >= {".txt", ".json", ".mmd"}
    verdicts = {path.stem: load(path).expected for path in kept.rglob("*.yaml")}
    found = {stem.rpartition("-")[2] for stem, verdict in verdicts.items() if verdict is Verdict.VIOLATED}
    assert found == {"Leadership", "OneTxnPerZxid", "ReplicasAgree"}
    (split,) = [path for path in kept.rglob("*Leadership.yaml") if "leaders" in path.stem.split("-")]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["run", str(split)]) == 0, "a scenario that is kept gives the verdict that it states"


def _same_as(answer: dict[str, object], text: str) -> None:
    """Assert that the Markdown has a row for each question with the verdicts of the data, and every run found."""
    direct = answer["direct"]
    assert isinstance(direct, dict)
    for question in QUESTIONS:
        rows = [line.strip("| ").split(" | ") for line in text.splitlines() if question.value in line]
        verdicts = [each["verdict"] for each in direct["answers"] if each["question"] == question.name.lower()]
        cells = [row[2].split(":")[0].strip("*").lower() for row in rows if row[0].startswith("in one go: ")]
        assert cells == verdicts[:1]
    found = {run["property"] for run in direct["runs"] if run["property"]}
    assert text.count("<summary>The whole run</summary>") == len(found) == 3
    assert text.count("<details>") == text.count("</details>")


def test_without_an_order_the_files_of_the_stages_are_written_and_fit_together(tmp_path: Path) -> None:
    ended = between("three", "replaced", "--faults", 0, "--how", "one-by-one", "--stages", tmp_path)
    assert ended.code == 22
    assert ended.out.startswith("# Do it in two stages: add server 4, then remove server 3\n")
    assert read_folder(tmp_path / "stage-1").view.voters == {1, 2, 3, 4}
    assert read_folder(tmp_path / "stage-2").view.voters == {1, 2, 4}


def test_versions_without_options_end_in_a_verdict() -> None:
    """Configuration versions travel in messages, so the first leader is found message by message."""
    ended = between("reconfig-three", "reconfig-five", "--budget", "4s")
    assert ended.code == 20 and ended.out.startswith("# Not decided: ")


def test_versions_end_with_20() -> None:
    ended = between("reconfig-three", "reconfig-five", "--order", "2,1,3", "--leader", 2)
    assert ended.code == 20 and ended.out.startswith("# Not decided: ")


@pytest.mark.parametrize(("in_one_go", "code", "stages"), [(False, 22, 2), (True, 12, 0)])
def test_a_change_that_is_safe_only_in_stages_never_passes_a_gate(in_one_go: bool, code: int, stages: int) -> None:
    """The direct change is unsafe. Its stages are proved; without them it is the whole answer."""

    def unsafe_in_one_go(spec: RunSpec, seconds: float) -> RunResult:
        direct = spec.stage.title == "{1, 2, 3} to {1, 2, 4} (adds 4, removes 3)"
        return made_up(spec, SafetyVerdict.UNSAFE if direct else SafetyVerdict.SAFE)

    folders = (shipped("three"), shipped("replaced"))
    made = plan(PlanRequest(*folders, faults=0, in_one_go=in_one_go), unsafe_in_one_go)
    assert (made.exit_code, data(made)["exit_code"], len(made.stages)) == (code, code, stages)


@pytest.mark.parametrize(("how", "code"), [((), 22), (("--how", "one-by-one"), 0), (("--how", "parallel"), 12)])
def test_a_gate_passes_only_if_the_change_is_safe_however_it_is_applied(how: tuple[str, ...], code: int) -> None:
    """From three to five: proved one by one; with 4 and 5 started together, two leaders are elected (R10)."""
    ended = cli(
        "rollout", "--from", FOLDERS / "three", "--to", FOLDERS / "five", "--in-one-go", *how, "--budget", "4s",
        "--json",
    )  # fmt: skip
    assert (ended.code, json.loads(ended.out)["exit_code"]) == (code, code)


@pytest.mark.parametrize(("files", "code"), [("ready", 12), ("at-step", 0)])
def test_a_crash_brings_the_new_file_only_where_it_lies_ready(tmp_path: Path, files: str, code: int) -> None:
    """Server 3 is replaced by 4, and stopped first. A restart of 2 with the new file would let 2 and 4 lead alone."""
    edited(tmp_path / "new", "three", ("server.3=zoo3", "server.4=zoo4"))
    ended = cli(
        "rollout", "--from", FOLDERS / "three", "--to", tmp_path / "new", "--order", "3,4,2,1", "--leader", 1,
        "--files", files, "--how", "one-by-one",
    )  # fmt: skip
    assert ended.code == code
    assert ("**A crash may bring the new file**" in ended.out) == (files == "ready")
    assert ("**Files are copied at their step**" in ended.out) == (files == "at-step")
