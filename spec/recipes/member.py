"""A client's knowledge of its part in a recipe with one holder, as a value.

The steps are in `spec.recipes.contest`, `spec.recipes.queue` and `spec.recipes.unfair`. Rules of this module:

- `holds` is belief: the client's answer if it were asked now. Only the servers know the truth.
- A place without a znode has no path, no token and no watch, so that each meaning has exactly one value.
"""

import enum

import msgspec

from spec.variants import Variant


class MemberPhase(enum.Enum):
    """The phase of a client; most phases wait for the reply to one request."""

    OUT = "out"  # has no znode, and waits for nothing
    ENTERING = "entering"  # asked to create its znode
    SYNCING = "syncing"  # asked its server to catch up, before it searches for its znode
    SEARCHING = "searching"  # asked for the children, to find its znode
    CLAIMING = "claiming"  # found its znode, and asked for its Stat
    LOOKING = "looking"  # asked for the children, to find its predecessor
    WATCHING = "watching"  # asked for the predecessor, with a watch
    ASKING = "asking"  # asked for the leader's announcement, before it waits
    WAITING = "waiting"  # until the watch fires
    ANNOUNCING = "announcing"  # is first, and asked to create the announcement
    DEFERRING = "deferring"  # asked for the announcement that already exists, with a watch
    HOLDING = "holding"
    RETRACTING = "retracting"  # asked to delete its announcement
    LEAVING = "leaving"  # asked to delete its znode
    READING = "reading"  # asked for the owner of the contested znode, with a watch (unfair election)
    CHECKING = "checking"  # the reply to its deletion was lost: asked for the owner of the znode (unfair election)


class Link(enum.Enum):
    """The client's knowledge of its connection."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


class QueueRules(msgspec.Struct, frozen=True):
    """The differences between recipes that queue.

    `resets`: a place that held when the connection was lost queues again after the reconnect (LeaderLatch); otherwise
    it checks that it still holds. `returns`: a place that held and lost its znode queues again; otherwise it is out,
    because a client must learn that its lock was lost. `announces`: the path of the znode that a leader creates to
    announce itself.
    """

    root: str
    word: str = "n_"
    data: bytes = b""
    resets: bool = False
    returns: bool = True
    announces: str | None = None
    variants: frozenset[Variant] = frozenset()


class Member(msgspec.Struct, frozen=True):
    """A client's part. `token` is the czxid of its znode, `holds` is its belief.

    `wanted`: it takes part. `lost`: the reply that its phase waits for will not arrive. `notified`: its watch has fired
    before that reply. `released`: it gave up what it held, and its znode has to be deleted before it takes part again.
    """

    phase: MemberPhase = MemberPhase.OUT
    link: Link = Link.CONNECTED
    wanted: bool = False
    lost: bool = False
    notified: bool = False
    holds: bool = False
    released: bool = False
    id: str = ""
    token: int | None = None

    @property
    def stays(self) -> bool:
        """Whether it wants to keep its znode."""
        return self.wanted and not self.released


class QueueMember(Member, frozen=True):
    """A client's part in a queue.

    `path` belongs to its znode, `behind` is the path that it watches, `held` whether it ever held since it was wanted,
    and `announced` whether its announcement may exist.
    """

    held: bool = False
    announced: bool = False
    path: str | None = None
    behind: str | None = None
