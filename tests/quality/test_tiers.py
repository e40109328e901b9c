"""The tiers: what is quick follows from the imports of a file, and what is wide from a list."""

import pytest

from tests.support.tiers import ROOT, UNIT, WIDE, is_quick


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


@pytest.mark.parametrize("start", WIDE)
def test_the_list_of_wide_tests_names_tests(start: str) -> None:
    path, _, function = start.partition("::")
    files = list(ROOT.glob(f"{path}*.py" if not path.endswith((".py", "/")) else path.rstrip("/")))
    assert files
    assert all(f"def {function}" in file.read_text("utf-8") for file in files if function)


def test_the_gate_runs_the_wide_tests() -> None:
    second = next(line for line in (ROOT / ".ci/run").read_text("utf-8").splitlines() if "--except-passed" in line)
    assert '-m "not slow"' in second
