"""Reconfigurations of real 3.9.5 servers do what the page of facts says.

The expected values are those of the page, `docs/reference-reconfig-facts.md`: `python -m harness reconfig --write`
made them from real servers. Each test repeats a measurement and compares, or checks one outcome of it.
"""

from pathlib import Path

import pytest

from harness.reconfig import packets
from harness.reconfig.command import MEASUREMENTS, NEWEST
from harness.reconfig.crash import measured
from harness.reconfig.crash.computed import computed
from harness.reconfig.crash.table import CRASHES, JOINER
from harness.reconfig.defects import forgotten, pending
from harness.reconfig.facts import FactBench
from harness.reconfig.page import differences
from harness.reproduce.gates import compile_shim
from tests.support.programs import need_kind

PAGE = Path(__file__).parents[2] / "docs" / "reference-reconfig-facts.md"


@pytest.fixture
def bench(tmp_path: Path) -> FactBench:
    need_kind("real", NEWEST)
    return FactBench(tmp_path, NEWEST)


def test_the_bytes_of_a_reconfiguration_are_those_on_the_page(bench: FactBench) -> None:
    assert differences(PAGE.read_text(encoding="utf-8"), packets.measure(bench)) == ()


@pytest.mark.slow
def test_a_reconnected_joiner_activates_what_is_not_committed_and_two_leaders_lose_a_write(bench: FactBench) -> None:
    outcome = pending.run(bench, pending.SPLIT, "pending")
    assert set(outcome.leaders) == {2, 5}
    assert len(set(outcome.leaders.values())) == 1
    assert outcome.zxids[pending.OLD_WRITE] == outcome.zxids[pending.NEW_WRITE]
    assert pending.OLD_WRITE in outcome.lost


@pytest.mark.slow
def test_two_starts_forget_an_acknowledged_reconfiguration(bench: FactBench) -> None:
    row = dict(zip(forgotten.COLUMNS, forgotten.run(bench, 2, "forgotten"), strict=True))
    assert row["log of 1"] == "has the transaction"
    assert row["{1, 2}"] == "1 leads"
    assert row["`/old-side`"].startswith("acknowledged")
    assert row["`/new-side`"].startswith("acknowledged")


@pytest.mark.slow
def test_a_joiner_that_dies_before_the_commit_cannot_start_again(bench: FactBench) -> None:
    number = next(number for number, (_, position) in enumerate(CRASHES) if position.victim == JOINER)
    assert "exits" in measured.crash(bench, number)


@pytest.mark.slow
def test_servers_and_model_agree_on_a_crash_of_the_leader_that_alone_has_the_proposal(bench: FactBench) -> None:
    gated = FactBench(bench.directory, bench.release, compile_shim(bench.directory))
    assert measured.crash(gated, 1) == computed().rows[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MEASUREMENTS if name != "packets"])
def test_every_measurement_agrees_with_the_page(bench: FactBench, name: str) -> None:
    gated = FactBench(bench.directory, bench.release, compile_shim(bench.directory))
    assert differences(PAGE.read_text(encoding="utf-8"), MEASUREMENTS[name](gated)) == ()
