"""Conversion between records of `spec` and the plain data of a journal, which also serves as the input of digests.

Rules this module keeps:

- A struct is an array: its name, then its fields in order. A transaction is `[zxid, value]`. A value is a digest, and
  `[digest, view]` for a reconfiguration. An enumeration member is its value, and a view is a map. The table of names is
  derived from the annotations of `spec`.
- Data that does not fit raises `CodecError`, with the correction in the message.
- The module shares no code with the writer in the node. With two independent implementations of the format, a mistake
  in either becomes visible.
"""

import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from hashlib import blake2b
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import astuple

from spec.durable import Durable
from spec.effects import Effects, Message
from spec.election.messages import Notification
from spec.election.state import ElectionRules
from spec.election.vote import Vote
from spec.quorum import Majority, Reconfiguration, View, change_of
from spec.quorum.systems import Hierarchical
from spec.server import Event
from spec.txn import Txn
from spec.zab.packets import NAMES, FollowerInfo
from spec.zab.state import ZabRules

Json = Any
Reader = Callable[[Json], Any]
Writer = Callable[[Any], Json]
ROWS = (tuple[Txn, ...], tuple[Txn, ...] | None)
"""The annotations of the fields that hold transactions."""


class CodecError(ValueError):
    """Plain data that is not in the form of a journal; the message contains the correction."""


# -- From plain data to records ------------------------------------------------------------------------------


def _named(classes: Iterable[type[msgspec.Struct]]) -> dict[str, type]:
    return {_name(cls): cls for cls in classes}


def _name(cls: type[msgspec.Struct]) -> str:
    """The name of a class in a journal: its tag, or its own name."""
    return str(cls.__struct_config__.tag or cls.__name__)


EVENTS = _named(get_args(Event))
MESSAGES = _named((Notification, FollowerInfo, *NAMES))
VOTES = _named((Vote,))


def event_of(plain: Json) -> Event:
    """Convert plain data to an event. Raises CodecError."""
    event: Event = _struct(plain, EVENTS, "event")
    return event


def _struct(plain: Json, known: Mapping[str, type], what: str) -> Any:
    if not isinstance(plain, list) or not plain or plain[0] not in known:
        tag = plain[0] if isinstance(plain, list) and plain else plain
        raise CodecError(f"unknown {what} {str(tag)[:60]!r}; write one of {', '.join(known)}, and its fields behind it")
    cls = known[plain[0]]
    readers = _readers_of(cls)
    if len(plain) != len(readers) + 1:
        names = ", ".join(name for name, _ in readers)
        raise CodecError(f"{plain[0]} has {len(plain) - 1} fields; it must have {len(readers)}: {names}")
    return cls(*[reader(plain[place]) for place, (_, reader) in enumerate(readers, start=1)])


@cache
def _readers_of(cls: type[Any]) -> tuple[tuple[str, Reader], ...]:
    """The names of the fields of a class, and the function that reads each."""
    hints = get_type_hints(cls)
    return tuple((name, _reader(f"{_name(cls)}.{name}", hints[name])) for name in cls.__struct_fields__)


def _reader(where: str, hint: Any) -> Reader:
    """The function that converts plain data to a value with this annotation. It raises CodecError."""
    if hint in (int, bool, str):
        return partial(_plain, where, hint)
    if hint is Any:
        return partial(_value, where)
    if hint is Txn:
        return partial(_txn, where)
    if hint == ROWS[0]:
        return partial(_txns, where)
    if get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
        reader = _reader(where, get_args(hint)[0])
        return lambda plain: None if plain is None else reader(plain)
    if hint is View:
        return view_of
    if issubclass(hint, Enum):
        return partial(_member, where, hint)
    classes = MESSAGES if issubclass(hint, Message) else VOTES
    return lambda plain: _struct(plain, classes, where)


def _plain(where: str, cls: type, plain: Json) -> Any:
    if type(plain) is not cls:
        raise CodecError(f"{where} is {str(plain)[:60]!r}; it must be of type {cls.__name__}")
    return plain


def _member(where: str, cls: type[Enum], plain: Json) -> Enum:
    try:
        return cls(plain)
    except ValueError:
        raise CodecError(f"{where} is {plain!r}; write one of {[member.value for member in cls]}") from None


def _txns(where: str, plain: Json) -> tuple[Txn, ...]:
    return tuple(_txn(where, item) for item in _list(where, plain))


def _list(where: str, plain: Json) -> list[Any]:
    if not isinstance(plain, list):
        raise CodecError(f"{where} is {str(plain)[:60]!r}; it must be an array")
    return plain


def _value(where: str, plain: Json) -> str | Reconfiguration:
    if isinstance(plain, list) and len(plain) == 2:
        return Reconfiguration(view_of(plain[1]), _digest(where, plain[0]))
    return _digest(where, plain)


def _digest(where: str, plain: Json) -> str:
    if not isinstance(plain, str) or not _DIGEST(plain):
        raise CodecError(f"{where} is {str(plain)[:60]!r}; it must be the digest of a value, 16 hexadecimal digits")
    return plain


_DIGEST = re.compile(r"[0-9a-f]{16}").fullmatch


_INTERNED: dict[tuple[int, str | Reconfiguration], Txn] = {}


def _txn(where: str, plain: Json) -> Txn:
    """Convert plain data to a transaction. Recent ones are interned, so that comparing long rows of them is fast."""
    pair = _list(where, plain)
    if len(pair) != 2 or type(pair[0]) is not int:
        raise CodecError(f"{where} is {str(plain)[:60]!r}; a transaction is [zxid, value]")
    key = (pair[0], _value(where, pair[1]))
    txn = _INTERNED.get(key)
    if txn is None:
        if len(_INTERNED) >= 1 << 16:
            for old in list(_INTERNED)[: 1 << 15]:
                del _INTERNED[old]
        txn = _INTERNED[key] = Txn(*key)
    return txn


def view_of(plain: Json) -> View:
    """Convert plain data to a server's view of the ensemble. Raises CodecError."""
    try:
        observers, version = frozenset(plain["observers"]), plain["version"]
        if "voters" in plain:
            return View(Majority(frozenset(plain["voters"])), observers, version)
        groups = tuple((gid, tuple(sids)) for gid, sids in plain["groups"])
        weights = tuple((sid, weight) for sid, weight in plain["weights"])
        return View(Hierarchical(groups, weights, frozenset(plain["silent"])), observers, version)
    except (KeyError, TypeError, ValueError) as error:
        right = "it has voters, or groups, weights and silent; and observers and version"
        raise CodecError(f"{str(plain)[:80]!r} is not a view ({type(error).__name__} {error}); {right}") from None


def durable_of(plain: Json) -> Durable:
    """Convert plain data to the contents of a server's disk. Raises CodecError."""
    right = "it has accepted, current, snapshot and txns"
    try:
        numbers = (plain["accepted"], plain["current"], plain["snapshot"])
        if any(type(number) is not int for number in numbers):
            raise CodecError(f"the epochs and the snapshot on disk are {numbers}; they must be whole numbers")
        return Durable(*numbers, _txns("durable.txns", plain["txns"]))
    except (KeyError, TypeError) as error:
        raise CodecError(f"{str(plain)[:80]!r} is not the content of a disk ({error}); {right}") from None
    except ValueError as error:
        raise CodecError(str(error)) from None


def rules_of(plain: Json) -> tuple[ElectionRules, tuple[str, ...]]:
    """Convert plain data to the election rules without variants, and the names of the variants. Raises CodecError."""
    bare, variants = _bare(plain)
    return _converted(bare, ElectionRules), variants


def zab_rules_of(plain: Json) -> tuple[ZabRules | None, tuple[str, ...]]:
    """Convert plain data to the rules of Zab without variants (None for an election alone), and the names of the
    variants. Raises CodecError.
    """
    if plain is None:
        return None, ()
    bare, variants = _bare(plain)
    return _converted(bare, ZabRules), variants


def _bare(plain: Json) -> tuple[dict[str, Any], tuple[str, ...]]:
    if not isinstance(plain, dict):
        raise CodecError(f"{str(plain)[:60]!r} are not rules; rules are a map, with variants")
    return {name: value for name, value in plain.items() if name != "variants"}, tuple(plain.get("variants", ()))


def _converted(plain: dict[str, Any], cls: type[Any]) -> Any:
    try:
        return msgspec.convert(plain, cls)
    except msgspec.ValidationError as error:
        raise CodecError(f"{str(plain)[:80]!r} are not rules: {error}") from None


# -- From records to plain data ------------------------------------------------------------------------------


class PlainEncoder:
    """Records as plain data, as in the how-to; `rows` converts a sequence of transactions."""

    def __init__(self, rows: Callable[[Sequence[Txn]], Json]) -> None:
        self._rows = rows
        self._writers: dict[type, tuple[str, tuple[tuple[int, Writer], ...]]] = {}

    def __call__(self, value: Any) -> Json:
        """Convert any value that a field may have."""
        if isinstance(value, Txn):
            return [value.zxid, self(value.value)]
        if isinstance(value, Reconfiguration):
            return [value.change, _plain_view(value.view)]
        if isinstance(value, View):
            return _plain_view(value)
        if isinstance(value, Enum):
            return value.value
        return self.struct(value) if isinstance(value, msgspec.Struct) else value

    def struct(self, value: msgspec.Struct) -> list[Json]:
        """Convert a fact, an effect, a message or an event."""
        name, writers = self._writers.get(type(value)) or self._writers_of(type(value))
        plain: list[Json] = [name, *astuple(value)]
        for place, write in writers:
            if plain[place] is not None:
                plain[place] = write(plain[place])
        return plain

    def _writers_of(self, cls: type[msgspec.Struct]) -> tuple[str, tuple[tuple[int, Writer], ...]]:
        """The name of a class, and its fields that are not plain data: the place of each, and its conversion."""
        hints = get_type_hints(cls)
        writers = tuple(
            (place, self._rows if hints[name] in ROWS else self)
            for place, name in enumerate(cls.__struct_fields__, start=1)
            if hints[name] not in (int, bool, str)
        )
        self._writers[cls] = (_name(cls), writers)
        return self._writers[cls]


def _plain_view(view: View) -> Json:
    quorums, rest = view.quorums, {"observers": sorted(view.observers), "version": view.version}
    if isinstance(quorums, Majority):
        return {"voters": sorted(quorums.members), **rest}
    # Lists, not tuples: the result is compared with data from a journal.
    groups = [[gid, list(servers)] for gid, servers in quorums.groups]
    return {"groups": groups, "weights": list(map(list, quorums.weights)), "silent": sorted(quorums.silent), **rest}


def summary(txns: Sequence[Txn]) -> Json:
    """A summary of transactions: their number, the first zxid, the last one, and a digest of all; [0] if there are
    none.
    """
    if not txns:
        return [0]
    content = b"".join(txn.zxid.to_bytes(8, "big", signed=True) + digest_in(txn.value).encode() for txn in txns)
    return [len(txns), txns[0].zxid, txns[-1].zxid, blake2b(content, digest_size=8).hexdigest()]


def digest_in(value: str | Reconfiguration) -> str:
    """The digest of a transaction's value."""
    return str(change_of(value))


_encode_effect = PlainEncoder(lambda txns: txns[-1].zxid if txns else 0)
_json = msgspec.json.Encoder().encode


def digest_of(effects: Effects) -> str | None:
    """The digest of effects, or None without effects; of several transactions in a field, only the last zxid counts."""
    if not effects:
        return None
    return blake2b(_json([_encode_effect.struct(effect) for effect in effects]), digest_size=8).hexdigest()


_encode_fact = PlainEncoder(lambda txns: txns)


def fits(written: Json, fact: Any) -> bool:
    """Whether a fact equals the one written in a journal.

    A node keeps only the end of its log. It may therefore report fewer transactions than the specification knows, but
    these must be the last ones.
    """
    ours = _encode_fact.struct(fact)
    if not isinstance(written, list) or len(written) != len(ours):
        return False
    for theirs, our_value in zip(written, ours, strict=True):
        if not isinstance(our_value, tuple):
            if theirs != our_value:
                return False
        elif not isinstance(theirs, list) or not theirs or not _ends_so(theirs, our_value):
            return False
    return True


def _ends_so(said: list[Any], own: Sequence[Txn]) -> bool:
    count = said[0]
    if type(count) is not int or not 0 <= count <= len(own):
        return False
    return bool(said == summary(own[len(own) - count :]))


_encode_record = PlainEncoder(summary)


def text_of(record: Any) -> str:
    """A record in the form of a journal, for a message."""
    return msgspec.json.encode(_encode_record(record)).decode()
