"""The TLS keys of zoo.cfg, for clients (`ssl.*`) and for other servers (`ssl.quorum.*`), and the contexts they define.

Rules this module keeps:

- Key store and trust store are PEM files, which ZooKeeper 3.8 reads too: a key store holds the private key and its
  chain of certificates, a trust store certificates. A Java key store is refused with the command that converts it.
- A key of zoo.cfg that would make connections safer and is not supported here is an error, never ignored.
- No message contains a password.

Source: `X509Util`, `ClientX509Util`, `QuorumX509Util`, `KeyStoreFileType`, `PEMFileLoader`.
"""

import ssl
from pathlib import Path

import msgspec

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
        """Reads the settings from zoo.cfg's keys; `wanted_by` says what makes them necessary. Raises TlsError."""
        for name, what in _REFUSED.items():
            key = prefix + name
            if properties.get(key, "false").lower() != "false":
                raise TlsError(f"{key}={properties[key]}: {what} are not supported; remove the line")
        client_auth = properties.get(f"{prefix}clientAuth", "need").lower()
        if client_auth not in _VERIFY:
            raise TlsError(f"{prefix}clientAuth={client_auth}: write need, want or none")
        key_store = _pem_file(properties, f"{prefix}keyStore")
        if key_store is None:
            what = f"{wanted_by} and {prefix}keyStore.location is not"
            raise TlsError(f"{what}; name a PEM file with the private key and its certificates")
        trust_store = _pem_file(properties, f"{prefix}trustStore")
        if trust_store is None and (client_auth != "none" or prefix == SERVERS):
            what = f"{prefix}clientAuth={client_auth} needs {prefix}trustStore.location"
            if client_auth == "none":
                what = f"{wanted_by} and {prefix}trustStore.location is not"
            other = "" if prefix == SERVERS else f", or set {prefix}clientAuth=none"
            raise TlsError(f"{what}; name a PEM file with certificates{other}")
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
        """Returns the context of an accepting port. Raises TlsError if a file is unusable."""
        context = self._filled(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        context.verify_mode = _VERIFY[self.client_auth]
        return context

    def connecting(self, verify_names: bool) -> ssl.SSLContext:
        """Returns the context of a server that connects to another one.

        With `verify_names` the certificate must be for the host that is connected to. Raises TlsError.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = verify_names
        return self._filled(context)

    def _filled(self, context: ssl.SSLContext) -> ssl.SSLContext:
        """Returns the context with the versions, the files and the ciphers. Raises TlsError."""
        versions = sorted(_PROTOCOLS[name] for name in self.protocols)
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
        try:
            context.load_cert_chain(self.key_store, password=lambda: self.key_password)
        except (OSError, ValueError) as error:
            what = f"{self.prefix}keyStore.location={self.key_store}: {_reason(error)}"
            password = f"its password in {self.prefix}keyStore.password"
            raise TlsError(
                f"{what}; name a PEM file with the private key and its certificates, and {password}"
            ) from None
        if self.trust_store is not None:
            try:
                context.load_verify_locations(self.trust_store)
            except (OSError, ValueError) as error:
                what = f"{self.prefix}trustStore.location={self.trust_store}: {_reason(error)}"
                raise TlsError(f"{what}; name a PEM file with certificates") from None
        if self.ciphers is not None:
            try:
                context.set_ciphers(self.ciphers)
            except ssl.SSLError:
                what = f"{self.prefix}openssl.ciphersuites={self.ciphers}: no such ciphers"
                raise TlsError(f"{what}; use OpenSSL's names") from None
        return context


def _reason(error: Exception) -> str:
    """Returns the cause, without the numbers that OpenSSL adds."""
    if isinstance(error, ssl.SSLError):
        return f"OpenSSL cannot use it ({error.reason or 'unreadable, or a wrong password'})"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def _pem_file(properties: dict[str, str], store: str) -> str | None:
    """Returns the file of a store, which must be PEM by its type, or by its name if no type is given."""
    location, kind = properties.get(f"{store}.location"), properties.get(f"{store}.type")
    if location is None:
        return None
    if (kind or Path(location).suffix.lstrip(".")).lower() != "pem":
        command = f"keytool -importkeystore -srckeystore {location} -destkeystore s.p12 -deststoretype pkcs12"
        convert = f"convert a Java key store with `{command}` and `openssl pkcs12 -in s.p12 -out s.pem -nodes`"
        raise TlsError(f"{store}.location={location}: not a PEM file (*.pem, or {store}.type=PEM); {convert}")
    return location


def _password(properties: dict[str, str], store: str) -> str:
    """Returns the key store's password; a file with it takes precedence over the password itself, as in ZooKeeper."""
    path = properties.get(f"{store}.passwordPath")
    if path is None:
        return properties.get(f"{store}.password", "")
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TlsError(f"{store}.passwordPath={path}: {_reason(error)}; name a file with the password") from None


def _protocols(properties: dict[str, str], prefix: str) -> tuple[str, ...]:
    """Returns the TLS versions; ZooKeeper's own default is 1.2 and 1.3."""
    if java := properties.get(f"{prefix}ciphersuites"):
        right = f"name OpenSSL's in {prefix}openssl.ciphersuites"
        raise TlsError(f"{prefix}ciphersuites={java}: Java's names are not understood; {right}")
    text = properties.get(f"{prefix}enabledProtocols") or properties.get(f"{prefix}protocol") or ",".join(_PROTOCOLS)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or any(name not in _PROTOCOLS for name in names):
        raise TlsError(f"{prefix}enabledProtocols={text}: write {' or '.join(_PROTOCOLS)}, or both with a comma")
    return names
