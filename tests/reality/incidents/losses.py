"""Incidents of defects that lose or split writes: schedules of the checker, and the restore of a snapshot."""

from __future__ import annotations

from pathlib import Path

import spec
from harness.processes import Process, ServerError
from harness.reproduce.by_hand.restore import Restorable, admin_jars
from harness.reproduce.driver import ScheduleDriver
from harness.reproduce.ends import Outcome
from harness.reproduce.gates import compile_shim
from harness.reproduce.lab import Lab
from harness.reproduce.proxies import Fate, WirePacket
from harness.reproduce.schedule import ScheduleError, load_schedule, with_losses
from spec.quorum import Sid
from spec.quorum.view import View
from tests.reality.incidents.scene import SECONDS, Scene, Truth
from tests.reality.incidents.servers import FILES

SCENARIOS = Path(spec.__file__).parent / "scenarios"
RESULTS = ("histories-differ", "truncated")
"""The names of what disks and logs show after a defect of replication."""
LOGBACK = "-Dlogback.configurationFile="


def use_small_files(process: Process) -> None:
    """Let a server make small files, and write the log of an operator."""
    place = next(number for number, word in enumerate(process.command) if word.startswith(LOGBACK))
    process.command[place : place + 1] = FILES


class OperatorsLab(Lab):
    """The lab of schedules, with the small files and the log of an operator."""

    def configure(self, sid: Sid, view: View) -> None:
        super().configure(sid, view)
        use_small_files(self._processes[sid])

    def addresses(self, sid: Sid) -> dict[str, str]:
        """The ports of the proxies that a server knows, each with the port of the server behind it."""
        ports = {}
        for peer in self.sids:
            if peer != sid:
                member = self._members[peer]
                ports[f":{self.network.quorum_proxies[sid, peer]}"] = f":{member.quorum_port}"
                ports[f":{self.network.election_proxies[sid, peer]}"] = f":{member.election_port}"
        return ports


def _run(scene: Scene, cause: str, scenario: str) -> Truth:
    """Execute the counterexample of a scenario, and kill all servers after its last step."""
    try:
        schedule = with_losses(load_schedule(SCENARIOS / scenario))
    except ScheduleError as error:
        raise ServerError(str(error)) from None
    drivers: list[ScheduleDriver] = []

    def record(source: Sid, destination: Sid, packet: WirePacket, fate: Fate) -> None:
        if drivers:
            drivers[0].record(source, destination, packet, fate)

    lab = OperatorsLab(schedule.setup.sids, scene.home, scene.release, compile_shim(scene.home / "shim"), record)
    scene.servers = lab
    drivers.append(ScheduleDriver(schedule, lab, lambda _: None))
    result = drivers[0].execute()
    if result.outcome is not Outcome.CONFIRMED:
        raise ServerError(f"{scenario}: {result.outcome.value}: {result.reason}")
    for write in lab.writes.values():
        if write.error == 0:
            scene.witness.acknowledged(write.sid, write.path, write.zxid)
    scene.addresses = {sid: lab.addresses(sid) for sid in lab.sids}
    scene.mark()
    for sid in lab.running:
        lab.kill(sid)
    deed = f"the run of {scenario} on real servers; all were killed after its last step"
    return Truth(cause, (), deed, also=RESULTS)


def acks_survive_truncation(scene: Scene) -> Truth:
    return _run(scene, "acks-survive-truncation", "known-defects/acks-survive-truncation.yaml")


def sync_from_applied(scene: Scene) -> Truth:
    return _run(scene, "sync-from-applied", "known-defects/sync-from-applied.yaml")


def trunc_after_snap(scene: Scene) -> Truth:
    return _run(scene, "trunc-after-snap", "known-defects/trunc-after-snap.yaml")


def observer_becomes_voter(scene: Scene) -> Truth:
    return _run(scene, "observer-becomes-voter", "r4-observers/r4-observer-promoted-loses-a-write.yaml")


class RestorableByClients(Restorable):
    """The servers of `harness.reproduce.by_hand.restore`, with the small files and the log of an operator."""

    session_milliseconds = 4000

    def __init__(self, directory: Path, release: str, jars: Path) -> None:
        super().__init__(directory, release, jars)
        for process in self._processes.values():
            use_small_files(process)


def restore_undone(scene: Scene) -> Truth:
    """The Snapshot and Restore Guide, then acknowledged writes, then a SIGTERM to the leader."""
    jars = admin_jars()
    servers = RestorableByClients(scene.home, scene.release, jars)
    scene.servers = servers
    servers.start_all()
    scene.load()
    scene.quiet()
    snapshot = servers.snapshot(servers.leader())
    servers.write("undone")
    servers.restore(snapshot)
    scene.mark()
    scene.resume(40)
    scene.quiet()
    leader = servers.leader()
    servers.end((leader,), servers.stop)
    servers.start(leader)
    servers.wait_serving(seconds=SECONDS)
    deed = "a snapshot was restored by the AdminServers as the guide says; then the leader was stopped and started"
    return Truth("restore-undone", tuple(servers.sids), deed)
