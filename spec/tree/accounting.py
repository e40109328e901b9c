"""The figures that a tree keeps about itself: the use of quotas, and a digest.

Quotas are limits of the znodes and bytes below a path; what exceeds them is refused. The digest is a number that two
servers share if and only if, very probably, their znodes are the same. A leader writes it into each transaction, and
every server compares it with the digest of its tree.

Rules of this module:

- A quota of `/a` is the znode `/zookeeper/quota/a/zookeeper_limits` with the limits, which a client writes. The use is
  the data of `zookeeper_stats` beside it, which the servers write: it is counted when a client creates that znode, and
  again from the whole tree when a server reads its snapshot.
- Each server counts locally: no transaction has a changed use, and the version of the znode stays.
- Only the quota nearest to a path counts it, and the root has none.
- A soft limit (`count`, `bytes`) refuses nothing. A hard one does, where the operator enforces quotas.
- The digest of a tree is the sum of those of its znodes, with 64 bits. So a change costs only the znodes it touches.
- The znodes below `/zookeeper` have none, because servers write some of them locally.
- ACLs and children have no part in it, except by their counts.

Where ZooKeeper differs: text that does not parse stops its server, and so does a quota of the root (seen on
3.9.5); here both have no effect, as has text of more than 1,000 bytes, which every change below would read. A leader
there compares with the committed use, here with that after the outstanding transactions. Within a multi both compare
with the use before the multi.

Source: `DataTree.updateQuotaStat`, `updateQuotaForPath`, `setupQuota`, `getMaxPrefixWithQuota`;
`PathTrie.findMaxPrefix`; `StatsTrack`; `Quotas`; `ZooKeeperServer.checkQuota`; `DigestCalculator.calculateDigest`
(version 2), `AdHash`, `NodeHashMapImpl`, `DataTree.compareDigest`.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias
from zlib import crc32

from msgspec.structs import replace

from spec.text import LONG, integer
from spec.tree.data import Znode, as_long
from spec.tree.overlay import Overlay
from spec.tree.paths import ROOT, below, name_of, parent_of
from spec.tree.store import Operation, Put, Remove, Store

Changes: TypeAlias = tuple[Operation, ...]

QUOTA = "/zookeeper/quota"
LIMITS = "zookeeper_limits"
STATS = "zookeeper_stats"
_SEPARATORS = re.compile("[,;]+")
_LONGEST = 1000
_UNSET = -1


def quota_of(view: Store, path: str) -> str | None:
    """The nearest path at or above this one that has a quota; None if none has (`DataTree.getMaxPrefixWithQuota`)."""
    if not view.children(QUOTA):
        return None
    while path != ROOT:
        if view.node(f"{QUOTA}{path}/{LIMITS}") is not None:
            return path
        path = parent_of(path)
    return None


def counted(view: Store, zxid: int, operations: tuple[Operation, ...], path: str, count: int, size: int) -> Changes:
    """The operations of a transaction at `path`, with the change of the use of its quota, by znodes and bytes.

    `view` is the tree before the operations. Nothing is added without a quota.

    Source: the ends of `DataTree.createNode`, `deleteNode` and `setData`.
    """
    makes_stats = count > 0 and name_of(path) == STATS and path.startswith(QUOTA + "/")
    if not makes_stats and not view.children(QUOTA):
        return operations
    draft = Overlay(view)
    draft.carry_out(zxid, operations)
    if makes_stats:
        first = _recounted(draft, parent_of(path)[len(QUOTA) :])
        draft.carry_out(zxid, first)
        operations += first
    return operations + _updated(draft, path, count, size)


def _updated(view: Store, path: str, count: int, size: int) -> tuple[Put, ...]:
    """The new use of the quota that counts a path (`DataTree.updateQuotaStat`)."""
    quota = quota_of(view, path)
    if quota is None:
        return ()
    place = f"{QUOTA}{quota}/{STATS}"
    znode = view.node(place)
    used = None if znode is None else parse_use(znode.data)
    if znode is None or used is None:
        return ()
    more = {key: as_long(used.get(key, _UNSET) + change) for key, change in (("count", count), ("bytes", size))}
    return (Put(place, replace(znode, data=format_use({**used, **more}))),)


def recounted(view: Store) -> Iterator[Put]:
    """The use of every quota, counted from the whole tree (`DataTree.setupQuota`)."""
    waiting = [QUOTA]
    while waiting:
        place = waiting.pop()
        for name in view.children(place):
            if name == LIMITS and place != QUOTA:
                yield from _recounted(view, place[len(QUOTA) :])
            else:
                waiting.append(below(place, name))


def exceeds(view: Store, path: str, count: int, size: int) -> bool:
    """Whether a change by this number of znodes and bytes exceeds a hard limit (`ZooKeeperServer.checkQuota`)."""
    quota = quota_of(view, path)
    if quota is None:
        return False
    limits, used = (_use_at(view, f"{QUOTA}{quota}/{name}") for name in (LIMITS, STATS))
    if limits is None or used is None:
        return False
    for more, key, hard in ((count, "count", "countHardLimit"), (size, "bytes", "byteHardLimit")):
        limit = limits.get(hard, _UNSET)
        if more and limit > _UNSET and as_long(used.get(key, _UNSET) + more) > limit:
            return True
    return False


def parse_use(data: bytes | None) -> dict[str, int] | None:
    """The figures in the data of one of the two znodes, None if it is not such text (`StatsTrack`)."""
    if data is not None and len(data) > _LONGEST:
        return None
    figures: dict[str, int] = {}
    text = (data or b"").decode("utf-8", "replace")
    for pair in filter(None, _SEPARATORS.split(text)):
        key, mark, value = pair.partition("=")
        figure = integer(value.partition("=")[0], *LONG)  # "bytes=5=" has a further mark, for readers of 3.4
        if not mark or figure is None:
            return None
        figures[key] = figure
    return figures


def format_use(figures: Mapping[str, int]) -> bytes:
    """The data of one of the two znodes (`StatsTrack.toString`)."""
    text = f"count={figures.get('count', _UNSET)},bytes={figures.get('bytes', _UNSET)}"
    rest = sorted(key for key in figures if key not in ("count", "bytes"))
    return (text + ("=" if rest else "") + "".join(f";{key}={figures[key]}" for key in rest)).encode()


def _recounted(view: Store, path: str) -> tuple[Put, ...]:
    """The use of one quota, counted from the tree (`DataTree.updateQuotaForPath`)."""
    place = f"{QUOTA}{path}/{STATS}"
    znode = view.node(place)
    if znode is None:
        return ()
    znodes = list(_at_and_below(view, path))
    use = {"count": len(znodes), "bytes": sum(len(member.data or b"") for member in znodes)}
    return (Put(place, replace(znode, data=format_use(use))),)


def _at_and_below(view: Store, path: str) -> Iterator[Znode]:
    waiting = [path]
    while waiting:
        place = waiting.pop()
        znode = view.node(place)
        if znode is not None:
            yield znode
            waiting.extend(below(place, name) for name in view.children(place))


def _use_at(view: Store, place: str) -> dict[str, int] | None:
    znode = view.node(place)
    return None if znode is None else parse_use(znode.data)


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
    final: dict[str, Znode | None] = {}
    for operation in operations:
        if type(operation) is not Put and type(operation) is not Remove:
            continue
        path = operation.path
        former = final[path] if path in final else view.node(path)
        if former is not None:
            digest -= znode_digest(path, former)
        after = operation.znode if type(operation) is Put else None
        if after is not None:
            digest += znode_digest(path, after)
        final[path] = after
    return as_long(digest)
