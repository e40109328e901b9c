"""TLS: the keys of zoo.cfg for clients (`ssl.*`) and for other servers (`ssl.quorum.*`), and streams between servers.

A stream is plain or TLS, or both at one port, by `sslQuorum` and `portUnification`.

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
- Key store and trust store are PEM files, which ZooKeeper 3.8 reads too: a key store holds the private key and its
  chain of certificates, a trust store certificates. A Java key store is refused with the command that converts it.
- A key of zoo.cfg that would make connections safer and is not supported here is an error, never ignored.
- No message contains a password.

Source: `UnifiedServerSocket`, `QuorumCnxManager.initiateConnection`, `Learner.createSocket`, `ZKTrustManager`,
`X509Util`, `ClientX509Util`, `QuorumX509Util`, `KeyStoreFileType`, `PEMFileLoader`.
"""

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
from spec.config.problems import is_true
from spec.text import INT, excerpt, integer

CLIENTS, SERVERS = "ssl.", "ssl.quorum."
"""The prefixes of the keys: those of the secure client port, and those of connections with other servers."""
_VERIFY = {"none": ssl.CERT_NONE, "want": ssl.CERT_OPTIONAL, "need": ssl.CERT_REQUIRED}
_PROTOCOLS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_REFUSED = {
    "crl": "revocation lists",
    "ocsp": "OCSP",
    "authProvider": "other authentication providers",
    "context.supplier.class": "other sources of TLS contexts",
    "allowReverseDnsLookup": "names of addresses that the DNS gives",
}


class TlsError(ValueError):
    """The TLS settings of zoo.cfg are unusable; the message names the key, the fault and the remedy."""


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one kind of connection, and its requirements.

    `prefix` is that of the keys; `protocols` are TLS versions; `ciphers` are OpenSSL names. `trust_store` is None only
    if no certificate is asked for.
    """

    key_store: str
    key_password: str
    trust_store: str | None
    client_auth: str
    protocols: tuple[str, ...]
    ciphers: str | None
    prefix: str = CLIENTS

    @classmethod
    def of(
        cls, properties: dict[str, str], prefix: str = CLIENTS, wanted_by: str = "secureClientPort is set"
    ) -> "TlsSettings":
        """Read the settings from zoo.cfg's keys; `wanted_by` says what makes them necessary. Raises TlsError."""
        for name, feature in _REFUSED.items():
            key = prefix + name
            if properties.get(key, "false").lower() != "false":
                raise TlsError(f"{key}={properties[key]}: {feature} are not supported; remove the line")
        client_auth = properties.get(f"{prefix}clientAuth", "need").lower()
        if client_auth not in _VERIFY:
            raise TlsError(f"{prefix}clientAuth={client_auth}: write need, want or none")
        key_store = _pem_file(properties, f"{prefix}keyStore")
        if key_store is None:
            problem = f"{wanted_by} and {prefix}keyStore.location is not"
            raise TlsError(f"{problem}; name a PEM file with the private key and its certificates")
        trust_store = _pem_file(properties, f"{prefix}trustStore")
        if trust_store is None and (client_auth != "none" or prefix == SERVERS):
            problem = f"{prefix}clientAuth={client_auth} needs {prefix}trustStore.location"
            if client_auth == "none":
                problem = f"{wanted_by} and {prefix}trustStore.location is not"
            alternative = "" if prefix == SERVERS else f", or set {prefix}clientAuth=none"
            raise TlsError(f"{problem}; name a PEM file with certificates{alternative}")
        return cls(
            key_store=key_store,
            key_password=_password(properties, f"{prefix}keyStore"),
            trust_store=trust_store,
            client_auth=client_auth,
            protocols=_protocols(properties, prefix),
            ciphers=properties.get(f"{prefix}openssl.ciphersuites"),
            prefix=prefix,
        )

    def context(self) -> ssl.SSLContext:
        """Return the context of an accepting port. Raises TlsError if a file is unusable."""
        context = self._filled(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        context.verify_mode = _VERIFY[self.client_auth]
        return context

    def connecting(self, verify_names: bool) -> ssl.SSLContext:
        """Return the context of a server that connects to another one.

        With `verify_names` the certificate must be for the host that is connected to. Raises TlsError.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = verify_names
        return self._filled(context)

    def _filled(self, context: ssl.SSLContext) -> ssl.SSLContext:
        versions = sorted(_PROTOCOLS[name] for name in self.protocols)
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
        try:
            context.load_cert_chain(self.key_store, password=lambda: self.key_password)
        except (OSError, ValueError) as error:
            problem = f"{self.prefix}keyStore.location={self.key_store}: {_reason(error)}"
            password = f"its password in {self.prefix}keyStore.password"
            raise TlsError(
                f"{problem}; name a PEM file with the private key and its certificates, and {password}"
            ) from None
        if self.trust_store is not None:
            try:
                context.load_verify_locations(self.trust_store)
            except (OSError, ValueError) as error:
                problem = f"{self.prefix}trustStore.location={self.trust_store}: {_reason(error)}"
                raise TlsError(f"{problem}; name a PEM file with certificates") from None
        if self.ciphers is not None:
            try:
                context.set_ciphers(self.ciphers)
            except ssl.SSLError:
                problem = f"{self.prefix}openssl.ciphersuites={self.ciphers}: no such ciphers"
                raise TlsError(f"{problem}; use OpenSSL's names") from None
        return context


def _reason(error: Exception) -> str:
    """Return the cause, without the numbers that OpenSSL adds."""
    if isinstance(error, ssl.SSLError):
        return f"OpenSSL cannot use it ({error.reason or 'unreadable, or a wrong password'})"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def _pem_file(properties: dict[str, str], store: str) -> str | None:
    """Return the file of a store, which must be PEM by its type, or by its name if no type is given."""
    location, kind = properties.get(f"{store}.location"), properties.get(f"{store}.type")
    if location is None:
        return None
    if (kind or Path(location).suffix.lstrip(".")).lower() != "pem":
        command = f"keytool -importkeystore -srckeystore {location} -destkeystore s.p12 -deststoretype pkcs12"
        convert = f"convert a Java key store with `{command}` and `openssl pkcs12 -in s.p12 -out s.pem -nodes`"
        raise TlsError(f"{store}.location={location}: not a PEM file (*.pem, or {store}.type=PEM); {convert}")
    return location


def _password(properties: dict[str, str], store: str) -> str:
    """Return the key store's password; a file with it takes precedence over the password itself, as in ZooKeeper."""
    path = properties.get(f"{store}.passwordPath")
    if path is None:
        return properties.get(f"{store}.password", "")
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TlsError(f"{store}.passwordPath={path}: {_reason(error)}; name a file with the password") from None


def _protocols(properties: dict[str, str], prefix: str) -> tuple[str, ...]:
    """Return the TLS versions; ZooKeeper's own default is 1.2 and 1.3."""
    if java := properties.get(f"{prefix}ciphersuites"):
        right = f"name OpenSSL's in {prefix}openssl.ciphersuites"
        raise TlsError(f"{prefix}ciphersuites={java}: Java's names are not understood; {right}")
    text = properties.get(f"{prefix}enabledProtocols") or properties.get(f"{prefix}protocol") or ",".join(_PROTOCOLS)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or any(name not in _PROTOCOLS for name in names):
        raise TlsError(f"{prefix}enabledProtocols={text}: write {' or '.join(_PROTOCOLS)}, or both with a comma")
    return names


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
    def of(cls, properties: dict[str, str]) -> "PeerSecurity":
        """Read the keys of zoo.cfg. Raises TlsError."""
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
        """Connect, by TLS if `sslQuorum` says so. Raises OSError, and ValueError for a name that is not a host's."""
        contexts = self._current() if self._security.connects_by_tls else None
        loop = asyncio.get_running_loop()
        if contexts is None:
            _, peer = await loop.create_connection(protocol, host, port)
            return peer
        try:
            _, peer = await loop.create_connection(protocol, host, port, ssl=contexts[1], ssl_shutdown_timeout=SHUTDOWN)
        except ssl.SSLError as error:
            logger.warning("no TLS with the server at %s:%d: %s", host, port, error)
            raise
        return peer

    def serve(self, bound: Iterable[socket.socket], protocol: Callable[[], asyncio.Protocol]) -> Listener:
        """Listen with a protocol for each connection, as `refimpl.listening.serve` does. Raises OSError."""
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
        tls_transport = cast(asyncio.Transport, transport)
        certificate = tls_transport.get_extra_info("peercert")
        if certificate and not _is_for(certificate, self._address):
            logger.warning("%s is refused: its certificate is not for this address", self._address)
            tls_transport.abort()
            return
        tls_transport.set_protocol(self._protocol)
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
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _milliseconds(properties: dict[str, str], key: str, default: int) -> int:
    text = properties.get(key, str(default))
    number = integer(text, 1, INT[1])
    if number is None:
        raise TlsError(f"{key}={excerpt(text)}: not a number of milliseconds; write a whole number from 1 to {INT[1]}")
    return number
