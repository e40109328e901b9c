"""Explores any model of actors: nothing in this folder knows ZooKeeper.

`model` says what a model is, `plain` explores one with dicts and sets, `search` with tables and kernels; such a search
can be put down and taken up again (`checkpoint`, `keeper`). Where runs lead is judged by `plain_liveness` and by
`graph`; `lasso` is what both find, and checks it.
Import what you need from here; the kernels are compiled on first use, and only if `explore` is asked for.
"""

from checker.engine.model import (
    TRIVIAL,
    Actor,
    Column,
    Fairness,
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
    each_action,
)
from checker.engine.result import Exploration, Found, Limits, Liveness, Step, Stop

__all__ = [
    "TRIVIAL",
    "Actor",
    "Column",
    "Exploration",
    "Fairness",
    "Finding",
    "Found",
    "Kind",
    "Limits",
    "Liveness",
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
    "each_action",
]
