"""`python -m research.files`: defects of the files of one server, and of a request, on real servers.

One server gets BLOCKS times WRITES writes, and is killed and started after each block, so that its disk has BLOCKS logs
and a snapshot of each start. Then an operator, a script or a full disk changes its files, and it starts again. Or a
client sends the request `check` to three servers, which end and start again.

A row of the table has what happened at the next start, and the acknowledged writes that the server then has. A case is
tried on a release that has the defect, and as a control on one that corrects it. Exit codes: 0 measured; 1 an error of
the servers; 2 a wrong command line.

Source: the issues that the cases name; `FileTxnSnapLog.restore`, `PurgeTxnLog`, `SerializeUtils.deserializeTxn`.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from checker.command import refused
from harness import real
from harness.directories import add_keep, directories, keep_mistake
from harness.ensemble import Ensemble
from harness.layouts import write
from harness.processes import ServerError
from harness.servers import CREATE, WORLD
from refimpl.disk.files import numbered
from spec.text import between

BLOCKS, WRITES = 5, 10
CHECK = 13
START_SECONDS = 20.0
PURGE = "org.apache.zookeeper.server.PurgeTxnLog"


class Outcome(NamedTuple):
    """What a start ended with, and the acknowledged writes that are there; None if the server does not serve."""

    what: str
    kept: int | None

    def __str__(self) -> str:
        """The cells of a row."""
        return f"{self.what} | {'' if self.kept is None else self.kept}"


class Disk:
    """One server whose files are changed while it is stopped."""

    def __init__(self, directory: Path, release: str, *, standalone: bool) -> None:
        self.release = release
        self.servers = Ensemble(["real"], directory, release=release, standalone=standalone)
        self.folder = self.servers.data(1) / "version-2"

    def write(self) -> None:
        """Make all writes, in one log file for each block. Raises ServerError if one is not acknowledged."""
        for block in range(BLOCKS):
            self.servers.start(1)
            self.servers.wait_serving()
            session = self.servers.connect(1)
            for number in range(WRITES):
                if error := session.ask(CREATE, f"/w{block * WRITES + number}", b"1", WORLD, 0).err:
                    raise ServerError(f"a write was refused with {error}")
            session.drop()
            self.servers.kill(1)

    def files(self, prefix: str) -> list[Path]:
        """The files of a kind, oldest first."""
        return [path for _, path in numbered(self.folder, prefix)]

    def purge(self, count: int) -> None:
        """Run the purge of the release, as `zkCleanup.sh` does."""
        words = real.command(self.folder / "unused", release=self.release)
        words = [*words[: words.index(real.MAIN)], PURGE, str(self.folder.parent), str(self.folder.parent)]
        subprocess.run([*words, "-n", str(count)], capture_output=True, timeout=60, check=True)

    def start(self) -> Outcome:
        """Start the server again, and count the writes that it has."""
        return started(self.servers, self.servers.sids, "serves", BLOCKS * WRITES)


def started(servers: Ensemble, sids: tuple[int, ...], what: str, writes: int) -> Outcome:
    """The outcome of a start of stopped servers: the fewest writes that a server has, or that they do not serve."""
    for sid in sids:
        servers.start(sid)
    try:
        servers.wait_serving(seconds=START_SECONDS)
    except ServerError:
        return Outcome("does not serve", None)
    return Outcome(what, min(sum(servers.exists(sid, f"/w{number}") for number in range(writes)) for sid in sids))


def _log_missing(disk: Disk) -> None:
    """Delete a log in the middle, and the snapshots that are newer than its begin."""
    for snapshot in disk.files("snapshot")[1:]:
        snapshot.unlink()
    disk.files("log")[BLOCKS // 2].unlink()


def _snapshots_missing(disk: Disk) -> None:
    """Delete all snapshots, and the oldest logs as a purge does."""
    for path in (*disk.files("snapshot"), *disk.files("log")[: BLOCKS // 2]):
        path.unlink()


def _purge_beside_damaged(disk: Disk) -> None:
    """Empty the three newest snapshots, as a full disk does, and purge."""
    for snapshot in disk.files("snapshot")[-3:]:
        snapshot.write_bytes(b"")
    disk.purge(3)


def _of_files(damage: Callable[[Disk], None], *, standalone: bool = True) -> Callable[[Path, str], Outcome]:
    """A measurement of a server alone, or of an ensemble of one server, whose logs have an epoch each."""

    def measured(directory: Path, release: str) -> Outcome:
        disk = Disk(directory, release, standalone=standalone)
        with disk.servers:
            disk.write()
            damage(disk)
            return disk.start()

    return measured


def _check_request(directory: Path, release: str) -> Outcome:
    """Send `check` outside a `multi` to the leader of three servers; all end, and start again."""
    with Ensemble(["real"] * 3, directory, release=release) as servers:
        servers.start_all()
        session = servers.connect(servers.leader())
        for number in range(WRITES):
            session.ask(CREATE, f"/w{number}", b"1", WORLD, 0)
        session.send_raw(CHECK, write("si", ("/w0", -1)))
        session.readable(3.0)
        session.drop()
        alive = sum(servers.alive(sid) for sid in servers.sids)
        for sid in servers.running:
            servers.kill(sid)
        outcome = started(servers, servers.sids, "all serve", WRITES)
        return Outcome(f"{alive} of 3 processes survive the request; then: {outcome.what}", outcome.kept)


class Case(NamedTuple):
    """A defect, the releases that it is tried on, those that correct it, and the measurement."""

    name: str
    releases: tuple[str, ...]
    controls: tuple[str, ...]
    measure: Callable[[Path, str], Outcome]


CASES = (
    Case("log-file-missing", ("3.4.14", "3.8.6", "3.9.5"), (), _of_files(_log_missing, standalone=False)),
    Case("log-file-missing-in-one-epoch", ("3.4.14", "3.8.6"), ("3.9.5",), _of_files(_log_missing)),
    Case("ZOOKEEPER-2325", ("3.4.14",), ("3.5.10", "3.9.5"), _of_files(_snapshots_missing)),
    Case("ZOOKEEPER-3231", ("3.5.10",), ("3.6.4", "3.9.5"), _of_files(_purge_beside_damaged)),
    Case("ZOOKEEPER-2623", ("3.4.14", "3.5.10", "3.7.2", "3.8.0"), ("3.8.6", "3.9.5"), _check_request),
)


def main(arguments: list[str] | None = None) -> int:
    """Carry out the command; return its exit code."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m research.files", description="Damage files of real servers.")
    parser.add_argument("--runs", type=between(1), default=1, help="the runs of each case (default: 1)")
    parser.add_argument("--case", choices=names, action="append", help="only this case; repeatable")
    parser.add_argument("--release", action="append", help="only this release; repeatable")
    add_keep(parser)
    options = parser.parse_args(arguments)
    chosen = [
        (case, release, control)
        for case in CASES
        for releases, control in ((case.releases, False), (case.controls, True))
        for release in releases
        if case.name in (options.case or names) and release in (options.release or [release])
    ]
    missing = (real.available(release) for _, release, _ in chosen)
    if reason := keep_mistake(options.keep) or next(filter(None, missing), None):
        return refused(reason, 2)
    print("| defect | release | run | the next start | acknowledged writes that are there |")
    print("| --- | --- | --- | --- | --- |")
    try:
        with directories(options.keep) as folder:
            for case, release, control in chosen:
                for run in range(1, options.runs + 1):
                    outcome = case.measure(folder / f"{case.name}-{release}-{run}", release)
                    print(
                        f"| {case.name} | {release}{' (control)' if control else ''} | {run} | {outcome} |", flush=True
                    )
    except (OSError, ServerError, subprocess.SubprocessError) as error:
        return refused(str(error), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
