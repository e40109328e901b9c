"""The server's side of SASL DIGEST-MD5: a challenge, and the judgement of a client's response to it.

Clients prove a password with it that never travels. The server must know the passwords in plain text.

Rules of this module:

- The random nonce comes in as an argument, and the state of an exchange is a value.
- A token that does not fit the state, or does not prove the password, fails the exchange, which cannot be continued.
- The authorization id is the user whose password is proved, whatever id the client asks for (`authzid`). ZooKeeper
  3.9.5 does so too for a name without a realm. For a name with `@` that no rule of Kerberos translates it authorizes
  the id that was asked for, so such a user becomes `super` there.
- There is no integrity or privacy layer: the quality of protection is `auth`, the only one that ZooKeeper uses.

Source: RFC 2831 (sections 2.1.1, 2.1.2, 2.1.3); the provider of Java, as `SecurityUtils.createSaslServer` asks for it,
recorded from ZooKeeper 3.9.5; `SaslServerCallbackHandler.handleAuthorizeCallback`, `KerberosName.getShortName`.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

REALM = "zk-sasl-md5"
"""The realm, and the host of the digest-uri (`ZooKeeperSaslServer.createSaslServer`)."""
SERVICE = "zookeeper"
NONCE_COUNT = "00000001"
"""The count in the value of every response: a nonce is used once. The count that a client sends is passed over."""
QOP = "auth"
MAX_RESPONSE = 4096
"""The longest response, in bytes (RFC 2831, section 2.1.2)."""

_ONCE = frozenset(
    {"username", "nonce", "cnonce", "nc", "qop", "digest-uri", "response", "maxbuf", "charset", "cipher", "authzid"}
)
"""The directives that a response may have once; those without a meaning here are passed over."""
_DIRECTIVE = re.compile(rb'\s*([^\s=,"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))\s*(?:,|$)', re.DOTALL)


class Untried(msgspec.Struct, frozen=True, gc=False):
    """The state of a connection without any SASL token so far."""


class Challenged(msgspec.Struct, frozen=True, gc=False):
    """The state after the challenge with this nonce."""

    nonce: str


class ExchangeOver(msgspec.Struct, frozen=True, gc=False):
    """The state after a response, right or wrong."""


Exchange: TypeAlias = Untried | Challenged | ExchangeOver


class SaslStep(msgspec.Struct, frozen=True):
    """The effect of a token: the next state, and the token to send back; None if the authentication has failed.

    `user` is the user whose password the client has proved. `reason` says in words why a step failed, for a log.
    """

    state: Exchange
    token: bytes | None = None
    user: str | None = None
    reason: str = ""


def evaluate(state: Exchange, token: bytes, nonce: str, passwords: Mapping[str, str]) -> SaslStep:
    """The effect of a client's token; `nonce` is used if a challenge is made, `passwords` are those of the users.

    The content of a token before the challenge has no meaning, as for Java's provider.
    """
    if isinstance(state, Untried):
        return SaslStep(Challenged(nonce), challenge(nonce))
    if isinstance(state, ExchangeOver):
        return _failed("a token came after the end of the exchange")
    return _judged(state.nonce, token, passwords)


def challenge(nonce: str) -> bytes:
    """The first token of the server, with its directives in the order of Java's provider."""
    return f'realm="{REALM}",nonce="{nonce}",charset=utf-8,algorithm=md5-sess'.encode()


def response_value(password: str, directives: Mapping[str, bytes], method: str) -> str:
    """`response-value` of RFC 2831 as hexadecimal digits.

    The method of the value of the client is `AUTHENTICATE`, that of the value of the server is empty. `directives` are
    those of the response of the client; the realm may be missing.
    """
    texts = {name: value.decode("utf-8", "replace") for name, value in directives.items()}
    secret = b":".join(_hashed_text(text) for text in (texts["username"], texts.get("realm", ""), password))
    session = b":".join([_md5(secret), directives["nonce"], directives["cnonce"]])
    if "authzid" in texts:
        session += b":" + directives["authzid"]
    request = f"{method}:{texts['digest-uri']}".encode()
    middle = b":".join(
        [directives["nonce"], NONCE_COUNT.encode(), directives["cnonce"], QOP.encode(), _md5(request).hex().encode()]
    )
    return _md5(_md5(session).hex().encode() + b":" + middle).hex()


def parse_directives(token: bytes) -> dict[str, bytes] | None:
    """The directives of a token by their names, in lower case; None if the token is not a list of directives."""
    directives: dict[str, bytes] = {}
    offset = 0
    while offset < len(token):
        match = _DIRECTIVE.match(token, offset)
        if match is None:
            return None
        name = match[1].decode("latin-1").lower()
        if name in directives and name in _ONCE:
            return None
        directives[name] = match[3] if match[2] is None else re.sub(rb"\\(.)", rb"\1", match[2], flags=re.DOTALL)
        offset = match.end()
    return directives


def _judged(nonce: str, token: bytes, passwords: Mapping[str, str]) -> SaslStep:
    directives = parse_directives(token) if len(token) <= MAX_RESPONSE else None
    if directives is None:
        return _failed("the response is not a list of directives")
    fault = _fault_of(directives, nonce)
    if fault:
        return _failed(fault)
    user = directives["username"].decode("utf-8", "replace")
    password = passwords.get(user)
    if password is None:
        return _failed(f"no user is called {user!r}")
    expected = response_value(password, directives, "AUTHENTICATE")
    if not hmac.compare_digest(expected.encode(), directives["response"]):
        return _failed(f"the password of {user!r} is not proved")
    proof = f"rspauth={response_value(password, directives, '')}".encode()
    return SaslStep(ExchangeOver(), proof, user)


def _fault_of(directives: Mapping[str, bytes], nonce: str) -> str:
    """The first directive that is missing or has another value than it must; empty if all are right."""
    expected = {"realm": REALM, "nonce": nonce, "qop": QOP, "digest-uri": f"{SERVICE}/{REALM}", "charset": "utf-8"}
    for name in ("username", "realm", "nonce", "cnonce", "digest-uri", "response"):
        if name not in directives:
            return f"{name} is missing"
    for name, value in expected.items():
        # The host of a digest-uri is compared as names of hosts are.
        actual = directives.get(name, value.encode())
        if (actual.lower() if name == "digest-uri" else actual) != value.encode():
            return f"{name} is {actual!r}, and {value!r} was expected"
    return ""


def _failed(reason: str) -> SaslStep:
    return SaslStep(ExchangeOver(), reason=reason)


def _hashed_text(text: str) -> bytes:
    """Text as it is hashed: in ISO 8859-1 if that has all its characters, otherwise in UTF-8 (section 2.1.2.1)."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
