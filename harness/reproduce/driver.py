"""The execution of a schedule on real servers, step by step beside the model.

Rules of this module:

- A step controls what the model calls an event of the network, a disk, a process or a client; the servers do the rest.
  After each step the driver waits until the observation agrees with the state of the model (`Comparison`).
- A disagreement that lasts ends the run as "not confirmed", with the step and the difference. A failure of the driver
  itself, such as a server that does not start, is a `HarnessError`, never a verdict.
"""

import time
from collections.abc import Callable
from pathlib import Path

from checker.engine.model import Row
from checker.models.ensemble import PlannedReconfig
from checker.models.ensemble.actions import ServerAction
from harness.processes import ServerError
from harness.reproduce.comparison import Comparison, agree, list_zxids, text_of, zxid_of
from harness.reproduce.elections import ElectionControl
from harness.reproduce.ends import Outcome, Reproduction, StepReport, begin, recover
from harness.reproduce.gates import ServerThread
from harness.reproduce.lab import POLL_SECONDS, HarnessError, Lab
from harness.reproduce.proxies import UNMODELLED, Fate, Way, WirePacket
from harness.reproduce.recorder import Recorder
from harness.reproduce.schedule import Schedule, ScheduledStep, pending_appends, wire_form
from harness.session import Session
from spec.quorum import Sid
from spec.txn import format_zxid
from spec.zab.packets import QuorumPacket
from spec.zab.state import Append, Learner

SECONDS_TO_AGREE = 40.0
STALL_REQUESTS = 1_500  # on each of two connections, 7 ms each on a machine with two cores


class ScheduleDriver:
    """Executes one schedule in a lab; `report` receives each step as it ends.

    A server that serves applies late because of slow reads, or, if `quick`, because its commit processor rests.
    """

    def __init__(
        self, schedule: Schedule, lab: Lab, report: Callable[[StepReport], None], *, quick: bool = False
    ) -> None:
        self.schedule, self.lab, self._report, self._quick = schedule, lab, report, quick
        self.seen: list[str] = []
        self._compare = Comparison(schedule, lab)
        self._elections = ElectionControl(schedule, lab)
        self._sessions: dict[Sid, Session] = {}

    def record(self, source: Sid, destination: Sid, packet: WirePacket, fate: Fate) -> None:
        """Note a packet for the report of the present step."""
        if packet.type not in UNMODELLED and fate is not Fate.ARRIVED:
            verb = "lost" if fate is Fate.LOST else "delivered"
            self.seen.append(f"{packet.name}{zxid_of(packet)} {source} to {destination} {verb}")

    def run(self) -> Reproduction:
        """Execute all steps, let everything recover, and look for the writes."""
        result = self.execute()
        if result.outcome is not Outcome.HARNESS_FAILED:
            try:
                recover(self.schedule, self.lab, result)
            except (HarnessError, ServerError, OSError) as error:
                result.outcome, result.reason = Outcome.HARNESS_FAILED, str(error)
        return result

    def execute(self) -> Reproduction:
        """Execute all steps, and leave the servers as the last one has them."""
        result = Reproduction(Outcome.CONFIRMED, servers=len(self.schedule.setup.sids))
        try:
            self._sessions = begin(self.schedule, self.lab, self._elections, quick=self._quick)
            self.seen.clear()
            for step in self.schedule.steps:
                report = self._take(step)
                result.steps.append(report)
                self._report(report)
                if report.differences:
                    result.outcome = Outcome.NOT_CONFIRMED
                    result.reason = f"the servers and the model part in step {step.number}: {report.differences[0]}"
                    break
            self._poll_writes()
        except (HarnessError, ServerError, OSError) as error:
            result.outcome, result.reason = Outcome.HARNESS_FAILED, str(error)
        return result

    def _take(self, step: ScheduledStep) -> StepReport:
        started = time.monotonic()
        deadline = started + SECONDS_TO_AGREE
        leaving = {}
        for sid in self.schedule.running(step.after):
            before, after = self.schedule.server(step.before, sid).zab, self.schedule.server(step.after, sid).zab
            if isinstance(before, Learner) and after is None:
                leaving[sid] = before.leader
        for sid in (*leaving, *self._deposed(step)):
            self._elections.isolate(sid)
        self._delay_where_late(step)
        problem = self._act(step, deadline) or self._start_again(step, deadline)
        for sid, leader in leaving.items():
            # A learner gives up by itself, or not, unless its leader has ended the connection.
            connection = self.schedule.connection(step.after, sid, leader)
            if connection is None or not connection.leader_holds:
                self._elections.leave(sid, leader)
        differences = [problem] if problem else self._differences(step.after)
        while differences and not problem and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
            self._let_queues_flush(step.after)
            differences = self._differences(step.after)
        notes, self.seen = tuple(self.seen), []
        return StepReport(step.number, step.caption, notes, time.monotonic() - started, tuple(differences))

    def _start_again(self, step: ScheduledStep, deadline: float) -> str | None:
        """Start a server again that ends at a TRUNC which it cannot obey; the difference if it does not end."""
        sid = self.schedule.cannot_truncate(step)
        while sid is not None and self.lab.alive(sid):
            if time.monotonic() > deadline:
                return f"server {sid} does not end, and the model's server cannot truncate its log"
            time.sleep(POLL_SECONDS)
        if sid is not None:
            self.seen.append(f"server {sid} ends, and is started again")
            self._start(sid, step)
        return None

    def _deposed(self, step: ScheduledStep) -> list[Sid]:
        """The leaders that lose their quorums in a step, which they notice at their next tick."""
        before, after = (
            {sid for sid in self.lab.sids if self.schedule.leads_without_quorum(row, sid)}
            for row in (step.before, step.after)
        )
        return sorted(after - before)

    def _differences(self, row: Row) -> list[str]:
        self._poll_writes()
        return self._compare.differences(row)

    def _let_queues_flush(self, row: Row) -> None:
        """Permit the writes that the model has completed within a step: an orderly shutdown flushes the queue."""
        for sid in self.lab.sids:
            server = self.schedule.server(row, sid)
            # What the model writes later may be in its log already, where a TRUNC has left it (`trunc-after-snap`).
            zxids = {txn.zxid for txn in server.durable.records}.difference(pending_appends(server))
            waiting = self.lab.gates[sid].waiting()
            if waiting and zxids.issuperset(waiting):
                self.lab.gates[sid].permit()
                self.seen.append(f"server {sid} flushes {list_zxids(waiting)} to its log")

    def _poll_writes(self) -> None:
        for write in self.lab.all_writes:
            error = write.error
            write.poll()
            if error is None and write.error is not None:
                if write.error == 0 and self.lab.recorder is not None:
                    self.lab.recorder.acknowledged(write.sid, write.path, write.zxid)
                verb = "is acknowledged" if write.error == 0 else f"fails with {write.error}"
                self.seen.append(f"the write of {write.path} {verb} by server {write.sid}")

    def _act(self, step: ScheduledStep, deadline: float) -> str | None:
        """Cause the event of a step; the difference that prevents it, if there is one."""
        arguments = step.move.arguments
        match step.move.action:
            case ServerAction.CLIENT_WRITE:
                sid, number = arguments
                self.lab.write(sid, number, self._session_at(sid, step))
            case ServerAction.RECEIVE:
                source, reader, packet = arguments
                return self._deliver(source, reader, packet, deadline)
            case ServerAction.SYNC:
                sid, operation = arguments
                if isinstance(operation, Append):
                    return self._write_record(sid, operation.txn.zxid, deadline)
            case ServerAction.SYNC_LATE:
                sid, txn = arguments
                self.lab.threads[sid].release(ServerThread.SYNC)
                return self._write_record(sid, txn.zxid, deadline)
            case ServerAction.APPLY:
                self.lab.stop_stall(arguments[0])
                self.lab.threads[arguments[0]].release(ServerThread.COMMIT)
            case ServerAction.RESUME:
                self.lab.threads[arguments[0]].release(ServerThread.PEER)
            case ServerAction.ELECT:
                leader, members = arguments
                return self._elections.elect(step, leader, frozenset(members), deadline)
            case ServerAction.LEARN:
                return self._learn(arguments[0], arguments[1], step, deadline)
            case ServerAction.LOSE_LEADER:
                self._elections.leave(*arguments)
            case ServerAction.LOSE_QUORUM | ServerAction.GIVE_UP:
                self._elections.isolate(arguments[0])
                for peer in self.lab.sids:
                    # A learner with packets on their way reads them first; the leader closes its side by itself.
                    connection = self.schedule.connection(step.after, arguments[0], peer)
                    if connection is None or connection.learner != peer or not connection.learner_holds:
                        self._elections.leave(arguments[0], peer)
            case ServerAction.DISCONNECT:
                self._elections.leave(*arguments)
            case ServerAction.FILL_DISK:
                return self._fill_disk(arguments[0], deadline)
            case _:
                self._change(step)
        return None

    def _change(self, step: ScheduledStep) -> None:
        """Cause an event of a process, of the network, or of the plan."""
        arguments = step.move.arguments
        match step.move.action:
            case ServerAction.CRASH:
                self.lab.kill(arguments[0])
            case ServerAction.RESTART | ServerAction.START:
                self._start(arguments[0], step)
            case ServerAction.CUT:
                self.lab.network.cut(*arguments[:2])
            case ServerAction.PARTITION:
                for near, far in self.schedule.crossing(arguments[0]):
                    self.lab.network.cut(near, far)
            case ServerAction.HEAL:
                self.lab.network.heal()
            case action if action in self.schedule.setup.planned:
                planned = self.schedule.setup.planned[action]
                if isinstance(planned, PlannedReconfig):
                    self.lab.reconfigure(arguments[0], planned.change)
                elif planned.action == "stop":
                    self.lab.kill(planned.sid)
                else:
                    self._start(planned.sid, step)
            case action:
                raise HarnessError(f"the driver has no event for the action {action!r}")

    def _learn(self, sid: Sid, peer: Sid, step: ScheduledStep, deadline: float) -> str | None:
        """Let a server that looks for a leader hear the later configuration of another one, and nobody else."""
        self._elections.hear(sid, peer, both_ways=self.schedule.server(step.before, peer).zab is not None)
        while self._compare.view_of(step.after, sid):
            if time.monotonic() > deadline:
                return f"server {sid} does not learn the configuration of server {peer}"
            time.sleep(POLL_SECONDS)
        self._elections.isolate(sid)
        return None

    def _session_at(self, sid: Sid, step: ScheduledStep) -> Session:
        """The first session at a server, or a new one if the server has ended its connections in an earlier step."""
        steps = self.schedule.steps
        rows = (self.schedule.initial, *(earlier.after for earlier in steps if earlier.number < step.number))
        parts = [self.schedule.server(row, sid).zab for row in rows]
        if not all(part is not None and part.serves for part in parts):
            self._sessions[sid] = self.lab.connect(sid)
        return self._sessions[sid]

    def _deliver(self, source: Sid, reader: Sid, packet: QuorumPacket, deadline: float) -> str | None:
        link = self.lab.network.link(source, reader)
        if link is None:
            return f"server {source} and server {reader} have no quorum connection"
        way = Way.UP if source == link.learner else Way.DOWN
        while not link.waiting(way):
            if time.monotonic() > deadline:
                return f"server {source} has sent server {reader} nothing, and the model has {wire_form(packet)[0]}"
            time.sleep(POLL_SECONDS)
        if not agree(packet, link.waiting(way)[0]):
            first = link.waiting(way)[0]
            return f"server {source} has sent {first.name}{zxid_of(first)}, and the model has {text_of(packet)}"
        link.release(way)
        return None

    def _fill_disk(self, sid: Sid, deadline: float) -> str | None:
        """Let the next write of a server fail, and wait until it looks for a leader; its disk has space again then.

        The sync thread has rested before the record. A record that waits at the gate would stay in the memory of
        `FileTxnLog`, and be written with the next one.
        """
        self._elections.isolate(sid)
        self.lab.gates[sid].fill()
        self.lab.threads[sid].release(ServerThread.SYNC)
        problem = self._elections.wait_looking(sid, deadline)
        self.lab.gates[sid].free()
        return problem

    def _write_record(self, sid: Sid, zxid: int, deadline: float) -> str | None:
        gate = self.lab.gates[sid]
        while not gate.waiting():
            if time.monotonic() > deadline:
                return f"server {sid} does not write {format_zxid(zxid)}"
            time.sleep(POLL_SECONDS)
        if gate.waiting() != (zxid,):
            return f"server {sid} writes {list_zxids(gate.waiting())}, and the model writes {format_zxid(zxid)}"
        gate.permit()
        self.seen.append(f"server {sid} writes {format_zxid(zxid)} to its log")
        return None

    def _delay_where_late(self, step: ScheduledStep) -> None:
        """Before a step, delay the threads whose work the model completes in a later one.

        These are the commit processor (by slow reads where the server serves), a sync thread that outlives its server,
        and the thread that reads packets, between the log and the ACK of NEWLEADER.
        """
        for sid in self.schedule.commits_late(step):
            if self.schedule.serves(step.before, sid) and not self._quick:
                self.lab.stall(sid, STALL_REQUESTS)
            else:
                self.lab.threads[sid].hold(ServerThread.COMMIT)
        for sid in self.lab.sids:
            part = self.schedule.server(step.after, sid).zab
            if part is None:
                continue
            queued = {(sid, item.txn.zxid) for item in part.queue if isinstance(item, Append)}
            if queued & (self.schedule.written_late | self.schedule.fails_later(step)):
                self.lab.threads[sid].hold(ServerThread.SYNC)
            if isinstance(part, Learner) and part.owes_ack:
                self.lab.threads[sid].linger(ServerThread.PEER)

    def _start(self, sid: Sid, step: ScheduledStep) -> None:
        """Start a server with its files, or with another one if its view is another one then."""
        self._elections.isolate(sid)
        before, after = (self.schedule.server(row, sid).view for row in (step.before, step.after))
        if after != before:
            self.lab.configure(sid, after)
        self.lab.start(sid)


def reproduce(
    schedule: Schedule,
    directory: Path,
    release: str,
    shim: Path,
    report: Callable[[StepReport], None],
    recorder: Recorder | None = None,
    java_options: tuple[str, ...] = (),
    *,
    quick: bool = False,
) -> Reproduction:
    """Execute a schedule on real servers of a release, below an empty directory.

    A `quick` execution ends with the last step: nothing recovers, and no write is looked up. It has no slow reads.
    """
    drivers: list[ScheduleDriver] = []

    def record(source: Sid, destination: Sid, packet: WirePacket, fate: Fate) -> None:
        if drivers:
            drivers[0].record(source, destination, packet, fate)

    reconfigurable = schedule.setup.gossip
    lab = Lab(
        schedule.setup.sids, directory, release, shim, record, recorder, java_options, reconfigurable=reconfigurable
    )
    try:
        drivers.append(ScheduleDriver(schedule, lab, report, quick=quick))
        return drivers[0].execute() if quick else drivers[0].run()
    finally:
        lab.shut_down()
