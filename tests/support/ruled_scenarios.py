"""Shipped scenarios, explored by other rules of Zab than those of ZooKeeper."""

import pytest
from msgspec.structs import replace

from checker.engine import Exploration
from checker.engine.search import explore
from checker.job import Job
from checker.scenario import bundled, ensemble_setup, load
from spec.zab.state import ZabRules

PATHS = {path.stem: path for path in bundled()}


def explored_by(name: str, monkeypatch: pytest.MonkeyPatch, **rules: bool) -> tuple[Job, Exploration]:
    """A scenario and its exploration, with these fields of `ZabRules`."""
    zab_of = ensemble_setup.zab_of

    def ruled(*given: object) -> ZabRules | None:
        found = zab_of(*given)  # type: ignore[arg-type]
        return None if found is None else replace(found, **rules)

    monkeypatch.setattr(ensemble_setup, "zab_of", ruled)
    job = load(PATHS[name])
    return job, explore(job.model, job.limits, until_witnessed=job.until_witnessed)
