"""Znodes: the types of a record's fields, the records that describe a znode, and the znode as a server keeps it.

A ZooKeeper record is one frozen struct with field types as annotations, as ZooKeeper's jute names them. They contain
all that a codec needs (the width of an integer, nullability, the elements of a vector), so each record is described
once and no record is encoded by hand.

Rules of this module:

- A vector is a tuple here, so that records are hashable; a null vector and an empty one are the same, `()`.
- A string is never null. A buffer may be null: ZooKeeper distinguishes a znode without data from one with empty data.
- The children of a znode are not part of it. A store keeps them, so that a znode with a million children is replaced as
  cheaply as a leaf.
- `cversion` counts only the creations below a znode. Clients see creations and deletions together; `stat_of` computes
  that value from the number of children.
- `ephemeral_owner` is a session, 0, or a mark. The lowest 64-bit number marks a container. 0xff in the highest byte and
  0 in the two below mark a TTL znode, and the rest is its time to live, in milliseconds.

Source: `zookeeper.jute` (module `org.apache.zookeeper.data`); `BinaryInputArchive`, `BinaryOutputArchive`;
`DataNode.copyStat`, `DataTree.createStat`, `EphemeralType`.
"""

import enum
from typing import Annotated, TypeAlias

import msgspec

Int: TypeAlias = Annotated[int, "int"]
"""32 bits, signed."""
Long: TypeAlias = Annotated[int, "long"]
"""64 bits, signed."""
Boolean: TypeAlias = Annotated[bool, "boolean"]
Ustring: TypeAlias = Annotated[str, "ustring"]
"""UTF-8, preceded by its length in bytes."""
Buffer: TypeAlias = Annotated[bytes | None, "buffer"]
"""Bytes, preceded by their number; None is written as the length -1."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record of `zookeeper.jute`: its fields in the order of the wire, in Python's spelling."""


# The records that describe znodes, on the wire and on disk.


class Id(Record, frozen=True, gc=False):
    """The subject of an ACL entry or an authentication: a scheme (`world`, `auth`, `digest`, `ip`) and an id in it."""

    scheme: Ustring
    id: Ustring


class Acl(Record, frozen=True, gc=False):
    """One entry of an access control list: the permissions of `id`."""

    perms: Int
    id: Id


class Perms(enum.IntFlag):
    """The permissions of an ACL entry (`ZooDefs.Perms`)."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


ANYONE = Id("world", "anyone")
OPEN_ACL_UNSAFE = (Acl(Perms.ALL.value, ANYONE),)
READ_ACL_UNSAFE = (Acl(Perms.READ.value, ANYONE),)


class Stat(Record, frozen=True, gc=False):
    """The metadata of a znode that clients see."""

    czxid: Long
    mzxid: Long
    ctime: Long
    mtime: Long
    version: Int
    cversion: Int
    aversion: Int
    ephemeral_owner: Long
    data_length: Int
    num_children: Int
    pzxid: Long


class ClientInfo(Record, frozen=True, gc=False):
    """One of the identities of a client, in the reply of whoAmI."""

    auth_scheme: Ustring
    user: Ustring


# The znode as a server keeps it, and the kind of znode that its owner field encodes.


CONTAINER_OWNER = -(1 << 63)
"""The owner of a container (`EphemeralType.CONTAINER_EPHEMERAL_OWNER`)."""

_TTL_MARK = -(1 << 56)
MAX_TTL = (1 << 40) - 1
"""The longest time to live, in milliseconds (`EphemeralType.TTL.maxValue`): about 34 years."""


class Znode(msgspec.Struct, frozen=True, gc=False):
    """Data, ACL and counters of a znode; times in milliseconds."""

    data: bytes | None
    acl: tuple[Acl, ...]
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    pzxid: int


class Kind(enum.Enum):
    """The kind of a znode, as its owner field encodes it (`EphemeralType`)."""

    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    CONTAINER = "container"
    TTL = "ttl"


_EPHEMERAL = Kind.EPHEMERAL


def kind_of(owner: int) -> Kind:
    """The kind of znode that has this owner (`EphemeralType.get`)."""
    if owner > 0:
        return _EPHEMERAL  # the id of a session may also be negative
    if owner == 0:
        return Kind.PERSISTENT
    if owner == CONTAINER_OWNER:
        return Kind.CONTAINER
    return Kind.TTL if _TTL_MARK <= owner <= _TTL_MARK + MAX_TTL else Kind.EPHEMERAL


def ttl_owner(ttl: int) -> int:
    """The owner of a znode with this time to live; ValueError if it is out of range (`EphemeralType.TTL`)."""
    if not 0 < ttl <= MAX_TTL:
        raise ValueError(f"a time to live is 1 to {MAX_TTL} ms, not {ttl}")
    return _TTL_MARK + ttl


def ttl_of(owner: int) -> int:
    """The time to live that the owner of a TTL znode encodes, in milliseconds."""
    return owner - _TTL_MARK


def new_znode(data: bytes | None, acl: tuple[Acl, ...], zxid: int, time: int, owner: int) -> Znode:
    """A new znode, created by the transaction `zxid` at `time` (`DataTree.createStat`)."""
    return Znode(data, acl, zxid, zxid, time, time, 0, 0, 0, owner, zxid)


def stat_of(znode: Znode, children: int) -> Stat:
    """The Stat that clients see of a znode with this number of children (`DataNode.copyStat`).

    Every deletion below the znode is a creation without a child left, so creations and deletions together are 2 *
    creations - children. Marks of containers and TTL znodes are hidden (`DataNode.getClientEphemeralOwner`).
    """
    data = znode.data
    owner = znode.ephemeral_owner
    return Stat(
        znode.czxid,
        znode.mzxid,
        znode.ctime,
        znode.mtime,
        znode.version,
        _as_int(znode.cversion * 2 - children),
        znode.aversion,
        owner if owner == 0 or kind_of(owner) is Kind.EPHEMERAL else 0,
        0 if data is None else len(data),
        children,
        znode.pzxid,
    )


def _as_int(number: int) -> int:
    """The number wrapped to 32 bits, as in Java."""
    return number if -(1 << 31) <= number < 1 << 31 else (number + (1 << 31)) % (1 << 32) - (1 << 31)


def as_long(number: int) -> int:
    """The number wrapped to 64 bits, as in Java."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
