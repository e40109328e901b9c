"""The properties of recipes (R15 to R22). Each is declared at its function.

- `safety`: mutual exclusion, the writes that the guarded resource accepts, and the clients that an event notifies
- `liveness`: no client waits forever, no znode is left, and no client is mistaken forever

The order of the imports is the order of listings and of defaults.
"""

from checker.properties.recipes import safety, liveness  # isort: skip
from checker.properties.recipes.safety import RECIPE_PROPERTIES

__all__ = ["RECIPE_PROPERTIES", "liveness", "safety"]
