"""The servers of a run: real nodes on simulated machines, started from a zoo.cfg and started again after they end.

Rules of this module:

- A server runs `refimpl.process.serve`, the main function of a real one, with the files of its machine.
- A server that ends without a fault of the plan is started again after `AGAIN`. Its reason is recorded, except for a
  failing disk.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

import msgspec

from refimpl.disk.files import DataError
from refimpl.node import Node
from refimpl.process import FailedError, StartError, read_settings, serve
from refimpl.tree import Tree
from simulation.inspection import Inspector
from simulation.world.loop import OWNER, PowerOff, Process, SimulatedLoop
from simulation.world.machine import JOURNALS, Machine
from simulation.world.network import Network
from simulation.world.paths import SimulatedPath
from spec.config import ConfigError
from spec.quorum import Sid, View
from spec.zab.state import Leader, Learner

CLIENT_PORT = 2181
ZOO_CFG = "/server/zoo.cfg"
JOURNAL = f"{JOURNALS}/events.jsonl"
MOST_REASONS = 5
AGAIN = 1.0
"""Seconds from the unplanned end of a server to its next start."""


class EnsembleSettings(msgspec.Struct, frozen=True):
    """The settings of all servers; `tick` in milliseconds, `observers` are the last servers."""

    servers: int
    observers: int
    tick: int
    snap_count: int
    preallocation: int
    init_limit: int = 10
    sync_limit: int = 4


def address_of(sid: Sid) -> str:
    """The address of a server's machine."""
    return f"10.0.0.{sid}"


def server_line(sid: Sid, *, observer: bool) -> str:
    """The value of a server's line, with its client address."""
    role = "observer" if observer else "participant"
    return f"{address_of(sid)}:2888:3888:{role};{address_of(sid)}:{CLIENT_PORT}"


class SimulatedEnsemble:
    """The machines of an ensemble, and the nodes that run on them.

    `ended` has the reasons of the servers that ended without a planned fault. `roles` counts the roles at each look.
    """

    def __init__(self, loop: SimulatedLoop, network: Network, settings: EnsembleSettings, seed: str) -> None:
        self.loop, self.settings = loop, settings
        self.machines = {sid: Machine(loop, network, address_of(sid), seed) for sid in range(1, settings.servers + 1)}
        self.nodes: dict[Sid, Node] = {}
        self.inspector = Inspector(network)
        self.installed: Callable[[Sid], None] = lambda _: None
        """Called when a learner has installed the tree of its leader."""
        self.ended: list[str] = []
        self.failing: Counter[Sid] = Counter()
        """The faults of each disk that may stop its server."""
        self.roles: Counter[str] = Counter()
        self.starts = self.below_snapshot = 0
        """How often servers started, and how often one ended because its leader lacked what its only snapshot had."""
        self.reconfigured = self.joined = False
        """Whether a change of members was asked for, and whether a server has got the files of a joiner."""
        self.controller = Process(loop, "10.0.2.1")
        network.started("10.0.2.1", self.controller)
        self._stopping: dict[Sid, asyncio.Event] = {}
        self._all_stop = False
        self._down: dict[Sid, int] = dict.fromkeys(self.machines, 0)
        loop.died = self._died
        for sid, machine in self.machines.items():
            self._install(sid, machine)

    def _install(self, sid: Sid, machine: Machine) -> None:
        """Writes the files of a server, durably."""
        process = machine.boot(f"install {sid}")
        lines = [
            f"server.{member}={server_line(member, observer=self.is_observer(member))}" for member in self.machines
        ]
        process.context.run(self._write_files, sid, lines)
        machine.disk.settle()
        machine.crash(power=False)

    def _write_files(self, sid: Sid, lines: list[str]) -> None:
        settings = self.settings
        text = [
            f"tickTime={settings.tick}",
            f"initLimit={settings.init_limit}",
            f"syncLimit={settings.sync_limit}",
            "dataDir=/server/data",
            f"snapCount={settings.snap_count}",
            f"preAllocSize={settings.preallocation}",
            "maxClientCnxns=0",
            "reconfigEnabled=true",
            "standaloneEnabled=false",
            "skipACL=yes",
            "minSessionTimeout=1",
            *lines,
        ]

        SimulatedPath("/server/data").mkdir(parents=True, exist_ok=True)
        SimulatedPath(ZOO_CFG).write_text("\n".join(text) + "\n")
        SimulatedPath("/server/data/myid").write_text(f"{sid}\n")

    def _join(self, sid: Sid) -> None:
        """Gives a server that the ensemble has left the files of a joiner: the members, and itself as an observer."""
        self.joined = True
        view = self.view()
        members = sorted(self.machines if view is None else view.members)
        lines = [
            f"server.{member}={server_line(member, observer=view is not None and member in view.observers)}"
            for member in members
            if member != sid
        ]
        following = SimulatedPath(f"{ZOO_CFG}.dynamic.next")
        following.unlink(missing_ok=True)
        self._write_files(sid, [*lines, f"server.{sid}={server_line(sid, observer=True)}"])
        self.machines[sid].disk.settle()

    # Processes.

    def start(self, sid: Sid) -> None:
        """Starts a server, unless it runs."""
        machine = self.machines[sid]
        if machine.process is not None:
            return
        self.starts += 1
        process = machine.boot(f"server {sid}")
        process.spawn(self._main(sid))

    async def _main(self, sid: Sid) -> None:
        stopping = self._stopping[sid] = asyncio.Event()
        process, reason = OWNER.get(), ""
        try:
            try:
                settings = read_settings(SimulatedPath(ZOO_CFG))
            except ConfigError:
                if not self.reconfigured:
                    raise
                self._join(sid)
                settings = read_settings(SimulatedPath(ZOO_CFG))
            await serve(settings, SimulatedPath(JOURNAL), stopping, lambda node: self._started(sid, node))
        except FailedError as error:
            if self.failing[sid]:
                self.failing[sid] -= 1
            elif self.nodes[sid].below_snapshot:
                self.below_snapshot += 1
            else:
                reason = str(error)
        except ConfigError as error:
            reason = "; ".join(map(str, error.problems))
        except (StartError, DataError, OSError) as error:
            if not (isinstance(error, OSError) and self.failing[sid]):
                reason = f"{type(error).__name__}: {error}"
        if sid in self.nodes:
            self.inspector.ended(self.nodes[sid])
        if reason and len(self.ended) < MOST_REASONS:
            self.ended.append(f"{self.loop.now:.6f} s, server {sid} ended by itself: {reason}")
        process.dying = "" if stopping.is_set() and not reason and self._all_stop else "ended"
        raise PowerOff

    def _started(self, sid: Sid, node: Node) -> None:
        self.nodes[sid] = node
        self.inspector.started(node)
        install = node.install_snapshot

        def installed(tree: Tree, zxid: int) -> None:
            install(tree, zxid)
            self.installed(sid)

        node.install_snapshot = installed  # type: ignore[method-assign]

    def _died(self, process: Process, why: str) -> None:
        """A process has ended, at an operation of its disk or without a fault."""
        for sid, machine in self.machines.items():
            if machine.process is process:
                self.nodes.pop(sid, None)
                machine.crash(power=why == "power")
                if why == "ended":
                    self.loop.outside(AGAIN, self.start_again, sid)

    def start_again(self, sid: Sid) -> None:
        """Starts a server that nothing keeps down."""
        if not self._down[sid]:
            self.start(sid)

    def take_down(self, sid: Sid, power: bool) -> None:
        """Ends a server; it stays down until as many calls of `bring_up`."""
        self._down[sid] += 1
        self.nodes.pop(sid, None)
        self.machines[sid].crash(power)

    def hold_down(self, sid: Sid) -> None:
        """Keeps a server down from its end on, until `bring_up`."""
        self._down[sid] += 1

    def bring_up(self, sid: Sid) -> None:
        """Ends one reason for which a server is down."""
        self._down[sid] -= 1
        self.start_again(sid)

    def stop_all(self) -> None:
        """Stops every server in order, as a signal does."""
        self._all_stop = True
        for sid, machine in self.machines.items():
            if machine.process is not None and sid in self._stopping:
                self.loop.inside(machine.process, self._stopping[sid].set)

    @property
    def running(self) -> tuple[Sid, ...]:
        """The servers whose processes run."""
        return tuple(sid for sid, machine in self.machines.items() if machine.process is not None)

    # State.

    def is_observer(self, sid: Sid) -> bool:
        """Whether a server was an observer at first."""
        return sid > self.settings.servers - self.settings.observers

    def has_first_role(self, sid: Sid, view: View) -> bool:
        """Whether a server has in a configuration the role that it had at first."""
        return sid in (view.observers if self.is_observer(sid) else view.voters)

    def view(self) -> View | None:
        """The active configuration of the leader, if there is one."""
        leader = self.leader()
        return None if leader is None else self.nodes[leader].server.view

    def leader(self) -> Sid | None:
        """The server that leads in the newest epoch, if there is one."""
        leading = [
            (node.server.zab.epoch, sid) for sid, node in self.nodes.items() if isinstance(node.server.zab, Leader)
        ]
        return max(leading)[1] if leading else None

    def look(self) -> None:
        """Counts the roles of all servers at this moment, and inspects those that run."""
        for sid, machine in self.machines.items():
            node = self.nodes.get(sid)
            if node is None:
                self.roles["down"] += 1
                continue
            if machine.process is not None:
                self.inspector.look(node, machine.process)
            zab = node.server.zab
            if isinstance(zab, Leader):
                self.roles[f"leader {zab.phase.name.lower()}"] += 1
            elif isinstance(zab, Learner):
                kind = "observer" if sid in node.server.view.observers else "follower"
                self.roles[f"{kind} {'serving' if zab.serves else 'synchronising'}"] += 1
            else:
                self.roles["looking"] += 1
