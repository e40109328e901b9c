"""The gates of real servers: a record waits before it is written to the log, and a thread rests, until it is permitted.

Rules of this module:

- With a closed gate, a record is on the disk only after `permit`. Until then it is not even in the page cache, so the
  end of the process loses it, as a power failure would. It affects only files named `log.ZXID`.
- A held thread rests after it has been woken, and a lingering thread after it has woken the sync thread. A thread that
  gets no processor for a while does the same; it has no lock that others need.
- The gates are a shim for LD_PRELOAD, compiled with gcc at its first use.

Source: `FileTxnLog.append`, `.commit` (one flush and one write for each commit with `zookeeper.maxBatchSize=1`).
"""

import shutil
import subprocess
from enum import Enum
from pathlib import Path

from harness.processes import ServerError
from harness.reproduce.disks import FILE_HEADER_BYTES, LOG_MAGIC, zxids_in
from spec.text import required_integer

SOURCES = tuple(Path(__file__).with_name(name) for name in ("disk_gate.c", "thread_gate.c"))


def compile_shim(directory: Path) -> Path:
    """Compile the shim into a directory. Raises ServerError if gcc is missing or fails."""
    directory.mkdir(parents=True, exist_ok=True)
    shim = directory / "gates.so"
    if shutil.which("gcc") is None:
        raise ServerError("no gcc on the PATH; apt-get install -y gcc libc6-dev")
    command = ["gcc", "-O1", "-shared", "-fPIC", "-pthread", "-o", str(shim), *map(str, SOURCES), "-ldl"]
    compilation = subprocess.run(command, check=False, capture_output=True, text=True)
    if compilation.returncode:
        raise ServerError(
            f"gcc cannot compile {' and '.join(source.name for source in SOURCES)}: {compilation.stderr.strip()}"
        )
    return shim


class DiskGate:
    """The gate of one server; `directory` is $DISK_GATE."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.reset()

    def reset(self) -> None:
        """Prepare for a new process, which counts its writes from 1. The gate keeps its state: open or closed."""
        is_open = self._open.exists()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        if is_open:
            self._open.touch()

    @property
    def _open(self) -> Path:
        return self.directory / "open"

    def open(self) -> None:
        """Let every write pass."""
        self._open.touch()

    def close(self) -> None:
        """Hold the writes from now on."""
        self._open.unlink(missing_ok=True)

    def fill(self) -> None:
        """Let each write of a record to the log fail from now on, and that of its padding: the disk is full."""
        (self.directory / "full").touch()

    def free(self) -> None:
        """Let writes succeed again."""
        (self.directory / "full").unlink(missing_ok=True)

    def waiting(self) -> tuple[int, ...]:
        """The zxids of the records that the waiting write contains; empty if no write waits."""
        writes = (mark.read_bytes() for mark in self._marks())
        records = (write[FILE_HEADER_BYTES:] if write.startswith(LOG_MAGIC) else write for write in writes)
        return tuple(zxid for record in records for zxid in zxids_in(record))

    def permit(self) -> None:
        """Let the waiting write pass. Raises ServerError if no write waits."""
        marks = self._marks()
        if not marks:
            raise ServerError(f"{self.directory}: no write waits")
        (self.directory / marks[0].name.replace("waiting", "go")).touch()

    def _marks(self) -> list[Path]:
        """The waiting writes that have no permission yet, oldest first; the log has one writer, so at most one."""
        marks = [mark for mark in self.directory.glob("waiting-*") if mark.suffix != ".part"]
        marks = [mark for mark in marks if not (self.directory / mark.name.replace("waiting", "go")).exists()]
        return sorted(marks, key=lambda mark: required_integer(mark.name.partition("-")[2]))


class ServerThread(Enum):
    """A thread of a server; the value is the beginning of its name, as the operating system has it."""

    SYNC = "SyncThread"
    COMMIT = "CommitProcessor"
    PEER = "QuorumPeer"


class ThreadGate:
    """The gate at the threads of one server; `directory` is $THREAD_GATE."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.reset()

    def reset(self) -> None:
        """Prepare for a new process, and release every thread."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)

    def hold(self, thread: ServerThread) -> None:
        """Let a thread rest when it is woken next."""
        (self.directory / f"hold-{thread.value}").touch()

    def linger(self, thread: ServerThread) -> None:
        """Let a thread rest when it has woken the sync thread; after other threads for at most a second."""
        (self.directory / f"linger-{thread.value}").touch()

    def release(self, thread: ServerThread) -> None:
        """Let a thread run."""
        for kind in ("hold", "linger"):
            (self.directory / f"{kind}-{thread.value}").unlink(missing_ok=True)

    def open(self) -> None:
        """Let every thread run."""
        for thread in ServerThread:
            self.release(thread)

    def is_closed(self, thread: ServerThread) -> bool:
        """Whether a thread rests when it is woken next, or rests already."""
        return (self.directory / f"hold-{thread.value}").exists()

    def is_held(self, thread: ServerThread) -> bool:
        """Whether a thread has been woken, and rests."""
        return (self.directory / f"held-{thread.value}").exists()
