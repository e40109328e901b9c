"""One run of a model from its first state to a finding, as data: every format is a view of it.

Rules of this module:

- A trace holds only JSON: no value of a model, no function. Two traces of one run are equal, and a trace read from a
  file is equal to the written one.
- Step 0 is the initial state of the run; step n is the n-th move and the state after it.
- A lane holds the full state after each step, and the names of the fields that the step changed.
- Equal message numbers are one message. Arrivals and losses take the oldest waiting message of their sender and
  receiver with the same text; a message without a visible sending gets a number when it first appears.
- The lane of a sent or lost message is its sender, the lane of a delivered one its receiver. If a presenter no longer
  knows the destination of a message (`checker.job.DiagramEvent`), this module looks it up.
- A run that never reaches a goal has a `loop`: its last state is the state of that step, and the steps between them
  repeat for ever. If there are no steps between them, the run stays in that state. A run that ends in a state without
  successors has no loop.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

from msgspec.structs import replace as with_fields

from checker.engine.discovery import Discovery, Step
from checker.engine.model import NO_EXCEPTION, TRIVIAL, Finding, Kind, Model, Property, Row
from checker.engine.semantics import answer_if_any, is_end
from checker.engine.values import canonical, to_json
from checker.job import DiagramEvent, Job, Json, Verdict

Lanes = Mapping[str, Mapping[str, Json]]
RESERVED = ("#", "mbt::")  # the first characters of names that the Informal Trace Format reserves


class Truth(Enum):
    """The value of a property in one state."""

    HOLDS = "holds"
    FAILS = "fails"
    TRIVIAL = "trivial"  # its premise does not hold, it concerns other states only, or it raises an exception
    WITNESSED = "witnessed"
    UNSEEN = "not witnessed"
    REACHED = "reached"  # the state is a goal
    OPEN = "open"  # the state is not a goal, and requires one


@dataclass(frozen=True)
class TraceStep:
    """A move and the state after it; the first step has no action.

    `lanes` maps each lane to its fields, `changed` each lane that the step touched to the fields that differ (all of
    them in step 0, and also removed fields). `truth` is the value of each property after the step.
    """

    number: int
    action: str | None
    arguments: tuple[Json, ...]
    caption: str
    lanes: Lanes
    changed: Mapping[str, tuple[str, ...]]
    events: tuple[DiagramEvent, ...]
    truth: Mapping[str, Truth]


@dataclass(frozen=True)
class Trace:
    """A run that ends in a finding of one property. `verdict` is the verdict of the whole exploration.

    `loop` and `since` have the meaning of `checker.engine.Discovery`. An interactively chosen run without a finding has
    neither kind nor verdict, and no text for `prop` and `clause`.
    """

    job: str
    source: Mapping[str, Json]
    grain: str
    bounds: tuple[str, ...]
    verdict: Verdict | None
    prop: str
    kind: Kind | None
    clause: str
    values: tuple[tuple[str, Json], ...]
    steps: tuple[TraceStep, ...]
    loop: int | None = None
    since: int | None = None
    drawn: ClassVar[Callable[[Trace], str]]
    """Draws a trace as HTML; `checker.traces` sets it, since a picture is a view of a trace."""

    def _repr_html_(self) -> str:
        """The picture, as HTML for a notebook."""
        return self.drawn()

    @property
    def depth(self) -> int:
        """The number of moves."""
        return len(self.steps) - 1

    @property
    def is_liveness(self) -> bool:
        """Whether the run is one that never reaches a goal."""
        return self.kind is not None and self.kind.is_liveness

    @property
    def headline(self) -> str:
        """The finding and its place, in one line."""
        if self.kind is None:
            return f"walked: {_moves(self.depth)}, without a finding"
        if self.is_liveness:
            word = "not recoverable" if self.kind is Kind.RECOVERABLE else "violated"
            return f"{word}: {self.prop}, {self.shape}"
        word = {Kind.ALWAYS: "violated", Kind.FINAL: "deadlock", Kind.SOMETIMES: "witnessed"}[self.kind]
        return f"{word}: {self.prop} at depth {self.depth}"

    @property
    def shape(self) -> str:
        """The lengths of the stem of a run and of its loop."""
        stem = self.depth if self.loop is None else self.loop
        ends = {None: ", which ends the run", self.depth: ", then nothing more"}
        return f"a stem of {_moves(stem)}" + ends.get(self.loop, f" and a loop of {_moves(self.depth - stem)}")

    @property
    def repetition(self) -> str:
        """The remark on the loop, at its beginning; empty for a run that ends."""
        if self.loop is None:
            return ""
        if self.loop == self.depth:
            return "nothing more need happen"
        first, last = self.loop + 1, self.depth
        steps = f"step {last} repeats" if first == last else f"steps {first} to {last} repeat"
        return f"the loop begins here: {steps} for ever"

    def turning(self, number: int) -> list[str]:
        """The remarks after a step of a run that never reaches a goal."""
        lines = []
        if number == self.since:
            lost = self.kind is Kind.RECOVERABLE
            lines.append(f"{self.prop}: {'no run reaches the goal any more' if lost else 'demanded from here on'}")
        if number == self.loop:
            lines.append(self.repetition)
        elif number == self.depth and self.loop is not None:
            lines.append(f"as after step {self.loop}: the loop is closed")
        return lines

    @property
    def lanes(self) -> tuple[str, ...]:
        """The names of the lanes, in order of appearance."""
        return tuple(dict.fromkeys(lane for step in self.steps for lane in step.lanes))


def trace_of(job: Job, found: Discovery, verdict: Verdict | None = None) -> Trace:
    """The trace of a finding; without a verdict, with the verdict that the finding alone would give.

    Raises ValueError where the presenter gives a lane a name that trace files cannot hold, and TypeError where the
    job's source is not JSON.
    """
    verdicts = {Kind.FINAL: Verdict.DEADLOCK, Kind.SOMETIMES: Verdict.PASSED}
    walk = walk_of(job, found.path)
    *steps, last = walk.steps
    if found.prop is NO_EXCEPTION:
        last = replace(last, truth={**last.truth, found.prop.name: Truth.FAILS})
    return replace(
        walk,
        steps=(*steps, last),
        verdict=verdict or verdicts.get(found.prop.kind, Verdict.VIOLATED),
        prop=found.prop.name,
        kind=found.prop.kind,
        clause=found.finding.clause,
        values=values_of(found.finding),
        loop=found.loop,
        since=found.since,
    )


def walk_of(job: Job, path: tuple[Step, ...]) -> Trace:
    """The trace of a run without a finding: its first step has no move. Raises as `trace_of`."""
    return Trace(
        job=job.name,
        source=json.loads(json.dumps(dict(job.source))),
        grain=job.grain,
        bounds=tuple(job.bounds),
        verdict=None,
        prop="",
        kind=None,
        clause="",
        values=(),
        steps=_steps(job, path),
    )


def _moves(count: int) -> str:
    return "1 move" if count == 1 else f"{count} moves"


def values_of(finding: Finding) -> tuple[tuple[str, Json], ...]:
    """The named values of a finding, as JSON."""
    return tuple((name, to_json(value)) for name, value in finding.values)


def lanes_of(job: Job, row: Row) -> Lanes:
    """The lanes of a row as the job's presenter shows them, as JSON. Raises ValueError for a reserved name."""
    lanes = {name: {key: to_json(v) for key, v in fields.items()} for name, fields in job.presenter.lanes(row).items()}
    for name in lanes:
        if name.startswith(RESERVED):
            raise ValueError(f"a presenter names a lane {name!r}; a name must not begin with {' or '.join(RESERVED)}")
    return lanes


def changed_fields(before: Lanes, after: Lanes) -> dict[str, tuple[str, ...]]:
    """For each lane that differs, the names of the fields that differ, in the order of display."""
    changed = {}
    for lane in dict.fromkeys((*after, *before)):
        old, new = before.get(lane, {}), after.get(lane, {})
        if old is new:
            continue
        names = tuple(
            name
            for name in dict.fromkeys((*new, *old))
            if (name in old) != (name in new) or canonical(old.get(name)) != canonical(new.get(name))
        )
        if names:
            changed[lane] = names
    return changed


def truths(model: Model, row: Row) -> dict[str, Truth]:
    """The value of each property in a row; properties of final states concern only rows without a successor."""
    ends = bool(model.finals) and is_end(model, row)
    return {
        prop.name: _truth(model, prop, row) if prop.kind is not Kind.FINAL or ends else Truth.TRIVIAL
        for prop in model.properties
    }


def _truth(model: Model, prop: Property, row: Row) -> Truth:
    result = answer_if_any(model, prop, row)
    if prop.kind is Kind.SOMETIMES:
        return Truth.WITNESSED if isinstance(result, Finding) else Truth.UNSEEN
    if prop.kind.is_liveness and isinstance(result, Finding):
        return Truth.REACHED
    if result is TRIVIAL and prop.kind is not Kind.RECOVERABLE:
        return Truth.TRIVIAL
    if prop.kind.is_liveness:
        return Truth.OPEN
    return Truth.FAILS if isinstance(result, Finding) else Truth.HOLDS


def _steps(job: Job, path: tuple[Step, ...]) -> tuple[TraceStep, ...]:
    steps: list[TraceStep] = []
    post, before = _MessageLog(), path[0].row
    lanes: Lanes = {}
    for number, (move, row) in enumerate(path):
        previous, lanes = lanes, lanes_of(job, row)
        steps.append(
            TraceStep(
                number=number,
                action=None if move is None else move.action,
                arguments=() if move is None else tuple(to_json(argument) for argument in move.arguments),
                caption="at first" if move is None else job.presenter.caption(move),
                lanes=lanes,
                changed=changed_fields(previous, lanes),
                events=() if move is None else post.all(job.presenter.diagram(before, move, row)),
                truth=truths(job.model, row),
            )
        )
        before = row
    return tuple(steps)


class _MessageLog:
    """Numbers messages, and keeps the messages in flight for each sender and receiver."""

    def __init__(self) -> None:
        self._last = 0
        self._waiting: dict[tuple[str, str], list[DiagramEvent]] = defaultdict(list)

    def all(self, events: Iterable[DiagramEvent]) -> tuple[DiagramEvent, ...]:
        """The drawn elements of a step, with the numbers of messages."""
        return tuple(numbered for event in events if (numbered := self.number(event)) is not None)

    def number(self, event: DiagramEvent) -> DiagramEvent | None:
        """The element with its message number, if it shows a message; None for the second end of a message."""
        if event.kind == "late" or (event.kind == "lost" and event.peer is None):
            return self._wherever(event)
        if event.peer is None or event.kind not in ("send", "deliver", "lost", "removed"):
            return event
        if event.kind == "send":
            message = with_fields(event, message=self._next())
            self._waiting[event.lane, event.peer].append(message)
            return message
        backward, forward = (event.peer, event.lane), (event.lane, event.peer)
        if event.kind == "deliver":
            return with_fields(event, message=self._take([backward], event.text)[1])
        # A presenter may report a loss from either end; the end that has such a message waiting is meant.
        (lane, peer), number = self._take([forward, backward], event.text)
        return with_fields(event, lane=lane, peer=peer, message=number)

    def _wherever(self, event: DiagramEvent) -> DiagramEvent | None:
        """The end of the oldest waiting message of a sender with this text, regardless of the receiver."""
        mine = [
            event_sent
            for (sender, _), waiting in self._waiting.items()
            for event_sent in waiting
            if (sender, event_sent.text) == (event.lane, event.text)
        ]
        if not mine:
            return None
        message = min(mine, key=lambda each: each.message or 0)
        receiver = message.peer or ""
        self._waiting[message.lane, receiver].remove(message)
        if event.kind == "lost":
            return with_fields(message, kind="lost")
        return DiagramEvent("deliver", receiver, message.text, peer=message.lane, message=message.message)

    def _take(self, pairs: list[tuple[str, str]], text: str) -> tuple[tuple[str, str], int]:
        for pair in pairs:
            for place, message in enumerate(self._waiting[pair]):
                if message.text == text:
                    del self._waiting[pair][place]
                    return pair, message.message or 0
        return pairs[0], self._next()

    def _next(self) -> int:
        self._last += 1
        return self._last
