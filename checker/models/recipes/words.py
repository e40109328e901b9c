"""What clients, resource and facts say to one another."""

from __future__ import annotations

import msgspec


class Post(msgspec.Struct, frozen=True):
    """A client sends a write to the resource, with the token that it holds; its znode is at this path."""

    token: int
    path: str


class Reach(msgspec.Struct, frozen=True):
    """The write on its way reaches the resource."""


class Write(msgspec.Struct, frozen=True):
    """A write with this token; `of` is the czxid of the writer's znode if that was first when it wrote, else 0."""

    token: int
    of: int


class Led(msgspec.Struct, frozen=True):
    """The client with the znode at this path has come to hold."""

    path: str


class Follow(msgspec.Struct, frozen=True):
    """A client has been told that the owner of this znode leads."""

    path: str
