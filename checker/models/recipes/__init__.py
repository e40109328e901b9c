"""A recipe under check: clients with `spec.recipes`, the service between them, and a guarded resource.

- `setup`: the input of a model, with the budgets of events
- `client`: a client, with its recipe and the wishes of its application
- `resource`: the guarded resource, writes in flight to it, and the recorded facts of a run, which are the truth that
  clients are compared with
- `build`: the model with all of these
"""

from checker.models.recipes.build import recipe_model
from checker.models.recipes.client import Client
from checker.models.recipes.resource import LargestHerd, Leaders, Reigns, Resource
from checker.models.recipes.setup import HERD, LEADERS, REIGNS, RESOURCE, ROOT, Facts, RecipeSetup, first_of

__all__ = [
    "HERD",
    "LEADERS",
    "REIGNS",
    "RESOURCE",
    "ROOT",
    "Client",
    "Facts",
    "LargestHerd",
    "Leaders",
    "RecipeSetup",
    "Reigns",
    "Resource",
    "first_of",
    "recipe_model",
]
