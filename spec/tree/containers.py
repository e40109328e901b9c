"""Which znodes the leader deletes by itself: containers that have been left, and TTL znodes whose time is over.

Rules this module keeps:

- Only a znode without children goes; whether it still has none is asked again when its deletion is prepared.
- A container that never had a child stays, unless the operator says for how long.

Source: `ContainerManager.getCandidates`.
"""

from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Protocol

from spec.tree.store import Store
from spec.tree.znode import Kind, Znode, kind_of, ttl_of


class Expiring(Store, Protocol):
    """A store that can say which of its znodes may go by themselves."""

    @property
    def containers(self) -> AbstractSet[str]:
        """The paths of the containers."""

    @property
    def ttls(self) -> AbstractSet[str]:
        """The paths of the TTL znodes."""


def to_delete(store: Expiring, now: int, never_used: int = 0) -> list[str]:
    """The paths of the containers and TTL znodes that are to be deleted at `now`, in milliseconds.

    `never_used` is how long a container that never had a child is kept, in milliseconds; 0 is for ever.
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
