"""A znode as a server keeps it, and what the owner of a znode says about its kind.

Rules this module keeps:

- The children of a znode are no part of it: a store keeps them, so that a znode with a million children is replaced
  as cheaply as a leaf.
- `cversion` counts the creations below a znode only. Clients are told creations and deletions together, which
  `stat_of` works out from the number of children.
- `ephemeral_owner` is a session, 0, or a mark: the lowest number of 64 bits says container, 0xff in the highest byte
  and 0 in the two below it say that the rest is a time to live, in milliseconds.

Source: `DataNode.copyStat`, `DataTree.createStat`, `EphemeralType`.
"""

import enum

import msgspec

from spec.tree.data import Acl, Stat

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
    """What a znode's owner says (`EphemeralType`)."""

    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    CONTAINER = "container"
    TTL = "ttl"


def kind_of(owner: int) -> Kind:
    """The kind of znode that has this owner (`EphemeralType.get`)."""
    if owner == 0:
        return Kind.PERSISTENT
    if owner == CONTAINER_OWNER:
        return Kind.CONTAINER
    return Kind.TTL if _TTL_MARK <= owner <= _TTL_MARK + MAX_TTL else Kind.EPHEMERAL


def ttl_owner(ttl: int) -> int:
    """The owner that marks a znode with this time to live; ValueError if it is none (`EphemeralType.TTL`)."""
    if not 0 < ttl <= MAX_TTL:
        raise ValueError(f"a time to live is 1 to {MAX_TTL} ms, not {ttl}")
    return _TTL_MARK + ttl


def ttl_of(owner: int) -> int:
    """The time to live that this owner of a TTL znode stands for, in milliseconds."""
    return owner - _TTL_MARK


def new_znode(data: bytes | None, acl: tuple[Acl, ...], zxid: int, time: int, owner: int) -> Znode:
    """A znode just created by the transaction `zxid` at `time` (`DataTree.createStat`)."""
    return Znode(data, acl, zxid, zxid, time, time, 0, 0, 0, owner, zxid)


def stat_of(znode: Znode, children: int) -> Stat:
    """What clients are told of a znode with so many children (`DataNode.copyStat`).

    Every deletion below it is a creation that no child stands for any more: 2 * creations - children. Marks of
    containers and TTL znodes are not shown (`DataNode.getClientEphemeralOwner`).
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
    """The number in 32 bits, as Java counts."""
    return number if -(1 << 31) <= number < 1 << 31 else (number + (1 << 31)) % (1 << 32) - (1 << 31)
