"""Named cases about requests in groups, watches and sessions.

Source: `MultiResponse`, `WatchManager`, `DataTree.setWatches`, `SessionTrackerImpl`,
`ZooKeeperServer.processConnectRequest`, `PrepRequestProcessor` (reconfig), `ZooKeeperServer.processPacket`.
"""

import struct

from harness import commands as c
from harness.conform.cases.case import CLEANER, LONG, READ, SECRET, Case, area, node
from harness.servers import RECONFIG

CHILD, DATA, ANY = 1, 2, 3
PERSISTENT, RECURSIVE = 4, 5


def _changes(path: str, who: int = 1) -> c.Script:
    """Each kind of event at a path and at a child: created, changed, child created and deleted, deleted."""
    return (
        node(path, who=who),
        c.Set(who, path),
        node(f"{path}/b", who=who),
        c.Set(who, f"{path}/b"),
        c.Delete(who, f"{path}/b"),
        c.Delete(who, path),
    )


MULTIS = area(
    "multi",
    ("create2_in_a_multi",),
    all_kinds=(
        c.Multi(
            0,
            (c.Create(0, "/a", b"x"), c.Set(0, "/a"), c.Check(0, "/a", 1), c.Create(0, "/b"), c.Delete(0, "/b")),
        ),
        c.Get(0, "/a"),
    ),
    create2_in_a_multi=(c.Multi(0, (node("/a"),)), c.Children(0, "")),
    containers_and_TTL_in_a_multi=(
        c.Multi(0, (c.Create(0, "/a", flags=c.CONTAINER, by=c.CREATE_CONTAINER),)),
        c.Multi(0, (c.Create(0, "/b", flags=c.TTL, by=c.CREATE_TTL, ttl=LONG),)),
        c.Children(0, ""),
    ),
    a_failure_undoes_all=(
        c.Multi(0, (c.Create(0, "/a"), c.Delete(0, "/no"), c.Create(0, "/b"))),
        c.Children2(0, ""),
    ),
    a_check_of_a_wrong_version=(node("/a"), c.Multi(0, (c.Check(0, "/a", 1), c.Set(0, "/a"))), c.Get(0, "/a")),
    one_operation_sees_the_one_before=(
        c.Multi(0, (c.Create(0, "/a"), c.Create(0, "/a/b"), c.Delete(0, "/a/b"), c.Delete(0, "/a"))),
        c.Children2(0, ""),
    ),
    nothing=(c.Multi(0, ()),),
    without_a_permission=(
        node("/a", acl=((READ, "world", "anyone"), CLEANER)),
        c.Multi(0, (c.Create(0, "/b"), c.Set(0, "/a"))),
        c.Children(0, ""),
    ),
    a_mode_that_does_not_exist=(c.Multi(0, (c.Create(0, "/a"), c.Create(0, "/b", flags=9))), c.Children(0, "")),
    watches_of_each_operation=(
        c.Children(1, "", True),
        c.Exists(1, "/a", True),
        c.Multi(0, (c.Create(0, "/a"), c.Create(0, "/b"))),
    ),
)
MULTI_READS = area(
    "multiRead",
    data_and_children=(
        node("/a", data=b"x"),
        node("/a/b"),
        c.MultiRead(0, (c.Get(0, "/a"), c.Children(0, "/a"))),
    ),
    an_error_is_the_result_of_one_read=(node("/a"), c.MultiRead(0, (c.Get(0, "/no"), c.Get(0, "/a")))),
    nothing=(c.MultiRead(0, ()),),
)
WATCHES = area(
    "watches",
    data=(node("/a"), c.Get(0, "/a", True), c.Set(1, "/a"), c.Set(1, "/a")),
    exists_of_no_znode=(c.Exists(0, "/a", True), *_changes("/a")),
    data_and_deletion=(node("/a"), c.Get(0, "/a", True), c.Delete(1, "/a")),
    children=(c.Children(0, "", True), node("/a", who=1), node("/b", who=1)),
    children_of_a_deleted_znode=(node("/a"), c.Children(0, "/a", True), c.Delete(1, "/a")),
    data_of_no_znode_leaves_no_watch=(c.Get(0, "/a", True), node("/a", who=1)),
    the_event_comes_before_the_reply=(node("/a"), c.Get(0, "/a", True), c.Set(0, "/a")),
    every_session_has_its_event=(node("/a"), c.Get(0, "/a", True), c.Get(2, "/a", True), c.Set(1, "/a")),
    persistent=(c.AddWatch(0, "/a", 0), *_changes("/a"), *_changes("/a")),
    persistent_recursive=(c.AddWatch(0, "/a", 1), *_changes("/a"), *_changes("/a")),
    several_modes_at_one_path=(c.AddWatch(0, "/a", 0), c.AddWatch(0, "/a", 1), *_changes("/a")),
    a_mode_of_addWatch_that_does_not_exist=(c.AddWatch(0, "/a", 7), c.Get(0, "")),
    checkWatches=(
        node("/a"),
        c.CheckWatches(0, "/a", DATA),
        c.Get(0, "/a", True),
        c.CheckWatches(0, "/a", DATA),
        c.CheckWatches(0, "/a", CHILD),
        c.CheckWatches(0, "/a", ANY),
    ),
    checkWatches_of_another_session=(node("/a"), c.Get(1, "/a", True), c.CheckWatches(0, "/a", ANY)),
    removeWatches=(
        node("/a"),
        c.Get(0, "/a", True),
        c.RemoveWatches(0, "/a", CHILD),
        c.RemoveWatches(0, "/a", DATA),
        c.RemoveWatches(0, "/a", ANY),
        c.Set(1, "/a"),
    ),
    removeWatches_of_a_persistent_one=(
        c.AddWatch(0, "/a", 0),
        c.CheckWatches(0, "/a", PERSISTENT),
        c.RemoveWatches(0, "/a", PERSISTENT),
        *_changes("/a"),
    ),
    removeWatches_of_a_recursive_one=(
        c.AddWatch(0, "/a", 1),
        c.CheckWatches(0, "/a", RECURSIVE),
        c.RemoveWatches(0, "/a", RECURSIVE),
        *_changes("/a"),
    ),
    removeWatches_of_any_kind=(c.AddWatch(0, "/a", 1), c.RemoveWatches(0, "/a", ANY), *_changes("/a")),
)
SET_WATCHES = area(
    "setWatches",
    what_has_changed_meanwhile=(
        node("/a"),
        node("/b"),
        c.Drop(0),
        c.Set(1, "/a"),
        c.Delete(1, "/b"),
        node("/c", who=1),
        c.Connect(0),
        c.SetWatches(0, data=("/a", "/b"), exist=("/c",)),
    ),
    what_has_not_changed=(
        node("/a"),
        c.Drop(0),
        c.Connect(0),
        c.SetWatches(0, data=("/a",), exist=("/c",), child=("/a",)),
        *_changes("/c"),
        c.Set(1, "/a"),
        node("/a/b", who=1),
    ),
    by_the_older_opcode=(
        node("/a"),
        node("/b"),
        c.Drop(0),
        c.Set(1, "/a"),
        node("/c", who=1),
        c.Connect(0),
        c.SetWatches(0, data=("/a", "/b"), exist=("/c", "/d"), child=("/b",), by=101),
        c.Set(1, "/b"),
        node("/d", who=1),
        node("/b/c", who=1),
    ),
    children_that_have_changed=(
        node("/a"),
        node("/b"),
        node("/c"),
        c.Drop(0),
        node("/a/b", who=1),
        c.Delete(1, "/b"),
        c.Set(1, "/c"),
        c.Connect(0),
        c.SetWatches(0, child=("/a", "/b", "/c")),
        node("/c/d", who=1),
    ),
    on_another_server=(
        node("/a"),
        c.Get(0, "/a", True),
        c.Drop(0),
        c.Set(1, "/a"),
        c.Connect(0, 1),
        c.SetWatches(0, data=("/a",), exist=("/b",)),
        node("/b", who=1),
    ),
    a_watch_fires_once_after_it_was_set_twice=(
        node("/a"),
        c.Get(0, "/a", True),
        c.SetWatches(0, data=("/a",)),
        c.Set(1, "/a"),
        c.Set(1, "/a"),
    ),
    what_has_changed_without_READ=(
        node("/a", acl=(CLEANER,)),
        c.Drop(0),
        c.Connect(0),
        c.SetWatches(0, exist=("/a",)),
    ),
    of_znodes_without_READ=(
        node("/a", acl=(CLEANER,)),
        c.Drop(0),
        c.Connect(0),
        c.SetWatches(0, data=("/a",), child=("/a",)),
        c.AddAuth(1, "digest", SECRET),
        c.Set(1, "/a"),
    ),
    of_paths_that_are_not_valid=(c.SetWatches(0, data=("/a/",), exist=("/a//b",)), c.Get(0, "")),
    persistent_and_recursive=(
        c.Drop(0),
        c.Connect(0),
        c.SetWatches(0, persistent=("/a",), recursive=("/b",)),
        *_changes("/a"),
        *_changes("/b"),
    ),
    a_lost_connection_loses_its_watches=(
        node("/a"),
        c.Get(0, "/a", True),
        c.Drop(0),
        c.Connect(0),
        c.Set(1, "/a"),
    ),
)
EPHEMERALS = area(
    "ephemerals",
    closing_deletes_them=(
        node("/a", c.EPHEMERAL),
        node("/b"),
        c.Exists(1, "/a", True),
        c.Close(0),
        c.Children(1, ""),
    ),
    an_owner=(node("/a", c.EPHEMERAL), c.Exists(1, "/a")),
    another_session_may_delete_one=(node("/a", c.EPHEMERAL), c.Delete(1, "/a"), c.Close(0), c.Children2(1, "")),
    getEphemerals=(node("/a", c.EPHEMERAL), node("/b", c.EPHEMERAL, who=1), c.Ephemerals(0, ""), c.Ephemerals(2, "")),
    a_lost_connection_keeps_them=(node("/a", c.EPHEMERAL), c.Drop(0), c.Exists(1, "/a"), c.Connect(0)),
)
SESSIONS = area(
    "sessions",
    a_closed_session_is_not_served=(c.Close(0), c.Get(0, ""), c.Connect(0), c.Get(0, "")),
    reattachment=(node("/a", c.EPHEMERAL), c.Connect(0), c.Set(0, "/a"), c.Ephemerals(0, "")),
    a_wrong_password=(node("/a", c.EPHEMERAL), c.Drop(0), c.WrongPassword(0), c.Connect(0), c.Exists(1, "/a")),
    an_identity_ends_with_its_connection=(
        node("/a", acl=(CLEANER,)),
        c.AddAuth(0, "digest", b"anna:secret"),
        c.Connect(0),
        c.Get(0, "/a"),
    ),
    expiry=(node("/a", c.EPHEMERAL), c.Exists(1, "/a", True), c.Expire(0), c.Connect(0), c.Get(0, "/a")),
)
SASL_WITHOUT_USERS = area(
    "SASL",
    a_token_is_answered_with_none=(c.Raw(0, 102, b"\0\0\0\0"), c.Raw(0, 102, b"\0\0\0\1x"), c.WhoAmI(0)),
    a_null_token=(c.Raw(0, 102, b"\xff\xff\xff\xff"), c.Get(0, "")),
    an_identity_that_no_proof_can_give=(c.AddAuth(0, "sasl", b"anna"), c.Get(0, "")),
    an_ACL_of_the_scheme=(node("/a", acl=((31, "sasl", "anna"),)), c.Exists(0, "/a")),
)
OTHERS = area(
    "sync and others",
    sync=(c.Sync(0, ""), c.Sync(0, "/no")),
    reconfig_is_refused=(c.Raw(0, RECONFIG, b"\xff\xff\xff\xff" * 3 + struct.pack("!q", -1)), c.Get(0, "")),
    an_opcode_that_does_not_exist=(c.Raw(0, 55), c.Get(0, "")),
    a_negative_opcode=(c.Raw(0, -7), c.Get(0, "")),
)
MALFORMED = area(
    "malformed requests",
    a_relative_path=(c.Raw(0, 3, b"\0\0\0\1a\0"), c.Get(0, "")),
    a_null_path=(c.Raw(0, 3, b"\xff\xff\xff\xff\0"), c.Get(0, "")),
    an_empty_path=(c.Raw(0, 3, b"\0\0\0\0\0"), c.Connect(0), c.Get(0, "")),
    a_null_ACL=(node("/a", acl=None), c.Children(0, "")),
    a_length_beyond_the_request=(c.Raw(0, 3, b"\x7f\xff\xff\xff\0"), c.Get(0, "")),
    a_request_that_ends_early=(c.Raw(0, 3, b"\0\0\0\5/a"), c.Get(0, "")),
    a_multi_without_an_end=(c.Raw(0, 14), c.Get(0, "")),
    a_negative_count_of_ACL_entries=(
        c.Raw(0, 1, b"\0\0\0\2/n" + b"\0\0\0\0" + b"\xff\xff\xff\xfe" + b"\0\0\0\0"),
        c.Get(0, ""),
    ),
)
CASES: tuple[Case, ...] = (
    *MULTIS, *MULTI_READS, *WATCHES, *SET_WATCHES, *EPHEMERALS, *SESSIONS, *SASL_WITHOUT_USERS, *OTHERS, *MALFORMED,
)  # fmt: skip
