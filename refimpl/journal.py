"""The event log of a live server: the inputs of the step functions, the observed facts, and a digest of the effects.

`python -m checker validate` reads these files; `docs/how-to-validate-a-live-ensemble.md` describes them. Rules this
module keeps:

- A record is written when a step is done, and reaches the operating system with the next `flush`, in one write: flushed
  records survive a `kill -9`. The caller must flush before it sends bytes of a step to another process.
- Values of transactions are not written, since the protocol never inspects them: a digest represents each. A
  reconfiguration has its view beside the digest.
- The cost of a record does not grow with the history, nor does memory.
- It makes no decisions and uses nothing of `checker`: two readers of one format expose a mistake in either.
"""

import os
from collections.abc import Callable
from enum import Enum
from functools import cache
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
from msgspec.structs import astuple

from refimpl.system import system
from spec.durable import Durable, TxnSequence
from spec.effects import Effects, Observe
from spec.election.state import ElectionRules
from spec.quorum import Majority, Reconfiguration, View, change_of
from spec.server import Event, Server
from spec.txn import Txn
from spec.zab.state import ZabRules

FORMAT = 2
"""The version of the format, in every start record."""
CACHED = 1 << 25
"""The maximum number of bytes of the encoded values whose digests are cached."""

_encode = msgspec.json.Encoder().encode
_PLAIN = (int, bool, str)
_ROWS = (tuple[Txn, ...], tuple[Txn, ...] | None)
"""The annotations of fields that hold transactions."""


def repr_bytes(value: Any) -> bytes:
    """The encoding of values that are numbers or text."""
    return repr(value).encode()


class Journal:
    """The journal of one server, appended to `path`.

    `encode` returns the bytes of a transaction's value, or of a client's request; equal values must have equal bytes on
    every server and after every restart. `now` returns the time in seconds. Raises OSError if the file cannot be
    opened or written.
    """

    def __init__(
        self,
        path: Path | str,
        encode: Callable[[Any], bytes] = repr_bytes,
        now: Callable[[], float] = lambda: system().wall_ms() / 1000,
    ) -> None:
        self.path = system().path(path) if isinstance(path, str) else path
        self._file = self.path.open("a+b", buffering=0)
        self._now = now
        self._buffer = bytearray(b"\n" if _is_torn(self._file) else b"")
        self._number = 0
        self._oldest: int | None = None
        self._fresh = True
        digests = _Digests(encode)
        self._events = _StructEncoder(digests, digests.listed)
        self._facts = _StructEncoder(digests, digests.summary)
        self._effects = _StructEncoder(digests, _last_zxid)

    def begin(self, server: Server, rules: ElectionRules, zab_rules: ZabRules | None) -> None:
        """Write the start record, with the contents of the server's disk."""
        durable = server.durable
        self._number, self._oldest = 0, _oldest(durable.txns)
        self._write(
            {
                "journal": FORMAT,
                "n": 0,
                "t": self._now(),
                "sid": server.sid,
                "view": _view(server.view),
                "next": None if server.last_seen is None else _view(server.last_seen),
                "durable": {
                    "accepted": durable.accepted_epoch,
                    "current": durable.current_epoch,
                    "snapshot": durable.snapshot,
                    "txns": self._events.txns(durable.txns),
                },
                "rules": _rules(rules),
                "zab": None if zab_rules is None else _rules(zab_rules),
            }
        )
        self.flush()

    def handled(self, event: Event, effects: Effects, durable: Durable | None = None) -> None:
        """Write a step: the event, and its effects.

        `durable` is the server's state after the step. From it the journal records how much of the log is still in
        memory, on which a choice between DIFF and SNAP depends.
        """
        self._number += 1
        record: dict[str, Any] = {"n": self._number, "t": self._now(), "e": self._events.record(event)}
        facts = [self._facts.record(effect.fact) for effect in effects if type(effect) is Observe]
        if facts:
            record["f"] = facts
        if effects:
            encoded = _encode([self._effects.record(effect) for effect in effects])
            record["x"] = blake2b(encoded, digest_size=8).hexdigest()
        if self._fresh:
            record["b"] = 1
        if durable is not None:
            oldest = _oldest(durable.txns)
            if oldest != self._oldest:
                record["m"] = self._oldest = oldest
        self._write(record)

    def flush(self) -> None:
        """Pass all records so far to the operating system. Raises OSError, and keeps the unwritten ones."""
        while self._buffer:
            count = self._file.write(self._buffer)
            del self._buffer[:count]
        self._fresh = True

    def close(self) -> None:
        """Flush, and close the file."""
        try:
            self.flush()
        finally:
            self._file.close()

    def _write(self, record: dict[str, Any]) -> None:
        self._buffer += _encode(record)
        self._buffer += b"\n"
        self._fresh = False


class _StructEncoder:
    """Structs as plain data: the name, then every field in order; `txns` encodes a sequence of transactions."""

    def __init__(self, digests: "_Digests", txns: Callable[[TxnSequence], Any]) -> None:
        self.txns = txns
        self._digests = digests
        self._words: dict[type, tuple[str, tuple[tuple[int, Callable[[Any], Any]], ...]]] = {}

    def record(self, value: Any) -> list[Any]:
        name, words = self._words.get(type(value)) or self._words_of(type(value))
        plain = [name, *astuple(value)]
        for place, word in words:
            plain[place] = word(plain[place])
        return plain

    def _words_of(self, cls: type[msgspec.Struct]) -> Any:
        """The name of a class, and its fields that are not plain data: the place of each, and its conversion."""
        words = ((place, self._word(hint)) for place, hint in enumerate(_hints_of(cls), start=1) if hint not in _PLAIN)
        words_of_class = self._words[cls] = (str(cls.__struct_config__.tag or cls.__name__), tuple(words))
        return words_of_class

    def _word(self, hint: Any) -> Callable[[Any], Any]:
        if hint is Any:
            return self._digests.value
        if hint is Txn:
            return self._digests.txn
        return self._row if hint in _ROWS else self._other

    def _row(self, txns: TxnSequence | None) -> Any:
        return None if txns is None else self.txns(txns)

    def _other(self, value: Any) -> Any:
        if isinstance(value, View):
            return _view(value)
        if isinstance(value, Enum):
            return value.value
        return self.record(value) if isinstance(value, msgspec.Struct) else value


class _Digests:
    """The digests of values; those of the newest values are cached, since each value is digested several times."""

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self._known: dict[int, tuple[Any, str, int]] = {}  # by the id of a value, which is kept alive here
        self._bytes = 0

    def value(self, value: Any) -> Any:
        """A value: its digest; for a reconfiguration its digest and its view."""
        digest = self.of(value)
        return [digest, _view(value.view)] if type(value) is Reconfiguration else digest

    def of(self, value: Any) -> str:
        """The digest of a value: 8 bytes in hexadecimal."""
        entry = self._known.get(id(value))
        if entry is not None:
            return entry[1]
        encoded = self._encode(change_of(value))
        digest = blake2b(encoded, digest_size=8).hexdigest()
        self._known[id(value)] = (value, digest, len(encoded) + 256)
        self._bytes += len(encoded) + 256
        while self._bytes > CACHED:
            self._bytes -= self._known.pop(next(iter(self._known)))[2]
        return digest

    def txn(self, txn: Txn) -> list[Any]:
        return [txn.zxid, self.value(txn.value)]

    def listed(self, txns: TxnSequence) -> list[list[Any]]:
        return [self.txn(txn) for txn in txns]

    def summary(self, txns: TxnSequence) -> list[Any]:
        """A summary of transactions: their number, the first zxid, the last, and a digest of all; [0] for none."""
        if not txns:
            return [0]
        whole = blake2b(digest_size=8)
        for txn in txns:
            whole.update(txn.zxid.to_bytes(8, "big", signed=True) + self.of(txn.value).encode())
        return [len(txns), txns[0].zxid, txns[-1].zxid, whole.hexdigest()]


@cache
def _hints_of(cls: type[msgspec.Struct]) -> tuple[Any, ...]:
    hints = get_type_hints(cls)
    return tuple(hints[name] for name in cls.__struct_fields__)


def _last_zxid(txns: TxnSequence) -> int:
    return txns[-1].zxid if txns else 0


def _oldest(txns: TxnSequence) -> int | None:
    return txns[0].zxid if txns else None


def _view(view: View) -> dict[str, Any]:
    quorums, observers = view.quorums, sorted(view.observers)
    if isinstance(quorums, Majority):
        return {"voters": sorted(quorums.members), "observers": observers, "version": view.version}
    plain = {"groups": quorums.groups, "weights": quorums.weights, "silent": sorted(quorums.silent)}
    return {**plain, "observers": observers, "version": view.version}


def _rules(rules: ElectionRules | ZabRules) -> dict[str, Any]:
    fields = msgspec.structs.asdict(rules)
    of_scenarios = ("zxids", "rollover", "hears_observers")  # a node never changes these
    fields = {name: value for name, value in fields.items() if name not in of_scenarios}
    return {**fields, "variants": sorted(variant.value for variant in rules.variants)}


def _is_torn(file: FileIO) -> bool:
    """Whether the last line is incomplete: the process that wrote it was killed."""
    size = file.seek(0, os.SEEK_END)
    if not size:
        return False
    file.seek(size - 1)
    return file.read(1) != b"\n"
