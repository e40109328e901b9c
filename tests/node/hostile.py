"""Helpers of the hostile tests: arbitrary peers and clients, valid bytes to corrupt, and checks of the servers."""

import random
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from kazoo.client import KazooClient

from harness.ensemble import Ensemble
from harness.processes import wait_until
from tests.node.connecting import client_at

LOOPBACK = "127.0.0.1"
WAIT = 60.0
GOLDEN = Path(__file__).parents[1] / "unit" / "golden" / "wire"
SIGNS_OF_A_DEFECT = ("Traceback", "never retrieved", "defect of this program", "Exception in callback")

Sizes = dict[int, int]


def recorded(name: str, kinds: str) -> list[bytes]:
    """Return the lines of these kinds (their first letter) of a recording."""
    lines = (GOLDEN / f"{name}.hex").read_text().splitlines()
    return [bytes.fromhex(line[2:]) for line in lines if line[0] in kinds]


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def opening(sid: int, address: bytes = b"127.0.0.1:9", protocol: int = -65536, length: int | None = None) -> bytes:
    """Return the opening of an election connection (`QuorumCnxManager.InitialMessage`); `length` may be false."""
    return struct.pack(">qqi", protocol, sid, len(address) if length is None else length) + address


# Connections.


@contextmanager
def connection(port: int, *, patience: float = WAIT) -> Iterator[socket.socket]:
    """A connection to a server's port; every wait on it has a timeout."""
    with socket.create_connection((LOOPBACK, port), timeout=patience) as opened:
        yield opened


def send(to: socket.socket, data: bytes) -> bool:
    try:
        to.sendall(data)
    except OSError:
        return False
    return True


def has_ended(of: socket.socket) -> bool:
    """Whether the server closes this connection; its data is read before. False if it is silent for too long."""
    try:
        while of.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def hang_up(on: socket.socket) -> None:
    """Close a connection from this side, and wait until the server closes it too: then it has handled all data."""
    with suppress(OSError):
        on.shutdown(socket.SHUT_WR)
    assert has_ended(on), "the server keeps a connection whose peer has hung up"


# Corrupted bytes.

NUMBERS = [-(2**63), -(2**31), -2, -1, 0, 1, 7, 2**16, 2**31 - 1, 2**32, 2**63 - 1]
"""Boundary values of integer types."""


def spoiled(stream: bytes, chance: random.Random) -> bytes:
    """Return a stream with one to four errors."""
    data = bytearray(stream)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(max(len(data), 1))
        match chance.randrange(6):
            case 0 if data:
                data[place] = chance.randrange(256)
            case 1:
                data[place:place] = chance.randbytes(chance.randint(1, 40))
            case 2:
                del data[place : place + chance.randint(1, 40)]
            case 3:
                data[place:] = data[place:] + data[place : place + chance.randint(1, 200)]
            case 4:
                data[place : place + 4] = struct.pack(">I", chance.choice(NUMBERS) % 2**32)
            case _:
                data[place : place + 8] = struct.pack(">Q", chance.choice(NUMBERS) % 2**64)
    return bytes(data)


# The state of the servers afterwards.


def resident(ensemble: Ensemble) -> Sizes:
    return {sid: psutil.Process(ensemble.process(sid).pid).memory_info().rss for sid in ensemble.running}


def log_of(ensemble: Ensemble, sid: int) -> str:
    """Return a server's log over all its restarts."""
    return ensemble.process(sid).log.read_text("utf-8", "replace")


def wait_said(ensemble: Ensemble, sid: int, text: str) -> None:
    wait_until(lambda: text in log_of(ensemble, sid), WAIT, f"server {sid} says {text!r}", ensemble.process(sid).log)


def wait_looks(ensemble: Ensemble, sid: int) -> None:
    """Wait until a server stops serving."""
    wait_until(lambda: ensemble.role(sid) is None, WAIT, f"server {sid} serves no more", ensemble.process(sid).log)


@contextmanager
def client(ensemble: Ensemble, *sids: int) -> Iterator[KazooClient]:
    with client_at(ensemble, *sids, timeout=30.0) as opened:
        yield opened


def check_unharmed(ensemble: Ensemble, before: Sizes, growth: int) -> None:
    """Assert that every server runs, logs no defect, has grown by less than `growth`, and serves; and one leads."""
    assert set(before) <= set(ensemble.running), "\n".join(log_of(ensemble, sid)[-2000:] for sid in ensemble.sids)
    for sid in before:
        said = log_of(ensemble, sid)
        found = [sign for sign in SIGNS_OF_A_DEFECT if sign in said]
        assert not found, said[max(0, said.index(found[0]) - 500) :][:4000]
    ensemble.wait_serving(before)
    wait_until(lambda: leads_alone(ensemble), WAIT, "one server leads")
    for sid in before:
        with client(ensemble, sid) as asking:
            path = asking.create("/still-serves-", b"it does", sequence=True)
            assert asking.get(path)[0] == b"it does"
            asking.delete(path)
    after = resident(ensemble)
    grown = {sid: after[sid] - before[sid] for sid in before}
    assert max(grown.values()) < growth, f"grown by {grown} bytes"


def leads_alone(ensemble: Ensemble) -> bool:
    return sum(ensemble.role(sid) in ("leader", "standalone") for sid in ensemble.running) == 1


def each(things: Iterable[bytes], act: Callable[[bytes], None]) -> None:
    """Apply a function to each item; a failure names the item."""
    for thing in things:
        try:
            act(thing)
        except AssertionError as error:
            raise AssertionError(f"{error}, after {thing.hex()[:2000]}") from error
