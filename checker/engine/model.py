"""What a model is, for every engine: columns, actors, rules and properties.

A global state is a row of values, one to a *column*. Whatever holds state is an *actor* over the columns it
names: a server, a channel, a fault budget, the history of observed facts. There is one mechanism:

    an *operation* is sent to an actor; what comes of it depends on the values of the actor's columns alone:
    new values for those columns, and further operations for other actors, carried out at once and in order,
    each with all that follows from it before the next; or it is impossible (None), and then so is the move
    that it belongs to.

A *rule* reads some columns and lists the *moves* possible there: what may happen next, each a list of
operations. Delivery of a message, a timer, a crash and a client's request are all rules.

Rules that every model keeps, and that the engines rely on:
- values and operations are hashable, are never changed, and equal values mean the same;
- `step`, `moves`, `check`, projections and fairness are functions: equal arguments give equal results.

Tables remember a result under what it was computed from, so what a function reads is what it costs: a rule
over five whole servers is remembered once for each combination of their states, a rule over a projection of
each (`Read("server 1", is_running)`) only for each combination of what the projections return.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

Row = tuple[Any, ...]
Projection = Callable[[Any], Hashable]


class ModelError(Exception):
    """The model breaks one of the rules above; the message names the actor or rule, and the likely cause."""


class Send(NamedTuple):
    """An operation on its way to the actor of that name."""

    actor: str
    operation: Any


class Outcome(NamedTuple):
    """What an operation did: the new values of the actor's columns, in their order, and what it sends on."""

    values: tuple[Any, ...]
    sends: tuple[Send, ...] = ()


@dataclass(frozen=True)
class Column:
    """One place of the global state, with the value it starts from."""

    name: str
    initial: Any


@dataclass(frozen=True)
class Actor:
    """Something that holds state in `columns`, in that order, and answers operations.

    `step(values, operation)` gets the values of those columns. Several actors may share a column; an event that
    needs only a log is best sent to an actor over the log alone, since results are remembered by what was read.
    """

    name: str
    columns: tuple[str, ...]
    step: Callable[[tuple[Any, ...], Any], Outcome | None]


class Move(NamedTuple):
    """One thing that may happen: the action's name, its arguments for a reader, and its operations in order."""

    action: str
    arguments: tuple[Any, ...]
    sends: tuple[Send, ...]


class Read(NamedTuple):
    """A column, and what of its value is read; without a projection, all of it.

    A projection may return None: "in this state of the column, never". The rule then lists no move, and a
    property holds trivially, whatever the other columns are.
    """

    column: str
    projection: Projection | None = None


@dataclass(frozen=True)
class Rule:
    """Lists the moves that are possible where `reads` have these values; None and () both mean none."""

    name: str
    reads: tuple[Read, ...]
    moves: Callable[..., Iterable[Move] | None]


Fairness = Callable[[str, Move], Hashable]
"""The unit of fairness of a rule's move, by the rule's name; None: it need never happen. See `Kind.EVENTUALLY`."""


def each_action(rule: str, move: Move) -> Hashable:
    """The usual unit: what one rule does under one name. A rule is mostly that of one process, or of one channel."""
    return rule, move.action


class Kind(Enum):
    """When a property is evaluated, and what a finding of it means.

    The last two are *liveness*: a finding of theirs is the *goal*, and they speak of where runs lead, which is judged
    when the space is exhausted, and only then. A run that meets a finding is fine; what is looked for is one that
    never does.

    A state in which `check` finds nothing (None) is *open*, it demands the goal.

    RECOVERABLE: from every reachable open state some run reaches a goal.

    EVENTUALLY: from every reachable open state each fair run comes to one.

    A state where it is TRIVIAL demands nothing: a run may pass through it, or end there, if nothing was open before,
    and it does not meet a demand that was. So a check that is never TRIVIAL says "again and again", and one that is
    TRIVIAL where its trigger does not hold says "whenever this, then later that".

    A run is *fair* if each unit of fairness (`Property.fair`) again and again either cannot happen or does happen.
    Where no unit can happen a run may stay for ever, be it that nothing can happen or only what need not.
    """

    ALWAYS = "always"  # in every state; a finding is a violation
    SOMETIMES = "sometimes"  # in every state; a finding is the witness that was hoped for
    FINAL = "final"  # in states without a successor; a finding is a deadlock
    RECOVERABLE = "recoverable"  # in every state; a finding is the goal, which must stay within reach
    EVENTUALLY = "eventually"  # in every state; a finding is the goal, which must come on every fair run

    @property
    def is_liveness(self) -> bool:
        """Whether a finding is a goal, and runs that never come to one are looked for."""
        return self in (Kind.RECOVERABLE, Kind.EVENTUALLY)


@dataclass(frozen=True)
class Finding:
    """What a property found: the clause that decided, and the values that made it so, named."""

    clause: str
    values: tuple[tuple[str, Any], ...] = ()


class Trivial(Enum):
    """The answer of a property whose premise does not hold here, so that it says nothing about this state."""

    TRIVIAL = "trivial"


TRIVIAL = Trivial.TRIVIAL


@dataclass(frozen=True)
class Property:
    """`check` gets what `reads` name and returns a Finding, None (examined, nothing found) or TRIVIAL.

    `fair` matters to EVENTUALLY alone.
    """

    name: str
    reads: tuple[Read, ...]
    check: Callable[..., Finding | Trivial | None]
    kind: Kind = Kind.ALWAYS
    meaning: str = ""
    fair: Fairness = each_action


@dataclass(frozen=True)
class Model:
    """A system to explore. Raises ModelError when a name is used that nothing defines, or defined twice."""

    name: str
    columns: tuple[Column, ...]
    actors: tuple[Actor, ...]
    rules: tuple[Rule, ...]
    properties: tuple[Property, ...] = ()
    index: dict[str, int] = field(init=False, repr=False, compare=False)
    actor_index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", _numbered("column", [c.name for c in self.columns]))
        object.__setattr__(self, "actor_index", _numbered("actor", [a.name for a in self.actors]))
        _numbered("rule", [rule.name for rule in self.rules])
        _numbered("property", [prop.name for prop in self.properties])
        for actor in self.actors:
            self._known(f"actor {actor.name!r}", actor.columns)
        readers: tuple[Rule | Property, ...] = (*self.rules, *self.properties)
        for reader in readers:
            self._known(f"{type(reader).__name__.lower()} {reader.name!r}", [r.column for r in reader.reads])
        # Both engines list moves in this order: a column's own rules as the columns go, then the joint ones.
        order = sorted(self.rules, key=lambda r: self.index[r.reads[0].column] if len(r.reads) == 1 else 1 << 30)
        object.__setattr__(self, "rules", tuple(order))

    def _known(self, who: str, names: Sequence[str]) -> None:
        if not names:
            raise ModelError(f"{who} names no column; it must name at least one")
        for name in names:
            if name not in self.index:
                raise ModelError(f"{who} names the column {name!r}, which the model {self.name!r} does not have")

    def initial(self) -> Row:
        """The row that exploration starts from."""
        return tuple(column.initial for column in self.columns)

    @property
    def liveness(self) -> tuple[Property, ...]:
        """The properties that need the whole graph of states."""
        return tuple(prop for prop in self.properties if prop.kind.is_liveness)

    def with_properties(self, properties: Iterable[Property]) -> Model:
        """The same system held to other properties."""
        return Model(self.name, self.columns, self.actors, self.rules, tuple(properties))


def _numbered(what: str, names: list[str]) -> dict[str, int]:
    index = {name: position for position, name in enumerate(names)}
    if len(index) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"the {what} {twice!r} is defined twice")
    return index
