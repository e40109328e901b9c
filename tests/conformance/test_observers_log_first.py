"""The rule `observers_log_first`: an observer that logs before it acknowledges NEWLEADER loses nothing as a voter.

In the shipped scenarios observers log late, as those of ZooKeeper do. An observer of a node logs first, so scenarios
with observers are explored again with the rule. No scenario passes with ZooKeeper's rule and fails with this one.
"""

import pytest
from msgspec.structs import replace

from checker.engine import Exploration, Stop
from checker.engine.search import explore
from checker.scenario import bundled, ensemble_setup, load
from spec.zab.state import ZabRules

PATHS = {path.stem: path for path in bundled()}
LOSSES = [
    "r4-observer-promoted-loses-a-write",
    "r4-observer-promoted-last",
    pytest.param("two-observers-promoted-lose-a-transaction", marks=pytest.mark.slow),
]
SAFE = ["r4-observer-promoted-first", "one-observer-promoted-keeps-transactions", "zab-three-writes"]


def explored(name: str, monkeypatch: pytest.MonkeyPatch, *, log_first: bool) -> Exploration:
    zab_of = ensemble_setup.zab_of

    def ruled(*given: object) -> ZabRules | None:
        rules = zab_of(*given)  # type: ignore[arg-type]
        return None if rules is None else replace(rules, observers_log_first=log_first)

    monkeypatch.setattr(ensemble_setup, "zab_of", ruled)
    job = load(PATHS[name])
    return explore(job.model, job.limits, until_witnessed=job.until_witnessed)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("log_first", "stop"), [(False, Stop.FOUND), (True, Stop.EXHAUSTED)])
def test_a_promoted_observer_that_logs_first_loses_nothing(
    name: str, log_first: bool, stop: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explored(name, monkeypatch, log_first=log_first).stop is stop


@pytest.mark.parametrize("name", SAFE)
def test_what_is_safe_stays_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exploration = explored(name, monkeypatch, log_first=True)
    assert exploration.violations == []
    assert exploration.stop is Stop.EXHAUSTED
