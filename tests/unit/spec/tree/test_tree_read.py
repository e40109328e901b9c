"""Reads, ACLs and identities: the data that each client may read, and the replies.

Expected values: observed on ZooKeeper 3.8.0 through kazoo and a plain socket (masks of ACLs, getACL with hidden
digests, getEphemerals, whoAmI, valid ACLs); `IPAuthenticationProvider` for networks; `DataTree` for numbers.
"""

import pytest

from refimpl.jute import encode
from refimpl.tree import Tree
from spec.tree.acl import authenticate, digest_of, fix_up, permits
from spec.tree.checks import RefusedError
from spec.tree.data import ANYONE, OPEN_ACL_UNSAFE, Acl, ClientInfo, Id, Record, Stat, Znode, new_znode
from spec.tree.options import Options
from spec.tree.read import read
from spec.tree.replies import (
    AclReply,
    Children2Reply,
    ChildrenReply,
    Code,
    DataReply,
    EphemeralsReply,
    ErrorReply,
    MultiReply,
    NumberReply,
    OperationResult,
    StatReply,
    WhoAmIReply,
)
from spec.tree.requests import (
    Delete,
    Exists,
    GetAcl,
    GetAllChildrenNumber,
    GetChildren,
    GetChildren2,
    GetData,
    GetEphemerals,
    MultiRead,
    WhoAmI,
)
from spec.tree.store import Put

OPEN = OPEN_ACL_UNSAFE
BOB = Id("digest", digest_of("bob:p"))
LOCAL = Id("ip", "127.0.0.1")
SESSION = 7


def tree_with(*paths: str, acl: tuple[Acl, ...] = OPEN, owner: int = 0) -> Tree:
    tree = Tree()
    tree.carry_out(Put(path, new_znode(b"xy", acl, 3, 30, owner)) for path in paths)
    return tree


READS = {
    "exists": Exists("/m", False),
    "data": GetData("/m", False),
    "children": GetChildren("/m", False),
    "children2": GetChildren2("/m", False),
    "number": GetAllChildrenNumber("/m"),
    "acl": GetAcl("/m"),
}


@pytest.mark.parametrize(
    ("perms", "allowed"),
    [(0, {"exists"}), (1, set(READS)), (2, {"exists"}), (4, {"exists"}), (8, {"exists"}), (16, {"exists", "acl"})],
)
def test_each_permission_allows_its_reads(perms: int, allowed: set[str]) -> None:
    tree = tree_with("/m", acl=(Acl(31, BOB), Acl(perms, ANYONE)))
    codes = {name: read(tree, request, SESSION, (LOCAL,))[0] for name, request in READS.items()}
    assert codes == {name: Code.OK if name in allowed else Code.NO_AUTH for name in READS}


def test_later_releases_ask_for_read_before_they_say_whether_a_znode_exists() -> None:
    tree = tree_with("/m", acl=(Acl(31, BOB),))
    later = Options(exists_needs_read=True)
    assert read(tree, Exists("/m", False), SESSION, (LOCAL,), later) == (Code.NO_AUTH, None)
    assert read(tree, Exists("/m", False), SESSION, (BOB,), later)[0] is Code.OK
    assert read(tree, Exists("/no", False), SESSION, (LOCAL,), later) == (Code.NO_NODE, None)


def test_digests_are_hidden_from_those_who_may_not_administer() -> None:
    acl = (Acl(31, BOB), Acl(1, ANYONE))
    tree = tree_with("/m", acl=acl)
    stat = Stat(3, 3, 30, 30, 0, 0, 0, 0, 2, 0, 3)
    hidden = (Acl(31, Id("digest", "bob:x")), Acl(1, ANYONE))
    assert read(tree, GetAcl("/m"), SESSION, (LOCAL,)) == (Code.OK, AclReply(hidden, stat))
    assert read(tree, GetAcl("/m"), SESSION, (BOB,)) == (Code.OK, AclReply(acl, stat))


@pytest.mark.parametrize("request_", [*READS.values()])
def test_what_is_not_there_is_no_node(request_: Record) -> None:
    assert read(Tree(), request_, SESSION) == (Code.NO_NODE, None)


def test_exists_minds_a_null_character_and_the_others_do_not() -> None:
    assert read(Tree(), Exists("/\0", False), SESSION) == (Code.BAD_ARGUMENTS, None)
    assert read(Tree(), GetData("/\0", False), SESSION) == (Code.NO_NODE, None)


def test_data_and_children_come_with_the_stat() -> None:
    tree = tree_with("/m", "/m/b", "/m/a")
    stat = Stat(3, 3, 30, 30, 0, -2, 0, 0, 2, 2, 3)
    assert read(tree, GetData("/m", False), SESSION) == (Code.OK, DataReply(b"xy", stat))
    assert read(tree, Exists("/m", False), SESSION) == (Code.OK, StatReply(stat))
    assert read(tree, GetChildren("/m", False), SESSION) == (Code.OK, ChildrenReply(("a", "b")))
    assert read(tree, GetChildren2("/m", False), SESSION) == (Code.OK, Children2Reply(("a", "b"), stat))


def test_all_children_are_those_at_any_depth() -> None:
    tree = tree_with("/m", "/m/a", "/m/a/b", "/mm")
    assert read(tree, GetAllChildrenNumber("/m"), SESSION) == (Code.OK, NumberReply(2))
    assert read(tree, GetAllChildrenNumber("/"), SESSION) == (Code.OK, NumberReply(7))


def test_ephemeral_znodes_are_told_by_the_beginning_of_their_path() -> None:
    tree = tree_with("/e")
    tree.carry_out(Put(path, new_znode(b"", OPEN, 4, 40, SESSION)) for path in ("/e/b", "/e/a", "/ee"))
    for prefix, paths in {"/e": 3, "/e/": 2, "/": 3, "": 3, " ": 3, "/x": 0}.items():
        code, reply = read(tree, GetEphemerals(prefix), SESSION)
        assert (code, len(reply.ephemerals) if isinstance(reply, EphemeralsReply) else None) == (Code.OK, paths)
    assert read(tree, GetEphemerals("/"), SESSION + 1) == (Code.OK, EphemeralsReply(()))


def test_who_am_i_tells_names_and_no_hashes() -> None:
    told = read(Tree(), WhoAmI(), SESSION, (LOCAL, BOB, Id("super", "")))
    infos = (ClientInfo("ip", "127.0.0.1"), ClientInfo("digest", "bob"), ClientInfo("super", ""))
    assert told == (Code.OK, WhoAmIReply(infos))


def test_a_multi_read_has_an_answer_or_an_error_for_each() -> None:
    operations = (GetChildren("/m", False), GetData("/no", False), GetData("/m", False))
    code, reply = read(tree_with("/m"), MultiRead(operations), SESSION)
    assert isinstance(reply, MultiReply)
    assert (code, [each.type for each in reply.results]) == (Code.OK, [8, -1, 4])
    assert reply.results[1] == OperationResult(-1, ErrorReply(Code.NO_NODE))


def test_a_multi_read_of_anything_else_cannot_be_unmarshalled() -> None:
    with pytest.raises(RefusedError) as refused:
        read(Tree(), MultiRead((GetData("/", False), Exists("/", False))), SESSION)
    assert refused.value.code is Code.MARSHALLING_ERROR
    assert refused.value.reason == "it contains Exists, and only GetData and GetChildren are possible"


def test_the_bound_of_a_multi_read_is_on_the_bytes_of_its_answer() -> None:
    """Results of each kind: data, names beyond ASCII, and an error."""
    operations = (GetData("/m", False), GetChildren("/", False), GetData("/none", False))
    tree = tree_with("/m", "/ä")
    reply = read(tree, MultiRead(operations), SESSION)[1]
    assert reply is not None
    size = len(encode(reply))
    assert read(tree, MultiRead(operations), SESSION, options=Options(max_multi_read=size)) == (Code.OK, reply)
    less = Options(max_multi_read=size - 1)
    with pytest.raises(RefusedError) as refused:
        read(tree, MultiRead(operations), SESSION, options=less)
    assert refused.value.code is Code.MARSHALLING_ERROR
    assert refused.value.reason == f"its answer exceeds {size - 1} bytes"


def test_a_multi_read_ends_at_its_bound_and_reads_no_further() -> None:
    class Counting(Tree):
        reads = 0

        def node(self, path: str) -> Znode | None:
            self.reads += 1
            return super().node(path)

    tree = Counting()
    tree.carry_out([Put("/large", new_znode(bytes(1000), OPEN, 3, 30, 0))])
    operations = (GetData("/large", False),) * 1000
    options = Options(max_multi_read=10_000)
    with pytest.raises(RefusedError):
        read(tree, MultiRead(operations), SESSION, options=options)
    assert tree.reads == 10


def test_a_write_is_no_read() -> None:
    assert read(Tree(), Delete("/m", -1), SESSION) == (Code.UNIMPLEMENTED, None)


@pytest.mark.parametrize(
    ("scheme", "id_", "valid"),
    [
        ("world", "anyone", True),
        ("world", "x", False),
        ("auth", "", False),
        ("digest", "a:b", True),
        ("digest", "a:b:", True),
        ("digest", "a:b:c", False),
        ("digest", "a", False),
        ("digest", "", False),
        ("ip", "10.0.0.0/8", True),
        ("ip", "10.0.0.0/33", False),
        ("ip", "10.0.0.0/", False),
        ("ip", "10.0.0.256", False),
        ("ip", "10.0.0", False),
        ("ip", "::1", False),
        ("sasl", "x", False),
        ("super", "", False),
    ],
)
def test_which_entries_of_an_acl_are_valid(scheme: str, id_: str, valid: bool) -> None:
    acl = (Acl(31, Id(scheme, id_)),)
    assert fix_up(acl, (LOCAL,)) == (acl if valid else None)


def test_an_acl_with_nothing_in_it_is_not_valid() -> None:
    assert fix_up((), (BOB,)) is None


def test_auth_stands_for_every_digest_identity_of_the_client() -> None:
    amy = Id("digest", digest_of("amy:p"))
    assert fix_up((Acl(3, Id("auth", "ignored")),), (LOCAL, BOB, amy)) == (Acl(3, BOB), Acl(3, amy))


def test_an_entry_that_stands_twice_is_kept_once() -> None:
    entry = Acl(1, BOB)
    assert fix_up((entry, Acl(2, BOB), entry), ()) == (entry, Acl(2, BOB))


@pytest.mark.parametrize(
    ("expression", "address", "matches"),
    [
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.4", False),
        ("10.0.0.0/8", "10.255.0.1", True),
        ("10.0.0.0/8", "11.0.0.1", False),
        ("128.0.0.0/1", "127.0.0.1", False),
        ("1.2.3.4/0", "9.9.9.9", True),
        ("10.0.0.1", "::1", False),
    ],
)
def test_networks_match_by_their_first_bits(expression: str, address: str, matches: bool) -> None:
    assert permits((Acl(1, Id("ip", expression)),), 1, (Id("ip", address),)) is matches


def test_nothing_is_forbidden_by_no_acl_to_the_super_user_and_where_acls_are_skipped() -> None:
    closed = (Acl(0, ANYONE),)
    assert not permits(closed, 1, (BOB,))
    assert permits((), 1, ())
    assert permits(closed, 1, (Id("super", ""),))
    assert permits(closed, 1, (), Options(skip_acl=True))


def test_an_identity_counts_for_its_own_scheme_only() -> None:
    assert not permits((Acl(31, Id("digest", "127.0.0.1")),), 1, (LOCAL,))


def test_a_password_gives_the_digest_that_zookeeper_gives() -> None:
    assert authenticate("digest", b"bob:p", "127.0.0.1") == (Id("digest", "bob:R3bUSw3Enrs8ff9W5R1qlyZbH2M="),)


def test_the_super_password_gives_the_super_identity_as_well() -> None:
    options = Options(super_digest=digest_of("super:secret"))
    gained = authenticate("digest", b"super:secret", "127.0.0.1", options)
    assert gained == (Id("super", ""), Id("digest", digest_of("super:secret")))
    assert authenticate("digest", b"super:wrong", "127.0.0.1", options) == (Id("digest", digest_of("super:wrong")),)


def test_a_proof_that_no_scheme_knows_is_not_accepted() -> None:
    assert authenticate("nosuch", b"1", "127.0.0.1") is None
    assert authenticate("world", b"anyone", "127.0.0.1") is None
    assert authenticate("digest", None, "127.0.0.1") is None
    assert authenticate("ip", b"", "127.0.0.1") == (LOCAL,)
    assert authenticate("digest", b"\xff", "127.0.0.1") is not None
