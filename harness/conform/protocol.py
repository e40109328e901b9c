"""The opcodes of clients, each with the first release that has it, and what commands and outcomes say about them.

Source: `ZooDefs.OpCode`; the issues named in the table, with the versions that fixed them.
"""

from typing import NamedTuple

from harness import commands as c

UNIMPLEMENTED = -6
DISCONNECTED = "disconnected"
NO_ANSWER = "no answer"


class Opcode(NamedTuple):
    """An opcode of the protocol: its name, the first release that has it, and the issue that brought it."""

    name: str
    since: str = "3.4.0"
    issue: str = ""

    @property
    def came(self) -> str:
        """The name of the cause why an older release lacks it."""
        return f"{self.name} came with {self.since}"


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
        case c.SetWatches(by=opcode):
            return opcode
        case c.AddAuth():
            return 100
        case c.WhoAmI():
            return 107
        case _:
            return None


def error_of(outcome: object) -> object:
    """The error code in an outcome; another outcome unchanged."""
    return outcome[0] if isinstance(outcome, tuple) else outcome
