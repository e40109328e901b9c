"""A generator of hostile requests for each of the five ports of a server, with requests and answers of every size.

A seed decides everything. Sizes have all orders of magnitude. A request is a whole connection: its
bytes, and whether their sender reads the answers. None of them is a member's: ids of configured servers are not used.
"""

import random
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from refimpl.wire.packet import PacketType
from tests.node.hostile import framed, opening, spoiled

BIG, MANY = "/big", "/many"
"""Paths that the servers must have: a znode with much data, and one with many children."""
PORTS = ("client", "election", "quorum", "admin", "metrics")
INTRODUCTIONS = (PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO)
COMMANDS = ("watches_by_path", "connections", "monitor", "stats", "dump", "system_properties", "nothing", "ruok")
ESCAPES = "\x1b[2J\x1b]0;x\x07\r\n2026-01-01 00:00:00,000 ERROR   quorate.node: forged\u202e".encode()


class HostileRequest(NamedTuple):
    """The bytes of one connection, and whether their sender reads what the server answers."""

    data: bytes
    reads: bool


def hostile_requests(port: str, seed: int, count: int) -> Iterator[HostileRequest]:
    """Yield so many requests for a port; the same for the same seed."""
    chance = random.Random(f"{port} {seed}")
    for _ in range(count):
        data = _KINDS[port](chance)
        if chance.random() < 0.2:
            data = spoiled(data, chance)
        yield HostileRequest(data, chance.random() < 0.5)


def size(chance: random.Random, most: int) -> int:
    return int(most ** chance.random() ** 0.5)


def text(chance: random.Random, length: int) -> bytes:
    """Return so many bytes of noise, of escape sequences, or of lines like those of a configuration."""
    unit = chance.choice((chance.randbytes(64), ESCAPES, b"server.%d=h:1:2;3\n", b"version=ffff\n", b"[[[[", b"\xff"))
    return (unit * (length // len(unit) + 1))[:length]


def client(chance: random.Random) -> bytes:
    """Return a session whose requests have large answers, leave watches, or are noise."""
    session = framed(struct.pack(">iqiqi16s?", 0, 0, 30_000, 0, 16, b"", False))
    match chance.randrange(6):
        case 0:
            return text(chance, size(chance, 1 << 20))
        case 1:
            return framed(struct.pack(">iqiqi", 0, -1, 1, 7, size(chance, 1 << 30)) + text(chance, 100))
        case 2:
            return session + b"".join(_path(4, BIG, 0) for _ in range(size(chance, 300)))
        case 3:
            return session + b"".join(_path(chance.choice((8, 12)), MANY, 1) for _ in range(size(chance, 300)))
        case 4:
            return session + b"".join(_path(3, f"/{'w' * size(chance, 2000)}{each}", 1) for each in range(50))
        case _:
            body = struct.pack(">ii", 1, chance.choice((1, 5, 14, 22, 100, 101, 102, 105, 999)))
            return session + framed(body + text(chance, size(chance, 1 << 20)))


def _path(opcode: int, path: str, watch: int) -> bytes:
    name = path.encode()
    return framed(struct.pack(">iii", 1, opcode, len(name)) + name + bytes([watch]))


def election(chance: random.Random) -> bytes:
    """Return an opening in the name of a stranger, and votes with configurations of every size."""
    address = chance.choice((b"127.0.0.1:9", b"|".join([b"127.0.0.1:9"] * size(chance, 150)), text(chance, 200)))
    start = opening(chance.choice((99, 1 << 40, -size(chance, 1 << 40))), address)
    votes = b""
    for _ in range(size(chance, 40)):
        content = text(chance, size(chance, 1 << 18))
        votes += framed(
            struct.pack(">iqqqqii", chance.randrange(-1, 5), 99, 1, chance.randrange(1 << 40), 1, 2, len(content))
            + content
        )
        if len(votes) > 1 << 20:
            break
    return start + votes


def quorum(chance: random.Random) -> bytes:
    """Return packets of every type and size, half of them behind an introduction."""
    data = b""
    if chance.random() < 0.5:
        info = struct.pack(">qiq", 1000 + size(chance, 1 << 40), 0x10000, 0)
        data = _packet(chance.choice(INTRODUCTIONS), info) + _packet(PacketType.ACKEPOCH, struct.pack(">i", 0))
    for _ in range(size(chance, 200)):
        data += _packet(chance.choice(tuple(PacketType)), text(chance, size(chance, 1 << 20)))
        if len(data) > 1 << 20:
            break
    return data


def _packet(kind: int, data: bytes) -> bytes:
    return struct.pack(">iqi", kind, 0, len(data)) + data + struct.pack(">i", -1)


def http(chance: random.Random, path: str) -> bytes:
    """Return requests in a row, with headers and targets of every size."""
    match chance.randrange(4):
        case 0:
            return text(chance, size(chance, 1 << 20))
        case 1:
            target = chance.choice((b"http://[", b"/%ff" * size(chance, 4000), b"/?" + b"a=b&" * size(chance, 4000)))
            return b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        case 2:
            headers = b"".join(b"X%d: y\r\n" % each for each in range(size(chance, 20_000)))
            return b"GET / HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n"
        case _:
            one = f"GET {path} HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n".encode()
            return one * size(chance, 20_000)


def admin(chance: random.Random) -> bytes:
    return http(chance, f"/commands/{chance.choice(COMMANDS)}")


def metrics(chance: random.Random) -> bytes:
    return http(chance, "/metrics")


_KINDS: dict[str, Callable[[random.Random], bytes]] = {
    "client": client,
    "election": election,
    "quorum": quorum,
    "admin": admin,
    "metrics": metrics,
}
