"""One server process: to start, query, stop, kill and pause it.

Rules of this module:

- A process is ended by its id, and only by the program that started it. The processes that still run when this program
  ends are killed then.
- Every wait has a bound. The error after it names the awaited condition and shows the end of the server's log.
- A log is appended to over restarts, so that one file shows the whole run.

Source: `FourLetterCommands` (the words and their answers).
"""

import atexit
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

LOOPBACK = "127.0.0.1"
# Below the range that Linux takes ports of outgoing connections from (32768 and above): a free port stays free.
PORTS = range(15000, 32000)
POLL_SECONDS = 0.02
LOG_LINES_SHOWN = 15
Place: TypeAlias = int | tuple[str, int]
"""Where a server listens for clients: a port of the loopback address, or a host and a port."""


class ServerError(RuntimeError):
    """A server could not be started, or an awaited condition did not hold in time."""


_given: set[int] = set()
_running: dict[int, subprocess.Popen[bytes]] = {}


def free_ports(count: int) -> tuple[int, ...]:
    """Find `count` free ports of the loopback address; this program never returns a port twice."""
    ports: list[int] = []
    # The common generator is unsuitable: hypothesis gives it a fixed seed, so two programs would try the same ports.
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if len(ports) == count:
            return tuple(ports)
        if port not in _given and is_free(port):
            _given.add(port)
            ports.append(port)
    raise ServerError(f"{count} free ports were asked for and {LOOPBACK} has only {len(ports)} in {PORTS}")


def is_free(port: int) -> bool:
    """Whether a listener can be opened there now."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def wait_until(holds: Callable[[], bool], seconds: float, what: str, log: Path | None = None) -> None:
    """Return as soon as `holds()`; raise ServerError with `what` if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise ServerError(f"{what}: not within {seconds:g} s{_shown(log)}")
        time.sleep(POLL_SECONDS)


def _shown(log: Path | None) -> str:
    if log is None or not log.exists():
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return f"; the end of {log}:\n  " + "\n  ".join(lines)


def address_of(place: Place) -> tuple[str, int]:
    """Host and port of a server; a number is a port of the loopback address."""
    return (LOOPBACK, place) if isinstance(place, int) else place


def word(place: Place, text: str, seconds: float = 5.0) -> str:
    """The answer to a four-letter word; empty if nothing listens or the server closes without an answer."""
    try:
        with socket.create_connection(address_of(place), timeout=seconds) as connection:
            connection.sendall(text.encode("ascii"))
            received = b""
            while part := connection.recv(65536):
                received += part
    except OSError:
        return ""
    return received.decode("utf-8", errors="replace")


def srvr(place: Place) -> dict[str, str]:
    """The answer to `srvr`, by the names before the colons; empty without an answer."""
    fields = (line.partition(": ") for line in word(place, "srvr").splitlines())
    return {name: value.strip() for name, colon, value in fields if colon}


class Process:
    """A server command as a process; standard output and errors are appended to `log`."""

    def __init__(
        self, command: Sequence[str], directory: Path, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.command = list(command)
        self.directory = directory
        self.log = log
        self.environment = dict(environment or {})
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._popen is not None and self._popen.poll() is None

    @property
    def pid(self) -> int:
        """The process id. Raises ServerError if the process does not run."""
        if self._popen is None or not self.alive:
            raise ServerError(f"{self.directory.name} does not run{self.last_words()}")
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code (negative: the signal), or None if the process runs or was never started."""
        return None if self._popen is None else self._popen.poll()

    def last_words(self) -> str:
        """The exit code and the end of the log, as part of an error message."""
        ended = "" if self.exit_code is None else f", its exit code is {self.exit_code}"
        return ended + _shown(self.log)

    def start(self) -> None:
        """Start the process. Raises ServerError if it already runs."""
        if self.alive:
            raise ServerError(f"{self.directory.name} runs already, as process {self.pid}")
        with self.log.open("ab") as output:
            # A separate session: Ctrl-C at the terminal ends this program, which then ends its servers in order.
            self._popen = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _running[self._popen.pid] = self._popen

    def stop(self, seconds: float = 30.0) -> None:
        """Send SIGTERM, and wait for the end. Raises ServerError after `seconds`, and kills the process."""
        if self._popen is None or not self.alive:
            return
        # `pid` is an error once the process has ended, which may happen between any two of these lines.
        self._popen.send_signal(signal.SIGTERM)
        self._popen.send_signal(signal.SIGCONT)
        try:
            self._ended(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(
                f"{self.directory.name} did not end within {seconds:g} s of SIGTERM and was killed{_shown(self.log)}"
            ) from None

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        if self._popen is not None and self.alive:
            self._popen.send_signal(signal.SIGKILL)
            self._ended(15.0)

    def pause(self) -> None:
        """Send SIGSTOP, and wait until the process is stopped; it keeps its sockets.

        The signal reaches one thread, and the others continue until that one was scheduled: up to 35 ms later on busy
        processors, time enough to acknowledge a proposal. `waitid` reports a stop only when all threads have stopped.
        """
        os.kill(self.pid, signal.SIGSTOP)
        look = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        name = self.directory.name
        wait_until(lambda: os.waitid(os.P_PID, self.pid, look) is not None, 15.0, f"{name} stands still", self.log)

    def resume(self) -> None:
        """Send SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def _ended(self, seconds: float) -> None:
        assert self._popen is not None
        self._popen.wait(seconds)
        _running.pop(self._popen.pid, None)


@atexit.register
def _end_the_rest() -> None:
    for popen in _running.values():
        if popen.poll() is None:
            popen.kill()
            popen.wait()
