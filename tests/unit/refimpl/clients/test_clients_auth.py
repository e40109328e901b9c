"""The JAAS file and the keys of zoo.cfg about the authentication of clients."""

from pathlib import Path

import pytest

from refimpl.clients.auth import SASL_PROVIDER, AuthSettings, has_sasl_provider, read_users, super_users

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
SERVER = f'Server {{ {MODULE} required user_ann="a b" user_bob=word; }};'


@pytest.fixture
def jaas(tmp_path: Path) -> Path:
    """A file with the section of a server."""
    file = tmp_path / "jaas.conf"
    file.write_text(SERVER, encoding="utf-8")
    return file


def test_users_are_the_options_with_the_prefix(jaas: Path) -> None:
    assert read_users(jaas, "Server") == {"ann": "a b", "bob": "word"}


def test_other_sections_and_comments_are_passed_over(jaas: Path) -> None:
    jaas.write_text(f"// one\n/* two */ # three\nClient {{ x.Y optional a=b; }};\n{SERVER}", encoding="utf-8")
    assert set(read_users(jaas, "Server")) == {"ann", "bob"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no section Server; write Server"),
        (f"Server {{ {MODULE} required; }};", "has no user; write"),
        ("Server { com.sun.security.auth.module.Krb5LoginModule required; };", "has the login module com.sun"),
        (f"Server {{ {MODULE} user_a=b; }};", "'user_a' follows"),
        (f"Server {{ {MODULE} required user_a=b; }}", "'the end of the file' stands where ';' is expected"),
        ('Server {\n x required user_a="b', "line 2: a quotation mark or a comment has no end"),
    ],
)
def test_a_file_that_authenticates_nobody_is_refused(text: str, message: str, jaas: Path) -> None:
    jaas.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=".*" + message):
        read_users(jaas, "Server")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere\.conf cannot be read"):
        read_users(tmp_path / "nowhere.conf", "Server")


def test_the_password_of_super_may_stand_in_zoo_cfg(jaas: Path) -> None:
    jaas.write_text(f'Server {{ {MODULE} required user_super="old"; }};', encoding="utf-8")
    keys = {"java.security.auth.login.config": str(jaas), "SASLAuthenticationProvider.superPassword": "new"}
    assert AuthSettings.of(keys).passwords == {"super": "new"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"sasl.serverconfig": "Other"}, "there is no JAAS file"),
        ({"authProvider.1": "com.example.Own"}, "no such provider here"),
        ({"sessionRequireClientSASLAuth": "true"}, "sasl is no scheme of this server; add authProvider"),
        ({"enforce.auth.enabled": "true"}, "an empty name is no scheme"),
        ({"enforce.auth.enabled": "true", "enforce.auth.schemes": "x509"}, "x509 is no scheme of this server"),
    ],
)
def test_a_key_that_asks_for_more_than_there_is_is_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AuthSettings.of(keys)


def test_schemes_are_demanded_only_where_that_is_enabled() -> None:
    provider = {"authProvider.sasl": SASL_PROVIDER}
    listed = {"enforce.auth.schemes": "sasl, digest"}
    assert AuthSettings.of(provider | listed).required == frozenset()
    assert AuthSettings.of(provider | listed | {"enforce.auth.enabled": "true"}).required == {"sasl", "digest"}
    assert AuthSettings.of(provider | {"sessionRequireClientSASLAuth": "TRUE"}).required == {"sasl"}


def test_super_users_and_providers_are_numbered_keys() -> None:
    keys = {"superUser": "a", "superUser.2": "b", "superUserX": "c", "authProvider.7": SASL_PROVIDER}
    assert super_users(keys) == {"a", "b"}
    assert has_sasl_provider(keys)
    assert not has_sasl_provider({"superUser": SASL_PROVIDER})
