"""One server process: started, asked, stopped, killed, frozen.

Rules this module keeps:

- A process is ended by the id it was started with, and only by whoever started it. What is still running when this
  program ends is killed then.
- Every wait has a bound. When it is over the error says what was waited for and shows the end of the server's log.
- A log is appended to over restarts, so that a run can be read afterwards in one file.

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

LOOPBACK = "127.0.0.1"
# Below the range that Linux takes ports of outgoing connections from (32768 and above): a free port stays free.
PORTS = range(15000, 32000)
POLL_SECONDS = 0.02
LOG_LINES_SHOWN = 15


class ServerError(RuntimeError):
    """A server could not be started, or did not do in time what was waited for."""


_given: set[int] = set()
_running: dict[int, subprocess.Popen[bytes]] = {}


def free_ports(count: int) -> tuple[int, ...]:
    """`count` ports of the loopback address that nothing listens on; none is given twice by this program."""
    found: list[int] = []
    # Not by the common generator: hypothesis sets that to one seed, so two programs would try the same ports.
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if len(found) == count:
            return tuple(found)
        if port not in _given and _is_free(port):
            _given.add(port)
            found.append(port)
    raise ServerError(f"{count} free ports were asked for and {LOOPBACK} has only {len(found)} in {PORTS}")


def _is_free(port: int) -> bool:
    """Whether a listener could be opened there now."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def wait_until(holds: Callable[[], bool], seconds: float, what: str, log: Path | None = None) -> None:
    """Return as soon as `holds()`; raise ServerError naming `what` when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise ServerError(f"{what}: not within {seconds:g} s{_shown(log)}")
        time.sleep(POLL_SECONDS)


def _shown(log: Path | None) -> str:
    """The end of a log, as part of an error message."""
    if log is None or not log.exists():
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return f"; the end of {log}:\n  " + "\n  ".join(lines)


def word(port: int, text: str, seconds: float = 5.0) -> str:
    """The answer to a four-letter word; empty if nothing listens or the server closes without an answer."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=seconds) as connection:
            connection.sendall(text.encode("ascii"))
            received = b""
            while part := connection.recv(65536):
                received += part
    except OSError:
        return ""
    return received.decode("utf-8", errors="replace")


def srvr(port: int) -> dict[str, str]:
    """What a server says of itself in answer to `srvr`, by the names before the colons; empty without one."""
    told = (line.partition(": ") for line in word(port, "srvr").splitlines())
    return {name: value.strip() for name, colon, value in told if colon}


class Process:
    """A command that runs until it is told to end; standard output and errors go to `log`."""

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
        """Whether it was started and has not ended."""
        return self._popen is not None and self._popen.poll() is None

    @property
    def pid(self) -> int:
        """Its process id; ServerError if it does not run."""
        if self._popen is None or not self.alive:
            raise ServerError(f"{self.directory.name} does not run{self.last_words()}")
        return self._popen.pid

    @property
    def exit_code(self) -> int | None:
        """What it ended with (negative: the signal), or None if it runs or was never started."""
        return None if self._popen is None else self._popen.poll()

    def last_words(self) -> str:
        """How it ended and the end of its log, as part of an error message."""
        ended = "" if self.exit_code is None else f", its exit code is {self.exit_code}"
        return ended + _shown(self.log)

    def start(self) -> None:
        """Start it; it must not be running."""
        if self.alive:
            raise ServerError(f"{self.directory.name} runs already, as process {self.pid}")
        with self.log.open("ab") as output:
            # A session of its own: Ctrl-C at the terminal ends this program, which then ends its servers in order.
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
        """SIGTERM, and wait until it has ended; ServerError (and SIGKILL) if it does not within `seconds`."""
        if self._popen is None or not self.alive:
            return
        # Not by `pid`, which is an error once it has ended: so it may have, between any two of these lines.
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
        """SIGKILL, and wait until it is gone."""
        if self._popen is not None and self.alive:
            self._popen.send_signal(signal.SIGKILL)
            self._ended(15.0)

    def pause(self) -> None:
        """SIGSTOP, and wait until it does nothing; it keeps its sockets.

        The signal reaches one thread, and the others run on until that one had its turn: 35 ms later where the
        processors were busy, time enough to acknowledge a proposal. That all have stopped is what `waitid` reports.
        """
        os.kill(self.pid, signal.SIGSTOP)
        look = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        name = self.directory.name
        wait_until(lambda: os.waitid(os.P_PID, self.pid, look) is not None, 15.0, f"{name} stands still", self.log)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def _ended(self, seconds: float) -> None:
        assert self._popen is not None
        self._popen.wait(seconds)
        _running.pop(self._popen.pid, None)


@atexit.register
def _end_the_rest() -> None:
    """Kill what this program started and has not ended."""
    for popen in _running.values():
        if popen.poll() is None:
            popen.kill()
            popen.wait()
