"""Ensembles of several releases of the real server: each server runs the release that the ensemble says."""

import pytest

from harness.ensemble import Ensemble
from harness.processes import ServerError
from tests.node.conftest import Launch
from tests.node.hostile import client
from tests.support.programs import need_kind

NEWEST = "3.9.5"


def version(ensemble: Ensemble, sid: int) -> str:
    return ensemble.word(sid, "srvr").partition("Zookeeper version: ")[2].partition("-")[0]


def test_two_releases_and_a_node_form_one_ensemble(launch: Launch) -> None:
    need_kind("real", NEWEST)
    ensemble = launch(["real", "real", "node"], release={2: NEWEST})
    assert (version(ensemble, 1), version(ensemble, 2)) == ("3.8.0", NEWEST)
    assert sorted(str(ensemble.role(sid)) for sid in ensemble.sids) == ["follower", "follower", "leader"]


def test_a_server_returns_as_another_release_over_its_data(launch: Launch) -> None:
    need_kind("real", NEWEST)
    ensemble = launch(["real"], standalone=True)
    assert version(ensemble, 1) == "3.8.0"
    ensemble.replace(1, "real", NEWEST)
    ensemble.wait_serving()
    assert version(ensemble, 1) == ensemble.release(1) == NEWEST
    assert "INFO" in (ensemble.directory / "server-1" / "log.txt").read_text("utf-8", "replace")


@pytest.mark.slow
@pytest.mark.parametrize("new", ["3.5.10", "3.6.4", NEWEST])
def test_a_server_of_3_4_without_a_snapshot_needs_the_key_of_the_upgrade(launch: Launch, new: str) -> None:
    """ZOOKEEPER-3056: the condition of `spec.releases.UPGRADE_CONDITIONS`."""
    for release in ("3.4.14", new):
        need_kind("real", release)
    ensemble = launch(["real"] * 3, release="3.4.14")
    with client(ensemble, *ensemble.sids) as writing:
        writing.create("/written")
    sid = ensemble.leader()
    with pytest.raises(ServerError, match="does not run"):
        ensemble.replace(sid, "real", new)
        ensemble.wait_serving([sid])
    log = (ensemble.directory / f"server-{sid}" / "log.txt").read_text("utf-8", "replace")
    assert "No snapshot found, but there are log entries" in log
    ensemble.set_keys(sid, {"snapshot.trust.empty": "true"})
    ensemble.start(sid)
    ensemble.wait_serving()
    assert version(ensemble, sid) == new


@pytest.mark.slow
@pytest.mark.parametrize("old", ["3.5.10", "3.6.4", "3.7.2"])
def test_servers_of_an_old_line_are_upgraded_one_by_one(launch: Launch, old: str) -> None:
    need_kind("real", old)
    need_kind("real", NEWEST)
    ensemble = launch(["real"] * 3, release=old)
    leader = ensemble.leader()
    for sid in sorted(ensemble.sids, key=lambda sid: sid == leader):
        ensemble.replace(sid, "real", NEWEST)
        ensemble.wait_serving()
    assert {version(ensemble, sid) for sid in ensemble.sids} == {NEWEST}
