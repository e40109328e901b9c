"""Tests of watches: recipients, order and number of events, and missed events after a reconnection.

Expected values: the sequences of events of the first part were observed on ZooKeeper 3.8.0 by a client on a plain
socket that had registered these watches; those about several modes at one path are from `WatchManager` of 3.9.
"""

import pytest

from refimpl.tree import Tree
from spec.tree.apply import Event, EventType, apply
from spec.tree.data import OPEN_ACL_UNSAFE, Record
from spec.tree.prepare import prepare
from spec.tree.read import read
from spec.tree.replies import Code
from spec.tree.requests import (
    AddWatch,
    CheckWatches,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetChildren2,
    GetData,
    Multi,
    RemoveWatches,
    Request,
    SetData,
    SetWatches,
    SetWatches2,
)
from spec.tree.watches import Watches, WatchKind, watch_of

CREATED, DELETED, CHANGED, CHILDREN = EventType
PERSISTENT, RECURSIVE = 0, 1


class Server:
    """A tree, the watches of client `v`, and the events sent to it."""

    def __init__(self, *paths: str) -> None:
        self.tree = Tree()
        self.watches = Watches()
        self.zxid = 0
        self.write(*map(create, paths))

    def write(self, *records: Record) -> list[tuple[EventType, str]]:
        """Return the events sent to the client while the records are applied in order."""
        told = []
        for record in records:
            self.zxid += 1
            applied = apply(self.tree, self.zxid, prepare(self.tree, Request(1, 1, record), 0))
            self.tree.carry_out(applied.operations)
            for event in applied.events:
                told += [(kind, path) for _, kind, path in self.watches.fire(event)]
        return told

    def look(self, *requests: Record) -> None:
        for request in requests:
            kind = watch_of(request, read(self.tree, request, 1)[0])
            if kind is not None:
                assert isinstance(request, Exists | GetData | GetChildren | GetChildren2)
                self.watches.add(kind, request.path, "v")


def create(path: str) -> Create:
    return Create(path, b"", OPEN_ACL_UNSAFE, 0)


def change(path: str) -> SetData:
    return SetData(path, b"", -1)


def delete(path: str) -> Delete:
    return Delete(path, -1)


def test_a_client_with_data_and_child_watches_is_told_of_a_deletion_once() -> None:
    server = Server("/w", "/w/a")
    server.look(GetData("/w/a", True), GetChildren("/w/a", True), Exists("/w/a", True), GetChildren("/w", True))
    server.look(GetData("/w", True))
    assert server.write(delete("/w/a")) == [(DELETED, "/w/a"), (CHILDREN, "/w")]
    assert server.write(create("/w/a"), delete("/w/a")) == []


def test_exists_waits_for_a_creation() -> None:
    server = Server("/w")
    server.look(Exists("/w/n", True), GetChildren("/w", True))
    assert server.write(create("/w/n")) == [(CREATED, "/w/n"), (CHILDREN, "/w")]


def test_data_watches_hear_of_data_and_child_watches_of_children() -> None:
    server = Server("/w", "/w/n")
    server.look(GetData("/w/n", True), GetChildren2("/w/n", True))
    assert server.write(change("/w/n"), create("/w/n/q")) == [(CHANGED, "/w/n"), (CHILDREN, "/w/n")]


def test_persistent_watches_stay_and_recursive_ones_hear_of_no_children() -> None:
    server = Server("/w", "/w/n", "/w/n/q")
    server.watches.add_watch(AddWatch("/w", RECURSIVE), "v")
    server.watches.add_watch(AddWatch("/w/n", PERSISTENT), "v")
    writes = (create("/w/n/z"), change("/w/n/z"), change("/w/n"), delete("/w/n/z"), delete("/w/n/q"), delete("/w/n"))
    assert server.write(*writes, create("/w/n")) == [
        (CREATED, "/w/n/z"),
        (CHILDREN, "/w/n"),
        (CHANGED, "/w/n/z"),
        (CHANGED, "/w/n"),
        (DELETED, "/w/n/z"),
        (CHILDREN, "/w/n"),
        (DELETED, "/w/n/q"),
        (CHILDREN, "/w/n"),
        (DELETED, "/w/n"),
        (CREATED, "/w/n"),
    ]


def test_the_events_of_a_multi_come_in_the_order_of_its_operations() -> None:
    server = Server("/w", "/w/n")
    server.look(GetChildren("/w", True), GetData("/w/n", True))
    multi = Multi((change("/w/n"), create("/w/m1"), create("/w/m2"), delete("/w/n")))
    assert server.write(multi) == [(CHANGED, "/w/n"), (CHILDREN, "/w")]


def test_a_client_that_comes_back_is_told_what_it_missed_and_the_rest_is_registered() -> None:
    server = Server("/w", "/w/m1", "/w/m2")
    seen = server.zxid
    server.write(change("/w/m1"), create("/w/m2/k"), delete("/w/m2/k"))
    data, exist, child = ("/w/m1", "/w/m2", "/w/gone"), ("/w/m1", "/w/none"), ("/w/m2", "/w/m1", "/w/gone")
    missed = server.watches.set_watches(server.tree, SetWatches(seen, data, exist, child), "v")
    assert [(kind, path) for _, kind, path in missed] == [
        (CHANGED, "/w/m1"),
        (DELETED, "/w/gone"),
        (CREATED, "/w/m1"),
        (CHILDREN, "/w/m2"),
        (DELETED, "/w/gone"),
    ]
    writes = (create("/w/none"), change("/w/m2"), change("/w/m1"), create("/w/m1/k"), create("/w/m2/k"))
    assert server.write(*writes) == [(CREATED, "/w/none"), (CHANGED, "/w/m2"), (CHILDREN, "/w/m1")]


def test_persistent_watches_are_registered_again_whatever_was_missed() -> None:
    server = Server("/w")
    request = SetWatches2(0, (), (), (), ("/w",), ("/w",))
    assert server.watches.set_watches(server.tree, request, "v") == []
    told = server.write(change("/w"), create("/w/a"), change("/w"))
    assert told == [(CHANGED, "/w"), (CREATED, "/w/a"), (CHILDREN, "/w"), (CHANGED, "/w")]


def test_watches_are_removed_by_type_and_what_is_not_there_is_no_watcher() -> None:
    server = Server("/w")
    watches = server.watches
    server.look(GetData("/w", True))
    assert watches.remove(RemoveWatches("/w", 1), "v") is Code.NO_WATCHER
    assert watches.check(CheckWatches("/w", 2), "v") is Code.OK
    assert watches.check(CheckWatches("/w", 2), "another") is Code.NO_WATCHER
    assert watches.remove(RemoveWatches("/w", 2), "v") is Code.OK
    assert watches.remove(RemoveWatches("/w", 2), "v") is Code.NO_WATCHER
    assert server.write(change("/w")) == []


@pytest.mark.parametrize("number", [0, 6, -1])
def test_a_type_of_watch_that_does_not_exist_cannot_be_unmarshalled(number: int) -> None:
    assert Watches().remove(RemoveWatches("/w", number), "v") is Code.MARSHALLING_ERROR
    assert Watches().check(CheckWatches("/w", number), "v") is Code.MARSHALLING_ERROR


def test_a_mode_of_watch_that_does_not_exist_cannot_be_unmarshalled() -> None:
    assert Watches().add_watch(AddWatch("/w", 5), "v") is Code.MARSHALLING_ERROR


def test_any_removes_every_watch_at_the_path() -> None:
    server = Server("/w")
    server.look(GetData("/w", True), GetChildren("/w", True))
    server.watches.add_watch(AddWatch("/w", PERSISTENT), "v")
    server.watches.add_watch(AddWatch("/w", RECURSIVE), "v")
    assert server.watches.remove(RemoveWatches("/w", 3), "v") is Code.OK
    assert server.write(change("/w"), create("/w/a")) == []
    assert len(server.watches) == 0


def test_a_watch_that_fires_once_leaves_a_persistent_one_at_the_same_path() -> None:
    server = Server("/w")
    server.watches.add_watch(AddWatch("/w", PERSISTENT), "v")
    server.look(GetData("/w", True))
    assert server.write(change("/w"), change("/w")) == [(CHANGED, "/w")] * 2
    assert server.watches.check(CheckWatches("/w", 2), "v") is Code.NO_WATCHER
    assert server.watches.check(CheckWatches("/w", 4), "v") is Code.OK


def test_recursive_watches_end_when_the_last_is_removed() -> None:
    server = Server("/w", "/w/a")
    for watcher in ("v", "u"):
        server.watches.add(WatchKind.PERSISTENT_RECURSIVE, "/w", watcher)
    assert server.write(change("/w/a")) == [(CHANGED, "/w/a")] * 2
    server.watches.forget("u")
    assert server.watches.remove(RemoveWatches("/w", 5), "v") is Code.OK
    assert server.write(change("/w/a")) == []


def test_a_recursive_watch_of_the_root_hears_of_everything() -> None:
    server = Server()
    server.watches.add(WatchKind.PERSISTENT_RECURSIVE, "/", "v")
    assert server.write(create("/a"), create("/a/b"), change("/")) == [
        (CREATED, "/a"),
        (CREATED, "/a/b"),
        (CHANGED, "/"),
    ]


def test_watchers_are_told_in_the_order_in_which_they_came() -> None:
    watches = Watches()
    for watcher in ("c", "a", "b"):
        watches.add(WatchKind.DATA, "/w", watcher)
    told = watches.fire(Event(CHANGED, "/w"))
    assert told == [("c", CHANGED, "/w"), ("a", CHANGED, "/w"), ("b", CHANGED, "/w")]


def test_a_client_that_is_gone_is_told_nothing_and_leaves_nothing() -> None:
    server = Server("/w", "/w/a")
    server.look(GetData("/w", True), GetChildren("/w/a", True), Exists("/x", True))
    server.watches.forget("v")
    assert len(server.watches) == 0
    assert server.write(change("/w"), create("/x"), delete("/w/a")) == []


@pytest.mark.parametrize(
    ("request_", "code", "kind"),
    [
        (Exists("/a", True), Code.OK, WatchKind.DATA),
        (Exists("/a", True), Code.NO_NODE, WatchKind.DATA),
        (Exists("/a", True), Code.NO_AUTH, None),
        (Exists("/a", False), Code.OK, None),
        (GetData("/a", True), Code.OK, WatchKind.DATA),
        (GetData("/a", True), Code.NO_NODE, None),
        (GetChildren("/a", True), Code.OK, WatchKind.CHILDREN),
        (GetChildren2("/a", True), Code.NO_AUTH, None),
        (change("/a"), Code.OK, None),
    ],
)
def test_which_watch_a_request_registers(request_: Record, code: Code, kind: WatchKind | None) -> None:
    assert watch_of(request_, code) is kind


def test_only_recursive_watches_hear_of_what_is_below_them() -> None:
    """WatchManager.triggerWatch: of the watchers of ancestor paths, only those with a recursive mode are notified."""
    server = Server("/w", "/w/a", "/other")
    server.watches.add(WatchKind.PERSISTENT_RECURSIVE, "/other", "u")
    server.watches.add(WatchKind.PERSISTENT, "/w", "v")
    server.watches.add(WatchKind.DATA, "/w", "x")

    assert server.watches.fire(Event(CHANGED, "/w/a")) == []


def test_a_recursive_watch_outlives_the_other_watches() -> None:
    """A standard watch that fires leaves a recursive watch of another client in place."""
    server = Server("/w", "/w/a", "/x")
    server.watches.add(WatchKind.PERSISTENT_RECURSIVE, "/w", "u")
    server.watches.add(WatchKind.DATA, "/x", "v")

    assert server.write(change("/x")) == [(CHANGED, "/x")]
    assert server.write(change("/w/a")) == [(CHANGED, "/w/a")]
