"""A server whose volume is lost with its pod restarts with an empty disk, and is judged so.

Which volumes survive a pod is stated in the manual of Kubernetes ("Volumes", "Ephemeral Volumes", "StatefulSets"), and
by the types of storage of the operators. That an empty disk under an old id can lose a write is what `--disk SID=empty`
says (`tests/unit/checker/rollout/test_rollout_disks.py`), and ZooKeeper's Administrator's Guide.
"""

from pathlib import Path

import pytest

from checker.rollout import Engine, PlanRequest, plan
from checker.rollout.disks import DiskHazard
from checker.rollout.files.differences import Interruption
from checker.rollout.inputs.folders import Folder
from checker.rollout.inputs.sources import read_input
from checker.rollout.output.recommendation import recommendation
from checker.rollout.runs import SafetyVerdict
from tests.support.rollout_runs import SAMPLES

EMPTY = dict.fromkeys((1, 2, 3), DiskHazard.EMPTY)


def state(folder: Path, text: str, name: str = "state") -> Folder:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return read_input(str(path))


KEPT = (SAMPLES / "bitnami-3.yaml").read_text()
LOST = KEPT.partition("  volumeClaimTemplates:")[0] + "      - {name: data, emptyDir: {}}\n"
SET = (SAMPLES / "config-map.yaml").read_text()
CLAIM = "  volumeClaimTemplates:\n  - metadata:\n      name: data\n"
EMPTY_DIR = SET.partition(CLAIM)[0] + "      - {name: data, emptyDir: {}}\n"


def grown(text: str) -> str:
    """The manifests of three servers with a fourth one."""
    fourth = "zk-3.zk-headless.data.svc.cluster.local:2888:3888::4"
    return text.replace("replicas: 3", "replicas: 4").replace(":2888:3888::3", f":2888:3888::3 {fourth}")


def test_each_workload_has_a_volume_of_its_own(tmp_path: Path) -> None:
    text = (SAMPLES / "three-deployments.yaml").read_text()
    lost = text.replace("persistentVolumeClaim: {claimName: zoo2}", "emptyDir: {}")
    found = state(tmp_path, lost)
    assert {sid: volume.survives for sid, volume in found.volumes.items()} == {1: True, 2: False, 3: True}
    assert PlanRequest(found, found).disks == {2: DiskHazard.EMPTY}


def test_a_folder_states_no_volume(tmp_path: Path) -> None:
    (tmp_path / "zoo-1.cfg").write_text("dataDir=/data\n")
    assert not read_input(str(tmp_path)).volumes


@pytest.mark.parametrize(("old", "new"), [(KEPT, LOST), (LOST, KEPT), (LOST, LOST), (SET, EMPTY_DIR)])
def test_servers_that_lose_their_volumes_are_judged_as_servers_with_empty_disks(
    tmp_path: Path, old: str, new: str
) -> None:
    request = PlanRequest(state(tmp_path, old, "old"), state(tmp_path, new, "new"))
    assert request.disks == EMPTY
    made = plan(request, Engine().run)
    assert made.outcome is SafetyVerdict.UNSAFE and made.exit_code == 12


def test_servers_that_keep_their_volumes_are_safe_to_restart(tmp_path: Path) -> None:
    kept = state(tmp_path, KEPT)
    made = plan(PlanRequest(kept, kept), Engine().run)
    assert (made.exit_code, made.request.disks) == (0, {})


def test_an_interrupted_roll_out_loses_volumes_on_both_ways(tmp_path: Path) -> None:
    """Server 1 has its new file. To go on 2 and 3 restart, to go back server 1 restarts again."""
    old, new = state(tmp_path, LOST, "old"), state(tmp_path, LOST.replace('"2000"', '"3000"'), "new")
    made = plan(PlanRequest(old, new, now=Interruption("now", frozenset({1}), ())), Engine().run)
    assert made.back is not None
    assert made.request.disks == dict.fromkeys((2, 3), DiskHazard.EMPTY)
    assert made.back.disks == {1: DiskHazard.EMPTY}
    assert (made.outcome, made.back.outcome) == (SafetyVerdict.UNSAFE, SafetyVerdict.UNSAFE)


def test_equal_files_do_not_say_that_a_server_was_restarted(tmp_path: Path) -> None:
    old, new = state(tmp_path, KEPT, "old"), state(tmp_path, LOST, "new")
    made = plan(PlanRequest(old, new, now=Interruption("now", frozenset({1, 2, 3}), ())), Engine().run)
    assert made.exit_code == 12 and recommendation(made).startswith("Do not go on")


def test_only_servers_that_restart_lose_their_volumes(tmp_path: Path) -> None:
    """A new server starts with an empty disk anyway, and a server without a step is not restarted."""
    three, four = state(tmp_path, LOST, "three"), state(tmp_path, grown(LOST), "four")
    assert PlanRequest(three, four).disks == EMPTY
    assert PlanRequest(four, three).disks == EMPTY
    assert PlanRequest(three, three, order=(2,)).disks == {2: DiskHazard.EMPTY}
    assert PlanRequest(three, three, down=frozenset({3})).disks == dict.fromkeys((1, 2), DiskHazard.EMPTY)
    assert PlanRequest(three, three, disks={1: DiskHazard.STALE}).disks == {**EMPTY, 1: DiskHazard.STALE}
