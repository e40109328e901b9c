"""`python -m harness follow` waits for the checks of a plan, between stages and before steps, on made-up servers.

The conditions are those of the plan's data (`tests/unit/checker/rollout/test_rollout_conditions.py`). The servers here
answer late, as real ones do after a restart, so a run that does not wait would take the next step too early.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from checker.rollout.orders import Way
from checker.rollout.output.data import data
from harness import processes
from harness.follow import follower
from harness.follow.follower import FollowOptions, PlanFollower
from harness.follow.result import Ending
from spec.quorum import Sid
from tests.support.rollout_runs import fine, plan_of

LATE = 50  # questions after its start that a server does not answer, unless it leads


class LateServers:
    """Servers that serve some questions after their start; the one with the highest id leads. `events` is the record.

    `restless` is a server that starts again by itself when it is stopped.
    """

    def __init__(self, sids: Sequence[Sid], restless: Sid | None = None) -> None:
        self.sids, self._restless = tuple(sids), restless
        self.locks = {sid: threading.RLock() for sid in sids}
        self._unanswered: dict[Sid, int] = {}
        self.events: list[str] = []

    def give(self, _: Sid, state: object) -> None:
        """Take the file."""

    def start(self, sid: Sid) -> None:
        self._unanswered[sid] = 1 if sid == max(self.sids) else LATE
        self.events.append(f"start {sid}")

    def stop(self, sid: Sid) -> None:
        del self._unanswered[sid]
        self.events.append(f"stop {sid}")
        if sid == self._restless:
            self._unanswered[sid] = LATE

    def alive(self, sid: Sid) -> bool:
        return sid in self._unanswered

    def role(self, sid: Sid) -> str | None:
        if not self.alive(sid):
            return None
        self._unanswered[sid] -= 1
        if self._unanswered[sid] > 0:
            return None
        if self._unanswered[sid] == 0:
            self.events.append(f"{sid} serves")
        return "leader" if sid == max(self._unanswered) else "follower"

    def leaders(self) -> list[Sid]:
        return [sid for sid in self.sids if self.role(sid) == "leader"]

    def connect(self, _: Sid) -> Any:
        answer = SimpleNamespace(err=0, values=[["0-1"]])
        return SimpleNamespace(ask=lambda *_: answer, close=lambda: None, drop=lambda: None)

    def shut_down(self) -> None:
        """End."""


def followed(
    old: str, new: str, way: Way, path: Path, patch: pytest.MonkeyPatch, restless: Sid | None = None
) -> tuple[LateServers, Any]:
    """Follow a plan; return the servers, and the result of the run."""

    def client(servers: object, number: int, load: object, witness: Any) -> Any:
        witness.acknowledged(1, "/load/0-1", 1 << 32)
        return SimpleNamespace(stop=lambda: None)

    made = plan_of(old, new, fine, how=way)
    servers = LateServers(sorted({*made.request.old.servers, *made.request.new.servers}), restless)
    patch.setattr(follower, "FollowedServers", lambda *_: servers)
    patch.setattr(follower, "WriteClient", client)
    patch.setattr(follower, "LOAD", "/load")
    patch.setattr(follower, "QUIET_SECONDS", 0.0)
    patch.setattr(processes, "POLL_SECONDS", 0.0)
    result = PlanFollower(made, FollowOptions("3.9.5", kills=0), path, lambda _: None).follow()
    conditions = [each["condition"] for each in data(made)["stages"]]
    return servers, (result, conditions)


def test_a_stage_begins_when_every_server_of_its_condition_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step of this plan waits. So the second stage waits for its check alone: 1, 2, 3 and 5 were restarted."""
    servers, (result, (_, condition)) = followed("five", "three", Way.NO_WAIT, tmp_path, monkeypatch)
    assert result.ending is Ending.KEPT, result.reason
    restarted, removed = (n for n, event in enumerate(servers.events) if event == "stop 5")  # it leads
    before = servers.events[:removed]
    assert removed > restarted + 1 and "stop 4" in before
    for sid in condition["running"]:
        assert [each for each in before if each in (f"start {sid}", f"{sid} serves")][-1] == f"{sid} serves"


def test_a_stage_does_not_begin_while_a_server_that_left_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers, (result, _) = followed("five", "three", Way.NO_WAIT, tmp_path, monkeypatch, restless=4)
    assert result.ending is Ending.STALLED and "must stay stopped and run: 4" in result.reason
    assert servers.events.count("stop 1") == 1, "the second stage has not begun"


def test_the_last_start_of_a_proved_order_waits_for_its_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers, (result, _) = followed("three", "five", Way.ONE_BY_ONE, tmp_path, monkeypatch)
    assert result.ending is Ending.KEPT, result.reason
    before = servers.events[: servers.events.index("start 5")]
    for sid in (1, 2, 3, 4):
        assert [each for each in before if each in (f"start {sid}", f"{sid} serves")][-1] == f"{sid} serves"
