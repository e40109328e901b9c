"""Chaos: clients work while servers are killed, paused and cut off; the answers to the clients are then checked.

Rules of this module:

- The ensemble starts empty, led by the highest id. Its files are written again, so that every link goes through a
  proxy.
- After each fault every link and server is healed, and the ensemble must execute a write again within `recovery`
  seconds: a safe ensemble that stays silent fails too.
- The whole record is saved next to the servers' logs before it is judged.
"""

import asyncio
import random
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import msgspec

from checker import histories
from checker.histories import Entry, Findings, StaleBound
from harness.commands import CREATE2, OPEN
from harness.ensemble import Ensemble
from harness.processes import ServerError
from harness.zoo_cfg import View
from tests.node.chaos.client import NoAnswerError
from tests.node.chaos.links import Links
from tests.node.chaos.nemesis import Fault, Nemesis
from tests.node.chaos.replicas import attached, replica
from tests.node.chaos.workload import ROOT, Worker

TICK = 200
"""Milliseconds."""
SYNC_LIMIT = 5
NOTICING = 2
"""The ticks after syncLimit that a leader may need to notice the loss of its quorum: one to count, one to check."""
CLIENTS = 6
RECOVERY = 30.0
NODE_EXISTS = -110
FIRST_WRITES = 20
"""The number of writes acknowledged before the first fault, so that there is data to lose."""
CALM = (0.1, 0.6)
"""Seconds between a recovery and the next fault."""
VIEW = View(
    members=(),
    tick_time=TICK,
    init_limit=25,
    sync_limit=SYNC_LIMIT,
    # Small enough that snapshots, new log files and both ways of catching up happen in a short run.
    extra={"snapCount": "150", "commitLogCount": "50"},
)


class Cycle(msgspec.Struct, frozen=True):
    """A fault, the leader that it met, and the time from it to the next acknowledged write."""

    leader: int
    fault: Fault
    recovery: float


class Report(msgspec.Struct, frozen=True):
    seed: int
    cycles: tuple[Cycle, ...]
    findings: Findings
    history: Path
    stuck: str = ""

    @property
    def passed(self) -> bool:
        """Whether every check passed and the ensemble recovered after every fault."""
        return self.findings.passed and not self.stuck

    def __str__(self) -> str:
        slowest = max((cycle.recovery for cycle in self.cycles), default=0.0)
        lines = [
            f"seed {self.seed}, {len(self.cycles)} cycles, slowest recovery {slowest:.2f} s; history: {self.history}",
            *(f"  led by {cycle.leader}: {cycle.fault}; back after {cycle.recovery:.2f} s" for cycle in self.cycles),
            *([f"stuck: {self.stuck}"] if self.stuck else []),
        ]
        return "\n".join([*lines, str(self.findings)])


def chaos(ensemble: Ensemble, cycles: int, seed: int, recovery: float = RECOVERY, only: Collection[str] = ()) -> Report:
    """Run this number of faults against an ensemble that is prepared and not started; it is running on return.

    `only` are the faults to draw from, see `Nemesis`.
    """
    return asyncio.run(_Run(ensemble, cycles, seed, recovery, only).run())


class _Run:
    def __init__(self, ensemble: Ensemble, cycles: int, seed: int, recovery: float, only: Collection[str]) -> None:
        self._ensemble = ensemble
        self._wanted = cycles
        self._seed = seed
        self._recovery = recovery
        self._only = only
        self._random = random.Random(f"calm {seed}")
        self._cycles: list[Cycle] = []
        ports = {sid: ensemble.client_port(sid) for sid in ensemble.sids}
        self._workers = [Worker(number, ports, seed) for number in range(CLIENTS)]

    async def run(self) -> Report:
        async with Links(self._ensemble, VIEW) as links:
            await asyncio.to_thread(self._ensemble.start_led_by, self._ensemble.sids[-1])
            await self._root()
            nemesis = Nemesis(self._ensemble, links, SYNC_LIMIT * TICK / 1000, self._seed, self._only)
            ended = asyncio.Event()
            working = [asyncio.create_task(worker.run(ended)) for worker in self._workers]
            try:
                stuck = await self._strike(nemesis)
            finally:
                ended.set()
                await asyncio.gather(*working)
            entries = self._entries(nemesis)
            try:
                replicas = [await replica(sid, self._ensemble.client_port(sid)) for sid in self._ensemble.sids]
            except NoAnswerError as error:
                stuck = stuck or f"the servers' trees could not be read at the end: {error}"
            else:
                entries += replicas
        return self._report(entries, stuck)

    def _report(self, entries: list[Entry], stuck: str) -> Report:
        file = self._ensemble.directory / "history.jsonl"
        histories.save(file, entries)
        findings = histories.check(histories.history_of(entries, str(file)))
        return Report(self._seed, tuple(self._cycles), findings, file, stuck)

    def _entries(self, nemesis: Nemesis) -> list[Entry]:
        recorded = [operation for worker in self._workers for operation in worker.recorded]
        recorded.sort(key=lambda operation: operation.invoked)
        return [StaleBound((SYNC_LIMIT + NOTICING) * TICK / 1000), *nemesis.pauses, *recorded]

    async def _root(self) -> None:
        """Create the root znode; again, if the connection ends before the answer."""
        deadline, allowed = time.monotonic() + self._recovery, {0}
        while True:
            session = await attached(self._ensemble.client_port(self._ensemble.sids[0]))
            try:
                answer = await session.ask(CREATE2, ROOT, b"", OPEN, 0)
            except NoAnswerError:
                if time.monotonic() > deadline:
                    raise
                allowed.add(NODE_EXISTS)
                continue
            assert answer.err in allowed, f"{ROOT}: error {answer.err}"
            await session.close()
            return

    async def _strike(self, nemesis: Nemesis) -> str:
        """Run the cycles; return the reason why the ensemble did not recover, or an empty text."""
        try:
            await self._wait(partial(self._has_written, FIRST_WRITES), f"{FIRST_WRITES} writes")
            while len(self._cycles) < self._wanted:
                leader = await self._settled()
                await asyncio.sleep(self._random.uniform(*CALM))
                fault = await nemesis.strike(leader)
                since, written = time.monotonic(), self._acknowledged()
                await self._wait(partial(self._has_written, written + 1), f"a write after: {fault}")
                self._cycles.append(Cycle(leader, fault, time.monotonic() - since))
            await self._settled()
        except ServerError as error:
            return str(error)
        return ""

    def _has_written(self, number: int) -> bool:
        return self._acknowledged() >= number

    def _acknowledged(self) -> int:
        return sum(worker.acknowledged for worker in self._workers)

    async def _settled(self) -> int:
        """Return the leader as soon as every server serves and one of them leads."""
        deadline = time.monotonic() + self._recovery
        while True:
            self._refuse_ended()
            roles = [await asyncio.to_thread(self._ensemble.role, sid) for sid in self._ensemble.sids]
            if None not in roles and roles.count("leader") == 1:
                return self._ensemble.sids[roles.index("leader")]
            if time.monotonic() > deadline:
                raise ServerError(f"every server serving and one leading: not within {self._recovery:g} s, but {roles}")
            await asyncio.sleep(0.05)

    def _refuse_ended(self) -> None:
        for sid in self._ensemble.sids:
            process = self._ensemble.process(sid)
            if not process.alive:
                raise ServerError(f"server {sid} ended by itself{process.last_words()}")

    async def _wait(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + self._recovery
        while not holds():
            if time.monotonic() > deadline:
                raise ServerError(f"{what}: not within {self._recovery:g} s")
            await asyncio.sleep(0.02)
