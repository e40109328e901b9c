"""The servers of one ensemble on this machine: a directory and a process for each id.

Rules of this module:

- The directory of server N is `server-N`: `zoo.cfg`, `data/` with `myid`, `log.txt`.
- Leaving the context kills the running processes. The caller deletes the directories.

Source: `ServerStats.toString` and `StatCommand` (the answer to `srvr`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.processes import Process, ServerError, srvr, wait_until, word
from harness.session import Session
from harness.zoo_cfg import Member
from spec.quorum import MembershipChange, Sid
from spec.text import required_integer

CREATE, EXISTS, GET_DATA, SYNC, RECONFIG = 1, 3, 4, 9, 16
"""Opcodes of requests."""
ANY_VERSION = -1
SKIP_ACL = "-Dzookeeper.skipACL=yes"
"""The option of a server at which every client may call `reconfig`."""
WORLD = [(31, "world", "anyone")]
"""The open ACL."""
SERVE_SECONDS = 60.0


def incremental(
    members: Mapping[Sid, Member], change: MembershipChange, version: int = ANY_VERSION
) -> tuple[str | None, str | None, None, int]:
    """The values of an incremental reconfiguration, by default of any version (`ReconfigRequest`)."""
    joining = sorted(change.voters | change.observers)
    lines = ",".join(replace(members[sid], observer=sid in change.observers).dynamic_line for sid in joining)
    return lines or None, ",".join(map(str, sorted(change.leaving))) or None, None, version


class Servers(ABC):
    """Servers with these ids below `directory`. A subclass writes their files, and makes their processes.

    `session_milliseconds` is the timeout of the sessions of `connect`.
    """

    session_milliseconds = 20_000

    def __init__(self, sids: Iterable[Sid], directory: Path) -> None:
        self.sids = tuple(sids)
        self.directory = directory
        self._processes: dict[Sid, Process] = {}

    @abstractmethod
    def client_port(self, sid: Sid) -> int:
        """The port for the clients of a server."""

    def name(self, sid: Sid) -> str:
        """The name of a server in error messages."""
        return f"server {sid}"

    def home(self, sid: Sid) -> Path:
        """The directory of a server."""
        return self.directory / f"server-{sid}"

    def data(self, sid: Sid) -> Path:
        """The dataDir of a server."""
        return self.home(sid) / "data"

    # --- processes

    def process(self, sid: Sid) -> Process:
        """The process of a server."""
        return self._processes[sid]

    def alive(self, sid: Sid) -> bool:
        """Whether the process of a server runs."""
        return sid in self._processes and self._processes[sid].alive

    @property
    def running(self) -> tuple[Sid, ...]:
        """The ids of the servers with a running process."""
        return tuple(sid for sid in self.sids if self.alive(sid))

    def start(self, sid: Sid) -> None:
        """Start a server with its present files; `wait_serving` waits until it serves."""
        self._processes[sid].start()

    def stop(self, sid: Sid) -> None:
        """Send SIGTERM, and wait for the end of the process."""
        self._processes[sid].stop()

    def kill(self, sid: Sid) -> None:
        """Send SIGKILL, and wait for the end of the process."""
        self._processes[sid].kill()

    def pause(self, sid: Sid) -> None:
        """Send SIGSTOP, and wait until all threads have stopped."""
        self._processes[sid].pause()

    def resume(self, sid: Sid) -> None:
        """Send SIGCONT."""
        self._processes[sid].resume()

    def shut_down(self) -> None:
        """Kill the running processes."""
        for sid in self.running:
            self.kill(sid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut_down()

    # --- answers

    def word(self, sid: Sid, text: str) -> str:
        """The answer to a four-letter word; empty if there is none."""
        return word(self.client_port(sid), text)

    def role(self, sid: Sid) -> str | None:
        """The role: `leader`, `follower`, `observer` or `standalone`; None while the server does not serve."""
        return srvr(self.client_port(sid)).get("Mode") if self.alive(sid) else None

    def applied(self, sid: Sid) -> int | None:
        """The last zxid that a server has applied; None while it does not serve."""
        zxid = srvr(self.client_port(sid)).get("Zxid") if self.alive(sid) else None
        return None if zxid is None else required_integer(zxid.removeprefix("0x"), base=16)

    def leaders(self) -> list[Sid]:
        """The servers that lead, or serve alone."""
        return [sid for sid in self.running if self.role(sid) in {"leader", "standalone"}]

    def leader(self) -> Sid:
        """The id of the leader. Raises ServerError if there is not exactly one."""
        leaders = self.leaders()
        if len(leaders) != 1:
            raise ServerError(f"exactly one leader was expected, and the servers that lead are {leaders or 'none'}")
        return leaders[0]

    def wait_serving(self, sids: Iterable[Sid] | None = None, seconds: float = SERVE_SECONDS) -> None:
        """Wait until these servers serve, by default all that run. Raises ServerError immediately if one has ended."""
        for sid in self.running if sids is None else sids:
            wait_until(partial(self._serves, sid), seconds, f"{self.name(sid)} serves", self._processes[sid].log)

    def _serves(self, sid: Sid) -> bool:
        """Whether a server serves. Raises ServerError if its process has ended, since it then never will."""
        process = self._processes[sid]
        if not process.alive:
            raise ServerError(f"{self.name(sid)} does not run{process.last_words()}")
        return self.role(sid) is not None

    def connect(self, sid: Sid) -> Session:
        """A session at a server that serves."""
        session = Session(self.session_milliseconds)
        session.connect(self.client_port(sid))
        return session

    def exists(self, sid: Sid, path: str) -> bool:
        """Whether a server has a znode, after a sync with its leader."""
        session = self.connect(sid)
        try:
            session.ask(SYNC, "/")
            return session.ask(EXISTS, path, False).err == 0
        finally:
            session.drop()
