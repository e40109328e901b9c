"""Symmetry: as many states as there are classes of equivalent states, which are counted by brute force.

The brute force explores the model without symmetry, applies every permutation of the names to every state, and counts
the smallest ones. It has its own renaming (`relabelled`), by the text of a state.
"""

import re
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import (
    TRIVIAL,
    Actor,
    Column,
    Finding,
    Kind,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    StepProperty,
    plain,
    search,
    symmetric_search,
)
from checker.engine.contract import described
from checker.engine.result import disagreements, verdict_disagreements
from checker.engine.semantics import successors
from checker.explorer import BadRequestError, Handlers
from checker.explorer.walk import LoadRequest, WalkRequest
from checker.kit import Machine, Network, Reaction, interchangeable, network_model, symmetric, to_each
from checker.report.verdict import judge
from checker.scenario import load
from checker.scenario.model_file import job_of_model
from tests.support.command_line import cli
from tests.unit.test_kit_register import example


def relabelled(model: Model, row: tuple[Any, ...], renaming: dict[str, str]) -> str:
    """The text of a state after a renaming: columns and values by name, sets in order."""
    texts = {}
    for column, value in zip(model.columns, row, strict=True):
        name = "->".join(renaming.get(part, part) for part in column.name.split("->"))
        texts[name] = text_of(value, renaming)
    return str(sorted(texts.items()))


def text_of(value: Any, renaming: dict[str, str]) -> str:
    if isinstance(value, str):
        return renaming.get(value, value)
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(text_of(each, renaming) for each in value)) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(text_of(each, renaming) for each in value) + ")"
    counts = getattr(value, "counts", None)
    return repr(value) if counts is None else text_of(counts, renaming)


def reachable(model: Model) -> set[tuple[Any, ...]]:
    seen, waiting = {model.initial()}, [model.initial()]
    while waiting:
        for _, after in successors(model, waiting.pop()):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return seen


def classes(model: Model, names: list[str]) -> int:
    renamings = [dict(zip(names, order, strict=True)) for order in permutations(names)]
    return len({min(relabelled(model, row, each) for each in renamings) for row in reachable(model)})


@pytest.mark.parametrize("managers", [2, 3, 4])
def test_two_phase_commit_has_as_many_states_as_classes(managers: int) -> None:
    model = example("two_phase_commit").model(managers)
    names = [f"rm{n}" for n in range(1, managers + 1)]
    whole, found = plain.explore(model), search.explore(symmetric(model, names))
    assert found.states == classes(model, names) < whole.states
    assert {name: each.depth for name, each in found.found.items()} == {n: d.depth for n, d in whole.found.items()}
    assert disagreements(plain.explore(symmetric(model, names)), found) == []


def test_equal_actors_that_cannot_be_exchanged_have_one_representative() -> None:
    """Three actors in a ring that each may point at any other: 2^3 states in which all point, in 2 classes.

    None has chosen: 1 class. One has chosen: 1 class, since both targets are alike. Two, a and b: they point at each
    other; one points at the other and that one at c; or both point at c: 3 classes. Three: a ring, and the others: 2.
    """
    names = ["a", "b", "c"]

    def choices(me: str) -> Any:
        return lambda state: [("point", name) for name in names if name != me] if state == "" else []

    machines = [
        Machine(name, Reaction(""), choices=choices(name), on_choice=lambda _, choice: Reaction(choice[1]))
        for name in names
    ]
    model = network_model("pointers", machines, links=[])
    found = plain.explore(symmetric(model, names))
    assert found.levels == [1, 1, 3, 2]
    assert found.states == classes(model, names)


tables = st.fixed_dictionaries(
    {
        (state, message): st.none() | st.tuples(st.integers(0, 2), st.sampled_from(["reply", "all", "nothing"]))
        for state in range(3)
        for message in "xy"
    }
)


def gossip(number: int, table: dict[Any, Any], network: Network) -> Model:
    """Machines with one table: each begins by a choice, and then replies to its sender, or tells all others."""
    names = [f"m{n}" for n in range(1, number + 1)]

    def machine(name: str) -> Machine:
        others = [each for each in names if each != name]

        def on_message(state: tuple[Any, ...], source: str, message: str) -> Reaction | None:
            reply = table[state[0], message]
            if reply is None:
                return None
            sends = {"reply": ((source, "y"),), "all": to_each(others, "y"), "nothing": ()}[reply[1]]
            return Reaction((reply[0], source), sends if state[1] == "" else ())

        begin = lambda state: ["begin"] if state == (0, "") else []  # noqa: E731
        on_choice = lambda state, choice: Reaction((1, ""), to_each(others, "x"))  # noqa: E731
        return Machine(name, Reaction((0, "")), on_message, begin, on_choice)

    def clash(*states: Any) -> Finding | None:
        return Finding("two are in state 2") if [state[0] for state in states].count(2) >= 2 else None

    prop = Property("Clash", tuple(Read(name) for name in names), clash)
    return network_model("gossip", [machine(name) for name in names], network, properties=[prop])


@given(tables, st.sampled_from([Network(), Network(ordered=True), Network(duplicating=True)]))
@settings(deadline=None, max_examples=25)
def test_random_symmetric_models_have_as_many_states_as_classes(table: dict[Any, Any], network: Network) -> None:
    names = ["m1", "m2", "m3"]
    model = gossip(3, table, network)
    whole = plain.explore(model.with_properties(()), limits(3000))
    if not whole.exhausted:
        return
    assert plain.explore(symmetric(model.with_properties(()), names)).states == classes(model, names)
    violated, expected = plain.explore(symmetric(model, names)), plain.explore(model)
    assert {name: each.depth for name, each in violated.found.items()} == {
        name: each.depth for name, each in expected.found.items()
    }


def limits(states: int) -> Any:
    from checker.engine import Limits

    return Limits(states=states)


def test_a_run_is_unfolded_to_one_of_the_base() -> None:
    base = example("two_phase_commit").model(3)
    model = symmetric(base, ["rm1", "rm2", "rm3"])
    path = model.unfold(plain.explore(model).found["AllCommitted"].path)
    assert len(path) == 11
    assert path[0].row == base.initial()
    for before, step in pairwise(path):
        assert (step.move, step.row) in list(successors(base, before.row))
    assert {path[-1].row[base.index[f"rm{n}"]] for n in (1, 2, 3)} == {"committed"}


def test_a_property_of_one_name_is_an_error_where_its_run_is_shown() -> None:
    def up(state: int, _: str) -> Reaction:
        return Reaction(state + 1)

    machines = [Machine(name, Reaction(0), choices=lambda n: ["up"] * (n < 2), on_choice=up) for name in ("a", "b")]
    alone = Property("BAlone", (Read("a"), Read("b")), lambda a, b: Finding("b") if (a, b) == (0, 2) else None)
    model = symmetric(network_model("two", machines, links=[], properties=[alone]), ["a", "b"])
    job = job_of_model(model, {})
    assert job.refinement is not None
    with pytest.raises(ModelError, match=r"'BAlone' finds something in \(0, 2\), and nothing in \(2, 0\)"):
        job.refinement.found(plain.explore(model).found["BAlone"])


def test_properties_can_be_replaced() -> None:
    model = symmetric(example("two_phase_commit").model(2), ["rm1", "rm2"]).with_properties(())
    assert plain.explore(model).states == 34
    assert model.base.properties == ()


@pytest.mark.parametrize("managers", [2, 3, 4, 5])
def test_a_declared_symmetry_gives_the_same_classes_by_tables(managers: int) -> None:
    model = example("two_phase_commit").model(managers)
    names = [f"rm{n}" for n in range(1, managers + 1)]
    found = symmetric_search.explore(interchangeable(model, names))
    expected = search.explore(symmetric(model, names))
    assert found.levels == expected.levels
    assert verdict_disagreements(found, expected) == []


def test_too_many_names_are_refused() -> None:
    names = [f"rm{n}" for n in range(1, 8)]
    with pytest.raises(ModelError, match="7 names have too many renamings; declare at most 6"):
        interchangeable(example("two_phase_commit").model(7), names)


# -- what is refused -----------------------------------------------------------------------------------------


def chooser(name: str, start: Any = 0, step: Any = lambda state, choice: Reaction(1)) -> Machine:
    return Machine(name, Reaction(start), choices=lambda s: ["go"] if s == start else [], on_choice=step)


def refused(model: Model, *names: str) -> str:
    with pytest.raises(ModelError) as raised:
        plain.explore(symmetric(model, names))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def pair(*properties: Property, **changed: Any) -> Model:
    return network_model("pair", [chooser("a"), chooser("b", **changed)], properties=properties)


def test_names_that_cannot_be_interchangeable_are_refused() -> None:
    assert "actor 'c' has no column in the model 'pair'" in refused(pair(), "a", "c")
    assert "actor 'a->b' has no column" in refused(pair(), "a", "a->b")
    assert "name two or more different interchangeable actors, not a" in refused(pair(), "a")
    assert "not a, a" in refused(pair(), "a", "a")
    assert "'a' and 'b' are not interchangeable: their first states differ" in refused(pair(start=5), "a", "b")
    part = network_model("part", [chooser("a"), chooser("b"), chooser("c")], links=[("a", "c")])
    assert "there is 'a->c', and no 'b->c'" in refused(part, "a", "b")


def test_a_step_that_treats_actors_differently_is_refused() -> None:
    text = refused(pair(step=lambda state, choice: Reaction(2)), "a", "b")
    assert "with other names the action 'go' leads to" in text
    assert "the model makes a difference between the interchangeable actors" in text


def test_a_property_that_treats_actors_differently_is_refused() -> None:
    first = Property("First", (Read("a"),), lambda a: Finding("a goes") if a else None, Kind.SOMETIMES)
    assert "the property 'First' differs for" in refused(pair(first), "a", "b")


@pytest.mark.parametrize("kind", [Kind.EVENTUALLY, Kind.RECOVERABLE])
def test_liveness_is_refused(kind: Kind) -> None:
    live = Property("Live", (Read("a"), Read("b")), lambda a, b: TRIVIAL, kind)
    assert "the property 'Live' is one of liveness: symmetry does not" in refused(pair(live), "a", "b")


def test_a_property_of_steps_is_refused_by_its_kind_and_judged_by_the_other_symmetry() -> None:
    """Either actor steps from 0 to 1, which is the only step."""
    late = StepProperty.over("Late", ("a", "b"), lambda values, *_: Finding("late") if values != (0,) else None)
    assert "the property 'Late' is one of steps: " in refused(pair(late), "a", "b")
    found = symmetric_search.explore(interchangeable(pair(late), ["a", "b"]))
    assert found.states == 3
    assert (found.evaluations["Late"].premise, found.found) == (2, {})


def test_a_pass_says_how_far_the_symmetry_was_compared() -> None:
    safe = Property("Safe", (Read("a"), Read("b")), lambda *_: None)
    model = symmetric(pair(safe), ["a", "b"])
    for explored in (plain.explore(model), search.explore(model)):
        told = judge(job_of_model(model, {}), explored).sentence
        assert told == (
            "passed: no violation, space exhausted: 3 states; renamed states were taken as alike, and the first 500 "
            "and one of 16 others were compared"
        )


def test_a_value_that_may_hide_a_name_is_refused() -> None:
    class Opaque:
        pass

    value = Opaque()
    text = refused(network_model("opaque", [chooser("a", value), chooser("b", value)]), "a", "b")
    assert "symmetry cannot look for names in" in text
    assert "of the type Opaque; use strings" in text


# -- the command line ----------------------------------------------------------------------------------------


SYMMETRIC = """\
from checker.engine import Finding, Property, Read
from checker.kit import Machine, Reaction, network_model, symmetric


def model():
    def both(*states):
        return Finding("both have gone") if 0 not in states else None

    names = ["a", "b"]
    go = lambda state: ["go"] if state == 0 else []
    machines = [Machine(name, Reaction(0), choices=go, on_choice=lambda s, c: Reaction(1)) for name in names]
    prop = Property("NotBoth", tuple(Read(name) for name in names), both)
    return symmetric(network_model("pair", machines, properties=[prop]), names)
"""


def test_a_run_of_a_symmetric_model_is_shown_with_real_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pair.py").write_text(SYMMETRIC)
    ended = cli("run", "pair.py:model", "--traces", "traces")
    assert ended.code == 12
    assert "bounds  one representative of the states that differ only in the names of a, b" in ended.out
    assert re.search(r"states +3\n", ended.out)
    assert "step 1: go a; step 2: go b" in ended.out
    again = cli("replay", "traces/pair-NotBoth.itf.json", "--model", "pair.py:model", "--format", "none")
    assert (again.code, again.out) == (0, "replayed: 2 steps, and NotBoth again: both have gone\n")


def test_the_explorer_walks_through_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pair.py").write_text(SYMMETRIC)
    cli("run", "pair.py:model", "--traces", "traces")
    symmetric_job = load(Path("pair.py:model"))
    assert symmetric_job.refinement is not None
    handlers = Handlers([(symmetric_job.refinement.job(), "here")])
    saved = LoadRequest("trace", Path("traces/pair-NotBoth.itf.json").read_text("utf-8"))
    assert handlers.begin_with(saved) == "violated: NotBoth at depth 2"
    start = handlers.jobs()["start"]
    view = handlers.walk(WalkRequest(start["job"], tuple(start["path"])))
    assert view["findings"][0]["property"] == "NotBoth"
    with pytest.raises(BadRequestError, match=r"or explore pair\.py:model --trace FILE"):
        Handlers([]).begin_with(saved)


def test_the_text_of_a_state_does_not_depend_on_the_order_of_sets() -> None:
    assert text_of(frozenset({"a", "b"}), {"a": "b", "b": "a"}) == "{a, b}"
    assert described(frozenset({"a", "b"})) == described(frozenset({"b", "a"}))


# -- channels by other names ---------------------------------------------------------------------------------

LONG = 300  # parts of a value, so that two states have thousands of characters


def ring(arrow: str) -> Model:
    """Three alike processes, each of which may send once, and a channel between every two of them."""
    names = ("s1", "s2", "s3")
    pairs = {f"{a}{arrow}{b}": (a, b) for a in names for b in names if a != b}
    columns = (*(Column(name, ("idle",) * LONG) for name in names), *(Column(name, ()) for name in pairs))
    actors = tuple(Actor(column.name, (column.name,), lambda _, value: Outcome((value,))) for column in columns)

    def rule(channel: str, sender: str) -> Rule:
        sends = (Send(sender, ("sent",) * LONG), Send(channel, ("hello",) * LONG))
        return Rule(channel, (Read(sender),), lambda s: [Move("send", (channel,), sends)] if s[0] == "idle" else [])

    return Model("ring", columns, actors, tuple(rule(channel, pair[0]) for channel, pair in pairs.items()))


def test_channels_with_arrows_are_renamed() -> None:
    assert search.explore(symmetric(ring("->"), NAMES_OF_RING)).states == 7
    assert symmetric_search.explore(interchangeable(ring("->"), NAMES_OF_RING)).states == 7


NAMES_OF_RING = ("s1", "s2", "s3")
MADE = {
    "a symmetric model": lambda model: search.explore(symmetric(model, NAMES_OF_RING)),
    "a symmetric search": lambda model: symmetric_search.explore(interchangeable(model, NAMES_OF_RING)),
}


@pytest.mark.parametrize("arrow", [" to ", "_", ".", "-"])
@pytest.mark.parametrize("explore", MADE.values(), ids=MADE)
def test_the_error_for_another_name_of_a_channel_is_short_and_has_the_right_name(explore: Any, arrow: str) -> None:
    with pytest.raises(ModelError) as raised:
        explore(ring(arrow))
    text = str(raised.value)
    assert len(text) < 1_000
    assert f"The column 's1{arrow}s2' keeps its name although" in text
    assert "call it 's1->s2'" in text


def test_the_error_for_a_property_has_a_bounded_length() -> None:
    first = Property("First", (Read("s1"),), lambda s: Finding("it sends") if s[0] == "sent" else None, Kind.SOMETIMES)
    model = ring("->").with_properties([first])
    for explore in MADE.values():
        with pytest.raises(ModelError, match="the property 'First'") as raised:
            explore(model)
        assert len(str(raised.value)) < 1_500
