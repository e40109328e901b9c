"""Bounds of a space that would be infinite: a state outside is counted and judged, and no move leaves it.

TLC has the CONSTRAINT. It judges the invariants of a state outside as well, but does not count the state. A bound is a
property of a model, whose premise holds in the states outside. So its evaluations count what was cut off, in every
engine, and the report names it: an exhausted space with such states says nothing about what follows them.

A budget is better where it fits (`checker.kit.shared_budgets`): it is a part of the state, and cuts nothing off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from checker.engine.contract import call
from checker.engine.model import (
    TRIVIAL,
    Actor,
    Installed,
    Kind,
    Model,
    ModelError,
    Outcome,
    Property,
    Read,
    Send,
    Trivial,
)

GATE = "gate"
"""The operation that begins each move of a model with a bound."""


@dataclass(frozen=True)
class Bound(Property):
    """The property that the content of some columns is within a bound; make it by `of`."""

    @classmethod
    def of(cls, name: str, columns: tuple[str, ...], within: Callable[..., bool], *, meaning: str = "") -> Bound:
        """The bound that `within`, of the values of these columns, is true. Where it is false no move is possible.

        Bound.of("ShortQueue", ("queue",), lambda queue: len(queue) <= 3)
        """
        meaning = meaning or "a state outside is counted, and what follows it is not explored"
        return cls(name, tuple(map(Read, columns)), partial(_judged, within), meaning=meaning)

    def installed(self, model: Model) -> Installed:
        """The parts of a model whose moves begin with the bound. Raises ModelError for a property that it breaks."""
        for prop in model.properties:
            if prop.kind is Kind.FINAL or prop.kind.is_liveness:
                why = f"{prop.name!r} needs the end of every run, and the bound {self.name!r} cuts runs off"
                raise ModelError(f"the property {why}; judge it in a model with budgets")
        parts, name = model.installed_parts, f"bound {self.name}"
        columns = tuple(read.column for read in self.reads)
        gate = Actor(name, columns, partial(_passed, self))
        # The actors may be those of a model with this bound.
        actors = (*(actor for actor in parts.actors if actor.name != name), gate)
        return parts._replace(actors=actors, opening=(*parts.opening, Send(name, GATE)))


def bounds_among(properties: Iterable[Property]) -> tuple[Bound, ...]:
    """The bounds among some properties; a search for one property of a model keeps them."""
    return tuple(prop for prop in properties if isinstance(prop, Bound))


def _judged(within: Callable[..., bool], *values: Any) -> Trivial | None:
    return TRIVIAL if within(*values) else None


def _passed(bound: Bound, values: tuple[Any, ...], _: str) -> Outcome | None:
    answer = call(f"the bound {bound.name!r}", bound.check, *values)
    return None if answer is None else Outcome(values)
