"""Clients work while servers are killed, paused and cut off: what clients are promised holds all the while."""

from pathlib import Path

import pytest

from benchmarks.servers import KINDS, Ensemble
from tests.node.chaos.run import Report, chaos

ENSEMBLES = [
    pytest.param(["real"] * 3, id="real"),
    pytest.param(["node"] * 3, id="node"),
    pytest.param(["node", "real", "node"], id="mixed"),
]


def run(kinds: list[str], directory: Path, cycles: int, seed: int) -> Report:
    for kind in kinds:
        if reason := KINDS[kind]():
            pytest.skip(f"kind {kind!r}: {reason}")
    with Ensemble(kinds, directory) as ensemble:
        return chaos(ensemble, cycles, seed)


@pytest.mark.parametrize("kinds", ENSEMBLES)
def test_promises_hold_through_ten_faults(kinds: list[str], tmp_path: Path) -> None:
    report = run(kinds, tmp_path, cycles=10, seed=2)

    assert report.passed, str(report)
    assert report.findings.acknowledged > 100
    assert report.findings.synced > 50
    assert report.findings.replicas == 3


@pytest.mark.slow
@pytest.mark.parametrize("kinds", ENSEMBLES)
@pytest.mark.parametrize("seed", range(3))
def test_promises_hold_through_two_hundred_faults(kinds: list[str], seed: int, tmp_path: Path) -> None:
    report = run(kinds, tmp_path, cycles=200, seed=seed)

    assert report.passed, str(report)
