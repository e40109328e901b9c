"""The registry of the properties of ensembles, the setups that they apply to, and what they read.

Properties with equal reads are looked up together, so there are few projections:

    election_status    the state, the leader and the view of a server (`checker.models.ensemble.status`)
    server_status      the delivered transactions, with the epoch and the leader
    log_status         the logged transactions, with the epoch and the leader
    sync_obligation    the events that the server waits for, and the progress of its learners
    disk_contents      the contents of its disk, and the quorums of its view

Rules of this module: a default is data, not code at the place that asks for it; a projection has few distinct values; a
server that a projection excludes is a word, never None.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Never

import msgspec
from msgspec.structs import replace

from checker.engine import Kind, Read
from checker.kit.environment import LINKS
from checker.models.ensemble.effects import NO_EPOCH, Misapplied, memory_of, up_to
from checker.models.ensemble.history import HistoryPart, part
from checker.models.ensemble.setup import HISTORY, Grain, Link, Setup, server_name
from checker.models.ensemble.status import LEADING, ElectionStatus, election_status, is_established
from checker.properties.registry import Answer, Condition, Parameter, ParameterError, Registry, Scope
from spec.quorum import Sid, View
from spec.server import Server
from spec.txn import Txn, epoch_of
from spec.zab.state import Leader, LeaderPhase, Learner, LearnerPhase, Stage, SyncMode, logged_and_queued

ENSEMBLE_PROPERTIES: Registry[Setup, Never] = Registry("ensembles")
"""All properties of ensembles, by name."""

EVERYWHERE: Scope[Setup] = Scope(lambda _: True, "yes")
STATIC: Scope[Setup] = Scope(
    lambda setup: setup.is_static,
    "yes, but not with a `reconfig` in the plan: a leader that is removed leads until its learners have left",
)
ELECTION: Scope[Setup] = Scope(
    lambda setup: setup.zab is None,
    "yes, but not with `protocol: zab`: two servers may then LEAD for a moment and do no harm, and "
    "[Leadership](reference-zab-invariants.md#leadership) is the default instead",
)
FINE: Scope[Setup] = Scope(
    lambda setup: setup.grain is not Grain.ORACLE, "yes, at the fine grain; with the oracle no server counts votes"
)
ZAB: Scope[Setup] = Scope(
    lambda setup: setup.zab is not None,
    "with `protocol: zab`",
    "speaks of servers that lead and follow",
    "write protocol: zab",
)
STANDALONE: Scope[Setup] = Scope(
    lambda setup: any(view.standalone for view in setup.reachable_views),
    "yes, if the file of some server makes it run standalone",
)
ZAB_STANDALONE: Scope[Setup] = Scope(
    lambda setup: setup.zab is not None and STANDALONE.covers(setup),
    "with `protocol: zab`, if the file of some server makes it run standalone",
)
ZAB_EQUAL_QUORUMS: Scope[Setup] = Scope(
    lambda setup: setup.zab is not None and len({view.quorums for view in setup.reachable_views}) <= 1,
    "with `protocol: zab`, if all views have the same quorums",
)

zab_invariant = partial(ENSEMBLE_PROPERTIES.declare, kind=Kind.ALWAYS, default=ZAB, needs=ZAB)
"""Declares an invariant of servers that lead and follow, which such ensembles have by default."""

Statuses = Mapping[Sid, ElectionStatus | str]


def statuses_of(setup: Setup) -> tuple[Read, ...]:
    """Reads of the summary of every server."""
    return tuple(Read(server_name(sid), election_status) for sid in setup.sids)


def statuses_and_links_of(setup: Setup) -> tuple[Read, ...]:
    """Reads of the cut links, and of the summary of every server."""
    return (Read(LINKS), *statuses_of(setup))


def serving(statuses: Statuses, cut: frozenset[Link]) -> list[Sid]:
    """The servers that lead while a quorum of their view follows them, counting only followers within reach."""
    servers = []
    for sid, status in statuses.items():
        if isinstance(status, ElectionStatus) and status.state is LEADING:
            within = {o: e for o, e in statuses.items() if (min(o, sid), max(o, sid)) not in cut}
            if is_established(within, sid):
                servers.append(sid)
    return servers


def server_of(setup: Setup, value: Any, inside: tuple[str | int, ...] = ()) -> Sid:
    """The id of a server of the scenario. Raises ParameterError."""
    if isinstance(value, bool) or value not in setup.sids:
        ids = ", ".join(map(str, setup.sids))
        raise ParameterError(f"{quoted(value)} is not a server here", f"write one of {ids}", inside)
    return int(value)


def _read_server(setup: Setup, value: object) -> tuple[Sid, str]:
    sid = server_of(setup, value)
    return sid, str(sid)


SERVER: Parameter[Setup] = Parameter("the id of a server", "3", _read_server)


def quoted(value: object) -> str:
    """The text of a wrong value, in a length fit for an error."""
    return repr(value)[:60]


AWAY = "away"
"""A server that does not run, is LOOKING, or has not yet reached a phase of the projection."""


class Presence(msgspec.Struct, frozen=True):
    """A server that leads an established epoch, or has acknowledged its leader's NEWLEADER, or runs standalone.

    The epoch of a standalone server is NO_EPOCH. `serves`: it is in BROADCAST.
    """

    leads: bool
    leader: Sid
    epoch: int
    serves: bool


class ServerStatus(Presence, frozen=True):
    """Such a server with the transactions that it has delivered, in the order of its log.

    It has committed them, as a leader, or applied them while serving.
    """

    delivered: tuple[Txn, ...]


class LogStatus(Presence, frozen=True):
    """Such a server with `log`, every transaction that it has logged or asked its disk to log."""

    log: tuple[Txn, ...]


def server_status(server: Server) -> ServerStatus | str:
    """See `ServerStatus`."""
    part, presence = server.zab, _presence(server)
    if part is None or presence is None:
        return AWAY
    delivered: tuple[Txn, ...] = ()
    if isinstance(part, Leader) and part.serves:
        delivered = up_to(logged_and_queued(server.durable, part.queue), part.committed)
    elif isinstance(part, Learner) and part.serves:
        delivered = up_to(memory_of(server), part.delivered)
    return ServerStatus(*presence, delivered)


def log_status(server: Server) -> LogStatus | str:
    """See `LogStatus`."""
    part, presence = server.zab, _presence(server)
    if part is None or presence is None:
        return AWAY
    return LogStatus(*presence, logged_and_queued(server.durable, part.queue))


def _presence(server: Server) -> tuple[bool, Sid, int, bool] | None:
    part = server.zab
    if isinstance(part, Leader) and part.phase in (LeaderPhase.NEWLEADER_ACK, LeaderPhase.BROADCAST):
        return True, server.sid, NO_EPOCH if server.runs_standalone else part.epoch, part.serves
    if isinstance(part, Learner) and part.phase in (LearnerPhase.SYNCED, LearnerPhase.BROADCAST):
        return False, part.leader, part.epoch, part.serves
    return None


class SyncObligation(msgspec.Struct, frozen=True):
    """The events that a leader or a learner waits for, and the progress that its counterpart may rely on.

    `initial` is the last zxid among the initial transactions of a leader in BROADCAST; `served` are the followers whose
    ACK of UPTODATE it has read (an observer applies the transactions of its synchronisation after that ACK, and is not
    counted). `applied` is the last zxid that a learner in BROADCAST has applied.
    """

    leads: bool
    leader: Sid
    epoch: int
    initial: int = 0
    served: tuple[Sid, ...] = ()
    applied: int | None = None
    awaits_acks: bool = False
    awaits_proposals: bool = False
    awaits_commits: bool = False


def sync_obligation(server: Server) -> SyncObligation | str:
    """See `SyncObligation`."""
    part = server.zab
    if server.runs_standalone:
        return AWAY
    if isinstance(part, Leader):
        layout = server.durable.layout
        before = [txn.zxid for txn in server.durable.txns if epoch_of(txn.zxid, layout) < part.epoch]
        began = part.phase is LeaderPhase.BROADCAST
        return SyncObligation(
            True,
            server.sid,
            part.epoch,
            initial=before[-1] if began and before else 0,
            served=tuple(item.sid for item in part.handlers if item.stage is Stage.SERVING and not item.observer),
            awaits_acks=any(handler.stage >= Stage.SYNCING for handler in part.handlers),
        )
    if isinstance(part, Learner):
        return SyncObligation(
            False,
            part.leader,
            part.epoch,
            applied=part.delivered if part.phase is LearnerPhase.BROADCAST else None,
            awaits_proposals=part.mode is not None or part.phase in (LearnerPhase.SYNCED, LearnerPhase.BROADCAST),
            awaits_commits=bool(part.pending or part.not_logged),
        )
    return AWAY


class DiskContents(msgspec.Struct, frozen=True):
    """The contents of a server's disk, and its view."""

    txns: tuple[Txn, ...]
    view: View


def disk_contents(server: Server) -> DiskContents:
    """See `DiskContents`."""
    return DiskContents(tuple(server.durable.txns), server.view)


def truncates(server: Server) -> bool:
    """Whether a server synchronises by a TRUNC, or by a SNAP without a transaction that is on its disk."""
    part_of = server.zab
    if not isinstance(part_of, Learner):
        return False
    without = part_of.mode is SyncMode.SNAP and not set(server.durable.txns) <= set(part_of.tree or ())
    return without or part_of.mode is SyncMode.TRUNC


def as_applied(sid: Sid, each: ServerStatus, reports: tuple[Misapplied, ...]) -> ServerStatus:
    """A server with the delivered transactions that it reported, where they differ from its log (see `Misapplied`)."""
    for report in reports:
        count = len(report.logged)
        same = report.server == sid and each.serves and report.epoch == each.epoch
        if same and each.delivered[:count] == report.logged:
            return replace(each, delivered=(*report.applied, *each.delivered[count:]))
    return each


def reads_of(setup: Setup, projection: Callable[[Server], Any], *parts: HistoryPart) -> tuple[Read, ...]:
    """Reads of these parts of the history, and of this projection of every server."""
    of_history = tuple(Read(HISTORY, part(which)) for which in parts)
    return (*of_history, *(Read(server_name(sid), projection) for sid in setup.sids))


Servers = dict[Sid, ServerStatus]
"""The servers that lead or follow and have reached the phases that `ServerStatus` covers."""


def of_present(setup: Setup, check: Callable[[Servers], Answer]) -> Condition:
    """A condition on the servers that are present in an epoch."""
    reads = reads_of(setup, server_status, HistoryPart.MISAPPLIED)
    return Condition(reads, lambda reports, *views: check(present_servers(setup, reports, views)))


def present_servers(setup: Setup, reports: tuple[Misapplied, ...], views: tuple[ServerStatus | str, ...]) -> Servers:
    """The servers that are present, each with the transactions that it has reported as applied."""
    present = {sid: status for sid, status in zip(setup.sids, views, strict=True) if isinstance(status, ServerStatus)}
    return {sid: as_applied(sid, status, reports) for sid, status in present.items()} if reports else present
