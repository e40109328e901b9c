"""More than fifty hostile first packets on the quorum port and as many on the election port of three servers.

Expected is the behaviour of `LearnerHandler.run` and `QuorumCnxManager.receiveConnection`: a first packet that does not
introduce a learner, or a peer, ends its connection, and nothing else happens. Each refusal is one line of the log.
"""

import random
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from harness.ensemble import Ensemble
from refimpl.log_lines import LINES, PERIOD
from refimpl.wire.packet import PacketType
from tests.node.hostile import check_unharmed, connection, framed, hang_up, has_ended, log_of, opening, resident, send
from tests.node.patience import LONG_LIMITS

Launch = Callable[..., Ensemble]
GROWTH = 24 << 20
HIGH, LOW = 2**63 - 1, -(2**63)
NOISE = random.Random(12).randbytes(65536)
INTRODUCTIONS = (PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO)
OTHER_PROTOCOLS = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: zookeeper:2888\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
    "a TLS ClientHello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + NOISE[:512],
    "a connect request of a client": framed(struct.pack(">iqiqi", 0, 0, 30000, 0, 16) + bytes(16)),
    "0xff": b"\xff" * 1000,
}


def packet(kind: int, data: bytes | None = b"", zxid: int = 0, auth: int = 0, length: int | None = None) -> bytes:
    """Return a QuorumPacket; `length` and `auth` may contradict the data and the authinfo."""
    size = (-1 if data is None else len(data)) if length is None else length
    return struct.pack(">iqi", kind, zxid, size) + (data or b"") + struct.pack(">i", auth)


def info(sid: int, protocol: int = 0x10000, version: int = 0, epoch: int = 0, kind: int = 11) -> bytes:
    """Return a FOLLOWERINFO with a LearnerInfo."""
    return packet(kind, struct.pack(">qiq", sid, protocol, version), epoch << 32)


def quorum_table() -> dict[str, bytes]:
    table = {f"{kind.name} first": packet(kind, bytes(24)) for kind in PacketType if kind not in INTRODUCTIONS}
    table |= {f"type {kind}": packet(kind, bytes(24)) for kind in (0, -1, 20, 99, 2**31 - 1, -(2**31))}
    table |= {f"data of length {size}": packet(11, b"", length=size) for size in (-2, -(2**31), 2**31 - 1, 8 << 20)}
    table |= {f"authinfo of {count}": packet(11, bytes(20), auth=count) for count in (-2, -(2**31), 2**31 - 1, 65536)}
    table |= {f"LearnerInfo of {size} bytes": packet(11, bytes(size)) for size in (0, 1, 7, 8, 11)}
    table |= {f"protocol {protocol}": info(99, protocol) for protocol in (0, 1, 0xFFFF, -1, -(2**31))}
    table |= {f"acceptedEpoch {epoch}": info(99, epoch=epoch) for epoch in (-1, -(2**31), 2**21, 2**31 - 2, 2**31 - 1)}
    table |= {f"observer {epoch}": info(99, epoch=epoch, kind=16) for epoch in (-1, 2**31 - 2, 2**31 - 1)}
    table |= {f"a configuration of version {version:#x}": info(99, version=version) for version in (1, HIGH)}
    table |= {
        "no data": packet(11, None),
        "noise": b"\xff" + NOISE,
        "a vote": framed(struct.pack(">iqqqq", 0, 1, 0, 1, 0)),
    }
    return table | OTHER_PROTOCOLS


def election_table() -> dict[str, bytes]:
    """Return invalid openings, and frames that end the connection of a peer that introduced itself as 3."""
    table = {f"protocol {each}": opening(3, protocol=each) for each in (-1, -2, -65534, -65537, -(2**31), LOW)}
    table |= {f"addresses of {size} bytes": opening(3, length=size) for size in (0, -1, -(2**31), 2049, 2**31 - 1)}
    table |= {f"sid {sid}": opening(sid) for sid in (0, -1, LOW, -77)}
    addresses = {
        "no port": b"127.0.0.1", "an empty host": b":1", "port 65536": b"127.0.0.1:65536", "port -1": b"127.0.0.1:-1",
        "a port that is no number": b"127.0.0.1:x", "an open bracket": b"[::1:1", "only bars": b"|||", "NUL": b"\0:1",
        "no UTF-8": b"\xff\xfe:1", "blanks": b" : ", "a host of 2,040 bytes": b"h" * 2040 + b":1",
        "512 addresses": b"|".join([b"a:1"] * 512), "a path": b"/etc/passwd:1", "two colons": b"a:1:2",
    }  # fmt: skip
    table |= {f"an address with {name}": opening(-5, address) for name, address in addresses.items()}
    table |= {f"old opening of {sid}": struct.pack(">q", sid) for sid in (0,)}
    for length in (0, -1, -(2**31), 2**31 - 1, 512 * 1024 + 1, 1 << 24):
        table[f"a frame of {length} bytes"] = opening(3) + struct.pack(">i", length) + bytes(64)
        table[f"a stranger's frame of {length} bytes"] = opening(77) + struct.pack(">i", length) + bytes(64)
    table |= {f"{name} after the opening": opening(3) + b"\xff" + data for name, data in OTHER_PROTOCOLS.items()}
    return table | {name: b"\x80" + data for name, data in OTHER_PROTOCOLS.items()}


@pytest.fixture(scope="module")
def ensemble(launch: Launch) -> Ensemble:
    return launch(["node", "node", "node"], tick_time=250, extra=LONG_LIMITS | {"initLimit": "8"})


@pytest.fixture
def unharmed(ensemble: Ensemble) -> Iterator[Ensemble]:
    before = resident(ensemble)
    yield ensemble
    after = resident(ensemble)
    print(f"worst growth: {max(after[sid] - before[sid] for sid in before) >> 10} KiB")
    check_unharmed(ensemble, before, GROWTH)


def refused(port: int, data: bytes) -> None:
    with connection(port) as to:
        send(to, data)
        assert has_ended(to)


def refusals(ensemble: Ensemble, sid: int) -> int:
    """Return the number of lines in a server's log about refused connections."""
    return log_of(ensemble, sid).count("the connection ends")


def test_first_packets_on_the_quorum_port_are_refused(unharmed: Ensemble) -> None:
    table, leader = quorum_table(), unharmed.leader()
    assert len(table) >= 50
    for name, data in table.items():
        before = refusals(unharmed, leader)
        refused(unharmed.member(leader).quorum_port, data)
        assert refusals(unharmed, leader) - before == 1, name
    assert unharmed.leader() == leader


@pytest.mark.parametrize("port", ["quorum_port", "election_port"])
def test_a_thousand_refusals_stay_below_the_rate_limit_of_the_log(port: str, unharmed: Ensemble) -> None:
    leader, before, began = unharmed.leader(), refusals(unharmed, unharmed.leader()), time.monotonic()
    for _ in range(1000):
        refused(getattr(unharmed.member(leader), port), b"\xff" * 100)
    periods = int((time.monotonic() - began) / PERIOD) + 2
    assert 1 <= refusals(unharmed, leader) - before <= LINES * periods


@pytest.mark.parametrize("rounds", [3])
def test_first_packets_on_the_election_port_are_refused(rounds: int, unharmed: Ensemble) -> None:
    table, leader = election_table(), unharmed.leader()
    assert len(table) >= 50
    for _ in range(rounds):
        for data in table.values():
            refused(unharmed.member(1).election_port, data)
    assert unharmed.leader() == leader


INCOMPLETE = {
    "nothing": b"",
    "one byte": b"\0",
    "ruok": b"ruok",
    "half an opening": opening(3)[:20],
    "half a LearnerInfo": info(99)[:20],
    "half a frame": opening(77) + struct.pack(">i", 512 * 1024) + bytes(400_000),
    "half a packet": packet(11, bytes(400_000), length=1_000_000),
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_an_incomplete_first_packet_is_forgotten_with_its_connection(name: str, unharmed: Ensemble) -> None:
    leader = unharmed.member(unharmed.leader())
    for port in (leader.quorum_port, leader.election_port):
        with connection(port) as to:
            send(to, INCOMPLETE[name])
            hang_up(to)
