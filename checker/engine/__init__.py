"""An explicit-state model checker for models of actors; it is independent of ZooKeeper.

`model` defines models. `plain` explores a model with dicts and sets, `search` with tables and compiled kernels
(`kernels`). A search of the second kind can be saved and resumed (`checkpoint`). `liveness` judges what must stay
possible and what must happen.

Import the public names from here. The functions `explore` are in `plain` and `search`; the kernels are compiled on the
first use of the latter.
"""

from checker.engine.bounds import Bound
from checker.engine.discovery import Discovery, Step
from checker.engine.model import (
    NO_EXCEPTION,
    TRIVIAL,
    Actor,
    AnswerError,
    Channel,
    Column,
    Finding,
    Kind,
    Model,
    ModelError,
    Move,
    Outcome,
    Property,
    RaisedError,
    Read,
    Renaming,
    Row,
    Rule,
    Send,
    Symmetry,
)
from checker.engine.result import Exploration, Limits, Liveness, Stop
from checker.engine.space import StateEdge, StateGraph, StateRecord
from checker.engine.steps import StepProperty

__all__ = [
    "NO_EXCEPTION",
    "TRIVIAL",
    "Actor",
    "AnswerError",
    "Bound",
    "Channel",
    "Column",
    "Discovery",
    "Exploration",
    "Finding",
    "Kind",
    "Limits",
    "Liveness",
    "Model",
    "ModelError",
    "Move",
    "Outcome",
    "Property",
    "RaisedError",
    "Read",
    "Renaming",
    "Row",
    "Rule",
    "Send",
    "StateEdge",
    "StateGraph",
    "StateRecord",
    "Step",
    "StepProperty",
    "Stop",
    "Symmetry",
]
