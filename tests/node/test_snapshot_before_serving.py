"""A transaction that a new leader has logged without a commit is in the snapshot that it sends before it serves."""

import sys
from pathlib import Path

from kazoo.client import KazooClient

from harness.ensemble import Ensemble
from harness.processes import wait_until
from tests.support.programs import need_kind

WAIT = 60.0
LAUNCHER = Path(__file__).parent / "dying_leader.py"


def read_at(ensemble: Ensemble, sid: int, path: str) -> bytes:
    client = KazooClient(hosts=ensemble.address(sid), timeout=10.0)
    client.start(timeout=WAIT)
    try:
        return bytes(client.get(path)[0])
    finally:
        client.stop()
        client.close()


def test_a_server_that_joins_by_snapshot_has_what_was_logged_without_a_commit(tmp_path: Path) -> None:
    need_kind("node")
    with Ensemble(["node"] * 3, tmp_path) as ensemble:
        dying = ensemble.process(3)
        dying.command[:] = [sys.executable, str(LAUNCHER), "LOGGED", *dying.command[-1:]]
        ensemble.start(2)
        ensemble.start(3)
        ensemble.wait_serving([2, 3])
        assert ensemble.role(3) == "leader"
        client = KazooClient(hosts=ensemble.address(3), timeout=10.0)
        client.start(timeout=WAIT)
        client.create("/znode", b"old")
        client.set_async("/znode", b"LOGGED")
        wait_until(lambda: not dying.alive, WAIT, "the leader has ended before its COMMIT")
        client.stop()
        client.close()
        ensemble.start(1)
        ensemble.wait_serving([1, 2])
        assert read_at(ensemble, 2, "/znode") == b"LOGGED"
        assert read_at(ensemble, 1, "/znode") == b"LOGGED"
