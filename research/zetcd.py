"""`python -m research.zetcd ADDRESS ...`: the command `conform` for zetcd 0.0.5, with the causes of its differences.

zetcd is a proxy that speaks ZooKeeper's protocol and keeps its data in etcd 3. It answers no four-letter word, so the
command names it as the release.

Source: `zketcd.go`, `encode.go`, `path.go`, `watches.go` and `session.go` of github.com/etcd-io/zetcd at v0.0.5, which
says itself that ACLs and authentication are not there.
"""

import sys
from collections.abc import Callable

from harness import commands as c
from harness.__main__ import main
from harness.conform.known_causes import OTHER_SERVERS, OtherServer
from harness.conform.mismatch import (
    INVALID_ACL,
    NO_AUTH,
    NO_NODE,
    OK,
    CauseKind,
    KnownCause,
    Mismatch,
    all_errors,
    parts_of,
)
from harness.conform.protocol import DISCONNECTED, NO_ANSWER, error_of, opcode_of
from harness.layouts import Stat
from harness.session import Answer

NAME = "zetcd-0.0.5"
OPCODES = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 100, 101, -11})
"""The opcodes that `op2req` knows, without the parts of a multi."""
API_ERROR, NO_CHILDREN_FOR_EPHEMERALS, CHECK = -100, -108, 13


def _ended(mismatch: Mismatch) -> bool:
    """Whether the server ended the connection, or itself."""
    return error_of(mismatch.tested) in {DISCONNECTED, NO_ANSWER}


def _opcode(mismatch: Mismatch) -> bool:
    numbers = {opcode_of(part) for part in (mismatch.command, *parts_of(mismatch.command))}
    return mismatch.tested == DISCONNECTED and not numbers <= OPCODES | {CHECK, None}


def _flags(mismatch: Mismatch) -> bool:
    modes = [part.flags for part in parts_of(mismatch.command) if isinstance(part, c.Create)]
    return _ended(mismatch) and any(mode > c.EPHEMERAL_SEQUENTIAL for mode in modes)


def _length(mismatch: Mismatch) -> bool:
    null = isinstance(mismatch.command, c.Create | c.SetAcl) and mismatch.command.acl is None
    return _ended(mismatch) and (null or isinstance(mismatch.command, c.Raw))


def _null_data(mismatch: Mismatch) -> bool:
    tested, expected = mismatch.tested, mismatch.expected
    is_read = isinstance(tested, Answer) and isinstance(expected, Answer) and isinstance(mismatch.command, c.Get)
    return is_read and tested.values[:1] == (None,) and (b"", *tested.values[1:]) == expected.values


def _without_results(mismatch: Mismatch) -> bool:
    return isinstance(mismatch.command, c.Multi) and error_of(mismatch.tested) == API_ERROR


def _unchecked(mismatch: Mismatch) -> bool:
    return error_of(mismatch.tested) == OK and bool({NO_AUTH, INVALID_ACL} & all_errors(mismatch.expected))


def _path(mismatch: Mismatch) -> bool:
    is_invalid = isinstance(mismatch.command, c.Request) and _is_invalid(mismatch.command.path)
    return is_invalid and error_of(mismatch.tested) in {INVALID_ACL, NO_NODE}


def _is_invalid(path: str) -> bool:
    return any(mark in "\0\x1f\uf8ff\ufff0" for mark in path) or any(
        mark in f"{path}/" for mark in ("//", "/./", "/../")
    )


def _counts(mismatch: Mismatch) -> bool:
    earlier = any(isinstance(command, c.Multi) for command in mismatch.before)
    return earlier and _without_count(mismatch.tested) == _without_count(mismatch.expected)


def _without_count(outcome: object) -> object:
    """An outcome without the number of changes of children in its Stat."""
    if not isinstance(outcome, Answer):
        return outcome
    values = tuple(value._replace(cversion=0) if isinstance(value, Stat) else value for value in outcome.values)
    return outcome._replace(values=values)


def _events(mismatch: Mismatch) -> bool:
    same = error_of(mismatch.tested) == error_of(mismatch.expected)
    return same and mismatch.tested_events != mismatch.expected_events


def _of(error: int, *kinds: type[c.Command]) -> Callable[[Mismatch], bool]:
    def fits(mismatch: Mismatch) -> bool:
        return isinstance(mismatch.command, kinds) and error_of(mismatch.tested) == error

    return fits


def _cause(name: str, source: str, fits: Callable[[Mismatch], bool], harmless: bool = False) -> KnownCause:
    return KnownCause(name, CauseKind.SERVER, source, fits, harmless)


CAUSES = (
    _cause("an opcode that it does not know ends the connection", "`readReqOp`", _opcode),
    _cause("a mode that it does not know stops the server", "`mkCreateTxnOp` (panic)", _flags),
    _cause("a length that is negative or too long stops the server", "`decodePacketValue` (panic)", _length),
    _cause("empty data is null", "`decodePacketValue`, `GetData`", _null_data, harmless=True),
    _cause(
        "getACL, setACL and auth are refused", "`DispatchZK` (api error)", _of(API_ERROR, c.GetAcl, c.SetAcl, c.AddAuth)
    ),
    _cause("permissions and ACLs are not checked", "`mkCreateTxnOp`, `GetData`", _unchecked),
    _cause("an invalid path is an InvalidACL, or not noticed", "`mkCreateTxnOp`, `validatePath`", _path),
    _cause(
        "ephemeral znodes may have children",
        "`mkCreateTxnOp`",
        lambda m: error_of(m.expected) == NO_CHILDREN_FOR_EPHEMERALS,
    ),
    _cause("there is no znode for quotas", "`zketcd.go` (nothing is counted)", _of(NO_NODE, c.Limit)),
    _cause("a multi that fails has no results", "`Multi` (api error)", _without_results),
    _cause("a parent counts one change in each multi", "`mkCreateTxnOp` (the version of a key in etcd)", _counts),
    _cause("a sync of a znode that does not exist fails", "`Sync`", _of(NO_NODE, c.Sync)),
    _cause(
        "a session whose connections come and go does not expire soon",
        "`session.go` (a lease of etcd)",
        lambda mismatch: isinstance(mismatch.command, c.Expire) and mismatch.tested == NO_ANSWER,
    ),
    _cause("one watch of each kind at a path, and missed events are not told", "`Watch`, `SetWatches`", _events),
)
OTHER_SERVERS[NAME] = OtherServer(CAUSES, "`readReqOp` of zetcd knows no such opcode")


if __name__ == "__main__":
    sys.exit(main(["conform", *sys.argv[1:], "--release", NAME]))
