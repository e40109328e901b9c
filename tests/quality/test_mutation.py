"""Mutation of the specification: the changes of `spec` that the tests detect, and those that the scenarios alone
detect.

A mutant is live unless it is equivalent: then no input shows a difference, and the reason is in `EQUIVALENT`. The gate
runs the tests on a small sample. `-m slow` runs a larger one, and the scenarios too.

The sample is the mutants with the lowest hash of their identity, so it stays the same until the code of a mutant in it
changes. A survivor needs a test with the behaviour of the protocol (the paper, or ZooKeeper's Java method), or an entry
in `EQUIVALENT` with a reason.
"""

import json
import subprocess
import sys
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from tests.support.mutants import REPOSITORY, Mutant, all_mutants, write_copy
from tests.support.mutation import killed_by_scenarios, killed_by_tests

IN_THE_GATE = 5
IN_SLOW_TESTS = 150
BY_SCENARIOS_IN_SLOW_TESTS = 60
BY_TESTS = 0.97
BY_VERDICTS = 0.58
BY_SIZES = 0.65
MODELLED = (
    "spec/client.py", "spec/election/", "spec/quorum/", "spec/recipes/", "spec/server.py", "spec/service/",
    "spec/tree/", "spec/zab/",
)  # fmt: skip
"""The modules that the checker's models run. The other modules read configuration files, or describe data."""

EQUIVALENT = {
    "spec/config/properties.py: _logical_lines: False -> True": (
        "there is at least one natural line, and its first pass assigns `continued`"
    ),
    "spec/tree/data.py: _as_int: 1 << 31 -> 1 >> 31 #2": (
        "a number from 0 to 2^31 - 1 then takes the formula, whose result is the same number"
    ),
    "spec/tree/data.py: _as_int: 31 -> 32": "no count is below -1, so the lower bound is never tested with less",
    "spec/tree/data.py: _as_int: number + (1 << 31) -> number - (1 << 31)": "the two differ by 2^32, the modulus",
    "spec/zab/state.py: LeaderPhase: 3 -> 4": "phases are compared by identity, and their numbers are not read",
}
"""The mutants that change no behaviour, by name, with the reason."""


def live() -> list[Mutant]:
    return [each for each in all_mutants() if each.name not in EQUIVALENT]


def explored(size: int) -> list[Mutant]:
    """Return the live mutants of lowest rank in code that a scenario runs. Other code belongs to the node, such as
    timers.
    """
    modelled = (each for each in live() if each.path.startswith(MODELLED))
    return list(islice((each for each in modelled if scenarios_of(each)), size))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mutant")
    write_copy(made)
    return made


@cache
def scenarios_by_cost() -> dict[str, tuple[float, list[str]]]:
    """Return the scenarios that end quickly, the fastest first, with the functions that each calls."""
    command = [sys.executable, "-m", "tests.support.scenario_verdicts", "--profile"]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    found = json.loads(ran.stdout.splitlines()[-1])
    return dict(sorted(found.items(), key=lambda item: item[1][0]))


def scenarios_of(mutant: Mutant) -> list[str]:
    """Return the scenarios that call the function of the mutant; all scenarios for a mutant outside of any function."""
    function, profile = f"{mutant.path}: {mutant.function}", scenarios_by_cost()
    return [name for name, (_, called) in profile.items() if mutant.is_in_a_class_or_module or function in called]


def test_every_equivalent_mutant_exists() -> None:
    assert set(EQUIVALENT) <= {mutant.name for mutant in all_mutants()}


def test_mutants_have_different_names_and_compile() -> None:
    mutants = all_mutants()
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    for mutant in mutants[:200]:
        compile(mutant.text, mutant.path, "exec")


@pytest.mark.parametrize("place", range(IN_THE_GATE))
def test_a_mutant_of_the_sample_is_killed_by_the_tests(place: int, folder: Path) -> None:
    mutant = live()[place]
    assert killed_by_tests(mutant, folder), f"no test fails with {mutant.name}"


@pytest.mark.slow
def test_the_tests_kill_nearly_all_live_mutants(folder: Path) -> None:
    chosen = live()[:IN_SLOW_TESTS]
    survivors = [each.name for each in chosen if not killed_by_tests(each, folder)]
    assert len(survivors) <= (1 - BY_TESTS) * len(chosen), "\n".join(survivors)


@pytest.mark.slow
def test_the_scenarios_alone_kill_most_live_mutants(folder: Path) -> None:
    """A scenario detects a mutant by its verdict, or by the size of its space, which the gallery records."""
    chosen = explored(BY_SCENARIOS_IN_SLOW_TESTS)
    unnoticed = [each for each in chosen if not killed_by_scenarios(each, folder, scenarios_of(each))]
    survivors = [each for each in unnoticed if not killed_by_scenarios(each, folder, scenarios_of(each), sizes=True)]
    print(f"of {len(chosen)} mutants {len(unnoticed)} have all verdicts, {len(survivors)} all sizes too")
    assert len(survivors) <= (1 - BY_SIZES) * len(chosen), "\n".join(each.name for each in survivors)
    assert len(unnoticed) <= (1 - BY_VERDICTS) * len(chosen), "\n".join(each.name for each in unnoticed)
