"""Jepsen's histories of registers, in EDN: reads, writes and compare-and-set operations, with values that repeat.

A history is a sequence of maps, alone or in one vector: `{:process 0, :type :invoke, :f :read, :value nil}`. With
independent keys, every value is a pair `[key value]`, and each key is a register of its own.

Rules of this module:

- The order of the entries is the only time. An operation that ended with `:ok` happened, one with `:fail` did not. One
  with `:info`, or without an end, may have happened at any time after its invocation, or never.
- A register is `nil` in the beginning. A read that returned `nil` has observed that; Knossos lets it fit any state.
- Values are equal if their EDN is equal; a value is kept in one notation. A number with a fraction keeps its digits.
- Entries whose process is a keyword, such as `:nemesis`, are not operations of clients.
- Depth and size are bounded. Anything that is not understood is an error with its line, and is never passed over.

A reader of its own: the values of the packages are Python values, where `1`, `1.0` and `true` are equal.

Source: https://github.com/edn-format/edn; `jepsen.history`, `jepsen.independent`; `knossos.model/cas-register`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from checker.histories.record import ClientHistoryError, RegisterOperation
from checker.user_files import EDN_HISTORY, TooLargeError, read_bytes
from spec.text import excerpt

DEEPEST = 64
KEY = "register"
"""The key of the register of a history without independent keys."""

_END = r"(?=[\s,()\[\]{}\";]|\Z)"
_PLAIN = r"[^\s,()\[\]{}\";"
_TOKEN = re.compile(
    rf"""(?P<gap>[\s,]++|;[^\n]*)|(?P<open>\#\{{|[\[({{])|(?P<close>[\])}}])|(?P<text>"(?:[^"\\]++|\\.)*+")
    |(?P<prefix>\#_|\#[A-Za-z]{_PLAIN}]*)|(?P<atom>\\.{_PLAIN}]*+{_END}|{_PLAIN}\\]++{_END})""",
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?[0-9]+N?")
_CLOSERS = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_FUNCTIONS = (":read", ":write", ":cas")
_TYPES = (":invoke", ":ok", ":fail", ":info")


class _Prefix(str):
    """A `#_`, which discards the next form, or a tag such as `#inst`."""


class _Map(dict[str, Any]):
    """A map, its keys in their notation, and the line at which it ends."""

    line = 1


def load_registers(path: Path) -> tuple[dict[str, list[RegisterOperation]], int]:
    """Read the operations on each register, and the number of processes. Raises ClientHistoryError."""
    try:
        text = read_bytes(path, EDN_HISTORY).decode()
    except TooLargeError as error:
        raise ClientHistoryError(f"{path}: {error}; record less, or split the history by key") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ClientHistoryError(f"{path}: it cannot be read ({error}); name a history in EDN") from None
    entries = list(_entries(text, path))
    return _registers(entries, path), len({entry[":process"] for entry in entries})


def _entries(text: str, path: Path) -> Iterator[_Map]:
    for form in _forms(text, path):
        if not (isinstance(form, _Map) and form.keys() >= {":process", ":type", ":f"}):
            right = "an entry is a map with :process, :type, :f and :value"
            raise ClientHistoryError(f"{path}: {excerpt(notation(form))} is no entry of a history; {right}")
        process = notation(form[":process"])
        if process.startswith(":"):
            continue
        is_known = form[":type"] in _TYPES and form[":f"] in _FUNCTIONS and _INTEGER.fullmatch(process)
        has_value = ":value" in form or (form[":f"] == ":read" and form[":type"] != ":ok")
        if not is_known or not has_value:
            right = "the types are :invoke, :ok, :fail and :info, the functions :read, :write and :cas"
            right += "; a process is a number, or a keyword for one that is no client; only a read may lack its :value"
            raise ClientHistoryError(f"{path}:{form.line}: {excerpt(notation(form))} is unknown; {right}")
        form.setdefault(":value", "nil")
        yield form


def _registers(entries: list[_Map], path: Path) -> dict[str, list[RegisterOperation]]:
    requests = [entry for entry in entries if entry[":type"] == ":invoke"]
    keyed = all(_is_pair(entry[":value"]) for entry in requests) and all(
        _is_pair(entry[":value"][1]) for entry in requests if entry[":f"] == ":cas"
    )
    functions = {entry[":f"] for entry in requests}
    if keyed and ":cas" in functions and ":read" not in functions:
        why = "a :cas of pairs of pairs is one of a key, or one of two vectors, and there is no :read to tell"
        raise ClientHistoryError(f"{path}:{requests[0].line}: {why}; record a :read, whose :value is nil or [key nil]")
    registers: dict[str, list[RegisterOperation]] = {}
    pending: dict[str, tuple[int, _Map]] = {}
    for number, entry in enumerate(entries):
        process, kind = entry[":process"], entry[":type"]
        invoked = pending[process][1][":f"] if process in pending else None
        if invoked != (None if kind == ":invoke" else entry[":f"]):
            right = "a process has one operation at a time, from :invoke to :ok, :fail or :info with the same :f"
            raise ClientHistoryError(f"{path}:{entry.line}: {excerpt(notation(entry))} does not fit here; {right}")
        if kind == ":invoke":
            pending[process] = number, entry
        else:
            begin, request = pending.pop(process)
            if kind != ":fail":
                _add(registers, request, entry, (begin, number), keyed, path)
    for begin, request in pending.values():
        _add(registers, request, None, (begin, begin), keyed, path)
    return registers


def _add(
    registers: dict[str, list[RegisterOperation]],
    request: _Map,
    reply: _Map | None,
    times: tuple[int, int],
    keyed: bool,
    path: Path,
) -> None:
    """Add an operation that may have happened. Raises ClientHistoryError if its reply is not one to its request."""
    value = request[":value"]
    answered = reply is not None and reply[":type"] == ":ok"
    if answered and reply is not None:
        same = not keyed or reply[":value"][:1] == value[:1]
        if not same or (request[":f"] != ":read" and reply[":value"] != value):
            problem = f"{excerpt(notation(reply))} answers {excerpt(notation(request))}"
            raise ClientHistoryError(f"{path}:{reply.line}: {problem}; an answer has the :value of its request")
        value = reply[":value"]
    key, value = (notation(value[0]), value[1]) if keyed else (KEY, value)
    expected = None
    if request[":f"] == ":cas":
        if not _is_pair(value):
            raise ClientHistoryError(
                f"{path}:{request.line}: :cas needs a :value [old new], not {excerpt(notation(value))}"
            )
        expected, value = notation(value[0]), value[1]
    registers.setdefault(key, []).append(
        RegisterOperation(
            client=request[":process"],
            session=0,
            server=0,
            kind="sync+get" if request[":f"] == ":read" else "set",
            key=key,
            invoked=float(times[0]),
            completed=float(times[1]) if answered else None,
            outcome="ok" if answered else "unknown",
            value=notation(value),
            expected=expected,
        )
    )


def _is_pair(form: Any) -> bool:
    return isinstance(form, tuple) and len(form) == 2


def notation(form: Any) -> str:
    """Return a form as EDN, the same for equal forms."""
    if isinstance(form, tuple):
        return f"[{' '.join(map(notation, form))}]"
    if isinstance(form, dict):
        return f"{{{', '.join(sorted(f'{key} {notation(value)}' for key, value in form.items()))}}}"
    return str(form)


def _forms(text: str, path: Path) -> list[Any]:
    """The forms of a file, or those in the only vector or list of the file. Raises ClientHistoryError."""
    levels: list[tuple[str, list[Any]]] = [("", [])]
    line, place = 1, 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ClientHistoryError(f"{path}:{line}: {excerpt(text[place : place + 40])} is not EDN")
        token, where, place = match[0], f"{path}:{line}", match.end()
        line += token.count("\n")
        if match.lastgroup == "prefix":
            levels[-1][1].append(_Prefix(token))
        elif match.lastgroup == "open":
            levels.append((token, []))
            if len(levels) > DEEPEST:
                raise ClientHistoryError(
                    f"{where}: collections in {DEEPEST} levels; no value of a register has so many"
                )
        elif match.lastgroup == "close":
            opening, items = levels.pop()
            if _CLOSERS.get(opening) != token or any(isinstance(item, _Prefix) for item in items):
                raise ClientHistoryError(f"{where}: {token} closes nothing here, or a form is missing before it")
            _place(levels[-1][1], _collection(opening, items, line, where), where)
        elif match.lastgroup != "gap":
            _place(levels[-1][1], _atom(token, where), where)
    forms = levels[0][1]
    if len(levels) > 1 or any(isinstance(form, _Prefix) for form in forms):
        raise ClientHistoryError(f"{path}:{line}: the file ends within a form; name a complete history")
    return list(forms[0]) if len(forms) == 1 and isinstance(forms[0], tuple) else forms


def _place(items: list[Any], form: Any, where: str) -> None:
    """Add a form to a collection, with the prefixes before it."""
    while items and isinstance(items[-1], _Prefix):
        prefix = items.pop()
        if prefix == "#_":
            return
        if not isinstance(form, (str, _Map)):
            raise ClientHistoryError(f"{where}: {excerpt(prefix)} is unknown here; write the vector without a tag")
        form = form if isinstance(form, _Map) else f"{prefix} {form}"
    items.append(form)


def _collection(opening: str, items: list[Any], line: int, where: str) -> Any:
    if opening in "([":
        return tuple(items)
    if opening == "#{":
        return f"#{{{' '.join(sorted(map(notation, items)))}}}"
    if len(items) % 2:
        raise ClientHistoryError(f"{where}: a map has a key without a value")
    form = _Map(zip(map(notation, items[::2]), items[1::2], strict=True))
    if 2 * len(form) < len(items):
        raise ClientHistoryError(f"{where}: a map has a key twice; write it once")
    form.line = line
    return form


def _atom(token: str, where: str) -> str:
    if token.startswith('"'):
        try:
            return json.dumps(json.loads(token, strict=False))
        except ValueError as error:
            raise ClientHistoryError(f"{where}: {excerpt(token)} is no text of EDN ({error})") from None
    if not _INTEGER.fullmatch(token):
        return token
    number = token.removeprefix("+").removesuffix("N")
    return "0" if number == "-0" else number
