"""A place in a queue of ephemeral sequential znodes, as a value: what a client knows of its part.

The steps are in `spec.recipes.queue`. Rules of this module:

- `holds` is belief: what the client would say if it were asked now. What is true is known to the servers alone.
- Whoever has no znode has no path, no token, and nothing that it watches: one meaning, one value.
"""

import enum

import msgspec

from spec.variants import Variant


class Phase(enum.Enum):
    """What a client is at; most phases wait for the answer to one request."""

    OUT = "out"  # has no znode, and waits for nothing
    ENTERING = "entering"  # asked for its znode
    SYNCING = "syncing"  # asked its server to catch up, to look for its znode then
    SEARCHING = "searching"  # asked for the children, to look for its znode
    CLAIMING = "claiming"  # found its znode, and asked for its Stat
    LOOKING = "looking"  # asked for the children, to see who is before it
    WATCHING = "watching"  # asked for the predecessor, with a watch
    ASKING = "asking"  # asked who leads, before it waits
    WAITING = "waiting"  # until the watch fires
    ANNOUNCING = "announcing"  # is first, and asked for the announcement
    DEFERRING = "deferring"  # asked whose the announcement is that was there, with a watch
    HOLDING = "holding"
    RETRACTING = "retracting"  # asked for the deletion of its announcement
    LEAVING = "leaving"  # asked for the deletion of its znode


class Link(enum.Enum):
    """What the client knows of its connection."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


class Rules(msgspec.Struct, frozen=True):
    """What differs between recipes that queue.

    `resets`: whoever held when the connection was lost queues anew when it is back (LeaderLatch); else it looks
    whether it still holds. `returns`: whoever held and lost its znode queues anew; else it is out, as one who has
    lost a lock must be told. `announces`: the path of the announcement by which a leader says that it knows.
    """

    root: str
    word: str = "n_"
    data: bytes = b""
    resets: bool = False
    returns: bool = True
    announces: str | None = None
    variants: frozenset[Variant] = frozenset()


class Place(msgspec.Struct, frozen=True):
    """A client's part in the queue.

    `wanted`: it takes part. `lost`: the answer that its phase waits for will not come. `path` and `token` are those
    of its znode, `behind` is what it watches, `holds` is what it believes, `held` whether it ever did since it was
    wanted, and `announced` whether its announcement may be there. `released`: what it held was given up, and is to go
    before it queues again.
    """

    phase: Phase = Phase.OUT
    link: Link = Link.CONNECTED
    wanted: bool = False
    lost: bool = False
    notified: bool = False
    holds: bool = False
    held: bool = False
    announced: bool = False
    released: bool = False
    id: str = ""
    path: str | None = None
    token: int | None = None
    behind: str | None = None

    @property
    def stays(self) -> bool:
        """Whether it wants to keep its znode."""
        return self.wanted and not self.released
