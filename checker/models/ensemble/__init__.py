"""The model of a ZooKeeper ensemble: the step functions of `spec`, a network between them, faults and operators."""

from checker.models.ensemble.actions import Budgets, ServerAction
from checker.models.ensemble.build import HistoryError, NotRefinedError, ensemble, refine
from checker.models.ensemble.setup import File, Grain, Member, PlannedAction, PlannedReconfig, Prologue, Setup, Software

__all__ = [
    "Budgets",
    "File",
    "Grain",
    "HistoryError",
    "Member",
    "NotRefinedError",
    "PlannedAction",
    "PlannedReconfig",
    "Prologue",
    "ServerAction",
    "Setup",
    "Software",
    "ensemble",
    "refine",
]
