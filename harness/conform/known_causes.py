"""The known causes of differences: releases of ZooKeeper, settings of a server, and meant differences of the oracle.

Rules of this module:

- A cause fits by the command and by both answers, never by the wording of a message. A cause of a release fits only if
  the release of the tested server is known, by `srvr` or by `--release`.
- A release and a meant difference explain a difference; a setting names it, and it remains a difference.
- `harmless` means that the data are the same afterwards, so the comparison continues.

Source: the classes and issues named in each entry; docs/explanation-node.md, "Where it differs from ZooKeeper 3.8".
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from harness import commands as c
from harness.conform.protocol import DISCONNECTED, OPCODES, UNIMPLEMENTED, error_of, opcode_of
from harness.layouts import ERROR_RESULT
from harness.session import Answer

MARSHALLING, BAD_ARGUMENTS = -5, -8
SASL, QUOTA_EXCEEDED = 102, -125
OK, NO_NODE, NO_AUTH, INVALID_ACL, NO_WATCHER = 0, -101, -102, -114, -121


class CauseKind(Enum):
    """Why a server answers otherwise than the oracle."""

    RELEASE = "release"
    SETTING = "setting"
    MEANT = "meant difference of the oracle"


class Mismatch(NamedTuple):
    """A command and its two answers, with the events up to the barrier after it and the commands before it."""

    command: c.Command
    tested: Any
    expected: Any
    tested_events: tuple[Any, ...]
    expected_events: tuple[Any, ...]
    before: tuple[c.Command, ...] = ()


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
        return self.kind is not CauseKind.SETTING


def number_of(release: str) -> tuple[int, ...]:
    """A release as numbers, for comparisons."""
    return tuple(map(int, release.split(".")))


def not_supported(mismatch: Mismatch) -> bool:
    """Whether the tested server refuses an opcode, or ends the connection, where the oracle answers."""
    return error_of(mismatch.tested) in {UNIMPLEMENTED, DISCONNECTED} and error_of(mismatch.expected) not in {
        UNIMPLEMENTED,
        DISCONNECTED,
    }


def _errors(tested: int, expected: int, *kinds: type[c.Command]) -> Callable[[Mismatch], bool]:
    """Fits a command of these kinds whose two error codes are these."""

    def fits(mismatch: Mismatch) -> bool:
        codes = (error_of(mismatch.tested), error_of(mismatch.expected))
        return codes == (tested, expected) and isinstance(mismatch.command, kinds or c.Command)

    return fits


def _raw(opcode: int, tested: object, expected: object) -> Callable[[Mismatch], bool]:
    """Fits a raw request with this opcode and these errors."""

    def fits(mismatch: Mismatch) -> bool:
        codes = (error_of(mismatch.tested), error_of(mismatch.expected))
        return isinstance(mismatch.command, c.Raw) and mismatch.command.opcode == opcode and codes == (tested, expected)

    return fits


def _create2_as_create(mismatch: Mismatch) -> bool:
    """Fits a multi with create2 that both sides executed, with results of create on the tested side."""
    command, tested, expected = mismatch[:3]
    if not isinstance(command, c.Multi) or not (isinstance(tested, Answer) and isinstance(expected, Answer)):
        return False
    pairs = zip(tested.values, expected.values, strict=False)
    return tested.err == expected.err and any(
        isinstance(one, tuple) and (one[0], other[0]) == (c.CREATE, c.CREATE2) for one, other in pairs
    )


def _bad_mode_in_multi(mismatch: Mismatch) -> bool:
    """Fits a multi that the oracle cannot read, with results of single operations on the tested side."""
    modes = [part.flags for part in getattr(mismatch.command, "parts", ()) if isinstance(part, c.Create)]
    results = getattr(mismatch.tested, "values", ())
    return (
        error_of(mismatch.expected) == MARSHALLING and any(mode > c.TTL_SEQUENTIAL for mode in modes) and bool(results)
    )


def _refused_ttl(mismatch: Mismatch) -> bool:
    """Fits an Unimplemented for a create with a TTL mode, alone or in a multi."""
    parts = getattr(mismatch.command, "parts", (mismatch.command,))
    asked = any(isinstance(part, c.Create) and part.flags in {c.TTL, c.TTL_SEQUENTIAL} for part in parts)
    return asked and UNIMPLEMENTED in {error_of(mismatch.tested), *_part_errors(mismatch.tested)}


def _unchecked_permission(mismatch: Mismatch) -> bool:
    """Fits a permission that only the oracle refuses, and a digest that only the oracle hides."""
    tested, expected = mismatch.tested, mismatch.expected
    if error_of(tested) != OK:
        return False
    if isinstance(mismatch.command, c.GetAcl) and error_of(expected) == OK:
        hidden = {(perms, scheme, name.partition(":")[0] + ":x") for perms, scheme, name in tested.values[0]}
        return any(scheme == "digest" and (perms, scheme, name) in hidden for perms, scheme, name in expected.values[0])
    return NO_AUTH in {error_of(expected), *_part_errors(expected)}


def _part_errors(outcome: object) -> set[object]:
    """The errors of the single operations of a multi."""
    values = outcome.values if isinstance(outcome, Answer) else ()
    return {part[2][0] for part in values if isinstance(part, tuple) and part[:1] == (ERROR_RESULT,)}


def _modes_together(mismatch: Mismatch) -> bool:
    """Fits an event that is missing, after watches of two modes of one session at one path."""
    watches = [(each.who, each.path) for each in mismatch.before if isinstance(each, c.AddWatch)]
    one_shot = [
        (each.who, each.path)
        for each in mismatch.before
        if isinstance(each, c.Get | c.Exists | c.Children | c.Children2) and each.watch
    ]
    together = len(watches) != len(set(watches)) or bool(set(watches) & set(one_shot))
    return together and mismatch.tested == mismatch.expected and mismatch.tested_events != mismatch.expected_events


CAUSES: tuple[KnownCause, ...] = (
    KnownCause(
        "a check of watches counts those of other sessions",
        CauseKind.RELEASE,
        "since ZOOKEEPER-1416, until ZOOKEEPER-4471; `WatchManager.containsWatcher`",
        _errors(OK, NO_WATCHER, c.CheckWatches),
        harmless=True,
        since="3.6.0",
        fixed=("3.9.0",),
    ),
    KnownCause(
        "exists needs no READ",
        CauseKind.RELEASE,
        "ZOOKEEPER-2590, `FinalRequestProcessor` (exists)",
        _errors(OK, NO_AUTH, c.Exists),
        harmless=True,
        fixed=("3.8.4", "3.9.2"),
    ),
    KnownCause(
        "create2 in a multi is answered as create",
        CauseKind.RELEASE,
        "ZOOKEEPER-4026, `FinalRequestProcessor` (multi)",
        _create2_as_create,
        harmless=True,
        fixed=("3.7.2", "3.8.2", "3.9.0"),
    ),
    KnownCause(
        "a create in a multi with a mode that does not exist fails alone",
        CauseKind.RELEASE,
        "ZOOKEEPER-4026, `MultiOperationRecord.deserialize`",
        _bad_mode_in_multi,
        harmless=True,
        fixed=("3.7.2", "3.8.2", "3.9.0"),
    ),
    KnownCause(
        "the types of persistent watches do not exist",
        CauseKind.RELEASE,
        "ZOOKEEPER-4472, `Watcher.WatcherType.fromInt`",
        lambda mismatch: (
            isinstance(mismatch.command, c.CheckWatches | c.RemoveWatches)
            and mismatch.command.type in {4, 5}
            and error_of(mismatch.tested) == MARSHALLING
        ),
        fixed=("3.9.0",),
    ),
    KnownCause(
        "a null ACL is a MarshallingError",
        CauseKind.RELEASE,
        "`PrepRequestProcessor.removeDuplicates`",
        lambda mismatch: (
            isinstance(mismatch.command, c.Create | c.SetAcl)
            and mismatch.command.acl is None
            and _errors(MARSHALLING, INVALID_ACL)(mismatch)
        ),
        harmless=True,
        fixed=("3.6.0",),
    ),
    KnownCause(
        "watches of several modes at one path replace each other",
        CauseKind.RELEASE,
        "ZOOKEEPER-4466, `WatchManager.addWatch`",
        _modes_together,
        since="3.6.0",
        fixed=("3.9.0",),
    ),
    KnownCause(
        "the empty path is the root",
        CauseKind.MEANT,
        "`DataTree.getNode`; docs/explanation-node.md",
        _raw(3, OK, NO_NODE),
        harmless=True,
    ),
    KnownCause(
        "a negative number of ACL entries is an empty list",
        CauseKind.MEANT,
        "`BinaryInputArchive.startVector`; docs/explanation-node.md",
        _raw(1, INVALID_ACL, MARSHALLING),
        harmless=True,
    ),
    KnownCause(
        "TTL znodes need extendedTypesEnabled=true",
        CauseKind.SETTING,
        "`PrepRequestProcessor.validateCreateRequest`, `EphemeralType.extendedEphemeralTypesEnabled`",
        _refused_ttl,
    ),
    KnownCause(
        "exists needs no READ: skipACL=yes, or a release before 3.8.4 or 3.9.2",
        CauseKind.SETTING,
        "ZOOKEEPER-2590, `FinalRequestProcessor` (exists)",
        _errors(OK, NO_AUTH, c.Exists),
    ),
    KnownCause(
        "users of SASL are configured",
        CauseKind.SETTING,
        "`ZooKeeperServer.processSasl`, `ServerCnxnFactory.configureSaslLogin`",
        _raw(SASL, OK, OK),
    ),
    KnownCause(
        "hard limits of quotas are enforced on one side only: enforceQuota",
        CauseKind.SETTING,
        "`ZooKeeperServer.checkQuota`",
        lambda mismatch: (
            QUOTA_EXCEEDED in {error_of(mismatch.tested), error_of(mismatch.expected)}
            and any(isinstance(each, c.Limit) for each in mismatch.before)
        ),
    ),
    KnownCause(
        "permissions are not checked: skipACL=yes",
        CauseKind.SETTING,
        "`ZooKeeperServer.checkACL`",
        _unchecked_permission,
    ),
)


def cause_of(mismatch: Mismatch, release: str | None) -> KnownCause | None:
    """The known cause that fits a difference, or None."""
    if release is not None and (cause := _newer_opcode(mismatch, release)) is not None:
        return cause
    for cause in CAUSES:
        if cause.fits(mismatch) and _of_release(cause, release):
            return cause
    return None


def _of_release(cause: KnownCause, release: str | None) -> bool:
    if cause.kind is not CauseKind.RELEASE:
        return True
    if release is None:
        return False
    number = number_of(release)
    if cause.since is not None and number < number_of(cause.since):
        return False
    fixed = sorted(map(number_of, cause.fixed))
    of_line = next((each for each in fixed if each[:2] == number[:2]), fixed[0])
    return number < of_line


def _newer_opcode(mismatch: Mismatch, release: str) -> KnownCause | None:
    """The cause of a refusal whose opcode came after this release."""
    number = opcode_of(mismatch.command)
    known = OPCODES.get(number) if number is not None else None
    if known is None or number_of(known.since) <= number_of(release) or not not_supported(mismatch):
        return None
    return KnownCause(f"{known.name} came with {known.since}", CauseKind.RELEASE, known.issue, not_supported)
