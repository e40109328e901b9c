"""Plans by `reconfig`, followed on real servers under writes: nothing is lost, and the texts of the answer work.

Every plan is the one that `checker rollout` prints for these folders. The size of the searches is small here, since the
commands do not depend on it.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from checker.rollout import Engine, PlanRequest, plan
from checker.rollout.answer import Plan
from checker.rollout.reconfig.commands import MembershipCommand
from harness.follow.follower import FollowOptions
from harness.follow.reconfig import ReconfigFollower
from harness.follow.result import Ending
from spec.quorum import Sid
from tests.node.conftest import NEWEST
from tests.node.test_clients_zkcli import ZKCLI
from tests.support.programs import need_files, need_kind
from tests.support.reconfig_folders import dynamic_folder

SECONDS = 2.0  # of work for the plan


@dataclass(frozen=True)
class Change:
    """A change of voters and observers."""

    old: tuple[Sid, ...]
    new: tuple[Sid, ...]
    observers: tuple[Sid, ...] = ()


CHANGES = {
    "three to five": Change((1, 2, 3), (1, 2, 3, 4, 5)),
    "five to three": Change((1, 2, 3, 4, 5), (1, 2, 3)),
    "3 is replaced by 4": Change((1, 2, 3), (1, 2, 4)),
    "the leader is removed": Change((1, 2, 3), (1, 2)),
    "an observer becomes a voter": Change((1, 2, 3), (1, 2, 3, 4), (4,)),
}


def planned(change: Change, folder: Path) -> Plan:
    before = dynamic_folder(folder / "before", change.old, change.observers)
    return plan(PlanRequest(before, dynamic_folder(folder / "after", change.new), seconds=SECONDS), Engine().run)


def follower(made: Plan, path: Path, kind: type[ReconfigFollower] = ReconfigFollower) -> ReconfigFollower:
    assert made.reconfig_route is not None
    return kind(made, made.reconfig_route, FollowOptions(NEWEST, kills=0), path / "servers", lambda _: None)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_by_reconfig_keeps_every_acknowledged_write(name: str, tmp_path: Path) -> None:
    need_kind("real", NEWEST)
    change = CHANGES[name]
    found = follower(planned(change, tmp_path), tmp_path).follow()
    assert found.ending is Ending.KEPT, found.reason
    assert found.acknowledged > 50
    removes = set(change.old) - set(change.new)
    assert any(step.led for step in found.steps) is bool(removes), "a voter that leaves leads first"


class ByKazoo(ReconfigFollower):
    """Sends the text of the answer for kazoo, as a person would paste it."""

    def _send(self, command: MembershipCommand, sid: Sid) -> None:
        client = KazooClient(f"127.0.0.1:{self._loopback.client_port(sid)}")
        client.start()
        try:
            eval(command.kazoo, {"client": client})
        finally:
            client.stop()
            client.close()


class ByZkCli(ReconfigFollower):
    """Sends the text of the answer for zkCli.sh, as a person would paste it into its prompt."""

    def _send(self, command: MembershipCommand, sid: Sid) -> None:
        server = f"127.0.0.1:{self._loopback.client_port(sid)}"
        asked = [ZKCLI, "-waitforconnection", "-timeout", "30000", "-server", server]
        typed = f"{command.zkcli}\nquit\n"
        told = subprocess.run(asked, input=typed, capture_output=True, text=True, timeout=120, check=False)
        assert "Committed new configuration" in told.stdout, told.stdout + told.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ByKazoo, ByZkCli])
def test_the_texts_of_the_answer_are_taken_by_their_clients(kind: type[ReconfigFollower], tmp_path: Path) -> None:
    """The leader stays, so that no reply is lost."""
    need_kind("real", NEWEST)
    if kind is ByZkCli:
        need_files(ZKCLI, remedy="apt-get install zookeeper")
    made = planned(Change((1, 2, 3), (1, 2, 3, 4)), tmp_path)
    assert follower(made, tmp_path, kind).follow().ending is Ending.KEPT
