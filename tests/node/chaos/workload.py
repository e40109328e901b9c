"""The work of the clients while servers die: writes and reads of known keys, each recorded before it is sent.

Rules of this module:

- The operations are those of `harness.conform.kills.operations`: every value is written once.
- A client does one thing at a time and retries nothing. It moves its session to another server when a connection ends,
  and sometimes without need.
"""

import asyncio
import random
import time
from collections.abc import Mapping

from checker.histories import Operation
from harness.conform.kills.operations import OperationSource, answered, requests_of
from harness.session import Answer
from tests.node.chaos.client import NoAnswerError, Session

ROOT = "/chaos"
MOVE_SHARE = 0.01
SESSION_TIMEOUT = 4000
PATIENCE = 1.5
"""Seconds until a client stops waiting for an answer."""
PAUSE = 0.05
"""Seconds between two operations of one client."""
RETRY = 0.05


class Worker:
    """One client with its session, and the operations that it recorded."""

    def __init__(self, number: int, ports: Mapping[int, int], seed: int) -> None:
        self.name = f"client-{number}"
        self.recorded: list[Operation] = []
        self.acknowledged = 0
        self._random = random.Random(f"{seed}/{number}")
        self._source = OperationSource(self.name, ROOT, self._random)
        self._ports = dict(ports)
        self._session = Session(SESSION_TIMEOUT, PATIENCE)
        self._server = 0

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
        asked = self._source.draw(self._session.session_id, self._server)
        try:
            answer = await self._ask(asked)
        except NoAnswerError:
            if asked.is_write:
                self.recorded.append(asked)
            return
        done = answered(asked, answer, time.monotonic())
        self.acknowledged += done.acknowledged
        self.recorded.append(done)
        self._source.note(done)

    async def _ask(self, asked: Operation) -> Answer:
        for opcode, *values in requests_of(asked):
            answer = await self._session.ask(opcode, *values)
            if answer.err:
                break
        return answer
