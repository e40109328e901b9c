"""Mutants that no scenario detected before there were scenarios with groups, weights, syncs and three writes.

One scenario alone catches each of them: by its verdict, without a unit test. Each comment names the ZooKeeper method
with the effect that the mutant drops, or the weight that it ignores.
"""

from pathlib import Path

import pytest

from tests.support.mutants import Mutant, all_mutants, write_copy
from tests.support.mutation import killed_by_scenarios

CAUGHT = {
    # FastLeaderElection.lookForLeader: every poll has a timeout.
    "spec/election/fast_leader_election.py: _fire: *_timers(None, again) in": "zab-effects-fine",
    "spec/election/fast_leader_election.py: _look_for_leader: *_timers(None, election) in": "zab-effects-fine",
    # FinalRequestProcessor: every commit is applied to the tree.
    "spec/zab/disk.py: applied: Apply(zxid) in": "zab-three-writes",
    "spec/zab/learner_sync.py: uptodate: Apply(delivered) in": "zab-syncs",
    # Follower.followLeader: it connects to its leader, and accepts no learners.
    "spec/zab/learner.py: begin: Connect(leader, info) in": "zab-effects-fine",
    "spec/zab/learner.py: begin: Disconnect() in": "zab-effects-fine",
    # Leader.processSync, Leader.sendSync: a sync is answered after the last proposal.
    "spec/zab/leader_broadcast.py: ServingLeader.part: syncs=self._syncs in": "zab-syncs",
    "spec/zab/learner_broadcast.py: ServingLearner.part: syncs=self._syncs in": "zab-syncs",
    # FastLeaderElection.totalOrderPredicate: a server of weight 0 never wins a comparison.
    "spec/election/vote.py: is_better: if is_weightless(view, new.leader): -> dropped": "weight-0-never-leads",
    # QuorumHierarchical.containsQuorum: more than half of the weight of a group, and of the groups.
    "spec/quorum/systems.py: Hierarchical.contains_quorum: sum((weights[sid] for sid in present)) > java_half(total) "
    "-> sum((weights[sid] for sid in present)) >= java_half(total)": "zab-weights",
    "spec/quorum/systems.py: Hierarchical.contains_quorum: won > self.groups_to_exceed() -> "
    "won >= self.groups_to_exceed()": "groups-majority-of-servers",
}


def found(name: str) -> Mutant:
    (mutant,) = (each for each in all_mutants() if each.name.startswith(name))
    return mutant


IN_THE_GATE = 4
ALL = [
    pytest.param(*each, marks=() if number % (len(CAUGHT) // IN_THE_GATE) == 0 else pytest.mark.slow)
    for number, each in enumerate(CAUGHT.items())
]


@pytest.mark.parametrize(("name", "scenario"), ALL, ids=range(len(CAUGHT)))
def test_a_scenario_alone_catches_the_mutant(name: str, scenario: str, tmp_path: Path) -> None:
    write_copy(tmp_path)
    assert killed_by_scenarios(found(name), tmp_path, [scenario]).startswith(f"{scenario}: ")
