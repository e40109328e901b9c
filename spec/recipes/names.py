"""The names of znodes in a queue: a protection id, a word, and the sequence number that the server appends.

Rules of this module:

- Only the number determines the order, because the part before the word differs between clients.
- A name without the word and a number after it is not a place in the queue and is left out.
- After 2147483647 ZooKeeper continues at -2147483648. The order is wrong there, as it is for every recipe.

Source: Curator's `ProtectedUtils` (`_c_` + id + `-`), `LockInternals.getSortedChildren`.
"""

import re
from collections.abc import Iterable

from spec.text import required_integer
from spec.tree.paths import below

_NUMBER = re.compile(r"-?[0-9]{9,10}").fullmatch


def protected(id: str, word: str) -> str:
    """The name to create, before the server appends its number; without an id the name is not protected."""
    return f"_c_{id}-{word}" if id else word


def of_id(names: Iterable[str], id: str) -> str | None:
    """The name that was created with this id."""
    return next((name for name in names if name.startswith(f"_c_{id}-")), None)


def number(name: str, word: str) -> int | None:
    """The sequence number after the last occurrence of the word (Curator's `fixForSorting`); None if there is none."""
    _, separator, digits = name.rpartition(word)
    return required_integer(digits) if separator and _NUMBER(digits) else None


def in_order(names: Iterable[str], word: str) -> tuple[str, ...]:
    """The names that are places in the queue, in the order of their numbers."""
    numbered = sorted((place, name) for name in names if (place := number(name, word)) is not None)
    return tuple(name for _, name in numbered)


def paths(root: str, names: Iterable[str], word: str) -> tuple[str, ...]:
    """The paths of the places in the queue, in the order of their numbers."""
    return tuple(below(root, name) for name in in_order(names, word))
