"""The secure client port of a live node: kazoo over TLS, with its own certificate.

The keys are those of the real server; its package lacks the part of Netty that it would need here.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, free_ports
from tests.node.certificates import self_signed
from tests.node.hostile import client, connection, log_of
from tests.node.patience import LONG_LIMITS

WAIT = 60.0


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key and a self-signed certificate, used by servers and clients."""
    return self_signed(tmp_path_factory.mktemp("pem"), "localhost")


def keys(port: int, pem: Path) -> dict[str, str]:
    """The keys of zoo.cfg for a secure port."""
    return {
        "secureClientPort": str(port),
        "secureClientPortAddress": LOOPBACK,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(pem / "store.pem"),
        "ssl.trustStore.location": str(pem / "trust.pem"),
    }


@pytest.fixture(scope="module")
def secured(launch: Callable[..., Ensemble], pem: Path) -> str:
    """The `host:port` of the secure port of a node."""
    (port,) = free_ports(1)
    launch(["node"], standalone=True, extra=keys(port, pem))
    return f"{LOOPBACK}:{port}"


def test_a_client_with_a_certificate_is_served(secured: str, pem: Path) -> None:
    client = KazooClient(
        hosts=secured,
        use_ssl=True,
        certfile=str(pem / "trust.pem"),
        keyfile=str(pem / "key"),
        ca=str(pem / "trust.pem"),
        timeout=10.0,
    )
    client.start(timeout=WAIT)
    client.create("/over-tls", b"x")
    assert client.get("/over-tls")[0] == b"x"
    client.stop()


def test_a_client_without_a_certificate_is_not(secured: str, pem: Path) -> None:
    client = KazooClient(hosts=secured, use_ssl=True, ca=str(pem / "trust.pem"), timeout=1.0)
    with pytest.raises(KazooTimeoutError):
        client.start(timeout=2)
    client.close()


def test_a_client_without_tls_is_not(secured: str) -> None:
    client = KazooClient(hosts=secured, timeout=1.0)
    with pytest.raises(KazooTimeoutError):
        client.start(timeout=2)
    client.close()


def test_silent_sockets_at_the_secure_port_leave_descriptors_for_the_disk(tmp_path: Path, pem: Path) -> None:
    """A server with 256 descriptors writes log files and snapshots while 400 sockets begin no handshake."""
    (port,) = free_ports(1)
    patience = {"maxClientCnxns": "0", "nio.sessionlessCnxnTimeout": "600000"}
    extra = LONG_LIMITS | keys(port, pem) | patience | {"snapCount": "100"}
    ensemble = Ensemble(["node"], tmp_path, standalone=True, tick_time=1000, extra=extra)
    ensemble.process(1).command[:0] = ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh"]
    try:
        ensemble.start_all()
        with client(ensemble) as writing, ExitStack() as opened:
            for _ in range(400):
                opened.enter_context(connection(port))
            for n in range(500):
                writing.create(f"/n{n}", b"x")
            assert ensemble.running == (1,)
            assert psutil.Process(ensemble.process(1).pid).num_fds() < 200
            assert "file descriptors" in log_of(ensemble, 1)
            assert len(list(ensemble.data(1).rglob("snapshot.*"))) > 1
    finally:
        ensemble.shut_down()
