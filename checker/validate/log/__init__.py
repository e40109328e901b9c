"""Validation of the log of any system against a model: is there a run of the model that explains every line?

- `patterns`: whether the event of a line fits a step of the model (`checker.kit.events`).
- `reader`: the lines of the files, with the event of each.
- `report`: the report as text and as data.

This module searches the run. Rules of this module:

- A point of the search is a state of the model with the number of lines that are explained of each process. A step
  explains the next line of one process, or is a hidden move.
- The lines of a process are explained in their order. Those of different processes are explained in any order: then a
  later line may come before an earlier one.
- All lines have one order for reports. The finding is the first line in it that no run explains with
  all lines before it. The search has then visited every point before that line.
- A hidden move comes as late as possible: before a line that depends on it, or before another hidden move that such a
  line depends on. Any run can be brought into this form, since moves that read and change different columns commute,
  and hidden moves after the last line are left out. So the search does not visit the other orders of a run.
- Nothing is cut off silently. A search that reaches its limit decides nothing: the verdict is INCOMPLETE.

Source: the form of the question is that of trace validation with TLC, where the log restricts the next step and hidden
variables and steps are searched (Cirstea, Kuppe, Loillier and Merz, "Validating Traces of Distributed Programs Against
TLA+ Specifications", 2024).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from checker.command import ExitCode
from checker.engine.contract import first_rows
from checker.engine.model import Model, Move, Row
from checker.engine.semantics import fire, footprint, listed
from checker.job import Verdict
from checker.kit.events import Event
from checker.validate.candidates import reached
from checker.validate.log.patterns import (
    actions_of,
    differing_arguments,
    differing_values,
    fits,
    holds,
    says_something,
)

Progress = Callable[[str, int, int], None]
OFTEN = 2000  # states between calls
STATES = 500_000
"""The states that a search visits before it gives up, by default."""
PATIENCE = 24
"""The hidden steps in a row after which other ways are tried first. They are not cut off."""
MOST_KNOWN = 10_000  # states whose moves are kept
MOST_COMPARED = 500  # candidates that a finding is compared with
SHOWN = 3  # reasons of a finding, and moves that are possible instead
LAST = 8  # steps of a run that are shown


class EventLine(NamedTuple):
    """A line that says something about the model: its file and number, its text, its process and its event.

    `process` counts from 0.
    """

    file: str
    number: int
    text: str
    process: int
    event: Event


class Footprint(NamedTuple):
    """The columns that a step reads, and those that it changes, with a bit for each."""

    reads: int
    changes: int

    def touches(self, other: "Footprint") -> bool:
        """Whether two steps do not commute, as far as columns tell."""
        return bool(self.changes & (other.reads | other.changes) or self.reads & other.changes)


class Point(NamedTuple):
    """A point of the search: the number of lines of each process that are explained, and the state of the model.

    `unused` are the hidden moves since the last line that no later step depends on so far. They commute.
    """

    explained: tuple[int, ...]
    row: Row
    unused: frozenset[Footprint] = frozenset()


class RunStep(NamedTuple):
    """A step of a run: its move, if it has one, and the line that it explains, if it is not hidden."""

    move: Move | None
    line: EventLine | None


class LogMisfit(NamedTuple):
    """The first line that no run explains.

    - `candidates`: the number of states that explain all lines before.
    - `reasons`: the nearest reasons against it, with the number of candidates for each.
    - `instead`: moves that are possible in a candidate, those with the action of the line first.
    """

    line: EventLine
    candidates: int
    reasons: tuple[tuple[str, int], ...]
    instead: tuple[Move, ...]


@dataclass(frozen=True)
class LogValidation:
    """The judgement of a log. `run` explains the lines before `stuck`, or all lines if no line is stuck.

    Before a misfit it is a run to the nearest candidate.

    `stuck` is the line of the misfit, or of an INCOMPLETE search the first one that is not explained so far.
    """

    verdict: Verdict
    explained: int
    states: int
    run: tuple[RunStep, ...]
    misfit: LogMisfit | None = None
    stuck: EventLine | None = None

    @property
    def exit_code(self) -> ExitCode:
        """12 for a misfit, 20 if the limit ended the search, 21 if no line says anything."""
        codes = {
            Verdict.VIOLATED: ExitCode.SAFETY,
            Verdict.INCOMPLETE: ExitCode.INCOMPLETE,
            Verdict.VACUOUS: ExitCode.VACUOUS,
        }
        return codes.get(self.verdict, ExitCode.PASSED)


class _Arrival(NamedTuple):
    """The way to a point: the point before, the step from there, and the hidden steps since the last line."""

    before: Point | None
    step: RunStep
    hidden: int


@dataclass
class _LogSearch:
    """The points of one search, each with the way to it."""

    model: Model
    lines: Sequence[EventLine]
    is_hidden: Callable[[Move], bool]
    arrivals: dict[Point, _Arrival] = field(default_factory=dict)
    nearest: list[Point] = field(default_factory=list)
    """The points that explain the most lines without a gap."""

    def __post_init__(self) -> None:
        processes = 1 + max((line.process for line in self.lines), default=0)
        self._places: list[list[int]] = [[] for _ in range(processes)]
        for place, line in enumerate(self.lines):
            self._places[line.process].append(place)
        self._named = {action for line in self.lines for action in actions_of(line.event)}
        self._known_moves: dict[Row, list[tuple[Move, Row, Footprint, bool]]] = {}
        self.starts = [Point((0,) * processes, row) for row in first_rows(self.model)]
        self.arrivals.update(dict.fromkeys(self.starts, _Arrival(None, RunStep(None, None), 0)))

    def explained(self, point: Point) -> int:
        """The number of lines that are explained without a gap."""
        left = (
            places[count] for places, count in zip(self._places, point.explained, strict=True) if count < len(places)
        )
        return min(left, default=len(self.lines))

    def rank(self, point: Point) -> tuple[bool, int, int]:
        """The order of the search: most lines explained, with the fewest other steps."""
        hidden, gapless = self.arrivals[point].hidden, self.explained(point)
        return hidden > PATIENCE, -gapless, hidden + sum(point.explained) - gapless

    def steps(self, point: Point) -> Iterator[Point]:
        """The points after this one."""
        waiting = [
            (self.lines[places[count]], self._with(point.explained, process))
            for process, (places, count) in enumerate(zip(self._places, point.explained, strict=True))
            if count < len(places)
        ]
        hidden = self.arrivals[point].hidden
        for line, explained in waiting:
            if not actions_of(line.event) and self._explains(line, point, point.row, Footprint(0, 0)):
                yield self._noted(point, Point(explained, point.row), RunStep(None, line), 0)
        for move, row, touched, is_hidden in self._moves(point.row):
            for line, explained in waiting:
                if fits(line.event, move) and self._explains(line, point, row, touched):
                    yield self._noted(point, Point(explained, row), RunStep(move, line), 0)
            if is_hidden and row != point.row:
                unused = frozenset({other for other in point.unused if not other.touches(touched)} | {touched})
                yield self._noted(point, Point(point.explained, row, unused), RunStep(move, None), hidden + 1)

    def _explains(self, line: EventLine, point: Point, row: Row, touched: Footprint) -> bool:
        """Whether the state after a move fits a line, and every hidden move before it was needed."""
        looks = sum(1 << self.model.index[name] for name in line.event.after)
        seen = Footprint(touched.reads | looks, touched.changes)
        return all(other.touches(seen) for other in point.unused) and holds(line.event, self.model, row)

    def _moves(self, row: Row) -> list[tuple[Move, Row, Footprint, bool]]:
        """The moves that a line may report, or that are hidden, with the state after each and its footprint."""
        if row not in self._known_moves:
            if len(self._known_moves) >= MOST_KNOWN:
                self._known_moves.clear()
            moves = self._known_moves[row] = []
            for name, move in listed(self.model, row):
                is_hidden = self.is_hidden(move)
                if is_hidden or move.action in self._named:
                    after = footprint(self.model, row, self.model.rules[self.model.rule_index[name]], move)
                    if after is not None:
                        moves.append((move, after[0], Footprint(*after[1:]), is_hidden))
        return self._known_moves[row]

    def _with(self, explained: tuple[int, ...], process: int) -> tuple[int, ...]:
        return (*explained[:process], explained[process] + 1, *explained[process + 1 :])

    def _noted(self, before: Point, after: Point, step: RunStep, hidden: int) -> Point:
        if after not in self.arrivals:
            self.arrivals[after] = _Arrival(before, step, hidden)
        return after

    def run_to(self, point: Point) -> tuple[RunStep, ...]:
        """The steps of a run to a point."""
        steps: list[RunStep] = []
        arrival = self.arrivals[point]
        while arrival.before is not None:
            steps.append(arrival.step)
            arrival = self.arrivals[arrival.before]
        return tuple(reversed(steps))


def validate_log(
    model: Model,
    lines: Sequence[EventLine],
    is_hidden: Callable[[Move], bool],
    states: int = STATES,
    progress: Progress = lambda *_: None,
) -> LogValidation:
    """Search a run of a model that explains every line; `lines` are in the order for reports.

    `is_hidden` says of a move whether it may happen without a line. `states` limits the search. Raises ModelError.
    """
    if not any(says_something(line.event) for line in lines):
        return LogValidation(Verdict.VACUOUS, 0, 0, ())
    search = _LogSearch(model, lines, is_hidden)
    most, count = -1, 0
    for count, (point, _) in enumerate(reached(search.starts, search.steps, search.rank), start=1):
        explained = search.explained(point)
        if explained > most:
            most, search.nearest = explained, []
        if explained == most:
            search.nearest.append(point)
        if most == len(lines):
            return LogValidation(Verdict.PASSED, most, count, search.run_to(point))
        if count >= states:
            return LogValidation(Verdict.INCOMPLETE, most, count, search.run_to(search.nearest[0]), None, lines[most])
        if count % OFTEN == 0:
            progress("lines explained", most, len(lines))
    misfit, nearest = _misfit(model, lines[most], search.nearest)
    return LogValidation(Verdict.VIOLATED, most, count, search.run_to(nearest), misfit, lines[most])


def _misfit(model: Model, line: EventLine, points: Sequence[Point]) -> tuple[LogMisfit, Point]:
    """The finding about a line that none of these points explains, and the point that is nearest to it."""
    by_row = {point.row: point for point in reversed(points)}
    reasons: Counter[tuple[int, str]] = Counter()
    instead: dict[Move, None] = {}
    first: dict[tuple[int, str], Point] = {}
    for row in list(reversed(by_row))[:MOST_COMPARED]:
        reason = min(_reasons(model, line.event, row, instead))
        reasons[reason] += 1
        first.setdefault(reason, by_row[row])
    near = sorted(reasons, key=lambda reason: (reason[0], -reasons[reason], reason[1]))[:SHOWN]
    moves = sorted(instead, key=lambda move: move.action not in actions_of(line.event))
    counted = tuple((reason[1], reasons[reason]) for reason in near)
    return LogMisfit(line, len(by_row), counted, tuple(moves)), first[near[0]]


def _reasons(model: Model, event: Event, row: Row, instead: dict[Move, None]) -> Iterator[tuple[int, str]]:
    """The reasons why an event does not fit a state, each with its distance; note the moves that are possible."""
    if not actions_of(event):
        differing = [*differing_values(event, model, row)]
        yield len(differing), "; ".join(map(str, differing))
        return
    for _, move in listed(model, row):
        after = fire(model, row, move)
        if after is None:
            continue
        instead[move] = None
        if move.action not in actions_of(event):
            continue
        arguments, values = [*differing_arguments(event, move)], [*differing_values(event, model, after)]
        if not arguments:
            yield len(values), f"after the move, {'; '.join(map(str, values))}"
        elif len(arguments) == 1 and "." in arguments[0].name:  # in a field of a message
            yield OTHER_ARGUMENT, f"{move.action} is possible, but its {arguments[0]}"
    yield NO_MOVE, "no such move is possible"


OTHER_ARGUMENT, NO_MOVE = 1 << 20, 1 << 21
"""The distances of a move with another argument, and of none; one with other values after it is nearer."""
