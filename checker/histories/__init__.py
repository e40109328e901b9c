"""Histories that clients recorded, and checks of a running ensemble against the guarantees that clients have."""

from checker.histories.findings import Findings, check
from checker.histories.record import (
    Bound,
    ClientHistory,
    ClientHistoryError,
    Entry,
    FinalZnodes,
    Leaf,
    Operation,
    Pause,
    history_of,
    load,
    save,
)
from checker.histories.violation import Violation

__all__ = [
    "Bound",
    "ClientHistory",
    "ClientHistoryError",
    "Entry",
    "FinalZnodes",
    "Findings",
    "Leaf",
    "Operation",
    "Pause",
    "Violation",
    "check",
    "history_of",
    "load",
    "save",
]
