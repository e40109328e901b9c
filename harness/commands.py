"""A small language of what clients do, to be carried out the same way on several ensembles.

Rules this module keeps:

- A script is data: a sequence of frozen commands that read well when printed. Who acts is a small number, paths are
  relative to a root znode that each run has for itself, servers are counted from 0.
- A command says which request it is, and nothing about what should come of it.

Source: ZooKeeper Programmer's Guide; `ZooDefs.OpCode`, `CreateMode`, `AddWatchMode`, `Watcher.WatcherType`.
"""

from typing import Any, ClassVar, TypeAlias

import msgspec

AclEntry: TypeAlias = tuple[int, str, str]
Acl: TypeAlias = tuple[AclEntry, ...]
OPEN: Acl = ((31, "world", "anyone"),)

CREATE, CREATE2, CREATE_CONTAINER, CREATE_TTL = 1, 15, 19, 21
PERSISTENT, EPHEMERAL, SEQUENTIAL, EPHEMERAL_SEQUENTIAL, CONTAINER, TTL, TTL_SEQUENTIAL = range(7)


class Command(msgspec.Struct, frozen=True):
    """What session `who` does; a subclass with `opcode` is one request, and its fields are that request's."""

    who: int


class Request(Command, frozen=True):
    """A command that is one request with a path in front: the fields after `who` and `path`, in the wire's order."""

    path: str
    opcode: ClassVar[int]

    def values(self, root: str) -> tuple[Any, ...]:
        """The request's values, the path below `root`."""
        _, path, *rest = msgspec.structs.astuple(self)
        return (root + path, *rest)


class Create(Request, frozen=True):
    """Create a znode by one of the four opcodes for it, whatever the mode (`flags`); `ttl` is sent by one only."""

    data: bytes | None = b""
    acl: Acl | None = OPEN
    flags: int = PERSISTENT
    by: int = CREATE
    ttl: int = 0

    def values(self, root: str) -> tuple[Any, ...]:
        """The request's values, the path below `root`."""
        common = (root + self.path, self.data, self.acl, self.flags)
        return (*common, self.ttl) if self.by == CREATE_TTL else common


class Delete(Request, frozen=True):
    """Delete a znode."""

    version: int = -1
    opcode: ClassVar[int] = 2


class Exists(Request, frozen=True):
    """Ask for a Stat."""

    watch: bool = False
    opcode: ClassVar[int] = 3


class Get(Request, frozen=True):
    """Ask for data and Stat."""

    watch: bool = False
    opcode: ClassVar[int] = 4


class Set(Request, frozen=True):
    """Replace data."""

    data: bytes | None = b"set"
    version: int = -1
    opcode: ClassVar[int] = 5


class GetAcl(Request, frozen=True):
    """Ask for the ACL."""

    opcode: ClassVar[int] = 6


class SetAcl(Request, frozen=True):
    """Replace the ACL."""

    acl: Acl | None = OPEN
    version: int = -1
    opcode: ClassVar[int] = 7


class Children(Request, frozen=True):
    """Ask for the children."""

    watch: bool = False
    opcode: ClassVar[int] = 8


class Children2(Request, frozen=True):
    """Ask for the children and the Stat."""

    watch: bool = False
    opcode: ClassVar[int] = 12


class Sync(Request, frozen=True):
    """Catch up with the leader."""

    opcode: ClassVar[int] = 9


class Check(Request, frozen=True):
    """Check a version; for a multi."""

    version: int = -1
    opcode: ClassVar[int] = 13


class CheckWatches(Request, frozen=True):
    """Ask whether a watch of this type is registered."""

    type: int = 3
    opcode: ClassVar[int] = 17


class RemoveWatches(Request, frozen=True):
    """Remove watches of this type."""

    type: int = 3
    opcode: ClassVar[int] = 18


class Ephemerals(Request, frozen=True):
    """Ask for this session's ephemeral znodes."""

    opcode: ClassVar[int] = 103


class Count(Request, frozen=True):
    """Ask how many znodes there are below."""

    opcode: ClassVar[int] = 104


class AddWatch(Request, frozen=True):
    """Register a persistent (0) or a persistent recursive (1) watch."""

    mode: int = 0
    opcode: ClassVar[int] = 106


class Multi(Command, frozen=True):
    """Several writes at once."""

    parts: tuple[Request, ...]


class MultiRead(Command, frozen=True):
    """Several reads at once."""

    parts: tuple[Request, ...]


class AddAuth(Command, frozen=True):
    """Add an identity to the connection."""

    scheme: str
    auth: bytes


class WhoAmI(Command, frozen=True):
    """Ask for the connection's identities."""


class SetWatches(Command, frozen=True):
    """Register watches again, as of the zxid that was the newest when the connection was last left."""

    data: tuple[str, ...] = ()
    exist: tuple[str, ...] = ()
    child: tuple[str, ...] = ()
    persistent: tuple[str, ...] = ()
    recursive: tuple[str, ...] = ()


class Close(Command, frozen=True):
    """End the session."""


class Drop(Command, frozen=True):
    """Lose the connection; the session lives on."""


class Connect(Command, frozen=True):
    """Attach the session to a server, away from its old connection; a session that has ended begins anew."""

    server: int = 0


class Expire(Command, frozen=True):
    """Lose the connection and let the session expire."""


Script: TypeAlias = tuple[Command, ...]
