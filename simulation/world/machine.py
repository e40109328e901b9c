"""A simulated machine: its clocks, its disks and its address, and the process of a server that runs on it.

Rules this module keeps:

- Each process has a separate system (`refimpl.system.System`). When the process is dead, every call of its system ends
  with `PowerOff`.
- A call of the disk takes time. In the event loop it delays the process; in a thread it delays only that thread.
- The journal of a server is on a second disk, which loses nothing: it is the record that the server is judged by.
"""

import errno
import os
import random
import socket
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from refimpl.system import SYSTEM, System
from simulation.world.disk import Directory, Inode, SimulatedDisk
from simulation.world.loop import PowerOff, Process, SimulatedLoop
from simulation.world.network import ListeningSocket, Network
from simulation.world.paths import SimulatedPath
from simulation.world.thread import SimulatedThread

EPOCH_MS = 1_700_000_000_000
"""The wall clock of every machine at the start of a run, in milliseconds since 1970."""
JOURNALS = "/journal"
"""The folder whose files survive everything."""
LONGEST_CALL = 12.0
"""Seconds that a call of a disk takes at most, so that none lasts long after a slow disk is healed."""


class Machine:
    """A machine of the simulated network.

    `wall_offset` is the error of its wall clock in milliseconds; `slowness` multiplies the time of its disk's calls:
    one machine in four has a disk so fast that a server writes to it without a thread.
    """

    def __init__(self, loop: SimulatedLoop, network: Network, address: str, seed: str) -> None:
        self.loop, self.network, self.address = loop, network, address
        self.disk = SimulatedDisk(f"{seed}/{address}")
        self.disk.root.change((JOURNALS[1:], Directory()))
        self.disk.root.settle()
        self.chance = random.Random(f"{seed}/{address}/machine")
        self.wall_offset = 0
        self.slowness = 0.01 if self.chance.random() < 0.25 else 1.0
        self.process: Process | None = None
        self.fail_sync = 0
        """The number of syncs until one fails; 0: none fails."""
        self.hang = 0.0
        """Seconds for which the process hangs while a sync fails."""
        self._dies = False
        self.die_in_sync = 0
        """The number of syncs until the power fails during one; 0: it does not."""
        self.die_at: tuple[int, bool] | None = None
        """The number of the disk's operation at which the machine fails, and whether the power fails then."""
        self.disk.on_operation = self._operation

    def boot(self, name: str) -> Process:
        """Starts a process with a new system."""
        process = self.process = Process(self.loop, name)
        process.context.run(SYSTEM.set, SimulatedSystem(self, process))
        self.network.started(self.address, process)
        return process

    def crash(self, power: bool) -> None:
        """Ends the process; with `power` the disk loses what is not durable, and no peer notices."""
        process = self.process
        self.be_reliable()
        if process is None:
            return
        self.process = None
        process.alive = False
        self.network.ended(self.address, process, silent=power)
        process.end()
        if power:
            self.disk.power_failed(keep=JOURNALS[1:])
        else:
            self.disk.process_ended()

    def be_reliable(self) -> None:
        """Ends the faults that wait for an operation of the disk."""
        self.die_at, self.fail_sync, self.hang, self.die_in_sync = None, 0, 0.0, 0
        self._dies = False

    def time_of(self, seconds: float) -> float:
        """A time that the disk takes, which is at most `seconds` as long as it is not slow."""
        return min(LONGEST_CALL, self.chance.random() * seconds * self.slowness)

    def delay_of_a_thread(self) -> float:
        """The seconds until a thread begins with work: mostly it does so at once."""
        return self.time_of(0.003 if self.chance.random() < 0.2 else 0.0001)

    def _operation(self, name: str) -> None:
        process = self.process
        if process is None or not process.alive:
            raise PowerOff
        if self.die_at is not None and self.disk.operations >= self.die_at[0]:
            power = self.die_at[1]
            process.dying = "power" if power else "kill"
            process.alive = False
            raise PowerOff(process.dying)
        if name == "sync":
            self._sync(process)
        else:
            process.lag += self.time_of(0.0002)

    def _sync(self, process: Process) -> None:
        """The time of a sync, and the faults during it. Raises PowerOff and OSError."""
        fails, dies = self.fail_sync == 1, self.die_in_sync == 1
        self.fail_sync, self.die_in_sync = max(0, self.fail_sync - 1), max(0, self.die_in_sync - 1)
        self._dies |= dies
        if fails and self.hang:
            process.block(self.hang)
            self.loop.stalled(process, self.loop.now, self.loop.now + self.hang)
            self.hang = 0.0
        seconds = self.time_of(0.004)
        if process.thread is not None:
            process.thread.wait(seconds)
        else:
            process.lag += seconds
        if dies and self._dies:  # not if the machine has been repaired meanwhile
            process.dying, process.alive = "power", False
            raise PowerOff(process.dying)
        if fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


class SimulatedSystem(System):
    """The operating system of one simulated process."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self.machine, self.process, self.disk = machine, process, machine.disk
        self._open: dict[int, tuple[str, Any]] = {}
        self._next = 3

    # Clocks.

    def monotonic_ms(self) -> int:
        """The time of the simulation."""
        return int(self.machine.loop.time() * 1000) + 1_000_000

    def monotonic(self) -> float:
        """The time of the simulation, in seconds."""
        return self.machine.loop.time()

    def wall_ms(self) -> int:
        """The wall clock of the machine."""
        return EPOCH_MS + int(self.machine.loop.time() * 1000) + self.machine.wall_offset

    # Files.

    def path(self, name: str) -> Path:
        """A path on the simulated disk."""
        return SimulatedPath(name)

    def descriptor(self, path: str, entry: Any) -> int:
        """Makes a descriptor of an entry of the disk."""
        self._check()
        number = self._next
        self._next += 1
        self._open[number] = (path, entry)
        return number

    def forget(self, descriptor: int) -> None:
        """Closes a descriptor, if it is open."""
        path, _ = self._open.pop(descriptor, ("", None))
        if path.startswith("lock:"):
            self.disk.unlock(path)

    def written(self, path: str, inode: Inode, offset: int, data: bytes) -> None:
        """Writes bytes; those of a journal do not count as an operation of the disk."""
        self._check()
        if path.startswith(JOURNALS):
            inode.data[offset:] = data
        else:
            self.disk.write(inode, offset, data)

    def open(self, path: Path, flags: int, mode: int = 0o644) -> int:  # noqa: ARG002
        """Opens a file or a directory."""
        name = str(path)
        inode = self.disk.find(name)
        if flags & os.O_DIRECTORY:
            return self.descriptor(name, self.disk.directory(name))
        if inode is None and flags & os.O_CREAT:
            return self.descriptor(name, self.disk.make_file(name))
        if inode is not None and flags & os.O_EXCL:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        return self.descriptor(name, self.disk.file(name))

    def close(self, descriptor: int) -> None:
        """Closes a descriptor."""
        self.forget(descriptor)

    def pwrite(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Writes at an offset; sometimes only a part, as a system may."""
        self._check()
        chance = self.machine.chance
        if len(data) > 1 and chance.random() < 0.02:
            data = data[: 1 + int(chance.random() * (len(data) - 1))]
        self.disk.write(self._open[descriptor][1], offset, bytes(data))
        return len(data)

    def ftruncate(self, descriptor: int, size: int) -> None:
        """Changes the size of a file."""
        self._check()
        self.disk.truncate(self._open[descriptor][1], size)

    def fsync(self, descriptor: int) -> None:
        """Makes a file or the names in a directory durable."""
        self._check()
        self.disk.sync(self._open[descriptor][1])

    fdatasync = fsync

    def size(self, descriptor: int) -> int:
        """The size of a file."""
        return len(self._open[descriptor][1].data)

    def fchmod(self, descriptor: int, mode: int) -> None:
        """Permissions are not simulated."""

    def is_writable(self, directory: Path) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def lock(self, descriptor: int) -> None:
        """Locks a directory."""
        path, entry = self._open[descriptor]
        self.disk.lock(f"lock:{path}")
        self._open[descriptor] = (f"lock:{path}", entry)

    # Sockets.

    def getaddrinfo(self, host: str | None, port: int, **_: int) -> list[Any]:
        """The address, unchanged: hosts have no names here."""
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host or self.machine.address, port))]

    def socket(self, family: int, kind: int, protocol: int) -> Any:  # noqa: ARG002
        """Makes a socket of the simulated network."""
        self._check()
        return ListeningSocket(self.machine.network, self.process, self.machine.address)

    # Threads.

    def thread(self, name: str) -> Executor:  # noqa: ARG002
        """Makes a thread."""
        return SimulatedThread(self.process, self.machine.delay_of_a_thread)

    def _check(self) -> None:
        if not self.process.alive:
            raise PowerOff
