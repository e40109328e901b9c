"""`python -m research.restore`: the Snapshot and Restore Guide of ZooKeeper 3.9 on real servers, and its losses.

Three servers get WRITES writes, a snapshot is streamed from the leader, and WRITES more writes follow, which the
restore must undo. Then the guide: without clients, the logs and snapshots of each server are moved away, and the
snapshot is posted to its AdminServer (`restore`). WRITES writes are acknowledged after it, and servers end.

A row of the table has the writes of each kind that each serving server has at the end, and its zxid. Exit codes: 0
measured; 1 an error of the servers; 2 a wrong command line.

Source: Snapshot and Restore Guide of 3.9; `ZooKeeperServer.restoreFromSnapshot`, `QuorumPeer.zkDb`.
"""

import argparse
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from checker.command import refused
from harness import real, releases
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import LOOPBACK, Process, ServerError, free_ports
from harness.servers import CREATE, EXISTS, SYNC, WORLD, Servers
from spec.quorum import Sid
from spec.text import between

WRITES = 10
SIDS = (1, 2, 3)
POM = Path(__file__).with_name("restore.pom.xml")
OPTIONS = ("-Xmx160m", "-Dzookeeper.admin.snapshot.enabled=true", "-Dzookeeper.admin.restore.enabled=true")
ADMIN = {"Authorization": "digest root:root_passwd", "Content-Type": "application/octet-stream"}
SETTLED_SECONDS = 2.0
"""The time after which a server that has ended its part no longer reports its former role."""


class Restorable(Servers):
    """Three servers with their AdminServers; `jars` are those that an AdminServer needs."""

    def __init__(self, directory: Path, release: str, jars: Path) -> None:
        super().__init__(SIDS, directory)
        ports = free_ports(4 * len(SIDS))
        self._ports = {sid: ports[4 * place : 4 * place + 4] for place, sid in enumerate(SIDS)}
        for sid in SIDS:
            self.data(sid).mkdir(parents=True)
            (self.data(sid) / "myid").write_text(f"{sid}\n")
            (self.home(sid) / "zoo.cfg").write_text(self._zoo_cfg(sid))
            command = real.command(self.home(sid) / "zoo.cfg", OPTIONS, release)
            place = command.index("-cp") + 1
            command[place] += f":{jars}/*"
            self._processes[sid] = Process(command, self.home(sid), self.home(sid) / "log.txt")

    def _zoo_cfg(self, sid: Sid) -> str:
        client, _, _, admin = self._ports[sid]
        lines = ["tickTime=400", "initLimit=10", "syncLimit=5", f"dataDir={self.data(sid)}", f"clientPort={client}"]
        lines += [f"clientPortAddress={LOOPBACK}", "4lw.commands.whitelist=*"]
        lines += ["admin.enableServer=true", f"admin.serverAddress={LOOPBACK}", f"admin.serverPort={admin}"]
        lines += [f"server.{other}={LOOPBACK}:{quorum}:{vote}" for other, (_, quorum, vote, _) in self._ports.items()]
        return "\n".join(lines) + "\n"

    def client_port(self, sid: Sid) -> int:
        """The port for the clients of a server."""
        return self._ports[sid][0]

    def snapshot(self, sid: Sid) -> bytes:
        """A snapshot of a server, streamed by its AdminServer."""
        return self._admin(sid, "snapshot?streaming=true")

    def restore(self, sid: Sid, snapshot: bytes, *, move: bool) -> None:
        """Restore a snapshot at a server, after its logs and snapshots were moved away or left in place."""
        if move:
            away = self.home(sid) / "away"
            away.mkdir()
            for file in (self.data(sid) / "version-2").iterdir():
                if file.name.startswith(("log.", "snapshot.")):
                    file.rename(away / file.name)
        self._admin(sid, "restore", snapshot)

    def _admin(self, sid: Sid, command: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(
            f"http://{LOOPBACK}:{self._ports[sid][3]}/commands/{command}", data=body, headers=ADMIN
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            content: bytes = answer.read()
        return content

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
        session = self.connect(sid)
        try:
            session.ask(SYNC, "/")
            return sum(session.ask(EXISTS, f"/{kind}{number}", False).err == 0 for number in range(WRITES))
        finally:
            session.drop()

    def restart_each(self) -> None:
        """Restart each server in order, the leader last."""
        leader = self.leader()
        for sid in (*(sid for sid in SIDS if sid != leader), leader):
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
            for sid in SIDS:
                self.start(sid)
        self.wait_serving()


Case = tuple[bool, bool, Callable[[Restorable], None]]
"""Whether files are moved away, whether each server is restarted before clients write, and what ends after it."""


def _one_follower_starts_again(servers: Restorable) -> None:
    follower = next(sid for sid in SIDS if sid != servers.leader())
    servers.kill(follower)
    servers.start(follower)
    servers.wait_serving()


CASES: dict[str, Case] = {
    "no server ends": (True, False, lambda _: None),
    "the leader is stopped": (True, False, lambda servers: servers.end((servers.leader(),), servers.stop)),
    "the leader is killed": (True, False, lambda servers: servers.end((servers.leader(),), servers.kill)),
    "all are killed and start again": (True, False, lambda servers: servers.end(SIDS, servers.kill)),
    "files stay, and a follower is killed and starts again": (False, False, _one_follower_starts_again),
    "each is restarted before clients write, then the leader is killed": (
        True, True, lambda servers: servers.end((servers.leader(),), servers.kill)
    ),
    "each is restarted before clients write, then all are killed and start again": (
        True, True, lambda servers: servers.end(SIDS, servers.kill)
    ),
}  # fmt: skip


def measured(case: Case, directory: Path, release: str, jars: Path) -> dict[Sid, tuple[int, ...]]:
    """The zxid of each serving server at the end, and its writes: before the snapshot, undone, after the restore."""
    move, restarts, ends = case
    with Restorable(directory, release, jars) as servers:
        for sid in SIDS:
            servers.start(sid)
        servers.wait_serving()
        servers.write("before")
        snapshot = servers.snapshot(servers.leader())
        servers.write("undone")
        for sid in SIDS:
            servers.restore(sid, snapshot, move=move)
        if restarts:
            servers.restart_each()
        servers.write("after")
        ends(servers)
        # The zxids first: each session that counts is a transaction as well.
        zxids = {sid: servers.applied(sid) or 0 for sid in servers.running}
        return {
            sid: (zxid, *(servers.count(sid, kind) for kind in ("before", "undone", "after")))
            for sid, zxid in zxids.items()
        }


def fetch_jars(folder: Path) -> Path:
    """Download the jars of the AdminServer by Maven. Raises ServerError."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ServerError(f"the jars of the AdminServer are downloaded by Maven; {releases.INSTALL_MAVEN}")
    options = [
        "--batch-mode",
        "--strict-checksums",
        "--quiet",
        "-Dstyle.color=never",
        "--file",
        str(shutil.copy(POM, folder)),
    ]
    ended = subprocess.run(
        [maven, *options, f"-DoutputDirectory={folder}", releases.COPY], check=False, timeout=releases.SECONDS
    )
    if ended.returncode:
        raise ServerError(f"Maven did not download the jars of the AdminServer, it ended with {ended.returncode}")
    return folder


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
            jars = folder / "jars"
            jars.mkdir()
            fetch_jars(jars)
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
