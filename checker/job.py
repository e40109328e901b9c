"""The description of a run: a model, a presenter to show it, limits, and the expected verdict.

A job can be rebuilt from its `source`, a JSON value with all its inputs (the text of the files included), so that a
trace that carries the source can be replayed anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import msgspec

from checker.engine import values
from checker.engine.discovery import Discovery
from checker.engine.model import Model, Move, Row
from checker.engine.result import Limits

Json = values.Json


class Verdict(Enum):
    """How a run is judged; a run has the first of these that applies to it."""

    VIOLATED = "violated"  # a property that must always hold does not, or a run never reaches its goal
    DEADLOCK = "deadlock"  # a state without a successor that the model does not expect
    ERROR = "error"  # the model or its configuration is wrong
    INCOMPLETE = "incomplete"  # a limit ended the run, and the limit was not the requested goal
    VACUOUS = "vacuous"  # an action never fired, a witness never found, a premise never held
    PASSED = "passed"


class DiagramEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An element of a step that a picture shows: a message sent, delivered or lost, a crash, a file loaded.

    `kind` is one of send, deliver, lost, removed, crash, start, cut, heal, decide, note. A message is `removed` if
    nothing says whether it was received. `lane` is the place of the element, `peer` the other lane of a message or
    link, and equal `message` numbers are one message.

    A presenter may not know the destination of a message on a lost connection. It reports the loss without a `peer`,
    and the arrival as `late`, with the sender as the lane. The trace then has the lane of the destination.
    """

    kind: str
    lane: str
    text: str
    peer: str | None = None
    message: int | None = None


class Presenter(Protocol):
    """The presentation of a model to a reader: lanes (one for each server) with a few named fields each."""

    def lanes(self, row: Row) -> Mapping[str, Mapping[str, Json]]:
        """The fields of each lane, as strings, numbers, booleans, lists or maps of these."""

    def caption(self, move: Move) -> str:
        """One short sentence with an actor and its action."""

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """The elements of a picture of the step, in order; message numbers are left None."""


class FinerGrain(Protocol):
    """The way to show findings of a coarse job at a finer grain."""

    def job(self) -> Job:
        """The finer job."""

    def found(self, found: Discovery) -> tuple[Job, Discovery]:
        """The finer job, and the finding in its terms. Raises checker.models.ensemble.NotRefinedError."""


@dataclass(frozen=True)
class Likeness:
    """A release of ZooKeeper whose known defects a run has.

    `variants` are the names of its defects that may change something in the run; `idle` has the others, each with the
    reason why it changes nothing.
    """

    release: str
    variants: tuple[str, ...]
    idle: Mapping[str, str]


@dataclass(frozen=True)
class Job:
    """One run. `bounds` says in words which limits are part of the model (budgets, rounds, capacities).

    `violations` are the properties that are expected to be violated, with the depth of each; None if any will do.

    `actions` are the names of all actions of the model. `allowed_silent` names the actions that need not fire, and the
    `always` and `final` properties whose premise need not hold. `refinement` shows findings at a finer grain, if there
    is one. `like` is the release whose defects the run has.
    """

    name: str
    model: Model
    presenter: Presenter
    source: Mapping[str, Json]
    grain: str = "as written"
    limits: Limits = field(default_factory=Limits)
    expected: Verdict | None = None
    violations: Mapping[str, int] | None = None
    until_witnessed: bool = False
    bounds: tuple[str, ...] = ()
    actions: frozenset[str] = frozenset()
    allowed_silent: frozenset[str] = frozenset()
    refinement: FinerGrain | None = None
    like: Likeness | None = None
