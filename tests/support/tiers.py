"""The tiers of the tests.

    pytest -m quick          at most a minute
    pytest                   minutes: every behaviour once
    pytest -m "not slow"     the wide tests too: the gate runs all of these
    pytest -m slow           more of the same, minutes for a test; nobody waits for these

A file of `tests/unit` is quick if neither it nor a module of `tests` that it imports starts a process or imports the
checker, the harness or the benchmarks. So these are the tests of single steps and of the node's parts: no search, no
kernel, no server. The other files are not even imported.
"""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
WIDE = (
    "tests/properties/",  # random inputs, compared with a second engine or with brute force
    "tests/quality/test_known_defects.py",
    "tests/quality/test_mutants",  # planted faults
    "tests/quality/test_mutation",
    "tests/quality/test_one_specification.py",
    "tests/quality/test_recipe_variants.py",
    "tests/quality/test_reconfiguration_variants.py",
    "tests/quality/test_refinement",
    "tests/quality/test_service_variants.py",
    "tests/quality/test_simulated_ensembles.py",
    "tests/quality/test_zab_variants.py",
    "tests/conformance/test_held_commits.py",
    "tests/conformance/test_rollout_facts.py",
    "tests/conformance/test_scenarios.py::test_a_symmetric_search",  # a scenario comes to its verdict without these
    "tests/conformance/test_scenarios.py::test_both_engines",
    "tests/conformance/test_scenarios.py::test_its_page",
    "tests/conformance/test_zab_grains.py",
    "tests/unit/checker/test_gallery_command.py",
    "tests/unit/checker/test_nonsense.py",
    "tests/unit/research/",
)
"""The tests that ask again what others ask, of many more inputs, engines or faults: two thirds of the time of all."""
IMPORT = re.compile(r"^\s*(?:from|import) ([\w.]+)(?: import ([\w, ]+))?", re.MULTILINE)
SLOW = {"checker", "harness", "benchmarks", "subprocess", "multiprocessing"}


def is_quick(path: Path) -> bool:
    """Whether the tests of this file belong to the quick tier."""
    if UNIT not in path.parents:
        return False
    waiting, seen = [path], {path}
    while waiting:
        names = _imported(waiting.pop())
        if SLOW.intersection(name.partition(".")[0] for name in names):
            return False
        files = {ROOT / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")} - seen
        waiting += (file for file in files if file.exists())
        seen |= files
    return True


def is_wide(nodeid: str) -> bool:
    """Whether a test belongs to the wide tier."""
    return nodeid.startswith(WIDE)


@cache
def _imported(path: Path) -> frozenset[str]:
    """The modules that a file imports, and the names in them."""
    found = IMPORT.findall(path.read_text(encoding="utf-8"))
    members = {f"{module}.{name}" for module, names in found for name in names.split(", ")}
    return frozenset({module for module, _ in found} | members)
