"""Variants from the command line: listed, added to those of a scenario, and refused where they have no effect."""

import json
from pathlib import Path

import pytest

from spec.releases import HISTORIES, fixed_text, is_defect
from spec.variants import DESCRIBED, Variant
from tests.support.command_line import Ended, Write, cli, scenarios_in

ZAB = (
    "file: zoo-3.cfg\nservers: [1, 2, 3]\nprotocol: zab\ngrain: oracle\nelections: 1\ndiscovery: one-step\n"
    "history: [{start: [1, 2, 3]}]\nworkload: {writes: 1}\nalways: [Durability]\nexpect: passed\n"
)
ELECTION = "file: zoo-3.cfg\nservers: [1, 2, 3]\nrounds: 1\n"
COMMITS_EARLY = "commit-before-quorum"


@pytest.fixture
def scenario(tmp_path: Path) -> Write:
    return scenarios_in(tmp_path)


# The list.


def test_the_list_names_every_variant_the_known_defects_first() -> None:
    ended = cli("--list-variants")
    assert ended.code == 0
    places = {each: ended.out.index(f"\n  {each.value} ") for each in Variant}
    defects = [place for each, place in places.items() if is_defect(each)]
    mutants = [place for each, place in places.items() if not is_defect(each)]
    assert max(defects) < ended.out.index("\nmutants\n") < min(mutants)


def test_the_list_says_what_is_wrong_and_where_it_was_fixed() -> None:
    text = " ".join(cli("--list-variants").out.split())
    for described in DESCRIBED.values():
        assert " ".join(described.wrong.split()) in text
    for variant in HISTORIES:
        assert f"{' '.join(DESCRIBED[variant].wrong.split())}; fixed: {fixed_text(variant)}" in text


def test_the_list_is_data_too() -> None:
    data = json.loads(cli("--list-variants", "--json").out)
    assert {each["name"] for kind in ("defects", "mutants") for each in data[kind]} == {each.value for each in Variant}
    assert data["defects"][0]["fixed"]
    assert data["mutants"][0]["fixed"] is None


# Runs of scenarios.


def test_a_variant_is_added_to_a_scenario_and_named_in_the_report(scenario: Write) -> None:
    ended = cli("run", scenario(ZAB), "--variant", COMMITS_EARLY, "--format", "none", "--engine", "plain")
    assert ended.out.startswith("violated: Durability")
    assert f"s with {COMMITS_EARLY}\n" in ended.out
    assert f"with {COMMITS_EARLY}\n" in ended.out.split("properties")[0]


def test_with_a_variant_nothing_is_expected_and_the_code_is_the_verdicts_own(scenario: Write) -> None:
    path = scenario(ZAB)
    plain, varied = (cli("run", path, *more, "--engine", "plain", "--format", "none") for more in (
        (), ("--variant", COMMITS_EARLY)))  # fmt: skip
    assert (plain.code, varied.code) == (0, 12)
    assert "as expected" in plain.out
    assert "expected" not in varied.out


def test_a_run_with_a_variant_replays(scenario: Write, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    cli("run", scenario(ZAB), "--variant", COMMITS_EARLY, "--engine", "plain", "--traces", folder)
    (trace,) = folder.glob(f"*{COMMITS_EARLY}*.itf.json")
    ended = cli("replay", trace, "--format", "none")
    assert (ended.code, "and Durability again" in ended.out) == (0, True)


def test_two_variants_may_be_added(scenario: Write) -> None:
    words = ("--variant", COMMITS_EARLY, "--variant", "half-is-a-quorum", "--engine", "plain", "--format", "none")
    assert f"with {COMMITS_EARLY}, half-is-a-quorum\n" in cli("run", scenario(ZAB), *words).out


# Refusals.


@pytest.mark.parametrize(
    ("text", "variant", "said"),
    [
        (ELECTION, "torn-record", "it changes nothing where the election is all there is; write protocol: zab"),
        (ZAB, "ZOOKEEPER-1419", "it changes nothing where an election is one step; write grain: fine"),
        (ZAB + "disk: sync\n", "torn-record", "it changes nothing where the disk is never late; write disk: async"),
        (ZAB, "ZOOKEEPER-4882", "it changes nothing where no disk fails; write faults: {full_disks: 1}"),
        (ZAB, "restore-undone", "it changes nothing where no snapshot is restored; write workload: {restores: 1}"),
        (
            ZAB,
            "ZOOKEEPER-5094",
            "it changes nothing where no committed transaction follows a TRUNC; add the variant sync-from-applied",
        ),
    ],
)
def test_a_variant_that_changes_nothing_in_a_scenario_is_refused(
    scenario: Write, text: str, variant: str, said: str
) -> None:
    assert cli("run", scenario(text), "--variant", variant) == Ended(2, "", f"error: the variant {variant}: {said}\n")


def test_a_variant_that_there_is_not_is_a_bad_command_line_with_the_nearest_name() -> None:
    ended = cli("--nodes", "3", "--variant", "torn-recrod")
    assert ended.code == 2
    assert "the variant torn-recrod: the name is unknown; did you mean torn-record?" in ended.err


def test_a_source_with_a_variant_that_there_is_not_does_not_replay(scenario: Write, tmp_path: Path) -> None:
    cli("run", scenario(ZAB), "--variant", COMMITS_EARLY, "--engine", "plain", "--traces", tmp_path / "traces")
    (trace,) = (tmp_path / "traces").glob("*.itf.json")
    trace.write_text(trace.read_text(encoding="utf-8").replace(f'["{COMMITS_EARLY}"]', '["no-such"]'))
    ended = cli("replay", trace)
    assert ended.code == 150
    assert "the variant no-such: the name is unknown" in ended.err


# Runs of --nodes.


def test_of_the_runs_of_nodes_those_are_taken_in_which_the_variant_may_matter() -> None:
    ended = cli("--nodes", "2", "--variant", "ZOOKEEPER-1514", "--engine", "plain", "--depth", "3", "--format", "none")
    lines = [line.split("  ")[0] for line in ended.out.splitlines() if " with ZOOKEEPER-1514  " in line]
    assert lines == ["cold start with ZOOKEEPER-1514", "a broken link with ZOOKEEPER-1514"]


def test_nodes_refuses_a_variant_that_changes_nothing_in_the_run_described() -> None:
    ended = cli("--nodes", "3", "--grain", "oracle", "--crashes", "1", "--variant", "ZOOKEEPER-1514")
    assert (ended.code, ended.out) == (2, "")
    assert "ZOOKEEPER-1514: it changes nothing where an election is one step" in ended.err
