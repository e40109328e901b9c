"""A run: workers use an ensemble during faults, then have one more turn without faults, and rest.

Rules of this module:

- The record is saved next to the servers' logs before it is judged.
- After the last fault every server serves again; the bound for the last turn begins then.
- The last samples of the queues are read when all clients rest with an open session: a remaining znode is then an
  orphan, or outlives its session.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.ensemble import Ensemble
from harness.processes import ServerError
from tests.node.recipes_chaos import judge, record
from tests.node.recipes_chaos.hub import Guard, Hub
from tests.node.recipes_chaos.judge import Bounds, Findings
from tests.node.recipes_chaos.nemesis import Nemesis
from tests.node.recipes_chaos.queues import Eye
from tests.node.recipes_chaos.workers import RECIPES, Employment, Worker, resource

TIME_OUT = 3.0
"""The timeout of the sessions, in seconds."""
TICK = 500
BOUNDS = Bounds(time_out=TIME_OUT, election=8.0, served=30.0)
LOOK_EVERY = 0.5
BEGIN = 60.0
POLL = 0.05


class Plan(msgspec.Struct, frozen=True):
    """Faults for `seconds`, on `workers` with `clients` each, which use these recipes in turn.

    `fences`: the resources refuse stale writes. `only`: as for the nemesis.
    """

    seconds: float
    workers: int
    clients: int
    seed: int
    recipes: tuple[str, ...] = RECIPES
    fences: bool = True
    only: tuple[str, ...] = ()
    bounds: Bounds = BOUNDS


@dataclass(frozen=True)
class Report:
    """The result of a run; `stuck` is the reason why it did not end."""

    plan: Plan
    kind: str
    findings: Findings
    file: Path
    stuck: str = ""

    @property
    def passed(self) -> bool:
        """Whether the run ended without a violation."""
        return not self.findings.violations and not self.stuck

    def __str__(self) -> str:
        plan = self.plan
        head = f"{self.kind}: {plan.workers * plan.clients} clients, faults for {plan.seconds:g} s, seed {plan.seed}"
        return "\n".join([f"{head}; {self.file}", str(self.findings), *([f"STUCK {self.stuck}"] if self.stuck else [])])


def chaos(ensemble: Ensemble, plan: Plan) -> Report:
    """Carry out a plan on an ensemble that does not run yet."""
    return asyncio.run(_Run(ensemble, plan).run())


class _Run:
    def __init__(self, ensemble: Ensemble, plan: Plan) -> None:
        self._ensemble, self._plan = ensemble, plan
        self._hub = Hub(Guard(fences=plan.fences))
        self._eye = Eye(ensemble, random.Random(f"{plan.seed}/eye"))
        self._workers: list[Worker] = []
        self._resources = [resource(recipe) for recipe in plan.recipes[: plan.workers]]

    async def run(self) -> Report:
        """The run, from the start of the servers to the verdict."""
        stuck = ""
        await asyncio.to_thread(self._ensemble.start_all)
        await self._hub.open()
        looks = asyncio.create_task(self._look())
        try:
            await self._work()
        except* ServerError as errors:
            stuck = "; ".join(map(str, errors.exceptions))
        finally:
            looks.cancel()
            await asyncio.gather(looks, return_exceptions=True)
            await asyncio.gather(*(asyncio.to_thread(worker.quit) for worker in self._workers))
            await self._eye.close()
            self._hub.close()
        file = self._ensemble.directory / "record.jsonl"
        record.save(file, self._hub.entries)
        findings = judge.judge(self._hub.entries, self._plan.bounds)
        return Report(self._plan, self._ensemble.kind(self._ensemble.sids[0]), findings, file, stuck)

    async def _work(self) -> None:
        employment = Employment(
            self._ensemble.connect_string,
            self._hub.port,
            self._plan.clients,
            TIME_OUT,
            self._plan.seed,
            self._ensemble.directory,
            self._plan.recipes,
        )
        self._workers += [Worker(place, employment) for place in range(self._plan.workers)]
        await self._until(lambda: self._all(self._hub.connected), BEGIN, "every client has a session")
        nemesis = Nemesis(self._ensemble, self._hub, self._workers, TIME_OUT, self._plan.seed, self._plan.only)
        await nemesis.strike(self._plan.seconds)
        await self._until(lambda: self._all(self._hub.connected), BEGIN, "every client that is new has a session")
        await asyncio.to_thread(self._ensemble.wait_serving)
        self._hub.note(record.Calm(time.monotonic()))
        for worker in self._workers:
            worker.tell("last")
        with suppress(ServerError):  # the judge reports the clients that do not rest
            await self._until(lambda: self._all(self._hub.resting), self._plan.bounds.served, "every client rests")
        await self._empty(time.monotonic())

    def _all(self, clients: set[str]) -> bool:
        """Whether every client of every worker is among these. Raises ServerError if a worker has ended."""
        for worker in self._workers:
            if worker.name not in {name.partition("/")[0] for name in clients} and not worker.alive:
                log = self._ensemble.directory / f"worker-{worker.place}.txt"
                raise ServerError(f"{worker.name} has ended by itself: {log.read_text(errors='replace')[-2000:]}")
        return all(client in clients for worker in self._workers for client in worker.clients)

    async def _look(self) -> None:
        """Sample all queues repeatedly; a sample without an answer of the server is omitted."""
        while True:
            for each in self._resources:
                if (sample := await self._eye.look(each)) is not None:
                    self._hub.note(sample)
                await asyncio.sleep(LOOK_EVERY / len(self._resources))

    async def _empty(self, since: float) -> None:
        """Sample until the queues are empty, or until two session time-outs and the time of an election have passed."""
        for each in self._resources:
            eye = Eye(self._ensemble, random.Random(f"{self._plan.seed}/{each}"))
            while True:
                sample = await eye.look(each, asks_leader=False)
                late = time.monotonic() - since > 2 * TIME_OUT + self._plan.bounds.election
                if sample is not None and (not sample.places or late):
                    self._hub.note(record.Emptied(sample.at, each, sample.places, since))
                    break
                if late and time.monotonic() - since > 2 * TIME_OUT + BEGIN:
                    raise ServerError(f"{each} could not be read in the end")
                await asyncio.sleep(POLL)
            await eye.close()

    async def _until(self, holds: Callable[[], bool], seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise ServerError(f"{what}: not within {seconds:g} s")
            await asyncio.sleep(POLL)
