"""`python -m harness follow`: the files on this machine, the steps for the server that leads, pauses and losses.

The expected lines are those of the shipped files with other hosts and ports, as ZooKeeper reads them
(`QuorumPeerConfig.parseProperties`). The orders are those that `checker rollout` prints for each leader.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from checker.rollout import Plan
from checker.rollout.config_state import side_of
from checker.rollout.inputs.sources import read_input
from harness.__main__ import main
from harness.follow.command import exit_code, total
from harness.follow.follower import modes, steps_for
from harness.follow.result import Acknowledgements, Ending, FollowedRun, FollowedStep, absent, longest_pause
from harness.follow.servers import Loopback, MappingError, ids
from harness.releases import DEBIAN
from spec.config import parse_zoo_cfg
from tests.support.rollout_runs import FOLDERS, fine, plan_of

DATA = Path("/run/data")


def counted() -> Callable[[int], tuple[int, ...]]:
    ports = iter(range(20000, 21000))
    return lambda count: tuple(next(ports) for _ in range(count))


@cache
def planned(old: str, new: str) -> Plan:
    return plan_of(old, new, fine)


def keys(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_file_keeps_ids_roles_and_times_and_gets_loopback_addresses() -> None:
    state = side_of(read_input(str(FOLDERS / "observer")), "before")
    text = Loopback(counted()).text(state, 4, DATA)
    found = keys(text)
    assert (found["tickTime"], found["initLimit"], found["syncLimit"]) == ("2000", "10", "5")
    assert found["peerType"] == "observer"
    assert (found["dataDir"], found["clientPortAddress"]) == (str(DATA), "127.0.0.1")
    assert text.count("clientPort=") == 1 and found["clientPort"] != "2184"
    config = parse_zoo_cfg(text, "zoo.cfg", "4\n", {}.get, False)
    assert (config.effective_view.voters, config.effective_view.observers) == ({1, 2, 3}, {4})
    assert {line.split(":")[0] for key, line in found.items() if key.startswith("server.")} == {"127.0.0.1"}


def test_a_server_has_the_same_ports_in_every_file() -> None:
    loopback = Loopback(counted())
    three, five = (side_of(read_input(str(FOLDERS / name)), name) for name in ("three", "five"))
    assert ids([three, five]) == (1, 2, 3, 4, 5)
    old, new = keys(loopback.text(three, 1, DATA)), keys(loopback.text(five, 5, DATA))
    for sid in (1, 2, 3):
        assert old[f"server.{sid}"] == new[f"server.{sid}"]
    lines = [new[f"server.{sid}"] for sid in (1, 2, 3, 4, 5)]
    ports = [port for line in lines for port in line.split(":")[1:3]]
    clients = [str(loopback.client_port(sid)) for sid in (1, 5)]
    assert len({*ports, *clients}) == 12


def test_a_new_address_of_a_server_gets_new_ports_and_a_wildcard_means_its_own_address(tmp_path: Path) -> None:
    for number, host in ((1, "a"), (2, "b")):
        folder = tmp_path / str(number)
        for sid in (1, 2, 3):
            hosts = {1: host, 2: "c", 3: "d"} | {sid: "0.0.0.0"}
            own = folder / f"server{sid}"
            own.mkdir(parents=True)
            lines = "".join(f"server.{each}={name}:2888:3888\n" for each, name in hosts.items())
            (own / "zoo.cfg").write_text(f"dataDir=/d\nclientPort=2181\n{lines}")
    before, after = (side_of(read_input(str(tmp_path / str(number))), f"{number}") for number in (1, 2))
    loopback = Loopback(counted())
    old, new = keys(loopback.text(before, 2, DATA)), keys(loopback.text(after, 2, DATA))
    assert old["server.1"] != new["server.1"] and old["server.2"] == new["server.2"]
    assert keys(loopback.text(before, 1, DATA))["server.1"] == old["server.1"]


def test_a_dynamic_file_is_refused() -> None:
    state = side_of(read_input(str(FOLDERS / "reconfig-three")), "before")
    with pytest.raises(MappingError, match=r"it names a dynamic file; name files with `server\.N` lines"):
        Loopback(counted()).text(state, 1, DATA)


def test_the_steps_are_those_for_the_server_that_leads() -> None:
    (part,) = planned("three", "four").advised
    for leader, order in (
        (3, "start 4, restart 1, restart 2, restart 3"),
        (1, "start 4, restart 2, restart 3, restart 1"),
    ):
        assert ", ".join(map(str, steps_for(part, leader))) == order


def test_servers_whose_files_do_not_change_are_restarted_once_the_leader_last() -> None:
    (part,) = planned("three", "three").advised
    assert ", ".join(map(str, steps_for(part, 2))) == "restart 1, restart 3, restart 2"


def test_a_step_waits_for_the_role_of_the_new_file() -> None:
    observer, one = (side_of(read_input(str(FOLDERS / name)), name) for name in ("observer", "one"))
    assert (modes(observer, 4), modes(observer, 1)) == ({"observer"}, {"leader", "follower"})
    assert modes(one, 1) == {"standalone"}


@pytest.mark.parametrize(
    ("moments", "pause"), [([], 10.0), ([1.0, 9.0], 8.0), ([1.0, 2.0, 3.0], 7.0), ([-5.0, 4.0, 20.0], 6.0)]
)
def test_the_longest_pause_counts_the_time_before_the_first_and_after_the_last_reply(
    moments: list[float], pause: float
) -> None:
    assert longest_pause(moments, 0.0, 10.0) == pause


def test_a_write_that_one_server_lacks_is_lost() -> None:
    witness = Acknowledgements()
    for number in (1, 2):
        witness.acknowledged(3, f"/load/0-{number}", (1 << 32) + number)
    paths = {"/load/0-1", "/load/0-2"}
    assert absent(witness.replies, {1: paths, 2: paths | {"/load/0-3"}}) == {}
    missing = absent(witness.replies, {1: paths, 2: {"/load/0-1"}})
    assert {sid: list(map(str, lacking)) for sid, lacking in missing.items()} == {
        2: ["/load/0-2 (acknowledged by server 3, zxid 1:2)"]
    }
    run = FollowedRun(Ending.LOST, acknowledged=2, missing=missing)
    assert run.lost == 1 and exit_code([FollowedRun(Ending.FAILED), run]) == 1
    assert "2 acknowledged, 1 lost" in total([run])


def test_the_exit_code_and_the_sum_of_runs() -> None:
    good = FollowedRun(Ending.KEPT, steps=[FollowedStep("restart 3", 3.0, 2.5, True)], acknowledged=7, pause=2.6)
    assert [exit_code([good, FollowedRun(each)]) for each in Ending] == [0, 1, 1, 1, 3]
    assert total([good]) == (
        "every write kept 1 of 1; 7 acknowledged, 0 lost; longest pause 2.6 s, "
        "in a step on the leader 2.5 s; waits in vain 0"
    )


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("three", "nothing", "nothing"),
        ("reconfig-three", "reconfig-three", "it names a dynamic file"),
    ],
)
def test_an_input_that_cannot_be_followed_is_one_clear_error(
    old: str, new: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["follow", "--from", str(FOLDERS / old), "--to", str(FOLDERS / new), "--release", DEBIAN])
    printed = capsys.readouterr()
    assert code == 2 and printed.out == ""
    assert error in printed.err.splitlines()[-1] and printed.err.splitlines()[-1].startswith("error: ")
