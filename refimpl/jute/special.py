"""The few records whose encoding the annotations of their class cannot express.

Rules this module keeps:

- `SPECIAL` is the only table of them. Everything else is compiled from annotations.
- Tables also list the operations that a multi may contain. They exclude multi, so decoding recurses one level at most.

Source: `MultiOperationRecord`, `MultiResponse`, `MultiHeader`; `DataTree.processTxn` (the contents of a MultiTxn);
`ContainerManager` and `PrepRequestProcessor.pRequest2Txn` (the body of deleteContainer is the bare path).
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from refimpl.jute.plain import JuteError
from spec.tree import replies, requests, txns
from spec.tree.data import Record

HEADER = struct.Struct(">i?i")
"""MultiHeader: type, done, err."""
CLOSING = HEADER.pack(-1, True, -1)
ERROR = -1
PREFIX = struct.Struct(">ii")
"""In a MultiTxn: a transaction's type, and the length of its record."""
COUNT = struct.Struct(">i")

WRITES = {number: requests.OPCODES[number] for number in (1, 2, 5, 13, 15, 19, 21)}
READS = {number: requests.OPCODES[number] for number in (4, 8)}
RESULTS: dict[int, type[Record] | None] = {
    1: replies.PathReply,
    2: None,
    4: replies.DataReply,
    5: replies.StatReply,
    8: replies.ChildrenReply,
    13: None,
    15: replies.Create2Reply,
    ERROR: replies.ErrorReply,
}
"""The reply to each operation of a multi; None where the header is the whole reply.

A createTTL or createContainer is answered as create2 (`OpResult.CreateResult`).
"""
PARTS = {number: txns.TXN_TYPES[number] for number in (1, 2, 5, 13, 15, 19, 20, 21, ERROR)}
"""The transactions that a MultiTxn may hold."""

Encode = Callable[[Record], bytes]
Decode = Callable[[type[Record], bytes, int], tuple[Any, int]]


class Coders(NamedTuple):
    """The two functions of a record; they receive the general ones as an argument, for the records inside."""

    encode: Callable[[Encode, Any], bytes]
    decode: Callable[[Decode, bytes, int], tuple[Any, int]]


def _operations(cls: type[requests.Multi] | type[requests.MultiRead], allowed: Mapping[int, type[Record]]) -> Coders:
    """Return a multi's coders: a header and a request for each operation, and a closing header."""
    name = cls.__name__

    def encode_operations(encode: Encode, record: requests.Multi | requests.MultiRead) -> bytes:
        parts: list[bytes] = []
        for operation in record.operations:
            number = requests.OPCODE_OF.get(type(operation))
            if number not in allowed:
                raise JuteError(name, "operations", -1, f"{type(operation).__name__} cannot be part of it")
            parts += (HEADER.pack(number, False, -1), encode(operation))
        return b"".join((*parts, CLOSING))

    def decode_operations(decode: Decode, data: bytes, offset: int) -> tuple[Record, int]:
        operations: list[Record] = []
        while True:
            number, ends, _ = _header(name, data, offset)
            offset += HEADER.size
            if ends:
                return cls(tuple(operations)), offset
            if number not in allowed:
                problem = f"opcode {number} cannot be part of it, only {sorted(allowed)}"
                raise JuteError(name, f"operations[{len(operations)}]", offset - HEADER.size, problem)
            operation, offset = _within(name, decode, allowed[number], data, offset)
            operations.append(operation)

    return Coders(encode_operations, decode_operations)


def _encode_results(encode: Encode, record: replies.MultiReply) -> bytes:
    parts = []
    for result in record.results:
        answer = result.record
        if RESULTS.get(result.type, ERROR) != (None if answer is None else type(answer)):
            problem = f"{type(answer).__name__} does not answer opcode {result.type} in it"
            raise JuteError("MultiReply", "results", -1, problem)
        err = answer.err if isinstance(answer, replies.ErrorReply) else 0
        parts.append(HEADER.pack(result.type, False, err))
        if answer is not None:
            parts.append(encode(answer))
    return b"".join((*parts, CLOSING))


def _decode_results(decode: Decode, data: bytes, offset: int) -> tuple[Record, int]:
    results: list[replies.OperationResult] = []
    while True:
        number, ends, _ = _header("MultiReply", data, offset)
        offset += HEADER.size
        if ends:
            return replies.MultiReply(tuple(results)), offset
        if number not in RESULTS:
            problem = f"type {number} is not a reply type, only {sorted(RESULTS)}"
            raise JuteError("MultiReply", f"results[{len(results)}]", offset - HEADER.size, problem)
        cls, answer = RESULTS[number], None
        if cls is not None:
            answer, offset = _within("MultiReply", decode, cls, data, offset)
        results.append(replies.OperationResult(number, answer))


def _encode_txns(encode: Encode, record: txns.MultiTxn) -> bytes:
    parts = [COUNT.pack(len(record.txns))]
    for txn in record.txns:
        number = txns.TXN_TYPE_OF.get(type(txn))
        if number not in PARTS:
            raise JuteError("MultiTxn", "txns", -1, f"{type(txn).__name__} cannot be part of it")
        content = encode(txn)
        parts += (PREFIX.pack(number, len(content)), content)
    return b"".join(parts)


def _decode_txns(decode: Decode, data: bytes, offset: int) -> tuple[Record, int]:
    rest = len(data) - offset - COUNT.size
    count = COUNT.unpack_from(data, offset)[0] if rest >= 0 else -2
    if count < -1 or count * PREFIX.size > rest:
        raise JuteError("MultiTxn", "txns", offset, f"no count, or one of more than the {max(rest, 0)} bytes left hold")
    offset += COUNT.size
    parts: list[Record] = []
    for position in range(count):
        field = f"txns[{position}]"
        number, size = PREFIX.unpack_from(data, offset) if len(data) - offset >= PREFIX.size else (0, -1)
        start, room = offset + PREFIX.size, len(data) - offset - PREFIX.size
        if not 0 <= size <= room:
            raise JuteError("MultiTxn", field, offset, f"a type and a length up to {max(0, room)} expected")
        if number not in PARTS:
            raise JuteError("MultiTxn", field, offset, f"type {number} cannot be part of it, only {sorted(PARTS)}")
        try:
            # Bytes after the record in its buffer are ignored, as in `ByteBufferInputStream.byteBuffer2Record`.
            parts.append(decode(PARTS[number], data[start : start + size], 0)[0])
        except JuteError as error:
            raise error.within("MultiTxn", start) from None
        offset = start + size
    return txns.MultiTxn(tuple(parts)), offset


def _encode_path(_encode: Encode, record: requests.DeleteContainer) -> bytes:
    try:
        return record.path.encode()
    except UnicodeEncodeError as error:
        raise JuteError("DeleteContainer", "path", -1, str(error)) from None


def _decode_path(_decode: Decode, data: bytes, at: int) -> tuple[Record, int]:
    try:
        return requests.DeleteContainer(str(data[at:], "utf-8")), len(data)
    except UnicodeDecodeError as error:
        raise JuteError("DeleteContainer", "path", at + error.start, f"invalid UTF-8: {error.reason}") from None


def _header(name: str, data: bytes, at: int) -> tuple[int, bool, int]:
    if len(data) - at < HEADER.size:
        rest = max(0, len(data) - at)
        raise JuteError(name, "", at, f"a header of {HEADER.size} bytes expected, and {rest} are left")
    header: tuple[int, bool, int] = HEADER.unpack_from(data, at)
    return header


def _within(name: str, decode: Decode, cls: type[Record], data: bytes, at: int) -> tuple[Record, int]:
    try:
        record, end = decode(cls, data, at)
    except JuteError as error:
        raise error.within(name) from None
    return record, end


SPECIAL: dict[type[Record], Coders] = {
    requests.Multi: _operations(requests.Multi, WRITES),
    requests.MultiRead: _operations(requests.MultiRead, READS),
    replies.MultiReply: Coders(_encode_results, _decode_results),
    txns.MultiTxn: Coders(_encode_txns, _decode_txns),
    requests.DeleteContainer: Coders(_encode_path, _decode_path),
}
