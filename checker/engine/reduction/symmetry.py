"""Symmetry: states that differ in names alone count as one, where the model says that names do not matter.

A fingerprint is the same for a state and all renamed ones (`row_kernels.fingerprint_of_class`), so that the first of
them is kept. Rules:

- Each state that is kept is a state of the model, and each path is a run. Breadth first, its depth is that of the full
  search, since a renamed run is as long as the run.
- The model declares its symmetry. Before a search the declaration is compared with the model in some states: those of
  random walks, where a renamed state must have the renamed successors and the same answers.
- Liveness needs the whole graph: such a model is searched in full.

Source: Ip and Dill, "Better verification through symmetry" (1996).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from checker.engine.contract import call
from checker.engine.model import Finding, Kind, Model, ModelError, Move, Renaming, Row, Symmetry
from checker.engine.semantics import answer, successors

WALKS, LONGEST = 40, 100
"""The random walks of the comparison, and their steps at most."""
MOST_COMPARED = 300
_Following = tuple[Move, Row]


def reason_against_symmetry(model: Model) -> str | None:
    """The reason why renamed states of a model cannot count once, if there is one."""
    if model.symmetry is None:
        return "the model declares no symmetry"
    if model.liveness:
        return f"the property {model.liveness[0].name!r} is one of liveness, which needs the whole graph of states"
    return None


def compare(model: Model, symmetry: Symmetry, seed: int) -> int:
    """Compare states of random walks with renamed ones; return how many. Raises ModelError at the first difference."""
    chance, compared = random.Random(seed), set[Row]()
    gate = model.index[symmetry.column]
    for _ in range(WALKS):
        row = model.initial()
        for _ in range(LONGEST):
            if len(compared) >= MOST_COMPARED:
                return len(compared)
            following = list(successors(model, row))
            if symmetry.holds(row[gate]) and row not in compared:
                compared.add(row)
                _compare(model, symmetry, row, following, chance.choice(symmetry.renamings))
            if not following:
                break
            row = chance.choice(following)[1]
    return len(compared)


def _compare(model: Model, symmetry: Symmetry, row: Row, following: Iterable[_Following], to: Renaming) -> None:
    gate = model.index[symmetry.column]
    other = renamed(model, to, row)
    expected = [(move.action, renamed(model, to, after)) for move, after in following]
    found = [(move.action, after) for move, after in successors(model, other)]
    if Counter(expected) != Counter(found) and _but_violations(model, expected) != _but_violations(model, found):
        raise ModelError(f"the model is not symmetric: after {other!r} other states follow than after {row!r}, renamed")
    if not all(symmetry.holds(after[gate]) for after in (other, *(after for _, after in found))):
        raise ModelError(f"the symmetry ends: it holds in {row!r}, and not in the renamed state or in one that follows")
    for prop in model.properties:
        if type(answer(model, prop, other)) is not type(answer(model, prop, row)):
            raise ModelError(f"the property {prop.name!r} has different answers for {row!r} and for {other!r}")


def _but_violations(model: Model, found: Iterable[tuple[str, Row]]) -> Counter[tuple[str, Row | None]]:
    """States with their actions, without those that violate a property: a search ends there, and texts have names."""

    def is_violation(row: Row) -> bool:
        return any(
            each.kind is Kind.ALWAYS and isinstance(answer(model, each, row), Finding) for each in model.properties
        )

    return Counter((action, None if is_violation(after) else after) for action, after in found)


def renamed(model: Model, to: Renaming, row: Row) -> Row:
    """A row with other names. Raises ModelError."""
    after = list(row)
    for column, value in zip(model.columns, row, strict=True):
        after[model.index[to.columns.get(column.name, column.name)]] = call("a renaming", to.value, value)
    return tuple(after)
