"""Reconfigurations without faults: 3 to 5 and back, a leader that leaves or moves, an observer that is promoted.

A client writes at server 1 without a pause, so that the longest gap between two of its replies shows the time without
service. A hand-over without an election shows in the counter `zk_looking_count` of `mntr`, which does not change.

Source: `Leader.getDesignatedLeader`, `QuorumPeer.updateServerState`, `ServerMetrics.LOOKING_COUNT`.
"""

import contextlib
import itertools
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.processes import ServerError, wait_until
from harness.reproduce.by_hand.servers import Bench, ReconfigServers
from harness.servers import CREATE, SERVE_SECONDS, WORLD
from harness.zoo_cfg import brief, observers_of, voters_of
from research.reconfig.facts import FactTable
from spec.quorum import Sid
from spec.text import required_integer
from spec.txn import epoch_of

QUIET_SECONDS = 1.0
OBSERVER_FOUR = {4: "observer"}


@dataclass
class SteadyWriter:
    """A client that creates znodes at one server until it is stopped, and remembers the moments of the replies."""

    servers: ReconfigServers
    sid: Sid
    moments: list[float] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            with contextlib.suppress(ServerError, OSError):
                session = self.servers.connect(self.sid)
                try:
                    while not self._stop.is_set():
                        number += 1
                        path = f"/w{number}"
                        if session.ask(CREATE, path, b"", WORLD, 0).err == 0:
                            self.moments.append(time.monotonic())
                            self.acknowledged.append(path)
                finally:
                    session.drop()
            self._stop.wait(0.005)

    def longest_gap(self, since: float) -> float:
        """The longest time in seconds between two replies, after `since`."""
        moments = [*self.moments, time.monotonic()]
        return max(later - max(earlier, since) for earlier, later in itertools.pairwise(moments) if later > since)

    def stop(self) -> None:
        """End the writes."""
        self._stop.set()
        self._thread.join()


@dataclass
class ReconfigSteps:
    """The rows of a sequence of reconfigurations of one ensemble."""

    servers: ReconfigServers
    writer: SteadyWriter
    rows: list[tuple[str, ...]] = field(default_factory=list)
    times: list[tuple[str, ...]] = field(default_factory=list)

    def take(
        self, step: str, *, join: Mapping[Sid, str] | Iterable[Sid] = (), leave: Iterable[Sid] = (), at: Sid = 1
    ) -> None:
        """Reconfigure by a request at one server, wait until every member serves in its role, and note the outcome."""
        servers = self.servers
        before = servers.leader()
        epoch = self._epoch()
        counts = {sid: looking_count(servers, sid) for sid in servers.sids if servers.alive(sid)}
        packets = len(servers.packets("LEADERINFO"))
        began = time.monotonic()
        try:
            reply = str(servers.reconfig(at, join=join, leave=leave).err)
        except ServerError:
            reply = "connection closed"
        self._settle()
        time.sleep(QUIET_SECONDS)
        looked = [sid for sid, count in counts.items() if looking_count(servers, sid) != count]
        gap = self.writer.longest_gap(began)
        synced = sorted({packet.receiver for packet in servers.packets("LEADERINFO")[packets:]})
        after = servers.leader()
        moved = after != before
        self.rows.append(
            (
                step,
                f"{before} hands over" if moved else f"{before} stays",
                f"{epoch} to {self._epoch()}",
                _names(looked),
                "all" if moved else _names(synced),
                brief(servers.config(1)).partition(": ")[2],
            )
        )
        self.times.append((step, f"{gap * 1000:.0f} ms", reply, str(after)))

    def _settle(self) -> None:
        servers = self.servers

        def settled() -> bool:
            with contextlib.suppress(ServerError):
                leader = servers.leader()
                config = servers.config(leader)
                roles = {sid: servers.role(sid) for sid in servers.sids if servers.alive(sid)}
                voters = all(roles.get(sid) in {"leader", "follower"} for sid in voters_of(config))
                return (
                    leader in voters_of(config)
                    and voters
                    and all(roles[sid] == "observer" for sid in observers_of(config))
                )
            return False

        wait_until(settled, SERVE_SECONDS, "every member of the new configuration serves in its role")

    def _epoch(self) -> int:
        answer = self.servers.create(1, f"/epoch-{time.monotonic_ns()}")
        return epoch_of(answer.zxid)


def looking_count(servers: ReconfigServers, sid: Sid) -> int:
    """How often a process has been LOOKING; -1 if it does not serve."""
    match = re.search(r"^zk_looking_count\s+(\d+)$", servers.word(sid, "mntr"), re.MULTILINE)
    return required_integer(match[1]) if match else -1


def measure(bench: Bench) -> Iterable[FactTable]:
    """The outcome of each step, and the times without service."""
    rows: list[tuple[str, ...]] = []
    times: list[tuple[str, ...]] = []
    with bench.servers("resizing", (1, 2, 3, 4, 5)) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        for sid in (4, 5):
            servers.begin(sid, (1, 2, 3, sid))
        servers.wait_serving([4, 5])
        steps = ReconfigSteps(servers, SteadyWriter(servers, 1))
        steps.take("3 to 5: 4 and 5 join", join=[4, 5])
        steps.take("5 to 3: followers 4 and 5 leave", leave=[4, 5])
        steps.take("4 joins as observer", join=OBSERVER_FOUR)
        steps.take("observer 4 is promoted", join=[4])
        steps.take("follower 4 becomes an observer", join=OBSERVER_FOUR)
        steps.take("observer 4 is promoted again", join=[4])
        steps.take("leader 3 leaves", leave=[3])
        steps.writer.stop()
        lost = [path for path in steps.writer.acknowledged if not servers.exists(1, path)][:1]
        rows += steps.rows
        times += steps.times
    columns = ("step", "leader", "epoch", "LOOKING", "connected again", "configuration")
    yield FactTable("resizing", columns, tuple(rows))
    yield FactTable(
        "pauses",
        (
            "step",
            "longest time without a reply to a writer at 1",
            "reply to the reconfiguration at 1",
            "leader after it",
        ),
        tuple(times),
        timed=True,
    )
    yield FactTable("writes", ("acknowledged writes of these steps", "lost"), (("all of one writer", _names(lost)),))


def _names(values: Iterable[object]) -> str:
    return ", ".join(map(str, values)) or "-"
