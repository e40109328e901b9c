"""A small language of client commands, for the execution of one script on several ensembles.

Rules of this module:

- A script is data: a sequence of frozen commands that read well when printed. The session of a command is a small
  number, paths are relative to a root znode that each run creates for itself, servers are counted from 0.
- A command describes a request, and says nothing about the expected outcome.

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
    """A command of the session `who`. A subclass with `opcode` is one request, and its other fields are its values."""

    who: int


class Request(Command, frozen=True):
    """A command that is one request with a path first. The fields after `who` and `path` are in wire order."""

    path: str
    opcode: ClassVar[int]

    def values(self, root: str) -> tuple[Any, ...]:
        """The values of the request, with the path below `root`."""
        _, path, *rest = msgspec.structs.astuple(self)
        return (root + path, *rest)


class Create(Request, frozen=True):
    """Create a znode by one of its four opcodes, with any mode (`flags`); only CREATE_TTL sends `ttl`."""

    data: bytes | None = b""
    acl: Acl | None = OPEN
    flags: int = PERSISTENT
    by: int = CREATE
    ttl: int = 0

    def values(self, root: str) -> tuple[Any, ...]:
        """The values of the request, with the path below `root`."""
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
    """Wait until the server has caught up with the leader."""

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
    """Count the znodes below the path."""

    opcode: ClassVar[int] = 104


class AddWatch(Request, frozen=True):
    """Register a persistent (0) or a persistent recursive (1) watch."""

    mode: int = 0
    opcode: ClassVar[int] = 106


class Multi(Command, frozen=True):
    """Several writes in one atomic request."""

    parts: tuple[Request, ...]


class MultiRead(Command, frozen=True):
    """Several reads in one request."""

    parts: tuple[Request, ...]


class AddAuth(Command, frozen=True):
    """Add an identity to the connection."""

    scheme: str
    auth: bytes


class WhoAmI(Command, frozen=True):
    """Ask for the connection's identities."""


class Gone(Command, frozen=True):
    """Wait until a znode does not exist, for at most so many seconds; the record tells whether it has gone."""

    path: str
    seconds: float


class Raw(Command, frozen=True):
    """A request with a body of bytes; of the answer the error and the length of the body are recorded."""

    opcode: int
    body: bytes = b""


class WrongPassword(Command, frozen=True):
    """Replace the session's password by a wrong one, which the next Connect sends."""


class SetWatches(Command, frozen=True):
    """Register watches again, as of the newest zxid when the last connection was dropped.

    `by` is the opcode: setWatches2 (105), or setWatches (101), which sends no persistent watches.
    """

    data: tuple[str, ...] = ()
    exist: tuple[str, ...] = ()
    child: tuple[str, ...] = ()
    persistent: tuple[str, ...] = ()
    recursive: tuple[str, ...] = ()
    by: int = 105


class Limit(Command, frozen=True):
    """Set a quota, as `setquota` of zkCli.sh does: the limits are text, the use is an empty count.

    The outcome has the errors of the two creates; the znodes above them are made first, whether they exist or not.
    """

    path: str
    limits: bytes


class Use(Command, frozen=True):
    """Ask for the use of a quota: the error, and the text that the server keeps."""

    path: str


class Close(Command, frozen=True):
    """End the session."""


class Drop(Command, frozen=True):
    """Lose the connection; the session stays open."""


class Connect(Command, frozen=True):
    """Attach the session to a server and drop its old connection; a session that has ended is replaced by a new one."""

    server: int = 0


class Expire(Command, frozen=True):
    """Lose the connection and let the session expire."""


Script: TypeAlias = tuple[Command, ...]
