"""A server that forgets a reconfiguration which it has acknowledged, because each start deletes `.next`.

At a start the active configuration is set before the last-seen one, equals it for a moment, and so `.next` is deleted.
The last-seen configuration is then in memory only, and the next start does not know it, although its transaction is in
the log. A quorum of the old configuration can then lead without the new one.

Source: `QuorumPeerMain.runFromConfig` (setQuorumVerifier before setLastSeenQuorumVerifier),
`QuorumPeer.setQuorumVerifier` (deleteFile), `FastLeaderElection.getVoteTracker`.
"""

import time
from collections.abc import Iterable

from harness.processes import ServerError, wait_until
from harness.reproduce.proxies import Way
from research.reconfig.facts import (
    NEW,
    NEW_SIDE,
    OLD_SIDE,
    ZXID,
    FactBench,
    FactTable,
    ensemble,
    log_everywhere,
    look,
    wait_config,
)
from research.reconfig.servers import NEXT, RECONFIG, ReconfigServers, brief
from spec.quorum import Sid

OLD_WRITE, NEW_WRITE = "/old-side", "/new-side"
COLUMNS = (
    "starts of 1 after its ACK", "`.next` of 1", "log of 1", "{1, 2}", "config node of 1", "`/old-side`", "`/new-side`",
)  # fmt: skip


def measure(bench: FactBench) -> Iterable[FactTable]:
    """A row for one start, and one for two."""
    yield FactTable("forgotten", COLUMNS, tuple(run(bench, starts, f"forgotten-{starts}") for starts in (1, 2)))


def run(bench: FactBench, starts: int, name: str) -> tuple[str, ...]:
    """Commit {3, 4, 5}, cut off {1, 2}, start server 1 again so often, and write on both sides. Raises ServerError."""
    with ensemble(bench, name) as servers:
        _commit(servers)
        servers.part(OLD_SIDE, NEW_SIDE)
        new_write = _written(servers, 4, NEW_WRITE, 10.0)
        for start in range(starts):
            servers.kill(1)
            servers.start(1)
            if start + 1 < starts:
                wait_until(lambda: look(servers, 1).gossip != "-", 30.0, "server 1 looks for a leader")
        wait_until(lambda: look(servers, 1).gossip != "-", 30.0, "server 1 looks for a leader")
        old_write = _written(servers, 1, OLD_WRITE, 12.0)
        leads = [sid for sid in OLD_SIDE if servers.role(sid) == "leader"]
        next_file = servers.file(1, NEXT)
        return (
            str(starts),
            brief(next_file) if next_file else "missing",
            "has the transaction" if ZXID in servers.logged(1) else "has it not",
            f"{leads[0]} leads" if leads else "no leader",
            brief(servers.config(1)) if leads else "-",
            old_write,
            new_write,
        )


def _commit(servers: ReconfigServers) -> None:
    """Commit {3, 4, 5} with the acknowledgement of 1, which does not get the commit; 2 does not get the proposal."""
    client = log_everywhere(servers)
    servers.hold(1, 3, Way.DOWN)
    for sid in (1, 4, 5):
        servers.link(sid, 3).free(Way.UP)
    wait_config(servers, (3, 4, 5), NEW)
    wait_until(client.readable, 10.0, "the client has its reply")
    if client.receive(RECONFIG).err:
        raise ServerError("the reconfiguration was refused")
    client.drop()


def _written(servers: ReconfigServers, sid: Sid, path: str, seconds: float) -> str:
    """Whether a write at a server is acknowledged within some time, with its zxid."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return f"acknowledged, {servers.create(sid, path).zxid:#x}"
        except (ServerError, OSError):
            time.sleep(0.1)
    return "no service"
