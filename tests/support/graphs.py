"""Models written as explicit graphs: a token moves along named edges."""

from collections.abc import Hashable, Iterable

from checker.engine import (
    TRIVIAL,
    Actor,
    Column,
    Exploration,
    Finding,
    Kind,
    Model,
    Move,
    Outcome,
    Property,
    Read,
    Rule,
    Send,
    plain,
    search,
)
from checker.engine.model import Strength
from checker.engine.result import disagreements

Edge = tuple[Hashable, str, Hashable]


def graph(edges: Iterable[Edge], *properties: Property, start: Hashable = 0, fair: Strength = True) -> Model:
    """Return a model whose token starts at `start`. Edges are (from, action, to); each action is a rule, and `fair`."""
    edges = list(edges)

    def rule(action: str) -> Rule:
        def moves(at: Hashable) -> list[Move]:
            return [Move(action, (to,), (Send("at", to),)) for one, name, to in edges if (one, name) == (at, action)]

        return Rule(action, (Read("at"),), moves, fair=fair)

    token = Actor("at", ("at",), lambda _, to: Outcome((to,)))
    rules = tuple(rule(action) for action in dict.fromkeys(name for _, name, _ in edges))
    return Model("graph", (Column("at", start),), (token,), rules, properties)


def recoverable(*goals: Hashable, name: str = "Back") -> Property:
    """Return the property that these places stay reachable."""
    return Property(name, (Read("at"),), lambda at: Finding("there") if at in goals else None, Kind.RECOVERABLE)


def eventually(
    *goals: Hashable, after: tuple[Hashable, ...] | None = None, unfair: Iterable[str] = (), name: str = "There"
) -> Property:
    """Return the property that the token reaches one of `goals`; with `after`, once it was at a place in `after`."""

    def check(at: Hashable) -> object:
        if at in goals:
            return Finding("there")
        return None if after is None or at in after else TRIVIAL

    return Property(name, (Read("at"),), check, Kind.EVENTUALLY, unfair=frozenset(unfair))  # type: ignore[arg-type]


def both(model: Model, **options: object) -> Exploration:
    """Return the result of the table engine, and assert that the plain engine agrees."""
    by_tables = search.explore(model, **options)  # type: ignore[arg-type]
    assert disagreements(plain.explore(model, **options), by_tables) == []  # type: ignore[arg-type]
    return by_tables


def places(exploration: Exploration, name: str) -> tuple[list[Hashable], int | None, int | None]:
    """Return the places on the path of a finding, where its loop begins, and since when it is lost or open."""
    found = exploration.found[name]
    return [step.row[0] for step in found.path], found.loop, found.since
