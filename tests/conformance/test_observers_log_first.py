"""The rule `observers_log_first`: an observer that logs before it acknowledges NEWLEADER loses nothing as a voter.

In the shipped scenarios observers log late, as those of ZooKeeper do. An observer of a node logs first, so scenarios
with observers are explored again with the rule. No scenario passes with ZooKeeper's rule and fails with this one.
"""

import pytest

from checker.engine import Stop
from tests.support.ruled_scenarios import explored_by

LOSSES = [
    "r4-observer-promoted-loses-a-write",
    "r4-observer-promoted-last",
    pytest.param("two-observers-promoted-lose-a-transaction", marks=pytest.mark.slow),
]
SAFE = ["r4-observer-promoted-first", "one-observer-promoted-keeps-transactions", "zab-three-writes"]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("log_first", "stop"), [(False, Stop.FOUND), (True, Stop.EXHAUSTED)])
def test_a_promoted_observer_that_logs_first_loses_nothing(
    name: str, log_first: bool, stop: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explored_by(name, monkeypatch, observers_log_first=log_first)[1].stop is stop


@pytest.mark.parametrize("name", SAFE)
def test_what_is_safe_stays_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, exploration = explored_by(name, monkeypatch, observers_log_first=True)
    assert exploration.violations == []
    assert exploration.stop is Stop.EXHAUSTED
