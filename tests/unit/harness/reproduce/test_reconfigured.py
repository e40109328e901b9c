"""The driver with reconfigurations: the files of servers, the request, and a server that is heard and does not hear.

The names and the keys of the files are those of the Administrator's Guide (dynamic reconfiguration).
"""

import argparse
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from checker.engine.semantics import successors
from checker.scenario import bundled
from harness.processes import LOOPBACK, free_ports
from harness.reproduce import command
from harness.reproduce.by_hand.catalogue import RUNS, hand_made_of
from harness.reproduce.comparison import Comparison
from harness.reproduce.lab import Lab
from harness.reproduce.members import Members
from harness.reproduce.proxies import Network
from harness.reproduce.schedule import Schedule, ScheduleError, wire_form
from harness.servers import incremental
from harness.zoo_cfg import NEXT, Member, View, active_config, brief, write_zoo_cfg
from refimpl.wire.election import Opening, encode_opening
from spec.config import Address
from spec.quorum import MembershipChange, Sid
from spec.txn import make_zxid
from spec.zab.packets import CommitAndActivate
from tests.support.schedules import run_of

SCENARIOS = {path.stem: path for path in bundled()}
PENDING = SCENARIOS["pending-view-activated"]
ASKED = ("an operator sends reconfig", "server.1 receives PROPOSAL 1:1")


def written(directory: Path, sids: tuple[Sid, ...], version: int) -> str:
    parts = tuple(Member(sid, 2181, 2888, 3888, host=f"zk{sid}") for sid in sids)
    write_zoo_cfg(View(parts, version=version), parts[0], directory)
    return brief(active_config(directory) or "")


class TestFiles:
    def test_the_version_is_in_the_name_of_the_dynamic_file(self, tmp_path: Path) -> None:
        assert written(tmp_path, (1, 2), 0x100000001) == "0x100000001: {1, 2}"
        assert (tmp_path / "zoo.cfg.dynamic.100000001").exists()

    def test_the_file_of_a_server_that_is_new_has_no_version(self, tmp_path: Path) -> None:
        assert written(tmp_path, (1, 2, 4), 0) == "{1, 2, 4}"
        text = (tmp_path / "zoo.cfg").read_text("utf-8")
        assert f"dynamicConfigFile={tmp_path / 'zoo.cfg.dynamic'}\n" in text and "reconfigEnabled=true\n" in text

    def test_a_server_without_files_has_no_configuration(self, tmp_path: Path) -> None:
        assert active_config(tmp_path) is None


def test_a_request_has_the_lines_of_those_who_join_and_the_ids_of_those_who_leave() -> None:
    members = {sid: Member(sid, 2181, 2888, 3888, host=f"zk{sid}") for sid in (1, 2, 4, 5)}
    change = MembershipChange(frozenset({4}), frozenset({5}), frozenset({2, 1}))
    four, five = "server.4=zk4:2888:3888:participant;127.0.0.1:2181", "server.5=zk5:2888:3888:observer;127.0.0.1:2181"
    assert incremental(members, change) == (f"{four},{five}", "1,2", None, -1)
    assert incremental(members, MembershipChange(leaving=frozenset({1})), 7) == (None, "1", None, 7)


def test_the_commit_of_a_reconfiguration_has_its_zxid_on_the_wire() -> None:
    assert wire_form(CommitAndActivate(make_zxid(1, 1), 3)) == ("COMMITANDACTIVATE", make_zxid(1, 1))


@pytest.fixture(scope="module")
def schedule() -> Schedule:
    return run_of(PENDING, *ASKED)


class TestViews:
    @pytest.fixture
    def compared(self, schedule: Schedule, tmp_path: Path) -> Callable[[], list[str]]:
        """The differences of server 1 after it has read the proposal; its files are in the directory."""
        lab = cast("Lab", SimpleNamespace(home=lambda _: tmp_path))
        return lambda: Comparison(schedule, lab).view_of(schedule.steps[-1].after, 1)

    def test_the_files_of_the_model_differ_in_nothing(self, compared: Callable[[], list[str]], tmp_path: Path) -> None:
        written(tmp_path, (1, 2, 3), make_zxid(1))
        lines = "".join(f"server.{sid}=zk{sid}:1:2:participant;127.0.0.1:3\n" for sid in (3, 4, 5))
        (tmp_path / NEXT).write_text(f"{lines}version=100000001\n", encoding="utf-8")
        assert compared() == []

    def test_a_view_that_was_not_seen_is_named(self, compared: Callable[[], list[str]], tmp_path: Path) -> None:
        written(tmp_path, (1, 2, 3), make_zxid(1))
        assert compared() == [
            "server 1 has seen the configuration of no proposal, and the model has 0x100000001: {3, 4, 5}"
        ]

    def test_a_view_that_is_active_too_early_is_named(self, compared: Callable[[], list[str]], tmp_path: Path) -> None:
        written(tmp_path, (3, 4, 5), make_zxid(1, 1))
        assert compared()[0] == (
            "the configuration of server 1 is 0x100000001: {3, 4, 5}, and the model has 0x100000000: {1, 2, 3}"
        )

    def test_the_first_start_deletes_the_file_and_the_server_still_knows(self) -> None:
        """`last-seen-forgotten`: `QuorumPeer.setQuorumVerifier` deletes `.next` at the start."""
        starts = ("the operator stops server.1", "the operator starts server.1 with the same file")
        schedule = run_of(SCENARIOS["last-seen-forgotten"], *ASKED, *starts)
        server = schedule.server(schedule.steps[-1].after, 1)
        assert server.last_seen is not None and server.next_deleted


def test_a_server_that_its_own_file_leaves_out_does_not_start() -> None:
    """Its `zoo.cfg` names the new dynamic file then, and `QuorumPeer.start` finds no line of its own in that."""
    schedule = run_of(
        SCENARIOS["last-seen-forgotten"],
        *ASKED, "server.4 receives PROPOSAL 1:1", "server.3 receives ACK 1:1 from server.1",
        "server.3 receives ACK 1:1 from server.4", "server.1 receives COMMITANDACTIVATE", "the operator stops server.1",
    )  # fmt: skip
    row = schedule.steps[-1].after
    assert schedule.server(row, 1).view.voters == {3, 4, 5}
    assert not any(move.action == "plan 3: start 1" for move, _ in successors(schedule.model, row))


class TestChoice:
    def test_a_file_means_the_run_of_the_model_where_the_driver_can_execute_it(self) -> None:
        by_hand = {run.scenario for run in RUNS if hand_made_of(SCENARIOS[run.scenario], named=False) is not None}
        assert by_hand == {"epoch-of-active-view", "observer-promoted-stops-service", "restore-undone"}

    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            (["--release", "3.4.14"], "ZooKeeper 3.4.14 has no reconfigurations; write a release from 3.5.0 on"),
            (["--release", "3.9.5", "--record", "file"], "has reconfigurations, which a recording does not have"),
        ],
    )
    def test_a_release_or_a_recording_without_reconfigurations_is_refused(
        self, words: list[str], reason: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "load_schedule", lambda file: run_of(file, *ASKED))
        parser = argparse.ArgumentParser()
        command.add_options(parser)
        with pytest.raises(ScheduleError, match=reason):
            command._schedule(parser.parse_args([str(PENDING), *words]))


@pytest.mark.parametrize("mute", [None, 1, 2])
def test_a_mute_server_is_not_heard_and_hears(mute: Sid | None) -> None:
    one, other, *quorum = free_ports(4)
    named = Members((1, 2))
    network = Network(dict(zip((1, 2), quorum, strict=True)), {1: one, 2: other}, lambda *_: None, named.proxy_hosts())
    opening = encode_opening(Opening(1, (Address(LOOPBACK, one),)))
    try:
        network.join_election(1, 2, mute=mute)
        with (
            socket.create_server((LOOPBACK, other)) as listener,
            socket.create_connection((named.host(1, 2), other), 5.0) as sender,
        ):
            sender.sendall(opening)
            receiver, _ = listener.accept()
            with receiver:
                receiver.settimeout(5.0)
                assert receiver.recv(1 << 10), "the opening of the connection is always heard"
                sender.sendall(b"vote of 1")
                receiver.sendall(b"vote of 2")
                for reader, text, silent in ((receiver, b"vote of 1", mute == 1), (sender, b"vote of 2", mute == 2)):
                    reader.settimeout(0.3 if silent else 5.0)
                    if silent:
                        with pytest.raises(TimeoutError):
                            reader.recv(1 << 10)
                    else:
                        assert reader.recv(1 << 10) == text
    finally:
        network.shut_down()
