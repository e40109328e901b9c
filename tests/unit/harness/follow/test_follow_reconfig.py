"""`python -m harness follow` of a plan by `reconfig`: the files on this machine, the requests, and their order.

The servers here are made up: they answer as ZooKeeper does (docs/reference-reconfig-facts.md).
"""

import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest

from checker.rollout import PlanRequest, SafetyVerdict, plan
from checker.rollout.answer import Plan
from checker.rollout.runs import RunResult
from checker.rollout.scenarios import RunSpec
from harness import processes
from harness.__main__ import main
from harness.follow import command, follower, reconfig
from harness.follow.follower import FollowOptions
from harness.follow.reconfig import ReconfigFollower, first_to_start
from harness.follow.result import Ending, FollowedRun
from harness.follow.servers import Loopback
from harness.releases import DEBIAN
from harness.servers import GET_DATA, RECONFIG
from harness.session import DisconnectedError
from spec.config import parse_zoo_cfg
from spec.quorum import Sid, majority_view
from spec.tree.paths import CONFIG
from tests.support.reconfig_folders import dynamic_folder
from tests.support.rollout_runs import made_up

IN_PROGRESS = -14
"""The code of ReconfigInProgress (`KeeperException.Code`)."""


def counted() -> Callable[[int], tuple[int, ...]]:
    ports = iter(range(20000, 21000))
    return lambda count: tuple(next(ports) for _ in range(count))


@cache
def planned(old: tuple[Sid, ...], new: tuple[Sid, ...], verdict: SafetyVerdict = SafetyVerdict.SAFE) -> Plan:
    def runner(spec: RunSpec, seconds: float) -> RunResult:
        return made_up(spec, verdict)

    with TemporaryDirectory() as name:
        before = dynamic_folder(Path(name) / "before", old)
        return plan(PlanRequest(before, dynamic_folder(Path(name) / "after", new)), runner)


# The files.


def test_a_server_gets_its_settings_and_its_members_in_a_dynamic_file(tmp_path: Path) -> None:
    given = dynamic_folder(tmp_path / "before", (1, 2, 3))
    loopback = Loopback(counted())
    lines = {sid: loopback.line_with_client(given, sid, observes=sid == 3) for sid in (1, 2, 3)}
    dynamic = "".join(f"server.{sid}={line}\n" for sid, line in lines.items())
    text = loopback.settings(given.servers[1], Path("/run/data"), Path("/run/zoo.cfg.dynamic"))
    config = parse_zoo_cfg(text, "zoo.cfg", "1\n", {"/run/zoo.cfg.dynamic": dynamic}.get, False)
    assert config.reconfig_enabled and (config.tick_time, config.data_dir) == (2000, "/run/data")
    assert (config.view.voters, config.view.observers) == ({1, 2}, {3})
    assert config.client is not None and config.client.host == "127.0.0.1"
    assert config.client.port == loopback.client_port(1), "the client port is in the dynamic file alone"
    assert "clientPort=" not in text


def test_the_address_of_a_server_is_the_same_in_every_folder(tmp_path: Path) -> None:
    loopback = Loopback(counted())
    folders = dynamic_folder(tmp_path / "a", (1, 2, 3)), dynamic_folder(tmp_path / "b", (1, 2, 3, 4))
    assert len({loopback.line_with_client(each, 2, observes=False) for each in folders}) == 1


@pytest.mark.parametrize(
    ("voters", "leaving", "first"),
    [
        ((1, 2, 3), {3}, [1, 3]),
        ((1, 2, 3), {2}, [1, 2]),
        ((1, 2, 3), set(), [1, 3]),
        ((1, 2, 3, 4, 5), {4, 5}, [1, 2, 5]),
        ((1, 2, 3), {1}, [1, 3]),
    ],
)
def test_a_voter_that_leaves_leads_first_if_its_id_allows_it(
    voters: tuple[Sid, ...], leaving: set[Sid], first: list[Sid]
) -> None:
    """Of a quorum with equal logs the highest id wins; server 1 cannot."""
    assert first_to_start(majority_view(voters), frozenset(leaving)) == first


# The steps.


class Ensemble:
    """Servers that serve at once and take every command. `events` is the record, `errors` the codes of the replies.

    A command with the code None has no reply, and takes effect.
    """

    def __init__(self, errors: list[int | None]) -> None:
        self.sids: tuple[Sid, ...] = (1, 2, 3, 4)
        self.locks = {sid: threading.RLock() for sid in self.sids}
        self.members = {1, 2, 3}
        self.up: set[Sid] = set()
        self.events: list[str] = []
        self._errors = errors

    def give_dynamic(self, sid: Sid, _: object, lines: dict[Sid, str]) -> None:
        self.events.append(f"file of {sid}: {' '.join(map(str, lines))}")

    def start(self, sid: Sid) -> None:
        self.up.add(sid)
        self.events.append(f"start {sid}")

    def stop(self, sid: Sid) -> None:
        self.up.discard(sid)
        self.events.append(f"stop {sid}")

    def alive(self, sid: Sid) -> bool:
        return sid in self.up

    def role(self, sid: Sid) -> str:
        return "leader" if sid == 3 else "follower"

    def leaders(self) -> list[Sid]:
        return [3]

    def connect(self, _: Sid) -> Any:
        return SimpleNamespace(ask=self._ask, close=lambda: None, drop=lambda: None)

    def _ask(self, opcode: int, *values: Any) -> Any:
        if opcode == GET_DATA and values[0] == CONFIG:
            lines = "".join(f"server.{sid}=a:1:2:participant;127.0.0.1:3\n" for sid in sorted(self.members))
            return SimpleNamespace(err=0, values=[f"{lines}version=100000000".encode()])
        if opcode == RECONFIG:
            return self._take(*values)
        return SimpleNamespace(err=0, values=[["0-1"]])

    def _take(self, joining: str | None, leaving: str | None, *_: object) -> Any:
        named = [int(each.partition("=")[0].removeprefix("server.")) for each in (joining or "").split(",") if each]
        self.events.append(f"reconfig +{named} -{leaving or ''}")
        error = self._errors.pop(0) if self._errors else 0
        if error:
            return SimpleNamespace(err=error, values=())
        self.members = (self.members | set(named)) - {int(each) for each in (leaving or "").split(",") if each}
        if error is None:
            raise DisconnectedError("the server ended the connection")
        return SimpleNamespace(err=0, values=[b""])

    def shut_down(self) -> None:
        """End."""


def followed(patch: pytest.MonkeyPatch, path: Path, *errors: int | None) -> tuple[list[str], FollowedRun]:
    """Follow the replacement of 3 by 4, one voter in each command; return the events since the start, and the run."""

    def client(servers: object, number: int, load: object, witness: Any) -> Any:
        witness.acknowledged(1, "/load/0-1", 1 << 32)
        return SimpleNamespace(stop=lambda: None)

    ensemble = Ensemble(list(errors))
    patch.setattr(reconfig, "FollowedServers", lambda *_: ensemble)
    patch.setattr(follower, "WriteClient", client)
    patch.setattr(follower, "QUIET_SECONDS", 0.0)
    patch.setattr(processes, "POLL_SECONDS", 0.0)
    made = planned((1, 2, 3), (1, 2, 4))
    assert made.reconfig_route is not None
    run = ReconfigFollower(made, made.reconfig_route, FollowOptions("3.9.5", kills=0), path, lambda _: None).follow()
    return [each for each in ensemble.events if "4" in each or "reconfig" in each or "stop" in each], run


STEPS = ["file of 4: 1 2 3 4", "start 4", "reconfig +[4] -", "reconfig +[] -3", "stop 3"]


def test_the_steps_are_those_of_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events, run = followed(monkeypatch, tmp_path)
    assert (events, run.ending) == (STEPS, Ending.KEPT)
    assert [step.led for step in run.steps] == [False, False, True, False], "the third one takes the vote of the leader"


def test_a_reply_that_is_lost_is_no_failure_if_the_members_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events, run = followed(monkeypatch, tmp_path, 0, None)
    assert (events, run.ending) == (STEPS, Ending.KEPT)


def test_a_refused_command_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events, run = followed(monkeypatch, tmp_path, IN_PROGRESS)
    assert run.ending is Ending.STALLED and "was refused with error -14" in run.reason
    assert events == STEPS[:3]


# The command line.


def refused(patch: pytest.MonkeyPatch, made: Plan, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """The error of the command with this plan."""
    patch.setattr(command, "plan", lambda *_: made)
    patch.setattr(command, "read_input", lambda _: None)
    patch.setattr(command, "PlanRequest", lambda *_: None)
    patch.setattr(command.real, "available", lambda _: None)
    assert main(["follow", "--from", "a", "--to", "b", "--release", DEBIAN, *options]) == 2
    return capsys.readouterr().err


def test_kills_in_a_plan_by_reconfig_are_one_clear_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(monkeypatch, planned((1, 2, 3), (1, 2, 4)), capsys, "--kills", "1")
    assert error == (
        "error: --kills 1: no server may restart between a `reconfig` and its reply, so no server is killed; "
        "leave it out\n"
    )


def test_an_unsafe_plan_is_not_followed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    error = refused(monkeypatch, planned((1, 2, 3), (1, 2, 4), SafetyVerdict.UNSAFE), capsys)
    assert error.startswith("error: the planner does not call this change safe")
