"""An explicit-state model checker for models of actors; it is independent of ZooKeeper.

`model` defines models. `plain` explores a model with dicts and sets, `search` with tables and compiled kernels; a
search of the second kind can be saved and resumed (`checkpoint`, `keeper`). `plain_liveness` judges liveness on rows,
`liveness` on the numbers of `graph`; both report a violation as a run of `lasso`, which also checks it.

Import the public names from here. The functions `explore` are in `plain` and `search`; the kernels are compiled on the
first use of the latter.
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
