"""The reduced search: a search by tables that begins again until no answer of the reduction is refuted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from checker.engine.model import Model
from checker.engine.reduction.drains import Drains
from checker.engine.reduction.eligible import eligible_channels
from checker.engine.result import SEED, Exploration, Limits
from checker.engine.search import RefutedError, Search
from checker.engine.tables import Tables


def explore(
    model: Model,
    limits: Limits = Limits(),
    *,
    until_witnessed: bool = False,
    progress: Callable[[Exploration], None] | None = None,
    workers: int = 1,
    seed: int = SEED,
) -> Exploration:
    """Explore a model with drained deliveries. Raises ModelError."""
    began = time.monotonic()
    tables = Tables(model, seed)
    drains = Drains(tables, eligible_channels(model).channels)
    restarts = 0
    while True:
        left = limits.seconds and max(0.0, limits.seconds - (time.monotonic() - began))
        search = Search(
            model, replace(limits, seconds=left), until_witnessed=until_witnessed, progress=progress, workers=workers,
            seed=seed, reduced=tables,
        )  # fmt: skip
        try:
            found = search.run()
        except RefutedError:
            restarts += 1
            print("restart", restarts, search.result.levels[-1], sum(search.result.levels), len(search.result.levels))
            continue
        return found
