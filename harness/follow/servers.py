"""The real servers of a roll-out on this machine: each with the file that it has at that time.

Rules of this module:

- A step on a server and a kill of it exclude each other, so that a killed server comes back with the file that it has.
- Ids, roles, groups, weights and times are kept. Hosts become the loopback address, and ports become free ones.
- A server keeps its client port and its directory for its whole life. Each peer address of a server has its own two
  ports, so that a server with a new address in a file is reached by the new files only.
- A wildcard in a file means the server's own address in the other files.
- What a mapping would change in meaning is refused: dynamic files in a roll-out by restarts, and servers with several
  addresses.

Source: ZooKeeper Administrator's Guide; `QuorumPeerConfig.parseProperties`.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from checker.rollout.config_state import ConfigState, side_of
from checker.rollout.inputs.folders import Folder, ServerFiles
from harness import real
from harness.processes import LOOPBACK, Process
from harness.servers import Servers
from spec.config import ServerAddress
from spec.config.problems import Findings
from spec.config.properties import read_properties
from spec.quorum import Sid
from spec.quorum.addresses import WILDCARDS
from spec.text import required_integer

REPLACED = ("dataDir", "dataLogDir", "clientPort", "clientPortAddress", "4lw.commands.whitelist")
"""The keys that a file gets for this machine."""


class MappingError(Exception):
    """A file that cannot be followed on this machine; the message says why, and what would be right."""


@dataclass
class Loopback:
    """The ports of each server; `free_ports(n)` returns n free ports."""

    free_ports: Callable[[int], tuple[int, ...]]
    _clients: dict[Sid, int] = field(default_factory=dict)
    _peers: dict[tuple[Sid, ServerAddress], tuple[int, int]] = field(default_factory=dict)

    def client_port(self, sid: Sid) -> int:
        """The port for the clients of a server."""
        if sid not in self._clients:
            (self._clients[sid],) = self.free_ports(1)
        return self._clients[sid]

    def text(self, state: ConfigState, sid: Sid, data: Path) -> str:
        """The file of a server in a state, with this `dataDir`. Raises MappingError."""
        server = state.servers[sid]
        if server.dynamic is not None:
            raise MappingError(f"{server.origin}: it names a dynamic file; name files with `server.N` lines")
        lines = []
        for prop in read_properties(server.text, server.origin, Findings()):
            if prop.key.startswith("server."):
                lines.append(self._line(state, sid, required_integer(prop.key.removeprefix("server."))))
            elif prop.key not in REPLACED:
                lines.append(f"{prop.key}={_escaped(prop.value)}")
        return self._with_ours(lines, data, {"clientPort": self.client_port(sid), "clientPortAddress": LOOPBACK})

    @classmethod
    def settings(cls, given: ServerFiles, data: Path, dynamic: Path) -> str:
        """The zoo.cfg of a server that is reconfigured, without members: these are in the file `dynamic`.

        Its client port is in that file alone.
        """
        lines = [
            f"{prop.key}={_escaped(prop.value)}"
            for prop in read_properties(given.text, given.origin, Findings())
            if not prop.key.startswith("server.") and prop.key not in (*REPLACED, "dynamicConfigFile", "version")
        ]
        return cls._with_ours(lines, data, {"dynamicConfigFile": dynamic})

    @staticmethod
    def _with_ours(lines: list[str], data: Path, keys: Mapping[str, object]) -> str:
        """These lines, and the keys that a file gets for this machine."""
        ours = {"dataDir": data, **keys, "admin.enableServer": "false", "4lw.commands.whitelist": "*"}
        return "\n".join([*lines, *(f"{key}={value}" for key, value in ours.items())]) + "\n"

    def line_with_client(self, folder: Folder, sid: Sid, observes: bool) -> str:
        """The line of a server in a dynamic file, with its role and its client address; its address never changes."""
        state = side_of(folder, "given")
        peers, _, _ = self._line(state, sid, sid).partition("=")[2].rpartition(":")
        return f"{peers}:{'observer' if observes else 'participant'};{LOOPBACK}:{self.client_port(sid)}"

    def _line(self, state: ConfigState, reader: Sid, sid: Sid) -> str:
        """The line of a server in the file of another one, or in its own."""
        line = state.servers[reader].config.server(sid)
        assert line is not None
        if len(line.addresses) != 1:
            raise MappingError(f"{state.servers[reader].origin}: server {sid} has several addresses; give it one")
        address = line.addresses[0]
        if address.host in WILDCARDS:
            address = min(state.addresses(sid))
        if (sid, address) not in self._peers:
            quorum, election = self.free_ports(2)
            self._peers[sid, address] = (quorum, election)
        quorum, election = self._peers[sid, address]
        return f"server.{sid}={LOOPBACK}:{quorum}:{election}:{line.learner_type.value}"


def ids(states: Iterable[ConfigState]) -> tuple[Sid, ...]:
    """All servers of some states, ascending."""
    return tuple(sorted({sid for state in states for sid in state.members}))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")


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
