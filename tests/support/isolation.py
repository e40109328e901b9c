"""No test reads the user's files, and no test writes outside its own folders.

- `isolate` gives all tests a home and a folder for temporary files, which are new and removed at the end. No variable
  of the user remains that names another folder. Child processes inherit all this.
- Temporary files are in memory if the machine has the room: a server waits for its disk at each write, and no test
  proves what a disk keeps without power.
- What may stay from one run to the next is in `.pytest_cache` of the checkout: compiled kernels, fonts, and the
  examples of Hypothesis that failed.
- `watch` records every file that this process opens or changes elsewhere; `tests/conftest.py` then fails the test.
- A test that leaves the state of this process changed (`ProcessState`) fails too: the tests after it would depend on
  the order.
- `.ci/bare` runs all tests with an empty home and fails if a file is there afterwards, whichever process wrote it.
"""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, Self

from harness import releases

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".pytest_cache"
REWRITE = "REWRITE_GOLDEN"
OWN = "QUORATE_TESTS"
"""The variable by which the processes of pytest-xdist share the folder of the first process."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MEMORY = Path("/dev/shm")
ROOM = 2 << 30
DEVICES = ("/dev/null", "/dev/full", "/dev/tty", "/dev/pts/", "/dev/fd/")
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.truncate", "os.chmod")


def rewrites() -> bool:
    """Whether tests write what they would compare: `pytest --rewrite-transcripts`, or REWRITE_GOLDEN=1."""
    return bool(os.environ.get(REWRITE))


def isolate() -> None:
    """Change the environment of this process; the first of several makes the folder of all."""
    if OWN in os.environ:
        return
    if "TMPDIR" not in os.environ and takes_all(MEMORY):
        tempfile.tempdir = str(MEMORY)
    variables = {
        "QUORATE_ZOOKEEPER": str(releases.cache_folder()),  # releases are installed, like programs
        "PYTEST_DEBUG_TEMPROOT": tempfile.gettempdir(),  # pytest keeps the folders of the last three runs
        "HYPOTHESIS_STORAGE_DIRECTORY": str(KEPT / "hypothesis"),
        "XDG_CACHE_HOME": str(KEPT / "user"),
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:-UsePerfData",  # half the time of a short run; no file in /tmp
        "QUORATE_ANSWERS": "",  # every test judges anew
        "QUORATE_DEBUG": os.environ.get("QUORATE_DEBUG", ""),
    }
    own = Path(tempfile.mkdtemp(prefix="qt-"))  # short: the names of sockets are bounded
    for name in list(os.environ):
        if name.startswith(("QUORATE_", "XDG_", "NUMBA_")) or name == "PYTEST_ADDOPTS":  # which is for this run alone
            del os.environ[name]
    (own / "home").mkdir()
    os.environ |= {**variables, OWN: str(own), "HOME": str(own / "home"), "TMPDIR": str(own)}
    tempfile.tempdir = None


def takes_all(folder: Path) -> bool:
    """Whether the temporary files of a run fit into this folder, and programs among them can be executed."""
    if not os.access(folder, os.W_OK):
        return False
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize >= ROOM and not state.f_flag & os.ST_NOEXEC


def clean_up() -> None:
    shutil.rmtree(os.environ.pop(OWN), ignore_errors=True)


class ProcessState(NamedTuple):
    """What belongs to the whole process and changes the result of tests."""

    folder: str
    recursion_limit: int
    handlers: dict[signal.Signals, Any]

    @classmethod
    def current(cls) -> Self:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        return cls(str(Path.cwd()), sys.getrecursionlimit(), handlers)

    def restore(self) -> None:
        os.chdir(self.folder)
        sys.setrecursionlimit(self.recursion_limit)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)


class Watch:
    """The files of others that this process has opened or changed since the last question."""

    def __init__(self, home: Path) -> None:
        real = [os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, os.environ["QUORATE_ZOOKEEPER"], ROOT)]
        temporary = os.environ["PYTEST_DEBUG_TEMPROOT"]
        self._own = (os.environ[OWN], f"{temporary}/pytest-of-", str(KEPT), *DEVICES, "/proc/", "pipe:")
        self._readable = (*self._own, *real, *os.environ["PATH"].split(":"))
        self._home = f"{home}/"
        self._found: list[str] = []

    def start(self) -> None:
        """Listen to every file operation of this process, for ever: Python cannot remove such a hook."""
        sys.addaudithook(self._hear)

    def taken(self) -> list[str]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def is_foreign(self, path: str, *, changes: bool) -> bool:
        """Whether no test may open this file, or change it."""
        if changes:
            path = os.path.realpath(path)
            rewritten = rewrites() and path.startswith(str(ROOT))
            return not (path.startswith(self._own) or rewritten or "/__pycache__" in path)
        return path.startswith(self._home) and not path.startswith(self._readable)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if mode is None and isinstance(path, str) and not path.startswith("/"):
                return  # os.open with a folder's descriptor, which the event does not have
            changes = isinstance(flags, int) and bool(flags & WRITING)
        elif event in CHANGES and arguments[-1] in (-1, 0):
            path, changes = arguments[1 if event in ("os.symlink", "os.link") else 0], True
        else:
            return
        if isinstance(path, str | bytes) and self.is_foreign(os.fsdecode(path), changes=changes):
            self._found.append(f"{event} {os.fsdecode(path)}")
