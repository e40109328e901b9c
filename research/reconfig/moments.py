"""The files and answers at each moment of one reconfiguration: leader 3, followers 1 and 2, and a joiner.

Source: `QuorumPeer.setLastSeenQuorumVerifier`, `setQuorumVerifier`; `QuorumPeerConfig.editStaticConfig`.
"""

from collections.abc import Iterable
from dataclasses import replace

from harness.processes import wait_until
from harness.reproduce.by_hand.observation import COLUMNS, look, wait_config, wait_logged
from harness.reproduce.by_hand.servers import Bench, ReconfigServers
from harness.reproduce.proxies import Way
from harness.servers import RECONFIG
from harness.zoo_cfg import NEXT
from research.reconfig.facts import FactTable

COMMITTED = "0x100000001: {1, 2, 3, 4}"
PENDING = 0x100000001
RESTARTED = "all restarted"


def measure(bench: Bench) -> Iterable[FactTable]:
    """The files of servers 1, 3 and 4 when nothing, the proposal, and the activation has reached them."""
    rows: list[tuple[str, ...]] = []
    keys: list[tuple[str, ...]] = []

    def note(moment: str) -> None:
        for sid, role in ((3, "leader 3"), (1, "follower 1"), (4, "joiner 4")):
            names = ", ".join(name.removeprefix("zoo.cfg") or "zoo.cfg" for name in servers.files(sid)) or "-"
            sight = look(servers, sid)
            if moment == RESTARTED and sight.mode in {"leader", "follower"}:
                sight = replace(sight, mode="serves")  # an election may have any outcome
            rows.append((moment, role, names, *sight.cells()))

    with bench.servers("moments", (1, 2, 3, 4)) as servers:
        servers.begin_led_by(3, (1, 2, 3))
        note("3 leads")
        keys.append(("`zoo.cfg` before the first start has", _keys(servers.file(3, "zoo.cfg.bak"))))
        keys.append(("`zoo.cfg` after the first election has", _keys(servers.file(3, "zoo.cfg"))))
        servers.begin(4, (1, 2, 3, 4))
        servers.wait_serving([4])
        note("4 follows without a vote")
        for sid in (1, 2, 4):
            servers.hold(sid, 3, Way.UP)
        session = servers.connect(3)
        session.send(RECONFIG, *servers.change(join=[4]))
        wait_logged(servers, servers.sids, PENDING)
        note("proposed and logged, no ACK has arrived")
        keys.append((f"`{NEXT}` has", _keys(servers.file(1, NEXT))))
        for sid in (1, 2, 4):
            servers.hold(sid, 3, Way.DOWN)
            servers.link(sid, 3).free(Way.UP)
        wait_config(servers, [3], COMMITTED)
        wait_until(session.readable, 10.0, "the client has its reply")
        note("committed at the leader, no COMMITANDACTIVATE has arrived")
        for sid in (1, 2, 4):
            servers.link(sid, 3).free(Way.DOWN)
        wait_config(servers, servers.sids, COMMITTED)
        note("activated everywhere")
        keys.append((f"`{servers.active_file(1)}` has", _keys(servers.file(1, servers.active_file(1)))))
        _restart(servers)
        note(RESTARTED)
        session.drop()
    yield FactTable("moments", ("moment", "server", "files of `zoo.cfg*`", *COLUMNS), tuple(rows))
    yield FactTable("files", ("file", "keys"), tuple(keys))


def _restart(servers: ReconfigServers) -> None:
    for sid in servers.sids:
        servers.stop(sid)
    for sid in servers.sids:
        servers.start(sid)
    servers.wait_serving(servers.sids)


def _keys(text: str | None) -> str:
    """The keys of a file, in the order of the file; the order of a file that Java wrote is that of a hash table."""
    lines = [line.partition("=")[0] for line in (text or "").splitlines()]
    return ", ".join(f"`{key}`" for key in sorted(lines))
