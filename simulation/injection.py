"""The faults of a plan, carried out on the machines and the network.

Rules of this module:

- A fault that meets a server that is down has no effect, and is not counted.
- A cut from a server concerns its peers and clients alike if it is isolated, and one peer otherwise.
- `heal` ends every fault that is in progress, and starts every server.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial

from checker.histories import Pause
from simulation.ensemble import SimulatedEnsemble, address_of
from simulation.faults import Fault
from simulation.operator import Operator
from simulation.world.network import Network
from spec.quorum import Sid

NO_CRASH = 1 << 60
SLOW_SYNC = 300
"""How many times slower a disk is whose machine loses its power during a sync: others go on meanwhile."""
LATER = 2
"""The number of an `interrupt` that waits until the learner has its tree on disk."""
INTERRUPTION = 2.0
"""Seconds for which a leader is down that ended while it synchronised a learner."""
RETURN = 10.0
"""Seconds that a stranded leader may need to follow the new one."""


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
        self._kinds: dict[str, Callable[[Fault, Sid], bool]] = {
            "kill": partial(self._crash, power=False),
            "power": partial(self._crash, power=True),
            "kill at a write": partial(self._crash_at, power=False),
            "power at a write": partial(self._crash_at, power=True),
            "power in a sync": self._power_in_sync,
            "kill all": partial(self._crash_all, power=False),
            "power all": partial(self._crash_all, power=True),
            "fail sync": self._fail_sync,
            "stall": self._stall,
            "full": self._full,
            "pause": self._pause,
            "cut": self._cut,
            "isolate": self._isolate,
            "strand": self._strand,
            "partition": self._partition,
            "slow": self._slow,
            "reset": self._reset,
            "interrupt": self._interrupt,
            "clock": self._clock,
            "reconfigure": self._reconfigure,
        }

    def strike(self, fault: Fault) -> None:
        """Carries out a fault, whose end is scheduled."""
        victim = fault.victim or self._ensemble.leader()
        if victim is not None and victim in self._ensemble.machines and self._kinds[fault.kind](fault, victim):
            self.counts[fault.kind] += 1
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

    def _full(self, fault: Fault, victim: Sid) -> bool:
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

    def _reset(self, fault: Fault, victim: Sid) -> bool:
        return self._network.reset(address_of(victim), address_of(fault.other)) > 0

    def _interrupt(self, fault: Fault, _victim: Sid) -> bool:
        """Ends the connection, or the leader, when the next learner has received its tree."""

        def installed(learner: Sid) -> None:
            leader = self._ensemble.leader()
            self._ensemble.installed = lambda _: None
            if leader is not None:
                self.counts["interrupt"] += 1
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
