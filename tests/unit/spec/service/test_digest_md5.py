"""The values of DIGEST-MD5: those of the example of RFC 2831, section 4, and the rules of its directives."""

import pytest

from spec.service.digest_md5 import (
    Challenged,
    ExchangeOver,
    Untried,
    challenge,
    evaluate,
    parse_directives,
    response_value,
)

NONCE = "OA6MG9tEQGm2hh"
RFC_EXAMPLE = (
    b'charset=utf-8,username="chris",realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",nc=00000001,'
    b'cnonce="OA6MHXh6VqTrRk",digest-uri="imap/elwood.innosoft.com",'
    b"response=d388dad90d4bbd760a152321f2143af7,qop=auth"
)
PASSWORDS = {"chris": "secret"}


def test_the_value_of_the_client_is_that_of_the_example_in_the_rfc() -> None:
    directives = parse_directives(RFC_EXAMPLE)
    assert directives is not None
    assert response_value("secret", directives, "AUTHENTICATE").encode() == directives["response"]


def test_the_value_of_the_server_is_that_of_the_example_in_the_rfc() -> None:
    directives = parse_directives(RFC_EXAMPLE)
    assert directives is not None
    assert response_value("secret", directives, "") == "ea40f60335c427b5527b84dbabcdfffd"


def test_a_quoted_value_may_have_commas_and_escaped_marks() -> None:
    assert parse_directives(b'A = "x,\\"y\\\\" , b=c') == {"a": b'x,"y\\', "b": b"c"}


@pytest.mark.parametrize("token", [b'a="b', b"=b", b"a=b c=d", b"username=a,username=b"])
def test_text_that_is_no_list_of_directives_is_refused(token: bytes) -> None:
    assert parse_directives(token) is None


def test_a_challenge_has_the_nonce_and_the_realm() -> None:
    step = evaluate(Untried(), b"", NONCE, PASSWORDS)
    assert (step.state, step.token, step.user) == (Challenged(NONCE), challenge(NONCE), None)


def test_the_response_of_another_realm_is_refused() -> None:
    """The example of the RFC proves the password, but for a server of IMAP."""
    step = evaluate(Challenged(NONCE), RFC_EXAMPLE, "", PASSWORDS)
    assert (step.state, step.token, step.user) == (ExchangeOver(), None, None)


@pytest.mark.parametrize("user", ["ann", "ann@EXAMPLE.COM"])
def test_a_user_is_authorized_as_itself_whatever_id_it_asks_for(user: str) -> None:
    """RFC 2831 hashes the requested id, so the response proves the password although it names another user."""
    given = {"username": user, "realm": "zk-sasl-md5", "nonce": NONCE, "cnonce": "c", "authzid": "super"} | {
        "digest-uri": "zookeeper/zk-sasl-md5", "qop": "auth"
    }  # fmt: skip
    value = response_value("secret", {name: text.encode() for name, text in given.items()}, "AUTHENTICATE")
    token = ",".join(f'{name}="{text}"' for name, text in (given | {"response": value}).items()).encode()
    assert evaluate(Challenged(NONCE), token, "", {user: "secret", "super": "other"}).user == user


def test_nothing_is_accepted_after_the_end_of_an_exchange() -> None:
    assert evaluate(ExchangeOver(), b"", NONCE, PASSWORDS).token is None
