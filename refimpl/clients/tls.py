"""TLS for `secureClientPort`: the keys of zoo.cfg, and the SSL context that they define.

Rules this module keeps:

- Key store and trust store are PEM files, which ZooKeeper 3.8 reads too: a key store holds the private key and its
  chain of certificates, a trust store certificates. A Java key store is refused with the command that converts it.
- A key of zoo.cfg that would make connections safer and is not supported here is an error, never ignored.
- No message contains a password.

Source: `X509Util`, `ClientX509Util`, `KeyStoreFileType`, `PEMFileLoader`.
"""

import ssl
from pathlib import Path

import msgspec

_KEY, _TRUST = "ssl.keyStore", "ssl.trustStore"
_VERIFY = {"none": ssl.CERT_NONE, "want": ssl.CERT_OPTIONAL, "need": ssl.CERT_REQUIRED}
_PROTOCOLS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_REFUSED = {"ssl.crl": "revocation lists", "ssl.ocsp": "OCSP", "ssl.authProvider": "other authentication providers"}


class TlsError(ValueError):
    """The TLS settings of zoo.cfg are unusable; the message names the key, the fault and the remedy."""


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the secure port, and its requirements; `protocols` are TLS versions, `ciphers` are OpenSSL names."""

    key_store: str
    key_password: str
    trust_store: str | None
    client_auth: str
    protocols: tuple[str, ...]
    ciphers: str | None

    @classmethod
    def of(cls, properties: dict[str, str]) -> "TlsSettings":
        """Reads the settings from zoo.cfg's keys. Raises TlsError."""
        for key, what in _REFUSED.items():
            if properties.get(key, "false").lower() != "false":
                raise TlsError(f"{key}={properties[key]}: {what} are not supported; remove the line")
        client_auth = properties.get("ssl.clientAuth", "need").lower()
        if client_auth not in _VERIFY:
            raise TlsError(f"ssl.clientAuth={client_auth}: write need, want or none")
        key_store = _pem_file(properties, _KEY)
        if key_store is None:
            what = "secureClientPort is set and ssl.keyStore.location is not"
            raise TlsError(f"{what}; name a PEM file with the private key and its certificates")
        trust_store = _pem_file(properties, _TRUST)
        if trust_store is None and client_auth != "none":
            what = f"ssl.clientAuth={client_auth} needs ssl.trustStore.location"
            raise TlsError(f"{what}; name a PEM file with certificates, or set ssl.clientAuth=none")
        return cls(
            key_store=key_store,
            key_password=_password(properties),
            trust_store=trust_store,
            client_auth=client_auth,
            protocols=_protocols(properties),
            ciphers=properties.get("ssl.openssl.ciphersuites"),
        )

    def context(self) -> ssl.SSLContext:
        """Returns the context of the secure port. Raises TlsError if a file is unusable."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        versions = sorted(_PROTOCOLS[name] for name in self.protocols)
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
        try:
            context.load_cert_chain(self.key_store, password=lambda: self.key_password)
        except (OSError, ValueError) as error:
            right = "a PEM file with the private key and its certificates, and its password in ssl.keyStore.password"
            raise TlsError(f"{_KEY}.location={self.key_store}: {_reason(error)}; name {right}") from None
        context.verify_mode = _VERIFY[self.client_auth]
        if self.trust_store is not None:
            try:
                context.load_verify_locations(self.trust_store)
            except (OSError, ValueError) as error:
                text = f"{_TRUST}.location={self.trust_store}: {_reason(error)}; name a PEM file with certificates"
                raise TlsError(text) from None
        if self.ciphers is not None:
            try:
                context.set_ciphers(self.ciphers)
            except ssl.SSLError:
                what = f"ssl.openssl.ciphersuites={self.ciphers}: no such ciphers"
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


def _password(properties: dict[str, str]) -> str:
    """Returns the key store's password; a file with it takes precedence over the password itself, as in ZooKeeper."""
    path = properties.get(f"{_KEY}.passwordPath")
    if path is None:
        return properties.get(f"{_KEY}.password", "")
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise TlsError(f"{_KEY}.passwordPath={path}: {_reason(error)}; name a file with the password") from None


def _protocols(properties: dict[str, str]) -> tuple[str, ...]:
    """Returns the TLS versions; ZooKeeper's own default is 1.2 and 1.3."""
    if properties.get("ssl.ciphersuites"):
        right = "name OpenSSL's in ssl.openssl.ciphersuites"
        raise TlsError(f"ssl.ciphersuites={properties['ssl.ciphersuites']}: Java's names are not understood; {right}")
    text = properties.get("ssl.enabledProtocols") or properties.get("ssl.protocol") or ",".join(_PROTOCOLS)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or any(name not in _PROTOCOLS for name in names):
        raise TlsError(f"ssl.enabledProtocols={text}: write {' or '.join(_PROTOCOLS)}, or both with a comma")
    return names
