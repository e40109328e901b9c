"""The parent's end of all clients: it records their reports, and is the resource that they guard.

Rules of this module:

- One event loop, so that all reports have one order, which is the order of the record.
- The resource accepts a write iff its token is not below the greatest that it has accepted. It uses nothing else.
- A report of a client is a line of JSON; only a write is answered, by a line that says whether it was accepted.
"""

import asyncio
import time
from collections import defaultdict

import msgspec

from harness.processes import LOOPBACK
from tests.node.recipes_chaos import record
from tests.node.recipes_chaos.record import Entry


class Guard:
    """The guarded resources, by name; without `fences` they accept every write."""

    def __init__(self, *, fences: bool = True) -> None:
        self._fences = fences
        self._greatest: defaultdict[str, int] = defaultdict(int)

    def take(self, resource: str, token: int) -> bool:
        """Whether a write with this token is accepted."""
        if self._fences and token < self._greatest[resource]:
            return False
        self._greatest[resource] = token
        return True


class Said(msgspec.Struct, frozen=True):
    """A client's line: its kind, and its values."""

    what: str
    client: str
    resource: str = ""
    token: int = 0
    session: int = 0
    error: str = ""
    last: bool = False


class Hub:
    """Listens at `port` after `open`; `entries` is the record."""

    def __init__(self, guard: Guard) -> None:
        self.entries: list[Entry] = []
        self.guard = guard
        self.holders: dict[str, str] = {}
        """The resource of each client that holds it and has not released it."""
        self.resting: set[str] = set()
        self.connected: set[str] = set()
        """Clients that have had a session."""
        self.port = 0
        self._server: asyncio.Server | None = None
        self._decoder = msgspec.json.Decoder(Said)

    async def open(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def note(self, entry: Entry) -> None:
        self.entries.append(entry)

    def forget(self, clients: tuple[str, ...]) -> None:
        """Record that these clients were killed."""
        self.note(record.Killed(time.monotonic(), clients))
        for client in clients:
            self.holders.pop(client, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                said = self._decoder.decode(line)
                if said.what == "write":
                    taken = self.guard.take(said.resource, said.token)
                    self.note(record.Write(time.monotonic(), said.client, said.resource, said.token, taken))
                    writer.write(b"taken\n" if taken else b"refused\n")
                else:
                    self._heard(said)
        except (ConnectionError, msgspec.DecodeError):
            pass  # killed in the middle of a line
        finally:
            writer.close()

    def _heard(self, said: Said) -> None:
        now, client = time.monotonic(), said.client
        match said.what:
            case "waits":
                self.note(record.Waits(now, client, said.resource, said.last))
            case "gave up":
                self.note(record.GaveUp(now, client))
            case "holds":
                self.holders[client] = said.resource
                self.note(record.Held(now, client, said.resource, said.token))
            case "released":
                self.holders.pop(client, None)
                self.note(record.Released(now, client))
            case "rests":
                self.resting.add(client)
                self.note(record.Rests(now, client))
            case "opened":
                self.connected.add(client)
                self.note(record.Opened(now, client, said.session))
            case "ended":
                self.note(record.Ended(now, client, said.session))
            case "failed":
                self.note(record.Failed(now, client, said.error))
            case _:
                self.note(record.Failed(now, client, f"said {said.what!r}, which nobody understands"))
