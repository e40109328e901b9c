"""The faults of a run: their table, their draw from a seed, and their injection into machines and network.

A kind of fault is one member of `NodeFault`: its name, frequency, draw, injection and caption. Rules of this module:

- Each fault is complete in itself: its time, its victims, its length. Any subset of a list is a list, so that a failing
  run can be made smaller.
- A victim of 0 is the server that leads at that time.
- A fault that meets a server that is down has no effect, and is not counted.
- A cut from a server concerns its peers and clients alike if it is isolated, and one peer otherwise.
- `heal` ends every fault that is in progress, and starts every server.
- The table is a part of what a seed means: a new kind, or another order, makes other plans of all seeds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from checker.histories import Pause
from checker.kit import Action, FaultAction, Traits
from checker.models.ensemble.actions import ServerAction
from simulation.ensemble import SimulatedEnsemble, address_of
from simulation.operator import Operator
from simulation.world.network import Network
from spec.quorum import Sid

REJOIN = 1.5
"""Seconds in which a stranded leader follows the new one, before the next fault."""
NO_CRASH = 1 << 60
SLOW_SYNC = 300
"""The slowness of a disk whose machine loses its power during a sync, so that other servers run on."""
LATER = 2
"""The number of an `interrupt` that waits until the learner has its tree on disk."""
INTERRUPTION = 2.0
"""Seconds for which a leader is down that ended while it synchronised a learner."""
RETURN = 10.0
"""Seconds that a stranded leader may need to follow the new one."""


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fault at a time in seconds, for some seconds. `number` has a meaning for each kind (`NodeFault`)."""

    at: float
    kind: NodeFault
    victim: int = 0
    other: int = 0
    seconds: float = 0.0
    number: int = 0

    @property
    def on_leader(self) -> Fault:
        """The same fault, of the leader."""
        return msgspec.structs.replace(self, victim=0)

    def __str__(self) -> str:
        victim = f"server {self.victim}" if self.victim else "the leader"
        worded = self.kind.worded(victim, f"server {self.other}", str(self.number))
        return f"{self.at:.3f} s, for {self.seconds:.2f} s: {self.kind}: {worded}"


class Injector:
    """Carries out faults; `counts` are those that had an effect, by kind.

    `struck` is called with each victim, `stranded` with a leader before it is cut off and the seconds until its return.
    """

    def __init__(self, ensemble: SimulatedEnsemble, network: Network, operator: Operator, pauses: list[Pause]) -> None:
        self.counts: Counter[str] = Counter()
        self.struck: Callable[[Sid], None] = lambda _: None
        self.stranded: Callable[[Sid, float], None] = lambda *_: None
        self._ensemble, self._network, self._pauses = ensemble, network, pauses
        self._loop = ensemble.loop
        self._operator = operator
        self._undo: dict[int, Callable[[], None]] = {}
        self._count = 0
        self._healed = False

    def strike(self, fault: Fault) -> None:
        """Carries out a fault, whose end is scheduled."""
        victim = fault.victim or self._ensemble.leader()
        if victim is not None and victim in self._ensemble.machines and fault.kind.traits.inject(self, fault, victim):
            self.counts[fault.kind.value] += 1
            self.struck(victim)

    def heal(self) -> None:
        """Ends all faults, slow packets too, and starts every server."""
        self._network.slow_share = 0.0
        self._ensemble.installed = lambda _: None
        self._healed = True
        for undo in tuple(self._undo.values()):
            undo()
        for sid, machine in self._ensemble.machines.items():
            machine.be_reliable()
            self._ensemble.start(sid)

    def _until(self, seconds: float, undo: Callable[[], None]) -> None:
        """Undoes a fault after some seconds, or when everything is healed."""
        self._count += 1
        number = self._count

        def once() -> None:
            if self._undo.pop(number, None) is not None:
                undo()

        self._undo[number] = once
        self._loop.outside(seconds, once)

    # Processes and machines.

    def _crash(self, fault: Fault, victim: Sid, *, power: bool) -> bool:
        if self._ensemble.machines[victim].process is None:
            return False
        self._ensemble.take_down(victim, power)
        self._until(fault.seconds, lambda: self._ensemble.bring_up(victim))
        return True

    def _crash_at(self, fault: Fault, victim: Sid, *, power: bool) -> bool:
        machine = self._ensemble.machines[victim]
        if machine.process is None:
            return False
        machine.die_at = (machine.disk.operations + fault.number, power)
        self._ensemble.hold_down(victim)
        self._until(fault.seconds, lambda: self._ensemble.bring_up(victim))
        return True

    def _power_in_sync(self, fault: Fault, victim: Sid) -> bool:
        machine = self._ensemble.machines[victim]
        if machine.process is None:
            return False
        self._stall(fault, victim, SLOW_SYNC)
        machine.die_in_sync = fault.number
        self._ensemble.hold_down(victim)
        self._until(fault.seconds, lambda: self._ensemble.bring_up(victim))
        return True

    def _crash_all(self, fault: Fault, _victim: Sid, *, power: bool) -> bool:
        running = self._ensemble.running
        for sid in running:
            self._crash(fault, sid, power=power)
        return bool(running)

    def _pause(self, fault: Fault, victim: Sid) -> bool:
        process = self._ensemble.machines[victim].process
        if process is None:
            return False
        process.block(fault.seconds)
        self._pauses.append(Pause(victim, self._loop.now, self._loop.now + fault.seconds))
        return True

    def _clock(self, fault: Fault, victim: Sid) -> bool:
        self._ensemble.machines[victim].wall_offset += fault.number
        return True

    # Disks.

    def _fail_sync(self, fault: Fault, victim: Sid) -> bool:
        machine = self._ensemble.machines[victim]
        if machine.process is None:
            return False
        machine.fail_sync, machine.hang = fault.number, fault.seconds
        self._ensemble.failing[victim] += 1
        return True

    def _stall(self, fault: Fault, victim: Sid, times: int = 0) -> bool:
        machine, times = self._ensemble.machines[victim], times or fault.number
        machine.slowness *= times

        def undo() -> None:
            machine.slowness /= times

        self._until(fault.seconds, undo)
        return True

    def _fill_disk(self, fault: Fault, victim: Sid) -> bool:
        disk = self._ensemble.machines[victim].disk
        if disk.full:
            return False
        disk.full = True
        self._ensemble.failing[victim] += NO_CRASH

        def undo() -> None:
            disk.full = False
            self._loop.outside(60.0, forgive)

        def forgive() -> None:
            self._ensemble.failing[victim] -= NO_CRASH

        self._until(fault.seconds, undo)
        return True

    # The network.

    def _links_of(self, victim: Sid) -> list[tuple[str, str]]:
        """The links between a server and all others, in both directions."""
        address = address_of(victim)
        peers = [address_of(sid) for sid in self._ensemble.machines if sid != victim]
        return [pair for peer in peers for pair in ((address, peer), (peer, address))]

    def _cut_links(self, fault: Fault, links: list[tuple[str, str]]) -> bool:
        for link in links:
            self._network.cut(*link)

        def undo() -> None:
            for link in links:
                self._network.heal(*link)

        self._until(fault.seconds, undo)
        return bool(links)

    def _cut(self, fault: Fault, victim: Sid) -> bool:
        if fault.other == victim or fault.other not in self._ensemble.machines:
            return False
        return self._cut_links(fault, [(address_of(victim), address_of(fault.other))])

    def _isolate(self, fault: Fault, victim: Sid) -> bool:
        return self._cut_links(fault, self._links_of(victim))

    def _strand(self, fault: Fault, victim: Sid) -> bool:
        if victim != self._ensemble.leader():
            return False
        self.stranded(victim, fault.seconds + RETURN)
        return self._isolate(fault, victim)

    def _partition(self, fault: Fault, _victim: Sid) -> bool:
        inside = [sid for sid in self._ensemble.machines if fault.number >> (sid - 1) & 1]
        outside = [sid for sid in self._ensemble.machines if sid not in inside]
        pairs = [(address_of(source), address_of(target)) for source in inside for target in outside]
        return self._cut_links(fault, [*pairs, *((target, source) for source, target in pairs)])

    def _slow(self, fault: Fault, victim: Sid) -> bool:
        links, delay = self._links_of(victim), self._network.delay
        for link in links:
            delay[link] = delay.get(link, 1.0) * fault.number

        def undo() -> None:
            for link in links:
                delay[link] /= fault.number

        self._until(fault.seconds, undo)
        return True

    def _disconnect(self, fault: Fault, victim: Sid) -> bool:
        return self._network.reset(address_of(victim), address_of(fault.other)) > 0

    def _interrupt(self, fault: Fault, _victim: Sid) -> bool:
        """Ends the connection, or the leader, when the next learner has received its tree."""

        def installed(learner: Sid) -> None:
            leader = self._ensemble.leader()
            self._ensemble.installed = lambda _: None
            if leader is not None:
                self.counts[fault.kind.value] += 1
                end = self._end_connection if fault.number == 0 else self._end_leader
                self._loop.outside(fault.seconds if fault.number == LATER else 0.0, end, leader, learner)

        self._ensemble.installed = installed
        return False  # it is counted when it has an effect

    def _end_connection(self, leader: Sid, learner: Sid) -> None:
        self._network.reset(address_of(leader), address_of(learner))

    def _end_leader(self, leader: Sid, _learner: Sid) -> None:
        if self._healed:
            return
        self._ensemble.take_down(leader, power=False)
        self._until(INTERRUPTION, lambda: self._ensemble.bring_up(leader))

    # The configuration.

    def _reconfigure(self, fault: Fault, victim: Sid) -> bool:
        self._ensemble.reconfigured = True
        return self._operator.change(victim, fault.number)


# The table.


@dataclass(frozen=True, kw_only=True)
class NodeTraits(Traits):
    """The traits of a kind of fault. Its caption has the victim, the other server and the number, in this order.

    - `weight`: its relative frequency.
    - `inject`: its beginning, with its end scheduled; False if it has no effect.
    - `numbers`: the numbers that it may have, or a function from the number of servers to them.
    - `lasts`: the draw of its seconds from a tick, if it is not that of most kinds.
    - `strikes_leader`: the victim is always the leader.
    """

    fair: bool = False
    fault: bool = True
    weight: int
    inject: Callable[[Injector, Fault, Sid], bool]
    numbers: Sequence[int] | Callable[[int], Sequence[int]] = ()
    lasts: Callable[[random.Random, float], float] | None = None
    strikes_leader: bool = False


_WRITES = (1, 2, 3, 5, 8, 13, 21, 34)


class NodeFault(Action):
    """The kinds of faults; one that models have too bears the name of its action."""

    traits: NodeTraits

    # fmt: off
    CRASH = FaultAction.CRASH.value, NodeTraits(weight=6, inject=partial(Injector._crash, power=False),
        caption="the process of {0} ends")
    POWER = "power", NodeTraits(weight=6, inject=partial(Injector._crash, power=True),
        caption="the machine of {0} loses its power")
    CRASH_AT_WRITE = "crash at a write", NodeTraits(weight=6, inject=partial(Injector._crash_at, power=False),
        numbers=_WRITES,
        caption="the process of {0} ends at operation {2} of its disk")
    POWER_AT_WRITE = "power at a write", NodeTraits(weight=8, inject=partial(Injector._crash_at, power=True),
        numbers=_WRITES,
        caption="the machine of {0} loses its power at operation {2} of its disk")
    POWER_IN_SYNC = "power in a sync", NodeTraits(weight=6, inject=Injector._power_in_sync, numbers=(1, 2, 2, 3, 5),
        caption="the disk of {0} is slow, and its power fails during sync {2}")
    CRASH_ALL = "crash all", NodeTraits(weight=1, inject=partial(Injector._crash_all, power=False),
        caption="every process ends")
    POWER_ALL = "power all", NodeTraits(weight=2, inject=partial(Injector._crash_all, power=True),
        caption="every machine loses its power")
    FAIL_SYNC = "fail sync", NodeTraits(weight=3, inject=Injector._fail_sync,
        numbers=(1, 1, 2, 3, 5), lasts=lambda chance, _: chance.choice((0.0, 0.5)),
        caption="sync {2} of {0} fails, and its process hangs meanwhile")
    STALL = "stall", NodeTraits(weight=3, inject=Injector._stall, numbers=(30, 300, 3000),
        caption="the disk of {0} is {2} times slower")
    FILL_DISK = ServerAction.FILL_DISK.value, NodeTraits(weight=2, inject=Injector._fill_disk,
        caption="the disk of {0} is full")
    PAUSE = "pause", NodeTraits(weight=4, inject=Injector._pause, caption="the process of {0} does not run")
    CUT = FaultAction.CUT.value, NodeTraits(weight=5, inject=Injector._cut, caption="packets from {0} to {1} are lost")
    ISOLATE = "isolate", NodeTraits(weight=4, inject=Injector._isolate, caption="packets from and to {0} are lost")
    STRAND = "strand", NodeTraits(weight=6, inject=Injector._strand,
        strikes_leader=True, lasts=lambda chance, tick: tick * (8 + 12 * chance.random()),
        caption="{0} is isolated, and one client writes there while the others are quiet")
    PARTITION = FaultAction.PARTITION.value, NodeTraits(weight=3, inject=Injector._partition,
        numbers=lambda servers: range(1, (1 << servers) - 1),
        caption="packets between the servers with a bit in {2} and the others are lost")
    SLOW = "slow", NodeTraits(weight=3, inject=Injector._slow, numbers=(10, 100, 500),
        caption="packets from and to {0} are {2} times slower")
    DISCONNECT = ServerAction.DISCONNECT.value, NodeTraits(weight=4, inject=Injector._disconnect,
        caption="all connections of {0} and {1} are reset")
    INTERRUPT = "interrupt", NodeTraits(weight=8, inject=Injector._interrupt,
        numbers=range(3), lasts=lambda chance, tick: tick * (0.2 + chance.random()),
        caption="a learner with its tree loses its connection (0), or the leader ends, at once (1) or later (2): {2}")
    CLOCK = "clock", NodeTraits(weight=2, inject=Injector._clock, numbers=(-3_600_000, -5000, -50, 50, 5000, 3_600_000),
        caption="the wall clock of {0} jumps by {2} ms")
    RECONFIGURE = "reconfigure", NodeTraits(weight=4, inject=Injector._reconfigure, numbers=range(3),
        caption="{0} leaves, joins or changes its role, as {2} says")
    # fmt: on


# The draw.


def faults_of(
    seed: str, servers: int, begin: float, end: float, tick: float, *, reconfigurable: bool
) -> tuple[Fault, ...]:
    """The faults of a run between two times; `tick` in seconds."""
    chance = random.Random(f"{seed}/faults")
    kinds = [kind for kind in NodeFault if kind is not NodeFault.RECONFIGURE or reconfigurable]
    # Each run has some kinds only, so that a frequent one does not hide the others (swarm testing).
    chosen = [kind for kind in kinds if chance.random() < 0.6] or kinds
    weights = [kind.traits.weight for kind in chosen]
    pace = chance.choice((1.0, 2.0, 4.0))
    moment = begin
    faults: list[Fault] = []
    while True:
        moment += tick * (0.3 + pace * 2 * chance.random())
        if moment >= end:
            return tuple(faults)
        kind = chance.choices(chosen, weights)[0]
        fault = _drawn(chance, round(moment, 6), kind, servers, tick)
        faults.append(fault)
        after = round(moment + fault.seconds + REJOIN + 2 * tick * chance.random(), 6)
        if kind is NodeFault.STRAND and after < end and chance.random() < 0.6:  # the stranded one may lead again
            faults.append(_drawn(chance, after, NodeFault.ISOLATE, servers, tick).on_leader)
            moment = after + 5 * tick


def _drawn(chance: random.Random, at: float, kind: NodeFault, servers: int, tick: float) -> Fault:
    traits = kind.traits
    victim = 0 if chance.random() < 0.4 else chance.randrange(1, servers + 1)
    peer = chance.randrange(1, servers + 1)
    seconds = tick * chance.choice((0.3, 1.0, 3.0, 8.0, 20.0)) * (0.5 + chance.random())
    numbers = traits.numbers(servers) if callable(traits.numbers) else traits.numbers
    number = chance.choice(numbers) if numbers else 0
    if traits.lasts is not None:
        seconds = traits.lasts(chance, tick)
    return Fault(at, kind, 0 if traits.strikes_leader else victim, peer, round(seconds, 6), number)
