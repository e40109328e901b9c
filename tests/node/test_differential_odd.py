"""Requests that no client library sends: ours answers them, or closes the connection, as the real server does."""

import struct
from collections.abc import Callable

import pytest

from harness.commands import OPEN
from harness.ensemble import Ensemble
from harness.session import DisconnectedError, Session
from spec.tree.replies import Code

# name: (opcode, body)
PATH_A = b"\0\0\0\2/a"
ODD = {
    "exists with a relative path": (3, b"\0\0\0\1a\0"),
    "exists with an empty path": (3, b"\0\0\0\0\0"),
    "exists with a null path": (3, b"\xff\xff\xff\xff\0"),
    "exists with an absurd length": (3, b"\x7f\xff\xff\xff\0"),
    "exists that ends early": (3, b"\0\0\0\5/a"),
    "exists with more than it needs": (3, PATH_A + b"\0" + b"more"),
    "delete of the root": (2, b"\0\0\0\1/" + struct.pack("!i", -1)),
    "delete that ends early": (2, PATH_A),
    "set of /zookeeper": (5, b"\0\0\0\x0a/zookeeper" + b"\0\0\0\1x" + struct.pack("!i", -1)),
    "delete of /zookeeper/quota": (2, b"\0\0\0\x10/zookeeper/quota" + struct.pack("!i", -1)),
    "create with a null ACL": (1, b"\0\0\0\2/n" + b"\0\0\0\0" + b"\xff\xff\xff\xff" + b"\0\0\0\0"),
    "create with a negative count of ACL entries": (1, b"\0\0\0\2/n" + b"\0\0\0\0" + b"\xff\xff\xff\xfe" + b"\0\0\0\0"),
    "an unknown opcode": (55, b""),
    "a negative opcode": (-7, b""),
    "deleteContainer asked by a client": (20, b"/a"),
    "a multi without an end": (14, b""),
    "a multi of nothing": (14, struct.pack("!i?i", -1, True, -1)),
    "a multi of a read": (14, struct.pack("!i?i", 3, False, -1) + PATH_A + b"\0" + struct.pack("!i?i", -1, True, -1)),
    "check outside a multi": (13, PATH_A + struct.pack("!i", 0)),
    "reconfig while it is not enabled": (16, b"\xff\xff\xff\xff" * 3 + struct.pack("!q", -1)),
}

# Requests whose results differ, with the reason: the real server's result, and ours.
DISCONNECTED = "disconnected"
OTHERWISE: dict[str, tuple[object, object]] = {
    # The real server treats the empty path as the root; ours has no such path.
    "exists with an empty path": (Code.OK, Code.NO_NODE),
    # The real server reads a list without entries; ours refuses the bytes as invalid.
    "create with a negative count of ACL entries": (Code.INVALID_ACL, Code.MARSHALLING_ERROR),
    # Servers send this among themselves; our server refuses it from a client, the real one executes it where possible.
    "deleteContainer asked by a client": (Code.BAD_ARGUMENTS, Code.UNIMPLEMENTED),
    # The real server logs it as a transaction that no server can read: see docs/explanation-node.md. It sends no
    # answer, and the connection ends with its session: after 20 ticks, which is less than a Session waits.
    "check outside a multi": (DISCONNECTED, Code.UNIMPLEMENTED),
}


def error_of(answer: object) -> object:
    """Return the error code of an answer; another outcome is returned unchanged."""
    return answer[0] if isinstance(answer, tuple) else answer


def outcome(ensemble: Ensemble, opcode: int, body: bytes) -> tuple[object, ...]:
    """Return the error and the length of the answer, or the disconnection; and whether the server still serves."""
    session = Session(10_000)
    session.connect(ensemble.client_port(1))
    try:
        session.send_raw(opcode, body)
        answer: object = session.receive_raw()
    except DisconnectedError:
        answer = DISCONNECTED
    session.drop()
    after = Session(10_000)
    after.connect(ensemble.client_port(1))
    serves = after.ask(3, "/a", False).err
    after.close()
    return answer, serves


@pytest.fixture(scope="module")
def both(launch: Callable[..., Ensemble]) -> tuple[Ensemble, Ensemble]:
    real, node = (launch([kind], tick_time=100) for kind in ("real", "node"))
    for ensemble in (real, node):
        session = Session(10_000)
        session.connect(ensemble.client_port(1))
        session.ask(1, "/a", b"x", OPEN, 0)
        session.close()
    return real, node


@pytest.mark.parametrize("name", sorted(ODD.keys() - OTHERWISE.keys()))
def test_an_odd_request_ends_as_at_the_real_server(both: tuple[Ensemble, Ensemble], name: str) -> None:
    opcode, body = ODD[name]
    real, node = (outcome(ensemble, opcode, body) for ensemble in both)
    assert node == real


@pytest.mark.parametrize("name", OTHERWISE)
def test_where_ours_differs_it_refuses_and_goes_on_serving(both: tuple[Ensemble, Ensemble], name: str) -> None:
    opcode, body = ODD[name]
    (there, _), (here, serves) = (outcome(ensemble, opcode, body) for ensemble in both)
    assert (error_of(there), error_of(here)) == OTHERWISE[name]
    assert serves == Code.OK


def test_reconfig_is_disabled_on_every_server_of_an_ensemble(launch: Callable[..., Ensemble]) -> None:
    """A learner forwards it; the leader refuses it in a transaction (`PrepRequestProcessor.pRequest2Txn`)."""
    ensemble = launch(["node"] * 3, tick_time=200)
    for sid in ensemble.sids:
        session = Session(10_000)
        session.connect(ensemble.client_port(sid))
        zxid = session.ask(1, f"/{sid}", b"", OPEN, 0).zxid
        session.send_raw(*ODD["reconfig while it is not enabled"])
        assert error_of(session.receive_raw()) == Code.RECONFIG_DISABLED
        assert session.ask(5, f"/{sid}", b"", -1).zxid == zxid + 2
        session.close()
