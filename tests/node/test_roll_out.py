"""A plan of the roll-out planner, executed on live servers: three become five directly, each restarted once.

While there are two files, too few servers run for two quorums, so the ensemble neither splits nor loses a write. Each
server serves again before the next step, as the plan says (`tests/conformance/test_rollout_facts.py` explores it).
"""

from pathlib import Path

import pytest

from checker.rollout import read_folder
from checker.rollout.orders import START, unsplit
from checker.rollout.stages import whole
from checker.scenario import bundled
from harness.ensemble import Ensemble
from tests.node.hostile import client
from tests.node.patience import PATIENT
from tests.support.programs import need_kind

FOLDERS = bundled()[0].parent.parent / "rollouts"
OLD, NEW = (1, 2, 3), (1, 2, 3, 4, 5)


@pytest.mark.parametrize("kind", ["node", "real"])
def test_three_become_five_in_one_go_with_a_write_after_each_step(kind: str, tmp_path: Path) -> None:
    need_kind(kind)
    growth = whole(read_folder(FOLDERS / "three"), read_folder(FOLDERS / "five"))
    with Ensemble([kind] * 5, tmp_path, **PATIENT) as ensemble:
        for sid in OLD:
            ensemble.tell(sid, OLD)
            ensemble.start(sid)
        ensemble.wait_serving(OLD)
        written = [write(ensemble, "before")]
        for step in next(unsplit(growth, ensemble.leader())):
            if step.action != START:
                ensemble.stop(step.sid)
            ensemble.tell(step.sid, NEW)
            ensemble.start(step.sid)
            ensemble.wait_serving([step.sid])
            written.append(write(ensemble, str(step).replace(" ", "-")))
        ensemble.wait_serving(NEW)
        assert [ensemble.role(sid) for sid in NEW].count("leader") == 1
        for sid in NEW:
            assert names(ensemble, sid) == set(written)


@pytest.mark.parametrize("kind", ["node", "real"])
def test_other_names_of_the_same_machines_serve_at_every_step(kind: str, tmp_path: Path) -> None:
    """What `--same-machines` says: servers with the old names and servers with the new ones reach each other."""
    need_kind(kind)
    with Ensemble([kind] * 3, tmp_path, **PATIENT) as ensemble:
        for sid in OLD:
            named(ensemble, sid, "127.0.0.1", "localhost")
        ensemble.start_all()
        written = [write(ensemble, "before")]
        leader = ensemble.leader()
        for sid in sorted(OLD, key=lambda sid: sid == leader):
            ensemble.stop(sid)
            named(ensemble, sid, "localhost", "127.0.0.1")
            ensemble.start(sid)
            ensemble.wait_serving([sid])
            written.append(write(ensemble, f"restarted-{sid}"))
        ensemble.wait_serving(OLD)
        for sid in OLD:
            assert names(ensemble, sid) == set(written)


def named(ensemble: Ensemble, sid: int, old: str, new: str) -> None:
    """Write other hosts into the lines of the servers, which a server reads at its next start."""
    file = ensemble.directory / f"server-{sid}" / "zoo.cfg"
    lines = file.read_text(encoding="utf-8").splitlines()
    renamed = [line.replace(old, new) if line.startswith("server.") else line for line in lines]
    assert renamed != lines
    file.write_text("\n".join(renamed) + "\n", encoding="utf-8")


def write(ensemble: Ensemble, name: str) -> str:
    """Create a znode with this name through any running server."""
    with client(ensemble, *ensemble.running) as writing:
        writing.retry(writing.ensure_path, f"/{name}")
    return name


def names(ensemble: Ensemble, sid: int) -> set[str]:
    """Return the znodes of a server, after it has caught up with its leader."""
    with client(ensemble, sid) as asking:
        asking.sync("/")
        return set(asking.get_children("/")) - {"zookeeper"}
