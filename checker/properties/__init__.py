"""The properties of ensembles. Each is declared at its function; importing a module here registers its properties.

- `election`: leaders and votes of the election
- `role_patterns`: situations that a scenario describes, as patterns of roles and tables of votes
- `liveness`: service at the end of runs, from every state again, and on every fair run
- `leadership`, `delivery_order`, `leader_and_learner`: the invariants of Zab
- `reconfiguration`: the invariants of dynamic reconfiguration
- `effects`: effects that fit the states of servers
- `registry`, `projections`: declarations, their scopes, and what properties read

The order of the imports is the order of listings and of defaults.
"""

from checker.properties import election, role_patterns, liveness  # isort: skip
from checker.properties import leadership, delivery_order, leader_and_learner, effects  # isort: skip
from checker.properties import reconfiguration  # isort: skip
from checker.properties.projections import ENSEMBLE_PROPERTIES, ZAB
from checker.properties.registry import ParameterError, UnknownPropertyError

__all__ = [
    "ENSEMBLE_PROPERTIES",
    "ZAB",
    "ParameterError",
    "UnknownPropertyError",
    "delivery_order",
    "effects",
    "election",
    "leader_and_learner",
    "leadership",
    "liveness",
    "reconfiguration",
    "role_patterns",
]
