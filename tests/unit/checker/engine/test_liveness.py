"""Liveness on small models with known answers: goals that can always be reached, and goals on every fair run."""

from dataclasses import replace

import pytest

from checker.engine import (
    TRIVIAL,
    Actor,
    Column,
    Finding,
    Kind,
    Liveness,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
)
from checker.engine.liveness.lasso import lasso
from tests.support.graphs import both, eventually, graph, places, recoverable

# -- recoverable ---------------------------------------------------------------------------------------------


def test_what_every_state_leads_back_to_is_recoverable_however_unlikely_that_is():
    found = both(graph([(0, "on", 1), (1, "on", 2), (2, "on", 1), (2, "back", 0)], recoverable(0)))
    assert found.found == {}
    assert found.liveness["Back"] == Liveness(goals=1, open=2, states=2, edges=3, components=1, traps=0)


def test_a_trap_is_shown_by_the_shortest_way_to_where_all_is_lost_and_a_loop_in_it():
    edges = [(0, "on", 1), (1, "back", 0), (1, "off", 2), (2, "on", 3), (3, "round", 4), (4, "round", 3)]
    found = both(graph(edges, recoverable(0)))
    assert places(found, "Back") == ([0, 1, 2, 3, 4, 3], 3, 2)
    assert found.found["Back"].depth == 2
    assert found.found["Back"].finding == Finding(
        "from step 2 on no run reaches the goal", (("states left", "3"), ("this run ends", "in a loop of 2 moves"))
    )
    assert found.liveness["Back"].traps == 1


def test_a_dead_end_has_no_loop():
    found = both(graph([(0, "on", 1), (1, "back", 0), (1, "off", 2)], recoverable(0)))
    assert places(found, "Back") == ([0, 1, 2], None, 2)


def test_a_move_that_changes_nothing_is_a_loop_of_one():
    assert places(both(graph([(0, "off", 1), (1, "wait", 1)], recoverable(0))), "Back") == ([0, 1, 1], 1, 1)


def test_a_state_that_demands_nothing_need_not_be_recoverable():
    edges = [(0, "on", 1), (1, "back", 0), (1, "off", 2), (2, "stay", 2)]
    some = Property("Some", (Read("at"),), lambda at: Finding("there") if at == 0 else TRIVIAL if at == 2 else None,
                    Kind.RECOVERABLE)  # fmt: skip
    found = both(graph(edges, some, recoverable(0)))
    assert list(found.found) == ["Back"]
    assert found.liveness["Some"].open == 1


def test_without_a_goal_anywhere_nothing_is_recoverable():
    assert places(both(graph([(0, "on", 0)], recoverable())), "Back") == ([0, 0], 0, 0)


# -- eventually ----------------------------------------------------------------------------------------------


def test_what_can_always_happen_happens_in_the_end():
    edges = [(0, "round", 1), (1, "round", 0), (0, "out", 2), (1, "out", 2)]
    found = both(graph(edges, eventually(2)))
    assert found.found == {}
    assert found.liveness["There"] == Liveness(goals=1, open=2, states=2, edges=4, components=1, traps=0)


def test_what_can_happen_only_now_and_then_need_not():
    found = both(graph([(0, "round", 1), (1, "round", 0), (1, "out", 2)], eventually(2)))
    assert places(found, "There") == ([0, 1, 0], 0, 0)


def test_where_only_unfair_moves_are_left_a_run_may_stay():
    must_go_on = eventually(2, unfair=["out"])
    found = both(graph([(0, "on", 1), (1, "out", 2)], must_go_on))
    assert places(found, "There") == ([0, 1], 1, 0)
    assert found.found["There"].finding.values == (("this run ends", "where nothing more need happen"),)


def test_a_run_that_ends_short_of_the_goal_violates():
    assert places(both(graph([(0, "on", 1), (0, "out", 2)], eventually(2))), "There") == ([0, 1], 1, 0)


def test_a_loop_takes_every_unit_that_can_always_happen_in_it():
    edges = [(0, "a", 1), (1, "a", 0), (0, "b", 0), (1, "b", 2), (2, "a", 0), (2, "b", 2)]
    found = both(graph(edges, eventually(9))).found["There"]
    taken = {step.move.action for step in found.path[found.loop + 1 :]}
    assert taken == {"a", "b"}


def test_a_move_that_nothing_declares_fair_need_never_happen():
    """As in TLA+, where a specification without WF or SF allows a run to stay for ever."""
    assert places(both(graph([(0, "on", 1)], eventually(1), fair=False)), "There") == ([0], 0, 0)


def test_a_rule_may_declare_some_of_its_actions():
    """Weak fairness of `out` alone; `crash` of the same rule need not happen."""
    moves = {0: [("crash", 1), ("out", 2)], 1: [("crash", 1)]}

    def listed(at: int) -> list[Move]:
        return [Move(name, (), (Send("at", to),)) for name, to in moves.get(at, ())]

    rule = Rule("both", (Read("at"),), listed, fair=("out",))
    token = Actor("at", ("at",), lambda _, to: Outcome((to,)))
    model = Model("token", (Column("at", 0),), (token,), (rule,), (eventually(2),))
    assert places(both(model), "There")[0][:2] == [0, 1]


# -- strong fairness: SF of TLA+ (Lamport, "Specifying Systems", section 8.4) --------------------------------


def test_what_can_happen_again_and_again_happens_if_it_is_strong():
    edges = [(0, "round", 1), (1, "round", 0), (1, "out", 2)]
    found = both(graph(edges, eventually(2), fair="strong"))
    assert found.found == {}
    assert found.liveness["There"] == Liveness(goals=1, open=2, states=2, edges=3, components=1, traps=0)


def test_a_strong_unit_is_no_duty_of_a_run_that_leaves_for_where_it_cannot_happen():
    """`out` is possible in 1 alone, and the run may stay in the loop of 0 and 3, a part of the component."""
    edges = [(0, "on", 1), (1, "on", 0), (1, "out", 2), (0, "round", 3), (3, "round", 0)]
    fair = {"out": "strong"}
    model = graph(edges, eventually(2))
    found = both(model.with_rules([replace(rule, fair=fair if rule.name == "out" else False) for rule in model.rules]))
    assert places(found, "There") == ([0], 0, 0)
    found = both(model.with_rules([replace(rule, fair=fair if rule.name == "out" else True) for rule in model.rules]))
    assert places(found, "There") == ([0, 3, 0], 0, 0)
    assert found.liveness["There"].components == 1


def test_a_loop_takes_every_strong_unit_that_is_possible_in_one_of_its_states():
    edges = [(0, "a", 1), (1, "a", 0), (1, "b", 2), (2, "a", 0), (2, "c", 2)]
    found = both(graph(edges, eventually(9), fair="strong")).found["There"]
    assert {step.move.action for step in found.path[found.loop + 1 :]} == {"a", "b", "c"}


@pytest.mark.parametrize(("strength", "starves"), [(True, True), ("strong", False)])
def test_a_lock_by_test_and_set_starves_a_process_unless_its_attempt_is_strongly_fair(strength, starves):
    """Two processes, each outside ("n"), trying ("t") or inside ("c"); one enters if the other is not inside."""

    def rule(me, other):
        def moves(own, theirs):
            after = {"n": "t", "t": None if theirs == "c" else "c", "c": "n"}[own]
            return [Move({"n": "try", "t": "set", "c": "leave"}[own], (), (Send(me, after),))] if after else []

        return Rule(me, (Read(me), Read(other)), moves, fair={"try": True, "set": strength, "leave": True})

    actors = tuple(Actor(name, (name,), lambda _, to: Outcome((to,))) for name in "ab")
    inside = Property("Inside", (Read("a"),), lambda own: Finding("inside") if own == "c" else None, Kind.EVENTUALLY)
    columns = (Column("a", "n"), Column("b", "n"))
    found = both(Model("test and set", columns, actors, (rule("a", "b"), rule("b", "a")), (inside,)))
    assert ("Inside" in found.found) is starves


def test_the_run_of_a_finding_is_refused_if_it_misses_a_strong_unit():
    edges = [(0, "round", 1), (1, "round", 0), (1, "out", 2)]
    with pytest.raises(ModelError, match=r"'out'.* can again and again happen"):
        lasso(graph(edges, eventually(2), fair="strong"), eventually(2), [], [0, 0], 0)


@pytest.mark.parametrize(
    ("edges", "forced"),
    [
        ([(0, "crash", 1)], ("crash",)),
        ([(0, "crash", 2), (2, "wish", 3), (3, "on", 1), (2, "other", 2)], ("crash", "wish")),
        ([(0, "crash", 0)], ()),
    ],
    ids=["one", "two of three", "none suffices"],
)
def test_actions_by_which_alone_a_property_would_hold_are_named(edges, forced):
    found = both(graph(edges, eventually(1, unfair=["crash", "wish", "other"])))
    assert found.liveness["There"].forced == forced
    assert "There" in found.found


def test_properties_of_one_model_may_differ_in_what_is_fair():
    edges = [(0, "round", 0), (0, "out", 1)]
    unfair = eventually(1, unfair=["round", "out"], name="Unfair")
    found = both(graph(edges, eventually(1, name="Fair"), unfair, recoverable(1)))
    assert set(found.found) == {"Unfair"}
    assert list(found.liveness) == ["Fair", "Unfair", "Back"]


# -- leads to ------------------------------------------------------------------------------------------------


def test_without_the_trigger_nothing_is_demanded():
    found = both(graph([(0, "on", 0), (0, "ask", 1), (1, "answer", 0)], eventually(0, after=(1,))))
    assert found.found == {}
    assert found.liveness["There"].open == 1


def test_a_demand_outlives_its_trigger():
    """1 asks, and 2 to 4 demand nothing; a run that loops there has not been answered."""
    edges = [(0, "wait", 0), (0, "ask", 1), (1, "on", 2), (2, "on", 3), (3, "round", 2), (3, "answer", 5)]
    found = both(graph(edges, eventually(5, after=(1,))))
    assert places(found, "There") == ([0, 1, 2, 3, 2], 2, 1)
    assert found.liveness["There"] == Liveness(goals=1, open=1, states=3, edges=4, components=2, traps=1)


def test_what_was_answered_before_the_trigger_is_no_answer():
    found = both(graph([(0, "on", 1), (1, "ask", 2), (2, "on", 3)], eventually(1, after=(2,))))
    assert places(found, "There") == ([0, 1, 2, 3], 3, 2)


# -- known algorithms ----------------------------------------------------------------------------------------


def critical(process: int, **how: object) -> Property:
    """Return the property that a process enters after it wants to. A state is (program counters, flags, turn)."""

    def check(state: tuple) -> object:
        return {"in": Finding("it is in"), "wants": None, "waits": None}.get(state[0][process], TRIVIAL)

    return Property(f"Enters {process}", (Read("at"),), check, Kind.EVENTUALLY, **how)  # type: ignore[arg-type]


def mutual_exclusion(peterson: bool) -> list[tuple[tuple, str, tuple]]:
    """Return all edges of two processes that enter repeatedly, by Peterson's algorithm or by a plain lock."""
    edges, todo, seen = [], [(("out", "out"), (False, False), 0)], set()
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        counters, flags, turn = state
        for me, other in ((0, 1), (1, 0)):

            def after(counter, flag, turn=turn, me=me, counters=counters, flags=flags):
                one = [(counter if n == me else counters[n], flag if n == me else flags[n]) for n in (0, 1)]
                return (tuple(c for c, _ in one), tuple(f for _, f in one), turn)

            may = (not flags[other] or turn == me) if peterson else not flags[other]
            steps = {
                "out": [("try", after("wants", flags[me]))],
                "wants": [("flag", after("waits", peterson, other if peterson else 0))],
                "waits": [("enter", after("in", True))] if may else [],
                "in": [("leave", after("out", False))],
            }[counters[me]]
            edges += [(state, f"{name} {me}", to) for name, to in steps]
            todo += [to for _, to in steps]
    return edges


MAY_REST = frozenset({"try 0", "try 1"})
"""A process may stay out for ever; once it wants to enter, it proceeds."""


START = (("out", "out"), (False, False), 0)


def test_petersons_algorithm_lets_in_whoever_wants():
    properties = [critical(process, unfair=MAY_REST) for process in (0, 1)]
    found = both(graph(mutual_exclusion(True), *properties, start=START))
    assert found.found == {}
    assert all(examined.open > 0 for examined in found.liveness.values())


def test_without_fairness_it_lets_nobody_in_who_is_never_scheduled():
    assert "Enters 0" in both(graph(mutual_exclusion(True), critical(0), start=START, fair=False)).found


def test_a_plain_lock_starves_who_finds_it_taken_whenever_he_looks():
    found = both(graph(mutual_exclusion(False), critical(0, unfair=MAY_REST), start=START)).found["Enters 0"]
    around = {step.move.action for step in found.path[found.loop + 1 :]}
    assert {"enter 1", "leave 1"} <= around
    assert "enter 0" not in around
