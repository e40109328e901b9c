"""The whole space of a job as JSON, for a page without a server: each state, each move, and what is shown of both.

Rules of this module:

- The order of the moves of a state is that of `checker.explorer.walk`, so a path leads to the same state on both pages.
- A value that many states share is written once, in a table; a state holds numbers. What depends on the walk to a state
  (numbers of messages, the picture) is computed by the page: `assets/server.js` reads this form, and describes it.
- A limit of depth in the scenario is kept: states at that depth have no list of moves, and the page shows it.
- Text is on one line and has no invisible characters, because an SVG picture must be XML.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from checker.command import CommandError, ExitCode
from checker.engine.model import Finding, Property, Row
from checker.engine.semantics import answer, possible
from checker.engine.values import show
from checker.explorer.views import SAID, answer_view, effect_view, value_text
from checker.job import Job, Json
from checker.traces.trace import Lanes, Truth, lanes_of, truths
from spec.text import on_a_line

MOST = 50_000  # states


class TooManyStatesError(CommandError):
    """The space has more states than a page holds; the message gives the number and what to change."""

    exit_code = ExitCode.TOO_LARGE


class _Table:
    """Distinct values, by their numbers."""

    def __init__(self) -> None:
        self.values: list[Json] = []
        self._numbers: dict[str, int] = {}

    def number(self, value: Json) -> int:
        """The number of a value, which is added if it is new."""
        number = self._numbers.setdefault(repr(value), len(self.values))
        if number == len(self.values):
            self.values.append(_on_lines(value))
        return number


class _Space:
    """The states of a job in breadth-first order, as long as they are encoded."""

    def __init__(self, job: Job, most: int) -> None:
        self.job, self._most = job, most
        self.tables = {name: _Table() for name in ("fields", "truths", "changes", "events", "effects")}
        self.lanes: list[Json] = []
        self.states: list[Json] = []
        self._found: dict[Row, int] = {}
        self._lanes: list[tuple[str, Mapping[str, Json]]] = []
        self._lane_numbers: dict[str, int] = {}

    def explore(self) -> None:
        """Encode every state. Raises TooManyStatesError."""
        level, depth, deepest = [self.job.model.initial()], 0, self.job.limits.depth
        self._number(level[0], depth)
        while level:
            level = [row for state in level for row in self._moves(state, depth, deepest)]
            depth += 1

    def _moves(self, row: Row, depth: int, deepest: int | None) -> list[Row]:
        """Encode the moves of a state; returns the states that are new."""
        place = self._found[row]
        if depth == deepest and possible(self.job.model, row):
            return []
        new, encoded = [], []
        for move, after in possible(self.job.model, row):
            if after not in self._found:
                new.append(after)
            target = self._number(after, depth + 1)
            effect, events = effect_view(self.job, (row, self._lanes_of(place)), move, (after, self._lanes_of(target)))
            effect["changes"] = [self._in("changes", list(change.values())) for change in effect["changes"]]
            effect["events"] = [self._in("events", [d.kind, d.lane, d.text, d.peer]) for d in events]
            encoded += [self._in("effects", effect), target]
        self.states[place][2] = encoded
        return new

    def _in(self, table: str, value: Json) -> int:
        return self.tables[table].number(value)

    def _number(self, row: Row, depth: int) -> int:
        """The number of a state, which is encoded if it is new."""
        if row not in self._found:
            if len(self.states) == self._most:
                problem = f"more than {self._most:,} states can be reached (at depth {depth}), and a page holds no more"
                right = f"lower its budgets (faults, workload, elections), or write limits: {{depth: {depth - 1}}}"
                raise TooManyStatesError(f"{self.job.name}: {problem}; {right}")
            lanes = lanes_of(self.job, row)
            self._found[row] = len(self.states)
            numbers = [self._lane(name, fields) for name, fields in lanes.items()]
            self.states.append([numbers, self._in("truths", self._truths(row)), None])
        return self._found[row]

    def _lane(self, name: str, fields: Mapping[str, Json]) -> int:
        number = self._lane_numbers.setdefault(repr((name, fields)), len(self._lanes))
        if number == len(self._lanes):
            self._lanes.append((name, fields))
            numbers = [self._in("fields", [field, show(value), value_text(value)]) for field, value in fields.items()]
            self.lanes.append(_on_lines([name, numbers]))
        return number

    def _lanes_of(self, state: int) -> Lanes:
        return dict(self._lanes[number] for number in self.states[state][0])

    def _truths(self, row: Row) -> Json:
        """The truth of each property in a state, and by its place the reason of those that are remarkable."""
        values = truths(self.job.model, row)
        reasons = {
            place: list(answer_view(result).values())
            for place, prop in enumerate(self.job.model.properties)
            if isinstance(result := self._answer(prop, row, values[prop.name]), Finding)
        }
        return [[truth.value for truth in values.values()], reasons]

    def _answer(self, prop: Property, row: Row, truth: Truth) -> object:
        return answer(self.job.model, prop, row) if truth in SAID else None


def _on_lines(value: Any) -> Any:
    if isinstance(value, str):
        return on_a_line(value)
    if isinstance(value, list):
        return [_on_lines(item) for item in value]
    return {key: _on_lines(item) for key, item in value.items()} if isinstance(value, dict) else value


def space_of(job: Job, most: int = MOST) -> dict[str, Json]:
    """The space of a job. Raises TooManyStatesError.

    `check` is a digest of the space; it is the last part of a link.
    """
    space = _Space(job, most)
    space.explore()
    content = {
        "name": job.name,
        "properties": [{"name": prop.name, "kind": prop.kind.value} for prop in job.model.properties],
        **{name: table.values for name, table in space.tables.items()},
        "lanes": space.lanes,
        "states": space.states,
    }
    return {"check": hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12], **content}
