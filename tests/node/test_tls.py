"""The secure client port of a live node: kazoo over TLS, with a certificate of its own.

The keys are those that the real server takes; its package lacks the part of Netty that it would need here.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("kazoo", reason="kazoo is missing; pip install 'quorate[recipes]'")

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from benchmarks.servers import Ensemble
from benchmarks.servers.processes import LOOPBACK, free_ports

WAIT = 60.0


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a key and its own certificate, for servers and clients alike."""
    folder = tmp_path_factory.mktemp("pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "trust.pem")]
    subprocess.run([*made, "-addext", "subjectAltName=IP:127.0.0.1", *files], check=True, capture_output=True)
    (folder / "store.pem").write_bytes((folder / "key").read_bytes() + (folder / "trust.pem").read_bytes())
    return folder


@pytest.fixture(scope="module")
def secured(launch: Callable[..., Ensemble], pem: Path) -> str:
    """`host:port` of the secure port of a node."""
    (port,) = free_ports(1)
    extra = {
        "secureClientPort": str(port),
        "secureClientPortAddress": LOOPBACK,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(pem / "store.pem"),
        "ssl.trustStore.location": str(pem / "trust.pem"),
    }
    launch(["node"], standalone=True, extra=extra)
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
