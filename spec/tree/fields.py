"""The types of a record's fields, as ZooKeeper's jute names them.

A ZooKeeper record is one frozen struct with these types as annotations. They contain all that a codec needs (the width
of an integer, nullability, the elements of a vector), so each record is described once and no record is encoded by
hand.

Rules of this module:

- A vector is a tuple here, so that records are hashable; a null vector and an empty one are the same, `()`.
- A string is never null. A buffer may be null: ZooKeeper distinguishes a znode without data from one with empty data.

Source: `zookeeper.jute`; `BinaryInputArchive`, `BinaryOutputArchive`.
"""

from typing import Annotated, TypeAlias

import msgspec

Int: TypeAlias = Annotated[int, "int"]
"""32 bits, signed."""
Long: TypeAlias = Annotated[int, "long"]
"""64 bits, signed."""
Boolean: TypeAlias = Annotated[bool, "boolean"]
Ustring: TypeAlias = Annotated[str, "ustring"]
"""UTF-8, preceded by its length in bytes."""
Buffer: TypeAlias = Annotated[bytes | None, "buffer"]
"""Bytes, preceded by their number; None is written as the length -1."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record of `zookeeper.jute`: its fields in the order of the wire, in Python's spelling."""
