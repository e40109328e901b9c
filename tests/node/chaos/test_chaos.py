"""Clients work while servers are killed, paused and cut off: the guarantees to clients hold all the time.

The real server is also tested, which shows that the harness requires nothing that ZooKeeper does not guarantee.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from checker.validate import validate
from checker.validate.report import lines
from harness.ensemble import Ensemble
from harness.releases import DEBIAN
from simulation.faults import NodeFault
from tests.node.chaos.reconfigurations import ReconfigReport, reconfigure
from tests.node.chaos.run import TICK, Report, chaos
from tests.node.reconfigured import reconfigurable
from tests.support.programs import need_kind

NODES = ["node", "node", "node"]
REAL = ["real", "real", "real"]
MIXED = ["node", "real", "node"]
MIXED_NEWEST = ["real", "node", "real"]


KILLS = [NodeFault.CRASH, "crash a quorum", NodeFault.CRASH_ALL]


def run(
    kinds: Sequence[str],
    directory: Path,
    cycles: int,
    seed: int,
    only: Collection[str] = (),
    releases: Sequence[str] | None = None,
) -> Report:
    """Run the nodes with journals; the journals must fit the specification."""
    for kind, release in zip(kinds, releases or [DEBIAN] * len(kinds), strict=True):
        need_kind(kind, release)
    with Ensemble(kinds, directory, journal=True, release=releases or DEBIAN) as ensemble:
        report = chaos(ensemble, cycles, seed, only=only)
    journals = [ensemble.journal(sid) for sid in ensemble.sids if ensemble.kind(sid) == "node"]
    if journals:
        validation = validate(journals, refines=True)
        assert validation.exit_code == 0, "\n".join(lines(validation))
    return report


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(NODES, id="node"),
        pytest.param(REAL, id="real", marks=pytest.mark.slow),
        pytest.param(MIXED, id="mixed", marks=pytest.mark.slow),
    ],
)
def test_promises_hold_through_six_faults(kinds: list[str], tmp_path: Path) -> None:
    report = run(kinds, tmp_path, cycles=6, seed=2)

    assert report.passed, str(report)
    assert report.findings.acknowledged > 100
    assert report.findings.synced > 50
    assert report.findings.replicas == 3


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [NODES, REAL, MIXED], ids=["node", "real", "mixed"])
def test_promises_hold_through_two_hundred_faults(kinds: list[str], tmp_path: Path) -> None:
    report = run(kinds, tmp_path, cycles=200, seed=1)

    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [NODES, MIXED], ids=["node", "mixed"])
def test_nothing_is_lost_through_two_hundred_kills(kinds: list[str], tmp_path: Path) -> None:
    report = run(kinds, tmp_path, cycles=200, seed=1, only=KILLS)

    assert report.passed, str(report)


def reconfigurations(kinds: list[str], directory: Path, count: int, seed: int) -> ReconfigReport:
    """Reconfigure an ensemble under writes and kills; the journals of nodes must fit the specification."""
    with reconfigurable(kinds, directory, range(1, len(kinds) + 1), tick_time=TICK) as ensemble:
        report = reconfigure(ensemble, count, seed)
    journals = [ensemble.journal(sid) for sid in ensemble.sids if ensemble.kind(sid) == "node"]
    validation = validate(journals)
    assert validation.exit_code == 0, "\n".join(lines(validation))
    return report


@pytest.mark.parametrize(
    ("kinds", "count"),
    [
        pytest.param(NODES, 6, id="node"),
        pytest.param(MIXED_NEWEST, 6, id="mixed"),
        pytest.param(MIXED_NEWEST, 50, id="mixed, fifty", marks=pytest.mark.slow),
        pytest.param(NODES, 50, id="node, fifty", marks=pytest.mark.slow),
    ],
)
def test_nothing_is_lost_while_members_change_and_servers_die(kinds: list[str], count: int, tmp_path: Path) -> None:
    report = reconfigurations(kinds, tmp_path, count, seed=1)

    assert report.passed, str(report)
    assert report.findings.acknowledged > 20 * count
