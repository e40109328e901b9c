"""A kit for models of actors: state machines, ready-made networks, a register with its judge, and symmetry.

`machines` makes a model of state machines on one of the `networks`, in an `environment` with faults and, with `disk`,
on disks that are late; `actions` has the traits and budgets of actions. `register` adds clients with scripts, and the
property that every history is linearizable. `symmetry` declares actors that differ only in their names, `refinement`
compares each move with an abstract model, and `events` says what the lines of a log mean for a model. The kit knows no
ZooKeeper, and it is written on the public names of `checker.engine`.

Import the names from here, and those of the register from `checker.kit.register`.
"""

from checker.kit.actions import UNLIMITED, Action, BudgetCounts, FaultAction, Traits, has_left, spend
from checker.kit.environment import Environment, ModelFragment, shared_budgets
from checker.kit.events import Event, Events
from checker.kit.machines import WAIT, HistoryVariable, Machine, Reaction, network_model, to_each
from checker.kit.networks import Arrival, Bag, Insert, Network, Remove, channel
from checker.kit.refinement import Refinement
from checker.kit.symmetry import interchangeable

__all__ = [
    "UNLIMITED",
    "WAIT",
    "Action",
    "Arrival",
    "Bag",
    "BudgetCounts",
    "Environment",
    "Event",
    "Events",
    "FaultAction",
    "HistoryVariable",
    "Insert",
    "Machine",
    "ModelFragment",
    "Network",
    "Reaction",
    "Refinement",
    "Remove",
    "Traits",
    "channel",
    "has_left",
    "interchangeable",
    "network_model",
    "shared_budgets",
    "spend",
    "to_each",
]
