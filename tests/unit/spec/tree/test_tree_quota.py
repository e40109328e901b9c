"""Quotas as values: the text of `StatsTrack`, the nearest quota, and counts from a whole tree.

The texts are those of the comments in ZooKeeper's `StatsTrack`; `tests/node/test_quotas.py` compares the rest with a
real server.
"""

import pytest

from refimpl.tree import Tree
from spec.tree.accounting import exceeds, format_use, parse_use, quota_of, recounted
from spec.tree.apply import apply
from spec.tree.data import OPEN_ACL_UNSAFE
from spec.tree.options import Options
from spec.tree.prepare import prepare
from spec.tree.replies import Code
from spec.tree.requests import Create, Multi, Request, SetData
from spec.tree.store import FrozenStore
from spec.tree.txns import Change, CloseSessionTxn, CreateTxn, ErrorTxn, MultiTxn, SetDataTxn

ENFORCED = Options(enforce_quota=True)


def grown(*znodes: tuple[str, bytes]) -> FrozenStore:
    """A tree with these znodes, and the ones above them."""
    store = FrozenStore()
    for zxid, (path, data) in enumerate(znodes, 1):
        change = Change(1, zxid, 1000, CreateTxn(path, data, OPEN_ACL_UNSAFE, False, -1))
        store = store.carry_out(apply(store, zxid, change).operations)
    return store


def limited(limits: bytes, *more: tuple[str, bytes]) -> FrozenStore:
    place = "/zookeeper/quota/a"
    quota = ((place, b""), (f"{place}/zookeeper_limits", limits), (f"{place}/zookeeper_stats", b"count=0,bytes=0"))
    return grown(("/a", b""), *quota, *more)


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (b"count=4,bytes=5", {"count": 4, "bytes": 5}),
        (b"count=4,bytes=5=;byteHardLimit=10", {"count": 4, "bytes": 5, "byteHardLimit": 10}),
        (b"", {}),
    ],
)
def test_the_text_of_a_quota_is_read(text: bytes, figures: dict[str, int]) -> None:
    assert parse_use(text) == figures


def test_a_use_wraps_around_like_javas_long() -> None:
    """`DataTree.updateQuotaStat` adds two values of the type `long`."""
    place = "/zookeeper/quota/a"
    store = limited(b"count=-1,bytes=-1")
    for zxid, record in enumerate(
        (SetDataTxn(f"{place}/zookeeper_stats", b"count=9223372036854775807,bytes=1", 1),
         CreateTxn("/a/b", b"xy", OPEN_ACL_UNSAFE, False, -1)), 10
    ):  # fmt: skip
        store = store.carry_out(apply(store, zxid, Change(1, zxid, 1000, record)).operations)
    stats = store.node(f"{place}/zookeeper_stats")
    assert stats is not None
    assert stats.data == b"count=-9223372036854775808,bytes=3"


@pytest.mark.parametrize("text", [b"count", b"count=x", b"count=", b"count=99999999999999999999"])
def test_text_that_stops_a_real_server_is_no_quota(text: bytes) -> None:
    assert parse_use(text) is None


def test_count_and_bytes_come_first_for_readers_of_3_4() -> None:
    assert format_use({"countHardLimit": 1, "bytes": 5, "byteHardLimit": 2}) == (
        b"count=-1,bytes=5=;byteHardLimit=2;countHardLimit=1"
    )


def test_the_nearest_quota_counts_and_the_root_has_none() -> None:
    store = limited(b"count=1,bytes=1", ("/a/b", b""), ("/zookeeper/quota/zookeeper_limits", b""))
    assert [quota_of(store, path) for path in ("/a", "/a/b/c", "/ab", "/")] == ["/a", "/a", None, None]


def test_a_snapshot_with_a_wrong_use_is_counted_again() -> None:
    tree = Tree()
    source = limited(b"count=1,bytes=1", ("/a/b", b"123"), ("/a/b/c", b"4"))
    for zxid, path in enumerate(("/a", "/a/b", "/a/b/c"), 1):
        znode = source.node(path)
        assert znode is not None
        change = Change(1, zxid, 1000, CreateTxn(path, znode.data, OPEN_ACL_UNSAFE, False, -1))
        tree.carry_out(apply(tree, zxid, change).operations)
    for path in ("", "/zookeeper_stats", "/zookeeper_limits"):  # the use is written before the limits are there
        record = CreateTxn(f"/zookeeper/quota/a{path}", b"count=9,bytes=9", OPEN_ACL_UNSAFE, False, -1)
        tree.carry_out(apply(tree, 9, Change(1, 9, 1000, record)).operations[:2])
    tree.carry_out(tuple(recounted(tree)))
    use = tree.node("/zookeeper/quota/a/zookeeper_stats")
    assert use is not None
    assert use.data == b"count=3,bytes=4"


def test_a_soft_limit_refuses_nothing() -> None:
    assert not exceeds(limited(b"count=1,bytes=1"), "/a/b", 5, 5)


def test_a_hard_limit_refuses_what_exceeds_it_and_no_less() -> None:
    store = limited(b"count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=3")
    assert [exceeds(store, "/a/b", count, 0) for count in (2, 3)] == [False, True]
    assert [exceeds(store, "/a/b", 0, size) for size in (4, 5)] == [False, True]


def test_a_leader_that_does_not_enforce_quotas_refuses_nothing() -> None:
    store = limited(b"count=-1,bytes=-1=;byteHardLimit=0")
    request = Request(1, 1, SetData("/a", b"1", -1))
    refused = prepare(store, request, 1000, options=ENFORCED)
    assert refused.record == ErrorTxn(Code.QUOTA_EXCEEDED)
    assert not isinstance(prepare(store, request, 1000).record, ErrorTxn)


def test_each_operation_of_a_multi_is_compared_with_the_use_before_it() -> None:
    """As in ZooKeeper, so a multi may exceed a limit by its later operations."""
    store = limited(b"count=-1,bytes=-1=;countHardLimit=2")
    creates = tuple(Create(f"/a/{name}", b"", OPEN_ACL_UNSAFE, 0) for name in "bc")
    txn = prepare(store, Request(1, 1, Multi(creates)), 1000, options=ENFORCED).record
    assert isinstance(txn, MultiTxn)
    assert not any(isinstance(each, ErrorTxn) for each in txn.txns)
    one_more = prepare(
        limited(b"count=-1,bytes=-1=;countHardLimit=2", ("/a/x", b"")),
        Request(1, 1, creates[0]),
        1000,
        options=ENFORCED,
    )
    assert one_more.record == ErrorTxn(Code.QUOTA_EXCEEDED)


def test_the_end_of_a_session_is_counted_for_each_of_its_znodes() -> None:
    store = limited(b"count=9,bytes=9")
    for zxid, name in enumerate("bc", 10):
        created = Change(7, zxid, 1000, CreateTxn(f"/a/{name}", b"12", OPEN_ACL_UNSAFE, True, -1))
        store = store.carry_out(apply(store, zxid, created).operations)
    closed = apply(store, 20, Change(7, 20, 1000, CloseSessionTxn(("/a/b", "/a/c"))))
    stores = store, store.carry_out(closed.operations)
    use = [each.node("/zookeeper/quota/a/zookeeper_stats") for each in stores]
    assert [znode and znode.data for znode in use] == [b"count=3,bytes=4", b"count=1,bytes=0"]
