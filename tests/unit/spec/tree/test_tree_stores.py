"""Stores: the node's tree, the checker's frozen one, the overlay of outstanding transactions, and znodes that expire.

Expected values: the rules at the top of `spec/tree/store.py`, `spec/tree/overlay.py` and `refimpl/tree.py`;
`DataTree`; `ContainerManager.getCandidates`.
"""

import pytest

from refimpl.tree import Tree
from spec.tree.data import CONTAINER_OWNER, OPEN_ACL_UNSAFE, Acl, Id, Znode, new_znode, ttl_owner
from spec.tree.overlay import Overlay
from spec.tree.store import EndSession, FrozenStore, OpenSession, Operation, Put, Remove, Store, to_delete

OPEN = OPEN_ACL_UNSAFE
SESSION = 7


def put(path: str, data: bytes = b"", owner: int = 0, cversion: int = 0) -> Put:
    return Put(path, Znode(data, OPEN, 1, 1, 10, 10, 0, cversion, 0, owner, 1))


def carried_out(store: Tree | FrozenStore, *operations: Operation) -> Tree | FrozenStore:
    return store.carry_out(operations) or store


@pytest.mark.parametrize("empty", [Tree, FrozenStore])
def test_a_znode_is_among_its_parents_children_while_it_is_there(empty: type[Tree] | type[FrozenStore]) -> None:
    store = carried_out(empty(), put("/a"), put("/a/b"), put("/a.c"), put("/a/b/d"), put("/a/e"))
    assert store.children("/") == {"zookeeper", "a", "a.c"}
    assert store.children("/a") == {"b", "e"}
    store = carried_out(store, Remove("/a/e"), put("/a/b", b"new"))
    assert (store.children("/a"), store.children("/a/b"), store.children("/no")) == ({"b"}, {"d"}, frozenset())


@pytest.mark.parametrize("empty", [Tree, FrozenStore])
def test_sessions_and_their_ephemeral_znodes(empty: type[Tree] | type[FrozenStore]) -> None:
    store = carried_out(empty(), OpenSession(SESSION, 4000), put("/a", owner=SESSION), put("/k", owner=CONTAINER_OWNER))
    assert (store.timeout(SESSION), store.ephemerals(SESSION)) == (4000, {"/a"})
    assert store.ephemerals(CONTAINER_OWNER) == frozenset()
    store = carried_out(store, Remove("/a"), EndSession(SESSION), EndSession(8))
    assert (store.timeout(SESSION), store.ephemerals(SESSION)) == (None, frozenset())


def test_a_frozen_store_with_the_same_contents_is_the_same_value() -> None:
    one = FrozenStore().carry_out((put("/b"), put("/a"), OpenSession(2, 1), OpenSession(1, 1)))
    two = FrozenStore().carry_out((OpenSession(1, 1), OpenSession(2, 1), put("/a", b"x"), put("/b"), put("/a")))
    assert (one, hash(one)) == (two, hash(two))


def test_the_tree_counts_its_znodes_and_the_bytes_of_their_data() -> None:
    tree = Tree()
    tree.carry_out((put("/a", b"123"), put("/b", b"4"), put("/a", b"12"), Remove("/b"), Remove("/no")))
    assert (len(tree), tree.bytes_of_data) == (5, 2)


def test_a_znode_may_get_another_owner() -> None:
    tree = Tree()
    tree.carry_out((put("/a", owner=SESSION), put("/a", owner=CONTAINER_OWNER)))
    assert (tree.ephemerals(SESSION), tree.containers, set(tree.owners())) == (frozenset(), {"/a"}, set())
    tree.carry_out((put("/a", owner=ttl_owner(5)),))
    assert (tree.containers, tree.ttls) == (set(), {"/a"})


def test_equal_acls_are_kept_once() -> None:
    tree = Tree()
    for path in ("/a", "/b"):
        tree.carry_out((Put(path, new_znode(b"", (Acl(1, Id("digest", "a:b")),), 1, 1, 0)),))
    one, two = tree.node("/a"), tree.node("/b")
    assert one is not None and two is not None
    assert one.acl is two.acl


def test_acls_that_are_all_different_are_kept_too() -> None:
    tree = Tree()
    for number in range(5000):
        tree.carry_out((Put(f"/n{number}", new_znode(b"", (Acl(1, Id("digest", f"a:{number}")),), 1, 1, 0)),))
    last, first = tree.node("/n4999"), tree.node("/n0")
    assert first is not None and last is not None
    assert (first.acl[0].id.id, last.acl[0].id.id) == ("a:0", "a:4999")


def test_every_znode_comes_after_its_parent() -> None:
    tree = Tree()
    tree.carry_out(map(put, ("/a", "/a/b", "/a/b/c", "/a/d", "/e")))
    paths = [path for path, _ in tree.preorder()]
    assert sorted(paths) == sorted(
        ["/", "/a", "/a/b", "/a/b/c", "/a/d", "/e", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"]
    )
    for path in paths[1:]:
        assert (path.rpartition("/")[0] or "/") in paths[: paths.index(path)]


def test_a_tree_may_change_while_it_is_read() -> None:
    tree = Tree()
    tree.carry_out(put(f"/n{number}") for number in range(50))
    reading = tree.preorder()
    first = [next(reading)[0] for _ in range(10)]
    tree.carry_out(Remove(f"/n{number}") for number in range(50))
    tree.carry_out((put("/late"),))
    rest = [path for path, _ in reading]
    assert first[0] == "/"
    assert set(rest) <= {"/zookeeper", "/zookeeper/quota", "/zookeeper/config"}


def test_an_overlay_shows_what_is_outstanding_and_the_store_below_for_the_rest() -> None:
    tree = Tree()
    tree.carry_out((put("/a"), put("/a/b"), put("/k")))
    overlay = Overlay(tree)
    overlay.carry_out(5, (put("/a", b"new"), put("/a/c"), Remove("/a/b"), put("/a/d")))
    assert overlay.node("/a") == put("/a", b"new").znode
    assert (overlay.node("/a/b"), overlay.node("/k")) == (None, put("/k").znode)
    children = overlay.children("/a")
    assert (len(children), set(children)) == (2, {"c", "d"})
    assert "c" in children
    assert "b" not in children
    assert tree.children("/a") == {"b"}


def test_a_settled_transaction_is_forgotten_and_later_ones_are_not() -> None:
    tree = Tree()
    overlay = Overlay(tree)
    steps: dict[int, tuple[Operation, ...]] = {
        1: (put("/a", b"1"), OpenSession(SESSION, 4000)),
        2: (put("/a", b"2"), put("/e", owner=SESSION)),
        3: (Remove("/a"), EndSession(SESSION), Remove("/e")),
    }
    for zxid, operations in steps.items():
        overlay.carry_out(zxid, operations)
    for zxid, operations in steps.items():
        tree.carry_out(operations)
        overlay.settled(zxid)
        assert overlay.node("/a") is None
        assert overlay.timeout(SESSION) is None
        assert overlay.ephemerals(SESSION) == frozenset()
        assert set(overlay.children("/")) == {"zookeeper"}
    assert len(overlay) == 0


def test_settling_up_to_a_zxid_settles_everything_before_it() -> None:
    tree = Tree()
    overlay = Overlay(tree)
    for zxid in (1, 2, 3):
        overlay.carry_out(zxid, (put(f"/n{zxid}"),))
    tree.carry_out((put("/n1"), put("/n2")))
    overlay.settled(2)
    assert len(overlay) == 1
    assert set(overlay.children("/")) == {"zookeeper", "n1", "n2", "n3"}


def test_the_ephemeral_znodes_of_a_session_are_those_below_with_what_is_outstanding() -> None:
    tree = Tree()
    tree.carry_out((put("/a", owner=SESSION), put("/b", owner=SESSION)))
    overlay = Overlay(tree)
    overlay.carry_out(5, (Remove("/a"), put("/c", owner=SESSION)))
    assert overlay.ephemerals(SESSION) == {"/b", "/c"}


def test_a_znode_that_is_removed_and_made_again_has_no_children() -> None:
    tree = Tree()
    tree.carry_out((put("/a"), put("/a/b")))
    overlay = Overlay(tree)
    overlay.carry_out(5, (Remove("/a/b"), Remove("/a"), put("/a")))
    assert list(overlay.children("/a")) == []
    assert len(overlay.children("/")) == 2


def test_an_overlay_removes_nothing_where_there_is_no_znode() -> None:
    overlay = Overlay(Tree())
    overlay.carry_out(5, (Remove("/no"),))
    assert overlay.node("/no") is None
    assert set(overlay.children("/")) == {"zookeeper"}
    assert len(overlay.children("/")) == 1


def test_an_overlay_may_stand_on_an_overlay() -> None:
    base: Store = Overlay(Tree())
    middle = Overlay(base)
    middle.carry_out(1, (put("/a"),))
    top = Overlay(middle)
    top.carry_out(2, (put("/a/b"),))
    assert (set(top.children("/a")), set(middle.children("/a"))) == ({"b"}, set())


def test_a_container_goes_when_it_has_lost_its_last_child() -> None:
    tree = Tree()
    used = put("/used", owner=CONTAINER_OWNER, cversion=1)
    tree.carry_out((used, put("/never", owner=CONTAINER_OWNER), put("/full", owner=CONTAINER_OWNER, cversion=1)))
    tree.carry_out((put("/full/c"),))
    assert to_delete(tree, now=10_000) == ["/used"]


def test_a_container_that_never_had_a_child_goes_when_the_operator_says_so() -> None:
    tree = Tree()
    tree.carry_out((put("/never", owner=CONTAINER_OWNER),))
    assert to_delete(tree, now=110, never_used=100) == []
    assert to_delete(tree, now=111, never_used=100) == ["/never"]


def test_a_ttl_znode_goes_when_its_time_is_over_and_it_has_no_children() -> None:
    tree = Tree()
    tree.carry_out((put("/t", owner=ttl_owner(300)), put("/full", owner=ttl_owner(300)), put("/full/c")))
    assert to_delete(tree, now=310) == []
    assert to_delete(tree, now=311) == ["/t"]
