"""`python -m research.restore`: the Snapshot and Restore Guide of ZooKeeper 3.9 on real servers, and its losses.

Three servers get WRITES writes, a snapshot is streamed from the leader, and WRITES more writes follow, which the
restore must undo. Then the guide: without clients, the logs and snapshots of each server are moved away, and the
snapshot is posted to its AdminServer (`restore`). In two cases the snapshot is put on the disks of stopped servers
instead. WRITES writes are acknowledged after it, and servers end.

A row of the table has the writes of each kind that each serving server has at the end, and its zxid. Exit codes: 0
measured; 1 an error of the servers; 2 a wrong command line.

Source: Snapshot and Restore Guide of 3.9; `ZooKeeperServer.restoreFromSnapshot`, `QuorumPeer.zkDb`.
"""

import argparse
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from checker.command import refused
from harness import real, releases
from harness.directories import add_keep, directories, keep_mistake
from harness.ensemble import Ensemble
from harness.processes import LOOPBACK, ServerError, free_ports
from harness.servers import CREATE, WORLD
from spec.quorum import Sid
from spec.text import between

WRITES = 10
POM = Path(__file__).with_name("restore.pom.xml")
JETTY = "the AdminServer"
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

    def __init__(self, directory: Path, release: str, jars: Path) -> None:
        super().__init__(["real"] * 3, directory, java_options=OPTIONS, release=release)
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
        """Make WRITES writes of a kind at the leader. Raises ServerError if one is not acknowledged."""
        session = self.connect(self.leader())
        try:
            for number in range(WRITES):
                if error := session.ask(CREATE, f"/{kind}{number}", b"1", WORLD, 0).err:
                    raise ServerError(f"the write /{kind}{number} was refused with {error}")
        finally:
            session.drop()

    def count(self, sid: Sid, kind: str) -> int:
        """The writes of a kind that a server has."""
        return sum(self.exists(sid, f"/{kind}{number}") for number in range(WRITES))

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


Case = tuple[Callable[[Restorable, Snapshot], None], Callable[[Restorable], None]]
"""The way to restore, before clients write, and what ends after they have written."""


def _one_follower_starts_again(servers: Restorable) -> None:
    follower = next(sid for sid in servers.sids if sid != servers.leader())
    servers.kill(follower)
    servers.start(follower)
    servers.wait_serving()


def _leave_files(servers: Restorable, snapshot: Snapshot) -> None:
    servers.restore(snapshot, move=False)


def _restart_each(servers: Restorable, snapshot: Snapshot) -> None:
    servers.restore(snapshot)
    servers.restart_each()


def _stop_leader(servers: Restorable) -> None:
    servers.end((servers.leader(),), servers.stop)


def _kill_leader(servers: Restorable) -> None:
    servers.end((servers.leader(),), servers.kill)


def _kill_all(servers: Restorable) -> None:
    servers.end(servers.sids, servers.kill)


CASES: dict[str, Case] = {
    "no server ends": (Restorable.restore, lambda _: None),
    "the leader is stopped": (Restorable.restore, _stop_leader),
    "the leader is killed": (Restorable.restore, _kill_leader),
    "all are killed and start again": (Restorable.restore, _kill_all),
    "files stay, and a follower is killed and starts again": (_leave_files, _one_follower_starts_again),
    "each is restarted before clients write, then the leader is killed": (_restart_each, _kill_leader),
    "each is restarted before clients write, then all are killed and start again": (_restart_each, _kill_all),
    "the snapshot is put on the disks of stopped servers, then the leader is killed": (
        Restorable.restore_stopped,
        _kill_leader,
    ),
    "the snapshot is put on the disks of stopped servers, then all are killed and start again": (
        Restorable.restore_stopped,
        _kill_all,
    ),
}


def measured(case: Case, directory: Path, release: str, jars: Path) -> dict[Sid, tuple[int, ...]]:
    """The zxid of each serving server at the end, and its writes: before the snapshot, undone, after the restore."""
    restores, ends = case
    with Restorable(directory, release, jars) as servers:
        servers.start_all()
        servers.write("before")
        snapshot = servers.snapshot(servers.leader())
        servers.write("undone")
        restores(servers, snapshot)
        servers.write("after")
        ends(servers)
        # The zxids first: each session that counts is a transaction as well.
        zxids = {sid: servers.applied(sid) or 0 for sid in servers.running}
        return {
            sid: (zxid, *(servers.count(sid, kind) for kind in ("before", "undone", "after")))
            for sid, zxid in zxids.items()
        }


def main(arguments: list[str] | None = None) -> int:
    """Carry out the command; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m research.restore", description="Follow the Snapshot and Restore Guide on real servers."
    )
    newest = releases.MAVEN[-1]
    parser.add_argument("--release", default=newest, help=f"the release of the servers (default: {newest})")
    parser.add_argument("--runs", type=between(1), default=1, help="the runs of each case (default: 1)")
    parser.add_argument(
        "--case", type=between(1, len(CASES)), action="append", help=f"only this case, 1 to {len(CASES)}; repeatable"
    )
    add_keep(parser)
    options = parser.parse_args(arguments)
    if reason := keep_mistake(options.keep) or real.available(options.release):
        return refused(reason, 2)
    print(
        f"| after {WRITES} acknowledged writes | run | before the snapshot | undone by the restore | after it | zxids |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    try:
        with directories(options.keep) as folder:
            jars = releases.copy_jars(releases.maven_for(JETTY), JETTY, POM, folder, "jackson-databind-2.18.1.jar")
            for number, (name, case) in enumerate(CASES.items(), 1):
                if options.case and number not in options.case:
                    continue
                for run in range(1, options.runs + 1):
                    counts = measured(case, folder / f"case-{number}-run-{run}", options.release, jars)
                    zxids, *kinds = zip(*counts.values(), strict=True)
                    cells = [", ".join(map(str, kind)) for kind in kinds]
                    print(f"| {name} | {run} | {' | '.join(cells)} | {', '.join(map(hex, zxids))} |", flush=True)
    except (OSError, ServerError) as error:
        return refused(str(error), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
