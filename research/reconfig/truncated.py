"""A designated leader that lacks the reconfiguration it has acknowledged, and no server has failed.

Server 3 leads {1, 2, 3} and is replaced by 4. 1 acknowledges while the disk of 3 is late. 1 connects again, and its log
is truncated. Then 3 has logged: it counts the acknowledgement of before, commits, answers the client, and designates 1.

Source: `Leader.getDesignatedLeader` (the ack set), `LearnerHandler.syncFollower` (TRUNC to the last applied zxid),
`SyncedLearnerTracker.addAck`.
"""

from collections.abc import Iterable

from harness.processes import wait_until
from harness.reproduce.by_hand.observation import wait_logged
from harness.reproduce.by_hand.servers import Bench, ReconfigServers
from harness.reproduce.proxies import Way
from harness.servers import RECONFIG
from harness.session import Session
from harness.zoo_cfg import brief
from refimpl.wire.packet import PacketType
from research.reconfig.facts import FactTable

WRITTEN, RECONFIGURED = 0x100000001, 0x100000002
BEFORE = "/before"  # so that the log has a record where it is cut
SECONDS = 30.0
ALL = frozenset(PacketType)
COLUMNS = ("question", "1 connects again", "control: it does not")


def measure(bench: Bench) -> Iterable[FactTable]:
    """The run, and its control without the connection that breaks."""
    lost, control = (dict(run(bench, f"truncated-{breaks}", breaks=breaks)) for breaks in (True, False))
    yield FactTable("truncated", COLUMNS, tuple((question, lost[question], control[question]) for question in lost))


def run(bench: Bench, name: str, *, breaks: bool) -> Iterable[tuple[str, str]]:
    """Replace leader 3 by 4; with `breaks` the connection of 1 breaks in between. Raises ServerError."""
    with bench.servers(name, (1, 2, 3, 4), shim=bench.shim) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        servers.begin(4, (1, 2, 3, 4))
        servers.wait_serving([4])
        servers.create(3, BEFORE)
        operator = _ask(servers)
        if breaks:
            _reconnect(servers)
        has = "yes" if RECONFIGURED in servers.logged(1) else "no"
        yield "the log of 1 has it when 3 counts its acknowledgement", has
        servers.network.close(ALL - {PacketType.ACK, PacketType.FOLLOWERINFO})
        servers.gates[3].open()
        wait_until(operator.readable, SECONDS, "the operator has a reply")
        yield "reply to the operator", f"code {operator.receive(RECONFIG).err}"
        wait_until(lambda: bool(servers.packets("COMMITANDACTIVATE")), SECONDS, "the reconfiguration is committed")
        leader = int.from_bytes(servers.packets("COMMITANDACTIVATE")[0].packet.raw[16:24], "big")
        yield "designated leader", str(leader)
        wait_until(lambda: servers.network.link(3, 1) is not None, SECONDS, "server 3 follows server 1")
        servers.link(2, 3).drop()  # the proxy does not report to 2 that 3 has closed it
        wait_until(lambda: _serves_with_2(servers), SECONDS, "1 serves, and 2 follows it")
        servers.network.open()
        wait_until(lambda: len(servers.leaders()) == 1, SECONDS, "the old leader leads no more")
        servers.wait_serving(servers.sids)
        yield "leader in the end", str(servers.leader())
        holders = [str(sid) for sid in servers.sids if RECONFIGURED in servers.logged(sid)]
        yield "logs that have it in the end", ", ".join(holders) or "none"
        yield "config nodes in the end", " and ".join(sorted({brief(servers.config(sid)) for sid in servers.sids}))
        operator.drop()


def _ask(servers: ReconfigServers) -> Session:
    """Ask for the reconfiguration: 1 and 4 acknowledge it, 2 gets nothing, and the disk of 3 waits."""
    wait_logged(servers, (1, 2, 3, 4), WRITTEN)
    servers.hold(2, 3, Way.DOWN)
    servers.gates[3].close()
    operator = servers.connect(3)
    operator.send(RECONFIG, *servers.change(join=[4], leave=[3]))
    wait_logged(servers, [1, 4], RECONFIGURED)

    def acknowledged() -> bool:
        return {packet.sender for packet in servers.packets("ACK") if packet.packet.zxid == RECONFIGURED} >= {1, 4}

    wait_until(acknowledged, SECONDS, "1 and 4 have acknowledged")
    return operator


def _reconnect(servers: ReconfigServers) -> None:
    """Break the connection of 1, and let it synchronise again up to its acknowledgement of NEWLEADER, which is late."""
    servers.network.close(ALL - {PacketType.ACK})
    old = servers.link(1, 3)
    old.drop()

    def owes_uptodate() -> bool:
        link = servers.network.link(1, 3)
        return link is not None and link is not old and bool(link.waiting(Way.UP))

    wait_until(owes_uptodate, SECONDS, "server 1 has acknowledged NEWLEADER")


def _serves_with_2(servers: ReconfigServers) -> bool:
    """Let the packets between 1 and 2 pass, and no FOLLOWERINFO of 4, which is late; whether 1 serves."""
    link = servers.network.link(2, 1)
    if link is not None and (link.learner, link.leader) == (2, 1):
        for way in Way:
            link.free(way)
    return servers.role(1) == "leader" and servers.role(2) == "follower"
