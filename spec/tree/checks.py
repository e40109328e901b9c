"""What is checked of a request before a leader makes a transaction of it: each check passes, or refuses the request.

Rules this module keeps:

- A check that fails raises `RefusedError` with ZooKeeper's code, which `prepare` catches.
- Versions count as Java's int does.

Source: `PrepRequestProcessor.validatePath`, `getParentPathAndValidate`, `getRecordForPath`, `checkAndIncVersion`;
`ZooKeeperServer.checkACL`; `SessionTracker.checkSession`.
"""

import msgspec

from spec.tree.acl import permits
from spec.tree.data import Id, Perms
from spec.tree.options import Options
from spec.tree.paths import SPECIAL, fault_of
from spec.tree.replies import Code
from spec.tree.store import Store
from spec.tree.znode import Znode

_HIGHEST_INT = (1 << 31) - 1


class RefusedError(Exception):
    """A request is refused with this code; `reason` is for a log, where the code does not say it."""

    def __init__(self, code: Code, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


class Asker(msgspec.Struct, frozen=True, gc=False):
    """Who asks, what the tracker of sessions says of it, and what the operator allows."""

    session: int
    auth: tuple[Id, ...]
    checked: Code
    options: Options


def check_session(asker: Asker) -> None:
    """The session is open, and asks through the server that it belongs to."""
    if asker.checked is not Code.OK:
        raise RefusedError(asker.checked)


def check_path(path: str) -> None:
    """A znode may have this path."""
    if fault_of(path) is not None:
        raise RefusedError(Code.BAD_ARGUMENTS)


def check_deletable(path: str) -> None:
    """The path has a parent, and is none of ZooKeeper's own."""
    if "/" not in path or "\0" in path or path in SPECIAL:
        raise RefusedError(Code.BAD_ARGUMENTS)


def existing(view: Store, path: str) -> Znode:
    """The znode at a path, which must exist."""
    znode = view.node(path)
    if znode is None:
        raise RefusedError(Code.NO_NODE)
    return znode


def check_acl(znode: Znode, perms: Perms, asker: Asker) -> None:
    """Whoever asks may do this to the znode."""
    if not permits(znode.acl, perms, asker.auth, asker.options):
        raise RefusedError(Code.NO_AUTH)


def check_version(current: int, expected: int) -> int:
    """The version after the change; -1 expects any (`PrepRequestProcessor.checkAndIncVersion`)."""
    if expected not in (-1, current):
        raise RefusedError(Code.BAD_VERSION)
    return after(current)


def after(version: int) -> int:
    """The next version; like Java's int it goes round."""
    return version + 1 if version != _HIGHEST_INT else -_HIGHEST_INT - 1
