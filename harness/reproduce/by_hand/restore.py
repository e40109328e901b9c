"""Finding I: a restored snapshot is undone when its leader stops.

Three servers get writes, a snapshot is streamed from the leader, and more writes follow, which the restore must undo.
Then the guide: without clients, the logs and snapshots of each server are moved away, and the snapshot is posted to its
AdminServer (`restore`). Writes are acknowledged after it, and the leader stops.

Source: Snapshot and Restore Guide of 3.9; `ZooKeeperServer.restoreFromSnapshot`, `QuorumPeer.zkDb`.
"""

import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from harness import releases
from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, ServerError, free_ports
from harness.reproduce.by_hand.hand_made import HandMadeRun, HandStep
from harness.reproduce.ends import Effect
from harness.servers import CREATE, WORLD
from spec.quorum import Sid
from spec.releases import Release

OPTIONS = ("-Dzookeeper.admin.snapshot.enabled=true", "-Dzookeeper.admin.restore.enabled=true")
ADMIN = {"Authorization": "digest root:root_passwd", "Content-Type": "application/octet-stream"}
SETTLED_SECONDS = 2.0
"""The time after which a server that has ended its part no longer reports its former role."""


class Snapshot(NamedTuple):
    """A snapshot that an AdminServer has streamed: its last zxid, in the notation of file names, and its bytes."""

    zxid: str
    content: bytes


class Restorable(Ensemble):
    """Three servers with their AdminServers; `jars` are those that an AdminServer needs."""

    writes = 10
    """The number of writes of a kind."""

    def __init__(self, directory: Path, release: str, jars: Path, java_options: tuple[str, ...] = ()) -> None:
        super().__init__(["real"] * 3, directory, java_options=(*OPTIONS, *java_options), release=release)
        self._admin_ports = dict(zip(self.sids, free_ports(3), strict=True))
        for sid, port in self._admin_ports.items():
            address = {"admin.serverAddress": LOOPBACK, "admin.serverPort": str(port)}
            self.set_keys(sid, {"admin.enableServer": "true", **address})
            command = self._processes[sid].command
            command[command.index("-cp") + 1] += f":{jars}/*"

    def snapshot(self, sid: Sid) -> Snapshot:
        """A snapshot of a server, streamed by its AdminServer."""
        zxid, content = self._admin(sid, "snapshot?streaming=true")
        return Snapshot(zxid.removeprefix("0x"), content)

    def restore(self, snapshot: Snapshot, *, move: bool = True) -> None:
        """Restore a snapshot at each server, after its logs and snapshots were moved away or left in place."""
        for sid in self.sids:
            if move:
                self._move_files(sid)
            self._admin(sid, "restore", snapshot.content)

    def restore_stopped(self, snapshot: Snapshot) -> None:
        """Stop all servers, put the snapshot on each disk in place of logs and snapshots, and start all."""
        for sid in self.sids:
            self.stop(sid)
        for sid in self.sids:
            self._move_files(sid)
            (self.data(sid) / "version-2" / f"snapshot.{snapshot.zxid}").write_bytes(snapshot.content)
        self.start_all()
        self.wait_serving()

    def _move_files(self, sid: Sid) -> None:
        away = self.home(sid) / "away"
        away.mkdir()
        for file in (self.data(sid) / "version-2").iterdir():
            if file.name.startswith(("log.", "snapshot.")):
                file.rename(away / file.name)

    def _admin(self, sid: Sid, command: str, body: bytes | None = None) -> tuple[str, bytes]:
        """The zxid in the header of an answer, empty without one, and the content."""
        request = urllib.request.Request(
            f"http://{LOOPBACK}:{self._admin_ports[sid]}/commands/{command}", data=body, headers=ADMIN
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            zxid: str = answer.headers.get("last_zxid", "")
            content: bytes = answer.read()
        return zxid, content

    def write(self, kind: str) -> None:
        """Make the writes of a kind at the leader. Raises ServerError if one is not acknowledged."""
        session = self.connect(self.leader())
        try:
            for number in range(self.writes):
                if error := session.ask(CREATE, f"/{kind}{number}", b"1", WORLD, 0).err:
                    raise ServerError(f"the write /{kind}{number} was refused with {error}")
        finally:
            session.drop()

    def count(self, sid: Sid, kind: str) -> int:
        """The writes of a kind that a server has."""
        return sum(self.exists(sid, f"/{kind}{number}") for number in range(self.writes))

    def restart_each(self) -> None:
        """Restart each server in order, the leader last."""
        leader = self.leader()
        for sid in (*(sid for sid in self.sids if sid != leader), leader):
            self.stop(sid)
            time.sleep(SETTLED_SECONDS)
            self.start(sid)
            self.wait_serving()

    def end(self, sids: tuple[Sid, ...], how: Callable[[Sid], None]) -> None:
        """End servers, and wait until the others serve. Where none is left, start all again."""
        for sid in sids:
            how(sid)
        time.sleep(SETTLED_SECONDS)
        if not self.running:
            self.start_all()
        self.wait_serving()


def admin_jars() -> Path:
    """The jars of an AdminServer. Raises ServerError if they are not there."""
    if reason := releases.ADMIN_SERVER.missing():
        raise ServerError(reason)
    return releases.ADMIN_SERVER.folder


class RestoreUndone(HandMadeRun):
    """A snapshot is restored as the guide says, a client writes, and the leader stops."""

    scenario = "restore-undone"
    effects = frozenset({Effect.LOST})
    sids = (1, 2, 3)
    since = Release(3, 9, 0)
    servers: Restorable

    def make(self) -> None:
        """Make the three servers, with the jars of their AdminServers."""
        self.servers = Restorable(self.bench.directory, self.bench.release, admin_jars(), self.bench.java_options)
        self.servers.writes = 1

    def begin(self) -> None:
        """Start the three servers."""
        self.servers.start_led_by(3)

    def steps(self) -> tuple[HandStep, ...]:
        """The steps of the guide, between writes, and the end of the leader."""
        guide = "logs and snapshots are moved away, and each AdminServer gets `restore` with the snapshot"
        return (
            HandStep("a client writes /before0 at leader 3", lambda: self.servers.write("before")),
            HandStep("leader 3 streams a snapshot: `snapshot?streaming=true`", self._snapshot),
            HandStep("a client writes /undone0, which the restore must undo", lambda: self.servers.write("undone")),
            HandStep(guide, lambda: self.servers.restore(self._taken)),
            HandStep("a client writes /after0 at 3", self._write),
            HandStep("leader 3 is stopped by SIGTERM", self._stop, decisive=True),
        )

    def recover(self) -> None:
        """Start the stopped server again."""
        self.servers.start_all()
        self.look_up(self.servers.exists)

    def _snapshot(self) -> None:
        self._taken = self.servers.snapshot(3)

    def _write(self) -> Iterable[str]:
        self.servers.write("after")
        self.acknowledge("/after0", 3)
        undone = "has" if self.servers.exists(3, "/undone0") else "has not"
        return ["the write of /after0 is acknowledged by server 3", f"server 3 {undone} /undone0"]

    def _stop(self) -> Iterable[str]:
        self.servers.end((3,), self.servers.stop)
        back = [sid for sid in self.servers.running if self.servers.exists(sid, "/undone0")]
        return [f"server {sid} has /undone0 again" for sid in back]
