"""Laws of the tree, on random requests of three sessions over a few paths.

Both stores give the same answers; the overlay shows the later tree; a log replayed over a fuzzy snapshot, or again over
its own result, ends in the same tree; counters agree with a direct count.
"""

from collections.abc import Iterable, Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from refimpl.tree import Tree
from spec.tree.accounting import QUOTA, changed
from spec.tree.acl import digest_of
from spec.tree.apply import EventType, TxnResult, apply
from spec.tree.data import ANYONE, OPEN_ACL_UNSAFE, Acl, Id, Kind, Record, Znode, kind_of, stat_of
from spec.tree.options import Options
from spec.tree.overlay import Overlay
from spec.tree.paths import below, parent_of
from spec.tree.prepare import prepare
from spec.tree.read import read
from spec.tree.replies import Code, ErrorReply, MultiReply
from spec.tree.requests import (
    Check,
    CloseSession,
    Create,
    Create2,
    CreateContainer,
    CreateSession,
    CreateTtl,
    Delete,
    DeleteContainer,
    GetAllChildrenNumber,
    GetChildren2,
    GetData,
    Multi,
    Request,
    SetAcl,
    SetData,
)
from spec.tree.store import FIRST_ZNODES, FrozenStore, OpenSession, Put, Store
from spec.tree.txns import (
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    Create2Txn,
    CreateContainerTxn,
    CreateSessionTxn,
    CreateTtlTxn,
    CreateTxn,
    DeleteContainerTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    ReconfigTxn,
    SetAclTxn,
    SetDataTxn,
)

SESSIONS = (1, 2, 3)
AUTH = {session: (Id("digest", digest_of(f"user{session}:p")),) for session in SESSIONS}
OPTIONS = Options(extended_types=True)

# Short paths are frequent, so that most requests find an existing znode.
paths = st.sampled_from(["/a", "/a", "/b", "/a/a", "/a/a", "/a/b", "/b/a", "/a/a/a", "/a/a/b"])
data = st.sampled_from([None, b"", b"xy"])
versions = st.sampled_from([-1, -1, -1, -1, 0, 1])
acls = st.sampled_from(
    [OPEN_ACL_UNSAFE] * 20 + [(Acl(31, Id("auth", "")),), (Acl(13, ANYONE), Acl(31, AUTH[1][0])), ()]
)
creates = st.one_of(
    st.builds(Create, paths, data, acls, st.sampled_from([0, 0, 0, 1, 2, 3])),
    st.builds(Create2, paths, data, acls, st.sampled_from([0, 1, 7])),
    st.builds(CreateContainer, paths, data, acls, st.just(4)),
    st.builds(CreateTtl, paths, data, acls, st.sampled_from([5, 6]), st.sampled_from([0, 300])),
)
changes = st.one_of(st.builds(Delete, paths, versions), st.builds(SetData, paths, data, versions))
checks = st.builds(Check, paths, versions)
multis = st.lists(st.one_of(creates, changes, checks), max_size=4).map(lambda parts: Multi(tuple(parts)))
records: st.SearchStrategy[Record] = st.one_of(
    creates,
    creates,
    changes,
    changes,
    multis,
    st.builds(SetAcl, paths, acls, versions),
    st.builds(DeleteContainer, paths),
    st.sampled_from([CreateSession(4000), CloseSession()]),
)
HIGHEST_INT, HIGHEST_LONG = 2**31 - 1, 2**63 - 1
ints = st.sampled_from([-1, 0, 1, HIGHEST_INT, -HIGHEST_INT - 1])
longs = st.sampled_from([-1, 0, 1, HIGHEST_LONG, -HIGHEST_LONG - 1])
quota_paths = [f"{QUOTA}{path}/zookeeper_{name}" for path in ("", "/a") for name in ("limits", "stats")]
any_paths = st.one_of(
    paths, st.sampled_from(["/", "", "a", "//", QUOTA, QUOTA + "/a", *quota_paths]), st.text(max_size=3)
)
any_data = st.one_of(
    st.none(), st.binary(max_size=3), st.sampled_from([b"count=" + b"9" * 5000, b"count=%d" % HIGHEST_LONG, b"=;,=1"])
)
any_acls = st.lists(st.builds(Acl, ints, st.builds(Id, st.text(max_size=2), st.text(max_size=2))), max_size=2).map(
    tuple
)
plain_txns = st.one_of(
    st.builds(CreateTxn, any_paths, any_data, any_acls, st.booleans(), ints),
    st.builds(Create2Txn, any_paths, any_data, any_acls, st.booleans(), ints),
    st.builds(CreateContainerTxn, any_paths, any_data, any_acls, ints),
    st.builds(CreateTtlTxn, any_paths, any_data, any_acls, ints, longs),
    st.builds(DeleteTxn, any_paths),
    st.builds(SetDataTxn, any_paths, any_data, ints),
    st.builds(CheckVersionTxn, any_paths, ints),
    st.builds(ErrorTxn, ints),
)
any_txns = st.one_of(
    plain_txns,
    st.lists(plain_txns, max_size=4).map(lambda parts: MultiTxn(tuple(parts))),
    st.builds(DeleteContainerTxn, any_paths),
    st.builds(ReconfigTxn, any_paths, any_data, ints),
    st.builds(SetAclTxn, any_paths, any_acls, ints),
    st.builds(CreateSessionTxn, ints),
    st.lists(any_paths, max_size=3).map(lambda listed: CloseSessionTxn(tuple(listed))),
)
requests = st.lists(st.tuples(st.sampled_from(SESSIONS), records), min_size=15, max_size=40).map(
    lambda asked: [Request(session, 1, record, AUTH[session]) for session, record in asked]
)
LAWS = settings(max_examples=80, deadline=None)


class Run:
    """Requests that are prepared and applied one after the other, each session as long as it is open."""

    def __init__(self, asked: Iterable[Request] = ()) -> None:
        self.tree = Tree()
        self.changes: list[tuple[int, Change]] = []
        self.applied: list[TxnResult] = []
        self.tree.carry_out([OpenSession(session, 4000) for session in SESSIONS])
        for request in asked:
            self.ask(request)

    def ask(self, request: Request) -> TxnResult:
        zxid = len(self.changes) + 1
        change = prepare(self.tree, request, 1000 + zxid, checked(self.tree, request), OPTIONS)
        applied = apply(self.tree, zxid, change)
        self.tree.carry_out(applied.operations)
        self.changes.append((zxid, change))
        self.applied.append(applied)
        return applied


def checked(view: Store, request: Request) -> Code:
    return Code.OK if view.timeout(request.session) is not None else Code.SESSION_EXPIRED


def replay(tree: Tree, changes: Iterable[tuple[int, Change]]) -> None:
    for zxid, change in changes:
        tree.carry_out(apply(tree, zxid, change).operations)


def contents(tree: Tree) -> object:
    nodes = dict(tree.preorder())
    owners = {owner: set(tree.ephemerals(owner)) for owner in tree.owners()}
    return nodes, tree.sessions, owners, tree.containers, tree.ttls, tree.bytes_of_data


def walk(view: Store, path: str = "/") -> Iterator[tuple[str, Znode]]:
    znode = view.node(path)
    assert znode is not None
    yield path, znode
    for name in sorted(view.children(path)):
        yield from walk(view, below(path, name))


@given(requests)
@LAWS
def test_both_stores_come_to_the_same(asked: list[Request]) -> None:
    run = Run()
    frozen = FrozenStore().carry_out([OpenSession(session, 4000) for session in SESSIONS])
    for zxid, request in enumerate(asked, start=1):
        change = prepare(frozen, request, 1000 + zxid, checked(frozen, request), OPTIONS)
        applied = apply(frozen, zxid, change)
        assert (run.ask(request), run.changes[-1]) == (applied, (zxid, change))
        frozen = frozen.carry_out(applied.operations)
    assert dict(frozen.nodes) == dict(run.tree.preorder())
    assert dict(frozen.sessions) == run.tree.sessions
    for path, _ in frozen.nodes:
        for look in (GetData(path, False), GetChildren2(path, False), GetAllChildrenNumber(path)):
            assert read(frozen, look, 1, AUTH[1]) == read(run.tree, look, 1, AUTH[1])


@given(requests, st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=40, max_size=40))
@LAWS
def test_an_overlay_shows_the_tree_that_its_transactions_lead_to(asked: list[Request], settling: list[int]) -> None:
    direct = Run()
    below_it = Run().tree
    overlay = Overlay(below_it)
    outstanding: list[tuple[int, TxnResult]] = []
    for zxid, request in enumerate(asked, start=1):
        change = prepare(overlay, request, 1000 + zxid, checked(overlay, request), OPTIONS)
        applied = apply(overlay, zxid, change)
        overlay.carry_out(zxid, applied.operations)
        outstanding.append((zxid, applied))
        assert (direct.ask(request), direct.changes[-1]) == (applied, (zxid, change))
        for settled, outcome in outstanding[: settling[zxid - 1]]:
            below_it.carry_out(outcome.operations)
            overlay.settled(settled)
        del outstanding[: settling[zxid - 1]]
        assert dict(walk(overlay)) == dict(direct.tree.preorder())
        for session in SESSIONS:
            assert overlay.ephemerals(session) == direct.tree.ephemerals(session)
            assert overlay.timeout(session) == direct.tree.timeout(session)
        for path, _ in direct.tree.preorder():
            assert len(overlay.children(path)) == len(direct.tree.children(path))
    for settled, outcome in outstanding:
        below_it.carry_out(outcome.operations)
        overlay.settled(settled)
    assert contents(below_it) == contents(direct.tree)
    assert len(overlay) == 0


@given(requests, st.integers(0, 40))
@LAWS
def test_a_suffix_of_the_log_replayed_once_more_changes_nothing(asked: list[Request], start: int) -> None:
    run = Run(asked)
    before = contents(run.tree)
    replay(run.tree, run.changes[start:])
    assert contents(run.tree) == before


@given(requests, st.integers(0, 40), st.lists(st.integers(0, 4), min_size=41, max_size=41))
@LAWS
def test_a_fuzzy_snapshot_and_the_log_since_it_began_are_the_tree(
    asked: list[Request], start: int, pace: list[int]
) -> None:
    run = Run(asked[:start])
    snapshot = Tree(())
    snapshot.sessions.update(run.tree.sessions)
    begun = len(run.changes)
    reading = run.tree.preorder()
    for request, steps in zip([*asked[start:]], pace, strict=False):
        for _, (path, znode) in zip(range(steps), reading, strict=False):
            snapshot.carry_out((Put(path, znode),))
        run.ask(request)
    snapshot.carry_out(Put(path, znode) for path, znode in reading)
    replay(snapshot, run.changes[begun:])
    assert contents(snapshot) == contents(run.tree)


@given(requests)
@LAWS
def test_counters_are_what_counting_the_events_gives(asked: list[Request]) -> None:
    run = Run(asked)
    changed = {put.path: (0, 0) for put in FIRST_ZNODES}  # creations and deletions below, and the zxid of the last
    changed |= {"/": (1, 0), "/zookeeper": (2, 0)}
    for zxid, applied in enumerate(run.applied, start=1):
        for event in applied.events:
            if event.type is EventType.NODE_CREATED:
                changed[event.path] = (0, zxid)
            elif event.type is EventType.NODE_CHILDREN_CHANGED:
                changed[event.path] = (changed[event.path][0] + 1, zxid)
    for path, znode in run.tree.preorder():
        stat = stat_of(znode, len(run.tree.children(path)))
        # The first znodes are not counted as created.
        first = {"/": 2, "/zookeeper": 4}.get(path, 0)
        assert (stat.cversion + first, stat.pzxid) == changed[path]
        assert znode.pzxid >= znode.czxid <= znode.mzxid


@given(requests)
@LAWS
def test_what_the_tree_knows_of_its_znodes_is_true(asked: list[Request]) -> None:
    tree = Run(asked).tree
    nodes = dict(tree.preorder())
    assert len(tree) == len(nodes)
    assert all(parent_of(path) in nodes for path in nodes)
    kinds = {kind: {p for p, znode in nodes.items() if kind_of(znode.ephemeral_owner) is kind} for kind in Kind}
    assert (tree.containers, tree.ttls) == (kinds[Kind.CONTAINER], kinds[Kind.TTL])
    assert set().union(*(tree.ephemerals(owner) for owner in tree.owners())) == kinds[Kind.EPHEMERAL]
    assert set(tree.owners()) <= tree.sessions.keys()
    assert tree.bytes_of_data == sum(len(znode.data or b"") for znode in nodes.values())
    for path, znode in nodes.items():
        assert kind_of(znode.ephemeral_owner) is not Kind.EPHEMERAL or not tree.children(path)


@given(requests, multis)
@LAWS
def test_a_multi_is_its_operations_one_after_the_other_or_nothing(asked: list[Request], multi: Multi) -> None:
    whole, parts = Run(asked), Run(asked)
    if whole.tree.timeout(1) is None:
        return
    before = contents(whole.tree)
    applied = whole.ask(Request(1, 1, multi, AUTH[1]))
    if applied.code is not Code.OK:
        assert contents(whole.tree) == before
        return
    assert isinstance(applied.reply, MultiReply)
    codes = [Code(each.record.err) for each in applied.reply.results if isinstance(each.record, ErrorReply)]
    if codes:
        assert contents(whole.tree) == before
        return
    for operation in multi.operations:
        # A check is part of a multi only.
        alone = operation if not isinstance(operation, Check) else Multi((operation,))
        assert parts.ask(Request(1, 1, alone, AUTH[1])).code is Code.OK
    one, other = (
        {path: (znode.data, znode.version, znode.cversion, znode.acl) for path, znode in run.tree.preorder()}
        for run in (whole, parts)
    )
    assert one == other


@given(requests, st.lists(paths, unique=True, max_size=6))
@LAWS
def test_the_end_of_a_session_is_the_deletion_of_each_of_its_znodes(asked: list[Request], listed: list[str]) -> None:
    """Listed znodes may be missing, have children, or lie below each other: a log is replayed over a later snapshot."""
    tree = Run(asked).tree
    for session in SESSIONS:
        left = sorted(path for path in tree.ephemerals(session) if path not in listed)
        one_by_one, events = Overlay(tree), []
        for path in [*listed, *left]:
            deleted = apply(one_by_one, 99, Change(session, 0, 5, DeleteTxn(path)))
            one_by_one.carry_out(99, deleted.operations)
            events += deleted.events
        ended = apply(tree, 99, Change(session, 0, 5, CloseSessionTxn(tuple(listed))))
        together = Overlay(tree)
        together.carry_out(99, ended.operations)

        assert list(ended.events) == events
        everywhere = {path for path, _ in walk(tree)} | {*listed}
        assert [together.node(path) for path in everywhere] == [one_by_one.node(path) for path in everywhere]
        assert [len(together.children(path)) for path in everywhere] == [
            len(one_by_one.children(path)) for path in everywhere
        ]


def quota_of_a(numbers: int, use: bytes | None) -> Tree:
    """A tree with `/a` and a quota of it: the counters of the one, and the data of the other."""
    tree = Tree()
    for path in ("/a", f"{QUOTA}/a", *quota_paths):
        created = CreateTxn(path, b"", OPEN_ACL_UNSAFE, False, -1)
        tree.carry_out(apply(tree, 1, Change(1, 1, 1, created)).operations)
    found = {path: tree.node(path) for path in ("/a", *quota_paths)}
    tree.carry_out([Put(path, replace(znode, data=use, cversion=numbers)) for path, znode in found.items() if znode])
    return tree


@given(ints, any_data, st.lists(st.tuples(longs, any_txns), min_size=3, max_size=8))
@settings(max_examples=60, deadline=None)
def test_each_transaction_of_a_file_or_a_leader_has_an_outcome(
    numbers: int, use: bytes | None, found: list[tuple[int, Record]]
) -> None:
    """None raises an exception, since each server applies it, and none makes a znode that has no digest."""
    tree = quota_of_a(numbers, use)
    for zxid, (session, txn) in enumerate(found, 2):
        applied = apply(tree, zxid, Change(session, 1, 1000, txn))
        assert isinstance(applied.code, Code)
        changed(0, tree, applied.operations)
        tree.carry_out(applied.operations)
