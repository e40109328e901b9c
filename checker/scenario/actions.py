"""The actions that a model of an ensemble has, so that one that never fires can be told.

Rules of this module: actions are known from the names of the model's rules, which begin with them; nothing
else of a rule is read. What need not fire is named here once.
"""

from __future__ import annotations

from checker.engine import Model
from checker.models.ensemble.names import FAULTS

ACTIONS = (
    "start",
    "restart",
    "crash",
    "deliver",
    "decide",
    "rebroadcast",
    "lose leader",
    "lose quorum",
    "elect",
    "cut",
    "partition",
    "heal",
)
PLAN = "plan "  # an action of the operator's, each of them by itself
GIVE_UP = "give up"  # listed by the rules that lose a leader or a quorum, and possible with impatience only
MAY_BE_SILENT = frozenset({"lose leader", "lose quorum"})
"""What happens only after something else: without a fault, or with enough servers left, it need not."""


def known_actions(model: Model) -> frozenset[str]:
    """The names of all actions that the budgets and the plan of an ensemble's model allow."""
    found = {action for action in ACTIONS if any(_begins(rule.name, action) for rule in model.rules)}
    found |= {rule.name for rule in model.rules if rule.name.startswith(PLAN)}
    if model.columns[model.index[FAULTS]].initial.left.impatience:
        found.add(GIVE_UP)
    return frozenset(found)


def _begins(rule: str, action: str) -> bool:
    return rule == action or rule.startswith(f"{action} ")
