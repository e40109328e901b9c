"""The states that a search has seen, made again: as a list, as a graph, and as a drawing for Graphviz.

A search keeps a fingerprint of each state, and the number of the move that led to it, but no state. A second pass makes
the states again with the semantics of the plain engine, one when the reader asks for it. It costs the time of Python
for each move, and the memory of the states that it has made. Rules of this module:

- The order is breadth first, and the number of a state is its place in this order. The first states come first.
- The new states of each depth, and the moves of a graph, must be as many as the search has counted. Any other number is
  a ModelError, so that a pass to the end is also a check of the search against collisions.
- The states of the last depth of a search that a finding or a limit ended were seen and not expanded: a graph has no
  moves of them. A search that ended inside a depth has seen a part of the last one, and this part is left out.
- In a symmetric search a state stands for all renamed ones, and an edge leads to the state that stands for its target.
  If the search was one of an over-approximation, so is the pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from checker.engine.contract import first_rows
from checker.engine.model import NO_EXCEPTION, Kind, Model, ModelError, Renaming, Row
from checker.engine.semantics import finding_at, possible, renamed
from checker.engine.values import brief, show, to_json
from spec.text import excerpt, on_a_line

MOST_NODES = 100_000
"""The states of a graph, unless its caller asks for more."""
MOST_DRAWN = 200
"""The states of a drawing, unless its caller asks for more; a reader cannot follow the arrows of a larger one."""
LONGEST_VALUE, LONGEST_CAPTION = 40, 60


@dataclass(frozen=True)
class StateRecord:
    """A state: its number, the least number of moves to it, and the value of each column, by the name of the column.

    record["counter"], record.columns, record.depth
    """

    number: int
    depth: int
    columns: Mapping[str, Any]

    def __getitem__(self, column: str) -> Any:
        return self.columns[column]

    @property
    def row(self) -> Row:
        """The values in the order of the columns."""
        return tuple(self.columns.values())


class StateEdge(NamedTuple):
    """A possible move: the numbers of the states before and after it, its action and its arguments."""

    source: int
    target: int
    action: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class StateGraph:
    """States and moves as plain data. `states[n]` has the number n; the first `expanded` states have all their moves.

    With `of_classes` each state stands for all that differ from it in names alone.
    """

    model: Model
    states: tuple[StateRecord, ...]
    edges: tuple[StateEdge, ...]
    expanded: int
    of_classes: bool = False

    def to_dot(self) -> str:
        """The graph in the language of Graphviz, with a newline at the end; see `drawing_lines`."""
        return "\n".join(drawing_lines(self)) + "\n"


@dataclass(frozen=True)
class SeenStates:
    """The counts of the states that a search has seen, of a model or of its classes of renamed states.

    `levels` has the number of new states at each depth, of the depths that were seen whole; `is_expanded`: the states
    of the last one were expanded. `transitions` is the number of all moves; None if some may be missing.
    """

    model: Model
    levels: tuple[int, ...]
    is_expanded: bool
    transitions: int | None
    renamings: tuple[Renaming, ...] | None = None

    def records(self) -> Iterator[StateRecord]:
        """Each state once, in the order of the depths. Raises ModelError, at a depth with another number of states."""
        return _SecondPass(self).states()

    def graph(self, most: int = MOST_NODES) -> StateGraph:
        """All of these states, and the moves between them. Raises ModelError, also for more states than `most`."""
        self.check_size("graph", most)
        second = _SecondPass(self)
        states = tuple(second.states())
        if self.is_expanded:
            second.expand_last()
        if self.transitions not in (None, len(second.edges)):
            raise _difference(self.model, f"{len(second.edges):,} moves, and the search {self.transitions:,}")
        expanded = len(states) if self.is_expanded else len(states) - self.levels[-1]
        return StateGraph(self.model, states, tuple(second.edges), expanded, self.renamings is not None)

    def check_size(self, method: str, most: int) -> None:
        """Raise ModelError for more states than `most`, with what to do; `method` is the one that was called."""
        total = sum(self.levels)
        if total <= most:
            return
        deepest = next(depth for depth in range(len(self.levels)) if sum(self.levels[: depth + 1]) > most) - 1
        smaller = f", search less deep (Limits(depth={deepest}))" if deepest >= 0 else ""
        raise ModelError(
            f"the search has seen {total:,} states, and {method}() takes at most {most:,}: make the model smaller"
            f"{smaller}, or ask for more ({method}(most={total}))"
        )


@dataclass
class _SecondPass:
    """A breadth-first search that keeps states and moves."""

    seen: SeenStates
    numbers: dict[Row, int] = field(default_factory=dict)
    edges: list[StateEdge] = field(default_factory=list)
    level: list[Row] = field(default_factory=list)
    count: int = 0

    def states(self) -> Iterator[StateRecord]:
        """Each state, when it is made. Raises ModelError."""
        levels = self.seen.levels
        for depth, expected in enumerate(levels):
            before, self.level = self.level, []
            for record in self._expanded(before, depth) if depth else self._first():
                if len(self.level) > expected:
                    break
                yield record
            if len(self.level) != expected:
                number = f"more than {expected:,}" if len(self.level) > expected else f"{len(self.level):,}"
                raise _difference(self.seen.model, f"{number} states at depth {depth}, and the search {expected:,}")

    def expand_last(self) -> None:
        """Add the moves of the states at the last depth. Raises ModelError if one leads to a state that is new."""
        depth = len(self.seen.levels)
        for record in self._expanded(self.level, depth):
            raise _difference(self.seen.model, f"a state at depth {record.depth}, and the search none")

    def _first(self) -> Iterator[StateRecord]:
        for row in first_rows(self.seen.model):
            if row not in self.numbers:
                yield self._added(row, 0)

    def _expanded(self, rows: list[Row], depth: int) -> Iterator[StateRecord]:
        """The new states that the moves of these rows lead to."""
        for row in rows:
            source = self.numbers[row]
            for move, after in possible(self.seen.model, row):
                is_new = after not in self.numbers
                record = self._added(after, depth) if is_new else None
                self.edges.append(StateEdge(source, self.numbers[after], str(move.action), move.arguments))
                if record is not None:
                    yield record

    def _added(self, row: Row, depth: int) -> StateRecord:
        number, self.count = self.count, self.count + 1
        self.level.append(row)
        self.numbers[row] = number
        for renaming in self.seen.renamings or ():
            self.numbers.setdefault(renamed(self.seen.model, renaming, row), number)
        names = (column.name for column in self.seen.model.columns)
        return StateRecord(number, depth, dict(zip(names, row, strict=True)))


def _difference(model: Model, figures: str) -> ModelError:
    return ModelError(
        f"the second pass over {model.name!r} sees {figures}: a function of the model gives different results for "
        "equal arguments, or two states share a fingerprint"
    )


# -- the drawing ---------------------------------------------------------------------------------------------


def drawing_lines(graph: StateGraph) -> Iterator[str]:
    """The lines of a drawing in the language of Graphviz.

    A box is a state: its number, and the columns that differ from the first state; the first state has them all. A
    state that violates a property is red and names it. A state with a dashed frame was not expanded.
    """
    violations = [*_violations(graph)]
    words = f"{graph.model.name}: {len(graph.states):,} states, {len(graph.edges):,} moves"
    if graph.of_classes:
        words += "; each state stands for all that differ from it in names alone"
    yield f"digraph {_quoted(graph.model.name)} {{"
    yield f"  graph [label={_quoted(words)}, labelloc=t, fontname=Helvetica];"
    yield "  node [shape=box, fontname=Courier, fontsize=10];"
    yield "  edge [fontname=Helvetica, fontsize=10];"
    for state, names in zip(graph.states, violations, strict=True):
        frame = "rounded" if state.number < graph.expanded else '"rounded,dashed"'
        lines = [str(state.number), *_differences(graph.states[0], state), *(f"violates {name}" for name in names)]
        marks = ", color=red, fontcolor=red" if names else ""
        marks += ", penwidth=2" if not state.depth else ""
        yield f"  {state.number} [style={frame}, label={_quoted(*lines)}{marks}];"
    for edge in graph.edges:
        caption = " ".join([edge.action, *(brief(to_json(argument)) for argument in edge.arguments)])
        yield f"  {edge.source} -> {edge.target} [label={_quoted(excerpt(caption, LONGEST_CAPTION))}];"
    yield "}"


def _violations(graph: StateGraph) -> Iterator[list[str]]:
    """The violated properties of each state. The moves of a state that was not expanded may raise unseen."""
    properties = [prop for prop in graph.model.properties if prop.kind is Kind.ALWAYS]
    still = graph.model.with_rules(()).with_properties(properties)
    for state in graph.states:
        model = graph.model if state.number < graph.expanded else still
        yield [prop.name for prop in (*properties, NO_EXCEPTION) if finding_at(model, prop, state.row) is not None]


def _differences(first: StateRecord, state: StateRecord) -> list[str]:
    """The columns of a state that differ from those of the first one, as text."""
    return [
        f"{name} = {excerpt(show(to_json(_listed(value))), LONGEST_VALUE)}"
        for name, value in state.columns.items()
        if state is first or value != first[name]
    ]


def _listed(value: Any) -> Any:
    """The items of a collection of another kind than those of Python, such as the bag of a network."""
    is_other = isinstance(value, Collection) and not isinstance(value, str | bytes | tuple | Set | Mapping)
    return list(value) if is_other else value


def _quoted(*lines: str) -> str:
    """A string of Graphviz; several lines are aligned at the left. A backslash of the author begins no command."""
    texts = [on_a_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + ("".join(f"{text}\\l" for text in texts) if len(texts) > 1 else texts[0]) + '"'
