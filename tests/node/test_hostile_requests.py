"""Two hundred hostile requests at each port of a leader at once: memory, service for others, and lines of the log.

Expected is what `docs/explanation-node.md` says of every bound, and nothing of the code: the same leader, memory that
is bounded, writes of another client that wait for less than a second of the servers' time, and one line each.
"""

import logging
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest

from harness import commands as c
from harness.ensemble import Ensemble
from harness.processes import free_ports
from harness.session import Session
from tests.node.hostile import LOOPBACK, check_unharmed, log_of, resident
from tests.node.hostile_requests import BIG, MANY, PORTS, HostileRequest, hostile_requests
from tests.node.patience import LONG_LIMITS

MB, SET_DATA = 1 << 20, 5
GROWTH = 64 * MB
"""The largest growth of a server. It was 13 MB, with connections of five attackers that stay open unread."""
MOST_OPEN = 25
"""Connections of an attacker of one port that stay open, without a reader."""
PROVIDER = {
    "admin.enableServer": "true",
    "metricsProvider.className": "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
}
HOLD = 1.0
"""Seconds for which the last connections stay open."""
logger = logging.getLogger(__name__)


class Target:
    """Three servers, of which the leader has all five ports."""

    def __init__(self, ensemble: Ensemble) -> None:
        numbers = free_ports(6)
        operators = {sid: (numbers[2 * sid - 2], numbers[2 * sid - 1]) for sid in ensemble.sids}
        for sid, (admin, metrics) in operators.items():
            keys = {"admin.serverPort": str(admin), "metricsProvider.httpPort": str(metrics)}
            ensemble.set_keys(sid, LONG_LIMITS | keys | PROVIDER)
        ensemble.start_all()
        self.ensemble, self.leader = ensemble, ensemble.leader()
        member = ensemble.member(self.leader)
        peers = (member.client_port, member.election_port, member.quorum_port)
        self.ports = dict(zip(PORTS, peers + operators[self.leader], strict=True))
        others = [sid for sid in ensemble.sids if sid != self.leader]
        self.session = Session(30_000)
        self.session.connect(ensemble.client_port(others[0]))
        assert self.session.ask(c.CREATE, BIG, bytes(900_000), c.OPEN, 0).err == 0
        assert self.session.ask(c.CREATE, MANY, b"", c.OPEN, 0).err == 0
        for number in range(200):
            assert self.session.ask(c.CREATE, f"{MANY}/{number}{'x' * 100}", b"", c.OPEN, 0).err == 0

    def attack(self, port: str, seed: int, count: int) -> int:
        """Send hostile requests to one port; return how many connections were opened."""
        opened: deque[socket.socket] = deque()
        number = self.ports[port]
        for request in hostile_requests(port, seed, count):
            opened.append(_sent(number, request))
            if len(opened) > MOST_OPEN:
                opened.popleft().close()
        time.sleep(HOLD)
        for left in opened:
            left.close()
        return count

    def cpu(self) -> dict[int, float]:
        """Return the processor time of each server in seconds."""
        times = {sid: psutil.Process(self.ensemble.process(sid).pid).cpu_times() for sid in self.ensemble.sids}
        return {sid: time.user + time.system for sid, time in times.items()}


def _sent(port: int, request: HostileRequest) -> socket.socket:
    """Return a connection over which a request was sent, as far as the server takes it without delay."""
    opened = socket.create_connection((LOOPBACK, port), timeout=10)
    opened.settimeout(0.02)
    with suppress(OSError):  # the server reads no more, or has closed the connection
        opened.sendall(request.data.replace(b"PORT", b"%d" % port))
    with suppress(OSError):
        while request.reads and opened.recv(MB):
            pass
    return opened


def check_survives(target: Target, attacks: dict[str, int], count: int) -> None:
    """Send so many requests to each port at once, with these seeds, and assert what the module says."""
    ensemble, before = target.ensemble, resident(target.ensemble)
    logs = {sid: len(log_of(ensemble, sid)) for sid in ensemble.sids}
    ended, waits, walls, peak = threading.Event(), [0.0], [0.0], dict(before)

    def probe() -> None:
        while not ended.is_set():
            cpu, began = target.cpu(), time.monotonic()
            assert target.session.ask(SET_DATA, MANY, b"", -1).err == 0
            waits.append(max(after - cpu[sid] for sid, after in target.cpu().items()))
            walls.append(time.monotonic() - began)
            for sid, memory in resident(ensemble).items():
                peak[sid] = max(peak[sid], memory)

    with ThreadPoolExecutor(len(attacks) + 1) as threads:
        probing = threads.submit(probe)
        running = [threads.submit(target.attack, port, seed, count) for port, seed in attacks.items()]
        connections = sum(attack.result() for attack in running)
        ended.set()
        probing.result()
    lines = [line for sid in ensemble.sids for line in log_of(ensemble, sid)[logs[sid] :].split("\n")[:-1]]
    grown = max(peak[sid] - before[sid] for sid in before)
    logger.info(
        "%d connections: grown by %d MB, the longest wait %.2f s of processor time, %.2f s in all; %d lines",
        connections, grown // MB, max(waits), max(walls), len(lines),
    )  # fmt: skip
    assert ensemble.leader() == target.leader
    assert grown < GROWTH
    assert max(waits) < 1.0
    assert len(lines) <= connections
    assert all(line.isprintable() and len(line) < 1200 for line in lines)
    check_unharmed(ensemble, before, GROWTH)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with Ensemble(["node"] * 3, tmp_path_factory.mktemp("three"), tick_time=1000) as ensemble:
        yield Target(ensemble)


def test_two_hundred_hostile_requests_at_each_port_at_once(target: Target) -> None:
    check_survives(target, dict.fromkeys(PORTS, 1), 200)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("port", PORTS)
def test_a_thousand_hostile_requests_at_one_port(port: str, seed: int, target: Target) -> None:
    check_survives(target, {port: seed}, 1000)
