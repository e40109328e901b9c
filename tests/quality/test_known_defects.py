"""Each scenario of a known defect of Zab without its variant: the correction holds in the whole space.

The specification without a variant is the proposed correction of each defect that no release has corrected. A scenario
pins the shortest violation. Here the same ensemble is explored to the end without the variant, with the same faults and
writes, for all default invariants. The variant of ZOOKEEPER-5094 has an effect only with `sync-from-applied`. That
variant stays, with the invariant that it does not break. The plain engine confirms the numbers of states.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from checker.engine import Exploration, Limits, Stop, plain
from checker.engine.search import explore
from checker.job import Job
from checker.scenario import bundled, from_text

FOLDER = next(path for path in bundled() if path.stem == "zookeeper-2845").parent
NAMES = tuple(path.stem for path in sorted(FOLDER.glob("*.yaml")) if "protocol: zab" in path.read_text("utf-8"))
UNCORRECTED = {
    "acks-survive-truncation": 45_666,
    "sync-from-applied": 58_536,
    "trunc-after-snap": 128_350,
    "fuzzy-snapshot": 55_092,
    "zookeeper-1549": 98_238,
    "zookeeper-4837": 25_511,
    "zookeeper-4882": 51_009,
    "zookeeper-5094": 206_736,
}
"""The defects that 3.9.5 has, and the states of the space without the variant, for the invariant of the scenario."""
STAYS = {"zookeeper-5094": "variants: [sync-from-applied]\n"}
PLAIN = {"zookeeper-4837"}
"""The spaces that the plain engine explores in the gate; the others are slow tests."""


def corrected(name: str, *, all_invariants: bool = False) -> Job:
    text = (FOLDER / f"{name}.yaml").read_text("utf-8")
    text = re.sub(r"variants: .*\n", STAYS.get(name, ""), text)
    text = re.sub(r"violations: .*\n", "", text).replace("expect: violated", "expect: passed")
    if all_invariants:
        text = re.sub(r"always: .*\n", "", text)
    return from_text(text, lambda file: Path(FOLDER / file).read_text("utf-8"))


@cache
def explored(name: str, *, all_invariants: bool = False) -> Exploration:
    return explore(corrected(name, all_invariants=all_invariants).model, Limits())


@pytest.mark.parametrize("name", NAMES)
def test_without_its_variant_nothing_is_violated_in_the_whole_space(name: str) -> None:
    found = explored(name, all_invariants=name not in STAYS)
    assert (found.stop, set(found.found)) == (Stop.EXHAUSTED, set())


@pytest.mark.parametrize("name", UNCORRECTED)
def test_the_space_of_a_correction_has_this_size(name: str) -> None:
    found = explored(name, all_invariants=False)
    assert (found.stop, found.states) == (Stop.EXHAUSTED, UNCORRECTED[name])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in PLAIN else pytest.mark.slow) for name in UNCORRECTED]
)
def test_the_plain_engine_finds_the_same_space(name: str) -> None:
    job = corrected(name)
    found = plain.explore(job.model, job.limits)
    assert (found.stop, found.states, set(found.found)) == (Stop.EXHAUSTED, UNCORRECTED[name], set())
