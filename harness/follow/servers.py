"""The real servers of a roll-out: each with the file that it has at that time.

Rules of this module:

- A step on a server and a kill of it exclude each other, so that a killed server comes back with the file that it has.
- The directory of server N is `server-N`: `zoo.cfg`, `data/` with `myid`, `log.txt`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from checker.rollout.config_state import ConfigState
from checker.rollout.inputs.folders import ServerFiles
from harness import real
from harness.follow.loopback import Loopback
from harness.processes import Process, srvr
from harness.session import Session
from spec.quorum import Sid

OPTIONS = ("-Xmx160m", "-XX:TieredStopAtLevel=1")
SESSION_MILLISECONDS = 4000


class FollowedServers:
    """The servers with these ids below `directory`. A server has no file before its first `give`."""

    def __init__(
        self,
        sids: tuple[Sid, ...],
        directory: Path,
        release: str,
        loopback: Loopback,
        options: tuple[str, ...] = (),
    ) -> None:
        self._sids, self._directory, self._loopback = sids, directory, loopback
        self._options = (*OPTIONS, *options)
        self.locks = {sid: threading.RLock() for sid in sids}
        self._processes = {sid: self._process(sid, release) for sid in sids}

    def _process(self, sid: Sid, release: str) -> Process:
        home = self._directory / f"server-{sid}"
        (home / "data").mkdir(parents=True)
        (home / "data" / "myid").write_text(f"{sid}\n", encoding="ascii")
        return Process(real.command(home / "zoo.cfg", self._options, release), home, home / "log.txt")

    @property
    def sids(self) -> tuple[Sid, ...]:
        """The ids of all servers."""
        return self._sids

    @property
    def running(self) -> tuple[Sid, ...]:
        """The servers with a running process."""
        return tuple(sid for sid in self._sids if self.alive(sid))

    def alive(self, sid: Sid) -> bool:
        """Whether the process of a server runs."""
        return self._processes[sid].alive

    def give(self, sid: Sid, state: ConfigState) -> None:
        """Write the file that a server has in a state; the server reads it at its next start."""
        home = self._directory / f"server-{sid}"
        (home / "zoo.cfg").write_text(self._loopback.text(state, sid, home / "data"), encoding="utf-8")

    def give_dynamic(self, sid: Sid, given: ServerFiles, lines: Mapping[Sid, str]) -> None:
        """Write the first files of a server that is reconfigured: its settings, and these members in a dynamic file."""
        home = self._directory / f"server-{sid}"
        dynamic = home / "zoo.cfg.dynamic"
        dynamic.write_text("".join(f"server.{each}={line}\n" for each, line in lines.items()), encoding="utf-8")
        text = self._loopback.settings(given, home / "data", dynamic)
        (home / "zoo.cfg").write_text(text, encoding="utf-8")

    def start(self, sid: Sid) -> None:
        """Start a server with its file."""
        self._processes[sid].start()

    def stop(self, sid: Sid) -> None:
        """Send SIGTERM, and wait for the end of the process."""
        self._processes[sid].stop()

    def kill(self, sid: Sid) -> None:
        """Send SIGKILL, and wait for the end of the process."""
        self._processes[sid].kill()

    def last_words(self, sid: Sid) -> str:
        """The exit code of a server and the end of its log, as part of an error message."""
        return self._processes[sid].last_words()

    def mode(self, sid: Sid) -> str | None:
        """The value of `Mode:` in the answer to `srvr`; None while the server does not serve."""
        return srvr(self._loopback.client_port(sid)).get("Mode") if self.alive(sid) else None

    def leaders(self) -> list[Sid]:
        """The servers that lead, or serve alone."""
        return [sid for sid in self._sids if self.mode(sid) in {"leader", "standalone"}]

    def connect(self, sid: Sid) -> Session:
        """A session at a server."""
        session = Session(SESSION_MILLISECONDS)
        session.connect(self._loopback.client_port(sid))
        return session

    def shut_down(self) -> None:
        """Kill all servers."""
        for sid in self._sids:
            self.kill(sid)
