"""Ensembles whose servers run different releases: the keys `like` and `variants` of a server and of a step of the plan.

Expected values: ZOOKEEPER-4394 is a defect of the learner (`Learner.syncWithLeader`), so it shows where a follower has
it, whatever the leader runs. It was fixed in 3.9.3 (docs/reference-releases.md).
"""

from pathlib import Path

import pytest

from checker.engine import Limits, Stop, plain
from checker.engine.search import explore
from checker.engine.semantics import successors
from checker.scenario import ScenarioError, from_text
from spec.releases import Release, defects_of
from spec.server import Server
from spec.variants import Area, Variant, of_area

DEFECTS = Path(__file__).parents[3] / "spec" / "scenarios" / "known-defects"
FORGETS = DEFECTS.joinpath("zookeeper-4394.yaml").read_text("utf-8").replace("variants: [ZOOKEEPER-4394]\n", "")
FILES = {"zoo-3.cfg": DEFECTS.joinpath("zoo-3.cfg").read_text("utf-8")}
UPGRADE = """
file: zoo-3.cfg
servers: {1: {like: 3.8.4}, 2: {like: 3.8.4}, 3: {epoch: 1, like: 3.8.4}}
history: [{start: [1, 2, 3]}]
plan: [{restart: 1, wait: rejoined, like: 3.9.5}]
protocol: zab
grain: oracle
discovery: one-step
disk: async
commits: async
elections: 2
workload: {writes: 1}
faults: {crashes: 1, restarts: 1}
always: [Leadership]
expect: passed
"""


def forgets_at(sid: int) -> str:
    """The scenario of ZOOKEEPER-4394 with the defect at this server alone."""
    line = f"  {sid}: {{epoch: 1, log: [1:1]}}"
    assert line in FORGETS
    return FORGETS.replace(line, f"  {sid}: {{epoch: 1, log: [1:1], variants: [ZOOKEEPER-4394]}}")


@pytest.mark.parametrize("sid", [1, 2, 3])
def test_a_defect_at_one_server_shows_at_that_server(sid: int) -> None:
    (found,) = explore(from_text(forgets_at(sid), FILES.get).model).violations
    values = dict(found.finding.values)
    assert sid in values.values() or f"server.{sid}" in str(values), values


def test_without_the_defect_nothing_shows() -> None:
    assert not explore(from_text(FORGETS, FILES.get).model, Limits(states=200_000)).violations


IDLE = of_area(Area.RECONFIGURATION) | {Variant.DISK_ERROR_KEEPS_TREE, Variant.RESTORE_UNDONE}


def test_a_step_of_the_plan_installs_a_release_and_a_crash_keeps_it() -> None:
    model = from_text(UPGRADE, FILES.get).model
    old, new = (frozenset(defects_of(Release(*each))) for each in ((3, 8, 4), (3, 9, 5)))
    column, plan = model.index["server.1"], model.index["plan"]
    seen, frontier, after = {model.initial()}, [model.initial()], set()
    while frontier and len(seen) < 20_000:
        row = frontier.pop()
        server: Server = row[column]
        installed = old if row[plan] < 2 else new  # stopped, then started with the new release
        assert server.defects == installed - IDLE, "no disk fails, and nothing is reconfigured or restored"
        after.add((row[plan], server.runs))
        for _, following in successors(model, row):
            if following not in seen:
                seen.add(following)
                frontier.append(following)
    assert {(2, True), (2, False)} <= after, "the upgraded server has run, and has crashed"


def test_both_engines_agree_on_a_mixed_ensemble() -> None:
    text = UPGRADE.replace("faults: {crashes: 1, restarts: 1}\n", "")
    model = from_text(text, FILES.get).model
    tables, plainly = explore(model), plain.explore(model, Limits())
    assert tables.stop is plainly.stop is Stop.EXHAUSTED
    assert list(tables.levels) == list(plainly.levels)


def test_the_report_names_the_defects_of_each_release_that_may_show() -> None:
    bounds = from_text(UPGRADE, FILES.get).bounds
    (old,) = [each for each in bounds if each.startswith("ZooKeeper 3.8.4: with ")]
    (new,) = [each for each in bounds if each.startswith("ZooKeeper 3.9.5: with ")]
    assert "ZOOKEEPER-4646" in old and "ZOOKEEPER-4646" not in new
    assert "acks-survive-truncation" in old and "acks-survive-truncation" in new
    assert "ZOOKEEPER-4882" not in old + new, "no disk fails in this run"


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("1: {like: 3.8.4}", "1: {like: 3.8.40}", "'3.8.40' is not in the table"),
        ("like: 3.9.5}]", "like: nine}]", "'nine' is not in the table"),
        ("1: {like: 3.8.4}", "1: {variants: [ZOOKEEPER-4882]}", "no disk fails"),
        ("1: {like: 3.8.4}", "1: {variants: [ZOOKEEPER-1]}", "ZOOKEEPER-1"),
        ("plan: [{restart: 1, wait: rejoined, like: 3.9.5}]", "plan: [{stop: 1, like: 3.9.5}]", "loads no file"),
    ],
)
def test_a_release_that_makes_no_sense_is_one_error_with_its_line(old: str, new: str, what: str) -> None:
    assert old in UPGRADE
    with pytest.raises(ScenarioError) as error:
        from_text(UPGRADE.replace(old, new), FILES.get)
    assert what in str(error.value)
    assert "line" in str(error.value) or ":" in str(error.value)
