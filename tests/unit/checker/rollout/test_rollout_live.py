"""A live ensemble as an input: the answers to `conf` and `srvr`, and an error for everything that can be wrong.

The servers are those of `tests/support/live_answers.py`. Real servers and our own node are asked in
`tests/node/test_rollout_inputs.py`.
"""

import socket
from pathlib import Path

import pytest

from checker.diagnose.present_state import present_state
from checker.rollout import Engine, PlanRequest, plan
from checker.rollout.files.differences import WITHHOLDING, differences
from checker.rollout.files.keys import Effect
from checker.rollout.inputs import live
from checker.rollout.inputs.folders import read_folder
from checker.rollout.inputs.live import is_live
from checker.rollout.inputs.sources import read_input
from checker.rollout.output.markdown import markdown
from spec.config import ConfigError
from tests.support.live_answers import WHITELIST, ensemble, membership, server, srvr
from tests.support.rollout_runs import folder_with, lines_of

THREE = membership(1, 2, 3)


def test_the_state_has_the_members_the_settings_and_the_leader() -> None:
    with ensemble(*(server(n, "leader" if n == 2 else "follower", THREE) for n in (3, 1, 2))) as addresses:
        state = read_input(addresses)
    assert set(state.servers) == state.view.members == {1, 2, 3}
    assert state.leader == 2
    config = state.servers[1].config
    assert (config.tick_time, config.init_limit, config.sync_limit) == (2000, 10, 5)
    assert (config.data_dir, config.data_log_dir) == ("/var/lib/zookeeper", "/var/lib/zookeeper")
    assert not config.reconfig_enabled
    assert [line.addresses[0].host for line in config.servers] == ["zoo1", "zoo2", "zoo3"]
    assert any("is server 2, leader, release 3.9.3" in sentence for sentence in state.taken)


def test_a_chroot_in_a_connect_string_is_no_part_of_the_addresses() -> None:
    with ensemble(*(server(n, "leader" if n == 1 else "follower", THREE) for n in (1, 2, 3))) as addresses:
        assert read_input(f"{addresses}/kafka").leader == 1


def test_observers_groups_and_versions_are_read() -> None:
    lines = THREE.replace("zoo3:2888:3888:participant", "zoo3:2888:3888:observer;0.0.0.0:2181").replace(
        "=0", "=100000000"
    )
    with ensemble(*(server(n, "leader" if n == 1 else "follower", lines) for n in (1, 2, 3))) as addresses:
        state = read_input(addresses)
    assert state.view.observers == {3}
    assert state.servers[1].config.reconfig_enabled and state.view.version == 0x100000000


def test_the_wildcard_in_a_servers_own_file_is_not_its_host() -> None:
    own = {n: THREE.replace(f"zoo{n}:", "0.0.0.0:") for n in (1, 2, 3)}
    with ensemble(*(server(n, "leader" if n == 1 else "follower", own[n]) for n in (1, 2, 3))) as addresses:
        state = read_input(addresses)
    assert all("0.0.0.0" not in each.text for each in state.servers.values())


def test_a_live_ensemble_equals_its_files_as_far_as_it_states_them(tmp_path: Path) -> None:
    lines = lines_of((1, 2, 3))
    head = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper/\nclientPort=2181\nforceSync=yes\n"
    harmless = "snapCount=5000\nautopurge.purgeInterval=1\n"
    harmless += "standaloneEnabled=false\nquorumListenOnAllIPs=false\nreconfigEnabled=false\n"
    (tmp_path / "zoo.cfg").write_text(f"{head}{harmless}{lines}")
    with ensemble(*(server(n, "leader" if n == 1 else "follower", THREE) for n in (1, 2, 3))) as addresses:
        found = differences(read_input(addresses).servers, read_folder(tmp_path).servers)
    assert {(each.key, each.old, each.effect) for each in found} == {("forceSync", "(not stated)", Effect.NOT_STATED)}


def test_a_key_that_a_live_ensemble_cannot_state_withholds_safe(tmp_path: Path) -> None:
    """`sslQuorum` decides whether servers reach each other, and `conf` does not have it (`QuorumZooKeeperServer`)."""
    lines = lines_of((1, 2, 3))
    head = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper\nclientPort=2181\n"
    exits = []
    with ensemble(*(server(n, "leader" if n == 1 else "follower", THREE) for n in (1, 2, 3))) as addresses:
        for more in ("", "sslQuorum=true\nquorum.auth.enableSasl=true\n", "autopurge.purgeInterval=1\n"):
            (tmp_path / "zoo.cfg").write_text(head + more + lines)
            made = plan(PlanRequest(read_input(addresses), read_folder(tmp_path)), Engine().run)
            exits.append((made.exit_code, made.direct.stage.keys_with(*WITHHOLDING)))
            text = markdown(made)
            assert ("**Not compared**: `quorum.auth.enableSasl`, `sslQuorum`." in text) is ("sslQuorum" in more)
    assert exits == [(0, ()), (20, ("quorum.auth.enableSasl", "sslQuorum")), (0, ())]


def test_a_changed_data_directory_is_seen(tmp_path: Path) -> None:
    lines = lines_of((1, 2, 3))
    (tmp_path / "zoo.cfg").write_text(f"dataDir=/elsewhere\ntickTime=2000\ninitLimit=10\nsyncLimit=5\n{lines}")
    with ensemble(*(server(n, "leader" if n == 1 else "follower", THREE) for n in (1, 2, 3))) as addresses:
        found = differences(read_input(addresses).servers, read_folder(tmp_path).servers)
    assert {(each.key, each.old, each.new, each.effect) for each in found} == {
        ("dataDir", "/var/lib/zookeeper", "/elsewhere", Effect.DISK)
    }


def test_an_interrupted_roll_out_is_seen_on_the_live_ensemble(tmp_path: Path) -> None:
    head = "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/var/lib/zookeeper\nclientPort=2181\n"
    old, new = (
        folder_with(tmp_path / name, head + lines_of(range(1, last))) for name, last in (("old", 4), ("new", 5))
    )
    four = membership(1, 2, 3, 4)
    views = {1: four, 2: THREE, 3: THREE, 4: four}
    with ensemble(*(server(n, "leader" if n == 2 else "follower", views[n]) for n in views)) as addresses:
        found = present_state([addresses], old, new)
        with pytest.raises(ConfigError, match="a change is under way; give the files before and after"):
            read_input(addresses)
    assert (found.applied, found.leader, found.unseen) == ({1, 4}, 2, set())


GOOD = server(2, "follower", THREE)
BAD = {
    "conf is not listed": ({**GOOD, "conf": f"conf {WHITELIST}"}, "does not execute conf", "4lw.commands.whitelist"),
    "srvr is not listed": ({**GOOD, "srvr": f"srvr {WHITELIST}"}, "does not execute srvr", "4lw.commands.whitelist"),
    "no leader": (
        {**GOOD, "conf": "This ZooKeeper instance is not currently serving requests\n"},
        *("does not serve now", "wait until it serves"),
    ),
    "no answer": ({}, "ended without an answer to conf", "not sent over TLS"),
    "something else": (
        {"conf": "HTTP/1.1 400 Bad Request", "srvr": "?"},
        "not an answer of ZooKeeper",
        "the client port",
    ),
    "standalone": (
        {"conf": "serverId=0\n", "srvr": srvr("standalone")},
        "runs standalone, and has no membership",
        "zoo.cfg",
    ),
    "the same server": (server(1, "follower", THREE), "answers as server 1, as 127.0.0.1", "load balancer"),
    "two leaders": (server(2, "leader", THREE), "server 1 and server 2 both lead", "compare their data"),
    "a bad line": (server(2, "follower", "server.1=zoo1\nversion=0"), "conf has the line server.1=zoo1", "client port"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_cannot_be_used_is_one_error(name: str) -> None:
    answers, what, right = BAD[name]
    with ensemble(server(1, "leader", THREE), answers, server(3, "follower", THREE)) as addresses:
        with pytest.raises(ConfigError) as caught:
            read_input(addresses)
        assert str(caught.value).startswith(addresses.split(",")[1])
    assert what in str(caught.value) and right in str(caught.value) and "\n" not in str(caught.value)


def test_every_server_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        read_input("127.0.0.1:1,127.0.0.1:2")
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["127.0.0.1:1", "127.0.0.1:2"]
    assert all("connection refused; start the server or correct the address" in line for line in lines)


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ConfigError, match="no answer to conf within"):
        read_input(f"127.0.0.1:{silent.getsockname()[1]}")


def test_a_member_that_was_not_asked_is_named() -> None:
    expected = r"server 3 \(zoo3\) is a member, and none of these addresses is its"
    servers = server(1, "leader", THREE), server(2, "follower", THREE)
    with ensemble(*servers) as addresses, pytest.raises(ConfigError, match=expected):
        read_input(addresses)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("zk1:2181", True), ("zk1,zk2", True), ("zk1:2181,zk2:2181/kafka", True), ("[::1]:2181", True)),
        *(("zk1", False), ("before/", False), ("../a:b", False), ("a:b,c:d", False), ("zoo.cfg", False)),
    ],
)
def test_addresses_are_recognised(text: str, expected: bool) -> None:
    assert is_live(text) is expected


@pytest.mark.parametrize("text", ["zk1:0", "zk1:70000", ",".join(["h:1"] * 65)])
def test_impossible_addresses_are_errors(text: str) -> None:
    with pytest.raises(ConfigError, match=r"write HOST:PORT|name at most 64"):
        read_input(text)
