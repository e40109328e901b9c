"""The quick tier has the files that need no search, no kernel and no server, by the imports of each file."""

import pytest

from tests.support.tiers import UNIT, is_quick


@pytest.mark.parametrize(
    ("name", "quick"),
    [
        ("spec/election/test_vote_order.py", True),
        ("spec/zab/test_zab_learner.py", True),
        ("refimpl/disk/test_disk_txnlog.py", True),
        ("checker/engine/test_engine.py", False),
        ("harness/reproduce/test_reproduce.py", False),
        ("refimpl/test_node_command_line.py", False),
        ("checker/test_gate_action.py", False),
        ("../node/test_quotas.py", False),
    ],
)
def test_a_file_is_quick_by_what_it_imports(name: str, quick: bool) -> None:
    path = (UNIT / name).resolve()
    assert path.exists()
    assert is_quick(path) is quick


def test_the_step_functions_are_in_the_quick_tier() -> None:
    """Enough of it, so that a change of a step shows within a minute."""
    assert sum(map(is_quick, UNIT.rglob("test_zab_*.py"))) >= 5
    assert sum(map(is_quick, UNIT.rglob("test_tree_*.py"))) >= 5
