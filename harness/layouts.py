"""Writes requests and reads replies of the client port by short layouts, independently of the node's own coder.

A layout is a string of letters: `i` int, `l` long, `t` boolean, `s` string, `b` buffer, `S` Stat, `a` one ACL entry,
`c` one identity, and `[x]` a vector of x. So a setData request is `sbi`, and the reply to getChildren2 is `[s]S`.

Rules of this module:

- It shares no code with `refimpl`, so that an error of that coder cannot cancel out when this module reads its replies.
- Values are plain: a vector is a list, an ACL entry is the tuple (perms, scheme, id), null is None.
- Data that does not fit its layout raises ValueError; nothing is skipped, and `read` returns the offset after the
  values.

Source: `zookeeper.jute`, `BinaryOutputArchive`, `MultiOperationRecord`, `MultiResponse`.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple


class Stat(NamedTuple):
    """The metadata of a znode."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


STAT = struct.Struct("!qqqqiiiqiiq")
FIXED = {"i": struct.Struct("!i"), "l": struct.Struct("!q"), "t": struct.Struct("!?"), "S": STAT}
GROUPS = {"a": "iss", "c": "ss"}
MULTI_HEADER = struct.Struct("!i?i")
MULTI_END = MULTI_HEADER.pack(-1, True, -1)

REQUESTS = {
    1: "sb[a]i", 2: "si", 3: "st", 4: "st", 5: "sbi", 6: "s", 7: "s[a]i", 8: "st", 9: "s", 11: "", 12: "st", 13: "si",
    15: "sb[a]i", 16: "sssl", 17: "si", 18: "si", 19: "sb[a]i", 21: "sb[a]il", 100: "isb", 101: "l[s][s][s]",
    102: "b", 103: "s", 104: "s", 105: "l[s][s][s][s][s]", 106: "si", 107: "", -11: "",
}  # fmt: skip
"""The body of each request by its opcode; multi (14) and multiRead (22) have separate forms."""

ANSWERS = {
    1: "s", 2: "", 3: "S", 4: "bS", 5: "S", 6: "[a]S", 7: "S", 8: "[s]", 9: "s", 11: "", 12: "[s]S", 13: "", 15: "sS",
    16: "bS", 17: "", 18: "", 19: "sS", 21: "sS", 100: "", 101: "", 102: "b", 103: "[s]", 104: "i", 105: "", 106: "i",
    107: "[c]", -11: "",
}  # fmt: skip
"""The body of each reply without an error, by the opcode of its request."""

MULTI = 14
MULTI_READ = 22
ERROR_RESULT = -1


def _items(layout: str) -> Iterator[tuple[str, bool]]:
    place = 0
    while place < len(layout):
        vector = layout[place] == "["
        yield layout[place + vector], vector
        place += 3 if vector else 1


def write(layout: str, values: tuple[Any, ...]) -> bytes:
    """The bytes of values in this layout."""
    parts: list[bytes] = []
    for (letter, vector), value in zip(_items(layout), values, strict=True):
        if not vector:
            parts.append(_write_one(letter, value))
        elif value is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            parts.append(FIXED["i"].pack(len(value)))
            parts += [_write_one(letter, item) for item in value]
    return b"".join(parts)


def _write_one(letter: str, value: Any) -> bytes:
    if letter in GROUPS:
        return write(GROUPS[letter], value)
    if letter in FIXED:
        return FIXED[letter].pack(*value) if letter == "S" else FIXED[letter].pack(value)
    if value is None:
        return b"\xff\xff\xff\xff"
    data = value.encode("utf-8") if letter == "s" else value
    return FIXED["i"].pack(len(data)) + bytes(data)


def read(layout: str, data: bytes, offset: int = 0) -> tuple[tuple[Any, ...], int]:
    """Read values in this layout from offset `at`; return them and the offset after them."""
    values: list[Any] = []
    for letter, vector in _items(layout):
        if vector:
            (count,), offset = read("i", data, offset)
            items: list[Any] | None = None if count < 0 else []
            for _ in range(count):
                item, offset = _read_one(letter, data, offset)
                assert items is not None
                items.append(item)
            values.append(items)
        else:
            value, offset = _read_one(letter, data, offset)
            values.append(value)
    return tuple(values), offset


def _read_one(letter: str, data: bytes, offset: int) -> tuple[Any, int]:
    if letter in GROUPS:
        return read(GROUPS[letter], data, offset)
    try:
        if letter in FIXED:
            value = FIXED[letter].unpack_from(data, offset)
            return (Stat(*value) if letter == "S" else value[0]), offset + FIXED[letter].size
        (length,) = FIXED["i"].unpack_from(data, offset)
    except struct.error as error:
        raise ValueError(f"{letter!r} at offset {offset} of {len(data)} bytes: {error}") from error
    offset += 4
    if length < 0:
        return None, offset
    if offset + length > len(data):
        raise ValueError(f"{length} bytes announced at offset {offset - 4}, and {len(data) - offset} are there")
    part = bytes(data[offset : offset + length])
    return (part.decode("utf-8") if letter == "s" else part), offset + length


def write_request(opcode: int, values: tuple[Any, ...]) -> bytes:
    """The body of a request. The values of multi and multiRead are pairs of an opcode and its values."""
    if opcode not in {MULTI, MULTI_READ}:
        return write(REQUESTS[opcode], values)
    parts = [MULTI_HEADER.pack(part, False, -1) + write(REQUESTS[part], fields) for part, fields in values]
    return b"".join(parts) + MULTI_END


def read_answer(opcode: int, data: bytes) -> tuple[Any, ...]:
    """The values in the body of a reply. Raises ValueError if it does not fit, or if bytes are left over."""
    values, end = _read_results(data) if opcode in {MULTI, MULTI_READ} else read(ANSWERS[opcode], data)
    if end != len(data):
        raise ValueError(f"the answer to opcode {opcode} has {len(data)} bytes, and {end} were expected")
    return values


def _read_results(data: bytes) -> tuple[tuple[Any, ...], int]:
    """The results of a multi: (opcode, its error in the header, its values)."""
    results: list[tuple[int, int, tuple[Any, ...]]] = []
    offset = 0
    while True:
        if offset + MULTI_HEADER.size > len(data):
            raise ValueError(f"a multi's answer of {len(data)} bytes ends without its last header")
        opcode, ends, err = MULTI_HEADER.unpack_from(data, offset)
        offset += MULTI_HEADER.size
        if ends:
            return tuple(results), offset
        values, offset = read("i" if opcode == ERROR_RESULT else ANSWERS[opcode], data, offset)
        results.append((opcode, err, values))
