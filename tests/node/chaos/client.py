"""A session on asyncio that hides no error: one request at a time, no retries, and every answer with its zxid.

Rules of this module:

- Every cause of a missing answer (a closed connection, a timeout, a refused attachment) is a `NoAnswerError`, and the
  connection is closed with it. The outcome of the request is then unknown.
- A cancellation while a request waits also closes the connection: otherwise its answer would be taken for the answer to
  the next request.
- A session sends the newest zxid that it has seen when it is attached again, so a server that is behind refuses it.

Source: `ClientCnxn.SendThread`.
"""

import asyncio
import struct
from typing import Any

from harness.layouts import read, read_answer, write, write_request
from harness.processes import LOOPBACK
from harness.session import CLOSE_SESSION, REPLY, Answer


class NoAnswerError(Exception):
    """The answer did not arrive, and will not."""


class Session:
    """One session, attached to one server at a time."""

    def __init__(self, timeout: int, patience: float) -> None:
        self.timeout = timeout
        self.patience = patience
        self.session_id = 0
        self.last_zxid = 0
        self._password = bytes(16)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._xid = 0

    @property
    def attached(self) -> bool:
        """Whether there is a connection that has not been found broken."""
        return self._streams is not None

    async def attach(self, port: int) -> None:
        """Open the session, or move it to the server of this client port; a new one if it has expired."""
        self.drop()
        try:
            self._streams = await asyncio.wait_for(asyncio.open_connection(LOOPBACK, port), self.patience)
        except (OSError, TimeoutError) as error:
            raise NoAnswerError("no connection") from error
        opening = write("ililbt", (0, self.last_zxid, self.timeout, self.session_id, self._password, False))
        (_, timeout, session_id, password), _ = read("iilb", await self._exchange(opening))
        if timeout == 0:
            self.session_id, self.last_zxid, self._password = 0, 0, bytes(16)
            self.drop()
            raise NoAnswerError("the session has expired")
        self.session_id, self._password = session_id, password

    async def ask(self, opcode: int, *values: Any) -> Answer:
        """Send a request, and wait for its answer. Raises NoAnswerError."""
        self._xid += 1
        frame = await self._exchange(struct.pack("!ii", self._xid, opcode) + write_request(opcode, values))
        xid, zxid, err = REPLY.unpack_from(frame)
        if xid != self._xid:
            self.drop()
            raise AssertionError(f"an answer to request {xid} came where that to {self._xid} was due")
        self.last_zxid = max(self.last_zxid, zxid)
        return Answer(err, zxid, () if err else read_answer(opcode, frame[REPLY.size :]))

    async def close(self) -> None:
        """End the session, if it is attached, and the connection."""
        try:
            await self.ask(CLOSE_SESSION)
        except NoAnswerError:
            pass
        finally:
            self.drop()

    def drop(self) -> None:
        """Close the connection; the session ends by its timeout."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _exchange(self, body: bytes) -> bytes:
        if self._streams is None:
            raise NoAnswerError("not attached")
        reader, writer = self._streams
        try:
            writer.write(struct.pack("!i", len(body)) + body)
            return await asyncio.wait_for(_frame(reader), self.patience)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.drop()
            raise NoAnswerError(str(error)) from error
        except asyncio.CancelledError:
            self.drop()
            raise


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack("!i", await reader.readexactly(4))
    return await reader.readexactly(length)
