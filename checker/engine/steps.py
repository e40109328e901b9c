"""Properties of steps: of an operation that an actor carries out, with the values before and after it.

A property of states cannot say "an epoch never decreases", since it sees one state. A *step property* sees each
operation of one actor: the values before, the operation, and the outcome with the operations that it sends.

    def judge(values, operation, outcome):
        return Finding("the epoch decreases") if outcome.values[0].epoch < values[0].epoch else None

    StepProperty.over("EpochsGrow", ("server.1",), judge)

A model with step properties has one more column, `STEPS`, which holds the findings of the run so far. The property
itself is an ordinary one over this column. Therefore both engines, checkpoints, clusters, walks, and every report treat
it like any other:

- a finding counts only if the whole move is possible, since the column changes only then;
- its depth is that of the transition, also if the transition leads to a state that a shorter run had reached;
- without a finding the column is constant, so that the model has as many states as before;
- the table engine judges each pair of values and operation once, with the step that it caches.

`Evaluations` of a step property count distinct steps, and not states; on a cluster, those of each process. A walk does
not count them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from checker.engine.contract import judged
from checker.engine.model import (
    TRIVIAL,
    Actor,
    Column,
    Finding,
    Installed,
    Model,
    ModelError,
    Outcome,
    Property,
    Read,
    Send,
    Trivial,
)
from checker.engine.result import Evaluations, Exploration

STEPS = "steps"
Judge = Callable[[tuple[Any, ...], Any, Outcome], Finding | Trivial | None]
Findings = tuple[tuple[str, Finding], ...]
"""The findings of a run, each with the name of its property, in the order of the names; the first of each name."""


@dataclass
class StepCounts:
    """The distinct steps that were judged, each with its actor, and the number of those whose premise held."""

    judged: set[tuple[str, tuple[Any, ...], Any]] = field(default_factory=set)
    premise: int = 0
    is_open: bool = True


@dataclass(frozen=True)
class StepProperty(Property):
    """A property of every step of some actors; make it by `over`.

    `demands` are reads of columns that the actors need; the model must record them, and the property does not see them.
    """

    actors: tuple[str, ...] = ()
    judge: Judge = lambda *_: None
    demands: tuple[Read, ...] = ()
    counts: StepCounts = field(default_factory=StepCounts, compare=False, repr=False)

    @classmethod
    def over(
        cls, name: str, actors: tuple[str, ...], judge: Judge, *, meaning: str = "", demands: tuple[Read, ...] = ()
    ) -> StepProperty:
        """A property that `judge` decides for each operation that one of these actors carries out."""
        return cls(name, (Read(STEPS),), FindingOf(name), meaning=meaning, actors=actors, judge=judge, demands=demands)

    def installed(self, model: Model) -> Installed:
        """The parts of a model that judges this property.

        Raises ModelError for an unknown actor, and for a model with a column or an actor that is named like `STEPS`.
        """
        return self.judging(model.name, model.installed_parts)

    def judging(self, model: str, parts: Installed) -> Installed:
        """The parts of a model of this name that judges this property. Raises ModelError as `installed`."""
        names = {actor.name for actor in parts.actors}
        if not self.actors:
            raise ModelError(f"the property {self.name!r} is about the steps of no actor; name one or more")
        for name in self.actors:
            if name not in names:
                raise ModelError(
                    f"the property {self.name!r} is about the steps of {name!r}, and no actor has that name"
                )
        columns, actors = parts.columns, tuple(self._judged(actor) for actor in parts.actors)
        if any(actor.step is _noted for actor in actors):
            return parts._replace(actors=actors)
        if STEPS in names or STEPS in {column.name for column in columns}:
            why = f"{self.name!r} keeps findings in {STEPS!r}, and the model {model!r} has a part of that name"
            raise ModelError(f"the property {why}; rename that part")
        return parts._replace(columns=(*columns, Column(STEPS, ())), actors=(*actors, Actor(STEPS, (STEPS,), _noted)))

    def _judged(self, actor: Actor) -> Actor:
        if actor.name not in self.actors:
            return actor
        step = actor.step
        inner, properties = (step.inner, step.properties) if isinstance(step, _JudgedStep) else (step, ())
        rest = tuple(prop for prop in properties if prop.name != self.name)
        return replace(actor, step=_JudgedStep(actor.name, inner, (*rest, self)))


class FindingOf:
    """The check of a step property in a state: its finding in the run so far."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, findings: Findings) -> Finding | None:
        """The finding, if there is one."""
        return dict(findings).get(self.name)


class _JudgedStep:
    """The step of an actor, which also sends the findings of its step properties to the column `STEPS`."""

    def __init__(self, actor: str, inner: Callable[..., Outcome | None], properties: tuple[StepProperty, ...]) -> None:
        self._actor, self.inner, self.properties = actor, inner, properties

    def __call__(self, values: tuple[Any, ...], operation: Any) -> Outcome | None:
        outcome = self.inner(values, operation)
        if not isinstance(outcome, Outcome):
            return outcome
        findings, step = [], (self._actor, values, operation)
        for prop in self.properties:
            answer, counts = judged(prop, prop.judge, values, operation, outcome), prop.counts
            if counts.is_open and step not in counts.judged:
                counts.judged.add(step)
                counts.premise += answer is not TRIVIAL
            if isinstance(answer, Finding):
                findings.append(Send(STEPS, (prop.name, answer)))
        return Outcome(outcome.values, (*outcome.sends, *findings)) if findings else outcome


def _noted(values: tuple[Any, ...], found: tuple[str, Finding]) -> Outcome:
    return Outcome((with_finding(values[0], *found),))


def with_finding(findings: Findings, name: str, finding: Finding) -> Findings:
    """The findings of a run, after one more of the property of this name; the first of each name is kept."""
    if name in dict(findings):
        return findings
    return tuple(sorted((*findings, (name, finding)), key=lambda pair: pair[0]))


def step_properties(properties: Iterable[Property]) -> tuple[StepProperty, ...]:
    """The step properties among some properties."""
    return tuple(prop for prop in properties if isinstance(prop, StepProperty))


def forget_steps(model: Model) -> None:
    """Begin to count the steps of a new search."""
    for prop in step_properties(model.properties):
        prop.counts.judged.clear()
        prop.counts.premise, prop.counts.is_open = 0, True


def stop_counting(model: Model) -> None:
    """Count no further step of this search: what follows lies behind its depth."""
    for prop in step_properties(model.properties):
        prop.counts.is_open = False


def count_steps(result: Exploration) -> None:
    """Replace the evaluations of step properties: distinct steps, and those of them whose premise held."""
    for prop in step_properties(result.model.properties):
        result.evaluations[prop.name] = Evaluations(len(prop.counts.judged), prop.counts.premise)
