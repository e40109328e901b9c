"""A SIGKILL at each step of one reconfiguration: {1, 2, 3}, led by 3, becomes {1, 2, 3, 4}.

A step is reached by packets that are held at the proxies and by log writes that are held at the disk gate. After the
kill the others are waited for; then the killed server starts again, and the configuration of all is read.

Source: `Leader.tryToCommit`, `Follower.processPacket`, `QuorumPeer.setLastSeenQuorumVerifier`,
`Learner.syncWithLeader`.
"""

from collections.abc import Callable, Iterable

from harness.processes import ServerError, wait_until
from harness.reconfig.facts import FactBench, FactTable, look, wait_config, wait_logged
from harness.reconfig.members import brief
from harness.reconfig.servers import NEXT, RECONFIG, ReconfigServers
from harness.reproduce.proxies import Way
from harness.session import Session
from spec.quorum import Sid

OLD, NEW = "0x100000000: {1, 2, 3}", "0x100000001: {1, 2, 3, 4}"
ZXID = 0x100000001
LEADER, FOLLOWER, JOINER = 3, 1, 4
LEARNERS = (1, 2, 4)

Prepare = Callable[[ReconfigServers], Session]
"""Brings the ensemble to a step, and returns the session of the client that asked for the reconfiguration."""


def _ask(servers: ReconfigServers) -> Session:
    session = servers.connect(LEADER)
    session.send(RECONFIG, *servers.change(join=[JOINER]))
    return session


def _hold(servers: ReconfigServers, sids: Iterable[Sid], way: Way) -> None:
    for sid in sids:
        servers.hold(sid, LEADER, way)


def _has_next(servers: ReconfigServers, sid: Sid) -> None:
    wait_until(lambda: servers.file(sid, NEXT) is not None, 20.0, f"server {sid} has {NEXT}")


def leader_alone(servers: ReconfigServers) -> Session:
    """Only the leader has the proposal."""
    _hold(servers, LEARNERS, Way.DOWN)
    session = _ask(servers)
    wait_logged(servers, [LEADER], ZXID)
    return session


def proposed(servers: ReconfigServers) -> Session:
    """All have logged the proposal, and no acknowledgement has arrived."""
    _hold(servers, LEARNERS, Way.UP)
    session = _ask(servers)
    wait_logged(servers, servers.sids, ZXID)
    return session


def committed(servers: ReconfigServers) -> Session:
    """The leader has activated, and no other server has."""
    session = proposed(servers)
    _hold(servers, LEARNERS, Way.DOWN)
    for sid in LEARNERS:
        servers.link(sid, LEADER).free(Way.UP)
    wait_config(servers, [LEADER], NEW)
    return session


def follower_first(servers: ReconfigServers) -> Session:
    """The leader and follower 1 have activated."""
    session = committed(servers)
    servers.link(FOLLOWER, LEADER).free(Way.DOWN)
    wait_config(servers, [FOLLOWER], NEW)
    return session


def next_without_log(servers: ReconfigServers) -> Session:
    """Follower 1 has `.next`, and its log write waits."""
    _hold(servers, LEARNERS, Way.UP)
    servers.gates[FOLLOWER].close()
    session = _ask(servers)
    _has_next(servers, FOLLOWER)
    wait_until(lambda: ZXID in servers.gates[FOLLOWER].waiting(), 20.0, "the log write of follower 1 waits")
    return session


def activated_without_log(servers: ReconfigServers) -> Session:
    """Follower 1 has activated, since the others were enough to commit, and its log write still waits."""
    servers.gates[FOLLOWER].close()
    session = _ask(servers)
    wait_config(servers, servers.sids, NEW)
    return session


STEPS: tuple[tuple[str, Sid, Prepare], ...] = (
    ("only the leader has `.next` and the log record", LEADER, leader_alone),
    ("all have both, no ACK has arrived", LEADER, proposed),
    ("committed at the leader, nothing sent", LEADER, committed),
    ("activated by the leader and 1", LEADER, follower_first),
    ("follower has `.next`, its log write waits", FOLLOWER, next_without_log),
    ("follower has logged, no ACK has arrived", FOLLOWER, proposed),
    ("follower has acknowledged, not activated", FOLLOWER, committed),
    ("follower has activated, its log write waits", FOLLOWER, activated_without_log),
    ("joiner has logged, no ACK has arrived", JOINER, proposed),
    ("joiner has acknowledged, not activated", JOINER, committed),
)
COLUMNS = ("step", "killed", "its log, active file, .next", "the others then", "it, after its restart", "all agree")


def measure(bench: FactBench) -> Iterable[FactTable]:
    """A row for each step."""
    yield FactTable("crashes", COLUMNS, tuple(crash(bench, number) for number in range(len(STEPS))))


def crash(bench: FactBench, number: int) -> tuple[str, ...]:
    """Kill a server at one step of `STEPS`, and restart it. Raises ServerError."""
    step, victim, prepare = STEPS[number]
    with bench.servers(f"crash-{number}", (1, 2, 3, 4), shim=bench.shim) as servers:
        servers.begin_led_by(LEADER, (1, 2, 3))
        servers.begin(JOINER, (1, 2, 3, JOINER))
        servers.wait_serving([JOINER])
        session = prepare(servers)
        servers.kill(victim)
        session.drop()
        if servers.gates:
            servers.gates[victim].open()
        at_crash = look(servers, victim)
        logged = "logged" if ZXID in servers.logged(victim) else "not logged"
        _release(servers, victim)
        others = [sid for sid in servers.sids if sid != victim]
        _settle(servers, others)
        then = brief(servers.config(others[0]))
        servers.start(victim)
        disk = f"{logged}, {at_crash.active}, {at_crash.next}"
        if not _starts(servers, victim):
            return (step, str(victim), disk, then, f"exits with {servers.exit_code(victim)}", "-")
        _settle(servers, servers.sids)
        after = look(servers, victim)
        configs = {brief(servers.config(sid)) for sid in servers.sids}
        return (
            step,
            str(victim),
            disk,
            then,
            f"{after.node}, .next {after.next}",
            "yes" if len(configs) == 1 else "no",
        )


def _starts(servers: ReconfigServers, sid: Sid) -> bool:
    """Wait until a server serves or ends; whether it serves."""
    servers.wait_ended_or_serving(sid)
    return servers.alive(sid)


def _release(servers: ReconfigServers, victim: Sid) -> None:
    """Drop the held packets of a dead leader; deliver those of the others."""
    for sid in servers.sids:
        link = servers.network.link(sid, LEADER) if sid != LEADER else None
        if link is None:
            continue
        if victim == LEADER:
            link.drop()
        elif sid != victim:
            link.free(Way.UP)
            link.free(Way.DOWN)
        else:
            link.drop()


def _settle(servers: ReconfigServers, sids: Iterable[Sid]) -> None:
    """Wait until these servers serve, follow one leader, and show the same configuration twice in a row."""
    sids = tuple(sids)
    seen: list[frozenset[str]] = []

    def settled() -> bool:
        try:
            servers.leader()
        except ServerError:
            seen.clear()
            return False
        seen.append(frozenset(brief(servers.config(sid)) if servers.mode(sid) else "" for sid in sids))
        return len(seen) > 5 and len(set(seen[-5:])) == 1 and len(seen[-1]) == 1 and "" not in seen[-1]

    wait_until(
        settled, 60.0, f"servers {', '.join(map(str, sids))} show one configuration", servers.home(sids[0]) / "log.txt"
    )
