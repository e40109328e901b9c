"""The process of a search: the memory that it may use, and deferred interrupts.

This module is separate from the engines, so that commands without a search need not import psutil.
"""

import resource
import signal
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import NamedTuple

import psutil

from spec.text import required_integer

BOTH = (signal.SIGINT, signal.SIGTERM)
UNLIMITED = 1 << 62  # bytes
CGROUPS = Path("/sys/fs/cgroup")


class Interrupts:
    """A context that records a first Ctrl-C and raises KeyboardInterrupt at its end; a second one interrupts
    immediately.

    It has no effect where a signal does not raise KeyboardInterrupt anyway: outside the main thread, or if the program
    has another handler. The present handler is queried each time and not stored, since a signal may arrive at any
    moment.
    """

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in BOTH:
                if signal.getsignal(number) is signal.default_int_handler:
                    signal.signal(number, self._note)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leave()
        if self.requested and kind is None:
            raise KeyboardInterrupt

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        self._leave()

    def _leave(self) -> None:
        for number in BOTH:
            if signal.getsignal(number) == self._note:
                signal.signal(number, signal.default_int_handler)


def free_memory(share: float) -> int:
    """A share of the memory that this process may still use, in bytes: of the machine, its cgroups and its ulimit."""
    return int(share * min(psutil.virtual_memory().available, allowed_memory()))


def allowed_memory() -> int:
    """The bytes that the cgroups and the ulimit of this process leave; UNLIMITED without such limits.

    A process that takes more is killed, or gets no more memory.
    """
    return min(_free_incgroups(), free_address_space())


def free_address_space() -> int:
    """The bytes of address space that this process may still map (RLIMIT_AS and RLIMIT_DATA)."""
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    limited = [soft for soft in limits if soft != resource.RLIM_INFINITY]
    return max(0, min(limited) - psutil.Process().memory_info().vms) if limited else UNLIMITED


def check_address_space(least: int) -> None:
    """Raises MemoryError unless this many bytes of address space are left: libraries without it end the process."""
    room = free_address_space()
    if room < least:
        problem = f"the limit of this process (ulimit -v) leaves {room // 1_000_000} MB of address space"
        raise MemoryError(f"{problem}, and the compiled engine needs {least // 1_000_000} MB; allow more")


class MemoryFiles(NamedTuple):
    """The names of a version of cgroups for the limit, the use, and the part of the use that can be reclaimed."""

    limit: str
    used: str
    reclaimable: str


_VERSIONS = {
    2: MemoryFiles("memory.max", "memory.current", "inactive_file"),
    1: MemoryFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def _free_incgroups() -> int:
    """The memory that the cgroups of this process leave, in bytes; UNLIMITED without a limit."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return UNLIMITED
    return min((free_in(folder, version) for folder, version in cgroups(lines, CGROUPS)), default=UNLIMITED)


def cgroups(lines: Iterable[str], mount: Path) -> Iterator[tuple[Path, int]]:
    """The folders of the memory cgroups in lines of /proc/self/cgroup, with all that contain them and the version."""
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, version = (mount / "memory", 1) if controllers else (mount, 2)
        folder = root / path.lstrip("/")
        yield from ((parent, version) for parent in (folder, *folder.parents) if parent.is_relative_to(root))


def free_in(folder: Path, version: int) -> int:
    """The memory that a cgroup leaves, in bytes; UNLIMITED if it has no limit or no such files."""
    files = _VERSIONS[version]
    try:
        limit = (folder / files.limit).read_text().strip()
        if limit == "max":
            return UNLIMITED
        used = required_integer((folder / files.used).read_text().strip())
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(0, required_integer(limit) - used + required_integer(statistics.get(files.reclaimable, "0")))
    except (OSError, ValueError):
        return UNLIMITED
