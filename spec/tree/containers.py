"""The znodes that the leader deletes on its own initiative: containers left empty, and expired TTL znodes.

Rules of this module:

- Only a znode without children is deleted; the preparation of its deletion checks this again.
- A container that never had a child stays, unless the operator sets a time limit.

Source: `ContainerManager.getCandidates`.
"""

from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Protocol

from spec.tree.store import Store
from spec.tree.znode import Kind, Znode, kind_of, ttl_of


class Expiring(Store, Protocol):
    """A store that lists the znodes that may expire."""

    @property
    def containers(self) -> AbstractSet[str]:
        """The paths of the containers."""

    @property
    def ttls(self) -> AbstractSet[str]:
        """The paths of the TTL znodes."""


def to_delete(store: Expiring, now: int, never_used: int = 0) -> list[str]:
    """The paths of the containers and TTL znodes that are due for deletion at `now`, in milliseconds.

    `never_used` is the time that a container without any child so far is kept, in milliseconds; 0 means forever.
    """
    return [
        path
        for path in chain(store.containers, store.ttls)
        if (znode := store.node(path)) is not None
        and not store.children(path)
        and _has_had_its_time(znode, now - znode.mtime, never_used)
    ]


def _has_had_its_time(znode: Znode, age: int, never_used: int) -> bool:
    if kind_of(znode.ephemeral_owner) is Kind.CONTAINER:
        return znode.cversion > 0 or 0 < never_used < age
    return age > ttl_of(znode.ephemeral_owner)
