"""The table of crashes at real servers: SIGKILL, packets held at the proxies, and log writes held at the disk gate."""

from collections.abc import Iterable
from contextlib import suppress

from harness.processes import ServerError, wait_until
from harness.reproduce.by_hand.observation import look, wait_logged
from harness.reproduce.by_hand.servers import Bench, ReconfigServers
from harness.reproduce.proxies import Way
from harness.servers import RECONFIG
from harness.session import Session
from harness.zoo_cfg import NEXT, brief
from research.reconfig.crash_table import (
    ALL,
    COLUMNS,
    CRASHES,
    JOINER,
    LEADER,
    MEMBERS,
    TABLE_NAME,
    ZXID,
    Change,
    after_cell,
    disk_cell,
    row,
)
from research.reconfig.facts import FactTable
from spec.quorum import Sid

ACTIVE = f"zoo.cfg.dynamic.{ZXID:x}"
SECONDS = 20.0
EXPECTED_CODE = 1  # of a server whose file does not name it


def measure(bench: Bench) -> Iterable[FactTable]:
    """The table, with a row for each of `CRASHES`."""
    yield FactTable(TABLE_NAME, COLUMNS, tuple(crash(bench, number) for number in range(len(CRASHES))))


def crash(bench: Bench, number: int) -> tuple[str, ...]:
    """One row of `CRASHES` at real servers. Raises ServerError."""
    change, position = CRASHES[number]
    with bench.servers(f"crash-{number}", ALL, shim=bench.shim) as servers:
        servers.begin_led_by(LEADER, MEMBERS)
        servers.begin(JOINER, ALL)
        servers.wait_serving([JOINER])
        return row(change, position, _RealStage(servers, change))


class _RealStage:
    """Real servers that wait for a change (`CrashStage`). Every method raises ServerError if it takes too long."""

    def __init__(self, servers: ReconfigServers, change: Change) -> None:
        self._servers, self._change = servers, change
        self._client: Session | None = None

    def hold(self, sids: Iterable[Sid], way: Way) -> None:
        for sid in sids:
            self._servers.hold(sid, LEADER, way)

    def free(self, sids: Iterable[Sid], way: Way) -> None:
        for sid in sids:
            self._servers.link(sid, LEADER).free(way)

    def close_log(self, sid: Sid) -> None:
        self._servers.gates[sid].close()

    def ask(self) -> None:
        self._client = self._servers.connect(LEADER)
        self._client.send(RECONFIG, *self._servers.change(join=self._change.join, leave=self._change.leave))

    def wait_next(self, sid: Sid) -> None:
        wait_until(lambda: self._servers.file(sid, NEXT) is not None, SECONDS, f"server {sid} has {NEXT}")
        gate = self._servers.gates[sid]
        wait_until(lambda: ZXID in gate.waiting(), SECONDS, f"the log write of server {sid} waits")

    def wait_logged(self, sids: Iterable[Sid]) -> None:
        wait_logged(self._servers, sids, ZXID)

    def wait_active(self, sids: Iterable[Sid]) -> None:
        for sid in sids:
            condition = f"server {sid} has activated"
            wait_until(lambda sid=sid: self._servers.active_file(sid) == ACTIVE, SECONDS, condition)  # type: ignore[misc]

    def kill(self, victim: Sid) -> str:
        servers = self._servers
        servers.kill(victim)
        if self._client is not None:
            self._client.drop()
        for gate in servers.gates.values():
            gate.open()
        sight = look(servers, victim)
        return disk_cell(ZXID in servers.logged(victim), sight.active, sight.next)

    def go_on(self, victim: Sid) -> str:
        """Drop the packets of the dead server, deliver the others, and wait for the servers that live."""
        self._release(victim)
        survivors = [sid for sid in ALL if sid != victim]
        self._settle(survivors)
        return brief(self._servers.config(survivors[0]))

    def restart(self, victim: Sid) -> tuple[str, bool] | None:
        servers = self._servers
        servers.start(victim)
        servers.wait_ended_or_serving(victim)
        if not servers.alive(victim):
            if (code := servers.process(victim).exit_code) != EXPECTED_CODE:
                raise ServerError(f"server {victim} exits with {code}, and {EXPECTED_CODE} was expected")
            return None
        self._settle(ALL)
        sight = look(servers, victim)
        configs = {brief(servers.config(sid)) for sid in ALL}
        return after_cell(sight.node, sight.next), len(configs) == 1

    def _release(self, victim: Sid) -> None:
        for sid in ALL:
            link = self._servers.network.link(sid, LEADER) if sid != LEADER else None
            if link is None:
                continue
            with suppress(OSError):
                if victim in (LEADER, sid):
                    link.drop()
                else:
                    link.free(Way.UP)
                    link.free(Way.DOWN)

    def _settle(self, sids: Iterable[Sid]) -> None:
        """Wait until these servers serve, follow one leader, and show the same configuration five times in a row."""
        servers, waited = self._servers, tuple(sids)
        samples: list[frozenset[str]] = []

        def settled() -> bool:
            try:
                servers.leader()
            except ServerError:
                samples.clear()
                return False
            samples.append(frozenset(brief(servers.config(sid)) if servers.role(sid) else "" for sid in waited))
            return len(samples) > 5 and len(set(samples[-5:])) == 1 and len(samples[-1]) == 1 and "" not in samples[-1]

        condition = f"servers {', '.join(map(str, waited))} show one configuration"
        wait_until(settled, 60.0, condition, servers.home(waited[0]) / "log.txt")
