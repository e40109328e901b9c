"""Variants from the command line: listed, added to those of a scenario, and refused where they have no effect."""

import json
from pathlib import Path

import pytest

from spec.releases import HISTORIES, fixed_text, is_defect
from spec.variants import DESCRIBED, Variant
from tests.support.command_line import Write, cli, scenarios_in

ZAB = (
    "file: zoo-3.cfg\nservers: [1, 2, 3]\nprotocol: zab\ngrain: oracle\nelections: 1\ndiscovery: one-step\n"
    "history: [{start: [1, 2, 3]}]\nworkload: {writes: 1}\nalways: [Durability]\nexpect: passed\n"
)
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


def test_a_run_with_a_variant_replays(scenario: Write, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    cli("run", scenario(ZAB), "--variant", COMMITS_EARLY, "--engine", "plain", "--traces", folder)
    (trace,) = folder.glob(f"*{COMMITS_EARLY}*.itf.json")
    ended = cli("replay", trace, "--format", "none")
    assert (ended.code, "and Durability again" in ended.out) == (0, True)


# Refusals.


def test_a_source_with_a_variant_that_there_is_not_does_not_replay(scenario: Write, tmp_path: Path) -> None:
    cli("run", scenario(ZAB), "--variant", COMMITS_EARLY, "--engine", "plain", "--traces", tmp_path / "traces")
    (trace,) = (tmp_path / "traces").glob("*.itf.json")
    trace.write_text(trace.read_text(encoding="utf-8").replace(f'["{COMMITS_EARLY}"]', '["no-such"]'))
    ended = cli("replay", trace)
    assert ended.code == 150
    assert "the variant no-such: the name is unknown" in ended.err


# Runs of --nodes.
