"""Paths and kinds of znodes.

Expected values: the paths that a create accepts were observed on ZooKeeper 3.8.0; `PathUtils.validatePath` for the
others, `EphemeralType` for owners.
"""

import pytest

from spec.tree.data import CONTAINER_OWNER, Kind, Znode, kind_of, stat_of, ttl_of, ttl_owner
from spec.tree.paths import below, fault_of, name_of, parent_of, sequential


@pytest.mark.parametrize(
    "path",
    ["/", "/a", "/a/b-c_d", "/a/.x", "/a/...", "/a/..b", "/a/b.", "/a/\ud7ff", "/a/\xa0", "/a b", "/é", "/zookeeper"],
)
def test_these_paths_are_valid(path: str) -> None:
    assert fault_of(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "a/b",
        "/a/",
        "//",
        "//b",
        "/a//b",
        "/.",
        "/..",
        "/a/.",
        "/a/..",
        "/a/./b",
        "/a/../b",
        "/a\0",
        "/a\n",
        "/\n",
        "/..\n",
        "/a\x01b",
        "/a\x7f",
        "/a\x9f",
        "/a\ue000",
        "/a\ufff0",
        "/a\U0001f600",
    ],
)
def test_these_paths_are_not(path: str) -> None:
    assert fault_of(path) is not None


def test_a_fault_says_what_and_where() -> None:
    assert fault_of("/a/../b") == "'/a/../b': '/..' is not allowed, at 2"


def test_a_path_is_its_parent_and_its_name() -> None:
    for path in ("/a", "/a/b", "/a/b/c"):
        assert below(parent_of(path), name_of(path)) == path
    assert (parent_of("/a"), parent_of("/"), name_of("/a/b")) == ("/", "/", "b")


def test_sequential_numbers_have_ten_digits_or_more() -> None:
    assert sequential("/a-", 7) == "/a-0000000007"
    assert sequential("/a-", -7) == "/a--000000007"
    assert sequential("/a-", 2147483647) == "/a-2147483647"


def test_owners_say_what_a_znode_is() -> None:
    assert kind_of(0) is Kind.PERSISTENT
    assert kind_of(0x100000000000000) is Kind.EPHEMERAL
    assert kind_of(-(1 << 63)) is Kind.CONTAINER
    assert kind_of(-(1 << 56) + 1) is Kind.TTL
    assert kind_of(-(1 << 56) + (1 << 40)) is Kind.EPHEMERAL
    assert kind_of(-1) is Kind.EPHEMERAL


def test_a_time_to_live_is_kept_in_the_lowest_bits_of_the_owner() -> None:
    assert ttl_owner(1) & 0xFFFFFFFFFFFFFFFF == 0xFF00000000000001
    assert ttl_of(ttl_owner(86_400_000)) == 86_400_000


@pytest.mark.parametrize("ttl", [0, -1, 1 << 40])
def test_a_time_to_live_has_bounds(ttl: int) -> None:
    with pytest.raises(ValueError, match="a time to live is 1 to 1099511627775 ms"):
        ttl_owner(ttl)


def test_a_stat_shows_sessions_as_owners_and_counts_in_32_bits() -> None:
    def shown(owner: int, cversion: int) -> tuple[int, int]:
        stat = stat_of(Znode(None, (), 0, 0, 0, 0, 0, cversion, 0, owner, 0), 0)
        return stat.ephemeral_owner, stat.cversion

    assert shown(7, 3) == (7, 6)
    assert shown(CONTAINER_OWNER, 0) == (0, 0)
    assert shown(ttl_owner(5), 1 << 30) == (0, -(1 << 31))
