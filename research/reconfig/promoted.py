"""Two observers that become voters at once, and an acknowledged write is lost, because an observer does not log first.

Server 3 leads {1, 2, 3} with the observers 4 and 5. It acknowledges a write that the observers have not received, and
is asked to make both voters. 2 has logged that when 3 is killed. 2 leads 1, and counts the acknowledgement of observer
4, which has the write in memory only. UPTODATE makes 4 a voter, so that it looks for a leader. A partition leaves it
with 3 and 5, which have an older epoch.

Source: `Learner.syncWithLeader` (logs before the acknowledgement only for a FollowerZooKeeperServer; UPTODATE ends the
observer), `SyncedLearnerTracker.addAck`, `FastLeaderElection.totalOrderPredicate`.
"""

from collections.abc import Iterable

from harness.processes import wait_until
from harness.reproduce.by_hand.observation import drop_links, wait_logged
from harness.reproduce.by_hand.servers import Bench, ReconfigServers
from harness.reproduce.disks import read_current_epoch
from harness.reproduce.proxies import Way
from harness.servers import RECONFIG
from harness.zoo_cfg import OBSERVER, PARTICIPANT
from refimpl.wire.packet import PacketType
from research.reconfig.facts import FactTable
from spec.quorum import Sid

ROLES = {1: PARTICIPANT, 2: PARTICIPANT, 3: PARTICIPANT, 4: OBSERVER, 5: OBSERVER}
OLD_SIDE, NEW_SIDE = (1, 2), (3, 4, 5)
BEFORE, WRITE = "/before", "/acknowledged"  # BEFORE: so that observers are synchronised by DIFF
WRITTEN, RECONFIGURED = 0x100000002, 0x100000003
SECONDS = 30.0
BUT_UPTODATE = frozenset(PacketType) - {PacketType.UPTODATE}
COLUMNS = ("question", "the partition comes at once", "control: 4 follows 2 first")


def measure(bench: Bench) -> Iterable[FactTable]:
    """The run, and its control in which 4 follows 2 as a voter before the partition."""
    lost, control = (dict(run(bench, f"promoted-{follows}", follows=follows)) for follows in (False, True))
    yield FactTable("promoted", COLUMNS, tuple((question, lost[question], control[question]) for question in lost))


def run(bench: Bench, name: str, *, follows: bool) -> Iterable[tuple[str, str]]:
    """Promote 4 and 5, and part {1, 2} from {3, 4, 5}. Raises ServerError if a step does not happen in time."""
    with bench.servers(name, ROLES) as servers:
        servers.begin_led_by(3, ROLES)
        servers.create(3, BEFORE)
        wait_until(lambda: all((servers.applied(sid) or 0) > 0x100000000 for sid in ROLES), SECONDS, "all have a write")
        yield "the reply of 3 to the write", _kill_the_leader(servers)
        wait_until(lambda: servers.role(2) == "leader", SECONDS, "server 2 leads")
        yield "epoch of 4 when 2 leads with its acknowledgement", str(read_current_epoch(servers.data(4)))
        yield "the log of 4 has the write then", "yes" if WRITTEN in servers.logged(4) else "no"
        servers.part(OLD_SIDE, (3, 5))
        if follows:
            servers.link(4, 2).free(Way.DOWN)
            servers.network.is_open = True
            wait_until(lambda: servers.role(4) == "follower", SECONDS, "server 4 follows as a voter")
        else:
            # UPTODATE reaches 4 without an election connection with 1 and 2, so that it does not find 2 again.
            for sid in OLD_SIDE:
                servers.network.sever_election(sid, 4)
            servers.link(4, 2).free(Way.DOWN)
            wait_until(lambda: servers.role(4) is None, SECONDS, "server 4 looks for a leader")
        servers.part(OLD_SIDE, NEW_SIDE)
        servers.network.is_open = True  # the cuts stay
        servers.start(3)
        servers.resume(5)
        servers.wait_serving(NEW_SIDE)
        yield "leader of {3, 4, 5}", ", ".join(str(sid) for sid in NEW_SIDE if servers.role(sid) == "leader")
        yield "servers with the write among them", _holders(servers, NEW_SIDE)
        servers.join()
        servers.network.open()
        servers.wait_serving(servers.sids)
        yield "servers with the write in the end", _holders(servers, servers.sids)


def _kill_the_leader(servers: ReconfigServers) -> str:
    """Write without 4 and 5, ask for the promotion, and kill 3 when only 2 has its proposal; the reply to the write."""
    servers.hold(4, 3, Way.DOWN)
    servers.pause(5)
    reply = servers.create(3, WRITE)
    wait_logged(servers, (1, 2, 3), WRITTEN)
    servers.hold(1, 3, Way.DOWN)
    client = servers.connect(3)
    client.send(RECONFIG, *servers.change(join=[4, 5]))
    wait_logged(servers, (2, 3), RECONFIGURED)
    servers.network.close(BUT_UPTODATE)
    servers.kill(3)
    client.drop()
    drop_links(servers, 3)
    return f"code {reply.err}, {reply.zxid:#x}"


def _holders(servers: ReconfigServers, sids: Iterable[Sid]) -> str:
    return ", ".join(str(sid) for sid in sids if servers.exists(sid, WRITE)) or "none"
