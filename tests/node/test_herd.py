"""The herd effect on live servers: a leader's death costs as much as in the model, for each way to wait."""

from collections.abc import Iterator

import pytest

from harness.ensemble import Ensemble
from research.herd.client_group import ClientGroup
from research.herd.live import TICK
from research.herd.model import STRATEGIES, count
from tests.node.conftest import Launch

CLIENTS, DEATHS = 5, 2


@pytest.fixture(scope="module", params=["node", pytest.param("real", marks=pytest.mark.slow)])
def ensemble(request: pytest.FixtureRequest, launch: Launch) -> Iterator[Ensemble]:
    with launch([request.param] * 3, tick_time=TICK) as started:
        yield started


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_death_costs_what_the_model_counts(name: str, ensemble: Ensemble) -> None:
    strategy = STRATEGIES[name]
    counted = count(strategy, CLIENTS)
    with ClientGroup(ensemble, strategy, CLIENTS, f"/{strategy.name}") as group:
        for _ in range(DEATHS):
            death = group.death()
            assert (death.notifications, death.requests) == (counted.notifications, counted.requests)
            assert (death.server_notifications, death.server_requests) == (counted.notifications, counted.requests)
