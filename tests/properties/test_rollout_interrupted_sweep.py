"""Random interrupted roll-outs: the state is read from its files, and no SAFE answer is contradicted.

Every pair with every set of changed servers ends in a plan or in one clear error. A search by brute force finds no
violation where a cell is SAFE, neither forwards nor backwards.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from checker.engine import Limits
from checker.rollout import Folder, PlanRequest, plan, read_folder
from checker.rollout.inputs.folders import settings as keys_of
from checker.rollout.orders import OrderError
from checker.rollout.output.data import data
from checker.rollout.output.markdown import markdown
from checker.rollout.runs import RunResult, run_within
from checker.rollout.scenarios import RunSpec
from spec.config import ConfigError
from tests.properties.test_rollout_sweep import contradictions
from tests.reality.interrupted import compared
from tests.support.rollout_pairs import IDS, Cfg, pairs, write_servers
from tests.support.rollout_runs import seen_state

FEW, MANY = 3, 60


def swept(count: int) -> tuple[int, list[str]]:
    """Plan this number of interrupted roll-outs; return the number of plans, and the contradictions."""
    planned, contradicted, random = 0, [], Random(0)

    @settings(
        max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(pairs(), st.sets(st.sampled_from(IDS)))
    def sweep(pair: tuple[Cfg, Cfg], some: set[int]) -> None:
        nonlocal planned
        with tempfile.TemporaryDirectory() as name:
            try:
                old, new = (read_folder(cfg.write(Path(name, which))) for cfg, which in zip(pair, "ab", strict=True))
                applied = frozenset(some & (old.servers.keys() | new.servers.keys()))
                for side, sids in ((new, applied), (old, old.servers.keys() - applied)):
                    write_servers(Path(name, "now"), {sid: side.servers[sid] for sid in side.servers.keys() & sids})
                now = seen_state(Path(name, "now"), old, new)
                assert now.applied == applied | _same(old, new)
                made = plan(PlanRequest(old, new, now=now), limited)
            except (ConfigError, OrderError) as refusal:
                assert str(refusal)
                return
        planned += 1
        assert made.back is not None and data(made) and markdown(made, traces=False)
        contradicted.extend(contradictions(made, random))
        contradicted.extend(contradictions(replace(made, direct=made.back), random))

    sweep()
    return planned, contradicted


def limited(spec: RunSpec, seconds: float) -> RunResult:
    """Explore few states, so that most verdicts rest on proofs and on small spaces."""
    return run_within(spec, Limits(states=500))


def _same(old: Folder, new: Folder) -> set[int]:
    """The servers whose two files are equal."""
    both = old.servers.keys() & new.servers.keys()
    return {sid for sid in both if keys_of(old.servers[sid]) == keys_of(new.servers[sid])}


def test_a_few_interrupted_roll_outs_end_in_answers_that_brute_force_does_not_contradict() -> None:
    planned, contradicted = swept(FEW)
    assert planned and contradicted == []


@pytest.mark.slow
def test_many_interrupted_roll_outs_end_in_answers_that_brute_force_does_not_contradict() -> None:
    planned, contradicted = swept(MANY)
    assert planned > MANY // 2 and contradicted == []


def test_a_plan_that_is_called_safe_goes_on_as_planned_after_each_of_its_steps() -> None:
    """A few pairs of `python -m tests.reality.interrupted`."""
    results = compared(6, 6, budget="2s")
    assert sum(result.steps for result in results) > 20
    assert [result for result in results if result.disagreements] == []
