"""Named cases about znodes: create, delete, set, children, ACLs, containers, times to live, paths and zxids.

`waiting_cases` are about znodes that the server deletes by itself: containers and znodes with a time to live. They
wait, so they run only on request. How soon a server looks for such znodes is a setting of the server
(`znode.container.checkIntervalMs`, 60 s by default), and `seconds` must be longer than two of its looks.

Rules of this module:

- A znode that must stay is looked at after two other containers have gone, one after the other. The
  server has then looked at all znodes once in between, so the case needs no time of its own.

Source: `PrepRequestProcessor.pRequest2Txn`, `PathUtils.validatePath`, `DataTree`, `EphemeralType`, `PathTrie`;
`ContainerManager.getCandidates`, `checkContainers`; `PrepRequestProcessor.pRequest2Txn` (deleteContainer).
"""

from harness import commands as c
from harness.conform.cases.case import (
    CLEANER,
    CREATE,
    DELETE,
    LONG,
    READ,
    SECRET,
    WRITE,
    Case,
    area,
    container,
    lasting,
    node,
)


def _acl(path: str, *entries: c.AclEntry, who: int = 0) -> c.SetAcl:
    return c.SetAcl(who, path, entries)


LIST_AND_STAT = c.Children2(0, "")
SOFT, HARD = b"count=1,bytes=1", b"count=-1,bytes=-1=;byteHardLimit=4;countHardLimit=3"
QUOTAS = area(
    "quotas",
    a_new_quota_counts_what_is_there=(
        node("/a", data=b"123"),
        node("/a/b", data=b"45"),
        c.Limit(0, "/a", SOFT),
        c.Use(0, "/a"),
    ),
    a_quota_twice=(node("/a"), c.Limit(0, "/a", SOFT), c.Limit(0, "/a", SOFT), c.Use(0, "/a")),
    each_change_is_counted=(
        node("/a"),
        c.Limit(0, "/a", SOFT),
        node("/a/b", data=b"12"),
        node("/a/c", c.EPHEMERAL, who=1, data=b"3"),
        c.Use(0, "/a"),
        c.Set(0, "/a/b", b"1"),
        c.Use(0, "/a"),
        c.Delete(0, "/a/b"),
        c.Close(1),
        c.Use(0, "/a"),
    ),
    a_multi_is_counted=(
        node("/a"),
        c.Limit(0, "/a", SOFT),
        c.Multi(0, (c.Create(0, "/a/b", b"1"), c.Create(0, "/a/b/c", b"2"), c.Set(0, "/a", b"3"))),
        c.Use(0, "/a"),
        c.Multi(0, (c.Create(0, "/a/d", b"1"), c.Delete(0, "/no"))),
        c.Use(0, "/a"),
    ),
    the_nearest_quota_counts=(
        node("/a"),
        c.Limit(0, "/a", SOFT),
        node("/a/b"),
        c.Limit(0, "/a/b", SOFT),
        node("/a/b/c", data=b"1"),
        c.Use(0, "/a"),
        c.Use(0, "/a/b"),
    ),
    a_path_that_begins_alike_is_not_counted=(
        node("/a"),
        c.Limit(0, "/a", SOFT),
        node("/ab", data=b"1"),
        c.Use(0, "/a"),
    ),
    a_hard_limit_of_znodes=(
        node("/a"),
        c.Limit(0, "/a", HARD),
        *(node(f"/a/{name}") for name in "bcd"),
        c.Use(0, "/a"),
    ),
    a_hard_limit_of_bytes=(
        node("/a"),
        c.Limit(0, "/a", HARD),
        node("/a/b", data=b"123"),
        c.Set(0, "/a", b"12"),
        c.Set(0, "/a/b", b"12345"),
        c.Use(0, "/a"),
    ),
)
CREATES = area(
    "create",
    ("create2_answers_with_the_stat",),
    create=(c.Create(0, "/a", b"x"), c.Get(0, "/a")),
    create2_answers_with_the_stat=(node("/a", data=b"x"), c.Get(0, "/a")),
    null_data=(c.Create(0, "/a", None), c.Get(0, "/a")),
    a_znode_that_exists=(node("/a"), node("/a"), c.Create(0, "/a")),
    a_parent_that_does_not_exist=(node("/a/b"), c.Create(0, "/a/b")),
    an_ephemeral_parent=(node("/a", c.EPHEMERAL), node("/a/b")),
    a_mode_that_does_not_exist=(node("/a", 7), c.Create(0, "/b", flags=9), c.Exists(0, "/a")),
    counts_in_the_stat_of_the_parent=(node("/a"), LIST_AND_STAT, node("/b"), c.Delete(0, "/a"), LIST_AND_STAT),
)
SEQUENCES = area(
    "sequence",
    numbers_follow_the_count_of_changes=(
        node("/a"),
        node("/a/s", c.SEQUENTIAL),
        node("/a/s", c.SEQUENTIAL),
        c.Delete(0, "/a/s0000000000"),
        node("/a/t", c.SEQUENTIAL),
    ),
    ephemeral_sequential=(node("/s", c.EPHEMERAL_SEQUENTIAL), node("/s", c.EPHEMERAL_SEQUENTIAL), LIST_AND_STAT),
    a_path_that_ends_in_a_slash=(node("/a"), node("/a/", c.SEQUENTIAL), c.Children(0, "/a")),
    a_failed_create_takes_no_number=(
        node("/a"),
        node("/s", c.SEQUENTIAL),
        node("/a"),
        node("/s", c.SEQUENTIAL),
    ),
    a_create_in_a_multi=(
        c.Multi(0, (c.Create(0, "/s", flags=c.SEQUENTIAL), c.Create(0, "/s", flags=c.SEQUENTIAL))),
        c.Children(0, ""),
    ),
)
DELETES = area(
    "delete",
    delete=(node("/a"), c.Delete(0, "/a"), c.Exists(0, "/a")),
    a_znode_that_does_not_exist=(c.Delete(0, "/a"),),
    a_znode_with_children=(node("/a"), node("/a/b"), c.Delete(0, "/a"), c.Children(0, "/a")),
    a_wrong_version=(node("/a"), c.Set(0, "/a"), c.Delete(0, "/a", 0), c.Delete(0, "/a", 1)),
)
SETS = area(
    "set and versions",
    each_set_counts=(node("/a"), c.Set(0, "/a", b"x"), c.Set(0, "/a", b"yy", 1), c.Get(0, "/a")),
    a_wrong_version=(node("/a"), c.Set(0, "/a", b"x", 1), c.Get(0, "/a")),
    a_version_below_minus_one=(node("/a"), c.Set(0, "/a", b"x", -2), c.Get(0, "/a")),
    null_data=(node("/a", data=b"x"), c.Set(0, "/a", None), c.Get(0, "/a")),
    a_znode_that_does_not_exist=(c.Set(0, "/a"), c.Get(0, "/a")),
)
READS = area(
    "exists and children",
    exists=(c.Exists(0, "/a"), node("/a"), c.Exists(0, "/a")),
    children_and_stat=(node("/a"), node("/a/b"), node("/a/c"), c.Children(0, "/a"), c.Children2(0, "/a")),
    children_of_no_znode=(c.Children(0, "/a"), c.Children2(0, "/a")),
    getAllChildrenNumber=(node("/a"), node("/a/b"), node("/a/b/c"), c.Count(0, "/a"), c.Count(0, "/no")),
    grandchildren_do_not_change_a_stat=(node("/a"), node("/a/b"), node("/a/b/c"), c.Children2(0, "/a")),
)
ACLS = area(
    "ACLs and schemes",
    getACL=(node("/a"), c.GetAcl(0, "/a"), c.GetAcl(0, "/no")),
    setACL_counts_its_version=(
        node("/a"),
        _acl("/a", CLEANER, (READ, "world", "anyone")),
        c.GetAcl(1, "/a"),
        c.Exists(1, "/a"),
    ),
    a_wrong_version_of_an_ACL=(node("/a"), c.SetAcl(0, "/a", c.OPEN, 3), c.GetAcl(0, "/a")),
    without_READ=(
        node("/a", acl=((WRITE, "world", "anyone"),)),
        c.Get(0, "/a"),
        c.Children(0, "/a"),
        c.Children2(0, "/a"),
    ),
    exists_without_READ=(node("/a", acl=((WRITE, "world", "anyone"),)), c.Exists(0, "/a")),
    without_WRITE=(node("/a", acl=((READ, "world", "anyone"),)), c.Set(0, "/a"), c.Get(0, "/a")),
    without_CREATE_and_DELETE=(
        node("/a"),
        node("/a/b"),
        _acl("/a", (READ, "world", "anyone"), CLEANER),
        node("/a/c"),
        c.Delete(0, "/a/b"),
    ),
    without_ADMIN=(node("/a", acl=((READ | CREATE | DELETE, "world", "anyone"),)), _acl("/a", CLEANER)),
    getACL_without_READ_and_ADMIN=(node("/a", acl=((WRITE, "world", "anyone"),)), c.GetAcl(0, "/a")),
    getACL_hides_a_digest_without_ADMIN=(
        node("/a", acl=((READ, "world", "anyone"), CLEANER)),
        c.GetAcl(0, "/a"),
        c.AddAuth(0, "digest", SECRET),
        c.GetAcl(0, "/a"),
    ),
    digest=(
        node("/a", acl=(CLEANER,), data=b"x"),
        c.Get(0, "/a"),
        c.AddAuth(0, "digest", b"anna:wrong"),
        c.Get(0, "/a"),
        c.AddAuth(0, "digest", SECRET),
        c.Get(0, "/a"),
        c.Get(1, "/a"),
    ),
    auth_stands_for_the_identities=(
        node("/a", acl=((31, "auth", ""),)),
        c.AddAuth(0, "digest", SECRET),
        node("/b", acl=((31, "auth", ""),)),
        c.GetAcl(0, "/b"),
    ),
    ip=(
        node("/in", acl=((31, "ip", "0.0.0.0/0"),)),
        c.Set(0, "/in"),
        node("/out", acl=((31, "ip", "10.255.255.255"),)),
        c.Set(0, "/out"),
    ),
    ids_that_no_scheme_accepts=(
        node("/a", acl=((31, "world", "somebody"),)),
        node("/b", acl=((31, "digest", "a:b:c"),)),
        node("/c", acl=((31, "ip", "nowhere"),)),
        node("/d", acl=((31, "nosuch", "x"),)),
        c.Children(0, ""),
    ),
    an_empty_ACL=(node("/a", acl=()), c.Children(0, "")),
    an_entry_twice=(node("/a", acl=((31, "world", "anyone"), (31, "world", "anyone"))), c.GetAcl(0, "/a")),
    addAuth_with_a_scheme_that_does_not_exist=(c.AddAuth(0, "nosuch", b"x"), c.Get(0, "")),
    whoAmI=(c.WhoAmI(0), c.AddAuth(0, "digest", SECRET), c.WhoAmI(0), c.WhoAmI(1)),
)
CONTAINERS = area(
    "containers and TTL",
    a_container=(container("/a"), node("/a/b"), c.Children2(0, "/a")),
    a_container_with_another_mode=(container("/a", c.PERSISTENT), container("/b", c.EPHEMERAL), c.Children(0, "")),
    mode_container_by_create2=(node("/a", c.CONTAINER), c.Exists(0, "/a")),
    a_time_to_live=(lasting("/a", LONG), c.Get(0, "/a"), node("/a/b"), c.Children2(0, "/a")),
    a_time_to_live_and_a_sequence=(lasting("/a", LONG, c.TTL_SEQUENTIAL), c.Children(0, "")),
    times_to_live_that_are_too_short_or_long=(lasting("/a", 0), lasting("/b", 1 << 41), c.Children(0, "")),
    mode_TTL_by_create2=(node("/a", c.TTL), c.Exists(0, "/a")),
)
PATHS = area(
    "errors in paths",
    create=tuple(node(path) for path in ("/a//b", "/./a", "/..", "/a/", "/\0", "/a\x1f", "/\ud7ff\uf8ff", "/\ufff0")),
    reads=tuple(c.Exists(0, path) for path in ("/a//b", "/./a", "/..", "/a/", "/\0")),
    writes=(c.Set(0, "/a//b"), c.Delete(0, "/a/"), _acl("/../a", CLEANER)),
    in_a_multi=(c.Multi(0, (c.Create(0, "/a"), c.Create(0, "/b/"))), c.Children(0, "")),
)
ZXIDS = tuple(
    case._replace(exact=True)
    for case in area(
        "zxids",
        each_write_has_the_next_one=(node("/a"), c.Set(0, "/a"), c.Delete(0, "/a")),
        a_refused_write_has_one_too=(c.Delete(0, "/a"), node("/a"), c.Get(1, "/a")),
        a_read_has_the_last_one=(node("/a"), c.Get(0, "/a"), c.Exists(1, "/no")),
        the_reply_to_a_failed_multi=(c.Multi(0, (c.Delete(0, "/a"),)), node("/a")),
    )
)
CASES: tuple[Case, ...] = (
    *CREATES, *SEQUENCES, *DELETES, *SETS, *READS, *ACLS, *CONTAINERS, *PATHS, *ZXIDS, *QUOTAS,
)  # fmt: skip


AREA = "deletion after time"
SHORT = 1000
"""A time to live in milliseconds: longer than the commands that come before its end."""


def _emptied(path: str) -> c.Script:
    return (container(path), node(f"{path}/child"), c.Delete(0, f"{path}/child"))


def waiting_cases(seconds: float) -> tuple[Case, ...]:
    """The cases; each wait ends after `seconds` at the latest."""

    def gone(path: str) -> c.Gone:
        return c.Gone(0, path, seconds)

    passes = (*_emptied("/m1"), gone("/m1"), *_emptied("/m2"), gone("/m2"))
    return area(
        AREA,
        a_container_without_children_any_more=(
            container("/a"),
            node("/a/child"),
            c.Exists(1, "/a", True),
            c.Delete(0, "/a/child"),
            gone("/a"),
            c.Children2(0, ""),
        ),
        a_container_that_never_had_a_child=(container("/a"), *passes, c.Exists(0, "/a")),
        a_container_with_a_child=(container("/a"), node("/a/b"), *passes, c.Children2(0, "/a")),
        a_container_in_a_container=(container("/a"), *_emptied("/a/b"), gone("/a/b"), gone("/a")),
        a_time_to_live_that_is_over=(lasting("/a", SHORT), c.Exists(1, "/a", True), gone("/a"), c.Children2(0, "")),
        a_time_to_live_with_a_child=(
            lasting("/a", SHORT),
            node("/a/b"),
            *passes,
            c.Exists(0, "/a"),
            c.Delete(0, "/a/b"),
            gone("/a"),
        ),
        a_time_to_live_that_is_not_over=(lasting("/a", LONG), *passes, c.Exists(0, "/a")),
        a_plain_znode_that_lost_its_child=(node("/a"), node("/a/b"), c.Delete(0, "/a/b"), *passes, c.Exists(0, "/a")),
        an_ACL_does_not_keep_a_container=(
            c.Create(0, "/a", acl=((31, "world", "anyone"),), flags=c.CONTAINER, by=c.CREATE_CONTAINER),
            node("/a/child"),
            c.SetAcl(0, "/a", ((17, "world", "anyone"), (8, "world", "anyone"))),
            c.Delete(0, "/a/child"),
            gone("/a"),
        ),
    )
