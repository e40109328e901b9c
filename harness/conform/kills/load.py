"""The clients of a run under kills: each writes and reads a few znodes, and records every operation.

Rules of this module:

- Every value is written once, so that a read value identifies its write. A znode of the ledger is created once.
- A client has one request in flight and retries nothing. It moves its session when a connection ends, and sometimes
  without need. A request without an answer is recorded as such, since it may take effect later.
- A server without create2 is asked to set and to read only: the answer to a create has no Stat there.

Source: `checker/histories/record.py` (what an operation must state), `KeeperException.Code`.
"""

import random
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from checker.histories import Operation
from checker.histories.record import ANY_VERSION, Kind
from harness import commands as c
from harness.layouts import Stat
from harness.processes import Place, ServerError
from harness.session import Answer, Session

FAILURES = (OSError, ServerError, ValueError, struct.error)
"""What a client meets while servers are killed."""
TIMEOUT = 10_000
PATIENCE = 3.0
"""Seconds until a client stops waiting for an answer."""
PAUSE = 0.005
RETRY = 0.1
REGISTERS = 4
KINDS: Mapping[Kind, int] = {"create": 4, "set": 10, "delete": 1, "get": 6, "sync+get": 6}
OLD_KINDS: Mapping[Kind, int] = {"set": 10, "get": 6, "sync+get": 6}
"""The relative frequency of each kind, and that at a server without create2."""
LEDGER_SHARE, MOVE_SHARE, CONDITIONAL_SHARE = 0.15, 0.02, 0.15
ERRORS = {-101: "NoNode", -103: "BadVersion", -110: "NodeExists"}
DROPPED = frozenset({-4, -7})
"""ConnectionLoss and OperationTimeout: errors that leave the outcome of a request unknown."""
SESSION_ENDED = -112


class LoadClient(threading.Thread):
    """One client in its thread; `recorded` are its operations, `acknowledged` the number of its writes so far."""

    def __init__(self, number: int, places: Sequence[Place], root: str, seed: int, creates: bool) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.recorded: list[Operation] = []
        self.acknowledged = 0
        self._random = random.Random(f"{seed}/{number}")
        self._places, self._root = tuple(places), root
        self._kinds = KINDS if creates else OLD_KINDS
        self._creates = creates
        self._session = Session(TIMEOUT, PATIENCE)
        self._server = self._count = 0
        self._versions: dict[str, int] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        """Work until `stop`; then close the session."""
        while not self._ended.is_set():
            if not self._session.connected or self._random.random() < MOVE_SHARE:
                self._move()
            else:
                self._operate()
                self._ended.wait(PAUSE)
        with suppress(*FAILURES):
            self._session.close()
        self._session.drop()

    def stop(self) -> None:
        """End the work after the operation in progress."""
        self._ended.set()

    def _move(self) -> None:
        self._server = self._random.randrange(len(self._places)) + 1
        try:
            if self._session.connect(self._places[self._server - 1]) == 0:
                self._session = Session(TIMEOUT, PATIENCE)  # it has expired
        except FAILURES:
            self._session.drop()
            self._ended.wait(RETRY)

    def _operate(self) -> None:
        asked = self._chosen()
        self._count += 1
        try:
            answer = self._ask(asked)
        except FAILURES:
            self._session.drop()
            if asked.is_write:
                self.recorded.append(asked)
            return
        if answer.err == SESSION_ENDED:
            self._session.drop()
            self._session = Session(TIMEOUT, PATIENCE)
        done = _answered(asked, answer, time.monotonic())
        self.acknowledged += done.acknowledged
        if done.is_write or done.outcome != "unknown":
            self.recorded.append(done)
        if done.outcome == "ok":
            self._versions[done.key] = done.version

    def _chosen(self) -> Operation:
        kind: Kind = self._random.choices(list(self._kinds), list(self._kinds.values()))[0]
        key = f"{self._root}/register-{self._random.randrange(REGISTERS)}"
        if self._creates and self._random.random() < LEDGER_SHARE:
            kind, key = "create", f"{self._root}/{self.name}-{self._count}"
        condition = ANY_VERSION
        if kind in {"set", "delete"} and self._random.random() < CONDITIONAL_SHARE:
            condition = self._versions.get(key, 0)
        value = f"{self.name}-{self._count}" if kind in {"create", "set"} else None
        return Operation(
            self.name,
            self._session.session_id,
            self._server,
            kind,
            key,
            time.monotonic(),
            value=value,
            condition=condition,
        )

    def _ask(self, asked: Operation) -> Answer:
        session, data = self._session, (asked.value or "").encode()
        match asked.kind:
            case "create":
                return session.ask(c.CREATE2, asked.key, data, c.OPEN, c.PERSISTENT)
            case "set":
                return session.ask(c.Set.opcode, asked.key, data, asked.condition)
            case "delete":
                return session.ask(c.Delete.opcode, asked.key, asked.condition)
            case "sync+get":
                synced = session.ask(c.Sync.opcode, asked.key)
                if synced.err:
                    return synced
        return session.ask(c.Get.opcode, asked.key, False)


def _answered(asked: Operation, answer: Answer, now: float) -> Operation:
    """The operation with its answer."""
    if answer.err in DROPPED:
        return asked
    if answer.err:
        error = ERRORS.get(answer.err, f"error {answer.err}")
        return replace(asked, completed=now, outcome="failed", error=error, zxid=max(answer.zxid, 0))
    stat = next((value for value in answer.values if isinstance(value, Stat)), None)
    value = asked.value if asked.is_write else answer.values[0].decode()
    return replace(
        asked,
        completed=now,
        outcome="ok",
        value=value,
        zxid=answer.zxid,
        mzxid=0 if stat is None else stat.mzxid,
        version=0 if stat is None else stat.version,
    )
