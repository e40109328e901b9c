"""Refinement: each move of a model is a move of an abstract model, or changes nothing there.

A *mapping* computes the state of the abstract model from some columns of the concrete one. The concrete model *refines*
the abstract one if its first state maps to a first state, and each of its moves to an abstract move or to a *stutter*,
which is a move between equal abstract states. It then has every invariant of the abstract model, read through the
mapping. Source: Abadi and Lamport, "The Existence of Refinement Mappings" (1991).

    Refinement.of("RefinesCommit", commit, ("rm1", "rm2"), lambda one, two: {"first": phase(one), "second": phase(two)})

A refinement is a property of steps (`checker.engine.steps`). The model gets one more column for each column of the
abstract model. Their values follow from the others, so that there are no further states. Each move ends with an
operation that maps the state after it, and the pair of abstract states is judged. Rules of this module:

- `is_step` alone decides what an abstract step is: by the successors of the abstract model.
- Only steps are compared. Fairness and liveness of the abstract model are not.
- With symmetry, declare the refinement first: `interchangeable(model.with_properties([...]), names)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from checker.engine import (
    TRIVIAL,
    Actor,
    Column,
    Finding,
    Model,
    ModelError,
    Outcome,
    Read,
    Row,
    Send,
    StepProperty,
)
from checker.engine.contract import call, wrong
from checker.engine.model import Installed, Trivial
from checker.engine.semantics import successors
from checker.engine.steps import STEPS, FindingOf, with_finding
from checker.engine.values import show, to_json

MAP = "map"
"""The operation that ends each move: the abstract state follows the concrete one."""


@dataclass(frozen=True)
class Refinement(StepProperty):
    """The property that a model refines an abstract one; make it by `of`.

    `mapped` are the columns that the mapping reads. It gets their values, and returns the value of each column of the
    abstract model by name.
    """

    abstract: Model = None  # type: ignore[assignment]  # fields of the base have defaults
    mapped: tuple[str, ...] = ()
    mapping: Callable[..., Mapping[str, Any]] = lambda *_: {}
    known: dict[Row, frozenset[Row]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        abstract: Model,
        columns: tuple[str, ...],
        mapping: Callable[..., Mapping[str, Any]],
        *,
        meaning: str = "",
    ) -> Refinement:
        """The property that `mapping`, of these columns, leads each move to a move of `abstract` or to a stutter."""
        meaning = meaning or f"each move is a move of {abstract.name!r}, or changes nothing there"
        prop = cls(name, (Read(STEPS),), FindingOf(name), meaning=meaning, actors=(name,), judge=lambda *_: None,
                   abstract=abstract, mapped=columns, mapping=mapping)  # fmt: skip
        object.__setattr__(prop, "judge", prop.judged_step)
        return prop

    def is_step(self, before: Row, after: Row) -> bool:
        """Whether the abstract model has a move between these states. Raises ModelError."""
        if before not in self.known:
            self.known[before] = frozenset(row for _, row in successors(self.abstract, before))
        return after in self.known[before]

    def judged_step(self, values: Row, _: Row, outcome: Outcome) -> Finding | Trivial | None:
        """The finding of a step between two abstract states; a stutter is trivial."""
        if outcome.values == values:
            return TRIVIAL
        if self.is_step(values, outcome.values):
            return None
        states = ("before", self._shown(values)), ("after", self._shown(outcome.values))
        return Finding(f"{self.abstract.name!r} has no such move", states)

    def image(self, values: tuple[Any, ...]) -> Row:
        """The abstract state of these values of `mapped`. Raises ModelError."""
        source = f"the mapping of {self.name!r}"
        image = call(source, self.mapping, *values)
        names = [column.name for column in self.abstract.columns]
        if not isinstance(image, Mapping) or set(image) != set(names):
            raise wrong(source, image, f"return a value for each of {', '.join(names)}, by name", self.mapping)
        return tuple(image[name] for name in names)

    def installed(self, model: Model) -> Installed:
        """The parts of a model with the columns of the abstract state. Raises ModelError."""
        added = [f"{self.name} {column.name}" for column in self.abstract.columns]
        index = {column.name: place for place, column in enumerate(model.columns)}
        for name in self.mapped:
            if name not in index:
                raise ModelError(f"the mapping of {self.name!r} reads the column {name!r}, and there is none")
        parts, send = model.installed_parts, Send(f"mapping of {self.name}", MAP)
        if send not in parts.closing:
            parts = parts._replace(closing=(*parts.closing, send))
        if added[0] in index:  # these are parts of a model with this property, which may begin inside a run
            return self.judging(model.name, parts)
        for renaming in model.symmetry.renamings if model.symmetry else ():
            if not {*added} <= renaming.columns.keys():
                right = f"write interchangeable(model.with_properties([... {self.name} ...]), names)"
                raise ModelError(f"the symmetry of {model.name!r} was declared without {self.name!r}; {right}")
        actors = (
            Actor(send.actor, self.mapped, self._map),
            Actor(self.name, tuple(added), lambda _, image: Outcome(image)),
        )
        columns = (*parts.columns, *(Column(name, None) for name in added))
        parts = self.judging(model.name, parts._replace(columns=columns, actors=(*parts.actors, *actors)))
        initial = {column.name: column.initial for column in parts.columns}
        firsts = tuple({**values, **self._first(added, {**initial, **values})} for values in model.firsts or ({},))
        columns = tuple(replace(c, initial=firsts[0].get(c.name, c.initial)) for c in parts.columns)
        return parts._replace(columns=columns, firsts=firsts if model.firsts else ())

    def _map(self, values: tuple[Any, ...], _: str) -> Outcome:
        return Outcome(values, (Send(self.name, self.image(values)),))

    def _first(self, added: list[str], values: Mapping[str, Any]) -> dict[str, Any]:
        """The abstract columns of a first state, with a finding if it maps to no first state."""
        image = self.image(tuple(values[name] for name in self.mapped))
        columns = dict(zip(added, image, strict=True))
        if image in self.abstract.first_rows:
            return columns
        finding = Finding(f"no first state of {self.abstract.name!r}", (("at first", self._shown(image)),))
        return {**columns, STEPS: with_finding(values[STEPS], self.name, finding)}

    def _shown(self, row: Row) -> str:
        values = zip(self.abstract.columns, row, strict=True)
        return ", ".join(f"{column.name} = {show(to_json(value))}" for column, value in values)
