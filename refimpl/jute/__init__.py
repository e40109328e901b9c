"""Jute, ZooKeeper's serialization: records to bytes and back.

Rules this package keeps:

- Nothing is encoded by hand that the annotations of its class describe (`shapes`). From them coders are compiled
  (`compiled`), once for each class, at its first use; `plain` does the same slowly and explains what is wrong;
  `special` has the few shapes that annotations cannot say.
- Whatever the bytes, decoding answers with a record or a `JuteError`, in memory and time bounded by their number.
- What is decoded shares nothing with what was given; what was given must be `bytes`.

    encode(GetData("/a", False))                 # the body alone, without a header
    record, end = decode(GetData, data, offset)

Source: `zookeeper.jute`; `BinaryInputArchive`, `BinaryOutputArchive`.
"""

from functools import partial
from typing import Any, TypeVar

from refimpl.jute.compiled import FAILURES, Decoder, Encoder, compile_decoder, compile_encoder
from refimpl.jute.errors import JuteError
from refimpl.jute.plain import decode_plainly, encode_plainly
from refimpl.jute.special import SPECIAL
from spec.tree.fields import Record

__all__ = ["JuteError", "decode", "decode_whole", "encode"]

R = TypeVar("R", bound=Record)


def encode(record: Record) -> bytes:
    """The bytes of a record. Raises JuteError, naming the field that the wire cannot carry."""
    try:
        return _encoders[record.__class__](record)
    except FAILURES:
        return encode_plainly(record)


def decode(cls: type[R], data: bytes, offset: int = 0) -> tuple[R, int]:
    """The record of this class that begins at `offset`, and where it ends. Raises JuteError."""
    try:
        return _decoders[cls](data, offset)
    except FAILURES:
        record: Any
        record, end = decode_plainly(cls, data, offset)
        return record, end


def decode_whole(cls: type[R], data: bytes, offset: int = 0) -> R:
    """The record of this class that takes all bytes from `offset` on. Raises JuteError."""
    record, end = decode(cls, data, offset)
    if end != len(data):
        raise JuteError(cls.__name__, "", end, f"{len(data) - end} bytes are left after it")
    return record


class _Encoders(dict[type[Record], Encoder]):
    """The encoder of each class, made when it is first asked for."""

    def __missing__(self, cls: type[Record]) -> Encoder:
        special = SPECIAL.get(cls)
        self[cls] = coder = partial(special.encode, encode) if special else compile_encoder(cls)
        return coder


class _Decoders(dict[type[Record], Decoder]):
    """The decoder of each class, made when it is first asked for."""

    def __missing__(self, cls: type[Record]) -> Decoder:
        special = SPECIAL.get(cls)
        self[cls] = coder = partial(special.decode, decode) if special else compile_decoder(cls)
        return coder


_encoders = _Encoders()
_decoders = _Decoders()
