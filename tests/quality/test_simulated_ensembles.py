"""Ensembles of real nodes in the simulation: fixed seeds pass, and mutants of the node are found.

The nightly tests run more seeds, and all mutants.
"""

import re
import subprocess
import sys

import pytest

from simulation.run import plan_of
from simulation.swarm import run_plan
from tests.simulation.mutant import REPOSITORY, Mutant
from tests.simulation.table import ALL

SHIPPED = [(seed, 3, 0) for seed in range(101, 107)] + [(201, 5, 0), (202, 5, 1), (203, 3, 2)]
"""Seeds with their voters and observers."""
IN_THE_GATE = (
    "an event is sent twice",
    "a commit does not sync",
    "watches never fire",
    "a tree of the leader has an earlier zxid",
    "a configuration is not activated",
    "a removed ephemeral stays with its owner",
    "a new connection does not replace an older one",
)
LEAST_FOUND = 0.9


def search(words: str, timeout: float) -> subprocess.CompletedProcess[str]:
    """Search for the mutants whose description has these words, in a process without `refimpl`."""
    command = [sys.executable, "-m", "tests.simulation.table", words]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=timeout, check=True)


@pytest.mark.parametrize(("seed", "voters", "observers"), SHIPPED)
def test_a_shipped_seed_passes(seed: int, voters: int, observers: int) -> None:
    run = run_plan(plan_of(seed, voters, observers, 40.0))
    assert not run.failures
    assert sum(run.operations.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 11_000, 100))
def test_many_seeds_of_five_servers_pass(first: int) -> None:
    failed = {
        seed: run.failures
        for seed in range(first, first + 100)
        if (run := run_plan(plan_of(seed, 5, 0, 60.0))).failures
    }
    assert not failed


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.about)
def test_a_mutant_changes_one_place_of_the_present_source(mutant: Mutant) -> None:
    assert mutant.places == 1
    compile(mutant.text, mutant.path, "exec")


@pytest.mark.parametrize("about", IN_THE_GATE)
def test_a_mutant_of_the_gate_is_found(about: str) -> None:
    assert "1 of 1 found" in search(about, 600).stdout


def test_a_mutant_that_changes_nothing_is_named_with_the_proof_and_not_counted() -> None:
    printed = search("a truncation does not commit first", 60).stdout
    assert "a truncation does not commit first: changes nothing: both callers have committed" in printed
    assert "0 of 0 found" in printed


@pytest.mark.slow
def test_nearly_all_mutants_are_found() -> None:
    ran = search("", 4 * 3600)
    found = re.search(r"^(\d+) of (\d+) found$", ran.stdout, re.M)
    assert found is not None, ran.stdout
    assert int(found[1]) >= LEAST_FOUND * int(found[2]), ran.stdout
