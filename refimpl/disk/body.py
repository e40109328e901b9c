"""A tree encoded in pieces, and its decoder: the common part of snapshots on the disk and on the quorum port.

    i32 number of sessions · (i64 session, i32 timeout)*
    i32 number of ACLs · (i64 id, vector<ACL>)*
    (path, buffer data, i64 ACL id, StatPersisted)*, parents before children, the root as ""
    the path "/" as the end

Rules this module keeps:

- In addition to the tree, neither side holds more than one piece of the body.
- A body that is written while the tree changes is fuzzy: it has some of the changes of later transactions and not
  others, and is correct after those are applied again. Two cases need care. Znodes created after the zxid of the body
  are left out, by the writer and by the reader, since their creation is replayed. The map of ACLs is written first; a
  znode whose ACL was changed meanwhile to one outside the map gets an ACL that allows nothing, since its setACL is
  replayed. ZooKeeper writes an id that is not in its map, and relies on assigning the same ids again.
- ACL id -1 is OPEN_ACL_UNSAFE; no map contains it.
- The reader checks lengths, text, ACL ids, and that a parent precedes its children.

Source: `SerializeUtils.serializeSnapshot`, `DataTree.serialize`, `DataNode.serialize`, `ReferenceCountedACLCache`.
"""

import struct
from collections.abc import Iterator

from refimpl.disk.files import DataError
from refimpl.jute import encode
from refimpl.tree import Tree
from spec.tree.accounting import recounted
from spec.tree.data import ANYONE, OPEN_ACL_UNSAFE, Acl, Id, Znode
from spec.tree.paths import ROOT, is_below_root
from spec.tree.store import Put

CHUNK = 64 << 10
"""A piece with znodes ends once it has this many bytes."""
_PAUSE = 1000
"""Znodes visited between two pieces while ACLs are collected."""
MAX_FIELD = 64 << 20
"""The longest path or data that is read; servers accept requests of 1 MiB (`jute.maxbuffer`)."""
MAX_ENTRIES = 1 << 17
"""The longest ACL that is read; a request of 1 MiB has room for fewer entries."""

OPEN_ACL_ID = -1
NO_ACCESS = (Acl(0, ANYONE),)
_INT = struct.Struct(">i")
_SESSION = struct.Struct(">qi")
_ACL_HEAD = struct.Struct(">qi")
_STAT = struct.Struct(">qqqqqiiiqq")
"""The id of the ACL and the StatPersisted: coded here by hand, since a snapshot has millions of them."""
END = b"\x00\x00\x00\x01/"


class DamagedSnapshotError(DataError):
    """Bytes that are not a snapshot, or an incomplete one."""


def body_chunks(tree: Tree, zxid: int) -> Iterator[bytes]:
    """Yield the body of a tree whose last transaction is `zxid` when the first piece is requested.

    The tree may change between two pieces. Some pieces are empty, to let the caller do other work.
    """
    sessions = list(tree.sessions.items())
    yield _INT.pack(len(sessions)) + b"".join(_SESSION.pack(*session) for session in sessions)
    ids: dict[tuple[Acl, ...], int] = {NO_ACCESS: 1}
    for count, (_, znode) in enumerate(tree.preorder()):
        if znode.acl is not OPEN_ACL_UNSAFE and znode.acl not in ids:
            ids[znode.acl] = len(ids) + 1
        if count % _PAUSE == 0:
            yield b""
    yield _INT.pack(len(ids))
    for acl, number in ids.items():
        yield _ACL_HEAD.pack(number, len(acl)) + b"".join(map(encode, acl))
    ids[OPEN_ACL_UNSAFE] = OPEN_ACL_ID
    yield from _node_chunks(tree, zxid, ids)
    yield END


def _node_chunks(tree: Tree, zxid: int, ids: dict[tuple[Acl, ...], int]) -> Iterator[bytes]:
    pieces: list[bytes] = []
    size, integer, stat, no_access = 0, _INT.pack, _STAT.pack, ids[NO_ACCESS]
    for path, node in tree.preorder():
        if node.czxid > zxid:
            continue
        name = path.encode() if path != ROOT else b""
        data = node.data
        piece = b"".join((
            integer(len(name)), name, integer(-1) if data is None else integer(len(data)), data or b"",
            stat(
                OPEN_ACL_ID if node.acl is OPEN_ACL_UNSAFE else ids.get(node.acl, no_access),
                node.czxid, node.mzxid, node.ctime, node.mtime,
                node.version, node.cversion, node.aversion, node.ephemeral_owner, node.pzxid,
            ),
        ))  # fmt: skip
        pieces.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield b"".join(pieces)
            pieces.clear()
            size = 0
    yield b"".join(pieces)


class _MoreNeeded(Exception):  # noqa: N818 - not an error: the next piece has not arrived yet
    """The current item is incomplete; at least this many bytes of the buffer are needed."""

    def __init__(self, size: int) -> None:
        self.size = size


class BodyReader:
    """Takes a body in pieces of any size and fills a tree with it, which should be empty: a snapshot of 3.4
    has no `/zookeeper/config`, and neither has a standalone server that reads it (`DataTree.deserialize`).

    `zxid` is the transaction that the body represents.
    """

    def __init__(self, tree: Tree, zxid: int) -> None:
        self._tree, self._zxid = tree, zxid
        self._acls: dict[int, tuple[Acl, ...]] = {OPEN_ACL_ID: OPEN_ACL_UNSAFE}
        self._steps = iter((self._read_sessions, self._read_acls, self._read_nodes, self._count_quotas))
        self._step = next(self._steps, None)
        self._count: int | None = None
        self._pieces: list[bytes] = []
        self._held = self._needed = self._passed = self._offset = 0
        self._parent = ""
        """A parent known to be in the tree: most znodes follow a sibling."""

    def feed(self, data: bytes) -> bytes | None:
        """Take the next piece. Returns None, or, when the body has ended, the bytes after its end.

        Raises DamagedSnapshotError, which names the offset in the body.
        """
        self._pieces.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return None
        buffer = b"".join(self._pieces)
        self._offset = 0
        try:
            while self._step is not None:
                self._step(buffer)
                self._step = next(self._steps, None)
        except _MoreNeeded as more:
            self._needed = more.size - self._offset
        except UnicodeDecodeError as error:
            raise self._damaged(f"text is not UTF-8 ({error.reason})") from None
        rest = buffer[self._offset :]
        self._pieces, self._held = [rest], len(rest)
        self._passed += self._offset
        return rest if self._step is None else None

    def _damaged(self, what: str) -> DamagedSnapshotError:
        return DamagedSnapshotError(f"body offset {self._passed + self._offset}: {what}")

    def _read_count(self, buffer: bytes, what: str) -> int:
        """Read the count at the start of a list, once; afterwards return the number of items left."""
        if self._count is None:
            if len(buffer) < self._offset + 4:
                raise _MoreNeeded(self._offset + 4)
            self._count = _INT.unpack_from(buffer, self._offset)[0]
            if self._count < 0:
                raise self._damaged(f"the number of {what} is {self._count}, expected 0 or more")
            self._offset += 4
        return self._count

    def _read_sessions(self, buffer: bytes) -> None:
        for rest in range(self._read_count(buffer, "sessions"), 0, -1):
            self._count = rest
            if len(buffer) < self._offset + _SESSION.size:
                raise _MoreNeeded(self._offset + _SESSION.size)
            session, timeout = _SESSION.unpack_from(buffer, self._offset)
            self._tree.sessions[session] = timeout
            self._offset += _SESSION.size
        self._count = None

    def _read_acls(self, buffer: bytes) -> None:
        for rest in range(self._read_count(buffer, "ACLs"), 0, -1):
            self._count = rest
            end = self._offset + _ACL_HEAD.size
            if len(buffer) < end:
                raise _MoreNeeded(end)
            number, entries = _ACL_HEAD.unpack_from(buffer, self._offset)
            if not 0 <= entries <= MAX_ENTRIES:
                raise self._damaged(f"ACL {number} has {entries} entries, expected 0 to {MAX_ENTRIES}")
            acl = []
            for _ in range(entries):
                if len(buffer) < end + 4:
                    raise _MoreNeeded(end + 4)
                perms = _INT.unpack_from(buffer, end)[0]
                scheme, end = self._text(buffer, end + 4)
                name, end = self._text(buffer, end)
                acl.append(Acl(perms, Id(scheme, name)))
            self._acls[number] = OPEN_ACL_UNSAFE if tuple(acl) == OPEN_ACL_UNSAFE else tuple(acl)
            self._offset = end
        self._count = None

    def _count_quotas(self, _buffer: bytes) -> None:
        """The tree is complete, but it was written while it changed: the use of each quota is counted again."""
        if self._tree.node(ROOT) is None:
            raise self._damaged("there is no root")
        self._tree.carry_out(tuple(recounted(self._tree)))

    def _text(self, buffer: bytes, offset: int) -> tuple[str, int]:
        if len(buffer) < offset + 4:
            raise _MoreNeeded(offset + 4)
        length = _INT.unpack_from(buffer, offset)[0]
        if not 0 <= length <= MAX_FIELD:
            raise self._damaged(f"a text has length {length}, expected 0 to {MAX_FIELD}")
        end = offset + 4 + length
        if len(buffer) < end:
            raise _MoreNeeded(end)
        return buffer[offset + 4 : end].decode(), end

    def _read_nodes(self, buffer: bytes) -> None:
        """Read znodes up to the end of the body or of the buffer; `_offset` is always the start of a znode."""
        size, offset = len(buffer), self._offset
        integer, stat, stat_size = _INT.unpack_from, _STAT.unpack_from, _STAT.size
        while not buffer.startswith(END, offset):
            self._offset = offset
            if size < offset + 4:
                raise _MoreNeeded(offset + 5)
            length = integer(buffer, offset)[0]
            middle = offset + 4 + length
            if not 0 <= length <= MAX_FIELD:
                raise self._damaged(f"a path has length {length}, expected 0 to {MAX_FIELD}")
            if size < middle + 4:
                raise _MoreNeeded(middle if length == 1 else middle + 4)
            path = buffer[offset + 4 : middle].decode()
            length = integer(buffer, middle)[0]
            if not -1 <= length <= MAX_FIELD:
                raise self._damaged(f"the data of {path} has length {length}, expected -1 to {MAX_FIELD}")
            start = middle + 4
            middle = start + length if length > 0 else start
            if size < middle + stat_size:
                raise _MoreNeeded(middle + stat_size)
            acl, *counters = stat(buffer, middle)
            offset = middle + stat_size
            self._keep(path, None if length < 0 else buffer[start:middle], acl, counters)
        self._offset = offset + len(END)

    def _keep(self, path: str, data: bytes | None, acl_id: int, counters: list[int]) -> None:
        if counters[0] > self._zxid:
            return
        if path and not is_below_root(path):
            raise self._damaged(f"{path!r} is not a path of a znode")
        parent = path.rpartition("/")[0] or ROOT
        if path and parent != self._parent:
            if self._tree.node(parent) is None:
                raise self._damaged(f"znode {path!r} comes before its parent {parent!r}")
            self._parent = parent
        znode = Znode(data, self._acls.get(acl_id, NO_ACCESS), *counters)
        self._tree.carry_out((Put(path or ROOT, znode),))
