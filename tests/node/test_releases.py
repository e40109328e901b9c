"""Ensembles of several releases of the real server: each server runs the release that the ensemble says."""

from harness import Ensemble
from tests.node.conftest import Launch
from tests.support.programs import need_kind

NEWEST = "3.9.5"


def version(ensemble: Ensemble, sid: int) -> str:
    """The release of a server, by its own answer."""
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
