"""Liveness on small models with known answers: goals that can always be reached, and goals on every fair run."""

from __future__ import annotations

from checker.engine import (
    TRIVIAL,
    Finding,
    Kind,
    Liveness,
    Move,
    Property,
    Read,
)
from tests.support.graphs import both, eventually, graph, places, recoverable

NEVER = lambda _rule, _move: None  # noqa: E731 (a fairness that demands nothing)

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
    must_go_on = eventually(2, fair=lambda rule, _: rule if rule == "on" else None)
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


def test_units_are_what_fairness_says_they_are():
    """Both moves belong to one unit: taking either is fair. As two units the way out cannot be missed."""
    edges = [(0, "left", 1), (0, "right", 2), (1, "home", 0), (1, "right", 2)]
    assert "There" in both(graph(edges, eventually(2, fair=lambda _rule, _move: "some move"))).found
    apart = [(0, "left", 0), (0, "right", 2)]
    assert "There" not in both(graph(apart, eventually(2))).found
    assert "There" in both(graph(apart, eventually(2, fair=lambda _rule, _move: "some move"))).found


def test_properties_of_one_model_may_differ_in_what_is_fair():
    edges = [(0, "round", 0), (0, "out", 1)]
    found = both(graph(edges, eventually(1, name="Fair"), eventually(1, fair=NEVER, name="Unfair"), recoverable(1)))
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


def may_rest(rule: str, move: Move) -> object:
    """A process may stay out for ever; once it wants to enter, it proceeds."""
    return None if move.action.startswith("try") else rule


START = (("out", "out"), (False, False), 0)


def test_petersons_algorithm_lets_in_whoever_wants():
    properties = [critical(process, fair=may_rest) for process in (0, 1)]
    found = both(graph(mutual_exclusion(True), *properties, start=START))
    assert found.found == {}
    assert all(examined.open > 0 for examined in found.liveness.values())


def test_without_fairness_it_lets_nobody_in_who_is_never_scheduled():
    assert "Enters 0" in both(graph(mutual_exclusion(True), critical(0, fair=NEVER), start=START)).found


def test_a_plain_lock_starves_who_finds_it_taken_whenever_he_looks():
    found = both(graph(mutual_exclusion(False), critical(0, fair=may_rest), start=START)).found["Enters 0"]
    around = {step.move.action for step in found.path[found.loop + 1 :]}
    assert {"enter 1", "leave 1"} <= around
    assert "enter 0" not in around
