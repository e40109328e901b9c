"""The claim that an expiry removes an orphan can fail: it does if ephemeral znodes outlive sessions."""

import pytest

from checker.engine.search import explore
from checker.models.recipes import RecipeSetup, recipe_model
from checker.models.service import Clocks, FaultBudgets
from checker.properties.recipes import RECIPE_PROPERTIES
from spec.variants import Variant


@pytest.mark.parametrize(
    ("wrong", "recovers"), [(set(), True), ({Variant.EPHEMERAL_OUTLIVES_SESSION}, False)], ids=["as it is", "not"]
)
def test_an_orphan_is_gone_with_its_session(wrong: set[Variant], recovers: bool) -> None:
    setup = RecipeSetup(
        "lock",
        clocks=Clocks.PAUSED,
        budgets=FaultBudgets(disconnects=1, expiries=1),
        variants=frozenset(wrong | {Variant.NO_PROTECTION}),
    )
    found = explore(recipe_model("an orphan", setup, [RECIPE_PROPERTIES.build(setup, "RecoversByExpiry")])).found
    assert ("RecoversByExpiry" not in found) is recovers
