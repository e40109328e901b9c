"""Reconfigurations of real 3.9.5 servers do what the page of facts says.

The expected values are those of the page, `docs/reference-reconfig-facts.md`: `python -m research.reconfig --write`
made them from real servers. Each test repeats a measurement and compares.
"""

from pathlib import Path

import pytest

from harness.reproduce.by_hand.servers import Bench
from harness.reproduce.gates import compile_shim
from research.reconfig import packets
from research.reconfig.__main__ import MEASUREMENTS, NEWEST
from research.reconfig.facts import differences
from tests.support.programs import need_kind

PAGE = Path(__file__).parents[2] / "docs" / "reference-reconfig-facts.md"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    need_kind("real", NEWEST)
    return Bench(tmp_path, NEWEST)


def test_the_bytes_of_a_reconfiguration_are_those_on_the_page(bench: Bench) -> None:
    assert differences(PAGE.read_text(encoding="utf-8"), packets.measure(bench)) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MEASUREMENTS if name != "packets"])
def test_every_measurement_agrees_with_the_page(bench: Bench, name: str) -> None:
    gated = Bench(bench.directory, bench.release, compile_shim(bench.directory))
    assert differences(PAGE.read_text(encoding="utf-8"), MEASUREMENTS[name](gated)) == ()
