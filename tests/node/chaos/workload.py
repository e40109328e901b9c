"""The work of the clients while servers die: writes and reads of known keys, each recorded before it is sent.

Rules of this module:

- Every value is written once. Registers are created, set, deleted and read by all clients; a ledger entry is created
  once, by one client, and never changed.
- A client does one thing at a time and retries nothing. It moves its session to another server when a connection ends,
  and sometimes without need.
"""

import asyncio
import random
import time
from collections.abc import Mapping

import msgspec

from checker.histories import Operation
from checker.histories.record import ANY_VERSION, Kind
from tests.node.chaos.client import Answer, NoAnswerError, Session

ROOT = "/chaos"
REGISTERS = tuple(f"{ROOT}/register-{n}" for n in range(4))
KINDS: Mapping[Kind, int] = {"create": 4, "set": 10, "delete": 1, "get": 6, "sync+get": 6}
"""The relative frequency of each kind."""
LEDGER_SHARE = 0.15
MOVE_SHARE = 0.01
CONDITIONAL_SHARE = 0.15
SESSION_TIMEOUT = 4000
PATIENCE = 1.5
"""Seconds until a client stops waiting for an answer."""
PAUSE = 0.008
"""Seconds between two operations of one client."""
RETRY = 0.05

OPEN = ((31, "world", "anyone"),)
DELETE, GET, SET, SYNC, CREATE2 = 2, 4, 5, 9, 15

NODE_EXISTS = -110
ERRORS = {-101: "NoNode", -103: "BadVersion", NODE_EXISTS: "NodeExists"}
DROPPED = {-4: "ConnectionLoss", -7: "OperationTimeout"}
"""Errors that leave the outcome of the request unknown."""


class Worker:
    """One client with its session, and the operations that it recorded."""

    def __init__(self, number: int, ports: Mapping[int, int], seed: int) -> None:
        self.name = f"client-{number}"
        self.recorded: list[Operation] = []
        self.acknowledged = 0
        self._random = random.Random(f"{seed}/{number}")
        self._ports = dict(ports)
        self._session = Session(SESSION_TIMEOUT, PATIENCE)
        self._server = 0
        self._count = 0
        self._versions: dict[str, int] = {}

    async def run(self, until: asyncio.Event) -> None:
        """Work until the event is set; then close the session."""
        while not until.is_set():
            if not self._session.attached or self._random.random() < MOVE_SHARE:
                await self._move()
            else:
                await self._operate()
                await asyncio.sleep(PAUSE)
        await self._session.close()

    async def _move(self) -> None:
        self._server = self._random.choice(list(self._ports))
        try:
            await self._session.attach(self._ports[self._server])
        except NoAnswerError:
            await asyncio.sleep(RETRY)

    async def _operate(self) -> None:
        asked = self._choose()
        self._count += 1
        try:
            answer = await self._ask(asked)
        except NoAnswerError:
            if asked.is_write:
                self.recorded.append(asked)
            return
        done = _answered(asked, answer, time.monotonic())
        self.acknowledged += done.acknowledged
        self.recorded.append(done)
        if done.outcome == "ok":
            self._versions[done.key] = done.version

    def _choose(self) -> Operation:
        kind: Kind = self._random.choices(list(KINDS), list(KINDS.values()))[0]
        key = self._random.choice(REGISTERS)
        if self._random.random() < LEDGER_SHARE:
            kind, key = "create", f"{ROOT}/{self.name}-{self._count}"
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

    async def _ask(self, asked: Operation) -> Answer:
        data = (asked.value or "").encode()
        if asked.kind == "create":
            return await self._session.ask(CREATE2, asked.key, data, OPEN, 0)
        if asked.kind == "set":
            return await self._session.ask(SET, asked.key, data, asked.condition)
        if asked.kind == "delete":
            return await self._session.ask(DELETE, asked.key, asked.condition)
        if asked.kind == "sync+get":
            synced = await self._session.ask(SYNC, asked.key)
            if synced.err:
                return synced
        return await self._session.ask(GET, asked.key, False)


def _answered(asked: Operation, answer: Answer, now: float) -> Operation:
    """Return the operation with its answer."""
    if answer.err in DROPPED:
        return asked
    if answer.err:
        error = ERRORS.get(answer.err, f"error {answer.err}")
        return msgspec.structs.replace(asked, completed=now, outcome="failed", error=error, zxid=answer.zxid)
    stat = answer.values[-1] if answer.values else None
    value = asked.value
    if not asked.is_write:
        value = answer.values[0].decode()
    return msgspec.structs.replace(
        asked,
        completed=now,
        outcome="ok",
        value=value,
        zxid=answer.zxid,
        mzxid=0 if stat is None else stat.mzxid,
        version=0 if stat is None else stat.version,
    )
