"""Random pairs of zoo.cfg files through the planner.

Every pair ends in a plan or in one clear error. No cell is SAFE where a search by brute force, in an order that the
planner did not choose, finds a violation. Budgets are kept, and a busy machine gives the same answer, run by run.
The gate runs a few pairs; `pytest -m slow` runs 200, each twice, once with the processors busy.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from checker.engine import Limits
from checker.engine.model import Kind
from checker.rollout import Engine, Plan, PlanRequest, SafetyVerdict, plan, read_folder
from checker.rollout.assessor import LEADERS
from checker.rollout.orders import OrderError, may_lead, steps_of
from checker.rollout.output.sentences import run_sentence
from checker.rollout.route_verdict import LARGEST
from checker.rollout.runs import run_within
from checker.rollout.scenarios import CRASHES, SAFE_DATA, Question, RunSpec
from checker.scenario import ScenarioError
from spec.config import ConfigError
from tests.support.rollout_pairs import Cfg, pairs

BUDGET = 5.0  # seconds of work
STATES = 4_000  # of a search by brute force
FEW, MANY = 6, 200

Cells = dict[tuple[Question, bool], SafetyVerdict]


@dataclass
class Swept:
    """The answers to the pairs, in their order: the cells, or the error that refused the pair.

    `runs` has the sizes of all runs. `work` and `processor` are seconds of each plan.
    """

    answers: list[Cells | str] = field(default_factory=list)
    runs: list[tuple[int, ...]] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    contradicted: list[str] = field(default_factory=list)


def swept(count: int, *, brute_force: bool) -> Swept:
    """Plan this number of pairs. Any exception except a clear refusal ends it."""
    result = Swept()
    engine = Engine()
    random = Random(0)

    @settings(
        max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(pairs())
    def sweep(pair: tuple[Cfg, Cfg]) -> None:
        with tempfile.TemporaryDirectory() as name:
            try:
                old, new = (read_folder(cfg.write(Path(name, which))) for cfg, which in zip(pair, "ab", strict=True))
                began = time.process_time()
                made = plan(PlanRequest(old, new, seconds=BUDGET), engine.run)
            except (ConfigError, OrderError) as refusal:
                assert str(refusal)
                result.answers.append(type(refusal).__name__)
                return
        result.work.append(made.seconds)
        result.processor.append(time.process_time() - began)
        result.runs.append(tuple(ran.states for ran in made.runs))
        result.answers.append(cells_of(made))
        if brute_force:
            result.contradicted += contradictions(made, random)

    sweep()
    return result


def cells_of(made: Plan) -> Cells:
    """Return the outcomes of the cells of the direct change."""
    return {(q, faulty): made.direct.answer(q, faulty=faulty).outcome for q in Question for faulty in (False, True)}


def contradictions(made: Plan, random: Random) -> Iterator[str]:
    """Yield violations in SAFE cells, by a search: along the planned steps, or any order where a proof covers all.

    The planned steps are SAFE only with their waits. A proof needs no waits.
    """
    stage = made.direct.stage
    if len(stage.sids) > LARGEST or stage.gossips:
        return
    for question, always, writes in ((Question.ELECTION, LEADERS, 0), (Question.COMMITS, SAFE_DATA, 1)):
        for faulty in (False, True):
            if made.direct.answer(question, faulty=faulty).outcome is not SafetyVerdict.SAFE:
                continue
            if made.direct.proved or not made.direct.orders:
                steps = steps_of(stage, random.sample(stage.remaining, len(stage.remaining)))
                leader = random.choice(sorted(may_lead(stage)))
            else:
                steps, leader = made.direct.orders[0].steps, made.direct.orders[0].leader
            spec = RunSpec(
                stage, steps, leader, question, {CRASHES: 1} if faulty else {}, always=always, writes=writes,
                elections=2, patient=not made.direct.proved,
            )  # fmt: skip
            try:
                ran = run_within(spec, Limits(states=STATES))
            except ScenarioError:
                continue
            if ran.found is not None and ran.found.prop.kind is Kind.ALWAYS:
                yield f"{spec.name}: {run_sentence(ran)}"


def _spin(ready: multiprocessing.synchronize.Event) -> None:
    ready.set()
    while True:
        pass


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Other processes that never wait."""
    context = multiprocessing.get_context("spawn")
    events = [context.Event() for _ in range(processes)]
    spinning = [context.Process(target=_spin, args=(event,), daemon=True) for event in events]
    try:
        for process, event in zip(spinning, events, strict=True):
            process.start()
            event.wait(30)
        yield
    finally:
        for process in spinning:
            process.kill()
            process.join()


def test_a_few_pairs_end_in_an_answer_that_brute_force_does_not_contradict() -> None:
    result = swept(FEW, brute_force=True)
    assert len(result.answers) == FEW
    assert result.contradicted == []
    assert max(result.work) <= 1.2 * BUDGET


@pytest.mark.slow
def test_two_hundred_pairs_and_the_same_answers_on_a_busy_machine() -> None:
    quiet = swept(MANY, brute_force=True)
    with busy(os.cpu_count() or 2):
        again = swept(MANY, brute_force=False)
    kinds = Counter(answer if isinstance(answer, str) else "a plan" for answer in quiet.answers)
    outcomes = Counter(
        outcome.name for answer in quiet.answers if not isinstance(answer, str) for outcome in answer.values()
    )
    differ = [n for n, (one, other) in enumerate(zip(quiet.answers, again.answers, strict=True)) if one != other]
    longest = f"longest {max(quiet.work):.2f} s of work, {max(quiet.processor):.2f} s of processor time"
    print(kinds, outcomes, f"{longest}, {max(again.processor):.2f} s on the busy machine; differ: {differ}")
    assert quiet.contradicted == []
    assert max(quiet.work) <= 1.2 * BUDGET
    assert differ == [] and quiet.runs == again.runs
