"""Histories that clients recorded, and checks of a running ensemble against the guarantees that clients have."""

from checker.histories.findings import Findings, check
from checker.histories.record import (
    Bound,
    Entry,
    History,
    HistoryError,
    Leaf,
    Operation,
    Pause,
    Replica,
    history_of,
    load,
    save,
)
from checker.histories.violation import Violation

__all__ = [
    "Bound",
    "Entry",
    "Findings",
    "History",
    "HistoryError",
    "Leaf",
    "Operation",
    "Pause",
    "Replica",
    "Violation",
    "check",
    "history_of",
    "load",
    "save",
]
