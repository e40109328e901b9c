"""The final content of the servers: it is identical everywhere, and it contains every acknowledged write.

Rules of this module:

- Replicas are compared path by path, with every field of the Stat. The first path that differs is reported.
- A final znode is that of the last known write, or of an unanswered write after it; the value must be that of the
  write.
- `/zookeeper` is left out: a server describes its own configuration there, by its own clock.

Source: `DataTree` (the content of a replica); `ZKDatabase.initConfigInZKDatabase`.
"""

from __future__ import annotations

from collections.abc import Iterator

from checker.histories.record import ClientHistory, FinalZnodes, Leaf, Operation
from checker.histories.violation import Violation
from checker.histories.writes import PlacedWrite, Writes

IDENTICAL = "replicas are identical at the end"
DURABLE = "no acknowledged write is missing at the end"
OWN = "/zookeeper"


def check(history: ClientHistory, writes: Writes) -> Violation | None:
    """Find the first difference between two replicas, or the first write that is missing from them."""
    if not history.replicas:
        return None
    first, *others = history.replicas
    for other in others:
        for detail in _differences(first, other):
            return Violation(IDENTICAL, detail)
    for key in history.by_key:
        violation = _kept(key, first.znodes.get(key), first.server, writes)
        if violation is not None:
            return violation
    return None


def _differences(one: FinalZnodes, other: FinalZnodes) -> Iterator[str]:
    for path in sorted(one.znodes.keys() | other.znodes.keys()):
        mine, theirs = one.znodes.get(path), other.znodes.get(path)
        if mine == theirs or path == OWN or path.startswith(f"{OWN}/"):
            continue
        if mine is None or theirs is None:
            has, lacks = (one, other) if theirs is None else (other, one)
            yield f"{path}: server {has.server} holds it, server {lacks.server} does not"
        elif mine.value != theirs.value:
            yield f"{path}: {mine.value!r} on server {one.server}, {theirs.value!r} on server {other.server}"
        else:
            name = next(name for name in mine.stat | theirs.stat if mine.stat.get(name) != theirs.stat.get(name))
            yield (
                f"{path}: {name} is {mine.stat.get(name)} on server {one.server},"
                f" {theirs.stat.get(name)} on server {other.server}"
            )


def _kept(key: str, leaf: Leaf | None, server: int, writes: Writes) -> Violation | None:
    placed = writes.placed(key)
    last = placed[-1] if placed else None
    if leaf is None:
        if last is None or last.operation.kind == "delete" or writes.may_have_deleted(key, float("inf")):
            return None
        return Violation(DURABLE, f"{key} does not exist on server {server}", (last.operation,))
    return _explained(key, leaf, server, last, writes)


def _explained(key: str, leaf: Leaf, server: int, last: PlacedWrite | None, writes: Writes) -> Violation | None:
    """Check that the final znode is that of the last known write, or of an unanswered one after it."""
    mzxid, version = leaf.stat["mzxid"], leaf.stat["version"]
    held = f"{key} is {leaf.value!r}, mzxid {mzxid:#x}, version {version} on server {server}"
    if last is not None and mzxid < last.txn:
        return Violation(DURABLE, f"{held}: older than the last write", (last.operation,))
    writer: Operation | None = writes.by_value.get((key, leaf.value))
    if writer is None or writer.outcome == "failed":
        return Violation(DURABLE, f"{held}: nobody wrote that", () if writer is None else (writer,))
    if last is not None and mzxid == last.txn:
        if writer is last.operation and version == last.version:
            return None
        return Violation(DURABLE, f"{held}: not what was written then", (last.operation,))
    if writer in writes.open(key):
        return None
    return Violation(DURABLE, f"{held}: its write was carried out again, or elsewhere in the order", (writer,))
