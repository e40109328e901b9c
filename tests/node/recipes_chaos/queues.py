"""The contents of queues and the open sessions, according to the servers, read by a separate session.

Rules of this module:

- A sample is read after a sync, so that it shows at least all that was committed when it began.
- The leader lists the sessions, before and after the sample: a session that was open all the time is in both lists.
- Without an answer of a server a sample is omitted, and gives no verdict.
"""

import asyncio
import random
import re
import time
from typing import Any

from harness.ensemble import Ensemble
from harness.layouts import Stat
from harness.processes import ServerError
from tests.node.chaos.client import NoAnswerError, Session
from tests.node.recipes_chaos.record import Place, Sample

EXISTS, GET_CHILDREN, SYNC = 3, 8, 9
NO_NODE = -101
TIME_OUT, PATIENCE = 6000, 2.0
EPHEMERALS = "ephemeral nodes dump"


class Eye:
    """Samples queues; `at` is the client port of some running server."""

    def __init__(self, ensemble: Ensemble, chance: random.Random) -> None:
        self._ensemble, self._random = ensemble, chance
        self._session = Session(TIME_OUT, PATIENCE)

    async def look(self, resource: str, *, asks_leader: bool = True) -> Sample | None:
        """The present contents of a queue; None if no server answers."""
        before = await self._alive() if asks_leader else None
        at = time.monotonic()
        try:
            if not self._session.attached:
                await self._session.attach(self._ensemble.client_port(self._random.choice(self._ensemble.running)))
            places = await self._places(resource)
        except NoAnswerError:
            return None
        after = await self._alive() if before is not None else None
        alive = None if before is None or after is None else tuple(sorted(before | after))
        return Sample(at, resource, places, alive)

    async def close(self) -> None:
        """End the session."""
        await self._session.close()

    async def _places(self, resource: str) -> tuple[Place, ...]:
        await self._asked(SYNC, resource)
        children = await self._asked(GET_CHILDREN, resource, False)
        if children is None:
            return ()
        found = []
        for name in children[0]:
            answer = await self._asked(EXISTS, f"{resource}/{name}", False)
            if answer is not None:
                stat = Stat(*answer[0])
                found.append(Place(name, stat.ephemeral_owner, stat.czxid))
        return tuple(found)

    async def _asked(self, opcode: int, *values: Any) -> tuple[Any, ...] | None:
        """The values of an answer; None if the path has no znode. Raises NoAnswerError."""
        answer = await self._session.ask(opcode, *values)
        if answer.err in (0, NO_NODE):
            return None if answer.err else answer.values
        self._session.drop()
        raise NoAnswerError(f"error {answer.err}")

    async def _alive(self) -> frozenset[int] | None:
        try:
            leader = await asyncio.to_thread(self._ensemble.leader)
            return sessions_of(await asyncio.to_thread(self._ensemble.word, leader, "dump"))
        except (ServerError, OSError):
            return None


def sessions_of(dump: str) -> frozenset[int] | None:
    """The sessions in the answer to `dump`; None if the answer is incomplete."""
    sessions, found, _ = dump.partition(EPHEMERALS)
    return frozenset(int(number, 16) for number in re.findall(r"0x[0-9a-f]+", sessions)) if found else None
