"""Roll-outs of a release: the known defects of ZooKeeper along the steps of a plan, and upgrades.

Expected values: the releases of a defect are those of docs/reference-releases.md. Findings A and B lost acknowledged
writes of real servers of 3.8.0 and 3.9.5 after a lost connection. The verdicts are repeated with the plain engine.
"""

import json

import pytest

from checker.command import ExitCode
from checker.engine import Limits, plain
from checker.rollout.answer import Plan, PlanRequest
from checker.rollout.orders import Way
from checker.rollout.output.markdown import markdown
from checker.rollout.output.recommendation import notes
from checker.rollout.planner import plan
from checker.rollout.runs import Runner, RunResult, SafetyVerdict, job_of, run
from checker.rollout.scenarios import Question, ReleaseChange, RunSpec
from spec.releases import Release
from spec.variants import Variant
from tests.support.command_line import cli
from tests.support.rollout_runs import FOLDERS, made_up, shipped

SAFE, UNSAFE = SafetyVerdict.SAFE, SafetyVerdict.UNSAFE
OLD, NEW = Release(3, 8, 4), Release(3, 9, 5)


def planned(old: str, new: str, releases: ReleaseChange | None, runner: Runner = run, **options: object) -> Plan:
    folders = (shipped(each) for each in (old, new))
    return plan(PlanRequest(*folders, releases=releases, how=Way.ONE_BY_ONE, **options), runner)  # type: ignore[arg-type]


SUSPECTS = {Variant.ACKS_SURVIVE_TRUNCATION, Variant.SYNC_FROM_APPLIED, Variant.TRUNC_AFTER_SNAP}


def of_suspects(spec: RunSpec, seconds: float) -> RunResult:
    """Explore a question. A question about one defect alone is explored if a test asks about that defect."""
    return run(spec, seconds) if SUSPECTS.issuperset(spec.variants) else made_up(spec, SAFE)


@pytest.fixture(scope="module")
def upgrade() -> Plan:
    """From 3.8.4 to 3.9.5, three servers, one fault."""
    return planned("three", "three", ReleaseChange(OLD, NEW), of_suspects, leader=3)


def test_an_upgrade_restarts_every_server_with_the_new_release(upgrade: Plan) -> None:
    (order,) = upgrade.direct.orders
    assert sorted(step.sid for step in order.steps) == [1, 2, 3]
    assert order.steps[-1].sid == 3, "the leader is last"
    assert upgrade.releases is not None
    text = upgrade.releases.runs_about(Question.DEFECTS)[0].spec.text
    assert text.count("like: 3.8.4") == text.count("like: 3.9.5") == 3
    text = markdown(upgrade)
    assert "Every server gets `" in text and "and ZooKeeper 3.9.5. Wait:" in text


def test_without_a_fault_no_acknowledged_write_is_lost(upgrade: Plan) -> None:
    """Real servers agree: 45 roll-outs of 3.9.5 under writes lost none (docs/how-to-check-a-roll-out.md)."""
    assert upgrade.releases is not None
    assert upgrade.releases.verdict(faulty=False) is SAFE


def test_a_lost_connection_is_enough_for_the_defects_that_real_servers_have_shown(upgrade: Plan) -> None:
    answer = upgrade.releases
    assert answer is not None and answer.finding is not None
    assert (upgrade.outcome, answer.verdict(), upgrade.exit_code) == (SAFE, UNSAFE, ExitCode.SAFETY)
    assert dict(answer.finding.spec.faults) == {"disconnects": 1}
    assert set(answer.culprits) == {Variant.ACKS_SURVIVE_TRUNCATION, Variant.SYNC_FROM_APPLIED}
    assert set(answer.change.defects) > SUSPECTS, "the third one doubles data at one server, and loses no answer"


def test_nothing_is_lost_while_nothing_is_written(upgrade: Plan) -> None:
    assert upgrade.releases is not None
    assert upgrade.releases.verdict(Question.QUIET_DEFECTS) is SAFE
    assert {tuple(each.spec.faults) for each in upgrade.releases.runs_about(Question.QUIET_DEFECTS)} == {
        (),
        ("disconnects",),
        ("crashes",),
        ("partitions",),
    }
    assert "Let nothing be written meanwhile: with a fault, " in markdown(upgrade).splitlines()[0]


def test_the_plain_engine_agrees_with_each_run_without_writes(upgrade: Plan) -> None:
    assert upgrade.releases is not None
    for result in upgrade.releases.runs_about(Question.QUIET_DEFECTS):
        again = plain.explore(job_of(result.spec).model, Limits())
        assert not again.violations, result.spec.name
        assert again.states == result.states


def test_the_plain_engine_finds_the_same_lost_write(upgrade: Plan) -> None:
    assert upgrade.releases is not None and upgrade.releases.finding is not None
    finding = upgrade.releases.finding
    again = plain.explore(job_of(finding.spec).model, Limits())
    assert [found.prop.name for found in again.violations] == [finding.prop]
    assert again.violations[0].depth == finding.depth


def test_an_upgrade_is_compared_with_the_same_restarts_of_the_old_release(upgrade: Plan) -> None:
    """Both releases have the defects that lost writes of real servers of 3.8.0 and 3.9.5."""
    assert upgrade.releases is not None and upgrade.releases.staying is not None
    staying = upgrade.releases.staying
    assert "like: 3.9.5" not in staying.spec.text and staying.outcome is UNSAFE
    again = plain.explore(job_of(staying.spec).model, Limits())
    assert [found.prop.name for found in again.violations] == [staying.prop]
    assert "**Staying at 3.8.4 is not safer**" in markdown(upgrade)


def of_the_upgrade(spec: RunSpec, seconds: float) -> RunResult:
    """A run of an upgrade with a fault loses a write; no other one does."""
    lost = spec.releases is not None and spec.releases.is_upgrade and spec.faults and spec.writes
    return made_up(spec, UNSAFE if lost else SAFE)


def test_staying_is_safer_where_the_old_release_does_not_lose_the_write() -> None:
    made = planned("three", "three", ReleaseChange(Release(3, 9, 5), Release(3, 6, 4)), of_the_upgrade, leader=3)
    assert made.releases is not None and made.releases.staying is not None
    assert made.releases.staying.outcome is SAFE
    assert "**Staying at 3.9.5 is safer**" in "\n".join(notes(made))


def test_without_an_upgrade_nothing_is_compared() -> None:
    def loses(spec: RunSpec, seconds: float) -> RunResult:
        return made_up(spec, UNSAFE if spec.releases is not None and spec.faults and spec.writes else SAFE)

    made = planned("three", "three", ReleaseChange(NEW, NEW), loses, leader=3)
    assert made.releases is not None and made.releases.finding is not None and made.releases.staying is None


def test_an_upgrade_from_an_old_line_has_its_conditions_before_the_steps() -> None:
    """On real servers of 3.4.14 a server without a snapshot does not start with 3.9.5 (`tests/node`)."""
    made = planned("three", "three", ReleaseChange(Release(3, 4, 14), NEW), faults=0, leader=3)
    told = markdown(made)
    assert "**Before the first step:**" in told and "`snapshot.trust.empty=true`" in told
    assert "like: 3.4.14" in made.releases.runs_about(Question.DEFECTS)[0].spec.text if made.releases else False


def test_a_release_is_judged_along_a_change_of_members() -> None:
    made = planned("three", "four", ReleaseChange(NEW, NEW), leader=3, faults=0)
    assert made.releases is not None
    assert (made.outcome, made.verdict, made.exit_code) == (SAFE, SAFE, ExitCode.PASSED)
    assert "| the steps: SAFE | no acknowledged write is lost by a known defect of the release | SAFE: " in markdown(
        made
    )


def test_without_a_release_the_answer_is_about_the_protocol() -> None:
    made = planned("three", "four", None, leader=3, faults=0)
    assert made.releases is None
    assert made.exit_code is ExitCode.PASSED


def test_the_command_line_has_the_answer_for_machines() -> None:
    three = str(FOLDERS / "three")
    words = ["rollout", "--from", three, "--to", three, "--release", "3.8.4", "--to-release", "3.9.5", "--leader", "3"]
    ended = cli(*words, "--json", "--no-cache", "--faults", "0")
    found = json.loads(ended.out)
    assert ended.code == found["exit_code"] == ExitCode.PASSED
    assert (found["releases"]["before"], found["releases"]["after"]) == ("3.8.4", "3.9.5")
    assert (found["releases"]["while_clients_write"], found["releases"]["defects"]) == ("safe", [])
