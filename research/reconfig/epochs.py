"""Two leaders that establish one epoch, because FOLLOWERINFO and ACKEPOCH are counted by the active view alone.

{1, 2, 3} becomes {3, 4, 5}, and only leader 3 has activated it. 3 is cut off. 1, which has the proposal, is elected
with the votes of both configurations; the connections of 4 and 5 to it are late. For its epoch it counts 1 and 2
alone. Then 4 and 5 hear 3, adopt its configuration, and elect one of the three: the same epoch.

Source: `Leader.getEpochToPropose`, `waitForEpochAck` (getQuorumVerifier), `FastLeaderElection.getVoteTracker`.
"""

from collections.abc import Iterable

from harness.processes import ServerError, wait_until
from harness.reproduce.proxies import Way
from research.reconfig.facts import (
    NEW,
    NEW_SIDE,
    OLD_SIDE,
    FactBench,
    FactTable,
    ensemble,
    log_everywhere,
    look,
    wait_config,
)
from research.reconfig.servers import ReconfigServers
from spec.quorum import Sid
from spec.text import required_integer

EPOCH = 2
WRITE = "/new-side"
COLUMNS = ("moment", "server", "currentEpoch", "NEWLEADER of epoch 2", "srvr", "active file", ".next")
SECONDS = 30.0


def measure(bench: FactBench) -> Iterable[FactTable]:
    """The epochs of all servers when both leaders are established, and in the end."""
    yield FactTable("epochs", COLUMNS, tuple(run(bench, "epochs")))


def run(bench: FactBench, name: str) -> Iterable[tuple[str, ...]]:
    """Establish epoch 2 at 1 and on the new side. Raises ServerError if a step of it does not happen in time."""
    with ensemble(bench, name) as servers:
        # Committed with the acknowledgements of 1, 4 and 5: only 3 activates it, and 2 has no proposal.
        client = log_everywhere(servers)
        for sid in (1, 4, 5):
            servers.hold(sid, 3, Way.DOWN)
            servers.link(sid, 3).free(Way.UP)
        wait_config(servers, [3], NEW)
        client.drop()
        servers.network.close(frozenset())
        servers.part([3], (1, 2, 4, 5))
        wait_until(lambda: _established_by_2(servers), SECONDS, "servers 1 and 2 have epoch 2")
        servers.part(OLD_SIDE, NEW_SIDE)
        servers.network.is_open = True  # the cuts stay
        servers.join()
        servers.part(OLD_SIDE, NEW_SIDE)
        servers.wait_serving(NEW_SIDE)
        write = servers.create(4, WRITE)
        yield from _rows(servers, f"{write.zxid:#x} is acknowledged")
        servers.join()
        servers.network.open()
        servers.wait_serving(servers.sids)
        if missing := [sid for sid in servers.sids if not servers.exists(sid, WRITE)]:
            raise ServerError(f"servers {missing} lack the write")
        yield from _rows(servers, "mended; all have the write")


def epoch_of(servers: ReconfigServers, sid: Sid) -> int:
    """The content of the file `currentEpoch`."""
    text = (servers.home(sid) / "data" / "version-2" / "currentEpoch").read_text(encoding="ascii")
    return required_integer(text.strip())


def _established_by_2(servers: ReconfigServers) -> bool:
    """Let the packets between 1 and 2 pass, and those of no other connection; whether both have the epoch."""
    link = servers.network.link(2, 1)
    if link is not None:
        for way in Way:
            link.free(way)
    return all(epoch_of(servers, sid) == EPOCH for sid in OLD_SIDE)


def _rows(servers: ReconfigServers, moment: str) -> Iterable[tuple[str, ...]]:
    senders = {packet.sender for packet in servers.packets("NEWLEADER") if packet.packet.zxid == EPOCH << 32}
    for sid in servers.sids:
        sight = look(servers, sid)
        yield (
            moment,
            str(sid),
            str(epoch_of(servers, sid)),
            "sent" if sid in senders else "-",
            sight.mode,
            sight.active,
            sight.next,
        )
