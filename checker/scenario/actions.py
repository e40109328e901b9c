"""The actions that a model of an ensemble has, so that one that never fires can be told.

Rules of this module: actions are known from the names of the model's rules, which begin with them; nothing
else of a rule is read. What need not fire is named here once.
"""

from __future__ import annotations

from checker.engine import Model
from checker.models.ensemble import Setup
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
    "receive",
    "sync",
    "sync late",
    "apply",
    "resume",
    "client write",
    "client sync",
    "ping",
    "disconnect",
)
PLAN = "plan "  # an action of the operator's, each of them by itself
GIVE_UP = "give up"  # listed by the rules that lose a leader or a quorum, and possible with impatience only
LOSSES = frozenset({"lose leader", "lose quorum"})
"""What happens only after something else: without a fault, or with enough servers left, it need not."""
OF_WRITES = frozenset({"sync", "sync late", "apply"})
"""What need not happen where nothing is written, by a client or to bring a learner up to date.

That a client never writes is told by itself.
"""
OF_ELECTIONS = frozenset({"deliver", "decide", "elect"})
"""What need not happen again where a leader leads already, and what is explored is what it does."""


def known_actions(model: Model) -> frozenset[str]:
    """The names of all actions that the budgets and the plan of an ensemble's model allow."""
    found = {action for rule in model.rules if (action := _action(rule.name)) is not None}
    found |= {rule.name for rule in model.rules if rule.name.startswith(PLAN)}
    if model.columns[model.index[FAULTS]].initial.left.impatience:
        found.add(GIVE_UP)
    return frozenset(found)


def may_be_silent(setup: Setup) -> frozenset[str]:
    """The actions that need not fire in an ensemble."""
    if setup.zab is None:
        return LOSSES
    return LOSSES | OF_WRITES | (OF_ELECTIONS if setup.prologue else frozenset())


def _action(rule: str) -> str | None:
    """The action of a rule: the longest whose name it begins with."""
    return max((action for action in ACTIONS if f"{rule} ".startswith(f"{action} ")), key=len, default=None)
