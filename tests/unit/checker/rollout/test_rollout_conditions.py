"""The checks of an operator: between the stages of a plan, and before the steps of a proved order.

The expected servers follow from the rule of the theorem about roll-outs (`docs/explanation-proofs-of-zab.md`): before a
stage every server that runs, or may start again, has the newest file, and all that run follow one leader.
"""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from checker import report
from checker.rollout import Plan, PlanRequest
from checker.rollout.orders import steps_of
from checker.rollout.output.data import data
from checker.rollout.output.markdown import markdown
from checker.rollout.route_verdict import Order, PlanRoute, pairs_of
from checker.rollout.stages import whole
from tests.support.rollout_runs import fine, folder_of, plan_of, shipped

SCHEMA = json.loads((Path(report.__file__).parent / "report.schema.json").read_text(encoding="utf-8"))


def planned(old: str, new: str, **options: Any) -> Plan:
    return plan_of(old, new, fine, **options)


def check(running: list[int], stopped: list[int]) -> dict[str, Any]:
    return {"step": 1, "running": running, "renewed": True, "stopped": stopped}


# -- between stages --------------------------------------------------------------------------------------------


def test_the_check_between_stages_is_data() -> None:
    """From five to three, 4 leaves and then 5: before the second stage 1, 2, 3 and 5 have its first file."""
    made = data(planned("five", "three"))
    assert [each["condition"] for each in made["stages"]] == [None, check([1, 2, 3, 5], [4])]
    assert made["direct"]["condition"] is None


def test_a_server_that_left_stays_stopped_in_every_later_stage(tmp_path: Path) -> None:
    """Two of three are replaced: 4 comes, 2 goes, 5 comes, 3 goes. Server 2 has a file of the first stage for ever."""
    made = plan_of(folder_of(tmp_path / "old", (1, 2, 3)), folder_of(tmp_path / "new", (1, 4, 5)), fine)
    assert [each["condition"] for each in data(made)["stages"]] == [
        None,
        check([1, 2, 3, 4], []),
        check([1, 3, 4], [2]),
        check([1, 3, 4, 5], [2]),
    ]


def test_a_server_that_is_down_is_not_said_to_follow() -> None:
    """It follows nobody, and it has an older file if it starts again."""
    made = data(planned("five", "three", down=frozenset({3})))
    assert made["stages"][1]["condition"] == check([1, 2, 5], [3, 4])


def test_every_form_of_a_plan_has_the_check() -> None:
    made = planned("five", "three")
    second = markdown(made).split("### Stage 2\n")[1]
    first_line = second.split("\n\n")[0].strip()
    assert first_line.startswith("**Check first**: servers 1, 2, 3 and 5 run with their new files")
    assert "Server 4 must stay stopped." in first_line
    validator = Draft202012Validator({"$ref": "#/$defs/plan", "$defs": SCHEMA["$defs"]})
    for each in (made, planned("three", "five"), planned("three", "four")):
        assert list(validator.iter_errors(json.loads(json.dumps(data(each))))) == []


def test_the_schema_demands_the_check() -> None:
    answer = data(planned("five", "three"))
    del answer["stages"][1]["condition"]["stopped"]
    validator = Draft202012Validator({"$ref": "#/$defs/plan", "$defs": SCHEMA["$defs"]})
    assert ["stages", 1, "condition"] in [list(each.absolute_path) for each in validator.iter_errors(answer)]


# -- before the steps of a proved order ------------------------------------------------------------------------


def in_orders(*orders: tuple[int, tuple[int, ...]]) -> str:
    """The answer from three to five for each leader with its order."""
    request = PlanRequest(shipped("three"), shipped("five"))
    growth = whole(request.old, request.new)
    given = [Order(leader, steps_of(growth, order)) for leader, order in orders]
    return markdown(Plan(request, PlanRoute(growth, pairs_of(growth), 1, given)))


def test_the_check_of_another_leader_is_the_one_above_if_it_is_equal() -> None:
    text = in_orders((3, (4, 1, 2, 3, 5)), (2, (4, 1, 3, 2, 5)))
    assert "| leads now | order, with the same checks |\n| --- | --- |\n| 2 | 4, 1, 3, 2, 5 |" in text
    assert text.count("**Check first**") == 2


def test_the_check_of_another_leader_is_spelled_out_if_it_is_not() -> None:
    """Leader 2 has 5 before 4, so 5 follows when 4 starts; before the first step the three servers follow."""
    text = in_orders((3, (4, 1, 2, 3, 5)), (2, (5, 1, 3, 2, 4)))
    first, last = (line for line in text.splitlines() if line.startswith("- server 2 leads now, before step"))
    assert first == (
        "- server 2 leads now, before step 1: one of servers 1, 2 and 3 says `Mode: leader`, and the others follow."
    )
    assert last.startswith("- server 2 leads now, before step 5: servers 1, 2, 3 and 5 run with their new files, and")


def test_a_plan_without_a_proof_of_its_orders_has_no_check_before_steps() -> None:
    assert "check first" not in in_orders((3, (4, 5, 1, 2, 3)), (2, (4, 5, 1, 3, 2))).lower()
