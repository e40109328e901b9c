"""A real ensemble under load, with random kills and restarts, behind recording proxies.

Rules of this module:

- The network is open: the proxies delay no packet. Time-outs are short, so that elections follow kills.
- The kills are chosen by a seed before the ensemble starts. At most a minority is down at a time, and now and then the
  leader dies during the synchronisation of another server, since a restart follows soon after a kill.
- The load is bounded: `clients` sessions, each with one request in flight and a pause after it.

Source: ZooKeeper Administrator's Guide; `QuorumPeer`, `Leader`, `Learner` (the quorum port).
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness import real
from harness.processes import Process, ServerError, wait_until
from harness.reproduce.proxies import Fate, Network, WirePacket
from harness.reproduce.recorder import Recorder
from harness.servers import CREATE, SERVE_SECONDS, SYNC, WORLD, Servers
from harness.session import Session
from harness.zoo_cfg import View, members, write_zoo_cfg
from spec.quorum import Sid
from spec.quorum.view import majority_view

TICK_MILLISECONDS = 200
LIMIT_TICKS = 20
CONNECT_SECONDS = 2.0
OPTIONS = ("-Xmx160m", "-XX:TieredStopAtLevel=1", "-Dzookeeper.fastleader.maxNotificationInterval=500")
CHILDREN = 8
NODE_EXISTS = -110
LOAD = "/load"


@dataclass(frozen=True)
class Plan:
    """The size of a run. `pause`: seconds between a reply and the next write of a client."""

    servers: int = 3
    observers: int = 0
    kills: int = 3
    seconds: float = 10.0
    seed: int = 1
    clients: int = 3
    pause: float = 0.01


class RecordedEnsemble(Servers):
    """The servers 1 to n of a release below `directory`; the last ones are observers."""

    session_milliseconds = 4000

    def __init__(self, plan: Plan, directory: Path, release: str, recorder: Recorder) -> None:
        super().__init__(range(1, plan.servers + plan.observers + 1), directory)
        self.observers = self.sids[plan.servers :]
        self._recorder = recorder
        self._members = {member.sid: member for member in members(self.sids, frozenset(self.observers))}
        quorum = {sid: member.quorum_port for sid, member in self._members.items()}
        election = {sid: member.election_port for sid, member in self._members.items()}
        self._network = Network(quorum, election, _nothing)
        self._network.tap = recorder
        self._network.connect_seconds = CONNECT_SECONDS
        self._processes = {sid: self._process(sid, release) for sid in self.sids}

    def _process(self, sid: Sid, release: str) -> Process:
        lines = tuple(self._network.behind_proxies(sid, member) for member in self._members.values())
        view = View(lines, tick_time=TICK_MILLISECONDS, init_limit=LIMIT_TICKS, sync_limit=LIMIT_TICKS)
        home = self.home(sid)
        command = real.command(write_zoo_cfg(view, self._members[sid], home), OPTIONS, release)
        return Process(command, home, home / "log.txt")

    def start(self, sid: Sid) -> None:
        """Start a server."""
        view = majority_view([voter for voter in self.sids if voter not in self.observers], self.observers)
        self._recorder.started(sid, view, self.data(sid))
        super().start(sid)

    def kill(self, sid: Sid) -> None:
        """Kill a server, and record its disk."""
        super().kill(sid)
        self._recorder.killed(sid, self.data(sid))

    def client_port(self, sid: Sid) -> int:
        """The port for the clients of a server."""
        return self._members[sid].client_port

    def shut_down(self) -> None:
        """Kill all servers, record their disks, and close the proxies."""
        super().shut_down()
        self._network.shut_down()


class Writable(Protocol):
    """Servers that a client can write to."""

    @property
    def sids(self) -> tuple[Sid, ...]:
        """The ids of all servers."""

    def alive(self, sid: Sid) -> bool:
        """Whether the process of a server runs."""

    def connect(self, sid: Sid) -> Session:
        """A session at a server."""


class Witness(Protocol):
    """Notes the replies to clients."""

    def acknowledged(self, sid: Sid, path: str, zxid: int) -> None:
        """Note a reply to a client: the write of a path is acknowledged."""


class WriteClient:
    """A client that writes until it is told to stop. Each life of a session is at one server, chosen at random."""

    def __init__(self, ensemble: Writable, number: int, plan: Plan, witness: Witness) -> None:
        self._ensemble, self._witness, self._pause = ensemble, witness, plan.pause
        self._random = random.Random(f"{plan.seed}-client-{number}")
        self._prefix = f"{LOAD}/{number}-"
        self._count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: list[str] = []
        self._thread.start()

    def stop(self) -> None:
        """End the writes, and wait for the last one."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            if alive := [sid for sid in self._ensemble.sids if self._ensemble.alive(sid)]:
                with contextlib.suppress(ServerError, OSError):
                    self._write_at(self._random.choice(alive))
            self._stop.wait(0.05)

    def _write_at(self, sid: Sid) -> None:
        """Write at one server until it fails, or for a hundred writes; a path is never tried twice."""
        session = self._ensemble.connect(sid)
        try:
            for _ in range(100):
                if self._stop.is_set():
                    break
                self._count += 1
                path = f"{self._prefix}{self._count}"
                answer = session.ask(CREATE, path, b"x", WORLD, 0)
                if answer.err == 0:
                    self._witness.acknowledged(sid, path, answer.zxid)
                    self.acknowledged.append(path)
                self._stop.wait(self._pause)
            session.close()
        finally:
            session.drop()


def record(plan: Plan, directory: Path, release: str, recorder: Recorder, say: Callable[[str], None]) -> int:
    """Run an ensemble according to a plan; return the number of acknowledged writes. Raises ServerError."""
    chance = random.Random(f"{plan.seed}-kills")
    moments = sorted(chance.uniform(0.1, 0.9) * plan.seconds for _ in range(plan.kills))
    ensemble = RecordedEnsemble(plan, directory, release, recorder)
    clients: list[WriteClient] = []
    try:
        for sid in ensemble.sids:
            ensemble.start(sid)
        ensemble.wait_serving()
        session = ensemble.connect(1)
        session.ask(CREATE, LOAD, b"", WORLD, 0)
        session.close()
        clients = [WriteClient(ensemble, number, plan, recorder) for number in range(plan.clients)]
        began = time.monotonic()
        for moment in moments:
            time.sleep(max(0.0, began + moment - time.monotonic()))
            _kill_and_restart(ensemble, chance, say)
        time.sleep(max(0.0, began + plan.seconds - time.monotonic()))
        for client in clients:
            client.stop()
        for sid in ensemble.sids:
            if not ensemble.alive(sid):
                ensemble.start(sid)
        paths = {path for client in clients for path in client.acknowledged}
        _look(ensemble, paths, recorder, say)
        return len(paths)
    finally:
        for client in clients:
            client.stop()
        ensemble.shut_down()


def _kill_and_restart(ensemble: RecordedEnsemble, chance: random.Random, say: Callable[[str], None]) -> None:
    """Kill a server, every other time the leader, and start one that was killed before, or the same soon after."""
    roles = {sid: ensemble.role(sid) for sid in ensemble.sids}
    leaders = [sid for sid, role in roles.items() if role == "leader"]
    running = [sid for sid in ensemble.sids if ensemble.alive(sid)]
    sid = leaders[0] if leaders and chance.random() < 0.5 else chance.choice(running)
    down = [victim for victim in ensemble.sids if not ensemble.alive(victim)]
    for victim in down:
        ensemble.start(victim)
    if down:
        time.sleep(chance.uniform(0.2, 1.5))
    say(f"kill server {sid} ({roles[sid] or 'not serving'})")
    ensemble.kill(sid)
    time.sleep(chance.uniform(0.0, 1.0))
    if chance.random() < 0.7:
        ensemble.start(sid)


def _look(ensemble: RecordedEnsemble, paths: set[str], recorder: Recorder, say: Callable[[str], None]) -> None:
    for sid in ensemble.sids:
        try:
            wait_until(lambda sid=sid: ensemble.role(sid) is not None, SERVE_SECONDS, f"server {sid} serves")  # type: ignore[misc]
            session = ensemble.connect(sid)
            session.ask(SYNC, LOAD)
            children = {f"{LOAD}/{name}" for name in session.ask(CHILDREN, LOAD, False).values[0]}
            session.close()
        except (ServerError, OSError) as error:
            say(f"server {sid} cannot be asked for its writes: {str(error).splitlines()[0]}")
            continue
        absent = paths - children
        recorder.looked(sid, absent)
        if absent:
            say(f"server {sid} lacks {len(absent)} of {len(paths)} acknowledged writes")


def _nothing(_source: Sid, _destination: Sid, _packet: WirePacket, _fate: Fate) -> None:
    """The tap records everything."""
