"""Symmetry: one representative of all states that differ only in the names of interchangeable actors.

    model = symmetric(two_phase_commit(5), ["rm1", "rm2", "rm3", "rm4", "rm5"])

A *renaming* is a permutation of the names of the actors, applied to the whole state: to the columns of the actors, to
the channels between them, and to every name inside a value. Two states are equivalent if a renaming leads from one to
the other. The symmetric model has the same columns and properties, and reaches only representatives. So it has as many
states as there are classes of equivalent states, up to n! times fewer than the model. Safety properties have the same
answers, and the shortest depths are the same.

The representative is found by sorting: the actors are sorted by what they are and what others know of them, with all
other names hidden. Equal actors that cannot be exchanged are tried in every order. So each class has one
representative.

This is exact only if the model is symmetric: if it makes no difference between the actors. Rules of this module:

- The names are refused unless each has a column, the first state is the same under every renaming, and no property is
  one of liveness (a fair run treats each actor for itself) or of steps.
- During the exploration the model is compared with its renaming: the successors of a renamed state must be those of the
  state, and every property must give the same answer. This is done for the first CHECKED states, and then for one state
  of CHECKED_EVERY. A difference is a ModelError that names the column.
- A value of a type that cannot be taken apart might hide a name, and is refused.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import chain, groupby, pairwise, permutations, product
from typing import Any

import msgspec

from checker.engine import (
    Actor,
    Column,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Row,
    Rule,
    Send,
    Step,
    Symmetry,
)
from checker.engine import Renaming as Declared
from checker.engine.contract import described, short
from checker.engine.semantics import answer, asymmetry, successors
from checker.engine.steps import step_properties
from checker.kit.networks import ARROW

CHECKED, CHECKED_EVERY = 500, 16
MOST_DECLARED = 6
"""The number of names for `interchangeable`: it has 720 renamings."""
REMEMBERED = 100_000
"""The number of states whose representatives are cached."""
HIDDEN, SELF = "\0other", "\0self"
"""The names of other interchangeable actors, and of the actor itself, in a key."""
WHOLE = "the whole state"
"""The name of the actor that replaces the state."""
_PLAIN = (type(None), bool, int, float, bytes, Enum)

Renaming = Mapping[str, str]


def symmetric(model: Model, names: Iterable[str]) -> SymmetricModel:
    """The model that reaches one representative of each class of equivalent states.

    `names` are the interchangeable actors: the names of their columns. Raises ModelError if the model cannot be
    symmetric; see the rules of this module.
    """
    return SymmetricModel(model, names)


def interchangeable(model: Model, names: Iterable[str]) -> Model:
    """The same model, with the declaration that `--reduce symmetric` needs.

    That search stays in the tables, and computes a fingerprint for each renaming of a state, so that it pays for a few
    names. `names` are those of `symmetric`, at most MOST_DECLARED of them. Raises ModelError if the model cannot be
    symmetric.
    """
    chosen = tuple(names)
    _check_names(model, chosen)
    if len(chosen) > MOST_DECLARED:
        raise ModelError(
            f"{len(chosen)} names have too many renamings; declare at most {MOST_DECLARED}, or use symmetric"
        )
    group = SymmetryGroup(model, chosen)
    orders = (dict(zip(chosen, order, strict=True)) for order in permutations(chosen) if order != chosen)
    renamings = tuple(Declared(group.columns_after(each), partial(renamed, renaming=each)) for each in orders)
    return model.with_symmetry(Symmetry(renamings))


def renamed(value: Any, renaming: Renaming) -> Any:
    """A value with other names in it. Raises ModelError for a type that cannot be taken apart."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, str):
        return renaming.get(value, value)
    if isinstance(value, frozenset):
        return frozenset(renamed(part, renaming) for part in value)
    if isinstance(value, tuple):
        parts = [renamed(part, renaming) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    names = _field_names(value)
    fields = {name: renamed(getattr(value, name), renaming) for name in names}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **fields)
    return dataclasses.replace(value, **fields)


def _field_names(value: Any) -> tuple[str, ...]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    right = "use strings, numbers, tuples, frozensets, enumerations, frozen dataclasses and structs"
    raise ModelError(f"symmetry cannot look for names in {short(value)}, of the type {type(value).__name__}; {right}")


class SymmetryGroup:
    """The renamings of some actors of a model, and the representatives of states."""

    def __init__(self, model: Model, names: Sequence[str]) -> None:
        self.model, self.names = model, tuple(names)
        self._parts = [tuple(column.name.split(ARROW)) for column in model.columns]
        self._own = {name: [n for n, parts in enumerate(self._parts) if name in parts] for name in names}
        self._shared = [n for n, parts in enumerate(self._parts) if not set(parts) & set(names)]
        self._keys: dict[tuple[int, str, Any], str] = {}
        self._targets: dict[tuple[str, ...], list[int]] = {}
        self._mentions: dict[tuple[int, Any], bool] = {}
        self._representatives: dict[Row, Row] = {}

    def apply(self, row: Row, renaming: Renaming) -> Row:
        """The row with other names. Raises ModelError."""
        after = list(row)
        for place, target in enumerate(self._places(renaming)):
            value = row[place]
            after[target] = renamed(value, renaming) if self._mentioned(place, value) else value
        return tuple(after)

    def columns_after(self, renaming: Renaming) -> dict[str, str]:
        """The names of the columns after a renaming. Raises ModelError if the model lacks one."""
        columns = self.model.columns
        places = self._places(renaming)
        return {column.name: columns[place].name for column, place in zip(columns, places, strict=True)}

    def _places(self, renaming: Renaming) -> list[int]:
        """The place of each column after a renaming. Raises ModelError if the model lacks a column."""
        wanted = tuple(renaming.get(name, name) for name in self.names)
        if wanted not in self._targets:
            names = [ARROW.join(renaming.get(part, part) for part in parts) for parts in self._parts]
            for name, column in zip(names, self.model.columns, strict=True):
                if name not in self.model.index:
                    raise ModelError(f"the actors are not interchangeable: there is {column.name!r}, and no {name!r}")
            self._targets[wanted] = [self.model.index[name] for name in names]
        return self._targets[wanted]

    def _mentioned(self, place: int, value: Any) -> bool:
        known = self._mentions.get((place, value))
        if known is None:
            known = renamed(value, dict.fromkeys(self.names, HIDDEN)) != value
            self._mentions[place, value] = known
        return known

    def representative(self, row: Row) -> Row:
        """The representative of the states that differ from a row only in names. Raises ModelError."""
        known = self._representatives.get(row)
        if known is None:
            if len(self._representatives) >= REMEMBERED:
                self._representatives.clear()
            known = self._representatives[row] = self._smallest(row)
        return known

    def _smallest(self, row: Row) -> Row:
        keys = {name: self._key(row, name) for name in self.names}
        order = sorted(self.names, key=keys.__getitem__)
        row = self.apply(row, dict(zip(order, self.names, strict=True)))
        ties, begin = [], 0
        for _, alike in groupby(order, key=keys.__getitem__):
            end = begin + len(list(alike))
            ties.append(self.names[begin:end])
            begin = end
        unlike = [tie for tie in ties if any(self.swapped(row, *pair) != row for pair in pairwise(tie))]
        if not unlike:
            return row
        orders = product(*(permutations(tie) for tie in unlike))
        before = tuple(chain(*unlike))
        return min((self.apply(row, dict(zip(before, chain(*each), strict=True))) for each in orders), key=described)

    def swapped(self, row: Row, one: str, other: str) -> Row:
        """The row with two names exchanged."""
        return self.apply(row, {one: other, other: one})

    def _key(self, row: Row, name: str) -> str:
        """A text that is the same for two actors, or for one actor after a renaming, if they may be exchanged."""
        own = sorted(self._text(place, row[place], name) for place in self._own[name])
        shared = [self._text(n, row[n], name) for n in self._shared if self._mentioned(n, row[n])]
        return "\0".join([*own, *shared])

    def _text(self, place: int, value: Any, name: str) -> str:
        text = self._keys.get((place, name, value))
        if text is None:
            hidden = {**dict.fromkeys(self.names, HIDDEN), name: SELF}
            column = ARROW.join(hidden.get(part, part) for part in self._parts[place])
            text = self._keys[place, name, value] = f"{column}={described(renamed(value, hidden))}"
        return text


class SymmetricModel(Model):
    """A model that reaches only representatives. `base` is the model without symmetry."""

    assumption = (
        f"renamed states were taken as alike, and the first {CHECKED} and one of {CHECKED_EVERY} others were compared"
    )
    base: Model
    group: SymmetryGroup

    def __init__(self, base: Model, names: Iterable[str]) -> None:
        chosen = tuple(names)
        _check_names(base, chosen)
        for prop in step_properties(base.properties):
            why = "a step here leads to a representative, and is none of an actor"
            raise ModelError(
                f"the property {prop.name!r} is one of steps: {why}; use interchangeable, or judge it without symmetry"
            )
        group = SymmetryGroup(base, chosen)
        first = base.initial()
        for pair in pairwise(chosen):
            if group.swapped(first, *pair) != first:
                raise ModelError(f"{pair[0]!r} and {pair[1]!r} are not interchangeable: their first states differ")
        columns = tuple(column.name for column in base.columns)
        declared = base.actions if all(rule.actions for rule in base.rules) else frozenset()
        moves = _Moves(base, group)
        super().__init__(
            base.name,
            tuple(Column(name, value) for name, value in zip(columns, group.representative(first), strict=True)),
            (Actor(WHOLE, columns, lambda _, after: Outcome(after)),),
            (Rule(WHOLE, tuple(Read(name) for name in columns), moves, tuple(sorted(declared))),),
            base.properties,
        )
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "group", group)

    def with_properties(self, properties: Iterable[Property]) -> SymmetricModel:
        """The same system with other properties."""
        return SymmetricModel(self.base.with_properties(properties), self.group.names)

    def unfold(self, path: Sequence[Step]) -> tuple[Step, ...]:
        """A run of the base model for a run of representatives: the same actions, and each state is equivalent.

        Raises ModelError if there is none, because the model is not symmetric.
        """
        unfolded = [Step(None, self.base.initial())]
        for step in path[1:]:
            following = (
                Step(move, after)
                for move, after in successors(self.base, unfolded[-1].row)
                if step.move is not None
                and move.action == step.move.action
                and self.group.representative(after) == step.row
            )
            found = next(following, None)
            if found is None:
                raise ModelError(f"step {len(unfolded)} has no counterpart in {self.base.name!r}: {_ASYMMETRIC}")
            unfolded.append(found)
        return tuple(unfolded)


def _check_names(model: Model, names: Sequence[str]) -> None:
    for name in names:
        if name not in model.index or ARROW in name:
            raise ModelError(f"the interchangeable actor {name!r} has no column in the model {model.name!r}")
    if len(set(names)) != len(names) or len(names) < 2:
        raise ModelError(f"name two or more different interchangeable actors, not {', '.join(names) or 'none'}")
    for prop in model.liveness:
        why = "symmetry does not keep the runs of each actor apart, which liveness needs"
        raise ModelError(f"the property {prop.name!r} is one of liveness: {why}; judge it without symmetry")


_ASYMMETRIC = (
    "the model makes a difference between the interchangeable actors. The likely cause is a comparison of their names, "
    "a sorted tuple of names (use a frozenset), a number that stands for a name, or a script for one of them"
)


class _Moves:
    """The moves of a representative, each to a representative; and the check that the model is symmetric."""

    def __init__(self, base: Model, group: SymmetryGroup) -> None:
        self._base, self._group = base, group
        self._seen = 0

    def __call__(self, *row: Any) -> list[Move]:
        found = [(move, self._group.representative(after)) for move, after in successors(self._base, row)]
        self._check(row, [(move.action, after) for move, after in found])
        return [Move(move.action, move.arguments, (Send(WHOLE, after),)) for move, after in found]

    def _check(self, row: Row, expected: list[tuple[str, Row]]) -> None:
        digest = zlib.crc32(described(row).encode())
        self._seen += 1
        if self._seen > CHECKED and digest % CHECKED_EVERY:
            return
        to = _renaming(self._group.names, digest)
        other = self._group.apply(row, to)
        found = [(move.action, self._group.representative(after)) for move, after in successors(self._base, other)]
        if Counter(after for _, after in expected) != Counter(after for _, after in found):
            lacks = Counter(expected) - Counter(found)
            what = asymmetry(self._base, frozenset(self._group.names), lacks, found)
            raise ModelError(f"{what}: {_ASYMMETRIC}")
        for prop in self._base.properties:
            if type(answer(self._base, prop, other)) is not type(answer(self._base, prop, row)):
                raise ModelError(
                    f"the property {prop.name!r} differs for {short(row)} and {short(other)}: {_ASYMMETRIC}"
                )


def _renaming(names: tuple[str, ...], number: int) -> Renaming:
    """A renaming that a number selects; different numbers select different ones as far as there are so many."""
    left, order = list(names), []
    while left:
        number, place = divmod(number, len(left))
        order.append(left.pop(place))
    return dict(zip(names, order, strict=True))
