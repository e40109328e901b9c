"""The networks of the kit: spaces counted by hand, and random machines against a search that shares nothing with them.

The counts are derived in the comments. The second search (`space`) keeps a network as a list of messages in order of
sending, and carries out the definitions of `checker.kit.networks` on it.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.engine import Finding, Kind, Model, ModelError, Property, Read, plain, search
from checker.engine.result import disagreements
from checker.kit import Bag, HistoryVariable, Machine, Network, Reaction, network_model, to_each

NETWORKS = [Network(o, l, d) for o in (False, True) for l in (False, True) for d in (False, True)]  # noqa: E741


def sequence(state: tuple[str, ...], source: str, message: str) -> Reaction:
    return Reaction((*state, message))


def collect(state: frozenset[str], source: str, message: str) -> Reaction:
    return Reaction(state | {message})


def sent(network: Network, *messages: str) -> Model:
    """Messages from a to b, which keeps their sequence, or their set where they can repeat."""
    receiver = (
        Machine("b", Reaction(frozenset()), collect) if network.duplicating else Machine("b", Reaction(()), sequence)
    )
    return network_model("sent", [Machine("a", Reaction(0, tuple(("b", m) for m in messages))), receiver], network)


COUNTED = [
    (Network(ordered=True), 3),  # received: nothing, x, xy
    (Network(), 5),  # nothing, x, y, xy, yx
    (Network(ordered=True, lossy=True), 7),  # both wait: 1; y waits: x received or lost; none waits: 4 subsets
    (
        Network(lossy=True),
        10,
    ),  # both wait: 1; one of the two waits, the other received or lost: 4; xy, yx, x, y, nothing
    (Network(duplicating=True), 4),  # the subsets of {x, y}
    (Network(lossy=True, duplicating=True), 16),  # the subsets received, times the subsets that wait
    (Network(ordered=True, duplicating=True), 5),  # both wait: {} or {x}; y waits: {x} or {x, y}; none waits: {x, y}
    (Network(ordered=True, lossy=True, duplicating=True), 10),  # both wait: 2; y waits: 4; none waits: 4
]


@pytest.mark.parametrize(("network", "states"), COUNTED, ids=str)
def test_the_states_of_two_messages_are_those_counted_by_hand(network: Network, states: int) -> None:
    assert plain.explore(sent(network, "x", "y")).states == search.explore(sent(network, "x", "y")).states == states


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_both_engines_agree(network: Network) -> None:
    model = sent(network, "x", "y", "x", "z")
    assert disagreements(plain.explore(model), search.explore(model)) == []


def test_equal_messages_are_interchangeable() -> None:
    assert plain.explore(sent(Network(), "x", "x", "x")).levels == [1, 1, 1, 1]


def test_a_duplicating_network_keeps_one_copy() -> None:
    assert plain.explore(sent(Network(duplicating=True), "x", "x")).states == 2


@pytest.mark.parametrize(("network", "states"), [(Network(ordered=True), 3), (Network(), 2)], ids=["ordered", "not"])
def test_an_ignored_message_is_discarded_only_where_others_wait_behind_it(network: Network, states: int) -> None:
    def only_y(state: int, source: str, message: str) -> Reaction | None:
        return Reaction(state + 1) if message == "y" else None

    machines = [Machine("a", Reaction(0, (("b", "x"), ("b", "y")))), Machine("b", Reaction(0), only_y)]
    assert plain.explore(network_model("ignored", machines, network)).states == states


def test_reports_come_before_messages_and_in_order() -> None:
    def reply(state: int, source: str, message: str) -> Reaction:
        return Reaction(1, to_each(["a"], "done"), (("log", "first"), ("log", "second")))

    def quiet(state: int, source: str, message: str) -> Reaction:
        return Reaction(1, (), (("log", message),))

    machines = [Machine("a", Reaction(0, (("b", "go"),), (("log", "start"),)), quiet), Machine("b", Reaction(0), reply)]
    log = HistoryVariable("log", (), lambda value, event: (*value, event))
    whole = ("start", "first", "second", "done")
    complete = Property("Complete", (Read("log"),), lambda v: Finding("all") if v == whole else None, Kind.SOMETIMES)
    found = plain.explore(network_model("log", machines, histories=[log], properties=[complete]))
    assert found.states == 3
    assert found.found["Complete"].depth == 2


def test_choices_name_their_actions() -> None:
    choices: list[Any] = ["tick", ("set", 3), 7]
    machine = Machine("a", Reaction(0), choices=lambda _: choices, on_choice=lambda state, choice: Reaction(choice))
    assert set(plain.explore(network_model("choices", [machine])).coverage) == {"tick", "set", "int"}


def test_an_impossible_choice_is_no_move() -> None:
    machine = Machine("a", Reaction(0), choices=lambda _: ["tick"], on_choice=lambda state, choice: None)
    assert plain.explore(network_model("stuck", [machine])).transitions == 0


def test_a_bag_has_one_representation() -> None:
    bag = Bag.of(["b", "a", "b"])
    assert bag == Bag.of(["b", "b", "a"])
    assert list(bag) == ["a", "b", "b"]
    assert (len(bag), bag.count("b"), bag.count("c"), "a" in bag) == (3, 2, 0, True)
    less = bag.minus("b")
    assert less == Bag.of(["a", "b"])
    assert Bag().minus("a") is None
    assert Bag.of(["a"]).plus("a", most=1) == Bag.of(["a"])


# -- errors --------------------------------------------------------------------------------------------------


def explored(*machines: Machine, **options: Any) -> None:
    plain.explore(network_model("wrong", machines, **options))


def test_mistakes_are_named() -> None:
    start = Reaction(0, (("b", "x"),))
    with pytest.raises(ModelError, match="'a' sends 'x' to 'b', and the model has no link between them; add"):
        explored(Machine("a", start))
    with pytest.raises(ModelError, match="'a' sends 'x' to 'b', and the model has no link"):
        explored(Machine("a", start), Machine("b", Reaction(0)), links=[("b", "a")])
    with pytest.raises(ModelError, match="has a link 'a->c', and no machine is named 'c'"):
        explored(Machine("a", Reaction(0)), links=[("a", "c")])
    with pytest.raises(ModelError, match=r"'b' returned 5; a Reaction or None would be right"):
        explored(Machine("a", start), Machine("b", Reaction(0), lambda *_: 5))  # type: ignore[arg-type,return-value]
    with pytest.raises(ModelError, match="reports 1 to 'log', and no history variable has that name"):
        explored(Machine("a", Reaction(0, (), (("log", 1),))))
    with pytest.raises(ModelError, match=r"'a' has no function for Chosen.choice='tick'.; give it on_choice"):
        explored(Machine("a", Reaction(0), choices=lambda _: ["tick"]))
    with pytest.raises(ModelError, match="the column 'a' is defined twice"):
        explored(Machine("a", Reaction(0)), Machine("a", Reaction(0)))


# -- random machines against another search ------------------------------------------------------------------

NAMES, MESSAGES, STATES = ("a", "b", "c"), ("x", "y"), (0, 1, 2)
replies = st.none() | st.tuples(
    st.sampled_from(STATES), st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(MESSAGES)), max_size=2)
)
tables = st.fixed_dictionaries(
    {(me, state, message): replies for me in NAMES for state in STATES for message in MESSAGES}
)
Table = dict[tuple[str, int, str], tuple[int, list[tuple[str, str]]] | None]
Waiting = tuple[tuple[str, str, str], ...]  # (sender, receiver, message), in the order of sending
MOST = 300


def model_of_table(table: Table, network: Network) -> Model:
    def machine(name: str) -> Machine:
        def on_message(state: int, source: str, message: str) -> Reaction | None:
            reply = table[name, state, message]
            if reply is None:
                return None
            return Reaction(reply[0], tuple((to, m) for to, m in reply[1] if to != name))

        return Machine(name, Reaction(0, (("b", "x"), ("c", "y")) if name == "a" else ()), on_message)

    return network_model("table", [machine(name) for name in NAMES], network)


def canonical(network: Network, waiting: Waiting) -> Any:
    if network.ordered:
        return tuple(tuple(w for w in waiting if w[:2] == (a, b)) for a in NAMES for b in NAMES)
    return frozenset(waiting) if network.duplicating else tuple(sorted(waiting))


def steps(table: Table, network: Network, states: dict[str, int], waiting: Waiting) -> Iterator[Any]:
    """The states after each event of the definitions."""
    for place, (source, target, message) in enumerate(waiting):
        if network.ordered and any(other[:2] == (source, target) for other in waiting[:place]):
            continue
        rest = waiting[:place] + waiting[place + 1 :]
        if not network.ordered and network.duplicating:
            rest = tuple(each for each in waiting if each != waiting[place])
        reply = table[target, states[target], message]
        lefts = [waiting] if network.duplicating and not network.ordered else [rest]
        lefts += [waiting] if network.duplicating and network.ordered else []
        for left in lefts:
            if reply is not None:
                news = tuple((target, to, m) for to, m in reply[1] if to != target)
                yield {**states, target: reply[0]}, left + news
            elif network.ordered:
                yield states, left
        if network.lossy:
            yield states, rest


def space(table: Table, network: Network) -> int:
    """The number of states, or MOST if there are at least as many."""
    first = (dict.fromkeys(NAMES, 0), (("a", "b", "x"), ("a", "c", "y")))
    seen, level = set(), [first]
    while level and len(seen) < MOST:
        following = []
        for states, waiting in level:
            key = tuple(states.values()), canonical(network, waiting)
            if key not in seen:
                seen.add(key)
                following += list(steps(table, network, states, waiting))
        level = following
    return min(len(seen), MOST)


@given(tables, st.sampled_from(NETWORKS))
@settings(deadline=None, max_examples=150)
def test_random_machines_reach_as_many_states_as_another_search_finds(table: Table, network: Network) -> None:
    count = space(table, network)
    model = model_of_table(table, network)
    if count < MOST:
        found = plain.explore(model)
        assert found.states == count
        assert disagreements(found, search.explore(model)) == []
