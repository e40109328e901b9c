"""Two timings for each kind of server in turn: a failover, and a start with a million znodes.

The failover is measured from the kill of the leader.

Rules of this module:

- A failover ends when a write through one of the other servers is answered; the client tries them in turn, with pauses
  of 5 ms.
- Both kinds start from the same snapshot, which our code wrote; a server has started when `srvr` reports its mode.
- Memory is the peak of the process (VmHWM), its code and runtime included.
"""

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.node.load import make, session
from benchmarks.node.timing import HEAP, Say, Timing
from benchmarks.outcome import Missed, NotMeasured
from harness.ensemble import KINDS, Ensemble
from harness.processes import ServerError
from refimpl.disk.snapshot import save
from refimpl.tree import Tree
from spec.text import required_integer
from spec.tree.data import OPEN_ACL_UNSAFE, new_znode
from spec.tree.store import Put

TICK = 500
FAILOVER_LIMIT = 30.0
ZNODES = 1_000_000
QUICK = 20
MOST_STARTS, START_LIMIT = 3, 120.0
VALUE = b"x" * 100
FOLDERS = 1000


def measure_timings(
    names: Sequence[str], kinds: Sequence[str], rounds: int, directory: Path, quick: bool, say: Say
) -> tuple[list[Timing], list[Missed]]:
    """Measure these for each kind; a measurement that cannot be made is listed in the second result."""
    timings: list[Timing] = []
    missed: list[Missed] = []
    for name in names:
        for kind in kinds:
            if KINDS[kind]() is not None:
                continue
            try:
                say(f"{name}: {kind}")
                timings.append(TIMINGS[name](kind, rounds, directory, ZNODES // QUICK if quick else ZNODES))
            except (NotMeasured, ServerError, OSError) as reason:
                missed.append(Missed(f"{kind}: {name}", str(reason)))
    return timings, missed


def _failover(kind: str, rounds: int, directory: Path, _: int) -> Timing:
    seconds = []
    home = directory / f"failover-{kind}"
    home.mkdir()
    with Ensemble([kind] * 3, home, tick_time=TICK, heap=HEAP) as ensemble:
        ensemble.start_all()
        for number in range(rounds):
            leader = ensemble.leader()
            followers = [sid for sid in ensemble.sids if sid != leader]
            ensemble.kill(leader)
            seconds.append(_until_written(ensemble, followers, f"/round-{number}"))
            ensemble.start(leader)
            ensemble.wait_serving()
    return Timing(f"leader killed, tickTime {TICK}: the rest write again after", kind, seconds)


def _until_written(ensemble: Ensemble, sids: Sequence[int], path: str) -> float:
    began = time.perf_counter()
    while time.perf_counter() - began < FAILOVER_LIMIT:
        for sid in sids:
            try:
                with session(ensemble.client_port(sid)) as connection:
                    make(connection, path)
                    return time.perf_counter() - began
            except (NotMeasured, OSError):
                time.sleep(0.005)
    raise NotMeasured(f"no write within {FAILOVER_LIMIT:.0f} s")


def _start(kind: str, rounds: int, directory: Path, znodes: int) -> Timing:
    seconds, memory = [], 0
    home = directory / f"start-{kind}"
    home.mkdir()
    with Ensemble([kind], home, standalone=True, heap=HEAP) as ensemble:
        _write(ensemble.data(1) / "version-2", znodes)
        for _ in range(min(rounds, MOST_STARTS)):
            began = time.perf_counter()
            ensemble.start(1)
            ensemble.wait_serving(seconds=START_LIMIT)
            seconds.append(time.perf_counter() - began)
            memory = max(memory, _highest_memory(ensemble.process(1).pid))
            ensemble.stop(1)
    name = f"start from a snapshot of {znodes:,} znodes of {len(VALUE)} bytes"
    return Timing(name, kind, seconds, memory)


def _write(directory: Path, znodes: int) -> None:
    """Write a snapshot with this number of znodes below a thousand folders."""
    tree = Tree()
    for folder in range(FOLDERS):
        tree.carry_out((Put(f"/folder-{folder}", new_znode(b"", OPEN_ACL_UNSAFE, 1, 0, 0)),))
    for number in range(znodes):
        path = f"/folder-{number % FOLDERS}/znode-{number:07d}"
        tree.carry_out((Put(path, new_znode(VALUE, OPEN_ACL_UNSAFE, 1 + number, 0, 0)),))
    directory.mkdir(parents=True, exist_ok=True)
    save(directory, tree, znodes)


def _highest_memory(pid: int) -> int:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return required_integer(match[1]) << 10 if match else 0


TIMINGS: dict[str, Callable[[str, int, Path, int], Timing]] = {"failover": _failover, "start": _start}
"""The timings by name; arguments: kind, rounds, a directory, and the number of znodes that a server starts with."""
