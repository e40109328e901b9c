"""A live ensemble as an input of the planner: our own nodes, and real servers."""

import json
import re
import shutil
from pathlib import Path

import pytest

from checker.diagnose.present_state import present_state
from checker.rollout import read_folder
from checker.rollout.files.differences import same_files
from checker.rollout.files.keys import Effect
from checker.rollout.inputs.sources import read_input
from harness.ensemble import Ensemble
from spec.config import ConfigError
from tests.node.patience import PATIENT
from tests.support.command_line import cli
from tests.support.programs import need_kind


def files_of(ensemble: Ensemble, folder: Path) -> Path:
    for sid in ensemble.sids:
        (folder / str(sid)).mkdir(parents=True)
        text = (ensemble.directory / f"server-{sid}" / "zoo.cfg").read_text(encoding="utf-8")
        (folder / str(sid) / "zoo.cfg").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", ["node", "real"])
def test_a_live_ensemble_is_the_state_of_its_files(kind: str, tmp_path: Path) -> None:
    need_kind(kind)
    with Ensemble([kind] * 3, tmp_path / "servers", observers=(3,), **PATIENT) as ensemble:
        ensemble.start_all()
        ensemble.wait_serving()
        live, files = read_input(ensemble.connect_string), read_folder(files_of(ensemble, tmp_path / "files"))
        assert live.leader == ensemble.leader()
        assert live.view == files.view
        assert all(same_files(live.servers[sid], files.servers[sid]) for sid in ensemble.sids)
        found = present_state([ensemble.connect_string], files, files)
        assert (found.applied, found.leader, found.unseen) == ({1, 2, 3}, ensemble.leader(), set())


def test_the_server_that_leads_now_is_the_one_that_leads_at_first(tmp_path: Path) -> None:
    with Ensemble(["node"] * 3, tmp_path / "servers", **PATIENT) as ensemble:
        ensemble.start_all()
        ensemble.wait_serving()
        leader = ensemble.leader()
        files = files_of(ensemble, tmp_path / "files")
        shutil.copytree(files / "3", files / "4")
        fourth = files / "4" / "zoo.cfg"
        own_port = re.sub("(?m)^clientPort=.*$", "clientPort=3", fourth.read_text(encoding="utf-8"))
        fourth.write_text(own_port, encoding="utf-8")
        for path in files.glob("*/zoo.cfg"):
            path.write_text(
                path.read_text(encoding="utf-8") + "server.4=127.0.0.1:1:2\nforceSync=yes\n", encoding="utf-8"
            )
        asked = ("rollout", "--from", ensemble.connect_string, "--to", files, "--budget", "4s", "--json")
        answer = json.loads(cli(*asked).out)
        unstated = {each["key"] for each in answer["differences"] if each["effect"] == Effect.NOT_STATED.value}
        for path in files.glob("*/zoo.cfg"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(line for line in lines if line.partition("=")[0] not in unstated), encoding="utf-8")
        stated = json.loads(cli(*asked).out)
    for each in (answer, stated):
        assert each["before"]["leader"] == leader
        assert {order["leader"] for order in each["direct"]["orders"]} == {leader}
        assert each["direct"]["proved"]
    assert unstated == {"forceSync"}, "`conf` does not state it, and with `no` writes can be lost"
    assert (answer["verdict"], stated["verdict"]) == ("undecided", "safe")


@pytest.mark.parametrize("kind", ["node", "real"])
def test_a_server_without_a_quorum_is_an_error(kind: str, tmp_path: Path) -> None:
    need_kind(kind)
    with Ensemble([kind] * 3, tmp_path, **PATIENT) as ensemble:
        ensemble.start_all()
        ensemble.wait_serving()
        for sid in (2, 3):
            ensemble.stop(sid)
        with pytest.raises(ConfigError) as caught:
            read_input(ensemble.connect_string)
    errors = {line.partition(": ")[0]: line for line in str(caught.value).splitlines()}
    assert {ensemble.address(2), ensemble.address(3)} <= errors.keys()
    assert all("it cannot be reached: connection refused" in errors[ensemble.address(sid)] for sid in (2, 3))


@pytest.mark.parametrize("kind", ["node", "real"])
def test_a_word_that_is_not_in_the_whitelist_is_an_error(kind: str, tmp_path: Path) -> None:
    need_kind(kind)
    with Ensemble([kind] * 3, tmp_path, extra={"4lw.commands.whitelist": "srvr, mntr"}) as ensemble:
        ensemble.start_all()
        ensemble.wait_serving()
        with pytest.raises(ConfigError, match=r"does not execute conf: .*; add conf and srvr to 4lw") as caught:
            read_input(ensemble.connect_string)
        assert len(str(caught.value).splitlines()) == 3
