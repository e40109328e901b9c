"""The known causes of differences: releases of ZooKeeper, settings of a server, and meant differences of the oracle.

Rules of this module:

- A cause fits by the command and by both answers, never by the wording of a message. A cause of a release fits only if
  the release of the tested server is known, by `srvr` or by `--release`.
- A release and a meant difference explain a difference; a setting names it, and it remains a difference. So does a
  missing answer that came after all, if the release does not explain it.
- `harmless` means that the data are the same afterwards, so the comparison continues.

Source: the classes and issues named in each entry; docs/explanation-node.md, "Where it differs from ZooKeeper 3.8".
"""

from dataclasses import dataclass

from harness import commands as c
from harness.conform.mismatch import (
    INVALID_ACL,
    MARSHALLING,
    NO_AUTH,
    NO_NODE,
    NO_WATCHER,
    OK,
    QUOTA_EXCEEDED,
    SASL,
    CauseKind,
    KnownCause,
    Mismatch,
    bad_mode_in_multi,
    control_character,
    create2_as_create,
    errors,
    events_without_read,
    masked_address,
    modes_together,
    not_supported,
    only_late,
    raw,
    refused_ttl,
    told_without_read,
    unchecked_permission,
)
from harness.conform.protocol import DISCONNECTED, NO_ANSWER, OPCODES, Opcode, error_of, opcode_of
from spec.text import required_integer


def number_of(release: str) -> tuple[int, ...]:
    """A release as numbers, for comparisons."""
    return tuple(map(required_integer, release.split(".")))


SILENT_ONCE = KnownCause(
    "the server did not answer once",
    CauseKind.SILENCE,
    "it answered when it had another request, or when all was repeated",
    only_late,
    harmless=True,
)
CAUSES: tuple[KnownCause, ...] = (
    KnownCause(
        "an answer waits until the server has another request",
        CauseKind.RELEASE,
        "since ZOOKEEPER-2024, until ZOOKEEPER-4537; `CommitProcessor.run`",
        only_late,
        harmless=True,
        since="3.6.0",
        fixed=("3.6.4", "3.7.2", "3.8.1", "3.9.0"),
    ),
    SILENT_ONCE,
    KnownCause(
        "a check of watches counts those of other sessions",
        CauseKind.RELEASE,
        "since ZOOKEEPER-1416, until ZOOKEEPER-4471; `WatchManager.containsWatcher`",
        errors(OK, NO_WATCHER, c.CheckWatches),
        harmless=True,
        since="3.6.0",
        fixed=("3.9.0",),
    ),
    KnownCause(
        "exists needs no READ",
        CauseKind.RELEASE,
        "ZOOKEEPER-2590, `FinalRequestProcessor` (exists)",
        errors(OK, NO_AUTH, c.Exists),
        harmless=True,
        fixed=("3.8.4", "3.9.2"),
    ),
    KnownCause(
        "create2 in a multi is answered as create",
        CauseKind.RELEASE,
        "ZOOKEEPER-4026, `FinalRequestProcessor` (multi)",
        create2_as_create,
        harmless=True,
        fixed=("3.7.2", "3.8.2", "3.9.0"),
    ),
    KnownCause(
        "a create in a multi with a mode that does not exist fails alone",
        CauseKind.RELEASE,
        "ZOOKEEPER-4026, `MultiOperationRecord.deserialize`",
        bad_mode_in_multi,
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
            and errors(MARSHALLING, INVALID_ACL)(mismatch)
        ),
        harmless=True,
        fixed=("3.6.0",),
    ),
    KnownCause(
        "an address with a number of bits is no id of the scheme ip",
        CauseKind.RELEASE,
        "ZOOKEEPER-1673, `IPAuthenticationProvider.isValid`",
        masked_address,
        fixed=("3.5.0",),
    ),
    KnownCause(
        "U+001F is valid in a path",
        CauseKind.RELEASE,
        "ZOOKEEPER-1628, `PathUtils.validatePath`",
        control_character,
        fixed=("3.5.0",),
    ),
    KnownCause(
        "a session that renews itself with a shorter timeout keeps its old expiry",
        CauseKind.RELEASE,
        "`SessionTrackerImpl.touchSession`; `ExpiryQueue` since 3.5.0",
        lambda mismatch: isinstance(mismatch.command, c.Expire) and mismatch.tested == NO_ANSWER,
        fixed=("3.5.0",),
    ),
    KnownCause(
        "a request that fails in an unexpected way has no answer, and its connection stays",
        CauseKind.RELEASE,
        "`NIOServerCnxnFactory.run` (the exception is ignored); `SelectorThread` since 3.5.0",
        raw(SASL, NO_ANSWER, DISCONNECTED),
        fixed=("3.5.0",),
    ),
    KnownCause(
        "a watch tells a session without READ",
        CauseKind.RELEASE,
        "CVE-2024-23944, `NIOServerCnxn.process`",
        lambda mismatch: not isinstance(mismatch.command, c.SetWatches) and events_without_read(mismatch),
        harmless=True,
        fixed=("3.8.4", "3.9.2"),
    ),
    KnownCause(
        "watches of several modes at one path replace each other",
        CauseKind.RELEASE,
        "ZOOKEEPER-4466, `WatchManager.addWatch`",
        modes_together,
        since="3.6.0",
        fixed=("3.9.0",),
    ),
    KnownCause(
        "the empty path is the root",
        CauseKind.MEANT,
        "`DataTree.getNode`; docs/explanation-node.md",
        raw(3, OK, NO_NODE),
        harmless=True,
    ),
    KnownCause(
        "a negative number of ACL entries is an empty list",
        CauseKind.MEANT,
        "`BinaryInputArchive.startVector`; docs/explanation-node.md",
        raw(1, INVALID_ACL, MARSHALLING),
        harmless=True,
    ),
    KnownCause(
        "setWatches tells a session without READ what it missed",
        CauseKind.MEANT,
        "`DataTree.setWatches`, `NIOServerCnxn.process`; docs/explanation-node.md",
        told_without_read,
        harmless=True,
    ),
    KnownCause(
        "TTL znodes need extendedTypesEnabled=true",
        CauseKind.SETTING,
        "`PrepRequestProcessor.validateCreateRequest`, `EphemeralType.extendedEphemeralTypesEnabled`",
        refused_ttl,
    ),
    KnownCause(
        "exists needs no READ: skipACL=yes, or a release before 3.8.4 or 3.9.2",
        CauseKind.SETTING,
        "ZOOKEEPER-2590, `FinalRequestProcessor` (exists)",
        errors(OK, NO_AUTH, c.Exists),
    ),
    KnownCause(
        "users of SASL are configured",
        CauseKind.SETTING,
        "`ZooKeeperServer.processSasl`, `ServerCnxnFactory.configureSaslLogin`",
        raw(SASL, OK, OK),
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
        unchecked_permission,
    ),
)


@dataclass(frozen=True)
class OtherServer:
    """A server that is not ZooKeeper: its causes, and the reason why it lacks an opcode."""

    causes: tuple[KnownCause, ...]
    lacks_opcode: str


OTHER_SERVERS: dict[str, OtherServer] = {}
"""By the name that `--release` gives; a program that measures such a server adds it, such as `research.zetcd`."""


def newer_opcode(number: int | None, release: str | None) -> Opcode | None:
    """The opcode with this number if it came after a release; None also if the release is unknown."""
    opcode = None if number is None else OPCODES.get(number)
    if opcode is None or release is None or release in OTHER_SERVERS:
        return None
    return opcode if number_of(opcode.since) > number_of(release) else None


def cause_of(mismatch: Mismatch, release: str | None) -> KnownCause | None:
    """The known cause that fits a difference, or None."""
    if kind := OTHER_SERVERS.get(release or ""):
        return next((cause for cause in (SILENT_ONCE, *kind.causes) if cause.fits(mismatch)), None)
    if (cause := _of_newer_opcode(mismatch, release)) is not None:
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
    of_line = next((number_fixed for number_fixed in fixed if number_fixed[:2] == number[:2]), fixed[0])
    return number < of_line


def _of_newer_opcode(mismatch: Mismatch, release: str | None) -> KnownCause | None:
    """The cause of a refusal of an opcode that came after this release, alone or in a multi."""
    if not_supported(mismatch):
        numbers = [opcode_of(mismatch.command)]
    elif isinstance(mismatch.command, c.Multi) and error_of(mismatch.tested) == MARSHALLING:
        numbers = [opcode_of(part) for part in mismatch.command.parts]
    else:
        return None
    newer = next((opcode for number in numbers if (opcode := newer_opcode(number, release)) is not None), None)
    if newer is None:
        return None
    return KnownCause(newer.came, CauseKind.RELEASE, newer.issue, not_supported)
