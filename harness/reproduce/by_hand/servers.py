"""Real servers that can be reconfigured: their processes, files, packets and answers.

Rules of this module:

- Servers reach each other only through the proxies of `Network`, so that packets are seen and can be held.
- Reconfiguration is enabled, and ACLs are skipped (`skipACL=yes`), unless a caller gives other keys or options.

Source: ZooKeeper Administrator's Guide (`reconfigEnabled`, `skipACL`); `QuorumPeerConfig.writeDynamicConfig`.
"""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import real
from harness.processes import Process, ServerError, wait_until
from harness.reproduce.disks import logged_zxids
from harness.reproduce.gates import DiskGate
from harness.reproduce.members import Members, Roles
from harness.reproduce.proxies import Fate, Link, Network, Way, WirePacket
from harness.servers import (
    ANY_VERSION,
    CREATE,
    GET_DATA,
    RECONFIG,
    SERVE_SECONDS,
    SKIP_ACL,
    WORLD,
    Servers,
    incremental,
)
from harness.session import Answer
from harness.zoo_cfg import OBSERVER, PARTICIPANT, dynamic_file_of
from spec.quorum import MembershipChange, Sid
from spec.tree.paths import CONFIG

TICK_MILLISECONDS = 500
LIMIT_TICKS = 40
OPTIONS = (
    "-Xmx128m",
    "-XX:TieredStopAtLevel=1",
    "-Dzookeeper.fastleader.maxNotificationInterval=500",
)


@dataclass(frozen=True)
class SeenPacket:
    """A packet as it arrived at a proxy: sender, receiver, and seconds of the monotonic clock."""

    sender: Sid
    receiver: Sid
    packet: WirePacket
    moment: float


class ReconfigServers(Servers):
    """The servers `sids` of a release below `directory`; no server runs before `start`.

    `keys` are further keys of every `zoo.cfg`, with those of `special` for one server; `shim` is the library of the
    disk gates, without which no log can be held.
    """

    def __init__(
        self,
        directory: Path,
        sids: Iterable[Sid],
        release: str,
        *,
        keys: Mapping[str, str] | None = None,
        special: Mapping[Sid, Mapping[str, str]] | None = None,
        options: Iterable[str] = (SKIP_ACL,),
        shim: Path | None = None,
    ) -> None:
        self.members = Members(sids)
        super().__init__(self.members.sids, directory)
        self.release = release
        self.seen: list[SeenPacket] = []
        self._keys = {"reconfigEnabled": "true", "localSessionsEnabled": "true"} | dict(keys or {})
        self._special = special or {}
        self._options = (*OPTIONS, *options)
        self._shim = shim
        self._lock = threading.Lock()
        self.gates = {sid: DiskGate(self.home(sid) / "gate") for sid in self.sids} if shim else {}
        for gate in self.gates.values():
            gate.open()
        quorum = {sid: self.members[sid].quorum_port for sid in self.sids}
        election = {sid: self.members[sid].election_port for sid in self.sids}
        self.network = Network(quorum, election, self._record, self.members.proxy_hosts())

    def _record(self, sender: Sid, receiver: Sid, packet: WirePacket, fate: Fate) -> None:
        if fate is Fate.ARRIVED:
            with self._lock:
                self.seen.append(SeenPacket(sender, receiver, packet, time.monotonic()))

    # --- processes

    def begin(self, sid: Sid, roles: Roles | Iterable[Sid], *, extra: Iterable[str] = ()) -> None:
        """Write the first `zoo.cfg` of a server, with these members, and start it."""
        home = self.home(sid)
        data = self.data(sid)
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(f"{sid}\n", encoding="ascii")
        keys = {
            "tickTime": str(TICK_MILLISECONDS),
            "initLimit": str(LIMIT_TICKS),
            "syncLimit": str(LIMIT_TICKS),
            "dataDir": str(data),
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
            "standaloneEnabled": "false",
            "maxClientCnxns": "0",
        }
        keys |= self._keys | dict(self._special.get(sid, {}))
        lines = [f"{key}={value}" for key, value in keys.items()] + self.members.lines(roles) + list(extra)
        (home / "zoo.cfg").write_text("\n".join(lines) + "\n", encoding="utf-8")
        options = (*self._options, self.members.java_option(sid, home))
        environment = {"LD_PRELOAD": str(self._shim), "DISK_GATE": str(home / "gate")} if self._shim else {}
        command = real.command(home / "zoo.cfg", options, self.release)
        self._processes[sid] = Process(command, home, home / "log.txt", environment)
        self.start(sid)

    def begin_led_by(self, leader: Sid, roles: Roles | Iterable[Sid]) -> None:
        """Start the members of a first configuration so that this participant leads.

        The leader must have a greater id than another participant, which is started with it.
        """
        sids = tuple(roles)
        voters = [sid for sid in sids if not isinstance(roles, Mapping) or roles[sid] == PARTICIPANT]
        first = [min(voters), leader] if len(sids) > 2 else list(sids)
        for sid in first:
            self.begin(sid, roles)
        if len(voters) > 3:
            # More than two are needed; smaller ids do not win against the leader.
            for sid in sorted(set(sids) - set(first)):
                self.begin(sid, roles)
        else:
            self.wait_serving(first)
            for sid in sorted(set(sids) - set(first)):
                self.begin(sid, roles)
        self.wait_serving(sids)
        if self.leader() != leader:
            raise ServerError(f"server {leader} was to lead, and server {self.leader()} leads")

    def start(self, sid: Sid) -> None:
        """Start a server with its present files."""
        if self._shim:
            self.gates[sid].reset()
        super().start(sid)

    def client_port(self, sid: Sid) -> int:
        """The port for the clients of a server."""
        return self.members[sid].client_port

    # --- answers

    def word(self, sid: Sid, text: str) -> str:
        """The answer to a four-letter word, with fixed ports."""
        return self.members.plain(super().word(sid, text))

    def wait_ended_or_serving(self, sid: Sid, seconds: float = SERVE_SECONDS) -> None:
        """Wait until a server serves, or its process has ended. Raises ServerError."""
        goal = f"server {sid} serves or ends"
        wait_until(lambda: self.role(sid) is not None or not self.alive(sid), seconds, goal, self.home(sid) / "log.txt")

    def reconfig(
        self, sid: Sid, *, join: Roles | Iterable[Sid] = (), leave: Iterable[Sid] = (), version: int = ANY_VERSION
    ) -> Answer:
        """Ask a server for an incremental reconfiguration; any version by default."""
        session = self.connect(sid)
        try:
            return session.ask(RECONFIG, *self.change(join=join, leave=leave, version=version))
        finally:
            session.drop()

    def change(
        self, *, join: Roles | Iterable[Sid] = (), leave: Iterable[Sid] = (), version: int = ANY_VERSION
    ) -> tuple[str | None, str | None, None, int]:
        """The values of an incremental reconfiguration (`ReconfigRequest`)."""
        roles = join if isinstance(join, Mapping) else dict.fromkeys(join, PARTICIPANT)
        observers = frozenset(sid for sid, role in roles.items() if role == OBSERVER)
        change = MembershipChange(frozenset(roles) - observers, observers, frozenset(leave))
        return incremental({member.sid: member for member in self.members}, change, version)

    def config(self, sid: Sid) -> str:
        """The data of the config node of a server, as its clients read it, with fixed ports; empty without service."""
        try:
            session = self.connect(sid)
        except (ServerError, OSError):
            return ""
        try:
            answer = session.ask(GET_DATA, CONFIG, False)
            return self.members.plain(answer.values[0].decode("utf-8"))
        except ServerError:
            return ""
        finally:
            session.drop()

    def create(self, sid: Sid, path: str) -> Answer:
        """Create a znode at a server."""
        session = self.connect(sid)
        try:
            return session.ask(CREATE, path, b"x", WORLD, 0)
        finally:
            session.drop()

    # --- files and packets

    def file(self, sid: Sid, name: str) -> str | None:
        """The text of a file of a server, with fixed ports; None if it is missing."""
        file = self.home(sid) / name
        return self.members.plain(file.read_text(encoding="utf-8")) if file.exists() else None

    def files(self, sid: Sid) -> list[str]:
        """The names of the configuration files of a server, ascending."""
        return sorted(file.name for file in self.home(sid).glob("zoo.cfg*"))

    def active_file(self, sid: Sid) -> str:
        """The name of the dynamic file in `zoo.cfg`; empty without one."""
        return dynamic_file_of(self.file(sid, "zoo.cfg") or "")

    def logged(self, sid: Sid) -> tuple[int, ...]:
        """The zxids of the records in a server's log."""
        return logged_zxids(self.data(sid))

    def link(self, learner: Sid, leader: Sid) -> Link:
        """The present connection of a learner with its leader. Raises ServerError without one."""
        connection = self.network.link(learner, leader)
        if connection is None:
            raise ServerError(f"server {learner} has no connection with server {leader}")
        return connection

    def hold(self, learner: Sid, leader: Sid, way: Way) -> None:
        """Hold the packets between a learner and its leader in one direction."""
        self.link(learner, leader).hold(way)

    def packets(self, name: str) -> list[SeenPacket]:
        """All packets of a type so far, in the order of their arrival at the proxies."""
        with self._lock:
            return [packet for packet in self.seen if packet.packet.name == name]

    def part(self, one_side: Iterable[Sid], other_side: Iterable[Sid]) -> None:
        """Cut every connection between two groups, until `join`."""
        for near in one_side:
            for far in other_side:
                self.network.cut(near, far)

    def join(self) -> None:
        """Allow all connections again."""
        self.network.heal()
        for sid in self.sids:
            for peer in self.sids:
                self.network.join_election(sid, peer)

    # --- the end

    def shut_down(self) -> None:
        """Kill all servers and close the proxies."""
        super().shut_down()
        self.network.shut_down()


@dataclass(frozen=True)
class Bench:
    """The place and the release for the servers of one run.

    `shim` is the library of the disk gates, and `java_options` are added to those of every server.
    """

    directory: Path
    release: str
    shim: Path | None = None
    java_options: tuple[str, ...] = ()

    def servers(
        self,
        name: str,
        sids: Roles | Iterable[Sid],
        *,
        keys: Mapping[str, str] | None = None,
        special: Mapping[Sid, Mapping[str, str]] | None = None,
        options: Iterable[str] = (SKIP_ACL,),
        shim: Path | None = None,
    ) -> ReconfigServers:
        """Servers in a new folder of this name; they do not run yet."""
        folder = self.directory / name
        folder.mkdir(parents=True)
        java = (*options, *self.java_options)
        return ReconfigServers(folder, sids, self.release, keys=keys, special=special, options=java, shim=shim)
