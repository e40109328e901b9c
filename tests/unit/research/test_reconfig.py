"""The parts of `python -m research.reconfig` that need no server: names, the page, held packets, the command line.

The configuration text follows the Administrator's Guide (dynamic configuration file); the bytes of packets are those of
`QuorumPacket`.
"""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import real
from harness.processes import LOOPBACK, free_ports, wait_until
from harness.reproduce.members import Members
from harness.reproduce.proxies import Fate, Network, Way, WirePacket
from harness.zoo_cfg import brief, observers_of, version_of, voters_of
from research.reconfig.__main__ import MEASUREMENTS, NEWEST, main
from research.reconfig.facts import FactTable, differences, places, written

PAGE = Path(__file__).parents[3] / "docs" / "reference-reconfig-facts.md"
CONFIG = (
    "server.1=zk1:2888:3888:participant;127.0.0.1:2181\n"
    "server.2=zk2:2888:3888:observer;127.0.0.1:2182\n"
    "server.10=zk10:2888:3888:participant;127.0.0.1:2190\n"
    "version=10000000a"
)
PING, PROPOSAL = 5, 2


def test_a_configuration_is_read() -> None:
    assert voters_of(CONFIG) == (1, 10)
    assert observers_of(CONFIG) == (2,)
    assert version_of(CONFIG) == 0x10000000A
    assert brief(CONFIG) == "0x10000000a: {1, 10 + observer 2}"


def test_a_configuration_without_a_version_has_version_0() -> None:
    assert version_of("server.1=zk1:2888:3888:participant") == 0
    assert brief("server.1=zk1:2888:3888:participant") == "{1}"


def test_two_runs_write_the_same_lines() -> None:
    one, other = Members((1, 2)), Members((1, 2))
    lines = [
        "server.1=zk1:28881:38881:participant;127.0.0.1:21811",
        "server.2=zk2:28882:38882:observer;127.0.0.1:21812",
    ]
    roles = {1: "participant", 2: "observer"}
    assert one.plain("\n".join(one.lines(roles))) == other.plain("\n".join(other.lines(roles))) == "\n".join(lines)


def test_every_name_is_a_loopback_address() -> None:
    members = Members((1, 2, 3))
    hosts = dict(line.split()[::-1] for line in members.hosts_file(2).splitlines())
    assert hosts["zk2"] == LOOPBACK
    assert hosts["zk1"] == members.proxy_hosts()[2, 1] != members.proxy_hosts()[1, 2]
    assert all(address.startswith("127.") for address in hosts.values())


def test_a_table_is_written_into_its_place_alone() -> None:
    page = "before\n<!-- table: one -->\nold\n<!-- end -->\nbetween\n<!-- table: two -->\nold\n<!-- end -->\n"
    table = FactTable("one", ("a", "b"), (("1", "2"),))
    made = written(page, [table])
    assert made.startswith(
        "before\n<!-- table: one -->\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n<!-- end -->\nbetween\n"
    )
    assert made.endswith("<!-- table: two -->\nold\n<!-- end -->\n")
    assert differences(made, [table]) == ()


def test_a_row_that_differs_is_named() -> None:
    page = written("<!-- table: one -->\n<!-- end -->\n", [FactTable("one", ("a",), (("1",), ("2",)))])
    (difference,) = differences(page, [FactTable("one", ("a",), (("1",), ("3",)))])
    assert difference == "table one, line 4: the page has | 2 |; the servers gave | 3 |"


def test_times_are_not_compared() -> None:
    page = written("<!-- table: one -->\n<!-- end -->\n", [FactTable("one", ("a",), (("1 ms",),), timed=True)])
    assert differences(page, [FactTable("one", ("a",), (("2 ms",),), timed=True)]) == ()


def test_a_table_without_a_place_is_named() -> None:
    assert differences("", [FactTable("one", ("a",), ())]) == ("table one: the page has no place for it",)


def test_every_table_of_the_page_is_filled() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names = places(text)
    assert len(names) == len(set(names)) >= len(MEASUREMENTS)
    empty = [name for name in names if f"<!-- table: {name} -->\n\n| " not in text]
    assert not empty


@pytest.fixture
def connection() -> Iterator[tuple[Network, socket.socket, socket.socket]]:
    leader_port, learner_port, *election = free_ports(4)
    listener = socket.create_server((LOOPBACK, leader_port))
    arrived: list[WirePacket] = []
    hosts = Members((1, 2)).proxy_hosts()
    network = Network(
        {1: leader_port, 2: learner_port},
        dict(zip((1, 2), election, strict=True)),
        lambda sender, receiver, packet, fate: arrived.append(packet) if fate is Fate.ARRIVED else None,
        hosts,
    )
    learner = socket.create_connection((hosts[2, 1], leader_port))
    leader, _ = listener.accept()
    wait_until(lambda: network.link(2, 1) is not None, 5.0, "the proxy has connected")
    yield network, leader, learner
    for each in (leader, learner, listener):
        each.close()
    network.shut_down()


def quorum_packet(kind: int, zxid: int) -> bytes:
    return struct.pack(">iqii", kind, zxid, -1, -1)


def test_a_held_direction_delivers_only_pings_until_it_is_free(
    connection: tuple[Network, socket.socket, socket.socket],
) -> None:
    network, leader, learner = connection
    link = network.link(2, 1)
    assert link is not None
    link.hold(Way.DOWN)
    leader.sendall(quorum_packet(PROPOSAL, 1) + quorum_packet(PING, 0))
    learner.settimeout(5.0)
    assert learner.recv(1 << 16) == quorum_packet(PING, 0)
    assert [packet.zxid for packet in link.waiting(Way.DOWN)] == [1]
    link.free(Way.DOWN)
    assert learner.recv(1 << 16) == quorum_packet(PROPOSAL, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["paquets"], "no measurement is called 'paquets'; write packets, moments,"),
        (["--check", "nowhere.md"], "nowhere.md: no such page; name docs/reference-reconfig-facts.md"),
        (["--release", "3.10"], "no known release of ZooKeeper is called '3.10'"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--release" not in arguments:
        monkeypatch.setattr(real, "available", lambda release: None)
    assert main(arguments) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert f"error: {message}" in errors


def test_the_default_release_is_the_newest_known_one() -> None:
    assert NEWEST == "3.9.5"
