"""The faults of the servers and their links, one at a time, drawn from a seed.

Rules of this module:

- A fault begins, lasts a while, and is undone, even if an error occurs in between. It never touches the disk of a
  server.
- The leader is the victim about every second time, because most failures concern it.
- Pauses and cuts are sometimes shorter and sometimes longer than the timeout for a silent peer.
- A fault that the simulation has too bears its name (`simulation.faults`).
- Durations are real time: a fault is a state of live processes, and its length is a part of it.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

import msgspec

from checker.histories import Pause
from harness.ensemble import Ensemble
from simulation.faults import NodeFault
from tests.node.chaos.links import Links, Pair


class Fault(msgspec.Struct, frozen=True):
    """A fault, its victims, and its length in seconds."""

    name: str
    victims: tuple[int, ...]
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} {', '.join(map(str, self.victims))} for {self.seconds:.2f} s"


class Nemesis:
    """A generator of faults that also executes them; `patience` is the servers' timeout for a silent peer.

    `only` are the names of the faults to draw from; empty for all of them.
    """

    def __init__(
        self, ensemble: Ensemble, links: Links, patience: float, seed: int, only: Collection[str] = ()
    ) -> None:
        self._ensemble = ensemble
        self._links = links
        self._patience = patience
        self._random = random.Random(seed)
        self.pauses: list[Pause] = []
        self._faults: dict[str, Callable[[int, float], Awaitable[tuple[int, ...]]]] = {
            NodeFault.CRASH: self._kill,
            "crash a quorum": self._kill_quorum,
            NodeFault.CRASH_ALL: self._kill_all,
            NodeFault.PAUSE: self._pause,
            NodeFault.ISOLATE: self._cut_off,
            "silence": self._silence,
            "silence one way": self._silence_one_way,
            NodeFault.CUT: self._cut_one_link,
            "crash, then isolate another": self._kill_and_cut,
        }
        self._faults = {name: do for name, do in self._faults.items() if not only or name in only}
        self._due: list[str] = []

    async def strike(self, leader: int) -> Fault:
        """Execute one fault from its beginning to its end. In every round of draws each kind occurs once."""
        if not self._due:
            self._due = self._random.sample(list(self._faults), len(self._faults))
        name = self._due.pop()
        victim = leader if self._random.random() < 0.5 else self._random.choice(self._ensemble.sids)
        seconds = self._random.choice((0.2, 0.5, 1.5, 2.0)) * self._patience
        victims = await self._faults[name](victim, seconds)
        return Fault(name, victims, seconds)

    def _others(self, victim: int) -> list[int]:
        others = [sid for sid in self._ensemble.sids if sid != victim]
        return self._random.sample(others, len(others))

    # --- processes

    async def _kill(self, victim: int, seconds: float) -> tuple[int, ...]:
        return await self._killed((victim,), seconds)

    async def _kill_quorum(self, victim: int, seconds: float) -> tuple[int, ...]:
        majority = len(self._ensemble.sids) // 2 + 1
        return await self._killed((victim, *self._others(victim))[:majority], seconds)

    async def _kill_all(self, victim: int, seconds: float) -> tuple[int, ...]:
        return await self._killed((victim, *self._others(victim)), seconds)

    async def _killed(self, victims: Sequence[int], seconds: float) -> tuple[int, ...]:
        for sid in victims:
            await asyncio.to_thread(self._ensemble.kill, sid)
        await asyncio.sleep(seconds)
        for sid in victims:
            await asyncio.to_thread(self._ensemble.start, sid)
        return tuple(victims)

    async def _pause(self, victim: int, seconds: float) -> tuple[int, ...]:
        since = time.monotonic()
        self._ensemble.pause(victim)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._ensemble.resume(victim)
            self.pauses.append(Pause(victim, since, time.monotonic()))
        return (victim,)

    # --- links

    async def _cut_off(self, victim: int, seconds: float) -> tuple[int, ...]:
        await self._without(self._links.cut, self._links.around(victim), seconds)
        return (victim,)

    async def _silence(self, victim: int, seconds: float) -> tuple[int, ...]:
        await self._without(self._links.silence, self._links.around(victim), seconds)
        return (victim,)

    async def _silence_one_way(self, victim: int, seconds: float) -> tuple[int, ...]:
        """Silence the connections that the victim opened; those that others opened to it still carry bytes."""
        opened = [pair for pair in self._links.around(victim) if pair[0] == victim]
        await self._without(self._links.silence, opened, seconds)
        return (victim,)

    async def _cut_one_link(self, victim: int, seconds: float) -> tuple[int, ...]:
        other = self._others(victim)[0]
        await self._without(self._links.cut, self._links.between(victim, other), seconds)
        return victim, other

    async def _kill_and_cut(self, victim: int, seconds: float) -> tuple[int, ...]:
        other = self._others(victim)[0]
        await asyncio.to_thread(self._ensemble.kill, victim)
        try:
            await self._without(self._links.cut, self._links.around(other), seconds)
        finally:
            await asyncio.to_thread(self._ensemble.start, victim)
        return victim, other

    async def _without(self, do: Callable[[list[Pair]], None], pairs: list[Pair], seconds: float) -> None:
        do(pairs)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._links.heal()
