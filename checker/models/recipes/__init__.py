"""A recipe under check: clients with `spec.recipes`, the service between them, and a guarded resource.

setup       what there is, and how often what may happen
client      a client: its recipe, and what its application wants
resource    the guarded resource, and writes on their way to it
reigns      what is written down of a run: the truth that clients are held to
build       the model of it all
"""

from checker.models.recipes.build import recipe_model
from checker.models.recipes.client import Client
from checker.models.recipes.reigns import Leaders, Reigns, Told
from checker.models.recipes.resource import Resource
from checker.models.recipes.setup import LED, REIGNS, RESOURCE, ROOT, TOLD, Facts, RecipeSetup, first_of

__all__ = [
    "LED",
    "REIGNS",
    "RESOURCE",
    "ROOT",
    "TOLD",
    "Client",
    "Facts",
    "Leaders",
    "RecipeSetup",
    "Reigns",
    "Resource",
    "Told",
    "first_of",
    "recipe_model",
]
