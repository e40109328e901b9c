"""The answer about `reconfig` in every form: Markdown, the comment, the page, and the data for machines.

The answers rest on made-up runs. The commands are those of ZooKeeper's Dynamic Reconfiguration Guide.
"""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from jsonschema import Draft202012Validator

from checker.planner_page import to_html
from checker.rollout import PlanRequest, SafetyVerdict, plan
from checker.rollout.answer import Plan
from checker.rollout.output.by_reconfig import OBSTACLES, obstacle
from checker.rollout.output.cache import rendered
from checker.rollout.output.data import data
from checker.rollout.output.markdown import markdown
from checker.rollout.reconfig.answers import ReconfigSpec
from checker.rollout.reconfig.commands import Obstacle, Refusal
from checker.rollout.runs import RunResult
from checker.rollout.scenarios import RunSpec
from spec.quorum import Sid
from tests.support.command_line import cli
from tests.support.reconfig_folders import dynamic_folder
from tests.support.rollout_runs import made_up

SCHEMA = json.loads((Path(__file__).parents[4] / "checker" / "report" / "report.schema.json").read_text())


@cache
def made(new: tuple[Sid, ...], verdict: SafetyVerdict = SafetyVerdict.SAFE, disabled: tuple[Sid, ...] = ()) -> Plan:
    """A plan from {1, 2, 3}, with this verdict for every run about a command."""

    def runner(spec: RunSpec, seconds: float) -> RunResult:
        return made_up(spec, verdict if isinstance(spec, ReconfigSpec) else SafetyVerdict.OPEN)

    with TemporaryDirectory() as name:
        old = dynamic_folder(Path(name) / "before", (1, 2, 3), disabled=disabled)
        return plan(PlanRequest(old, dynamic_folder(Path(name) / "after", new)), runner)


REPLACED = (1, 2, 4)


def test_the_page_shows_the_commands() -> None:
    page = to_html(markdown(made(REPLACED)), rendered(made(REPLACED)).pictures)
    assert "reconfig -remove 3" in page and "server.4=zk4:2888:3888:participant;2181" in page


def test_a_promotion_names_the_voters_that_must_not_break_off_and_what_to_do_if_the_leader_dies(tmp_path: Path) -> None:
    """Seen on 3.9.5: docs/findings/promotion-stops-service.md."""
    old, new = dynamic_folder(tmp_path / "before", (1, 2, 3), (4,)), dynamic_folder(tmp_path / "after", (1, 2, 3, 4))
    given = plan(PlanRequest(old, new), lambda spec, seconds: made_up(spec, SafetyVerdict.SAFE))
    text = markdown(given)
    assert "Server 4 acknowledges nothing before it votes, so the commit needs all of servers 1, 2 and 3." in text
    assert "If the leader dies before the reply, it may not find the next one after its restart" in text
    (command,) = data(given)["reconfig"]["routes"][0]["commands"]
    assert command["needed"] == [1, 2, 3]


def test_the_data_have_what_a_program_needs_to_follow_the_plan() -> None:
    found = data(made(REPLACED))
    assert (found["verdict"], found["exit_code"], found["reconfig"]["safer"]) == ("safe", 22, "reconfig")
    first, second = found["reconfig"]["routes"][0]["commands"]
    assert [each["server"] for each in first["start"]] == [4] and first["zkcli"].startswith("reconfig -add ")
    assert (second["leaving"], second["joining"], second["stop"]) == ("3", None, [3])


@pytest.mark.parametrize(
    "given",
    [
        made(REPLACED),
        made((1, 2, 3, 4), SafetyVerdict.OPEN),
        made((1, 2, 3, 4), disabled=(2,)),
        made((1, 2, 3, 4), disabled=(1, 2, 3)),
    ],
    ids=["safe", "undecided", "mixed", "disabled"],
)
def test_the_data_fit_the_schema(given: Plan) -> None:
    validator = Draft202012Validator({"$ref": "#/$defs/plan", "$defs": SCHEMA["$defs"]})
    assert not [error.message for error in validator.iter_errors(json.loads(json.dumps(data(given))))]


def test_every_obstacle_has_a_sentence() -> None:
    assert set(OBSTACLES) == set(Obstacle)
    for each in Obstacle:
        assert "{}" not in obstacle(Refusal(each, (1,)))


def test_a_violation_of_a_command_is_told_as_a_story(tmp_path: Path) -> None:
    """With the engine: a replacement in one command is what not to do, and its run has a picture."""
    dynamic_folder(tmp_path / "before", (1, 2, 3))
    dynamic_folder(tmp_path / "after", REPLACED)
    scenarios = tmp_path / "scenarios"
    ended = cli(
        "rollout", "--from", tmp_path / "before", "--to", tmp_path / "after", "--budget", "8s", "--no-cache",
        "--scenarios", scenarios,
    )  # fmt: skip
    assert ended.code == 20
    assert "### By `reconfig`: " in ended.out and "with 1 lost connection, 1 partition" in ended.out
    assert (
        "| reconfig, all in one command: UNSAFE | " in ended.out and "**UNSAFE**: with 1 lost connection" in ended.out
    )
    found = [path for path in scenarios.rglob("*.yaml") if "expect: violated" in path.read_text()]
    assert len(found) == 1 and (found[0].parent / "members-1-2-3.cfg").exists()
    assert cli("run", found[0]).code == 0, "the scenario repeats the violation"
