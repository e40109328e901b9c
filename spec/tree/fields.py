"""The types of a record's fields, as ZooKeeper's jute names them.

A record of ZooKeeper is one frozen struct whose annotations are these. They say all that a codec needs (the width of
an integer, what may be null, what a vector holds), so no record is described twice, and none is encoded by hand.

Rules this module keeps:

- A vector is a tuple here, so that records are hashable; a null vector and an empty one are the same, `()`.
- A string is never null. A buffer may be: ZooKeeper keeps a znode without data apart from one with empty data.

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
"""UTF-8, its length in bytes before it."""
Buffer: TypeAlias = Annotated[bytes | None, "buffer"]
"""Bytes, their number before them; None is written as the length -1."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record of `zookeeper.jute`: its fields in the order of the wire, in Python's spelling."""
