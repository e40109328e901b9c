"""Named cases about znodes that the server deletes by itself: containers and znodes with a time to live.

They wait, so they run only on request. How soon a server looks for such znodes is a setting of the server
(`znode.container.checkIntervalMs`, 60 s by default), and `seconds` must be longer than two of its looks.

Rule of this module: a znode that must stay is looked at after two other containers have gone, one after the other. The
server has then looked at all znodes once in between, so the case needs no time of its own.

Source: `ContainerManager.getCandidates`, `checkContainers`; `PrepRequestProcessor.pRequest2Txn` (deleteContainer).
"""

from harness import commands as c
from harness.conform.cases.case import LONG, Case, area, container, lasting, node

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
