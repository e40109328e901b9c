"""The effects of transactions on the tree, and those of a replay over a tree that already contains some of them.

Expected values: `DataTree.processTxn`, `createNode`, `deleteNode`, `killSession`, `setCversionPzxid`; the Stats of the
first tests were observed on ZooKeeper 3.8.0.
"""

import pytest

from refimpl.tree import Tree
from spec.tree.apply import Event, EventType, TxnResult, apply
from spec.tree.data import OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, Record, Stat, stat_of
from spec.tree.replies import Code, ErrorReply, MultiReply
from spec.tree.store import EndSession, OpenSession
from spec.tree.txns import (
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
)

OPEN = OPEN_ACL_UNSAFE
SESSION = 0x100000000000000


def carry_out(tree: Tree, zxid: int, record: Record) -> TxnResult:
    applied = apply(tree, zxid, Change(SESSION, 1, zxid * 1000, record))
    tree.carry_out(applied.operations)
    return applied


def new(path: str, parent_cversion: int, ephemeral: bool = False) -> CreateTxn:
    return CreateTxn(path, b"d", OPEN, ephemeral, parent_cversion)


def tree_of(*records: Record) -> Tree:
    tree = Tree()
    for zxid, record in enumerate(records, start=1):
        assert carry_out(tree, zxid, record).code is Code.OK
    return tree


def stat(tree: Tree, path: str) -> Stat:
    znode = tree.node(path)
    assert znode is not None
    return stat_of(znode, len(tree.children(path)))


def test_a_new_znode_has_the_zxid_and_the_time_of_its_creation() -> None:
    tree = tree_of(new("/a", 1))
    assert stat(tree, "/a") == Stat(1, 1, 1000, 1000, 0, 0, 0, 0, 1, 0, 1)
    assert stat(tree, "/") == Stat(0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1)


@pytest.mark.parametrize("path", ["", "a", "/a/", "//"])
def test_no_file_makes_a_znode_that_is_its_own_parent(path: str) -> None:
    """The paths below the root are then finite, so a file that deletes the root is read to its end."""
    tree = Tree()
    assert carry_out(tree, 1, new(path, -1)).code is Code.BAD_ARGUMENTS
    assert carry_out(tree, 2, DeleteTxn("/")).code is Code.OK
    assert len(tree) == 0


def test_a_deletion_counts_for_the_parents_pzxid_and_for_the_cversion_it_shows() -> None:
    tree = tree_of(new("/a", 1), new("/a/b", 1), DeleteTxn("/a/b"))
    assert stat(tree, "/a") == Stat(1, 1, 1000, 1000, 0, 2, 0, 0, 1, 0, 3)


def test_setting_data_changes_the_version_the_mzxid_and_the_mtime_only() -> None:
    tree = tree_of(new("/a", 1), SetDataTxn("/a", b"123", 1))
    assert stat(tree, "/a") == Stat(1, 2, 1000, 2000, 1, 0, 0, 0, 3, 0, 1)


def test_setting_an_acl_changes_the_aversion_only() -> None:
    tree = tree_of(new("/a", 1), SetAclTxn("/a", READ_ACL_UNSAFE, 1))
    assert stat(tree, "/a") == Stat(1, 1, 1000, 1000, 0, 0, 1, 0, 1, 0, 1)


def test_events_are_of_the_znode_before_its_parent_and_bear_their_acls() -> None:
    tree = tree_of(new("/a", 1), SetAclTxn("/a", READ_ACL_UNSAFE, 1))
    assert carry_out(tree, 3, new("/a/b", 1)).events == (
        Event(EventType.NODE_CREATED, "/a/b", OPEN),
        Event(EventType.NODE_CHILDREN_CHANGED, "/a", READ_ACL_UNSAFE),
    )
    assert carry_out(tree, 4, SetDataTxn("/a", b"", 1)).events == (
        Event(EventType.NODE_DATA_CHANGED, "/a", READ_ACL_UNSAFE),
    )
    assert carry_out(tree, 5, DeleteTxn("/a/b")).events == (
        Event(EventType.NODE_DELETED, "/a/b", OPEN),
        Event(EventType.NODE_CHILDREN_CHANGED, "/a", READ_ACL_UNSAFE),
    )
    assert carry_out(tree, 6, SetAclTxn("/a", OPEN, 2)).events == ()


def test_the_znodes_of_a_closed_session_go_in_the_order_of_the_list() -> None:
    tree = tree_of(new("/b", 1, True), new("/a", 2, True), CreateSessionTxn(4000))
    applied = carry_out(tree, 4, CloseSessionTxn(("/b", "/a")))
    assert [event.path for event in applied.events] == ["/b", "/", "/a", "/"]
    assert applied.operations[-1] == EndSession(SESSION)
    assert (tree.node("/a"), tree.node("/b"), tree.sessions) == (None, None, {})


def test_a_list_that_an_old_server_did_not_write_is_made_up_from_the_tree() -> None:
    tree = tree_of(new("/a", 1, True), new("/b", 2, True))
    carry_out(tree, 3, CloseSessionTxn(()))
    assert tree.children("/") == {"zookeeper"}


def test_a_session_opens_with_its_timeout() -> None:
    assert apply(Tree(), 1, Change(SESSION, 0, 0, CreateSessionTxn(4000))).operations == (OpenSession(SESSION, 4000),)


def test_containers_and_ttl_znodes_are_known_to_the_tree_until_they_go() -> None:
    tree = tree_of(CreateContainerTxn("/k", b"", OPEN, 1), CreateTtlTxn("/t", b"", OPEN, 2, 300))
    assert (tree.containers, tree.ttls) == ({"/k"}, {"/t"})
    carry_out(tree, 3, DeleteTxn("/k"))
    carry_out(tree, 4, DeleteTxn("/t"))
    assert (tree.containers, tree.ttls) == (set(), set())


def test_a_time_to_live_that_none_can_have_is_refused() -> None:
    assert carry_out(Tree(), 1, CreateTtlTxn("/t", b"", OPEN, 1, -1)).code is Code.BAD_ARGUMENTS


def test_an_error_changes_nothing_and_is_what_the_client_gets() -> None:
    assert apply(Tree(), 1, Change(1, 1, 0, ErrorTxn(-110))) == TxnResult(code=Code.NODE_EXISTS)


def test_an_error_that_nobody_knows_is_a_system_error() -> None:
    assert carry_out(Tree(), 1, ErrorTxn(-9999)).code is Code.SYSTEM_ERROR


def test_a_multi_with_an_error_in_it_changes_nothing_whichever_server_wrote_it() -> None:
    tree = tree_of(new("/a", 1))
    wanted = [Code.OK, Code.NO_NODE, Code.RUNTIME_INCONSISTENCY]
    for before in (SetDataTxn("/a", b"new", 1), ErrorTxn(0)):
        txns = (before, ErrorTxn(Code.NO_NODE), ErrorTxn(Code.RUNTIME_INCONSISTENCY))
        applied = carry_out(tree, 2, MultiTxn(txns))
        assert (applied.operations, applied.events, applied.code) == ((), (), Code.OK)
        assert isinstance(applied.reply, MultiReply)
        assert [each.record for each in applied.reply.results] == [ErrorReply(code) for code in wanted]


def test_the_operations_of_a_multi_have_one_zxid() -> None:
    tree = tree_of(MultiTxn((new("/a", 1), new("/a/b", 1), CheckVersionTxn("/a", 1), DeleteTxn("/a/b"))))
    assert stat(tree, "/a") == Stat(1, 1, 1000, 1000, 0, 2, 0, 0, 1, 0, 1)


def test_a_multi_of_what_no_multi_holds_changes_nothing() -> None:
    tree = tree_of(new("/a", 1))
    for record in (SetAclTxn("/a", READ_ACL_UNSAFE, 1), CloseSessionTxn(()), MultiTxn(())):
        assert carry_out(tree, 2, MultiTxn((DeleteTxn("/a"), record))) == TxnResult(code=Code.MARSHALLING_ERROR)


def test_a_create_of_what_a_snapshot_has_already_still_counts_for_the_parent() -> None:
    tree = tree_of(new("/a", 1), new("/a/b", 1))
    applied = carry_out(tree, 9, new("/a/b", 4))
    assert (applied.code, applied.events, applied.reply) == (Code.NODE_EXISTS, (), None)
    assert (stat(tree, "/a").pzxid, stat(tree, "/a").cversion) == (9, 7)
    assert stat(tree, "/a/b").czxid == 2


def test_a_create_that_is_replayed_does_not_turn_the_parents_counters_back() -> None:
    tree = tree_of(new("/a", 1), new("/a/b", 1), new("/a/c", 2), DeleteTxn("/a/b"))
    carry_out(tree, 2, new("/a/b", 1))
    assert (stat(tree, "/a").pzxid, stat(tree, "/a").num_children) == (4, 2)


def test_a_delete_that_is_replayed_does_not_turn_the_parents_pzxid_back() -> None:
    tree = tree_of(new("/a", 1), new("/a/b", 1), DeleteTxn("/a/b"), new("/a/c", 2))
    applied = carry_out(tree, 3, DeleteTxn("/a/b"))
    assert (applied.code, applied.operations) == (Code.NO_NODE, ())
    assert stat(tree, "/a").pzxid == 4


def test_a_delete_of_what_a_snapshot_lacks_already_still_counts_for_the_parent() -> None:
    tree = tree_of(new("/a", 1))
    applied = carry_out(tree, 7, DeleteTxn("/a/b"))
    assert (applied.code, applied.events, stat(tree, "/a").pzxid) == (Code.NO_NODE, (), 7)


def test_a_delete_that_meets_the_znodes_next_life_takes_its_children_along() -> None:
    tree = tree_of(new("/a", 1), new("/a/b", 1), new("/a/b/c", 1))
    carry_out(tree, 1, DeleteTxn("/a"))
    assert (tree.node("/a"), tree.node("/a/b"), tree.node("/a/b/c"), tree.children("/a")) == (None, None, None, set())


def test_what_has_no_parent_is_not_created_and_not_deleted() -> None:
    for record in (new("/no/b", 1), DeleteTxn("/no/b"), SetDataTxn("/no", b"", 1), SetAclTxn("/no", OPEN, 1)):
        assert carry_out(Tree(), 1, record) == TxnResult(code=Code.NO_NODE)


def test_the_cversion_that_old_logs_lack_is_counted() -> None:
    tree = tree_of(new("/a", -1), new("/b", -1))
    assert stat(tree, "/").cversion == 2 * 2 - 3
