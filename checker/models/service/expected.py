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

from checker.models.service.messages import Reply
from spec.tree.fields import Record
from spec.tree.replies import Code, ErrorReply, OperationResult

UNSIGNED = 1 << 64


class Expected(msgspec.Struct, frozen=True):
    """The correct answers: any of these codes, and with OK these fields, in the notation of `field_of`."""

    codes: tuple[Code, ...]
    fields: tuple[tuple[str, str], ...] = ()


def difference(expected: Expected, answer: Reply) -> str | None:
    """The part of an answer that differs from the expectation; None if there is none."""
    if answer.code not in expected.codes:
        return answer.code.name
    if answer.code is not Code.OK or answer.reply is None:
        return None
    for name, value in expected.fields:
        if (shown := field_of(answer.reply, name)) != value:
            return f"{name}={shown}"
    return None


def _result(result: OperationResult) -> str:
    return Code(result.record.err).name if isinstance(result.record, ErrorReply) else Code.OK.name


_OF: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "stat": {
        "version": lambda stat: str(stat.version),
        "cversion": lambda stat: str(stat.cversion),
        "aversion": lambda stat: str(stat.aversion),
        "length": lambda stat: str(stat.data_length),
        "count": lambda stat: str(stat.num_children),
        "owner": lambda stat: f"{stat.ephemeral_owner % UNSIGNED:#x}",
        "created": lambda stat: str(stat.czxid),
        "modified": lambda stat: str(stat.mzxid),
        "children-modified": lambda stat: str(stat.pzxid),
    },
    "path": {"path": str},
    "data": {"data": lambda data: (data or b"").decode()},
    "children": {"children": lambda children: ",".join(sorted(children))},
    "ephemerals": {"ephemerals": lambda paths: ",".join(sorted(paths))},
    "total_number": {"number": str},
    "acl": {"acl": lambda acl: ",".join(f"{each.id.scheme}:{each.id.id}:{each.perms}" for each in acl)},
    "results": {"results": lambda results: ",".join(map(_result, results))},
}
"""The fields of each attribute of a reply, each as text."""

_ATTRIBUTE = {name: attribute for attribute, fields in _OF.items() for name in fields}


def fields_of(reply: type[Record]) -> frozenset[str]:
    """The fields that a kind of reply has."""
    return frozenset(name for attribute in reply.__struct_fields__ for name in _OF.get(attribute, ()))


def field_of(reply: Record, name: str) -> str:
    """A field of a reply that has it, as text."""
    attribute = _ATTRIBUTE[name]
    return _OF[attribute][name](getattr(reply, attribute))
