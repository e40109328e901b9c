"""Reads `java.util.Properties` text, the format of `zoo.cfg`, without losing the line numbers.

Rules this module keeps:

- The grammar is that of `Properties.load`: comments open with `#` or `!`; a backslash at the end of a
  line continues it, and the next line's leading blanks are dropped; `=`, `:` or a blank ends the key;
  `\\t`, `\\n`, `\\r`, `\\f` and `\\uXXXX` are escapes, and a backslash before anything else vanishes.
- Blanks at the end of a value stay: ZooKeeper trims some values and not others, so it is not for this
  module to trim.
- Any text is read. The one thing Java refuses is a malformed `\\uXXXX`, which becomes an error here.

Source: `java.util.Properties.load` (its documentation states the grammar).
"""

from collections.abc import Iterator

import msgspec

from spec.config.problems import Findings
from spec.text import required_integer

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX = frozenset("0123456789abcdefABCDEF")


class Property(msgspec.Struct, frozen=True):
    """One key with its value, and the number of the line it begins on (from 1)."""

    key: str
    value: str
    line: int


def read_properties(text: str, file: str, findings: Findings) -> tuple[Property, ...]:
    """The properties of a text in the order they are written, repeated keys included.

    A malformed `\\uXXXX` is noted as an error, and its line left out.
    """
    properties = []
    for number, line in _logical_lines(text):
        # The key ends at the first `=`, `:` or blank that is not escaped.
        end = next((i for i, char in _unescaped(line) if char in "=:" + _BLANK), len(line))
        rest = line[end:].lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        raw_key, raw_value = line[:end], rest
        try:
            properties.append(Property(_unescape(raw_key), _unescape(raw_value), number))
        except ValueError as error:
            right = "write \\u and four hexadecimal digits, or \\\\ for a backslash"
            findings.error(file, number, str(error), right)
    return tuple(properties)


def last_of_each(properties: tuple[Property, ...], file: str, findings: Findings) -> dict[str, Property]:
    """The properties by key; of a repeated key the last line counts, as in Java, and a warning says so."""
    last: dict[str, Property] = {}
    for prop in properties:
        earlier = last.pop(prop.key, None)
        if earlier is not None:
            problem = f"{prop.key} is set again, and line {earlier.line} is ignored"
            findings.warn(file, prop.line, problem, "keep one of the two lines")
        last[prop.key] = prop
    return last


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, continuations joined, with the number each begins on."""
    pending, first, continued = "", 0, False
    for number, natural in enumerate(natural_lines(text), start=1):
        line = natural.lstrip(_BLANK)
        # What continues a line is not a comment, whatever it opens with.
        if not pending and (not line or line[0] in "#!"):
            continued = False
            continue
        first = first if pending else number
        continued = is_continued(line)
        pending += line[:-1] if continued else line
        if not continued:
            if pending:
                yield first, pending
            pending = ""
    # A continued line that nothing follows is a line, even when it is empty: Java then has an empty key.
    if continued:
        yield first, pending


def natural_lines(text: str) -> Iterator[str]:
    """The text cut at Java's line ends only, since `str.splitlines` knows more of them than Java does."""
    return iter(text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n"))


def is_continued(line: str) -> bool:
    """Whether a line continues in the next one: it ends in an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(line: str) -> Iterator[tuple[int, str]]:
    """The characters with no backslash in front, and where they stand."""
    escaped = False
    for index, char in enumerate(line):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            yield index, char


def _unescape(raw: str) -> str:
    """The text without its escapes; raises ValueError for a malformed `\\uXXXX`."""
    if "\\" not in raw:
        return _join_surrogates(raw)
    out, index = [], 0
    while index < len(raw):
        char = raw[index]
        index += 1
        if char != "\\":
            out.append(char)
        elif index < len(raw) and raw[index] == "u":
            out.append(_code_unit(raw[index + 1 : index + 5]))
            index += 5
        elif index < len(raw):
            out.append(_ESCAPES.get(raw[index], raw[index]))
            index += 1
    return _join_surrogates("".join(out))


def _code_unit(digits: str) -> str:
    if len(digits) != 4 or not _HEX.issuperset(digits):
        raise ValueError(f"malformed escape \\u{digits}")
    return chr(required_integer(digits, base=16))


def _join_surrogates(text: str) -> str:
    """In Java two escapes may make one character. A lone half is not text, and becomes U+FFFD."""
    if not any("\ud800" <= a <= "\udfff" for a in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
