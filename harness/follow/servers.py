"""The real servers of a roll-out: each with the file that it has at that time.

Rule of this module: a step on a server and a kill of it exclude each other, so that a killed server comes back with the
file that it has.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from checker.rollout.config_state import ConfigState
from checker.rollout.inputs.folders import ServerFiles
from harness import real
from harness.follow.loopback import Loopback
from harness.processes import Process
from harness.servers import Servers
from spec.quorum import Sid

OPTIONS = ("-Xmx160m", "-XX:TieredStopAtLevel=1")


class FollowedServers(Servers):
    """The servers with these ids below `directory`. A server has no file before its first `give`."""

    session_milliseconds = 4000

    def __init__(
        self,
        sids: tuple[Sid, ...],
        directory: Path,
        release: str,
        loopback: Loopback,
        options: tuple[str, ...] = (),
    ) -> None:
        super().__init__(sids, directory)
        self._loopback = loopback
        self._options = (*OPTIONS, *options)
        self.locks = {sid: threading.RLock() for sid in sids}
        self._processes = {sid: self._process(sid, release) for sid in sids}

    def _process(self, sid: Sid, release: str) -> Process:
        home = self.home(sid)
        (home / "data").mkdir(parents=True)
        (home / "data" / "myid").write_text(f"{sid}\n", encoding="ascii")
        return Process(real.command(home / "zoo.cfg", self._options, release), home, home / "log.txt")

    def give(self, sid: Sid, state: ConfigState) -> None:
        """Write the file that a server has in a state; the server reads it at its next start."""
        home = self.home(sid)
        (home / "zoo.cfg").write_text(self._loopback.text(state, sid, home / "data"), encoding="utf-8")

    def give_dynamic(self, sid: Sid, given: ServerFiles, lines: Mapping[Sid, str]) -> None:
        """Write the first files of a server that is reconfigured: its settings, and these members in a dynamic file."""
        home = self.home(sid)
        dynamic = home / "zoo.cfg.dynamic"
        dynamic.write_text("".join(f"server.{member}={line}\n" for member, line in lines.items()), encoding="utf-8")
        text = self._loopback.settings(given, home / "data", dynamic)
        (home / "zoo.cfg").write_text(text, encoding="utf-8")

    def client_port(self, sid: Sid) -> int:
        """The port for the clients of a server."""
        return self._loopback.client_port(sid)
