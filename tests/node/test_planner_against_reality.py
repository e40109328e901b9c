"""The planner against real servers: `python -m tests.reality`.

The planner calls the first change safe, and real servers keep every write. The second one moves the client port to the
quorum port, which the planner refuses, and no real server serves with it.
"""

from pathlib import Path

import pytest

from tests.node.conftest import NEWEST
from tests.reality.changes import Change, Route
from tests.reality.driver import Driver, Outcome
from tests.reality.states import QUORUM, ensemble
from tests.support.programs import need_kind


@pytest.mark.slow
def test_a_safe_change_that_is_interrupted_keeps_every_write(tmp_path: Path) -> None:
    need_kind("real", NEWEST)
    old = ensemble(3)
    change = Change(1, "keys", "snapCount", old, old.with_keys({"snapCount": "5000"}), Route.GO_ON)
    compared = Driver(change, tmp_path, NEWEST).compare()
    assert (compared.outcome, compared.reason) == (Outcome.AGREES, "kept, served, equal")
    assert compared.verdict.startswith("safe (0), --now after 1 of 3: safe (0)")
    assert compared.acknowledged > 20 and len(compared.steps) == 3


@pytest.mark.slow
def test_servers_do_not_serve_with_a_file_that_the_planner_refuses(tmp_path: Path) -> None:
    need_kind("real", NEWEST)
    old = new = ensemble(3)
    for sid in old.sids:
        new = new.with_place(sid, client=QUORUM)
    compared = Driver(Change(2, "ports", "collision", old, new), tmp_path, NEWEST).compare()
    assert compared.outcome is Outcome.AGREES and compared.verdict == "refused (151)"
