"""The server as the commands and the metrics see it, and the figures that both have.

Rules this module keeps:

- A figure has the name that ZooKeeper gives it. One that this server does not have is left out, and never invented.
- Nothing here changes the server but the resets of statistics.

Source: `ZooKeeperServer.dumpMonitorValues`, `LeaderZooKeeperServer`, `QuorumPeer.ZabState`, `ServerMetrics`.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from refimpl.clients import ClientPort
from refimpl.clients.backend import Backend
from refimpl.membership import Membership
from refimpl.node import Node
from refimpl.settings import Settings
from refimpl.system import system
from spec.server import Server
from spec.text import required_integer
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, Stage

_LEADER_PHASES = {
    LeaderPhase.FOLLOWERINFO: "discovery",
    LeaderPhase.ACKEPOCH: "discovery",
    LeaderPhase.NEWLEADER_ACK: "synchronization",
    LeaderPhase.BROADCAST: "broadcast",
}
_LEARNER_PHASES = {
    LearnerPhase.DISCOVERY: "discovery",
    LearnerPhase.SYNCHRONIZATION: "synchronization",
    LearnerPhase.SYNCED: "synchronization",
    LearnerPhase.BROADCAST: "broadcast",
}
SECRET = re.compile("passw|secret|digest", re.IGNORECASE)
"""Finds the keys whose values are not shown."""
HIDDEN = "(hidden)"


class AdminView:
    """One running server. `membership` is None for a standalone server."""

    def __init__(self, node: Node, clients: ClientPort, settings: Settings, membership: Membership | None) -> None:
        self.node, self.clients, self.settings, self.membership = node, clients, settings, membership
        self.first_file = _shown_file(Path(settings.config.file))

    @property
    def server(self) -> Server:
        """The state of the protocol."""
        return self.node.server

    @property
    def backend(self) -> Backend | None:
        """The serving server; None while it does not serve."""
        return self.clients.backend

    @property
    def zab_state(self) -> str:
        """The phase of Zab by the name that `ZabStateCommand` prints; empty for a standalone server."""
        zab = self.server.zab
        if not self.settings.distributed:
            return ""
        if isinstance(zab, Leader):
            return _LEADER_PHASES[zab.phase]
        return _LEARNER_PHASES[zab.phase] if isinstance(zab, Learner) else "election"

    @property
    def leader(self) -> int | None:
        """The id of the leader that this server leads as, or follows; None during an election."""
        zab = self.server.zab
        return self.server.sid if isinstance(zab, Leader) else zab.leader if isinstance(zab, Learner) else None

    def figures(self, backend: Backend) -> dict[str, int | float | str]:
        """The figures of `monitor` and of the metrics, by ZooKeeper's names."""
        status = backend.status()
        names = dict(self.clients.four_letter_words.monitored(backend, status))
        if status.proposals is not None and self.settings.distributed:
            names |= dict(
                zip(("last_proposal_size", "min_proposal_size", "max_proposal_size"), status.proposals, strict=True)
            )
        if self.settings.distributed:
            names["quorum_size"] = len(self.server.view.voters)
            names["peer_state"] = f"{_VERBS.get(status.mode, 'looking')} - {self.zab_state}"
        zab = self.server.zab
        if isinstance(zab, Leader) and self.settings.distributed:
            ready = [handler for handler in zab.handlers if handler.stage is Stage.SERVING]
            voters = [handler for handler in ready if not handler.observer]
            members = self.server.view.voters
            names |= {
                "learners": len(zab.handlers),
                "synced_followers": sum(handler.sid in members for handler in voters),
                "synced_non_voting_followers": sum(handler.sid not in members for handler in voters),
                "synced_observers": len(ready) - len(voters),
                "pending_syncs": len(zab.syncs),
                "leader_uptime": system().monotonic_ms() - self.clients.serving_since,
            }
        return names


def _shown_file(path: Path) -> str | None:
    """The text of a zoo.cfg without the values of secret keys; None if it cannot be read."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return "".join(f"{_shown_line(line)}\n" for line in lines)


def _shown_line(line: str) -> str:
    key = line.partition("=")[0]
    return f"{key}={HIDDEN}" if SECRET.search(key) else line


_VERBS = {"leader": "leading", "follower": "following", "observer": "observing"}


def process_figures() -> Iterator[tuple[str, float, str, str]]:
    """The figures of the process as Prometheus clients have them: name, value, type and help text."""
    fields = _stat_fields()
    if fields is None:
        return
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    yield (
        "process_cpu_seconds_total",
        (required_integer(fields[11]) + required_integer(fields[12])) / ticks,
        "counter",
        "Total user and system CPU time spent in seconds.",
    )
    yield (
        "process_start_time_seconds",
        booted + required_integer(fields[19]) / ticks,
        "gauge",
        "Start time of the process since unix epoch in seconds.",
    )
    virtual, resident = required_integer(fields[20]), required_integer(fields[21]) * page
    yield "process_virtual_memory_bytes", float(virtual), "gauge", "Virtual memory size in bytes."
    yield "process_resident_memory_bytes", float(resident), "gauge", "Resident memory size in bytes."


def _stat_fields() -> list[str] | None:
    try:
        with open("/proc/self/stat", encoding="utf-8") as file:  # noqa: PTH123 - not a file of the user
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None
