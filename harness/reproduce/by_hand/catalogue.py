"""The scenarios with a schedule made by hand, and the choice of it for a file."""

from pathlib import Path

from checker.scenario import ScenarioError, bundled, load
from checker.scenario.ensemble import OracleRefinement
from harness.reproduce.by_hand.epochs import EpochOfActiveView
from harness.reproduce.by_hand.forgotten import ForgottenView
from harness.reproduce.by_hand.hand_made import HandMade, HandMadeRun
from harness.reproduce.by_hand.pending import PendingView
from harness.reproduce.by_hand.promotion import Promotion
from harness.reproduce.by_hand.restore import RestoreUndone
from spec.config import ConfigError

RUNS: tuple[type[HandMadeRun], ...] = (PendingView, ForgottenView, EpochOfActiveView, Promotion, RestoreUndone)
"""The runs of the findings E to I."""


def hand_made_of(file: Path, *, named: bool = True) -> HandMade | None:
    """The schedule made by hand for a scenario; None if the file is not one of the shipped scenarios that have one.

    Without its name, a scenario that the driver can execute has none.
    """
    scenarios = {path.stem: path for path in bundled()}
    try:
        job = load(file)
        for run in RUNS:
            scenario = scenarios[run.scenario]
            has_text = job.source.get("text") == scenario.read_text(encoding="utf-8")
            if (named or run.is_needed) and has_text and job.source["files"] == load(scenario).source["files"]:
                depths = ", ".join(f"{name} fails at depth {depth}" for name, depth in (job.violations or {}).items())
                assert isinstance(job.refinement, OracleRefinement)
                return HandMade(job.name, run, job.refinement.setup, depths)
    except (OSError, ScenarioError, ConfigError):
        pass  # the caller reads the file again, and reports the error
    return None
