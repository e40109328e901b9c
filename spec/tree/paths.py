"""Paths of znodes: their validity, their parents, and the names of sequential znodes.

Rules of this module:

- A path is absolute, its names are separated by single slashes, and no name is empty, `.` or `..`.
- Characters are checked by their UTF-16 units, as in ZooKeeper: one outside the basic plane is two surrogates, and
  surrogates are not allowed.
- A sequential name ends in the number with at least ten characters; a negative number has its sign before the digits.

Source: `PathUtils.validatePath`; `PrepRequestProcessor.pRequest2TxnCreate`.
"""

import re

ROOT = "/"
CONFIG = "/zookeeper/config"
SPECIAL = frozenset({ROOT, "/zookeeper", "/zookeeper/quota", CONFIG})
"""The paths that no client may delete (`DataTree.isSpecialPath`)."""

_PLAIN = re.compile(r"(?:/[A-Za-z0-9_-]+)+").fullmatch
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]"  # characters that no name may contain
    "|//"  # an empty name
    r"|/\.\.?(?=/|$)",  # a relative one
).search


def fault_of(path: str) -> str | None:
    """The fault of a path, or None if it is valid (`PathUtils.validatePath`)."""
    if _PLAIN(path) or path == ROOT:
        return None
    if not path.startswith("/"):
        return f"{path!r}: a path starts with /"
    if path.endswith("/"):
        return f"{path!r}: a path does not end with /"
    fault = _FORBIDDEN(path)
    return None if fault is None else f"{path!r}: {fault[0]!r} is not allowed, at {fault.start()}"


def is_below_root(path: str) -> bool:
    """Whether a path of a file or a leader can be that of a znode below the root: no path but the root ends with /."""
    return path[:1] == ROOT and path[-1:] != ROOT


def parent_of(path: str) -> str:
    """The path of the parent; the root is its own parent."""
    return path[: path.rfind("/")] or ROOT


def name_of(path: str) -> str:
    """The last name of a path."""
    return path[path.rfind("/") + 1 :]


def below(path: str, name: str) -> str:
    """The path of the child with this name."""
    return ROOT + name if path == ROOT else f"{path}/{name}"


def sequential(path: str, number: int) -> str:
    """The path with a number after it, as sequential znodes are named."""
    return f"{path}{number:010d}"
