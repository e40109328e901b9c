"""The keys of zoo.cfg about the authentication of clients, and the JAAS file with the users of SASL DIGEST-MD5.

The file is the one that a ZooKeeper server of Java gets by `-Djava.security.auth.login.config`, so that a node can
take the place of such a server.

Rules this module keeps:

- The keys are the system properties of ZooKeeper without `zookeeper.`, and `java.security.auth.login.config`, which a
  server of Java gets on its command line.
- A key that asks for more than this server can do is an error that names the key, the value and the remedy.
- A user is an option `user_NAME="PASSWORD"` of `DigestLoginModule` in the section for servers.
- A section without users, or with another login module, is an error: the operator relies on clients being
  authenticated. Java starts without authentication if the section is missing.

Source: `ServerCnxnFactory.configureSaslLogin`; `AuthenticationHelper`; `ProviderRegistry`; `SaslServerCallbackHandler`;
`ZooKeeperServer.isSaslSuperUser`, `shouldAllowSaslFailedClientsConnect`; `javax.security.auth.login.Configuration` (the
syntax); `ServerCnxnFactory.configureSaslLogin`, `getDigestMd5Credentials`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from spec.config.problems import is_true

DIGEST_MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<mark>[{};=])|(?P<word>[^\s{};="]+)""",
    re.DOTALL,
)
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_USER = "user_"
_TEXT = "text"
_END = ("the end of the file", "end")


class LoginModule(msgspec.Struct, frozen=True):
    """One login module of a section: its class and its options."""

    name: str
    options: dict[str, str]


def read_users(file: Path, section: str) -> dict[str, str]:
    """The passwords of the users in a section. Raises ValueError, with the remedy after a semicolon."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read ({error}); name a readable JAAS file") from None
    remedy = f'write {section} {{ {DIGEST_MODULE} required user_NAME="PASSWORD"; }};'
    modules = dict(_Parser(file, text).sections()).get(section)
    if modules is None:
        raise ValueError(f"{file} has no section {section}; {remedy}")
    for module in modules:
        if module.name != DIGEST_MODULE:
            raise ValueError(f"{file}: section {section} has the login module {module.name}; {remedy}")
    users = {
        option.removeprefix(_USER): value
        for module in modules
        for option, value in module.options.items()
        if option.startswith(_USER)
    }
    if not users:
        raise ValueError(f"{file}: section {section} has no user; {remedy}")
    return users


class _Parser:
    def __init__(self, file: Path, text: str) -> None:
        self._file = file
        self._tokens = list(self._split(text))
        self._at = 0

    def sections(self) -> Iterator[tuple[str, list[LoginModule]]]:
        """Each section by its name. Raises ValueError for a malformed file."""
        while self._next() is not _END:
            name = self._take(_TEXT)
            self._take("{")
            modules = []
            while self._next()[1] != "}":
                modules.append(self._module())
            self._take("}")
            self._take(";")
            yield name, modules

    def _module(self) -> LoginModule:
        name, flag, options = self._take(_TEXT), self._take(_TEXT), {}
        if flag.lower() not in _FLAGS:
            raise ValueError(f"{self._file}: {flag!r} follows {name}; write one of {', '.join(sorted(_FLAGS))}")
        while self._next()[1] != ";":
            option = self._take(_TEXT)
            self._take("=")
            options[option] = self._take(_TEXT)
        self._take(";")
        return LoginModule(name, options)

    def _next(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _take(self, kind: str) -> str:
        text, actual = self._next()
        if actual != kind:
            expected = "a name or a value" if kind == _TEXT else repr(kind)
            raise ValueError(f"{self._file}: {text!r} stands where {expected} is expected; correct the file")
        self._at += 1
        return text

    def _split(self, text: str) -> Iterator[tuple[str, str]]:
        """The tokens with their kinds: a mark is its own kind, everything else is text."""
        offset = 0
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                line = text.count("\n", 0, offset) + 1
                raise ValueError(f"{self._file}, line {line}: a quotation mark or a comment has no end; close it")
            offset = match.end()
            if match["mark"]:
                yield match["mark"], match["mark"]
            elif match["quoted"] is not None:
                yield re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL), _TEXT
            elif match["word"]:
                yield match["word"], _TEXT


JAAS_FILE = "java.security.auth.login.config"
PROVIDER = "authProvider."
SASL_PROVIDER = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
_PROVIDERS = frozenset(
    {
        SASL_PROVIDER,
        "org.apache.zookeeper.server.auth.DigestAuthenticationProvider",
        "org.apache.zookeeper.server.auth.IPAuthenticationProvider",
    }
)
_BUILT_IN = frozenset({"ip", "digest"})


class AuthSettings(msgspec.Struct, frozen=True):
    """The authentication of clients that an operator asks for.

    - `passwords`: those of the users of SASL DIGEST-MD5; None without a JAAS file.
    - `required`: the schemes one of which a client must prove before any other request; empty if none is required.
    - `keeps_failed`: a client whose SASL authentication fails stays connected, unless `required` has sasl.
    """

    passwords: Mapping[str, str] | None = None
    required: frozenset[str] = frozenset()
    keeps_failed: bool = False

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "AuthSettings":
        """The settings in a zoo.cfg. Raises ValueError, with the remedy after a semicolon."""
        for key, value in properties.items():
            if key.startswith(PROVIDER) and value not in _PROVIDERS:
                raise ValueError(f"{key}={value}: no such provider here; write one of {', '.join(sorted(_PROVIDERS))}")
        return cls(
            _passwords(properties),
            _required(properties),
            is_true(properties, "allowSaslFailedClients"),
        )


def has_sasl_provider(properties: Mapping[str, str]) -> bool:
    """Whether ACLs may have the scheme sasl: a key `authProvider.N` names its provider."""
    return any(key.startswith(PROVIDER) and value == SASL_PROVIDER for key, value in properties.items())


def super_users(properties: Mapping[str, str]) -> frozenset[str]:
    """The users of SASL with all permissions: the values of `superUser` and `superUser.N`."""
    return frozenset(
        value for key, value in properties.items() if value and (key == "superUser" or key.startswith("superUser."))
    )


def _passwords(properties: Mapping[str, str]) -> Mapping[str, str] | None:
    file = properties.get(JAAS_FILE)
    section = properties.get("sasl.serverconfig", "Server")
    if file is None:
        if "sasl.serverconfig" in properties:
            raise ValueError(f"sasl.serverconfig={section}: there is no JAAS file; add {JAAS_FILE}=FILE")
        return None
    users = read_users(Path(file), section)
    if "super" in users and "SASLAuthenticationProvider.superPassword" in properties:
        users["super"] = properties["SASLAuthenticationProvider.superPassword"]
    return users


def _required(properties: Mapping[str, str]) -> frozenset[str]:
    if is_true(properties, "sessionRequireClientSASLAuth"):
        key, schemes = "sessionRequireClientSASLAuth=true", frozenset({"sasl"})
    elif is_true(properties, "enforce.auth.enabled"):
        names = properties.get("enforce.auth.schemes", "")
        key, schemes = f"enforce.auth.schemes={names}", frozenset(part.strip() for part in names.split(","))
    else:
        return frozenset()
    supported = _BUILT_IN | ({"sasl"} if has_sasl_provider(properties) else frozenset())
    if unknown := sorted(schemes - supported):
        remedy = (
            f"add authProvider.1={SASL_PROVIDER}"
            if unknown == ["sasl"]
            else f"write some of {', '.join(sorted(supported))}"
        )
        raise ValueError(f"{key}: {unknown[0] or 'an empty name'} is no scheme of this server; {remedy}")
    return schemes
