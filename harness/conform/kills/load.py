"""The clients of a run under kills: each writes and reads a few znodes, and records every operation.

Rules of this module:

- A client has one request in flight and retries nothing. It moves its session when a connection ends, and sometimes
  without need. A request without an answer is recorded as such, since it may take effect later.
- A server without create2 is asked to set and to read only: the answer to a create has no Stat there.
"""

import random
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from checker.histories import Operation
from checker.histories.record import Kind
from harness.conform.kills.operations import KINDS, OperationSource, answered, requests_of
from harness.processes import Place, ServerError
from harness.session import Answer, Session

FAILURES = (OSError, ServerError, ValueError, struct.error)
"""What a client meets while servers are killed."""
TIMEOUT = 10_000
PATIENCE = 3.0
"""Seconds until a client stops waiting for an answer."""
PAUSE = 0.005
RETRY = 0.1
OLD_KINDS: Mapping[Kind, int] = {"set": 10, "get": 6, "sync+get": 6}
"""The relative frequency of each kind at a server without create2."""
MOVE_SHARE = 0.02
SESSION_ENDED = -112


class LoadClient(threading.Thread):
    """One client in its thread; `recorded` are its operations, `acknowledged` the number of its writes so far."""

    def __init__(self, number: int, places: Sequence[Place], root: str, seed: int, creates: bool) -> None:
        super().__init__(name=f"client-{number}", daemon=True)
        self.recorded: list[Operation] = []
        self.acknowledged = 0
        self._random = random.Random(f"{seed}/{number}")
        self._source = OperationSource(self.name, root, self._random, KINDS if creates else OLD_KINDS)
        self._places = tuple(places)
        self._session = Session(TIMEOUT, PATIENCE)
        self._server = 0
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
        asked = self._source.draw(self._session.session_id, self._server)
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
        done = answered(asked, answer, time.monotonic())
        self.acknowledged += done.acknowledged
        if done.is_write or done.outcome != "unknown":
            self.recorded.append(done)
        self._source.note(done)

    def _ask(self, asked: Operation) -> Answer:
        for opcode, *values in requests_of(asked):
            answer = self._session.ask(opcode, *values)
            if answer.err:
                return answer._replace(zxid=max(answer.zxid, 0))  # an error may have -1, which is no zxid
        return answer
