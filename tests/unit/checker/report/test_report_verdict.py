"""The verdict of a run, the first of the lattice that applies, and its exit code."""

from dataclasses import replace

import pytest

from checker.command import ExitCode
from checker.engine import plain
from checker.engine.discovery import Discovery
from checker.engine.model import Actor, Column, Finding, Kind, Model, Move, Outcome, Property, Read, Rule, Send
from checker.engine.result import Coverage, Evaluations, Exploration, Limits, Stop
from checker.job import Job, Verdict
from checker.models.small_election import election
from checker.present import DefaultPresenter
from checker.report import Judgement, judge, refuse
from checker.report.verdict import not_explored

READS = (Read("1"),)
PROPERTIES = {kind: Property(f"{kind.value} property", READS, lambda _: None, kind) for kind in Kind}


def judged(
    *found: Kind,
    stop: Stop = Stop.EXHAUSTED,
    kinds: tuple[Kind, ...] = (Kind.ALWAYS,),
    premise: int = 6,
    actions: tuple[str, ...] = (),
    **job: object,
) -> Judgement:
    """Return the judgement of a run of six states over properties of these kinds; `found` are kinds with a finding."""
    bare = bool(job.pop("bare", False))
    properties = [PROPERTIES[kind] for kind in dict.fromkeys((*kinds, *found))]
    model = election(2).with_properties(properties)
    exploration = Exploration(
        model,
        "tables",
        Limits(depth=2, states=6, memory=1_500_000_000, seconds=60),
        levels=[1, 2, 3],
        stop=stop,
        found={
            PROPERTIES[kind].name: Discovery(PROPERTIES[kind], Finding("clause", (("v", 1),)), 2, ()) for kind in found
        },
        coverage={"start": Coverage(5, 5)},
        evaluations={prop.name: Evaluations(6, premise) for prop in properties},
    )
    return judge(replace(Job("run", model, DefaultPresenter(model), {}), **job), exploration, actions, bare=bare)


def code(judgement: Judgement) -> tuple[Verdict, int]:
    return judgement.verdict, judgement.exit_code


def test_an_interrupted_run_is_never_as_expected_also_where_a_limit_was_to_end_it():
    expecting = {"expected": Verdict.INCOMPLETE}
    never_begun = not_explored(
        Job("run", election(2), DefaultPresenter(election(2)), {}, **expecting), "it was not begun"
    )

    by_a_limit = judged(stop=Stop.STATES, **expecting)
    assert (by_a_limit.exit_code, by_a_limit.as_expected) == (0, True)
    for broken_off in (judged(stop=Stop.INTERRUPTED, **expecting), never_begun):
        assert (broken_off.exit_code, broken_off.as_expected, broken_off.remark) == (20, False, "expected: incomplete")


@pytest.mark.parametrize(
    ("found", "violations", "as_expected"),
    [
        ([Kind.ALWAYS], {"always property": 2}, True),
        ([Kind.ALWAYS], {"always property": 3}, False),  # deeper than expected, or found too early
        ([Kind.ALWAYS], {"another property": 2}, False),
        ([Kind.ALWAYS, Kind.FINAL], {"always property": 2}, False),  # one more than expected
        ([Kind.ALWAYS, Kind.SOMETIMES], {"always property": 2}, True),  # a witness is not a violation
    ],
)
def test_other_violations_than_the_named_ones_are_not_as_expected(found, violations, as_expected):
    judgement = judged(*found, expected=Verdict.VIOLATED, violations=violations)

    assert judgement.verdict is Verdict.VIOLATED
    assert (judgement.as_expected, judgement.exit_code) == (as_expected, 0 if as_expected else 12)
    wanted = ", ".join(f"{name} at depth {depth}" for name, depth in violations.items())
    assert judgement.remark == ("as expected" if as_expected else f"expected: violated, {wanted}")


# -- each verdict --------------------------------------------------------------------------------------------


def test_passed_is_0_and_says_that_the_space_is_exhausted():
    assert code(judged()) == (Verdict.PASSED, 0)
    assert judged().sentence == "passed: no violation, space exhausted: 6 states"


def test_a_property_violated_is_12():
    assert code(judged(Kind.ALWAYS, stop=Stop.FOUND)) == (Verdict.VIOLATED, 12)
    assert judged(Kind.ALWAYS).sentence == "violated: always property at depth 2: clause (v = 1)"


def test_a_finding_in_a_final_state_is_a_deadlock_and_11():
    assert code(judged(Kind.FINAL, stop=Stop.FOUND)) == (Verdict.DEADLOCK, 11)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (Stop.TIME, "the time given (60 s) ended the search"),
        (Stop.STATES, "the number of states given (6) ended the search"),
        (Stop.INTERRUPTED, "the search was interrupted"),
    ],
)
def test_a_run_that_a_limit_ended_is_incomplete_and_20(stop, reason):
    assert code(judged(stop=stop)) == (Verdict.INCOMPLETE, 20)
    assert judged(stop=stop).sentence == (f"incomplete: {reason}; no violation among the 6 states seen, to depth 2")


def test_a_space_too_large_for_the_memory_given_is_incomplete_and_152():
    assert code(judged(stop=Stop.MEMORY)) == (Verdict.INCOMPLETE, 152)
    assert "too large for the memory given (1.5 GB)" in judged(stop=Stop.MEMORY).sentence


def test_a_depth_that_was_asked_for_is_not_incomplete():
    assert code(judged(stop=Stop.DEPTH)) == (Verdict.PASSED, 0)
    assert judged(stop=Stop.DEPTH).sentence == "passed: no violation within depth 2"


@pytest.mark.parametrize(("target", "is_vacuous"), [("impossible", True), ("same", False), ("next", False), ("", True)])
def test_a_model_in_which_nothing_can_happen_is_vacuous(target, is_vacuous):
    """No rule declares its actions, so that none of them is known to be silent."""
    steps = {"same": Outcome((0,)), "next": Outcome((1,))}
    actor = Actor("n", ("n",), lambda values, operation: None if values[0] else steps.get(operation))
    rule = Rule("r", (Read("n"),), lambda n: [Move("go", (), (Send("n", target),))] if target else [])
    model = Model("m", (Column("n", 0),), (actor,), (rule,), (Property("P", (Read("n"),), lambda n: None),))

    judgement = judge(Job("m", model, DefaultPresenter(model), {}), plain.explore(model))

    assert code(judgement) == ((Verdict.VACUOUS, 21) if is_vacuous else (Verdict.PASSED, 0))
    assert ("nothing can happen in the first state" in judgement.sentence) is is_vacuous


def test_an_action_that_never_fired_is_vacuous_and_21():
    judgement = judged(actions=("start", "crash"))
    assert code(judgement) == (Verdict.VACUOUS, 21)
    assert judgement.reasons == ("the action crash never fired",)


@pytest.mark.parametrize("stop", [Stop.EXHAUSTED, Stop.DEPTH])
def test_a_run_without_a_property_is_vacuous_and_21(stop):
    judgement = judged(kinds=(), stop=stop)
    assert code(judgement) == (Verdict.VACUOUS, 21)
    assert judgement.reasons == ("no property was given, so that nothing was checked",)


def test_an_end_that_a_depth_does_not_reach_is_named_with_the_depth():
    model = election(2).with_properties([PROPERTIES[Kind.FINAL]])
    found = Exploration(model, "tables", Limits(depth=2), levels=[1, 2, 3], stop=Stop.DEPTH)
    judgement = judge(Job("run", model, DefaultPresenter(model), {}), found)
    assert judgement.reasons == ("final property was never examined, since no run of at most 2 steps ends",)


def test_an_action_that_need_not_fire_is_excused_and_still_named_as_silent():
    judgement = judged(actions=("start", "crash"), allowed_silent=frozenset({"crash"}))
    assert judgement.verdict is Verdict.PASSED
    assert judgement.silent == ("crash",)


@pytest.mark.parametrize("stop", [Stop.EXHAUSTED, Stop.DEPTH])
def test_a_witness_hoped_for_and_never_seen_is_vacuous(stop):
    judgement = judged(kinds=(Kind.SOMETIMES,), stop=stop)
    assert code(judgement) == (Verdict.VACUOUS, 21)
    assert judgement.reasons == ("sometimes property was never witnessed",)


@pytest.mark.parametrize("kind", [Kind.ALWAYS, Kind.FINAL])
def test_a_property_whose_premise_never_held_is_vacuous(kind: Kind):
    judgement = judged(kinds=(kind,), premise=0)
    assert (code(judgement), judgement.reasons) == (
        (Verdict.VACUOUS, 21), (f"the premise of {kind.value} property never held",)
    )  # fmt: skip


def test_a_premise_that_the_bounds_rule_out_is_excused_by_name():
    assert judged(premise=0, allowed_silent=frozenset({"always property"})).verdict is Verdict.PASSED


def test_a_witness_that_was_seen_is_no_violation():
    assert code(judged(Kind.SOMETIMES)) == (Verdict.PASSED, 0)


def test_a_search_that_ended_with_its_witnesses_is_not_held_to_have_tried_everything():
    judgement = judged(Kind.SOMETIMES, stop=Stop.WITNESSED, actions=("start", "crash"))
    assert judgement.sentence == ("passed: every witness was found within depth 2, and the search ended there")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(ExitCode.SCENARIO, 150), (ExitCode.CONFIGURATION, 151), (ExitCode.COMMAND_LINE, 2)],
)
def test_a_run_that_could_not_begin_is_an_error_with_the_code_of_what_was_wrong(kind, expected):
    assert code(refuse("zoo.cfg:3: no such key", kind)) == (Verdict.ERROR, expected)
    assert refuse("zoo.cfg:3: no such key", kind).sentence == "error: zoo.cfg:3: no such key"


@pytest.mark.parametrize("kind", [Kind.RECOVERABLE, Kind.EVENTUALLY])
def test_liveness_violated_is_13_and_safety_comes_before_it(kind):
    assert code(judged(kind)) == (Verdict.VIOLATED, 13)
    assert code(judged(kind, Kind.ALWAYS)) == (Verdict.VIOLATED, 12)
    assert judged(kind).sentence == f"violated: {kind.value} property: clause (v = 1)"


@pytest.mark.parametrize("kind", [Kind.RECOVERABLE, Kind.EVENTUALLY])
def test_liveness_that_was_not_judged_is_incomplete_also_at_a_depth_that_was_asked_for(kind):
    judgement = judged(kinds=(kind,), stop=Stop.DEPTH)
    assert code(judgement) == (Verdict.INCOMPLETE, 20)
    assert f"{kind.value} property cannot be judged within a depth (2)" in judgement.sentence


# -- the lattice ---------------------------------------------------------------------------------------------


def test_the_first_verdict_that_applies_wins():
    """Each run has the causes of the next one, and one more of higher priority."""
    vacuous = {"premise": 0, "actions": ("crash",)}
    runs = [
        judged(Kind.ALWAYS, Kind.FINAL, stop=Stop.TIME, **vacuous),
        judged(Kind.FINAL, stop=Stop.TIME, **vacuous),
        judged(stop=Stop.TIME, **vacuous),
        judged(**vacuous),
        judged(),
    ]
    assert [run.verdict for run in runs] == [
        Verdict.VIOLATED,
        Verdict.DEADLOCK,
        Verdict.INCOMPLETE,
        Verdict.VACUOUS,
        Verdict.PASSED,
    ]


def test_every_reason_is_kept_and_the_sentence_counts_those_it_leaves_out():
    judgement = judged(premise=0, actions=("crash", "cut"))
    assert len(judgement.reasons) == 3
    assert judgement.sentence.startswith("vacuous: the action crash never fired; and 2 more (no violation, ")


# -- the expected verdict ------------------------------------------------------------------------------------


def test_a_run_with_the_expected_verdict_exits_with_0():
    judgement = judged(Kind.ALWAYS, expected=Verdict.VIOLATED)
    assert (judgement.exit_code, judgement.as_expected, judgement.remark) == (0, True, "as expected")


def test_a_run_with_another_verdict_exits_with_the_code_of_what_it_got():
    judgement = judged(Kind.ALWAYS, expected=Verdict.PASSED)
    assert (judgement.exit_code, judgement.remark) == (12, "expected: passed")


def test_a_run_that_passes_against_expectation_does_not_exit_with_0():
    assert judged(expected=Verdict.VIOLATED).exit_code == 1


def test_the_bare_code_is_that_of_the_verdict_whatever_was_expected():
    assert judged(Kind.ALWAYS, expected=Verdict.VIOLATED, bare=True).exit_code == 12
    assert judged(expected=Verdict.VIOLATED, bare=True).exit_code == 0


def test_an_error_may_be_expected_too():
    assert refuse("no quorum", expected=Verdict.ERROR).exit_code == 0
    assert refuse("no quorum", expected=Verdict.ERROR, bare=True).exit_code == 150
