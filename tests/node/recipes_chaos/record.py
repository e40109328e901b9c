"""What is written down of a run, one entry after the other as the parent process saw them, and how it is saved.

Rules of this module:

- All times are the parent's monotonic clock. A client's word is entered when it arrives, and what a client says before
  it does something arrives before that can be seen anywhere else.
- A client is `worker/number`; a worker that was killed and replaced has another name.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import msgspec


class Entry(msgspec.Struct, frozen=True, tag=True):
    """Something that happened at a time."""

    at: float


class Waits(Entry, frozen=True):
    """A client wants to hold; `last`: it will do so once more and no further, and does not give up."""

    client: str
    resource: str
    last: bool = False


class GaveUp(Entry, frozen=True):
    """It waits no more."""

    client: str


class Held(Entry, frozen=True):
    """It was told that it holds, with this token."""

    client: str
    resource: str
    token: int


class Released(Entry, frozen=True):
    """It is done, and has given back what it held, or has lost it before."""

    client: str


class Rests(Entry, frozen=True):
    """It has had its last turn, and wants nothing any more; its session goes on."""

    client: str


class Failed(Entry, frozen=True):
    """Something was raised in a client that should not have been."""

    client: str
    error: str


class Opened(Entry, frozen=True):
    """It is connected, with this session."""

    client: str
    session: int


class Ended(Entry, frozen=True):
    """It was told that this session is no more."""

    client: str
    session: int


class Write(Entry, frozen=True):
    """A write has reached the guarded resource."""

    client: str
    resource: str
    token: int
    accepted: bool


class Fault(Entry, frozen=True):
    """What was done, and to whom."""

    name: str
    victim: str


class Killed(Entry, frozen=True):
    """These clients are no more."""

    clients: tuple[str, ...]


class Disturbed(Entry, frozen=True):
    """From here on a server was away, until `until`: sessions may live longer, and waits last."""

    until: float


class Calm(Entry, frozen=True):
    """No faults from here on, and all servers serve."""


class Place(msgspec.Struct, frozen=True):
    """A znode in a queue."""

    name: str
    owner: int
    czxid: int


class Sample(Entry, frozen=True):
    """What was in a queue, read after a sync that was asked for at this time; `alive` are the leader's sessions."""

    resource: str
    places: tuple[Place, ...]
    alive: tuple[int, ...] | None = None


class Emptied(Entry, frozen=True):
    """The last look at a queue, when everybody rests: what is left in it, and since when nobody wants anything."""

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
    """Write them as lines of JSON."""
    file.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))


def load(file: Path) -> list[Entry]:
    """Read them again."""
    return [msgspec.json.decode(line, type=Any) for line in file.read_bytes().splitlines()]
