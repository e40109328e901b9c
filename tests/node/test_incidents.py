"""The judge of a diagnosis on real servers: `python -m tests.reality.incidents`.

The answers are written by hand. The erasure of one damaged disk of three loses nothing; servers 2 and 3 without their
disks elect a leader without a write, if server 1 is not among them, and server 1 follows it.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.node.conftest import NEWEST
from tests.reality.incidents import files_and_disks as incidents
from tests.reality.incidents.capture import capture
from tests.reality.incidents.judge import Judgement, judge
from tests.reality.incidents.scene import Scene
from tests.reality.incidents.table import Incident
from tests.support.programs import need_kind


def judged(incident: Incident, home: Path, answer: dict[str, Any]) -> Judgement:
    """The judgement of this answer about an incident."""
    need_kind("real", incident.release)
    scene = Scene(home / "scene", incident.release)
    try:
        truth = incident.provoke(scene)
        capture(scene, truth, incident.name, home / "folder", scene.addresses)
        scene.quiet()
        return judge(home / "folder", scene.servers, home, lambda *_: answer)
    finally:
        scene.close()


@pytest.mark.slow
def test_a_damaged_disk_may_be_erased(tmp_path: Path) -> None:
    steps = [{"action": "erase", "servers": [3]}, {"action": "start", "servers": [3]}]
    answer = {"causes": [{"name": "damaged-log", "servers": [3], "steps": steps}], "steps": steps}
    judgement = judged(Incident("damaged-log", NEWEST, incidents.damaged_log), tmp_path, answer)
    assert judgement.named and judgement.serves and judgement.lost == 0
    assert judgement.erased == {3: "all serve"}
    assert judgement.unsafe == judgement.mistakes == []


@pytest.mark.slow
def test_advice_that_loses_writes_is_noticed(tmp_path: Path) -> None:
    steps = [{"action": "stop", "servers": [1]}, {"action": "start", "servers": [2, 3, 1]}]
    answer = {"causes": [{"name": "no-quorum", "servers": [2, 3], "steps": steps}], "steps": steps}
    judgement = judged(Incident("majority-lost", NEWEST, incidents.majority_lost), tmp_path, answer)
    assert not judgement.named and judgement.serves
    assert judgement.lost is not None and judgement.lost >= 40
    assert [sentence.partition(" lacks ")[0] for sentence in judgement.unsafe] == [
        f"after the steps server {sid}" for sid in (1, 2, 3)
    ]
