"""An ensemble of real servers whose packets, disks and elections a schedule controls.

Rules of this module:

- Each server is in a separate directory and reaches the others only through the proxies of `Network`.
- The sessions are on the initial disks, so the n-th write of an epoch has the counter n, as in the model.
- Time-outs are long: only a schedule, and no slow machine, ends a connection.
- Everything is observed from outside: packets at the proxies, log files, the answers to `srvr`, replies to clients.

Source: ZooKeeper Administrator's Guide; `SyncRequestProcessor`, `FastLeaderElection`.
"""

import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from harness import real
from harness.processes import LOOPBACK, Process, ServerError, srvr, wait_until
from harness.reproduce.disks import SESSION_MILLISECONDS, logged_zxids, password_of, path_of, write_disk
from harness.reproduce.gates import DiskGate, ThreadGate
from harness.reproduce.members import Members
from harness.reproduce.proxies import Network, Record
from harness.reproduce.recorder import Recorder
from harness.servers import CREATE, RECONFIG, SKIP_ACL, WORLD, Servers, incremental
from harness.session import Session
from harness.zoo_cfg import View as Written
from harness.zoo_cfg import members, write_zoo_cfg
from spec.durable import Durable
from spec.quorum import MembershipChange, Sid
from spec.quorum.view import View
from spec.text import required_integer
from spec.tree.paths import CONFIG

POLL_SECONDS = 0.05


class HarnessError(Exception):
    """The driver could not execute the schedule; nothing is known about the servers."""


def wait_for(differences: Callable[[], list[str]], seconds: float, what: str) -> None:
    """Wait until nothing differs. Raises HarnessError, with `what` and the differences, after `seconds`."""
    deadline = time.monotonic() + seconds
    while problems := differences():
        if time.monotonic() > deadline:
            raise HarnessError(f"{what} within {seconds:g} s: {'; '.join(problems)}")
        time.sleep(POLL_SECONDS)


TICK_MILLISECONDS = 2000
LIMIT_TICKS = 60
STALL_SECONDS = 20.0
OPTIONS = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # servers start faster on a busy machine
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:GuaranteedSafepointInterval=0",  # a safepoint would wait for a thread that rests, and stop the others
    "-Dzookeeper.snapshotSizeFactor=0",  # a leader sends its log, however long: no limit (values above 1 are invalid)
    "-Dzookeeper.globalOutstandingLimit=100000",  # slow reads must not close the client port for writes
    "-Dzookeeper.maxBatchSize=1",  # each transaction is a separate write, as in the model
    "-Dzookeeper.fastleader.maxNotificationInterval=500",
)
KEYS = {"maxSessionTimeout": str(SESSION_MILLISECONDS)}
STALLS = 2  # connections of slow reads
OF_RECONFIGS = STALLS + 1  # the number of the session that asks for reconfigurations
CHILDREN_COUNT = 104


@dataclass
class ClientWrite:
    """A write of a client: the session's server, the path, and the reply: None, or its error code (0: no error).

    A reconfiguration is a write of the config node.
    """

    sid: Sid
    path: str
    session: Session
    opcode: int = CREATE
    error: int | None = None
    zxid: int = 0  # of the reply
    failed: bool = False  # the connection ended without a reply

    def poll(self) -> None:
        """Read the reply if it has arrived."""
        if self.error is not None or self.failed or not self.session.connected:
            return
        try:
            if self.session.readable():
                answer = self.session.receive(self.opcode)
                self.error, self.zxid = answer.err, answer.zxid
        except (ServerError, OSError):
            self.failed = True


class Lab(Servers):
    """The servers `sids` of a release below `directory`; no server runs before `start`.

    A `recorder` writes down packets, processes and disks, for `python -m checker validate`. `java_options` are added to
    those of the lab. With `reconfigurable` servers have dynamic files, which they change.
    """

    def __init__(
        self,
        sids: tuple[Sid, ...],
        directory: Path,
        release: str,
        shim: Path,
        record: Record,
        recorder: Recorder | None = None,
        java_options: tuple[str, ...] = (),
        *,
        reconfigurable: bool = False,
    ) -> None:
        super().__init__(sids, directory)
        self.release = release
        self._java_options = (*OPTIONS, *([SKIP_ACL] if reconfigurable else []), *java_options)
        self._named = Members(sids) if reconfigurable else None
        self._members = {member.sid: member for member in self._named or members(sids)}
        quorum = {sid: member.quorum_port for sid, member in self._members.items()}
        election = {sid: member.election_port for sid, member in self._members.items()}
        self.network = Network(quorum, election, record, self._named.proxy_hosts() if self._named else None)
        self.network.tap = self.recorder = recorder
        self._views: dict[Sid, View] = {}
        self.gates = {sid: DiskGate(self.home(sid) / "gate") for sid in sids}
        self.threads = {sid: ThreadGate(self.home(sid) / "threads") for sid in sids}
        self._shim = shim
        self._stalls: dict[Sid, list[socket.socket]] = {}
        self.writes: dict[int, ClientWrite] = {}
        self.reconfigs: list[ClientWrite] = []
        for gate in self.gates.values():
            gate.open()

    # --- servers

    def client_port(self, sid: Sid) -> int:
        """The port for the clients of a server."""
        return self._members[sid].client_port

    def write_disk(self, sid: Sid, durable: Durable, znodes: int = 0) -> None:
        """Write the initial content of a server's disk. Raises ServerError where that is not possible."""
        sessions = [_session_id(peer, number) for peer in self.sids for number in range(OF_RECONFIGS + 1)]
        write_disk(self.data(sid), durable, znodes, sessions)

    def configure(self, sid: Sid, view: View) -> None:
        """Write the `zoo.cfg` of a server for a view, as an operator does; the other members are its proxies."""
        roles = {peer: replace(self._members[peer], observer=peer in view.observers) for peer in self.sids}
        lines = tuple(self.network.behind_proxies(sid, roles[peer]) for peer in sorted(view.members))
        config = Written(
            lines,
            tick_time=TICK_MILLISECONDS,
            init_limit=LIMIT_TICKS,
            sync_limit=LIMIT_TICKS,
            extra=KEYS,
            version=view.version if self._named else None,
        )
        self._views[sid] = view
        for file in self.home(sid).glob("zoo.cfg*"):
            file.unlink()
        zoo_cfg = write_zoo_cfg(config, roles[sid], self.home(sid))
        names = [self._named.java_option(sid, self.home(sid))] if self._named else []
        command = real.command(zoo_cfg, (*self._java_options, *names), self.release)
        gates = {"DISK_GATE": self.gates[sid].directory, "THREAD_GATE": self.threads[sid].directory}
        environment = {"LD_PRELOAD": str(self._shim)} | {name: str(gate) for name, gate in gates.items()}
        self._processes[sid] = Process(command, self.home(sid), self.home(sid) / "log.txt", environment)

    def start(self, sid: Sid) -> None:
        """Start a server with its present `zoo.cfg`."""
        self.gates[sid].reset()
        self.threads[sid].reset()
        if self.recorder is not None:
            self.recorder.started(sid, self._views[sid], self.data(sid))
        super().start(sid)

    def kill(self, sid: Sid) -> None:
        """Kill a server; records that its gate holds are lost."""
        self.stop_stall(sid)
        was_running = self.alive(sid)
        super().kill(sid)
        if self.recorder is not None and was_running:
            self.recorder.killed(sid, self.data(sid))

    def logged(self, sid: Sid) -> tuple[int, ...]:
        """The zxids of the records in a server's log files."""
        return logged_zxids(self.data(sid))

    def shut_down(self) -> None:
        """Kill all servers and close all proxies."""
        for sid in self._processes:
            self.kill(sid)
        for sid in list(self._stalls):
            self.stop_stall(sid)
        for write in self.all_writes:
            write.session.drop()
        self.network.shut_down()

    # --- clients

    def connect(self, sid: Sid, number: int = 0) -> Session:
        """The session at a server that serves; it has one connection at a time. Raises ServerError."""
        session = Session(SESSION_MILLISECONDS)
        session.session_id = _session_id(sid, number)
        session.password = password_of(session.session_id)
        if not session.connect(self.client_port(sid)):
            raise ServerError(f"server {sid} does not know the session {session.session_id:#x} of its disk")
        return session

    def create(self, session: Session, path: str) -> None:
        """Create a znode. Raises ServerError if the server refuses."""
        answer = session.ask(CREATE, path, b"history", WORLD, 0)
        if answer.err:
            raise ServerError(f"the creation of {path} fails with error {answer.err}")

    def write(self, sid: Sid, number: int, session: Session) -> None:
        """Send the write of this number; `writes` has its reply later."""
        path = path_of(0, number)
        session.send(CREATE, path, b"acknowledged", WORLD, 0)
        self.writes[number] = ClientWrite(sid, path, session)

    def reconfigure(self, sid: Sid, change: MembershipChange) -> None:
        """Ask a leader for an incremental reconfiguration; `reconfigs` has its reply later."""
        session = self.connect(sid, OF_RECONFIGS)
        session.send(RECONFIG, *incremental(self._members, change))
        self.reconfigs.append(ClientWrite(sid, CONFIG, session, RECONFIG))

    @property
    def all_writes(self) -> tuple[ClientWrite, ...]:
        """The writes of clients, and the reconfigurations."""
        return (*self.writes.values(), *self.reconfigs)

    def stall(self, sid: Sid, requests: int) -> None:
        """Delay the application of commits at a server: connections each send slow reads (`CommitProcessor`)."""
        self._stalls[sid] = [self._read_slowly(sid, number, requests) for number in range(1, STALLS + 1)]
        port = self.client_port(sid)
        enough = f"server {sid} has {requests} slow reads to answer"
        wait_until(lambda: required_integer(srvr(port).get("Outstanding", "0")) >= requests, STALL_SECONDS, enough)

    def stop_stall(self, sid: Sid) -> None:
        """Close the connections of the slow reads."""
        for stall in self._stalls.pop(sid, ()):
            stall.close()

    def _read_slowly(self, sid: Sid, number: int, requests: int) -> socket.socket:
        connection = socket.create_connection((LOOPBACK, self.client_port(sid)), STALL_SECONDS)
        session = _session_id(sid, number)
        opening = struct.pack("!iqiqi", 0, 0, SESSION_MILLISECONDS, session, 16) + password_of(session) + b"\0"
        connection.sendall(struct.pack("!i", len(opening)) + opening)
        (length,) = struct.unpack("!i", connection.recv(4))
        connection.recv(length)
        path = b"/base"
        body = [struct.pack("!iiii", 12 + len(path), number, CHILDREN_COUNT, len(path)) + path
                for number in range(1, requests + 1)]  # fmt: skip
        connection.sendall(b"".join(body))
        threading.Thread(target=_discard, args=(connection,), daemon=True).start()
        return connection


def _session_id(sid: Sid, number: int = 0) -> int:
    """The id of a session at a server: that of its client, and from 1 on those of slow reads."""
    return (sid << 8) + number + 1


def _discard(connection: socket.socket) -> None:
    try:
        while connection.recv(1 << 16):
            pass
    except OSError:
        pass
