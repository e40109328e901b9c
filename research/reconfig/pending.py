"""A learner that joins during an outstanding reconfiguration, and activates it although it is not committed.

The leader sends its last-seen configuration in NEWLEADER, also while it serves, and the learner activates that one at
UPTODATE. From then on the learner gossips it, a LOOKING server adopts it, and a quorum of the uncommitted configuration
alone elects a leader, while a quorum of the committed one elects another.

Source: `Leader.getQuorumVerifierBytes`, `LearnerHandler.run`, `Learner.syncWithLeader` (UPTODATE),
`FastLeaderElection.WorkerReceiver.run`, `getVoteTracker`.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.processes import ServerError, wait_until
from harness.reproduce.proxies import Way
from harness.zoo_cfg import version_of
from research.reconfig.facts import (
    COLUMNS,
    NEW_SIDE,
    OLD_SIDE,
    FactBench,
    FactTable,
    drop_links,
    ensemble,
    look,
    wait_logged,
)
from research.reconfig.servers import RECONFIG, ReconfigServers
from spec.quorum import Sid
from spec.txn import epoch_of

PENDING = 0x100000002
BEFORE, OLD_WRITE, NEW_WRITE = "/before", "/old-side", "/new-side"
QUIET_SECONDS = 3.0


@dataclass(frozen=True)
class PendingRun:
    """One run: who leaves when 4 and 5 join, whether joiner 4 reconnects, and the fault after it."""

    name: str
    leave: tuple[Sid, ...]
    reconnects: bool
    fault: str


SPLIT = PendingRun("3 to 5, 4 reconnects, the network splits", (), True, "split")
CRASH = PendingRun("1 and 2 are replaced by 4 and 5, 4 reconnects, 3 is killed", OLD_SIDE, True, "kill")
CONTROL_SPLIT = PendingRun("3 to 5, nobody reconnects, the network splits", (), False, "split")
CONTROL_CRASH = PendingRun("1 and 2 are replaced by 4 and 5, nobody reconnects, 3 is killed", OLD_SIDE, False, "kill")
SECONDS_TO_SERVE, SECONDS_TO_SERVE_IN_CONTROLS = 40.0, 12.0
"""The time that each side has to serve; in a control one side never does."""
VARIANTS = (SPLIT, CRASH, CONTROL_SPLIT, CONTROL_CRASH)


@dataclass
class PendingOutcome:
    """The observations of a run: views after the reconnection, leaders, and writes at the end."""

    views: list[tuple[str, ...]]
    leaders: dict[Sid, int]  # the epoch of each leader that acknowledged a write after the fault
    zxids: dict[str, int]
    holders: Mapping[str, tuple[Sid, ...]]  # the servers that have a write at the end
    members: tuple[Sid, ...] = ()  # of the newest configuration at the end
    last: tuple[Sid, ...] = ()  # the servers that lead at the end

    @property
    def lost(self) -> tuple[str, ...]:
        """The acknowledged writes that some server of the newest configuration lacks at the end."""
        return tuple(path for path in self.zxids if not set(self.members) <= set(self.holders[path]))


def measure(bench: FactBench) -> Iterable[FactTable]:
    """The views of each server after a joiner has reconnected, and the end of each variant."""
    rows = []
    for number, variant in enumerate(VARIANTS):
        outcome = run(bench, variant, f"pending-{number}")
        if variant is SPLIT:
            yield FactTable("pending", ("server", *COLUMNS), tuple(outcome.views))
        rows.append(_row(variant, outcome))
    columns = (
        "run",
        "leaders that acknowledged a write",
        "zxids of the writes",
        "who has them in the end",
        "who leads in the end",
    )
    yield FactTable("pending-outcome", columns, tuple(rows))


def run(bench: FactBench, variant: PendingRun, name: str) -> PendingOutcome:
    """Carry out one variant. Raises ServerError if a step of it does not happen in time."""
    with ensemble(bench, name) as servers:
        servers.create(3, BEFORE)
        for sid in OLD_SIDE:
            servers.hold(sid, 3, Way.DOWN)
        client = servers.connect(3)
        client.send(RECONFIG, *servers.change(join=[4, 5], leave=variant.leave))
        wait_logged(servers, NEW_SIDE, PENDING)
        if variant.reconnects:
            servers.link(4, 3).drop()
            wait_until(lambda: version_of(servers.config(4)) == PENDING, 20.0, "server 4 has the pending configuration")
        views = [(str(sid), *look(servers, sid).cells()) for sid in servers.sids]
        if client.readable():
            raise ServerError("the reconfiguration was committed, although two of three servers do not have it")
        client.drop()
        outcome = PendingOutcome(views, {}, {}, {})
        if variant.fault == "split":
            servers.part(OLD_SIDE, NEW_SIDE)
        else:
            servers.kill(3)
            drop_links(servers, 3)
        _write(servers, outcome, SECONDS_TO_SERVE if variant.reconnects else SECONDS_TO_SERVE_IN_CONTROLS)
        # As an operator would who finds two leaders.
        if variant.fault == "split":
            servers.join()
        else:
            servers.start(3)
        time.sleep(QUIET_SECONDS)
        for sid in OLD_SIDE:
            servers.kill(sid)
            servers.start(sid)
            servers.wait_ended_or_serving(sid)
            time.sleep(QUIET_SECONDS)
        _read(servers, outcome)
        return outcome


def _write(servers: ReconfigServers, outcome: PendingOutcome, seconds: float) -> None:
    """Write at each side as soon as it serves; a side that does not serve for a while is given up."""
    for sid, path in ((1, OLD_WRITE), (4, NEW_WRITE)):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and path not in outcome.zxids:
            try:
                answer = servers.create(sid, path)
            except (ServerError, OSError):
                time.sleep(0.1)
                continue
            if answer.err == 0:
                outcome.zxids[path] = answer.zxid
    for sid in servers.sids:
        if servers.role(sid) == "leader":
            outcome.leaders[sid] = epoch_of(servers.applied(sid) or 0)


def _read(servers: ReconfigServers, outcome: PendingOutcome) -> None:
    serving = [sid for sid in servers.sids if servers.role(sid) is not None]
    outcome.holders = {path: tuple(sid for sid in serving if servers.exists(sid, path)) for path in outcome.zxids}
    outcome.last = tuple(sid for sid in serving if servers.role(sid) == "leader")
    newest = max((servers.config(sid) for sid in serving), key=version_of)
    outcome.members = tuple(sid for sid in serving if f"server.{sid}=" in newest)


def _row(variant: PendingRun, outcome: PendingOutcome) -> tuple[str, ...]:
    leaders = ", ".join(f"{sid} in epoch {epoch}" for sid, epoch in outcome.leaders.items()) or "-"
    zxids = ", ".join(f"`{path}` {zxid:#x}" for path, zxid in outcome.zxids.items()) or "-"
    holders = "; ".join(f"`{path}`: {', '.join(map(str, sids)) or 'nobody'}" for path, sids in outcome.holders.items())
    return variant.name, leaders, zxids, holders or "-", ", ".join(map(str, outcome.last)) or "-"
