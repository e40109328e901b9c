"""The known causes of differences: releases of ZooKeeper, settings of a server, and meant differences of the oracle.

Rules of this module:

- A cause fits by the command and by both answers, never by the wording of a message. A cause of a release fits only if
  the release of the tested server is known, by `srvr` or by `--release`.
- A release and a meant difference explain a difference; a setting names it, and it remains a difference.
- `harmless` means that no data differ afterwards, so the comparison goes on.

Source: the classes and issues named in each entry; docs/explanation-node.md, "Where it differs from ZooKeeper 3.8".
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from harness import commands as c
from harness.session import Answer

UNIMPLEMENTED, MARSHALLING, BAD_ARGUMENTS = -6, -5, -8
OK, NO_NODE, NO_AUTH, INVALID_ACL, NO_WATCHER = 0, -101, -102, -114, -121
DISCONNECTED = "disconnected"


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
    """A cause: it fits releases from `since` and before `until`, if it is one of releases."""

    name: str
    kind: CauseKind
    source: str
    fits: Callable[[Mismatch], bool]
    harmless: bool = False
    since: str | None = None
    until: str | None = None

    @property
    def explains(self) -> bool:
        """Whether a difference with this cause is no longer a finding."""
        return self.kind is not CauseKind.SETTING


class Opcode(NamedTuple):
    """An opcode of the protocol: its name, the first release that has it, and the issue that brought it."""

    name: str
    since: str = "3.4.0"
    issue: str = ""


OPCODES = {
    1: Opcode("create"),
    2: Opcode("delete"),
    3: Opcode("exists"),
    4: Opcode("getData"),
    5: Opcode("setData"),
    6: Opcode("getACL"),
    7: Opcode("setACL"),
    8: Opcode("getChildren"),
    9: Opcode("sync"),
    11: Opcode("ping"),
    12: Opcode("getChildren2"),
    14: Opcode("multi"),
    15: Opcode("create2", "3.5.0", "ZOOKEEPER-1297"),
    16: Opcode("reconfig", "3.5.0", "ZOOKEEPER-107"),
    17: Opcode("checkWatches", "3.5.0", "ZOOKEEPER-442"),
    18: Opcode("removeWatches", "3.5.0", "ZOOKEEPER-442"),
    19: Opcode("createContainer", "3.5.1", "ZOOKEEPER-2163"),
    21: Opcode("createTTL", "3.5.3", "ZOOKEEPER-2169"),
    22: Opcode("multiRead", "3.6.0", "ZOOKEEPER-3402"),
    100: Opcode("auth"),
    101: Opcode("setWatches"),
    102: Opcode("sasl"),
    103: Opcode("getEphemerals", "3.6.0", "ZOOKEEPER-3209"),
    104: Opcode("getAllChildrenNumber", "3.6.0", "ZOOKEEPER-3260"),
    105: Opcode("setWatches2", "3.6.0", "ZOOKEEPER-1416"),
    106: Opcode("addWatch", "3.6.0", "ZOOKEEPER-1416"),
    107: Opcode("whoAmI", "3.7.0", "ZOOKEEPER-3969"),
    -11: Opcode("closeSession"),
}
"""The opcodes of clients. `check` (13), `deleteContainer` (20) and `createSession` (-10) are not for clients."""


def opcode_of(command: c.Command) -> int | None:
    """The opcode of a command that is one request."""
    match command:
        case c.Create(by=opcode) | c.Request(opcode=opcode) | c.Raw(opcode=opcode):
            return opcode
        case c.Multi():
            return 14
        case c.MultiRead():
            return 22
        case c.SetWatches():
            return 105
        case c.AddAuth():
            return 100
        case c.WhoAmI():
            return 107
        case _:
            return None


def error_of(outcome: object) -> object:
    """The error code in an outcome; another outcome unchanged."""
    return outcome[0] if isinstance(outcome, tuple) else outcome


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
        "`WatchManager.containsWatcher`",
        _errors(OK, NO_WATCHER, c.CheckWatches),
        harmless=True,
        until="3.9.0",
    ),
    KnownCause(
        "exists needs no READ",
        CauseKind.RELEASE,
        "ZOOKEEPER-2590, `FinalRequestProcessor` (exists)",
        _errors(OK, NO_AUTH, c.Exists),
        harmless=True,
        until="3.8.3",
    ),
    KnownCause(
        "create2 in a multi is answered as create",
        CauseKind.RELEASE,
        "`FinalRequestProcessor` (multi)",
        _create2_as_create,
        harmless=True,
        until="3.9.0",
    ),
    KnownCause(
        "watches of several modes at one path replace each other",
        CauseKind.RELEASE,
        "ZOOKEEPER-4466, `WatchManager.addWatch`",
        _modes_together,
        until="3.9.0",
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
        "createTTL needs extendedTypesEnabled=true",
        CauseKind.SETTING,
        "`EphemeralType.validateServerId`, `EphemeralType.TTL`",
        lambda mismatch: (
            opcode_of(mismatch.command) == c.CREATE_TTL and error_of(mismatch.tested) in {UNIMPLEMENTED, DISCONNECTED}
        ),
    ),
    KnownCause(
        "permissions are not checked: skipACL=yes",
        CauseKind.SETTING,
        "`ZooKeeperServer.checkACL`",
        _errors(OK, NO_AUTH),
    ),
)


def cause_of(mismatch: Mismatch, release: str | None) -> KnownCause | None:
    """The known cause that fits a difference; None if there is none."""
    if release is not None and (cause := _newer_opcode(mismatch, release)) is not None:
        return cause
    for cause in CAUSES:
        if cause.fits(mismatch) and _of_release(cause, release):
            return cause
    return None


def _of_release(cause: KnownCause, release: str | None) -> bool:
    if cause.since is None and cause.until is None:
        return True
    if release is None:
        return False
    number = number_of(release)
    late_enough = cause.since is None or number >= number_of(cause.since)
    return late_enough and (cause.until is None or number < number_of(cause.until))


def _newer_opcode(mismatch: Mismatch, release: str) -> KnownCause | None:
    """The cause of a refusal whose opcode came after this release."""
    number = opcode_of(mismatch.command)
    known = OPCODES.get(number) if number is not None else None
    if known is None or number_of(known.since) <= number_of(release) or not not_supported(mismatch):
        return None
    return KnownCause(f"{known.name} came with {known.since}", CauseKind.RELEASE, known.issue, not_supported)
