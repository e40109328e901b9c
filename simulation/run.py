"""One run of the simulation, decided by its plan: an ensemble under faults and work, then healing, then judgement.

Rules of this module:

- A plan says everything that decides a run. `plan_of` derives it from a seed; the file of a replay has it.
- After the last fault every server and link is healed. The ensemble must then execute a write of every server within a
  bound of simulated time.
- At the end every server stops in order, and its disk is read: the replicas are the contents of the disks.
"""

import asyncio
import gc
import itertools
import logging
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from checker.histories import Entry, FinalZnodes, Leaf, Pause, StaleBound
from refimpl.disk import database
from refimpl.disk.files import DataError
from refimpl.process import StartError, read_settings
from refimpl.tree import Tree
from simulation.ensemble import CLIENT_PORT, JOURNAL, ZOO_CFG, EnsembleSettings, SimulatedEnsemble, address_of
from simulation.faults import Fault, Injector, faults_of
from simulation.operator import FOLLOWING, Operator
from simulation.session import ClientSession, NoAnswerError, SessionExpiredError
from simulation.workload import ROOT, Client, Numbered, Pair
from simulation.world.loop import DeadlockError, Process, SimulatedLoop
from simulation.world.network import Network
from simulation.world.paths import SimulatedPath
from spec.config import ConfigError
from spec.quorum import Sid, View
from spec.tree.data import OPEN_ACL_UNSAFE, stat_of
from spec.tree.requests import Create2, Sync

WARM_UP = 3.0
"""Seconds before the first fault."""
RUNS_BETWEEN_COLLECTIONS = 16
_RUNS = itertools.count()
WRITER_TIMEOUT = 5000
"""The timeout of the sessions that test whether a server works, in milliseconds."""


class Plan(msgspec.Struct, frozen=True):
    """Everything that decides a run. Times are in seconds; `pause` is that between two operations of a client."""

    seed: str
    settings: EnsembleSettings
    seconds: float
    clients: int
    pause: float
    session_timeout: int
    faults: tuple[Fault, ...]

    @property
    def recovery(self) -> float:
        """The time within which the healed ensemble must work: initLimit twice, and the longest wait of an election."""
        return 2 * self.settings.init_limit * self.settings.tick / 1000 + 120.0


class Outcome(msgspec.Struct, frozen=True):
    """The counts of a run, and its record for the judge.

    `entries` are the history of the clients, the pauses and the replicas; `journals` are files by server.
    """

    plan: Plan
    failures: tuple[str, ...]
    entries: tuple[Entry, ...]
    journals: dict[Sid, bytes]
    simulated: float
    real: float
    faults: dict[str, int]
    operations: dict[str, int]
    roles: dict[str, int]
    pairs: tuple[Pair, ...]
    numbered: tuple[Numbered, ...]
    joined: bool
    events: int
    starts: int
    digest: str


def plan_of(seed: int, servers: int, observers: int, seconds: float) -> Plan:
    """The plan that follows from a seed."""
    name = str(seed)
    chance = random.Random(f"{name}/plan")
    tick = chance.choice((200, 500, 1000, 2000))
    settings = EnsembleSettings(
        servers=servers + observers,
        observers=observers,
        tick=tick,
        snap_count=chance.choice((8, 20, 50, 200)),
        preallocation=chance.choice((0, 4, 16)),
    )
    faults = faults_of(name, servers + observers, WARM_UP, seconds, tick / 1000, reconfigurable=chance.random() < 0.4)
    return Plan(
        seed=name,
        settings=settings,
        seconds=seconds,
        clients=chance.choice((2, 4, 6)),
        pause=chance.choice((0.2, 1.0, 2.0, 4.0)),
        session_timeout=tick * chance.choice((2, 4, 10)),
        faults=faults,
    )


def simulate(plan: Plan) -> Outcome:
    """Carries out a plan."""
    with _quiet():
        return _Run(plan).carry_out()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log of the servers, and with a collector of garbage that looks at the objects of this run only.

    A server that starts freezes its objects (`refimpl.disk.database.load`). They are collected after some runs.
    """
    logging.disable(logging.CRITICAL)
    enabled = gc.isenabled()
    if next(_RUNS) % RUNS_BETWEEN_COLLECTIONS == 0:
        gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        gc.unfreeze()
        if enabled:
            gc.enable()


class _Run:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._loop = SimulatedLoop(plan.seed)  # type: ignore[abstract]
        self._network = Network(self._loop, plan.seed)
        self._ensemble = SimulatedEnsemble(self._loop, self._network, plan.settings, plan.seed)
        self._failures: list[str] = []
        self._pauses: list[Pause] = []
        self._operator = Operator(self._loop, self._ensemble)
        self._injector = Injector(self._ensemble, self._network, self._operator, self._pauses)
        self._clients: list[Client] = []
        self._entries: list[Entry] = []
        self._loop.stalled = self._stalled

    def carry_out(self) -> Outcome:
        began = time.process_time()
        try:
            self._loop.run(self._ensemble.controller, self._main())
        except DeadlockError as error:
            self._failures.append(str(error))
        self._failures += [f"an exception that nobody handled: {defect}" for defect in self._loop.defects]
        self._failures += list(self._ensemble.ended)
        self._failures += self._ensemble.inspector.failures
        for client in self._clients:
            self._failures += client.errors
        operations: Counter[str] = Counter()
        for client in self._clients:
            operations.update(client.outcomes)
        recorded = sorted((op for client in self._clients for op in client.recorded), key=lambda op: op.invoked)
        settings = self._plan.settings
        bound = StaleBound((settings.sync_limit + 2) * settings.tick / 1000 + 1.0)
        return Outcome(
            plan=self._plan,
            failures=tuple(self._failures),
            entries=(bound, *self._pauses, *recorded, *self._entries),
            journals={
                sid: bytes(machine.disk.file(JOURNAL).data)
                for sid, machine in self._ensemble.machines.items()
                if machine.disk.find(JOURNAL) is not None
            },
            simulated=self._loop.now,
            real=time.process_time() - began,
            faults=dict(self._injector.counts),
            operations=dict(sorted(operations.items())),
            roles=dict(sorted(self._ensemble.roles.items())),
            pairs=tuple(pair for client in self._clients for pair in client.pairs),
            numbered=tuple(znode for client in self._clients for znode in client.numbered),
            joined=self._ensemble.joined,
            events=sum(client.events for client in self._clients),
            starts=self._ensemble.starts,
            digest=f"{self._network.digest:08x}"
            + "".join(f"{machine.disk.digest:08x}" for machine in self._ensemble.machines.values()),
        )

    def _stalled(self, process: Process, since: float, until: float) -> None:
        """The calls of a process took long: for its clients that is a pause."""
        for sid, machine in self._ensemble.machines.items():
            if machine.process is process:
                self._pauses.append(Pause(sid, since, until))

    # The phases.

    async def _main(self) -> None:
        plan, ensemble = self._plan, self._ensemble
        for sid in ensemble.machines:
            ensemble.start(sid)
        looking = self._loop.create_task(self._look())
        if not await self._writes(1, plan.recovery):
            self._failures.append(f"no write within {plan.recovery:g} s of the first start")
            return
        until = asyncio.Event()
        working = self._start_clients(until)
        self._injector.struck, self._injector.stranded = self._hurry, self._strand
        for fault in plan.faults:
            self._loop.outside(max(0.0, fault.at - self._loop.now), self._injector.strike, fault)
        await asyncio.sleep(max(0.0, plan.seconds - self._loop.now))
        self._injector.heal()
        recovered = await self._recover()
        if self._operator.restarts:
            self._injector.counts["leader restarted"] = self._operator.restarts
        if self._ensemble.below_snapshot:
            self._injector.counts["ended below a snapshot"] = self._ensemble.below_snapshot
        until.set()
        for task in working:
            await task
        if recovered:
            await self._settle()
        looking.cancel()

    def _start_clients(self, until: asyncio.Event) -> list[asyncio.Task[None]]:
        plan = self._plan
        started = []
        for number in range(plan.clients):
            process = Process(self._loop, f"10.0.1.{number}")
            self._network.started(process.name, process)
            client = Client(self._loop, number, plan.settings.servers, plan.seed, plan.pause, plan.session_timeout)
            self._clients.append(client)
            started.append(process.spawn(client.run(until)))
        return started

    def _hurry(self, victim: Sid) -> None:
        for client in self._clients:
            client.hurry(victim)

    def _strand(self, leader: Sid, seconds: float) -> None:
        for client in self._clients:
            client.quieten(seconds)
        self._clients[0].visit(leader)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._plan.settings.tick / 2000)
            self._ensemble.look()

    async def _recover(self) -> bool:
        """After healing every server must execute a write within the bound."""
        deadline = self._loop.now + self._plan.recovery
        if self._ensemble.reconfigured and not await self._operator.restore(deadline):
            self._failures.append(f"the first members are not restored {self._plan.recovery:g} s after healing")
            return False
        for sid in self._ensemble.machines:
            while not await self._writes(sid, min(FOLLOWING, deadline - self._loop.now)):
                self._operator.release(sid)
                if self._loop.now < deadline:
                    continue
                states = {machine: self._state(machine) for machine in self._ensemble.machines}
                self._failures.append(
                    f"server {sid} executes no write {self._plan.recovery:g} s after healing: {states}"
                )
                return False
        return True

    def _state(self, sid: Sid) -> str:
        node = self._ensemble.nodes.get(sid)
        if node is None:
            return "down"
        zab = node.server.zab
        return "looking" if zab is None else f"{type(zab).__name__} in epoch {zab.epoch}"

    async def _writes(self, sid: Sid, patience: float) -> bool:
        """Whether a server executes a write within some seconds."""
        deadline = self._loop.now + patience
        session = ClientSession(self._loop, WRITER_TIMEOUT, 5.0)
        while self._loop.now < deadline:
            try:
                await session.attach(address_of(sid), CLIENT_PORT)
                answer = await session.ask(Create2(ROOT, b"", OPEN_ACL_UNSAFE, 0))
                if answer.err in (0, -110):
                    await session.close()
                    return True
            except SessionExpiredError:
                session.forget()
            except NoAnswerError:
                await asyncio.sleep(0.1)
        return False

    async def _settle(self) -> None:
        """The clients read their watched znodes, the abandoned sessions expire, and every server stops."""
        plan = self._plan
        for client in self._clients:
            for _ in range(50):
                if await client.finish(1):
                    break
                await asyncio.sleep(0.2)
            else:
                self._failures.append(f"{client.name} cannot read its watched znodes after healing")
        await self._stay_alive()
        living = {path: client.session for client in self._clients for path in client.living.get(client.session, ())}
        self._check_ephemerals(living)
        for client in self._clients:
            await client.close()
        longest = max(plan.session_timeout, WRITER_TIMEOUT) / 1000
        await asyncio.sleep(longest + 4 * plan.settings.tick / 1000 + 1.0)
        for sid in self._ensemble.machines:
            await self._synced(sid)
        await asyncio.sleep(3 * plan.settings.tick / 1000)
        trees = {sid: node._replica.tree for sid, node in self._ensemble.nodes.items()}
        views = {sid: node.server.view for sid, node in self._ensemble.nodes.items()}
        for sid, tree in trees.items():
            ephemerals = [path for path, znode in tree.preorder() if path.startswith(ROOT) and znode.ephemeral_owner]
            if ephemerals or tree.sessions or tree.owners():
                self._failures.append(
                    f"server {sid} has sessions {tree.sessions}, ephemerals {ephemerals} and their owners "
                    f"{[*tree.owners()]} after their end"
                )
        self._ensemble.stop_all()
        await asyncio.sleep(5.0)
        self._read_disks(trees, views)

    async def _stay_alive(self) -> None:
        """A session whose client only sends pings does not expire, in an ensemble that works."""
        timeout = self._plan.session_timeout / 1000
        sessions = {client.name: client.session for client in self._clients}
        await asyncio.sleep(2 * timeout + 3 * self._plan.settings.tick / 1000)
        for client in self._clients:
            if not await client.finish(1) or client.session != sessions[client.name]:
                self._failures.append(f"{client.name}: pings do not keep session {sessions[client.name]:#x} alive")

    def _check_ephemerals(self, living: dict[str, int]) -> None:
        """The leader, if there is one, has the ephemeral znodes of living sessions."""
        sid = self._ensemble.leader()
        if sid is None:
            return
        tree = self._ensemble.nodes[sid]._replica.tree
        for path, session in living.items():
            znode = tree.node(path)
            if znode is None or znode.ephemeral_owner != session:
                self._failures.append(
                    f"server {sid} lacks {path}, an ephemeral of session {session:#x}, while their sessions live"
                )

    async def _synced(self, sid: Sid) -> None:
        session = ClientSession(self._loop, WRITER_TIMEOUT, 10.0)
        try:
            await session.attach(address_of(sid), CLIENT_PORT)
            await session.ask(Sync("/"))
            await session.close()
        except NoAnswerError:
            self._failures.append(f"server {sid} does not answer a sync at the end")

    def _read_disks(self, trees: dict[Sid, Tree], views: dict[Sid, View]) -> None:
        """Loads the data of each server as a start does, and compares it with the tree and the view that it had."""
        for sid, machine in self._ensemble.machines.items():
            if machine.process is not None:
                self._failures.append(f"server {sid} does not stop")
                continue
            process = machine.boot(f"read {sid}")
            directory = SimulatedPath("/server/data")
            try:
                loaded = process.context.run(database.load, directory, directory)
                process.context.run(self._check_configuration, sid, views.get(sid))
            except (DataError, OSError, StartError, ConfigError) as error:
                self._failures.append(f"server {sid} cannot read its disk at the end: {error}")
                continue
            finally:
                machine.crash(power=False)
            znodes = _leaves(loaded.tree)
            self._entries.append(FinalZnodes(sid, znodes))
            if sid in trees and znodes != (memory := _leaves(trees[sid])):
                path = next(name for name in sorted({*znodes, *memory}) if znodes.get(name) != memory.get(name))
                self._failures.append(
                    f"server {sid}: {path} is {znodes.get(path)} on its disk and {memory.get(path)} in its memory"
                )

    def _check_configuration(self, sid: Sid, active: View | None) -> None:
        """Compares the configuration in the files of a member with the active one. Raises as `read_settings` does."""
        if active is None or sid not in active.members:
            return  # the files of a server that has left are those of no member, and it cannot start with them
        view = read_settings(SimulatedPath(ZOO_CFG)).view
        if (view.version, view.text) != (active.version, active.text):
            self._failures.append(f"server {sid}: the configuration in its files is {view}, and {active} is active")


def _leaves(tree: Tree) -> dict[str, Leaf]:
    """The znodes of the clients, as the check of replicas has them."""
    leaves = {}
    for path, znode in tree.preorder():
        if path.startswith(ROOT):
            stat = stat_of(znode, len(tree.children(path)))
            leaves[path] = Leaf((znode.data or b"").decode(), msgspec.structs.asdict(stat))
    return leaves
