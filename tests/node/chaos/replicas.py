"""The contents of a server, read through its client port: every znode with its value and its Stat."""

import asyncio
import time

from checker.histories import FinalZnodes, Leaf
from harness.layouts import Stat
from tests.node.chaos.client import NoAnswerError, Session

GET, SYNC, GET_CHILDREN = 4, 9, 8
SECONDS = 20.0
RETRY = 0.05


async def attached(port: int, seconds: float = SECONDS) -> Session:
    """Return a new session at this client port, as soon as its server accepts one. Raises NoAnswerError."""
    deadline = time.monotonic() + seconds
    while True:
        session = Session(4000, 5.0)
        try:
            await session.attach(port)
        except NoAnswerError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(RETRY)
        else:
            return session


async def replica(sid: int, port: int, seconds: float = SECONDS) -> FinalZnodes:
    """Return all znodes of a server after a sync; read again if the connection ends meanwhile. Raises NoAnswerError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return FinalZnodes(sid, await _znodes(port))
        except NoAnswerError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(RETRY)


async def _znodes(port: int) -> dict[str, Leaf]:
    session = await attached(port)
    try:
        await session.ask(SYNC, "/")
        znodes: dict[str, Leaf] = {}
        waiting = ["/"]
        while waiting:
            path = waiting.pop()
            data, stat = (await session.ask(GET, path, False)).values
            value = None if data is None else data.decode("utf-8", "backslashreplace")
            znodes[path] = Leaf(value, dict(zip(Stat._fields, stat, strict=True)))
            if znodes[path].stat["num_children"]:
                (names,) = (await session.ask(GET_CHILDREN, path, False)).values
                waiting += [f"{path.rstrip('/')}/{name}" for name in names]
        return znodes
    finally:
        await session.close()
