"""Requests, answers and notices in a few words, for captions and pictures.

Rules of this module: a path is told by its last name, and a sequence number without its leading zeros.
"""

from __future__ import annotations

import re
from typing import Any

from checker.models.service import Broken, Notice, Reply
from spec.tree.apply import EventType
from spec.tree.fields import Record
from spec.tree.paths import name_of
from spec.tree.replies import ChildrenReply, Code, Create2Reply, DataReply

_EVENTS = {
    EventType.NODE_CREATED: "created",
    EventType.NODE_DELETED: "deleted",
    EventType.NODE_DATA_CHANGED: "changed",
    EventType.NODE_CHILDREN_CHANGED: "children changed",
}


_NUMBER = re.compile(r"0{1,9}(\d+)$")


def told_path(path: str) -> str:
    """A path: its last name, with a short number."""
    return _NUMBER.sub(r"\1", name_of(path))


def told_request(record: Record) -> str:
    """A request: its name, the last name of its path, and whether it sets a watch."""
    word = type(record).__name__.removesuffix("2")
    path = getattr(record, "path", None)
    watch = " and watch" if getattr(record, "watch", False) else ""
    return f"{word[0].lower()}{word[1:]}{f' {told_path(path)}' if path is not None else ''}{watch}"


def told_answer(message: Reply | Notice | Broken) -> str:
    """An answer, or a notice."""
    match message:
        case Notice(type_, path):
            return f"{told_path(path)} {_EVENTS[type_]}"
        case Reply(asked, code, reply):
            return f"{told_request(asked)}: {_told_reply(code, reply)}"
        case Broken():
            return "the connection is closed"


def _told_reply(code: Code, reply: Any) -> str:
    if code is not Code.OK:
        return code.name
    match reply:
        case Create2Reply(path):
            return told_path(path)
        case ChildrenReply(children):
            return ", ".join(map(told_path, children)) or "none"
        case DataReply(data) if data:
            return data.decode(errors="replace")
        case _:
            return "OK"
