"""Malformed bytes on each of the three ports of a standalone server and of a leader of three.

The bytes come from recordings of real servers and clients, with random changes; the seeds are fixed, and a failure
shows the bytes. A server may drop the message or close the connection; other connections must not be affected.
"""

import random
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.ensemble import Ensemble
from harness.processes import word
from harness.zoo_cfg import Member
from tests.node.hostile import (
    check_unharmed,
    connection,
    each,
    framed,
    hang_up,
    has_ended,
    recorded,
    resident,
    send,
    spoiled,
)
from tests.node.patience import LONG_LIMITS

Launch = Callable[..., Ensemble]
SEEDS = range(150)
MB = 1 << 20
GROWTH = 24 * MB
"""The largest growth of a server in a test: memory that its allocator keeps, and its tables."""

CLIENT = [b"".join(map(framed, recorded(f"client-{name}", ">"))) for name in ("kazoo", "java")]
LEARNER = [b"".join(recorded("quorum", ">"))]
LEADER = [b"".join(recorded("quorum", "<"))]
OPENINGS = recorded("election", "o")
VOTES = b"".join(map(framed, recorded("election", "<>")))
ELECTION = [opening + VOTES for opening in OPENINGS]


@pytest.fixture(scope="module")
def alone(launch: Launch) -> Ensemble:
    """One server that has all three ports."""
    return launch(["node"], tick_time=250, extra=LONG_LIMITS | {"maxClientCnxns": "100"})


@pytest.fixture(scope="module")
def three(launch: Launch) -> Ensemble:
    return launch(["node", "node", "node"], tick_time=250, extra=LONG_LIMITS | {"maxClientCnxns": "100"})


@pytest.fixture(params=["alone", "three"])
def ensemble(request: pytest.FixtureRequest) -> Ensemble:
    chosen: Ensemble = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def unharmed(ensemble: Ensemble) -> Iterator[Member]:
    """The leader; afterwards every server must be as before."""
    before = resident(ensemble)
    yield ensemble.member(ensemble.leader())
    check_unharmed(ensemble, before, GROWTH)


def ports(member: Member) -> dict[str, int]:
    return {"client": member.client_port, "election": member.election_port, "quorum": member.quorum_port}


STREAMS = {"client": CLIENT, "election": ELECTION, "quorum": [*LEARNER, *LEADER]}


@pytest.mark.parametrize("port", STREAMS)
def test_spoiled_recordings(port: str, unharmed: Member) -> None:
    def attack(data: bytes) -> None:
        with connection(ports(unharmed)[port]) as to:
            send(to, data)
            hang_up(to)

    def attacks() -> Iterator[bytes]:
        for chance in (random.Random(f"{port} {seed}") for seed in SEEDS):
            yield spoiled(chance.choice(STREAMS[port])[: chance.choice((40, 400, 4000))], chance)

    each(attacks(), attack)


@pytest.mark.parametrize("port", STREAMS)
def test_noise(port: str, unharmed: Member) -> None:
    chance = random.Random(f"noise {port}")
    for length in (1, 3, 4, 8, 20, 100, 5000, 100_000):
        with connection(ports(unharmed)[port]) as to:
            send(to, chance.randbytes(length))
            hang_up(to)


def quorum_packet(kind: int, zxid: int, data: bytes) -> bytes:
    return struct.pack(">iqi", kind, zxid, len(data)) + data + struct.pack(">i", -1)


FOLLOWERINFO = struct.pack(">qiq", 77, 0x10000, 0)

LENGTHS = {
    "a client's frame is negative": ("client", struct.pack(">i", -1)),
    "a client's frame is empty": ("client", struct.pack(">i", 0)),
    "a client's frame is beyond the limit": ("client", struct.pack(">i", 0x100000) + b"x" * 100),
    "a client's frame is 2 GiB": ("client", struct.pack(">i", 0x7FFFFFFF) + b"x" * 100),
    "an opening is empty": ("election", struct.pack(">qqi", -65536, 3, 0)),
    "an opening is negative": ("election", struct.pack(">qqi", -65536, 3, -1)),
    "an opening is beyond the limit": ("election", struct.pack(">qqi", -65536, 3, 2049)),
    "an opening of another protocol": ("election", struct.pack(">qqi", -65537, 3, 10) + b"a" * 10),
    "an opening whose address is none": ("election", struct.pack(">qqi", -65536, 3, 5) + b"a:b:c"),
    "a vote's frame is negative": ("election", OPENINGS[1] + struct.pack(">i", -5)),
    "a vote's frame is beyond the limit": ("election", OPENINGS[1] + struct.pack(">i", 512 * 1024 + 1)),
    "a packet's data is below -1": ("quorum", struct.pack(">iqi", 11, 0, -2)),
    "a packet's data is 2 GiB": ("quorum", struct.pack(">iqi", 11, 0, 0x7FFFFFFF)),
    "a packet has 2 billion identities": (
        "quorum",
        struct.pack(">iqi", 1, 0, 0) + struct.pack(">i", 0x7FFFFFFF) + b"\xff" * 70_000,
    ),
    "an identity is 2 GiB": ("quorum", struct.pack(">iqi", 1, 0, 0) + struct.pack(">ii", 1, 0x7FFFFFFF)),
    "FOLLOWERINFO is cut off": ("quorum", quorum_packet(11, 0, b"\0\0\0")),
    "FOLLOWERINFO of an old protocol": ("quorum", quorum_packet(11, 0, struct.pack(">qiq", 77, 1, 0))),
    "a learner has a later configuration": ("quorum", quorum_packet(11, 0, struct.pack(">qiq", 77, 0x10000, 9))),
    "ACKEPOCH is cut off": ("quorum", quorum_packet(11, 0, FOLLOWERINFO) + quorum_packet(18, 0, b"")),
    "a stranger sends a snapshot": ("quorum", quorum_packet(15, 0, b"") + b"\0" * 1000),
    "a learner sends a snapshot": ("quorum", quorum_packet(11, 0, FOLLOWERINFO) + quorum_packet(15, 0, b"")),
}


@pytest.mark.parametrize("what", LENGTHS)
def test_what_cannot_be_read_ends_its_connection_at_once(what: str, unharmed: Member) -> None:
    port, data = LENGTHS[what]
    with connection(ports(unharmed)[port]) as to:
        send(to, data)
        assert has_ended(to)


@pytest.mark.parametrize("port", STREAMS)
def test_one_byte_at_a_time_is_understood_as_all_at_once(port: str, unharmed: Member) -> None:
    with connection(ports(unharmed)[port]) as to:
        to.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for place in range(300):
            if not send(to, STREAMS[port][0][place : place + 1]):
                break
        hang_up(to)


@pytest.mark.parametrize("port", STREAMS)
@pytest.mark.parametrize("said", [b"", b"\0\0"], ids=["nothing", "two bytes"])
def test_hundreds_of_connections_that_say(port: str, said: bytes, unharmed: Member) -> None:
    with ExitStack() as opened:
        held = [opened.enter_context(connection(ports(unharmed)[port])) for _ in range(300)]
        for each_one in held:
            send(each_one, said)
        # Beyond the limits (100 for an address, 64 for unidentified peers) they are closed, so at least these:
        refused = [one for one in held[101:] if has_ended(one)]
        assert len(refused) == len(held) - 101
        if port != "client":
            assert word(unharmed.client_port, "ruok") == "imok"


def test_a_client_that_never_reads_is_not_served_without_end(unharmed: Member) -> None:
    connect, *_ = recorded("client-kazoo", ">")
    ask = framed(struct.pack(">ii", 1, 8) + struct.pack(">i", 1) + b"/" + b"\0")  # getChildren of the root
    with connection(unharmed.client_port, patience=1.0) as to:
        send(to, framed(connect))
        sent = 0
        while sent < 64 * MB and send(to, ask * 5000):
            sent += len(ask) * 5000
        assert sent < 64 * MB, "the server goes on reading from a client that does not read"


def test_a_voter_that_never_reads_its_votes(unharmed: Member) -> None:
    with connection(unharmed.election_port) as to:
        send(to, OPENINGS[1])
        for _ in range(8):
            send(to, framed(recorded("election", ">")[0]) * 1000)
        hang_up(to)
