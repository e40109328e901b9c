"""The operations and messages of clients, resource and facts."""

from __future__ import annotations

import msgspec


class SendWrite(msgspec.Struct, frozen=True):
    """A client sends a write to the resource, with the token that it holds; its znode is at this path."""

    token: int
    path: str


class WriteArrives(msgspec.Struct, frozen=True):
    """The oldest write in flight reaches the resource."""


class Write(msgspec.Struct, frozen=True):
    """A write with this token; `of` is the czxid of the writer's znode if that was first when it wrote, otherwise 0."""

    token: int
    of: int


class HoldReport(msgspec.Struct, frozen=True):
    """The client with the znode at this path reports that it holds, or that it is first."""

    path: str


class FollowReport(msgspec.Struct, frozen=True):
    """A client follows the owner of the znode at this path as the leader."""

    path: str
