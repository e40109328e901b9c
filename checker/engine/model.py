"""The definition of a model, for every engine: columns, actors, rules and properties.

A global state is a row of values, one for each *column*. An *actor* holds the state in the columns that it names: a
server, a channel, a fault budget, or the history of observed facts. There is one mechanism:

    An *operation* is sent to an actor. Its outcome depends only on the values of the actor's columns: new values for
    those columns, and further operations for other actors. These are carried out immediately and in order, each one
    with all of its consequences before the next. If an operation is impossible (None), so is the whole move.

A *rule* reads some columns and lists the *moves* that are possible there. A move is a possible next event, as a list of
operations. Delivery of a message, a timer, a crash and a client's request are all rules.

A model of a counter that must stay below 3:

    def step(values, operation):
        return Outcome((values[0] + operation,))

    def moves(count):
        return [Move("Add", (n,), (Send("counter", n),)) for n in (1, 2)] if count < 3 else []

    def check(count):
        return Finding("the count is 3 or more", (("count", count),)) if count >= 3 else None

    model = Model(
        name="counter",
        columns=(Column("count", 0),),
        actors=(Actor("counter", ("count",), step),),
        rules=(Rule("add", (Read("count"),), moves),),
        properties=(Property("BelowThree", (Read("count"),), check),),
    )

Rules that every model keeps, and that the engines rely on:

- values and operations are hashable and immutable, and equal values have the same meaning;
- `step`, `moves`, `check` and projections are functions: equal arguments give equal results.

The table engine caches each result by the arguments of the call, so the cost of a function depends on the values that
it reads. A rule over five whole servers is evaluated once for each combination of their states; a rule over a
projection of each (`Read("server 1", is_running)`) only once for each combination of the projected values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from reprlib import Repr
from typing import Any, Literal, NamedTuple, TypeAlias

from checker.html_text import document, folded, paragraph, table

Row = tuple[Any, ...]
Unit = tuple[str, str]
"""A unit of fairness: the name of a rule, and an action. A rule usually belongs to one process or one channel."""
Projection = Callable[[Any], Hashable]
MOST_FIRSTS: int = 1 << 15
"""The first states of a model: the rows of a block of the table engine."""
STRONG: Literal["strong"] = "strong"
Strength: TypeAlias = bool | Literal["strong"]
"""The fairness of an action: True is weak, `STRONG` is strong, and False is none."""
Fairness: TypeAlias = Strength | tuple[str, ...] | Mapping[str, Strength]
"""The fairness of all actions of a rule, the names of weakly fair ones, or the fairness of each."""


class ModelError(Exception):
    """A model that breaks one of the rules above; the message names the actor or rule, and the likely cause."""


class AnswerError(ModelError):
    """A function of a model gives no usable answer to some arguments: an error of each state that calls it with them.

    `move` is the move that was carried out, if any.
    """

    move: Move | None = None


class RaisedError(AnswerError):
    """An exception that a function of a model raises, a failed `assert` included: a finding (`NO_EXCEPTION`).

    `clause` names the function and the exception, and `values` are those of the finding.
    """

    def __init__(self, message: str, clause: str, values: tuple[tuple[str, Any], ...]) -> None:
        super().__init__(message)
        self.clause, self.values = clause, values

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.clause, self.values)


class Send(NamedTuple):
    """An operation, and the name of the actor that receives it."""

    actor: str
    operation: Any


class Outcome(NamedTuple):
    """The result of an operation: the new values of the actor's columns, in order, and the operations that it sends."""

    values: tuple[Any, ...]
    sends: tuple[Send, ...] = ()


@dataclass(frozen=True)
class Channel:
    """The declaration that a column holds messages under way, so that traces show them as arrows.

    `sender` and `receiver` are names of columns, or functions of a message that return one. A message that a move takes
    out of the column is received, unless the action of the move is a fault or in `lost_by`: it is then lost. The column
    has a tuple with the oldest message first, a frozenset, or a `checker.kit.Bag`.

        Column("mail", frozenset(), Channel("clerk", attrgetter("receiver"), lost_by=("shred",)))
    """

    sender: str | Callable[[Any], str]
    receiver: str | Callable[[Any], str]
    lost_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """A component of the global state, with its initial value; `channel` declares that it holds messages."""

    name: str
    initial: Any
    channel: Channel | None = None


class Renaming(NamedTuple):
    """Other names for the processes of a model: of columns, and of what their values say.

    `columns` has the name of each column that changes it. `value` gets a value of any column, and returns it with the
    other names in it.
    """

    columns: Mapping[str, str]
    value: Callable[[Any], Any]


@dataclass(frozen=True)
class Symmetry:
    """A declaration that renamed states are alike: `--reduce symmetric` relies on it.

    `renamings` are, with the identity, a group. A renamed state has the renamed successors, by moves with the same
    actions, and every property gives the same answer about both. Where this is not true of the model, because some rule
    compares names, it must be true of an over-approximation: `wider` are the rules of a system that has every move of
    the model, and more. See `checker.engine.symmetric_search`.
    """

    renamings: tuple[Renaming, ...]
    wider: tuple[Rule, ...] | None = None


@dataclass(frozen=True)
class Actor:
    """A holder of state in `columns`, in that order, which carries out operations.

    `step(values, operation)` gets the values of those columns, and returns an Outcome, or None if the operation is
    impossible. Several actors may share a column. Results are cached by the values that were read; an event that needs
    only a log is therefore best sent to an actor over the log alone.
    """

    name: str
    columns: tuple[str, ...]
    step: Callable[[tuple[Any, ...], Any], Outcome | None]


class Move(NamedTuple):
    """A possible event: the name of its action, the arguments for a reader, and its operations in order."""

    action: str
    arguments: tuple[Any, ...]
    sends: tuple[Send, ...]


class Read(NamedTuple):
    """A column, and the part of its value that is read; without a projection, the whole value.

    A projection may return None, which means "never in this state of the column". The rule then lists no move, and the
    property is TRIVIAL, whatever the values of the other columns are. For example, a projection to `server.zab` skips
    every state in which the server has no `zab`.
    """

    column: str
    projection: Projection | None = None


@dataclass(frozen=True)
class Rule:
    """The source of moves: `moves` gets the values of `reads` and returns the possible moves; None and () mean none.

    `actions` declares the actions that its moves may have, so that coverage can name an action that never fires. A rule
    without a declaration may list any action.

    `fair` declares the actions that must happen: True for all, their names, or a mapping of names. True in place of an
    action is weak fairness as in TLA+: it happens at last if it stays possible. "strong" is strong fairness: it happens
    again and again if it is possible again and again. Other moves need never happen, such as faults, the loss of a
    message, or a choice of a user.

        fair=True        fair=("take", "give")        fair="strong"        fair={"take": "strong", "give": True}
    """

    name: str
    reads: tuple[Read, ...]
    moves: Callable[..., Iterable[Move] | None]
    actions: tuple[str, ...] = ()
    fair: Fairness = False

    def strength(self, action: str) -> Strength:
        """The fairness of the moves with this action."""
        if isinstance(self.fair, Mapping):
            return self.fair.get(action, False)
        return action in self.fair if isinstance(self.fair, tuple) else self.fair

    def is_fair(self, action: str) -> bool:
        """Whether a move with this action happens at last if it stays possible."""
        return bool(self.strength(action))

    @property
    def named_fair(self) -> tuple[str, ...]:
        """The actions that `fair` names; none if it is about all."""
        return tuple(self.fair) if isinstance(self.fair, tuple | Mapping) else ()

    @property
    def has_strong(self) -> bool:
        """Whether the fairness of some action is strong."""
        return STRONG in (self.fair.values() if isinstance(self.fair, Mapping) else (self.fair,))

    def check_declarations(self) -> None:
        """Raises ModelError for a declaration of another form, or of a fair action that the rule does not declare."""
        for name, names in (("actions", self.actions), ("fair", () if self.fair == STRONG else self.fair)):
            if isinstance(names, str):
                raise ModelError(f"the rule {self.name!r} declares {name}={names!r}; write a tuple, as in ({names!r},)")
        for action, strength in self.fair.items() if isinstance(self.fair, Mapping) else ():
            if strength is not True and strength is not False and strength != STRONG:
                right = f"write True, False or {STRONG!r}"
                raise ModelError(f"the rule {self.name!r} declares the fairness {strength!r} of {action!r}; {right}")
        unknown = sorted({*self.named_fair} - {*self.actions}) if self.actions else []
        if unknown:
            why = f"the rule {self.name!r} declares that {unknown[0]!r} is fair"
            raise ModelError(f"{why}, and its actions are only {', '.join(self.actions)}")

    def check(self, move: Move) -> None:
        """Raises ModelError for a move whose action the rule does not declare."""
        if self.actions and move.action not in self.actions:
            raise ModelError(
                f"the rule {self.name!r} lists {move.action!r}, and declares only {', '.join(self.actions)}"
            )


class Kind(Enum):
    """The kind of a property: the states in which it is evaluated, and the meaning of a finding.

    RECOVERABLE and EVENTUALLY are *liveness* properties. Their finding is a *goal*, which is a desired state, and their
    counterexample is a run that never reaches a goal. They are judged only when the state space is exhausted.

    A state in which `check` finds nothing (None) is *open*: it demands the goal.

    RECOVERABLE: from every reachable open state, some run reaches a goal.

    EVENTUALLY: from every reachable open state, every fair run reaches a goal.

    A state in which `check` is TRIVIAL demands nothing. A run may pass through it or end there, unless an earlier open
    state still demands the goal; a TRIVIAL state does not satisfy that demand. A check that is never TRIVIAL therefore
    means "again and again", and a check that is TRIVIAL where its trigger does not hold means "whenever this happens,
    that follows".

    A *unit of fairness* is a rule with one of its fair actions (`Rule.fair`). A run is *fair* if each weak unit again
    and again either cannot happen or does happen, and each strong unit happens again and again unless it can happen in
    finitely many states only. In a state where no unit can happen, a run may stay forever: either no move is possible,
    or only moves that need not happen.
    """

    ALWAYS = "always"  # in every state; a finding is a violation
    SOMETIMES = "sometimes"  # in every state; a finding is the desired witness
    FINAL = "final"  # in states without a successor; a finding is a deadlock
    RECOVERABLE = "recoverable"  # in every state; a finding is the goal, which must remain reachable
    EVENTUALLY = "eventually"  # in every state; a finding is the goal, which every fair run must reach

    @property
    def is_liveness(self) -> bool:
        """Whether a finding is a goal, so that the counterexample is a run that never reaches one."""
        return self in (Kind.RECOVERABLE, Kind.EVENTUALLY)


@dataclass(frozen=True)
class Finding:
    """The answer of a property that found something: the clause that decided, and the values behind it, by name."""

    clause: str
    values: tuple[tuple[str, Any], ...] = ()


class Trivial(Enum):
    """The answer of a property whose premise does not hold, so that it says nothing about the state."""

    TRIVIAL = "trivial"


TRIVIAL = Trivial.TRIVIAL


@dataclass(frozen=True)
class Property:
    """A property of states: `check` gets the values of `reads` and returns a Finding, None (nothing found) or TRIVIAL.

    `meaning` is a sentence for reports. `unfair` are actions that need not happen for this property, although their
    rules declare them fair; it is used only by EVENTUALLY.

        def check(leaders):
            if not leaders:
                return TRIVIAL
            return Finding("two servers lead", (("leaders", leaders),)) if len(leaders) > 1 else None

        Property("OneLeader", (Read("leaders"),), check)
    """

    name: str
    reads: tuple[Read, ...]
    check: Callable[..., Finding | Trivial | None]
    kind: Kind = Kind.ALWAYS
    meaning: str = ""
    unfair: frozenset[str] = frozenset()

    def installed(self, model: Model) -> Installed:
        """The columns and actors of a model with this property, and the operations that begin and end each of its
        moves; a property of steps changes them (`steps`), and so does a bound (`bounds`).
        """
        return model.installed_parts


class Installed(NamedTuple):
    """The parts of a model that its properties change."""

    columns: tuple[Column, ...]
    actors: tuple[Actor, ...]
    closing: tuple[Send, ...]
    firsts: tuple[Mapping[str, Any], ...]
    opening: tuple[Send, ...]


NO_EXCEPTION = Property(
    "NoException", (), lambda: None, meaning="no function of the model raises an exception, or fails an assertion"
)
"""The property of every model. It is no member of `Model.properties`; only a finding of it is reported.

A state violates it if a property of all states raises there, or a rule, a step of a possible move, or a property of
states without a successor. Such a state has no successors: none of its moves counts.
"""


@dataclass(frozen=True)
class Model:
    """A system to explore. Raises ModelError if it uses an undefined name, or defines a name twice.

    `firsts` are the first states, each by the values of columns that differ from `Column.initial`. Without them the
    first state has the initial values. Equal first states count once.

        Model(..., columns=(Column("coin", "heads"),), firsts=({}, {"coin": "tails"}))
    """

    name: str
    columns: tuple[Column, ...]
    actors: tuple[Actor, ...]
    rules: tuple[Rule, ...]
    properties: tuple[Property, ...] = ()
    symmetry: Symmetry | None = None
    firsts: tuple[Mapping[str, Any], ...] = ()
    first_rows: tuple[Row, ...] = field(init=False, repr=False, compare=False)
    """The rows at which exploration starts."""
    index: dict[str, int] = field(init=False, repr=False, compare=False)
    actor_index: dict[str, int] = field(init=False, repr=False, compare=False)
    rule_index: dict[str, int] = field(init=False, repr=False, compare=False)
    closing: tuple[Send, ...] = field(init=False, repr=False, compare=False)
    opening: tuple[Send, ...] = field(init=False, repr=False, compare=False)
    """The operations that end each move, and those that begin it; properties install them."""
    known: dict[int | str, dict[Any, Any]] = field(init=False, repr=False, compare=False)
    """The first of equal values, for the place of each column, and of equal operations, for the name of each actor."""
    _given: Installed = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "closing", ())
        object.__setattr__(self, "opening", ())
        object.__setattr__(self, "_given", self.installed_parts)
        for prop in self.properties:
            installed = prop.installed(self)
            for part, value in installed._asdict().items():
                object.__setattr__(self, part, value)
        object.__setattr__(self, "index", _numbered("column", [c.name for c in self.columns]))
        object.__setattr__(self, "first_rows", self._first_rows())
        for column in self.columns:
            _check_channel(column, self.index)
        object.__setattr__(self, "known", defaultdict(dict))
        object.__setattr__(self, "actor_index", _numbered("actor", [a.name for a in self.actors]))
        _numbered("property", [prop.name for prop in self.properties])
        for prop in self.properties:
            if prop.name == NO_EXCEPTION.name:
                raise ModelError(f"every model has the property {prop.name!r}; choose another name")
            if not isinstance(prop.kind, Kind):
                raise ModelError(f"the property {prop.name!r} has the kind {prop.kind!r}; write Kind.ALWAYS or another")
        for rule in self.rules:
            rule.check_declarations()
        for prop in self.properties if all(rule.actions for rule in self.rules) else ():
            if unknown := sorted(prop.unfair - self.actions):
                why = f"the property {prop.name!r} declares that {unknown[0]!r} is unfair"
                raise ModelError(f"{why}, and the actions are only {', '.join(sorted(self.actions))}")
        for actor in self.actors:
            self._known(f"actor {actor.name!r}", actor.columns)
        readers: tuple[Rule | Property, ...] = (*self.rules, *self.properties)
        for reader in readers:
            self._known(f"{type(reader).__name__.lower()} {reader.name!r}", [r.column for r in reader.reads])
        if self.symmetry is not None:
            names = {name for renaming in self.symmetry.renamings for pair in renaming.columns.items() for name in pair}
            self._known("the symmetry", sorted(names))
        # Both engines list moves in this order: the rules over one column, in the order of the columns, then the joint
        # rules.
        order = sorted(self.rules, key=lambda r: self.index[r.reads[0].column] if len(r.reads) == 1 else 1 << 30)
        object.__setattr__(self, "rules", tuple(order))
        object.__setattr__(self, "rule_index", _numbered("rule", [rule.name for rule in order]))

    def _known(self, who: str, names: Sequence[str]) -> None:
        if not names:
            raise ModelError(f"{who} names no column; it must name at least one")
        for name in names:
            if name not in self.index:
                raise ModelError(f"{who} names the column {name!r}, which the model {self.name!r} does not have")

    def _first_rows(self) -> tuple[Row, ...]:
        if isinstance(self.firsts, Mapping):
            raise ModelError(f"the model {self.name!r} declares firsts={self.firsts!r}; write a tuple of mappings")
        for values in self.firsts:
            self._known("a first state", list(values)) if values else None
        if len(self.firsts) > MOST_FIRSTS:
            count = f"at most {MOST_FIRSTS:,} first states, and {self.name!r} has {len(self.firsts):,}"
            raise ModelError(f"a model has {count}; let a rule choose what differs")
        rows = [tuple(values.get(c.name, c.initial) for c in self.columns) for values in self.firsts or ({},)]
        try:
            return tuple(dict.fromkeys(rows))
        except TypeError:  # a value that cannot be hashed, which the engines name
            return tuple(rows)

    def initial(self) -> Row:
        """The row at which exploration starts. Raises ModelError if there are several (`first_rows`)."""
        if len(self.first_rows) > 1:
            raise ModelError(
                f"the model {self.name!r} has {len(self.first_rows)} first states, and this needs one alone"
            )
        return self.first_rows[0]

    @property
    def installed_parts(self) -> Installed:
        """The parts that properties change, as they are."""
        return Installed(self.columns, self.actors, self.closing, self.firsts, self.opening)

    def _repr_html_(self) -> str:
        """The columns, actors, rules and properties, as HTML for a notebook."""
        at_first = [", ".join(dict.fromkeys(map(_BRIEF.repr, values))) for values in zip(*self.first_rows, strict=True)]
        columns = [(column.name, at_first[place], _ends(column)) for place, column in enumerate(self.columns)]
        actors = [(actor.name, ", ".join(actor.columns)) for actor in self.actors]
        rules = [(rule.name, _columns_of(rule.reads), _listed(rule.actions), _fairness(rule)) for rule in self.rules]
        properties = [(prop.name, prop.kind.value, _columns_of(prop.reads), prop.meaning) for prop in self.properties]
        sections: list[tuple[str, tuple[str, ...], Sequence[Sequence[str]]]] = [
            (_count("column", "columns", columns), ("column", "at first", "messages"), columns),
            (_count("actor", "actors", actors), ("actor", "columns"), actors),
            (_count("rule", "rules", rules), ("rule", "reads", "actions", "fair"), rules),
            (_count("property", "properties", properties), ("property", "kind", "reads", "meaning"), properties),
        ]
        counts = ", ".join(count for count, _, _ in sections)
        symmetry = "" if self.symmetry is None else f", {1 + len(self.symmetry.renamings)} renamings"
        parts = [folded(count, table(head, rows)) for count, head, rows in sections if rows]
        return document(paragraph(f"{self.name}:", counts + symmetry), *parts)

    @property
    def raising(self) -> tuple[int, int]:
        """The numbers of `NO_EXCEPTION` in the tables: for states that raise when judged, and when expanded."""
        return len(self.properties), len(self.properties) + 1

    def property_at(self, position: int) -> Property:
        """The property with this position or number of `raising`."""
        return NO_EXCEPTION if position >= len(self.properties) else self.properties[position]

    @property
    def actions(self) -> frozenset[str]:
        """The actions that its rules declare."""
        return frozenset(action for rule in self.rules for action in rule.actions)

    @property
    def finals(self) -> tuple[Property, ...]:
        """The properties of states without a successor."""
        return tuple(prop for prop in self.properties if prop.kind is Kind.FINAL)

    @property
    def liveness(self) -> tuple[Property, ...]:
        """The properties of liveness, which need the whole graph of states."""
        return tuple(prop for prop in self.properties if prop.kind.is_liveness)

    def unit(self, prop: Property, rule: str, action: str) -> Unit | None:
        """The unit of fairness of a move for a property, by the name of its rule and its action; None: it need never
        happen.
        """
        is_fair = action not in prop.unfair and self.rules[self.rule_index[rule]].is_fair(action)
        return (rule, action) if is_fair else None

    def is_strong(self, unit: Unit) -> bool:
        """Whether a unit of fairness is strong."""
        rule, action = unit
        return self.rules[self.rule_index[rule]].strength(action) == STRONG

    def with_properties(self, properties: Iterable[Property]) -> Model:
        """The same system with other properties."""
        return self._with(properties=tuple(properties))

    def with_symmetry(self, symmetry: Symmetry | None) -> Model:
        """The same system with another declaration of its symmetry. Raises ModelError."""
        return self._with(symmetry=symmetry)

    def with_firsts(self, firsts: Iterable[Mapping[str, Any]]) -> Model:
        """The same system with other first states. Raises ModelError."""
        return self._with(firsts=tuple(firsts))

    def with_rules(self, rules: Iterable[Rule]) -> Model:
        """The system with other rules. Raises ModelError."""
        return self._with(rules=tuple(rules))

    def _with(self, **changes: Any) -> Model:
        given = {"columns": self._given.columns, "actors": self._given.actors, "firsts": self._given.firsts}
        return replace(self, **{**given, **changes})


def _check_channel(column: Column, names: Container[str]) -> None:
    """Raise ModelError for a channel of another form, or of a process that is no column among these."""
    if column.channel is None:
        return
    if isinstance(column.channel.lost_by, str):
        right = f"write a tuple, as in ({column.channel.lost_by!r},)"
        raise ModelError(f"the channel {column.name!r} declares lost_by={column.channel.lost_by!r}; {right}")
    for end in (column.channel.sender, column.channel.receiver):
        if not callable(end) and end not in names:
            raise ModelError(f"the channel {column.name!r} names the process {end!r}, and no column has that name")


def _ends(column: Column) -> str:
    """The sender and the receiver of a channel, in words; empty for any other column."""
    if column.channel is None:
        return ""
    names = ["each message says" if callable(end) else end for end in (column.channel.sender, column.channel.receiver)]
    return f"from {names[0]} to {names[1]}"


def _fairness(rule: Rule) -> str:
    if isinstance(rule.fair, bool):
        return "all" if rule.fair else "none"
    if not isinstance(rule.fair, Mapping):
        return f"all ({rule.fair})" if isinstance(rule.fair, str) else _listed(rule.fair)
    return _listed(f"{name} ({STRONG})" if fair == STRONG else name for name, fair in rule.fair.items() if fair)


def _columns_of(reads: Iterable[Read]) -> str:
    return _listed(read.column for read in reads)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(map(str, names)))


def _count(one: str, several: str, rows: Sequence[object]) -> str:
    return f"{len(rows)} {one if len(rows) == 1 else several}"


_BRIEF = Repr()
_BRIEF.maxstring = _BRIEF.maxother = 80


def _numbered(what: str, names: list[str]) -> dict[str, int]:
    index = {name: position for position, name in enumerate(names)}
    if len(index) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"the {what} {twice!r} is defined twice")
    return index
