"""The checks of a request before the leader makes a transaction of it: each check passes, or refuses the request.

Rules of this module:

- A failed check raises `RefusedError` with ZooKeeper's code; `prepare` catches it.
- Versions wrap around like Java's int.

Source: `PrepRequestProcessor.validatePath`, `getParentPathAndValidate`, `getRecordForPath`, `checkAndIncVersion`;
`ZooKeeperServer.checkACL`; `SessionTracker.checkSession`.
"""

import msgspec

from spec.tree.accounting import exceeds
from spec.tree.acl import permits
from spec.tree.data import Id, Perms, Znode
from spec.tree.options import Options
from spec.tree.paths import SPECIAL, fault_of
from spec.tree.replies import Code
from spec.tree.store import Store

_HIGHEST_INT = (1 << 31) - 1


class RefusedError(Exception):
    """The refusal of a request with this code. `reason` is for a log, where the code alone is not clear."""

    def __init__(self, code: Code, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


class Asker(msgspec.Struct, frozen=True, gc=False):
    """The client of a request: its session and identities, the session tracker's verdict, the operator's options.

    `before` is the tree before the request, also for the later operations of a multi.
    """

    session: int
    auth: tuple[Id, ...]
    checked: Code
    options: Options
    before: Store


def check_session(asker: Asker) -> None:
    """Require that the session is open and that its request arrives through the server that owns it."""
    if asker.checked is not Code.OK:
        raise RefusedError(asker.checked)


def check_path(path: str) -> None:
    """Require that the path is valid for a znode."""
    if fault_of(path) is not None:
        raise RefusedError(Code.BAD_ARGUMENTS)


def check_deletable(path: str) -> None:
    """Require that the path has a parent and is not one of ZooKeeper's own."""
    if "/" not in path or "\0" in path or path in SPECIAL:
        raise RefusedError(Code.BAD_ARGUMENTS)


def existing(view: Store, path: str) -> Znode:
    """Return the znode at a path; refuse with NO_NODE if it does not exist."""
    znode = view.node(path)
    if znode is None:
        raise RefusedError(Code.NO_NODE)
    return znode


def check_acl(znode: Znode, perms: Perms, asker: Asker) -> None:
    """Require that the client has one of these permissions on the znode."""
    if not permits(znode.acl, perms, asker.auth, asker.options):
        raise RefusedError(Code.NO_AUTH)


def check_version(current: int, expected: int) -> int:
    """Return the version after the change; an expected -1 matches any (`PrepRequestProcessor.checkAndIncVersion`)."""
    if expected not in (-1, current):
        raise RefusedError(Code.BAD_VERSION)
    return after(current)


def check_quota(asker: Asker, path: str, count: int, size: int) -> None:
    """Require that a change by a number of znodes and bytes exceeds no hard limit (`ZooKeeperServer.checkQuota`)."""
    if asker.options.enforce_quota and exceeds(asker.before, path, count, size):
        raise RefusedError(Code.QUOTA_EXCEEDED)


def after(version: int) -> int:
    """The next version; it wraps around like Java's int."""
    return version + 1 if version != _HIGHEST_INT else -_HIGHEST_INT - 1
