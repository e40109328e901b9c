"""A leader's preparation of writes: the reported errors, the names of znodes, and the results of a multi.

Expected values: observed on ZooKeeper 3.8.0 with requests of kazoo and a plain socket, on a standalone server, and for
TTL znodes on one with `extendedTypesEnabled`. Behaviour that a client cannot observe (sessions that have moved, shapes
of transactions) is from `PrepRequestProcessor`.
"""

import pytest

from refimpl.tree import Tree
from spec.tree.acl import digest_of
from spec.tree.apply import TxnResult, apply
from spec.tree.data import ANYONE, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, Acl, Id, Record, Stat, stat_of
from spec.tree.options import Options
from spec.tree.prepare import fitted, prepare
from spec.tree.replies import Code, Create2Reply, ErrorReply, MultiReply, PathReply, StatReply
from spec.tree.requests import (
    Check,
    CloseSession,
    Create,
    Create2,
    CreateContainer,
    CreateTtl,
    Delete,
    DeleteContainer,
    GetData,
    Multi,
    Reconfig,
    Request,
    SetAcl,
    SetData,
)
from spec.tree.store import FIRST_ZNODES, configured
from spec.tree.txns import (
    Change,
    CloseSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetAclTxn,
    SetDataTxn,
    TxnDigest,
)

OPEN = OPEN_ACL_UNSAFE
BOB = Id("digest", digest_of("bob:p"))
LOCAL = (Id("ip", "127.0.0.1"),)
HIGHEST_TTL = (1 << 40) - 1


class Server:
    """A tree, and requests that are prepared and applied one after the other."""

    def __init__(self, *paths: str, options: Options | None = None) -> None:
        self.tree = Tree()
        self.zxid = 0
        self.options = options or Options()
        for path in paths:
            assert self.ask(create(path)).code is Code.OK

    def change(self, record: Record, session: int = 1, auth: tuple[Id, ...] = LOCAL, checked: Code = Code.OK) -> Change:
        return prepare(self.tree, Request(session, 1, record, auth), 1000 + self.zxid, checked, self.options)

    def ask(self, record: Record, session: int = 1, auth: tuple[Id, ...] = LOCAL, checked: Code = Code.OK) -> TxnResult:
        self.zxid += 1
        applied = apply(self.tree, self.zxid, self.change(record, session, auth, checked))
        self.tree.carry_out(applied.operations)
        return applied

    def code(self, record: Record, **asker: object) -> Code:
        return self.ask(record, **asker).code  # type: ignore[arg-type]

    def path(self, record: Record) -> str:
        reply = self.ask(record).reply
        assert isinstance(reply, PathReply | Create2Reply)
        return reply.path

    def codes(self, *operations: Record) -> list[Code | None]:
        """Return the result of each operation of a multi; None for an operation that was applied."""
        reply = self.ask(Multi(operations)).reply
        assert isinstance(reply, MultiReply)
        return [Code(each.record.err) if isinstance(each.record, ErrorReply) else None for each in reply.results]


def create(path: str, flags: int = 0, acl: tuple[Acl, ...] = OPEN) -> Create:
    return Create(path, b"", acl, flags)


def ttl(path: str, milliseconds: int, flags: int = 5) -> CreateTtl:
    return CreateTtl(path, b"", OPEN, flags, milliseconds)


@pytest.mark.parametrize(
    ("path", "flags", "code"),
    [
        ("/a", 0, Code.NODE_EXISTS),
        ("/", 0, Code.NODE_EXISTS),
        ("/zookeeper", 0, Code.NODE_EXISTS),
        ("a", 0, Code.BAD_ARGUMENTS),
        ("", 0, Code.BAD_ARGUMENTS),
        ("a/b", 0, Code.NO_NODE),
        ("/x/", 0, Code.NO_NODE),
        ("/a/", 2, Code.OK),
        ("//b", 0, Code.BAD_ARGUMENTS),
        ("/a//b", 0, Code.NO_NODE),
        ("/a/./b", 0, Code.NO_NODE),
        ("/a/..", 0, Code.BAD_ARGUMENTS),
        ("/a/...", 0, Code.OK),
        ("/no/b", 0, Code.NO_NODE),
        ("/no/b", 7, Code.BAD_ARGUMENTS),
        ("/no/b", 5, Code.UNIMPLEMENTED),
        ("/no/\0", 0, Code.BAD_ARGUMENTS),
        ("/a", 1, Code.NODE_EXISTS),
        ("/e/x", 0, Code.NO_CHILDREN_FOR_EPHEMERALS),
        ("/e/x/y", 0, Code.NO_NODE),
        ("/e/", 0, Code.BAD_ARGUMENTS),
    ],
)
def test_a_create_is_refused_for_its_first_fault(path: str, flags: int, code: Code) -> None:
    server = Server("/a")
    server.ask(create("/e", 1))
    assert server.code(create(path, flags)) is code


def test_a_create_without_a_valid_acl_is_refused_before_its_parent_is_looked_for() -> None:
    assert Server().code(create("/no/b", 0, ())) is Code.INVALID_ACL


@pytest.mark.parametrize(
    ("path", "version", "code"),
    [
        ("/", -1, Code.BAD_ARGUMENTS),
        ("/zookeeper", -1, Code.BAD_ARGUMENTS),
        ("/zookeeper/quota", -1, Code.BAD_ARGUMENTS),
        ("/zookeeper/config", -1, Code.BAD_ARGUMENTS),
        ("x", -1, Code.BAD_ARGUMENTS),
        ("/no/x", -1, Code.NO_NODE),
        ("/a", 7, Code.BAD_VERSION),
        ("/a", -1, Code.NOT_EMPTY),
        ("/a/", -1, Code.NO_NODE),
        ("/a/\0", -1, Code.BAD_ARGUMENTS),
        ("/a/b", 0, Code.OK),
    ],
)
def test_a_delete_is_refused_for_its_first_fault(path: str, version: int, code: Code) -> None:
    assert Server("/a", "/a/b").code(Delete(path, version)) is code


@pytest.mark.parametrize(
    ("path", "version", "code"),
    [
        ("x", -1, Code.BAD_ARGUMENTS),
        ("/a/", -1, Code.BAD_ARGUMENTS),
        ("/no", -1, Code.NO_NODE),
        ("/a", 3, Code.BAD_VERSION),
        ("/a", -2, Code.BAD_VERSION),
        ("/a", 0, Code.OK),
        ("/", -1, Code.OK),
        ("/zookeeper/config", -1, Code.NO_AUTH),
    ],
)
def test_a_set_data_is_refused_for_its_first_fault(path: str, version: int, code: Code) -> None:
    assert Server("/a").code(SetData(path, b"q", version)) is code


def test_a_set_acl_looks_at_the_path_then_the_acl_then_the_znode_then_its_acl_then_the_version() -> None:
    server = Server("/a")
    server.ask(create("/b", 0, (Acl(31, BOB),)))
    assert server.code(SetAcl("x", (), -1)) is Code.BAD_ARGUMENTS
    assert server.code(SetAcl("/no", (), -1)) is Code.INVALID_ACL
    assert server.code(SetAcl("/no", OPEN, -1)) is Code.NO_NODE
    assert server.code(SetAcl("/b", OPEN, 5)) is Code.NO_AUTH
    assert server.code(SetAcl("/a", OPEN, 3)) is Code.BAD_VERSION
    assert server.code(SetAcl("/a", OPEN, 0)) is Code.OK
    assert server.code(SetAcl("/a", OPEN, 0)) is Code.BAD_VERSION


@pytest.mark.parametrize(
    ("perms", "allowed"),
    [(0, set()), (1, {"check"}), (2, {"set"}), (4, {"create"}), (8, {"delete"}), (16, {"setacl"})],
)
def test_each_permission_allows_one_kind_of_write(perms: int, allowed: set[str]) -> None:
    acl = (Acl(31, BOB), Acl(perms, ANYONE))
    server = Server()
    server.ask(create("/m", 0, acl), auth=(BOB,))
    server.ask(create("/m/c"), auth=(BOB,))
    asked = {
        "check": Multi((Check("/m", -1),)),
        "set": SetData("/m", b"", -1),
        "create": create("/m/n"),
        "delete": Delete("/m/c", -1),
        "setacl": SetAcl("/m", acl, -1),
    }
    done = set()
    for name, record in asked.items():
        applied = server.ask(record)
        reply = applied.reply
        fails = isinstance(reply, MultiReply) and reply.results[0].record == ErrorReply(Code.NO_AUTH)
        if applied.code is Code.OK and not fails:
            done.add(name)
        else:
            assert fails or applied.code is Code.NO_AUTH
    assert done == allowed


def test_sequential_names_count_every_creation_and_no_deletion() -> None:
    server = Server("/s")
    assert [server.path(create("/s/n", 2)) for _ in range(3)] == [f"/s/n000000000{i}" for i in range(3)]
    server.ask(Delete("/s/n0000000001", -1))
    server.ask(Delete("/s/n0000000002", -1))
    assert server.path(create("/s/n", 2)) == "/s/n0000000003"
    server.ask(create("/s/x"))
    assert server.path(create("/s/", 3)) == "/s/0000000005"
    znode = server.tree.node("/s")
    assert znode is not None
    stat = stat_of(znode, len(server.tree.children("/s")))
    assert (stat.cversion, stat.num_children) == (8, 4)


def test_versions_and_cversions_go_round_as_javas_int_does() -> None:
    server = Server("/a")
    highest = (1 << 31) - 1
    server.tree.carry_out(apply(server.tree, 9, Change(1, 1, 0, SetDataTxn("/a", b"", highest))).operations)
    assert server.change(SetData("/a", b"", highest)).record == SetDataTxn("/a", b"", -(1 << 31))


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (ttl("/t", 300), Code.OK),
        (ttl("/t", HIGHEST_TTL), Code.OK),
        (ttl("/t", 0), Code.BAD_ARGUMENTS),
        (ttl("/t", -1), Code.BAD_ARGUMENTS),
        (ttl("/t", HIGHEST_TTL + 1), Code.BAD_ARGUMENTS),
        (ttl("/t", 5, 0), Code.BAD_ARGUMENTS),
        (create("/t", 5), Code.BAD_ARGUMENTS),
    ],
)
def test_a_ttl_znode_needs_a_time_to_live_and_only_it_may_have_one(request_: Record, code: Code) -> None:
    assert Server(options=Options(extended_types=True)).code(request_) is code


def test_a_server_without_extended_types_makes_no_ttl_znode_whatever_the_time_to_live() -> None:
    assert Server().code(ttl("/t", 1000)) is Code.UNIMPLEMENTED
    assert Server().code(ttl("/t", -1)) is Code.UNIMPLEMENTED
    assert Server().code(ttl("/t", 100, 0)) is Code.BAD_ARGUMENTS


def test_a_create_ttl_of_a_plain_znode_is_refused_where_zookeeper_stops() -> None:
    assert Server().code(ttl("/t", -1, 0)) is Code.BAD_ARGUMENTS


def test_containers_and_ttl_znodes_have_children_and_show_no_owner() -> None:
    server = Server(options=Options(extended_types=True))
    for record in (CreateContainer("/k", b"", OPEN, 4), ttl("/t", 1000)):
        reply = server.ask(record).reply
        assert isinstance(reply, Create2Reply)
        assert reply.stat.ephemeral_owner == 0
        assert server.code(create(f"{record.path}/c")) is Code.OK
    assert server.path(ttl("/t/s-", 9, 6)) == "/t/s-0000000001"


def test_a_container_is_deleted_when_it_has_no_children_and_nothing_else_is() -> None:
    server = Server("/plain")
    server.ask(CreateContainer("/k", b"", OPEN, 4))
    server.ask(create("/k/c"))
    assert server.code(DeleteContainer("/k")) is Code.NOT_EMPTY
    server.ask(Delete("/k/c", -1))
    assert server.code(DeleteContainer("/plain")) is Code.BAD_VERSION
    assert server.code(DeleteContainer("/no")) is Code.NO_NODE
    assert server.code(DeleteContainer("/")) is Code.BAD_ARGUMENTS
    assert server.code(DeleteContainer("/k")) is Code.OK
    assert server.tree.node("/k") is None


def test_a_multi_that_fails_tells_ok_before_the_fault_and_inconsistency_after_it() -> None:
    server = Server("/q", "/q/a")
    before = dict(server.tree.preorder())
    codes = server.codes(create("/q/b"), Delete("/q/zz", -1), SetData("/q", b"", -1))
    assert codes == [Code.OK, Code.NO_NODE, Code.RUNTIME_INCONSISTENCY]
    assert dict(server.tree.preorder()) == before


def test_an_operation_of_a_multi_sees_what_those_before_it_do() -> None:
    server = Server("/q", "/q/a")
    sequential = [create("/q/s-", 2), create("/q/s-", 2), Delete("/q/a", -1), create("/q/s-", 2)]
    reply = server.ask(Multi(tuple(sequential))).reply
    assert isinstance(reply, MultiReply)
    assert [each.type for each in reply.results] == [1, 1, 2, 1]
    assert server.tree.children("/q") == {"s-0000000001", "s-0000000002", "s-0000000003"}
    steps = (create("/q/t"), SetData("/q/t", b"1", 0), SetData("/q/t", b"2", 1), Check("/q/t", 2), Delete("/q/t", 2))
    assert server.codes(*steps) == [None] * 5


def test_the_stats_of_a_multi_are_those_of_the_moment() -> None:
    reply = Server("/q").ask(Multi((SetData("/q", b"12", -1), SetData("/q", b"3", -1)))).reply
    assert isinstance(reply, MultiReply)
    stats = [each.record.stat for each in reply.results if isinstance(each.record, StatReply)]
    assert [(stat.version, stat.data_length, stat.mzxid) for stat in stats] == [(1, 2, 2), (2, 1, 2)]


def test_a_create_in_a_multi_is_of_the_kind_that_its_flags_say() -> None:
    server = Server()
    reply = server.ask(Multi((create("/k", 4),))).reply
    assert isinstance(reply, MultiReply)
    assert reply.results[0].type == 15
    assert server.tree.containers == {"/k"}


def test_a_multi_with_nothing_in_it_does_nothing() -> None:
    assert Server().ask(Multi(())).reply == MultiReply(())


def test_a_multi_with_a_read_in_it_cannot_be_unmarshalled() -> None:
    assert Server("/a").code(Multi((GetData("/a", False),))) is Code.MARSHALLING_ERROR


def test_a_failed_multi_keeps_the_transactions_before_the_fault() -> None:
    change = Server("/q").change(Multi((create("/q/b"), Delete("/no", -1), create("/q/c"))))
    assert change.record == MultiTxn(
        (CreateTxn("/q/b", b"", OPEN, False, 1), ErrorTxn(Code.NO_NODE), ErrorTxn(Code.RUNTIME_INCONSISTENCY))
    )


@pytest.mark.parametrize("record", [create("/b"), Delete("/a", -1), SetData("/a", b"", -1), SetAcl("/a", OPEN, -1)])
def test_a_session_that_has_expired_changes_nothing(record: Record) -> None:
    server = Server("/a")
    assert server.change(record, checked=Code.SESSION_EXPIRED).record == ErrorTxn(Code.SESSION_EXPIRED)


def test_faults_of_the_mode_come_before_the_session_and_those_of_the_path_after_it() -> None:
    server = Server()
    assert server.code(create("a", 7), checked=Code.SESSION_EXPIRED) is Code.BAD_ARGUMENTS
    assert server.code(create("a"), checked=Code.SESSION_EXPIRED) is Code.SESSION_EXPIRED


def test_a_multi_of_a_session_that_has_moved_is_answered_by_cutting_it_off() -> None:
    assert Server("/a").code(Multi((Check("/a", -1),)), checked=Code.SESSION_MOVED) is Code.SESSION_MOVED


def test_closing_a_session_lists_its_ephemeral_znodes_and_needs_no_open_session() -> None:
    server = Server("/e")
    for name in "ba":
        server.ask(create(f"/e/{name}", 1), session=7)
    change = server.change(CloseSession(), session=7, checked=Code.SESSION_EXPIRED)
    assert change.record == CloseSessionTxn(("/e/a", "/e/b"))
    server.ask(CloseSession(), session=7)
    znode = server.tree.node("/e")
    assert znode is not None
    assert stat_of(znode, len(server.tree.children("/e"))).cversion == 4
    assert server.tree.ephemerals(7) == frozenset()


def test_the_first_tree_is_that_of_a_server_that_never_heard_of_a_transaction() -> None:
    tree = Tree()
    stats = {path: stat_of(znode, len(tree.children(path))) for path, znode in tree.preorder()}
    assert {path: (stat.cversion, stat.aversion, stat.num_children) for path, stat in stats.items()} == {
        "/": (-1, 0, 1),
        "/zookeeper": (-2, 0, 2),
        "/zookeeper/quota": (0, 0, 0),
        "/zookeeper/config": (0, -1, 0),
    }
    assert {put.path for put in FIRST_ZNODES} == set(stats)


def test_a_server_that_starts_writes_its_view_of_the_ensemble_into_the_config_znode() -> None:
    tree = Tree()
    text = b"server.1=127.0.0.1:59861:52103:participant\nversion=0"
    tree.carry_out([configured(tree, text, 0, 1795326831042)])
    znode = tree.node("/zookeeper/config")
    assert znode is not None
    assert (znode.data, znode.acl) == (text, READ_ACL_UNSAFE)
    assert stat_of(znode, 0) == Stat(0, 0, 0, 1795326831042, -1, 0, -1, 0, 52, 0, 0)


def test_reconfig_is_answered_as_by_a_server_that_has_it_disabled() -> None:
    assert Server().code(Reconfig("", "", "", -1)) is Code.RECONFIG_DISABLED


def test_a_request_that_no_leader_prepares_is_unimplemented() -> None:
    assert Server().code(GetData("/", False)) is Code.UNIMPLEMENTED


def test_create2_is_answered_with_a_stat() -> None:
    reply = Server().ask(Create2("/a", b"xy", OPEN, 0)).reply
    assert isinstance(reply, Create2Reply)
    assert (reply.path, reply.stat.data_length, reply.stat.czxid, reply.stat.pzxid) == ("/a", 2, 1, 1)


def test_a_transaction_within_the_limit_of_a_packet_stays() -> None:
    change = Change(1, 7, 1000, MultiTxn((DeleteTxn("/a"),)))
    assert fitted(change, 100, 100) is change


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (MultiTxn((DeleteTxn("/a"),)), ErrorTxn(Code.MARSHALLING_ERROR)),
        (SetAclTxn("/a", OPEN_ACL_UNSAFE * 2, 1), ErrorTxn(Code.MARSHALLING_ERROR)),
        (CloseSessionTxn(("/a", "/b")), CloseSessionTxn(())),
    ],
)
def test_a_transaction_that_no_learner_could_read_is_replaced(record: Record, expected: Record) -> None:
    change = Change(1, 7, 1000, record, TxnDigest(2, 5))
    assert fitted(change, 101, 100) == Change(1, 7, 1000, expected)
