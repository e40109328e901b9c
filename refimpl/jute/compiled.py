"""Coders compiled for each record class: as fast as Python allows, without error reports.

Two functions per class are generated as source text from its shape and compiled, as `collections.namedtuple` and
`dataclasses` do. Adjacent values of fixed width are read and written with one `struct.Struct`, across all fields and
nested records that they span, including the lengths of strings.

Rules this module keeps:

- A compiled coder returns the same result as `refimpl.jute.plain`, or fails with one of `FAILURES`; its caller then
  uses the plain one. So every rare case (a null string, an error) is coded in one place, `plain`.
- The source text contains no name or value of a record, only field names.
"""

import struct
from collections.abc import Callable
from typing import Any

from refimpl.jute.plain import FIXED, Scalar, Shape, Structure, Vector, least_size, shape_of
from spec.tree.data import Record

FAILURES = (struct.error, UnicodeError, IndexError, TypeError, AttributeError)
"""The exceptions of a compiled coder for values outside the common case."""

_LENGTH = struct.Struct(">i")

Decoder = Callable[[bytes, int], tuple[Any, int]]
Encoder = Callable[[Any], bytes]


def compile_decoder(cls: type[Record]) -> Decoder:
    """Compile the function that decodes records of this class from bytes, starting at an offset."""
    return _Decoder().compile(shape_of(cls))


def compile_encoder(cls: type[Record]) -> Encoder:
    """Compile the function that encodes records of this class."""
    return _Encoder().compile(shape_of(cls))


class _Text:
    """The source text of a function under construction, with the objects that it names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"IndexError": IndexError}
        self.indent = 1

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def name(self, value: Any, prefix: str) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def fresh(self) -> str:
        return self.name(None, "v")

    def function(self, head: str) -> Callable[..., Any]:
        source = "\n".join([f"def coder({head}):", *self.lines])
        exec(source, self.names)
        coder: Callable[..., Any] = self.names["coder"]
        return coder


class _Decoder(_Text):
    """Generates a decoder. Fixed-width values collect in `letters` and are read together before anything else."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = ""
        self.targets: list[str] = []

    def compile(self, shape: Structure) -> Decoder:
        self.line("size = len(data)")
        result = self.read(shape)
        self.flush()
        self.line(f"return {result}, at")
        return self.function("data, at")

    def read(self, shape: Shape) -> str:
        match shape:
            case Structure(cls=cls, fields=fields):
                parts = [self.read(part) for _, part in fields]
                return f"{self.name(cls, 'cls')}({', '.join(parts)})"
            case Vector(item=item):
                return self.read_vector(item)
            case Scalar(kind=kind) if kind in FIXED:
                return self.fixed(FIXED[kind][0])
            case Scalar(kind=kind):
                return self.read_counted(kind)

    def fixed(self, letter: str) -> str:
        target = self.fresh()
        self.letters += letter
        self.targets.append(target)
        return target

    def flush(self) -> None:
        if not self.letters:
            return
        coder = struct.Struct(f">{self.letters}")
        self.line(f"{', '.join(self.targets)}, = {self.name(coder.unpack_from, 'unpack')}(data, at)")
        self.line(f"at += {coder.size}")
        self.letters, self.targets = "", []

    def read_counted(self, kind: str) -> str:
        """Generate the code for a string or a buffer. Its length belongs to the fixed-width run before it."""
        length, value = self.fixed("i"), self.fresh()
        self.flush()
        if kind == "buffer":
            self.line(f"if {length} == -1: {value} = None")
            self.line("else:")
            self.indent += 1
        self.line(f"end = at + {length}")
        self.line(f"if {length} < 0 or end > size: raise IndexError")
        self.line(f"{value} = data[at:end]" + (".decode()" if kind == "ustring" else ""))
        self.line("at = end")
        self.indent -= kind == "buffer"
        return value

    def read_vector(self, item: Shape) -> str:
        count, values = self.fixed("i"), self.fresh()
        self.flush()
        self.line(f"if {count} < -1 or {count} * {least_size(item)} > size - at: raise IndexError")
        self.line(f"{values} = []")
        self.line(f"for _ in range({count}):")
        self.indent += 1
        result = self.read(item)
        self.flush()
        self.line(f"{values}.append({result})")
        self.indent -= 1
        return f"(*{values},)"


def _texts(values: tuple[str, ...]) -> bytes:
    """Strings with their lengths. There may be very many: the names of the children of one znode."""
    lengths = set(map(len, values))
    if len(lengths) == 1 and (length := lengths.pop()) < 128:  # as the names of sequential znodes are
        before = _LENGTH.pack(length).decode()
        text = before + before.join(values)
        if text.isascii():
            return text.encode()
    texts = list(map(str.encode, values))
    sizes = map(_LENGTH.pack, map(len, texts))
    return b"".join(part for pair in zip(sizes, texts, strict=True) for part in pair)


class _Encoder(_Text):
    """Generates an encoder: a tuple of parts to join; the fixed-width values before each are packed together."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = ""
        self.values: list[str] = []
        self.parts: list[str] = []

    def compile(self, shape: Structure) -> Encoder:
        self.write(shape, "record")
        self.flush()
        parts = self.parts
        self.line(f"return {parts[0]}" if len(parts) == 1 else f"return b''.join(({', '.join(parts)}))")
        return self.function("record")

    def write(self, shape: Shape, value: str) -> None:
        match shape:
            case Structure(fields=fields):
                for name, part in fields:
                    self.write(part, f"{value}.{name}")
            case Vector(item=item):
                self.write_vector(item, value)
            case Scalar(kind="boolean"):
                # struct accepts any object as a truth value. The plain coder does too, so they agree.
                self.fixed("?", value)
            case Scalar(kind=kind) if kind in FIXED:
                self.fixed(FIXED[kind][0], value)
            case Scalar(kind="ustring"):
                content = self.fresh()
                self.line(f"{content} = {value}.encode()")
                self.fixed("i", f"len({content})")
                self.part(content)
            case Scalar():
                self.write_buffer(value)

    def write_buffer(self, value: str) -> None:
        content, length = self.fresh(), self.fresh()
        self.line(f"{content} = {value}")
        self.line(f"if {content} is None: {content}, {length} = b'', -1")
        self.line(f"else: {length} = len({content})")
        self.fixed("i", length)
        self.part(content)

    def write_vector(self, item: Shape, value: str) -> None:
        self.fixed("i", f"len({value})")
        if item == Scalar("ustring"):
            self.part(f"{self.name(_texts, 'texts')}({value})")
            return
        inner = _Encoder()
        inner.write(item, "item")
        inner.flush()
        encoder = inner.function_of_item()
        self.part(f"b''.join(map({self.name(encoder, 'encode')}, {value}))")

    def function_of_item(self) -> Encoder:
        self.line(f"return b''.join(({', '.join(self.parts)},))")
        return self.function("item")

    def fixed(self, letter: str, value: str) -> None:
        self.letters += letter
        self.values.append(value)

    def flush(self) -> None:
        if self.letters:
            pack = self.name(struct.Struct(f">{self.letters}").pack, "pack")
            self.parts.append(f"{pack}({', '.join(self.values)})")
            self.letters, self.values = "", []

    def part(self, expression: str) -> None:
        self.flush()
        self.parts.append(expression)
