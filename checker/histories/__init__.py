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
    Violation,
    history_of,
    load,
    save,
)

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
