"""The tutorial's two-phase commit: the engines agree with a small independent search.

The model is read from `docs/tutorial-your-own-model.md`, so that there is only one copy. The search below shares
nothing with it or with the engines: states are plain tuples, and every rule of the protocol is written again, as a
guarded command over the whole state.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from checker.engine import Exploration, Model, Stop, plain, search
from checker.engine.result import disagreements

PAGE = Path(__file__).parents[4] / "docs" / "tutorial-your-own-model.md"
ENGINES = pytest.mark.parametrize("engine", [plain, search], ids=["plain", "tables"])
SIZES = pytest.mark.parametrize("size", [2, 3])
CRASHES = pytest.mark.parametrize("may_crash", [False, True], ids=["no crash", "crash"])


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """Return the names that the tutorial defines, up to the property of blocking."""
    namespace: dict[str, Any] = {"__name__": "tutorial"}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(code, namespace)
        if "nobody_waits" in namespace:
            break
    return namespace


# -- the protocol again, and a search of it ------------------------------------------------------------------


class State(NamedTuple):
    """The coordinator, the yes votes it has received, each participant, and the messages to and from each."""

    coordinator: str
    yes: tuple[bool, ...]
    participants: tuple[str, ...]
    to: tuple[tuple[str, ...], ...]
    back: tuple[tuple[str, ...], ...]


def at(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])


def following(state: State, needed: int, *, may_crash: bool) -> Iterator[State]:
    """Yield every successor state."""
    coordinator, yes, participants, to, back = state
    nobody = (False,) * len(yes)
    if coordinator == "idle":
        yield state._replace(coordinator="waiting", to=tuple((*box, "prepare") for box in to))
    if may_crash and coordinator in {"idle", "waiting"}:
        yield state._replace(coordinator="crashed", yes=nobody)
    for place, own in enumerate(participants):
        if own == "asked":
            for vote, then in (("yes", "prepared"), ("no", "aborted")):
                yield state._replace(
                    participants=at(participants, place, then), back=at(back, place, (*back[place], vote))
                )
        if to[place]:
            told, *rest = to[place]
            then = {"prepare": "asked", "commit": "committed", "abort": "aborted"}[told]
            kept = own if own in {"committed", "aborted"} else then
            yield state._replace(participants=at(participants, place, kept), to=at(to, place, tuple(rest)))
        if back[place] and coordinator != "crashed":
            heard, *rest = back[place]
            after = state._replace(back=at(back, place, tuple(rest)))
            if coordinator == "waiting" and heard == "no":
                after = after._replace(coordinator="aborted", yes=nobody, to=tuple((*box, "abort") for box in to))
            elif coordinator == "waiting" and sum(at(yes, place, True)) >= needed:
                after = after._replace(coordinator="committed", yes=nobody, to=tuple((*box, "commit") for box in to))
            elif coordinator == "waiting":
                after = after._replace(yes=at(yes, place, True))
            yield after


class Searched(NamedTuple):
    levels: list[set[State]]
    edges: int
    ends: set[State]

    def least_depth(self, wanted: Any) -> int | None:
        return next((depth for depth, level in enumerate(self.levels) if any(map(wanted, level))), None)


def searched(size: int, needed: int | None = None, *, may_crash: bool = False) -> Searched:
    first = State("idle", (False,) * size, ("working",) * size, ((),) * size, ((),) * size)
    levels, seen, edges, ends = [{first}], {first}, 0, set[State]()
    while levels[-1]:
        level: set[State] = set()
        for state in levels[-1]:
            reached = list(following(state, needed or size, may_crash=may_crash))
            edges += len(reached)
            level.update(reached)
            if not reached:
                ends.add(state)
        levels.append(level - seen)
        seen |= level
    return Searched(levels[:-1], edges, ends)


def is_torn(state: State) -> bool:
    return {"committed", "aborted"} <= set(state.participants)


def is_blocked(state: State) -> bool:
    return "prepared" in state.participants


# -- the model agrees with it --------------------------------------------------------------------------------


@ENGINES
@SIZES
@CRASHES
def test_the_states_of_every_depth_are_those_of_the_other_search(
    page: dict[str, Any], engine: ModuleType, size: int, may_crash: bool
) -> None:
    result: Exploration = engine.explore(page["two_phase_commit"](size, may_crash=may_crash))
    expected = searched(size, may_crash=may_crash)
    assert result.stop is Stop.EXHAUSTED
    assert result.levels == [len(level) for level in expected.levels]
    assert (result.transitions, result.deadlocks) == (expected.edges, len(expected.ends))


@SIZES
@CRASHES
def test_the_engines_agree(page: dict[str, Any], size: int, may_crash: bool) -> None:
    wanted = [page["atomicity"](size), page["all_commit"](size), page["nobody_waits"](size)]
    model: Model = page["two_phase_commit"](size, may_crash=may_crash, properties=wanted)
    assert disagreements(plain.explore(model), search.explore(model)) == []


@ENGINES
@SIZES
@CRASHES
def test_it_is_atomic_whatever_crashes_and_all_may_commit(
    page: dict[str, Any], engine: ModuleType, size: int, may_crash: bool
) -> None:
    wanted = [page["atomicity"](size), page["all_commit"](size)]
    result: Exploration = engine.explore(page["two_phase_commit"](size, may_crash=may_crash, properties=wanted))
    assert result.exhausted
    assert result.violations == []
    # One step to begin; each participant is asked, votes, is heard, and receives the outcome.
    assert result.found["AllCommit"].depth == 1 + 4 * size


@ENGINES
def test_committing_on_a_majority_of_yes_is_found_at_the_least_depth(page: dict[str, Any], engine: ModuleType) -> None:
    model: Model = page["two_phase_commit"](3, needed=2, properties=[page["atomicity"](3)])
    found = engine.explore(model).found["Atomicity"]
    # One step to begin; two are asked, vote yes and are heard; one receives the outcome; the third is asked and votes
    # no.
    assert found.depth == 1 + 2 * 3 + 1 + 2
    assert found.depth == searched(3, needed=2).least_depth(is_torn)
    committed, aborted = (names for _, names in found.finding.values)
    assert (len(committed), len(aborted)) == (1, 1)


@ENGINES
@SIZES
def test_a_crash_of_the_coordinator_blocks_those_who_voted_yes(
    page: dict[str, Any], engine: ModuleType, size: int
) -> None:
    model: Model = page["two_phase_commit"](size, may_crash=True, properties=[page["nobody_waits"](size)])
    found = engine.explore(model).found["NobodyWaits"]
    expected = searched(size, may_crash=True)
    blocked = {state for state in expected.ends if is_blocked(state)}
    # One step to begin and one to crash; a deadlock needs that all participants were asked and have voted.
    assert found.depth == 2 + 2 * size == expected.least_depth(blocked.__contains__)
    assert "crash" in [move.action for move, _ in found.path[1:] if move]


@ENGINES
@SIZES
def test_without_a_crash_nobody_is_blocked(page: dict[str, Any], engine: ModuleType, size: int) -> None:
    result: Exploration = engine.explore(page["two_phase_commit"](size, properties=[page["nobody_waits"](size)]))
    assert result.exhausted
    assert result.violations == []
    assert not any(map(is_blocked, searched(size).ends))
