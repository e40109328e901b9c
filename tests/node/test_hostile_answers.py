"""Requests with answers of variable size, and many connections: the memory, time and descriptors they cost a server.

Expected values: the bounds in docs/explanation-node.md. The answer to a multiRead is at most jute.maxbuffer. Every
other answer is one znode, or names in the tree. A client that does not read gets no further answers.
"""

import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id

from harness.ensemble import Ensemble
from refimpl.jute import encode
from spec.tree.data import Record
from spec.tree.replies import Code
from spec.tree.requests import (
    OPCODE_OF,
    Exists,
    GetAcl,
    GetAllChildrenNumber,
    GetChildren,
    GetChildren2,
    GetData,
    GetEphemerals,
    MultiRead,
    SetWatches,
    WhoAmI,
)
from tests.node.hostile import check_unharmed, client, connection, framed, has_ended, log_of, resident, send, wait_said
from tests.node.patience import LONG_LIMITS

Launch = Callable[..., Ensemble]
MB = 1 << 20
MAX_BUFFER = 0xFFFFF
GROWTH, PEAK = 24 * MB, 64 * MB
"""Limits on the growth of resident memory: at the end of a test, and at any time."""
CONNECT = framed(struct.pack(">iqiqi", 0, 0, 30_000, 0, 16) + bytes(16) + b"\0")
LARGE, WIDE = "/large", "/wide"
DATA, NAMES = 900_000, 4000


@pytest.fixture(scope="module")
def server(launch: Launch) -> Ensemble:
    """A server with a large znode, a znode with 4,000 children with names of 200 letters, and one with a long ACL."""
    ensemble = launch(["node"], tick_time=1000, extra=LONG_LIMITS | {"maxClientCnxns": "0"})
    with client(ensemble) as filling:
        filling.create(LARGE, bytes(DATA))
        filling.create(WIDE)
        users = [ACL(31, Id("digest", f"user-{n}:{n}")) for n in range(5000)]
        filling.create("/acl", acl=[*OPEN_ACL_UNSAFE, *users])
        for first in range(0, NAMES, 200):
            made = [filling.create_async(f"{WIDE}/{n:0200}") for n in range(first, first + 200)]
            assert all(each.get(60) for each in made)
    return ensemble


def packet(xid: int, record: Record) -> bytes:
    return framed(struct.pack(">ii", xid, OPCODE_OF[type(record)]) + encode(record))


@contextmanager
def session(ensemble: Ensemble) -> Iterator[socket.socket]:
    with connection(ensemble.client_port(1)) as opened:
        assert send(opened, CONNECT)
        frame(opened)
        yield opened


def frame(of: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", exactly(of, 4))
    return exactly(of, length)


def exactly(of: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = of.recv(min(size - len(data), 1 << 16))
        assert piece, "the server ended the connection"
        data += piece
    return bytes(data)


def highest(ensemble: Ensemble) -> int:
    """Return the largest resident memory of the server so far, in bytes (VmHWM)."""
    status = Path(f"/proc/{ensemble.process(1).pid}/status").read_text("utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def multi_reads() -> dict[str, MultiRead]:
    """Return requests whose answers would exceed jute.maxbuffer, up to 45 GB."""
    data, children = GetData(LARGE, False), GetChildren(WIDE, False)
    counts = (2, 3, 5, 10, 100, 1000, 2000, 5000, 10_000, 20_000, 50_000)
    table = {f"{count} times the data": MultiRead((data,) * count) for count in counts}
    table |= {f"{count} times the children": MultiRead((children,) * count) for count in counts[:-2]}
    table |= {f"{count} times both": MultiRead((data, children) * count) for count in counts[:-2]}
    table |= {f"{count} errors, then the data": MultiRead((*(GetData("/no", False),) * count, data, data))
              for count in (1, 1000, 30_000)}  # fmt: skip
    return table


def single_reads() -> dict[str, Record]:
    table: dict[str, Record] = {}
    for path in (LARGE, WIDE, "/acl", "/", "/no"):
        table |= {
            f"data of {path}": GetData(path, False),
            f"children of {path}": GetChildren(path, False),
            f"children and Stat of {path}": GetChildren2(path, False),
            f"ACL of {path}": GetAcl(path),
            f"descendants of {path}": GetAllChildrenNumber(path),
            f"Stat of {path}": Exists(path, False),
        }
    return table | {"ephemerals": GetEphemerals("/"), "identities": WhoAmI()}


def test_fifty_requests_of_variable_answer_size(server: Ensemble) -> None:
    """A multiRead beyond its bound is refused, with one line in the log. Other answers are at most one znode."""
    refused, answered = multi_reads(), single_reads()
    assert len(refused) + len(answered) >= 50
    before, peak, said = resident(server), highest(server), log_of(server, 1).count("MultiRead is refused")
    with session(server) as asking:
        for xid, record in enumerate([*refused.values(), *answered.values()], 1):
            assert send(asking, packet(xid, record))
            reply = frame(asking)
            got, _, code = struct.unpack_from(">iqi", reply)
            assert got == xid
            if record in refused.values():
                assert (code, len(reply)) == (Code.MARSHALLING_ERROR, 16)
            else:
                assert code in (Code.OK, Code.NO_NODE)
                assert len(reply) <= MAX_BUFFER
    assert highest(server) - peak < PEAK
    assert log_of(server, 1).count("MultiRead is refused") - said == len(refused)
    check_unharmed(server, before, GROWTH)


@pytest.mark.parametrize(
    "record", [GetData(LARGE, False), GetChildren2(WIDE, False), MultiRead((GetData(LARGE, False),))]
)
def test_a_thousand_large_answers_that_nobody_reads(server: Ensemble, record: Record) -> None:
    before, peak = resident(server), highest(server)
    with ExitStack() as opened:
        for asking in [opened.enter_context(session(server)) for _ in range(5)]:
            assert send(asking, b"".join(packet(xid, record) for xid in range(1, 201)))
        with client(server) as other:
            assert len(other.get(LARGE)[0]) == DATA
        assert highest(server) - peak < PEAK
    check_unharmed(server, before, GROWTH)


def test_large_setWatches_let_others_be_served(server: Ensemble) -> None:  # noqa: N802 - a request of ZooKeeper
    paths = tuple(f"/{n:06}" for n in range(90_000))
    before = log_of(server, 1).count("\n")
    with session(server) as asking:
        assert send(asking, b"".join(packet(xid, SetWatches(0, (), paths, ())) for xid in range(1, 16)))
        with client(server) as other:
            assert other.exists(LARGE)
        assert [struct.unpack_from(">i", frame(asking))[0] for _ in range(15)] == list(range(1, 16))
    assert log_of(server, 1).count("\n") == before


def test_a_frame_beyond_the_limit_is_refused_with_one_line(server: Ensemble) -> None:
    said = log_of(server, 1).count("bad frame")
    with session(server) as asking:
        assert send(asking, struct.pack(">i", MAX_BUFFER + 1) + bytes(1000))
        assert has_ended(asking)
    assert log_of(server, 1).count("bad frame") == said + 1


def test_lines_about_refused_clients_are_limited(server: Ensemble) -> None:
    """300 clients send a bad frame, within 20 seconds: at most 100 lines are logged in each ten."""
    said = log_of(server, 1).count("bad frame")
    for _ in range(300):
        with connection(server.client_port(1)) as to:
            send(to, struct.pack(">i", -1))
            assert has_ended(to)
    assert 1 <= log_of(server, 1).count("bad frame") - said <= 200


@contextmanager
def few_descriptors(directory: Path, uvloop: bool = True) -> Iterator[Ensemble]:
    """A server with 256 descriptors, which begins a log file and a snapshot every hundred transactions.

    Without uvloop the server runs asyncio's event loop.
    """
    extra = LONG_LIMITS | {"maxClientCnxns": "0", "snapCount": "100"}
    ensemble = Ensemble(["node"], directory, tick_time=1000, extra=extra)
    ensemble.process(1).command[:0] = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh"]
    if not uvloop:
        (directory / "uvloop.py").write_text("raise ImportError")
        paths = ensemble.process(1).environment
        paths["PYTHONPATH"] = f"{directory}:{paths['PYTHONPATH']}"
    try:
        ensemble.start_all()
        yield ensemble
        ensemble.process(1).stop()
        assert "stopping: SIGTERM" in log_of(ensemble, 1)
    finally:
        ensemble.shut_down()


def check_writes_its_disk(ensemble: Ensemble, writing: KazooClient, znodes: int) -> None:
    """Assert that the server creates znodes, writes log files and snapshots, and keeps running."""
    for n in range(znodes):
        writing.create(f"/n{n}", b"x")
    assert ensemble.running == (1,)
    assert len(list(ensemble.data(1).rglob("snapshot.*"))) > 1
    assert len(writing.get_children("/")) == znodes + 1


def test_connections_are_refused_before_descriptors_run_out(tmp_path: Path) -> None:
    """A server with 256 descriptors writes log files and snapshots while a stranger opens 400 connections."""
    with few_descriptors(tmp_path) as ensemble:
        with client(ensemble) as writing, ExitStack() as opened:
            for _ in range(400):
                opened.enter_context(connection(ensemble.client_port(1)))
            check_writes_its_disk(ensemble, writing, 500)
            assert psutil.Process(ensemble.process(1).pid).num_fds() < 200
            assert "file descriptors" in log_of(ensemble, 1)
        with client(ensemble) as after:
            assert len(after.get_children("/")) == 501


@pytest.mark.parametrize(
    ("port", "refusal"),
    [
        ("client_port", "is refused: the file descriptors"),
        ("quorum_port", "others have not said who they are"),
        ("election_port", "others have not said who they are"),
    ],
)
def test_bursts_of_connections_leave_descriptors_for_the_disk(tmp_path: Path, port: str, refusal: str) -> None:
    """A server with 256 descriptors writes its disk while a stranger opens 300 connections at a time.

    In one turn, an asyncio server accepts as many connections as its backlog; a uvloop server accepts a single one.
    """
    with few_descriptors(tmp_path, uvloop=False) as ensemble, client(ensemble) as writing:
        with bursts(getattr(ensemble.member(1), port)):
            wait_said(ensemble, 1, refusal)
            check_writes_its_disk(ensemble, writing, 250)
        said = log_of(ensemble, 1)
        assert "no connection is accepted" not in said
        assert "out of system resource" not in said


BURST = """
import select, socket, sys
before = []
while True:
    begun = [socket.socket() for _ in range(150)]
    refused = select.poll()
    for each in begun:
        each.setblocking(False)
        each.connect_ex(("127.0.0.1", int(sys.argv[1])))
        refused.register(each, select.POLLIN)
    refused.poll(2000)
    for each in before:
        each.close()
    before = begun
"""


@contextmanager
def bursts(port: int) -> Iterator[None]:
    """Two processes open 150 connections at a time, and close them once the server has refused one of the next 150."""
    strangers = [subprocess.Popen([sys.executable, "-c", BURST, str(port)]) for _ in range(2)]
    try:
        yield
    finally:
        for stranger in strangers:
            stranger.kill()
            stranger.wait()
