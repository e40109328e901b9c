"""The small election has known counts, found independently by other checkers; both engines must report the same."""

import itertools

import pytest

from checker.engine import plain, search, semantics
from checker.engine.result import Stop, disagreements
from checker.models.small_election import election

LEVELS_OF_FOUR = [1, 4, 6, 16, 31, 82, 190, 462, 1117, 2606, 5749, 11908, 23281, 43194, 76336, 128620, 206476]


@pytest.mark.parametrize("engine", [plain, search])
def test_three_servers_have_6544_states_and_23905_transitions(engine):
    result = engine.explore(election(3).with_properties([]))
    assert (result.states, result.transitions, result.stop) == (6_544, 23_905, Stop.EXHAUSTED)


def test_four_servers_have_13822383_states_and_87985030_transitions():
    result = search.explore(election(4).with_properties([]))
    assert (result.states, result.transitions, result.stop) == (13_822_383, 87_985_030, Stop.EXHAUSTED)
    assert result.levels[:17] == LEVELS_OF_FOUR


def test_the_engines_agree_level_by_level_on_three_servers():
    model = election(3).with_properties([])
    assert disagreements(plain.explore(model), search.explore(model)) == []


def test_two_servers_may_lead_at_once_and_both_engines_find_it_at_the_same_least_depth():
    """ZooKeeper's own transient state: a vote is counted for server 2, then its sender changes its vote to server 3."""
    by_plain, by_tables = (engine.explore(election(3)) for engine in (plain, search))
    assert by_plain.found["OneLeader"].depth == by_tables.found["OneLeader"].depth == 12
    assert by_tables.found["OneLeader"].finding.values == (("leaders", (2, 3)),)


def test_a_path_is_a_run_of_the_model_from_its_initial_state():
    model = election(3)
    path = search.explore(model).found["OneLeader"].path
    assert path[0].row == model.initial()
    for before, after in itertools.pairwise(path):
        assert (after.move, after.row) in list(semantics.successors(model, before.row))
