"""A kit for models of actors: state machines, ready-made networks, a register with its judge, and symmetry.

`machines` makes a model of state machines on one of the `networks`, in an `environment` with faults and, with `disk`,
on disks that are late; `actions` has the traits and budgets of actions. `register` adds clients with scripts, and the
property that every history is linearizable. `symmetry` declares actors that differ only in their names, and
`refinement` compares each move with an abstract model. The kit knows no ZooKeeper, and it is written on the public
names of `checker.engine`.

Import the names from here, and those of the register from `checker.kit.register`.
"""

from checker.kit.actions import Action, FaultAction, Traits
from checker.kit.environment import Environment
from checker.kit.machines import WAIT, HistoryVariable, Machine, Reaction, network_model, to_each
from checker.kit.networks import Bag, Network
from checker.kit.refinement import Refinement
from checker.kit.symmetry import interchangeable

__all__ = [
    "WAIT",
    "Action",
    "Bag",
    "Environment",
    "FaultAction",
    "HistoryVariable",
    "Machine",
    "Network",
    "Reaction",
    "Refinement",
    "Traits",
    "interchangeable",
    "network_model",
    "to_each",
]
