"""Streams between servers: which connections a port accepts, by `sslQuorum` and `portUnification`.

The rules are those of ZooKeeper's `UnifiedServerSocket` and `X509Util`; live servers of 3.9.5 are in
tests/node/test_tls_between_servers.py.
"""

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from refimpl.listening import MAX_STRANGERS
from refimpl.tls import PLAIN, PeerSecurity, PeerStreams, TlsError

Keys = dict[str, str]
GREETING = b"\x00\x00\x00\x0b"  # FOLLOWERINFO, the first bytes of a learner


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key stores for 127.0.0.1 and for another address, each with its certificate; both certificates are trusted."""
    found = tmp_path_factory.mktemp("peers")
    openssl = str(shutil.which("openssl"))
    for name, address in (("here", "127.0.0.1"), ("other", "192.0.2.1")):
        made = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        names = ["-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{address}"]
        files = ["-keyout", str(found / f"{name}.key"), "-out", str(found / f"{name}.crt")]
        subprocess.run([*made, *names, *files], check=True, capture_output=True)
        key, certificate = (found / f"{name}.{kind}" for kind in ("key", "crt"))
        (found / f"{name}.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
    (found / "trust.pem").write_bytes((found / "here.crt").read_bytes() + (found / "other.crt").read_bytes())
    return found


def keys(folder: Path, store: str = "here", **others: str) -> Keys:
    """The keys of zoo.cfg; in `others`, _ replaces the dot."""
    given = {
        "ssl.quorum.keyStore.location": str(folder / f"{store}.pem"),
        "ssl.quorum.trustStore.location": str(folder / "trust.pem"),
    }
    return given | {name.replace("_", "."): value for name, value in others.items()}


class Echo(asyncio.Protocol):
    """Answers what it receives."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Asking(asyncio.Protocol):
    """Sends the greeting, and keeps what comes back until the end of the connection."""

    def __init__(self) -> None:
        self.received = b""
        self.answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(GREETING)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.received == GREETING:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.answered.set_result(self.received)


def serving(security: PeerSecurity, work: Callable[[int], Awaitable[bytes]]) -> bytes:
    """The result of work at a port with this security."""

    async def main() -> bytes:
        bound = socket.create_server(("127.0.0.1", 0))
        listener = PeerStreams(security).serve([bound], Echo)
        try:
            return await work(listener.port)
        finally:
            listener.close()

    return asyncio.run(asyncio.wait_for(main(), 20))


def asked_by(security: PeerSecurity) -> Callable[[int], Awaitable[bytes]]:
    """A peer with this security, which returns what the port answered: nothing if the connection failed."""

    async def work(port: int) -> bytes:
        try:
            made = await PeerStreams(security).connect(Asking, "127.0.0.1", port)
            return await made.answered
        except OSError:
            return b""

    return work


PAIRS = {
    # the connecting server: by which port it is served, of plain, portUnification, both, sslQuorum
    "": (True, True, True, False),
    "portUnification": (True, True, True, False),
    "portUnification sslQuorum": (False, True, True, True),
    "sslQuorum": (False, True, True, True),
}


@pytest.mark.parametrize("connecting", PAIRS)
@pytest.mark.parametrize("number", range(4))
def test_a_port_serves_the_connections_of_its_settings(folder: Path, connecting: str, number: int) -> None:
    accepting = list(PAIRS)[number]
    client, server = (
        PeerSecurity.of(keys(folder) | dict.fromkeys(each.split(), "true")) for each in (connecting, accepting)
    )
    # A plain port has no TLS; its protocol would answer the ClientHello, which is not the greeting.
    expected = GREETING if PAIRS[connecting][number] else b""
    assert serving(server, asked_by(client)) == expected


def test_a_peer_without_a_certificate_is_refused_unless_none_is_asked_for(folder: Path) -> None:
    async def stranger(port: int) -> bytes:
        context = ssl.create_default_context(cafile=str(folder / "trust.pem"))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(GREETING)
            answer = await reader.read(4)
            writer.close()
        except OSError:
            return b""
        return answer

    assert serving(PeerSecurity.of(keys(folder, sslQuorum="true")), stranger) == b""
    assert serving(PeerSecurity.of(keys(folder, sslQuorum="true", ssl_quorum_clientAuth="none")), stranger) == GREETING


@pytest.mark.parametrize(
    ("server_store", "client_store", "others", "served"),
    [
        ("other", "here", {}, True),  # fips-mode, the default, verifies no name
        ("other", "here", {"ssl_quorum_hostnameVerification": "true"}, False),
        ("other", "here", {"fips-mode": "false"}, False),
        ("here", "other", {"fips-mode": "false"}, False),
        ("here", "other", {"fips-mode": "false", "ssl_quorum_clientHostnameVerification": "false"}, True),
        ("other", "other", {"fips-mode": "false", "ssl_quorum_hostnameVerification": "false"}, True),
        ("here", "here", {"fips-mode": "false"}, True),
    ],
)
def test_names_are_verified_if_the_file_asks_for_it(
    folder: Path, server_store: str, client_store: str, others: Keys, served: bool
) -> None:
    server, client = (
        PeerSecurity.of(keys(folder, store, sslQuorum="true", **others)) for store in (server_store, client_store)
    )
    assert (serving(server, asked_by(client)) == GREETING) is served


def test_a_silent_connection_counts_as_plain_after_the_detection_time(folder: Path) -> None:
    async def late(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(0.2)
        writer.write(GREETING)
        answer = await reader.read(4)
        writer.close()
        return answer

    short = {"ssl_quorum_handshakeDetectionTimeoutMillis": "50"}
    assert serving(PeerSecurity.of(keys(folder, portUnification="true", **short)), late) == GREETING


def test_the_number_of_silent_connections_is_bounded(folder: Path) -> None:
    async def one_too_many(port: int) -> bytes:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAX_STRANGERS)]
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            answer = await reader.read(1)
        except ConnectionError:
            answer = b""
        for _, each in (*silent, (reader, writer)):
            each.close()
        return answer

    assert serving(PeerSecurity.of(keys(folder, portUnification="true")), one_too_many) == b""


def test_changed_files_are_read_again_only_if_asked(folder: Path, tmp_path: Path) -> None:
    """The new certificate is for another address, so that a peer that verifies names tells the two apart."""
    verifying = PeerSecurity.of(keys(folder, sslQuorum="true", ssl_quorum_hostnameVerification="true"))
    for reloads, expected in (("true", b""), ("false", GREETING)):
        store = tmp_path / f"{reloads}.pem"
        store.write_bytes((folder / "here.pem").read_bytes())
        given = keys(folder, sslQuorum="true", sslQuorumReloadCertFiles=reloads)
        security = PeerSecurity.of(given | {"ssl.quorum.keyStore.location": str(store)})

        async def work(port: int, store: Path = store) -> bytes:
            assert await asked_by(verifying)(port) == GREETING
            store.write_bytes((folder / "other.pem").read_bytes())
            return await asked_by(verifying)(port)

        assert serving(security, work) == expected


def test_without_both_keys_the_others_have_no_effect(folder: Path) -> None:
    assert PeerSecurity.of(keys(folder)) == PLAIN


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ({"ssl_quorum_keyStore_location": "/k.jks"}, "ssl.quorum.keyStore.location=/k.jks: not a PEM file"),
        ({"ssl_quorum_crl": "true"}, "ssl.quorum.crl=true: revocation lists are not supported"),
        ({"ssl_quorum_clientAuth": "maybe"}, "ssl.quorum.clientAuth=maybe: write need, want or none"),
        ({"ssl_quorum_context_supplier_class": "X"}, "ssl.quorum.context.supplier.class=X: other sources of TLS"),
        ({"ssl_quorum_handshakeDetectionTimeoutMillis": "0"}, "ssl.quorum.handshakeDetectionTimeoutMillis=0: not"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_names_the_key(folder: Path, others: Keys, what: str) -> None:
    with pytest.raises(TlsError) as error:
        PeerSecurity.of(keys(folder, sslQuorum="true", **others))
    assert str(error.value).startswith(what)


@pytest.mark.parametrize("missing", ["keyStore", "trustStore"])
def test_a_missing_store_is_an_error_that_names_what_needs_it(folder: Path, missing: str) -> None:
    given = keys(folder, portUnification="true", ssl_quorum_clientAuth="none")
    del given[f"ssl.quorum.{missing}.location"]
    with pytest.raises(TlsError, match=f"portUnification=true and ssl.quorum.{missing}.location is not; name a PEM"):
        PeerSecurity.of(given)
