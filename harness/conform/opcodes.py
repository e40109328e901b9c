"""The table of opcodes: one request with a valid body for each, and the server's treatment of it.

Rules of this module:

- The requests that no client may send (`check` alone, `deleteContainer`, `createSession`) are not sent: real servers
  execute them where they can, and some fail afterwards.
- An answer, also one with an error, means supported, unless the error is Unimplemented.

Source: `ZooDefs.OpCode`, `FinalRequestProcessor`, `PrepRequestProcessor.pRequest`.
"""

import struct
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from harness import commands as c
from harness.conform.cases.case import LONG, SECRET, node
from harness.conform.known_causes import OTHER_SERVERS, newer_opcode
from harness.conform.protocol import DISCONNECTED, NO_ANSWER, OPCODES, UNIMPLEMENTED, error_of
from harness.conform.servers import NOT_RUN
from harness.interpreter import Seen


class Support(Enum):
    """The ways in which a server treats an opcode."""

    SUPPORTED = "supported"
    UNIMPLEMENTED = "unimplemented"
    CLOSES = "closes the connection"
    SILENT = "no answer"


class OpcodeRow(NamedTuple):
    """A row of the table: the opcode, its name, and both sides."""

    opcode: int
    name: str
    tested: Support
    expected: Support
    cause: str | None = None

    @property
    def is_missing(self) -> bool:
        """Whether the tested side lacks the opcode, and the oracle has it."""
        return self.tested is not Support.SUPPORTED and self.expected is Support.SUPPORTED

    @property
    def is_finding(self) -> bool:
        """Whether the two sides differ without a cause in the release, or a meant difference of the oracle."""
        return self.tested is not self.expected and self.cause is None


PROBES: dict[int, c.Command] = {
    1: c.Create(0, "/b"),
    2: c.Delete(0, "/a"),
    3: c.Exists(0, "/a"),
    4: c.Get(0, "/a"),
    5: c.Set(0, "/a"),
    6: c.GetAcl(0, "/a"),
    7: c.SetAcl(0, "/a"),
    8: c.Children(0, "/a"),
    9: c.Sync(0, "/a"),
    11: c.Raw(0, 11),
    12: c.Children2(0, "/a"),
    14: c.Multi(0, (c.Set(0, "/a"),)),
    15: node("/b"),
    16: c.Raw(0, 16, b"\xff\xff\xff\xff" * 3 + struct.pack("!q", -1)),
    17: c.CheckWatches(0, "/a"),
    18: c.RemoveWatches(0, "/a"),
    19: c.Create(0, "/b", flags=c.CONTAINER, by=c.CREATE_CONTAINER),
    21: c.Create(0, "/b", flags=c.TTL, by=c.CREATE_TTL, ttl=LONG),
    22: c.MultiRead(0, (c.Get(0, "/a"),)),
    100: c.AddAuth(0, "digest", SECRET),
    101: c.SetWatches(0, by=101),
    102: c.Raw(0, 102, b"\0\0\0\0"),
    103: c.Ephemerals(0, "/a"),
    104: c.Count(0, "/a"),
    105: c.SetWatches(0),
    106: c.AddWatch(0, "/a"),
    107: c.WhoAmI(0),
    -11: c.Raw(0, -11),
}
UNKNOWN = (55, "(an opcode that does not exist)")


def probe(opcode: int) -> c.Script:
    """The script for an opcode; its last command is the probe."""
    return (c.Create(1, "/a"), PROBES.get(opcode) or c.Raw(0, opcode))


def rows() -> tuple[tuple[int, str], ...]:
    """The opcodes of the table with their names."""
    return (*((opcode, OPCODES[opcode].name) for opcode in PROBES), UNKNOWN)


def support(record: Sequence[Seen]) -> Support:
    """The support that the record of `probe` shows."""
    outcome = error_of(record[-1].outcome)
    if outcome == UNIMPLEMENTED:
        return Support.UNIMPLEMENTED
    if outcome == DISCONNECTED:
        return Support.CLOSES
    return Support.SILENT if outcome in {NO_ANSWER, NOT_RUN} else Support.SUPPORTED


def row(opcode: int, name: str, tested: Support, expected: Support, release: str | None) -> OpcodeRow:
    """A row of the table, with the known cause of a difference."""
    cause = None
    if tested is not expected and (kind := OTHER_SERVERS.get(release or "")):
        cause = kind.lacks_opcode
    elif tested is not expected and (newer := newer_opcode(opcode, release)) is not None:
        cause = f"came with {newer.since} ({newer.issue})"
    return OpcodeRow(opcode, name, tested, expected, cause)
