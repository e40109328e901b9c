"""Streams between servers: plain, TLS, or both at one port, by `sslQuorum` and `portUnification`.

Rules this module keeps:

- With `sslQuorum` a server connects by TLS, and its ports refuse anything else. With `portUnification` its ports accept
  both, and `sslQuorum` alone decides how it connects. So a change of one server at a time keeps the ensemble connected:
  first `portUnification` at all servers, then `sslQuorum` as well, then `sslQuorum` alone.
- The first byte of an accepted connection decides: a handshake of TLS begins with 0x16, and no opening of a server
  does. The byte is looked at, not taken. A connection without one within `handshakeDetectionTimeoutMillis` is plain.
- The number of connections whose kind or handshake is open is limited.
- Names are verified where the file asks for it by `hostnameVerification=true`, or by `fips-mode=false`, which makes
  verification the default. In FIPS mode, its default, ZooKeeper 3.9 verifies no name between servers even if asked.
- With `sslQuorumReloadCertFiles` the files are read again when they change. If they cannot be used, the old
  certificates stay.

Source: `UnifiedServerSocket`, `QuorumCnxManager.initiateConnection`, `Learner.createSocket`, `ZKTrustManager`,
`X509Util`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from refimpl.listening import MAX_STRANGERS, Listener, serve
from refimpl.log_lines import RateLimit
from refimpl.tls.settings import SERVERS, TlsError, TlsSettings
from spec.config.problems import is_true
from spec.text import INT, excerpt, integer

logger = logging.getLogger("quorate.tls")
logger.addFilter(RateLimit())

SHUTDOWN = 5.0
"""Seconds for the peer to answer the end of TLS, before the socket is closed."""
_HANDSHAKE = b"\x16"
"""The first byte of TLS: the content type of a handshake (RFC 8446, 5.1)."""
_Protocol = TypeVar("_Protocol", bound=asyncio.Protocol)


class PeerSecurity(msgspec.Struct, frozen=True, kw_only=True):
    """How a server connects with others, and what its ports accept; `detection` is in seconds.

    `tls` is None if neither `sslQuorum` nor `portUnification` is true. `verifies_servers`: the certificate of a server
    must be for the host that is connected to; `verifies_clients`: that of a connecting server for its address.
    """

    connects_by_tls: bool = False
    accepts_plain: bool = True
    tls: TlsSettings | None = None
    detection: float = 5.0
    verifies_servers: bool = False
    verifies_clients: bool = False
    reloads: bool = False

    @classmethod
    def of(cls, properties: dict[str, str]) -> PeerSecurity:
        """Reads the keys of zoo.cfg. Raises TlsError."""
        by_tls, unified = is_true(properties, "sslQuorum"), is_true(properties, "portUnification")
        if not (by_tls or unified):
            return cls()
        wanted_by = "sslQuorum=true" if by_tls else "portUnification=true"
        fips = is_true(properties, "fips-mode", otherwise="true")
        servers = is_true(properties, f"{SERVERS}hostnameVerification", otherwise="false" if fips else "true")
        return cls(
            connects_by_tls=by_tls,
            accepts_plain=unified,
            tls=TlsSettings.of(properties, SERVERS, wanted_by),
            detection=_milliseconds(properties, f"{SERVERS}handshakeDetectionTimeoutMillis", 5000) / 1000,
            verifies_servers=servers,
            verifies_clients=servers and is_true(properties, f"{SERVERS}clientHostnameVerification", otherwise="true"),
            reloads=is_true(properties, "sslQuorumReloadCertFiles"),
        )


PLAIN = PeerSecurity()


class PeerStreams:
    """Opens and accepts the connections with other servers. Raises TlsError for a file that cannot be used."""

    def __init__(self, security: PeerSecurity = PLAIN) -> None:
        self._security = security
        self._stamp = self._files()
        self._contexts = None if security.tls is None else _contexts(security, security.tls)

    async def connect(self, protocol: Callable[[], _Protocol], host: str, port: int) -> _Protocol:
        """Connects, by TLS if `sslQuorum` says so. Raises OSError, and ValueError for a name that is not a host's."""
        contexts = self._current() if self._security.connects_by_tls else None
        loop = asyncio.get_running_loop()
        if contexts is None:
            _, made = await loop.create_connection(protocol, host, port)
            return made
        try:
            _, made = await loop.create_connection(protocol, host, port, ssl=contexts[1], ssl_shutdown_timeout=SHUTDOWN)
        except ssl.SSLError as error:
            logger.warning("no TLS with the server at %s:%d: %s", host, port, error)
            raise
        return made

    def serve(self, bound: Iterable[socket.socket], protocol: Callable[[], asyncio.Protocol]) -> Listener:
        """Listens with a protocol for each connection, as `refimpl.listening.serve` does. Raises OSError."""
        if self._security.tls is None:
            return serve(bound, protocol)
        opening: set[asyncio.Task[None]] = set()

        def accepted(opened: socket.socket, peer: tuple[Any, ...]) -> None:
            if len(opening) >= MAX_STRANGERS:
                logger.warning("%s is refused: %d others have not begun to talk either", peer[0], MAX_STRANGERS)
                opened.close()
                return
            task = asyncio.get_running_loop().create_task(self._open(opened, peer, protocol))
            opening.add(task)
            task.add_done_callback(opening.discard)

        return Listener(bound, accepted)

    async def _open(
        self, opened: socket.socket, peer: tuple[Any, ...], protocol: Callable[[], asyncio.Protocol]
    ) -> None:
        loop, security = asyncio.get_running_loop(), self._security
        try:
            if await _begins_with_tls(opened, security.detection):
                contexts = self._current()
                make = (lambda: _AddressGate(protocol(), peer[0])) if security.verifies_clients else protocol
                await loop.connect_accepted_socket(
                    make,
                    opened,
                    ssl=contexts and contexts[0],
                    ssl_handshake_timeout=security.detection,
                    ssl_shutdown_timeout=SHUTDOWN,
                )
                return
            if security.accepts_plain:
                await loop.connect_accepted_socket(protocol, opened)
                return
            logger.warning("a connection of %s without TLS is refused: sslQuorum=true", peer[0])
        except OSError as error:
            logger.warning("a connection of %s ends in its TLS handshake: %s", peer[0], error)
        opened.close()

    def _current(self) -> tuple[ssl.SSLContext, ssl.SSLContext] | None:
        """Returns the contexts, of the present files if they are to be read again."""
        if self._security.reloads and self._security.tls is not None and (stamp := self._files()) != self._stamp:
            self._stamp = stamp
            try:
                self._contexts = _contexts(self._security, self._security.tls)
                logger.info("the certificates for connections with servers were read again")
            except TlsError as error:
                logger.warning("the certificates for connections with servers stay as they were: %s", error)
        return self._contexts

    def _files(self) -> tuple[object, ...]:
        tls = self._security.tls
        if tls is None:
            return ()
        return tuple(map(_stamp_of, (tls.key_store, tls.trust_store or tls.key_store)))


class _AddressGate(asyncio.Protocol):
    """The first protocol of an accepted connection: it passes it on if the certificate is for the peer's address."""

    def __init__(self, protocol: asyncio.Protocol, address: str) -> None:
        self._protocol, self._address = protocol, address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is complete. A peer without a certificate has passed `clientAuth`."""
        made = cast(asyncio.Transport, transport)
        certificate = made.get_extra_info("peercert")
        if certificate and not _is_for(certificate, self._address):
            logger.warning("%s is refused: its certificate is not for this address", self._address)
            made.abort()
            return
        made.set_protocol(self._protocol)
        self._protocol.connection_made(transport)


def _is_for(certificate: dict[str, Any], address: str) -> bool:
    """Whether a certificate, as `SSLSocket.getpeercert` returns it, is for an IP address."""
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "IP Address"]
    return ipaddress.ip_address(address) in map(ipaddress.ip_address, names)


async def _begins_with_tls(opened: socket.socket, seconds: float) -> bool:
    """Whether the first byte is that of a handshake; False if none comes in time. The byte is left in the socket."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()

    def has_a_byte() -> None:
        if not readable.done():
            readable.set_result(None)

    loop.add_reader(opened, has_a_byte)
    try:
        async with asyncio.timeout(seconds):
            await readable
        return opened.recv(1, socket.MSG_PEEK) == _HANDSHAKE
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(opened)


def _contexts(security: PeerSecurity, tls: TlsSettings) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return tls.context(), tls.connecting(security.verifies_servers)


def _stamp_of(file: str) -> tuple[int, int, int] | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _milliseconds(properties: dict[str, str], key: str, default: int) -> int:
    text = properties.get(key, str(default))
    number = integer(text, 1, INT[1])
    if number is None:
        raise TlsError(f"{key}={excerpt(text)}: not a number of milliseconds; write a whole number from 1 to {INT[1]}")
    return number
