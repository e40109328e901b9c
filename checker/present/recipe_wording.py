"""Requests, replies and notifications in a few words, for captions and pictures.

Rules of this module:

- A path is shown as its last name, with a slash before it if its parent is the root. A sequence number is shown without
  leading zeros, and a protected name without its `_c_`.
- Requests have the names of ZooKeeper's API.
- A caption shows a reply without the path of its request; a picture shows requests and replies in full.
"""

from __future__ import annotations

import re
from typing import Any

from checker.models.service import Commit, ConnectionClosed, Reply, SyncMarker, WatchNotification
from spec.tree.apply import EventType
from spec.tree.data import Record
from spec.tree.paths import name_of, parent_of
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply

_EVENTS = {
    EventType.NODE_CREATED: "created",
    EventType.NODE_DELETED: "deleted",
    EventType.NODE_DATA_CHANGED: "changed",
    EventType.NODE_CHILDREN_CHANGED: "children changed",
}


_NUMBER = re.compile(r"0{1,9}(\d+)$")
_PROTECTED = "_c_"


def told_path(path: str) -> str:
    """A path as its last name, with a short sequence number."""
    name = _NUMBER.sub(r"\1", name_of(path).removeprefix(_PROTECTED))
    return f"/{name}" if parent_of(path) in ("", "/") and path.startswith("/") else name


def told_name(record: Record) -> str:
    """The name of a request, or of the operation of a transaction."""
    word = type(record).__name__.removesuffix("Txn").removesuffix("2")
    return f"{word[0].lower()}{word[1:]}"


def told_request(record: Record) -> str:
    """A request: its name, the last name of its path, and whether it sets a watch."""
    path = getattr(record, "path", None)
    watch = " and watch" if getattr(record, "watch", False) else ""
    return f"{told_name(record)}{f' {told_path(path)}' if path is not None else ''}{watch}"


def told_answer(message: Reply | WatchNotification | ConnectionClosed) -> str:
    """A reply or a notification in full."""
    match message:
        case WatchNotification(type_, path):
            return f"{told_path(path)} {_EVENTS[type_]}"
        case Reply(asked, code, reply):
            return f"{told_request(asked)}: {_told_reply(code, reply)}"
        case ConnectionClosed():
            return "the connection is closed"


def told_shortly(message: Reply | WatchNotification | ConnectionClosed) -> str:
    """A reply with only the name of its request; other messages in full."""
    if isinstance(message, Reply):
        return f"{told_name(message.asked)}: {_told_reply(message.code, message.reply)}"
    return told_answer(message)


def told_commit(waiting: Commit | SyncMarker) -> str:
    """The transaction or sync that a lagging server applies."""
    if isinstance(waiting, SyncMarker):
        return told_request(waiting.origin.asked)
    path = getattr(waiting.change.record, "path", None)
    return f"{told_name(waiting.change.record)}{f' {told_path(path)}' if path is not None else ''}"


def _told_reply(code: Code, reply: Any) -> str:
    if code is not Code.OK:
        return code.name
    match reply:
        case Create2Reply(path):
            return told_path(path)
        case ChildrenReply(children):
            return ", ".join(_told_child(child) for child in children) or "none"
        case DataReply(data) if data:
            return data.decode(errors="replace")
        case _:
            return "OK"


def _told_child(name: str) -> str:
    return _NUMBER.sub(r"\1", name.removeprefix(_PROTECTED))
