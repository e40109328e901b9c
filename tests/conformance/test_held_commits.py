"""The rule `hold_commits`: a leader that sends no COMMIT between NEWLEADER and UPTODATE keeps every invariant.

In the shipped scenarios the leader is ZooKeeper's, which sends such a COMMIT. A node holds it, so the same scenarios
are explored again with the rule. The expected verdicts are the same, except that ZOOKEEPER-4394 no longer occurs.
"""

import pytest

from checker.engine import Stop
from checker.job import Verdict
from checker.report.verdict import judge
from tests.support.ruled_scenarios import explored_by

SCENARIOS = [
    pytest.param("zab-3-servers", marks=pytest.mark.slow),
    pytest.param("zab-3-servers-fine", marks=pytest.mark.slow),
    "r10-zab-leader-last",
    "r10-zab-three-to-four-partition",
]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_shipped_scenarios_pass_with_held_commits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Premises that need a COMMIT before UPTODATE never hold here, so a run may be vacuous."""
    job, exploration = explored_by(name, monkeypatch, hold_commits=True)
    judged = judge(job, exploration, job.actions)

    assert judged.verdict in (Verdict.PASSED, Verdict.VACUOUS), judged.sentence
    assert exploration.stop is Stop.EXHAUSTED


@pytest.mark.parametrize(("held", "stop"), [(False, Stop.FOUND), (True, Stop.EXHAUSTED)])
def test_a_follower_with_zookeeper_4394_is_spared(held: bool, stop: Stop, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explored_by("zookeeper-4394", monkeypatch, hold_commits=held)[1].stop is stop
