"""Ensembles of nodes and two releases of the real server, under writes and kills: nothing acknowledged is lost.

Each kind of server is the first leader of eight ensembles.
"""

from itertools import permutations
from pathlib import Path

import pytest

from harness.releases import DEBIAN
from tests.node.chaos.test_chaos import KILLS, run
from tests.node.conftest import NEWEST

NODE = "node"
SERVERS = (NODE, DEBIAN, NEWEST)
KILLS_OF_A_RUN = 10

THREE = [*permutations(SERVERS), *((one, one, other) for one, other in permutations(SERVERS, 2))]
FIVE = [
    *((one, two, one, two, three) for one, two, three in permutations(SERVERS)),
    *((one, other, one, other, other) for one, other in permutations(SERVERS, 2)),
]
ENSEMBLES = [*THREE, *FIVE]


@pytest.mark.slow
@pytest.mark.parametrize("servers", ENSEMBLES, ids=", ".join)
def test_nothing_is_lost_through_ten_kills(servers: tuple[str, ...], tmp_path: Path) -> None:
    kinds = [NODE if server == NODE else "real" for server in servers]
    releases = [DEBIAN if server == NODE else server for server in servers]
    seed = ENSEMBLES.index(servers)
    report = run(kinds, tmp_path, KILLS_OF_A_RUN, seed, only=KILLS, releases=releases)
    print(report)  # `-rP` shows the kills and who led

    assert report.passed, str(report)
    assert len(report.cycles) == KILLS_OF_A_RUN
    assert report.findings.acknowledged > 10 * KILLS_OF_A_RUN
    assert report.findings.replicas == len(servers)
