"""The answers that a script expects to its requests: error codes, and fields of a reply.

Rules of this module:

- An expectation is data that a scenario states. It comes from ZooKeeper's documentation or from a real server, so that
  it does not depend on the specification under test.
- The first answer that differs from its expectation is kept, with the request; the first one is enough.

Source: `KeeperException.Code`, `ZooDefs.OpCode`, the records of `zookeeper.jute`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from checker.models.service.words import Reply
from spec.tree.fields import Record
from spec.tree.replies import Code, ErrorReply, OperationResult

UNSIGNED = 1 << 64


class Expected(msgspec.Struct, frozen=True):
    """The correct answers: any of these codes, and with OK these fields, in the notation of `FIELDS`."""

    codes: tuple[Code, ...]
    fields: tuple[tuple[str, str], ...] = ()


def difference(expected: Expected, answer: Reply) -> str | None:
    """The part of an answer that differs from the expectation; None if there is none."""
    if answer.code not in expected.codes:
        return answer.code.name
    if answer.code is not Code.OK or answer.reply is None:
        return None
    for name, value in expected.fields:
        if (shown := FIELDS[name](answer.reply)) != value:
            return f"{name}={shown}"
    return None


def _stat(name: str) -> Callable[[Any], str]:
    return lambda reply: str(getattr(reply.stat, name, None))


def _result(result: OperationResult) -> str:
    return Code(result.record.err).name if isinstance(result.record, ErrorReply) else Code.OK.name


FIELDS: Mapping[str, Callable[[Any], str]] = {
    "path": lambda reply: str(reply.path),
    "data": lambda reply: (reply.data or b"").decode(),
    "version": _stat("version"),
    "cversion": _stat("cversion"),
    "aversion": _stat("aversion"),
    "length": _stat("data_length"),
    "count": _stat("num_children"),
    "owner": lambda reply: f"{reply.stat.ephemeral_owner % UNSIGNED:#x}",
    "created": lambda reply: str(reply.stat.czxid),
    "modified": lambda reply: str(reply.stat.mzxid),
    "children-modified": lambda reply: str(reply.stat.pzxid),
    "children": lambda reply: ",".join(sorted(reply.children)),
    "ephemerals": lambda reply: ",".join(sorted(reply.ephemerals)),
    "number": lambda reply: str(reply.total_number),
    "acl": lambda reply: ",".join(f"{each.id.scheme}:{each.id.id}:{each.perms}" for each in reply.acl),
    "results": lambda reply: ",".join(map(_result, reply.results)),
}
"""The fields of replies, each as text."""

HAS: Mapping[str, tuple[str, ...]] = {
    "stat": ("version", "cversion", "aversion", "length", "count", "owner", "created", "modified", "children-modified"),
    "path": ("path",),
    "data": ("data",),
    "children": ("children",),
    "ephemerals": ("ephemerals",),
    "total_number": ("number",),
    "acl": ("acl",),
    "results": ("results",),
}
"""The fields that each attribute of a reply gives."""


def fields_of(reply: type[Record]) -> frozenset[str]:
    """The fields that a kind of reply has."""
    return frozenset(name for attribute in reply.__struct_fields__ for name in HAS.get(attribute, ()))
