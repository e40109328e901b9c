"""How engines judge liveness: on complete spaces only, after safety, on an ordered graph; and their refusals."""

import numba
import numpy as np
import pytest

from checker.engine import Finding, Kind, Limits, Model, ModelError, Property, Read, Stop, plain, search
from checker.engine.kernels import graph_kernels
from checker.engine.kernels.jit import OPTIONS
from checker.engine.liveness import graph_liveness
from checker.engine.liveness.graph_liveness import Graph
from checker.engine.liveness.lasso import lasso
from checker.engine.part import Part
from checker.engine.result import SEED
from checker.engine.search import Request, by_threads
from checker.engine.states.visited import Visited
from checker.engine.tables import Tables
from checker.models.small_election import election
from tests.support.graphs import both, eventually, graph, recoverable

# -- bounds, order, engines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [plain, search])
def test_liveness_is_judged_on_the_whole_space_or_not_at_all(engine):
    model = graph([(n, "on", n + 1) for n in range(9)], recoverable(9), eventually(0))
    for limits, stop in ((Limits(depth=3), Stop.DEPTH), (Limits(states=3), Stop.STATES)):
        bounded = engine.explore(model, limits)
        assert (bounded.stop, bounded.liveness, bounded.found) == (stop, {}, {})
        assert bounded.unjudged == ["Back", "There"]
    assert engine.explore(model).unjudged == []


def test_what_there_is_no_memory_for_is_not_judged(monkeypatch):
    monkeypatch.setattr(graph_liveness, "NEEDED", 1 << 30)
    found = search.explore(graph([(0, "on", 1)], recoverable(1)), Limits(memory=1 << 31))
    assert (found.stop, found.unjudged) == (Stop.MEMORY, ["Back"])


def test_what_there_is_no_time_for_is_not_judged(monkeypatch):
    late = by_threads(Request(graph([(0, "on", 1)], recoverable(1)), Limits(seconds=3600)))
    kept = late.exchange.part.state.graph
    finish = kept.finish
    monkeypatch.setattr(kept, "finish", lambda: (setattr(late, "_began", late._began - 4000), finish())[1])
    found = late.run()
    assert (found.stop, found.unjudged) == (Stop.TIME, ["Back"])


@pytest.mark.parametrize("engine", [plain, search])
def test_a_violation_of_safety_comes_first(engine):
    safe = Property("Safe", (Read("at"),), lambda at: Finding("two") if at == 2 else None)
    found = engine.explore(graph([(0, "on", 1), (1, "on", 2)], recoverable(9), safe))
    assert (found.stop, list(found.found), found.unjudged) == (Stop.FOUND, ["Safe"], ["Back"])


@pytest.mark.parametrize("engine", [plain, search])
def test_a_search_that_has_its_witnesses_goes_on_for_liveness(engine):
    witness = Property("Seen", (Read("at"),), lambda at: Finding("one") if at == 1 else None, Kind.SOMETIMES)
    edges = [(0, "on", 1), (1, "on", 2), (2, "on", 0)]
    assert engine.explore(graph(edges, witness), until_witnessed=True).stop is Stop.WITNESSED
    found = engine.explore(graph(edges, witness, recoverable(0)), until_witnessed=True)
    assert (found.stop, list(found.liveness)) == (Stop.EXHAUSTED, ["Back"])


def test_in_the_small_election_of_three_everybody_decides_on_every_fair_run():
    """6,544 states; in 1,470 of them all three have decided. With four servers all may wait (see benchmarks)."""
    reads = tuple(Read(str(sid), lambda local: local.state) for sid in (1, 2, 3))

    def decided(*states: str) -> Finding | None:
        return Finding("all have decided") if {*states} <= {"LEADING", "FOLLOWING"} else None

    kinds = (Kind.RECOVERABLE, Kind.EVENTUALLY)
    found = both(election(3).with_properties([Property(kind.value, reads, decided, kind) for kind in kinds]))
    assert (found.states, found.found) == (6544, {})
    assert {each.goals for each in found.liveness.values()} == {1470}


def test_a_model_without_liveness_keeps_no_graph():
    assert Part(election(2), SEED).state.graph is None
    assert Part(election(2), SEED).state.visited.parts[0].numbers.size == 0
    assert Part(graph([(0, "on", 1)], recoverable(1)), SEED).state.graph is not None


def test_kernels_of_graphs_count_no_references():
    """See test_engine; `seek` contains a loop."""
    search.explore(graph([(0, "round", 1), (1, "round", 0), (1, "out", 2)], eventually(2), recoverable(9)))
    names = ("number", "resolve", "describe", "components", "find_closed", "find_fair", "flood", "seek")
    for kernel in (getattr(graph_kernels, name) for name in names):
        anew = numba.njit(**OPTIONS)(kernel.py_func)  # code from the cache cannot be inspected
        anew.compile(kernel.signatures[0])
        code = "".join(anew.inspect_llvm().values())
        assert kernel.__name__ in code
        assert "NRT_incref" not in code


def test_moves_are_recorded_row_by_row():
    kept = Graph(Tables(graph([(0, "on", 1)], recoverable(1))))
    kept.tables.fill(np.array([kept.tables.cell(0, 0, "a test") << 32], np.uint64))
    for first, rows, sources, targets in ((0, 3, [0, 0, 1], [1, 2, 4]), (3, 2, [3, 3], [3, 7]), (0, 1, [0], [9])):
        kept.add(first, rows, np.array(sources, np.uint64), np.array(targets, np.uint32))
    offsets, targets, labels = kept.finish()
    assert offsets.tolist() == [0, 2, 3, 3, 5, 5, 6]
    assert targets.tolist() == [1, 2, 4, 3, 7, 9]
    assert labels.size == 0
    kept.close()


def test_numbers_stay_with_their_fingerprints_when_the_set_grows():
    visited = Visited(numbered=True)
    fingerprints = np.random.default_rng(7).integers(1, 1 << 63, 3000, dtype=np.uint64) << np.uint64(1)
    for number, fingerprint in enumerate(fingerprints.tolist()):
        visited.reserve(1)
        slot = fingerprint >> int(visited.shift)
        while visited.slots[slot]:
            slot = (slot + 1) % len(visited.slots)
        visited.slots[slot], visited.numbers[slot] = fingerprint, number
        visited.used += 1
    assert len(visited.slots) > 1 << 12
    kept = {int(f): int(n) for f, n in zip(visited.slots, visited.numbers, strict=True) if f}
    assert kept == {f: n for n, f in enumerate(fingerprints.tolist())}


# -- models that break the rules -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "loop", "since", "wrong"),
    [
        ([0], [0], 0, "does not lead back"),
        ([0, 0], [0], 0, "reaches the goal"),
        ([], [1], 0, "its loop is not fair"),
        ([], None, 0, "does not end"),
    ],
)
def test_a_run_that_is_none_is_refused(stem, loop, since, wrong):
    prop = eventually(2)
    model = graph([(0, "on", 1), (1, "on", 2), (2, "on", 2), (0, "wait", 0)], prop)
    with pytest.raises(ModelError, match=wrong):
        lasso(model, prop, stem, loop, since)


def test_a_run_to_where_the_goal_is_still_within_reach_is_refused():
    prop = recoverable(2)
    model: Model = graph([(0, "on", 1), (1, "wait", 1), (1, "on", 2)], prop)
    with pytest.raises(ModelError, match="still within reach"):
        lasso(model, prop, [0], [1], 1)
