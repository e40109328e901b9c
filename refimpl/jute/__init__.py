"""Jute, ZooKeeper's serialization: encoders and decoders for records.

Rules this package keeps:

- Every shape that the annotations of a class describe (`shapes`) is coded from them, not by hand. `compiled` compiles
  the coders, once per class, at first use. `plain` does the same work slowly and explains errors. `special` has the few
  shapes that annotations cannot express.
- For any input bytes, decoding returns a record or raises a `JuteError`, in memory and time bounded by their number.
- A decoded record shares nothing with the input, which must be `bytes`.

    encode(GetData("/a", False))                 # the body alone, without a header
    record, end = decode(GetData, data, offset)

Source: `zookeeper.jute`; `BinaryInputArchive`, `BinaryOutputArchive`.
"""

from functools import partial
from typing import Any, TypeVar

from refimpl.jute.compiled import FAILURES, Decoder, Encoder, compile_decoder, compile_encoder
from refimpl.jute.plain import JuteError, decode_plainly, encode_plainly
from refimpl.jute.special import SPECIAL
from spec.tree.data import Record

__all__ = ["JuteError", "decode", "decode_whole", "encode"]

R = TypeVar("R", bound=Record)


def encode(record: Record) -> bytes:
    """Encode a record. Raises JuteError, naming the field that the wire cannot carry."""
    try:
        return _encoders[record.__class__](record)
    except FAILURES:
        return encode_plainly(record)


def decode(cls: type[R], data: bytes, offset: int = 0) -> tuple[R, int]:
    """Decode the record of this class at `offset`; return it and its end. Raises JuteError."""
    try:
        return _decoders[cls](data, offset)
    except FAILURES:
        record: Any
        record, end = decode_plainly(cls, data, offset)
        return record, end


def decode_whole(cls: type[R], data: bytes, offset: int = 0) -> R:
    """Decode the record of this class that takes all bytes from `offset` on. Raises JuteError."""
    record, end = decode(cls, data, offset)
    if end != len(data):
        raise JuteError(cls.__name__, "", end, f"{len(data) - end} bytes are left after it")
    return record


class _Encoders(dict[type[Record], Encoder]):
    """The encoder of each class, compiled at its first use."""

    def __missing__(self, cls: type[Record]) -> Encoder:
        special = SPECIAL.get(cls)
        self[cls] = coder = partial(special.encode, encode) if special else compile_encoder(cls)
        return coder


class _Decoders(dict[type[Record], Decoder]):
    """The decoder of each class, compiled at its first use."""

    def __missing__(self, cls: type[Record]) -> Decoder:
        special = SPECIAL.get(cls)
        self[cls] = coder = partial(special.decode, decode) if special else compile_decoder(cls)
        return coder


_encoders = _Encoders()
_decoders = _Decoders()
