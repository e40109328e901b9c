"""The names of znodes in a queue: a protection id, a word, and the sequence number that the server adds.

Rules of this module:

- Order is by the number alone: what stands before it differs from client to client.
- A name without a number is no place in the queue, and is left out.

Source: Curator's `ProtectedUtils` (`_c_` + id + `-`), `LockInternals.getSortedChildren`.
"""

from collections.abc import Iterable

from spec.tree.paths import below

DIGITS = 10


def protected(id: str, word: str) -> str:
    """The name to create, before the server adds its number; without an id there is no protection."""
    return f"_c_{id}-{word}" if id else word


def of_id(names: Iterable[str], id: str) -> str | None:
    """The name that was created with this id."""
    return next((name for name in names if name.startswith(f"_c_{id}-")), None)


def number(name: str) -> int | None:
    """The sequence number that a name ends with; after 2147483647 ZooKeeper counts on from -2147483648."""
    digits = name[-DIGITS:]
    if not (digits.isascii() and digits.isdigit()):
        return None
    before = name[:-DIGITS]
    return -int(digits) if before.endswith("--") else int(digits)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """The names that are places in the queue, first come first."""
    numbered = sorted((found, name) for name in names if (found := number(name)) is not None)
    return tuple(name for _, name in numbered)


def paths(root: str, names: Iterable[str]) -> tuple[str, ...]:
    """The paths of the places in the queue, first come first."""
    return tuple(below(root, name) for name in in_order(names))
