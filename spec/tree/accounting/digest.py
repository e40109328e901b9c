"""The digest of a tree: a number that two servers share if and only if, very probably, their znodes are the same.

A leader writes it into each transaction, and every server compares it with the digest of its tree.

Rules of this module:

- The digest of a tree is the sum of those of its znodes, with 64 bits. So a change costs only the znodes it touches.
- The znodes below `/zookeeper` have none, because servers write some of them locally.
- ACLs and children have no part in it, except by their counts.

Source: `DigestCalculator.calculateDigest` (version 2), `AdHash`, `NodeHashMapImpl`, `DataTree.compareDigest`.
"""

import struct
from collections.abc import Iterable
from zlib import crc32

from spec.tree.data import Znode, as_long
from spec.tree.paths import ROOT
from spec.tree.store import Operation, Put, Remove, Store

VERSION = 2
"""The version of this calculation; digests of another version are not compared."""
_NONE_BELOW = "/zookeeper/"
_STAT = struct.Struct(">qqqqqiiiq")


def znode_digest(path: str, znode: Znode) -> int:
    """The digest of one znode."""
    if path.startswith(_NONE_BELOW):
        return 0
    stat = _STAT.pack(
        znode.czxid,
        znode.mzxid,
        znode.pzxid,
        znode.ctime,
        znode.mtime,
        znode.version,
        znode.cversion,
        znode.aversion,
        znode.ephemeral_owner,
    )
    # ZooKeeper keeps the root under the empty path.
    start = crc32(b"" if path == ROOT else path.encode("utf-8", "replace"))
    return crc32(stat, crc32(znode.data or b"", start))


def tree_digest(znodes: Iterable[tuple[str, Znode]]) -> int:
    """The digest of a whole tree, as a signed number of 64 bits."""
    return as_long(sum(znode_digest(path, znode) for path, znode in znodes))


def changed(digest: int, view: Store, operations: Iterable[Operation]) -> int:
    """The digest of a tree after these operations; `view` is the tree before them, and `digest` its digest."""
    seen: dict[str, Znode | None] = {}
    for operation in operations:
        if type(operation) is not Put and type(operation) is not Remove:
            continue
        path = operation.path
        if path.startswith(_NONE_BELOW):
            continue
        former = seen[path] if path in seen else view.node(path)
        if former is not None:
            digest -= znode_digest(path, former)
        after = operation.znode if type(operation) is Put else None
        if after is not None:
            digest += znode_digest(path, after)
        seen[path] = after
    return as_long(digest)
