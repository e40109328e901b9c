"""Each request as kazoo's call, each result as an answer, with kazoo's own client without a connection; the herald."""

import queue
import struct
import threading
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import EXCEPTIONS, AuthFailedError, ConnectionClosedError
from kazoo.protocol import serialization
from kazoo.protocol.states import KeeperState, ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE as KAZOO_OPEN
from kazoo.security import make_digest_acl

from refimpl.recipes import kazoo_adapter
from refimpl.recipes.driver import ListenerExecutor
from spec.recipes.events import Answered
from spec.tree.data import OPEN_ACL_UNSAFE, Record, Stat
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply, PathReply, StatReply
from spec.tree.requests import Create2, CreateMode, Delete, Exists, GetChildren, GetData, SetData, Sync

STAT = (101, 102, 3, 4, 5, 6, 7, 0x1234, 9, 10, 103)
WAIT = 10.0


def watcher(event: Any) -> None:
    """The watcher that the driver passes to kazoo."""


def requested(record: Record, **options: Any) -> Any:
    """Return the request that kazoo would put on the wire."""
    client = KazooClient(hosts="127.0.0.1:1/app", **options)
    client._state = KeeperState.CONNECTING  # requests wait in kazoo's queue
    kazoo_adapter.send(client, record, watcher)
    return client._queue[0][0]


@pytest.mark.parametrize(
    ("record", "request_"),
    [
        (
            Create2("/q/n_", b"x", OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL),
            serialization.Create2("/app/q/n_", b"x", KAZOO_OPEN, 3),
        ),
        (
            Create2("/leader", b"x", OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL),
            serialization.Create2("/app/leader", b"x", KAZOO_OPEN, 1),
        ),
        (Delete("/q/a", -1), serialization.Delete("/app/q/a", -1)),
        (Exists("/q/a", False), serialization.Exists("/app/q/a", None)),
        (GetData("/q/a", True), serialization.GetData("/app/q/a", watcher)),
        (GetData("/q/a", False), serialization.GetData("/app/q/a", None)),
        (GetChildren("/q", False), serialization.GetChildren("/app/q", None)),
        (GetChildren("/q", True), serialization.GetChildren("/app/q", watcher)),
        (Sync("/q"), serialization.Sync("/app/q")),
    ],
)
def test_a_record_is_the_request_of_the_same_name_below_the_chroot(record: Record, request_: Any) -> None:
    assert requested(record) == request_


def test_the_clients_default_acl_is_kept() -> None:
    acl = [make_digest_acl("anna", "secret", all=True)]
    record = Create2("/q/n_", b"", OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)
    assert requested(record, default_acl=acl).acl == acl


def test_what_no_recipe_asks_for_is_an_error() -> None:
    with pytest.raises(ValueError, match="SetData"):
        requested(SetData("/q", b"", -1))


def result_of(value: Any = None, error: Exception | None = None) -> Any:
    result = KazooClient().handler.async_result()
    if error is None:
        result.set(value)
    else:
        result.set_exception(error)
    return result


@pytest.mark.parametrize(
    ("record", "value", "reply"),
    [
        (
            Create2("/q/n_", b"", OPEN_ACL_UNSAFE, 3),
            ("/q/n_0000000001", ZnodeStat(*STAT)),
            Create2Reply("/q/n_0000000001", Stat(*STAT)),
        ),
        (Exists("/q", False), ZnodeStat(*STAT), StatReply(Stat(*STAT))),
        (GetData("/q", True), (b"x", ZnodeStat(*STAT)), DataReply(b"x", Stat(*STAT))),
        (GetChildren("/q", False), ["a", "b"], ChildrenReply(("a", "b"))),
        (Sync("/q"), "/q", PathReply("/q")),
        (Delete("/q", -1), True, None),
    ],
)
def test_a_result_is_the_reply_of_its_request(record: Record, value: Any, reply: Record | None) -> None:
    assert kazoo_adapter.answer(record, result_of(value)) == Answered(Code.OK, reply)


def test_the_token_is_the_czxid_and_the_owner_is_the_session() -> None:
    stat = Stat(*ZnodeStat(*STAT))
    assert (stat.czxid, stat.ephemeral_owner, stat.pzxid) == (101, 0x1234, 103)


def test_a_missing_znode_is_an_error_to_exists_too() -> None:
    assert kazoo_adapter.answer(Exists("/q", False), result_of(None)) == Answered(Code.NO_NODE)


@pytest.mark.parametrize("code", [Code.NO_NODE, Code.NODE_EXISTS, Code.NO_AUTH, Code.INVALID_ACL, Code.NOT_READONLY])
def test_an_error_of_the_servers_is_an_answer(code: Code) -> None:
    assert kazoo_adapter.answer(Sync("/q"), result_of(error=EXCEPTIONS[code]())) == Answered(code)


@pytest.mark.parametrize("code", sorted(kazoo_adapter.UNKNOWN - {Code.REQUEST_TIMEOUT}))
def test_an_outcome_that_nobody_knows_is_no_answer(code: Code) -> None:
    assert kazoo_adapter.answer(Sync("/q"), result_of(error=EXCEPTIONS[code]())) is None


@pytest.mark.parametrize("error", [ConnectionClosedError(), AuthFailedError()])
def test_a_client_that_is_closed_gives_no_answer(error: Exception) -> None:
    assert kazoo_adapter.answer(Sync("/q"), result_of(error=error)) is None


def test_an_answer_that_kazoo_cannot_read_is_no_answer_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert kazoo_adapter.answer(Sync("/q"), result_of(error=struct.error("a buffer of 16 bytes"))) is None
    assert "a buffer of 16 bytes" in caplog.text


def test_a_request_that_kazoo_finds_impossible_is_refused() -> None:
    assert kazoo_adapter.answer(Sync("/q"), result_of(error=ValueError("no path"))) == Answered(Code.BAD_ARGUMENTS)


def test_a_listener_executor_calls_in_order_and_logs_what_fails(caplog: pytest.LogCaptureFixture) -> None:
    called: queue.Queue[str] = queue.Queue()
    herald = ListenerExecutor("listeners")
    herald.call(lambda: called.put("first"), lambda: 1 // 0)
    herald.call(lambda: called.put("second"))
    assert [called.get(timeout=WAIT) for _ in range(2)] == ["first", "second"]
    assert "ZeroDivisionError" in caplog.text


def test_a_listener_that_blocks_does_not_block_who_calls() -> None:
    go_on, called = threading.Event(), threading.Event()
    herald = ListenerExecutor("listeners")
    herald.call(lambda: go_on.wait(WAIT), called.set)
    herald.call()
    assert not called.is_set()
    go_on.set()
    assert called.wait(WAIT)
