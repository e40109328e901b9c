"""The ports of one server in the planner. What cannot be bound together is that of 3.9.5, by its source.

The first two pairs were tried on real servers: with clientPort on the quorum port the ensemble has no service after the
last restart, and with one port for both kinds of clients a server ends at its start.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import cli

LINES = "".join(f"server.{sid}=zoo{sid}:2888:3888\n" for sid in (1, 2, 3))
FILE = f"tickTime=2000\ninitLimit=5\nsyncLimit=2\ndataDir=/d\n{LINES}"
PROMETHEUS = "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider\n"


def folder(path: Path, keys: str, lines: str = "") -> Path:
    path.mkdir()
    (path / "zoo.cfg").write_text(FILE + keys + lines, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("keys", "pair"),
    [
        ("clientPort=2888\n", "port 2888, by clientPort and by the quorum port"),
        ("clientPort=2181\nsecureClientPort=2181\n", "port 2181, by clientPort and by secureClientPort"),
        ("clientPort=3888\n", "port 3888, by clientPort and by the election port"),
        ("clientPort=2181\nobserverMasterPort=2888\n", "port 2888, by the quorum port and by observerMasterPort"),
        ("clientPort=2181\nadmin.serverPort=3888\n", "port 3888, by the election port and by admin.serverPort"),
        (f"clientPort=7000\n{PROMETHEUS}", "port 7000, by clientPort and by metricsProvider.httpPort"),
        ("clientPort=2181\nclientPortAddress=zoo1\nsecureClientPort=2181\nsecureClientPortAddress=ZOO1\n", "port 2181"),
    ],
)
def test_two_listeners_of_a_server_on_one_port_are_an_error(tmp_path: Path, keys: str, pair: str) -> None:
    old, new = folder(tmp_path / "old", "clientPort=2181\n"), folder(tmp_path / "new", keys)
    ended = cli("rollout", "--from", old, "--to", new)
    assert ended.code == 151
    assert f"server 1 cannot listen twice on {pair}" in ended.err


@pytest.mark.parametrize(
    "keys",
    [
        "clientPort=8080\n",  # the AdminServer fails with a warning
        "clientPort=8080\nadmin.enableServer=false\n",
        "clientPort=2888\nclientPortAddress=other\n",
        "clientPort=2181\nsecureClientPort=2182\n",
    ],
)
def test_ports_that_a_server_can_bind_are_none(tmp_path: Path, keys: str) -> None:
    old, new = folder(tmp_path / "old", "clientPort=2181\n"), folder(tmp_path / "new", keys)
    assert cli("rollout", "--from", old, "--to", new).code == 0


def test_two_servers_with_one_address_are_an_error(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", "clientPort=2181\n")
    new = folder(tmp_path / "new", "clientPort=2181\n", "server.4=zoo3:2888:3888\n")
    ended = cli("rollout", "--from", old, "--to", new)
    assert ended.code == 151
    assert "server.4: the quorum port zoo3:2888 is also an address of server.3" in ended.err


def test_ports_that_conflict_before_and_after_are_no_error(tmp_path: Path) -> None:
    """An excerpt need not name the host that the client port is bound to."""
    old = folder(tmp_path / "old", "clientPort=2888\n")
    new = folder(tmp_path / "new", "clientPort=2888\nsnapCount=9\n")
    assert cli("rollout", "--from", old, "--to", new).code == 0
