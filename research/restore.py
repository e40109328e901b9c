"""`python -m research.restore`: the Snapshot and Restore Guide of ZooKeeper 3.9 on real servers, and its losses.

Three servers get ten writes, a snapshot is streamed from the leader, and ten more writes follow, which the restore must
undo. Then the guide, as in `harness.reproduce.by_hand.restore`; in two cases the snapshot is put on the disks of
stopped servers instead. Ten writes are acknowledged after it, and servers end.

A row of the table has the writes of each kind that each serving server has at the end, and its zxid. Exit codes: 0
measured; 1 an error of the servers; 2 a wrong command line.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from checker.command import refused
from harness import real, releases
from harness.directories import add_keep, directories, keep_mistake
from harness.processes import ServerError
from harness.reproduce.by_hand.restore import Restorable, Snapshot, admin_jars
from spec.quorum import Sid
from spec.text import between

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
    after = f"after {Restorable.writes} acknowledged writes"
    print(f"| {after} | run | before the snapshot | undone by the restore | after it | zxids |")
    print("| --- | --- | --- | --- | --- | --- |")
    try:
        with directories(options.keep) as folder:
            jars = admin_jars()
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
