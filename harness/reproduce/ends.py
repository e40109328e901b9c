"""The beginning and the end of a schedule on real servers, and its result.

At the beginning they have its initial state, and then no packet and no write moves. In the end everything recovers, and
each write is looked up at each server.

The operator of a roll-out completes the plan: every server runs with its last planned file in the end.
"""

import time
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from checker.engine.model import Row
from checker.models.ensemble.actions import ServerAction
from harness.processes import ServerError
from harness.reproduce.comparison import Comparison
from harness.reproduce.disks import path_of
from harness.reproduce.elections import ElectionControl, vote_of
from harness.reproduce.lab import POLL_SECONDS, HarnessError, Lab, wait_for
from harness.reproduce.proxies import UNMODELLED, Way
from harness.reproduce.schedule import Schedule
from harness.session import Session
from refimpl.wire.packet import PacketType
from spec.election.state import Peer
from spec.quorum import Sid
from spec.zab.state import Leader, logged_and_queued


class Outcome(Enum):
    """The result of a schedule on real servers."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    HARNESS_FAILED = "harness failed"


class WriteFate(Enum):
    """The state of a write after all servers have recovered. Only an acknowledged write can be lost."""

    PRESENT = "at {}"
    LOST = "LOST: acknowledged, and at no server"
    REVERSED = "at no server; it was committed, and never acknowledged"
    ABSENT = "at no server; it was never acknowledged"


class Effect(Enum):
    """A harm that a run shows, in the words of a count of runs."""

    LOST = "an acknowledged write lost"
    REVERSED = "a committed write without an answer reversed"
    DIFFERENT = "servers differ"
    TWO_LEADERS = "two leaders"
    NO_ANSWER = "a write without an answer while all servers run"


@dataclass(frozen=True)
class StepReport:
    """A step as executed: the events on the wire and on the disks, the time it took, and the lasting differences."""

    number: int
    caption: str
    seen: tuple[str, ...]
    seconds: float
    differences: tuple[str, ...] = ()


@dataclass
class Reproduction:
    """The result: the reports of all steps, and the state of each write after all servers have recovered."""

    outcome: Outcome
    reason: str = ""
    steps: list[StepReport] = field(default_factory=list)
    acknowledged: dict[str, int] = field(default_factory=dict)  # path of a write with a reply, and its server
    committed: tuple[str, ...] = ()  # paths of writes that the model has committed
    present: dict[str, tuple[Sid, ...]] = field(default_factory=dict)  # path, and the servers that have it at the end
    servers: int = 0
    leaders: dict[Sid, int] = field(default_factory=dict)  # at one time, and their epochs; by hand alone
    absent: tuple[Sid, ...] = ()  # servers that do not serve at the end, after a reconfiguration
    unanswered: tuple[str, ...] = ()  # paths of writes that a leader did not answer; by hand alone

    def fate(self, path: str) -> WriteFate:
        """The state of a write that was looked up."""
        if self.present[path]:
            return WriteFate.PRESENT
        if path in self.acknowledged:
            return WriteFate.LOST
        return WriteFate.REVERSED if path in self.committed else WriteFate.ABSENT

    def having(self, *fates: WriteFate) -> tuple[str, ...]:
        """The paths of the writes with one of these fates."""
        return tuple(path for path in self.present if self.fate(path) in fates)

    @property
    def effects(self) -> frozenset[Effect]:
        """The harm that the run shows."""
        harms = {
            Effect.LOST: self.having(WriteFate.LOST),
            Effect.REVERSED: self.having(WriteFate.REVERSED),
            Effect.DIFFERENT: self.diverged,
            Effect.TWO_LEADERS: len(self.leaders) > 1,
            Effect.NO_ANSWER: self.unanswered,
        }
        return frozenset(effect for effect, shown in harms.items() if shown)

    @property
    def diverged(self) -> tuple[str, ...]:
        """The writes that some servers have at the end, and others do not."""
        return tuple(path for path, sids in self.present.items() if sids and len(sids) < self.servers)


SECONDS_TO_RECOVER = 90.0
SECONDS_TO_SETTLE = 30.0
SECONDS_TO_LOOK = 120.0  # the slow reads of a stall are answered first, although their connections are closed


def recover(schedule: Schedule, lab: Lab, result: Reproduction) -> None:
    """Open everything, start every server, and look for each write at each server, after the executed steps.

    Raises HarnessError, ServerError or OSError.
    """
    result.acknowledged = {write.path: write.sid for write in lab.writes.values() if write.error == 0}
    result.committed = tuple(
        write.path for number, write in lab.writes.items() if is_committed(schedule, number, len(result.steps))
    )
    lab.network.open()
    for gate in lab.gates.values():
        gate.open()
    for threads in lab.threads.values():
        threads.open()
    for sid in lab.sids:
        lab.stop_stall(sid)
    row = schedule.steps[len(result.steps) - 1].after if result.steps else schedule.initial
    for sid in lab.sids:
        if schedule.leads_without_quorum(row, sid) and not schedule.serves(row, sid):
            lab.kill(sid)  # it would wait for a quorum until initLimit, longer than an operator does
    _complete_plan(schedule, lab, row)
    everyone = lambda: [serve for sid in lab.sids for serve in _serves(lab, sid)]  # noqa: E731
    try:
        wait_for(everyone, SECONDS_TO_RECOVER, "the ensemble does not recover")
    except HarnessError:
        # A server does not return if its configuration lacks it, or if its epoch is later than that of the leader.
        result.absent = tuple(sid for sid in lab.sids if _serves(lab, sid))
        if not schedule.setup.gossip or len(result.absent) == len(lab.sids):
            raise
    serving = [sid for sid in lab.sids if sid not in result.absent]
    result.servers = len(serving)
    _let_settle(lab, serving)
    for write in lab.writes.values():
        result.present[write.path] = tuple(sid for sid in serving if _has_path(lab, sid, write.path))
    if lab.recorder is not None:
        for sid in serving:
            lab.recorder.looked(sid, [path for path in result.acknowledged if sid not in result.present[path]])


def _complete_plan(schedule: Schedule, lab: Lab, row: Row) -> None:
    """Start every stopped server with its last planned file, then restart each that runs with an earlier one."""
    planned = {action.sid: action.file.view for action in schedule.setup.process_actions if action.file is not None}
    stopped = [sid for sid in lab.sids if not lab.alive(sid)]
    outdated = [sid for sid, view in planned.items() if schedule.server(row, sid).view != view]
    for sid in dict.fromkeys((*stopped, *outdated)):
        if sid in planned:
            lab.kill(sid)
            lab.configure(sid, planned[sid])
        lab.start(sid)
        if sid not in stopped:
            wait_for(partial(_serves, lab, sid), SECONDS_TO_RECOVER, f"server {sid} does not return with its new file")


def _let_settle(lab: Lab, sids: list[Sid]) -> None:
    """Wait until one of these servers leads, and all others have joined it.

    An old leader that receives a late packet may serve until its next tick. Views that differ may keep two leaders.
    """
    deadline = time.monotonic() + SECONDS_TO_SETTLE
    while time.monotonic() < deadline:
        roles = [lab.role(sid) for sid in sids]
        if roles.count("leader") == 1 and None not in roles:
            return
        time.sleep(POLL_SECONDS)


def _has_path(lab: Lab, sid: Sid, path: str) -> bool:
    """Whether a server has a znode; asked again if the server ends the connection, to change its leader."""
    deadline = time.monotonic() + SECONDS_TO_LOOK
    while True:
        try:
            return lab.exists(sid, path)
        except (ServerError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)


def _serves(lab: Lab, sid: Sid) -> list[str]:
    return [] if lab.role(sid) else [f"server {sid} does not serve"]


def is_committed(schedule: Schedule, number: int, executed: int) -> bool:
    """Whether the model has committed a write within the executed steps: a leader has it, and has committed it."""
    zxid = schedule.zxids.get(number)
    if zxid is None:
        return False
    for step in schedule.steps[:executed]:
        for sid in schedule.setup.sids:
            server = schedule.server(step.after, sid)
            part = server.zab
            if not isinstance(part, Leader) or not part.serves or part.committed < zxid:
                continue
            if any(txn.zxid == zxid for txn in logged_and_queued(server.durable, part.queue)):
                return True
    return False


SECONDS_TO_START = 90.0
DISCOVERY = frozenset({PacketType.FOLLOWERINFO, PacketType.OBSERVERINFO, PacketType.LEADERINFO, PacketType.ACKEPOCH})
EVERY_TYPE = frozenset(int(each) for each in PacketType)
STALL_ZNODES = 100_000


def begin(schedule: Schedule, lab: Lab, elections: ElectionControl, *, quick: bool = False) -> dict[Sid, Session]:
    """Start the servers, wait until they have the roles and logs of the initial state, then hold everything.

    The result is a session at each server that serves and where a client writes. Raises HarnessError, ServerError or
    OSError.
    """
    row, compare = schedule.initial, Comparison(schedule, lab)
    slow_reads = not quick and any(
        schedule.serves(step.before, sid) for step in schedule.steps for sid in schedule.commits_late(step)
    )
    for member in schedule.setup.members:
        lab.write_disk(member.sid, member.durable, STALL_ZNODES if slow_reads else 0)
        lab.configure(member.sid, member.file.view)
    running = schedule.running(row)
    leaders = [sid for sid in running if isinstance(schedule.server(row, sid).zab, Leader)]
    for sid in lab.sids:
        elections.isolate(sid)
    initial_votes = {
        member.sid: vote_of(Peer(member.sid, member.file.view, member.durable)) for member in schedule.setup.members
    }
    first: list[tuple[Sid, Sid]] = []
    for leader in leaders:
        # A star around the leader, without the servers that have a better vote: no other server can be elected.
        best = initial_votes[leader]
        first += [(sid, leader) for sid in schedule.group(row, leader) if initial_votes[sid] < best]
    for pair in first:
        elections.join(frozenset(pair))
    lab.network.close(EVERY_TYPE - {PacketType.ACKEPOCH})
    for sid in running:
        lab.start(sid)
    late = lambda: [f"server {sid} has not" for sid, leader in first if not _has_promised(lab, sid, leader)]  # noqa: E731
    wait_for(late, SECONDS_TO_START, "not all first followers have acknowledged an epoch")
    lab.network.close(EVERY_TYPE)
    for link in lab.network.links:
        link.flush()
    for leader in leaders:
        wait_for(partial(_is_leader, lab, leader), SECONDS_TO_START, f"server {leader} does not lead")
        elections.join(schedule.group(row, leader))
        _write_history(schedule, lab, leader)
    started = lambda: compare.roles(row) + compare.logs(row) + compare.views(row)  # noqa: E731
    wait_for(started, SECONDS_TO_START, "the servers do not reach the initial state")
    sessions = {sid: lab.connect(sid) for sid in _written_at(schedule) if lab.role(sid)}
    transparent = UNMODELLED | (DISCOVERY if schedule.setup.discovery_in_one_step else frozenset())
    lab.network.close(frozenset(int(kind) for kind in transparent))
    for gate in lab.gates.values():
        gate.close()
    return sessions


def _has_promised(lab: Lab, sid: Sid, leader: Sid) -> bool:
    """Whether the ACKEPOCH of a server waits at the proxy.

    A follower whose ACKEPOCH comes after the leader has begun to serve would get a SNAP at the zxid of the new epoch.
    """
    link = lab.network.link(sid, leader)
    return link is not None and any(packet.type == PacketType.ACKEPOCH for packet in link.waiting(Way.UP))


def _write_history(schedule: Schedule, lab: Lab, leader: Sid) -> None:
    """Write the transactions that the initial state has and the initial disks do not have."""
    member = next(member for member in schedule.setup.members if member.sid == leader)
    session = lab.connect(leader)
    for txn in tuple(schedule.server(schedule.initial, leader).durable.txns)[len(member.durable.txns) :]:
        lab.create(session, path_of(txn.zxid, txn.value))
    session.drop()


def _is_leader(lab: Lab, sid: Sid) -> list[str]:
    role = lab.role(sid)
    return [] if role == "leader" else [f"it is {role or 'not serving'}"]


def _written_at(schedule: Schedule) -> tuple[Sid, ...]:
    writes = (step.move.arguments for step in schedule.steps if step.move.action == ServerAction.CLIENT_WRITE)
    return tuple(dict.fromkeys(sid for sid, _ in writes))
