"""The faults of workers, connections and servers, drawn from a seed.

Rules of this module:

- Servers are killed one at a time, so that a quorum stays; every second time it is the leader. The next one is killed
  when all serve again.
- A pause is mostly longer than the sessions' timeout, and mostly of a worker that holds a resource: in this window a
  client believes that it holds, and another one does.
- A connection is lost immediately, or as soon as a request was sent, so that its answer is lost.
- Every fault is undone: a paused worker is resumed, a killed one is replaced.
"""

import asyncio
import random
import time
from collections.abc import Collection

from harness.ensemble import Ensemble
from harness.processes import ServerError
from tests.node.recipes_chaos import record
from tests.node.recipes_chaos.hub import Hub
from tests.node.recipes_chaos.workers import Worker

GAP = (0.2, 0.9)
"""Seconds between two faults of clients."""
SERVERS_GAP = (2.0, 5.0)
DOWN = (0.3, 2.0)
REPLACED_AFTER = (0.0, 1.5)
LONG_PAUSE, SHORT_PAUSE = (1.2, 2.0), (0.1, 0.8)
"""In units of the sessions' timeout."""
LONG_SHARE, HOLDER_SHARE, LEADER_SHARE = 0.7, 0.7, 0.5
FAULTS = {"kill": 2, "pause": 4, "drop": 8}
"""The relative frequency of each fault."""
WHEN = ("now", "create", "delete")


class Nemesis:
    """Carries out faults until it is stopped; `workers` is changed in place when one is replaced.

    `only` are the faults of clients to draw from, and then no server is killed; without it, all faults occur.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        hub: Hub,
        workers: list[Worker],
        time_out: float,
        seed: int,
        only: Collection[str] = (),
    ) -> None:
        self._ensemble, self._hub, self._workers, self._time_out = ensemble, hub, workers, time_out
        self._faults = {name: often for name, often in FAULTS.items() if not only or name in only}
        self._kills_servers = not only
        self._random = random.Random(f"{seed}/clients")
        self._random_of_servers = random.Random(f"{seed}/servers")

    async def strike(self, seconds: float) -> None:
        """Cause faults for this many seconds; return when all are undone. Raises ServerError if a server stays down."""
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as tasks:
            if self._kills_servers:
                tasks.create_task(self._servers(until))
            tasks.create_task(self._clients(until, tasks))

    async def _servers(self, until: float) -> None:
        chance = self._random_of_servers
        while True:
            await asyncio.sleep(chance.uniform(*SERVERS_GAP))
            if time.monotonic() > until:
                return
            victim = await self._victim()
            leads = await asyncio.to_thread(self._ensemble.role, victim) == "leader"
            self._note("kill the leader" if leads else "kill a follower", str(victim))
            began = time.monotonic()
            await asyncio.to_thread(self._ensemble.kill, victim)
            await asyncio.sleep(chance.uniform(*DOWN))
            self._ensemble.start(victim)
            await asyncio.to_thread(self._ensemble.wait_serving)
            self._hub.note(record.Disturbed(began, time.monotonic()))

    async def _victim(self) -> int:
        chance = self._random_of_servers
        other = chance.choice(self._ensemble.sids)
        if chance.random() >= LEADER_SHARE:
            return other
        try:
            return await asyncio.to_thread(self._ensemble.leader)
        except ServerError:
            return other

    async def _clients(self, until: float, tasks: asyncio.TaskGroup) -> None:
        chance = self._random
        while True:
            await asyncio.sleep(chance.uniform(*GAP))
            if time.monotonic() > until:
                return
            (fault,) = chance.choices(list(self._faults), list(self._faults.values()))
            able = [worker for worker in self._workers if worker.alive and not worker.paused]
            if not able:
                continue
            if fault == "pause":
                holds = {client.partition("/")[0] for client in self._hub.holders}
                holding = [worker for worker in able if worker.name in holds]
                chosen = holding if holding and chance.random() < HOLDER_SHARE else able
                tasks.create_task(self._pause(chance.choice(chosen)))
            elif fault == "kill":
                tasks.create_task(self._kill(chance.choice(able)))
            else:
                self._drop(chance.choice(able))

    async def _pause(self, worker: Worker) -> None:
        long = self._random.random() < LONG_SHARE
        seconds = self._time_out * self._random.uniform(*(LONG_PAUSE if long else SHORT_PAUSE))
        self._note("long pause" if long else "short pause", worker.name)
        worker.pause()
        try:
            await asyncio.sleep(seconds)
        finally:
            worker.resume()

    async def _kill(self, worker: Worker) -> None:
        self._note("kill a worker", worker.name)
        worker.kill()
        self._hub.forget(worker.clients)
        await asyncio.sleep(self._random.uniform(*REPLACED_AFTER))
        self._workers[worker.place] = worker.successor()

    def _drop(self, worker: Worker) -> None:
        when = self._random.choice(WHEN)
        for number in self._random.sample(range(len(worker.clients)), self._random.randint(1, len(worker.clients))):
            self._note("drop now" if when == "now" else f"lose the answer to {when}", worker.clients[number])
            worker.tell(f"drop {number} {when}")

    def _note(self, name: str, victim: str) -> None:
        self._hub.note(record.Fault(time.monotonic(), name, victim))
