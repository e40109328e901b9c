"""The actions of a model of an ensemble, so that an action that never fires is reported.

Rules of this module: an action is the prefix of a rule's name; nothing else of a rule is read. The actions that need
not fire are listed here, and nowhere else.
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
PLAN = "plan "  # each action of the operator's plan is an action here
GIVE_UP = "give up"  # listed by the rules that lose a leader or a quorum, and possible with impatience only
LOSSES = frozenset({"lose leader", "lose quorum"})
"""Actions that need another event first: without a fault, or with enough servers left, they need not fire."""
OF_WRITES = frozenset({"sync", "sync late", "apply"})
"""Actions that need not fire if nothing is written, neither by a client nor to bring a learner up to date.

`client write` is not one of them: a client that never writes is reported as a silent action.
"""
OF_ELECTIONS = frozenset({"deliver", "decide", "elect"})
"""Actions that need not fire after a prologue with an established leader, when only its work is explored."""


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
    """The action of a rule: the longest one that is a prefix of its name."""
    return max((action for action in ACTIONS if f"{rule} ".startswith(f"{action} ")), key=len, default=None)
