"""A schedule for real servers: a run of the ensemble model, with the observable state after each step.

A run of the model may postpone the loss of a quorum, while a real leader gives up within a second. In a run of the
model a leader without a quorum may lead for ever, and a shortest run often has such a leader, because its end costs a
step. A real leader looks at its learners every half tick. So the schedule gets the step, or gets it earlier, if every
later step remains possible and the end still has the same findings.

Rules of this module:

- The run is executed on the model before any server starts, so each step has the model's values.
- The schedule with corrections is computed on the model that has them. A packet that is another one there is delivered
  in place of the first, and steps that are then impossible are left out.
- The schedule without a step is computed on the model too: later steps that are then impossible are left out, and an
  election takes the same members.
- The driver supports elections as one step (`grain: oracle`), because a real election cannot be stopped between two
  notifications; a trace of another grain is refused.

Source: `Leader.lead` (the loop over `tickTime / 2`, and `syncedAckSet.hasAllQuorums`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

from checker.cli.sources import job_of
from checker.command import CommandError
from checker.command_table import called
from checker.engine import Limits, Model, Move
from checker.engine.discovery import Discovery, Step
from checker.engine.model import Finding, Row
from checker.engine.semantics import read, successors
from checker.execution import run_uninterrupted
from checker.job import Job
from checker.models.ensemble import ensemble
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.connection import Connection
from checker.models.ensemble.setup import Setup, connection_name, server_name
from checker.present.ensemble import EnsemblePresenter
from checker.scenario import ScenarioError, load
from checker.scenario.ensemble import OracleRefinement
from checker.traces import ReplayError, TraceFileError, read_trace, replay
from checker.user_files import read_trace_text
from harness.corrections.choice import CORRECTIONS, corrected, corrections_of
from spec.config import ConfigError
from spec.quorum import Sid
from spec.releases import TAGGED, Release, release_named
from spec.server import Server
from spec.zab.packets import (
    Commit,
    CommitAndActivate,
    Inform,
    InformAndActivate,
    NewLeader,
    Proposal,
    QuorumPacket,
    Trunc,
    name_of,
)
from spec.zab.state import Append, Leader, Learner, logged_and_queued


class ScheduleError(Exception):
    """A file is not a run that the driver can execute; the message has the file, the mistake and the remedy."""


FIRST_WITH_RECONFIG = Release(3, 5, 0)


def check_release(name: str, release: str, since: Release, lack: str) -> None:
    """Raises ScheduleError for a release before `since`; `lack` is the reason, after "ZooKeeper 3.4.14"."""
    if release_named(release, TAGGED) < since:
        raise ScheduleError(f"{name}: ZooKeeper {release} {lack}; write a release from {since} on")


@dataclass(frozen=True)
class ScheduledStep:
    """A step of the model: its number in the trace, its move, the states around it, and its caption."""

    number: int
    move: Move
    before: Row
    after: Row
    caption: str


@dataclass(frozen=True)
class Schedule:
    """The steps to be executed, from the state `initial`.

    `omitted` are the captions of steps that are left out, and `corrections` those that the model and the servers have.
    """

    name: str
    claim: str
    setup: Setup
    model: Model
    initial: Row
    steps: tuple[ScheduledStep, ...]
    caption: Callable[[Move], str]
    omitted: tuple[tuple[int, str], ...] = ()
    corrections: tuple[str, ...] = ()

    def server(self, row: Row, sid: Sid) -> Server:
        """The state of a server."""
        server: Server = row[self.model.index[server_name(sid)]]
        return server

    def connection(self, row: Row, one: Sid, other: Sid) -> Connection | None:
        """The quorum connection of two servers."""
        place = self.model.index.get(connection_name(min(one, other), max(one, other)))
        connection: Connection | None = None if place is None else row[place]
        return connection

    def connections(self, row: Row) -> list[Connection]:
        """All quorum connections."""
        pairs = (self.connection(row, learner, leader) for learner, leader in self.setup.quorum_pairs)
        return [connection for connection in pairs if connection is not None]

    def running(self, row: Row) -> tuple[Sid, ...]:
        """The servers that run."""
        return tuple(sid for sid in self.setup.sids if self.server(row, sid).election is not None)

    @cached_property
    def zxids(self) -> dict[int, int]:
        """The zxid of each client's write, by its number, from the first state that contains it."""
        zxids: dict[int, int] = {}
        for step in self.steps:
            for sid in self.setup.sids:
                server = self.server(step.after, sid)
                for txn in logged_and_queued(server.durable, () if server.zab is None else server.zab.queue):
                    if type(txn.value) is int:
                        zxids.setdefault(txn.value, txn.zxid)
        return zxids

    def crossing(self, side: tuple[Sid, ...]) -> list[tuple[Sid, Sid]]:
        """The pairs of servers of which one is on this side of a partition, and the other is not."""
        pairs = combinations(self.setup.sids, 2)
        return [(near, far) for near, far in pairs if (near in side) is not (far in side)]

    def commits_late(self, step: ScheduledStep) -> tuple[Sid, ...]:
        """The servers that commit in a step what they apply in a later one."""
        parts = {sid: (self.server(step.before, sid).zab, self.server(step.after, sid).zab) for sid in self.setup.sids}
        return tuple(
            sid for sid, (before, after) in parts.items()
            if after is not None and after.commits and not (before is not None and before.commits)
        )  # fmt: skip

    def cannot_truncate(self, step: ScheduledStep) -> Sid | None:
        """The server that receives a TRUNC in this step and has no part then: its process ends."""
        if step.move.action != ServerAction.RECEIVE or not isinstance(step.move.arguments[2], Trunc):
            return None
        reader: Sid = step.move.arguments[1]
        return reader if self.server(step.after, reader).zab is None else None

    def serves(self, row: Row, sid: Sid) -> bool:
        """Whether a server has reached BROADCAST."""
        part = self.server(row, sid).zab
        return part is not None and part.serves

    def leads_without_quorum(self, row: Row, sid: Sid) -> bool:
        """Whether a server leads, and is connected with less than a quorum: it will notice some time later."""
        server = self.server(row, sid)
        return isinstance(server.zab, Leader) and not server.peer.has_all_quorums(self.group(row, sid))

    @cached_property
    def written_late(self) -> frozenset[tuple[Sid, int]]:
        """The transactions that a sync thread writes after its server has left its leader: the server, and the zxid."""
        return frozenset(
            (sid, txn.zxid)
            for step in self.steps
            for sid in self.setup.sids
            for txn in self.server(step.after, sid).remains.queue
        )

    def fails_later(self, step: ScheduledStep) -> frozenset[tuple[Sid, int]]:
        """The transactions whose write fails after a step, because the disk is full then: the server, and the zxid."""
        return frozenset(
            (sid, pending[0])
            for later in self.steps
            if later.move.action == ServerAction.FILL_DISK and later.number > step.number
            for sid in later.move.arguments
            if (pending := pending_appends(self.server(later.before, sid)))
        )

    def group(self, row: Row, leader: Sid) -> frozenset[Sid]:
        """The leader and the servers that are connected with it."""
        learners = {
            connection.learner
            for connection in self.connections(row)
            if connection.leader == leader and connection.is_whole
        }
        return frozenset({leader, *learners})


def load_schedule(file: Path) -> Schedule:
    """The schedule of a saved trace, or of the shortest violation of a scenario. Raises ScheduleError."""
    try:
        if not file.suffix and not file.exists():
            raise ScheduleError(f"{file}: no file and no shipped scenario has this name; {called('list')} prints them")
        if file.suffix in (".yaml", ".yml"):
            job, discovery = _explored(file)
            return schedule_of(job, discovery.path, f"{discovery.prop.name}: {discovery.finding.clause}")
        trace = read_trace(read_trace_text(file), str(file))
        job = job_of(trace.source)
        return schedule_of(job, replay(trace, job).path, f"{trace.prop}: {trace.clause}")
    except (OSError, ValueError) as error:
        raise ScheduleError(f"{file}: it cannot be read ({error}); name a saved trace or a scenario") from None
    except (CommandError, TraceFileError, ReplayError, ScenarioError, ConfigError) as error:
        raise ScheduleError(str(error)) from None


def _explored(file: Path) -> tuple[Job, Discovery]:
    job = load(file)
    exploration = run_uninterrupted(job, Limits())
    discoveries = [violation for violation in exploration.violations if violation.loop is None]
    if not discoveries:
        raise ScheduleError(f"{file}: the exploration finds nothing to reproduce; name a scenario that is violated")
    return job, min(discoveries, key=lambda each: len(each.path))


def schedule_of(job: Job, path: Iterable[Step], claim: str = "") -> Schedule:
    """The schedule of a run of a job. Raises ScheduleError for a model that the driver cannot follow."""
    refinement = job.refinement
    if not isinstance(refinement, OracleRefinement) or refinement.setup.zab is None:
        raise ScheduleError(
            f"{job.name}: the driver needs servers that lead and follow and elections in one step; "
            "write protocol: zab and grain: oracle"
        )
    first, *rest = path
    steps, before = [], first.row
    for number, step in enumerate(rest, start=1):
        assert step.move is not None
        if step.move.action == ServerAction.RESTORE:
            caption = job.presenter.caption(step.move)
            raise ScheduleError(
                f"{job.name}: the driver has no event for step {number}, {caption}; "
                "name a shipped scenario that has a schedule made by hand, or one without restores"
            )
        steps.append(ScheduledStep(number, step.move, before, step.row, job.presenter.caption(step.move)))
        before = step.row
    return Schedule(job.name, claim, refinement.setup, job.model, first.row, tuple(steps), job.presenter.caption)


def without(schedule: Schedule, number: int) -> Schedule:
    """The schedule without one step, and without the later steps that it makes impossible. Raises ScheduleError."""
    if not 1 <= number <= len(schedule.steps):
        raise ScheduleError(f"the run has no step {number}; write one of 1 to {len(schedule.steps)}")
    model = schedule.model
    return _repeated_where_possible(
        schedule, lambda row, step: None if step.number == number else _possible(model, row, step.move)
    )


def corrections_for(name: str, setup: Setup) -> tuple[str, ...]:
    """The names of the corrections of the defects of a setup. Raises ScheduleError if there is none."""
    if names := corrections_of(setup):
        return names
    raise ScheduleError(
        f"{name}: no correction belongs to it; name a run with one of the defects {', '.join(CORRECTIONS)}"
    )


def with_corrections(schedule: Schedule) -> Schedule:
    """The schedule for servers with corrections, on the model that has them. Raises ScheduleError."""
    names = corrections_for(schedule.name, schedule.setup)
    setup = corrected(schedule.setup)
    model = ensemble(schedule.name, setup, schedule.model.properties)
    start = replace(
        schedule,
        setup=setup,
        model=model,
        initial=model.initial(),
        caption=EnsemblePresenter(model, setup).caption,
        corrections=names,
    )
    return _repeated_where_possible(
        start, lambda row, step: _possible(model, row, step.move) or _next_packet(model, row, step.move)
    )


def _repeated_where_possible(
    schedule: Schedule, choose: Callable[[Row, ScheduledStep], tuple[Move, Row] | None]
) -> Schedule:
    """The steps that are chosen, one after the other from the initial state; the others are left out."""
    row = schedule.initial
    steps: list[ScheduledStep] = []
    omitted: list[tuple[int, str]] = []
    for step in schedule.steps:
        outcome = choose(row, step)
        if outcome is None:
            omitted.append((step.number, step.caption))
            continue
        move, after = outcome
        steps.append(ScheduledStep(step.number, move, row, after, schedule.caption(move)))
        row = after
    return replace(schedule, steps=tuple(steps), omitted=tuple(omitted))


def _possible(model: Model, row: Row, wanted: Move) -> tuple[Move, Row] | None:
    """The wanted move, or an election of the same members, if it is possible."""
    moves = [(move, after) for move, after in successors(model, row) if move.action == wanted.action]
    same = [(move, after) for move, after in moves if move.arguments == wanted.arguments]
    if not same and wanted.action == ServerAction.ELECT:
        same = [(move, after) for move, after in moves if move.arguments[1] == wanted.arguments[1]]
    return same[0] if same else None


def _next_packet(model: Model, row: Row, wanted: Move) -> tuple[Move, Row] | None:
    """The delivery of the packet that is next where the wanted move delivers another one."""
    if wanted.action != ServerAction.RECEIVE:
        return None
    deliveries = ((move, after) for move, after in successors(model, row) if move.action == ServerAction.RECEIVE)
    return next(((move, after) for move, after in deliveries if move.arguments[:2] == wanted.arguments[:2]), None)


def pending_appends(server: Server) -> tuple[int, ...]:
    """The zxids of the transactions that wait for the disk."""
    queue = () if server.zab is None else server.zab.queue
    return tuple(item.txn.zxid for item in queue if isinstance(item, Append))


def written_epoch(server: Server) -> int | None:
    """The epoch in the file `currentEpoch`; None while a learner handles NEWLEADER, which writes it at some time."""
    part = server.zab
    waits = part is not None and not all(isinstance(item, Append) for item in part.queue)
    return None if waits or (isinstance(part, Learner) and part.owes_ack) else server.durable.current_epoch


def applied_zxid(server: Server) -> int:
    """The last zxid that a serving server has applied; 0 if it does not serve."""
    part = server.zab
    if part is None or not part.serves:
        return 0
    return part.applied if isinstance(part, Leader) else part.delivered


def wire_form(packet: QuorumPacket) -> tuple[str, int | None]:
    """The type of a packet on the wire, and its zxid where both sides of the comparison have one."""
    name = name_of(packet).partition(" ")[0]
    match packet:
        case Proposal(txn=txn) | Inform(txn=txn) | InformAndActivate(txn=txn):
            return name, txn.zxid
        case Commit(zxid=zxid) | CommitAndActivate(zxid=zxid) | Trunc(zxid=zxid):
            return name, zxid
        case NewLeader(epoch=epoch):
            return name, epoch << 32
    return name, getattr(packet, "zxid", None) if name == "ACK" else None


def with_losses(schedule: Schedule) -> Schedule:
    """The same schedule, in which leaders without a quorum give up at once; an added step has the number before it."""
    steps, place = list(schedule.steps), 0
    while place < len(steps) - 1:
        last, rest = steps[place], steps[place + 1 :]
        for move, after in successors(schedule.model, last.after):
            if move.action != ServerAction.LOSE_QUORUM or move == rest[0].move:
                continue
            moved = _repeated(schedule.model, after, _without_first(move, rest))
            if moved and _findings(schedule.model, moved[-1].after) >= _findings(schedule.model, rest[-1].after):
                lost = ScheduledStep(last.number, move, last.after, after, schedule.caption(move))
                steps[place + 1 :] = [lost, *moved]
                break
        place += 1
    return replace(schedule, steps=tuple(steps))


def _without_first(move: Move, steps: list[ScheduledStep]) -> list[ScheduledStep]:
    """The steps without the first that is this move, which happens earlier."""
    place = next((place for place, step in enumerate(steps) if _same(move, step)), len(steps))
    return [*steps[:place], *steps[place + 1 :]]


def _repeated(model: Model, row: Row, steps: list[ScheduledStep]) -> list[ScheduledStep] | None:
    """The steps from another state; None if one of them is impossible."""
    repeated = []
    for step in steps:
        after = next((after for move, after in successors(model, row) if _same(move, step)), None)
        if after is None:
            return None
        repeated.append(replace(step, before=row, after=after))
        row = after
    return repeated


def _same(move: Move, step: ScheduledStep) -> bool:
    return move.action == step.move.action and move.arguments == step.move.arguments


def _findings(model: Model, row: Row) -> frozenset[str]:
    values = ((prop, read(model, prop.reads, row)) for prop in model.properties)
    return frozenset(
        prop.name for prop, cells in values if cells is not None and isinstance(prop.check(*cells), Finding)
    )
