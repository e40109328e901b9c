"""Snapshots: the bytes of ZooKeeper's files, reading in pieces of any size, and trees that change during the write."""

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from refimpl.disk import snapshot
from refimpl.disk.body import BodyReader, DamagedSnapshotError, body_chunks
from refimpl.tree import Tree
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, Acl, Id, Znode
from spec.tree.store import OpenSession, Put
from spec.tree.txns import Change, CreateTxn, DeleteTxn, SetAclTxn, SetDataTxn

DIGEST_ACL = (Acl(31, Id("digest", "bob:xyz")), Acl(1, Id("world", "anyone")))
EVERY_FIELD = Znode(b"data", DIGEST_ACL, 1, 2, 3, 4, 5, 6, 7, 0x77, 9)


def contents(tree: Tree) -> tuple[dict[str, Znode], dict[int, int], dict[str, set[str]]]:
    nodes = dict(tree.preorder())
    return nodes, dict(tree.sessions), {path: set(tree.children(path)) for path in nodes}


def string(text: str) -> bytes:
    return struct.pack(">i", len(text.encode())) + text.encode()


def node(path: str, znode: Znode, acl: int) -> bytes:
    data = struct.pack(">i", -1) if znode.data is None else struct.pack(">i", len(znode.data)) + znode.data
    stat = struct.pack(
        ">qqqqiiiqq", znode.czxid, znode.mzxid, znode.ctime, znode.mtime, znode.version, znode.cversion, znode.aversion,
        znode.ephemeral_owner, znode.pzxid,
    )  # fmt: skip
    return string(path) + data + struct.pack(">q", acl) + stat


def small_tree() -> Tree:
    tree = Tree(())
    tree.carry_out((
        Put("/", Znode(b"", OPEN_ACL_UNSAFE, 0, 0, 0, 0, 0, 1, 0, 0, 9)),
        Put("/a", EVERY_FIELD),
        Put("/a/é", Znode(None, OPEN_ACL_UNSAFE, 9, 9, 0, 0, 0, 0, 0, 0, 9)),
        OpenSession(0x77, 4000),
    ))  # fmt: skip
    return tree


ROOT_NODE = node("", Znode(b"", OPEN_ACL_UNSAFE, 0, 0, 0, 0, 0, 1, 0, 0, 9), -1)
BODY = (
    struct.pack(">iqi", 1, 0x77, 4000)
    + struct.pack(">i", 2)
    + struct.pack(">qii", 1, 1, 0) + string("world") + string("anyone")
    + struct.pack(">qii", 2, 2, 31) + string("digest") + string("bob:xyz")
    + struct.pack(">i", 1) + string("world") + string("anyone")
    + ROOT_NODE
    + node("/a", EVERY_FIELD, 2)
    + node("/a/é", Znode(None, (), 9, 9, 0, 0, 0, 0, 0, 0, 9), -1)
    + string("/")
)  # fmt: skip


def sealed(data: bytes) -> bytes:
    return data + struct.pack(">q", zlib.adler32(data)) + string("/")


WITH_SEAL = sealed(b"ZKSN" + struct.pack(">iq", 2, -1) + BODY)
WITH_DIGEST = sealed(WITH_SEAL + struct.pack(">qiq", 9, 2, 0x1234567890))
WITH_TEXT_DIGEST = sealed(WITH_SEAL + struct.pack(">qi", 9, 1) + string("3fe"))
WITH_LAST = sealed(WITH_SEAL + struct.pack(">q", 9))
WITH_BOTH = sealed(WITH_DIGEST + struct.pack(">q", 9))
OWN = sealed(WITH_SEAL + struct.pack(">qiq", 0x1_0000_0009, 2**31 - 1, 0))


def with_node(path: str) -> bytes:
    return sealed(WITH_SEAL[:16] + BODY.replace(ROOT_NODE, ROOT_NODE + node(path, EVERY_FIELD, -1)))


def read_bytes(directory: Path, data: bytes, zxid: int = 9) -> Tree:
    path = directory / f"snapshot.{zxid:x}"
    path.write_bytes(data)
    return snapshot.read(path, zxid).tree


def test_a_body_is_sessions_acls_and_znodes_in_preorder() -> None:
    assert b"".join(body_chunks(small_tree(), 9)) == BODY


def test_a_file_is_header_body_seal_and_the_last_zxid(tmp_path: Path) -> None:
    path = snapshot.save(tmp_path, small_tree(), 0x1_0000_0009)
    assert path == tmp_path / "snapshot.100000009"
    assert path.read_bytes() == OWN
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("data", [WITH_SEAL, WITH_DIGEST, WITH_TEXT_DIGEST, WITH_LAST, WITH_BOTH])
def test_snapshots_of_all_versions_are_read(tmp_path: Path, data: bytes) -> None:
    nodes, sessions, children = contents(read_bytes(tmp_path, data))
    assert nodes["/a"] == EVERY_FIELD
    assert nodes["/a/é"].data is None
    assert (sessions, children["/a"]) == ({0x77: 4000}, {"é"})


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, len(BODY)])
def test_a_body_is_read_in_pieces_of_any_size(size: int) -> None:
    tree = Tree(())
    tree.carry_out((Put("/", Znode(b"", OPEN_ACL_UNSAFE, 0, 0, 0, 0, 0, 0, 0, 0, 0)),))
    reader = BodyReader(tree, 9)
    stream = BODY + string("BenWasHere")
    rest, position = None, 0
    while rest is None:
        rest = reader.feed(stream[position : position + size])
        position += size
    assert rest + stream[position:] == string("BenWasHere")
    assert contents(tree) == contents(small_tree())


def test_a_tree_comes_back_as_it_was(tmp_path: Path) -> None:
    tree = Tree()
    for i in range(999):
        tree.carry_out((Put(f"/n{i}", Znode(bytes(i), READ_ACL_UNSAFE, i, i, i, i, i, 0, 0, -(1 << 63), i)),))
    snapshot.save(tmp_path, tree, 10_000)
    assert contents(snapshot.read(tmp_path / "snapshot.2710", 10_000).tree) == contents(tree)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the header is"),
        (b"ZKLG" + WITH_SEAL[4:], "the header is 5a4b4c47"),
        (WITH_SEAL[:100], "the file ends at offset 100, inside of the body"),
        (WITH_SEAL[:-6], "the seal is cut short: 7 bytes of 13"),
        (WITH_SEAL[:-13], "the seal is cut short: 0 bytes of 13"),
        (WITH_SEAL[:-1] + b"x", 'the seal does not end with the text "/"'),
        (WITH_SEAL.replace(b"data", b"datb"), "the seal has checksum"),
        (WITH_DIGEST[:-3], "the second seal is cut short"),
        (WITH_DIGEST[:-20] + b"x" + WITH_DIGEST[-19:], "the second seal has checksum"),
        (WITH_SEAL + b"12345", "5 bytes follow the seal, too few for a digest"),
        (WITH_DIGEST + b"12345", "5 bytes follow the last seal, expected 0, or 21 with a lastProcessedZxid"),
        (WITH_BOTH + b"12345", "26 bytes follow the last seal"),
        (WITH_BOTH[:-3], "18 bytes follow the last seal"),
        (WITH_BOTH[:-14] + b"x" + WITH_BOTH[-13:], "the seal of lastProcessedZxid has checksum"),
        (WITH_LAST[:-14] + b"x" + WITH_LAST[-13:], "the seal of lastProcessedZxid has checksum"),
        (with_node("/x/y"), "'/x/y' comes before its parent '/x'"),
        (with_node("x"), "'x' is not a path"),
        (with_node("/a/"), "'/a/' is not a path"),
        (sealed(WITH_SEAL[:16] + struct.pack(">i", -5)), "the number of sessions is -5"),
        (sealed(WITH_SEAL[:16] + struct.pack(">iii", 0, 0, -2)), "a path has length -2"),
        (sealed(WITH_SEAL[:16] + struct.pack(">iii", 0, 0, 2) + b"\xff\xff" + bytes(100)), "text is not UTF-8"),
        (sealed(WITH_SEAL[:16] + struct.pack(">iiii", 0, 0, 0, 1 << 30)), "the data of .* has length 1073741824"),
    ],
)
def test_a_damaged_snapshot_is_refused_with_what_is_wrong(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(DamagedSnapshotError, match=message) as caught:
        read_bytes(tmp_path, data)
    assert str(caught.value).startswith(str(tmp_path / "snapshot.9"))


@pytest.mark.parametrize(
    ("data", "recorded"),
    [
        pytest.param(WITH_SEAL, None, id="before 3.6"),
        pytest.param(WITH_DIGEST, 9, id="3.6 to 3.8"),
        pytest.param(sealed(WITH_SEAL + struct.pack(">qiq", 12, 2, 7)), 12, id="changed meanwhile"),
        pytest.param(sealed(WITH_SEAL + struct.pack(">qiq", 0, 2, 0)), None, id="an empty digest"),
        pytest.param(sealed(WITH_SEAL + struct.pack(">qiq", 8, 2, 7)), None, id="a digest older than the snapshot"),
        pytest.param(sealed(WITH_DIGEST + struct.pack(">q", 13)), 13, id="3.9"),
        pytest.param(sealed(WITH_SEAL + struct.pack(">q", 13)), 13, id="3.9 without digests"),
    ],
)
def test_the_last_zxid_is_read_where_it_was_recorded(tmp_path: Path, data: bytes, recorded: int | None) -> None:
    """DataTree.serializeZxidDigest and serializeLastProcessedZxid write it after the tree."""
    path = tmp_path / "snapshot.9"
    path.write_bytes(data)
    assert snapshot.read(path, 9).recorded == recorded


REAL = Path(__file__).parents[2] / "golden" / "disk" / "zookeeper-3.9.5"
"""A recording of Apache ZooKeeper 3.9.5 from Maven Central: standalone, default options except 4lw.commands.whitelist.

A kazoo client created /plain and set it to "second", created /guarded with a digest ACL of bob, created and deleted
/gone, and created /mine as ephemeral in session 0x1000029e6330000. Then the server was restarted, which wrote
snapshot.7, and killed. The preallocated zeros of log.1 were removed.
"""


def test_a_snapshot_of_zookeeper_3_9_is_read() -> None:
    found = snapshot.read(REAL / "snapshot.7", 7)
    nodes, sessions, _ = contents(found.tree)

    assert (found.recorded, set(sessions)) == (7, {0x1000029E6330000})
    assert set(nodes) == {"/", "/plain", "/guarded", "/mine", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}
    assert (nodes["/plain"].data, nodes["/plain"].version) == (b"second", 1)
    assert [each.id.scheme for each in nodes["/guarded"].acl] == ["digest"]
    assert (nodes["/mine"].data, nodes["/mine"].ephemeral_owner) == (b"here", 0x1000029E6330000)


@pytest.mark.parametrize("name", ["snapshot.0", "snapshot.7"])
def test_a_snapshot_of_zookeeper_3_9_with_any_byte_missing_or_changed_is_refused(tmp_path: Path, name: str) -> None:
    """Without its last 21 or 54 bytes it is a complete snapshot of an older version."""
    data, zxid, path = (REAL / name).read_bytes(), int(name[-1]), tmp_path / name
    for size in set(range(len(data))) - {len(data) - 21, len(data) - 54}:
        path.write_bytes(data[:size])
        with pytest.raises(DamagedSnapshotError):
            snapshot.read(path, zxid)
    for place in range(len(data) - 60, len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(DamagedSnapshotError):
            snapshot.read(path, zxid)


def test_a_snapshot_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        snapshot.save(tmp_path, small_tree(), 9)
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_has_its_name_when_it_is_finished(tmp_path: Path) -> None:
    file = snapshot.SnapshotFile(tmp_path, 9)
    file.write(BODY)
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot.9.tmp"]
    snapshot.remove_unfinished(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_znode_whose_acl_became_a_new_one_meanwhile_is_open_to_nobody_until_the_log_is_applied() -> None:
    tree = small_tree()
    chunks = body_chunks(tree, 9)
    body = b""
    while not body.endswith(BODY[20 : BODY.index(ROOT_NODE)]):  # up to the end of the map of ACLs
        body += next(chunks)
    change = Change(1, 1, 10, SetAclTxn("/a", READ_ACL_UNSAFE, 8))
    tree.carry_out(apply(tree, 10, change).operations)
    restored = Tree()
    assert BodyReader(restored, 9).feed(body + b"".join(chunks)) == b""
    node = restored.node("/a")
    assert node is not None
    assert node.acl == (Acl(0, Id("world", "anyone")),)
    restored.carry_out(apply(restored, 10, change).operations)
    assert restored.node("/a") == tree.node("/a")


def test_a_znode_created_while_a_body_is_written_is_not_in_it() -> None:
    tree = small_tree()
    chunks = body_chunks(tree, 9)
    body = next(chunks)
    tree.carry_out((Put("/later", Znode(b"", DIGEST_ACL, 10, 10, 0, 0, 0, 0, 0, 0, 10)),))
    assert body + b"".join(chunks) == BODY


def test_an_acl_id_that_is_in_no_map_lets_nobody_in(tmp_path: Path) -> None:
    unknown = BODY.replace(node("/a", EVERY_FIELD, 2), node("/a", EVERY_FIELD, 77))
    tree = read_bytes(tmp_path, sealed(WITH_SEAL[:16] + unknown))
    assert contents(tree)[0]["/a"].acl == (Acl(0, Id("world", "anyone")),)


def test_znodes_created_after_the_zxid_of_a_snapshot_are_left_to_the_log(tmp_path: Path) -> None:
    tree = read_bytes(tmp_path, WITH_SEAL, zxid=8)
    assert tree.node("/a") is not None
    assert tree.node("/a/é") is None


NAMES = st.sampled_from(["/a", "/b", "/a/c", "/a/d", "/b/c", "/a/c/e"])
ACLS = st.sampled_from([OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, DIGEST_ACL])
RECORDS = st.one_of(
    st.builds(CreateTxn, NAMES, st.binary(max_size=3), ACLS, st.just(False), st.integers(1, 3)),
    st.builds(DeleteTxn, NAMES),
    st.builds(SetDataTxn, NAMES, st.binary(max_size=3), st.integers(1, 9)),
    st.builds(SetAclTxn, NAMES, ACLS, st.integers(1, 9)),
)


class World:
    """A tree after some possible transactions, and the list of them."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.log: list[Change] = []

    def apply(self, record: CreateTxn | DeleteTxn | SetDataTxn | SetAclTxn) -> None:
        path, node = record.path, self.tree.node
        parent = path.rpartition("/")[0] or "/"
        above = node(parent)
        if isinstance(record, CreateTxn):
            if node(path) is not None or above is None:
                return
            record = CreateTxn(path, record.data, record.acl, False, above.cversion + 1)
        elif (here := node(path)) is None or (isinstance(record, DeleteTxn) and self.tree.children(path)):
            return
        elif isinstance(record, SetDataTxn):
            record = SetDataTxn(path, record.data, here.version + 1)
        elif isinstance(record, SetAclTxn):
            record = SetAclTxn(path, record.acl, here.aversion + 1)
        self.log.append(Change(1, 1, len(self.log), record))
        self.tree.carry_out(apply(self.tree, len(self.log), self.log[-1]).operations)


@settings(max_examples=200, deadline=None)
@given(st.lists(RECORDS, max_size=12), st.lists(st.lists(RECORDS, max_size=3), max_size=12))
def test_a_fuzzy_snapshot_and_the_log_after_it_give_the_tree_of_now(before: list, during: list) -> None:  # type: ignore[type-arg]
    world = World()
    for record in before:
        world.apply(record)
    start = len(world.log)
    with pytest.MonkeyPatch.context() as small:
        small.setattr("refimpl.disk.body.CHUNK", 1)
        chunks = body_chunks(world.tree, start)
        body = next(chunks)
        for changes in during:
            body += next(chunks, b"")
            for record in changes:
                world.apply(record)
        body += b"".join(chunks)
    restored = Tree()
    assert BodyReader(restored, start).feed(body) == b""
    for zxid in range(start + 1, len(world.log) + 1):
        restored.carry_out(apply(restored, zxid, world.log[zxid - 1]).operations)
    assert contents(restored) == contents(world.tree)
