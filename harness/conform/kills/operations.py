"""The operations of one client under kills: which one comes next, its requests, and its record with the answer.

Rules of this module:

- Every value is written once, so that a read value identifies its write. Registers are created, set, deleted and read
  by all clients; a znode of the ledger is created once, by one client, and never changed.
- It opens no connection: the caller sends the requests, and decides what a missing answer means.

Source: `checker/histories/record.py` (what an operation must state), `KeeperException.Code`.
"""

import random
import time
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from checker.histories import Operation
from checker.histories.record import ANY_VERSION, Kind
from harness import commands as c
from harness.layouts import Stat
from harness.session import Answer

REGISTERS = 4
KINDS: Mapping[Kind, int] = {"create": 4, "set": 10, "delete": 1, "get": 6, "sync+get": 6}
"""The relative frequency of each kind."""
LEDGER_SHARE = 0.15
CONDITIONAL_SHARE = 0.15
ERRORS = {-101: "NoNode", -103: "BadVersion", -110: "NodeExists"}
DROPPED = frozenset({-4, -7})
"""ConnectionLoss and OperationTimeout: errors that leave the outcome of a request unknown."""


def registers(root: str) -> tuple[str, ...]:
    """The paths of the registers below the root of a run."""
    return tuple(f"{root}/register-{number}" for number in range(REGISTERS))


class OperationSource:
    """The operations of one client, drawn by `chance`; without creates among the `kinds` there is no ledger."""

    def __init__(self, client: str, root: str, chance: random.Random, kinds: Mapping[Kind, int] = KINDS) -> None:
        self._client, self._root, self._random, self._kinds = client, root, chance, kinds
        self._registers = registers(root)
        self._count = 0
        self._versions: dict[str, int] = {}

    def draw(self, session: int, server: int) -> Operation:
        """The next operation, invoked now by this session on this server."""
        kind: Kind = self._random.choices(list(self._kinds), list(self._kinds.values()))[0]
        key = self._random.choice(self._registers)
        if "create" in self._kinds and self._random.random() < LEDGER_SHARE:
            kind, key = "create", f"{self._root}/{self._client}-{self._count}"
        condition = ANY_VERSION
        if kind in {"set", "delete"} and self._random.random() < CONDITIONAL_SHARE:
            condition = self._versions.get(key, 0)
        value = f"{self._client}-{self._count}" if kind in {"create", "set"} else None
        self._count += 1
        return Operation(self._client, session, server, kind, key, time.monotonic(), value=value, condition=condition)

    def note(self, done: Operation) -> None:
        """Remember the version that an answer told: later conditions are about it."""
        if done.outcome == "ok":
            self._versions[done.key] = done.version


def requests_of(asked: Operation) -> tuple[tuple[Any, ...], ...]:
    """The requests of an operation, each as opcode and values; after an error the next one is not sent."""
    data = (asked.value or "").encode()
    match asked.kind:
        case "create":
            return ((c.CREATE2, asked.key, data, c.OPEN, c.PERSISTENT),)
        case "set":
            return ((c.Set.opcode, asked.key, data, asked.condition),)
        case "delete":
            return ((c.Delete.opcode, asked.key, asked.condition),)
        case "get":
            return ((c.Get.opcode, asked.key, False),)
        case "sync+get":
            return ((c.Sync.opcode, asked.key), (c.Get.opcode, asked.key, False))


def answered(asked: Operation, answer: Answer, now: float) -> Operation:
    """The operation with the answer to its last request."""
    if answer.err in DROPPED:
        return asked
    if answer.err:
        error = ERRORS.get(answer.err, f"error {answer.err}")
        return replace(asked, completed=now, outcome="failed", error=error, zxid=answer.zxid)
    stat = next((value for value in answer.values if isinstance(value, Stat)), None)
    return replace(
        asked,
        completed=now,
        outcome="ok",
        value=asked.value if asked.is_write else answer.values[0].decode(),
        zxid=answer.zxid,
        mzxid=0 if stat is None else stat.mzxid,
        version=0 if stat is None else stat.version,
    )
