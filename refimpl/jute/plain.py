"""Decodes and encodes a record field by field, and reports the place of every error.

The compiled coders of `refimpl.jute.compiled` are fast, but cannot locate an error. They leave everything outside the
common case to this module, which explains the error or finds that the input is valid.

Rules this module keeps:

- A length is compared with the number of bytes left before anything is read, and a vector's count with the minimum size
  of its items. So a peer cannot make a server reserve memory by stating a number.
- Null is `()` for a vector and None for a buffer. A null string is an error, except for the few that ZooKeeper's own
  server accepts (`NULL_IS_EMPTY`), where it is the empty string.
- The fields of a record are encoded in the order in which its class declares them, those of its base class first. An
  annotation that is not one of `spec.tree.data` is an error in the class, and a TypeError at first use.
- Text is strict UTF-8. ZooKeeper replaces invalid bytes by U+FFFD, then finds no znode of that name and refuses to
  create one.

Source: `BinaryInputArchive.readString`, `readBuffer`, `startVector`, `checkLength`; `BinaryOutputArchive`.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from spec.tree.data import Id, Record
from spec.tree.requests import GetEphemerals, Reconfig, SetAuth, Sync

FIXED = {"int": ("i", 4), "long": ("q", 8), "boolean": ("?", 1)}
"""The kinds of fixed size: the letter in the module struct, and the number of bytes."""

COUNTED = ("ustring", "buffer")
"""The kinds that begin with their length in bytes."""


class Scalar(msgspec.Struct, frozen=True):
    """A value without parts; `kind` is the jute name of its type."""

    kind: str


class Vector(msgspec.Struct, frozen=True):
    """A count, followed by that number of items."""

    item: "Shape"


class Structure(msgspec.Struct, frozen=True):
    """A record: its class, and its fields by name."""

    cls: type[Record]
    fields: tuple[tuple[str, "Shape"], ...]


Shape: TypeAlias = Scalar | Vector | Structure


@cache
def shape_of(cls: type[Record]) -> Structure:
    """Return the shape of a record class; raises TypeError for a field without one."""
    hints = get_type_hints(cls, include_extras=True)
    return Structure(cls, tuple((name, _shape(hints[name], cls, name)) for name in cls.__struct_fields__))


def least_size(shape: Shape) -> int:
    """Return the minimum number of bytes of a value of this shape."""
    match shape:
        case Scalar(kind=kind):
            return FIXED[kind][1] if kind in FIXED else 4
        case Vector():
            return 4
        case Structure(fields=fields):
            return sum(least_size(part) for _, part in fields)


def _shape(hint: Any, cls: type[Record], name: str) -> Shape:
    if get_origin(hint) is Annotated:
        return Scalar(get_args(hint)[1])
    if get_origin(hint) is tuple:
        return Vector(_shape(get_args(hint)[0], cls, name))
    if isinstance(hint, type) and issubclass(hint, Record) and hint is not Record:
        return shape_of(hint)
    raise TypeError(f"{cls.__name__}.{name}: {hint} has no form on the wire; use a type of spec.tree.data")


class JuteError(ValueError):
    """Bytes that do not encode the expected record, or a value that the wire cannot carry.

    Names the record, the field (empty: the record as a whole), the offset in bytes from the start of the input to
    decode (-1 when encoding), and the fault.
    """

    def __init__(self, record: str, field: str, offset: int, what: str) -> None:
        where = f"{record}.{field}" if field else record
        super().__init__(f"{where} at byte {offset}: {what}" if offset >= 0 else f"{where}: {what}")
        self.record = record
        self.field = field
        self.offset = offset
        self.what = what

    def within(self, outer: str, shift: int = 0) -> "JuteError":
        """Return this error for a record inside `outer`, where its bytes start `shift` bytes later."""
        offset = self.offset + shift if self.offset >= 0 else -1
        return JuteError(f"{outer} > {self.record}", self.field, offset, self.what)


NULL_IS_EMPTY: dict[type[Record], tuple[str, ...]] = {
    Sync: ("path",),  # answered like any other path
    GetEphemerals: ("prefix_path",),  # all of them, as for the empty prefix
    SetAuth: ("scheme",),  # answered with AuthFailed
    Reconfig: ("joining_servers", "leaving_servers", "new_members"),  # clients omit the unchanged ones
    Id: ("scheme", "id"),  # an ACL without a scheme is answered with InvalidACL, not treated as malformed bytes
}
"""Strings that may be null, as observed with a server 3.8.0.

Sources: `FinalRequestProcessor.processRequest`, `ZooKeeperServer.processPacket`, `PrepRequestProcessor.fixupACL`.
"""

INT = struct.Struct(">i")
FIXED_CODERS = {kind: struct.Struct(f">{letter}") for kind, (letter, _) in FIXED.items()}


def decode_plainly(cls: type[Record], data: bytes, offset: int = 0) -> tuple[Record, int]:
    """Decode the record of this class at `offset`; return it and its end. Raises JuteError."""
    reader = Reader(data, offset, cls.__name__)
    return reader.structure(shape_of(cls)), reader.at


def encode_plainly(record: Record) -> bytes:
    """Encode a record. Raises JuteError, naming the field that the wire cannot carry."""
    parts: list[bytes] = []
    _write_structure(shape_of(type(record)), record, type(record).__name__, "", parts.append)
    return b"".join(parts)


class Reader:
    """Reads values in sequence; `at` is the offset of the next one, `field` the path of the current one."""

    def __init__(self, data: bytes, at: int, record: str) -> None:
        self.data = data
        self.at = at
        self.record = record
        self.field = ""

    def fail(self, what: str) -> JuteError:
        """Return an error for the current place."""
        return JuteError(self.record, self.field, self.at, what)

    def value(self, shape: Shape) -> Any:
        """Read a value of this shape."""
        match shape:
            case Scalar(kind=kind):
                return self.scalar(kind)
            case Vector(item=item):
                return self.vector(item)
            case Structure():
                return self.structure(shape)

    def structure(self, shape: Structure) -> Record:
        """Read a record's fields, in order."""
        outer = self.field
        optional = NULL_IS_EMPTY.get(shape.cls, ())
        values = []
        for name, part in shape.fields:
            self.field = f"{outer}.{name}" if outer else name
            if name in optional and self.data[self.at : self.at + 4] == b"\xff\xff\xff\xff":
                self.at += 4
                values.append("")
            else:
                values.append(self.value(part))
        self.field = outer
        return shape.cls(*values)

    def vector(self, item: Shape) -> tuple[Any, ...]:
        """Read a count, which the bytes left must be able to hold, and its items."""
        outer, start = self.field, self.at
        count = self.scalar("int")
        rest = len(self.data) - self.at
        if count < -1 or count * least_size(item) > rest:
            self.at = start
            raise self.fail(f"a vector of {count} items, while {rest} bytes are left after its count")
        values = []
        for number in range(count):
            self.field = f"{outer}[{number}]"
            values.append(self.value(item))
        self.field = outer
        return tuple(values)

    def scalar(self, kind: str) -> Any:
        """Read a number, a truth value, a string or a buffer."""
        if kind in FIXED:
            coder = FIXED_CODERS[kind]
            if len(self.data) - self.at < coder.size:
                rest = max(0, len(self.data) - self.at)
                raise self.fail(f"needs {coder.size} bytes, and {rest} are left")
            self.at += coder.size
            return coder.unpack_from(self.data, self.at - coder.size)[0]
        start = self.at
        size = self.scalar("int")
        if size == -1 and kind == "buffer":
            return None
        if not 0 <= size <= len(self.data) - self.at:
            rest, self.at = len(self.data) - self.at, start
            null = " (null)" if size == -1 else ""
            raise self.fail(f"length {size}{null}, where 0 to {rest} would be right")
        self.at += size
        content = self.data[self.at - size : self.at]
        return bytes(content) if kind == "buffer" else self.text(content)

    def text(self, content: bytes) -> str:
        """Decode UTF-8 text."""
        try:
            return str(content, "utf-8")
        except UnicodeDecodeError as error:
            self.at += error.start - len(content)
            raise self.fail(f"invalid UTF-8: {error.reason}") from None


def _write_structure(shape: Structure, record: Any, name: str, path: str, write: Callable[[bytes], None]) -> None:
    for field, part in shape.fields:
        _write(part, getattr(record, field), name, f"{path}.{field}" if path else field, write)


def _write(shape: Shape, value: Any, name: str, path: str, write: Callable[[bytes], None]) -> None:
    match shape:
        case Structure():
            _write_structure(shape, value, name, path, write)
        case Vector(item=item):
            write(INT.pack(len(value)))
            for number, element in enumerate(value):
                _write(item, element, name, f"{path}[{number}]", write)
        case Scalar(kind=kind):
            try:
                write(_scalar(kind, value))
            except (struct.error, UnicodeEncodeError, TypeError, AttributeError) as error:
                raise JuteError(name, path, -1, f"{value!r:.60} does not fit the type {kind}: {error}") from None


def _scalar(kind: str, value: Any) -> bytes:
    if kind in FIXED:
        return FIXED_CODERS[kind].pack(value)
    if value is None and kind == "buffer":
        return INT.pack(-1)
    content = value.encode() if kind == "ustring" else b"".join((value,))
    return INT.pack(len(content)) + content
