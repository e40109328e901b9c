"""The secure client port and its keys of zoo.cfg; a key that cannot be used is an error that gives the reason."""

import asyncio
import importlib
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from refimpl.clients import ClientPort, ClientSettings
from refimpl.listening import ListenError
from refimpl.tls import TlsError, TlsSettings
from spec.config.server_line import Address
from spec.config.zoo_cfg import parse_zoo_cfg
from spec.service.handshake import Limits
from tests.support.memory_server import MemoryServer

PASSWORD = "secret"
Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encrypted key and its certificate for localhost in one PEM file, and an unencrypted copy."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key", folder / "trust.pem"
    made = [str(shutil.which("openssl")), "req", "-x509", "-newkey", "rsa:2048", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, "-passout", f"pass:{PASSWORD}"], check=True, capture_output=True)
    (folder / "store.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
    return folder


def keys(folder: Path, **others: str) -> dict[str, str]:
    """Return the keys of zoo.cfg; in `others`, _ replaces the dot."""
    given = {
        "ssl.keyStore.location": str(folder / "store.pem"),
        "ssl.keyStore.password": PASSWORD,
        "ssl.trustStore.location": str(folder / "trust.pem"),
    }
    return given | {name.replace("_", "."): value for name, value in others.items()}


def ask(tls: TlsSettings, context: ssl.SSLContext) -> bytes:
    """Return the reply to the word `ruok` through a secure port; empty if the connection fails."""

    async def run() -> bytes:
        clients = ClientPort(ClientSettings(secure_address=Address("127.0.0.1", 0), tls=tls, words=frozenset("*")))
        await clients.start()
        clients.begin(MemoryServer(clients))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", clients.ports()[0], ssl=context)
            writer.write(b"ruok")
            return await reader.read()
        except (ssl.SSLError, ConnectionError):
            return b""
        finally:
            await clients.close()

    return asyncio.run(asyncio.wait_for(run(), 20))


def trusting(folder: Path, presents: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "trust.pem"))
    if presents:
        context.load_cert_chain(folder / "store.pem", password=PASSWORD)
    return context


def test_the_secure_port_answers_over_tls(store: Path) -> None:
    assert ask(TlsSettings.of(keys(store, ssl_clientAuth="none")), trusting(store)) == b"imok"


def test_a_client_is_asked_for_its_certificate_unless_told_otherwise(store: Path) -> None:
    tls = TlsSettings.of(keys(store))
    assert ask(tls, trusting(store, presents=True)) == b"imok"
    assert ask(tls, trusting(store)) == b""


# Connections without a handshake.


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """A runner for an event loop of this kind, with a limit of 20 seconds."""
    found = importlib.import_module(request.param).run
    return lambda coroutine: found(asyncio.wait_for(coroutine, 20))


@asynccontextmanager
async def secure(store: Path, first_reserved: int = sys.maxsize, **limits: Any) -> AsyncIterator[ClientPort]:
    """A client port with TLS only. A client has a minute for its handshake, longer than a test."""
    tls = TlsSettings.of(keys(store, ssl_clientAuth="none"))
    settings = ClientSettings(
        secure_address=Address("127.0.0.1", 0), tls=tls, words=frozenset("*"), connect_timeout=60_000, **limits
    )
    clients = ClientPort(settings, first_reserved=first_reserved)
    await clients.start()
    clients.begin(MemoryServer(clients))
    try:
        yield clients
    finally:
        await clients.close()


async def refused(clients: ClientPort) -> bool:
    """Whether the secure port closes a connection that sends nothing."""
    reader, writer = await asyncio.open_connection("127.0.0.1", clients.ports()[0])
    try:
        return await asyncio.wait_for(reader.read(), 5) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    finally:
        writer.close()


@pytest.mark.parametrize("limit", ["max_client_cnxns", "max_cnxns"])
def test_a_connection_without_a_handshake_counts_towards_the_limits(store: Path, run: Run, limit: str) -> None:
    async def third() -> bool:
        async with secure(store, **{limit: 2}) as clients:
            silent = [await asyncio.open_connection("127.0.0.1", clients.ports()[0]) for _ in range(2)]
            ended = await refused(clients)
            for _, writer in silent:
                writer.close()
            return ended and clients.statistics.refused == 1

    assert run(third())


def test_a_connection_without_a_handshake_needs_an_unreserved_descriptor(store: Path, run: Run) -> None:
    async def first() -> bool:
        async with secure(store, first_reserved=0) as clients:
            return await refused(clients)

    assert run(first())


def test_a_connection_that_ends_before_its_handshake_leaves_its_place(store: Path, run: Run) -> None:
    async def next_one() -> bytes:
        async with secure(store, max_client_cnxns=1) as clients:
            _, writer = await asyncio.open_connection("127.0.0.1", clients.ports()[0])
            while not clients.connections:
                await asyncio.sleep(0.01)
            writer.close()
            while clients.connections:
                await asyncio.sleep(0.01)
            reader, writer = await asyncio.open_connection("127.0.0.1", clients.ports()[0], ssl=trusting(store))
            writer.write(b"ruok")
            answer = await reader.read()
            writer.close()
            return answer

    assert run(next_one()) == b"imok"


def test_a_port_that_closes_ends_the_connections_without_a_handshake(store: Path, run: Run) -> None:
    async def silent() -> bytes:
        async with secure(store) as clients:
            reader, writer = await asyncio.open_connection("127.0.0.1", clients.ports()[0])
            while not clients.connections:
                await asyncio.sleep(0.01)
        received = await reader.read()
        writer.close()
        return received

    assert run(silent()) == b""


def test_the_password_may_be_in_a_file(store: Path) -> None:
    file = store / "password"
    file.write_text(PASSWORD + "\n")
    given = keys(store, ssl_keyStore_passwordPath=str(file), ssl_keyStore_password="wrong")
    assert TlsSettings.of(given).context().verify_mode is ssl.CERT_REQUIRED


def test_a_java_key_store_is_refused_with_the_way_to_convert_it(store: Path) -> None:
    with pytest.raises(TlsError, match=r"ssl.keyStore.location=/k.jks: not a PEM file .* `keytool .* `openssl pkcs12"):
        TlsSettings.of(keys(store, ssl_keyStore_location="/k.jks"))


def test_the_type_decides_before_the_name_of_the_file(store: Path) -> None:
    given = keys(store, ssl_keyStore_location="/etc/tls/key", ssl_keyStore_type="PEM")
    assert TlsSettings.of(given).key_store == "/etc/tls/key"


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ({"ssl_clientAuth": "maybe"}, "ssl.clientAuth=maybe: write need, want or none"),
        ({"ssl_enabledProtocols": "SSLv3"}, "ssl.enabledProtocols=SSLv3: write TLSv1.2 or TLSv1.3"),
        ({"ssl_crl": "true"}, "ssl.crl=true: revocation lists are not supported"),
        ({"ssl_ciphersuites": "TLS_X"}, "ssl.ciphersuites=TLS_X: Java's names are not understood"),
        ({"ssl_keyStore_passwordPath": "/none"}, "ssl.keyStore.passwordPath=/none: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_an_error_that_names_the_key(store: Path, others: dict[str, str], what: str) -> None:
    with pytest.raises(TlsError) as error:
        TlsSettings.of(keys(store, **others))
    assert str(error.value).startswith(what)


def test_a_missing_key_store_is_an_error() -> None:
    with pytest.raises(TlsError, match=r"ssl.keyStore.location is not; name a PEM file"):
        TlsSettings.of({})


def test_asking_for_certificates_needs_a_trust_store(store: Path) -> None:
    given = keys(store)
    del given["ssl.trustStore.location"]
    with pytest.raises(TlsError, match=r"ssl.clientAuth=need needs ssl.trustStore.location"):
        TlsSettings.of(given)


@pytest.mark.parametrize("password", ["wrong", ""])
def test_a_wrong_password_is_an_error_that_does_not_repeat_it(store: Path, password: str) -> None:
    with pytest.raises(TlsError, match=r"ssl.keyStore.location=.*cannot use it") as error:
        TlsSettings.of(keys(store, ssl_keyStore_password=password)).context()
    assert "wrong;" not in str(error.value)


def test_a_file_that_is_not_there_is_an_error(store: Path) -> None:
    with pytest.raises(TlsError, match=r"ssl.keyStore.location=/none.pem: No such file"):
        TlsSettings.of(keys(store, ssl_keyStore_location="/none.pem")).context()


# The other keys of zoo.cfg.

ZOO_CFG = "tickTime=1000\ndataDir=/d\nclientPort=2181\n"


def settings(text: str = "") -> ClientSettings:
    config = parse_zoo_cfg(ZOO_CFG + text)
    return ClientSettings.of(config, config.client)


def test_the_defaults_are_those_of_zookeeper() -> None:
    made = settings()
    assert (made.max_client_cnxns, made.max_cnxns, made.global_outstanding_limit) == (60, 0, 1000)
    assert (made.max_buffer, made.connect_timeout, made.words) == (0xFFFFF, 10_000, {"srvr"})
    assert made.session_limits == Limits(2000, 20000)


def test_limits_are_read_from_their_keys() -> None:
    made = settings("maxClientCnxns=5\nmaxCnxns=7\nglobalOutstandingLimit=9\njute.maxbuffer=0x200000\n")
    assert (made.max_client_cnxns, made.max_cnxns, made.global_outstanding_limit) == (5, 7, 9)
    assert made.max_buffer == 0x200000


@pytest.mark.parametrize("line", ["maxCnxns=many", "jute.maxbuffer=5", "globalOutstandingLimit=0"])
def test_a_limit_that_is_no_number_is_an_error_that_names_it(line: str) -> None:
    with pytest.raises(ValueError, match=f"{line}: not a whole number of at least"):
        settings(line)


def test_conf_of_a_member_of_an_ensemble_tells_of_the_ensemble() -> None:
    servers = "".join(f"server.{sid}=127.0.0.1:2888{sid}:3888{sid}\n" for sid in (1, 2, 3))
    config = parse_zoo_cfg(ZOO_CFG + "initLimit=5\nsyncLimit=2\n" + servers, myid="2")
    assert ClientSettings.of(config, config.client).conf[-7:] == (
        "serverId=2",
        "initLimit=5",
        "syncLimit=2",
        "electionAlg=3",
        "electionPort=38882",
        "quorumPort=28882",
        "peerType=0",
    )


def test_a_port_that_is_taken_is_an_error_that_names_it() -> None:
    async def run() -> None:
        first = ClientPort(ClientSettings(address=Address("127.0.0.1", 0)))
        await first.start()
        port = first.ports()[0]
        try:
            with pytest.raises(ListenError, match=f"cannot listen for clients at 127.0.0.1:{port}"):
                await ClientPort(ClientSettings(address=Address("127.0.0.1", port))).start()
        finally:
            await first.close()

    asyncio.run(run())
