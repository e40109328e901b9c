"""The reduced search: a search by tables that drains deliveries, follows stubborn sets, or counts renamed states once.

Rules:

- A search that drains deliveries begins again whenever an answer is refuted. If it ends, it has relied on none: it has
  reached every state of the model, except for the contents of channels, and every deadlock.
- The answers about stubborn sets are final, except that a joint rule is idle (`idle_rules`). Where one is not, that
  search begins again too.
- A violation or a witness is then searched in full up to its depth, so that its path is shortest. If that search ends
  without it, the path of the reduced search remains, and `Exploration.reduction` says that it is not shown to be
  shortest.
- The paths of a symmetric search are shortest. Where it explores an over-approximation, the model is explored in full
  if a path is no run of the model, even renamed, or if an action fires or a premise holds there alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from checker.engine import search
from checker.engine.model import Model
from checker.engine.reduction.drains import Drains
from checker.engine.reduction.eligible import Eligibility, eligible_channels, reason_against_stubborn_sets
from checker.engine.reduction.stubborn import StubbornSets
from checker.engine.reduction.symmetry import PREMISE_RUNS, answers_of_model, compare, reason_against_symmetry, searched
from checker.engine.result import SEED, Exploration, Limits, Stop
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
    mode: Literal["safe", "stubborn", "symmetric"] = "safe",
) -> Exploration:
    """Explore a model with drained deliveries, by stubborn sets, or one state of each class of renamed ones.

    Raises ModelError, also if a comparison of some states shows that the model is not as symmetric as it declares.

    The other arguments are those of `search.explore`. A model that the mode cannot reduce is explored in full, and
    `Exploration.reduction` has the reason.
    """
    began = time.monotonic()

    def left() -> Limits:
        used = time.monotonic() - began
        return limits if limits.seconds is None else replace(limits, seconds=max(0.0, limits.seconds - used))

    in_full = partial(search.explore, model, progress=progress, workers=workers, seed=seed)
    eligible = eligible_channels(model)
    why = _reason_against(model, eligible, mode)
    if why is not None:
        full = in_full(limits, until_witnessed=until_witnessed)
        return replace(full, reduction=f"none is possible: {why}")
    symmetry = model.symmetry if mode == "symmetric" else None
    explored = model if symmetry is None else searched(model, symmetry)
    tables, restarts = Tables(explored, seed, symmetric=symmetry is not None), -1
    if symmetry is not None:
        compared = compare(model, symmetry, seed)
        done = f"states that differ in names count once ({1 + len(symmetry.renamings)} renamings; {compared} compared)"
        done += "" if explored is model else ", in an over-approximation"
    elif mode == "stubborn":
        StubbornSets(tables, eligible.channels)
        done = "stubborn sets; how often an action fired, and how many deadlocks there are, is not kept"
    else:
        Drains(tables, eligible.channels)
        done = f"deliveries from {len(eligible.channels)} channels are drained"
    found: Exploration | None = None
    while found is None:
        restarts += 1
        one = Search(
            explored, left(), until_witnessed=until_witnessed, progress=progress, workers=workers, seed=seed,
            reduced=tables, premise_runs=0 if explored is model else PREMISE_RUNS,
        )  # fmt: skip
        try:
            found = one.run()
        except RefutedError:
            continue
    if mode == "safe":
        done += f"; begun again {restarts} times"

    def whole(exploration: Exploration, said: str = "") -> Exploration:
        return replace(exploration, seconds=time.monotonic() - began, reduction=done + said)

    if symmetry is not None:
        searched_in_full = partial(in_full, until_witnessed=until_witnessed)
        exact, said = answers_of_model(model, symmetry, found, one.premises, searched_in_full, left)
        return replace(whole(exact, said), limits=limits)
    if not found.found:
        return whole(found)
    longest = max(len(each.path) - 1 for each in found.found.values())
    only_witnesses = found.stop is not Stop.FOUND
    full = in_full(replace(left(), depth=longest), until_witnessed=only_witnesses)
    if full.stop is Stop.FOUND:
        return whole(full, "; then explored in full up to the violation")
    if only_witnesses and found.found.keys() <= full.found.keys():
        return whole(replace(found, found=full.found), "; then explored in full up to the last witness")
    return whole(found, "; the paths are not shown to be shortest")


def _reason_against(model: Model, eligible: Eligibility, mode: str) -> str | None:
    if mode == "symmetric":
        return reason_against_symmetry(model)
    return reason_against_stubborn_sets(model, eligible) if mode == "stubborn" else _reason_against_drains(eligible)


def _reason_against_drains(eligible: Eligibility) -> str | None:
    """The reason why no delivery of a model can be drained, if there is one."""
    if eligible.channels:
        return None
    return next((f"{column}: {why}" for column, why in eligible.reasons.items()), "the model declares no channel")
