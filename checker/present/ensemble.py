"""The display of an ensemble: a lane for each server, captions in ZooKeeper's terms, and the elements of a picture.

A lane's fields are the values that an operator would query: the server's state, its round (logicalclock), its vote, its
receive bucket as sender -> leader, the votes of decided servers (outofelection), and its file. Where servers lead and
follow, they also include its leading or following state and its disk. Rules:

- Where the model keeps the last vote of each sender, the bucket is that table and continues after the decision;
  elsewhere it is recvset, which ends with the election.
- A field is present only while it has information: an empty bucket is omitted, and a stopped server shows only its
  files. Where servers lead and follow by the oracle, the round and the vote are omitted, because no rule compares them.
- An empty queue is omitted, and so is the epoch that a learner has from LEADERINFO, which equals acceptedEpoch.
- Zxids are shown as scenarios write them. A transaction is its zxid, followed by "=" and its value if the value differs
  from the zxid, so that two transactions with one zxid can be distinguished.
"""

from collections.abc import Iterable
from typing import Any

from checker.engine import Model, Move, Row
from checker.engine.values import brief, to_json
from checker.job import DiagramEvent, Json
from checker.models.ensemble import Grain, PlannedReconfig, Setup
from checker.models.ensemble.actions import ServerAction
from checker.models.ensemble.setup import VOTES, server_name
from checker.present.ensemble_events import DiagramEvents, decision, leader_of_vote, notification
from spec.durable import Durable
from spec.effects import DiskOperation
from spec.election.state import Election
from spec.election.vote import ServerState, Vote
from spec.quorum import Reconfiguration, Sid, View
from spec.server import Server
from spec.txn import Txn, format_zxid
from spec.zab.packets import described
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
        fields = _leader(server.zab)
        return {key: fields[key] for key in fields if key not in _OF_ENSEMBLES} if server.view.standalone else fields
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
        fields["outstanding"] = {format_zxid(proposal.zxid): list(proposal.acks) for proposal in leader.outstanding}
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
    if durable.layout is not None and durable.layout.switch:
        fields["zxidLayoutSwitchEpoch"] = durable.layout.switch
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
    if remains.database is not None:
        fields["databaseOfPeer"] = _transactions(remains.database.txns)
    if remains.unfiled:
        fields["filesMovedAway"] = True
    return fields


def _zxids(zxids: Iterable[int]) -> Json:
    return [format_zxid(zxid) for zxid in zxids]


def _transactions(txns: Iterable[Txn]) -> Json:
    return [transaction(txn) for txn in txns]


class EnsemblePresenter:
    """The presenter of the ensemble model. See `checker.job.Presenter`."""

    def __init__(self, model: Model, setup: Setup) -> None:
        self._setup = setup
        self._places = {sid: model.index[server_name(sid)] for sid in setup.sids}
        self._votes = model.index.get(VOTES)
        files = {sid: (*setup.files_of(sid), *setup.files) for sid in setup.sids}  # its own come first
        self._names = {sid: {file.view: file.name for file in reversed(files[sid])} for sid in files}
        self._events = DiagramEvents(model, setup, self.file_of)

    def file_of(self, sid: Sid, view: View) -> str:
        """The name of a file with that view; the server's own files are searched first."""
        return self._names[sid].get(view) or view_in_words(view)

    def lanes(self, row: Row) -> dict[str, dict[str, Json]]:
        """One lane for each server, by its name in zoo.cfg."""
        return {server_name(sid): self._fields(sid, row) for sid in self._setup.sids}

    def _fields(self, sid: Sid, row: Row) -> dict[str, Json]:
        server: Server = row[self._places[sid]]
        election, file = server.election, {"file": self.file_of(sid, server.view)}
        if server.last_seen is not None:
            file["lastSeen"] = self.file_of(sid, server.last_seen)
        if self._setup.zab is not None:
            file = {**disk_of(server), **file, **self._release(server)}
        if election is None:
            state = STANDALONE if server.runs_standalone else "down"
            return {"state": state, **part_of(server), **file}
        fields: dict[str, Json] = {"state": election.state.name}
        if self._setup.zab is None or self._setup.grain is Grain.FINE:
            fields |= {"round": election.round, "vote": _vote(election.vote)}
        elif election.state in (ServerState.FOLLOWING, ServerState.OBSERVING):
            fields["leader"] = election.vote.leader
        bucket = self._bucket(sid, election, row)
        if bucket:
            fields["bucket"] = bucket
        if election.outofelection:
            fields["outofelection"] = {
                str(sender): leader_of_vote(claim.leader) for sender, claim in election.outofelection
            }
        if election.finalizing:
            fields["waits"] = "finalizeWait"
        return {**fields, **part_of(server), **file}

    def _release(self, server: Server) -> dict[str, Json]:
        releases = self._setup.releases
        return {"release": next(r.name for r in releases if r.defects == server.defects)} if len(releases) > 1 else {}

    def _bucket(self, sid: Sid, election: Election, row: Row) -> dict[str, Json]:
        if self._votes is None:
            return {str(sender): leader_of_vote(ballot.vote.leader) for sender, ballot in election.recvset}
        votes = ((sender, vote) for (server, sender), vote in row[self._votes] if server == sid)
        return {str(sender): leader_of_vote(vote.leader) for sender, vote in votes}

    def caption(self, move: Move) -> str:
        """One sentence with the actor and the action."""
        planned = self._setup.planned.get(move.action)
        if planned is not None:
            if isinstance(planned, PlannedReconfig):
                return f"an operator sends {planned.label} to {server_name(*move.arguments)}"
            return str(_PLANNED[planned.action](self, *move.arguments))
        action = ServerAction(move.action)
        if action in _CAPTIONS:
            return str(_CAPTIONS[action](self, *move.arguments))
        return action.worded(*map(server_name, move.arguments))

    def diagram(self, before: Row, move: Move, after: Row) -> tuple[DiagramEvent, ...]:
        """The arrivals, losses, broken and new connections, decisions and sent messages of a step."""
        noted: tuple[DiagramEvent, ...] = ()
        if isinstance(move.action, ServerAction) and move.action.traits.noted:
            noted = (DiagramEvent("note", server_name(move.arguments[move.action.traits.actor]), self.caption(move)),)
        return (*noted, *self._events.of(before, move, after))

    def watches(self, sid: Sid) -> bool:
        """Whether a server is an observer in every file that it may load."""
        return all(sid in view.observers for view in self._setup.views_of(sid))

    def others(self, side: tuple[Sid, ...]) -> list[Sid]:
        """The servers that are not on that side."""
        return [sid for sid in self._setup.sids if sid not in side]


def _vote(vote: Vote) -> Json:
    """A vote as ZooKeeper logs it; the lowest vote, of a server that does not vote, is omitted."""
    if vote.zxid < 0:
        return {"leader": leader_of_vote(vote.leader)}
    return {"leader": leader_of_vote(vote.leader), "zxid": hex(vote.zxid), "epoch": vote.peer_epoch}


def _many(sids: Any) -> str:
    names = [server_name(sid) for sid in sids]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nobody"


def _starts(verb: str) -> Any:
    def caption(_: EnsemblePresenter, sid: Sid, *loaded: str) -> str:
        *rest, last = loaded or ("the same file",)
        first = f"{', '.join(rest)} and " if rest else ""
        return f"{verb.format(server_name(sid))} with {first}{last}"

    return caption


def _elects(_: EnsemblePresenter, leader: Sid, members: tuple[Sid, ...]) -> str:
    if leader not in members:
        return f"{_many(members)} joins {server_name(leader)}"
    followers = [sid for sid in members if sid != leader]
    return f"{_many(followers)} elect {server_name(leader)}" if len(followers) > 1 else _elects_one(leader, followers)


def _elects_one(leader: Sid, others: list[Sid]) -> str:
    return f"{_many(others)} elects {server_name(leader)}" if others else f"{server_name(leader)} finds itself elected"


def _cut_off(side: tuple[Sid, ...], others: list[Sid]) -> str:
    return f"{_many(side)} {'is' if len(side) == 1 else 'are'} cut off from {_many(others)}"


def _on_disk(_: EnsemblePresenter, sid: Sid, operation: DiskOperation) -> str:
    server = server_name(sid)
    match operation:
        case Append(txn=txn, ack=ack):
            return f"{server} has {transaction(txn)} on disk" + (" and acknowledges it" if ack else "")
        case EnterEpoch(epoch=epoch, ack=ack):
            return f"{server} has currentEpoch {epoch} on disk" + (" and acknowledges NEWLEADER" if ack else "")
    return f"{server} has a snapshot of its tree on disk"


def _written_late(_: EnsemblePresenter, sid: Sid, txn: Txn) -> str:
    return f"an old sync thread of {server_name(sid)} has {transaction(txn)} on disk"


_CAPTIONS: dict[ServerAction, Any] = {
    ServerAction.START: _starts("{} starts"),
    ServerAction.RESTART: _starts("{} starts again"),
    ServerAction.DELIVER: lambda _, a, b, heard: f"{server_name(b)} hears {server_name(a)} {notification(heard)}",
    ServerAction.DECIDE: lambda by, sid, leader: (
        f"{server_name(sid)} decides: {decision(sid, leader, by.watches(sid))}"
    ),
    ServerAction.ELECT: _elects,
    ServerAction.RECEIVE: lambda _, a, b, packet: (
        f"{server_name(b)} receives {described(packet)} from {server_name(a)}"
    ),
    ServerAction.SYNC: _on_disk,
    ServerAction.SYNC_LATE: _written_late,
    ServerAction.APPLY: lambda _, sid, zxid: f"{server_name(sid)} applies {format_zxid(zxid)}",
    ServerAction.CLIENT_WRITE: lambda _, sid, value: f"a client writes {value} at {server_name(sid)}",
    ServerAction.RESTORE: lambda _, zxid: f"the operator restores the snapshot of {format_zxid(zxid)} at every server",
    ServerAction.CUT: lambda _, a, b: f"the link {a}-{b} is cut",
    ServerAction.PARTITION: lambda by, side: _cut_off(side, by.others(side)),
}
_PLANNED: dict[str, Any] = {
    "start": _starts("the operator starts {}"),
    "stop": lambda _, sid: f"the operator stops {server_name(sid)}",
}
"""The actions of the operator's plan."""
