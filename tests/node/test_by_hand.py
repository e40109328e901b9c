"""The schedules made by hand show the findings E to I on real servers, and nothing in their controls.

The expected harm is that of the pages in docs/findings, which were written from other runs.
"""

from pathlib import Path

import pytest

from checker.scenario import bundled
from harness import releases
from harness.reproduce.by_hand.catalogue import hand_made_of
from harness.reproduce.by_hand.hand_made import HandMade
from harness.reproduce.by_hand.restore import RestoreUndone
from harness.reproduce.ends import Effect, Outcome, Reproduction
from tests.support.programs import need, need_kind

SCENARIOS = {path.stem: path for path in bundled()}
HARM = {
    "pending-view-activated": {Effect.TWO_LEADERS, Effect.DIFFERENT},
    "last-seen-forgotten": {Effect.TWO_LEADERS, Effect.LOST},
    "epoch-of-active-view": {Effect.TWO_LEADERS},
    "observer-promoted-stops-service": {Effect.NO_ANSWER},
    "restore-undone": {Effect.LOST},
}
CONTROLS = {
    "pending-view-activated": 3,
    "last-seen-forgotten": 6,
    "observer-promoted-stops-service": 3,
    "restore-undone": 6,
}

RELEASE = "3.9.5"

pytestmark = pytest.mark.slow


def schedule_of(name: str) -> HandMade:
    schedule = hand_made_of(SCENARIOS[name])
    assert schedule is not None
    return schedule


def reproduce(schedule: HandMade, directory: Path) -> Reproduction:
    need_kind("real", RELEASE)
    if schedule.run is RestoreUndone:
        need(releases.ADMIN_SERVER.missing())
    (servers := directory / "servers").mkdir()
    return schedule.reproduce(servers, RELEASE, lambda _: None)


@pytest.mark.parametrize(("name", "harm"), HARM.items(), ids=HARM)
def test_a_finding_shows_on_real_servers(name: str, harm: set[Effect], tmp_path: Path) -> None:
    result = reproduce(schedule_of(name), tmp_path)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert result.effects == harm


@pytest.mark.parametrize(("name", "step"), CONTROLS.items(), ids=CONTROLS)
def test_without_the_decisive_step_nothing_is_wrong(name: str, step: int, tmp_path: Path) -> None:
    result = reproduce(schedule_of(name).without(step), tmp_path)
    assert result.outcome is Outcome.CONFIRMED, result.reason
    assert result.effects == frozenset()
