"""A difference of two answers, and the questions about it that tell its cause.

Rules of this module: a question is about the command and both answers, never about the wording of a message.

Source: `ZooDefs.OpCode`, `KeeperException.Code`.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from harness import commands as c
from harness.conform.protocol import DISCONNECTED, UNIMPLEMENTED, error_of
from harness.layouts import ERROR_RESULT
from harness.session import Answer

MARSHALLING, BAD_ARGUMENTS = -5, -8
SASL, QUOTA_EXCEEDED = 102, -125
OK, NO_NODE, NO_AUTH, INVALID_ACL, NO_WATCHER = 0, -101, -102, -114, -121


class Mismatch(NamedTuple):
    """A command and its two answers, with the events up to the barrier after it and the commands before it.

    `late` says that an answer of the tested server came only after the request of another session.
    """

    command: c.Command
    tested: Any
    expected: Any
    tested_events: tuple[Any, ...]
    expected_events: tuple[Any, ...]
    before: tuple[c.Command, ...] = ()
    late: bool = False


class CauseKind(Enum):
    """Why a server answers otherwise than the oracle."""

    RELEASE = "release"
    SETTING = "setting"
    MEANT = "meant difference of the oracle"
    SERVER = "server that is not ZooKeeper"
    SILENCE = "no answer in time"


class KnownCause(NamedTuple):
    """A cause. One of releases fits those from `since` that are before the release in `fixed` of their line.

    A line (3.8) that `fixed` does not name is affected if it is older than all lines there.
    """

    name: str
    kind: CauseKind
    source: str
    fits: Callable[[Mismatch], bool]
    harmless: bool = False
    since: str | None = None
    fixed: tuple[str, ...] = ()

    @property
    def explains(self) -> bool:
        """Whether a difference with this cause is no longer a finding."""
        return self.kind not in {CauseKind.SETTING, CauseKind.SILENCE}


def only_late(mismatch: Mismatch) -> bool:
    """Whether both sides answered alike, and the tested one only after the request of another session."""
    _, tested, expected, tested_events, expected_events, _, late = mismatch
    return late and (tested, tested_events) == (expected, expected_events)


def not_supported(mismatch: Mismatch) -> bool:
    """Whether the tested server refuses an opcode, or ends the connection, where the oracle answers."""
    return error_of(mismatch.tested) in {UNIMPLEMENTED, DISCONNECTED} and error_of(mismatch.expected) not in {
        UNIMPLEMENTED,
        DISCONNECTED,
    }


def parts_of(command: c.Command) -> tuple[c.Command, ...]:
    """The single operations of a command."""
    return command.parts if isinstance(command, c.Multi | c.MultiRead) else (command,)


def all_errors(outcome: object) -> set[object]:
    """The error of an outcome, and those of the single operations of a multi."""
    values = outcome.values if isinstance(outcome, Answer) else ()
    parts = (part[2][0] for part in values if isinstance(part, tuple) and part[:1] == (ERROR_RESULT,))
    return {error_of(outcome), *parts}


def errors(tested: int, expected: int, *kinds: type[c.Command]) -> Callable[[Mismatch], bool]:
    """Fits a command of these kinds whose two error codes are these."""

    def fits(mismatch: Mismatch) -> bool:
        codes = (error_of(mismatch.tested), error_of(mismatch.expected))
        return codes == (tested, expected) and isinstance(mismatch.command, kinds or c.Command)

    return fits


def raw(opcode: int, tested: object, expected: object) -> Callable[[Mismatch], bool]:
    """Fits a raw request with this opcode and these errors."""

    def fits(mismatch: Mismatch) -> bool:
        codes = (error_of(mismatch.tested), error_of(mismatch.expected))
        return isinstance(mismatch.command, c.Raw) and mismatch.command.opcode == opcode and codes == (tested, expected)

    return fits


def create2_as_create(mismatch: Mismatch) -> bool:
    """Fits a multi with create2 that both sides executed, with results of create on the tested side."""
    command, tested, expected = mismatch[:3]
    if not isinstance(command, c.Multi) or not (isinstance(tested, Answer) and isinstance(expected, Answer)):
        return False
    pairs = zip(tested.values, expected.values, strict=False)
    return tested.err == expected.err and any(
        isinstance(ours, tuple) and (ours[0], theirs[0]) == (c.CREATE, c.CREATE2) for ours, theirs in pairs
    )


def bad_mode_in_multi(mismatch: Mismatch) -> bool:
    """Fits a multi that the oracle cannot read, with results of single operations on the tested side."""
    modes = [part.flags for part in getattr(mismatch.command, "parts", ()) if isinstance(part, c.Create)]
    results = getattr(mismatch.tested, "values", ())
    return (
        error_of(mismatch.expected) == MARSHALLING and any(mode > c.TTL_SEQUENTIAL for mode in modes) and bool(results)
    )


def refused_ttl(mismatch: Mismatch) -> bool:
    """Fits an Unimplemented for a create with a TTL mode, alone or in a multi."""
    parts = parts_of(mismatch.command)
    has_ttl = any(isinstance(part, c.Create) and part.flags in {c.TTL, c.TTL_SEQUENTIAL} for part in parts)
    return has_ttl and UNIMPLEMENTED in all_errors(mismatch.tested)


def unchecked_permission(mismatch: Mismatch) -> bool:
    """Fits a permission that only the oracle refuses, and a digest that only the oracle hides."""
    tested, expected = mismatch.tested, mismatch.expected
    if error_of(tested) != OK:
        return False
    if isinstance(mismatch.command, c.GetAcl) and error_of(expected) == OK:
        hidden = {(perms, scheme, name.partition(":")[0] + ":x") for perms, scheme, name in tested.values[0]}
        return any(scheme == "digest" and (perms, scheme, name) in hidden for perms, scheme, name in expected.values[0])
    return NO_AUTH in all_errors(expected)


def modes_together(mismatch: Mismatch) -> bool:
    """Fits an event that is missing, after watches of two modes of one session at one path."""
    watches = [(command.who, command.path) for command in mismatch.before if isinstance(command, c.AddWatch)]
    one_shot = [
        (command.who, command.path)
        for command in mismatch.before
        if isinstance(command, c.Get | c.Exists | c.Children | c.Children2) and command.watch
    ]
    together = len(watches) != len(set(watches)) or bool(set(watches) & set(one_shot))
    return together and mismatch.tested == mismatch.expected and mismatch.tested_events != mismatch.expected_events


def masked_address(mismatch: Mismatch) -> bool:
    """Fits an InvalidACL for an entry of the scheme ip with a number of bits."""
    acls = [part.acl or () for part in parts_of(mismatch.command) if isinstance(part, c.Create | c.SetAcl)]
    masked = any(scheme == "ip" and "/" in name for acl in acls for _, scheme, name in acl)
    return masked and INVALID_ACL in all_errors(mismatch.tested)


def control_character(mismatch: Mismatch) -> bool:
    """Fits BadArguments of the oracle alone for a path with U+001F."""
    has_control = any(isinstance(part, c.Request) and "\x1f" in part.path for part in parts_of(mismatch.command))
    return has_control and BAD_ARGUMENTS in all_errors(mismatch.expected) - all_errors(mismatch.tested)


def events_without_read(mismatch: Mismatch) -> bool:
    """Fits events that only the tested side sends, after ACLs that may forbid to read."""
    acls = [command.acl for command in mismatch.before if isinstance(command, c.Create | c.SetAcl)]
    pairs = tuple(zip(mismatch.tested_events, mismatch.expected_events, strict=False))  # without an answer: no events
    same = mismatch.tested == mismatch.expected
    return same and any(acl != c.OPEN for acl in acls) and all(set(theirs) <= set(ours) for ours, theirs in pairs)


def told_without_read(mismatch: Mismatch) -> bool:
    """Fits events that only the tested side sends to a session that registers its watches again."""
    command = mismatch.command
    pairs = zip(mismatch.tested_events, mismatch.expected_events, strict=False)
    extra = [who for who, (ours, theirs) in enumerate(pairs) if ours != theirs]
    return isinstance(command, c.SetWatches) and extra == [command.who] and events_without_read(mismatch)
