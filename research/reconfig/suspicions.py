"""Runs for suspicions about the source: a table of observations for each.

Source: `QuorumPeer.setLastSeenQuorumVerifier`, `Leader.getDesignatedLeader`, `Learner.syncWithLeader`,
`QuorumPeer.processReconfig`.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from harness.processes import ServerError, wait_until
from harness.reproduce.by_hand.observation import COLUMNS, drop_links, look, wait_config, wait_logged
from harness.reproduce.by_hand.servers import Bench, ReconfigServers
from harness.reproduce.proxies import Way
from harness.servers import RECONFIG
from harness.zoo_cfg import NEXT, OBSERVER, PARTICIPANT, brief
from research.reconfig.facts import FactTable
from spec.quorum import Sid

ZXID = 0x100000001
NEW = "0x100000001: {1, 2, 3, 4}"
RESTART_SECONDS = 10.0
PROMOTED = {1: PARTICIPANT, 2: PARTICIPANT, 3: PARTICIPANT, 4: OBSERVER}


def measure(bench: Bench) -> Iterable[FactTable]:
    """All runs of this module."""
    yield FactTable("unwritable", ("question", "seen"), tuple(unwritable(bench)))
    yield FactTable("disabled-one", ("moment", "server", *COLUMNS), tuple(disabled_one(bench)))
    yield FactTable("dead-designated", ("question", "seen"), tuple(dead_designated(bench)))
    yield FactTable("no-candidate", ("question", "seen"), tuple(no_candidate(bench)))
    yield FactTable("promotion", ("follower 1", "moment", "server", *COLUMNS, "a write at 3"), tuple(promotion(bench)))
    yield FactTable("promotion-alone", ("moment", "server", *COLUMNS, "a write at 2"), tuple(promotion_alone(bench)))


def unwritable(bench: Bench) -> Iterable[tuple[str, str]]:
    """Follower 1 cannot write `.next`: a folder with a file in it has that name."""
    with bench.servers("unwritable", (1, 2, 3, 4)) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        servers.begin(4, (1, 2, 3, 4))
        servers.wait_serving([4])
        (servers.home(1) / NEXT / "folder").mkdir(parents=True)
        servers.hold(2, 3, Way.UP)
        servers.hold(4, 3, Way.UP)
        servers.hold(1, 3, Way.DOWN)
        servers.link(1, 3).free(Way.DOWN)
        client = servers.connect(3)
        client.send(RECONFIG, *servers.change(join=[4]))
        wait_logged(servers, (1,), ZXID)

        def acknowledged() -> bool:
            return any(packet.sender == 1 and packet.packet.zxid == ZXID for packet in servers.packets("ACK"))

        wait_until(acknowledged, 10.0, "server 1 acknowledges")
        yield "`.next` of 1 is a file when its ACK has arrived", "yes" if (servers.home(1) / NEXT).is_file() else "no"
        yield "1 has logged and acknowledged", "yes"
        servers.kill(1)
        client.drop()
        for sid in (2, 4):
            servers.link(sid, 3).free(Way.UP)
        wait_config(servers, (2, 3, 4), NEW)
        servers.start(1)
        servers.wait_serving([1])
        yield "config node of 1 after a restart", brief(servers.config(1))


def disabled_one(bench: Bench) -> Iterable[tuple[str, ...]]:
    """Server 2 has `reconfigEnabled=false`, the others `true`."""
    with bench.servers("disabled-one", (1, 2, 3, 4), special={2: {"reconfigEnabled": "false"}}) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        servers.begin(4, (1, 2, 3, 4))
        servers.wait_serving([4])

        def rows(moment: str) -> Iterable[tuple[str, ...]]:
            return [(moment, str(sid), *look(servers, sid).cells()) for sid in (1, 2)]

        yield from rows("before")
        servers.reconfig(3, join=[4])
        wait_config(servers, (1, 3, 4), NEW)
        wait_until(lambda: (servers.applied(2) or 0) >= ZXID, 10.0, "server 2 has applied the transaction")
        yield from rows("4 has joined")
        servers.kill(2)
        servers.start(2)
        time.sleep(RESTART_SECONDS)
        yield from rows(f"2 restarted, {RESTART_SECONDS:g} s later")
        (servers.home(2) / "zoo.cfg").write_text(
            (servers.home(2) / "zoo.cfg").read_text(encoding="utf-8") + servers.members[4].dynamic_line + "\n",
            encoding="utf-8",
        )
        servers.kill(2)
        servers.start(2)
        servers.wait_serving([2])
        yield from rows("2 restarted with `server.4` in its `zoo.cfg`")


def dead_designated(bench: Bench) -> Iterable[tuple[str, str]]:
    """Leader 3 leaves; server 1 acknowledges first and is killed before the commit."""
    with bench.servers("dead-designated", (1, 2, 3, 4)) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        servers.begin(4, (1, 2, 3, 4))
        servers.wait_serving([4])
        for sid in (2, 4):
            servers.hold(sid, 3, Way.UP)
        client = servers.connect(3)
        client.send(RECONFIG, *servers.change(join=[4], leave=[3]))
        wait_logged(servers, servers.sids, ZXID)
        acks = "server 1 acknowledges"
        wait_until(lambda: any(a.sender == 1 and a.packet.zxid == ZXID for a in servers.packets("ACK")), 10.0, acks)
        servers.kill(1)
        began = time.monotonic()
        for sid in (2, 4):
            servers.link(sid, 3).free(Way.UP)
        wait_until(lambda: bool(servers.packets("COMMITANDACTIVATE")), 20.0, "the reconfiguration is committed")
        leader = int.from_bytes(servers.packets("COMMITANDACTIVATE")[0].packet.raw[16:24], "big")
        yield "designated leader", f"{leader}, which is dead"
        wait_until(lambda: any(servers.role(sid) == "leader" for sid in (2, 4)), 60.0, "2 or 4 leads")
        seconds = time.monotonic() - began
        yield "leader in the end", "2 or 4, by an election"
        yield "no leader for more than 1 s", "yes" if seconds > 1.0 else "no"
        client.drop()


def no_candidate(bench: Bench) -> Iterable[tuple[str, str]]:
    """Leader 3 stays alone, with another quorum port: no other server can be designated."""
    with bench.servers("no-candidate", (1, 2, 3, 4)) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        spare, member = servers.members[4], servers.members[3]
        line = f"server.3=zk3:{spare.quorum_port}:{member.election_port}:participant;127.0.0.1:{member.client_port}"
        for sid in (1, 2):
            servers.hold(sid, 3, Way.UP)
        client = servers.connect(3)
        client.send(RECONFIG, line, "1,2", None, -1)
        wait_logged(servers, (1, 2, 3), ZXID)
        for sid in (1, 2):
            servers.link(sid, 3).free(Way.UP)
        time.sleep(3.0)
        committed = bool(servers.packets("COMMITANDACTIVATE"))
        yield "COMMITANDACTIVATE was sent", "yes" if committed else "no"
        yield "config node of 3", brief(servers.config(3)) or "-"
        yield "active file of 3, `.next` of 3", f"{look(servers, 3).active}, {look(servers, 3).next}"
        yield "a write at 3 afterwards", _code_of(lambda: servers.create(3, "/after").err)
        yield "a second reconfiguration at 3", _code_of(lambda: servers.reconfig(3, leave=[2]).err)
        time.sleep(3.0)
        ended = {servers.process(sid).exit_code for sid in (1, 2)} - {None}
        yield "exit codes of followers that have ended", ", ".join(map(str, sorted(ended, key=str))) or "-"
        client.drop()


def promotion(bench: Bench) -> Iterable[tuple[str, ...]]:
    """Observer 4 is to become a voter; follower 1 is cut off, or killed and started again, before its ACK arrives."""
    for case, way, dies in (
        ("logs the proposal, and is cut off", Way.UP, False),
        ("logs the proposal, and is killed", Way.UP, True),
        ("is cut off before the proposal", Way.DOWN, False),
    ):
        with bench.servers(f"promotion-{way.name}-{dies}", PROMOTED) as servers:
            yield from ((case, *row) for row in _promote(servers, way, dies))


def _promote(servers: ReconfigServers, held: Way, dies: bool) -> Iterable[tuple[str, ...]]:
    servers.begin_led_by(3, PROMOTED)
    servers.hold(1, 3, held)
    client = servers.connect(3)
    client.send(RECONFIG, *servers.change(join=[4]))
    wait_logged(servers, (1, 2, 3) if held is Way.UP else (2, 3), ZXID)
    if dies:
        servers.kill(1)
        servers.start(1)
    else:
        servers.link(1, 3).drop()
    time.sleep(RESTART_SECONDS)
    for sid in (1, 3):
        yield f"{RESTART_SECONDS:g} s later", str(sid), *look(servers, sid).cells(), _write_at(servers, sid, "/one")
    client.drop()
    servers.kill(3)
    servers.start(3)
    servers.wait_serving(servers.sids)
    for sid in (1, 3):
        sight = replace(look(servers, sid), mode="serves")  # an election may have any outcome
        yield "leader 3 has started again", str(sid), *sight.cells(), _write_at(servers, sid, "/two")


def promotion_alone(bench: Bench) -> Iterable[tuple[str, ...]]:
    """Observer 4 is to become a voter; leader 3 is killed when it alone has logged that, and starts again under 2."""
    with bench.servers("promotion-alone", PROMOTED) as servers:
        servers.begin_led_by(3, PROMOTED)
        for sid in (1, 2):
            servers.hold(sid, 3, Way.DOWN)
        client = servers.connect(3)
        client.send(RECONFIG, *servers.change(join=[4]))
        wait_logged(servers, (3,), ZXID)
        servers.kill(3)
        client.drop()
        drop_links(servers, 3)
        wait_until(lambda: servers.role(2) == "leader", 60.0, "server 2 leads")
        servers.start(3)
        time.sleep(RESTART_SECONDS)
        for sid in (2, 3):
            moment = f"3 started again, {RESTART_SECONDS:g} s later"
            yield moment, str(sid), *look(servers, sid).cells(), _write_at(servers, sid, "/one", at=2)
        servers.kill(2)
        servers.start(2)
        servers.wait_serving(servers.sids)
        for sid in (2, 3):
            sight = replace(look(servers, sid), mode="serves")  # an election may have any outcome
            yield "leader 2 has started again", str(sid), *sight.cells(), _write_at(servers, sid, "/two", at=2)


def _write_at(servers: ReconfigServers, sid: Sid, path: str, at: Sid = 3) -> str:
    return _code_of(lambda: servers.create(sid, path).err) if sid == at else "-"


def _code_of(ask: Callable[[], int]) -> str:
    """The code of a reply, as text; `no reply` if the connection ends or nothing comes."""
    try:
        return f"reply with code {ask()}"
    except (ServerError, OSError):
        return "no reply"
