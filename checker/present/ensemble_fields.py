"""The fields of a lane for a server that leads or follows, and for its disk.

Rules of this module:

- A field is present only while it has information: a handler whose learner serves, an empty queue, and the epoch that a
  learner has from LEADERINFO, which equals acceptedEpoch, are omitted.
- Zxids are shown as scenarios write them. A transaction is its zxid, followed by "=" and its value if the value differs
  from the zxid, so that two transactions with one zxid can be distinguished.
"""

from __future__ import annotations

from collections.abc import Iterable

from checker.job import Json
from checker.traces.trace import brief, to_json
from spec.durable import Durable
from spec.effects import DiskOperation
from spec.quorum import Reconfiguration, Sid, View
from spec.server import Server
from spec.txn import Txn, format_zxid
from spec.zab.state import (
    Append,
    EnterEpoch,
    Leader,
    LeaderPhase,
    Learner,
    LearnerPhase,
    Stage,
    StaleMemory,
    TakeSnapshot,
)

STANDALONE = "STANDALONE"
"""The state of a server that runs without an ensemble, as a lane shows it."""

Fields = dict[str, Json]


_OF_ENSEMBLES = ("zab", "epoch")


def part_of(server: Server) -> Fields:
    """The state of a server as a leader or a learner; empty while it is LOOKING or down.

    A standalone server has no phase and no epoch of its own.
    """
    if isinstance(server.zab, Leader):
        shown = _leader(server.zab)
        return {key: shown[key] for key in shown if key not in _OF_ENSEMBLES} if server.view.standalone else shown
    return {} if server.zab is None else _learner(server.zab)


def disk_of(server: Server) -> Fields:
    """The content of a server's disk, whether it is full, pending writes, and memory that two variants leave behind."""
    queue = () if server.zab is None else server.zab.queue
    writing: Fields = {"writing": [disk_operation(operation) for operation in queue]} if queue else {}
    full: Fields = {"disk": "full"} if server.disk_full else {}
    return {**_durable(server.durable), **full, **writing, **_remains(server.remains)}


def transaction(txn: Txn) -> str:
    """A transaction: `1:2=x`; `1:2` if its value is the text of its zxid."""
    zxid = format_zxid(txn.zxid)
    if isinstance(txn.value, Reconfiguration):
        return f"{zxid}={view_in_words(txn.value.view)}"
    return zxid if txn.value is None or txn.value == zxid else f"{zxid}={brief(to_json(txn.value))}"


def view_in_words(view: View) -> str:
    """The members of a view: `voters 1, 2, 3; observers 4`."""
    observers = f"; observers {_listed(view.observers)}" if view.observers else ""
    return f"voters {_listed(view.voters)}{observers}"


def _listed(sids: Iterable[Sid]) -> str:
    return ", ".join(map(str, sorted(sids)))


def disk_operation(operation: DiskOperation) -> str:
    """A requested disk operation: `1:2`, `currentEpoch 2`, `snapshot 1:2`."""
    match operation:
        case Append(txn=txn):
            return transaction(txn)
        case EnterEpoch(epoch=epoch):
            return f"currentEpoch {epoch}"
        case TakeSnapshot(txns=txns, snapshot=snapshot):
            return f"snapshot {format_zxid(max(snapshot, txns[-1].zxid) if txns else snapshot)}"
    return brief(to_json(operation))


def _leader(leader: Leader) -> Fields:
    fields: Fields = {"zab": leader.phase.name, "epoch": leader.epoch}
    if leader.counted:
        fields["counted"] = list(leader.counted)
    handlers = {
        str(handler.sid): handler.stage.name for handler in leader.handlers if handler.stage is not Stage.SERVING
    }
    if handlers:
        fields["handlers"] = handlers
    if leader.outstanding:
        fields["outstanding"] = {format_zxid(each.zxid): list(each.acks) for each in leader.outstanding}
    if leader.phase is LeaderPhase.BROADCAST:
        fields["committed"] = format_zxid(leader.committed)
    if leader.commits:
        fields["toBeApplied"] = _zxids(leader.commits)
    if leader.successor is not None:
        fields["successor"] = leader.successor
    if leader.syncs:
        fields["pendingSyncs"] = [f"{format_zxid(zxid)} for {sid}" for zxid, sid in leader.syncs]
    return fields


def _learner(learner: Learner) -> Fields:
    fields: Fields = {"zab": learner.phase.name}
    if learner.mode is not None:
        fields["mode"] = learner.mode.name
    if learner.tree is not None:
        fields["tree"] = _transactions(learner.tree)
    if learner.not_logged:
        fields["notLogged"] = _transactions(learner.not_logged)
    if learner.packets_committed:
        fields["packetsCommitted"] = _zxids(learner.packets_committed)
    if learner.owes_ack:
        fields["owes"] = "ACK of NEWLEADER"
    if learner.pending:
        fields["pending"] = _zxids(learner.pending)
    if learner.commits:
        fields["toBeApplied"] = _zxids(learner.commits)
    if learner.phase is LearnerPhase.BROADCAST:
        fields["delivered"] = format_zxid(learner.delivered)
    if learner.syncs:
        fields["pendingSyncs"] = learner.syncs
    return fields


def _durable(durable: Durable) -> Fields:
    fields: Fields = {"acceptedEpoch": durable.accepted_epoch, "currentEpoch": durable.current_epoch}
    if durable.snapshot:
        fields["snapshot"] = format_zxid(durable.snapshot)
    if durable.log:
        fields["log"] = _transactions(durable.log)
    if durable.dirty is not None:
        fields["newestSnapshot"] = format_zxid(durable.dirty.zxid)
        fields["newestSnapshotHolds"] = _transactions(durable.dirty.txns)
    return fields


def _remains(remains: StaleMemory) -> Fields:
    """The memory that a former life as a leader or a learner left behind (`StaleMemory`)."""
    fields: Fields = {"oldQueue": _transactions(remains.queue)} if remains.queue else {}
    if remains.tree is not None:
        fields["treeZxid"] = format_zxid(remains.tree)
    if remains.unlogged:
        fields["inMemoryOnly"] = _transactions(remains.unlogged)
    if remains.unlisted:
        fields["notInCommittedLog"] = _zxids(remains.unlisted)
    return fields


def _zxids(zxids: Iterable[int]) -> Json:
    return [format_zxid(zxid) for zxid in zxids]


def _transactions(txns: Iterable[Txn]) -> Json:
    return [transaction(txn) for txn in txns]
