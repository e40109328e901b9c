"""SASL DIGEST-MD5 at a node and at a real server of 3.9.5: the same tokens, and the same answers.

The tokens are written by hand, because a client library never sends most of them.

The client's responses are computed by this file from RFC 2831, independently of `spec.service.digest_md5`.
"""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.ensemble import Ensemble
from harness.session import DisconnectedError, Session
from tests.node.conftest import NEWEST

SASL, WHO_AM_I, CREATE, GET_DATA, GET_ACL, EXISTS, AUTH = 102, 107, 1, 4, 6, 3, 100
READ_ALL = [(31, "world", "anyone")]
JAAS = """
/* a comment */
Client { com.example.Other optional; };
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required // another one
    user_super="secret"
    user_ann="p\\"w"
    user_umlaut="Zo\N{LATIN SMALL LETTER E WITH DIAERESIS}"
    user_plain=word;
};
"""
PROVIDER = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
Fields = dict[str, str]


def response(challenge: bytes, user: str, password: str, changes: Fields, proof: str | None = None) -> tuple[str, str]:
    """The response to a challenge, and the value that the server must send; `changes` replace directives."""
    nonce = re.search(r'nonce="([^"]*)"', challenge.decode())
    assert nonce is not None
    fields = {
        "username": f'"{user}"',
        "realm": '"zk-sasl-md5"',
        "nonce": f'"{nonce[1]}"',
        "cnonce": '"AbCdEf"',
        "nc": "00000001",
        "qop": "auth",
        "digest-uri": '"zookeeper/zk-sasl-md5"',
    } | changes
    bare = {name: value.strip('"') for name, value in fields.items()}

    def md5(text: str) -> str:
        return hashlib.md5(text.encode("latin-1"), usedforsecurity=False).hexdigest()

    secret = hashlib.md5(f"{user}:zk-sasl-md5:{password}".encode("latin-1"), usedforsecurity=False).digest()
    start = f":{bare.get('nonce', '')}:{bare.get('cnonce', '')}"
    start += f":{bare['authzid']}" if "authzid" in bare else ""
    session = hashlib.md5(secret + start.encode(), usedforsecurity=False).hexdigest()

    def value(method: str) -> str:
        request = md5(f"{method}:{bare.get('digest-uri', '')}")
        middle = f"{bare.get('nonce', '')}:00000001:{bare.get('cnonce', '')}:auth"
        return md5(f"{session}:{middle}:{request}")

    fields["response"] = value("AUTHENTICATE") if proof is None else proof
    return ",".join(f"{name}={text}" for name, text in fields.items() if text), value("")


def attempt(port: int, user: str = "plain", password: str = "word", **changes: str) -> object:
    """The outcome of one authentication: the error or the proof of the server, and the identities after it."""
    session = Session(10_000)
    session.connect(port)
    try:
        challenge = session.ask(SASL, b"").values[0]
        given = {name.replace("_", "-"): value for name, value in changes.items()}
        token, proof = response(challenge, user, password, given)
        answer = session.ask(SASL, token.encode("utf-8"))
        if answer.err:
            try:
                session.ask(WHO_AM_I)
            except DisconnectedError:
                return answer.err, answer.zxid, answer.values, "disconnected"
        assert answer.values[0] is None or answer.values[0] == f"rspauth={proof}".encode()
        after = session.ask(WHO_AM_I)
        return answer.err, answer.zxid, after.err, [sorted(identities) for identities in after.values]
    finally:
        session.drop()


ATTEMPTS: dict[str, Callable[[int], object]] = {
    "a right password": attempt,
    "a wrong password": lambda port: attempt(port, password="wrong"),
    "an unknown user": lambda port: attempt(port, user="nobody"),
    "a password with a quotation mark": lambda port: attempt(port, user="ann", password='p"w'),
    "a password beyond ASCII": lambda port: attempt(port, user="umlaut", password="Zo\xeb", charset="utf-8"),
    "the user super": lambda port: attempt(port, user="super", password="secret"),
    "another realm": lambda port: attempt(port, realm='"elsewhere"'),
    "no realm": lambda port: attempt(port, realm=""),
    "another nonce": lambda port: attempt(port, nonce='"stale"'),
    "no nonce": lambda port: attempt(port, nonce=""),
    "no cnonce": lambda port: attempt(port, cnonce=""),
    "no user": lambda port: attempt(port, username=""),
    "the second use of a nonce": lambda port: attempt(port, nc="00000002"),
    "a count that is no number": lambda port: attempt(port, nc="x"),
    "no count": lambda port: attempt(port, nc=""),
    "a short count": lambda port: attempt(port, nc="1"),
    "no quality": lambda port: attempt(port, qop=""),
    "integrity": lambda port: attempt(port, qop="auth-int"),
    "another host": lambda port: attempt(port, digest_uri='"zookeeper/localhost"'),
    "a host in capitals": lambda port: attempt(port, digest_uri='"zookeeper/ZK-SASL-MD5"'),
    "another service": lambda port: attempt(port, digest_uri='"smtp/zk-sasl-md5"'),
    "no address": lambda port: attempt(port, digest_uri=""),
    "another charset": lambda port: attempt(port, charset="latin-1"),
    "the charset": lambda port: attempt(port, charset="utf-8"),
    "an authorization id": lambda port: attempt(port, authzid='"other"'),
    "an unknown directive": lambda port: attempt(port, extension="x"),
    "a quoted quality": lambda port: attempt(port, qop='"auth"'),
    "a buffer size": lambda port: attempt(port, maxbuf="1000"),
}


def raw(port: int, *tokens: bytes) -> list[object]:
    """The answers to tokens sent in a row, without nonces, until the server ends the connection."""
    session = Session(10_000)
    session.connect(port)
    found: list[object] = []
    try:
        for token in tokens:
            answer = session.ask(SASL, token)
            shown = [None if value is None else re.sub(rb'nonce="[^"]*"', b"nonce", value) for value in answer.values]
            found.append((answer.err, answer.zxid, shown))
    except DisconnectedError:
        found.append("disconnected")
    finally:
        session.drop()
    return found


RAW = {
    "the challenge": (b"",),
    "a token before the challenge": (b"realm=x",),
    "an empty response": (b"", b""),
    "a response that is no list": (b"", b"\0\1\2"),
    "directives without an end": (b"", b'username="ann'),
    "a long response": (b"", b"a=" + b"b" * 5000),
}


def acls(port: int) -> list[object]:
    """What a client that is authenticated as `plain` may do with ACLs, and what another one may not."""
    member, other, chief = Session(10_000), Session(10_000), Session(10_000)
    for each in (member, other, chief):
        each.connect(port)
    for each, user, password in ((member, "plain", "word"), (chief, "super", "secret")):
        token, _ = response(each.ask(SASL, b"").values[0], user, password, {})
        each.ask(SASL, token.encode())
    found: list[object] = []
    names = ("plain", "", "a/b@C", "a@b@c", "a@", "none")
    for number, name in enumerate(names):
        path = f"/sasl-{number}"
        found.append(member.ask(CREATE, path, b"", [(31, "sasl", name)], 0).err)
        found.append([each.ask(GET_DATA, path, False).err for each in (member, other, chief)])
    found.append(member.ask(CREATE, "/mine", b"", [(31, "auth", "")], 0).err)
    found.append(member.ask(GET_ACL, "/mine").values[:1])
    found.append([each.ask(EXISTS, "/mine", False).err for each in (member, other, chief)])
    found.append(other.ask(CREATE, "/others", b"", [(31, "auth", "")], 0).err)
    found.append(other.ask(AUTH, 0, "sasl", b"plain").err)
    for each in (member, chief):
        each.close()
    other.drop()
    return found


def started(launch: Callable[..., Ensemble], kind: str, keys: dict[str, str], folder: Path) -> Ensemble:
    """One standalone server of this kind with these keys and the JAAS file."""
    (folder / "jaas.conf").write_text(JAAS, encoding="utf-8")
    jaas = {"java.security.auth.login.config": str(folder / "jaas.conf")}
    options = [f"-D{name}={value}" for name, value in jaas.items()]
    if kind == "node":
        return launch([kind], standalone=True, extra=PROVIDER | keys | jaas)
    return launch([kind], standalone=True, extra=PROVIDER | keys, java_options=options, release=NEWEST)


@pytest.fixture(scope="module")
def both(launch: Callable[..., Ensemble], tmp_path_factory: pytest.TempPathFactory) -> tuple[int, int]:
    """The ports of a real server and of a node with the same users."""
    folder = tmp_path_factory.mktemp("jaas")
    real, node = (started(launch, kind, {}, folder).client_port(1) for kind in ("real", "node"))
    return real, node


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_authentication_ends_as_at_the_real_server(name: str, both: tuple[int, int]) -> None:
    real, node = (ATTEMPTS[name](port) for port in both)
    assert node == real


@pytest.mark.parametrize("name", RAW)
def test_a_token_is_answered_as_by_the_real_server(name: str, both: tuple[int, int]) -> None:
    real, node = (raw(port, *RAW[name]) for port in both)
    assert node == real


ENFORCED = {
    "SASL for every session": {"sessionRequireClientSASLAuth": "true"},
    "a scheme of a list": {"enforce.auth.enabled": "true", "enforce.auth.schemes": "sasl, digest"},
    "another scheme": {"enforce.auth.enabled": "true", "enforce.auth.schemes": "digest"},
    "super users and failures that are allowed": {
        "superUser": "plain", "superUser.1": "ann", "allowSaslFailedClients": "true", "letAnySaslUserDoX": "any",
        "SASLAuthenticationProvider.superPassword": "changed",
    },
}  # fmt: skip


def demands(port: int) -> list[object]:
    """The answers to a client without authentication, with a failed, a digest, and a right one."""
    found: list[object] = []
    for opcode, values in ((EXISTS, ("/", False)), (WHO_AM_I, ()), (11, ()), (-11, ()), (AUTH, (0, "digest", b"u:p"))):
        session = Session(10_000)
        session.connect(port)
        try:
            found.append((opcode, session.ask(opcode, *values)[::2]))
            found.append(session.ask(EXISTS, "/zookeeper/quota", False).err)
        except DisconnectedError:
            found.append("disconnected")
        session.drop()
    found.append(attempt(port))
    found.append(attempt(port, password="wrong"))
    found.append([attempt(port, user="super", password=password) for password in ("secret", "changed")])
    found.append(attempt(port, user="ann", password='p"w'))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ENFORCED)
def test_a_server_that_demands_authentication_answers_as_the_real_one(
    name: str, launch: Callable[..., Ensemble], tmp_path: Path
) -> None:
    ensembles = [started(launch, kind, ENFORCED[name], tmp_path) for kind in ("real", "node")]
    real, node = (demands(ensemble.client_port(1)) for ensemble in ensembles)
    for ensemble in ensembles:
        ensemble.shut_down()
    assert node == real


def test_acls_of_sasl_have_the_meaning_of_the_real_server(both: tuple[int, int]) -> None:
    real, node = (acls(port) for port in both)
    assert node == real
