"""The record of a run: its entries in the order in which the parent process saw them, and its file format.

Rules of this module:

- All times are the parent's monotonic clock. A report of a client is entered when it arrives, and a report that a
  client sends before an action arrives before any other effect of that action.
- A client is `worker/number`; a worker that was killed and replaced has another name.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import msgspec


class Entry(msgspec.Struct, frozen=True, tag=True):
    """An event at a time."""

    at: float


class Waits(Entry, frozen=True):
    """A client wants to hold; `last`: this is its last turn, and it does not give up."""

    client: str
    resource: str
    last: bool = False


class GaveUp(Entry, frozen=True):
    """The client has given up waiting."""

    client: str


class Held(Entry, frozen=True):
    """The recipe reported to the client that it holds, with this token."""

    client: str
    resource: str
    token: int


class Released(Entry, frozen=True):
    """The client is done, and has given back the resource, or has lost it before."""

    client: str


class Rests(Entry, frozen=True):
    """The client has had its last turn, and waits no longer; its session stays open."""

    client: str


class Failed(Entry, frozen=True):
    """A client raised an unexpected exception."""

    client: str
    error: str


class Opened(Entry, frozen=True):
    """The client is connected, with this session."""

    client: str
    session: int


class Ended(Entry, frozen=True):
    """The client was notified that this session has ended."""

    client: str
    session: int


class Write(Entry, frozen=True):
    """A write has reached the guarded resource."""

    client: str
    resource: str
    token: int
    accepted: bool


class Fault(Entry, frozen=True):
    """A fault and its victim."""

    name: str
    victim: str


class Killed(Entry, frozen=True):
    """These clients were killed."""

    clients: tuple[str, ...]


class Disturbed(Entry, frozen=True):
    """A server was away from this time until `until`: sessions may live longer, and waits take longer."""

    until: float


class Calm(Entry, frozen=True):
    """No faults after this time, and all servers serve."""


class Place(msgspec.Struct, frozen=True):
    """A znode in a queue."""

    name: str
    owner: int
    czxid: int


class Sample(Entry, frozen=True):
    """The contents of a queue, read after a sync that was requested at this time; `alive` are the leader's sessions."""

    resource: str
    places: tuple[Place, ...]
    alive: tuple[int, ...] | None = None


class Emptied(Entry, frozen=True):
    """The last sample of a queue, when all clients rest: its contents, and the time since all clients rest."""

    resource: str
    left: tuple[Place, ...]
    since: float


Any: TypeAlias = (
    Waits
    | GaveUp
    | Held
    | Released
    | Rests
    | Failed
    | Opened
    | Ended
    | Write
    | Fault
    | Killed
    | Disturbed
    | Calm
    | Sample
    | Emptied
)


def save(file: Path, entries: Iterable[Entry]) -> None:
    file.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))


def load(file: Path) -> list[Entry]:
    return [msgspec.json.decode(line, type=Any) for line in file.read_bytes().splitlines()]
