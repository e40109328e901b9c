"""Explores any model of actors: nothing in this folder knows ZooKeeper.

`model` says what a model is, `plain` explores one with dicts and sets, `search` with tables and kernels.
Import what you need from here; the kernels are compiled on first use, and only if `explore` is asked for.
"""

from checker.engine.model import (
    TRIVIAL,
    Actor,
    Column,
    Finding,
    Kind,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    Read,
    Row,
    Rule,
    Send,
)
from checker.engine.result import Exploration, Found, Limits, Step, Stop

__all__ = [
    "TRIVIAL",
    "Actor",
    "Column",
    "Exploration",
    "Finding",
    "Found",
    "Kind",
    "Limits",
    "Model",
    "ModelError",
    "Move",
    "Outcome",
    "Property",
    "Read",
    "Row",
    "Rule",
    "Send",
    "Step",
    "Stop",
]
