"""Reader of the JAAS file with the users of SASL DIGEST-MD5.

The file is the one that a ZooKeeper server of Java gets by `-Djava.security.auth.login.config`, so that a node can
take the place of such a server.

Rules this module keeps:

- A user is an option `user_NAME="PASSWORD"` of `DigestLoginModule` in the section for servers.
- A section without users, or with another login module, is an error: the operator relies on clients being
  authenticated. Java starts without authentication if the section is missing.

Source: `javax.security.auth.login.Configuration` (the syntax); `ServerCnxnFactory.configureSaslLogin`,
`getDigestMd5Credentials`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

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
        text, given = self._next()
        if given != kind:
            wanted = "a name or a value" if kind == _TEXT else repr(kind)
            raise ValueError(f"{self._file}: {text!r} stands where {wanted} is expected; correct the file")
        self._at += 1
        return text

    def _split(self, text: str) -> Iterator[tuple[str, str]]:
        """The tokens with their kinds: a mark is its own kind, everything else is text."""
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                line = text.count("\n", 0, at) + 1
                raise ValueError(f"{self._file}, line {line}: a quotation mark or a comment has no end; close it")
            at = match.end()
            if match["mark"]:
                yield match["mark"], match["mark"]
            elif match["quoted"] is not None:
                yield re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL), _TEXT
            elif match["word"]:
                yield match["word"], _TEXT
