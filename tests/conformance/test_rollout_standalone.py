"""One server grows to three, and three shrink to one: the planner against what was seen on real 3.8.0 and 3.9.5.

`tests/node/test_standalone.py` follows the same plans on real servers.
"""

from functools import cache
from pathlib import Path

import pytest

from checker.rollout import Engine, Plan, PlanRequest, SafetyVerdict, plan, read_folder
from checker.rollout.orders import Way
from checker.rollout.scenarios import Question
from checker.scenario import bundled
from spec.config import ConfigError

FOLDERS = bundled()[0].parent.parent / "rollouts"
SAFE, UNSAFE = SafetyVerdict.SAFE, SafetyVerdict.UNSAFE


@cache
def planned(old: str, new: str, order: tuple[int, ...] | None = None) -> Plan:
    folders = read_folder(FOLDERS / old), read_folder(FOLDERS / new)
    return plan(PlanRequest(*folders, order, how=Way.ONE_BY_ONE), Engine().run)


def steps_of(made: Plan) -> list[list[tuple[str, bool]]]:
    """Return the steps of each advised stage, and whether each is waited for."""
    return [[(str(step), step.wait) for step in part.orders[0].steps] for part in made.advised]


def test_one_to_three_with_the_new_servers_first_is_unsafe_without_a_fault() -> None:
    """Seen: {2, 3} elect 3 over empty disks, 1 is restarted, follows 3, and its data is gone."""
    made = planned("one", "three", (2, 3, 1))
    leaders, commits = (made.direct.answer(q, faulty=False) for q in (Question.ELECTION, Question.COMMITS))
    assert leaders.outcome is commits.outcome is UNSAFE
    assert leaders.finding is not None and leaders.finding.prop == "StandaloneServesAlone"
    assert commits.finding is not None and commits.finding.trace is not None
    captions = [step.caption for step in commits.finding.trace.steps]
    story = ("server.2 elects server.3", "a client writes 1 at server.1", "server.1 joins server.3")
    assert [each for each in captions if each in story] == list(story)
    assert commits.finding.prop == "CommittedLogDurability"
    assert captions[-1] == "server.1 receives SNAP 1:0 from server.3"


def test_one_to_three_is_safe_if_the_second_new_server_starts_last() -> None:
    """Seen: started like this, all three servers have every write."""
    made = planned("one", "three")
    assert made.outcome is made.direct.outcome is SAFE and not made.stages
    assert steps_of(made) == [[("start 2", False), ("restart 1", True), ("start 3", True)]]
    assert made.seconds < 10


def test_one_to_two_and_two_to_one_are_safe() -> None:
    assert steps_of(planned("one", "two")) == [[("start 2", False), ("restart 1", True)]]
    assert steps_of(planned("two", "one")) == [[("stop 2", False), ("restart 1", True)]]
    assert planned("one", "two").direct.outcome is planned("two", "one").direct.outcome is SAFE


def test_three_to_one_is_safe_in_stages_only() -> None:
    """Two of three servers commit without the server that stays; of two servers, both acknowledge."""
    made = planned("three", "one")
    assert (made.direct.outcome, made.outcome) == (UNSAFE, SAFE)
    assert [sorted(part.stage.new.members) for part in made.stages] == [[1, 3], [1]]
    assert made.seconds < 10


def test_a_standalone_server_may_gain_its_own_line_without_a_run(tmp_path: Path) -> None:
    text = (FOLDERS / "one" / "zoo-1.cfg").read_text()
    (tmp_path / "zoo.cfg").write_text(f"{text}server.1=zoo1.example.org:2888:3888\n")
    made = plan(PlanRequest(read_folder(FOLDERS / "one"), read_folder(tmp_path)), Engine().run)
    assert made.outcome is SAFE and not made.runs


@pytest.mark.parametrize("name", ["zoo-4.cfg", "4/zoo.cfg", "any/zoo.cfg", "zoo.cfg"])
def test_a_file_without_lines_is_of_the_server_that_a_name_or_a_myid_says(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text((FOLDERS / "one" / "zoo-1.cfg").read_text())
    if name in ("any/zoo.cfg", "zoo.cfg"):
        (file.parent / "myid").write_text("4\n")
    folder = read_folder(tmp_path)
    assert set(folder.servers) == {4} and folder.view.standalone and folder.view.voters == {4}


def test_a_standalone_server_is_a_state_of_its_own(tmp_path: Path) -> None:
    for sid in (1, 2):
        (tmp_path / f"zoo-{sid}.cfg").write_text((FOLDERS / "one" / "zoo-1.cfg").read_text())
    with pytest.raises(ConfigError, match="server 2 runs standalone by this file"):
        read_folder(tmp_path)
