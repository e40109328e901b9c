"""Runs like a release of ZooKeeper: `--like RELEASE`, and the key `like` of a scenario of an ensemble.

Expected values: the defects of each release are those of docs/reference-releases.md, which `test_releases.py` compares
with the tags of ZooKeeper. ZOOKEEPER-4394 shows as a COMMIT without a proposal before 3.9.3, and not since.
"""

import json
from pathlib import Path

import pytest

from checker.scenario import from_source, from_text
from checker.scenario.yaml_lines import LikeError
from spec.releases import HISTORIES, RELEASES, DefectHistory, Release, defects_of
from tests.support.command_line import Write, cli, scenarios_in

DEFECTS = Path(__file__).parents[4] / "spec" / "scenarios" / "known-defects"
FORGETS = DEFECTS.joinpath("zookeeper-4394.yaml").read_text("utf-8").replace("variants: [ZOOKEEPER-4394]\n", "")
"""The scenario that shows ZOOKEEPER-4394, without the defect."""
RECONFIGURATION = DEFECTS.parent / "reconfiguration"
FILES = {"zoo-3.cfg": DEFECTS.joinpath("zoo-3.cfg").read_text("utf-8")} | {
    name: RECONFIGURATION.joinpath(name).read_text("utf-8") for name in ("zoo.cfg", "zoo.cfg.dynamic.100000000")
}
ZAB = (
    "file: zoo-3.cfg\nservers: [1, 2, 3]\nprotocol: zab\ngrain: oracle\nelections: 1\ndiscovery: one-step\n"
    "history: [{start: [1, 2, 3]}]\nworkload: {writes: 1}\nalways: [Durability]\nexpect: passed\n"
)
ALL_OF_ZAB = ZAB.replace("writes: 1", "writes: 1, restores: 1") + "commits: async\nfaults: {full_disks: 1}\n"
ALL = ALL_OF_ZAB.replace("zoo-3.cfg", "zoo.cfg") + "plan: [{reconfig: {remove: [1]}}]\n"
"""A scenario in which every defect may show."""
SINCE_3_5 = {"pending-view-activated", "epoch-of-active-view", "last-seen-forgotten"}
OF_RECONFIGURATION = SINCE_3_5 | {"activation-not-counted"}


@pytest.fixture
def scenario(tmp_path: Path) -> Write:
    return scenarios_in(tmp_path)


# The defects that a run has.


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_run_has_the_defects_of_its_release_and_no_others(release: Release) -> None:
    like = from_text(ALL, FILES.get, like=release).like
    assert like is not None
    assert like.release == str(release)
    assert like.variants == tuple(each.value for each in defects_of(release))
    assert like.idle == {}


def test_like_the_newest_release_a_run_has_exactly_the_open_defects() -> None:
    like = from_text(ALL, FILES.get, like=Release(3, 9, 5)).like
    assert like is not None
    assert set(like.variants) == {each.value for each, history in HISTORIES.items() if not fixed_since(history, (3, 5))}


def fixed_since(history: DefectHistory, line: tuple[int, int]) -> bool:
    """Whether a line from this one on has a fix."""
    return any(change.release is None or change.release.line >= line for change in history.fixed)


def test_defects_of_reconfiguration_are_left_out_where_nothing_is_reconfigured() -> None:
    like = from_text(ALL_OF_ZAB, FILES.get, like=Release(3, 9, 5)).like
    assert like is not None
    assert set(like.idle) == OF_RECONFIGURATION
    assert set(like.idle.values()) == {"it changes nothing where nothing is reconfigured"}


def test_defects_without_an_effect_are_left_out_and_named() -> None:
    job = from_text(ZAB + "disk: sync\n", FILES.get, like=Release(3, 8, 4))
    assert job.like is not None
    late, early = "it changes nothing where the disk is never late", "it changes nothing where commits are applied"
    assert job.like.idle["ZOOKEEPER-4643"] == job.like.idle["ZOOKEEPER-4712"] == late
    assert job.like.idle["sync-from-applied"].startswith(early)
    assert "ZOOKEEPER-4394" in job.like.variants
    assert f"like 3.8.4, without ZOOKEEPER-4643: {late}" in job.bounds


def test_the_key_of_a_scenario_and_its_variants_are_a_union() -> None:
    job = from_text(ZAB + "like: 3.9.4\nvariants: [no-truncation]\n", FILES.get)
    assert job.like is not None
    assert f"like 3.9.4: with {', '.join(job.like.variants)}" in job.bounds
    assert "with no-truncation" in job.bounds


def test_a_variant_that_the_release_has_may_be_named_too() -> None:
    job = from_text(ZAB + "like: 3.9.4\nvariants: [acks-survive-truncation]\n", FILES.get)
    (bound,) = (each for each in job.bounds if "acks-survive-truncation" in each)
    assert bound.startswith("like 3.9.4: with ")


@pytest.mark.parametrize("key", [True, False])
def test_a_run_can_be_made_again_from_its_source(key: bool) -> None:
    release = Release(3, 8, 6)
    job = from_text(ZAB + "like: 3.8.6\n", FILES.get) if key else from_text(ZAB, FILES.get, like=release)
    again = from_source(job.source)
    assert (again.like, again.bounds, again.name) == (job.like, job.bounds, job.name)


# The runs themselves.


@pytest.mark.parametrize(("release", "code"), [("3.8.4", 12), ("3.8.6", 12), ("3.9.2", 12), ("3.9.3", 0), ("3.9.5", 0)])
def test_a_commit_without_a_proposal_is_found_before_3_9_3(scenario: Write, release: str, code: int) -> None:
    ended = cli("run", scenario(FORGETS), "--like", release, "--format", "none")
    assert ended.code == code
    assert ended.out.startswith("violated: NoBadCommit" if code else "passed")
    assert f" like {release}\n" in ended.out
    assert f"  like {release}: with " in ended.out


def test_the_expectation_of_a_scenario_applies_to_its_own_release(scenario: Write) -> None:
    own = scenario(FORGETS.replace("{NoBadCommit: 14}", "{NoBadCommit: 14}\nlike: 3.9.2"))
    ended = cli("run", own, "--format", "none")
    assert (ended.code, "as expected" in ended.out) == (0, True)


def test_each_defect_of_two_is_carried_out_when_both_are_there(scenario: Write) -> None:
    """A forgotten proposal is queued for the disk and acknowledged, as `logRequest` of 3.8.4 does."""
    text = FORGETS.replace("always: [NoBadCommit]", "always: [NoBadAck]").replace("{NoBadCommit: 14}", "{NoBadAck: 12}")
    ended = cli("run", scenario(text), "--like", "3.8.4", "--format", "none")
    assert ended.out.startswith("violated: NoBadAck")


def test_the_report_names_the_release_and_its_variants(scenario: Write) -> None:
    data = json.loads(cli("run", scenario(ZAB), "--like", "3.8.4", "--json").out)
    like = data["runs"][0]["job"]["like"]
    assert like["release"] == "3.8.4"
    idle = {"sync-from-applied", "ZOOKEEPER-4882", "ZOOKEEPER-5094"} | SINCE_3_5
    assert set(like["without_effect"]) == idle
    assert set(like["variants"]) == {each.value for each in defects_of(Release(3, 8, 4))} - set(like["without_effect"])


def test_without_a_release_the_report_has_none(scenario: Write) -> None:
    assert json.loads(cli("run", scenario(ZAB), "--json").out)["runs"][0]["job"]["like"] is None


def test_a_trace_of_such_a_run_replays(scenario: Write, tmp_path: Path) -> None:
    cli("run", scenario(FORGETS), "--like", "3.9.2", "--format", "none", "--traces", tmp_path / "traces")
    (trace,) = (tmp_path / "traces").glob("*.itf.json")
    ended = cli("replay", trace, "--format", "none")
    assert (ended.code, "and NoBadCommit again" in ended.out) == (0, True)


def test_of_the_runs_of_nodes_those_with_the_whole_server_are_taken() -> None:
    ended = cli("--nodes", "2", "--like", "3.8.4", "--depth", "3", "--format", "none", "--engine", "plain")
    named = [line.split("  ")[0] for line in ended.out.splitlines() if " like 3.8.4  " in line]
    assert named == ["cold start like 3.8.4", "established like 3.8.4"]


# Refusals.


def test_a_source_with_an_unknown_release_makes_no_job() -> None:
    source = from_text(ZAB, FILES.get, like=Release(3, 8, 6)).source
    with pytest.raises(LikeError, match=r"the release '9\.9\.9' is not in the table"):
        from_source({**source, "like": "9.9.9"})
