"""The refinement as a property of steps: each step of a server is a step of abstract Zab, or a stutter there.

It is not a default, since its history variables add states. The mapping and the judgement are in `checker.refinement`.
"""

from __future__ import annotations

from typing import Any

from checker.engine import TRIVIAL, Finding, Kind, Outcome, Read
from checker.models.ensemble.history import History, HistoryPart, part
from checker.models.ensemble.setup import HISTORY, Setup
from checker.properties.projections import ENSEMBLE_PROPERTIES, ZAB
from checker.properties.registry import Answer, StepCondition
from checker.refinement.abstract_steps import REFINEMENT, AbstractSteps, named


@ENSEMBLE_PROPERTIES.declare(
    REFINEMENT,
    Kind.ALWAYS,
    needs=ZAB,
    meaning="Each step of a server is a step of abstract Zab, which is proved safe, or changes nothing there",
    violation="a server takes a step that the proof of Zab does not allow, so the proof says nothing about the rest",
    premise="A server takes a step that concerns abstract Zab",
    source="`checker.symbolic.zab.actions`",
    notes=(
        "It is a property of steps. Name it to examine it: its history variables add states. A finding names the first "
        "condition of an abstract action that does not hold."
    ),
)
def _refines_abstract_zab(setup: Setup) -> StepCondition:
    del setup
    return StepCondition((HISTORY,), _judged, (Read(HISTORY, part(HistoryPart.REIGNS)),))


def _judged(values: tuple[Any, ...], fact: Any, outcome: Outcome) -> Answer:
    del outcome
    if not isinstance(fact, AbstractSteps):
        return TRIVIAL
    from checker.refinement.judgement import judge, shown  # noqa: PLC0415 (it loads z3)

    history: History = values[0]
    broken = judge(history.reigns, fact).broken
    if not broken:
        return None
    clause, others = named(broken)
    return Finding(clause, (("server", fact.server), ("abstract actions", shown(fact.calls)), *others))
