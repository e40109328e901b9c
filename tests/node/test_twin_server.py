"""A twin of a real server and of the node: a short run, in which every packet is explained."""

import random
from pathlib import Path

import pytest

from harness.reproduce.gates import compile_shim
from harness.twin.campaign import Cast, Episode, build
from harness.twin.coverage import Coverage
from harness.twin.subject import NODE, RealServer
from spec.quorum import majority_view

SIDS, SID = (1, 2, 3), 2
EVENTS = 120


@pytest.mark.parametrize("release", ["3.9.5", NODE])
def test_every_packet_of_a_short_run_is_explained(release: str, tmp_path: Path) -> None:
    subject = RealServer(release, SIDS, SID, tmp_path, compile_shim(tmp_path))
    try:
        run = Episode(
            build(SID, Cast(majority_view(SIDS)), is_node=release == NODE), subject, Coverage(), random.Random(7)
        )
        assert [misfit for _ in range(EVENTS) if (misfit := run.take()) is not None] == []
    finally:
        subject.shut_down()
    assert run.coverage.packets
