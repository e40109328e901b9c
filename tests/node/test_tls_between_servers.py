"""TLS between servers: our node with real 3.9.5 servers, by the settings and the order of the Administrator's Guide.

A real server of the same release and the same files is the reference: what it accepts and refuses, the node must too.
"""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, wait_until
from tests.node.certificates import self_signed
from tests.node.conftest import NEWEST, launching
from tests.node.connecting import client_at

Keys = dict[str, str]
UNIFIED = {"portUnification": "true"}
BOTH = {"portUnification": "true", "sslQuorum": "true"}
TLS_ONLY = {"sslQuorum": "true"}
FOLLOWER_INFO = bytes.fromhex("0000000b")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """The keys of zoo.cfg for one certificate that all servers have and trust."""
    folder = self_signed(tmp_path_factory.mktemp("quorum-tls"), "servers")
    return {
        "ssl.quorum.keyStore.location": str(folder / "store.pem"),
        "ssl.quorum.trustStore.location": str(folder / "trust.pem"),
    }


@pytest.fixture
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Ensemble]]:
    """A launcher whose servers end with their test."""
    with launching(tmp_path_factory) as start:
        yield lambda kinds, extra, **others: start(kinds, release=NEWEST, extra=extra, **others)


def written_and_read_everywhere(ensemble: Ensemble, path: str) -> None:
    """A write through each server, read at each server."""
    for sid in ensemble.sids:
        with client_at(ensemble, sid) as client:
            client.create(f"{path}-{sid}", b"x")
    for sid in ensemble.sids:
        with client_at(ensemble, sid) as client:
            client.sync("/")
            assert all(client.exists(f"{path}-{other}") for other in ensemble.sids)


def _trusting(stores: Keys) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=stores["ssl.quorum.trustStore.location"])
    context.load_cert_chain(stores["ssl.quorum.keyStore.location"])
    return context


@contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection((LOOPBACK, port), timeout=20) as connection:
        yield connection


def _closes(connection: socket.socket) -> bool:
    """Whether the server ends the connection, with or without a reset."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize(
    ("kinds", "leader"),
    [
        pytest.param(["real", "node", "node"], "node", id="it leads a real follower"),
        pytest.param(["node", "node", "real"], "real", id="it follows a real leader", marks=pytest.mark.slow),
    ],
)
def test_servers_that_require_tls_serve_together(
    launch: Callable[..., Ensemble], stores: Keys, kinds: list[str], leader: str
) -> None:
    """Both ports of our node refuse plain connections and connections without a certificate, as real ones do."""
    ensemble = launch(kinds, TLS_ONLY | stores, first=3)
    assert ensemble.kind(ensemble.leader()) == leader
    written_and_read_everywhere(ensemble, "/tls")
    for sid in ensemble.sids:
        member = ensemble.member(sid)
        for port in (member.election_port, *([member.quorum_port] if sid == ensemble.leader() else [])):
            with _connected(port) as plain:
                plain.sendall(FOLLOWER_INFO + bytes(8))
                assert _closes(plain)
            with _connected(port) as opened:
                stranger = ssl.create_default_context(cafile=stores["ssl.quorum.trustStore.location"])
                stranger.maximum_version = ssl.TLSVersion.TLSv1_2  # 1.3 reports the refusal after the handshake
                with pytest.raises(OSError, match=r"alert|EOF|reset|closed"):
                    stranger.wrap_socket(opened, server_hostname=LOOPBACK)
            with _connected(port) as opened, _trusting(stores).wrap_socket(opened, server_hostname=LOOPBACK) as known:
                assert known.version() in {"TLSv1.2", "TLSv1.3"}


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [["real", "node", "node"], ["node", "real", "real"]])
def test_the_documented_upgrade_keeps_the_ensemble_serving(
    launch: Callable[..., Ensemble], stores: Keys, kinds: list[str]
) -> None:
    """Plain, then portUnification, then sslQuorum too, then without portUnification: one server at a time."""
    ensemble = launch(kinds, stores)
    for stage, keys in enumerate((UNIFIED, BOTH, TLS_ONLY)):
        for sid in ensemble.sids:
            ensemble.set_keys(sid, keys | stores)
            ensemble.stop(sid)
            others = [other for other in ensemble.sids if other != sid]
            ensemble.wait_serving(others)
            with client_at(ensemble, *others) as client:
                client.create(f"/stage-{stage}-without-{sid}", b"x")
            ensemble.start(sid)
            ensemble.wait_serving()
        written_and_read_everywhere(ensemble, f"/stage-{stage}")


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [["real", "node", "node"], ["node", "real", "real"]])
def test_a_plain_server_does_not_join_servers_that_require_tls(
    launch: Callable[..., Ensemble], stores: Keys, kinds: list[str]
) -> None:
    """The first server has a plain file. The others serve without it, and it never serves."""
    ensemble = launch(kinds, TLS_ONLY | stores)
    ensemble.stop(1)
    ensemble.set_keys(1, {})
    ensemble.start(1)
    ensemble.wait_serving([2, 3])
    until = time.monotonic() + 10
    while time.monotonic() < until:
        assert ensemble.role(1) is None
        time.sleep(0.5)
    ensemble.stop(1)
    ensemble.set_keys(1, UNIFIED | stores)
    ensemble.start(1)
    time.sleep(5)
    assert ensemble.role(1) is None  # it connects without TLS, which the others refuse
    ensemble.stop(1)
    ensemble.set_keys(1, BOTH | stores)
    ensemble.start(1)
    wait_until(lambda: ensemble.role(1) == "follower", 30, "server 1 follows")
