"""The loop that works off the questions of a plan: passes with growing limits under one budget."""

from dataclasses import replace

from checker.rollout.runs import BESIDE, DEEPER, FIRST, RunEnd, RunResult, SafetyVerdict, Work
from checker.rollout.scenarios import Question, RunSpec
from checker.scenario import ScenarioError
from tests.support.rollout_runs import change_of, made_up

STAGE = change_of("three", "four")
ASKED = RunSpec(STAGE, (), 3, Question.ELECTION)
OTHER = replace(ASKED, leader=2)


class Engine:
    """An engine whose runs need `needed` seconds of work; it records the limit of each run."""

    def __init__(self, needed: float) -> None:
        self.needed = needed
        self.limits: list[float] = []

    def run(self, spec: RunSpec, seconds: float) -> RunResult:
        self.limits.append(seconds)
        outcome = SafetyVerdict.SAFE if seconds >= self.needed else SafetyVerdict.OPEN
        return made_up(spec, outcome, seconds=min(seconds, self.needed))


def test_a_run_that_its_limit_cut_is_made_again_in_the_next_pass() -> None:
    engine = Engine(FIRST + 1)
    work = Work(engine.run, 60.0)
    assert work.ask(ASKED).outcome is SafetyVerdict.OPEN
    assert work.deepen()
    assert work.ask(ASKED).outcome is SafetyVerdict.SAFE
    assert engine.limits == [FIRST, DEEPER * FIRST]


def test_a_finished_run_is_made_once() -> None:
    engine = Engine(0.5)
    work = Work(engine.run, 60.0)
    assert work.ask(ASKED) == work.ask(ASKED)
    assert len(engine.limits) == 1 and not work.deepen()


def test_one_pass_makes_no_run_twice() -> None:
    engine = Engine(100.0)
    work = Work(engine.run, 60.0)
    assert work.ask(ASKED) == work.ask(ASKED)
    assert len(engine.limits) == 1


def test_the_budget_ends_the_runs_and_what_is_known_stays() -> None:
    engine = Engine(100.0)
    work = Work(engine.run, FIRST + 2)
    first = work.ask(ASKED)
    assert first.begun and work.left == 2.0 and work.deepen()
    assert work.ask(OTHER).begun and work.left == 0.0 and engine.limits == [FIRST, 2.0]
    assert work.ask(ASKED) == first and work.clock() == FIRST + 2
    assert not work.ask(replace(ASKED, leader=1)).begun and not work.deepen()


def test_what_no_verdict_needs_has_work_of_its_own_and_asks_for_no_further_pass() -> None:
    engine = Engine(1000.0)
    work = Work(engine.run, 600.0)
    with work.beside():
        for number in range(40):
            work.ask(replace(ASKED, elections=number))
        assert work.left == 0.0
    assert work.clock() == BESIDE and work.left == 600.0 - BESIDE and not work.deepen()
    work.ask(ASKED)
    assert work.deepen()


def test_a_first_state_that_is_impossible_is_no_run() -> None:
    def refuse(spec: RunSpec, seconds: float) -> RunResult:
        raise ScenarioError("rollout.yaml", 1, "opening", "it cannot be followed", "leave it out")

    work = Work(refuse, 60.0)
    result = work.ask(ASKED)
    assert result.end is RunEnd.IMPOSSIBLE and result.outcome is SafetyVerdict.OPEN and not work.deepen()
