"""A server without a quorum in read-only mode: one of three is started, a node and a real server of 3.9.5 alike."""

import socket
import struct
from pathlib import Path

import pytest

from harness.commands import OPEN
from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, wait_until
from harness.session import DisconnectedError, Session
from tests.node.conftest import NEWEST
from tests.support.programs import need_kind

REQUESTS = {
    "create": (1, ("/new", b"", OPEN, 0)),
    "create2": (15, ("/new", b"", OPEN, 0)),
    "create of a container": (19, ("/new", b"", OPEN, 4)),
    "create with a time to live": (21, ("/new", b"", OPEN, 5, 1000)),
    "delete": (2, ("/zookeeper/quota", -1)),
    "set": (5, ("/", b"x", -1)),
    "setACL": (7, ("/", OPEN, -1)),
    "multi": (14, ((1, ("/new", b"", OPEN, 0)),)),
    "sync": (9, ("/",)),
    "reconfig": (16, ("", "", "", -1)),
    "exists": (3, ("/zookeeper", False)),
    "exists without a znode": (3, ("/none", False)),
    "getChildren": (8, ("/", True)),
    "multiRead": (22, ((8, ("/zookeeper", False)),)),
    "getAllChildrenNumber": (104, ("/",)),
    "getEphemerals": (103, ("/",)),
    "whoAmI": (107, ()),
    "auth": (100, (0, "digest", b"a:b")),
    "sasl": (102, (b"",)),
    "addWatch": (106, ("/", 0)),
    "ping": (11, ()),
}


def start_alone(kind: str, folder: Path, *, local_sessions: bool) -> Ensemble:
    """Server 1 of three servers, without the others; it soon serves read-only clients."""
    need_kind(kind, NEWEST)
    keys = {"localSessionsEnabled": str(local_sessions).lower(), "reconfigEnabled": "true"}
    keys |= {"readonlymode.enabled": "true"} if kind == "node" else {}
    java = ["-Dreadonlymode.enabled=true"]
    ensemble = Ensemble([kind] * 3, folder, extra=keys, java_options=java, release=NEWEST)
    ensemble.start(1)
    return ensemble


def wait_read_only(ensemble: Ensemble) -> int:
    """The port of server 1, once it serves read-only clients."""
    log = ensemble.process(1).log
    wait_until(lambda: ensemble.word(1, "isro") == "ro", 60.0, f"the {ensemble.kind(1)} is read-only", log)
    return ensemble.client_port(1)


class ReadOnlyClient(Session):
    """A session whose ConnectRequest says that a read-only server will do."""

    def __init__(self) -> None:
        super().__init__(10_000)
        self.read_only: bool | None = None

    def connect(self, place: object, asks: bytes = b"\1") -> int:
        self.drop()
        assert isinstance(place, int)
        self._socket = socket.create_connection((LOOPBACK, place), timeout=15.0)
        body = struct.pack("!iqiqi", 0, self.last_zxid, self.timeout, self.session_id, 16) + self.password
        self._send(body + asks)
        answer = self._receive()
        _, timeout, self.session_id, _ = struct.unpack_from("!iiqi", answer)
        self.password, self.read_only = answer[20:36], bool(answer[36])
        return int(timeout)


def outcome(port: int, opcode: int, values: tuple[object, ...]) -> object:
    """The answer to one request of a new read-only client, without its zxid."""
    client = ReadOnlyClient()
    client.connect(port)
    try:
        answer = client.ask(opcode, *values)
    except DisconnectedError:
        return "disconnected"
    finally:
        client.drop()
    return answer.err, answer.zxid, answer.values, client.read_only


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The client ports of a real server and of a node without a quorum."""
    ensembles = []
    try:
        for kind in ("real", "node"):
            ensembles.append(start_alone(kind, tmp_path_factory.mktemp(kind), local_sessions=True))
        yield tuple(map(wait_read_only, ensembles))
    finally:
        for ensemble in ensembles:
            ensemble.shut_down()


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_answered_as_by_the_real_server(name: str, both: tuple[int, int]) -> None:
    real, node = (outcome(port, *REQUESTS[name]) for port in both)
    assert node == real


def connections(port: int) -> list[object]:
    """What happens to clients that ask for more than a read-only server can give."""
    found: list[object] = []
    for asks in (b"\0", b""):
        client = ReadOnlyClient()
        try:
            found.append(client.connect(port, asks))
        except DisconnectedError:
            found.append("disconnected")
    client = ReadOnlyClient()
    found.append((client.connect(port), client.read_only, client.session_id >> 56))
    client.drop()
    found.append(("again", client.connect(port), client.ask(11).err))
    known = client.session_id, client.password
    client.password = bytes(16)
    found.append(("another password", client.connect(port)))
    client.session_id, client.password = known
    found.append(("again", client.connect(port)))
    found.append(("closed", client.ask(-11).err))
    return found


def test_clients_are_admitted_as_by_the_real_server(both: tuple[int, int]) -> None:
    real, node = (connections(port) for port in both)
    assert node == real


@pytest.mark.slow
def test_a_read_only_server_ends_its_connections_when_there_is_a_quorum(tmp_path: Path) -> None:
    with start_alone("node", tmp_path, local_sessions=True) as ensemble:
        client = ReadOnlyClient()
        client.connect(wait_read_only(ensemble))
        ensemble.start(2)
        with pytest.raises(DisconnectedError):
            client.wait_event(30.0)
        ensemble.wait_serving((1, 2))
        assert ensemble.word(1, "isro") == "rw"
        assert client.connect(ensemble.client_port(1)) == 0, "its session was local, and has ended"


@pytest.mark.slow
def test_a_read_only_server_without_local_sessions_admits_no_client(tmp_path: Path) -> None:
    """The real server answers with a reply where a ConnectResponse is due, which no client can read."""
    with start_alone("node", tmp_path, local_sessions=False) as ensemble:
        port = wait_read_only(ensemble)
        with pytest.raises(DisconnectedError):
            ReadOnlyClient().connect(port)
