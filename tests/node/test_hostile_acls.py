"""A client cannot exceed its permissions: each operation, by each identity, at the leader and through a follower."""

import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import InvalidACLError, NoAuthError
from kazoo.security import ACL, Id, make_acl, make_digest_acl

from harness.ensemble import Ensemble
from harness.processes import word
from refimpl.jute import decode, encode
from spec.tree import replies
from spec.tree.requests import OPCODE_OF, AddWatch, GetAllChildrenNumber, GetData, GetEphemerals, MultiRead
from tests.node.hostile import client, connection, framed
from tests.node.patience import LONG_LIMITS

Launch = Callable[..., Ensemble]
Operation = Callable[[KazooClient], Any]
RIGHT, WRONG = ("digest", "owner:secret"), ("digest", "owner:guess")
OWNER = make_digest_acl("owner", "secret", all=True)
ELSEWHERE = make_acl("ip", "10.0.0.0/8", all=True)
HERE = make_acl("ip", "127.0.0.1/32", all=True)


@pytest.fixture(scope="module")
def ensemble(launch: Launch) -> Ensemble:
    return launch(["node", "node", "node"], tick_time=250, extra=LONG_LIMITS)


@pytest.fixture(params=["leader", "follower"])
def server(request: pytest.FixtureRequest, ensemble: Ensemble) -> int:
    """A server with this role; the znodes below `/acl` are created again."""
    with client(ensemble) as setting_up:
        setting_up.add_auth(*RIGHT)
        if setting_up.exists("/acl"):
            setting_up.delete("/acl", recursive=True)
        setting_up.create("/acl")
        setting_up.create("/acl/guarded", b"secret", acl=[OWNER])
        setting_up.create("/acl/guarded/child", b"", acl=[OWNER])
        setting_up.create("/acl/open", b"open")
        setting_up.create("/acl/elsewhere", b"", acl=[ELSEWHERE, OWNER])
        setting_up.create("/acl/here", b"here", acl=[HERE])
    found = next(sid for sid in ensemble.sids if ensemble.role(sid) == request.param)
    with client(ensemble, found) as catching_up:
        catching_up.sync("/acl")
    return found


@pytest.fixture
def clients(ensemble: Ensemble, server: int) -> Iterator[Callable[..., KazooClient]]:
    """`clients(identity...)` returns a client of the server with these identities."""
    with ExitStack() as opened:

        def connect(*identities: tuple[str, str]) -> KazooClient:
            found = opened.enter_context(client(ensemble, server))
            for identity in identities:
                found.add_auth(*identity)
            return found

        yield connect


def multi(*operations: Callable[[Any], object]) -> Operation:
    """Return one multi; an error of an operation in it is raised."""

    def run(asking: KazooClient) -> Any:
        transaction = asking.transaction()
        for operation in operations:
            operation(transaction)
        results = transaction.commit()
        for result in results:
            if isinstance(result, NoAuthError):
                raise result
        return results

    return run


GUARDED = "/acl/guarded"
FORBIDDEN: dict[str, Operation] = {
    "create below": lambda asking: asking.create(f"{GUARDED}/new"),
    "create2 below": lambda asking: asking.create(f"{GUARDED}/new", include_data=True),
    "create sequential below": lambda asking: asking.create(f"{GUARDED}/new-", sequence=True),
    "delete below": lambda asking: asking.delete(f"{GUARDED}/child"),
    "setData": lambda asking: asking.set(GUARDED, b"changed"),
    "getData": lambda asking: asking.get(GUARDED),
    "getData with a watch": lambda asking: asking.get(GUARDED, watch=lambda event: None),
    "exists": lambda asking: asking.exists(GUARDED),
    "getChildren": lambda asking: asking.get_children(GUARDED),
    "getChildren2": lambda asking: asking.get_children(GUARDED, include_data=True),
    "setACL": lambda asking: asking.set_acls(GUARDED, [make_acl("world", "anyone", all=True)]),
    "multi: create": multi(lambda t: t.create("/acl/open/a"), lambda t: t.create(f"{GUARDED}/new")),
    "multi: delete": multi(lambda t: t.delete(f"{GUARDED}/child"), lambda t: t.create("/acl/open/a")),
    "multi: setData": multi(lambda t: t.create("/acl/open/a"), lambda t: t.set_data(GUARDED, b"changed")),
    "multi: check": multi(lambda t: t.create("/acl/open/a"), lambda t: t.check(GUARDED, 0)),
}


@pytest.mark.parametrize("what", FORBIDDEN)
@pytest.mark.parametrize("identities", [(), (WRONG,)], ids=["nobody", "with a wrong password"])
def test_without_the_right_identity_it_is_refused_and_changes_nothing(
    what: str, identities: tuple[tuple[str, str], ...], clients: Callable[..., KazooClient]
) -> None:
    with pytest.raises(NoAuthError):
        FORBIDDEN[what](clients(*identities))
    owner = clients(RIGHT)
    owner.sync("/acl")
    data, stat = owner.get(GUARDED)
    assert (data, stat.version, stat.aversion, stat.cversion) == (b"secret", 0, 0, 1)
    assert owner.get_children(GUARDED) == ["child"]
    assert owner.get_children("/acl/open") == []


@pytest.mark.parametrize("what", FORBIDDEN)
def test_with_the_right_identity_it_is_done(what: str, clients: Callable[..., KazooClient]) -> None:
    FORBIDDEN[what](clients(RIGHT))


def test_one_of_several_identities_is_enough(clients: Callable[..., KazooClient]) -> None:
    assert clients(WRONG, ("digest", "another:one"), RIGHT).get(GUARDED)[0] == b"secret"


def test_an_address_is_an_identity(clients: Callable[..., KazooClient]) -> None:
    asking = clients()
    assert asking.get("/acl/here")[0] == b"here"
    asking.set("/acl/here", b"changed")
    for refused in (lambda: asking.get("/acl/elsewhere"), lambda: asking.set("/acl/elsewhere", b"")):
        with pytest.raises(NoAuthError):
            refused()


def test_the_acl_of_auth_is_that_of_whoever_creates(clients: Callable[..., KazooClient]) -> None:
    owner, nobody = clients(RIGHT), clients()
    owner.create("/acl/open/mine", b"mine", acl=[ACL(31, Id("auth", ""))])
    assert owner.get("/acl/open/mine")[0] == b"mine"
    nobody.sync("/acl")
    with pytest.raises(NoAuthError):
        nobody.get("/acl/open/mine")
    with pytest.raises(InvalidACLError):
        nobody.create("/acl/open/whose", b"", acl=[ACL(31, Id("auth", ""))])


def test_each_permission_allows_what_it_names_and_nothing_else(clients: Callable[..., KazooClient]) -> None:
    owner, nobody = clients(RIGHT), clients()
    path = "/acl/open/one"
    asked: dict[str, Operation] = {
        "read": lambda asking: asking.get(path),
        "write": lambda asking: asking.set(path, b""),
        "create": lambda asking: asking.create(f"{path}/new-", sequence=True),
        "delete": lambda asking: asking.delete(f"{path}/child"),
        "admin": lambda asking: asking.set_acls(path, [OWNER]),
    }
    for allowed, its_own in asked.items():
        owner.create(path, b"", acl=[OWNER, make_acl("world", "anyone", **{allowed: True})])
        owner.create(f"{path}/child")
        nobody.sync("/acl")
        for what, operation in asked.items():
            if what != allowed:
                with pytest.raises(NoAuthError):
                    operation(nobody)
        its_own(nobody)
        owner.delete(path, recursive=True)


def test_an_acl_is_shown_to_whoever_may_read_and_its_digest_to_whoever_may_change_it(
    clients: Callable[..., KazooClient],
) -> None:
    owner, nobody = clients(RIGHT), clients()
    owner.create("/acl/open/shown", b"", acl=[OWNER, make_acl("world", "anyone", read=True)])
    nobody.sync("/acl")
    with pytest.raises(NoAuthError):
        nobody.get_acls(GUARDED)
    assert Id("digest", "owner:x") in [acl.id for acl in nobody.get_acls("/acl/open/shown")[0]]
    assert OWNER.id in [acl.id for acl in owner.get_acls("/acl/open/shown")[0]]


def test_sync_asks_for_no_permission(clients: Callable[..., KazooClient]) -> None:
    assert clients().sync(GUARDED) == GUARDED


class Raw:
    """A client that sends requests kazoo cannot send."""

    def __init__(self, ensemble: Ensemble, server: int) -> None:
        self._opened = connection(ensemble.client_port(server))
        self._socket = self._opened.__enter__()
        self._socket.sendall(framed(struct.pack(">iqiqi16s?", 0, 0, 30_000, 0, 16, b"", False)))
        self.frame()

    def _bytes(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self._socket.recv(count - len(found))
            assert part, "the server has ended the connection"
            found += part
        return found

    def frame(self) -> bytes:
        """Return the next answer or event."""
        return self._bytes(int.from_bytes(self._bytes(4), "big"))

    def ask(self, record: Any) -> tuple[int, bytes]:
        """Return the code of the answer, and the bytes after it."""
        head = (1).to_bytes(4, "big") + OPCODE_OF[type(record)].to_bytes(4, "big", signed=True)
        self._socket.sendall(framed(head + encode(record)))
        answer = self.frame()
        return int.from_bytes(answer[12:16], "big", signed=True), answer[16:]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def raw(ensemble: Ensemble, server: int) -> Iterator[Raw]:
    found = Raw(ensemble, server)
    yield found
    found.close()


NOAUTH = -102
RECURSIVE = 1


def test_the_number_of_all_children_needs_read(raw: Raw) -> None:
    assert raw.ask(GetAllChildrenNumber(GUARDED))[0] == NOAUTH
    assert raw.ask(GetAllChildrenNumber("/acl/open")) == (0, (0).to_bytes(4, "big"))


def test_a_read_in_a_multi_is_refused_alone(raw: Raw) -> None:
    code, answer = raw.ask(MultiRead((GetData("/acl/open", False), GetData(GUARDED, False))))
    assert code == 0
    assert b"open" in answer
    assert b"secret" not in answer
    assert NOAUTH.to_bytes(4, "big", signed=True) in answer


def test_ephemerals_are_those_of_the_own_session_only(raw: Raw, clients: Callable[..., KazooClient]) -> None:
    clients(RIGHT).create("/acl/open/ephemeral", b"", ephemeral=True)
    code, answer = raw.ask(GetEphemerals("/acl"))
    assert code == 0
    assert decode(replies.EphemeralsReply, answer)[0].ephemerals == ()


def test_a_watch_tells_of_what_may_be_read_only(raw: Raw, clients: Callable[..., KazooClient]) -> None:
    # Since 3.8.4 (CVE-2024-23944); before, a recursive watch revealed every path to any client.
    assert raw.ask(AddWatch("/acl", RECURSIVE))[0] == 0
    owner = clients(RIGHT)
    owner.set(GUARDED, b"very secret")
    owner.create(f"{GUARDED}/hidden", b"", acl=[OWNER])
    owner.set("/acl/open", b"changed")
    event = raw.frame()
    assert b"/acl/open" in event
    assert GUARDED.encode() not in event


def test_nothing_of_this_has_ended_a_server(ensemble: Ensemble) -> None:
    assert {word(ensemble.client_port(sid), "ruok") for sid in ensemble.sids} == {"imok"}
